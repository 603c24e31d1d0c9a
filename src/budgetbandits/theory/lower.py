"""Lower bounds: the asymptotic growth of the regret that no policy can avoid.

**Independent Bernoulli rewards and costs** (Lai and Robbins' bound with prices). A policy whose regret grows slower
than any power of B on every such problem has

    liminf Regret / ln B ≥ Σᵢ μcᵢ Δᵢ / dᵢ,   dᵢ = inf { kl(μrᵢ, r) + kl(μcᵢ, c) : r ≥ ρ* c, r ≤ 1 }:

to know that arm i is not the best, it must be pulled often enough to tell its law from the nearest that would be.
`divergence` has dᵢ in closed form. Near a tie ρ*μcᵢ − μrᵢ is a difference of almost equal numbers, so it is computed
from the gap Δᵢ, never by subtraction.

With ``known_costs`` the policy knows every cost beforehand, c = μcᵢ, and dᵢ = kl(μrᵢ, ρ* μcᵢ); an arm that would have
to pay more than 1 to be the best needs no pulls at all. With all costs 1 that is Lai and Robbins' bound. A policy that
must learn the costs cannot reach it: having seen nothing but costs of 1, it cannot rule out a cheaper arm.

Rewards and costs that are not Bernoulli count by their means: the constant is then that of policies which, like
Budgeted Thompson Sampling, learn from one Bernoulli trial of each.

**Any law in [0, 1]², correlated or not.** A policy whose regret grows slower than any power of B on all of these has

    liminf Regret / ln B ≥ Σᵢ μcᵢ Δᵢ / Dᵢ,   Dᵢ = max{ E ln(1 − λ(Rᵢ − ρ*Cᵢ)) : 0 ≤ λ ≤ 1 }.

docs/explanation/theory.md, "Any law", has the proof: Dᵢ is the relative entropy to an explicit law with ratio ρ*.
Among all laws the nearest one that would be best is no farther than among pairs of Bernoulli laws, so this constant is
at least the first one: the difference is the price of not knowing that rewards and costs are Bernoulli and independent.
"""

from __future__ import annotations

import numpy as np

from budgetbandits.errors import ProblemError
from budgetbandits.numerics.arrays import Array
from budgetbandits.numerics.divergence import divergence_at_gap, empirical_divergence, shifted_entropy
from budgetbandits.problems.distributions import Bernoulli, Copula, Independent, JointTable, OutcomeLaw
from budgetbandits.problems.oracle import best_ratio, gaps
from budgetbandits.problems.problem import Problem
from budgetbandits.theory.constants import check_independent, worse_arms

REWARD_ROUNDING = 1e-12
"""Relative error up to which ρ*·μc counts as a mean reward of 1."""


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
    """The divergence dᵢ of every arm; infinite for the best ones, about which nothing need be learned."""
    check_independent(problem)
    worse, ratio = worse_arms(problem), best_ratio(problem)
    reward, cost, gap = problem.reward_means[worse], problem.cost_means[worse], gaps(problem)[worse]
    nearest = _with_known_cost if known_costs else divergence_at_gap
    values = np.full(len(problem), np.inf)
    values[worse] = nearest(reward, cost, ratio, cost * gap)
    return values


def _with_known_cost(reward: Array, cost: Array, ratio: float, gap: Array) -> Array:
    needed = ratio * cost
    possible = needed < 1.0 - REWARD_ROUNDING
    return np.where(possible, shifted_entropy(reward, np.where(possible, needed, 0.5), gap), np.inf)


# --- any law ----------------------------------------------------------------------------------------------------------


def any_law_constant(problem: Problem) -> float:
    """The smallest possible growth of the regret per ln B, for arms with finitely many outcomes.

    >>> round(any_law_constant(Problem.bernoulli([0.5, 0.3], [0.5, 0.5])), 6)  # 4.760561 if known to be independent
    4.861279
    """
    worse = worse_arms(problem)
    return float((problem.cost_means * gaps(problem) / any_law_distances(problem))[worse].sum())


def any_law_distances(problem: Problem) -> Array:
    """The divergence Dᵢ of every arm; infinite for the best ones, about which nothing need be learned."""
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
