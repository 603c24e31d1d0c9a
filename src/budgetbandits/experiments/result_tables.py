"""The results of a study as one table: policies down, groups of problems or budgets across."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import polars as pl

from budgetbandits.formatting.tables import Cell, Table, estimate
from budgetbandits.numerics.intervals import half_width
from budgetbandits.policies import label

if TYPE_CHECKING:
    from budgetbandits.experiments.results import Results


def table_of(results: Results, metric: str, budgets: Sequence[float] | None, judged: bool) -> Table:
    """Mean ± half of the 95 % interval of a metric at some budgets, the largest if none is named.

    If it is ``judged``, more or less of it being better, the best of a column is marked where that is sure, as
    `Results.best_of_groups` says.
    """
    asked = [results.largest(budget) for budget in budgets] if budgets else [results.largest()]
    frame = results.summary_of_groups(metric)
    judged = judged and len(results.policies) > 1
    best = {budget: _surely_best(results, metric, budget) if judged else {} for budget in asked}
    what = metric.replace("_", "-")
    columns, cells = [], []
    for group in results.groups:
        for budget in asked:
            here = frame.filter((pl.col("group") == group) & (pl.col("budget") == budget))
            of = {row["policy"]: row for row in here.iter_rows(named=True)}
            sure = best[budget].get(group)
            columns.append(_heading(what, group, budget, len(results.groups), len(asked)))
            cells.append([_cell(of[name], name == sure) for name in results.policies])
    several = frame["sem"].is_not_null().any()
    at = f" at a budget of {asked[0]:,g}" if len(asked) == 1 else ""
    meaning = f"Mean {what}{at} ± half of its 95 % interval." if several else f"The {what}{at} of a single run."
    return Table(
        columns=("policy", *columns),
        rows=[(label(policy), *row) for policy, row in zip(results.policies, zip(*cells, strict=True), strict=True)],
        title=f"{results.record['name']}: {'mean ' if several else ''}{what}{at}",
        note=meaning + (" Bold: surely the best of its column (95 %, Holm)." if judged else ""),
    )


def _cell(row: dict[str, Any], best: bool) -> Cell:
    """Over the runs of a single problem, over the means of several."""
    count = row["problems"] if row["problems"] > 1 else row["runs"]
    half = None if row["sem"] is None else float(half_width(row["sem"], count))
    return estimate(row["mean"], half, best)


def _surely_best(results: Results, metric: str, budget: float) -> dict[str, str]:
    """Of each group that has one, the policy that is surely the best."""
    best = results.best_of_groups(budget, metric).filter("sure")
    return dict(zip(best["group"], best["policy"], strict=True))


def _heading(what: str, group: str, budget: float, groups: int, budgets: int) -> str:
    if budgets == 1:
        return group if groups > 1 else what
    return f"{budget:,g}" if groups == 1 else f"{group}, {budget:,g}"
