"""What no policy can avoid: the asymptotic lower bound on the regret, Lai and Robbins' with prices.

A policy whose regret grows slower than any power of B on every problem with independent Bernoulli rewards and costs has

    liminf Regret / ln B ≥ Σᵢ μcᵢ Δᵢ / dᵢ,   dᵢ = inf { kl(μrᵢ, r) + kl(μcᵢ, c) : r ≥ ρ* c, r ≤ 1 }:

to know that arm i is not the best, it must be pulled often enough to tell its law from the nearest that would be.
On the line r = ρ*c the sum is convex in c and its derivative vanishes where

    2ρ* c² − (1 + ρ* + μrᵢ + ρ* μcᵢ) c + (μrᵢ + μcᵢ) = 0,

at the smaller root, which lies between μrᵢ/ρ* and min(μcᵢ, 1/ρ*).

With ``known_costs`` the policy is told every cost beforehand, c = μcᵢ, and dᵢ = kl(μrᵢ, ρ* μcᵢ); an arm that would have
to pay more than 1 to be the best needs no pulls at all. With all costs 1 that is Lai and Robbins' bound. It is not
what a policy that must learn the costs can reach: having seen nothing but costs of 1, it cannot rule out a cheaper arm.

Other rewards and costs than Bernoulli's count by their means: the constant is then that of policies which, like
Budgeted Thompson Sampling, learn from one Bernoulli trial of each.
"""

from __future__ import annotations

import math

import numpy as np

from budgetbandits.laws import Array
from budgetbandits.oracle import best_ratio, gaps
from budgetbandits.problem import Problem
from budgetbandits.theory.divergence import relative_entropy
from budgetbandits.theory.gaps import check_independent, worse_arms


def lower_constant(problem: Problem, known_costs: bool = False) -> float:
    """The smallest possible growth of the regret per ln B.

    >>> round(lower_constant(Problem.bernoulli([0.5, 0.3], [0.5, 0.5])), 6)
    4.760561
    >>> round(lower_constant(Problem.bernoulli([0.5, 0.3], [1.0, 1.0]), known_costs=True), 6)  # 0.2/kl(0.3, 0.5)
    2.430639
    """
    distance, worse = distances(problem, known_costs), worse_arms(problem)
    return float((problem.cost_means * gaps(problem) / distance)[worse].sum())


def distances(problem: Problem, known_costs: bool = False) -> Array:
    """dᵢ of every arm; infinite for the best ones, about which nothing need be learned."""
    check_independent(problem)
    ratio = best_ratio(problem)
    nearest = _with_known_cost if known_costs else _with_unknown_cost
    values = np.full(len(problem), np.inf)
    for arm in worse_arms(problem):
        values[arm] = nearest(float(problem.reward_means[arm]), float(problem.cost_means[arm]), ratio)
    return values


def _with_unknown_cost(reward: float, cost: float, ratio: float) -> float:
    middle = 1.0 + ratio + reward + ratio * cost
    # the smaller root, in the form that does not subtract
    root = 2.0 * (reward + cost) / (middle + math.sqrt(max(middle**2 - 8.0 * ratio * (reward + cost), 0.0)))
    low, high = reward / ratio, min(cost, 1.0 / ratio)
    slack = 1e-9 * high
    if not low - slack <= root <= high + slack:
        raise ArithmeticError(f"no minimum for means {reward!r}, {cost!r} and ratio {ratio!r}: please report this")
    nearest = min(max(root, low), high)
    return relative_entropy(reward, min(ratio * nearest, 1.0)) + relative_entropy(cost, nearest)


def _with_known_cost(reward: float, cost: float, ratio: float) -> float:
    return relative_entropy(reward, ratio * cost)
