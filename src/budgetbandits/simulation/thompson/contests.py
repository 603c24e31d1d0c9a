"""The pieces of a round: tangents of cold arms, the fallback, the leader's window and its duels.

Tables are bare pointers: posterior has four columns (a, b, c, d), tangents have eight.
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit

from budgetbandits.simulation.compiled.draws import (
    exponential,
    geometric_from_rate,
    waiting_rate,
)
from budgetbandits.simulation.thompson.alarms import NEVER, rebuild
from budgetbandits.simulation.thompson.envelope import (
    KIND,
    LOG_BOUND,
    NO_TANGENT,
    RATE,
    SLOPE,
    X,
    Y,
    accepts,
    draw_ratio,
    draw_shortfall,
    log_shortfall,
    shortfall_tilt,
    tangent,
)
from budgetbandits.simulation.thompson.hot_arms import keep_constants
from budgetbandits.simulation.thompson.planning import PRICE_DIP, PRICE_WINDOW


@njit(cache=True, nogil=True, error_model="numpy")
def take_tangent(tangents, posterior, slot, level, classical, log_hot):
    """Store the arm's bound at the level; True when it stays cold."""
    kind, log_bound, slope, x, y = tangent(
        float(posterior[4 * slot + 0]), float(posterior[4 * slot + 1]), float(posterior[4 * slot + 2]), float(posterior[4 * slot + 3]),
        level, classical,
    )  # fmt: skip
    if kind == NO_TANGENT or log_bound > log_hot:
        return False
    tangents[8 * slot + LOG_BOUND] = log_bound
    tangents[8 * slot + SLOPE] = slope
    tangents[8 * slot + X] = x
    tangents[8 * slot + Y] = y
    tangents[8 * slot + KIND] = kind
    tangents[8 * slot + RATE] = waiting_rate(log_bound)
    return True


@njit(cache=True, nogil=True, error_model="numpy")
def keeps_ratio(stream, tangents, posterior, slot, ratio):
    return accepts(
        stream,
        float(posterior[4 * slot + 0]), float(posterior[4 * slot + 1]), float(posterior[4 * slot + 2]), float(posterior[4 * slot + 3]),
        tangents[8 * slot + KIND], tangents[8 * slot + SLOPE], tangents[8 * slot + X], tangents[8 * slot + Y], ratio,
    )  # fmt: skip


@njit(cache=True, nogil=True, error_model="numpy")
def best_between(stream, level, above, gap, active, posterior, tangents, hot_place, classical):
    """The best of the cold arms, each known to be at most level / e^above, if it exceeds level / e^gap; else -1.

    An accepted ratio above what is known contradicts it, so that arm's whole trial is repeated.
    """
    ceiling = level * math.exp(-above)
    best = level * math.exp(-gap)
    winner = -1
    for slot in range(active):
        if hot_place[slot] >= 0:
            continue
        slope = tangents[8 * slot + SLOPE]
        while True:
            log_chance = tangents[8 * slot + LOG_BOUND] + slope * gap
            if log_chance < -0.4:
                if exponential(stream) < -log_chance:
                    break
                ratio = best * math.exp(exponential(stream) / slope)
                if not keeps_ratio(stream, tangents, posterior, slot, ratio):
                    break
                if ratio > ceiling:
                    continue
            else:
                ratio = draw_ratio(
                    stream,
                    float(posterior[4 * slot + 0]), float(posterior[4 * slot + 1]),
                    float(posterior[4 * slot + 2]), float(posterior[4 * slot + 3]), classical,
                )  # fmt: skip
                if ratio > ceiling:
                    continue
                if ratio <= best:
                    break
            best = ratio
            winner = slot
            gap = math.log(level / best)
            break
    return winner


