"""Two hot arms, many rounds at a time.

While two arms are so close that both stay hot, a round is a coin: the first arm wins with the chance p that its ratio
is the larger one.  With many pulls behind them p hardly moves from round to round, and how far it can have moved after
t rounds is bounded whatever they bring.  A round whose coin lies outside that bound is decided without knowing p; the
first one inside is looked at, with the counts of that moment.  `docs/engine.md` has the proofs.
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit

from budgetbandits.simulation.compiled.binomials import binomial
from budgetbandits.simulation.compiled.draws import exponential, geometric_from_rate, uniform, waiting_rate
from budgetbandits.simulation.thompson.envelope import log_shortfall, shortfall_tilt

LOG_NEVER = -50.0  # log of a chance that is left out: both arms of a pair below the level
WIDENED = 1.16  # log(1/(1-x)) <= WIDENED x for x <= 1/4
FEW = 0.2  # chance of the rarer winner below which its wins are walked through
RAREST = 1e-4  # below this an alarm does as well
LARGEST_FOURTH = 0.01  # standardised fourth cumulant up to which the bound on the normal form's error is proven
SMALLEST_DECAY = 300.0  # likewise, variance times the square of the smallest count
FEWEST = 8  # rounds at a time that are worth it

ROOT_HALF = math.sqrt(0.5)
DENSITY = 1.0 / math.sqrt(2.0 * math.pi)
ROUNDING = 1e-11  # of the chance as computed, far above it up to some 1e8 pulls; then it is that of the logarithm

STEP, STEPS = 0.25, 48  # of the sum that inverts the characteristic function
HIGHEST = 8  # cumulant used there


@njit(cache=True, nogil=True, error_model="numpy")
def smallest_count(posterior, slot, classical):
    """Of the successes: the terms of the cumulants begin at them, and costs that are always 1 have no failures."""
    return posterior[4 * slot + 0] if classical else min(posterior[4 * slot + 0], posterior[4 * slot + 2])


@njit(cache=True, nogil=True, error_model="numpy")
def gamma_cumulants(shape):
    """Of the logarithm of a gamma: its mean without log(shape), its second cumulant, third and fourth.

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
def ratio_cumulants(posterior, slot, classical):
    """The same of an arm's ratio; the mean without the logarithm of `quotient`."""
    a, b = float(posterior[4 * slot + 0]), float(posterior[4 * slot + 1])
    first, second, third, fourth = gamma_cumulants(a)
    whole_1, whole_2, whole_3, whole_4 = gamma_cumulants(a + b)
    if classical:
        return first - whole_1, second - whole_2, third - whole_3, fourth - whole_4
    c, d = float(posterior[4 * slot + 2]), float(posterior[4 * slot + 3])
    cost_1, cost_2, cost_3, cost_4 = gamma_cumulants(c)
    trials_1, trials_2, trials_3, trials_4 = gamma_cumulants(c + d)
    return (
        first - whole_1 - cost_1 + trials_1,
        second - whole_2 + cost_2 - trials_2,
        third - whole_3 - cost_3 + trials_3,
        fourth - whole_4 + cost_4 - trials_4,
    )


@njit(cache=True, nogil=True, error_model="numpy")
def quotient(posterior, slot, classical):
    """The ratio of the posterior means."""
    a, b = float(posterior[4 * slot + 0]), float(posterior[4 * slot + 1])
    if classical:
        return a / (a + b)
    c, d = float(posterior[4 * slot + 2]), float(posterior[4 * slot + 3])
    return a * (c + d) / ((a + b) * c)


@njit(cache=True, nogil=True, error_model="numpy")
def chance_to_win(posterior, first, second, classical):
    """(chance that the first arm's ratio is the larger, z, variance, skewness, fourth).

    The normal law with its first correction, which is off by `largest_error` at most; z is the distance of the two
    means in deviations.
    """
    shift_1, variance_1, third_1, fourth_1 = ratio_cumulants(posterior, first, classical)
    shift_2, variance_2, third_2, fourth_2 = ratio_cumulants(posterior, second, classical)
    variance = variance_1 + variance_2
    deviation = math.sqrt(variance)
    mean = math.log(quotient(posterior, first, classical) / quotient(posterior, second, classical))
    z = (mean + shift_1 - shift_2) / deviation
    skewness = (third_1 - third_2) / (variance * deviation)
    fourth = (fourth_1 + fourth_2) / (variance * variance)
    density = DENSITY * math.exp(-0.5 * z * z)
    chance = 0.5 * math.erfc(-ROOT_HALF * z) + skewness * (z * z - 1.0) * density / 6.0
    return chance, z, variance, skewness, fourth


