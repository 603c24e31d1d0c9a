"""Choosing the level by a model of what a round will cost.

Nothing here touches exactness: any level gives the same distribution, only a different running time.  The prices are
nanoseconds measured on one machine; only their proportions matter.
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit

from budgetbandits.simulation.compiled.draws import FOREVER
from budgetbandits.simulation.thompson.envelope import (
    LOG_BOUND,
    NO_TANGENT,
    SLOPE,
    log_shortfall,
    log_unpulled_below,
    shortfall_tilt,
    tangent,
)
from budgetbandits.simulation.thompson.near_ties import (
    RAREST,
    chance_to_win,
    look_ahead,
    plan_stretch,
    pulls_above,
    smallest_count,
)

PRICE_ROUND = 45.0  # an open round before anything is drawn
PRICE_HOT = 45.0  # drawing one hot arm
PRICE_SKETCH = 25.0  # sketching it, when there are two
PRICE_PAIR = 350.0  # a stretch of rounds of two hot arms that ends with a look
PRICE_WIN = 15.0  # of the arm that wins seldom, in such a stretch
PRICE_POOL = 30.0  # drawing the best of the arms never pulled
PRICE_OPEN_RING = 110.0  # an alarm in an open round
PRICE_BLOCK_RING = 60.0  # an alarm while the leader is pulled in blocks
PRICE_COLD_PULL = 350.0  # a new tangent and alarm after pulling a cold arm
PRICE_FALLBACK_ARM = 14.0
PRICE_FALLBACK_DRAW = 100.0
PRICE_WINDOW = 450.0
PRICE_DIP = 800.0
PRICE_TANGENT = 180.0

SELDOM = -3.0  # log of a chance to ring below which planning takes the bound that is there for the chance

OFFSETS = np.array(
    [-12.0, -8.0, -6.0, -4.5, -3.5, -2.6, -1.8, -1.2, -0.6, 0.0, 0.6, 1.2, 1.8, 2.4, 3.0, 3.6, 4.3, 5.2, 6.4, 8.0]
    + [8.0 * 1.4**power for power in range(1, 40)]
)


@njit(cache=True, nogil=True, error_model="numpy")
def log_ratio_spread(a, b, c, d, classical):
    """Rough mean and deviation of the log ratio, for planning only."""
    mean = math.log(a / (a + b))
    variance = b / (a * (a + b + 1.0))
    if not classical:
        mean -= math.log(c / (c + d))
        variance += d / (c * (c + d + 1.0))
    return mean, math.sqrt(variance)


@njit(cache=True, nogil=True, error_model="numpy")
def block_price(a, b, c, d, level, classical):
    """Cost a round of pulling the leader in blocks: windows and the rounds in which it might fall below the level."""
    tilt = shortfall_tilt(a, b, c, d, level, classical)
    if tilt <= 0.0:
        return np.inf
    log_bound = log_shortfall(a, b, c, d, level, tilt, classical)
    growth = tilt / (a + b)
    if not classical:
        growth += tilt * (1.0 / c - 1.0 / (c + d))
    best = np.inf
    width = 1.0
    while width < 1e15:
        price = PRICE_WINDOW / width + PRICE_DIP * math.exp(min(log_bound + growth * width, 0.0))
        if price > best:
            break
        best = price
        width *= 2.0
    return best


@njit(cache=True, nogil=True, error_model="numpy")
def pair_price(posterior, first, second, level, rings, pairs_from, classical):
    """Cost a round of pulling two hot arms in stretches, which an alarm breaks."""
    pulls_1, pulls_2 = pulls_above(posterior, first, second, level, pairs_from, classical)
    if pulls_1 == 0:
        return np.inf
    chance, z, move_1, move_2, bend, skewest, error = look_ahead(posterior, first, second, pulls_1, pulls_2, classical)
    if chance > 0.5:
        chance = 1.0 - chance
        move_1, move_2 = move_2, move_1
        pulls_1, pulls_2 = pulls_2, pulls_1
    # A little farther out than now, so that the plan will still do when the chance has moved.
    pulls, rounds, _, _, _ = plan_stretch(
        0.7 * chance, abs(z) + 0.1, 1.0, move_1, move_2, bend, skewest, error, pulls_1, pulls_2, np.int64(FOREVER)
    )
    if pulls == 0.0:
        return np.inf
    window = PRICE_WINDOW * (chance / pulls_1 + 1.0 / pulls_2)
    broken = PRICE_OPEN_RING + PRICE_ROUND + 2.0 * PRICE_SKETCH + PRICE_PAIR
    # About a third of the way is gone, on average, before a look.
    return window + PRICE_PAIR / (0.3 * rounds) + PRICE_WIN * chance + rings * broken


@njit(cache=True, nogil=True, error_model="numpy")
def level_price(
    level, current, posterior, tangents, hot_place, active, pool, classical, log_hot, blocks, pairs_from, ceiling
):  # fmt: skip
    """(estimated cost of a round at this level, tangents evaluated); gives up once above the ceiling.

    A cold arm's tangent at the current level bounds it at every other, so most cold arms are passed over by that.
    """
    log_level = math.log(level)
    fall = math.log(current) - log_level
    evaluated = 0
    log_none = 0.0
    log_no_cold = 0.0
    rings = 0.0
    hot = 0
    leader = np.int64(-1)  # of its type, or Numba compiles whatever takes it once more for the constant
    rival = np.int64(-1)
    for slot in range(active):
        if hot_place[slot] < 0:
            log_bound = tangents[8 * slot + LOG_BOUND] + tangents[8 * slot + SLOPE] * fall
            if log_bound < SELDOM:
                bound = math.exp(log_bound)
                rings += bound
                log_no_cold -= 0.75 * bound
                continue
        evaluated += 1
        a, b = float(posterior[4 * slot + 0]), float(posterior[4 * slot + 1])
        c, d = float(posterior[4 * slot + 2]), float(posterior[4 * slot + 3])
        kind, log_bound, _, _, _ = tangent(a, b, c, d, level, classical)
        if kind == NO_TANGENT or log_bound > log_hot:
            hot += 1
            rival = leader
            leader = slot
            mean, deviation = log_ratio_spread(a, b, c, d, classical)
            log_none -= math.log1p(math.exp(min(1.7 * (mean - log_level) / deviation, 50.0)))
        else:
            bound = math.exp(log_bound)
            rings += bound
            log_no_cold += math.log1p(-0.75 * bound)
        # One hot arm may be pulled in blocks and two in stretches; from three on every round draws them all.
        if rings * PRICE_BLOCK_RING > ceiling or (hot > 2 and PRICE_ROUND + hot * PRICE_HOT > ceiling):
            return np.inf, evaluated
    price_hot = PRICE_SKETCH if hot == 2 and pool == 0 and not classical else PRICE_HOT
    price = PRICE_ROUND + hot * price_hot + rings * PRICE_OPEN_RING
    if pool > 0:
        price += PRICE_POOL
        log_none += pool * log_unpulled_below(level, classical)
    cold_wins = 1.0 - math.exp(log_no_cold)
    price += PRICE_COLD_PULL * (cold_wins if hot + pool == 0 else 0.6 * cold_wins)
    cold = active - hot
    # In a fallback most arms are passed by, but the first ones to look at and those near the best are drawn.
    fallback = PRICE_FALLBACK_ARM * cold + PRICE_FALLBACK_DRAW * min(cold, 8) + PRICE_COLD_PULL
    price += math.exp(log_none + log_no_cold) * fallback
    if blocks and hot == 1 and pool == 0:
        a, b = float(posterior[4 * leader + 0]), float(posterior[4 * leader + 1])
        c, d = float(posterior[4 * leader + 2]), float(posterior[4 * leader + 3])
        in_blocks = rings * PRICE_BLOCK_RING + block_price(a, b, c, d, level, classical)
        in_blocks += PRICE_COLD_PULL * 0.6 * cold_wins
        price = min(price, in_blocks)
    if hot == 2 and pool == 0:
        price = min(price, pair_price(posterior, leader, rival, level, rings, pairs_from, classical))
    return price, evaluated


@njit(cache=True, nogil=True, error_model="numpy")
def pair_offset(posterior, reference, mean, deviation, active, pairs_from, classical):
    """How far below this arm, in its deviations, the level has to be for a pair with a rival; infinite if none comes near."""
    if smallest_count(posterior, reference, classical) < pairs_from:
        return np.inf
    for slot in range(active):
        if (
            slot != reference
            and smallest_count(posterior, slot, classical) >= pairs_from
            and chance_to_win(posterior, slot, reference, classical)[0] > RAREST
        ):
            its_mean, its_deviation = log_ratio_spread(
                float(posterior[4 * slot + 0]), float(posterior[4 * slot + 1]),
                float(posterior[4 * slot + 2]), float(posterior[4 * slot + 3]), classical,
            )  # fmt: skip
            # far enough for one of them to be surely above it, and for the rival to be hot
            return max(11.0, (mean - its_mean + its_deviation) / deviation)
    return np.inf


@njit(cache=True, nogil=True, error_model="numpy")
def index_of(offset):
    """The last of the offsets that is not above this one."""
    index = 0
    while index < OFFSETS.shape[0] - 1 and OFFSETS[index + 1] <= offset:
        index += 1
    return index


@njit(cache=True, nogil=True, error_model="numpy")
def choose_level(current, posterior, tangents, hot_place, active, pool, classical, log_hot, blocks, pairs_from):
    """(level, tangents evaluated): the current level unless another is clearly cheaper."""
    best = current
    price, work = level_price(
        current, current, posterior, tangents, hot_place, active, pool, classical, log_hot, blocks, pairs_from, np.inf
    )
    to_beat = 0.85 * price
    if pool > 0:
        # Levels that about three, or eight, of the arms never pulled exceed.
        for expected in (3.0, 8.0):
            share = min(expected / pool, 0.9)
            if classical:
                candidate = 1.0 - share
            else:
                candidate = 0.5 / share if share < 0.5 else 2.0 * (1.0 - share)
            price, evaluated = level_price(
                candidate, current, posterior, tangents, hot_place, active, pool, classical, log_hot, blocks, pairs_from,
                to_beat,
            )  # fmt: skip
            work += evaluated
            if price < to_beat:
                to_beat = price
                best = candidate
    if active == 0:
        return best, work
    reference = np.int64(0)
    highest = -np.inf
    for slot in range(active):
        mean, deviation = log_ratio_spread(
            float(posterior[4 * slot + 0]), float(posterior[4 * slot + 1]), float(posterior[4 * slot + 2]), float(posterior[4 * slot + 3]),
            classical,
        )  # fmt: skip
        if mean - 2.5 * deviation > highest:
            highest = mean - 2.5 * deviation
            reference = slot
    mean, deviation = log_ratio_spread(
        float(posterior[4 * reference + 0]), float(posterior[4 * reference + 1]),
        float(posterior[4 * reference + 2]), float(posterior[4 * reference + 3]), classical,
    )  # fmt: skip
    place = (mean - math.log(current)) / deviation
    start = index_of(place)
    low = np.inf if pool > 0 else pair_offset(posterior, reference, mean, deviation, active, pairs_from, classical)
    # Descents from where the level stands, from a little above the reference arm (many arms near each other), from a
    # little below it and from far below it, because open rounds, blocks and pairs each have a minimum of their own.
    for descent in range(4 if low < np.inf else 3):
        middle = start if descent == 0 else 6 if descent == 1 else 14 if descent == 2 else index_of(low) + 1
        if descent > 0 and abs(start - middle) <= 2:
            continue
        for direction in (1, -1):
            index = middle if direction == 1 else middle - 1
            misses = 0
            while 0 <= index < OFFSETS.shape[0] and misses < 2:
                candidate = math.exp(mean - OFFSETS[index] * deviation)
                if OFFSETS[index] * deviation > 2.0 or (classical and candidate >= 1.0):
                    misses += 1
                    index += direction
                    continue
                price, evaluated = level_price(
                    candidate,
                    current,
                    posterior,
                    tangents,
                    hot_place,
                    active,
                    pool,
                    classical,
                    log_hot,
                    blocks,
                    pairs_from,
                    to_beat,
                )
                work += evaluated
                if price < to_beat:
                    to_beat = price
                    best = candidate
                    misses = 0
                else:
                    misses += 1
                index += direction
    return best, work
