"""What was seen of each arm: how many pulls were told, and what they brought and cost in all, in the user's units."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Self

from budgetbandits.errors import BadState


class Observed:
    """Of each arm: pulls, total reward, total cost. Plain lists: single numbers are read and written, never all."""

    def __init__(self, arms: int) -> None:
        self.pulls, self.rewards, self.costs = [0] * arms, [0.0] * arms, [0.0] * arms

    def add_arm(self) -> None:
        self.pulls.append(0)
        self.rewards.append(0.0)
        self.costs.append(0.0)

    def add(self, arm: int, reward: float, cost: float) -> None:
        """One more pull."""
        self.pulls[arm] += 1
        self.rewards[arm] += reward
        self.costs[arm] += cost

    def means(self, arm: int) -> tuple[float, float]:
        """The mean reward and the mean cost; NaN before the first pull."""
        pulls = self.pulls[arm]
        return (self.rewards[arm] / pulls, self.costs[arm] / pulls) if pulls else (math.nan, math.nan)

    def to_list(self) -> list[list[Any]]:
        """[pulls, total reward, total cost] of each arm."""
        return [list(each) for each in zip(self.pulls, self.rewards, self.costs, strict=True)]

    @classmethod
    def from_list(cls, saved: Sequence[Sequence[Any]], arms: int) -> Self:
        self = cls(0)
        for pulls, reward, cost in saved:
            self.pulls.append(int(pulls))
            self.rewards.append(float(reward))
            self.costs.append(float(cost))
        numbers = [*self.pulls, *self.rewards, *self.costs]
        if len(self.pulls) != arms or not all(0 <= each < math.inf for each in numbers):
            raise BadState("'told' is not pulls, reward and cost of each arm; restore an undamaged copy")
        return self
