"""The content of a study's page."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any

import polars as pl

from budgetbandits.experiments import growth
from budgetbandits.experiments.growth import slopes
from budgetbandits.experiments.results import BTS, Results
from budgetbandits.formatting.numbers import count
from budgetbandits.report import figures as drawings
from budgetbandits.report import summary, tables

BUDGET_UNITS = {
    "smallest mean cost": "budgets are multiples of each problem's smallest mean cost",
    "request": "budgets are money for a request",
    "cheap to expensive": "budgets lie between the cost of the best ratio and that of the highest reward, per request",
}
"""Explanations of the units of budgets."""


def content(results: Results, folder: Path) -> dict[str, Any]:
    """The values of the page's template; writes the figures and tables next to the page."""
    tables.write_files(results, folder)
    several = len(results.record["problems"]) > len(results.groups)
    return {
        "title": results.record["name"],
        "facts": facts(results),
        "warning": None,
        "sentences": summary.of_study(results),
        "claims": [],
        "figures": drawings.of_study(results, folder),
        "winners": tables.winners(results) if several and len(results.policies) > 1 else None,
        "exceptions": None,
        "growth": _growth(results, folder),
        "worst": _worst(results, folder) if growth.is_two_gap(results) else None,
        "records": [results.record],
    } | about(results)


def about(results: Results) -> dict[str, Any]:
    """The tables, with the names and marks of the policies."""
    groups = tables.by_group(results)
    return {
        "names": drawings.names(results.policies),
        "marks": drawings.legend_marks(results.policies),
        "place": {policy: place for place, policy in enumerate(results.policies)},
        "order": _order(groups, len(results.policies)),
        "budgets": sorted(results.budgets, reverse=True),
        "groups": groups,
        "several": len(results.record["problems"]) > len(results.groups),
        "problems": tables.problems(results),
    }


def _order(groups: list[dict[str, Any]], policies: int) -> list[int]:
    """The policies by number, ordered by mean rank at the largest budget, the lowest regret first."""
    ranks = [group["budgets"][0]["order"] for group in groups]
    return sorted(range(policies), key=lambda place: sum(order.index(place) for order in ranks))


def facts(results: Results) -> str:
    """The size of a study in one line."""
    counts = [
        count(len(results.record["problems"]), "problem"), count(len(results.policies), "policy"),
        count(len(results.budgets), "budget"), count(results.record["runs"], "run"),
    ]  # fmt: skip
    if horizon := results.record.get("horizon"):
        counts.append(f"each budget for {horizon:,} requests")
    if (unit := results.record.get("budget_unit", "1")) in BUDGET_UNITS:
        counts.append(BUDGET_UNITS[unit])
    return " · ".join([*counts, results.record["begun"]] if results.record.get("begun") else counts)


def _growth(results: Results, folder: Path) -> dict[str, Any] | None:
    """The slopes of BTS against ln B, if there are enough budgets to estimate growth and few enough to show."""
    budgets, problems = results.budgets, results.record["problems"]
    if BTS not in results.policies or not 2 < len(budgets) <= 8 or max(budgets) < 100 * min(budgets):
        return None
    if len(problems) > tables.ROWS_SHOWN_MAX or results.record.get("horizon") is not None:
        return None
    growth = slopes(results)
    if growth["lower"].is_null().any() or not (growth["lower"] > 0.0).all():
        return None
    growth.write_csv(folder / "growth.csv")
    rows = [
        {"problem": name, "lower": frame["lower"][0], "slopes": frame.rows(named=True)}
        for (name,), frame in growth.group_by("problem", maintain_order=True)
    ]
    return {"steps": list(pairwise(budgets)), "rows": rows, "figure": drawings.growth(growth, folder)}


def _worst(results: Results, folder: Path) -> dict[str, Any]:
    """The hardest problem for each number of arms and budget, and the growth of its regret if it can be fitted."""
    hardest = growth.hardest(results)
    hardest.write_csv(folder / "hardest.csv")
    enough = growth.can_grow(results)
    fitted = [growth.growth(results, policy) for policy in results.policies] if enough else []
    worst = []
    for policy in results.policies:
        rows = hardest.filter(pl.col("policy") == policy).partition_by("arms", maintain_order=True)
        worst.append((policy, [(part["arms"][0], part.rows(named=True)) for part in rows]))
    return {
        "figure": drawings.worst(hardest, fitted, folder) if fitted else None,
        "fitted": fitted,
        "budgets": sorted(results.budgets),
        "tables": worst,
        "at_edge": int(hardest["edge"].sum()),
        "cells": hardest.height,
    }
