"""Two heaps over plain arrays: an indexed binary heap (smallest key first) and a skew heap of arms by luck.

The binary heap keeps its keys in heap order, beside the items, so that a comparison touches one array.
"""

from __future__ import annotations

from numba import njit


@njit(cache=True, nogil=True, error_model="numpy")
def rise(order, place, key, spot, item, value):
    """Put the item where it belongs on the way from ``spot`` to the root."""
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
def sink(order, place, key, size, spot, item, value):
    """Put the item where it belongs on the way from ``spot`` to the leaves."""
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
def rekey(order, place, key, size, item, value):
    """Give an item of the heap another key."""
    spot = place[item]
    if value < key[spot]:
        rise(order, place, key, spot, item, value)
    else:
        sink(order, place, key, size, spot, item, value)


@njit(cache=True, nogil=True, error_model="numpy")
def drop(order, place, key, size, item):
    """Take an item out; the heap then holds ``size - 1``."""
    spot = place[item]
    last = size - 1
    if spot != last:
        moved = order[last]
        value = key[last]
        if value < key[spot]:
            rise(order, place, key, spot, moved, value)
        else:
            sink(order, place, key, last, spot, moved, value)


@njit(cache=True, nogil=True, error_model="numpy")
def meld(left, right, luck, first, second):
    """Merge two skew heaps, luckiest arm on top; -1 is the empty heap. Returns the root."""
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
