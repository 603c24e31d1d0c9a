"""Open rounds: every hot arm is drawn, and the alarms of the cold ones are answered.

If nothing reaches the level, the fallback looks for the best ratio below it.
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit

from budgetbandits.simulation.engines.runtime.draws import exponential, uniform
from budgetbandits.simulation.engines.runtime.records import float_pointer, whole_pointer
from budgetbandits.simulation.engines.thompson.envelope import draw_best_unpulled, draw_ratio
from budgetbandits.simulation.engines.thompson.hot_arms import can_sketch, draw_hot, resolve_hot, sketch_hot
from budgetbandits.simulation.engines.thompson.level import (
    first_ringing,
    keeps_ratio,
    refresh_hot_arms,
    set_next_alarm,
    widen,
)
from budgetbandits.simulation.engines.thompson.outcomes import settle_finite
from budgetbandits.simulation.engines.thompson.state import (
    LOG_BOUND,
    PRICE_COLD_PULL,
    PRICE_FALLBACK_ARM,
    PRICE_HOT,
    PRICE_OPEN_RING,
    PRICE_ROUND,
    PRICE_TANGENT,
    SETTLED,
    SLOPE,
    arm_of,
    counts_of,
    decide,
    hot_arms,
    is_hot,
    next_alarm,
    slope_of,
)

POOL = -2


@njit(cache=True, nogil=True, error_model="numpy", inline="always")
def open_round(game):
    """Draw every hot arm, answer the alarms; FINISHED when the last game has ended, which only frozen arms can do."""
    if game.stale:
        game.stale = 0
        refresh_hot_arms(game)
    game.open_rounds += 1
    game.hot_draws += game.hot_count
    game.waste += PRICE_ROUND + game.hot_count * PRICE_HOT
    best = 0.0
    winner = np.int64(-1)
    if game.hot_count == 2 and game.active == game.arms and sketchable(game):
        best, winner = draw_two(game)
    else:
        if game.active < game.arms:
            best = draw_best_unpulled(game.stream_at, float(game.arms - game.active), game.classical)
            winner = np.int64(POOL)
        best, winner = draw_all(game, best, winner)
    if best < np.inf:
        best, winner = answer_alarms(game, best, winner)
        if best < game.level:
            game.fallbacks += 1
            game.waste += PRICE_FALLBACK_ARM * (game.active - game.hot_count)
            winner = search_below(game, best, winner)
    game.round += 1
    if winner == POOL:
        place = game.active + np.int64(uniform(game.stream_at) * (game.arms - game.active))
        if game.frozen:
            # Frozen arms never leave the pool; count the pull and go on.
            return settle_finite(game, arm_of(game, place), place, np.int64(1))
        winner = take_from_pool(game, place)
    elif not is_hot(game, winner):
        game.waste += PRICE_COLD_PULL - PRICE_TANGENT
    decide(game, winner)
    game.settling = 1
    return SETTLED


@njit(cache=True, nogil=True, error_model="numpy", inline="always")
def sketchable(game):
    constants, hot = float_pointer(game.constants_at), hot_arms(game)
    return not game.classical and can_sketch(constants, hot[0]) and can_sketch(constants, hot[1])


@njit(cache=True, nogil=True, error_model="numpy", inline="always")
def draw_two(game):
    """(ratio, arm): the better of two hot arms. An infinite ratio says that its size does not matter: it is above the
    level and no alarm rings."""
    stream, constants = game.stream_at, float_pointer(game.constants_at)
    one, other = hot_arms(game)[0], hot_arms(game)[1]
    first, first_margin, first_normal = sketch_hot(stream, constants, one)
    second, second_margin, second_normal = sketch_hot(stream, constants, other)
    lower = max(first * (1.0 - first_margin), second * (1.0 - second_margin))
    apart = abs(first - second) > first * first_margin + second * second_margin
    if apart and lower > game.level and next_alarm(game) > game.round:
        game.sketched += 1
        return np.inf, one if first > second else other
    if first_margin > 0.0:
        first = resolve_hot(stream, constants, one, first_normal)
    if second_margin > 0.0:
        second = resolve_hot(stream, constants, other, second_normal)
    if first > second:
        return first, one
    if second > first:
        return second, other
    # Equal floats happen at huge counts; each of the tied arms gets the same chance.
    return first, other if uniform(stream) * 2.0 < 1.0 else one


@njit(cache=True, nogil=True, error_model="numpy", inline="always")
def draw_all(game, best, winner):
    """(ratio, arm): the best of the hot arms if it is better than this."""
    stream, constants, classical = game.stream_at, float_pointer(game.constants_at), game.classical
    hot = hot_arms(game)
    ties = 1
    for place in range(game.hot_count):
        slot = hot[place]
        ratio = draw_hot(stream, constants, slot, classical)
        if ratio > best:
            best = ratio
            winner = slot
            ties = 1
        elif ratio == best:
            # Equal floats happen at huge counts; each of the tied arms gets the same chance.
            ties += 1
            if uniform(stream) * ties < 1.0:
                winner = slot
    return best, winner


@njit(cache=True, nogil=True, error_model="numpy", inline="always")
def answer_alarms(game, best, winner):
    """(ratio, arm): the best of the cold arms whose alarms ring in this round, if it is better than this."""
    while next_alarm(game) == game.round:
        slot = first_ringing(whole_pointer(game.tree_at), game.base)
        game.rings += 1
        game.waste += PRICE_OPEN_RING
        ratio = game.level * math.exp(exponential(game.stream_at) / slope_of(game, slot))
        set_next_alarm(game, slot, game.round)
        if ratio > best and keeps_ratio(game, slot, ratio):
            game.accepted += 1
            best = ratio
            winner = slot
    return best, winner


@njit(cache=True, nogil=True, error_model="numpy", inline="always")
def take_from_pool(game, place):
    """An arm of the pool is pulled for the first time: it gets the next slot, and goes on as a cold one."""
    arm_of_slot = whole_pointer(game.arm_of_slot_at)
    slot = game.active
    arm = arm_of_slot[place]
    arm_of_slot[place] = arm_of_slot[slot]
    arm_of_slot[slot] = arm
    whole_pointer(game.hot_place_at)[slot] = -1
    game.active += 1
    if game.active > game.base:
        game.base = widen(whole_pointer(game.tree_at), game.base)
    if game.active == game.arms:
        game.try_blocks = 1
    return slot


# --- the fallback ----------------------------------------------------------------------------------------------------


@njit(cache=True, nogil=True, error_model="numpy")
def search_below(game, best, winner):
    """Nothing reached the level: find the best ratio, every cold arm being conditioned on a ratio below the level.

    The arms are asked whether they reach a rung below the level, which one or a few most likely do; only if none does,
    a lower one.  So hardly any arm is drawn that does not come near the best.  How far down the first rung is follows
    the searches before, so that about one in seventeen needs a second.
    """
    lowest = math.log(game.level / best) if best > 0.0 else np.inf
    above = 0.0
    step = game.rung
    while True:
        gap = min(above + step, lowest)
        found = best_between(game, above, gap)
        if found >= 0 or gap == lowest:
            break
        above = gap
        step *= 2.0
    game.rung = min(game.rung * 1.3, 8.0) if above > 0.0 else max(game.rung * 0.984, 1e-6)
    return found if found >= 0 else winner


@njit(cache=True, nogil=True, error_model="numpy")
def best_between(game, above, gap):
    """The best of the cold arms, each known to be at most level / e^above, if it exceeds level / e^gap; else -1.

    An accepted ratio above what is known contradicts it, so that arm's whole trial is repeated.
    """
    stream, level = game.stream_at, game.level
    tangents, hot_place = float_pointer(game.tangents_at), whole_pointer(game.hot_place_at)
    ceiling = level * math.exp(-above)
    best = level * math.exp(-gap)
    winner = -1
    for slot in range(game.active):
        if hot_place[slot] >= 0:
            continue
        slope = tangents[8 * slot + SLOPE]
        while True:
            log_chance = tangents[8 * slot + LOG_BOUND] + slope * gap
            if log_chance < -0.4:
                if exponential(stream) < -log_chance:
                    break
                ratio = best * math.exp(exponential(stream) / slope)
                if not keeps_ratio(game, slot, ratio):
                    break
                if ratio > ceiling:
                    continue
            else:
                a, b, c, d = counts_of(game, slot)
                ratio = draw_ratio(stream, a, b, c, d, game.classical)
                if ratio > ceiling:
                    continue
                if ratio <= best:
                    break
            best = ratio
            winner = slot
            gap = math.log(level / best)
            break
    return winner
