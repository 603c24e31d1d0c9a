"""Further arguments of a policy's functions, in the few floats that the engines hand on.

Engines hand on a fixed number of floats, so that one compiled engine serves all policies. If a function takes more, the
last of these floats stands for the address of an array with all that do not fit: its bits are the address, and nobody
calculates with it.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numba import carray, njit
from numba.np.unsafe.ndarray import to_fixed_tuple

from budgetbandits.numerics.arrays import Array
from budgetbandits.simulation.engines.runtime.pointers import pointer_in


def packed(extras: Sequence[float | Array], slots: int) -> tuple[list[float | Array], Array]:
    """The extras in at most so many places, and the array of those that did not fit, which must be kept alive."""
    if len(extras) <= slots:
        return list(extras), np.empty(0)
    rest = np.array([float(extra) for extra in extras[slots - 1 :]])
    address = np.array(rest.__array_interface__["data"][0], dtype=np.int64)
    return [*extras[: slots - 1], float(address.view(np.float64))], rest


@njit(inline="always")
def unpacked(number, count):
    """The extras that did not fit, from the last of the floats; ``count`` is a constant."""
    return to_fixed_tuple(carray(pointer_in(number), (count,)), count)
