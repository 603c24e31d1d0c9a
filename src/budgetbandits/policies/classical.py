"""The classical rules the paper cites. They look at rewards alone: the special case cost ≡ 1, and the baseline that
ignores prices. Thompson sampling stands in `thompson`.

With r̄ the mean reward of n pulls, t rounds played, K arms and kl the Bernoulli relative entropy:

    ucb1       r̄ + √(2 ln t / n)                                       Auer, Cesa-Bianchi, Fischer 2002
    ucb-v      r̄ + √(2 V ζ ln t / n) + 3 ζ ln t / n, V the variance    Audibert, Munos, Szepesvári 2009, ζ = 1.2
    moss       r̄ + √(max(ln(T / (K n)), 0) / n)                        Audibert, Bubeck 2009; T the horizon
    kl-ucb     max{ q : n kl(r̄, q) ≤ ln t + c ln ln t }                Garivier, Cappé 2011; c = 0 as they advise
    bayes-ucb  the quantile 1 − 1/(t (ln T)^c) of Beta(Σr + 1, n − Σr + 1)   Kaufmann, Cappé, Garivier 2012; c = 0 as
               they advise, which leaves T out

All but MOSS prove O(ln T) regret where every cost is 1; MOSS proves O(√(KT)).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy

from budgetbandits.errors import BadParameter
from budgetbandits.numerics.compilation import compiled
from budgetbandits.policies.index import RISING_INDEX, IndexPolicy, where
from budgetbandits.policies.statistics import Tally

NEWTON_STEPS = 10
"""Steps of Newton's method with which an upper bound is found."""

REWARD_INDEX = replace(RISING_INDEX, ignores_cost=True)
"""The monotonicity of indices that look at rewards alone."""


def ucb1(mean_reward: Any, mean_cost: Any, pulls: Any, rounds: Any) -> Any:
    """The index of UCB1: mean reward plus √(2 ln t / n)."""
    return mean_reward + np.sqrt(2.0 * np.log(np.maximum(rounds, 1.0)) / pulls)


def ucb_v(mean_reward: Any, mean_cost: Any, pulls: Any, rounds: Any, variance: Any, zeta: Any) -> Any:
    """The index of UCB-V, whose width follows the variance of rewards."""
    exploration = zeta * np.log(np.maximum(rounds, 1.0)) / pulls
    return mean_reward + np.sqrt(2.0 * variance * exploration) + 3.0 * exploration


def moss(mean_reward: Any, mean_cost: Any, pulls: Any, rounds: Any, share: Any) -> Any:
    """The index of MOSS, for this share of the rounds for each arm."""
    return mean_reward + np.sqrt(np.maximum(np.log(share / pulls), 0.0) / pulls)


def kl_ucb(mean_reward: Any, mean_cost: Any, pulls: Any, rounds: Any, lower_order: Any) -> Any:
    """The index of KL-UCB: the largest mean that the rewards do not rule out."""
    log_rounds = np.log(np.maximum(rounds, 1.0))
    level = (log_rounds + lower_order * np.log(np.maximum(log_rounds, 1.0))) / pulls
    return bernoulli_upper(mean_reward, level)


@compiled
def bernoulli_upper(mean: Any, level: Any) -> Any:
    """The largest q in [mean, 1] with kl(mean, q) ≤ level.

    Newton's method, which never passes the root when it starts to the right of it, where kl is convex. Two bounds to
    start from, both above the root: Pinsker's mean + √(level / 2), tight when the level is small, and what is left of
    kl without −mean·ln q, tight when the level is large. Ten steps leave an error below 1e-11.
    """
    low = np.minimum(np.maximum(mean, 1e-300), 1.0)
    rest = np.maximum(1.0 - low, 1e-300)
    tail = rest * np.exp(-np.minimum((level - low * np.log(low)) / rest, 600.0))
    q_rest = np.minimum(np.maximum(np.maximum(rest - np.sqrt(level / 2.0), tail), 1e-300), rest)
    for _ in range(NEWTON_STEPS):
        q = 1.0 - q_rest  # the complement is what is stored: near q = 1 it keeps the digits
        excess = low * np.log(low / np.maximum(q, low)) + rest * np.log(rest / q_rest) - level
        slope = np.maximum(rest - q_rest, 1e-300) / (np.maximum(q, low) * q_rest)
        q_rest = np.minimum(q_rest + np.maximum(excess, 0.0) / slope, rest)
    return where(mean < 1.0, 1.0 - q_rest, 1.0)


