"""The three gaps of the paper's analysis: Δ, δ(γ) and ε(γ).

Arm 1 is the best arm, ρ* = μr₁/μc₁ its ratio, and for every other arm i and 0 ≤ γ ≤ 1

    Δᵢ = ρ* − μrᵢ/μcᵢ,   δᵢ(γ) = γ μcᵢ Δᵢ / (ρ* + 1),   εᵢ(γ) = (1 − γ) μc₁ Δᵢ / (μrᵢ/μcᵢ + 1).

They are made so that raising arm i's reward and lowering its cost by δ brings it to the very ratio to which lowering
arm 1's reward and raising its cost by ε brings that one: (μrᵢ + δ)/(μcᵢ − δ) = (μr₁ − ε)/(μc₁ + ε). γ says which of the
two does how much of the way.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from budgetbandits.errors import BadParameter, NotIndependent
from budgetbandits.numerics.arrays import Array
from budgetbandits.problems.distributions import Independent
from budgetbandits.problems.oracle import best_arms, best_ratio, gaps, ratios
from budgetbandits.problems.problem import Problem


def reference_arm(problem: Problem) -> int:
    """Arm 1: the best arm, and of several equally good ones the dearest, whose ε is the largest.

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
    if not 0.0 <= gamma <= 1.0:
        raise BadParameter(f"gamma is {gamma:g}; use a number from 0 to 1, or leave it out to have the best one found")


def check_budget(budget: float) -> None:
    if not 1.0 <= budget < np.inf:
        raise BadParameter(f"budget is {budget:g}; the bounds need a finite budget of at least 1, the largest cost")


def check_independent(problem: Problem) -> None:
    """The analysis multiplies what is known of the reward with what is known of the cost."""
    for arm in problem.arms:
        if not isinstance(arm.law, Independent):
            raise NotIndependent(
                f"arm {arm.name!r} has a joint law of reward and cost, and the bounds hold for independent ones; "
                f"give the arm a reward and a cost law of their own"
            )
