"""The paper's simulations, what it proves about them, and the verdict on each claim.

Two studies: *calibrated*, the four panels at 500 runs on a problem that agrees with the paper's numbers
(`calibration`), and *ensemble*, a hundred random problems of each kind at fewer runs. Every claim is measured on both.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import joblib
import numpy as np
import polars as pl

from budgetbandits.errors import StudyError
from budgetbandits.experiments.paper import observations
from budgetbandits.experiments.paper.claims import Claim, ComparisonCounts, count_comparisons
from budgetbandits.experiments.plan import Experiment
from budgetbandits.experiments.results import BTS, Results
from budgetbandits.experiments.runner import ProgressCallback, Workers, run
from budgetbandits.numerics.arrays import AnyArray
from budgetbandits.problems.problem import Problem
from budgetbandits.theory import bts_constant, lower_constant, ucb_bv1_constant, ucb_bv2_constant, upper_bounds
from budgetbandits.theory.upper import CHAINS, Chain

# --- bounds and the claims about them ---------------------------------------------------------------------------------


EXACT_PULLS = 128
"""Terms of the bounds' sums that are exact: bounds are a little larger than with all, in a tenth of the time."""

SAMPLE = 10
"""Number of random problems of each group on which Theorem 1 is evaluated."""


@dataclass(frozen=True)
class Bounds:
    """One problem's bounds on the regret of BTS at each budget."""

    group: str
    problem: str
    budgets: tuple[float, ...]
    upper: dict[Chain, tuple[float, ...]]
    """Theorem 1 by each chain of inequalities."""
    trivial: tuple[float, ...]
    """A regret that no policy exceeds: a bound above it says nothing."""
    lower: float
    """The growth per ln B that no policy can stay below in the long run."""


def evaluate_bounds(results: Results, count: int) -> Iterable[Bounds]:
    """The bounds for the first problems of each group, evaluated by joblib's processes while the caller goes on."""
    budgets = tuple(budget for budget in results.budgets if budget >= 1.0)
    problems = [
        (group, record["name"], problem)
        for group in results.groups
        for record, problem in results.problems(group, count)
    ]
    all_bounds: Iterable[Bounds] = joblib.Parallel(return_as="generator")(
        joblib.delayed(_bounds_of)(*problem, budgets) for problem in problems
    )
    return all_bounds


def _bounds_of(group: str, name: str, problem: Problem, budgets: tuple[float, ...]) -> Bounds:
    bounds_by_chain = {chain: upper_bounds(problem, budgets, chain=chain, exact_pulls=EXACT_PULLS) for chain in CHAINS}
    return Bounds(
        group,
        name,
        budgets,
        {chain: tuple(bound.regret for bound in bounds) for chain, bounds in bounds_by_chain.items()},
        tuple(bound.trivial for bound in bounds_by_chain["paper"]),
        lower_constant(problem),
    )


def theorem_one(chain: Chain, studies: tuple[Results, Results], evaluated: tuple[list[Bounds], list[Bounds]]) -> Claim:
    """Theorem 1: measured regret below the bound. Only where the bound is below the trivial one could it be above."""
    on_panels, on_random = (
        [_compared(bounds, chain, results) for bounds in of] for results, of in zip(studies, evaluated, strict=True)
    )
    says = {
        "paper": "The regret of BTS is at most Theorem 1's bound, by the paper's own chain of inequalities.",
        "sharp": "The regret of BTS is at most Theorem 1's bound with a sharper chain (ours, not the paper's).",
    }
    return Claim(
        says[chain],
        "At a budget the mean and 1.96 standard errors lie below the bound, with every term evaluated and γ optimised "
        "for each arm. A budget counts only if the bound is below what no policy exceeds; elsewhere it says nothing.",
        tuple(_nearest(bounds, chain, studies[0]) for bounds in evaluated[0]),
        count_comparisons(*np.concatenate(on_panels, axis=1)),
        count_comparisons(*np.concatenate(on_random, axis=1)),
        f"budgets of {len(on_random)} random problems",
    )


def _compared(bounds: Bounds, chain: Chain, results: Results) -> AnyArray:
    """Three rows, a column for each budget: surely below the bound, surely above it, could be above it."""
    mean, error = _measured(bounds, results)
    upper = np.array(bounds.upper[chain])
    return np.array([mean + 1.96 * error <= upper, mean - 1.96 * error > upper, upper < np.array(bounds.trivial)])


def _measured(bounds: Bounds, results: Results) -> tuple[AnyArray, AnyArray]:
    """Mean pseudo-regret of BTS and its standard error, at each budget; infinite with a single run."""
    rows = results.table.filter((pl.col("policy") == BTS) & (pl.col("problem") == bounds.problem))
    summary = rows.group_by("budget").agg(
        pl.col("pseudo_regret").mean().alias("mean"),
        (pl.col("pseudo_regret").std() / pl.len().sqrt()).fill_null(math.inf).alias("sem"),
    )
    chosen = summary.filter(pl.col("budget").is_in(bounds.budgets)).sort("budget")
    return chosen["mean"].to_numpy(), chosen["sem"].to_numpy()


