"""The page of a leaderboard: winners by setting, quantiles over problems, and facts about every policy."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from budgetbandits.experiments.leaderboard import REFERENCE, slower
from budgetbandits.experiments.results import Results
from budgetbandits.experiments.standings import SettingGames, given_knowledge, policies_shown
from budgetbandits.experiments.study import versions
from budgetbandits.experiments.suite import Suite
from budgetbandits.formatting.numbers import count, interval, listed
from budgetbandits.policies import label
from budgetbandits.policies.base import KNOWLEDGE
from budgetbandits.report import figures as drawings
from budgetbandits.report.page import render

FIXED_POLICIES = ("bts", "omega-ucb")
"""Policies that every figure shows: the paper's policy and the favourite of the literature."""
BUDGET_SUFFIXES = {
    "1": "",
    "smallest mean cost": " × min μc",
    "request": " a request",
    "cheap to expensive": " from cheap to expensive",
}
"""Text after a budget, by its unit."""


def write_page(suite: Suite, summary: dict[str, Any], out: Path, quick: bool = False) -> Path:
    """Write leaderboard.html, figures/ and standings.csv into the folder of a leaderboard."""
    values = {setting.name: SettingGames.of(Results.load(out / setting.name)) for setting in suite.settings}
    write_csv(summary, out / "standings.csv")
    page = out / "leaderboard.html"
    page.write_text(render(content(summary, values, out, quick), "leaderboard.html"), encoding="utf-8")
    return page


def content(summary: dict[str, Any], values: Mapping[str, SettingGames], out: Path, quick: bool) -> dict[str, Any]:
    """The values of the page's template; draws the figures."""
    drawn = figure_policies(summary)
    sections = [
        ("winners", "Who wins where"),
        ("settings", "Setting by setting"),
        ("policies", "Policies"),
        ("made", "How this was made"),
    ]
    return {
        "title": summary["suite"],
        "facts": facts(summary),
        "warning": "This is a quick look, not the leaderboard: leave out --quick." if quick else None,
        "sentences": sentences(summary),
        "contents": sections,
        "names": drawings.names(drawn), "marks": drawings.legend_marks(drawn), "order": list(range(len(drawn))),
        "budgets": [], "records": [{"versions": versions()}],
        "figures": figures(summary, values, drawn, out),
        "columns": [{"name": setting["name"], "title": setting["title"]} for setting in summary["settings"]],
        "matrix": matrix(summary),
        "settings": summary["settings"],
        "units": BUDGET_SUFFIXES,
        "policies": policies(summary),
        "knowledge": KNOWLEDGE,
        "efforts": efforts(summary),
        "slower": slower(summary),
        "command": summary["command"],
    }  # fmt: skip


def figure_policies(summary: dict[str, Any]) -> list[str]:
    """The policies of the figures, among those that play in every setting."""
    everywhere = [row for row in summary["overall"] if row["settings"] == len(summary["settings"])]
    return policies_shown(everywhere, FIXED_POLICIES)


def figures(
    summary: dict[str, Any], values: Mapping[str, SettingGames], drawn: list[str], out: Path
) -> list[drawings.PageFigure]:
    """The figures over the problems of the settings; none if no setting has several problems."""
    titles = {setting["name"]: setting["title"] for setting in summary["settings"]}
    several = {
        titles[name]: games_of.games[:, [games_of.policies.index(policy) for policy in drawn]]
        for name, games_of in values.items()
        if games_of.paired
    }
    if not several or len(drawn) < 2:
        return []
    return drawings.over_settings(np.concatenate(list(several.values())), several, drawn, out)


def facts(summary: dict[str, Any]) -> str:
    """The size of a leaderboard in one line."""
    settings = summary["settings"]
    games = sum(setting["problems"] * setting["runs"] * len(setting["efforts"]) for setting in settings)
    begun = [setting["begun"] for setting in settings if setting["begun"]]
    words = [
        count(len(settings), "setting"), count(len(summary["overall"]), "policy"),
        count(sum(setting["problems"] for setting in settings), "problem"), f"{games:,} games",
    ]  # fmt: skip
    return " · ".join([*words, max(begun)] if begun else words)


