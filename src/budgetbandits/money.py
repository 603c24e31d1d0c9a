"""The money of an allocation, in the user's units: a budget, what of it is spent, and what it has earned."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from budgetbandits.arrays import Array
from budgetbandits.errors import BudgetExhausted, HoldRefused

ROUNDING = 1e-9
"""Of the budget: what is left by rounding alone is not money."""


@dataclass
class Money:
    """What was told so far; what open asks hold is theirs to say.

    failed  of what is spent, that on pulls that failed: no policy plans with it
    """

    budget: float
    spent: float = 0.0
    earned: float = 0.0
    failed: float = 0.0

    @property
    def nothing(self) -> float:
        """An amount that is no money, only rounding."""
        return ROUNDING * self.budget

    @property
    def gone(self) -> bool:
        return self.budget - self.spent <= self.nothing

    def planned(self, unlearned: float) -> float:
        """The budget as a policy knows it that has not learned of failures, nor of this money spent."""
        return max(self.budget - self.failed - unlearned, self.nothing)

    def left(self, held: float) -> float:
        """What is neither spent nor held."""
        return max(self.budget - self.spent - held, 0.0)

    def covers(self, cost: float) -> bool:
        """Whether a cost still fits."""
        return self.spent + cost <= self.budget + self.nothing

    def check(self, amount: float, held: float) -> None:
        """Refuse an ask that would hold this amount if it cannot be paid, now or at all."""
        unspent, nothing = self.budget - self.spent, self.nothing
        if self.gone:
            raise BudgetExhausted(f"{self.spent:g} of the budget of {self.budget:g} is spent; add to it with top_up()")
        if amount > unspent + nothing:
            raise BudgetExhausted(
                f"{unspent:g} left, {amount:g} to be held; hold less, or add to the budget with top_up()"
            )
        free = unspent - held
        if free <= nothing or amount > free + nothing:
            raise HoldRefused(
                "blocked_by_holds",
                f"open asks hold {held:g} of the {unspent:g} left; tell what one of them cost or forget() it, "
                "then ask again, or add to the budget with top_up()",
            )

    def affordable(self, among: NDArray[np.bool_], amounts: Array | float, held: float) -> NDArray[np.bool_]:
        """Those of the arms for which there is the money to be held; an error if there are none."""
        if isinstance(amounts, float):
            self.check(amounts, held)
            return among
        self.check(float(amounts[among].min()), held)
        free = self.budget - self.spent - held + self.nothing
        if float(amounts[among].max()) <= free:
            return among
        return among & (amounts <= free)
