"""PD-BwK: optimistic reward per optimistic price, from bandits with knapsacks.

With φ(x, n) = √(νx/n) + ν/n and ν = ¼ ln(BK),

    pd-bwk            argmax min(r̄ + φ(r̄, n), 1) / max(c̄ − φ(c̄, n), 0)            the variant of Xia et al. 2015
    primal-dual-bwk   argmax min(r̄ + φ, 1) / Σ_j v_j · (lower bound of the arm's use of resource j)

where the resources are money and, if there is a horizon T, time; uses are scaled so that both have the same budget
B′ = min(B, T): a cost c uses cB′/B of money, a pull B′/T of time. The prices start at v_j = 1 and rise by the factor
(1 + ε)^(lower bound) for the pulled arm, ε = √(ln d / B′), d resources. With money alone ε = 0, the price cancels, and
the two rules are one. The horizon is what the driver says the budget is for, unless ``horizon`` gives one.

The prices rise when an outcome is reported, by what was known before it. Every choice uses one of the requests, also
one that fails; a choice that is discarded does not.

Badanidiyuru, Kleinberg, Slivkins: Bandits with Knapsacks. FOCS 2013. The constant in ν is that of Xia et al. 2015.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from budgetbandits.numerics.compilation import compiled
from budgetbandits.policies.base import NOTHING_KNOWN, Knowledge
from budgetbandits.policies.index import RISING_INDEX, IndexPolicy, where
from budgetbandits.policies.statistics import T, Tally


@compiled
def upper(mean: Any, pulls: Any, width: Any) -> Any:
    """An optimistic mean, at most 1."""
    return np.minimum(mean + np.sqrt(width * mean / pulls) + width / pulls, 1.0)


@compiled
def lower(mean: Any, pulls: Any, width: Any) -> Any:
    """A pessimistic mean, at least 0."""
    return np.maximum(mean - np.sqrt(width * mean / pulls) - width / pulls, 0.0)


def pd_bwk(mean_reward: Any, mean_cost: Any, pulls: Any, rounds: Any, width: Any) -> Any:
    """The index of PD-BwK but for the price: an upper bound of the reward by a lower one of the cost."""
    price = lower(mean_cost, pulls, width)
    return where(price > 0.0, upper(mean_reward, pulls, width) / price, np.inf)


@dataclass(frozen=True)
class PDBwK(IndexPolicy[T]):
    r"""Optimistic reward per optimistic cost.

    Pulls the arm with the largest $\min(\bar r + \varphi(\bar r),\, 1) / \max(\bar c - \varphi(\bar c),\, 0)$, where
    $\varphi(x) = \sqrt{\nu x / n} + \nu / n$ and $\nu = \tfrac14 \ln(B K)$.

    >>> sorted(PDBwK().needs)
    ['budget']
    """

    name = "pd-bwk"
    label = "PD-BwK"
    reference = "Badanidiyuru et al., FOCS 2013, as in Xia et al. 2015"
    proven = "O(√B) up to logarithms, any problem"
    index = staticmethod(pd_bwk)
    monotone = replace(RISING_INDEX, ignores_rounds=True)

    @property
    def needs(self) -> frozenset[str]:
        return frozenset({"budget"})

    def extras(self, state: T) -> tuple[Any, ...]:
        return (self.width(state),)

    def width(self, state: T) -> float:
        """ν = ¼ ln(BK), kept from turning negative where the budget is smaller than one pull."""
        return 0.25 * float(np.log(max(state.known.budget * len(state.pulls), 1.0)))


@dataclass
class PricedState(Tally):
    """Sums, the price of each resource on the logarithmic scale, since prices themselves overflow at large budgets, and
    how many requests there were."""

    log_money: float = 0.0
    log_time: float = 0.0
    chosen: int = 0


@dataclass(frozen=True)
class PrimalDualBwK(PDBwK[PricedState]):
    r"""The original, with time as a second resource.

    As `pd-bwk`, with the denominator $\sum_j v_j u_j$: the optimistic use $u_j$ of money and, with a horizon $T$, of
    time, each at a price $v_j$ that rises with use. Stops after $T$ rounds; without a horizon it equals `pd-bwk`.

    horizon  T; without it, what the driver says

    >>> PrimalDualBwK(horizon=1000.0).spec
    'primal-dual-bwk:horizon=1000.0'
    """

    name = "primal-dual-bwk"
    label = "PrimalDualBwK"
    reference = "Badanidiyuru et al., FOCS 2013"
    proven = "O(√B) up to logarithms, any problem"
    horizon: float | None = None

    def __post_init__(self) -> None:
        self.positive(horizon=self.horizon)

    @property
    def needs(self) -> frozenset[str]:
        return frozenset({"budget", "horizon"} if self.horizon is None else {"budget"})

    def rule_kind(self, horizon: float) -> str:
        # without a horizon the prices stand still
        return "priced" if min(horizon, self.horizon or math.inf) < math.inf else "index"

    def start(self, arms: int, known: Knowledge = NOTHING_KNOWN) -> PricedState:
        return PricedState(**vars(super().start(arms, known)))

    def can_continue(self, state: PricedState) -> bool:
        return state.chosen < self.requests(state)

    def choose(self, state: PricedState, rng: np.random.Generator) -> int | None:
        if not self.can_continue(state):
            return None
        arm = super().choose(state, rng)
        if arm is not None:
            state.chosen += 1
        return arm

    def observe(self, state: PricedState, arm: int, reward: float, cost: float, rng: np.random.Generator) -> None:
        self._raise_prices(state, arm)
        super().observe(state, arm, reward, cost, rng)

    def discard_choice(self, state: PricedState, arm: int) -> None:
        state.chosen = max(state.chosen - 1, 0)

    def set_remaining(self, state: PricedState, money: float, requests_used: int) -> None:
        state.chosen = requests_used  # a choice that was taken back is not among them

    def extras(self, state: PricedState) -> tuple[Any, ...]:
        # dividing every price by the largest changes no argmax
        top = max(state.log_money, state.log_time)
        money, time = np.exp(state.log_money - top), np.exp(state.log_time - top)
        money_use, time_use = self.uses(state)
        return (self.width(state), money * money_use, time * time_use)

    @staticmethod
    def index(  # type: ignore[override]
        mean_reward: Any, mean_cost: Any, pulls: Any, rounds: Any, width: Any, money: Any, time: Any
    ) -> Any:
        """An optimistic reward divided by the price of an optimistic cost and of a round."""
        price = money * lower(mean_cost, pulls, width) + time
        return where(price > 0.0, upper(mean_reward, pulls, width) / price, np.inf)

    def requests(self, state: PricedState) -> float:
        """The horizon; infinite if there is none."""
        return state.known.horizon if self.horizon is None else self.horizon

    def uses(self, state: PricedState) -> tuple[float, float]:
        """The use of resources by a unit of cost and by a round, both scaled to the smaller of the two budgets."""
        common = self._common_budget(state)
        return common / state.known.budget, common / self.requests(state)

    def growth(self, state: PricedState) -> tuple[float, float]:
        """The rises of the logarithms of the two prices with a unit of cost and with a round."""
        growth = float(np.log1p(np.sqrt(np.log(2.0) / self._common_budget(state))))
        money_use, time_use = self.uses(state)
        return growth * money_use, growth * time_use

    def _common_budget(self, state: PricedState) -> float:
        return min(state.known.budget, self.requests(state))

    def _raise_prices(self, state: PricedState, arm: int) -> None:
        if self.requests(state) == math.inf or state.pulls[arm] == 0:
            return
        pulls = float(state.pulls[arm])
        money, time = self.growth(state)
        state.log_money += money * float(lower(state.cost[arm] / pulls, pulls, self.width(state)))
        state.log_time += time
