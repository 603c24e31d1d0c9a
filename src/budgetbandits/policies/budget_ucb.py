"""Budget-UCB: a confidence bound on the ratio that widens where the arm is cheap.

With e = √(w ln(t − 1) / n) and λ a known lower bound on the mean costs,

    r̄/c̄ + (e/c̄) (1 + min(r̄ + e, 1) / max(c̄ − e, λ)).

Sources differ on w, 1 or 2: it is the parameter ``width``. The index rises with r̄ and e and falls with c̄. The paper
proves O(ln B) regret.

Xia, Ding, Zhang, Yu, Qin: Budgeted Bandit Problems with Continuous Random Costs. ACML 2015.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from budgetbandits.policies.index import RISING, IndexPolicy, either
from budgetbandits.policies.statistics import Tally


def budget_ucb(mean_reward: Any, mean_cost: Any, pulls: Any, rounds: Any, cost_floor: Any, width: Any) -> Any:
    radius = np.sqrt(width * np.log(np.maximum(rounds - 1.0, 1.0)) / pulls)
    optimistic = np.minimum(mean_reward + radius, 1.0) / np.maximum(mean_cost - radius, cost_floor)
    bound = (mean_reward + radius * (1.0 + optimistic)) / either(mean_cost > 0.0, mean_cost, 1.0)
    return either(mean_cost > 0.0, bound, np.inf)


@dataclass(frozen=True)
class BudgetUCB(IndexPolicy):
    """Confidence bound on the ratio, for a known cost floor.

    >>> sorted(BudgetUCB().needs), sorted(BudgetUCB(cost_floor=0.1).needs)
    (['cost_floor'], [])
    """

    name = "budget-ucb"
    reference = "Xia et al., ACML 2015"
    proven = "O(ln B)"
    index = staticmethod(budget_ucb)
    monotone = RISING
    cost_floor: float | None = None
    width: float = 1.0

    def __post_init__(self) -> None:
        self.positive(cost_floor=self.cost_floor, width=self.width)

    @property
    def needs(self) -> frozenset[str]:
        return frozenset() if self.cost_floor is not None else frozenset({"cost_floor"})

    def extras(self, state: Tally) -> tuple[Any, ...]:
        return (state.known.cost_floor if self.cost_floor is None else self.cost_floor, self.width)
