"""The kinds of array that the package passes around, and what formulas need that can be compiled for single arms."""

from __future__ import annotations

import base64
import math
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
AnyArray = np.ndarray[Any, Any]

Arms = NDArray[np.int64]
"""The numbers of some arms."""

ArmMask = NDArray[np.bool_]
"""Which arms, one entry for each."""

LISTED_MAX = 64
"""Numbers that JSON has as a list."""


def plain(value: Any) -> Any:
    """A number of NumPy as Python has it, for JSON; anything else as it is."""
    return value.item() if isinstance(value, np.generic) else value


def packed(array: AnyArray) -> Any:
    """An array for JSON: a list, or the bytes of more than `LISTED_MAX` numbers as text, which is written much faster.

    >>> packed(np.array([1.0, 2.5])), packed(np.zeros((8, 9)))["shape"]
    ([1.0, 2.5], [8, 9])
    """
    if array.size <= LISTED_MAX:
        return array.tolist()
    content = array.astype(array.dtype.newbyteorder("<")).tobytes()
    return {"shape": list(array.shape), "base64": base64.b64encode(content).decode()}


def unpacked(value: Any, kind: np.dtype[Any]) -> AnyArray:
    """The array that `packed` was given, bit for bit; KeyError, TypeError or ValueError if it cannot have been."""
    if not isinstance(value, dict):
        return np.asarray(value, kind)
    content = base64.b64decode(value["base64"], validate=True)
    return np.frombuffer(content, kind.newbyteorder("<")).reshape(value["shape"]).astype(kind)


@lru_cache(maxsize=256)
def _lower(size: int) -> tuple[Arms, Arms]:
    """The places of the lower half of a square matrix; NumPy takes longer to find them than to fetch what is there."""
    return np.tril_indices(size)


def lower_half(matrix: AnyArray) -> AnyArray:
    """The numbers of a symmetric matrix, each once."""
    return np.asarray(matrix[_lower(len(matrix))])


def symmetric(half: AnyArray) -> AnyArray:
    """The symmetric matrix with this lower half; ValueError if there is none.

    >>> symmetric(lower_half(np.array([[1, 2], [2, 3]]))).tolist()
    [[1, 2], [2, 3]]
    """
    size = (math.isqrt(8 * half.size + 1) - 1) // 2
    matrix = np.empty((size, size), half.dtype)
    matrix[_lower(size)] = matrix.T[_lower(size)] = half
    return matrix


def where(condition: Any, yes: Any, no: Any) -> Any:
    """``yes`` where the condition holds, else ``no``; index rules use it so that it can be compiled for scalars."""
    return np.where(condition, yes, no)


def all_true(condition: Any) -> bool:
    """Whether the condition holds for all elements; compiled for scalars, the condition itself."""
    return bool(np.all(condition))


def trial(value: float, rng: np.random.Generator) -> float:
    """The outcome of one Bernoulli trial with this mean; 0 and 1 are outcomes already and take no draw."""
    if value == 0.0 or value == 1.0:
        return value
    return 1.0 if rng.random() < value else 0.0
