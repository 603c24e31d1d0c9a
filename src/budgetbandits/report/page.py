"""One self-contained HTML page: figures, tables, claims, versions, seeds and the command that made it."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from budgetbandits.experiments import worst_case
from budgetbandits.experiments.paper.findings import CALIBRATED, ENSEMBLE, Findings, is_paper, load
from budgetbandits.experiments.results import BTS, Results
from budgetbandits.experiments.slopes import slopes
from budgetbandits.experiments.statistics import against_rivals, bootstrap_interval, moments, resampled_std
from budgetbandits.policies.names import label
from budgetbandits.report import figures, theory_figures
from budgetbandits.words import number, short

SHOWN = 20
"""Rows of a long table that the page shows; the whole is in the CSV beside it."""


def write_report(folder: str | Path, found: Findings | None = None) -> Path:
    """Write report.html, figures/ and the tables as CSV into a folder that holds a study, or the paper's two.

    ``found`` saves reading the paper's two again.
    """
    folder = Path(folder)
    if is_paper(folder):
        content = _paper_content(found or load(folder), folder)
    else:
        content = _study_content(Results.load(folder), folder)
    page = folder / "report.html"
    page.write_text(_template().render(content), encoding="utf-8")
    return page


def _template() -> Any:
    environment = Environment(
        loader=PackageLoader("budgetbandits.report", "templates"),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=StrictUndefined,
    )
    environment.filters["number"] = number
    environment.filters["short"] = short
    environment.filters["policy"] = label
    environment.filters["interval"] = theory_figures.interval
    return environment.get_template("report.html")


def _paper_content(found: Findings, folder: Path) -> dict[str, Any]:
    calibrated, ensemble = found.calibrated, found.ensemble
    _write_tables(calibrated, folder / CALIBRATED)
    _write_tables(ensemble, folder / ENSEMBLE)
    return {
        "title": "Thompson Sampling for Budgeted Multi-armed Bandits, reproduced",
        "lead": "The simulations of Xia, Li, Qin, Yu and Liu (IJCAI 2015): four panels, five policies, "
        f"{calibrated.record['runs']} runs; and {len(ensemble.record['problems'])} random problems at "
        f"{ensemble.record['runs']} runs and budgets up to {ensemble.largest():,.0f}.",
        "warning": None
        if found.is_full
        else "This is a quick look, not the reproduction: run 'budgetbandits paper' without --quick or --runs.",
        "claims": found.claims,
        "figures": _paper_figures(found, folder),
        "tables": _tables(calibrated),
        "winners": _winners(ensemble),
        "exceptions": _exceptions(ensemble),
        "growth": None,
        "worst": None,
        "comparison": [],
        "records": [calibrated.record, ensemble.record],
    }


def _paper_figures(found: Findings, folder: Path) -> list[tuple[str, Markup, str]]:
    """(name, figure, caption)."""
    calibrated, ensemble = found.calibrated, found.ensemble
    return [
        (
            "Figure 1",
            _figure(figures.regret_against_budget(calibrated), folder, "figure-1"),
            "Mean pseudo-regret against budget; bars are one standard deviation of the regret over the runs. The "
            "problem of panel (a) was searched for until ε-first agreed with the three numbers the paper gives; the "
            "other panels are the same seed.",
        ),
        (
            "Random problems",
            _figure(figures.who_wins(ensemble), folder, "figure-2"),
            f"Each point is a random problem at B = {ensemble.largest():,.0f}. Above the diagonal BTS has the lowest "
            "mean regret, below it another policy has; colour and shape say which of the others is the best. Hollow: "
            "unsure, for neither is BTS surely the lowest nor another one surely lower (Welch's test, Holm over the "
            "four).",
        ),
        (
            "What is proven",
            _figure(theory_figures.bounds_over_regret(calibrated, found.bounds), folder, "figure-3"),
            "The regret of BTS on the same problems, both axes logarithmic. Theorem 1 is evaluated term by term, γ "
            "optimised for each arm; a bound above the dotted line says nothing.",
        ),
        (
            "The slowest growth there can be",
            _figure(theory_figures.slope_of_the_lower_bound(calibrated, found.bounds), folder, "figure-4"),
            "The regret of BTS against ln B. The lower bound is one on the slope alone, in the long run: no policy "
            "that is good on every problem can keep rising more slowly than the triangle's long side. It says "
            "nothing about the regret at any budget, so where the triangle stands means nothing.",
        ),
    ]


def _study_content(results: Results, folder: Path) -> dict[str, Any]:
    _write_tables(results, folder)
    problems = len(results.record["problems"])
    return {
        "title": results.record["name"],
        "lead": f"{problems} problem{'s' * (problems > 1)}, {', '.join(map(label, results.policies))}; "
        f"{results.record['runs']} runs, budgets up to {results.largest():,.0f}.",
        "warning": None,
        "claims": [],
        "figures": [
            (
                "Regret against budget",
                _figure(figures.regret_against_budget(results), folder, "regret"),
                "Mean pseudo-regret; bars are one standard deviation of the regret over the runs, left out where a "
                "panel averages several problems."
                + (
                    f" The first {figures.MANY} groups of {len(results.groups)}."
                    if len(results.groups) > figures.MANY
                    else ""
                ),
            )
        ],
        "tables": _tables(results),
        "winners": _winners(results) if problems > len(results.groups) and len(results.policies) > 1 else None,
        "exceptions": None,
        "growth": _growth(results, folder),
        "worst": _worst(results, folder) if worst_case.is_two_gap(results) else None,
        "comparison": results.compare().rows(named=True) if len(results.policies) > 1 else [],
        "records": [results.record],
    }


def _growth(results: Results, folder: Path) -> dict[str, Any] | None:
    """BTS's slopes against ln B, where there are budgets enough to speak of growth and few enough to show."""
    budgets, problems = results.budgets, results.record["problems"]
    if BTS not in results.policies or not 2 < len(budgets) <= 8 or max(budgets) < 100 * min(budgets):
        return None
    if len(problems) > SHOWN:
        return None
    found = slopes(results)
    if found["lower"].is_null().any() or not (found["lower"] > 0.0).all():
        return None
    found.write_csv(folder / "growth.csv")
    steps = list(pairwise(budgets))
    rows = [
        {"problem": name, "lower": frame["lower"][0], "slopes": frame.rows(named=True)}
        for (name,), frame in found.group_by("problem", maintain_order=True)
    ]
    figure = _figure(theory_figures.growth_beside_the_bound(found), folder, "growth")
    return {"steps": steps, "rows": rows, "figure": figure}


