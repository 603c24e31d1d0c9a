"""Arms in the same state, as one group, and the heaps that groups and their arms stand in.

Arms with the same pulls and the same sums have the same index in every round until one of them is pulled. They form a
group: one evaluation, one place in each heap, however many they are. Which of its arms a group gives away when it is
chosen is uniform: every arm has a luck, and the luckiest goes. Given that the arm that went had luck m, those that
stayed are independent uniforms below m, so an arm that joins draws its luck below m too, and all are exchangeable
again. Luck is kept as a logarithm, where "uniform below m" is m minus an exponential. The arms of a group stand in a
skew heap by luck.

A group stands in two binary heaps: by its bound, an index it cannot exceed before it expires (`bounds`), and by that
round of expiry. A table by states (hashed, with linear probing) finds the group that an arm belongs to.

A binary heap is (order, place, key): the items in heap order, smallest key first, where each item stands, and the keys,
in heap order too, so that a comparison touches one array.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from budgetbandits.simulation.engines.index.state import OWN, VARIANCE, knows_variances, root_of
from budgetbandits.simulation.engines.runtime.draws import exponential
from budgetbandits.simulation.engines.runtime.records import float_pointer, whole_pointer

# --- heaps -----------------------------------------------------------------------------------------------------------


NO_PLACE = -1
"""Where an item stands that has not been put into a heap."""


@njit(cache=True, nogil=True, error_model="numpy", forceinline=True)
def by_bound(game):
    """The heap of groups, highest bound first: its keys are the bounds with their signs turned."""
    return whole_pointer(game.bound_order_at), whole_pointer(game.bound_place_at), float_pointer(game.bound_key_at)


@njit(cache=True, nogil=True, error_model="numpy", forceinline=True)
def by_expiry(game):
    """The heap of groups, the bound that ends soonest first."""
    return whole_pointer(game.expiry_order_at), whole_pointer(game.expiry_place_at), float_pointer(game.expiry_key_at)


@njit(cache=True, nogil=True, error_model="numpy")
def rise(heap, spot, item, value):
    """Put the item where it belongs on the way from ``spot`` to the root."""
    order, place, key = heap
    while spot > 0:
        above = (spot - 1) >> 1
        if key[above] <= value:
            break
        key[spot] = key[above]
        order[spot] = order[above]
        place[order[spot]] = spot
        spot = above
    key[spot] = value
    order[spot] = item
    place[item] = spot


@njit(cache=True, nogil=True, error_model="numpy")
def sink(heap, size, spot, item, value):
    """Put the item where it belongs on the way from ``spot`` to the leaves."""
    order, place, key = heap
    while True:
        below = 2 * spot + 1
        if below >= size:
            break
        if below + 1 < size and key[below + 1] < key[below]:
            below += 1
        if key[below] >= value:
            break
        key[spot] = key[below]
        order[spot] = order[below]
        place[order[spot]] = spot
        spot = below
    key[spot] = value
    order[spot] = item
    place[item] = spot


@njit(cache=True, nogil=True, error_model="numpy")
def rekey(heap, size, item, value):
    """Give an item of the heap another key."""
    _, place, key = heap
    spot = place[item]
    if value < key[spot]:
        rise(heap, spot, item, value)
    else:
        sink(heap, size, spot, item, value)


@njit(cache=True, nogil=True, error_model="numpy")
def drop(heap, size, item):
    """Take an item out; the heap then holds ``size - 1``."""
    order, place, key = heap
    spot = place[item]
    last = size - 1
    if spot != last:
        moved = order[last]
        value = key[last]
        if value < key[spot]:
            rise(heap, spot, moved, value)
        else:
            sink(heap, last, spot, moved, value)


@njit(cache=True, nogil=True, error_model="numpy")
def meld(game, first, second):
    """Merge two skew heaps, luckiest arm on top; -1 is the empty heap. Returns the root."""
    left, right, luck = whole_pointer(game.left_at), whole_pointer(game.right_at), float_pointer(game.luck_at)
    if first < 0:
        return second
    if second < 0:
        return first
    if luck[first] < luck[second]:
        first, second = second, first
    root = first
    while True:
        # the path taken swaps sides: that is what keeps a skew heap shallow on average
        rest = right[first]
        right[first] = left[first]
        if rest < 0:
            left[first] = second
            return root
        if luck[rest] < luck[second]:
            rest, second = second, rest
        left[first] = rest
        first = rest


# --- groups ----------------------------------------------------------------------------------------------------------


@njit(cache=True, nogil=True, error_model="numpy")
def same_state(game, arm, other):
    """Whether two arms have the same index, now and until one of them is pulled, and the same price."""
    pulls, rewards = whole_pointer(game.pulls_at), float_pointer(game.rewards_at)
    if pulls[arm] != pulls[other] or rewards[arm] != rewards[other]:
        return False
    costs, squares = float_pointer(game.costs_at), float_pointer(game.squares_at)
    if game.cost_matters and costs[arm] != costs[other]:
        return False
    if (game.kind == VARIANCE or knows_variances(game)) and squares[arm] != squares[other]:
        return False
    if knows_variances(game):
        costs_squared, products = float_pointer(game.cost_squares_at), float_pointer(game.products_at)
        if costs_squared[arm] != costs_squared[other] or products[arm] != products[other]:
            return False
    own, price = float_pointer(game.own_at), float_pointer(game.price_at)
    if game.kind == OWN and own[arm] != own[other]:
        return False
    return price[arm] == price[other]


@njit(cache=True, nogil=True, error_model="numpy")
def slot_of_state(game, arm):
    """Where in the table a group in the arm's state would be looked for first."""
    mixed = np.uint64(whole_pointer(game.pulls_at)[arm]) * np.uint64(0x9E3779B97F4A7C15)
    mixed ^= np.uint64(np.int64(float_pointer(game.rewards_at)[arm] * 4096.0)) * np.uint64(0xC2B2AE3D27D4EB4F)
    if game.cost_matters:
        mixed += np.uint64(np.int64(float_pointer(game.costs_at)[arm] * 4096.0)) * np.uint64(0x165667B19E3779F9)
    if game.kind == OWN:
        mixed += np.uint64(np.int64(float_pointer(game.own_at)[arm] * 1e9)) * np.uint64(0x27D4EB2F165667C5)
    mixed ^= mixed >> np.uint64(29)
    mixed *= np.uint64(0xBF58476D1CE4E5B9)
    mixed ^= mixed >> np.uint64(32)
    return np.int64(mixed & np.uint64(game.slots - 1))


