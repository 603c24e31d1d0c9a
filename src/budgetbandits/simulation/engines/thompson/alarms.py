"""A tournament tree of alarm times: the root is the earliest, a change walks up only as far as it matters.

Leaves sit at base .. 2*base-1, node k has children 2k and 2k+1.
"""

from __future__ import annotations

from numba import njit

from budgetbandits.simulation.engines.runtime.tournament import set_leaf

NEVER = (1 << 63) - 1


@njit(cache=True, nogil=True)
def set_alarm(tree, base, slot, time):
    set_leaf(tree, base + slot, time)


@njit(cache=True, nogil=True)
def first_ringing(tree, base):
    """The slot whose alarm is the earliest (the leftmost of several)."""
    node = 1
    time = tree[1]
    while node < base:
        node *= 2
        if tree[node] != time:
            node += 1
    return node - base


@njit(cache=True, nogil=True)
def rebuild(tree, base):
    for node in range(base - 1, 0, -1):
        tree[node] = min(tree[2 * node], tree[2 * node + 1])


@njit(cache=True, nogil=True)
def widen(tree, base):
    """Double the number of leaves; returns the new base."""
    wider = 2 * base
    for slot in range(base):
        tree[wider + slot] = tree[base + slot]
    for slot in range(base, wider):
        tree[wider + slot] = NEVER
    rebuild(tree, wider)
    return wider