@njit(cache=True, nogil=True, error_model="numpy")
def largest_error(skewness, fourth):
    """Of the normal law with its first correction."""
    return 0.0354 * skewness * skewness + 0.0383 * fourth + ROUNDING


@njit(cache=True, nogil=True, error_model="numpy")
def chance_in_full(posterior, first, second, classical):
    """The same chance to the last digits, from eight cumulants: for the few rounds that the quick one leaves open."""
    cumulants = np.zeros(HIGHEST + 1)
    for place in range(2):
        slot = first if place == 0 else second
        for part in range(2 if classical else 4):
            shape = float(posterior[4 * slot + part])
            if part % 2 == 1:
                shape += float(posterior[4 * slot + part - 1])
            even = 1.0 if part % 2 == 0 else -1.0
            odd = even if (part < 2) == (place == 0) else -even
            power = 1.0
            factorial = 1.0
            for order in range(2, HIGHEST + 1):
                # (order - 1)! times the sum of j^-order from the shape on, by Euler and Maclaurin
                power /= shape
                if order > 2:
                    factorial *= order - 1
                o = float(order)
                i = 1.0 / shape
                tail = 1.0 / (o - 1.0) + i * (0.5 + i * (o / 12.0 - i * i * o * (o + 1.0) * (o + 2.0) / 720.0))
                cumulants[order] += (even if order % 2 == 0 else -odd) * factorial * power * tail
    _, z, variance, _, _ = chance_to_win(posterior, first, second, classical)
    mean = z * math.sqrt(variance)
    deviation = math.sqrt(cumulants[2])
    total = 0.0
    for step in range(STEPS):
        s = (step + 0.5) * STEP
        t = s / deviation
        angle = mean * t
        size = 0.0
        term = t
        for order in range(2, HIGHEST + 1):
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
def largest_move(posterior, slot, classical):
    """By how much one pull may move an arm's log ratio; and 1/shape squared and cubed, for the smaller terms."""
    a, b = float(posterior[4 * slot + 0]), float(posterior[4 * slot + 1])
    total = 1.0 / (a + b)
    rise, fall = 1.0 / a - total, total
    square, cube = 1.0 / (a * a), 1.0 / (a * a * a)
    if not classical:
        c, d = float(posterior[4 * slot + 2]), float(posterior[4 * slot + 3])
        total = 1.0 / (c + d)
        rise += total
        fall += 1.0 / c - total
        square += 1.0 / (c * c)
        cube += 1.0 / (c * c * c)
    return max(rise, fall), square, cube


@njit(cache=True, nogil=True, error_model="numpy")
def log_below(posterior, slot, level, pulls, classical):
    """log of a bound on the arm's chance to be below the level during so many more pulls, whatever they bring."""
    a, b = float(posterior[4 * slot + 0]), float(posterior[4 * slot + 1] + pulls)
    c, d = float(posterior[4 * slot + 2] + pulls), float(posterior[4 * slot + 3])
    tilt = shortfall_tilt(a, b, c, d, level, classical)
    return log_shortfall(a, b, c, d, level, tilt, classical) if tilt > 0.0 else 0.0


@njit(cache=True, nogil=True, error_model="numpy")
def pulls_above(posterior, first, second, level, fewest, classical):
    """How often each of the two may be pulled while one of them, at least, is sure to be above the level; 0 if never."""
    none = np.int64(0)
    if smallest_count(posterior, first, classical) < fewest or smallest_count(posterior, second, classical) < fewest:
        return none, none
    pulls_1 = pulls_near(posterior, first, classical)
    pulls_2 = pulls_near(posterior, second, classical)
    below = log_below(posterior, first, level, pulls_1, classical)
    below += log_below(posterior, second, level, pulls_2, classical)
    return (pulls_1, pulls_2) if below < LOG_NEVER else (none, none)


