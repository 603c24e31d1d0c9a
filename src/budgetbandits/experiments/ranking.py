"""The policies of a study in order, and how far each is behind the best."""

from __future__ import annotations

import numpy as np
import polars as pl

from budgetbandits.experiments.results import BETTER, Results
from budgetbandits.experiments.statistics import Difference, moments, student, surely, welch
from budgetbandits.numerics.arrays import AnyArray


def ranking(results: Results, budget: float | None = None, metric: str = "pseudo_regret") -> pl.DataFrame:
    """Group by group, the policies with the best mean first.

    ``difference`` is the mean less that of the first, with its 95 % interval: over several problems Student's on the
    paired differences of their means, on a single one Welch's. ``sure`` says whether it is surely no tie, Holm over the
    policies behind the first; of the first, whether it is surely the best of all. ``best_on`` counts problems on which
    a policy has the best mean, ``surely_best_on`` those of them on which that is sure.
    """
    winners = results.winners(budget, metric)
    counts = {(row["group"], row["policy"]): (row["problems"], row["sure"]) for row in winners.rows(named=True)}
    sign = 1.0 if BETTER[metric] == "lower" else -1.0
    values = results.values(metric, budget)
    groups = np.array([problem["group"] for problem in results.record["problems"]])
    rows = []
    for group in results.groups:
        here = values[groups == group]
        means = here.mean(axis=(0, -1))
        order = np.argsort(sign * means, kind="stable")
        behind = _behind(here, order, results.paired)
        worse = np.logical_or(*surely(behind))
        for place, column in enumerate(order):
            policy = results.policies[column]
            best_on, surely_best_on = counts[group, policy]
            known = (
                [float(part[place - 1]) for part in (behind.value, behind.low, behind.high)] if place else [None] * 3
            )
            difference, low, high = known
            rows.append(
                {
                    "group": group, "policy": policy, "problems": len(here), "mean": float(means[column]),
                    "difference": difference, "low": low, "high": high,
                    "sure": bool(worse[place - 1] if place else worse.all()),
                    "best_on": best_on, "surely_best_on": surely_best_on,
                }
            )  # fmt: skip
    return pl.DataFrame(rows, schema_overrides=dict.fromkeys(("difference", "low", "high"), pl.Float64))


def _behind(values: AnyArray, order: AnyArray, paired: bool) -> Difference:
    """Of the second policy and those after it, the mean less that of the first, from problem × policy × run."""
    first, others = values[:, order[:1]], values[:, order[1:]]
    if len(values) > 1:
        return student((others.mean(axis=-1) - first.mean(axis=-1)).T)
    return student(others[0] - first[0]) if paired else welch(moments(others[0]), moments(first[0]))
