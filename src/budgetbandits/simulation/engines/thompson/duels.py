"""Duels: a round of a block in which the leader may lose."""

from __future__ import annotations

import math

import numpy as np
from numba import njit

from budgetbandits.simulation.engines.runtime.draws import exponential, geometric_from_rate, waiting_rate
from budgetbandits.simulation.engines.thompson.envelope import draw_ratio, draw_shortfall, log_shortfall
from budgetbandits.simulation.engines.thompson.fallback import search_below
from budgetbandits.simulation.engines.thompson.prices import PRICE_DIP, PRICE_FALLBACK_ARM
from budgetbandits.simulation.engines.thompson.state import counts_of, decide


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
            game.waste += PRICE_FALLBACK_ARM * game.active
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
    game.waste += PRICE_DIP
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