@njit(cache=True, nogil=True, error_model="numpy")
def pulls_near(posterior, slot, classical):
    """So many pulls move the arm by a deviation at most, and lower its variance by a 64th at most."""
    deviation = math.sqrt(ratio_cumulants(posterior, slot, classical)[1])
    move, _, _ = largest_move(posterior, slot, classical)
    return np.int64(min(deviation / move, float(smallest_count(posterior, slot, classical)) / 128.0))


@njit(cache=True, nogil=True, error_model="numpy")
def look_ahead(posterior, first, second, pulls_1, pulls_2, classical):
    """(chance, z; move of z by a pull of the first arm, of the second, of the skewness by either, its size, error of chances).

    The chance and z of now; at most these moves between any two moments of so many pulls of either (as `pulls_near` says), whatever they bring.  All
    is infinite when the proof of the error does not hold.
    """
    chance, z, variance, skewness, fourth = chance_to_win(posterior, first, second, classical)
    deviation = math.sqrt(variance)
    least_1 = float(smallest_count(posterior, first, classical))
    least_2 = float(smallest_count(posterior, second, classical))
    least = min(least_1, least_2)
    move_1, share_1, bend_1 = moves(posterior, first, abs(z), deviation, classical)
    move_2, share_2, bend_2 = moves(posterior, second, abs(z), deviation, classical)
    fourth = 1.07 * fourth + 0.2 * (least_1 * share_1 * share_1 + least_2 * share_2 * share_2)
    if fourth > LARGEST_FOURTH or variance * least * least < SMALLEST_DECAY:
        return chance, z, np.inf, np.inf, np.inf, np.inf, np.inf
    skewest = 1.06 * abs(skewness) + bend_1 * pulls_1 + bend_2 * pulls_2
    bend = max(bend_1, bend_2) + 3.5 * skewest * max(share_1, share_2)
    return chance, z, move_1, move_2, bend, skewest, largest_error(skewest, fourth)


@njit(cache=True, nogil=True, error_model="numpy")
def moves(posterior, slot, z, deviation, classical):
    """(of z, of the variance as half its share, of the skewness): by a pull of an arm, at most."""
    move, square, cube = largest_move(posterior, slot, classical)
    share = 0.5 * square / (deviation * deviation)
    # The mean moves, and a little more by the terms beside the logarithm; the deviation changes by its share.
    move = 1.05 * (move + square) / deviation + 1.1 * (z + 3.0) * share
    return move, share, 2.3 * cube / (deviation * deviation * deviation)


@njit(cache=True, nogil=True, error_model="numpy")
def reach(z, pulls_1, pulls_2, move_1, move_2, bend, skewest):
    """By how much a pull of the first arm, and one of the second, may move the chance, during at most so many."""
    nearest = max(0.0, abs(z) - move_1 * pulls_1 - move_2 * pulls_2)
    steepest = DENSITY * math.exp(-0.5 * nearest * nearest) + 0.1 * skewest
    return steepest * move_1 + 0.067 * bend, steepest * move_2 + 0.067 * bend


@njit(cache=True, nogil=True, error_model="numpy")
def plan_stretch(chance, z, since, move_1, move_2, bend, skewest, error, most_1, most_2, most):
    """(pulls of the rarer winner, rounds, error, and what a pull of either may move) of a stretch at most; or 0 pulls.

    chance <= 1/2 is the rarer winner's, who moves z by move_1.  Far enough that most stretches end with a look, not so
    far that looks become the rule.
    """
    if chance < RAREST or skewest == np.inf or min(most_1, most_2) < 2:
        return 0.0, 0.0, 0.0, 0.0, 0.0
    even = chance >= FEW
    steep = 1.3 * DENSITY * math.exp(-0.5 * z * z)
    if even:
        growth = steep * max(move_1, move_2) / chance
        rounds = min(min(3.0 / math.sqrt(growth), 0.2 / growth), float(min(most, min(most_1, most_2))))
        pulls = rounds
    else:
        growth = steep * (move_1 + move_2 / chance)
        pulls = min(min(2.0 * math.sqrt(chance / growth), 0.4 * chance / growth), float(most_1))
        rounds = min(2.0 * pulls / chance, float(min(most, most_2)))
        pulls = min(pulls, rounds)
    per_1, per_2 = reach(z, since + pulls, since + rounds, move_1, move_2, bend, skewest)
    error += since * max(per_1, per_2)
    # What the bounds have become over the whole length may still be too much: then the length is cut.
    if even:
        cut = min(1.0, (0.25 * chance - error) / (max(per_1, per_2) * rounds))
    else:
        cut = min(1.0, (0.9 * chance - error) / (per_1 * pulls + per_2 * rounds))
    pulls *= cut
    rounds *= cut
    if not (rounds >= FEWEST and pulls >= 2.0):
        pulls = 0.0
    return pulls, rounds, error, per_1, per_2


