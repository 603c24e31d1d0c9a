"""Who has the highest index, without evaluating the arms that cannot have it.

The leader is the arm pulled last; all others stand in groups of equal state, each with a bound on its index that holds
for some rounds (`groups`). While the leader's index lies above the largest bound, nobody else is looked at; otherwise
the heap of bounds is walked as far as it matters.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from budgetbandits.simulation.compiled.draws import uniform
from budgetbandits.simulation.index.groups import bound, dissolve, give, join, pour, wished_horizon
from budgetbandits.simulation.index.memory import (
    EVALUATIONS,
    FLOOR,
    FLOOR_HIGH,
    FLOOR_LOW,
    FLOOR_SEEN,
    FRACTION,
    FREES,
    GROUPS,
    LEADER,
    POOL_SIZE,
    PRICE_PAID,
    ROUNDS,
    SINCE,
    TURN,
    WASTE,
    WINDOW,
)
from budgetbandits.simulation.index.pulling import can_pay, score


@njit(cache=True, nogil=True, error_model="numpy", forceinline=True)
def now(index, rule, desk, arm):
    """The arm's index in this round."""
    desk.number[EVALUATIONS] += 1
    return score(index, rule, desk, arm, desk.number[ROUNDS], desk.amount[FLOOR])


@njit(cache=True, nogil=True, error_model="numpy", forceinline=True)
def stays_infinite(index, rule, desk, arm):
    """Whether an index that is infinite now is so until the arm is pulled, as long as the floor keeps its window."""
    if rule.kind != FLOOR_SEEN:
        return True
    desk.number[EVALUATIONS] += 1
    return score(index, rule, desk, arm, desk.number[ROUNDS], desk.amount[FLOOR_HIGH]) == np.inf


@njit(cache=True, nogil=True, error_model="numpy", forceinline=True)
def renew(index, rule, desk, group, value, level, wish, new):
    """File a bound for a group whose index now is ``value``."""
    rounds = desk.number[ROUNDS]
    if rule.kind == FLOOR_SEEN:
        # bounds must hold for every floor in the window: so must the value they are compared with
        desk.number[EVALUATIONS] += 1
        value = score(index, rule, desk, desk.root[group], rounds, desk.amount[FLOOR_LOW])
    bound(index, rule, desk, group, value, level, rounds, wish, new)


@njit(cache=True, nogil=True, error_model="numpy", forceinline=True)
def shelve(index, rule, desk, arm, value, level):
    """Put an arm that leads no longer among the others; ``value`` is its index now."""
    if value == np.inf and stays_infinite(index, rule, desk, arm):
        desk.pool[desk.number[POOL_SIZE]] = arm
        desk.number[POOL_SIZE] += 1
        return
    group, new = join(desk, rule, arm)
    if new:
        wish = wished_horizon(desk, arm, level - value, desk.number[ROUNDS])
        renew(index, rule, desk, group, value, level, wish, True)


@njit(cache=True, nogil=True, error_model="numpy")
def gather(index, rule, desk, ends):
    """All arms that have been pulled into groups, and a bound for each; nobody leads. An arm whose index is NaN or −∞, else -1."""
    for slot in range(desk.slots):
        desk.table[slot] = -1
    for arm in range(desk.arms):
        desk.free[arm] = desk.arms - 1 - arm
    desk.number[LEADER] = -1
    desk.number[POOL_SIZE] = 0
    desk.number[FREES] = desk.arms
    desk.number[GROUPS] = 0
    level = -np.inf
    found = 0
    for arm in range(desk.arms):
        if desk.pulls[arm] > 0:
            group, new = join(desk, rule, arm)
            if new:
                desk.value[group] = now(index, rule, desk, arm)
                if not desk.value[group] > -np.inf:
                    if can_pay(desk, ends, arm):
                        return arm
                    desk.value[group] = np.inf  # nobody asks for it: it is dissolved when it is looked at
                level = max(level, desk.value[group])
                desk.candidate[found] = group
                found += 1
    for spot in range(found):
        group = desk.candidate[spot]
        renew(index, rule, desk, group, desk.value[group], level, max(np.int64(16), desk.number[ROUNDS] >> 3), True)
    return -1


@njit(cache=True, nogil=True, error_model="numpy")
def reopen(index, rule, desk, level):
    """The floor has left its window: choose a new one and renew every bound."""
    number, amount = desk.number, desk.amount
    groups, pool = number[GROUPS], number[POOL_SIZE]
    # a wide window makes for loose bounds, a narrow one is soon left: move its width whichever way made rounds cheaper
    price = float(number[WASTE] + 3 * (groups + pool)) / float(max(number[ROUNDS] - number[SINCE], 1))
    if price > amount[PRICE_PAID]:
        amount[TURN] = 1.0 / amount[TURN]
    amount[PRICE_PAID] = price
    amount[WINDOW] = min(max(amount[WINDOW] * amount[TURN], 1e-7), 0.25)
    number[WASTE] = 0
    number[SINCE] = number[ROUNDS]
    amount[FLOOR_LOW] = amount[FLOOR] * (1.0 - amount[WINDOW])
    amount[FLOOR_HIGH] = amount[FLOOR] * (1.0 + amount[WINDOW])
    for spot in range(groups):
        desk.candidate[spot] = desk.bound_order[spot]
    for spot in range(groups):
        group = desk.candidate[spot]
        arm = desk.root[group]
        value = now(index, rule, desk, arm)
        if value == np.inf and stays_infinite(index, rule, desk, arm):
            pour(desk, rule, group)
        else:
            wish = max(np.int64(16), number[ROUNDS] >> 6)
            renew(index, rule, desk, group, value, level, wish, False)
    kept = 0
    newcomers = number[POOL_SIZE] - pool
    for spot in range(pool):
        arm = desk.pool[spot]
        if score(index, rule, desk, arm, number[ROUNDS], amount[FLOOR_HIGH]) == np.inf:
            desk.pool[kept] = arm
            kept += 1
        else:
            desk.stack[spot - kept] = arm
    for spot in range(newcomers):
        desk.pool[kept + spot] = desk.pool[pool + spot]
    number[POOL_SIZE] = kept + newcomers
    for spot in range(pool - kept):
        arm = desk.stack[spot]
        shelve(index, rule, desk, arm, now(index, rule, desk, arm), level)


