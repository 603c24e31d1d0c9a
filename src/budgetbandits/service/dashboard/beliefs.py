"""What the feedback says of each arm: its mean reward, its mean price, and their ratio.

Each value is taken as a share of the largest there can be. With n values told of mean m, Thompson sampling's posterior
of the mean is Beta(1 + nm, 1 + n(1 − m)), as if every value were a trial that succeeds or fails. Values in between vary
less than such trials, so n is multiplied by m(1 − m) over their variance, which has a trial's variance mixed in once.
For trials it is the posterior; for prices that vary little it is as narrow as their mean is known. It is computed from
what was told, so it is there for every policy, whatever the policy itself believes.

Nothing is drawn at random: a distribution is its values at equally likely points.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import astuple, dataclass
from functools import lru_cache

import numpy as np

from budgetbandits.numerics.arrays import Array
from budgetbandits.numerics.posteriors import BetaPosterior, RatioPosterior

POINTS = 512
_LEVELS = np.array([0.5, 0.025, 0.975])
GRID = 512
"""Points at which arms are compared, at most."""
MOST_ARMS = 60
"""Arms that are compared with each other."""


@dataclass(frozen=True)
class Values:
    """Values that were told, as shares of the largest: how many, their sum and the sum of their squares."""

    count: float = 0
    sum: float = 0.0
    squares: float = 0.0

    def beta(self) -> tuple[float, float]:
        """The parameters of the mean's distribution."""
        if not self.count:
            return 1.0, 1.0
        mean = min(max(self.sum / self.count, 0.0), 1.0)
        trial = mean * (1.0 - mean)
        variance = (max(self.squares - self.count * mean**2, 0.0) + trial) / (self.count + 1)
        weight = self.count * (max(trial / variance, 1.0) if trial > 1e-12 else 1.0)
        return 1.0 + weight * mean, 1.0 + weight * (1.0 - mean)

    @property
    def mean(self) -> float:
        return self.sum / self.count if self.count else 0.0

    def as_shares_of(self, largest: float) -> Values:
        """The same values as shares of so many times what they are shares of."""
        return Values(self.count, self.sum / largest, self.squares / largest**2)


@dataclass(frozen=True)
class Told:
    """What was told of an arm."""

    reward: Values = Values()
    cost: Values = Values()


@dataclass(frozen=True)
class Estimate:
    """A median and the middle 95 %."""

    median: float
    low: float
    high: float


@dataclass(frozen=True, eq=False)  # `belief` makes one for what was told, so it is known by being that one
class Belief:
    """Of one arm; ``ratios`` are equally likely values of its ratio, in order, without the tails."""

    reward: Estimate
    price: Estimate
    ratio: Estimate
    ratios: Array
    law: RatioPosterior
    """Of the ratio of the shares ..."""
    scale: float
    """... and what 1 of that stands for."""
    betas: tuple[tuple[float, float, float], tuple[float, float, float]]
    """Of the means of reward and price: both parameters, and what 1 stands for."""

    def curve(self, what: str, ends: tuple[float, float]) -> tuple[Array, Array]:
        """Where, and how dense between 0 and 1, of "reward", "price" or "ratio"; a ratio between these ends of an axis,
        since that of an arm that is hardly known may be anything."""
        if what == "ratio":
            return density(self.ratios, ends)
        return beta_density(*self.betas[what == "price"])

    def scores(self, logarithms: Array) -> Array:
        """The normal scores of the probabilities that the logarithm of the ratio is at most these."""
        return self.law.scores(logarithms - math.log(self.scale))

    def logarithms(self, scores: Array) -> Array:
        """The logarithms of the ratio that have these normal scores."""
        return self.law.logarithms(scores) + math.log(self.scale)


@lru_cache(maxsize=4096)
def belief(told: Told, reward_max: float, cost_max: float) -> Belief:
    """In the user's units. Costs above caps may have a mean above ``cost_max``, and are taken as they are."""
    # of twice the mean: then the law has as much room above it as below
    room = 2.0 * told.cost.mean if told.cost.mean > 1.0 else 1.0
    cost_max *= room
    shapes = told.reward.beta(), told.cost.as_shares_of(room).beta()
    reward, price = BetaPosterior(*shapes[0]), BetaPosterior(*shapes[1])
    ratio, scale = RatioPosterior(reward, price), reward_max / cost_max
    return Belief(
        Estimate(*(reward.quantile(_LEVELS) * reward_max).tolist()),
        Estimate(*(price.quantile(_LEVELS) * cost_max).tolist()),
        Estimate(*(ratio.quantile(_LEVELS) * scale).tolist()),
        ratio.spread(POINTS) * scale,
        ratio,
        scale,
        ((*shapes[0], reward_max), (*shapes[1], cost_max)),
    )