def _figure(figure: Any, folder: Path, name: str) -> Markup:
    return Markup(figures.save(figure, folder / "figures", name))


def _write_tables(results: Results, folder: Path) -> None:
    results.summary().write_csv(folder / "summary.csv")
    if len(results.policies) > 1:
        results.compare().write_csv(folder / "comparison.csv")


def _tables(results: Results) -> list[dict[str, Any]]:
    """For each group the policies at the largest budget, the lowest mean first."""
    largest = pl.col("budget") == results.largest()
    plain = results.summary_of_groups("regret").select("group", "policy", "budget", "mean", "std")
    both = (
        results.summary_of_groups()
        .filter(largest)
        .join(plain, on=["group", "policy", "budget"], suffix="_plain", maintain_order="left")
    )
    sure = dict(results.best_of_groups().select("group", "sure").iter_rows())
    names = [problem["group"] for problem in results.record["problems"]]
    alone = [place for place, group in enumerate(names) if names.count(group) == 1]
    low, high = bootstrap_interval(resampled_std(results.values("regret")[alone]))
    tables = []
    for group in results.groups:
        rows = both.filter(pl.col("group") == group).sort("mean").rows(named=True)
        if names.count(group) == 1:
            for row in rows:
                place = alone.index(names.index(group)), results.policies.index(row["policy"])
                row["std_interval"] = f"[{number(low[place])}, {number(high[place])}]"
        several = len(results.policies) > 1
        tables.append({"group": group, "budget": results.largest(), "rows": rows, "sure": sure[group] and several})
    return tables


def _winners(results: Results) -> dict[str, Any]:
    rows = []
    for (group,), part in results.winners().group_by("group", maintain_order=True):
        unsure = int((part["problems"] - part["sure"]).sum())
        rows.append({"group": group, "policies": part.rows(named=True), "unsure": unsure})
    return {"policies": results.policies, "rows": rows, "budget": results.largest()}


def _worst(results: Results, folder: Path) -> dict[str, Any]:
    """The hardest problem of each number of arms and budget, and the growth of its regret if there is enough to fit."""
    hardest = worst_case.hardest(results)
    hardest.write_csv(folder / "hardest.csv")
    enough = worst_case.can_grow(results)
    fitted = [worst_case.growth(results, policy) for policy in results.policies] if enough else []
    tables = []
    for policy in results.policies:
        rows = hardest.filter(pl.col("policy") == policy).partition_by("arms", maintain_order=True)
        tables.append((policy, [(part["arms"][0], part.rows(named=True)) for part in rows]))
    return {
        "figure": _figure(theory_figures.worst_regret(hardest, fitted), folder, "worst-case") if fitted else None,
        "fitted": fitted,
        "budgets": sorted(results.budgets),
        "tables": tables,
        "at_edge": int(hardest["edge"].sum()),
        "cells": hardest.height,
    }


def _exceptions(ensemble: Results) -> dict[str, Any]:
    """Problems on which some policy is surely better than BTS, the worst for BTS first."""
    of = moments(ensemble.values())
    bts = ensemble.policies.index(BTS)
    _, higher = against_rivals(of, np.full(len(of.mean), bts))
    rivals = [policy for policy in ensemble.policies if policy != BTS]
    differences = [ensemble.differences(BTS, policy) for policy in rivals]
    theirs = np.where(higher, np.delete(of.mean, bts, axis=1), np.inf)
    rows = []
    for place in np.flatnonzero(higher.any(axis=1)):
        best = int(theirs[place].argmin())
        row = differences[best].row(int(place), named=True)
        rows.append(row | {"policy": rivals[best], "times": row["first"] / row["second"]})
    rows.sort(key=lambda row: -row["times"])
    groups = [problem["group"] for problem in ensemble.record["problems"]]
    beaten = [row["group"] for row in rows]
    return {
        "counts": [(group, beaten.count(group), groups.count(group)) for group in ensemble.groups],
        "rows": rows[:SHOWN],
        "total": len(rows),
    }
