"""How regret grows: with the logarithm of the budget, and in the worst case with budget and number of arms.

`slopes` compares the growth of BTS with the lower bound. `hardest` finds the hardest problem of the two-gap family for
each number of arms and budget, and `growth` fits exponents to it. The largest of many means measured with noise is
too large, the more so the noisier the runs are: with two arms more than with thirty, which would pass for slower
growth in the number of arms. So growth is fitted to the *crossed* regret: one half of the runs chooses the hardest
problem, the other half measures it, and the other way round.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import polars as pl
from scipy import special

from budgetbandits.errors import BadParameter, NotIndependent
from budgetbandits.experiments.results import BTS, Results
from budgetbandits.experiments.statistics import SEED, Difference, bootstrap_interval, student
from budgetbandits.numerics.arrays import AnyArray, Array
from budgetbandits.numerics.intervals import half_width
from budgetbandits.problems.problem import Problem
from budgetbandits.theory import lower_constant

# --- against ln B -----------------------------------------------------------------------------------------------------


def slopes(results: Results) -> pl.DataFrame:
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
            slope = student(steps)
            rows.append(
                {
                    "group": record["group"], "problem": record["name"], "from": early, "to": late,
                    "slope": float(slope.value), "low": float(slope.low), "high": float(slope.high), "lower": lower,
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


# --- the worst case ---------------------------------------------------------------------------------------------------


RESAMPLES = 1_000
"""Number of bootstrap samples."""


@dataclass(frozen=True)
class Exponent:
    """An exponent with its 95 % interval."""

    value: float
    low: float
    high: float


@dataclass(frozen=True)
class GrowthStep:
    """The exponent between two neighbouring budgets or numbers of arms."""

    first: float
    second: float
    exponent: Exponent


@dataclass(frozen=True)
class Growth:
    """worst regret ≈ e^constant · budget^in_budget · arms^in_arms, and the exponents from step to step."""

    policy: str
    constant: float
    in_budget: Exponent
    in_arms: Exponent
    budget_steps: tuple[GrowthStep, ...]
    arms_steps: tuple[GrowthStep, ...]
    cells: int
    at_edge: int


def is_two_gap(results: Results) -> bool:
    """Whether every problem of the study is of the two-gap family. False if the study's record has no gaps."""
    return all(problem.get("gaps") is not None for problem in results.record["problems"])


def can_grow(results: Results) -> bool:
    """Whether there is enough for `growth`: two budgets, two numbers of arms, two runs in each half."""
    arms = {problem["arms"] for problem in results.record["problems"]}
    return len(arms) > 1 and len(results.budgets) > 1 and results.record["runs"] > 3


def hardest(results: Results) -> pl.DataFrame:
    """The problem with the largest mean pseudo-regret for each policy, number of arms and budget.

    ``half`` is half of the mean's 95 % interval, ``crossed`` its regret as the fit of `growth` sees it, a little less
    than ``mean`` (both null with a single run).
    ``edge`` says that no smaller or no larger gap of the same direction was played, so that the worst may lie beyond.
    """
    if not is_two_gap(results):
        raise BadParameter('not every problem of the study is of family = "two-gap"; the hardest is sought among those')
    where = ("policy", "arms", "budget")
    means = results.summary(keys=(*where, "problem")).select(*where, "problem", "runs", "mean", "sem")
    largest = means.sort("mean", descending=True).group_by(*where, maintain_order=True).first()
    half = half_width(largest["sem"].fill_null(np.nan).to_numpy(), largest["runs"].to_numpy())
    largest = largest.with_columns(pl.Series("half", half).fill_nan(None))
    return (
        largest.join(_gaps(results), on="problem", how="left")
        .join(_crossed_table(results), on=where, how="left")
        .sort(pl.col("policy").cast(pl.Enum(results.policies)), "arms", "budget")
        .select(*where, "problem", "reward_gap", "cost_gap", "mean", "half", "crossed", "edge")
    )


def growth(results: Results, policy: str) -> Growth:
    """Least squares of ln(worst regret) = constant + a ln B + b ln K over all budgets B and numbers of arms K.

    The intervals are of a bootstrap over runs: in every problem the runs of each half are drawn again (a run with all
    its budgets, which are one game), the hardest problem is chosen again, the line fitted again. They cover the
    scatter of the games, not the grid: a gap between two that were played may be a little harder. Nor do they speak of
    other families or of larger B and K: these are local exponents, and the steps show whether they have settled. Cells
    at the edge of the gaps count like all others; ``at_edge`` says how many.
    """
    at_edge = int(hardest(results).filter(pl.col("policy") == policy)["edge"].sum())
    if not can_grow(results):
        raise BadParameter("growth needs two budgets, two numbers of arms and four runs; play more")
    played = _played(results, policy)
    arms, budgets = np.array(list(played), dtype=float), np.array(sorted(results.budgets))
    rng = np.random.default_rng(SEED)
    worst = _log(np.stack([_crossed(*_halves(games)) for games in played.values()]))
    again = _log(np.stack([_crossed(*_resampled(games, rng)) for games in played.values()], axis=1))
    fit, fits = _fit(worst, arms, budgets), _fit(again, arms, budgets)
    return Growth(
        policy=policy,
        constant=float(fit[0]),
        in_budget=_exponent(fit[1], fits[:, 1]),
        in_arms=_exponent(fit[2], fits[:, 2]),
        budget_steps=_steps(budgets, worst.mean(axis=0), again.mean(axis=1)),
        arms_steps=_steps(arms, worst.mean(axis=1), again.mean(axis=2)),
        cells=worst.size,
        at_edge=at_edge,
    )


