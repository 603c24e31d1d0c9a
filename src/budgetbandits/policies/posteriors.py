"""Budgeted Thompson sampling with other posteriors, the paper's future work, and the posterior of an arm by any policy.

Both policies draw θr and θc for every arm and pull argmax θr / θc, as BTS does. They must know nothing, and no regret
is proved for them.

**Gaussian posteriors.** BTS turns each reward and cost between 0 and 1 into a Bernoulli trial, which adds noise. This
one takes them as they are, as if they were Gaussian around an unknown mean with standard deviation σ. With the prior
N(1/2, σ²) restricted to [0, 1], where means lie, the posteriors after n pulls with mean reward r̄ are

    θr ~ N((n r̄ + 1/2) / (n + 1), σ² / (n + 1)) restricted to [0, 1], and θc likewise.

The restriction is what makes the ratio sane. An unrestricted θc is often 0 or less as long as an arm has few pulls or a
small cost. Cut off at a small floor, all those draws would be one enormous ratio: arms would be pulled for being
uncertain in their cost, however little they pay. Restricted, θc has a bounded density near 0, as under the uniform
prior of BTS, and P(θr/θc > ρ) falls like 1/ρ. Draws outside [0, 1] are drawn again; about half of them or more are
kept.

σ = 1/2 is safe: a law on [0, 1] has no larger deviation, and its tails are no heavier than those of that Gaussian.
Where deviations are known to be smaller, a smaller σ explores less.

**One posterior for reward and cost together**, for outcomes that are correlated. One Bernoulli(r) trial for the reward
and one Bernoulli(c) trial for the cost of a pull give one of four outcomes. Their probabilities have a Dirichlet
posterior; one draw of them gives both means,

    (p11, p10, p01, p00) ~ Dirichlet(a + n11, a + n10, a + n01, a + n00), θr = p11 + p10, θc = p11 + p01.

The trials of a pull are independent given r and c, so E[r̃c̃] = E[rc]: the covariance of reward and cost is kept
exactly. (One uniform for both trials would turn it into E[min(r, c)].) Where an arm's costly pulls are those that pay,
the ratio is known better than two separate posteriors tell, and less is explored; where they are those that do not pay,
it is known worse.

With a = 1/2, the default, either mean has the uniform prior of BTS, and it is the Jeffreys prior of four outcomes. The
ratio does not look at p00: pulls that neither pay nor cost say nothing about it.

Xia, Li, Qin, Yu, Liu: Thompson Sampling for Budgeted Multi-armed Bandits. IJCAI 2015, Section 6 (future work).
Agrawal, Goyal: Further Optimal Regret Bounds for Thompson Sampling. AISTATS 2013 (Gaussian posteriors, unit costs).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from budgetbandits.errors import BadParameter
from budgetbandits.numerics.arrays import Arms, Array, trial
from budgetbandits.numerics.posteriors import ArmPosterior, BetaPosterior, JointRatioPosterior, RestrictedNormal
from budgetbandits.policies.base import Policy, State
from budgetbandits.policies.beta_priors import PRIOR_MAX, PRIOR_MIN
from budgetbandits.policies.sampling import Posterior, SamplingPolicy
from budgetbandits.policies.statistics import corner_shares

# --- Gaussian ---------------------------------------------------------------------------------------------------------

SIGMA_MIN, SIGMA_MAX = 0.001, 1.0
"""A sane range: a law on [0, 1] has no deviation above 1/2."""

SMALLEST_DRAW = 1e-16
"""The smallest draw: rounding might make it 0, which no draw is."""


def gaussian_score(statistics: Array, rng: np.random.Generator, sigma: float) -> float:
    """θr / θc; the statistics are n + 1, and the sums of rewards and costs with 1/2 added to each."""
    scale = sigma / math.sqrt(statistics[0])
    reward = -1.0
    while not 0.0 < reward <= 1.0:
        reward = rng.normal(statistics[1] / statistics[0], scale)
    cost = -1.0
    while not 0.0 < cost <= 1.0:
        cost = rng.normal(statistics[2] / statistics[0], scale)
    return reward / cost


def gaussian_learn(statistics: Array, reward: float, cost: float, rng: np.random.Generator, sigma: float) -> None:
    """Count an outcome as it is."""
    statistics[0] += 1.0
    statistics[1] += reward
    statistics[2] += cost


@dataclass(frozen=True)
class GaussianThompson(SamplingPolicy):
    r"""Budgeted Thompson Sampling with Gaussian posteriors.

    Draws $\theta_r \sim N\bigl((\sum r + \tfrac12) / (n + 1),\, \sigma^2 / (n + 1)\bigr)$ and $\theta_c$ likewise, both
    restricted to [0, 1]; pulls the arm with the largest $\theta_r / \theta_c$. Outcomes count as they are, without
    trials. No arm is pulled first by force.

    sigma  σ; 0.5 is safe for every law on [0, 1], and less explores less

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
    score = staticmethod(gaussian_score)
    learn = staticmethod(gaussian_learn)

    sigma: float = 0.5

    def __post_init__(self) -> None:
        self.between(SIGMA_MIN, SIGMA_MAX, sigma=self.sigma)

    def prior(self) -> tuple[float, ...]:
        return 1.0, 0.5, 0.5

    def extras(self) -> tuple[float, ...]:
        return (self.sigma,)

    def draw(self, state: Posterior, rng: np.random.Generator, rounds: int, arms: Arms | None = None) -> Array:
        n, reward, cost = state.statistics if arms is None else state.statistics[:, arms]
        scale = self.sigma / np.sqrt(n)
        return _restricted_normals(reward / n, scale, rounds, rng) / _restricted_normals(cost / n, scale, rounds, rng)

    def add_history(self, state: Posterior, arm: int, pulls: int, reward: float, cost: float) -> None:
        state.pulls[arm] += pulls
        state.statistics[:, arm] += (pulls, reward, cost)

    def totals(self, state: Posterior, arm: int) -> tuple[float, float, float]:
        _, reward, cost = (state.statistics[:, arm] - self.prior()).tolist()
        return float(state.pulls[arm]), reward, cost

    def kept_posterior(self, state: Posterior, arm: int) -> ArmPosterior:
        count, *sums = state.statistics[:, arm].tolist()
        deviation = self.sigma / math.sqrt(count)
        return ArmPosterior.independent(*(RestrictedNormal(total / count, deviation) for total in sums))


