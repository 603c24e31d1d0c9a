"""Budgeted Thompson sampling with one posterior for reward and cost together: the paper's future work on correlation.

One Bernoulli(r) trial for the reward and one Bernoulli(c) trial for the cost of a pull give one of four outcomes. Their
probabilities have a Dirichlet posterior; one draw of them gives both means,

    (p11, p10, p01, p00) ~ Dirichlet(a + n11, a + n10, a + n01, a + n00), θr = p11 + p10, θc = p11 + p01,

and argmax θr / θc is pulled. The trials of a pull are independent given r and c, so E[r̃c̃] = E[rc]: the covariance of
reward and cost is kept exactly. (One uniform for both trials would turn it into E[min(r, c)].) Where an arm's costly
pulls are those that pay, the ratio is known better than two separate posteriors tell, and less is explored; where they
are those that do not pay, it is known worse.

With a = 1/2, the default, either mean has the uniform prior of BTS, and it is the Jeffreys prior of four outcomes. The
ratio does not look at p00: pulls that neither pay nor cost say nothing about it. It must know nothing. No regret is
proved for it.

Xia, Li, Qin, Yu, Liu: Thompson Sampling for Budgeted Multi-armed Bandits. IJCAI 2015, Section 6 (future work).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from budgetbandits.numerics.arrays import Arms, Array, trial
from budgetbandits.policies.beta_priors import LEAST_PARAMETER, MOST_PARAMETER
from budgetbandits.policies.sampling import Posterior, SamplingPolicy

BOTH, PAID, CHARGED, NEITHER = range(4)
"""The outcomes of a pull, in the order of the statistics: a reward and a cost, only a reward, only a cost, nothing."""


def score(statistics: Array, rng: np.random.Generator) -> float:
    """θr / θc: probabilities are gamma variates by their sum, and the sum cancels."""
    both: float = rng.standard_gamma(statistics[BOTH])
    paid: float = rng.standard_gamma(statistics[PAID])
    charged: float = rng.standard_gamma(statistics[CHARGED])
    return (both + paid) / (both + charged)


def learn(statistics: Array, reward: float, cost: float, rng: np.random.Generator) -> None:
    """One trial for each, and the outcome of both is counted."""
    paid = trial(reward, rng) == 1.0
    charged = trial(cost, rng) == 1.0
    if charged:
        statistics[BOTH if paid else CHARGED] += 1.0
    else:
        statistics[PAID if paid else NEITHER] += 1.0


@dataclass(frozen=True)
class JointThompson(SamplingPolicy):
    """Budgeted Thompson Sampling with a joint posterior of reward and cost.

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
    score = staticmethod(score)
    learn = staticmethod(learn)

    weight: float = 0.5
    """What each outcome counts for before the first pull."""

    def __post_init__(self) -> None:
        self.between(LEAST_PARAMETER, MOST_PARAMETER, weight=self.weight)

    def prior(self) -> tuple[float, ...]:
        return (self.weight,) * 4

    def draw(self, state: Posterior, rng: np.random.Generator, rounds: int, arms: Arms | None = None) -> Array:
        counts = state.statistics[:NEITHER] if arms is None else state.statistics[:NEITHER, arms]
        both, paid, charged = np.moveaxis(rng.standard_gamma(counts, size=(rounds, *counts.shape)), 1, 0)
        return np.asarray((both + paid) / (both + charged))

    def add_history(self, state: Posterior, arm: int, pulls: int, reward: float, cost: float) -> None:
        """Totals say nothing about the pairs: rewards and costs are taken for independent."""
        state.pulls[arm] += pulls
        paid, charged = (reward / pulls, cost / pulls) if pulls else (0.0, 0.0)
        shares = (paid * charged, paid * (1.0 - charged), (1.0 - paid) * charged, (1.0 - paid) * (1.0 - charged))
        state.statistics[:, arm] += [pulls * share for share in shares]
