"""Near ties: the chance that one of two hot arms beats the other, and how far pulls can move it.

`near_ties` plays them.

Two arms are in a near tie while they are so close that both stay hot. A round is then a coin, a number drawn uniformly
from [0, 1]: the first arm wins if the coin is below its chance p, the probability that its ratio is the larger one.
With many pulls behind them p hardly moves from round to round, and how far it can have moved after t rounds is bounded
whatever their outcomes. A round whose coin lies outside that bound is decided without knowing p; for the first one
inside, p is computed from the counts of that moment. `docs/explanation/engine.md` has the proofs.
"""

from __future__ import annotations

import math
from collections import namedtuple

import numpy as np
from numba import njit

from budgetbandits.simulation.engines.thompson.envelope import log_shortfall, shortfall_tilt
from budgetbandits.simulation.engines.thompson.state import counts_of

LOG_NEVER = -50.0  # log of a chance that is left out: both arms of a pair below the level
LARGEST_FOURTH = 0.01  # standardised fourth cumulant up to which the bound on the normal form's error is proven
SMALLEST_DECAY = 300.0  # likewise, variance times the square of the smallest count

ROOT_HALF = math.sqrt(0.5)
"""The constant √½."""

DENSITY = 1.0 / math.sqrt(2.0 * math.pi)
"""Density of the standard normal law at 0."""

ROUNDING = 1e-11  # an upper bound on the rounding error of the chance, up to about 1e8 pulls

STEP, STEPS = 0.25, 48  # of the sum that inverts the characteristic function
HIGHEST_CUMULANT = 8  # cumulant used there

Outlook = namedtuple("Outlook", "chance z move_1 move_2 bend skewest error")
"""A near tie now and for some pulls: the first arm's chance to win and z, the distance of the two means in deviations;
at most, what a pull of the first arm moves z by, one of the second, what either moves the skewness by, the skewness,
the error of chances."""


@njit(cache=True, nogil=True, error_model="numpy")
def smallest_count(game, slot):
    """The smaller count of successes. Failures do not matter: the terms of the cumulants begin at the successes."""
    a, _, c, _ = counts_of(game, slot)
    return a if game.classical else min(a, c)


@njit(cache=True, nogil=True, error_model="numpy")
def gamma_cumulants(shape):
    """The mean of the logarithm of a gamma without log(shape), and its second, third and fourth cumulants.

    These are the polygamma functions, by their series for shapes in the hundreds.
    """
    i = 1.0 / shape
    square = i * i
    return (
        -i * (0.5 + i / 12.0),
        i * (1.0 + i * (0.5 + i / 6.0)),
        -square * (1.0 + i * (1.0 + 0.5 * i)),
        square * i * (2.0 + i * (3.0 + 2.0 * i)),
    )


@njit(cache=True, nogil=True, error_model="numpy")
def ratio_cumulants(game, slot):
    """Mean, without the logarithm of `quotient`, and cumulants two to four of the logarithm of an arm's ratio."""
    a, b, c, d = counts_of(game, slot)
    first, second, third, fourth = gamma_cumulants(a)
    whole_1, whole_2, whole_3, whole_4 = gamma_cumulants(a + b)
    if game.classical:
        return first - whole_1, second - whole_2, third - whole_3, fourth - whole_4
    cost_1, cost_2, cost_3, cost_4 = gamma_cumulants(c)
    trials_1, trials_2, trials_3, trials_4 = gamma_cumulants(c + d)
    return (
        first - whole_1 - cost_1 + trials_1,
        second - whole_2 + cost_2 - trials_2,
        third - whole_3 - cost_3 + trials_3,
        fourth - whole_4 + cost_4 - trials_4,
    )


@njit(cache=True, nogil=True, error_model="numpy")
def quotient(game, slot):
    """The ratio of the posterior means."""
    a, b, c, d = counts_of(game, slot)
    if game.classical:
        return a / (a + b)
    return a * (c + d) / ((a + b) * c)


