"""The sums that `bts-paced` keeps of each arm and segment, and the posteriors that follow from them.

Engines compile the functions for single numbers.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np

from budgetbandits.errors import BadState
from budgetbandits.numerics.arrays import Array, trial
from budgetbandits.numerics.compilation import compiled
from budgetbandits.policies.base import UnitChange
from budgetbandits.policies.paced.pooling import SegmentPrior
from budgetbandits.policies.planning import PlanState

PAID, COUNT, REWARD, COST, REWARD_SQUARED, COST_SQUARED, PRICED, RELATIVE, RELATIVE_SQUARED = range(9)
"""The rows of `PacedState.sums`: money paid; outcomes, rewards and costs; costs divided by twice their estimate."""

SMALLEST_COST = 1e-12
"""A drawn cost is never 0; rounding might make it so."""

SMALLEST_VARIANCE = 1e-9
"""The smallest variance, as a share of the largest with that mean: the outcomes of an arm may all be alike."""

SQUARES = np.array([1.0, 0.625])[:, None, None]
"""The sums of the squares of the two outcomes that rewards and costs begin with: 0 and 1; ¼ and ¾."""

TINY_COST = 1e-200
"""Negligible next to any cost."""

JITTER, WIDEST_SPREAD = 0.1, 1.0
"""Standard deviations of the logarithm of estimates. They are varied by the first, so that a request whose estimates
are like all others' is answered by two arms in turn; the second is the most that they are taken to vary."""


@compiled
def beta_parameters(count: Any, total: Any, squares: Any, weight: Any, mean: Any, square: Any) -> tuple[Any, Any]:
    """The Beta law of a mean, from the number, the sum and the squares of outcomes, and ``weight`` others with this
    mean and mean square. Numbers or arrays; engines compile it for numbers."""
    n = count + weight
    middle = (total + weight * mean) / n
    most = middle * (1.0 - middle)
    variance = np.maximum((squares + weight * square) / n - middle * middle, SMALLEST_VARIANCE * most)
    kappa = n * most / variance
    return kappa * middle, kappa * (1.0 - middle)


@compiled
def spend_weighted_cost(total: Any, squares: Any, otherwise: Any = 1.0) -> Any:
    """The mean cost weighted by spend, Σc²/Σc, from the sum and the squares of costs; ``otherwise`` if none was
    spent. Numbers or arrays, as below."""
    return (squares + TINY_COST * otherwise) / (total + TINY_COST)


@compiled
def prior_cost_scale(total: Any, squares: Any, common: Any) -> Any:
    """The size of an arm's first two costs, which are ¼ and ¾ of it, from the sum and the squares of its costs, and the
    spend-weighted cost of all arms. It is 1 for costs 0 and 1."""
    return np.minimum(1.0, 2.0 * spend_weighted_cost(total, squares, common))


def gamma_parameters(count: Array, total: Array, squares: Array, prior: SegmentPrior) -> tuple[Array, Array]:
    """The shape and the scale of the Gamma law of a mean without an upper end, from the same."""
    n = count + prior.weight
    middle = (total + prior.weight * prior.mean) / n
    variance = (squares + prior.weight * prior.square) / n - middle * middle
    shape = n / np.maximum(variance / (middle * middle), SMALLEST_VARIANCE)
    return shape, middle / shape


@compiled
def add_outcome(sums: Any, reward: float, cost: float, rng: np.random.Generator, trials: float) -> None:
    """Add one outcome to the first six sums of an arm. Engines compile it, too."""
    sums[PAID] += cost
    if trials > 0.0:
        reward, cost = trial(reward, rng), trial(cost, rng)
    sums[COUNT] += 1.0
    sums[REWARD] += reward
    sums[COST] += cost
    sums[REWARD_SQUARED] += reward * reward
    sums[COST_SQUARED] += cost * cost


@dataclass
class PacedState(PlanState):
    """The sums of outcomes of all arms, and the requests answered with this budget.

    sums        sums of outcomes as (row, segment, arm)
    answered    how many requests of each segment were answered with this budget
    """

    sums: Array = field(default_factory=lambda: np.zeros((9, 1, 0)))
    answered: list[int] = field(default_factory=lambda: [0])

    @property
    def segments(self) -> int:
        """The number of segments."""
        return int(self.sums.shape[1])

    @property
    def paid(self) -> float:
        return float((self.sums[PAID] * self.scales).sum())

    def count(self, segment: int) -> None:
        """One more request of this segment is answered."""
        self.answered = [number + (place == segment) for place, number in enumerate(self.answered)]

    def arm_sums(self, arm: int, segment: int | None = None) -> tuple[float, float, float]:
        """The sums in the segment if it has outcomes of the arm, else in all. Forgotten outcomes do not count."""
        sums = self.sums[[COUNT, REWARD, COST], :, arm]
        local = segment is not None and sums[0, segment] > 0.0
        count, reward, cost = (sums[:, segment] if local else sums.sum(axis=1)).tolist()
        return count, reward, cost

    def typical_prices(self) -> tuple[Array, float]:
        """The mean estimate of each arm, NaN if there is none, and how much estimates vary from request to request: the
        standard deviation of their logarithm, with `JITTER`."""
        count, total, squares, _ = self.estimate_sums
        seen = count > 0.0
        mean = np.where(seen, total / np.where(seen, count, 1.0), np.nan)
        if not seen.any():
            return mean, JITTER
        n, total, squares = count[seen], total[seen], squares[seen]
        varied = float(np.average(np.maximum(n * squares / (total * total) - 1.0, 0.0), weights=n))
        return mean, math.hypot(min(math.sqrt(math.log1p(varied)), WIDEST_SPREAD), JITTER)

    def widen(self, segments: int) -> None:
        """Make room for this many segments."""
        if segments > self.segments:
            more = np.zeros((len(self.sums), segments - self.segments, len(self.pulls)))
            self.sums = np.concatenate([self.sums, more], axis=1)
            self.answered = self.answered + [0] * (self.segments - len(self.answered))

    def rescale(self, units: UnitChange, trials: bool) -> None:
        """Write the sums in other units; outcomes of ``trials`` are 0 or 1 in any."""
        sums = self.sums.copy()
        sums[PAID] *= units.costs  # all of it, since it is money
        for total, squares, factor in ((REWARD, REWARD_SQUARED, units.reward), (COST, COST_SQUARED, units.costs)):
            sums[total] = np.minimum(sums[total] * factor, sums[COUNT])
            sums[squares] = sums[total] if trials else np.minimum(sums[squares] * factor**2, sums[total])
        self.sums = sums
        self.rescale_estimates(units.money)

    def filled(self, values: Mapping[str, Any]) -> Self:
        try:
            self.widen(np.shape(values["sums"])[1])
        except (KeyError, IndexError, ValueError):
            raise BadState("'sums' has no segments; the saved state is damaged") from None
        super().filled(values)
        if len(self.answered) != self.segments or not all(isinstance(n, int) and n >= 0 for n in self.answered):
            raise BadState("'answered' has no number of requests for each segment; the saved state is damaged")
        return self
