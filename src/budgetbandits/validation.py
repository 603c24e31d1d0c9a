"""Checks of numbers, names and the options of a request: one rule wherever the library is given one.

A number is an int, a float, or anything else that Python can turn into a float without reading text: NumPy's integers
and floats, arrays of no dimension, fractions, decimals. True and False are 1 and 0 as rewards, where they say whether
something happened; as amounts and counts they are mistakes.

    number      any number, else NaN            positive    a number above 0
    within      a number in a range             integer     an int, from some value upwards
    whole       a count, also written as 3.0    listed      a list of names
    amounts     positive numbers by name        finite      numbers by name
    metadata    texts and numbers by name, a few
    RequestOptions  the fields that a request may carry
    FileKey         what a key of a file is for; the manual lists these

Each raises `BadParameter`, or the ``error`` of the caller, with a message that says what to use.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from numbers import Integral
from typing import Any, NamedTuple, SupportsFloat, SupportsIndex, TypedDict, Unpack

from budgetbandits.errors import BadFeature, BadParameter, BudgetBanditsError, MissingKnowledge

Number = SupportsFloat | SupportsIndex
"""Type of the numbers that callers may give, which `number` reads. Texts have neither method."""

LARGEST = 1e300
"""Largest number, so that sums and products of a few numbers stay finite."""

LARGEST_FEATURE = 1e30
"""Largest feature, so that sums of products of two features stay finite, and features fit into single precision."""

MOST_COUNTED = 2**53
"""Largest count: every whole number up to it is a float."""

METADATA_MAX = 16
"""Most entries of a decision's metadata."""
METADATA_NAME_MAX = 64
"""Most characters of a name in the metadata."""
METADATA_BYTES_MAX = 2_000
"""Most bytes of the metadata as JSON."""


class FileKey(NamedTuple):
    """A key of a file: the kind of its value, its meaning, and its default."""

    kind: str
    meaning: str
    default: str = ""
    """Value of a key that is left out; empty for a required key."""


