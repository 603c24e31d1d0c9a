"""A saved allocation as text: versioned JSON, and what is said of text that is none."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any

from budgetbandits.errors import BadState

FORMAT = "budgetbandits-allocation"
VERSION = 1

_INFINITY = {"+inf": math.inf, "-inf": -math.inf}


def written(document: Mapping[str, Any]) -> str:
    """The text of a document, headed by the format and its version."""
    headed = {"format": FORMAT, "version": VERSION, **document}
    return json.dumps(_without_infinity(headed), allow_nan=False)


def read(text: str) -> dict[str, Any]:
    """The document of a text that `written` has made; BadState if it is another."""
    try:
        document = _with_infinity(json.loads(text))
    except (ValueError, TypeError, KeyError, RecursionError) as error:
        raise BadState(f"not JSON: {error}; pass what to_json() returned, whole") from None
    if not isinstance(document, dict) or document.get("format") != FORMAT:
        raise BadState("this is not a saved allocation; pass what to_json() returned")
    if document.get("version") != VERSION:
        raise BadState(
            f"saved by format version {document.get('version')}, this package reads {VERSION}; "
            "restore it with the version of budgetbandits that wrote it"
        )
    return document


def not_negative(document: Mapping[str, Any], what: str) -> float:
    """A finite number from 0 upwards; BadState if it is another."""
    number = float(document[what])
    if not 0.0 <= number < math.inf:
        raise BadState(f"{what!r} is {number}; restore an undamaged copy")
    return number


def wanted_of(saved: Any, arms: int) -> float | list[float]:
    """What the last ask had to hold: one amount, or one for each arm; BadState if it is neither."""
    if not isinstance(saved, list):
        return not_negative({"wanted": saved}, "wanted")
    amounts = [float(amount) for amount in saved]
    if len(amounts) != arms or not all(amount >= 0.0 for amount in amounts) or min(amounts) == math.inf:
        raise BadState("'wanted' is not one amount for each arm; restore an undamaged copy")
    return amounts


def _without_infinity(value: Any) -> Any:
    """JSON has no infinity: it is written as the text "+inf" or "-inf", under a key that says so."""
    if isinstance(value, float) and math.isinf(value):
        return {"number": "+inf" if value > 0 else "-inf"}
    if isinstance(value, dict):
        return {key: _without_infinity(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_without_infinity(item) for item in value]
    return value


def _with_infinity(value: Any) -> Any:
    if isinstance(value, dict):
        if value.keys() == {"number"}:
            return _INFINITY[str(value["number"])]
        return {key: _with_infinity(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_with_infinity(item) for item in value]
    return value
