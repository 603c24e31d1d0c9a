"""UCB-B1, UCB-B2 and UCB-B2C: confidence bounds on the ratio from variances, for correlated rewards and costs.

With a slope ω, the residual z = r − ωc, and widths ε of its mean and η of the mean cost, the ratio of the means is off
by (δz − (ρ − ω) δc)/c̄, so that

    index = r̄/c̄ + 1.4 (ε + |r̄/c̄ − ω| η) / c̄,   +∞ unless η < c̄ (λ − 1)/λ,   λ = 1.28.

The gate compares η with the mean *cost*: the expansion holds while the cost is known to within a factor.

    ucb-b1    variances known: ω = 0, ε = √(2 v α ln t/n) + 2 α ln t/(3n), v = ``reward_variance``, η likewise
    ucb-b2    variances learned: ω = 0, ε = √(2 V α ln t/n) + 3 α ln t/n, η likewise
    ucb-b2c   also the correlation: ω = Cov/Var of the costs, V that of the residuals, 3(1 + |ω|) α ln t/n behind it

α must exceed 2; all prove O(ln B) regret. The paper's UCB-B1 is told each arm's own moments. Here one bound on the
variances serves all arms, and ¼ is right for anything in [0, 1]. Its UCB-B2C is told a bound on the slopes, where the
learned one is used here, and |·| stands where one public code has a positive part, as the error formula above demands.

Cayci, Eryilmaz, Srikant: Budget-Constrained Bandits over General Cost and Reward Distributions. AISTATS 2020.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from budgetbandits.errors import BadParameter
from budgetbandits.policies.base import LARGEST_PARAMETER
from budgetbandits.policies.index import RISING, IndexPolicy, MomentsPolicy, Monotone, either
from budgetbandits.policies.statistics import Moments, T, Tally

GATE = 0.28 / 1.28
"""(λ − 1)/λ: the cost must be known to within this share of it."""


def rate_bound(mean_reward: Any, mean_cost: Any, reward_width: Any, cost_width: Any, slope: Any) -> Any:
    """The index for given widths of residual and cost."""
    known = (mean_cost > 0.0) & (cost_width < GATE * mean_cost)
    price = either(known, mean_cost, 1.0)
    ratio = mean_reward / price
    return either(known, ratio + 1.4 * (reward_width + np.abs(ratio - slope) * cost_width) / price, np.inf)


def ucb_b1(
    mean_reward: Any, mean_cost: Any, pulls: Any, rounds: Any, reward_variance: Any, cost_variance: Any, alpha: Any
) -> Any:
    share = alpha * np.log(np.maximum(rounds, 1.0)) / pulls
    reward_width = np.sqrt(2.0 * reward_variance * share) + 2.0 * share / 3.0
    cost_width = np.sqrt(2.0 * cost_variance * share) + 2.0 * share / 3.0
    return rate_bound(mean_reward, mean_cost, reward_width, cost_width, 0.0)


def ucb_b2(
    mean_reward: Any, mean_cost: Any, pulls: Any, rounds: Any, reward_variance: Any, cost_variance: Any,
    covariance: Any, alpha: Any,
) -> Any:  # fmt: skip
    share = alpha * np.log(np.maximum(rounds, 1.0)) / pulls
    reward_width = np.sqrt(2.0 * reward_variance * share) + 3.0 * share
    cost_width = np.sqrt(2.0 * cost_variance * share) + 3.0 * share
    return rate_bound(mean_reward, mean_cost, reward_width, cost_width, 0.0)


def ucb_b2c(
    mean_reward: Any, mean_cost: Any, pulls: Any, rounds: Any, reward_variance: Any, cost_variance: Any,
    covariance: Any, alpha: Any,
) -> Any:  # fmt: skip
    share = alpha * np.log(np.maximum(rounds, 1.0)) / pulls
    slope = either(cost_variance > 1e-12, covariance / np.maximum(cost_variance, 1e-12), 0.0)
    residual = np.maximum(reward_variance - slope * covariance, 0.0)
    reward_width = np.sqrt(2.0 * residual * share) + 3.0 * (1.0 + np.abs(slope)) * share
    cost_width = np.sqrt(2.0 * cost_variance * share) + 3.0 * share
    return rate_bound(mean_reward, mean_cost, reward_width, cost_width, slope)


def check_alpha(policy: str, alpha: float) -> None:
    """The proofs need α > 2."""
    if not 2.0 < alpha <= LARGEST_PARAMETER:
        raise BadParameter(f"{policy}: alpha is {alpha}; use a number above 2")


@dataclass(frozen=True)
class KnownVariances(IndexPolicy[T]):
    """A policy that is told bounds on the variances of all arms."""

    reward_variance: float = 0.25
    cost_variance: float = 0.25
    alpha: float = 2.1

    def __post_init__(self) -> None:
        check_alpha(self.name, self.alpha)
        for what, value in (("reward_variance", self.reward_variance), ("cost_variance", self.cost_variance)):
            if not 0.0 <= value <= 0.25:
                raise BadParameter(
                    f"{self.name}: {what} is {value}; use a number from 0 to 0.25, the most there is in [0, 1]"
                )


@dataclass(frozen=True)
class UCBB1(KnownVariances):
    """Confidence bound on the ratio from known variances.

    >>> UCBB1(cost_variance=0.1).spec
    'ucb-b1:cost_variance=0.1'
    """

    name = "ucb-b1"
    reference = "Cayci, Eryilmaz and Srikant, AISTATS 2020"
    proven = "O(ln B)"
    index = staticmethod(ucb_b1)
    monotone = RISING

    def extras(self, state: Tally) -> tuple[Any, ...]:
        return (self.reward_variance, self.cost_variance, self.alpha)


@dataclass(frozen=True)
class UCBB2(MomentsPolicy):
    """Confidence bound on the ratio that learns the variances."""

    name = "ucb-b2"
    reference = "Cayci, Eryilmaz and Srikant, AISTATS 2020"
    proven = "O(ln B)"
    index = staticmethod(ucb_b2)
    monotone = Monotone(rises_with_rounds=True)
    alpha: float = 2.1

    def __post_init__(self) -> None:
        check_alpha(self.name, self.alpha)

    def extras(self, state: Moments) -> tuple[Any, ...]:
        return (*state.moments, self.alpha)


@dataclass(frozen=True)
class UCBB2C(UCBB2):
    """UCB-B2 that learns the correlation, too."""

    name = "ucb-b2c"
    reference = "Cayci, Eryilmaz and Srikant, AISTATS 2020"
    proven = "O(ln B)"
    index = staticmethod(ucb_b2c)
