"""The posteriors of an arm: of its mean reward, of its mean cost, and of their ratio.

A ratio is a function of two independent variables: of the two means, or, if these have a joint posterior, of two shares
that are independent of each other. Given one of them, the other's distribution function says how likely the ratio is at
most z, so that the ratio's is a mean over one variable,

    F(z) = E[P(R ≤ zC | C)] = E[P(C ≥ R/z | R)],

taken by the trapezoidal rule in normal scores. The mean is over the variable that moves the ratio less: then what it is
taken of is smooth. Nothing is drawn at random.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar, Protocol

import numpy as np
import scipy  # imports its parts when they are first used
from numpy.typing import NDArray

from budgetbandits.numerics.arrays import Array

_SCORES = np.linspace(-4.2, 4.2, 22)
"""Points at which a ratio's distribution function is computed, roughly in its own normal scores."""
_SCORE_MAX = 40.0
"""Normal score beyond which a probability is 0 in floating point."""
_DIVISOR_MIN = 1e-300
"""Smallest mean cost that a reward is divided by."""


class MeanPosterior(Protocol):
    """The posterior distribution of a variable between 0 and 1, such as a mean."""

    @property
    def step(self) -> float:
        """Step between the normal scores of the trapezoidal rule; longer if little of the law is near 0 and 1."""

    @property
    def mean(self) -> float:
        """The expectation."""

    def cdf(self, x: Array) -> Array:
        """The probability of at most ``x``."""

    def quantile(self, levels: Array) -> Array:
        """The values at these levels of the distribution function."""


@dataclass(frozen=True)
class BetaPosterior(MeanPosterior):
    """A Beta distribution, by the counts of successes and failures.

    >>> BetaPosterior(3.0, 1.0).mean, BetaPosterior(1.0, 1.0).quantile(np.array([0.25])).tolist()
    (0.75, [0.25])
    """

    successes: float
    failures: float

    @property
    def step(self) -> float:
        least = min(self.successes, self.failures)
        return 0.3 if least > 4.0 else 0.1 if least >= 1.0 else 0.05

    @property
    def mean(self) -> float:
        return self.successes / (self.successes + self.failures)

    def cdf(self, x: Array) -> Array:
        return np.asarray(scipy.special.betainc(self.successes, self.failures, np.clip(x, 0.0, 1.0)))

    def quantile(self, levels: Array) -> Array:
        return np.asarray(scipy.special.betaincinv(self.successes, self.failures, levels))


@dataclass(frozen=True)
class RestrictedNormal(MeanPosterior):
    """A normal law with its centre in [0, 1], restricted to that interval; or several such laws, as arrays."""

    centre: float | Array
    deviation: float | Array

    @property
    def step(self) -> float:
        return 0.3 if np.all(np.minimum(self.centre, 1.0 - self.centre) > 4.0 * self.deviation) else 0.1

    @property
    def mean(self) -> float:
        low, high = -self.centre / self.deviation, (1.0 - self.centre) / self.deviation
        density = np.exp(-0.5 * low * low) - np.exp(-0.5 * high * high)
        inside = scipy.special.ndtr(high) - scipy.special.ndtr(low)
        return float(self.centre + self.deviation * density / (np.sqrt(2.0 * np.pi) * inside))

    def cdf(self, x: Array) -> Array:
        least, most = self._ends()
        below = scipy.special.ndtr((np.clip(x, 0.0, 1.0) - self.centre) / self.deviation)
        return np.asarray((below - least) / (most - least))

    def quantile(self, levels: Array) -> Array:
        least, most = self._ends()
        normal = self.centre + self.deviation * scipy.special.ndtri(least + (most - least) * levels)
        return np.asarray(np.clip(normal, 0.0, 1.0))

    def _ends(self) -> tuple[Array, Array]:
        low, high = -self.centre / self.deviation, (1.0 - self.centre) / self.deviation
        return np.asarray(scipy.special.ndtr(low)), np.asarray(scipy.special.ndtr(high))


