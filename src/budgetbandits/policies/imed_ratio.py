"""IMED-ratio, its relatives and Maillard-ratio: how unlikely it is that an arm is the best, in closed form.

With d(r̄, c̄; ρ) the relative entropy from the arm's means to the nearest ones with ratio ρ (`divergence`), and ρ̂ the
best empirical ratio,

    imed-ratio       pull argmin κ n d(r̄, c̄; ρ̂) + ln n
    imed-fading      the same with κₙ = 1 + (κ − 1)/(1 + n/f), which falls from κ to 1 as the arm is pulled
    imed-moss        pull argmin κ n d(r̄, c̄; ρ̂) + ln max(n/K, 1) with K arms
    maillard-ratio   pull an arm with probability ∝ exp(−κ n d(r̄, c̄; ρ̂))

While some arm has cost nothing, ρ̂ is infinite and d is infinite for all others, so such an arm is pulled. κ = 1 is
what the lower bound suggests; docs/explanation/imed_ratio.md says what is proved of imed-ratio with it. A larger κ
explores less, which pays at most budgets and fails in the long run; one that fades does both, and the proof covers it.
Dividing by the number of arms, as MOSS does, explores less where there are many for the budget, and with κ = 1 is
covered, too. d rises with ρ̂, so all these indices fall with it. The propensities of maillard-ratio are `chances` of
its scores. These rules are not in print for ratios as far as we know.

Honda, Takemura: Non-Asymptotic Analysis of a New Bandit Algorithm for Semi-Bounded Rewards. JMLR 16, 2015 (IMED).
Audibert, Bubeck: Minimax Policies for Adversarial and Stochastic Bandits. COLT 2009 (MOSS).
Maillard: Apprentissage séquentiel. Thesis, Lille 2013. Bian, Jun: Maillard Sampling: Boltzmann Exploration Done
Optimally. AISTATS 2022.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from budgetbandits.numerics.divergence import ratio_divergence
from budgetbandits.policies.base import NOT_IN_PRINT
from budgetbandits.policies.index import IndexPolicy, Monotonicity
from budgetbandits.policies.statistics import Tally

LOWEST_INDEX = -1e300
"""Instead of −∞, which the engine with bounds keeps for arms that nobody can pay."""


def imed_ratio(mean_reward: Any, mean_cost: Any, pulls: Any, rounds: Any, best_ratio: Any, kappa: Any) -> Any:
    """The index of IMED for ratios."""
    evidence = kappa * pulls * ratio_divergence(mean_reward, mean_cost, best_ratio)
    return np.maximum(-evidence - np.log(pulls), LOWEST_INDEX)


def imed_fading(
    mean_reward: Any, mean_cost: Any, pulls: Any, rounds: Any, best_ratio: Any, kappa: Any, fade: Any
) -> Any:
    """The index of IMED for ratios with a kappa that fades."""
    counted = pulls * (1.0 + (kappa - 1.0) * fade / (fade + pulls))
    evidence = counted * ratio_divergence(mean_reward, mean_cost, best_ratio)
    return np.maximum(-evidence - np.log(pulls), LOWEST_INDEX)


def imed_moss(mean_reward: Any, mean_cost: Any, pulls: Any, rounds: Any, best_ratio: Any, kappa: Any, arms: Any) -> Any:
    """The index of IMED for ratios in the manner of MOSS."""
    evidence = kappa * pulls * ratio_divergence(mean_reward, mean_cost, best_ratio)
    return np.maximum(-evidence - np.log(np.maximum(pulls / arms, 1.0)), LOWEST_INDEX)


def maillard_ratio(mean_reward: Any, mean_cost: Any, pulls: Any, rounds: Any, best_ratio: Any, kappa: Any) -> Any:
    """The logarithm of the weight of an arm in Maillard sampling of ratios."""
    return np.maximum(-kappa * pulls * ratio_divergence(mean_reward, mean_cost, best_ratio), LOWEST_INDEX)


class EvidencePolicy(IndexPolicy):
    """An index of the evidence against being the best, which moves with the best ratio and not with time."""

    monotone = Monotonicity(rises_with_rounds=True, ignores_rounds=True, falls_with_first=True)
    first_extra = "best ratio"


@dataclass(frozen=True)
class IMEDRatio(EvidencePolicy):
    r"""The least evidence against being the best.

    Pulls the arm with the least $\kappa n\, d(\bar r, \bar c; \hat\rho) + \ln n$, where $d$ is the relative entropy to
    the nearest means with the ratio $\hat\rho$, the best $\bar r/\bar c$ so far.

    kappa  κ, the factor of the evidence; above 1 it explores less

    >>> IMEDRatio(kappa=1.5).spec
    'imed-ratio:kappa=1.5'
    """

    name = "imed-ratio"
    reference = NOT_IN_PRINT
    proven = "attains the lower bound, Bernoulli, for κ = 1"
    index = staticmethod(imed_ratio)
    kappa: float = 1.0

    def __post_init__(self) -> None:
        self.positive(kappa=self.kappa)

    def extras(self, state: Tally) -> tuple[Any, ...]:
        return (state.best_ratio, self.kappa)


@dataclass(frozen=True)
class IMEDFading(EvidencePolicy):
    r"""Evidence counts κ-fold while there is little of it, and as it is in the long run.

    As `imed-ratio` with $\kappa_n = 1 + (\kappa - 1) / (1 + n/f)$ in the place of $\kappa$.

    kappa  κ, the factor of the evidence at first
    fade   f, the number of pulls after which half of what is above 1 is left

    >>> IMEDFading().spec, IMEDFading(fade=50).spec
    ('imed-fading', 'imed-fading:fade=50.0')
    """

    name = "imed-fading"
    reference = NOT_IN_PRINT
    proven = "attains the lower bound, Bernoulli, for κ ≥ 1"
    index = staticmethod(imed_fading)
    kappa: float = 2.0
    fade: float = 100.0

    def __post_init__(self) -> None:
        self.positive(kappa=self.kappa, fade=self.fade)

    def extras(self, state: Tally) -> tuple[Any, ...]:
        return (state.best_ratio, self.kappa, self.fade)


@dataclass(frozen=True)
class IMEDMoss(IMEDRatio):
    r"""Arms are given up the sooner the more of them there are.

    Pulls the arm with the least $\kappa n\, d(\bar r, \bar c; \hat\rho) + \ln \max(n/K,\, 1)$, with $d$ and $\hat\rho$
    as in `imed-ratio`.
    """

    name = "imed-moss"
    reference = NOT_IN_PRINT
    proven = "attains the lower bound, Bernoulli, for κ = 1"
    index = staticmethod(imed_moss)  # type: ignore[assignment]  # it takes the number of arms, too

    def extras(self, state: Tally) -> tuple[Any, ...]:
        return (*super().extras(state), float(max(state.active.sum(), 1)))


@dataclass(frozen=True)
class MaillardRatio(IMEDRatio):
    r"""Draws arms by the evidence against being the best, with known propensities.

    Pulls an arm with a probability in proportion to $\exp(-\kappa n\, d(\bar r, \bar c; \hat\rho))$, with $d$ and
    $\hat\rho$ as in `imed-ratio`.
    """

    name = "maillard-ratio"
    reference = NOT_IN_PRINT
    proven = "nothing"
    index = staticmethod(maillard_ratio)
    softmax: ClassVar[bool] = True