@njit(cache=True, nogil=True, error_model="numpy", forceinline=True)
def renew_expired(index, rule, desk, level):
    """Give every group whose bound ends now a new one."""
    rounds = float(desk.number[ROUNDS])
    while desk.number[GROUPS] > 0 and desk.expiry_key[0] <= rounds:
        group = desk.expiry_order[0]
        # a bound is the index in the round of its expiry: no need to evaluate it again
        value = desk.bound[group]
        wish = wished_horizon(desk, desk.root[group], level - value, desk.number[ROUNDS])
        if rule.kind == FLOOR_SEEN:
            wish = max(np.int64(16), desk.number[ROUNDS] >> 6)
        bound(index, rule, desk, group, value, level, desk.number[ROUNDS], wish, False)
        desk.amount[FRACTION] = min(0.5, desk.amount[FRACTION] * 1.02)
        desk.number[WASTE] += 1


@njit(cache=True, nogil=True, error_model="numpy", forceinline=True)
def elect(index, rule, desk, ends, leader, lead):
    """The arm with the highest index now, ties broken uniformly; -1 if there is none, -2 - arm if one's is NaN or −∞.

    ``lead`` is the leader's index. The heap is walked from its root as far as bounds reach the best index found.
    """
    number = desk.number
    best = lead
    if number[POOL_SIZE] > 0:
        best = np.inf
    found = 0
    depth = 0
    if number[GROUPS] > 0:
        desk.stack[0] = 0
        depth = 1
    while depth > 0:
        depth -= 1
        spot = desk.stack[depth]
        highest = -desk.bound_key[spot]
        if highest + rule.slack * (1.0 + abs(highest)) >= best:
            group = desk.bound_order[spot]
            desk.value[group] = -np.inf
            if can_pay(desk, ends, desk.root[group]):
                # where rounds do not matter a bound is the index itself, until the arm is pulled
                exact = not rule.rounds_matter and rule.kind != FLOOR_SEEN
                desk.value[group] = desk.bound[group] if exact else now(index, rule, desk, desk.root[group])
                if not desk.value[group] > -np.inf:
                    return -2 - desk.root[group]
                best = max(best, desk.value[group])
            desk.candidate[found] = group
            found += 1
            below = 2 * spot + 1
            if below < number[GROUPS]:
                desk.stack[depth] = below
                depth += 1
            if below + 1 < number[GROUPS]:
                desk.stack[depth] = below + 1
                depth += 1
    number[WASTE] += max(found - 1, 0)
    if best == -np.inf and leader < 0:
        # what is left cannot be paid for, and will not be: the budget only shrinks
        return -1
    kept = 0
    weight = np.int64(0)
    for spot in range(found):
        group = desk.candidate[spot]
        value = desk.value[group]
        if value == -np.inf:
            dissolve(desk, rule, group)
        elif value == np.inf and stays_infinite(index, rule, desk, desk.root[group]):
            pour(desk, rule, group)
        else:
            desk.candidate[kept] = group
            kept += 1
            if value == best:
                weight += desk.size[group]
    if best == np.inf:
        weight += number[POOL_SIZE]
    if leader >= 0 and lead == best:
        weight += 1
    ticket = np.int64(0)
    if weight > 1:
        ticket = min(np.int64(uniform(desk.stream) * weight), weight - 1)
    chosen = -1
    if leader >= 0 and lead == best:
        if ticket == 0:
            chosen = leader
        ticket -= 1
    source = -1
    for spot in range(kept):
        group = desk.candidate[spot]
        if desk.value[group] == best:
            if 0 <= ticket < desk.size[group] and chosen < 0:
                source = group
            ticket -= desk.size[group]
        else:
            desk.amount[FRACTION] = max(0.015625, desk.amount[FRACTION] * 0.98)
    if chosen < 0 and source < 0:
        chosen = desk.pool[ticket]
        number[POOL_SIZE] -= 1
        desk.pool[ticket] = desk.pool[number[POOL_SIZE]]
    gone = -1
    if source >= 0:
        if desk.size[source] == 1:
            gone = source
        chosen = give(desk, rule, source)
    for spot in range(kept):
        group = desk.candidate[spot]
        # with a moving floor a bound is as good as its window, without rounds it is exact: no renewal makes it tighter
        loose = rule.rounds_matter if rule.kind != FLOOR_SEEN else desk.bound[group] == np.inf
        if group != gone and loose:
            gap = best - desk.value[group]
            rise = desk.bound[group] - desk.value[group]
            wish = wished_horizon(desk, desk.root[group], gap, number[ROUNDS])
            if best == np.inf:
                # only an infinite bound brought it here: it has to end before the index becomes infinite
                wish = (np.int64(desk.expiry_key[desk.expiry_place[group]]) - number[ROUNDS]) >> 1
            elif 0.0 < rise < np.inf:
                length = desk.expiry_key[desk.expiry_place[group]] - float(number[ROUNDS])
                wish = np.int64(min(desk.amount[FRACTION] * gap / rise * length, 1e15))
            renew(index, rule, desk, group, desk.value[group], best, wish, False)
    if leader >= 0 and chosen != leader:
        shelve(index, rule, desk, leader, lead, best)
    return chosen
