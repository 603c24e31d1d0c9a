"""Two heaps over plain arrays: an indexed binary heap (smallest key first) and a skew heap of arms by luck.

A binary heap is (order, place, key): the items in heap order, where each item stands, and the keys, in heap order too,
so that a comparison touches one array.
"""

from __future__ import annotations

from numba import njit

from budgetbandits.simulation.engines.runtime.pointers import float_pointer, whole_pointer

NOWHERE = -1
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
