"""Rewards and costs by arm and segment, for the pages of a campaign.

They are a policy's own sums of outcomes, unless it forgets, learns from trials, or adds up rows of features. Then they
are kept as well.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from budgetbandits.policies.base import Policy

SUMS_ENTRY = "answered"
"""The entry of an arm's row."""


class SegmentSums:
    """The sums of each arm and segment: answered requests, their rewards, and their costs in micros."""

    def __init__(self, arms: int) -> None:
        self._sums: list[list[tuple[int, float, int]]] = [[] for _ in range(arms)]

    @classmethod
    def kept_for(cls, policy: Policy, arms: int) -> SegmentSums | None:
        """Empty sums, or None where the policy's own will do."""
        return cls(arms) if policy.looks_at_requests and not policy.sums_by_segment else None

    def add_arm(self) -> None:
        """Add an arm without outcomes."""
        self._sums.append([])

    def record(self, arm: int, segment: int, reward: float, cost: int) -> None:
        """Add an outcome."""
        sums = self._sums[arm]
        sums += [(0, 0.0, 0)] * (segment + 1 - len(sums))
        count, rewards, costs = sums[segment]
        sums[segment] = count + 1, rewards + reward, costs + cost

    def arm_state(self, arm: int) -> dict[str, Any]:
        """The entry for the arm's row; empty before its first answer."""
        return {SUMS_ENTRY: [list(sums) for sums in self._sums[arm]]} if self._sums[arm] else {}

    def load_state(self, arm: int, learned: Mapping[str, Any]) -> None:
        """Read the sums of an arm from its row."""
        self._sums[arm] = [(count, rewards, costs) for count, rewards, costs in learned.get(SUMS_ENTRY, ())]
