"""The loop over rounds, and settling: the outcomes of decided pulls are drawn and learned from.

A round is a part of a block (`blocks`), a part of a stretch (`near_ties`), or open: every hot arm is drawn, and the
alarms of the cold ones are answered.
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit

from budgetbandits.simulation.engines.runtime.draws import exponential, uniform
from budgetbandits.simulation.engines.runtime.records import FINISHED, float_pointer, whole_pointer
from budgetbandits.simulation.engines.thompson.blocks import advance_block, decide_duel, enter_block
from budgetbandits.simulation.engines.thompson.envelope import draw_best_unpulled
from budgetbandits.simulation.engines.thompson.hot_arms import can_sketch, draw_hot, resolve_hot, sketch_hot
from budgetbandits.simulation.engines.thompson.level import (
    apply_level,
    first_ringing,
    keeps_ratio,
    look_at,
    refresh_hot_arms,
    replan,
    search_below,
    set_next_alarm,
    widen,
)
from budgetbandits.simulation.engines.thompson.near_ties import advance_near_tie, may_be_near_tie
from budgetbandits.simulation.engines.thompson.outcomes import settle_buffered, settle_finite, settle_one
from budgetbandits.simulation.engines.thompson.state import (
    PRICE,
    SETTLED,
    arm_of,
    decide,
    hot_arms,
    is_hot,
    next_alarm,
    slope_of,
)

POOL = -2
"""The winner is one of the arms that were never pulled."""


@njit(cache=True, nogil=True, error_model="numpy")
def play(games):
    """Play until every budget's game has ended (FINISHED) or an arm needs outcomes (its number); resumable."""
    game = games[0]
    if game.started == 0:
        game.started = 1
        apply_level(game)
        game.try_blocks = 1
    while True:
        if game.settling:
            status = settle_pending(game)
            if status != SETTLED:
                return status
        if game.duel and decide_duel(game):
            continue
        if (game.waste > game.limit or (game.in_blocks and game.window_left == 0)) and game.pending > 0:
            game.settling = 1
            continue
        # Every alarm up to the present round has been answered; those still set are for rounds not yet played.
        if game.waste > game.limit:
            replan(game)
        if game.try_blocks or (game.in_blocks and game.window_left == 0):
            enter_block(game)
        if game.in_blocks:
            advance_block(game)
        elif not (may_be_near_tie(game) and advance_near_tie(game)) and open_round(game) == FINISHED:
            return FINISHED


@njit(cache=True, nogil=True, error_model="numpy", inline="always")
def settle_pending(game):
    """Draw the outcomes of the decided pulls, and look at the arm again; SETTLED unless the game stops here."""
    slot = game.pending_slot
    arm = arm_of(game, slot)
    game.settlements += 1
    if game.buffered:
        status = settle_buffered(game, arm, slot, game.pending)
    elif game.pending == 1 and settle_one(game, arm, slot):
        status = np.int64(SETTLED)
    else:
        status = np.int64(settle_finite(game, arm, slot, game.pending))
    if status == SETTLED:
        game.pending = 0
        game.settling = 0
        if game.left_1 > 0 and is_hot(game, slot):
            count_near_tie(game, slot)
        look_at(game, slot, whole_pointer(game.pulls_at)[arm])
    return status


@njit(cache=True, nogil=True, error_model="numpy", inline="always")
def count_near_tie(game, slot):
    """Count a pull against those that the near tie's bounds cover; when one arm has none left, drop the bounds."""
    if slot == hot_arms(game)[0]:
        game.left_1 -= 1
    else:
        game.left_2 -= 1
    if min(game.left_1, game.left_2) <= 0:
        game.left_1 = game.left_2 = 0


# --- open rounds -----------------------------------------------------------------------------------------------------


@njit(cache=True, nogil=True, error_model="numpy", inline="always")
def open_round(game):
    """Draw every hot arm, answer the alarms; FINISHED when the last game has ended, which only frozen arms can do."""
    if game.stale:
        game.stale = 0
        refresh_hot_arms(game)
    game.open_rounds += 1
    game.hot_draws += game.hot_count
    game.waste += PRICE.round + game.hot_count * PRICE.hot
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
            game.waste += PRICE.fallback_arm * (game.active - game.hot_count)
            winner = search_below(game, best, winner)
    game.round += 1
    if winner == POOL:
        place = game.active + np.int64(uniform(game.stream_at) * (game.arms - game.active))
        if game.frozen:
            # Frozen arms never leave the pool; count the pull and go on.
            return settle_finite(game, arm_of(game, place), place, np.int64(1))
        winner = take_from_pool(game, place)
    elif not is_hot(game, winner):
        game.waste += PRICE.cold_pull - PRICE.tangent
    decide(game, winner)
    game.settling = 1
    return SETTLED


@njit(cache=True, nogil=True, error_model="numpy", inline="always")
def sketchable(game):
    """Whether the hot arms have constants for sketches."""
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
        game.waste += PRICE.open_ring
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
