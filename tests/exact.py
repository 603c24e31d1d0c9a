"""Exact values that randomised code is held against."""

from __future__ import annotations

import numpy as np
from scipy import special, stats

NODES, WEIGHTS = (9.0 * x for x in np.polynomial.legendre.leggauss(100))
"""Quadrature in the normal score of a variate: its tails matter for a ratio, a grid in probability would miss them."""

SCORE_WEIGHTS = WEIGHTS * stats.norm.pdf(NODES)


def ratio_tail(q: np.ndarray, a: float, b: float, c: float, d: float) -> np.ndarray:
    """P(θr/θc > q) for θr ~ Beta(a, b) and θc ~ Beta(c, d).

    Below 1 as ∫ P(θr > q w) dP(θc ≤ w), from 1 on as ∫ P(θc < v/q) dP(θr ≤ v): so neither integrand has a kink.
    """
    q = np.atleast_1d(np.asarray(q, dtype=float))
    cost = special.betaincinv(c, d, special.ndtr(NODES))
    reward = special.betaincinv(a, b, special.ndtr(NODES))
    tail = np.empty(len(q))
    small = q < 1.0
    tail[small] = special.betaincc(a, b, np.multiply.outer(q[small], cost)) @ SCORE_WEIGHTS
    tail[~small] = special.betainc(c, d, np.multiply.outer(1.0 / q[~small], reward)) @ SCORE_WEIGHTS
    return tail


def argmax_probabilities(successes: np.ndarray, failures: np.ndarray, size: int = 1) -> np.ndarray:
    """P(arm has the largest θr/θc) for Beta posteriors with rows (reward, cost), by quadrature.

    Arm i wins with probability ∫ Π_{j≠i} F_j dF_i over the ratio. With arms in groups of ``size`` equals, the answer is
    that of one arm of each group. It sums to 1 only if the grid is fine enough: callers check that.
    """
    successes, failures = successes[:, ::size], failures[:, ::size]
    low, high = _range(successes, failures)
    ratio = np.exp(np.linspace(low, high, int(np.clip(400 * (high - low), 1_500, 12_000))))
    cumulative = np.array(
        [1.0 - ratio_tail(ratio, a, b, c, d) for (a, c), (b, d) in zip(successes.T, failures.T, strict=True)]
    )
    middle = (cumulative[:, 1:] + cumulative[:, :-1]) / 2.0
    steps = np.diff(cumulative, axis=1)
    everyone = np.prod(middle**size, axis=0)
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
