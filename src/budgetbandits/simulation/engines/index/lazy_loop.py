"""Index policies, exactly, without evaluating what cannot matter: the loop over rounds.

docs/engine.md, section 8, says why that is exact.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from budgetbandits.simulation.engines.index.aim import sweep_on, worth_a_sweep
from budgetbandits.simulation.engines.index.blocks import region, roam
from budgetbandits.simulation.engines.index.bounds import renew_expired
from budgetbandits.simulation.engines.index.election import elect, gather
from budgetbandits.simulation.engines.index.floor_window import has_left, reopen
from budgetbandits.simulation.engines.index.pulling import first_pulls, pull_leader
from budgetbandits.simulation.engines.index.scores import now
from budgetbandits.simulation.engines.index.state import FLOOR_SEEN, OPENING, PULLING, can_pay, highest_bound
from budgetbandits.simulation.engines.runtime.status import GOING_ON, NOT_A_NUMBER, ROUND_LIMIT


@njit(cache=True, nogil=True, error_model="numpy")
def play_lazily(games, index):
    """Play until every budget's game has ended or an arm needs outcomes; resumable. Returns a `status`."""
    game = games[0]
    status = GOING_ON
    if game.stage == OPENING:
        status = first_pulls(game)
        if status == GOING_ON:
            game.floor_low = game.floor_high = game.floor
            status = gather(game, index)
    while status == GOING_ON:
        if game.stage == PULLING:
            status = pull_leader(game)
        elif game.rounds >= game.max_rounds:
            status = ROUND_LIMIT
        elif laborious(game) and worth_a_sweep(game):
            status = play_sweeps(game, index)
        else:
            status = choose(game, index)
    return status


@njit(cache=True, nogil=True, error_model="numpy", inline="always")
def choose(game, index):
    """Find who is to be pulled next; a leader that is safe for many rounds is pulled at once."""
    if game.leader >= 0 and not can_pay(game, game.leader):
        game.leader = -1
    lead = -np.inf
    if game.leader >= 0:
        lead = now(game, index, game.leader)
        if not lead > -np.inf:
            return NOT_A_NUMBER
    keep_bounds(game, index, lead)
    rival = highest_rival(game)
    if game.leader < 0 or not lead > rival:
        return elect(game, index, lead)
    if game.blocks:
        count = region(game, index, lead, rival)
        if count > 0:
            return roam(game, count)
    game.stage = PULLING
    return GOING_ON


@njit(cache=True, nogil=True, error_model="numpy", inline="always")
def keep_bounds(game, index, lead):
    """Renew the bounds that hold no longer; ``lead`` is the leader's index."""
    level = lead
    if game.leader < 0 and game.groups > 0:
        level = highest_bound(game)
    if game.pool_size > 0:
        level = np.inf
    if game.kind >= FLOOR_SEEN and has_left(game):
        reopen(game, index, level)
    renew_expired(game, index, level)


@njit(cache=True, nogil=True, error_model="numpy", inline="always")
def highest_rival(game):
    """What no index but the leader's is above, whatever rounding does."""
    if game.pool_size > 0:
        return np.inf
    if game.groups == 0:
        return -np.inf
    rival = highest_bound(game)
    return rival + game.slack * (1.0 + abs(rival))


@njit(cache=True, nogil=True, error_model="numpy", inline="always")
def laborious(game):
    """Whether the last rounds needed so many evaluations that sweeps are faster."""
    evaluations = game.evaluations - game.evaluated_before
    if evaluations < game.patience:
        return False
    rounds = game.rounds - game.counted_from
    count_from_here(game)
    game.lazy_price = float(evaluations) / float(max(rounds, 1))
    return rounds < 8 * evaluations


@njit(cache=True, nogil=True, error_model="numpy")
def count_from_here(game):
    game.evaluated_before = game.evaluations
    game.counted_from = game.rounds


@njit(cache=True, nogil=True, error_model="numpy", inline="always")
def play_sweeps(game, index):
    """Sweep as long as it pays, and sort the arms anew."""
    sweep_on(game, index)
    status = gather(game, index)
    count_from_here(game)
    return status
