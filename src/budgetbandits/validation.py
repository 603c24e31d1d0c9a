"""Checks of numbers and of lists of names, wherever the library is given one.

A number is an int, a float, or whatever else Python can turn into a float without reading text: NumPy's integers and
floats, arrays of no dimension, fractions, decimals. True and False are 1 and 0 as rewards, where they say whether
something happened; as amounts and counts they are mistakes.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

from budgetbandits.errors import BadParameter

LARGEST = 1e300
"""Numbers are below this: sums and products of a few of them are numbers still."""

MOST_COUNTED = 2**53
"""Up to here every whole number is a float."""


def number(value: Any, *, truth: bool = False) -> float:
    """The value as a float; NaN if it is no number. ``truth``: True and False are 1 and 0.

    >>> number(3), number("3"), number(True), number(True, truth=True)
    (3.0, nan, nan, 1.0)
    """
    if type(value) is float:  # most are
        return value
    if type(value) is int:
        return float(value) if -LARGEST < value < LARGEST else math.nan
    kind = "b" if type(value) is bool else getattr(getattr(value, "dtype", None), "kind", None)
    if getattr(value, "ndim", 0) or kind not in (None, "i", "u", "f", "b") or (kind == "b" and not truth):
        return math.nan
    if not hasattr(value, "__float__") and not hasattr(value, "__index__"):  # text has neither
        return math.nan
    try:
        return float(value)
    except (TypeError, ValueError, OverflowError):
        return math.nan


def positive(what: str, value: Any) -> float:
    """A positive number; BadParameter for everything else."""
    found = number(value)
    if not 0.0 < found < LARGEST:
        raise BadParameter(f"{what} is {value!r:.40}; use a positive number below {LARGEST:g}")
    return found


def whole(what: str, value: Any) -> int:
    """A whole number from 0 upwards, also as the float that a table has made of it; BadParameter for everything else.

    >>> whole("pulls", 200.0)
    200
    """
    found = number(value)
    if not 0.0 <= found <= MOST_COUNTED or found % 1.0:
        raise BadParameter(f"{what} is {value!r:.40}; give a whole number from 0 to 2^53")
    return int(found)


def listed(what: str, names: Iterable[str]) -> list[str]:
    """The names as a list; whether each is one is for whoever looks it up.

    >>> listed("arms", ("search", "mail"))
    ['search', 'mail']
    """
    if isinstance(names, str) or not isinstance(names, Iterable):
        raise BadParameter(f"{what} is {names!r:.60}; pass a list of names; put a single name into a list")
    return list(names)


def listed_texts(what: str, names: Iterable[str]) -> list[str]:
    """The same for who sends them on or keeps them, and takes nothing but text."""
    texts = listed(what, names)
    for name in texts:
        if not isinstance(name, str):
            raise BadParameter(f"{what} has {name!r:.60}, which is no name; pass a list of names")
    return texts
