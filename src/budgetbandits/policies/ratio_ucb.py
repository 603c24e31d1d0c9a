"""Four policies from one analysis: three confidence bounds on the ratio, and ε-greedy on it.

With e = α √(ln(t − 1) / n),

    i-ucb      r̄/c̄ + e                            one interval around the ratio; α = 1/4
    c-ucb      (r̄ + e) / c̄                        optimistic about the reward alone; α = 1/8
    m-ucb      min(r̄ + e, 1) / max(c̄ − e, 0)      optimistic about both; α = 1/16
    b-greedy   a uniformly drawn arm with probability min(1, αK/t), else argmax Σr/Σc; α = 1

An arm that has cost nothing has the index +∞, as in all rules of this package, whether it has paid or not: it may be
free. The public code of ω-UCB gives an arm with neither reward nor cost the index 0 in b-greedy, and so tries it again
only where it explores. That suits problems where most arms seldom pay, and loses an arm that costs seldom.

The paper proves O(ln B) regret for each with an α that is large enough for the problem; the values here are those with
which it and later studies simulate, and they are tuned, not proved. Each index rises with r̄ and e and falls with c̄.

Xia, Qin, Ding, Li, Zhang, Yu, Liu: Finite Budget Analysis of Multi-Armed Bandit Problems. Neurocomputing 258, 2017. The
schedule of b-greedy is taken from public code that agrees with the text.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from budgetbandits.policies.index import RISING_INDEX, IndexPolicy, Monotonicity, where
from budgetbandits.policies.statistics import Tally


def i_ucb(mean_reward: Any, mean_cost: Any, pulls: Any, rounds: Any, alpha: Any) -> Any:
    """The index of i-UCB."""
    bonus = alpha * np.sqrt(np.log(np.maximum(rounds - 1.0, 1.0)) / pulls)
    return where(mean_cost > 0.0, mean_reward / where(mean_cost > 0.0, mean_cost, 1.0) + bonus, np.inf)


def c_ucb(mean_reward: Any, mean_cost: Any, pulls: Any, rounds: Any, alpha: Any) -> Any:
    """The index of c-UCB."""
    bonus = alpha * np.sqrt(np.log(np.maximum(rounds - 1.0, 1.0)) / pulls)
    return where(mean_cost > 0.0, (mean_reward + bonus) / where(mean_cost > 0.0, mean_cost, 1.0), np.inf)


def m_ucb(mean_reward: Any, mean_cost: Any, pulls: Any, rounds: Any, alpha: Any) -> Any:
    """The index of m-UCB."""
    bonus = alpha * np.sqrt(np.log(np.maximum(rounds - 1.0, 1.0)) / pulls)
    price = mean_cost - bonus
    return where(price > 0.0, np.minimum(mean_reward + bonus, 1.0) / where(price > 0.0, price, 1.0), np.inf)


def plain_ratio(mean_reward: Any, mean_cost: Any, pulls: Any, rounds: Any) -> Any:
    """The mean reward by the mean cost."""
    return where(mean_cost > 0.0, mean_reward / where(mean_cost > 0.0, mean_cost, 1.0), np.inf)


@dataclass(frozen=True)
class _WithWidth(IndexPolicy):
    """The base of the three bounds.

    alpha  α, the width; the proof needs a large one
    """

    monotone = RISING_INDEX
    alpha: float = 0.25

    def __post_init__(self) -> None:
        self.positive(alpha=self.alpha)

    def extras(self, state: Tally) -> tuple[Any, ...]:
        return (self.alpha,)


@dataclass(frozen=True)
class IUCB(_WithWidth):
    r"""An interval around the ratio of the means.

    Pulls the arm with the largest $\bar r/\bar c + e$, where $e = \alpha \sqrt{\ln(t - 1) / n}$.
    """

    name = "i-ucb"
    reference = "Xia et al., Neurocomputing 2017"
    proven = "O(ln B) for large α"
    index = staticmethod(i_ucb)


@dataclass(frozen=True)
class CUCB(_WithWidth):
    r"""Optimistic reward per mean cost, with a narrower bonus than KUBE.

    Pulls the arm with the largest $(\bar r + e) / \bar c$, where $e = \alpha \sqrt{\ln(t - 1) / n}$.

    >>> CUCB().alpha
    0.125
    """

    name = "c-ucb"
    reference = "Xia et al., Neurocomputing 2017"
    proven = "O(ln B) for large α"
    index = staticmethod(c_ucb)
    alpha: float = 0.125


@dataclass(frozen=True)
class MUCB(_WithWidth):
    r"""Optimistic reward per optimistic cost, bounded by Hoeffding.

    Pulls the arm with the largest $\min(\bar r + e,\, 1) / \max(\bar c - e,\, 0)$, where
    $e = \alpha \sqrt{\ln(t - 1) / n}$.
    """

    name = "m-ucb"
    reference = "Xia et al., Neurocomputing 2017"
    proven = "O(ln B) for large α"
    index = staticmethod(m_ucb)
    alpha: float = 0.0625


@dataclass(frozen=True)
class BGreedy(IndexPolicy):
    r"""The best ratio so far, and now and then any arm.

    Pulls any arm with the probability $\min(1,\, \alpha K / t)$, else the one with the largest $\sum r / \sum c$.

    alpha  α, how long it explores; the proof needs a large one

    >>> BGreedy(alpha=2.0).exploration(arms=10)
    20.0
    """

    name = "b-greedy"
    reference = "Xia et al., Neurocomputing 2017"
    proven = "O(ln B) for large α"
    index = staticmethod(plain_ratio)
    monotone = Monotonicity(ignores_rounds=True)
    alpha: float = 1.0

    def __post_init__(self) -> None:
        self.positive(alpha=self.alpha)

    def exploration(self, arms: int) -> float:
        return self.alpha * arms
