"""The latest overrun of a campaign: which decision it was, and why its cost could not be booked within the money."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from budgetbandits.service.stores.contract import Transaction
from budgetbandits.service.stores.records import ArmRow, DecisionRow, Event


@dataclass(frozen=True)
class Overran:
    """Amounts are in micros."""

    at: float
    """When the cost was told."""
    decision: DecisionRow
    arm: ArmRow

    @classmethod
    def of(cls, tx: Transaction, event: Event, arms: Sequence[ArmRow]) -> Overran | None:
        made = None if event.decision is None else tx.decision(event.decision)
        if made is None:
            return None
        return cls(event.at, made, next(arm for arm in arms if arm.number == made.arm))

    @property
    def cost(self) -> int:
        return self.decision.cost or 0

    @property
    def above_hold(self) -> bool:
        """If not, the hold had been released, and its money had gone elsewhere when the cost was told."""
        return self.cost > self.decision.hold.amount

    @property
    def above_cap(self) -> bool:
        """A request may hold less than the arm's cap."""
        return self.cost > self.arm.cost_cap
