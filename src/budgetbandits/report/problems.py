"""What was asked: the problems of a study as tables of their arms, or as ranges where they are many."""

from __future__ import annotations

from typing import Any

import numpy as np

from budgetbandits.experiments.results import Results

FEW = 3
"""Problems of a group whose arms are shown one by one; more are shown by their range."""
ARMS = 12
"""Arms of a problem that are shown at once; the others are folded."""


def problems(results: Results) -> list[dict[str, Any]]:
    """For each group where its problems are from, and the arms of each or the range of all."""
    records = results.record["problems"]
    found = []
    for group in results.groups:
        members = [record for record in records if record["group"] == group]
        few = len(members) <= FEW
        found.append(
            {
                "group": group,
                "origin": members[0]["origin"],
                "count": len(members),
                "problems": [{"name": record["name"], "arms": arms(record)} for record in members] if few else [],
                "range": None if few else _range(members),
            }
        )
    return found


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
    """Quantiles over the problems of what makes one easy or hard."""
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
