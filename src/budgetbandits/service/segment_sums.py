"""What the requests of each segment brought and cost, by arm, for whoever looks at a campaign.

A policy's own sums of outcomes say it, unless it forgets or learns from trials. Then this is kept beside them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from budgetbandits.policies.base import Policy
from budgetbandits.policies.paced.policy import PacedThompson

NAME = "answered"
"""The entry of an arm's row."""


class SegmentSums:
    """For each arm and each segment's number: requests that were answered, their rewards, and their costs in micros."""

    def __init__(self, arms: int) -> None:
        self._sums: list[list[tuple[int, float, int]]] = [[] for _ in range(arms)]

    @classmethod
    def kept_for(cls, policy: Policy, arms: int) -> SegmentSums | None:
        """None where the policy's own sums will do."""
        needed = isinstance(policy, PacedThompson) and (policy.forget > 0.0 or policy.trials > 0.0)
        return cls(arms) if needed else None

    def add(self) -> None:
        """One more arm."""
        self._sums.append([])

    def told(self, arm: int, segment: int, reward: float, cost: int) -> None:
        sums = self._sums[arm]
        sums += [(0, 0.0, 0)] * (segment + 1 - len(sums))
        count, rewards, costs = sums[segment]
        sums[segment] = count + 1, rewards + reward, costs + cost

    def arm_state(self, arm: int) -> dict[str, Any]:
        """What the arm's row says of it: nothing before it was told of."""
        return {NAME: [list(each) for each in self._sums[arm]]} if self._sums[arm] else {}

    def take(self, arm: int, learned: Mapping[str, Any]) -> None:
        """What the arm's row says."""
        self._sums[arm] = [(count, rewards, costs) for count, rewards, costs in learned.get(NAME, ())]
