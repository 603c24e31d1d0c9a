"""What no policy can avoid: the asymptotic lower bound on the regret, Lai and Robbins' with prices.

A policy whose regret grows slower than any power of B on every problem with independent Bernoulli rewards and costs has

    liminf Regret / ln B ≥ Σᵢ μcᵢ Δᵢ / dᵢ,   dᵢ = inf { kl(μrᵢ, r) + kl(μcᵢ, c) : r ≥ ρ* c, r ≤ 1 }:

to know that arm i is not the best, it must be pulled often enough to tell its law from the nearest that would be.
`divergence` has dᵢ in closed form. Near a tie ρ*μcᵢ − μrᵢ is a difference of almost equal numbers, so it is computed
from the gap Δᵢ, never by subtraction.

With ``known_costs`` the policy is told every cost beforehand, c = μcᵢ, and dᵢ = kl(μrᵢ, ρ* μcᵢ); an arm that would have
to pay more than 1 to be the best needs no pulls at all. With all costs 1 that is Lai and Robbins' bound. It is not
what a policy that must learn the costs can reach: having seen nothing but costs of 1, it cannot rule out a cheaper arm.

Other rewards and costs than Bernoulli's count by their means: the constant is then that of policies which, like
Budgeted Thompson Sampling, learn from one Bernoulli trial of each.
"""

from __future__ import annotations

import numpy as np

from budgetbandits.numerics.arrays import Array
from budgetbandits.numerics.divergence import divergence_at_gap, shifted_entropy
from budgetbandits.problems.oracle import best_ratio, gaps
from budgetbandits.problems.problem import Problem
from budgetbandits.theory.gaps import check_independent, worse_arms

ROUNDING = 1e-12
"""A reward of 1 that ρ*·μc misses by rounding is one."""


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
    worse, ratio = worse_arms(problem), best_ratio(problem)
    reward, cost, gap = problem.reward_means[worse], problem.cost_means[worse], gaps(problem)[worse]
    nearest = _with_known_cost if known_costs else divergence_at_gap
    values = np.full(len(problem), np.inf)
    values[worse] = nearest(reward, cost, ratio, cost * gap)
    return values


def _with_known_cost(reward: Array, cost: Array, ratio: float, gap: Array) -> Array:
    needed = ratio * cost
    possible = needed < 1.0 - ROUNDING
    return np.where(possible, shifted_entropy(reward, np.where(possible, needed, 0.5), gap), np.inf)
