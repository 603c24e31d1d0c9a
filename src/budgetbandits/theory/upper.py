"""Theorem 1 as numbers: a bound on the regret of Budgeted Thompson Sampling at a given budget, with no O(·) left.

The paper's chain, arm by arm, for any γ in (0, 1) and Lᵢ = 2 ln B / δᵢ(γ)²:

    E[Tᵢ] ≤ ⌈Lᵢ⌉ + 35/(δᵢ² μc_min) + Σ_k (E[1/pʳ] E[1/pᶜ] − 1),      Regret ≤ Σ μcᵢ Δᵢ E[Tᵢ]   (Lemma 2);

70 for 35, and 2ρ* more regret, unless outcomes are 0 or 1 and B is whole.

``chain="sharp"`` replaces the first two terms by what the same argument gives when nothing is rounded up
(docs/explanation/theory.md, "A sharper chain"): with q = exp(−δ²/2) and N = B/μc_min rounds (B + 1 under the same
condition),

    E[Tᵢ] ≤ min over whole L ≥ 1 of  L + 2 q^(L+1) N + 2 q^L/(1 − q)  + Σ_k (E[1/pʳ] E[1/pᶜ] − 1).

Every γ gives a true bound; one within a few percent of the best is found, arm by arm.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from budgetbandits.errors import BadParameter
from budgetbandits.problems.oracle import best_ratio, gaps, reward_bounds
from budgetbandits.problems.problem import Problem
from budgetbandits.theory.constants import (
    check_budget,
    check_gamma,
    check_independent,
    delta_gaps,
    epsilon_gaps,
    reference_arm,
    worse_arms,
)
from budgetbandits.theory.waiting import EXACT_PULLS, waiting

Chain = Literal["paper", "sharp"]
CHAINS: tuple[Chain, ...] = ("paper", "sharp")
"""The two ways to bound how often an arm is pulled: as in the paper, and without its rounding up."""

GRID = 2.0 ** (1.0 / 8.0)
"""Ratio of neighbouring values in the grid that is searched for ε. All arms use the same grid, so that they share the
sums; the minimum is flat."""

ROUGH_PULLS = 128
"""Terms summed exactly while the minimum is located, which takes a tenth of the time of all terms."""

TINY = 1e-290
"""Smallest δ²/2 for which the bound is a finite number."""

SMALLEST_SHARE = 2.0**-8
"""Smallest ε(γ) in the grid, as a share of ε(0)."""


@dataclass(frozen=True)
class ArmBound:
    """A bound on how often one arm is pulled, term by term."""

    arm: int
    gap: float
    gamma: float
    delta: float
    epsilon: float
    first_pulls: float
    """⌈L⌉: pulls after which the arm is known well enough."""
    lucky_samples: float
    """Pulls because the arm still looked better than it is, by δ."""
    waiting: float
    """Pulls while the best arm looked worse than it is, by ε."""
    remainder: float
    """The part of ``waiting`` that is a bound on the terms not summed."""
    cost_mean: float

    @property
    def pulls(self) -> float:
        """The bound on the expected number of pulls."""
        return self.first_pulls + self.lucky_samples + self.waiting

    @property
    def regret(self) -> float:
        """The arm's part in the bound."""
        return self.cost_mean * self.gap * self.pulls


@dataclass(frozen=True)
class UpperBound:
    """An upper bound on the regret, and each arm's part in it. Best arms have none."""

    budget: float
    chain: Chain
    arms: tuple[ArmBound, ...]
    overdraft: float
    """Regret of a last pull that costs more than is left: 2ρ*, or 0 where that cannot happen."""
    trivial: float
    """Regret that no policy exceeds: that of the worst arm for the whole budget, or all that could be earned."""

    @property
    def regret(self) -> float:
        """The bound: the parts of all arms and the overdraft."""
        return sum(arm.regret for arm in self.arms) + self.overdraft

    @property
    def says_something(self) -> bool:
        """Whether the bound is below the trivial one."""
        return self.regret < self.trivial


def upper_bound(problem: Problem, budget: float, gamma: float | None = None, chain: Chain = "paper") -> UpperBound:
    """The bound at one budget; ``gamma`` for all arms, or the best one for each.

    >>> bound = upper_bound(Problem.bernoulli([0.8, 0.4], [0.5, 0.5]), budget=1000)
    >>> arm = bound.arms[0]
    >>> round(bound.regret), round(arm.gamma, 2), round(arm.pulls), round(arm.waiting)
    (2937, 0.76, 7342, 1266)
    >>> round(upper_bound(Problem.bernoulli([0.8, 0.4], [0.5, 0.5]), budget=1000, chain="sharp").regret)
    478
    """
    return upper_bounds(problem, [budget], gamma, chain)[0]