def _nearest(bounds: Bounds, chain: Chain, results: Results) -> str:
    """The budget at which the bound is the smallest share of the trivial one."""
    upper, trivial = np.array(bounds.upper[chain]), np.array(bounds.trivial)
    place = int((upper / trivial).argmin())
    useful = int((upper < trivial).sum())
    where = f"below the trivial bound at {useful} of {len(upper)} budgets"
    return (
        f"{bounds.group}: {where}. Nearest at B = {bounds.budgets[place]:,.0f}: measured "
        f"{_measured(bounds, results)[0][place]:,.0f}, bound {upper[place]:,.0f}, "
        f"no policy exceeds {trivial[place]:,.0f}"
    )


def remark_one(calibrated: Results) -> Claim:
    """Remark 1: the constant before ln B of BTS is smaller than those of UCB-BV1 and UCB-BV2."""
    panels = [calibrated.problems(group, 1)[0][1] for group in calibrated.groups]
    constants = [
        [constant(panel) for constant in (bts_constant, ucb_bv1_constant, ucb_bv2_constant)] for panel in panels
    ]
    wrong = np.array([ours >= min(first, second) for ours, first, second in constants])
    return Claim(
        "At γ = 1/√2 the constant before ln B in the bound of BTS is smaller than in those of UCB-BV1 and UCB-BV2 "
        "(Remark 1).",
        "All three counted by Lemma 2, λ the true smallest mean cost. These are constants of proofs, computed and not "
        "measured, and no policy's regret. The manual proves the remark for every problem, so it could not fail.",
        tuple(
            f"{group}: BTS {ours:,.0f} ln B, UCB-BV1 {first:,.0f}, UCB-BV2 {second:,.0f}; in the long run no policy's "
            f"regret grows by less than {lower_constant(problem):,.0f} ln B"
            for group, problem, (ours, first, second) in zip(calibrated.groups, panels, constants, strict=True)
        ),
        count_comparisons(~wrong, wrong, could_fail=wrong),
        ComparisonCounts(),
        "random problems",
        proven=True,
    )


# --- both studies -----------------------------------------------------------------------------------------------------


CALIBRATED, ENSEMBLE = "calibrated", "ensemble"


@dataclass(frozen=True)
class Findings:
    """Both studies, and what follows from them; each is worked out once, when it is asked for."""

    calibrated: Results
    ensemble: Results

    @cached_property
    def bounds(self) -> list[Bounds]:
        """The bounds on the regret of BTS on each of the four panels."""
        return list(evaluate_bounds(self.calibrated, count=1))

    @cached_property
    def claims(self) -> list[Claim]:
        """The paper's claims about its simulations, in its order, and those that it proves."""
        both = self.calibrated, self.ensemble
        on_panels, on_random = self.bounds, evaluate_bounds(self.ensemble, count=SAMPLE)
        scatter = observations.Spreads.of(self.calibrated), observations.Spreads.of(self.ensemble)
        observed = [
            observations.lowest(*both),
            observations.much_better(*both),
            observations.small_spread(*scatter),
            observations.more_arms(*both),
            observations.epsilon_first_scatters(*scatter),
            observations.steadier_than_epsilon_first(*scatter),
            observations.logarithmic(*both),
        ]
        evaluated = on_panels, list(on_random)
        return [
            *observed,
            *(theorem_one(chain, both, evaluated) for chain in CHAINS),
            remark_one(self.calibrated),
        ]

    @property
    def is_full(self) -> bool:
        """Whether these are the studies as shipped, and not a quick look."""
        studies = {CALIBRATED: self.calibrated, ENSEMBLE: self.ensemble}
        return all(
            studies[name].record["runs"] >= whole.runs
            and studies[name].budgets == list(whole.budgets)
            and len(studies[name].record["problems"]) == len(whole.problems)
            for name, whole in experiments().items()
        )


def experiments(runs: int | None = None, quick: bool = False) -> dict[str, Experiment]:
    """The two studies; ``quick`` is for a look at the machinery, not at the paper."""
    calibrated, ensemble = Experiment.load_shipped("paper"), Experiment.load_shipped("uniform-ensemble")
    if quick:
        few = [problem for place, problem in enumerate(ensemble.problems) if place % 100 < 4]
        ensemble = ensemble.changed(problems=tuple(few), runs=4)
        calibrated = calibrated.changed(runs=20, budgets=tuple(b for b in calibrated.budgets if b <= 10_000))
    if runs is not None:
        calibrated = calibrated.changed(runs=runs)
    return {CALIBRATED: calibrated, ENSEMBLE: ensemble}


def reproduce(
    out: str | Path,
    runs: int | None = None,
    quick: bool = False,
    workers: Workers | None = None,
    progress: ProgressCallback | None = None,
    command: str = "",
) -> Findings:
    """Run both studies into ``out``, as far as they are not there already."""
    for name, experiment in experiments(runs, quick).items():
        run(experiment, Path(out) / name, workers, progress, command)
    return load(out)


def load(out: str | Path) -> Findings:
    """The findings of a folder that holds the paper's two studies."""
    try:
        return Findings(Results.load(Path(out) / CALIBRATED), Results.load(Path(out) / ENSEMBLE))
    except StudyError as error:
        raise StudyError(f"{error} (for the paper's two studies: budgetbandits paper --out {out})") from None


def is_paper(folder: str | Path) -> bool:
    """Whether a folder holds the two studies of the paper."""
    return (Path(folder) / CALIBRATED / "study.json").exists()
