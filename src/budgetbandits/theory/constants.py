"""The gaps of the paper's analysis, and the constants before ln B in proven upper bounds.

Arm 1 is the best arm, ρ* = μr₁/μc₁ its ratio, and for every other arm i and 0 ≤ γ ≤ 1

    Δᵢ = ρ* − μrᵢ/μcᵢ,   δᵢ(γ) = γ μcᵢ Δᵢ / (ρ* + 1),   εᵢ(γ) = (1 − γ) μc₁ Δᵢ / (μrᵢ/μcᵢ + 1).

They meet in one ratio: raising arm i's reward and lowering its cost by δ gives the same as lowering arm 1's reward and
raising its cost by ε, (μrᵢ + δ)/(μcᵢ − δ) = (μr₁ − ε)/(μc₁ + ε). γ says how much of the way each of them goes.

The constants, Theorem 1's and those that Remark 1 compares it with:

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
from numpy.typing import NDArray

from budgetbandits.errors import NotIndependent
from budgetbandits.numerics.arrays import Array
from budgetbandits.problems.distributions import Independent
from budgetbandits.problems.oracle import best_arms, best_ratio, gaps, ratios
from budgetbandits.problems.problem import Problem
from budgetbandits.validation import within

# --- gaps -------------------------------------------------------------------------------------------------------------


def reference_arm(problem: Problem) -> int:
    """Arm 1: the best arm, and of several equally good ones the most expensive, whose ε is the largest.

    >>> reference_arm(Problem.bernoulli([0.2, 0.4, 0.1], [0.4, 0.8, 0.5]))
    1
    """
    best = best_arms(problem)
    return int(best[problem.cost_means[best].argmax()])


def worse_arms(problem: Problem) -> NDArray[np.int64]:
    """The numbers of all arms with a ratio below ρ*: those that regret is made of."""
    return np.flatnonzero(gaps(problem) > 0.0)


def delta_gaps(problem: Problem, gamma: float) -> Array:
    """δ(γ) of every arm; 0 for the best arms.

    >>> delta_gaps(Problem.bernoulli([0.5, 0.3], [0.5, 0.5]), gamma=0.5)
    array([0.  , 0.05])
    """
    check_gamma(gamma)
    return np.asarray(gamma * problem.cost_means * gaps(problem) / (best_ratio(problem) + 1.0))


def epsilon_gaps(problem: Problem, gamma: float) -> Array:
    """ε(γ) of every arm; 0 for the best arms.

    >>> epsilon_gaps(Problem.bernoulli([0.5, 0.3], [0.5, 0.5]), gamma=0.5)
    array([0.    , 0.0625])
    """
    check_gamma(gamma)
    cost = problem.cost_means[reference_arm(problem)]
    return np.asarray((1.0 - gamma) * cost * gaps(problem) / (ratios(problem) + 1.0))


def check_gamma(gamma: float) -> None:
    """Refuse a γ that is not between 0 and 1."""
    within("gamma", gamma, 0.0, 1.0, hint=", or leave it out to have the best one found")


def check_budget(budget: float) -> None:
    """Refuse a budget below 1, the largest cost."""
    within("budget", budget, 1.0, np.inf, hint=": at least the largest cost")


def check_independent(problem: Problem) -> None:
    """Refuse joint laws: the analysis multiplies probabilities of the reward and of the cost."""
    for arm in problem.arms:
        if not isinstance(arm.law, Independent):
            raise NotIndependent(
                f"arm {arm.name!r} has a joint law of reward and cost, and the bounds hold for independent ones; "
                f"give the arm a reward and a cost law of their own"
            )


# --- constants --------------------------------------------------------------------------------------------------------


REMARK_GAMMA = math.sqrt(0.5)
"""The γ at which Remark 1 states the constant of Theorem 1."""


def bts_constant(problem: Problem, gamma: float = REMARK_GAMMA) -> float:
    """Theorem 1's constant; infinite at γ = 0. At γ = 1 it is a limit from above that no bound reaches.

    >>> round(bts_constant(Problem.bernoulli([0.5, 0.3], [0.5, 0.5])), 9)
    80.0
    """
    check_gamma(gamma)
    gap, cost = _worse(problem)
    if gamma**2 == 0.0:
        return math.inf if len(gap) else 0.0
    return float((2.0 * (best_ratio(problem) + 1.0) ** 2 / (gamma**2 * cost * gap)).sum())


def ucb_bv1_constant_quoted(problem: Problem) -> float:
    """UCB-BV1's constant as Remark 1 quotes it; of several best arms the reference arm is arm 1."""
    gap, _ = _worse(problem)
    width = _ucb_bv1_width(problem, gap)
    lost = problem.reward_means[reference_arm(problem)] - problem.reward_means[worse_arms(problem)]
    return float(best_ratio(problem) * (width**2).sum() + (np.maximum(lost, 0.0) * width).sum())


def ucb_bv1_constant(problem: Problem) -> float:
    """UCB-BV1's constant with the regret counted by Lemma 2.

    >>> round(ucb_bv1_constant(Problem.bernoulli([0.5, 0.3], [0.5, 0.5])), 9)  # 0.5 · 0.4 · 32²
    204.8
    """
    gap, cost = _worse(problem)
    return float((cost * gap * _ucb_bv1_width(problem, gap) ** 2).sum())


def ucb_bv2_constant(problem: Problem) -> float:
    """UCB-BV2's constant with the regret counted by Lemma 2."""
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
