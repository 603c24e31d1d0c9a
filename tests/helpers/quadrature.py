"""Numerical selection probabilities of a single round at fixed posterior counts."""

from __future__ import annotations

import numpy as np
from scipy.interpolate import CubicSpline
from scipy.special import betainc, betaincc, betaincinv


def _quantiles(a: float, b: float, number: int = 300) -> tuple[np.ndarray, np.ndarray]:
    """(values, weights) of a Beta law: the double exponential rule on its quantiles, fine at both ends."""
    t = np.linspace(-3.6, 3.6, number)
    arc = 0.5 * np.pi * np.sinh(t)
    lower = 1.0 / (1.0 + np.exp(-2.0 * arc))  # the quantile's level, accurate near 0
    upper = 1.0 / (1.0 + np.exp(2.0 * arc))
    weights = (t[1] - t[0]) * np.pi * np.cosh(t) * lower * upper
    values = np.where(t < 0, betaincinv(a, b, np.minimum(lower, 0.5)), 1.0 - betaincinv(b, a, np.minimum(upper, 0.5)))
    return values, weights


def _distribution(a: float, b: float):
    """The distribution function of log Beta as a spline: SciPy's own is too slow for a million points."""
    start = max(np.log(max(betaincinv(a, b, 1e-17), 1e-18)), -41.0)
    knots = np.linspace(start, 0.0, 4001)
    spline = CubicSpline(knots, betainc(a, b, np.exp(knots)))
    return lambda points: np.where(points < start, 0.0, spline(np.minimum(points, 0.0)))


def below(row: np.ndarray, level: np.ndarray, classical: bool) -> np.ndarray:
    """P(ratio <= level); integrates over the coordinate for which the other's argument stays inside (0,1)."""
    a, b, c, d = (float(value) for value in row)
    if classical:
        return betainc(a, b, np.minimum(level, 1.0))
    reward, reward_weights = _quantiles(a, b)
    cost, cost_weights = _quantiles(c, d)
    result = np.empty_like(level)
    low = level < 1.0
    result[low] = _distribution(a, b)(np.log(level[low, None] * cost)) @ cost_weights
    result[~low] = (1.0 - _distribution(c, d)(np.log(reward / level[~low, None]))) @ reward_weights
    return result


def exceedance(a: float, b: float, c: float, d: float, level: float, classical: bool = False) -> float:
    """P(ratio > level), accurate in the tail."""
    if classical:
        return float(betaincc(a, b, min(level, 1.0)))
    return float(exceedances(a, b, c, d, np.array([level]), nodes=2000)[0])


def exceedances(a: float, b: float, c: float, d: float, level: np.ndarray, nodes: int = 300) -> np.ndarray:
    """P(ratio > level) at several levels."""
    cost, cost_weights = _quantiles(c, d, nodes)
    reward, reward_weights = _quantiles(a, b, nodes)
    result = np.empty(len(level))
    low = level < 1.0
    result[low] = betaincc(a, b, np.multiply.outer(level[low], cost)) @ cost_weights
    result[~low] = betainc(c, d, reward / level[~low, None]) @ reward_weights
    return result


def selection_probabilities(posterior: np.ndarray, classical: bool = False, size: int = 1) -> np.ndarray:
    """P(arm has the largest ratio): a Stieltjes sum over a fine grid of log ratios, which telescopes to 1.

    With ``size`` each row stands for so many equal arms, and the answer is that of one of them.
    """
    low, high = -25.0, 0.0 if classical else 30.0
    coarse = np.linspace(low, high, 551)
    # First a coarse pass to find where the maximum lives, then a fine one there.
    product = np.prod([below(row, np.exp(coarse), classical) for row in posterior], axis=0) ** size
    inside = coarse[(product > 1e-11) & (product < 1.0 - 1e-11)]
    step = coarse[1] - coarse[0]
    knots = np.linspace(max(low, inside[0] - step), min(high, inside[-1] + step), 1201)
    points = np.linspace(knots[0], knots[-1], 200_001)
    values = np.array([CubicSpline(knots, below(row, np.exp(knots), classical))(points) for row in posterior])
    chances = np.empty(len(posterior))
    for arm in range(len(posterior)):
        others = np.prod(np.delete(values, arm, axis=0) ** size, axis=0) * values[arm] ** (size - 1)
        chances[arm] = np.sum(np.diff(values[arm]) * 0.5 * (others[1:] + others[:-1]))
    assert abs(size * chances.sum() - 1.0) < 1e-6, chances.sum()
    return chances / (size * chances.sum())
