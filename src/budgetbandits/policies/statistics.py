"""Sums and means of the rewards and costs of each arm, and the policies that learn by them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from budgetbandits.numerics.arrays import Array
from budgetbandits.policies.base import NOTHING_KNOWN, Knowledge, Policy, State, UnitChange

if TYPE_CHECKING:
    from typing_extensions import TypeVar

    T = TypeVar("T", bound="Tally", default=Any)
else:
    from budgetbandits.policies.base import S as T


@dataclass
class Tally(State):
    """Sums of the rewards and costs of each arm."""

    reward: Array = field(default_factory=lambda: np.zeros(0))
    reward_squared: Array = field(default_factory=lambda: np.zeros(0))
    cost: Array = field(default_factory=lambda: np.zeros(0))
    past_cost: float = 0.0
    """The part of the costs that comes from history: learned from, but not paid out of this budget."""

    @property
    def seen(self) -> Array:
        """Pulls as a divisor: at least 1."""
        return np.maximum(self.pulls, 1).astype(float)

    @property
    def mean_reward(self) -> Array:
        """The mean reward of each arm so far."""
        return self.reward / self.seen

    @property
    def mean_cost(self) -> Array:
        """The mean cost of each arm so far."""
        return self.cost / self.seen

    @property
    def best_ratio(self) -> float:
        """The best mean reward by mean cost of the active arms that were pulled; infinite if one has cost nothing."""
        counted = self.active & (self.pulls > 0)
        reward, cost = self.reward[counted], self.cost[counted]
        free = np.full(len(cost), np.inf)
        return float(np.divide(reward, cost, out=free, where=cost > 0.0).max(initial=0.0))

    def fill(self, reward: Array, reward_squared: Array, cost: Array, cost_squared: Array, product: Array) -> None:
        """Replace the sums that are kept, of those that there are."""
        self.reward[:], self.reward_squared[:], self.cost[:] = reward, reward_squared, cost

    @property
    def spent(self) -> float:
        """The money spent out of this budget."""
        return float(self.cost.sum()) - self.past_cost

    @property
    def left(self) -> float:
        """The money left of a known budget."""
        return self.known.budget - self.spent


@dataclass
class Moments(Tally):
    """Sums that also give variances and covariances."""

    cost_squared: Array = field(default_factory=lambda: np.zeros(0))
    product: Array = field(default_factory=lambda: np.zeros(0))
    """The sum of reward times cost."""

    def fill(self, reward: Array, reward_squared: Array, cost: Array, cost_squared: Array, product: Array) -> None:
        super().fill(reward, reward_squared, cost, cost_squared, product)
        self.cost_squared[:], self.product[:] = cost_squared, product

    @property
    def moments(self) -> tuple[Array, Array, Array]:
        """The variances of rewards and costs so far, and their covariance."""
        reward, cost = self.mean_reward, self.mean_cost
        return (
            np.maximum(self.reward_squared / self.seen - reward * reward, 0.0),
            np.maximum(self.cost_squared / self.seen - cost * cost, 0.0),
            self.product / self.seen - reward * cost,
        )


@dataclass(frozen=True)
class TallyPolicy(Policy[T]):
    """A policy that learns by counting."""

    def start(self, arms: int, known: Knowledge = NOTHING_KNOWN) -> T:
        state = Tally(
            active=np.ones(arms, dtype=bool),
            pulls=np.zeros(arms, dtype=np.int64),
            known=self.select_knowledge(known),
            reward=np.zeros(arms),
            reward_squared=np.zeros(arms),
            cost=np.zeros(arms),
        )
        return cast("T", state)  # a policy with another state makes it from this one

    def observe(self, state: T, arm: int, reward: float, cost: float, rng: np.random.Generator) -> None:
        state.pulls[arm] += 1
        state.reward[arm] += reward
        state.reward_squared[arm] += reward * reward
        state.cost[arm] += cost

    def add_history(self, state: T, arm: int, pulls: int, reward: float, cost: float) -> None:
        state.pulls[arm] += pulls
        state.reward[arm] += reward
        state.reward_squared[arm] += reward  # r² ≤ r on [0, 1]: the largest variance the history allows
        state.cost[arm] += cost
        state.past_cost += cost

    def totals(self, state: T, arm: int) -> tuple[float, float, float]:
        return float(state.pulls[arm]), float(state.reward[arm]), float(state.cost[arm])

    def rescaled(self, state: T, units: UnitChange) -> T | None:
        """Sums are multiplied; a mean that would be above the new largest value counts as that value."""
        pulls, spent = state.pulls.astype(float), state.spent * units.money
        state.reward = np.minimum(state.reward * units.reward, pulls)
        state.reward_squared = np.minimum(state.reward_squared * units.reward**2, state.reward)
        state.cost = np.minimum(state.cost * units.costs, pulls)
        self.set_spent(state, spent)
        return state

    def set_spent(self, state: T, spent: float) -> None:
        state.past_cost = float(state.cost.sum()) - spent


def corner_shares(pulls: int, reward: float, cost: float) -> tuple[float, float, float, float]:
    """Totals as counts of the outcomes (0, 0), (0, 1), (1, 0), (1, 1): the largest variance, and no correlation."""
    paid, charged = (reward / pulls, cost / pulls) if pulls else (0.0, 0.0)
    shares = (1.0 - paid) * (1.0 - charged), (1.0 - paid) * charged, paid * (1.0 - charged), paid * charged
    return pulls * shares[0], pulls * shares[1], pulls * shares[2], pulls * shares[3]