def number(value: Any, *, truth: bool = False) -> float:
    """The value as a float; NaN if it is no number. With ``truth``, True and False are 1 and 0.

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
    result = number(value)
    if not 0.0 < result < LARGEST:
        raise error(f"{name} is {value!r:.40}; use a positive number below {LARGEST:g}{hint}")
    return result


def within(
    name: str, value: Any, low: float, high: float, *, above: bool = False, hint: str = "",
    error: type[BudgetBanditsError] = BadParameter,
) -> float:  # fmt: skip
    """A finite number from ``low``, or ``above`` it, up to ``high``.

    >>> within("share", 0.5, 0.0, 1.0, above=True)
    0.5
    """
    result = number(value)
    if not low <= result <= high or (above and result == low) or math.isinf(result):
        start = f"above {low:g}" if above else f"from {low:g}"
        end = " upwards" if math.isinf(high) else f", up to {high:g}" if above else f" to {high:g}"
        raise error(f"{name} is {value!r:.40}; use a number {start}{end}{hint}")
    return result


def integer(
    name: str, value: Any, minimum: int = 0, *, hint: str = "", error: type[BudgetBanditsError] = BadParameter
) -> int:
    """An int, also NumPy's, from ``minimum`` upwards; neither a bool nor a float.

    >>> integer("seed", 7)
    7
    """
    if isinstance(value, bool) or not isinstance(value, Integral) or value < minimum:
        raise error(f"{name} is {value!r:.40}; use a whole number from {minimum} upwards{hint}")
    return int(value)


def whole(name: str, value: Any) -> int:
    """A whole number from 0 upwards, possibly given as a float, as tables do.

    >>> whole("pulls", 200.0)
    200
    """
    result = number(value)
    if not 0.0 <= result <= MOST_COUNTED or result % 1.0:
        raise BadParameter(f"{name} is {value!r:.40}; give a whole number from 0 to 2^53")
    return int(result)


def listed(name: str, names: Iterable[str]) -> list[str]:
    """The names as a list of text.

    >>> listed("arms", ("search", "mail"))
    ['search', 'mail']
    """
    if isinstance(names, str) or not isinstance(names, Iterable):
        raise BadParameter(f"{name} is {names!r:.60}; pass a list of names; put a single name into a list")
    texts = list(names)
    for text in texts:
        if not isinstance(text, str):
            raise BadParameter(f"{name} has {text!r:.60}, which is no name; pass a list of names")
    return texts


def amounts(name: str, values: Mapping[str, Number]) -> dict[str, float]:
    """Positive amounts by the names of arms.

    >>> amounts("prices", {"search": 2})
    {'search': 2.0}
    """
    if not isinstance(values, Mapping):
        raise BadParameter(f"{name} is {values!r:.60}; map the names of arms to amounts")
    for arm in values:
        if not isinstance(arm, str):
            raise BadParameter(f"{name} has {arm!r:.60}, which is no name; map the names of arms to amounts")
    return {arm: positive(f"{name}: {arm!r:.60}", amount) for arm, amount in values.items()}


def finite(name: str, values: Mapping[str, Number]) -> dict[str, float]:
    """Finite numbers by the names of features; True and False are 1 and 0.

    >>> finite("features", {"length": 12, "code": True})
    {'length': 12.0, 'code': 1.0}
    """
    if not isinstance(values, Mapping):
        raise BadFeature(f"{name} is {values!r:.60}; map the names of features to numbers")
    numbers = {}
    for key, value in values.items():
        if not isinstance(key, str):
            raise BadFeature(f"{name} has {key!r:.60}, which is no name; map the names of features to numbers")
        numbers[key] = number(value, truth=True)
        if not abs(numbers[key]) <= LARGEST_FEATURE:
            raise BadFeature(
                f"feature {key!r:.60} is {value!r:.40}; use a number between -{LARGEST_FEATURE:g} and "
                f"{LARGEST_FEATURE:g}, and its usual value where it is not known"
            )
    return numbers


def metadata(values: Mapping[str, str | float]) -> dict[str, str | float]:
    """A caller's own notes on a decision: a few texts and finite numbers by name, in the order of the names.

    >>> metadata({"user": "u-17", "tokens": 350})
    {'tokens': 350, 'user': 'u-17'}
    """
    if not isinstance(values, Mapping):
        raise BadParameter(f"metadata is {values!r:.60}; map names to texts and numbers")
    if len(values) > METADATA_MAX:
        raise BadParameter(f"metadata has {len(values):,} entries; give {METADATA_MAX} at most")
    notes: dict[str, str | float] = {}
    for name, value in values.items():
        good = isinstance(name, str) and 0 < len(name) <= METADATA_NAME_MAX and name.isprintable() and "=" not in name
        if not good:
            raise BadParameter(
                f"metadata has the name {name!r:.80}; use 1 to {METADATA_NAME_MAX} printable characters without ="
            )
        if isinstance(value, str):
            if "\0" in value or any("\ud800" <= letter <= "\udfff" for letter in value):
                raise BadParameter(f"metadata: {name!r} has the character U+0000 or half of one; leave it out")
            notes[name] = value
            continue
        result = number(value)
        if not abs(result) < LARGEST:
            raise BadParameter(f"metadata: {name!r} is {value!r:.60}; use a text or a finite number")
        notes[name] = int(result) if result.is_integer() and abs(result) <= MOST_COUNTED else result
    text = json.dumps(notes, ensure_ascii=False)
    if len(text.encode()) > METADATA_BYTES_MAX:
        raise BadParameter(
            f"metadata takes {len(text.encode()):,} bytes as JSON; {METADATA_BYTES_MAX:,} at most: keep what is longer "
            "in a place of your own, and its name here"
        )
    return dict(sorted(notes.items()))


# --- the options of a request -----------------------------------------------------------------------------------------


class RequestFields(TypedDict, total=False):
    """The keyword arguments of `RequestOptions.checked`, for every method that passes them on."""

    segment: str | None
    arms: Iterable[str] | None
    exclude: Iterable[str] | None
    prices: Mapping[str, Number] | None
    holds: Mapping[str, Number] | None
    features: Mapping[str, Number] | None


class DecisionFields(RequestFields, total=False):
    """The keyword arguments of a decision of the service, which also keeps ``metadata`` for its caller."""

    metadata: Mapping[str, str | float] | None


@dataclass(frozen=True)
class RequestOptions:
    """The options of one request, which a caller may give before its arm is chosen.

    segment  the kind of the request
    arms     the arms that may answer; None: any
    exclude  arms that may not
    prices   what each of those arms is estimated to cost this time
    holds    what an answer by an arm holds in place of the usual amount
    features its features by name, for policies that look at them
    metadata the caller's own notes, which no choice depends on

    >>> RequestOptions.checked(segment="code", holds={"search": 2}).holds
    {'search': 2.0}
    """

    segment: str | None = None
    arms: tuple[str, ...] | None = None
    exclude: tuple[str, ...] = ()
    prices: Mapping[str, float] | None = None
    holds: Mapping[str, float] = field(default_factory=dict)
    features: Mapping[str, float] | None = None
    metadata: Mapping[str, str | float] | None = None

    @classmethod
    def checked(cls, **fields: Unpack[DecisionFields]) -> RequestOptions:
        """Options with checked names and amounts; whether their arms exist is checked later."""
        unknown = fields.keys() - DecisionFields.__annotations__.keys()
        if unknown:
            raise TypeError(f"unexpected argument {min(unknown)!r}; use {', '.join(DecisionFields.__annotations__)}")
        segment, arms, exclude = fields.get("segment"), fields.get("arms"), fields.get("exclude")
        prices, holds, features = fields.get("prices"), fields.get("holds"), fields.get("features")
        if segment is not None and (not isinstance(segment, str) or not segment):
            raise BadParameter(f"segment is {segment!r:.60}; name it by a text such as 'code'")
        return cls(
            segment,
            None if arms is None else tuple(listed("arms", arms)),
            () if exclude is None else tuple(listed("exclude", exclude)),
            None if prices is None else amounts("prices", prices),
            {} if holds is None else amounts("holds", holds),
            None if features is None else finite("features", features),
            metadata(notes) if (notes := fields.get("metadata")) else None,
        )

    def price(self, arm: str, cap: float, unit: float = 1.0) -> float:
        """The price of an arm, checked to be at most its cap; errors are in units of ``unit``."""
        if self.prices is None or arm not in self.prices:
            raise MissingKnowledge(f"prices has no entry for arm {arm!r:.60}; give every arm one that may be chosen")
        return _up_to("price", arm, self.prices[arm], cap, unit, "exclude that arm")

    def hold(self, arm: str, cap: float, usual: float, unit: float = 1.0) -> float:
        """The amount to hold for an arm, checked to be at most its cap; ``usual`` if the request has none."""
        return _up_to("hold", arm, self.holds.get(arm, usual), cap, unit, "hold that or less")


def _up_to(kind: str, arm: str, amount: float, cap: float, unit: float, remedy: str) -> float:
    if amount > cap:
        raise BadParameter(f"the {kind} of {arm!r:.60} is {amount / unit:g}, above its cap {cap / unit:g}; {remedy}")
    return amount
