"""UCB-SC+ and KL-UCB-SC: the largest ratio of any law that the arm's means do not rule out.

    kl-ucb-sc        max{ r/c : n (kl(r̄, r) + kl(c̄, c)) ≤ ln t + a ln ln t }      a = ``lower_order`` = 0
    kl-ucb-sc-plus   the same with ln(t/n)
    ucb-sc           the same with ln(t/n) and Pinsker's 2(r̄ − r)² + 2(c̄ − c)² for the entropies, which is UCB-SC+:
                     with w = ln(t/n)/(2n) the largest ratio in a circle of radius √w around (r̄, c̄),
                     (r̄ + αc̄)/(c̄ − αr̄), α = √(w/(r̄² + c̄² − w)), and +∞ if c̄² ≤ w: then the circle reaches c = 0

All are +∞ while c̄ = 0. A larger r̄ or a smaller c̄ allows every ratio that was allowed and better ones, and a larger
level allows more, so each index rises with r̄ and t and falls with c̄ and n. `divergence.largest_ratio` solves the first
two by Newton's method.

KL-UCB-SC is the only one in print with a proof that its regret is asymptotically the lower bound's, for independent
Bernoulli rewards and costs; UCB-SC+ trades that for a closed form. The papers' lower-order terms differ between proof
and simulation. Here they are left out by default, as is usual for KL-UCB; that is an assumption.

Watanabe, Komiyama, Nakamura, Kudo: KL-UCB-Based Policy for Budgeted Multi-Armed Bandits with Stochastic Action Costs.
IEICE Transactions on Fundamentals E100-A, 2017. The same: UCB-SC: A Fast Variant of KL-UCB-SC for Budgeted Multi-Armed
Bandit Problem. E101-A, 2018.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from budgetbandits.numerics.divergence import largest_ratio
from budgetbandits.policies.classical import KLUCB
from budgetbandits.policies.index import RISING_INDEX, IndexPolicy, where

SOLVED_INDEX = replace(RISING_INDEX, error=1e-7)
"""Monotonicity up to what Newton's method leaves where costs are as small as 1e-9."""


def ucb_sc(mean_reward: Any, mean_cost: Any, pulls: Any, rounds: Any) -> Any:
    """The index of UCB-SC+."""
    square = np.maximum(np.log(np.maximum(rounds, 1.0) / pulls), 0.0) / (2.0 * pulls)
    rest = np.maximum(mean_reward * mean_reward + mean_cost * mean_cost - square, 1e-300)
    slope = np.sqrt(square / rest)
    price = mean_cost - slope * mean_reward
    closed = (mean_cost * mean_cost > square) & (price > 0.0)
    return where(closed, (mean_reward + slope * mean_cost) / where(closed, price, 1.0), np.inf)


def kl_ucb_sc(mean_reward: Any, mean_cost: Any, pulls: Any, rounds: Any, lower_order: Any) -> Any:
    """The index of KL-UCB-SC."""
    log_rounds = np.log(np.maximum(rounds, 1.0))
    level = (log_rounds + lower_order * np.log(np.maximum(log_rounds, 1.0))) / pulls
    return largest_ratio(mean_reward, mean_cost, level)


def kl_ucb_sc_plus(mean_reward: Any, mean_cost: Any, pulls: Any, rounds: Any) -> Any:
    """The index of KL-UCB-SC+."""
    return largest_ratio(mean_reward, mean_cost, np.maximum(np.log(np.maximum(rounds, 1.0) / pulls), 0.0) / pulls)


@dataclass(frozen=True)
class UCBSC(IndexPolicy):
    r"""UCB-SC+: the largest ratio in a circle around the means.

    Pulls the arm with the largest ratio in a circle of radius $\sqrt{\ln(t/n) / (2 n)}$ around $(\bar r, \bar c)$.
    """

    name = "ucb-sc"
    reference = "Watanabe et al., IEICE 2018"
    proven = "not checked"
    index = staticmethod(ucb_sc)
    monotone = RISING_INDEX


@dataclass(frozen=True)
class KLUCBSC(KLUCB):
    r"""The largest ratio within relative entropy; attains the lower bound.

    Pulls the arm with the largest $r/c$ for which $n\, (\mathrm{kl}(\bar r, r) + \mathrm{kl}(\bar c, c)) \le \ln t +
    a \ln \ln t$.

    >>> KLUCBSC(lower_order=3.0).spec
    'kl-ucb-sc:lower_order=3.0'
    """

    name = "kl-ucb-sc"
    reference = "Watanabe et al., IEICE 2017"
    proven = "attains the lower bound, Bernoulli"
    index = staticmethod(kl_ucb_sc)
    monotone = SOLVED_INDEX


@dataclass(frozen=True)
class KLUCBSCPlus(IndexPolicy):
    r"""KL-UCB-SC that explores arms less the more they were pulled.

    As `kl-ucb-sc`, with $\ln(t/n)$ in the place of $\ln t + a \ln \ln t$.
    """

    name = "kl-ucb-sc-plus"
    reference = "Watanabe et al., IEICE 2017"
    proven = "nothing"
    index = staticmethod(kl_ucb_sc_plus)
    monotone = SOLVED_INDEX
