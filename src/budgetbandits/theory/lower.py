"""What no policy can avoid: the asymptotic lower bound on the regret, Lai and Robbins' with prices.

A policy whose regret grows slower than any power of B on every problem with independent Bernoulli rewards and costs has

    liminf Regret / ln B ≥ Σᵢ μcᵢ Δᵢ / dᵢ,   dᵢ = inf { kl(μrᵢ, r) + kl(μcᵢ, c) : r ≥ ρ* c, r ≤ 1 }:

to know that arm i is not the best, it must be pulled often enough to tell its law from the nearest that would be.
On the line r = ρ*c the sum is convex in c on [μrᵢ/ρ*, min(μcᵢ, 1/ρ*)], and its derivative has the sign of

    (ρ*c − μrᵢ)(1 − c) + (c − μcᵢ)(1 − ρ*c):

found by bisection, which a sign cannot mislead. Near a tie both brackets are differences of almost equal numbers, so
they are computed from the gap Δᵢ, never by subtraction.

With ``known_costs`` the policy is told every cost beforehand, c = μcᵢ, and dᵢ = kl(μrᵢ, ρ* μcᵢ); an arm that would have
to pay more than 1 to be the best needs no pulls at all. With all costs 1 that is Lai and Robbins' bound. It is not
what a policy that must learn the costs can reach: having seen nothing but costs of 1, it cannot rule out a cheaper arm.

Other rewards and costs than Bernoulli's count by their means: the constant is then that of policies which, like
Budgeted Thompson Sampling, learn from one Bernoulli trial of each.
"""

from __future__ import annotations

import math

import numpy as np

from budgetbandits.arrays import Array
from budgetbandits.oracle import best_ratio, gaps
from budgetbandits.problem import Problem
from budgetbandits.theory.divergence import shifted_entropy
from budgetbandits.theory.gaps import check_independent, worse_arms

BISECTIONS = 100
"""More than a floating-point number has digits, also where the minimum lies very close to an end."""

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
    ratio, gap = best_ratio(problem), gaps(problem)
    nearest = _with_known_cost if known_costs else _with_unknown_cost
    values = np.full(len(problem), np.inf)
    for arm in worse_arms(problem):
        values[arm] = nearest(
            float(problem.reward_means[arm]), float(problem.cost_means[arm]), ratio, float(gap[arm])
        )  # fmt: skip
    return values


def _with_unknown_cost(reward: float, cost: float, ratio: float, gap: float) -> float:
    inside = cost * ratio < 1.0
    high = cost if inside else 1.0 / ratio
    width = (cost * gap if inside else 1.0 - reward) / ratio  # high − μr/ρ*

    def shifts(place: float) -> tuple[float, float]:
        """r − μr and c − μc at a place between 0, the end where r = μr, and 1, the other end."""
        return ratio * place * width, (high - cost) - (1.0 - place) * width

    def total(place: float) -> float:
        up, down = shifts(place)
        r, c = min(reward + up, 1.0), max(cost + down, 0.0)
        if (r == 1.0 and reward < 1.0) or c == 0.0:
            return math.inf
        return shifted_entropy(reward, r, up) + shifted_entropy(cost, c, down)

    low_end, high_end = 0.0, 1.0
    for _ in range(BISECTIONS):
        middle = (low_end + high_end) / 2.0
        up, down = shifts(middle)
        if up * (1.0 - cost - down) + down * (1.0 - reward - up) < 0.0:
            low_end = middle
        else:
            high_end = middle
    return min(total(low_end), total(high_end), total(0.0), total(1.0))


def _with_known_cost(reward: float, cost: float, ratio: float, gap: float) -> float:
    needed = ratio * cost
    if needed >= 1.0 - ROUNDING:
        return math.inf
    return shifted_entropy(reward, needed, cost * gap)
