"""Whether what a study.json holds is the record of a study: whoever reads one need not look again."""

from __future__ import annotations

import math
from typing import Any

LARGEST = 2**53
"""Above it a count is no longer exact as a number of JSON."""


def checked(content: Any) -> dict[str, Any]:
    """The content, if it says who played what; a ValueError says what is missing.

    >>> checked({"name": "x", "policies": ["bts"], "problems": [], "budgets": [1], "runs": 3, "cells": []})
    Traceback (most recent call last):
    ...
    ValueError: 'problems' is no list of problems with a name and a group
    """
    if not isinstance(content, dict):
        raise ValueError("it is no record of a study")  # noqa: TRY004 (what it holds, not how it was called)
    name, policies = content.get("name"), _list(content, "policies")
    if not isinstance(name, str):
        raise ValueError("it has no 'name'")  # noqa: TRY004
    if not policies or not all(isinstance(policy, str) for policy in policies):
        raise ValueError("'policies' is no list of policies")
    problems = _list(content, "problems")
    if not problems or not all(isinstance(each, dict) and _texts(each, "name", "group") for each in problems):
        raise ValueError("'problems' is no list of problems with a name and a group")
    budgets = _list(content, "budgets")
    if not budgets or not all(_is_amount(budget) for budget in budgets):
        raise ValueError("'budgets' is no list of numbers")
    if not _is_count(content.get("runs")):
        raise ValueError("'runs' is no number of runs")
    for place, cell in enumerate(_list(content, "cells")):
        if not _is_cell(cell, set(policies)):
            raise ValueError(f"cell {place + 1} has no key, no policy of this study or no number of runs")
    return content


def _list(content: dict[str, Any], name: str) -> list[Any]:
    found = content.get(name)
    if not isinstance(found, list):
        raise ValueError(f"it has no list {name!r}")  # noqa: TRY004
    return found


def _texts(content: dict[str, Any], *names: str) -> bool:
    return all(isinstance(content.get(name), str) for name in names)


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < LARGEST


def _is_amount(value: Any) -> bool:
    return isinstance(value, int | float) and abs(value) < LARGEST**2 and math.isfinite(value)


def _is_cell(cell: Any, policies: set[str]) -> bool:
    return (
        isinstance(cell, dict) and _texts(cell, "key", "policy") and cell["policy"] in policies
        and _is_count(cell.get("runs")) and isinstance(cell.get("problems", []), list)
    )  # fmt: skip
