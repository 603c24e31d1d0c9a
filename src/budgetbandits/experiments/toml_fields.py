"""Fields of an experiment file, read and checked; an `ExperimentError` names the key."""

from __future__ import annotations

import math
import sys
from typing import Any

from budgetbandits.errors import ExperimentError


def no_others(table: dict[str, Any], allowed: tuple[str, ...], what: str) -> None:
    for key in table:
        if key not in allowed:
            raise ExperimentError(f"unknown key {key!r}; {what} has {', '.join(allowed)}")


def text_in(table: dict[str, Any], key: str) -> str:
    value = table.get(key)
    if not isinstance(value, str) or not value.strip() or not value.isprintable():
        raise ExperimentError(f'{key} is {value!r}; write {key} = "some text"')
    return value


def whole_in(table: dict[str, Any], key: str, smallest: int, default: int | None = None) -> int:
    value = table.get(key, default)
    if isinstance(value, bool) or not isinstance(value, int) or value < smallest:
        raise ExperimentError(f"{key} is {value!r}; write a whole number from {smallest} upwards")
    return value


def number(value: Any, key: str) -> float:
    if isinstance(value, int) and abs(value) > sys.float_info.max:
        raise ExperimentError(f"{key} holds a number too large for a computer; write a smaller one")
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise ExperimentError(f"{key} is {value!r}; write a number")
    return float(value)


def several_in(table: dict[str, Any], key: str, example: str) -> list[Any]:
    value = table.get(key)
    if not isinstance(value, list) or not value:
        raise ExperimentError(f"{key} is {value!r}; write a list, such as {key} = {example}")
    return value
