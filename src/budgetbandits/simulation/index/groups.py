"""Arms in the same state, as one.

Arms with the same pulls and the same sums have the same index in every round until one of them is pulled. They form a
group: one evaluation, one place in each heap, however many they are. Which of its arms a group gives away when it is
chosen is uniform: every arm has a luck, and the luckiest goes. Given that the arm that went had luck m, those that
stayed are independent uniforms below m, so an arm that joins draws its luck below m too, and all are exchangeable
again. Luck is kept as a logarithm, where "uniform below m" is m minus an exponential.

A group stands in two heaps: by its bound, an index it cannot exceed before it expires, and by that round of expiry.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from budgetbandits.simulation.compiled.draws import exponential
from budgetbandits.simulation.index.heaps import drop, meld, rekey, rise
from budgetbandits.simulation.index.memory import (
    EVALUATIONS,
    FLOOR_LOW,
    FLOOR_SEEN,
    FRACTION,
    FREES,
    GROUPS,
    OWN,
    POOL_SIZE,
    VARIANCE,
)
from budgetbandits.simulation.index.pulling import score

LONGEST = 1 << 50
"""The longest a bound may hold: rounds beyond it are not exact in float64."""


@njit(cache=True, nogil=True, error_model="numpy", forceinline=True)
def same_state(desk, rule, arm, other):
    """Whether two arms have the same index, now and until one of them is pulled, and the same price."""
    if desk.pulls[arm] != desk.pulls[other] or desk.reward[arm] != desk.reward[other]:
        return False
    if rule.cost_matters and desk.cost[arm] != desk.cost[other]:
        return False
    if rule.kind == VARIANCE and desk.square[arm] != desk.square[other]:
        return False
    if rule.kind == OWN and desk.own[arm] != desk.own[other]:
        return False
    return desk.price[arm] == desk.price[other]


@njit(cache=True, nogil=True, error_model="numpy", forceinline=True)
def slot_of_state(desk, rule, arm):
    """Where in the table a group in the arm's state would be looked for first."""
    mixed = np.uint64(desk.pulls[arm]) * np.uint64(0x9E3779B97F4A7C15)
    mixed ^= np.uint64(np.int64(desk.reward[arm] * 4096.0)) * np.uint64(0xC2B2AE3D27D4EB4F)
    if rule.cost_matters:
        mixed += np.uint64(np.int64(desk.cost[arm] * 4096.0)) * np.uint64(0x165667B19E3779F9)
    if rule.kind == OWN:
        mixed += np.uint64(np.int64(desk.own[arm] * 1e9)) * np.uint64(0x27D4EB2F165667C5)
    mixed ^= mixed >> np.uint64(29)
    mixed *= np.uint64(0xBF58476D1CE4E5B9)
    mixed ^= mixed >> np.uint64(32)
    return np.int64(mixed & np.uint64(desk.slots - 1))


@njit(cache=True, nogil=True, error_model="numpy", forceinline=True)
def join(desk, rule, arm):
    """Put the arm into the group of its state; (group, whether it is new and therefore not yet in the heaps)."""
    slot = slot_of_state(desk, rule, arm)
    group = desk.table[slot]
    while group >= 0 and not same_state(desk, rule, arm, desk.root[group]):
        slot = (slot + 1) & (desk.slots - 1)
        group = desk.table[slot]
    desk.left[arm] = -1
    desk.right[arm] = -1
    if group >= 0:
        desk.luck[arm] = desk.cap[group] - exponential(desk.stream)
        desk.root[group] = meld(desk.left, desk.right, desk.luck, desk.root[group], arm)
        desk.size[group] += 1
        return group, False
    desk.number[FREES] -= 1
    group = desk.free[desk.number[FREES]]
    desk.table[slot] = group
    desk.luck[arm] = -exponential(desk.stream)
    desk.cap[group] = 0.0
    desk.root[group] = arm
    desk.size[group] = 1
    return group, True


@njit(cache=True, nogil=True, error_model="numpy", forceinline=True)
def dissolve(desk, rule, group):
    """Take a group off the table and out of the heaps; its arms have not been pulled since they joined."""
    slot = slot_of_state(desk, rule, desk.root[group])
    while desk.table[slot] != group:
        slot = (slot + 1) & (desk.slots - 1)
    # shift back what probing had pushed past this slot, so that no marks of the deleted are needed
    hole = slot
    while True:
        slot = (slot + 1) & (desk.slots - 1)
        moved = desk.table[slot]
        if moved < 0:
            break
        home = slot_of_state(desk, rule, desk.root[moved])
        if ((slot - home) & (desk.slots - 1)) >= ((slot - hole) & (desk.slots - 1)):
            desk.table[hole] = moved
            hole = slot
    desk.table[hole] = -1
    size = desk.number[GROUPS]
    drop(desk.bound_order, desk.bound_place, desk.bound_key, size, group)
    drop(desk.expiry_order, desk.expiry_place, desk.expiry_key, size, group)
    desk.number[GROUPS] = size - 1
    desk.free[desk.number[FREES]] = group
    desk.number[FREES] += 1


