"""Blocks: a single hot arm, the leader, is pulled untouched until something may happen to it.

That is an alarm of a cold arm, or a dip: a round in which the leader's bound lets it fall below the level. A round in
which the leader may lose is a duel.
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit

from budgetbandits.simulation.engines.runtime.draws import exponential, geometric_from_rate, waiting_rate
from budgetbandits.simulation.engines.runtime.records import whole_pointer
from budgetbandits.simulation.engines.thompson.envelope import draw_ratio, draw_shortfall, log_shortfall, shortfall_tilt
from budgetbandits.simulation.engines.thompson.level import (
    first_ringing,
    keeps_ratio,
    refresh_hot_arms,
    search_below,
    set_next_alarm,
)
from budgetbandits.simulation.engines.thompson.state import (
    PRICE,
    counts_of,
    decide,
    hot_arms,
    next_alarm,
    slope_of,
)


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
        game.waste += PRICE.window
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
        if width == 1 or dips * PRICE.dip < 2.0 * PRICE.window:
            break
        width = max(width // 4, 1) if dips * PRICE.dip > 8.0 * PRICE.window else max(width // 2, 1)
    game.window = width
    if dips * PRICE.dip < 0.3 * PRICE.window:
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
    game.waste += PRICE.block_ring
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


# --- duels -----------------------------------------------------------------------------------------------------------


@njit(cache=True, nogil=True, error_model="numpy", inline="always")
def decide_duel(game):
    """The leader's pulls up to this round are settled now, so its posterior is the one of this round.

    True when another arm has won, whose pull is to be settled at once.
    """
    game.duel = 0
    winner = game.leader
    below = np.inf
    if game.duel_dip > 0:
        below = take_dip(game)
    if below < np.inf:
        game.dips_below += 1
        if game.duel_slot >= 0:
            winner = game.duel_slot
        else:
            game.fallbacks += 1
            game.waste += PRICE.fallback_arm * game.active
            winner = search_below(game, below, game.leader)
    elif game.duel_slot >= 0:
        game.duels += 1
        if leader_loses(game):
            winner = game.duel_slot
    decide(game, winner)
    game.round += 1
    if winner == game.leader:
        game.window_left -= 1
        return False
    game.settling = 1
    return True


@njit(cache=True, nogil=True, error_model="numpy", inline="always")
def take_dip(game):
    """The leader's ratio if it falls below the level in this round, else infinite."""
    game.dips += 1
    game.waste += PRICE.dip
    game.dip = game.round + geometric_from_rate(game.stream_at, waiting_rate(game.log_ceiling))
    a, b, c, d = counts_of(game, game.leader)
    log_now = log_shortfall(a, b, c, d, game.level, game.tilt, game.classical)
    if exponential(game.stream_at) >= game.log_ceiling - log_now:
        return draw_shortfall(game.stream_at, a, b, c, d, game.level, game.tilt, game.classical)
    return np.inf


@njit(cache=True, nogil=True, error_model="numpy", inline="always")
def leader_loses(game):
    """Whether the leader, known to be at or above the level, draws less than the rival's ratio.

    ``duel_coin`` says that the first proposal below the ratio was already granted at the window's rate.
    """
    stream, level, classical, ratio = game.stream_at, game.level, game.classical, game.duel_ratio
    a, b, c, d = counts_of(game, game.leader)
    tilt, log_ceiling = game.tilt, game.log_ceiling
    coin_won = game.duel_coin > 0
    gap = math.log(ratio / level)
    log_chance = log_ceiling + tilt * gap
    if game.log_half + 0.5 * tilt * gap < log_chance:
        tilt *= 0.5
        log_ceiling = game.log_half
        log_chance = game.log_half + tilt * gap
    if log_chance >= game.log_direct:
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
