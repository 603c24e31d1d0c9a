"""Checks of numbers and of lists of names: one rule wherever the library is given one.

A number is an int, a float, or anything else that Python can turn into a float without reading text: NumPy's integers
and floats, arrays of no dimension, fractions, decimals. True and False are 1 and 0 as rewards, where they say whether
something happened; as amounts and counts they are mistakes.

    number      any number, else NaN            positive    a number above 0
    within      a number in a range             integer     an int, from some value upwards
    whole       a count, also written as 3.0    listed      a list of names

Each raises `BadParameter`, or the ``error`` of the caller, with a message that says what to use.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from numbers import Integral
from typing import Any

from budgetbandits.errors import BadParameter, BudgetBanditsError

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


def positive(name: str, value: Any, *, hint: str = "", error: type[BudgetBanditsError] = BadParameter) -> float:
    """A positive number below `LARGEST`; ``hint`` ends the message."""
    found = number(value)
    if not 0.0 < found < LARGEST:
        raise error(f"{name} is {value!r:.40}; use a positive number below {LARGEST:g}{hint}")
    return found


def within(
    name: str, value: Any, low: float, high: float, *, above: bool = False, hint: str = "",
    error: type[BudgetBanditsError] = BadParameter,
) -> float:  # fmt: skip
    """A finite number from ``low``, or ``above`` it, up to ``high``.

    >>> within("share", 0.5, 0.0, 1.0, above=True)
    0.5
    """
    found = number(value)
    if not low <= found <= high or (above and found == low) or math.isinf(found):
        start = f"above {low:g}" if above else f"from {low:g}"
        end = " upwards" if math.isinf(high) else f", up to {high:g}" if above else f" to {high:g}"
        raise error(f"{name} is {value!r:.40}; use a number {start}{end}{hint}")
    return found


def integer(
    name: str, value: Any, least: int = 0, *, hint: str = "", error: type[BudgetBanditsError] = BadParameter
) -> int:
    """An int, also NumPy's, from ``least`` upwards; neither a bool nor a float.

    >>> integer("seed", 7)
    7
    """
    if isinstance(value, bool) or not isinstance(value, Integral) or value < least:
        raise error(f"{name} is {value!r:.40}; use a whole number from {least} upwards{hint}")
    return int(value)


def whole(name: str, value: Any) -> int:
    """A whole number from 0 upwards, also as the float that a table has made of it.

    >>> whole("pulls", 200.0)
    200
    """
    found = number(value)
    if not 0.0 <= found <= MOST_COUNTED or found % 1.0:
        raise BadParameter(f"{name} is {value!r:.40}; give a whole number from 0 to 2^53")
    return int(found)


def listed(name: str, names: Iterable[str]) -> list[str]:
    """The names as a list; the caller checks each of them when it looks it up.

    >>> listed("arms", ("search", "mail"))
    ['search', 'mail']
    """
    if isinstance(names, str) or not isinstance(names, Iterable):
        raise BadParameter(f"{name} is {names!r:.60}; pass a list of names; put a single name into a list")
    return list(names)


def listed_texts(name: str, names: Iterable[str]) -> list[str]:
    """The names as a list of text, for a caller that stores them or sends them on."""
    texts = listed(name, names)
    for text in texts:
        if not isinstance(text, str):
            raise BadParameter(f"{name} has {text!r:.60}, which is no name; pass a list of names")
    return texts