@njit(cache=True, nogil=True, error_model="numpy", forceinline=True)
def give(desk, rule, group):
    """The luckiest arm of a group leaves it; a group without arms is dissolved."""
    arm = desk.root[group]
    if desk.size[group] == 1:
        dissolve(desk, rule, group)
        return arm
    desk.cap[group] = desk.luck[arm]
    desk.root[group] = meld(desk.left, desk.right, desk.luck, desk.left[arm], desk.right[arm])
    desk.size[group] -= 1
    return arm


@njit(cache=True, nogil=True, error_model="numpy")
def pour(desk, rule, group):
    """All arms of a group go to the pool of arms whose index stays infinite until they are pulled."""
    spot = desk.number[POOL_SIZE]
    end = spot + 1
    desk.pool[spot] = desk.root[group]
    while spot < end:
        arm = desk.pool[spot]
        if desk.left[arm] >= 0:
            desk.pool[end] = desk.left[arm]
            end += 1
        if desk.right[arm] >= 0:
            desk.pool[end] = desk.right[arm]
            end += 1
        spot += 1
    desk.number[POOL_SIZE] = end
    dissolve(desk, rule, group)


@njit(cache=True, nogil=True, error_model="numpy", forceinline=True)
def bound(index, rule, desk, group, value, level, rounds, wish, new):
    """Bound a group's index from now on: choose how long the bound is to hold, and file it.

    ``value`` is its index now, ``level`` the best index now. A bound that uses up a small fraction of the gap between
    them is seldom met too early; one that holds long is seldom renewed.
    """
    gap = level - value
    horizon = min(max(np.int64(1), np.int64(wish)), LONGEST)
    if not rule.rounds_matter:
        horizon = np.int64(LONGEST)
    elif not gap > 0.0 and rule.kind != FLOOR_SEEN:
        horizon = np.int64(1)
    allowed = desk.amount[FRACTION] * gap
    arm = desk.root[group]
    floor = desk.amount[FLOOR_LOW]
    growth = 0.0
    highest = value
    while rule.rounds_matter or rule.kind == FLOOR_SEEN:
        desk.number[EVALUATIONS] += 1
        highest = max(score(index, rule, desk, arm, rounds + horizon, floor), value)
        if not highest < np.inf:
            highest = np.inf  # also where there is no number: then the arm is looked at
        growth = highest - value
        if horizon <= 1 or not rule.rounds_matter or (highest < level and growth <= allowed):
            break
        if rule.kind == FLOOR_SEEN and (highest < np.inf or value == np.inf):
            break
        shorter = horizon >> 3
        if growth < np.inf and allowed < np.inf:
            shorter = np.int64(0.9 * float(horizon) * allowed / growth)
        horizon = max(np.int64(1), min(shorter, horizon >> 1))
    if growth < np.inf:
        desk.rate[arm] = growth / float(horizon)
    desk.bound[group] = highest
    expiry = float(rounds + horizon)
    size = desk.number[GROUPS]
    if new:
        rise(desk.bound_order, desk.bound_place, desk.bound_key, size, group, -highest)
        rise(desk.expiry_order, desk.expiry_place, desk.expiry_key, size, group, expiry)
        desk.number[GROUPS] = size + 1
    else:
        rekey(desk.bound_order, desk.bound_place, desk.bound_key, size, group, -highest)
        rekey(desk.expiry_order, desk.expiry_place, desk.expiry_key, size, group, expiry)


@njit(cache=True, nogil=True, error_model="numpy", forceinline=True)
def wished_horizon(desk, arm, gap, rounds):
    """How long a new bound should hold, going by how fast the arm's index rose lately."""
    if not gap > 0.0:
        return np.int64(1)
    longest = max(np.int64(16), rounds)
    if desk.rate[arm] > 0.0:
        wish = desk.amount[FRACTION] * gap / desk.rate[arm]
        if wish < float(longest):
            return np.int64(wish)
    return longest