@njit(cache=True, nogil=True, error_model="numpy")
def join(game, arm):
    """Put the arm into the group of its state; (group, whether it is new and has no bound yet)."""
    table, root, size = whole_pointer(game.table_at), whole_pointer(game.root_at), whole_pointer(game.size_at)
    luck, cap = float_pointer(game.luck_at), float_pointer(game.cap_at)
    slot = slot_of_state(game, arm)
    group = table[slot]
    while group >= 0 and not same_state(game, arm, root[group]):
        slot = (slot + 1) & (game.slots - 1)
        group = table[slot]
    whole_pointer(game.left_at)[arm] = -1
    whole_pointer(game.right_at)[arm] = -1
    if group >= 0:
        luck[arm] = cap[group] - exponential(game.stream_at)
        root[group] = meld(game, root[group], arm)
        size[group] += 1
        return group, False
    game.frees -= 1
    group = whole_pointer(game.free_at)[game.frees]
    table[slot] = group
    luck[arm] = -exponential(game.stream_at)
    cap[group] = 0.0
    root[group] = arm
    size[group] = 1
    whole_pointer(game.bound_place_at)[group] = NO_PLACE
    return group, True


@njit(cache=True, nogil=True, error_model="numpy")
def dissolve(game, group):
    """Take a group off the table and out of the heaps; its arms have not been pulled since they joined."""
    take_off_table(game, group)
    drop(by_bound(game), game.groups, group)
    drop(by_expiry(game), game.groups, group)
    game.groups -= 1
    whole_pointer(game.free_at)[game.frees] = group
    game.frees += 1


@njit(cache=True, nogil=True, error_model="numpy")
def take_off_table(game, group):
    """Empty a group's slot, and shift back what probing had pushed past it: no marks of the deleted are needed."""
    table, mask = whole_pointer(game.table_at), game.slots - 1
    slot = slot_of_state(game, root_of(game, group))
    while table[slot] != group:
        slot = (slot + 1) & mask
    hole = slot
    while True:
        slot = (slot + 1) & mask
        moved = table[slot]
        if moved < 0:
            break
        home = slot_of_state(game, root_of(game, moved))
        if ((slot - home) & mask) >= ((slot - hole) & mask):
            table[hole] = moved
            hole = slot
    table[hole] = -1


@njit(cache=True, nogil=True, error_model="numpy")
def give(game, group):
    """The luckiest arm of a group leaves it; a group without arms is dissolved."""
    root, size = whole_pointer(game.root_at), whole_pointer(game.size_at)
    arm = root[group]
    if size[group] == 1:
        dissolve(game, group)
        return arm
    float_pointer(game.cap_at)[group] = float_pointer(game.luck_at)[arm]
    root[group] = meld(game, whole_pointer(game.left_at)[arm], whole_pointer(game.right_at)[arm])
    size[group] -= 1
    return arm


@njit(cache=True, nogil=True, error_model="numpy")
def pour(game, group):
    """All arms of a group go to the pool of arms whose index stays infinite until they are pulled."""
    pool, left, right = whole_pointer(game.pool_at), whole_pointer(game.left_at), whole_pointer(game.right_at)
    spot = game.pool_size
    end = spot + 1
    pool[spot] = root_of(game, group)
    while spot < end:
        arm = pool[spot]
        if left[arm] >= 0:
            pool[end] = left[arm]
            end += 1
        if right[arm] >= 0:
            pool[end] = right[arm]
            end += 1
        spot += 1
    game.pool_size = end
    dissolve(game, group)


@njit(cache=True, nogil=True, error_model="numpy", inline="always")
def take_from_pool(game, place):
    """The arm at that place of the pool leaves it."""
    pool = whole_pointer(game.pool_at)
    arm = pool[place]
    game.pool_size -= 1
    pool[place] = pool[game.pool_size]
    return arm
