"""Finding the arm with the highest index without evaluating the arms that cannot have it.

The leader is the arm pulled last; all others stand in groups of equal state, each with a bound on its index that holds
for some rounds. While the leader's index lies above the largest bound, nobody else is looked at; otherwise the heap of
bounds is walked as far as it matters.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from budgetbandits.simulation.engines.index.bounds import expiry_of, renew, shelve, stays_infinite, wished_horizon
from budgetbandits.simulation.engines.index.groups import by_bound, dissolve, give, join, pour, take_from_pool
from budgetbandits.simulation.engines.index.state import FLOOR_SEEN, MONEY, can_pay, now, offered, root_of
from budgetbandits.simulation.engines.runtime.draws import uniform
from budgetbandits.simulation.engines.runtime.records import (
    GOING_ON,
    NOT_A_NUMBER,
    PULLING,
    float_pointer,
    stop,
    whole_pointer,
)


@njit(cache=True, nogil=True, error_model="numpy")
def gather(game, index):
    """All arms that have an index into groups, and a bound for each; nobody leads."""
    table, free = whole_pointer(game.table_at), whole_pointer(game.free_at)
    candidate, value = whole_pointer(game.candidate_at), float_pointer(game.value_at)
    for slot in range(game.slots):
        table[slot] = -1
    for arm in range(game.arms):
        free[arm] = game.arms - 1 - arm
    game.leader = -1
    game.pool_size = 0
    game.frees = game.arms
    game.groups = 0
    level = -np.inf
    count = 0
    for arm in range(game.arms):
        if offered(game, arm):
            group, new = join(game, arm)
            if new:
                value[group] = now(game, index, arm)
                if not value[group] > -np.inf:
                    if can_pay(game, arm):
                        game.leader = arm
                        return NOT_A_NUMBER
                    value[group] = np.inf  # nobody asks for it: it is dissolved when it is looked at
                level = max(level, value[group])
                candidate[count] = group
                count += 1
    for spot in range(count):
        group = candidate[spot]
        renew(game, index, group, value[group], level, max(np.int64(16), game.rounds >> 3))
    return GOING_ON


@njit(cache=True, nogil=True, error_model="numpy", inline="always")
def elect(game, index, lead):
    """Make the arm with the highest index the leader, ties broken uniformly; ``lead`` is the present leader's index."""
    best, count = look_around(game, index, lead)
    if count < 0:
        return NOT_A_NUMBER
    leader = game.leader
    if best == -np.inf and leader < 0:
        # what is left cannot be paid for, and will not be: the budget only shrinks
        return stop(game)
    kept = sort_out(game, index, count, best)
    game.leader, emptied = draw_winner(game, kept, best, leader >= 0 and lead == best)
    tighten(game, index, kept, best, emptied)
    if leader >= 0 and game.leader != leader:
        shelve(game, index, leader, lead, best)
    game.stage = PULLING
    return GOING_ON


@njit(cache=True, nogil=True, error_model="numpy", inline="always")
def look_around(game, index, lead):
    """Walk the heap from its root as far as bounds reach the best index found: (that index, how many groups were seen).

    They are the candidates; the value of those that cannot be paid is −∞. Less than 0 groups if an index is NaN or −∞:
    its arm is then the leader.
    """
    order, _, key = by_bound(game)
    stack, candidate = whole_pointer(game.stack_at), whole_pointer(game.candidate_at)
    value, bound = float_pointer(game.value_at), float_pointer(game.bound_at)
    # where neither rounds nor money matter a bound is the index itself, until the arm is pulled
    exact = not game.rounds_matter and game.kind < MONEY
    best = np.inf if game.pool_size > 0 else lead
    count = 0
    stack[0] = 0
    depth = min(game.groups, 1)
    while depth > 0:
        depth -= 1
        spot = stack[depth]
        highest = -key[spot]
        if not highest + game.slack * (1.0 + abs(highest)) >= best:
            continue
        group = order[spot]
        arm = root_of(game, group)
        value[group] = -np.inf
        if can_pay(game, arm):
            value[group] = bound[group] if exact else now(game, index, arm)
            if not value[group] > -np.inf:
                game.leader = arm
                return best, -1
            best = max(best, value[group])
        candidate[count] = group
        count += 1
        for below in range(2 * spot + 1, min(2 * spot + 3, game.groups)):
            stack[depth] = below
            depth += 1
    game.waste += max(count - 1, 0)
    return best, count


@njit(cache=True, nogil=True, error_model="numpy", inline="always")
def sort_out(game, index, count, best):
    """Dissolve the candidates that cannot be paid, pour those that stay infinite into the pool; how many are left."""
    candidate, value = whole_pointer(game.candidate_at), float_pointer(game.value_at)
    kept = 0
    for spot in range(count):
        group = candidate[spot]
        if value[group] == -np.inf:
            dissolve(game, group)
        elif value[group] == np.inf and stays_infinite(game, index, root_of(game, group)):
            pour(game, group)
        else:
            candidate[kept] = group
            kept += 1
            if value[group] != best:
                game.fraction = max(0.015625, game.fraction * 0.98)
    return kept


@njit(cache=True, nogil=True, error_model="numpy", inline="always")
def draw_winner(game, kept, best, leads):
    """(one of the arms with the best index, the group that it left empty or -1); ``leads``: the leader is one of them."""
    candidate, value, size = whole_pointer(game.candidate_at), float_pointer(game.value_at), whole_pointer(game.size_at)
    weight = np.int64(leads)
    if best == np.inf:
        weight += game.pool_size
    for spot in range(kept):
        if value[candidate[spot]] == best:
            weight += size[candidate[spot]]
    ticket = np.int64(0)
    if weight > 1:
        ticket = min(np.int64(uniform(game.stream_at) * weight), weight - 1)
    if leads:
        if ticket == 0:
            return game.leader, np.int64(-1)
        ticket -= 1
    for spot in range(kept):
        group = candidate[spot]
        if value[group] == best:
            if ticket < size[group]:
                emptied = group if size[group] == 1 else np.int64(-1)
                return give(game, group), emptied
            ticket -= size[group]
    return take_from_pool(game, ticket), np.int64(-1)


@njit(cache=True, nogil=True, error_model="numpy", inline="always")
def tighten(game, index, kept, best, emptied):
    """Renew the bounds that were met too early."""
    candidate, value = whole_pointer(game.candidate_at), float_pointer(game.value_at)
    bound = float_pointer(game.bound_at)
    for spot in range(kept):
        group = candidate[spot]
        # with a moving floor a bound is as good as its window, without rounds it is exact: no renewal makes it tighter
        loose = game.rounds_matter or game.kind == MONEY if game.kind < FLOOR_SEEN else bound[group] == np.inf
        if group == emptied or not loose:
            continue
        gap = best - value[group]
        rise = bound[group] - value[group]
        wish = wished_horizon(game, root_of(game, group), gap)
        if best == np.inf:
            # only an infinite bound brought it here: it has to end before the index becomes infinite
            wish = (np.int64(expiry_of(game, group)) - game.rounds) >> 1
        elif 0.0 < rise < np.inf:
            length = expiry_of(game, group) - float(game.rounds)
            wish = np.int64(min(game.fraction * gap / rise * length, 1e15))
        renew(game, index, group, value[group], best, wish)