def upper_bounds(
    problem: Problem,
    budgets: Sequence[float],
    gamma: float | None = None,
    chain: Chain = "paper",
    exact_pulls: int = EXACT_PULLS,
) -> list[UpperBound]:
    """`upper_bound` at several budgets, which share the sums that do not depend on the budget.

    With fewer ``exact_pulls`` the bounds are found faster and are a little larger, and as true.
    """
    check_independent(problem)
    if chain not in CHAINS:
        raise BadParameter(f"chain is {chain!r}; use {' or '.join(CHAINS)}")
    for budget in budgets:
        check_budget(budget)
    if gamma is not None:
        check_gamma(gamma)
    return [_at_budget(problem, budget, gamma, chain, exact_pulls) for budget in budgets]


def _at_budget(problem: Problem, budget: float, gamma: float | None, chain: Chain, exact_pulls: int) -> UpperBound:
    overdraws = not (problem.is_bernoulli and float(budget).is_integer())
    counts = _Counts(budget, float(problem.cost_means.min()), overdraws, chain)
    whole_delta, whole_epsilon = delta_gaps(problem, 1.0), epsilon_gaps(problem, 0.0)
    gap, cost_means = gaps(problem), problem.cost_means
    overdraft = 2.0 * best_ratio(problem) if overdraws else 0.0
    arms = []
    best = reference_arm(problem)
    means = float(problem.reward_means[best]), float(problem.cost_means[best])
    for arm in worse_arms(problem):
        delta, epsilon = float(whole_delta[arm]), float(whole_epsilon[arm])
        if gamma is None:
            chosen, below = _best_gamma(delta, epsilon, counts, means, exact_pulls)
        else:
            chosen, below = gamma, min((1.0 - gamma) * epsilon, means[0])  # ε(0) may exceed the mean by a last bit
        first, lucky = counts.pulls(chosen * delta)
        wait = waiting(*means, below, exact_pulls)
        arms.append(
            ArmBound(
                arm=int(arm), gap=float(gap[arm]), gamma=chosen, delta=chosen * delta, epsilon=below,
                first_pulls=first, lucky_samples=lucky, waiting=wait.total, remainder=wait.remainder,
                cost_mean=float(cost_means[arm]),
            )
        )  # fmt: skip
    return UpperBound(
        budget=float(budget),
        chain=chain,
        arms=tuple(arms),
        overdraft=overdraft,
        trivial=min(float(gap.max()) * (budget + overdraws) + overdraft, reward_bounds(problem, budget)[1]),
    )


def _best_gamma(
    delta: float, epsilon: float, counts: _Counts, means: tuple[float, float], exact_pulls: int
) -> tuple[float, float]:
    """The γ and ε(γ) of the smallest bound with ε on the grid, found by bisection: the bound has one valley in ε.

    With few terms summed the remainder makes small ε look worse than they are, so the last steps are taken with all.
    """
    # a place on the grid is a power of GRID, counted down from the first one below ε(0), where γ = 0
    top = math.ceil(math.log(epsilon) / math.log(GRID)) - 1
    bottom = top + math.floor(math.log(SMALLEST_SHARE) / math.log(GRID))

    def bound(place: int, terms: int = exact_pulls) -> float:
        return sum(counts.pulls((1.0 - GRID**place / epsilon) * delta)) + waiting(*means, GRID**place, terms).total

    low, high, rough = bottom, top, min(ROUGH_PULLS, exact_pulls)
    while low < high:
        middle = (low + high) // 2
        if bound(middle, rough) < bound(middle + 1, rough):
            high = middle
        else:
            low = middle + 1
    place = low
    while place > bottom and bound(place - 1) < bound(place):
        place -= 1
    while place < top and bound(place + 1) < bound(place):
        place += 1
    return 1.0 - GRID**place / epsilon, GRID**place


@dataclass(frozen=True)
class _Counts:
    """The first two terms of the chain as a function of δ."""

    budget: float
    cost_floor: float
    overdraws: bool
    chain: Chain

    def pulls(self, delta: float) -> tuple[float, float]:
        """The pulls until the arm is known well enough, and the pulls by lucky samples after that."""
        half_square = delta * delta / 2.0
        if half_square < TINY:
            return math.inf, math.inf
        log_rounds = math.log(self.budget) + math.log1p(self.overdraws / self.budget) - math.log(self.cost_floor)
        if self.chain == "paper":
            constant = 70.0 if self.overdraws else 35.0
            return _whole(math.log(self.budget) / half_square), constant / (2.0 * half_square) / self.cost_floor
        # q = exp(−δ²/2); luck(L) = c q^L, c = 2 q N + 2/(1 − q), so L + luck(L) is least where q^L = 1/(c δ²/2)
        log_constant = float(np.logaddexp(log_rounds - half_square, -math.log(-math.expm1(-half_square)))) + math.log(
            2.0
        )
        # above 1, since c δ²/2 is above 2 and δ below 1
        least = (log_constant + math.log(half_square)) / half_square
        first = min(
            (_whole(least) - 1.0, _whole(least)),
            key=lambda pulls: pulls + math.exp(log_constant - half_square * pulls),
        )
        return first, math.exp(log_constant - half_square * first)


def _whole(value: float) -> float:
    """The next whole number, as a float."""
    return float(math.ceil(value)) if value < 2.0**53 else value
