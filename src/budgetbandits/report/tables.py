"""The tables of a report: regret at every budget, one budget, policy against policy, winners, and the problems."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from budgetbandits.experiments.plots import with_intervals
from budgetbandits.experiments.results import BTS, Results
from budgetbandits.experiments.statistics import against_rivals, bootstrap_interval, moments, resampled_std

ROWS_SHOWN_MAX = 20
"""Most rows of a table that the page shows; the whole table is in the CSV file next to it."""
GROUPS_SHOWN_MAX = 12
"""Most groups for which the page shows every budget. Other groups have their largest budget only; the rest is in
summary.csv."""


def write_files(results: Results, folder: Path) -> None:
    """Write the tables as files next to the page."""
    results.summary().write_csv(folder / "summary.csv")
    if len(results.policies) > 1:
        results.compare().write_csv(folder / "comparison.csv")


def regrets(results: Results) -> pl.DataFrame:
    """The table of regret by group, policy and budget.

    Columns are the mean pseudo-regret, half its 95 % interval, its spread, and the mean and standard deviation of the
    regret itself.

    Over the runs of a single problem, over the means of several (`Results.summary_of_groups`).
    """
    where = ["group", "policy", "budget"]
    plain = results.summary_of_groups("regret").select(*where, "mean", "std")
    both = with_intervals(results).join(plain, on=where, suffix="_plain", maintain_order="left")
    return both.with_columns((pl.col("high") - pl.col("mean")).fill_nan(None).alias("half"))


def by_group(results: Results) -> list[dict[str, Any]]:
    """The tables of all groups, with their budgets, the largest first.

    Each budget has the policies, the lowest mean first, the matrix of differences, and whether the lowest mean is
    significant.
    """
    rows = regrets(results).partition_by("group", "budget", as_dict=True)
    spread = _spread_intervals(results)
    largest = results.largest()
    shown = {largest: results.groups} | {
        budget: results.groups[:GROUPS_SHOWN_MAX]
        for budget in sorted(results.budgets, reverse=True)
        if budget < largest
    }
    several = len(results.policies) > 1
    tables: dict[str, list[dict[str, Any]]] = {group: [] for group in results.groups}
    for budget, groups in shown.items():
        sure = dict(results.best_of_groups(budget).select("group", "sure").iter_rows()) if several else {}
        matrices = differences(results, budget) if several else {}
        for group in groups:
            policies = rows[group, budget].sort("mean").rows(named=True)
            if budget == largest and group in spread:
                for row in policies:
                    row["std_low"], row["std_high"] = spread[group][row["policy"]]
            tables[group].append(
                {
                    "budget": budget, "rows": policies, "of": {row["policy"]: row for row in policies},
                    "sure": sure.get(group, False), "matrix": matrices.get(group),
                    "order": [results.policies.index(row["policy"]) for row in policies],
                }
            )  # fmt: skip
    return [{"group": group, "budgets": tables[group]} for group in results.groups]


def _spread_intervals(results: Results) -> dict[str, dict[str, tuple[float, float]]]:
    """The interval of the regret's standard deviation at the largest budget, by group of one problem and by policy."""
    names = [problem["group"] for problem in results.record["problems"]]
    alone = [place for place, group in enumerate(names) if names.count(group) == 1]
    low, high = bootstrap_interval(resampled_std(results.values("regret")[alone]))
    return {
        names[place]: dict(zip(results.policies, zip(low[row], high[row], strict=True), strict=True))
        for row, place in enumerate(alone)
    }


def differences(results: Results, budget: float | None = None) -> dict[str, list[list[dict[str, Any] | None]]]:
    """The matrices of differences by group, policy × policy in the study's order: `Results.compare` for the policies
    of the row and the column, None on the diagonal."""
    size = len(results.policies)
    place = {policy: number for number, policy in enumerate(results.policies)}
    matrices: dict[str, list[list[dict[str, Any] | None]]] = {
        group: [[None] * size for _ in range(size)] for group in results.groups
    }
    for row in results.compare(budget).iter_rows(named=True):
        first, second = place[row["first"]], place[row["second"]]
        matrices[row["group"]][first][second] = _cell(row)
        matrices[row["group"]][second][first] = _cell(
            row
            | {"wins": row["losses"], "losses": row["wins"]}
            | {"difference": -row["difference"], "low": -row["high"], "high": -row["low"]}
        )
    return matrices


