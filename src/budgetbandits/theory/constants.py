"""The constants before ln B in proven upper bounds: Theorem 1's and those Remark 1 compares it with.

    BTS       Σ 2(ρ* + 1)² / (γ² μcᵢ Δᵢ)                                        Theorem 1; Remark 1 takes γ = 1/√2
    UCB-BV1   ρ* Σ wᵢ² + Σ_{μrᵢ < μr₁} (μr₁ − μrᵢ) wᵢ                             as Remark 1 quotes it
    UCB-BV1   Σ μcᵢ Δᵢ wᵢ²,  wᵢ = (2 + 2/λ + Δᵢ)/(Δᵢ λ)                           by Lemma 2, smaller
    UCB-BV2   Σ μcᵢ Δᵢ / sᵢ²                                                     by Lemma 2

λ is the smallest mean cost. An index policy of this kind stops pulling arm i once its interval's width is below Δᵢ/2.
UCB-BV1's width (1 + 1/λ)s/(λ − s), s = √(ln t/n), is that at s = 1/wᵢ, so n ≤ wᵢ² ln t. UCB-BV2's width
(1/λ)(1 + 1/(λ − s))s, with its running minimum of the costs at its limit λ, is that at the smaller root sᵢ of
2s² − (2 + 2λ + Δᵢλ)s + Δᵢλ² = 0. Rounds are at most B/λ in the mean, so ln t is ln B up to a constant.
"""

from __future__ import annotations

import math

import numpy as np

from budgetbandits.numerics.arrays import Array
from budgetbandits.problems.oracle import best_ratio, gaps
from budgetbandits.problems.problem import Problem
from budgetbandits.theory.gaps import check_gamma, reference_arm, worse_arms

REMARK_GAMMA = math.sqrt(0.5)


def bts_constant(problem: Problem, gamma: float = REMARK_GAMMA) -> float:
    """Theorem 1's; infinite at γ = 0, and approached from above, never reached, at γ = 1.

    >>> round(bts_constant(Problem.bernoulli([0.5, 0.3], [0.5, 0.5])), 9)
    80.0
    """
    check_gamma(gamma)
    gap, cost = _worse(problem)
    if gamma**2 == 0.0:
        return math.inf if len(gap) else 0.0
    return float((2.0 * (best_ratio(problem) + 1.0) ** 2 / (gamma**2 * cost * gap)).sum())


def ucb_bv1_constant_quoted(problem: Problem) -> float:
    """UCB-BV1's as Remark 1 quotes it; of several best arms the reference arm is arm 1."""
    gap, _ = _worse(problem)
    width = _ucb_bv1_width(problem, gap)
    lost = problem.reward_means[reference_arm(problem)] - problem.reward_means[worse_arms(problem)]
    return float(best_ratio(problem) * (width**2).sum() + (np.maximum(lost, 0.0) * width).sum())


def ucb_bv1_constant(problem: Problem) -> float:
    """UCB-BV1's with the regret counted by Lemma 2.

    >>> round(ucb_bv1_constant(Problem.bernoulli([0.5, 0.3], [0.5, 0.5])), 9)  # 0.5 · 0.4 · 32²
    204.8
    """
    gap, cost = _worse(problem)
    return float((cost * gap * _ucb_bv1_width(problem, gap) ** 2).sum())


def ucb_bv2_constant(problem: Problem) -> float:
    """UCB-BV2's with the regret counted by Lemma 2."""
    gap, cost = _worse(problem)
    floor = problem.cost_means.min()
    middle = 2.0 + 2.0 * floor + gap * floor
    scale = 2.0 * gap * floor**2 / (middle + np.sqrt(middle**2 - 8.0 * gap * floor**2))
    return float((cost * gap / scale**2).sum())


def _ucb_bv1_width(problem: Problem, gap: Array) -> Array:
    floor = problem.cost_means.min()
    return np.asarray((2.0 + 2.0 / floor + gap) / (gap * floor))


def _worse(problem: Problem) -> tuple[Array, Array]:
    worse = worse_arms(problem)
    return gaps(problem)[worse], problem.cost_means[worse]