def sentences(summary: dict[str, Any]) -> list[str]:
    """The results in three sentences."""
    ranked = [row for row in summary["overall"] if row["competes"] and row["comparable"]]
    if not ranked:
        return ["No policy that competes plays in every setting, so there is no order over all of them."]
    first = ranked[0]
    close = [row for row in ranked[1:] if row["low"] <= first["high"]]
    wins: dict[str, list[str]] = {}
    for setting in summary["settings"]:
        best = next(row for row in setting["budgets"][-1]["standings"] if row["best"])
        if best["apart"]:
            wins.setdefault(best["policy"], []).append(setting["title"])
    sure, of = sum(map(len, wins.values())), count(len(summary["settings"]), "setting")
    whose = listed([f"{label(policy)} on {len(where)}" for policy, where in wins.items()]) if wins else ""
    ahead = f"On {sure} of {of} one policy is surely ahead of every other (95 %, Holm): {whose}."
    return [
        f"Over all settings {label(first['policy'])} has the lowest mean regret divided by that of each setting's "
        f"best: {first['times']:.2f} times it [{interval(first['low'], first['high'])}]"
        + (
            f"; the intervals of {listed([label(row['policy']) for row in close[:5]])} overlap with that."
            if close
            else "."
        ),
        ahead if wins else f"In none of {of} is one policy surely ahead of every other (95 %, Holm).",
        f"Measured is the pseudo-regret at the largest budget of each setting; policies that must know more than "
        f"{given_knowledge(summary)} are shown and do not compete.",
    ]


def matrix(summary: dict[str, Any]) -> list[dict[str, Any]]:
    """The rows of policies, the best over all settings first: their means divided by the best one, by setting."""
    of = {
        setting["name"]: {row["policy"]: row for row in setting["budgets"][-1]["standings"]}
        for setting in summary["settings"]
    }
    best = {name: next(row for row in rows.values() if row["best"])["mean"] for name, rows in of.items()}
    rows_of = []
    for row in summary["overall"]:
        cells: list[dict[str, Any] | None] = []
        for name, rows in of.items():
            row_of = rows.get(row["policy"])
            if row_of is None:
                cells.append(None)
                continue
            close = row_of["best"] or (row_of["competes"] and not row_of["apart"])
            cells.append(
                {"times": row_of["mean"] / best[name] if best[name] > 0.0 else 1.0, "close": close, "row": row_of}
            )
        rows_of.append({**row, "cells": cells})
    return rows_of


def policies(summary: dict[str, Any]) -> list[dict[str, Any]]:
    """Facts about the policies, in the order of the matrix."""
    return [{"policy": row["policy"], **summary["policies"][row["policy"]]} for row in summary["overall"]]


def efforts(summary: dict[str, Any]) -> dict[str, Any]:
    """The processor time by setting, and the part of it in the reference simulator, by policy."""
    rows: list[dict[str, Any]] = []
    slow: dict[str, float] = {}
    for setting in summary["settings"]:
        taken = setting["efforts"]
        plain = {policy: effort["seconds"] for policy, effort in taken.items() if effort["engine"] == REFERENCE}
        for policy, seconds in plain.items():
            slow[policy] = slow.get(policy, 0.0) + seconds
        rows.append(
            {
                "title": setting["title"], "seconds": sum(effort["seconds"] for effort in taken.values()),
                "reference": sum(plain.values()), "without": setting["without"],
            }
        )  # fmt: skip
    total = sum(row["seconds"] for row in rows)
    return {
        "rows": rows, "total": total, "reference": sum(slow.values()),
        "slow": [(policy, seconds) for policy, seconds in sorted(slow.items(), key=lambda item: -item[1])],
    }  # fmt: skip


def write_csv(summary: dict[str, Any], path: Path) -> None:
    """Every standing as one table."""
    rows = [
        {"setting": setting["name"], "budget": at["budget"], **row}
        for setting in summary["settings"]
        for at in setting["budgets"]
        for row in at["standings"]
    ]
    pl.DataFrame(rows, infer_schema_length=None).write_csv(path)
