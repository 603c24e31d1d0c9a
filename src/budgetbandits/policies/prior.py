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
from budgetbandits.policies.base import NOTHING_KNOWN, Knowledge
from budgetbandits.policies.index import MoneyPolicy
from budgetbandits.policies.statistics import Moments

SIZES, UNIFORM = 8, 3
"""The grid of each count: 2 to the powers from −3 to 4, of which the fourth is 1."""

STEP = 0.3
"""What the logarithm of the likelihood must gain for each step on the grid."""

MOST_ARMS = 100
"""Arms that are looked at, the first ones that were pulled; more would make the prior little better."""

SMALLEST_SCATTER = 0.02
"""No pull counts for more than fifty of 0 and 1."""


def pull_weight(sums: Any, squares: Any, arms: int, pulls: Any, unit: float) -> float:
    """How many pulls of 0 and 1 tell as much as one pull of these arms: 1, or more where outcomes scatter less."""
    scatter = largest = 0.0
    for arm in range(arms):
        square = (sums[arm] * unit) ** 2 / max(float(pulls[arm]), 1.0)
        scatter += squares[arm] * unit * unit - square
        largest += sums[arm] * unit - square
    return 1.0 / min(max(scatter / largest, SMALLEST_SCATTER), 1.0) if largest > 0.0 else 1.0


def fitted_beta(sums: Any, squares: Any, arms: int, pulls: Any, unit: float, lead: float) -> tuple[float, float]:
    """The counts (a, b) of the Beta prior of ``arms`` means, from sums and squares in a unit. Can be compiled.

    ``lead`` is what the logarithm of the likelihood must gain before the uniform prior is given up.

    >>> one, two = np.array([1.0, 0.0]), np.full(10, 4.0)
    >>> fitted_beta(one, one, 2, np.array([1, 1]), 1.0, 3.0)  # two arms tell next to nothing
    (1.0, 1.0)
    >>> fitted_beta(two, two, 10, np.full(10, 4), 1.0, 3.0)  # ten arms of which every pull gave 1 do
    (8.0, 0.125)
    """
    hits, misses, totals = np.zeros(SIZES), np.zeros(SIZES), np.zeros((SIZES, SIZES))
    weight = pull_weight(sums, squares, arms, pulls, unit)
    seen = 0
    for arm in range(arms):
        if pulls[arm] == 0:
            continue
        made, paid = float(pulls[arm]) * weight, sums[arm] * unit * weight
        unpaid = max(made - paid, 0.0)
        for row in range(SIZES):
            count = 2.0 ** (row - UNIFORM)
            hits[row] += math.lgamma(count + paid)
            misses[row] += math.lgamma(count + unpaid)
            for column in range(row + 1):
                totals[row, column] += math.lgamma(count + 2.0 ** (column - UNIFORM) + made)
        seen += 1
        if seen == MOST_ARMS:
            break
    uniform = hits[UNIFORM] + misses[UNIFORM] - totals[UNIFORM, UNIFORM]  # Γ(1)²/Γ(2) = 1
    best, found = uniform + lead, (1.0, 1.0)
    for row in range(SIZES):
        for column in range(SIZES):
            good, bad = 2.0 ** (row - UNIFORM), 2.0 ** (column - UNIFORM)
            evidence = hits[row] + misses[column] - totals[max(row, column), min(row, column)]
            evidence -= seen * (math.lgamma(good) + math.lgamma(bad) - math.lgamma(good + bad))
            evidence -= STEP * (abs(row - UNIFORM) + abs(column - UNIFORM))
            if evidence > best:
                best, found = evidence, (good, bad)
    return found


@dataclass
class PriorMoments(Moments):
    """Sums that also give variances, and the prior that all arms have in common."""

    prior: Array = field(default_factory=lambda: np.ones((4, 0)))
    """Four counts, the same for all arms: rewards of 1 and of 0, costs of 1 and of 0."""
    positive = ("prior",)

    def fit(self, lead: float) -> None:
        """Fit the prior to the pulls so far."""
        rest = len(self.pulls), self.pulls, 1.0, lead
        rewards = fitted_beta(self.reward, self.reward_squared, *rest)
        costs = fitted_beta(self.cost, self.cost_squared, *rest)
        self.prior = np.tile(np.array([*rewards, *costs])[:, None], len(self.pulls))


@dataclass(frozen=True)
class PriorPolicy(MoneyPolicy):
    """An index policy that looks at variances, at the money left, and at a prior fitted to all arms.

    ``lead`` is what the logarithm of the likelihood must gain before the uniform prior is given up.
    """

    lead: float = 3.0

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
        self._refit(state, before)

    def add_history(self, state: Moments, arm: int, pulls: int, reward: float, cost: float) -> None:
        before = int(state.pulls.sum())
        super().add_history(state, arm, pulls, reward, cost)
        self._refit(state, before)

    def _refit(self, state: Moments, before: int) -> None:
        assert isinstance(state, PriorMoments)
        if before.bit_length() != int(state.pulls.sum()).bit_length():
            state.fit(self.lead)

    def prior_extras(self, state: Moments) -> tuple[Any, ...]:
        """The first seven of the extras: variances, the money left, and the four counts of the prior."""
        assert isinstance(state, PriorMoments)
        return (*self.money_extras(state), *state.prior[:, 0])