@njit(cache=True, nogil=True, error_model="numpy")
def play_stretch(stream, chance, z, since, move_1, move_2, bend, skewest, error, most_1, most_2, most, silent):
    """(pulls of the first arm, of the second, low, high): rounds up to one to look at, whose coin is in [low, high).

    The first arm's chance to win and z are those of ``since`` pulls ago.  low = high if no round is to be looked at; -1
    pulls if too few can be played so.  The stretch is cut after ``silent`` rounds, where an alarm rings; how long it is
    planned to be does not depend on that.
    """
    swapped = chance > 0.5
    if swapped:
        chance = 1.0 - chance
        move_1, move_2 = move_2, move_1
        most_1, most_2 = most_2, most_1
    pulls, rounds, error, per_1, per_2 = plan_stretch(
        chance, z, since, move_1, move_2, bend, skewest, error, most_1, most_2, most
    )
    if pulls == 0.0:
        return np.int64(-1), np.int64(0), 0.0, 0.0
    if chance >= FEW:
        won, lost, low, high = play_even(stream, chance, error, max(per_1, per_2), np.int64(rounds), silent)
    else:
        won, lost, low, high = play_uneven(
            stream, chance, error, per_1, per_2, np.int64(pulls), np.int64(rounds), silent
        )
    if swapped:
        return lost, won, 1.0 - high, 1.0 - low
    return won, lost, low, high


@njit(cache=True, nogil=True, error_model="numpy")
def play_even(stream, chance, error, per_pull, rounds, silent):
    """A stretch in which both arms win often.

    Round j is looked at with a chance of at least what p can have moved by then, in the same proportion on either side
    of the coin, so that the rounds before are plain coins.
    """
    base = error / chance
    slope = per_pull / chance
    level = exponential(stream) / WIDENED
    place = 2.0 * level / (base + math.sqrt(base * base + 2.0 * slope * level))
    last = min(rounds, silent)
    if place >= last:
        wins = binomial(stream, last, chance)
        return wins, last - wins, 0.0, 0.0
    look = np.int64(place)
    wins = binomial(stream, look, chance)
    looked = -math.expm1(-WIDENED * (base + slope * (look + 0.5)))
    return wins, look - wins, chance * (1.0 - looked), chance * (1.0 - looked) + looked


@njit(cache=True, nogil=True, error_model="numpy")
def play_uneven(stream, chance, error, per_1, per_2, pulls, rounds, silent):
    """A stretch in which the first arm wins seldom: from one of its wins to the next."""
    widest = error + per_1 * pulls + per_2 * rounds
    rate = waiting_rate(math.log(chance + widest))
    last = min(rounds, silent)
    wins = np.int64(0)
    played = np.int64(0)
    while wins < pulls:
        wait = geometric_from_rate(stream, rate)
        if wait > last - played:
            return wins, last - wins, 0.0, 0.0
        played += wait
        coin = uniform(stream) * (chance + widest)
        moved = error + per_1 * wins + per_2 * (played - 1 - wins)
        if coin < chance - moved:
            wins += 1
        elif coin < chance + moved:
            return wins, played - 1 - wins, chance - moved, chance + moved
    return wins, played - wins, 0.0, 0.0


@njit(cache=True, nogil=True, error_model="numpy")
def look(stream, posterior, first, second, low, high, error, classical):
    """(whether the first arm wins, its chance, z) in a round whose coin is in [low, high)."""
    chance, z, _, _, _ = chance_to_win(posterior, first, second, classical)
    coin = low + uniform(stream) * (high - low)
    if abs(coin - chance) <= error:
        return coin < chance_in_full(posterior, first, second, classical), chance, z
    return coin < chance, chance, z
