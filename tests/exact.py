"""Exact values that randomised code is held against."""

from __future__ import annotations

import numpy as np
from scipy import special, stats


def argmax_probabilities(successes: np.ndarray, failures: np.ndarray, points: int = 10_000) -> np.ndarray:
    """P(arm has the largest θr/θc) for Beta posteriors with rows (reward, cost), by quadrature.

    The ratio's distribution function is F(q) = ∫ P(θr ≤ q w) dP(θc ≤ w), and arm i wins with probability
    ∫ Π_{j≠i} F_j dF_i. The answer sums to 1 only if both grids are fine enough: callers check that.
    """
    nodes, weights = np.polynomial.legendre.leggauss(600)
    # nodes in the normal score of θc: its tails matter for the ratio and a grid in probability would miss them
    score, weight = 9.0 * nodes, 9.0 * weights * stats.norm.pdf(9.0 * nodes)
    log_ratio = np.linspace(*_range(successes, failures), points)
    cumulative = np.empty((successes.shape[1], points))
    for arm in range(successes.shape[1]):
        cost = special.betaincinv(successes[1, arm], failures[1, arm], special.ndtr(score))
        reward = np.minimum(np.exp(log_ratio)[:, None] * cost, 1.0)
        cumulative[arm] = special.betainc(successes[0, arm], failures[0, arm], reward) @ weight
    middle = (cumulative[:, 1:] + cumulative[:, :-1]) / 2.0
    steps = np.diff(cumulative, axis=1)
    everyone = np.prod(middle, axis=0)
    return np.array([(everyone / np.maximum(middle[i], 1e-300) * steps[i]).sum() for i in range(len(middle))])


def _range(successes: np.ndarray, failures: np.ndarray) -> tuple[float, float]:
    """Log-ratios below and above which no arm has a chance that matters."""
    tail = 1e-9
    low = special.betaincinv(successes[0], failures[0], tail)
    high = special.betaincinv(successes[1], failures[1], tail)
    return float(np.log(low.max()) - 1.0), float(-np.log(high.min()) + 1.0)


def chi_square(counts: np.ndarray, probabilities: np.ndarray) -> float:
    """The p-value of Pearson's test; cells expecting fewer than 10 are pooled."""
    expected = probabilities / probabilities.sum() * counts.sum()
    rare = expected < 10
    if rare.any():
        counts = np.append(counts[~rare], counts[rare].sum())
        expected = np.append(expected[~rare], expected[rare].sum())
    keep = expected > 0
    assert counts[~keep].sum() == 0
    return float(stats.chisquare(counts[keep], expected[keep], sum_check=False).pvalue)
