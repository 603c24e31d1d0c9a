"""How bad can it get, whatever the problem is? The hardest problem of the two-gap family for each number of arms and
budget, and how its regret grows with both.

A policy's largest mean over many problems measured with noise is too large, and the more so the noisier the runs are:
with two arms more than with thirty, which would pass for slower growth in the number of arms. So growth is fitted to
the *crossed* regret: one half of the runs chooses the hardest problem, the other half measures it, and the other way
round.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import polars as pl

from budgetbandits.errors import BadParameter
from budgetbandits.experiments.results import Results
from budgetbandits.experiments.statistics import SEED
from budgetbandits.numerics.arrays import Array
from budgetbandits.numerics.intervals import half_width

RESAMPLES = 1_000


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
    """For each policy, number of arms and budget: the problem with the largest mean pseudo-regret.

    ``half`` is half of the mean's 95 % interval, ``crossed`` its regret as the fit of `growth` sees it, a little less
    than ``mean`` (both null with a single run).
    ``edge`` says that no smaller or no larger gap of the same direction was played, so that the worst may lie beyond.
    """
    if not is_two_gap(results):
        raise BadParameter('not every problem of the study is of family = "two-gap"; the hardest is sought among those')
    where = ("policy", "arms", "budget")
    means = results.summary(by=("policy", "arms", "budget", "problem")).select(*where, "problem", "runs", "mean", "sem")
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
    found = _log(np.stack([_crossed(*_halves(games)) for games in played.values()]))
    again = _log(np.stack([_crossed(*_resampled(games, rng)) for games in played.values()], axis=1))
    fit, fits = _fit(found, arms, budgets), _fit(again, arms, budgets)
    return Growth(
        policy=policy,
        constant=float(fit[0]),
        in_budget=_exponent(fit[1], fits[:, 1]),
        in_arms=_exponent(fit[2], fits[:, 2]),
        budget_steps=_steps(budgets, found.mean(axis=0), again.mean(axis=1)),
        arms_steps=_steps(arms, found.mean(axis=1), again.mean(axis=2)),
        cells=found.size,
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
    """By number of arms: pseudo-regret, problem × run × budget."""
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
    """Finite also where a tiny budget lets nobody go wrong."""
    return np.asarray(np.log(np.maximum(worst, np.finfo(float).tiny)))


def _fit(worst: Array, arms: Array, budgets: Array) -> Array:
    """(constant, exponent of the budget, exponent of the arms) of arms × budgets, or of a stack of those."""
    k, b = (axis.ravel() for axis in np.meshgrid(np.log(arms), np.log(budgets), indexing="ij"))
    solve = np.linalg.pinv(np.column_stack([np.ones_like(k), b, k]))
    return np.asarray(worst.reshape(*worst.shape[:-2], -1) @ solve.T)


def _steps(places: Array, found: Array, again: Array) -> tuple[GrowthStep, ...]:
    widths = np.diff(np.log(places))
    slopes, slopes_again = np.diff(found) / widths, np.diff(again, axis=1) / widths
    return tuple(
        GrowthStep(float(places[place]), float(places[place + 1]), _exponent(slopes[place], slopes_again[:, place]))
        for place in range(len(widths))
    )


def _exponent(value: float, again: Array) -> Exponent:
    low, high = np.quantile(again, [0.025, 0.975])
    return Exponent(float(value), float(low), float(high))