@dataclass(frozen=True)
class RatioPosterior:
    """The ratio of two independent means, the first by the second.

    >>> ratio = RatioPosterior(BetaPosterior(500.0, 500.0), BetaPosterior(250.0, 750.0))
    >>> ratio.quantile(np.array([0.025, 0.5, 0.975])).round(2)
    array([1.77, 2.  , 2.27])
    """

    first: MeanPosterior
    second: MeanPosterior

    ends: ClassVar[tuple[tuple[float, float], ...]] = ((1.0, -1.0),)
    """Directions, in normal scores of both variables, towards the smallest and the largest ratio."""

    def value(self, first: Array, second: Array) -> Array:
        """The ratio at these values of the two variables; it rises with the first one."""
        return np.maximum(first, _DIVISOR_MIN) / np.maximum(second, _DIVISOR_MIN)

    def below_given_first(self, z: Array, first: Array) -> Array:
        """P(ratio ≤ z | first)."""
        return 1.0 - self.second.cdf(first / z)

    def below_given_second(self, z: Array, second: Array) -> Array:
        """P(ratio ≤ z | second)."""
        return self.first.cdf(z * second)

    def second_moves_less(self, z: Array) -> NDArray[np.bool_]:
        """Whether the second variable moves the ratio less than the first, near each z."""
        first, second = self._moves
        return np.full(len(z), abs(second) <= first)

    @cached_property
    def _moves(self) -> tuple[float, float]:
        """Change of the ratio's logarithm when each variable goes from one deviation below its median to one above."""
        low, middle, high = scipy.special.ndtr([-1.0, 0.0, 1.0])
        first, second = (law.quantile(np.array([low, middle, high])) for law in (self.first, self.second))
        moves_by_first = np.diff(np.log(self.value(first[[0, 2]], second[1])))
        moves_by_second = np.diff(np.log(self.value(first[1], second[[0, 2]])))
        return float(moves_by_first[0]), float(moves_by_second[0])

    def cdf(self, z: Array) -> Array:
        """The distribution function P(ratio ≤ z), for positive z."""
        scores = np.arange(-6.5, 6.5, min(self.first.step, self.second.step))
        levels, weights = scipy.special.ndtr(scores), np.exp(-0.5 * scores**2)
        below = np.empty(len(z))
        for over_second in (True, False):
            these = self.second_moves_less(z) == over_second
            if over_second:
                given = self.below_given_second(z[these, None], self.second.quantile(levels))
            else:
                given = self.below_given_first(z[these, None], self.first.quantile(levels))
            below[these] = given @ (weights / weights.sum())
        return below

    def quantile(self, levels: Array) -> Array:
        """The values at these levels of the distribution function, which are clipped to [1e-4, 1 − 1e-4]."""
        scores, logarithms = self._table
        wanted = scipy.special.ndtri(np.clip(levels, 1e-4, 1.0 - 1e-4))
        right = np.clip(np.searchsorted(scores, wanted), 1, len(scores) - 1)
        low, high = logarithms[right - 1], logarithms[right]
        values = np.clip(np.interp(wanted, scores, logarithms), low, high)
        slope = np.interp(wanted, scores, np.gradient(logarithms, scores))
        for _ in range(2):  # Newton's step, within the two entries that hold the level between them
            values = np.clip(values - slope * (scipy.special.ndtri(self.cdf(np.exp(values))) - wanted), low, high)
        return np.asarray(np.exp(values))

    def spread(self, count: int) -> Array:
        """``count`` equally likely values, rising; less exact than quantiles, and cheaper."""
        middles = (np.arange(count) + 0.5) / count
        return np.asarray(np.exp(self.logarithms(scipy.special.ndtri(middles))))

    def scores(self, logarithms: Array) -> Array:
        """The normal scores of P(log ratio ≤ x) for these logarithms, within 0.01 of the probability."""
        scores_on_line, places = self._lines
        return np.interp(logarithms, places, scores_on_line)

    def logarithms(self, scores: Array) -> Array:
        """The log ratios with these normal scores: the inverse of `scores`."""
        return np.interp(scores, *self._lines)

    @cached_property
    def _lines(self) -> tuple[Array, Array]:
        """The table, with its first and last line extended to normal scores of ±`_SCORE_MAX`."""
        scores, logarithms = self._table
        slopes = np.diff(logarithms)[[0, -1]] / np.diff(scores)[[0, -1]]
        ends = logarithms[[0, -1]] + slopes * (np.array([-_SCORE_MAX, _SCORE_MAX]) - scores[[0, -1]])
        return (
            np.concatenate([[-_SCORE_MAX], scores, [_SCORE_MAX]]),
            np.concatenate([ends[:1], logarithms, ends[1:]]),
        )

    @cached_property
    def _table(self) -> tuple[Array, Array]:
        """Normal scores of the distribution function: nearly a straight line over the ratio's logarithm.

        The ratios lie on the path along which each variable moves in proportion to its effect on the ratio: if the
        variables were log-normal, each score would be the ratio's own. Further paths reach the ends.
        """
        first, second = self._moves
        length = max(np.hypot(first, second), _DIVISOR_MIN)
        ways = ((first / length, second / length), *self.ends)
        levels = [scipy.special.ndtr(np.outer(way, _SCORES)) for way in ways]
        z = np.concatenate([self.value(self.first.quantile(a), self.second.quantile(b)) for a, b in levels])
        z = np.unique(z[np.isfinite(z)])
        scores = scipy.special.ndtri(self.cdf(z))
        rising = np.isfinite(scores) & (scores > np.concatenate([[-np.inf], np.maximum.accumulate(scores)[:-1]]))
        return scores[rising], np.log(z[rising])


