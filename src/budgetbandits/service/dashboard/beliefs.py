"""Estimates of each arm from its feedback: mean reward, mean price, their ratio, and the worth of a request.

Each value is taken as a share of the largest there can be. With n reported values of mean m, Thompson sampling's
posterior of the mean is Beta(1 + nm, 1 + n(1 − m)), as if every value were a trial that succeeds or fails. Values in
between vary less than such trials, so n is multiplied by m(1 − m) over their variance, which has a trial's variance
mixed in once. For trials it is the posterior; for prices that vary little it is as narrow as the
uncertainty of their mean. It is
computed from the feedback alone, so every policy has it, whatever the policy itself believes.

Where the budget is for a number of requests, the best ratio is not the goal: the program of money and requests
(`fluid`) puts a price on money, and takes the arm with the largest mean reward less that price times the mean cost.
Arms are then compared by this worth, at the price of now, with reward and cost taken as independent.

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
from budgetbandits.service.projection import MedianInterval

RATIO_POINTS = 512
"""Number of equally likely values of a ratio."""

_LEVELS = np.array([0.5, 0.025, 0.975])
GRID_POINTS = 512
"""Points at which arms are compared, at most."""
ARMS_COMPARED_MAX = 60
"""Arms that are compared with each other."""


@dataclass(frozen=True)
class ValueSums:
    """Reported values, as shares of the largest: their number, sum and sum of squares."""

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
        """The mean; 0 without outcomes."""
        return self.sum / self.count if self.count else 0.0

    def as_shares_of(self, largest: float) -> ValueSums:
        """The same values as shares of a largest value that is ``largest`` times as large."""
        return ValueSums(self.count, self.sum / largest, self.squares / largest**2)


@dataclass(frozen=True)
class ArmFeedback:
    """The feedback on one arm."""

    reward: ValueSums = ValueSums()
    cost: ValueSums = ValueSums()


@dataclass(frozen=True, eq=False)  # `belief` caches one per feedback, so identity is enough
class Belief:
    """The belief about one arm; ``ratios`` are equally likely values of its ratio, in order, without the tails."""

    reward: MedianInterval
    price: MedianInterval
    ratio: MedianInterval
    ratios: Array
    law: RatioPosterior
    """Law of the ratio of the shares."""
    scale: float
    """Amount that a ratio of 1 stands for."""
    betas: tuple[tuple[float, float, float], tuple[float, float, float]]
    """Parameters of the Beta laws of reward and price, each with the amount that 1 stands for."""

    def curve(self, quantity: str, ends: tuple[float, float]) -> tuple[Array, Array]:
        """Where, and how dense between 0 and 1, of "reward", "price" or "ratio"; a ratio between these ends of an axis,
        since that of an arm that is hardly known may be anything."""
        if quantity == "ratio":
            return density(self.ratios, ends)
        return beta_density(*self.betas[quantity == "price"])

    def scores(self, logarithms: Array) -> Array:
        """The normal scores of the probabilities that the logarithm of the ratio is at most these."""
        return self.law.scores(logarithms - math.log(self.scale))

    def logarithms(self, scores: Array) -> Array:
        """The logarithms of the ratio that have these normal scores."""
        return self.law.logarithms(scores) + math.log(self.scale)


@lru_cache(maxsize=4096)
def belief(feedback: ArmFeedback, reward_max: float, cost_max: float) -> Belief:
    """The belief about an arm in the user's units. Costs above caps may have a mean above ``cost_max``, and are not
    clipped."""
    # of twice the mean: then the law has as much room above it as below
    room = 2.0 * feedback.cost.mean if feedback.cost.mean > 1.0 else 1.0
    cost_max *= room
    shapes = feedback.reward.beta(), feedback.cost.as_shares_of(room).beta()
    reward, price = BetaPosterior(*shapes[0]), BetaPosterior(*shapes[1])
    ratio, scale = RatioPosterior(reward, price), reward_max / cost_max
    return Belief(
        MedianInterval(*(reward.quantile(_LEVELS) * reward_max).tolist()),
        MedianInterval(*(price.quantile(_LEVELS) * cost_max).tolist()),
        MedianInterval(*(ratio.quantile(_LEVELS) * scale).tolist()),
        ratio.spread(RATIO_POINTS) * scale,
        ratio,
        scale,
        ((*shapes[0], reward_max), (*shapes[1], cost_max)),
    )


def estimate(values: Array) -> MedianInterval:
    """The median of these values with a 95 % interval."""
    median, low, high = np.quantile(values, [0.5, 0.025, 0.975])
    return MedianInterval(float(median), float(low), float(high))


def chances_of_best(arms: Sequence[Belief]) -> list[float]:
    """The probability for each arm that its ratio is the largest, as if arms were independent.

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
    grid = grid[np.linspace(0, len(grid) - 1, min(len(grid), GRID_POINTS)).astype(int)]
    for _ in range(2):  # again, since the first look may have few points where H rises
        grid = np.unique(
            np.interp(log_ndtr(np.linspace(-6.0, 6.0, GRID_POINTS // 2)), logs_below(grid).sum(axis=0), grid)
        )
    below = logs_below(grid)
    rises, largest = np.diff(below, axis=1), np.exp(below.sum(axis=0))
    chances = (rises / np.maximum(rises.sum(axis=0), 1e-300)) @ np.diff(largest)
    return [float(chance) for chance in chances / max(chances.sum(), 1e-300)]


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
    """The reward that the spending has brought, and what it would have brought otherwise."""

    reward: float
    even: MedianInterval
    """Split evenly among the arms that can be chosen now."""
    best: MedianInterval
    """All on the arm that is most likely the best."""
    best_arm: int
    """Its place among the arms that were compared."""
    saved: MedianInterval
    """The money that an even split would have needed besides for the same reward."""


def compare(spent: float, reward: float, arms: Sequence[Belief], chances: Sequence[float]) -> Comparison:
    """Compare the reward so far with that of other choices, by the beliefs about the available arms."""
    rng = np.random.default_rng(2015)  # the same numbers each time: a page should not flicker
    with np.errstate(over="ignore"):
        mean = np.mean([np.exp(arm.logarithms(rng.standard_normal(2000))) for arm in arms], axis=0)
    best = int(np.argmax(chances))
    alone = MedianInterval(*(spent * ratio for ratio in astuple(arms[best].ratio)))
    with np.errstate(divide="ignore", over="ignore"):
        saved = np.where(mean > 0, reward / np.maximum(mean, 1e-300) - spent, 0.0)
    return Comparison(reward, estimate(spent * mean), alone, best, estimate(saved))


WORTH_POINTS = 32
"""Number of points of the law of a mean; a difference has the square of that."""
COMPARED_POINTS = 64
"""Points of each arm at which it is compared with the others."""


@dataclass(frozen=True, eq=False)
class Worth:
    """The worth of a request that one arm answers, in units of reward; ``values`` are equally likely, in order."""

    worth: MedianInterval
    values: Array

    def curve(self, quantity: str, ends: tuple[float, float]) -> tuple[Array, Array]:
        """Where, and how dense between 0 and 1; like that of a belief."""
        return density(self.values, ends)


@lru_cache(maxsize=1024)
def worth_of(belief: Belief, price: float) -> Worth:
    """The worth of a request at this price on money."""
    from scipy.special import betaincinv  # a server that shows no page need not wait for it

    levels = (np.arange(WORTH_POINTS) + 0.5) / WORTH_POINTS
    reward, cost = (betaincinv(a, b, levels) * scale for a, b, scale in belief.betas)
    values = np.sort(np.subtract.outer(reward, price * cost).ravel())
    return Worth(estimate(values), values)


def chances_of_most(arms: Sequence[Worth]) -> list[float]:
    """The probability for each arm that it is worth the most, as if arms were independent."""
    if not arms:
        return []
    places = np.linspace(0, WORTH_POINTS * WORTH_POINTS - 1, COMPARED_POINTS).astype(int)
    points = np.concatenate([arm.values[places] for arm in arms])
    # between the two sides, so that arms which are worth the same have the same chance
    counts = [np.searchsorted(arm.values, points) + np.searchsorted(arm.values, points, "right") for arm in arms]
    below = np.log(np.maximum(np.array(counts) / (2 * WORTH_POINTS * WORTH_POINTS), 1e-12))
    others = below.sum(axis=0).reshape(len(arms), -1) - np.stack(
        [below[place].reshape(len(arms), -1)[place] for place in range(len(arms))]
    )
    chances = np.exp(others).mean(axis=1)
    return [float(chance) for chance in chances / chances.sum()]
