"""Array types of the package, arrays as JSON, and functions for formulas that compile for single arms."""

from __future__ import annotations

import base64
import math
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from budgetbandits.numerics.compilation import compiled

Array = NDArray[np.float64]
AnyArray = np.ndarray[Any, Any]

Arms = NDArray[np.int64]
"""Arms by number: an array of indices."""

ArmMask = NDArray[np.bool_]
"""A subset of the arms: True or False for each arm."""

LISTED_MAX = 64
"""Largest array that is written to JSON as a list."""


def plain(value: Any) -> Any:
    """Turn a NumPy number into a Python number, for JSON; anything else is returned as it is."""
    return value.item() if isinstance(value, np.generic) else value


def packed(array: AnyArray) -> Any:
    """An array for JSON: a list, or its bytes as text above `LISTED_MAX` numbers, which is much faster.

    >>> packed(np.array([1.0, 2.5])), packed(np.zeros((8, 9)))["shape"]
    ([1.0, 2.5], [8, 9])
    """
    if array.size <= LISTED_MAX:
        return array.tolist()
    content = array.astype(array.dtype.newbyteorder("<")).tobytes()
    return {"shape": list(array.shape), "base64": base64.b64encode(content).decode()}


def unpacked(value: Any, kind: np.dtype[Any]) -> AnyArray:
    """The array that `packed` was given, bit for bit; KeyError, TypeError or ValueError for anything else."""
    if not isinstance(value, dict):
        return np.asarray(value, kind)
    content = base64.b64decode(value["base64"], validate=True)
    return np.frombuffer(content, kind.newbyteorder("<")).reshape(value["shape"]).astype(kind)


@lru_cache(maxsize=256)
def _lower(size: int) -> tuple[Arms, Arms]:
    """Row and column indices of the lower half of a square matrix, cached: NumPy takes long to list them."""
    return np.tril_indices(size)


def lower_half(matrix: AnyArray) -> AnyArray:
    """The lower half of a symmetric matrix, row by row, with the diagonal."""
    return np.asarray(matrix[_lower(len(matrix))])


def symmetric(half: AnyArray) -> AnyArray:
    """The symmetric matrix with this lower half; ValueError if its length fits no matrix.

    >>> symmetric(lower_half(np.array([[1, 2], [2, 3]]))).tolist()
    [[1, 2], [2, 3]]
    """
    size = (math.isqrt(8 * half.size + 1) - 1) // 2
    matrix = np.empty((size, size), half.dtype)
    matrix[_lower(size)] = matrix.T[_lower(size)] = half
    return matrix


def where(condition: Any, yes: Any, no: Any) -> Any:
    """``yes`` where the condition holds, else ``no``; it compiles for scalars, unlike NumPy's."""
    return np.where(condition, yes, no)


def all_true(condition: Any) -> bool:
    """Whether the condition holds for all elements; the condition itself when compiled for scalars."""
    return bool(np.all(condition))


@compiled
def trial(value: float, rng: np.random.Generator) -> float:
    """The outcome of one Bernoulli trial with this mean; a mean of 0 or 1 is the outcome itself and takes no draw."""
    if value == 0.0 or value == 1.0:
        return value
    return 1.0 if rng.random() < value else 0.0
