"""The asymptotic lower bound for policies that must do well on every law in [0, 1]², correlated or not.

A policy whose regret grows slower than any power of B on every problem with rewards and costs in [0, 1] has

    liminf Regret / ln B ≥ Σᵢ μcᵢ Δᵢ / Dᵢ,   Dᵢ = max{ E ln(1 − λ(Rᵢ − ρ*Cᵢ)) : 0 ≤ λ ≤ 1 }.

docs/theory.md, section 5, has the proof: Dᵢ is the relative entropy to an explicit law with ratio ρ*. Among all laws
the nearest one that would be best is no farther than among pairs of Bernoulli laws, so this constant is at least that
of `lower`: it is the price of not knowing that rewards and costs are Bernoulli and independent.
"""

from __future__ import annotations

import numpy as np

from budgetbandits.errors import ProblemError
from budgetbandits.numerics.arrays import Array
from budgetbandits.numerics.divergence import empirical_divergence
from budgetbandits.problems.distributions import Bernoulli, Copula, Independent, JointTable, OutcomeLaw
from budgetbandits.problems.oracle import best_ratio, gaps
from budgetbandits.problems.problem import Problem
from budgetbandits.theory.gaps import worse_arms


def any_law_constant(problem: Problem) -> float:
    """The smallest possible growth of the regret per ln B, for arms with finitely many outcomes.

    >>> round(any_law_constant(Problem.bernoulli([0.5, 0.3], [0.5, 0.5])), 6)  # 4.760561 if known to be independent
    4.861279
    """
    worse = worse_arms(problem)
    return float((problem.cost_means * gaps(problem) / any_law_distances(problem))[worse].sum())


def any_law_distances(problem: Problem) -> Array:
    """Dᵢ of every arm; infinite for the best ones, about which nothing need be learned."""
    ratio = best_ratio(problem)
    values = np.full(len(problem), np.inf)
    for arm in worse_arms(problem):
        rewards, costs, weights = outcomes(problem.arms[arm].law, problem.arms[arm].name)
        values[arm] = empirical_divergence(weights, rewards, costs, ratio)
    return values


def outcomes(law: OutcomeLaw, name: str) -> tuple[Array, Array, Array]:
    """The pairs of reward and cost that a finite law gives, and their probabilities."""
    if isinstance(law, JointTable):
        rewards, costs, weights = np.array(law.outcomes).T
        return rewards, costs, weights
    if isinstance(law, Independent | Copula) and (costs_seen := law.cost_atoms()) is not None:
        costs, chances, expected = costs_seen
        if isinstance(law.reward, Bernoulli):  # the mean reward at a cost tells how often it is 1
            weights = np.concatenate([chances * expected, chances * (1.0 - expected)])
            return np.repeat([1.0, 0.0], len(costs)), np.tile(costs, 2), weights
        if isinstance(law, Independent) and (rewards_seen := law.reward.atoms()) is not None:
            rewards, shares = rewards_seen
            return np.repeat(rewards, len(costs)), np.tile(costs, len(rewards)), np.outer(shares, chances).ravel()
    raise ProblemError(
        f"arm {name!r} has a law with infinitely many outcomes, or whose pairs are not known; the bound for any law "
        f"needs a table, or finite laws that are independent"
    )
