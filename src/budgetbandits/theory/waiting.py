"""How long the best arm can look worse than it is: the sum over k of E[1/pʳ]·E[1/pᶜ] − 1.

After k pulls of arm 1 its samples look good with probability pʳ = P(θʳ ≥ y) in reward, y = μr₁ − ε, and
pᶜ = P(θᶜ ≤ z) in cost, z = μc₁ + ε. While they do not, other arms are pulled; E[1/p] − 1 bounds how often between
the k-th and the next pull of arm 1. With S successes out of k, θ is Beta(S + 1, k − S + 1), so P(θ ≥ y | S) =
P(Bin(k + 1, y) ≤ S) and

    a_k = E[1/pʳ] − 1 = Σ_s P(Bin(k, μ) = s) · P(Bin(k + 1, y) > s) / P(Bin(k + 1, y) ≤ s).

1 − θᶜ is to 1 − z what θʳ is to y, so the cost is the same function at (1 − μc₁, 1 − z); if z ≥ 1 it is 0.

The first terms are summed exactly, in logarithms where probabilities may underflow. The rest is bounded by the terms of
the paper's lemma with their constants worked out (docs/explanation/theory.md, "The remainder"), block of k by block.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import scipy

from budgetbandits.numerics.arrays import Array
from budgetbandits.numerics.divergence import shifted_entropy
from budgetbandits.validation import within

EXACT_PULLS = 512
"""Terms that are summed exactly, in a few hundredths of a second."""

ROWS = 64
"""Values of k in one array: it fits into a cache, and few columns beyond s = k are computed in vain."""

BLOCK_GROWTH = 1.0 / 64.0
"""Length of the blocks [k, k + k/64) on which the remainder is bounded: the terms hardly change inside one."""

SAFE = -700.0
"""Logarithm of a probability above which products and ratios neither underflow nor overflow."""

NEGLIGIBLE = 745.0
"""Exponent of a term that is 0 in floating point: e⁻⁷⁴⁵ is the smallest positive number."""

EPSILON_ROUNDING = 1e-12
"""Relative error up to which ε may exceed the mean reward: ε(0) may by a last bit."""


@dataclass(frozen=True)
class WaitingBound:
    """An upper bound on the sum, and which part of it is the bound on the remainder."""

    total: float
    remainder: float


@lru_cache(maxsize=4096)  # arms, budgets and both chains ask for the same ones
def waiting(reward_mean: float, cost_mean: float, epsilon: float, exact_pulls: int = EXACT_PULLS) -> WaitingBound:
    """Upper bound on Σ_k (E[1/pʳ] E[1/pᶜ] − 1) for a best arm with these means.

    >>> wait = waiting(0.6, 0.5, epsilon=0.1)
    >>> round(wait.total, 3), round(wait.remainder, 3)
    (202.722, 2.024)
    >>> waiting(0.6, 0.5, epsilon=0.0)  # it never stops looking worse half of the time
    WaitingBound(total=inf, remainder=inf)
    """
    within("epsilon", epsilon, 0.0, reward_mean * (1.0 + EPSILON_ROUNDING), hint=", the mean reward")
    sides = [(mean, epsilon) for mean in (reward_mean, 1.0 - cost_mean) if mean - epsilon > 0.0]  # y = 0: no waiting
    if any(mean - below == mean for mean, below in sides):  # no ε, or one that is lost in rounding
        return WaitingBound(math.inf, math.inf)
    remainder = _remainder(sides, exact_pulls)
    exact = _both([excess(mean, mean - below, exact_pulls) for mean, below in sides])
    return WaitingBound(float(exact.sum()) + remainder, remainder)


def excess(mean: float, threshold: float, pulls: int) -> Array:
    """The numbers a_k for k = 0, …, pulls − 1, to about eleven digits.

    >>> excess(0.5, 0.4, pulls=3)  # the first is 0.4/0.6: a uniform θ is below 0.4 that often
    array([0.66666667, 0.98412698, 1.19610636])
    """
    values = np.empty(pulls)
    for start in range(0, pulls, ROWS):
        values[start : start + ROWS] = _excess_rows(mean, threshold, start, min(start + ROWS, pulls))
    return values


def _excess_rows(mean: float, threshold: float, start: int, stop: int) -> Array:
    if mean == 1.0:  # every pull succeeds: s = k
        below = threshold ** np.arange(start + 1.0, stop + 1.0)
        return np.asarray(below / (1.0 - below))
    log_mean = _log_binomial(start, stop, mean)
    log_threshold = _log_binomial(start + 1, stop + 1, threshold)
    if min(_least(mean, stop), _least(threshold, stop + 1)) > SAFE:
        chances = np.exp(log_threshold)
        up_to = chances.cumsum(axis=1)[:, :-1]
        beyond = chances[:, :0:-1].cumsum(axis=1)[:, ::-1]
        return np.asarray((np.exp(log_mean) * beyond / up_to).sum(axis=1))
    log_up_to = np.logaddexp.accumulate(log_threshold, axis=1)[:, :-1]
    log_beyond = np.logaddexp.accumulate(log_threshold[:, :0:-1], axis=1)[:, ::-1]
    # beyond s = k there is nothing to sum, and up_to would be a product of rounding errors
    return np.asarray(np.exp(log_mean + np.where(np.isfinite(log_mean), log_beyond - log_up_to, 0.0)).sum(axis=1))


def _least(chance: float, trials: int) -> float:
    """A lower bound on ln P(Bin(n, p) = s) for n up to ``trials``."""
    return trials * min(math.log(chance), math.log1p(-chance))


def _log_binomial(start: int, stop: int, chance: float) -> Array:
    """ln P(Bin(n, p) = s), a row for each n from ``start`` and a column for each s, both below ``stop``; −∞ where
    s > n."""
    log_choose, successes, failures = _log_choose(start, stop)
    return log_choose + successes * math.log(chance) + failures * math.log1p(-chance)


@lru_cache(maxsize=2 * -(-EXACT_PULLS // ROWS))
def _log_choose(start: int, stop: int) -> tuple[Array, Array, Array]:
    """ln of n choose s, s, and n − s."""
    trials, successes = np.arange(start, stop)[:, None], np.arange(stop)[None, :]
    failures = np.maximum(trials - successes, 0)
    log_factorial = scipy.special.gammaln(np.arange(stop + 1) + 1.0)
    log_choose = log_factorial[trials] - log_factorial[successes] - log_factorial[failures]
    return np.where(successes <= trials, log_choose, -np.inf), successes.astype(float), failures.astype(float)


def excess_bound(mean: float, distance: float, first: Array, last: Array) -> Array:
    """An upper bound on a_k for the blocks of k from ``first`` to ``last``; y = mean − distance.

    docs/explanation/theory.md, "The remainder": below the median of Bin(k + 1, y) a discrete Mills ratio gives, with
    n = k + 1, v = y(1 − y) and R = μ(1 − y)/(y(1 − μ)), the terms Rʸ e^(−kD)/(n v) · Σ_j R⁻ʲ (j + y + √(n v)), j from 0
    to at most n y; from the median on they are at most 2 P(Bin(k + 1, y) > Bin(k, μ)) ≤ 2 ((1 − y)/√R + y)(1 − H)ᵏ.
    """
    y = mean - distance
    if mean == 1.0:  # every pull succeeds, s = k: this is a_k itself, and falls with k
        below = np.exp((first + 1.0) * math.log1p(-distance))
        return np.asarray(below / -np.expm1((first + 1.0) * math.log1p(-distance)))
    variance = y * (1.0 - y)
    above = (1.0 - y) * math.sqrt(y * (1.0 - mean) / (mean * (1.0 - y))) + y
    upper = 2.0 * above * np.exp(first * math.log1p(-_hellinger(mean, distance)))
    step = distance / (y * (1.0 - mean))  # R − 1
    ratio = 1.0 + step
    near, far = first + 1.0, last + 1.0
    # the sum over j without an end falls with n, the one that is cut off at n y + 1 terms rises
    endless = (y + np.sqrt(near * variance)) * ratio / step / (near * variance) + ratio / step**2 / (near * variance)
    terms = y + 1.0 / near  # of the cut sum, by n
    cut = (terms * (y + np.sqrt(far * variance)) + terms * (far * terms) / 2.0) / variance
    exponent = y * math.log1p(step) - shifted_entropy(y, mean, distance) * first
    return np.asarray(upper + np.exp(exponent) * np.minimum(endless, cut))


def _remainder(sides: list[tuple[float, float]], start: int) -> float:
    """A bound on the sum over all k ≥ start."""
    if not sides:
        return 0.0
    edges = _blocks(start, NEGLIGIBLE / min(_hellinger(*side) for side in sides))
    first, last = edges[:-1], edges[1:] - 1.0
    return float((_both([excess_bound(*side, first, last) for side in sides]) * np.diff(edges)).sum())


def _both(excesses: list[Array]) -> Array:
    """(1 + a)(1 + b) − 1 for one or two summands, without subtracting 1 from a number close to it."""
    if len(excesses) < 2:
        return excesses[0] if excesses else np.zeros(1)
    reward, cost = excesses
    return np.asarray(reward + cost + reward * cost)


def _hellinger(mean: float, distance: float) -> float:
    """H = (√(μ(1 − y)) − √(y(1 − μ)))², the slowest rate at which the bound falls with k."""
    root = math.sqrt(mean * (1.0 - mean + distance)) + math.sqrt((mean - distance) * (1.0 - mean))
    return (distance / root) ** 2


def _blocks(start: int, end: float) -> Array:
    """Edges of blocks from ``start`` to ``end``: single k first, then growing in proportion."""
    single = np.arange(start, start + math.ceil(1.0 / BLOCK_GROWTH), dtype=float)
    count = max(math.ceil(math.log(max(end / single[-1], 1.0)) / math.log1p(BLOCK_GROWTH)), 1)
    growing = np.ceil(single[-1] * (1.0 + BLOCK_GROWTH) ** np.arange(1, count + 1))
    return np.unique(np.concatenate([single, growing]))
