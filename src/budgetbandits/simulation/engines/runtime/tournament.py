"""A tournament tree in a flat array: leaves hold the players' numbers, a node the smaller of the two below."""

from __future__ import annotations

from numba import njit


@njit(cache=True, nogil=True, error_model="numpy")
def set_leaf(tree, node, value):
    """Change the number at a leaf, and what follows from it above."""
    tree[node] = value
    while node > 1:
        node >>= 1
        smaller = min(tree[2 * node], tree[2 * node + 1])
        if tree[node] == smaller:
            return
        tree[node] = smaller