@njit(cache=True, nogil=True, error_model="numpy")
def chance_to_win(game, first, second):
    """(chance that the first arm's ratio is the larger, z, variance, skewness, fourth).

    The normal law with its first correction, which is off by `largest_error` at most; z is the distance of the two
    means in deviations.
    """
    shift_1, variance_1, third_1, fourth_1 = ratio_cumulants(game, first)
    shift_2, variance_2, third_2, fourth_2 = ratio_cumulants(game, second)
    variance = variance_1 + variance_2
    deviation = math.sqrt(variance)
    mean = math.log(quotient(game, first) / quotient(game, second))
    z = (mean + shift_1 - shift_2) / deviation
    skewness = (third_1 - third_2) / (variance * deviation)
    fourth = (fourth_1 + fourth_2) / (variance * variance)
    density = DENSITY * math.exp(-0.5 * z * z)
    chance = 0.5 * math.erfc(-ROOT_HALF * z) + skewness * (z * z - 1.0) * density / 6.0
    return chance, z, variance, skewness, fourth


@njit(cache=True, nogil=True, error_model="numpy")
def largest_error(skewness, fourth):
    """An upper bound on the error of `chance_to_win`."""
    return 0.0354 * skewness * skewness + 0.0383 * fourth + ROUNDING


@njit(cache=True, nogil=True, error_model="numpy")
def chance_in_full(game, first, second):
    """The first arm's chance to the last digits, from eight cumulants: for the rounds that the quick one leaves open."""
    cumulants = np.zeros(HIGHEST_CUMULANT + 1)
    for place in range(2):
        counts = counts_of(game, first if place == 0 else second)
        for part in range(2 if game.classical else 4):
            shape = counts[part]
            if part % 2 == 1:
                shape += counts[part - 1]
            even = 1.0 if part % 2 == 0 else -1.0
            odd = even if (part < 2) == (place == 0) else -even
            power = 1.0
            factorial = 1.0
            for order in range(2, HIGHEST_CUMULANT + 1):
                # (order - 1)! times the sum of j^-order from the shape on, by Euler and Maclaurin
                power /= shape
                if order > 2:
                    factorial *= order - 1
                o = float(order)
                i = 1.0 / shape
                tail = 1.0 / (o - 1.0) + i * (0.5 + i * (o / 12.0 - i * i * o * (o + 1.0) * (o + 2.0) / 720.0))
                cumulants[order] += (even if order % 2 == 0 else -odd) * factorial * power * tail
    _, z, variance, _, _ = chance_to_win(game, first, second)
    mean = z * math.sqrt(variance)
    deviation = math.sqrt(cumulants[2])
    total = 0.0
    for step in range(STEPS):
        s = (step + 0.5) * STEP
        t = s / deviation
        angle = mean * t
        size = 0.0
        term = t
        for order in range(2, HIGHEST_CUMULANT + 1):
            term *= t / order
            turned = order % 4
            if turned == 0:
                size += cumulants[order] * term
            elif turned == 1:
                angle += cumulants[order] * term
            elif turned == 2:
                size -= cumulants[order] * term
            else:
                angle -= cumulants[order] * term
        total += math.exp(size) * math.sin(angle) / s
    return 0.5 + STEP / math.pi * total


@njit(cache=True, nogil=True, error_model="numpy")
def largest_move(game, slot):
    """The largest move of an arm's log ratio by one pull; and 1/shape squared and cubed, for the smaller terms."""
    a, b, c, d = counts_of(game, slot)
    total = 1.0 / (a + b)
    rise, fall = 1.0 / a - total, total
    square, cube = 1.0 / (a * a), 1.0 / (a * a * a)
    if not game.classical:
        total = 1.0 / (c + d)
        rise += total
        fall += 1.0 / c - total
        square += 1.0 / (c * c)
        cube += 1.0 / (c * c * c)
    return max(rise, fall), square, cube