def bayes_ucb(mean_reward: Any, mean_cost: Any, pulls: Any, rounds: Any) -> Any:
    """The index of Bayes-UCB: a quantile of the Beta posterior of the mean reward."""
    successes = mean_reward * pulls
    # the upper tail: 1 − 1/t itself rounds to 1 when t is large
    failures = np.maximum(pulls - successes, 0.0)
    return scipy.special.betainccinv(successes + 1.0, failures + 1.0, 1.0 / np.maximum(rounds, 2.0))


@dataclass(frozen=True)
class UCB1(IndexPolicy):
    r"""Upper confidence bound; ignores costs.

    Pulls the arm with the largest $\bar r + \sqrt{2 \ln t / n}$.
    """

    name = "ucb1"
    label = "UCB1"
    reference = "Auer et al., Machine Learning 2002"
    proven = "O(ln B) if every cost is 1"
    index = staticmethod(ucb1)
    monotone = REWARD_INDEX


@dataclass(frozen=True)
class UCBV(IndexPolicy):
    r"""UCB that learns the variance; ignores costs.

    Pulls the arm with the largest $\bar r + \sqrt{2 V \zeta \ln t / n} + 3 \zeta \ln t / n$, where $V$ is the variance
    of its rewards so far.

    zeta  ζ, the width
    """

    name = "ucb-v"
    label = "UCB-V"
    reference = "Audibert et al., TCS 2009"
    proven = "O(ln B) if every cost is 1"
    index = staticmethod(ucb_v)
    monotone = replace(REWARD_INDEX, rises_with_first=True)
    first_extra = "variance"
    zeta: float = 1.2

    def __post_init__(self) -> None:
        self.positive(zeta=self.zeta)

    def extras(self, state: Tally) -> tuple[Any, ...]:
        return (np.maximum(state.reward_squared / state.seen - state.mean_reward**2, 0.0), self.zeta)


@dataclass(frozen=True)
class MOSS(IndexPolicy):
    r"""Minimax UCB; ignores costs.

    Pulls the arm with the largest $\bar r + \sqrt{\max(\ln(T / (K n)),\, 0) / n}$.

    horizon  T; without it, the budget, which is right where every cost is 1
    """

    name = "moss"
    label = "MOSS"
    reference = "Audibert and Bubeck, COLT 2009"
    proven = "O(√B) if every cost is 1, any problem"
    index = staticmethod(moss)
    monotone = replace(REWARD_INDEX, ignores_rounds=True)
    horizon: float | None = None

    def __post_init__(self) -> None:
        self.positive(horizon=self.horizon)

    @property
    def needs(self) -> frozenset[str]:
        return frozenset() if self.horizon is not None else frozenset({"budget"})

    def extras(self, state: Tally) -> tuple[Any, ...]:
        horizon = state.known.budget if self.horizon is None else self.horizon
        return (horizon / len(state.pulls),)


@dataclass(frozen=True)
class KLUCB(IndexPolicy):
    r"""UCB by relative entropy; ignores costs.

    Pulls the arm with the largest $q$ for which $n \,\mathrm{kl}(\bar r, q) \le \ln t + a \ln \ln t$.

    lower_order  a, from 0 to 1e6; the papers have 0 and 3
    """

    name = "kl-ucb"
    label = "KL-UCB"
    reference = "Garivier and Cappé, COLT 2011"
    proven = "attains the lower bound if every cost is 1"
    index = staticmethod(kl_ucb)
    monotone = REWARD_INDEX
    lower_order: float = 0.0

    def __post_init__(self) -> None:
        if not 0.0 <= self.lower_order <= 1e6:  # the index stays a number; the papers have 0 and 3
            raise BadParameter(f"{self.name}: lower_order is {self.lower_order}; use a number from 0 to 1e6")

    def extras(self, state: Tally) -> tuple[Any, ...]:
        return (self.lower_order,)


@dataclass(frozen=True)
class BayesUCB(IndexPolicy):
    r"""Posterior quantile; ignores costs.

    Pulls the arm with the largest quantile $1 - 1/t$ of $\mathrm{Beta}(\sum r + 1,\, n - \sum r + 1)$.
    """

    name = "bayes-ucb"
    label = "Bayes-UCB"
    reference = "Kaufmann et al., AISTATS 2012"
    proven = "attains the lower bound if every cost is 1"
    index = staticmethod(bayes_ucb)
