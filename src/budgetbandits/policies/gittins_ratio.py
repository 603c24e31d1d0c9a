"""Gittins-ratio: an arm is tried while the money left could pay for what the trial teaches.

Against a known rate λ of reward for money, an arm is a one-armed bandit: each pull gains R − λC, and the money left
buys a number of them. Its Bayes-optimal index, Gittins' for a finite horizon, is the λ at which trying it is worth
nothing. With n pulls, sums S and C, and Beta priors with counts a, a′ of the reward and c, c′ of the cost, let

    n_r = n + a + a′,   p = (S + a)/n_r,   n_c = n + c + c′,   q = (C + c)/n_c,   N = n′ + b/q,

where b is the money left and n′ a mean of n_r and n_c, weighted by what reward and cost add to the variance of the
ratio: N is how often the arm would have been pulled by the end. The index is the largest λ with

    min { n_r/e_r kl(p, r) + n_c/e_c kl(q, c) : r ≥ λc } ≤ A h²(n′/N)/2,

where h is the boundary of the stopping problem (`theory.stopping`) and e narrows the interval of outcomes that scatter
less than 0 and 1 would: V/(m(1 − m)) with the variance V and the mean m, at most 1, shrunk to 1 as by ten pulls more,
and 1 before the tenth pull. An arm without pulls has its index from the prior, so no arm is pulled first by force. The
prior is uniform until the arms that were pulled clearly say otherwise (`policies.prior`).

A = 1 is the boundary itself; a larger A shortens the tail of the regret. The index of an arm falls as money is spent on
others, since h falls with n′/N. Not in print for ratios as far as we know; docs/explanation/gittins_ratio.md says what
is proved.

Gittins: Bandit Processes and Dynamic Allocation Indices. JRSS B 41, 1979.
Lattimore: Regret Analysis of the Finite-Horizon Gittins Index Strategy for Multi-Armed Bandits. COLT 2016.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from budgetbandits.numerics.arrays import where
from budgetbandits.numerics.compilation import compiled
from budgetbandits.numerics.divergence import largest_weighted_ratio
from budgetbandits.numerics.stopping import allowed_evidence
from budgetbandits.policies.base import NOT_IN_PRINT
from budgetbandits.policies.index import Monotonicity
from budgetbandits.policies.prior import PriorPolicy
from budgetbandits.policies.statistics import Moments

VARIANCE_PULLS = 10.0
"""The pulls from which the variance counts, and how many pulls of 0 and 1 it is shrunk by."""


@compiled
def scatter(mean: Any, variance: Any, pulls: Any) -> Any:
    """The variance by that of 0 and 1 with the same mean: 1 at most, and shrunk to 1."""
    largest = mean * (1.0 - mean)
    share = np.minimum(variance / np.maximum(largest, 1e-300), 1.0)
    shrunk = (pulls * share + VARIANCE_PULLS) / (pulls + VARIANCE_PULLS)
    return where((pulls >= VARIANCE_PULLS) & (largest > 0.0), shrunk, 1.0)


@compiled
def gittins_ratio(
    mean_reward: Any, mean_cost: Any, pulls: Any, rounds: Any, reward_variance: Any, cost_variance: Any, left: Any,
    good: Any, bad: Any, costly: Any, free: Any, width: Any,
) -> Any:  # fmt: skip
    """The index of Gittins ratio."""
    rewards, costs = pulls + good + bad, pulls + costly + free
    reward, cost = (pulls * mean_reward + good) / rewards, (pulls * mean_cost + costly) / costs
    reward_scatter = scatter(mean_reward, reward_variance, pulls)
    cost_scatter = scatter(mean_cost, cost_variance, pulls)
    reward_weight, cost_weight = rewards / reward_scatter, costs / cost_scatter
    reward_part = reward_scatter * (1.0 - reward) * cost
    cost_part = cost_scatter * (1.0 - cost) * reward
    counted = (reward_part + cost_part) / (reward_part / rewards + cost_part / costs)
    level = width * allowed_evidence(counted / (counted + left / cost))
    return largest_weighted_ratio(reward, cost, reward_weight, cost_weight, level)


@dataclass(frozen=True)
class GittinsRatio(PriorPolicy):
    r"""Tries an arm while the money left could pay for what is learned.

    Pulls the arm with the largest $r/c$ for which $n_r\, \mathrm{kl}(p, r) / e_r + n_c\, \mathrm{kl}(q, c) / e_c \le
    A\, h^2(n' / N) / 2$. Here $p$ and $q$ are its means and $n_r$ and $n_c$ its pulls, with the counts of a Beta prior
    each; $n'$ is a mean of $n_r$ and $n_c$; $N = n' + b/q$ with the money left $b$; $h$ is the boundary of the stopping
    problem; and $e$ is less than 1 where outcomes scatter less than 0 and 1 would. No arm is pulled first by force.

    width  A; 1 is the boundary itself, and more shortens the tail of the regret

    >>> GittinsRatio(width=1.5).spec
    'gittins-ratio:width=1.5'
    """

    name = "gittins-ratio"
    reference = NOT_IN_PRINT
    proven = "A times the lower bound, Bernoulli, for A ≥ 1"
    index = staticmethod(gittins_ratio)
    monotone = Monotonicity(rises_with_rounds=True, ignores_rounds=True, rises_with_money=True, error=1e-6)
    first_pulls = False
    width: float = 1.25

    def __post_init__(self) -> None:
        super().__post_init__()
        self.between(1e-3, 10.0, width=self.width)  # beyond, nine steps do not find every index

    def extras(self, state: Moments) -> tuple[Any, ...]:
        return (*self.prior_extras(state), self.width)