@njit(cache=True, nogil=True, error_model="numpy")
def search_below(stream, level, best, winner, active, posterior, tangents, hot_place, classical, rung):
    """Nothing reached the level: find the best ratio, every cold arm being conditioned on a ratio below the level.

    The arms are asked whether they reach a rung below the level, which one or a few most likely do; only if none does,
    a lower one.  So hardly any arm is drawn that does not come near the best.  How far down the first rung is follows
    the searches before, so that about one in seventeen needs a second.
    """
    lowest = math.log(level / best) if best > 0.0 else np.inf
    above = 0.0
    step = rung[0]
    while True:
        gap = min(above + step, lowest)
        found = best_between(stream, level, above, gap, active, posterior, tangents, hot_place, classical)
        if found >= 0 or gap == lowest:
            break
        above = gap
        step *= 2.0
    rung[0] = min(rung[0] * 1.3, 8.0) if above > 0.0 else max(rung[0] * 0.984, 1e-6)
    return found if found >= 0 else winner


@njit(cache=True, nogil=True, error_model="numpy")
def open_window(a, b, c, d, level, classical, width, largest):
    """(width, tilt, log bound, log bound at half the tilt, next width) for the leader's next pulls.

    The bounds on its chance to fall below the level are taken at the worst corner: no reward and full cost in every
    pull of the window.  Half the tilt gives a weaker bound at the level but a better one for rivals far above it.
    """
    while True:
        grown_b = b + width
        grown_c = c + width
        tilt = shortfall_tilt(a, grown_b, grown_c, d, level, classical)
        log_bound = log_shortfall(a, grown_b, grown_c, d, level, tilt, classical) if tilt > 0.0 else 0.0
        dips = width * math.exp(min(log_bound, 0.0))
        if width == 1 or dips * PRICE_DIP < 2.0 * PRICE_WINDOW:
            break
        width = max(width // 4, 1) if dips * PRICE_DIP > 8.0 * PRICE_WINDOW else max(width // 2, 1)
    following = width
    if dips * PRICE_DIP < 0.3 * PRICE_WINDOW:
        following = min(2 * width, max(largest, 1))
    log_half = log_shortfall(a, grown_b, grown_c, d, level, 0.5 * tilt, classical) if tilt > 0.0 else 0.0
    return width, tilt, log_bound, log_half, following


@njit(cache=True, nogil=True, error_model="numpy")
def leader_loses(stream, a, b, c, d, level, ratio, tilt, log_ceiling, log_half, coin_won, log_direct, classical):
    """Whether the leader, known to be at or above the level, draws less than the rival's ratio.

    coin_won says that the first proposal below the ratio was already granted at the window's rate.
    """
    gap = math.log(ratio / level)
    log_chance = log_ceiling + tilt * gap
    if log_half + 0.5 * tilt * gap < log_chance:
        tilt *= 0.5
        log_ceiling = log_half
        log_chance = log_half + tilt * gap
    if log_chance >= log_direct:
        while True:
            drawn = draw_ratio(stream, a, b, c, d, classical)
            if drawn >= level:
                return drawn < ratio
    log_present = log_shortfall(a, b, c, d, level, tilt, classical)
    while True:
        if not coin_won and exponential(stream) < -log_chance:
            return False
        coin_won = False
        if exponential(stream) < log_ceiling - log_present:
            return False
        drawn = draw_shortfall(stream, a, b, c, d, ratio, tilt, classical)
        if drawn == np.inf:
            return False
        if drawn >= level:
            return True


@njit(cache=True, nogil=True, error_model="numpy")
def apply_level(
    stream, time, level, active, classical, log_hot, posterior, tangents, constants, tree, base, hot, hot_place
):  # fmt: skip
    """Sort every pulled arm into hot or cold and set fresh alarms; returns how many are hot."""
    hot_count = 0
    for slot in range(active):
        if take_tangent(tangents, posterior, slot, level, classical, log_hot):
            hot_place[slot] = -1
            tree[base + slot] = time - 1 + geometric_from_rate(stream, tangents[8 * slot + RATE])
        else:
            hot_place[slot] = hot_count
            hot[hot_count] = slot
            hot_count += 1
            keep_constants(constants, posterior, slot)
            tree[base + slot] = NEVER
    rebuild(tree, base)
    return hot_count
