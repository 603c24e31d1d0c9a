"""The kinds of array that the package passes around, and what formulas need that can be compiled for single arms."""

from __future__ import annotations

import base64
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
