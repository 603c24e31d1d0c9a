"""KUBE: knapsack-based upper confidence bound exploration, in three versions.

With u = r̄ + √(2 ln t / n), c̄ the mean cost seen and c the cost where it is known and fixed,

    kube              argmax u / c̄                              the variant of Xia et al. 2015
    kube-fractional   argmax u / c over what is affordable      KUBE with the fractional relaxation
    kube-knapsack     whole numbers m that maximise Σ m u with Σ m c ≤ what is left, found by filling up in the order of
                      u / c; arm i with probability m_i / Σ m    KUBE itself

The last two assume fixed costs (on random ones they are handed the means), stop when no arm is affordable, and prove
O(ln B) regret.

Tran-Thanh, Chapman, Rogers, Jennings: Knapsack Based Optimal Policies for Budget-Limited Multi-Armed Bandits.
AAAI 2012.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from budgetbandits.numerics.arrays import Array
from budgetbandits.policies.base import first_pull
from budgetbandits.policies.index import RISING_INDEX, IndexPolicy, Monotonicity, where
from budgetbandits.policies.statistics import Tally

SLACK = 1e-9
"""Budgets are sums of floats: a cost that fits but for rounding fits."""


def kube(mean_reward: Any, mean_cost: Any, pulls: Any, rounds: Any) -> Any:
    """The index of KUBE: an upper bound of the mean reward by the mean cost."""
    upper = mean_reward + np.sqrt(2.0 * np.log(np.maximum(rounds, 1.0)) / pulls)
    return where(mean_cost > 0.0, upper / mean_cost, np.inf)


def kube_fractional(mean_reward: Any, mean_cost: Any, pulls: Any, rounds: Any, cost: Any) -> Any:
    """The index of fractional KUBE, for known costs."""
    return (mean_reward + np.sqrt(2.0 * np.log(np.maximum(rounds, 1.0)) / pulls)) / cost


@dataclass(frozen=True)
class KUBE(IndexPolicy):
    r"""Optimistic reward per mean cost seen.

    Pulls the arm with the largest $(\bar r + \sqrt{2 \ln t / n}) / \bar c$.

    >>> KUBE().spec
    'kube'
    """

    name = "kube"
    label = "KUBE"
    reference = "Tran-Thanh et al., AAAI 2012, as in Xia et al. 2015"
    proven = "nothing"
    index = staticmethod(kube)
    monotone = RISING_INDEX


@dataclass(frozen=True)
class FractionalKUBE(IndexPolicy):
    r"""Optimistic reward per known cost.

    Pulls the affordable arm with the largest $(\bar r + \sqrt{2 \ln t / n}) / c$, where $c$ is its known cost; stops
    when no arm is affordable.

    >>> sorted(FractionalKUBE().needs)
    ['budget', 'costs']
    """

    name = "kube-fractional"
    label = "fractional KUBE"
    reference = "Tran-Thanh et al., AAAI 2012"
    proven = "O(ln B), costs known and fixed"
    needs = frozenset({"budget", "costs"})
    index = staticmethod(kube_fractional)
    monotone = replace(RISING_INDEX, ignores_cost=True)
    first_extra = "own"

    def extras(self, state: Tally) -> tuple[Any, ...]:
        return (state.known.costs,)

    def affordable(self, state: Tally) -> Array:
        return np.asarray(state.known.costs <= state.left + SLACK)


@dataclass(frozen=True)
class KnapsackKUBE(FractionalKUBE):
    r"""KUBE with its knapsack, for known costs.

    Fills what is left of the budget greedily in the order of $(\bar r + \sqrt{2 \ln t / n}) / c$ and pulls an arm with
    the probability $m_i / \sum_j m_j$, where $m_i$ are the copies of arm $i$ in the knapsack.

    >>> fill(np.array([3.0, 2.0, 1.0]), np.array([0.4, 0.3, 0.1]), left=1.0)
    array([2, 0, 2])
    """

    name = "kube-knapsack"
    label = "knapsack KUBE"
    reference = "Tran-Thanh et al., AAAI 2012"
    proven = "O(ln B), costs known and fixed"
    monotone = Monotonicity()  # the arm with the highest index is not the one that is pulled

    def choose(self, state: Tally, rng: np.random.Generator) -> int | None:
        mask = state.active & self.affordable(state).astype(bool)
        while (arm := first_pull(state)) is not None:
            if mask[arm]:
                return arm
        if not mask.any():
            return None
        # an arm without feedback has an unbounded density: it takes the whole knapsack
        density = kube_fractional(state.mean_reward, None, state.seen, float(state.pulls.sum()), state.known.costs)
        density = np.where(mask, np.where(state.pulls > 0, density, np.inf), -np.inf)
        copies = fill(density, state.known.costs, state.left, rng.permutation(len(density)))
        return int(np.searchsorted(np.cumsum(copies), rng.integers(copies.sum()), side="right"))


def fill(density: Array, costs: Array, left: float, items: NDArray[np.int64] | None = None) -> NDArray[np.int64]:
    """How many copies of each item the greedy knapsack holds: the densest as often as it fits, then the next.

    Among equals the one that comes first in ``items`` goes first. Whatever fits takes at least half of the room, so
    there are few steps however many items.
    """
    copies = np.zeros(len(costs), dtype=np.int64)
    items = np.arange(len(costs)) if items is None else items
    order = items[np.argsort(-density[items], kind="stable")]
    order = order[density[order] > -np.inf]
    while len(order := order[costs[order] <= left + SLACK]):
        item = order[0]
        copies[item] = int((left + SLACK) / costs[item])
        left -= copies[item] * costs[item]
        order = order[1:]
    return copies
