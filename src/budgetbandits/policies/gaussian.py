"""Budgeted Thompson sampling with Gaussian posteriors: the paper's future work, for rewards and costs of any law.

BTS turns each reward and cost between 0 and 1 into a Bernoulli trial, which adds noise. This one takes them as they
are, as if they were Gaussian around an unknown mean with standard deviation σ. With the prior N(1/2, σ²) restricted
to [0, 1], where means lie, the posteriors after n pulls with mean reward r̄ are

    θr ~ N((n r̄ + 1/2) / (n + 1), σ² / (n + 1)) restricted to [0, 1], and θc likewise,

and argmax θr / θc is pulled. The restriction is what makes the ratio sane. An unrestricted θc is often 0 or less as
long as an arm has few pulls or a small cost. Cut off at a small floor, all those draws would be one enormous ratio:
arms would be pulled for being uncertain in their cost, however little they pay. Restricted, θc has a bounded density
near 0, as under the uniform prior of BTS, and P(θr/θc > ρ) falls like 1/ρ. Draws outside [0, 1] are drawn again; about
half of them or more are kept.

σ = 1/2 is safe: a law on [0, 1] has no larger deviation, and its tails are no heavier than those of that Gaussian.
Where deviations are known to be smaller, a smaller σ explores less. It must know nothing. No regret is proved for it.

Xia, Li, Qin, Yu, Liu: Thompson Sampling for Budgeted Multi-armed Bandits. IJCAI 2015, Section 6 (future work).
Agrawal, Goyal: Further Optimal Regret Bounds for Thompson Sampling. AISTATS 2013 (Gaussian posteriors, unit costs).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from budgetbandits.numerics.arrays import Arms, Array
from budgetbandits.numerics.posteriors import RestrictedNormal
from budgetbandits.policies.sampling import Posterior, SamplingPolicy

LEAST_SIGMA, MOST_SIGMA = 0.001, 1.0
"""A sane range: a law on [0, 1] has no deviation above 1/2."""

SMALLEST_DRAW = 1e-16
"""What rounding might make a 0, which a draw never is."""


def score(statistics: Array, rng: np.random.Generator, sigma: float) -> float:
    """θr / θc; the statistics are n + 1, and the sums of rewards and costs with 1/2 added to each."""
    scale = sigma / math.sqrt(statistics[0])
    reward = -1.0
    while not 0.0 < reward <= 1.0:
        reward = rng.normal(statistics[1] / statistics[0], scale)
    cost = -1.0
    while not 0.0 < cost <= 1.0:
        cost = rng.normal(statistics[2] / statistics[0], scale)
    return reward / cost


def learn(statistics: Array, reward: float, cost: float, rng: np.random.Generator, sigma: float) -> None:
    statistics[0] += 1.0
    statistics[1] += reward
    statistics[2] += cost


@dataclass(frozen=True)
class GaussianThompson(SamplingPolicy):
    """Budgeted Thompson Sampling with Gaussian posteriors.

    >>> policy = GaussianThompson()
    >>> state = policy.start(2)
    >>> policy.observe(state, 0, reward=0.9, cost=0.3, rng=np.random.default_rng(1))
    >>> state.statistics.tolist()
    [[2.0, 1.0], [1.4, 0.5], [0.8, 0.5]]
    """

    name = "bts-gaussian"
    label = "Gaussian BTS"
    reference = "future work of Xia et al. 2015"
    proven = "nothing"
    own_scales: ClassVar[bool] = True
    score = staticmethod(score)
    learn = staticmethod(learn)

    sigma: float = 0.5

    def __post_init__(self) -> None:
        self.between(LEAST_SIGMA, MOST_SIGMA, sigma=self.sigma)

    def prior(self) -> tuple[float, ...]:
        return 1.0, 0.5, 0.5

    def extras(self) -> tuple[float, ...]:
        return (self.sigma,)

    def draw(self, state: Posterior, rng: np.random.Generator, rounds: int, arms: Arms | None = None) -> Array:
        n, reward, cost = state.statistics if arms is None else state.statistics[:, arms]
        scale = self.sigma / np.sqrt(n)
        return _restricted(reward / n, scale, rounds, rng) / _restricted(cost / n, scale, rounds, rng)

    def add_history(self, state: Posterior, arm: int, pulls: int, reward: float, cost: float) -> None:
        state.pulls[arm] += pulls
        state.statistics[:, arm] += (pulls, reward, cost)


def _restricted(mean: Array, scale: Array, rounds: int, rng: np.random.Generator) -> Array:
    """Normal variates in (0, 1], as (round, arm): by inversion, in one go for all."""
    drawn = RestrictedNormal(mean, scale).quantile(rng.random((rounds, len(mean))))
    return np.asarray(np.maximum(drawn, SMALLEST_DRAW))