@njit(cache=True, nogil=True, error_model="numpy")
def log_below(game, slot, level, pulls):
    """log of a bound on the arm's chance to be below the level during ``pulls`` more pulls, whatever their outcomes."""
    a, b, c, d = counts_of(game, slot)
    b += pulls
    c += pulls
    tilt = shortfall_tilt(a, b, c, d, level, game.classical)
    return log_shortfall(a, b, c, d, level, tilt, game.classical) if tilt > 0.0 else 0.0


@njit(cache=True, nogil=True, error_model="numpy")
def pulls_above(game, first, second, level):
    """How often each of the two may be pulled while at least one of them is sure to be above the level; 0 if never."""
    none = np.int64(0)
    if smallest_count(game, first) < game.near_ties_from or smallest_count(game, second) < game.near_ties_from:
        return none, none
    pulls_1 = pulls_near(game, first)
    pulls_2 = pulls_near(game, second)
    below = log_below(game, first, level, pulls_1)
    below += log_below(game, second, level, pulls_2)
    return (pulls_1, pulls_2) if below < LOG_NEVER else (none, none)


@njit(cache=True, nogil=True, error_model="numpy")
def pulls_near(game, slot):
    """How many pulls move the arm by a deviation at most, and lower its variance by a 64th at most."""
    deviation = math.sqrt(ratio_cumulants(game, slot)[1])
    move, _, _ = largest_move(game, slot)
    return np.int64(min(deviation / move, float(smallest_count(game, slot)) / 128.0))


@njit(cache=True, nogil=True, error_model="numpy")
def look_ahead(game, first, second, pulls_1, pulls_2):
    """The outlook of a near tie during some pulls of either arm (as `pulls_near` says), whatever their outcomes.

    The moves are infinite when the proof of the error does not hold.
    """
    chance, z, variance, skewness, fourth = chance_to_win(game, first, second)
    deviation = math.sqrt(variance)
    least_1 = float(smallest_count(game, first))
    least_2 = float(smallest_count(game, second))
    least = min(least_1, least_2)
    move_1, share_1, bend_1 = moves(game, first, abs(z), deviation)
    move_2, share_2, bend_2 = moves(game, second, abs(z), deviation)
    fourth = 1.07 * fourth + 0.2 * (least_1 * share_1 * share_1 + least_2 * share_2 * share_2)
    if fourth > LARGEST_FOURTH or variance * least * least < SMALLEST_DECAY:
        return Outlook(chance, z, np.inf, np.inf, np.inf, np.inf, np.inf)
    skewest = 1.06 * abs(skewness) + bend_1 * pulls_1 + bend_2 * pulls_2
    bend = max(bend_1, bend_2) + 3.5 * skewest * max(share_1, share_2)
    return Outlook(chance, z, move_1, move_2, bend, skewest, largest_error(skewest, fourth))


@njit(cache=True, nogil=True, error_model="numpy")
def moves(game, slot, z, deviation):
    """The most that one pull of an arm changes: (z, half the variance relative to itself, the skewness)."""
    move, square, cube = largest_move(game, slot)
    share = 0.5 * square / (deviation * deviation)
    # The mean moves, and a little more by the terms next to the logarithm; the deviation changes by its share.
    move = 1.05 * (move + square) / deviation + 1.1 * (z + 3.0) * share
    return move, share, 2.3 * cube / (deviation * deviation * deviation)


@njit(cache=True, nogil=True, error_model="numpy")
def reach(z, pulls_1, pulls_2, move_1, move_2, bend, skewest):
    """The most that a pull of the first arm, and one of the second, can move the chance, within these numbers of pulls."""
    nearest = max(0.0, abs(z) - move_1 * pulls_1 - move_2 * pulls_2)
    steepest = DENSITY * math.exp(-0.5 * nearest * nearest) + 0.1 * skewest
    return steepest * move_1 + 0.067 * bend, steepest * move_2 + 0.067 * bend
