"""UCB-BV1, UCB-BV2 and Budget-UCB: confidence bounds on the ratio of two means, from a lower bound on the costs.

With s = √(ln(t − 1) / n) and λ a lower bound on the mean costs,

    UCB-BV1:  r̄/c̄ + (1 + 1/λ) s / (λ − s)                  λ must be known
    UCB-BV2:  r̄/c̄ + (1/λ) (1 + 1/(λ − s)) s                λ is the smallest mean cost seen so far

and +∞ while λ ≤ s. Both prove O(ln B) regret; the paper's Remark 1 compares their constant with that of BTS.

Ding, Qin, Zhang, Liu: Multi-Armed Bandit with Budget Constraint and Variable Costs. AAAI 2013.

Budget-UCB widens the bound where the arm is cheap. With e = √(w ln(t − 1) / n) and λ known,

    r̄/c̄ + (e/c̄) (1 + min(r̄ + e, 1) / max(c̄ − e, λ)).

Sources differ on w, 1 or 2: it is the parameter ``width``. The index rises with r̄ and e and falls with c̄. The paper
proves O(ln B) regret.

Xia, Ding, Zhang, Yu, Qin: Budgeted Bandit Problems with Continuous Random Costs. ACML 2015.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from budgetbandits.policies.index import RISING_INDEX, IndexPolicy, where
from budgetbandits.policies.statistics import Tally


def ucb_bv1(mean_reward: Any, mean_cost: Any, pulls: Any, rounds: Any, cost_floor: Any) -> Any:
    """The index of UCB-BV1."""
    radius = np.sqrt(np.log(np.maximum(rounds - 1.0, 1.0)) / pulls)
    bonus = (1.0 + 1.0 / cost_floor) * radius / (cost_floor - radius)
    return where((mean_cost > 0.0) & (cost_floor > radius), mean_reward / mean_cost + bonus, np.inf)


def ucb_bv2(mean_reward: Any, mean_cost: Any, pulls: Any, rounds: Any, cost_floor: Any) -> Any:
    """The index of UCB-BV2."""
    radius = np.sqrt(np.log(np.maximum(rounds - 1.0, 1.0)) / pulls)
    bonus = (1.0 / cost_floor) * (1.0 + 1.0 / (cost_floor - radius)) * radius
    return where((mean_cost > 0.0) & (cost_floor > radius), mean_reward / mean_cost + bonus, np.inf)


@dataclass(frozen=True)
class UCBBV1(IndexPolicy):
    r"""Upper confidence bound on the ratio.

    Pulls the arm with the largest $\bar r/\bar c + (1 + 1/\lambda)\, s / (\lambda - s)$, where
    $s = \sqrt{\ln(t - 1) / n}$; an arm with $\lambda \le s$ has $+\infty$.

    cost_floor  λ, a positive number that no arm's mean cost is below; without it, what is known

    >>> UCBBV1(cost_floor=0.16).needs
    frozenset()
    """

    name = "ucb-bv1"
    label = "UCB-BV1"
    reference = "Ding et al., AAAI 2013"
    proven = "O(ln B)"
    index = staticmethod(ucb_bv1)
    monotone = RISING_INDEX
    cost_floor: float | None = None

    def __post_init__(self) -> None:
        self.positive(cost_floor=self.cost_floor)

    @property
    def needs(self) -> frozenset[str]:
        return frozenset() if self.cost_floor is not None else frozenset({"cost_floor"})

    def extras(self, state: Tally) -> tuple[Any, ...]:
        return (state.known.cost_floor if self.cost_floor is None else self.cost_floor,)


@dataclass(frozen=True)
class UCBBV2(IndexPolicy):
    r"""UCB-BV1 with a cost floor that is estimated.

    Pulls the arm with the largest $\bar r/\bar c + \frac{1}{\lambda} \bigl(1 + \frac{1}{\lambda - s}\bigr) s$, where
    $s = \sqrt{\ln(t - 1) / n}$ and $\lambda$ is the smallest $\bar c$ so far.

    >>> UCBBV2().anytime
    True
    """

    name = "ucb-bv2"
    label = "UCB-BV2"
    reference = "Ding et al., AAAI 2013"
    proven = "O(ln B)"
    index = staticmethod(ucb_bv2)
    monotone = replace(RISING_INDEX, falls_with_first=True)
    first_extra = "smallest cost"

    def extras(self, state: Tally) -> tuple[Any, ...]:
        counted = state.active & (state.pulls > 0)
        return (state.mean_cost[counted].min() if counted.any() else np.float64(0.0),)


def budget_ucb(mean_reward: Any, mean_cost: Any, pulls: Any, rounds: Any, cost_floor: Any, width: Any) -> Any:
    """The index of Budget-UCB."""
    radius = np.sqrt(width * np.log(np.maximum(rounds - 1.0, 1.0)) / pulls)
    optimistic = np.minimum(mean_reward + radius, 1.0) / np.maximum(mean_cost - radius, cost_floor)
    bound = (mean_reward + radius * (1.0 + optimistic)) / where(mean_cost > 0.0, mean_cost, 1.0)
    return where(mean_cost > 0.0, bound, np.inf)


@dataclass(frozen=True)
class BudgetUCB(UCBBV1):
    r"""Confidence bound on the ratio, for a known cost floor.

    Pulls the arm with the largest $\bar r/\bar c + \frac{e}{\bar c} \bigl(1 + \frac{\min(\bar r + e,\, 1)}
    {\max(\bar c - e,\, \lambda)}\bigr)$, where $e = \sqrt{w \ln(t - 1) / n}$.

    width  w; sources have 1 and 2

    >>> sorted(BudgetUCB().needs), sorted(BudgetUCB(cost_floor=0.1).needs)
    (['cost_floor'], [])
    """

    name = "budget-ucb"
    reference = "Xia et al., ACML 2015"
    proven = "O(ln B)"
    index = staticmethod(budget_ucb)  # type: ignore[assignment]  # it takes the width, too
    width: float = 1.0

    def __post_init__(self) -> None:
        super().__post_init__()
        self.positive(width=self.width)

    def extras(self, state: Tally) -> tuple[Any, ...]:
        return (*super().extras(state), self.width)