def _restricted_normals(mean: Array, scale: Array, rounds: int, rng: np.random.Generator) -> Array:
    """Normal variates in (0, 1], as (round, arm): by inversion, in one go for all."""
    drawn = RestrictedNormal(mean, scale).quantile(rng.random((rounds, len(mean))))
    return np.asarray(np.maximum(drawn, SMALLEST_DRAW))


# --- joint ------------------------------------------------------------------------------------------------------------

BOTH, PAID, CHARGED, NEITHER = range(4)
"""The outcomes of a pull, in the order of the statistics: a reward and a cost, only a reward, only a cost, nothing."""


def joint_score(statistics: Array, rng: np.random.Generator) -> float:
    """θr / θc: probabilities are gamma variates by their sum, and the sum cancels."""
    both: float = rng.standard_gamma(statistics[BOTH])
    paid: float = rng.standard_gamma(statistics[PAID])
    charged: float = rng.standard_gamma(statistics[CHARGED])
    return (both + paid) / (both + charged)


def joint_learn(statistics: Array, reward: float, cost: float, rng: np.random.Generator) -> None:
    """One trial for each, and the outcome of both is counted."""
    paid = trial(reward, rng) == 1.0
    charged = trial(cost, rng) == 1.0
    if charged:
        statistics[BOTH if paid else CHARGED] += 1.0
    else:
        statistics[PAID if paid else NEITHER] += 1.0


@dataclass(frozen=True)
class JointThompson(SamplingPolicy):
    r"""Budgeted Thompson Sampling with a joint posterior of reward and cost.

    A pull is one of four outcomes, paid or not and cost or not, after a trial for each. Draws their probabilities from
    a Dirichlet posterior and pulls the arm with the largest $\theta_r / \theta_c = (p_{11} + p_{10}) / (p_{11} +
    p_{01})$. No arm is pulled first by force.

    weight  what each outcome counts for before the first pull; 0.5 makes both means uniform

    >>> policy = JointThompson()
    >>> state = policy.start(1)
    >>> policy.observe(state, 0, reward=1.0, cost=0.0, rng=np.random.default_rng(1))
    >>> state.statistics[:, 0].tolist()
    [0.5, 1.5, 0.5, 0.5]
    """

    name = "bts-joint"
    label = "joint BTS"
    reference = "future work of Xia et al. 2015"
    proven = "nothing"
    own_scales: ClassVar[bool] = True
    score = staticmethod(joint_score)
    learn = staticmethod(joint_learn)

    weight: float = 0.5
    """The prior count of each outcome."""

    def __post_init__(self) -> None:
        self.between(PRIOR_MIN, PRIOR_MAX, weight=self.weight)

    def prior(self) -> tuple[float, ...]:
        return (self.weight,) * 4

    def draw(self, state: Posterior, rng: np.random.Generator, rounds: int, arms: Arms | None = None) -> Array:
        counts = state.statistics[:NEITHER] if arms is None else state.statistics[:NEITHER, arms]
        both, paid, charged = np.moveaxis(rng.standard_gamma(counts, size=(rounds, *counts.shape)), 1, 0)
        return np.asarray((both + paid) / (both + charged))

    def add_history(self, state: Posterior, arm: int, pulls: int, reward: float, cost: float) -> None:
        """Totals say nothing about the pairs: rewards and costs are taken for independent."""
        state.pulls[arm] += pulls
        state.statistics[:, arm] += corner_shares(pulls, reward, cost)[::-1]

    def totals(self, state: Posterior, arm: int) -> tuple[float, float, float]:
        seen = (state.statistics[:, arm] - self.prior()).tolist()
        return float(state.pulls[arm]), seen[BOTH] + seen[PAID], seen[BOTH] + seen[CHARGED]

    def kept_posterior(self, state: Posterior, arm: int) -> ArmPosterior:
        both, paid, charged, neither = state.statistics[:, arm].tolist()
        return ArmPosterior(
            BetaPosterior(both + paid, charged + neither),
            BetaPosterior(both + charged, paid + neither),
            JointRatioPosterior.from_weights(both, paid, charged),
        )


# --- the posterior of an arm ------------------------------------------------------------------------------------------


def posterior(policy: Policy, state: State, arm: int) -> ArmPosterior:
    """The posterior that the policy keeps of an arm, or the one that its sums make of uniform priors."""
    kept = policy.kept_posterior(state, arm)
    if kept is not None:
        return kept
    sums = policy.totals(state, arm)
    if sums is None:
        raise BadParameter(
            f"{policy.name} says neither totals nor posteriors of its arms; write totals(self, state, arm) in its class"
        )
    count, *totals = sums
    return ArmPosterior.independent(*(BetaPosterior(1.0 + total, 1.0 + count - total) for total in totals))
