"""How fast the regret of BTS grows with the logarithm of the budget, beside the slowest growth there can be."""

from __future__ import annotations

import math
from itertools import pairwise

import polars as pl
from scipy import stats

from budgetbandits.errors import NotIndependent
from budgetbandits.experiments.results import BTS, Results
from budgetbandits.problem import Problem
from budgetbandits.theory import lower_constant


def slopes(results: Results, level: float = 0.95) -> pl.DataFrame:
    """Problem by problem, the slope of BTS's mean pseudo-regret against ln B from each budget to the next.

    One game gives its regret at every budget, so the slope is a mean over games and its interval Student's. ``lower``
    is the lower bound's constant, null where it does not apply (arms whose reward and cost are correlated).
    """
    rows = []
    games = results.table.filter(pl.col("policy") == BTS).with_columns(pl.col("budget").cast(pl.Float64))
    for record, problem in results.problems():
        lower = _lower(problem)
        wide = games.filter(pl.col("problem") == record["name"]).pivot("budget", index="run", values="pseudo_regret")
        for early, late in pairwise(results.budgets):
            steps = ((wide[str(late)] - wide[str(early)]) / math.log(late / early)).to_numpy()
            half = math.inf
            if len(steps) > 1:
                half = stats.t.ppf(0.5 + level / 2, len(steps) - 1) * steps.std(ddof=1) / math.sqrt(len(steps))
            rows.append(
                {
                    "group": record["group"], "problem": record["name"], "from": early, "to": late,
                    "slope": steps.mean(), "low": steps.mean() - half, "high": steps.mean() + half, "lower": lower,
                }
            )  # fmt: skip
    return pl.DataFrame(rows, schema_overrides={"lower": pl.Float64})


def _lower(problem: Problem) -> float | None:
    try:
        return lower_constant(problem)
    except NotIndependent:
        return None
