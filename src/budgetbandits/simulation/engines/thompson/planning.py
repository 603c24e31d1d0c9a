"""Choosing the level by a model of what a round will cost.

Nothing here touches exactness: any level gives the same distribution, only a different running time.
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit

from budgetbandits.simulation.engines.runtime.draws import LONGEST_WAIT
from budgetbandits.simulation.engines.thompson.envelope import (
    NO_TANGENT,
    log_shortfall,
    log_unpulled_below,
    shortfall_tilt,
    tangent,
)
from budgetbandits.simulation.engines.thompson.near_tie_chances import (
    Outlook,
    chance_to_win,
    look_ahead,
    pulls_above,
    smallest_count,
)
from budgetbandits.simulation.engines.thompson.near_ties import SMALLEST_CHANCE, plan_stretch, seen_from_the_second
from budgetbandits.simulation.engines.thompson.state import (
    PRICE,
    counts_of,
    is_hot,
    tangent_of,
)

LOG_RARE_RING = -3.0  # log of a chance to ring below which planning takes the bound that is there for the chance

OFFSETS = np.array(
    [-12.0, -8.0, -6.0, -4.5, -3.5, -2.6, -1.8, -1.2, -0.6, 0.0, 0.6, 1.2, 1.8, 2.4, 3.0, 3.6, 4.3, 5.2, 6.4, 8.0]
    + [8.0 * 1.4**power for power in range(1, 40)]
)
"""Offsets of the levels that are compared, in standard deviations."""


@njit(cache=True, nogil=True, error_model="numpy")
def log_ratio_spread(game, slot):
    """Rough mean and deviation of the log ratio, for planning only."""
    a, b, c, d = counts_of(game, slot)
    mean = math.log(a / (a + b))
    variance = b / (a * (a + b + 1.0))
    if not game.classical:
        mean -= math.log(c / (c + d))
        variance += d / (c * (c + d + 1.0))
    return mean, math.sqrt(variance)


@njit(cache=True, nogil=True, error_model="numpy")
def block_price(game, leader, level):
    """The price of a round when the leader is pulled in blocks: windows and the rounds in which it might fall below the level."""
    a, b, c, d = counts_of(game, leader)
    tilt = shortfall_tilt(a, b, c, d, level, game.classical)
    if tilt <= 0.0:
        return np.inf
    log_bound = log_shortfall(a, b, c, d, level, tilt, game.classical)
    growth = tilt / (a + b)
    if not game.classical:
        growth += tilt * (1.0 / c - 1.0 / (c + d))
    growth *= game.kappa
    best = np.inf
    width = 1.0
    while width < 1e15:
        price = PRICE.window / width + PRICE.dip * math.exp(min(log_bound + growth * width, 0.0))
        if price > best:
            break
        best = price
        width *= 2.0
    return best


@njit(cache=True, nogil=True, error_model="numpy")
def near_tie_price(game, first, second, level, rings):
    """The price of a round when two hot arms are pulled in stretches, which an alarm breaks."""
    pulls_1, pulls_2 = pulls_above(game, first, second, level)
    if pulls_1 == 0:
        return np.inf
    outlook = look_ahead(game, first, second, pulls_1, pulls_2)
    if outlook.chance > 0.5:
        outlook = seen_from_the_second(outlook)
        pulls_1, pulls_2 = pulls_2, pulls_1
    chance, z, move_1, move_2, bend, skewest, error = outlook
    # A little farther out than now, so that the plan will still do when the chance has moved.
    farther = Outlook(0.7 * chance, abs(z) + 0.1, move_1, move_2, bend, skewest, error)
    pulls, rounds, _, _, _ = plan_stretch(farther, 1.0, pulls_1, pulls_2, np.int64(LONGEST_WAIT))
    if pulls == 0.0:
        return np.inf
    window = PRICE.window * (chance / pulls_1 + 1.0 / pulls_2)
    broken = PRICE.open_ring + PRICE.round + 2.0 * PRICE.sketch + PRICE.stretch
    # About a third of the way is covered, on average, before a look.
    return window + PRICE.stretch / (0.3 * rounds) + PRICE.win * chance + rings * broken


@njit(cache=True, nogil=True, error_model="numpy")
def level_price(game, level, ceiling):
    """The price of a round at this level, estimated; infinite once above the ceiling.

    A cold arm's tangent at the current level bounds it at every other, so most cold arms are passed over by that.
    """
    pool = game.arms - game.active
    log_level = math.log(level)
    fall = math.log(game.level) - log_level
    log_none = 0.0
    log_no_cold = 0.0
    rings = 0.0
    hot = 0
    leader = np.int64(-1)  # of its type, or Numba compiles whatever takes it once more for the constant
    rival = np.int64(-1)
    for slot in range(game.active):
        if not is_hot(game, slot):
            _, log_bound, slope, _, _ = tangent_of(game, slot)
            log_bound += slope * fall
            if log_bound < LOG_RARE_RING:
                bound = math.exp(log_bound)
                rings += bound
                log_no_cold -= 0.75 * bound
                continue
        game.plan_tangents += 1
        a, b, c, d = counts_of(game, slot)
        kind, log_bound, _, _, _ = tangent(a, b, c, d, level, game.classical)
        if kind == NO_TANGENT or log_bound > game.log_hot:
            hot += 1
            rival = leader
            leader = slot
            mean, deviation = log_ratio_spread(game, slot)
            log_none -= math.log1p(math.exp(min(1.7 * (mean - log_level) / deviation, 50.0)))
        else:
            bound = math.exp(log_bound)
            rings += bound
            log_no_cold += math.log1p(-0.75 * bound)
        # One hot arm may be pulled in blocks and two in stretches; from three on every round draws them all.
        if rings * PRICE.block_ring > ceiling or (hot > 2 and PRICE.round + hot * PRICE.hot > ceiling):
            return np.inf
    price_hot = PRICE.sketch if hot == 2 and pool == 0 and not game.classical else PRICE.hot
    price = PRICE.round + hot * price_hot + rings * PRICE.open_ring
    if pool > 0:
        price += PRICE.pool
        log_none += pool * log_unpulled_below(level, game.classical)
    cold_wins = 1.0 - math.exp(log_no_cold)
    price += PRICE.cold_pull * (cold_wins if hot + pool == 0 else 0.6 * cold_wins)
    cold = game.active - hot
    # In a fallback most arms are passed by, but the first ones to look at and those near the best are drawn.
    fallback = PRICE.fallback_arm * cold + PRICE.fallback_draw * min(cold, 8) + PRICE.cold_pull
    price += math.exp(log_none + log_no_cold) * fallback
    if game.allow_blocks and hot == 1 and pool == 0:
        in_blocks = rings * PRICE.block_ring + block_price(game, leader, level)
        in_blocks += PRICE.cold_pull * 0.6 * cold_wins
        price = min(price, in_blocks)
    if hot == 2 and pool == 0:
        price = min(price, near_tie_price(game, leader, rival, level, rings))
    return price


@njit(cache=True, nogil=True, error_model="numpy")
def near_tie_offset(game, reference, mean, deviation):
    """How far below this arm, in its deviations, the level has to be for a near tie with a rival; infinite if none
    comes near."""
    if smallest_count(game, reference) < game.near_ties_from:
        return np.inf
    for slot in range(game.active):
        if (
            slot != reference
            and smallest_count(game, slot) >= game.near_ties_from
            and chance_to_win(game, slot, reference)[0] > SMALLEST_CHANCE
        ):
            its_mean, its_deviation = log_ratio_spread(game, slot)
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
def choose_level(game):
    """The current level unless another is clearly cheaper."""
    to_beat = 0.85 * level_price(game, game.level, np.inf)
    best, to_beat = level_for_the_pool(game, game.level, to_beat)
    if game.active == 0:
        return best
    reference = surest_arm(game)
    mean, deviation = log_ratio_spread(game, reference)
    start = index_of((mean - math.log(game.level)) / deviation)
    low = np.inf if game.active < game.arms else near_tie_offset(game, reference, mean, deviation)
    # Descents from where the level stands, from a little above the reference arm (many arms near each other), from a
    # little below it and from far below it, because open rounds, blocks and near ties each have a minimum of their own.
    for descent in range(4 if low < np.inf else 3):
        middle = start if descent == 0 else 6 if descent == 1 else 14 if descent == 2 else index_of(low) + 1
        if descent > 0 and abs(start - middle) <= 2:
            continue
        for first, direction in ((middle, 1), (middle - 1, -1)):
            best, to_beat = descend(game, first, direction, mean, deviation, best, to_beat)
    return best


@njit(cache=True, nogil=True, error_model="numpy")
def level_for_the_pool(game, best, to_beat):
    """(level, its price): this one, or one that about three, or eight, of the arms never pulled exceed."""
    pool = game.arms - game.active
    if pool == 0:
        return best, to_beat
    for expected in (3.0, 8.0):
        share = min(expected / pool, 0.9)
        if game.classical:
            candidate = 1.0 - share
        else:
            candidate = 0.5 / share if share < 0.5 else 2.0 * (1.0 - share)
        price = level_price(game, candidate, to_beat)
        if price < to_beat:
            to_beat = price
            best = candidate
    return best, to_beat


@njit(cache=True, nogil=True, error_model="numpy")
def surest_arm(game):
    """The arm that is highest 2.5 deviations below its mean."""
    surest = np.int64(0)
    highest = -np.inf
    for slot in range(game.active):
        mean, deviation = log_ratio_spread(game, slot)
        if mean - 2.5 * deviation > highest:
            highest = mean - 2.5 * deviation
            surest = slot
    return surest


@njit(cache=True, nogil=True, error_model="numpy")
def descend(game, index, direction, mean, deviation, best, to_beat):
    """(level, its price): this one, or a better one from here on in this direction, up to two misses in a row."""
    misses = 0
    while 0 <= index < OFFSETS.shape[0] and misses < 2:
        candidate = math.exp(mean - OFFSETS[index] * deviation)
        usable = OFFSETS[index] * deviation <= 2.0 and not (game.classical and candidate >= 1.0)
        price = level_price(game, candidate, to_beat) if usable else np.inf
        if price < to_beat:
            to_beat = price
            best = candidate
            misses = 0
        else:
            misses += 1
        index += direction
    return best, to_beat