def estimate(values: Array) -> Estimate:
    median, low, high = np.quantile(values, [0.5, 0.025, 0.975])
    return Estimate(float(median), float(low), float(high))


def chances_of_best(arms: Sequence[Belief]) -> list[float]:
    """For each arm the probability that its ratio is the largest, each independent of the others.

    With Fᵢ the distribution functions and H their product, that of the largest, arm i is the largest with probability
    ∫ H dlog Fᵢ. Between two neighbours of a grid the logarithms are taken to rise in proportion, so that arms share
    what H rises by as they share the rise of its logarithm. The grid has equal steps of H's normal score: nothing that
    matters is cut off, however long the tail of an arm that is hardly known.
    """
    from scipy.special import log_ndtr  # a server that shows no page need not wait for it

    def logs_below(grid: Array) -> Array:
        return np.asarray(log_ndtr(np.array([arm.scores(grid) for arm in arms])))

    if not arms:
        return []
    grid = np.unique(np.concatenate([arm.logarithms(np.linspace(-8.0, 8.0, 33)) for arm in arms]))
    grid = grid[np.linspace(0, len(grid) - 1, min(len(grid), GRID)).astype(int)]
    for _ in range(2):  # again, since the first look may have few points where H rises
        grid = np.unique(np.interp(log_ndtr(np.linspace(-6.0, 6.0, GRID // 2)), logs_below(grid).sum(axis=0), grid))
    below = logs_below(grid)
    rises, largest = np.diff(below, axis=1), np.exp(below.sum(axis=0))
    chances = (rises / np.maximum(rises.sum(axis=0), 1e-300)) @ np.diff(largest)
    return [float(each) for each in chances / max(chances.sum(), 1e-300)]


@lru_cache(maxsize=4096)
def beta_density(a: float, b: float, scale: float, points: int = 25) -> tuple[Array, Array]:
    """Where, and how dense between 0 and 1, from the first to the last thousandth of a scaled Beta."""
    from scipy.special import betaincinv, xlog1py, xlogy

    low, high = betaincinv(a, b, [0.001, 0.999])
    where = np.linspace(low, high, points)
    logs = xlogy(a - 1.0, where) + xlog1py(b - 1.0, -where)
    return where * scale, np.exp(logs - logs.max())


def density(values: Array, ends: tuple[float, float], points: int = 49) -> tuple[Array, Array]:
    """Where, and how dense between 0 and 1; smoothed, from the first to the last thousandth, between these ends."""
    low, high = np.clip(np.quantile(values, [0.001, 0.999]), *ends)
    if not high > low:
        return np.array([low, low, low]), np.array([0.0, 1.0, 0.0])
    heights, edges = np.histogram(values, points, (low, high))
    kernel = np.exp(-0.5 * (np.arange(-6, 7) / 2.2) ** 2)
    # divided by as much of the kernel as there is: a curve that is cut off does not sink there
    smooth = np.convolve(heights, kernel, "same") / np.convolve(np.ones(points), kernel, "same")
    return (edges[1:] + edges[:-1]) / 2, smooth / smooth.max()


@dataclass(frozen=True)
class Comparison:
    """What the money that was spent has brought, and what it would have brought otherwise."""

    reward: float
    even: Estimate
    """Split evenly among the arms that can be chosen now."""
    best: Estimate
    """All on the arm that is most likely the best."""
    best_arm: int
    """Its place among the arms that were compared."""
    saved: Estimate
    """The money that an even split would have needed besides for the same reward."""


def compare(spent: float, reward: float, arms: Sequence[Belief], chances: Sequence[float]) -> Comparison:
    """From what is believed of the arms that can be chosen."""
    rng = np.random.default_rng(2015)  # the same numbers each time: a page should not flicker
    with np.errstate(over="ignore"):
        mean = np.mean([np.exp(each.logarithms(rng.standard_normal(2000))) for each in arms], axis=0)
    best = int(np.argmax(chances))
    alone = Estimate(*(spent * each for each in astuple(arms[best].ratio)))
    with np.errstate(divide="ignore", over="ignore"):
        saved = np.where(mean > 0, reward / np.maximum(mean, 1e-300) - spent, 0.0)
    return Comparison(reward, estimate(spent * mean), alone, best, estimate(saved))
