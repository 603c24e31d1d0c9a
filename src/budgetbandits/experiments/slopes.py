"""How fast the regret of BTS grows with the logarithm of the budget, beside the slowest growth there can be."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise

import numpy as np
import polars as pl
from scipy import special

from budgetbandits.errors import NotIndependent
from budgetbandits.experiments.results import BTS, Results
from budgetbandits.experiments.statistics import Difference, student
from budgetbandits.numerics.arrays import AnyArray
from budgetbandits.numerics.intervals import student_quantile
from budgetbandits.problems.problem import Problem
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
                half = student_quantile(0.5 + level / 2, len(steps) - 1) * steps.std(ddof=1) / math.sqrt(len(steps))
            rows.append(
                {
                    "group": record["group"], "problem": record["name"], "from": early, "to": late,
                    "slope": steps.mean(), "low": steps.mean() - half, "high": steps.mean() + half, "lower": lower,
                }
            )  # fmt: skip
    return pl.DataFrame(rows, schema_overrides={"lower": pl.Float64})


def growth_budgets(budgets: Sequence[float]) -> tuple[float, float, float]:
    """The largest budget and those nearest to a fifth and a twenty-fifth of it."""
    late = max(budgets)
    middle = min((b for b in budgets if b < late), key=lambda b: abs(math.log(5 * b / late)))
    early = min((b for b in budgets if b < middle), key=lambda b: abs(math.log(25 * b / late)))
    return early, middle, late


def root_growth(early: float, middle: float, late: float) -> float:
    """The ratio of the two slopes against ln B if the regret grew like √B."""
    slope = [(math.sqrt(b) - math.sqrt(a)) / math.log(b / a) for a, b in ((early, middle), (middle, late))]
    return slope[1] / slope[0]


def games_at(results: Results, budgets: Sequence[float]) -> AnyArray:
    """The pseudo-regret of BTS, problem × run × budget; each run is one game that passes through all budgets."""
    bts = results.policies.index(BTS)
    return np.stack([results.values("pseudo_regret", budget)[:, bts] for budget in budgets], axis=-1)


def slope_ratio(games: AnyArray, budgets: tuple[float, float, float]) -> tuple[float, float, float]:
    """(late slope / early slope, 95 % interval) of runs × three budgets, by the delta method."""
    first, second = _two_slopes(games, budgets)
    ratio = float(second.mean() / first.mean())
    rest = second - ratio * first
    half = special.ndtri(0.975) * rest.std(ddof=1) / math.sqrt(len(rest)) / abs(first.mean())
    return ratio, float(ratio - half), float(ratio + half)


def beside_root(games: AnyArray, budgets: tuple[float, float, float]) -> Difference:
    """The late slope less what it would be if the early one went on like √B: negative is slower growth.

    Of problems × runs × three budgets. A difference rather than a ratio: it needs no early slope away from 0.
    """
    first, second = _two_slopes(games, budgets)
    return student(second - root_growth(*budgets) * first)


def _two_slopes(games: AnyArray, budgets: tuple[float, float, float]) -> tuple[AnyArray, AnyArray]:
    early, middle, late = budgets
    first = (games[..., 1] - games[..., 0]) / math.log(middle / early)
    return first, (games[..., 2] - games[..., 1]) / math.log(late / middle)


def lower_bound_of(results: Results, group: str) -> float | None:
    """The lower bound's constant if the group is a single problem to which the bound applies; with a horizon it does
    not."""
    records = [record for record in results.record["problems"] if record["group"] == group]
    if len(records) != 1 or records[0].get("toml") is None or results.record.get("horizon") is not None:
        return None
    return _lower(Problem.from_toml(records[0]["toml"]))


def _lower(problem: Problem) -> float | None:
    try:
        return lower_constant(problem)
    except NotIndependent:
        return None