@dataclass(frozen=True)
class JointRatioPosterior(RatioPosterior):
    """The ratio of two means with a joint Dirichlet posterior: θr/θc = (p11 + p10) / (p11 + p01).

    The variables are the share of p10 in p10 + p01 and the share of p11 in p11 + p10 + p01, which are independent.
    """

    ends: ClassVar[tuple[tuple[float, float], ...]] = ((1.0, -1.0), (1.0, 1.0))

    @classmethod
    def from_weights(cls, both: float, paid: float, charged: float) -> JointRatioPosterior:
        """The posterior with these weights of p11, p10 and p01."""
        return cls(BetaPosterior(paid, charged), BetaPosterior(both, paid + charged))

    def value(self, first: Array, second: Array) -> Array:
        reward, cost = second + (1.0 - second) * first, second + (1.0 - second) * (1.0 - first)
        return np.maximum(reward, _DIVISOR_MIN) / np.maximum(cost, _DIVISOR_MIN)

    def below_given_first(self, z: Array, first: Array) -> Array:
        odds = np.maximum((z - first * (1.0 + z)) / (1.0 - z), 0.0)  # of the second; z is not 1, where it moves nothing
        below = self.second.cdf(odds / (1.0 + odds))
        return np.where(z < 1.0, below, 1.0 - below)

    def below_given_second(self, z: Array, second: Array) -> Array:
        odds = second / np.maximum(1.0 - second, 1e-100)
        return self.first.cdf((z - (1.0 - z) * odds) / (1.0 + z))

    def second_moves_less(self, z: Array) -> NDArray[np.bool_]:
        ends = scipy.special.ndtr(np.array([-1.0, 1.0]))
        shares = self.second.quantile(ends)
        odds = np.diff(shares / np.maximum(1.0 - shares, 1e-100))
        return np.asarray(np.abs(1.0 - z) / (1.0 + z) * odds <= np.diff(self.first.quantile(ends)))


@dataclass(frozen=True)
class ArmPosterior:
    """The posteriors of an arm, in units of the largest reward and the largest cost."""

    reward: MeanPosterior
    cost: MeanPosterior
    ratio: RatioPosterior

    @classmethod
    def independent(cls, reward: MeanPosterior, cost: MeanPosterior) -> ArmPosterior:
        """The posteriors of an arm whose mean reward and mean cost are independent."""
        return cls(reward, cost, RatioPosterior(reward, cost))
