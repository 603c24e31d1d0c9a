"""Blocks: a single hot arm, the leader, is pulled untouched until something may happen to it.

That is an alarm of a cold arm, or a dip: a round in which the leader's bound lets it fall below the level.
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit

from budgetbandits.simulation.engines.runtime.draws import exponential, geometric_from_rate, waiting_rate
from budgetbandits.simulation.engines.runtime.pointers import whole_pointer
from budgetbandits.simulation.engines.thompson.alarms import first_ringing
from budgetbandits.simulation.engines.thompson.envelope import log_shortfall, shortfall_tilt
from budgetbandits.simulation.engines.thompson.level import keeps_ratio, refresh_hot_arms, set_next_alarm
from budgetbandits.simulation.engines.thompson.prices import PRICE_BLOCK_RING, PRICE_DIP, PRICE_WINDOW
from budgetbandits.simulation.engines.thompson.state import counts_of, hot_arms, next_alarm, slope_of


@njit(cache=True, nogil=True, error_model="numpy", inline="always")
def enter_block(game):
    """Open a window for the leader, if a single hot arm is left that hardly ever falls below the level."""
    game.try_blocks = 0
    was_block = game.in_blocks
    game.in_blocks = 0
    if game.allow_blocks and game.hot_count == 1 and game.active == game.arms:
        game.leader = hot_arms(game)[0]
        open_window(game)
        game.windows += 1
        game.waste += PRICE_WINDOW
        if game.log_ceiling < game.log_largest_dip:
            game.in_blocks = 1
            game.dip = game.round - 1 + geometric_from_rate(game.stream_at, waiting_rate(game.log_ceiling))
            game.pending_slot = game.leader
    if was_block and not game.in_blocks:
        refresh_hot_arms(game)


@njit(cache=True, nogil=True, error_model="numpy", inline="always")
def open_window(game):
    """How many pulls of the leader one bound is good for, and that bound on its chance to fall below the level.

    The bounds are taken at the worst corner: no reward and full cost in every pull of the window.  Half the tilt gives
    a weaker bound at the level but a better one for rivals far above it.
    """
    a, b, c, d = counts_of(game, game.leader)
    level, classical, width = game.level, game.classical, game.window
    while True:
        grown_b = b + game.kappa * width
        grown_c = c + game.kappa * width
        tilt = shortfall_tilt(a, grown_b, grown_c, d, level, classical)
        log_bound = log_shortfall(a, grown_b, grown_c, d, level, tilt, classical) if tilt > 0.0 else 0.0
        dips = width * math.exp(min(log_bound, 0.0))
        if width == 1 or dips * PRICE_DIP < 2.0 * PRICE_WINDOW:
            break
        width = max(width // 4, 1) if dips * PRICE_DIP > 8.0 * PRICE_WINDOW else max(width // 2, 1)
    game.window = width
    if dips * PRICE_DIP < 0.3 * PRICE_WINDOW:
        game.window = min(2 * width, max(np.int64(a + b + c + d), 1))
    game.window_left, game.tilt, game.log_ceiling = width, tilt, log_bound
    game.log_half = log_shortfall(a, grown_b, grown_c, d, level, 0.5 * tilt, classical) if tilt > 0.0 else 0.0


@njit(cache=True, nogil=True, error_model="numpy", inline="always")
def advance_block(game):
    """Pull the leader up to the next alarm, dip or end of the window; what happens there may be a duel."""
    game.pending_slot = game.leader
    upcoming = min(next_alarm(game), game.dip)
    free = min(upcoming - game.round, game.window_left)
    game.pending += free
    game.round += free
    game.window_left -= free
    if game.window_left == 0:
        return
    game.duel_slot = -1
    game.duel_coin = 0
    game.duel_dip = np.int64(game.dip == game.round)
    game.duel_ratio = 0.0
    while next_alarm(game) == game.round:
        answer_in_block(game)
    if game.duel_slot < 0 and game.duel_dip == 0:
        game.pending += 1
        game.round += 1
        game.window_left -= 1
        return
    game.duel = 1
    game.settling = np.int64(game.pending > 0)


@njit(cache=True, nogil=True, error_model="numpy", inline="always")
def answer_in_block(game):
    """A cold arm may exceed the level: if it does it challenges the leader, unless that surely draws more."""
    stream = game.stream_at
    slot = first_ringing(whole_pointer(game.tree_at), game.base)
    game.block_rings += 1
    game.waste += PRICE_BLOCK_RING
    excess = exponential(stream) / slope_of(game, slot)
    set_next_alarm(game, slot, game.round)
    coin = np.int64(0)
    if game.duel_dip == 0 and game.duel_slot < 0 and next_alarm(game) > game.round:
        log_chance = min(game.log_ceiling + game.tilt * excess, game.log_half + 0.5 * game.tilt * excess)
        if log_chance < game.log_direct:
            if exponential(stream) < -log_chance:
                game.leader_spared += 1
                return
            coin = np.int64(1)
    ratio = game.level * math.exp(excess)
    if ratio > game.duel_ratio and keeps_ratio(game, slot, ratio):
        game.accepted += 1
        game.duel_ratio = ratio
        game.duel_slot = slot
        game.duel_coin = coin
