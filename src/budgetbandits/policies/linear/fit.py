"""The fit of `bts-linear` to what it has seen: the regressions of all arms, and the laws of their mean costs.

An outcome changes the sums of its arm alone. So what follows from the sums of one arm is kept with the state, and found
again for those arms whose sums have changed; the rest, which is what arms share, is found for each choice.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from budgetbandits.errors import BadState
from budgetbandits.numerics.arrays import Arms, Array
from budgetbandits.numerics.regression import LEVEL_WEIGHT, ArmPosteriors, Regressions, arm_posteriors, joined
from budgetbandits.policies.linear.state import (
    COST,
    COST_SQUARED,
    LOG_COST,
    LOG_SQUARED,
    REWARD,
    REWARD_SQUARED,
    ColumnMoments,
    LinearState,
    Standard,
)
from budgetbandits.policies.paced.statistics import (
    SQUARES,
    beta_parameters,
    prior_cost_scale,
    spend_weighted_cost,
)

FEWEST_FOR_TWO, CLOSE = 2.5, 1e-6
"""More outcomes than that are needed to know two values, and how near the kurtosis has to be to that of two."""

FIRST_MEAN, FIRST_APART = 0.5, 0.5
"""The two rewards that a level begins with are 0 and 1; the two logarithms of costs are as far from their mean."""


class TwoPointLaws(NamedTuple):
    """The laws of the features that have had two values in what an arm has answered, as (arm, slope): both values less
    the mean, and the share of the higher one. For other features all three are 0."""

    low: Array
    high: Array
    share: Array

    @classmethod
    def by_moments(cls, moments: ColumnMoments, count: Array) -> TwoPointLaws:
        """The laws that have these moments of columns for each arm, as (column, arm), and this number of outcomes.

        No law has a kurtosis below its squared skewness and 1, and those of two values alone have just that.
        """
        _, variance, third, fourth = moments
        varies = (variance > 0.0) & (count > FEWEST_FOR_TWO)
        variance = np.where(varies, variance, 1.0)
        deviation = np.sqrt(variance)
        skewness, kurtosis = third / variance / deviation, fourth / variance / variance
        two = varies & (np.abs(kurtosis - skewness * skewness - 1.0) < CLOSE * kurtosis)
        half = np.sqrt(skewness * skewness + 4.0)
        low, high = 0.5 * (skewness - half) * deviation, 0.5 * (skewness + half) * deviation
        return cls(*(np.where(two, part, 0.0)[1:].T for part in (low, high, -low / (high - low))))

    def of(self, arms: Arms) -> TwoPointLaws:
        """The laws of these arms."""
        return TwoPointLaws(*(part[arms] for part in self))

    def excess(self, slopes: Array) -> Array:
        """How far ln E exp(slope · feature) is above what it is for normal features with the same variance, in sum over
        the features; slopes are (draw, arm, slope)."""
        if not self.share.any():
            return np.zeros(slopes.shape[:-1])
        low, high = self.low * slopes, self.high * slopes
        top = np.maximum(low, high)
        exact = top + np.log((1.0 - self.share) * np.exp(low - top) + self.share * np.exp(high - top))
        normal = -0.5 * low * high  # for the variance of two values is −low × high
        return np.asarray((exact - normal).sum(axis=-1))


class Fit(NamedTuple):
    """The fit to a state, until it learns: arrays are those that are kept with it.

    shapes     the parameters of the Beta of each arm's mean cost
    rows       sums of products of the standardised rows that it was paid for and of two typical ones, as (arm, column,
               column)
    scales     what a cost of 1 is for each arm
    two_point  the laws of standardised features that have two values
    """

    standard: Standard
    regressions: Regressions
    shapes: tuple[Array, Array]
    rows: Array
    scales: Array
    two_point: TwoPointLaws

    @property
    def mean_cost(self) -> Array:
        """The mean of the mean cost of each arm, in units of its scale."""
        a, b = self.shapes
        return a / (a + b)


class ArmFits:
    """The fits of each arm to its own sums."""

    def __init__(self, standard: Standard, arms: int, arm_weight: float) -> None:
        columns = len(standard.mean)
        slopes, of_arms = columns - 1, (2, arms)
        self.arm_weight = arm_weight
        self.rows = np.empty((arms, columns, columns))
        self.posteriors = ArmPosteriors(
            np.empty((*of_arms, columns, columns)), np.empty((*of_arms, columns, slopes)),
            np.empty((*of_arms, slopes * slopes)), np.empty((*of_arms, columns)), np.empty(of_arms), np.empty(of_arms),
        )  # fmt: skip
        self.two_point = TwoPointLaws(*np.zeros((3, arms, slopes)))
        self._standard = standard
        self._transform = standard.transform
        self._sums = np.full((11, arms), np.nan)
        """Some sums of each arm, as they were when the rest was found: no outcome leaves them all as they are."""

    def fits(self, standard: Standard, arms: int, arm_weight: float) -> bool:
        """Whether it is for rows standardised so, and this many arms."""
        same = standard is self._standard or all(map(np.array_equal, standard, self._standard))
        return same and len(self.rows) == arms and self.arm_weight == arm_weight

    def update(self, state: LinearState) -> None:
        """Find again what follows from the sums of those arms that have changed."""
        count = state.counts
        logs = state.responses[LOG_COST, 0] + state.past[2]
        level = np.full(len(count), logs.sum() / max(count.sum(), 1.0))
        np.divide(logs, count, out=level, where=count > 0.0)
        sums = np.concatenate([state.responses[:, 0], state.totals, state.past, level[None]])
        changed = (sums != self._sums).any(axis=0).nonzero()[0]
        if len(changed):
            self._find(state, level, changed)
            self._sums = sums

    def _find(self, state: LinearState, level: Array, arms: Arms) -> None:
        past, transform = state.past[:, arms], self._transform
        rows = transform @ np.ascontiguousarray(state.products[..., arms].transpose(2, 0, 1)) @ transform.T
        rows[:, 0, 0] += past[0]
        # arm by arm, so that an arm's numbers are the same to the bit whichever others are found with it
        responses = np.ascontiguousarray(state.responses[..., arms].transpose(0, 2, 1))[:, :, None] @ transform.T
        responses = responses[:, :, 0]
        responses[..., 0] += past[1:]
        squares = state.totals[REWARD_SQUARED : LOG_SQUARED + 1, arms]
        levels = np.full((2, len(arms)), FIRST_MEAN)
        levels[LOG_COST] = level[arms]
        weight = np.full((2, len(arms)), self.arm_weight)
        weight[REWARD] *= rarity(rows[:, 0, 0], responses[REWARD, :, 0], squares[REWARD])
        posteriors = arm_posteriors(rows, responses, squares, levels, FIRST_APART, weight)
        for kept, new in zip(self.posteriors, posteriors, strict=True):
            kept[:, arms] = new
        rows.reshape(len(arms), -1)[:, :: len(transform) + 1] += 2.0 * (self._standard.scale > 0.0)
        self.rows[arms] = rows
        low, high, share = TwoPointLaws.by_moments(state.arm_moments(arms), state.products[0, 0, arms])
        scale = self._standard.scale[1:]
        for law, values in zip(self.two_point, (low * scale, high * scale, share), strict=True):
            law[arms] = values


def rarity(count: Array, total: Array, squares: Array) -> Array:
    """How many times as many outcomes the guess is worth that features have little effect on rewards, by their number,
    their sum and the sum of their squares: 1 for ordinary rewards, more for rare ones and for rare failures.

    By κ outcomes a slope is about s/√κ, for rewards with the mean m and the variance s². That moves the logarithm of
    their odds by s/(√κ m(1 − m)): by 2/√κ for coins with m = ½, and by 10/√κ for m = 0.01, which no feature does. It is
    taken to be 4/√κ at most.
    """
    first_squares = LEVEL_WEIGHT * (FIRST_MEAN * FIRST_MEAN + FIRST_APART * FIRST_APART)
    count = count + LEVEL_WEIGHT
    mean, square = (total + LEVEL_WEIGHT * FIRST_MEAN) / count, (squares + first_squares) / count
    return np.maximum((square - mean * mean) / np.square(4.0 * mean * (1.0 - mean)), 1.0)


def fit(state: LinearState, apart: float, shared: float) -> Fit:
    """The regressions and the laws of mean costs that follow from a state; how many outcomes for each column the guess
    is worth that an arm is like the others, and how many that a feature has no effect."""
    standard, arms = state.standard, len(state.pulls)
    kept, arm_weight = state.kept, apart * max(standard.size, 1.0)
    if not isinstance(kept, ArmFits) or not kept.fits(standard, arms, arm_weight):
        kept = state.kept = ArmFits(standard, arms, arm_weight)
    try:
        kept.update(state)
        regressions = joined(kept.posteriors, shared / apart)
    except np.linalg.LinAlgError:
        raise BadState("'products' are no sums of products of features; the saved state is damaged") from None
    total, squares = state.totals[COST], state.totals[COST_SQUARED]
    size = prior_cost_scale(total, squares, spend_weighted_cost(total.sum(), squares.sum()))
    first = float(SQUARES[1, 0, 0]) / 2.0 * size * size
    shapes = beta_parameters(state.counts, total, squares, 2.0, 0.5 * size, first)
    return Fit(standard, regressions, shapes, kept.rows, np.broadcast_to(state.scales, arms), kept.two_point)
