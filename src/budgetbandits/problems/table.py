"""A problem as a table: what each arm brings and costs on average."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from budgetbandits.formatting.tables import MOST_ROWS, EstimateCell, Table, column, left_out
from budgetbandits.numerics.arrays import Array


def problem_table(names: Sequence[str], rewards: Array, costs: Array) -> Table:
    """Mean reward, mean cost, ratio and gap of the first arms; the best arms are marked in a column of their own."""
    ratios = rewards / costs
    top = ratios.max()
    best = ratios >= top * (1.0 - 1e-12)
    reward, cost, ratio, gap = (
        column(values[:MOST_ROWS].tolist()) for values in (rewards, costs, ratios, np.where(best, np.nan, top - ratios))
    )
    rows = [
        (
            name,
            reward[arm],
            cost[arm],
            EstimateCell(ratio[arm], best=bool(best[arm])),
            "best" if best[arm] else gap[arm],
        )
        for arm, name in enumerate(names[:MOST_ROWS])
    ]
    columns = ("arm", "mean reward", "mean cost", "ratio", "gap")
    return Table(columns, rows, title=headline(names, ratios), note=left_out(len(names)))


def headline(names: Sequence[str], ratios: Array) -> str:
    """How many arms, and which is the best.

    >>> headline(["a", "b", "c"], np.array([1.0, 2.5, 2.0]))
    '3 arms, best b: 2.5 reward per cost, the next 2'
    """
    order = np.argsort(-ratios, kind="stable")[:2]
    best, next_best = ratios[order]
    return f"{len(names):,} arms, best {names[order[0]]}: {best:.4g} reward per cost, the next {next_best:.4g}"
