"""One prior for all arms, fitted to what was seen of them.

Before an arm is pulled, and for some pulls after that, its prior speaks for it. The uniform one is right where any mean
is as likely as another; where all arms pay 5 %, or every pull costs 1, the arms that were pulled tell better what to
expect of the others. The Beta prior of all mean rewards, and that of all mean costs, is the one on a grid under which
the outcomes so far are most likely, if it leads the uniform prior clearly: ``lead`` and `STEP` keep few arms, or arms
whose means are spread evenly, from being taken for more than they say. Outcomes between 0 and 1 count as shares of a
pull that gave 1; as they scatter less than 0 and 1 would, a pull tells more than one, and counts for more.

The prior is fitted when the number of pulls reaches a power of two: about twenty times in a game.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from budgetbandits.numerics.arrays import Array
from budgetbandits.numerics.compilation import compiled
from budgetbandits.policies.base import NOTHING_KNOWN, Knowledge, UnitChange
from budgetbandits.policies.index import MoneyPolicy
from budgetbandits.policies.statistics import Moments

SIZES, UNIFORM = 8, 3
"""The grid of each count: 2 to the powers from −3 to 4, of which the fourth is 1."""

STEP = 0.3
"""The gain of the logarithm of the likelihood that each step on the grid needs."""

MOST_ARMS = 100
"""Arms that are looked at, the first ones that were pulled; more would make the prior little better."""

SMALLEST_SCATTER = 0.02
"""Upper bound on the weight of one pull: 50 Bernoulli pulls."""


@compiled
def pull_weight(sums: Any, squares: Any, pulls: Any) -> float:
    """How many pulls of 0 and 1 tell as much as one pull of these arms: 1, or more where outcomes scatter less.

    Their variance, by the arms that were pulled twice or more, against that of 0 and 1 with the same means. Both are
    estimated without bias, so for outcomes of 0 and 1 the weight is 1.
    """
    scatter = bernoulli = total = 0.0
    seen = 0
    for arm in range(len(pulls)):
        if pulls[arm] >= 2:
            square = sums[arm] ** 2 / pulls[arm]
            scatter += squares[arm] - square
            bernoulli += sums[arm] - square
            total += pulls[arm]
            seen += 1
    if bernoulli <= 0.0:
        return 1.0
    variance = scatter / (total - seen)
    largest = (bernoulli + variance * seen) / total
    return 1.0 / min(max(variance / largest, SMALLEST_SCATTER), 1.0)


@compiled
def fitted_beta(sums: Any, squares: Any, pulls: Any, lead: float) -> tuple[float, float]:
    """The counts (a, b) of the Beta prior of the means of arms that were pulled. Can be compiled.

    ``lead`` is what the logarithm of the likelihood must gain before the uniform prior is given up.

    >>> few, many = np.array([1.0, 0.0]), np.full(10, 4.0)
    >>> fitted_beta(few, few, np.ones(2), 3.0)  # two arms tell next to nothing
    (1.0, 1.0)
    >>> fitted_beta(many, many, many, 3.0)  # ten arms of which every pull gave 1 do
    (8.0, 0.125)
    """
    hits, misses, totals = np.zeros(SIZES), np.zeros(SIZES), np.zeros((SIZES, SIZES))
    weight = pull_weight(sums, squares, pulls)
    for arm in range(len(pulls)):
        trials, paid = pulls[arm] * weight, sums[arm] * weight
        unpaid = max(trials - paid, 0.0)
        for row in range(SIZES):
            count = 2.0 ** (row - UNIFORM)
            hits[row] += math.lgamma(count + paid)
            misses[row] += math.lgamma(count + unpaid)
            for column in range(row + 1):
                totals[row, column] += math.lgamma(count + 2.0 ** (column - UNIFORM) + trials)
    uniform = hits[UNIFORM] + misses[UNIFORM] - totals[UNIFORM, UNIFORM]  # Γ(1)²/Γ(2) = 1
    best, prior = uniform + lead, (1.0, 1.0)
    for row in range(SIZES):
        for column in range(SIZES):
            good, bad = 2.0 ** (row - UNIFORM), 2.0 ** (column - UNIFORM)
            evidence = hits[row] + misses[column] - totals[max(row, column), min(row, column)]
            evidence -= len(pulls) * (math.lgamma(good) + math.lgamma(bad) - math.lgamma(good + bad))
            evidence -= STEP * (abs(row - UNIFORM) + abs(column - UNIFORM))
            if evidence > best:
                best, prior = evidence, (good, bad)
    return prior


@dataclass
class PriorMoments(Moments):
    """Sums that also give variances, and the prior that all arms have in common."""

    prior: Array = field(default_factory=lambda: np.ones((4, 0)))
    """Four counts, the same for all arms: rewards of 1 and of 0, costs of 1 and of 0."""
    positive = ("prior",)

    def fit(self, lead: float) -> None:
        """Fit the prior to the pulls so far."""
        seen = np.flatnonzero(self.pulls)[:MOST_ARMS]
        pulls = self.pulls[seen].astype(float)
        rewards = fitted_beta(self.reward[seen], self.reward_squared[seen], pulls, lead)
        costs = fitted_beta(self.cost[seen], self.cost_squared[seen], pulls, lead)
        self.prior = np.tile(np.array([*rewards, *costs])[:, None], len(self.pulls))


@dataclass(frozen=True)
class PriorPolicy(MoneyPolicy):
    """An index policy that looks at variances, at the money left, and at a prior fitted to all arms.

    lead  what the logarithm of the likelihood must gain before the uniform prior is given up
    """

    lead: float = 3.0  # type: ignore[misc] # a constant of other rules

    def __post_init__(self) -> None:
        self.positive(lead=self.lead)

    def start(self, arms: int, known: Knowledge = NOTHING_KNOWN) -> PriorMoments:
        return PriorMoments(**vars(super().start(arms, known)), prior=np.ones((4, arms)))

    def new_arm_state(self, state: Moments, known: Knowledge) -> PriorMoments:
        assert isinstance(state, PriorMoments)
        new = self.start(1, known)
        new.prior = state.prior[:, :1].copy()
        return new

    def observe(self, state: Moments, arm: int, reward: float, cost: float, rng: np.random.Generator) -> None:
        before = int(state.pulls.sum())
        super().observe(state, arm, reward, cost, rng)
        assert isinstance(state, PriorMoments)
        if before.bit_length() != (before + 1).bit_length():
            state.fit(self.lead)

    def add_history(self, state: Moments, arm: int, pulls: int, reward: float, cost: float) -> None:
        super().add_history(state, arm, pulls, reward, cost)
        assert isinstance(state, PriorMoments)
        state.fit(self.lead)

    def rescaled(self, state: Moments, units: UnitChange) -> Moments | None:
        super().rescaled(state, units)
        assert isinstance(state, PriorMoments)
        state.fit(self.lead)
        return state

    def prior_extras(self, state: Moments) -> tuple[Any, ...]:
        """The first seven of the extras: variances, the money left, and the four counts of the prior."""
        assert isinstance(state, PriorMoments)
        return (*self.money_extras(state), *state.prior[:, 0])