def _cell(row: dict[str, Any]) -> dict[str, Any]:
    verdict = "lower" if row["high"] < 0.0 else "higher" if row["low"] > 0.0 else "unsure"
    return {name: row[name] for name in ("problems", "wins", "losses", "difference", "low", "high")} | {
        "verdict": verdict
    }


def winners(results: Results) -> dict[str, Any]:
    """The number of problems of each group on which each policy has the lowest mean at the largest budget, and on how
    many of them significantly."""
    rows = []
    for (group,), part in results.winners().group_by("group", maintain_order=True):
        unsure = int((part["problems"] - part["sure"]).sum())
        rows.append({"group": group, "policies": part.rows(named=True), "unsure": unsure})
    return {"policies": results.policies, "rows": rows, "budget": results.largest(), "test": results.test}


def exceptions(ensemble: Results) -> dict[str, Any]:
    """The problems on which some policy is significantly better than BTS, the worst for BTS first."""
    of = moments(ensemble.values())
    bts = ensemble.policies.index(BTS)
    _, higher = against_rivals(of, np.full(len(of.mean), bts))
    rivals = [policy for policy in ensemble.policies if policy != BTS]
    pairs = [ensemble.differences(BTS, policy) for policy in rivals]
    theirs = np.where(higher, np.delete(of.mean, bts, axis=1), np.inf)
    rows = []
    for place in np.flatnonzero(higher.any(axis=1)):
        best = int(theirs[place].argmin())
        row = pairs[best].row(int(place), named=True)
        rows.append(row | {"policy": rivals[best], "times": row["first"] / row["second"]})
    rows.sort(key=lambda row: -row["times"])
    groups = [problem["group"] for problem in ensemble.record["problems"]]
    beaten = [row["group"] for row in rows]
    return {
        "counts": [(group, beaten.count(group), groups.count(group)) for group in ensemble.groups],
        "rows": rows[:ROWS_SHOWN_MAX],
        "total": len(rows),
    }


PROBLEMS_SHOWN_MAX = 3
"""Most problems of a group whose arms are listed; more problems are shown by their range."""
ARMS_SHOWN_MAX = 12
"""Most arms of a problem that are shown at once; the others are folded."""


def problems(results: Results) -> list[dict[str, Any]]:
    """The problems of all groups: their source, and the arms of each problem or the range of all."""
    records = results.record["problems"]
    tables = []
    for group in results.groups:
        members = [record for record in records if record["group"] == group]
        few = len(members) <= PROBLEMS_SHOWN_MAX
        tables.append(
            {
                "group": group,
                "origin": members[0]["origin"],
                "count": len(members),
                "problems": [{"name": record["name"], "arms": arms(record)} for record in members] if few else [],
                "range": None if few else _range(members),
            }
        )
    return tables


def arms(record: dict[str, Any]) -> list[dict[str, Any]]:
    """The arms of a problem by ratio, the best first; its gap is the best ratio less the arm's own."""
    rewards, costs = np.array(record["reward_means"]), np.array(record["cost_means"])
    ratios = rewards / costs
    return [
        {
            "name": record["names"][arm], "reward": rewards[arm], "cost": costs[arm], "ratio": ratios[arm],
            "gap": ratios.max() - ratios[arm],
        }
        for arm in np.argsort(-ratios, kind="stable")
    ]  # fmt: skip


def _range(members: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Quantiles over the problems of the numbers that make a problem easy or hard."""
    of: dict[str, list[float]] = {"best ratio": [], "gap of the second best arm": [], "median gap": []}
    for record in members:
        ratios = np.sort(np.array(record["reward_means"]) / np.array(record["cost_means"]))[::-1]
        of["best ratio"].append(ratios[0])
        of["gap of the second best arm"].append(ratios[0] - ratios[1])
        of["median gap"].append(float(np.median(ratios[0] - ratios[1:])))
    means = {
        name: np.concatenate([record[f"{name}_means"] for record in members]).tolist() for name in ("reward", "cost")
    }
    of = {"mean reward of an arm": means["reward"], "mean cost of an arm": means["cost"]} | of
    return [
        {"what": what, "quantiles": np.quantile(values, (0.0, 0.05, 0.5, 0.95, 1.0)).tolist()}
        for what, values in of.items()
    ]
