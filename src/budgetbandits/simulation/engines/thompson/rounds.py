"""The loop over rounds, and settling: the outcomes of decided pulls are drawn and learned from."""

from __future__ import annotations

import numpy as np
from numba import njit

from budgetbandits.simulation.engines.runtime.records import FINISHED, whole_pointer
from budgetbandits.simulation.engines.thompson.blocks import advance_block, decide_duel, enter_block
from budgetbandits.simulation.engines.thompson.level import apply_level, look_at, replan
from budgetbandits.simulation.engines.thompson.near_ties import advance_near_tie, may_be_near_tie
from budgetbandits.simulation.engines.thompson.open_rounds import open_round
from budgetbandits.simulation.engines.thompson.outcomes import settle_buffered, settle_finite, settle_one
from budgetbandits.simulation.engines.thompson.state import SETTLED, arm_of, hot_arms, is_hot


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
