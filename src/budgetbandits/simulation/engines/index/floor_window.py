"""The window in which the floor of all arms, such as their smallest mean cost, may move while bounds hold.

A wide window makes for loose bounds, a narrow one is soon left: its width moves whichever way made rounds cheaper.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from budgetbandits.simulation.engines.index.bounds import renew, stays_infinite
from budgetbandits.simulation.engines.index.election import shelve
from budgetbandits.simulation.engines.index.groups import pour
from budgetbandits.simulation.engines.index.scores import now
from budgetbandits.simulation.engines.index.state import root_of
from budgetbandits.simulation.engines.runtime.pointers import whole_pointer


@njit(cache=True, nogil=True, error_model="numpy")
def has_left(game):
    """Whether the floor has left its window, or so much was evaluated in vain that another width should be tried."""
    if not game.floor_low <= game.floor <= game.floor_high:
        return True
    return game.waste > 16 * (game.groups + game.pool_size) + 64


@njit(cache=True, nogil=True, error_model="numpy")
def reopen(game, index, level):
    """Choose a new window and renew every bound."""
    price = float(game.waste + 3 * (game.groups + game.pool_size)) / float(max(game.rounds - game.since, 1))
    if price > game.price_paid:
        game.turn = 1.0 / game.turn
    game.price_paid = price
    game.window = min(max(game.window * game.turn, 1e-7), 0.25)
    game.waste = 0
    game.since = game.rounds
    game.floor_low = game.floor * (1.0 - game.window)
    game.floor_high = game.floor * (1.0 + game.window)
    pooled = game.pool_size
    renew_all(game, index, level)
    empty_pool(game, index, level, pooled)


@njit(cache=True, nogil=True, error_model="numpy")
def renew_all(game, index, level):
    """A new bound for every group; those whose index is infinite go to the pool."""
    candidate, order, groups = whole_pointer(game.candidate_at), whole_pointer(game.bound_order_at), game.groups
    for spot in range(groups):
        candidate[spot] = order[spot]
    for spot in range(groups):
        group = candidate[spot]
        value = now(game, index, root_of(game, group))
        if value == np.inf and stays_infinite(game, index, root_of(game, group)):
            pour(game, group)
        else:
            renew(game, index, group, value, level, max(np.int64(16), game.rounds >> 6))


@njit(cache=True, nogil=True, error_model="numpy")
def empty_pool(game, index, level, pooled):
    """Of the first ``pooled`` arms of the pool, put those whose index may become finite among the groups."""
    pool, stack = whole_pointer(game.pool_at), whole_pointer(game.stack_at)
    kept = 0
    for spot in range(pooled):
        arm = pool[spot]
        if stays_infinite(game, index, arm):
            pool[kept] = arm
            kept += 1
        else:
            stack[spot - kept] = arm
    newcomers = game.pool_size - pooled
    for spot in range(newcomers):
        pool[kept + spot] = pool[pooled + spot]
    game.pool_size = kept + newcomers
    for spot in range(pooled - kept):
        arm = stack[spot]
        shelve(game, index, arm, now(game, index, arm), level)
