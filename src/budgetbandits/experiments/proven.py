"""What is proven of BTS on the problems of a study, beside what was measured, and the paper's two claims about it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl

from budgetbandits.experiments.claims import Claim, claim
from budgetbandits.experiments.results import BTS, Results
from budgetbandits.problem import Problem
from budgetbandits.theory import (
    bts_constant,
    lower_constant,
    ucb_bv1_constant,
    ucb_bv2_constant,
    upper_bounds,
)

EXACT_PULLS = 128
"""Of the bounds' sums: a little larger bounds in a tenth of the time."""

SAMPLE = 10
"""Random problems of each group on which Theorem 1 is evaluated."""


@dataclass(frozen=True)
class PanelBounds:
    """One problem's bounds on the regret of BTS at each budget."""

    group: str
    budgets: tuple[float, ...]
    paper: tuple[float, ...]
    """Theorem 1, the paper's own chain."""
    sharp: tuple[float, ...]
    """The sharper chain."""
    trivial: tuple[float, ...]
    """What no policy exceeds."""
    lower: float
    """The growth per ln B that no policy can stay below in the long run."""


def panel_bounds(results: Results) -> list[PanelBounds]:
    """The bounds for the first problem of each group."""
    found = []
    for group in results.groups:
        problem = results.problems(group, 1)[0][1]
        budgets = [budget for budget in results.budgets if budget >= 1.0]
        paper, sharp = (
            upper_bounds(problem, budgets, chain=chain, exact_pulls=EXACT_PULLS) for chain in ("paper", "sharp")
        )
        found.append(
            PanelBounds(
                group,
                tuple(budgets),
                tuple(bound.regret for bound in paper),
                tuple(bound.regret for bound in sharp),
                tuple(bound.trivial for bound in sharp),
                lower_constant(problem),
            )
        )
    return found


def theorem_one(calibrated: Results, ensemble: Results, panels: Sequence[PanelBounds]) -> Claim:
    """Theorem 1: measured regret below the bound. The sharper chain is below the paper's, so it is the one compared."""
    measured, holds = [], []
    summary = calibrated.summary().filter(pl.col("policy") == BTS)
    for panel in panels:
        rows = summary.filter(pl.col("group") == panel.group).sort("budget")
        mean, most = rows["mean"].to_numpy(), rows["mean"].to_numpy() + 1.96 * rows["sem"].to_numpy()
        holds.append(bool((most <= np.array(panel.sharp)).all()))
        useful = [
            b for b, sharp, trivial in zip(panel.budgets, panel.sharp, panel.trivial, strict=True) if sharp < trivial
        ]
        since = f"below the trivial bound from B = {useful[0]:,.0f} on" if useful else "nowhere below the trivial bound"
        measured.append(
            f"{panel.group}: measured {mean[-1]:,.0f} at B = {panel.budgets[-1]:,.0f}; bound {panel.sharp[-1]:,.0f} "
            f"(by the paper's own chain {panel.paper[-1]:,.0f}, no policy exceeds {panel.trivial[-1]:,.0f}), {since}"
        )
    largest = ensemble.largest()
    means = ensemble.summary().filter((pl.col("policy") == BTS) & (pl.col("budget") == largest))
    regret = dict(zip(means["problem"], means["mean"] + 1.96 * means["sem"], strict=True))
    below = []
    for group in ensemble.groups:
        for record, problem in ensemble.problems(group, SAMPLE):
            (bound,) = upper_bounds(problem, [largest], chain="sharp", exact_pulls=EXACT_PULLS)
            below.append(regret[record["name"]] <= bound.regret)
    return claim(
        "The regret of BTS is at most Theorem 1's bound at every budget.",
        "At each budget of a panel the mean and 1.96 standard errors lie below the bound, with every term evaluated, "
        "γ optimised for each arm, and the sharper chain (so below the paper's as well). Where the bound is above the "
        "trivial one it says nothing.",
        measured,
        holds,
        np.array(below),
        f"random problems at B = {largest:,.0f}",
    )


def remark_one(calibrated: Results, ensemble: Results) -> Claim:
    """Remark 1: the constant before ln B of BTS is smaller than those of UCB-BV1 and UCB-BV2."""
    measured, holds = [], []
    for group in calibrated.groups:
        ours, first, second, lower = _constants(calibrated.problems(group, 1)[0][1])
        measured.append(
            f"{group}: BTS {ours:,.0f} ln B, UCB-BV1 {first:,.0f}, UCB-BV2 {second:,.0f}; no policy below {lower:,.0f}"
        )
        holds.append(ours < min(first, second))
    everywhere = []
    for _, problem in ensemble.problems():
        ours, first, second, _lower = _constants(problem)
        everywhere.append(ours < min(first, second))
    return claim(
        "The constant before ln B in the bound of BTS is smaller than in those of UCB-BV1 and UCB-BV2 (Remark 1).",
        "At γ = 1/√2, all three counted by Lemma 2, λ the true smallest mean cost. These are constants of proofs, not "
        "of what the policies lose.",
        measured,
        holds,
        np.array(everywhere),
        "random problems",
    )


def _constants(problem: Problem) -> tuple[float, float, float, float]:
    return bts_constant(problem), ucb_bv1_constant(problem), ucb_bv2_constant(problem), lower_constant(problem)