def _gaps(results: Results) -> pl.DataFrame:
    """The gaps of every problem, and whether it is the first or last of those with its arms in its direction."""
    rows = [(problem["name"], problem["arms"], *problem["gaps"]) for problem in results.record["problems"]]
    frame = pl.DataFrame(rows, schema=["problem", "of_arms", "reward_gap", "cost_gap"], orient="row")
    size = pl.col("reward_gap") + pl.col("cost_gap")
    line = ["of_arms", (pl.col("reward_gap") / size).round(3)]
    return frame.with_columns(((size == size.min().over(line)) | (size == size.max().over(line))).alias("edge"))


def _played(results: Results, policy: str) -> dict[int, Array]:
    """The pseudo-regret of a policy by number of arms, as problem × run × budget."""
    rows = results.table.filter(pl.col("policy") == policy).sort("arms", "problem", "run", "budget")
    shape = (-1, results.record["runs"], len(results.budgets))
    return {
        int(part["arms"][0]): part["pseudo_regret"].to_numpy().reshape(shape)
        for part in rows.partition_by("arms", maintain_order=True)
    }


def _halves(games: Array) -> tuple[Array, Array]:
    """Means of every other run: problem × budget, twice."""
    return games[:, 0::2].mean(axis=1), games[:, 1::2].mean(axis=1)


def _resampled(games: Array, rng: np.random.Generator) -> tuple[Array, Array]:
    """`_halves` with the runs of each half drawn again, RESAMPLES times: sample × problem × budget, twice."""
    halves = []
    for half in (games[:, 0::2], games[:, 1::2]):
        runs = half.shape[1]
        drawn = [rng.multinomial(runs, np.full(runs, 1 / runs), RESAMPLES) @ problem / runs for problem in half]
        halves.append(np.stack(drawn, axis=1))
    return halves[0], halves[1]


def _crossed(first: Array, second: Array) -> Array:
    """The worst over problems (last axis but one), chosen by one half and measured by the other, and back."""

    def measured(chooser: Array, measure: Array) -> Array:
        chosen = chooser.argmax(axis=-2, keepdims=True)
        return np.asarray(np.take_along_axis(measure, chosen, axis=-2).squeeze(-2))

    return (measured(first, second) + measured(second, first)) / 2


def _crossed_table(results: Results) -> pl.DataFrame:
    rows = [
        (policy, arms, budget, worst)
        for policy in results.policies
        for arms, games in _played(results, policy).items()
        if games.shape[1] > 1
        for budget, worst in zip(sorted(results.budgets), _crossed(*_halves(games)).tolist(), strict=True)
    ]
    columns = {"policy": pl.String, "arms": pl.Int64, "budget": pl.Float64, "crossed": pl.Float64}
    return pl.DataFrame(rows, schema=columns, orient="row")


def _log(worst: Array) -> Array:
    """The logarithm, finite also where a tiny budget leaves no regret."""
    return np.asarray(np.log(np.maximum(worst, np.finfo(float).tiny)))


def _fit(worst: Array, arms: Array, budgets: Array) -> Array:
    """(constant, exponent of the budget, exponent of the arms) of arms × budgets, or of a stack of those."""
    k, b = (axis.ravel() for axis in np.meshgrid(np.log(arms), np.log(budgets), indexing="ij"))
    solve = np.linalg.pinv(np.column_stack([np.ones_like(k), b, k]))
    return np.asarray(worst.reshape(*worst.shape[:-2], -1) @ solve.T)


def _steps(places: Array, values: Array, again: Array) -> tuple[GrowthStep, ...]:
    widths = np.diff(np.log(places))
    slopes, slopes_again = np.diff(values) / widths, np.diff(again, axis=1) / widths
    return tuple(
        GrowthStep(float(places[place]), float(places[place + 1]), _exponent(slopes[place], slopes_again[:, place]))
        for place in range(len(widths))
    )


def _exponent(value: float, again: Array) -> Exponent:
    low, high = bootstrap_interval(again)
    return Exponent(float(value), float(low), float(high))
