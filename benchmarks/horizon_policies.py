"""Three index policies that look at the money left where their rule has the time: what the horizon alone gives. And
one that looks at the whole budget where its rule has the money left.

A rule for an unknown horizon lets its bounds rise with the round t. Where the budget is known, what matters is how
often an arm would have been pulled by the end if all the money left were spent on it. With n pulls, means r̄ and c̄ and
the money left b that is

    N = n + b/c̄.

Each rule is the package's own with N in the place of t; d(r̄, c̄; λ) is the relative entropy from the arm's means to
the nearest ones with ratio λ.

    omega-star-horizon   ω*-UCB with z² = 2ρ ln N
    kl-ucb-sc-horizon    KL-UCB-SC+: the largest λ with n d(r̄, c̄; λ) ≤ ln(N/n)
    imed-moss-horizon    the largest λ with κ n d(r̄, c̄; λ) ≤ ln(N/max(n, K)), at least 0, with K arms

The last one is imed-moss as a bound. That pulls the arm with the least κ n d(r̄, c̄; ρ̂) + ln max(n/K, 1). The arm with
the best ratio ρ̂ has no evidence against it, so that another one is pulled if κ n d(r̄, c̄; ρ̂) ≤ ln(n*/max(n, K)), where
n* > K counts the pulls of the best. That is to say, if the largest λ for which this holds is above ρ̂. n* is the time
of this rule, and N stands in its place.

All rise with b. While an arm has cost nothing its index is +∞, as in the package's rules. The fourth,
`gittins-ratio-whole`, is gittins-ratio with the budget B in the place of b. None is in print as far as we know.
`python benchmarks/champion.py` compares them with the package's rules and the champion.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from budgetbandits.numerics.divergence import largest_ratio
from budgetbandits.policies.base import NOT_IN_PRINT
from budgetbandits.policies.gittins_ratio import GittinsRatio, gittins_ratio
from budgetbandits.policies.index import MoneyPolicy, Monotonicity
from budgetbandits.policies.omega_ucb import RHO, by_variances
from budgetbandits.policies.statistics import Moments

SMALLEST_COST = 1e-12
"""Stands for a mean cost of 0, where the index is infinite whatever N is."""


def pulls_by_the_end(mean_cost: Any, pulls: Any, left: Any) -> Any:
    """N: the pulls that the arm has, and those that all the money left would buy."""
    return pulls + left / np.maximum(mean_cost, SMALLEST_COST)


def omega_star_horizon(
    mean_reward: Any, mean_cost: Any, pulls: Any, rounds: Any, reward_variance: Any, cost_variance: Any, left: Any,
    rho: Any,
) -> Any:  # fmt: skip
    square = 2.0 * rho * np.log(np.maximum(pulls_by_the_end(mean_cost, pulls, left), 1.0))
    return by_variances(mean_reward, mean_cost, pulls, reward_variance, cost_variance, square)


def kl_ucb_sc_horizon(
    mean_reward: Any, mean_cost: Any, pulls: Any, rounds: Any, reward_variance: Any, cost_variance: Any, left: Any
) -> Any:
    more = np.maximum(pulls_by_the_end(mean_cost, pulls, left) / pulls, 1.0)
    return largest_ratio(mean_reward, mean_cost, np.log(more) / pulls)


def imed_moss_horizon(
    mean_reward: Any, mean_cost: Any, pulls: Any, rounds: Any, reward_variance: Any, cost_variance: Any, left: Any,
    kappa: Any, arms: Any,
) -> Any:  # fmt: skip
    more = np.maximum(pulls_by_the_end(mean_cost, pulls, left) / np.maximum(pulls, arms), 1.0)
    return largest_ratio(mean_reward, mean_cost, np.log(more) / (kappa * pulls))


@dataclass(frozen=True)
class HorizonPolicy(MoneyPolicy):
    """The common part of the three rules."""

    reference = NOT_IN_PRINT
    proven = "nothing"
    monotone = Monotonicity(rises_with_rounds=True, ignores_rounds=True, rises_with_money=True, error=1e-6)


@dataclass(frozen=True)
class OmegaStarHorizon(HorizonPolicy):
    """ω*-UCB with the pulls that the money left would buy in place of the rounds."""

    name: ClassVar[str] = "omega-star-horizon"
    index = staticmethod(omega_star_horizon)
    rho: float = RHO

    def __post_init__(self) -> None:
        self.positive(rho=self.rho)

    def extras(self, state: Moments) -> tuple[Any, ...]:
        return (*self.money_extras(state), self.rho)


@dataclass(frozen=True)
class KLUCBSCHorizon(HorizonPolicy):
    """KL-UCB-SC+ with the pulls that the money left would buy in place of the rounds."""

    name: ClassVar[str] = "kl-ucb-sc-horizon"
    index = staticmethod(kl_ucb_sc_horizon)

    def extras(self, state: Moments) -> tuple[Any, ...]:
        return self.money_extras(state)


@dataclass(frozen=True)
class IMEDMossHorizon(HorizonPolicy):
    """IMED-MOSS as a bound, with the pulls that the money left would buy in place of the best arm's."""

    name: ClassVar[str] = "imed-moss-horizon"
    index = staticmethod(imed_moss_horizon)
    kappa: float = 2.0

    def __post_init__(self) -> None:
        self.positive(kappa=self.kappa)

    def extras(self, state: Moments) -> tuple[Any, ...]:
        return (*self.money_extras(state), self.kappa, float(max(state.active.sum(), 1)))


def gittins_ratio_whole(
    mean_reward: Any, mean_cost: Any, pulls: Any, rounds: Any, reward_variance: Any, cost_variance: Any, left: Any,
    good: Any, bad: Any, costly: Any, free: Any, width: Any, budget: Any,
) -> Any:  # fmt: skip
    return gittins_ratio(
        mean_reward, mean_cost, pulls, rounds, reward_variance, cost_variance, budget, good, bad, costly, free, width
    )


@dataclass(frozen=True)
class GittinsRatioWhole(GittinsRatio):
    """Gittins-ratio with the whole budget in place of the money left."""

    name: ClassVar[str] = "gittins-ratio-whole"
    index = staticmethod(gittins_ratio_whole)  # type: ignore[assignment]

    def extras(self, state: Moments) -> tuple[Any, ...]:
        return (*super().extras(state), state.known.budget)
