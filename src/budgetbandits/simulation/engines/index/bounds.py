"""Bounds on the indices of groups, each of which holds until a round of expiry.

Indices rise with the rounds, so what an index comes to in a later round bounds it until then. A bound that uses up a
small fraction of the gap to the best index is seldom met too early; one that holds long is seldom renewed.

Where the index depends on a floor of all arms, such as their smallest mean cost, bounds hold for every floor in a
window. A wide window makes for loose bounds, a narrow one is soon left: its width moves whichever way made rounds
cheaper.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from budgetbandits.simulation.engines.index.groups import NO_PLACE, by_bound, by_expiry, join, pour, rekey, rise
from budgetbandits.simulation.engines.index.state import BEST_RATIO, FLOOR_SEEN, now, root_of, score
from budgetbandits.simulation.engines.runtime.records import float_pointer, whole_pointer

LONGEST_HORIZON = np.int64(1 << 50)
"""The longest a bound may hold: rounds beyond it are not exact in float64."""


@njit(cache=True, nogil=True, error_model="numpy")
def renew(game, index, group, value, level, wish):
    """File a bound for a group whose index now is ``value``; the other arguments are those of `bound`."""
    if game.kind >= FLOOR_SEEN:
        # bounds must hold for every floor in the window: so must the value they are compared with
        value = score(game, index, root_of(game, group), game.rounds, highest_at(game))
    bound(game, index, group, value, level, wish)


@njit(cache=True, nogil=True, error_model="numpy")
def bound(game, index, group, value, level, wish):
    """Bound a group's index from now on: choose how long the bound is to hold, and file it.

    ``value`` is its index now, ``level`` the best index now, ``wish`` how many rounds the bound should hold.
    """
    arm = root_of(game, group)
    highest, growth, horizon = look_ahead(game, index, arm, value, level, wish)
    if growth < np.inf:
        float_pointer(game.rate_at)[arm] = growth / float(horizon)
    float_pointer(game.bound_at)[group] = highest
    expiry = float(game.rounds + horizon)
    if whole_pointer(game.bound_place_at)[group] == NO_PLACE:
        rise(by_bound(game), game.groups, group, -highest)
        rise(by_expiry(game), game.groups, group, expiry)
        game.groups += 1
    else:
        rekey(by_bound(game), game.groups, group, -highest)
        rekey(by_expiry(game), game.groups, group, expiry)


@njit(cache=True, nogil=True, error_model="numpy")
def look_ahead(game, index, arm, value, level, wish):
    """(the highest index in the rounds to come, how much above ``value`` it is, how many rounds those are)."""
    gap = level - value
    horizon = min(max(np.int64(1), np.int64(wish)), LONGEST_HORIZON)
    if not game.rounds_matter:
        horizon = LONGEST_HORIZON
        if game.kind < FLOOR_SEEN:
            return value, 0.0, horizon
    elif not gap > 0.0 and game.kind < FLOOR_SEEN:
        horizon = np.int64(1)
    allowed = game.fraction * gap
    while True:
        highest = max(score(game, index, arm, game.rounds + horizon, highest_at(game)), value)
        if not highest < np.inf:
            highest = np.inf  # also where there is no number: then the arm is looked at
        growth = highest - value
        if horizon <= 1 or not game.rounds_matter or (highest < level and growth <= allowed):
            break
        if game.kind >= FLOOR_SEEN and (highest < np.inf or value == np.inf):
            break
        shorter = horizon >> 3
        if growth < np.inf and allowed < np.inf:
            shorter = np.int64(0.9 * float(horizon) * allowed / growth)
        horizon = max(np.int64(1), min(shorter, horizon >> 1))
    return highest, growth, horizon


@njit(cache=True, nogil=True, error_model="numpy", forceinline=True)
def wished_horizon(game, arm, gap):
    """How long a new bound should hold, going by how fast the arm's index rose lately."""
    if not gap > 0.0:
        return np.int64(1)
    rate = float_pointer(game.rate_at)[arm]
    longest = max(np.int64(16), game.rounds)
    if rate > 0.0:
        wish = game.fraction * gap / rate
        if wish < float(longest):
            return np.int64(wish)
    return longest


@njit(cache=True, nogil=True, error_model="numpy", inline="always")
def renew_expired(game, index, level):
    """Give every group whose bound ends now a new one."""
    order, _, expiry = by_expiry(game)
    while game.groups > 0 and expiry[0] <= float(game.rounds):
        group = order[0]
        # a bound is the index in the round of its expiry: no need to evaluate it again
        value = float_pointer(game.bound_at)[group]
        wish = wished_horizon(game, root_of(game, group), level - value)
        if game.kind >= FLOOR_SEEN:
            wish = max(np.int64(16), game.rounds >> 6)
        bound(game, index, group, value, level, wish)
        game.fraction = min(0.5, game.fraction * 1.02)
        game.waste += 1


@njit(cache=True, nogil=True, error_model="numpy")
def shelve(game, index, arm, value, level):
    """Put an arm that leads no longer among the others; ``value`` is its index now, ``level`` the best one."""
    if value == np.inf and stays_infinite(game, index, arm):
        whole_pointer(game.pool_at)[game.pool_size] = arm
        game.pool_size += 1
        return
    group, new = join(game, arm)
    if new:
        renew(game, index, group, value, level, wished_horizon(game, arm, level - value))


@njit(cache=True, nogil=True, error_model="numpy", forceinline=True)
def expiry_of(game, group):
    """The round in which a group's bound ends."""
    _, place, expiry = by_expiry(game)
    return expiry[place[group]]


@njit(cache=True, nogil=True, error_model="numpy", inline="always")
def stays_infinite(game, index, arm):
    """Whether an index that is infinite now is so until the arm is pulled, as long as the floor keeps its window."""
    if game.kind < FLOOR_SEEN:
        return True
    return score(game, index, arm, game.rounds, lowest_at(game)) == np.inf


@njit(cache=True, nogil=True, error_model="numpy", forceinline=True)
def highest_at(game):
    """The floor of its window at which indices are highest: they fall with the smallest cost and with the best ratio."""
    return game.floor_high if game.kind == BEST_RATIO else game.floor_low


@njit(cache=True, nogil=True, error_model="numpy", forceinline=True)
def lowest_at(game):
    """The floor of its window at which indices are lowest."""
    return game.floor_low if game.kind == BEST_RATIO else game.floor_high


# --- the window of the floor -----------------------------------------------------------------------------------------


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
    """Move arms whose index may become finite from the first ``pooled`` ones of the pool to the groups."""
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
