"""The money of an allocation, in the user's units: a budget, what of it is spent or held, and what it has earned."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from budgetbandits.errors import BudgetExhausted, HoldRefused
from budgetbandits.numerics.arrays import ArmMask, Array

ROUNDING = 1e-9
"""A share of the budget: an amount this small is left by rounding, and is not money."""


@dataclass
class Money:
    """The money reported so far. What open asks hold is theirs to say.

    failed   of what is spent, that on pulls that failed: no policy plans with it
    overrun  of what is spent, that above the largest cost of a pull: no policy learns of it
    wanted   what the last ask had to hold: one amount, or that for each arm, infinite for one it could not be for
    """

    budget: float
    spent: float = 0.0
    earned: float = 0.0
    failed: float = 0.0
    overrun: float = 0.0
    wanted: float | list[float] = 0.0

    @property
    def rounding(self) -> float:
        """An amount that is only rounding, and no money."""
        return ROUNDING * self.budget

    def ended(self, active: ArmMask) -> bool:
        """Whether no ask of these arms can be made that holds what the last one did, whatever becomes of those that are
        open."""
        unspent, nothing = self.budget - self.spent, self.rounding
        return unspent <= nothing or self._least(active) > unspent + nothing

    def _least(self, active: ArmMask) -> float:
        if isinstance(self.wanted, float):
            return self.wanted
        least = float(np.array(self.wanted)[active].min())
        return least if least < np.inf else 0.0  # none of its arms is left, which is not for want of money

    def joined_by(self, cap: float) -> None:
        """There is one more arm, of which a pull costs at most this."""
        if not isinstance(self.wanted, float):
            self.wanted.append(min(cap, max(amount for amount in self.wanted if amount < np.inf)))

    def planned(self, unlearned: float) -> float:
        """The budget as a policy knows it that has not learned of failures and overruns, nor of this money spent."""
        return max(self.budget - self.failed - self.overrun - unlearned, self.rounding)

    def left(self, held: float) -> float:
        """The money that is neither spent nor held."""
        return max(self.budget - self.spent - held, 0.0)

    def covers(self, cost: float) -> bool:
        """Whether a cost still fits."""
        return self.spent + cost <= self.budget * (1.0 + ROUNDING)

    def check(self, amount: float, held: float) -> None:
        """Refuse an ask that would hold this amount if it cannot be paid, now or at all."""
        unspent, nothing = self.budget - self.spent, ROUNDING * self.budget
        free = unspent - held
        if free > nothing and amount <= free + nothing:
            return
        if unspent <= nothing:
            raise BudgetExhausted(f"{self.spent:g} of the budget of {self.budget:g} is spent; add to it with top_up()")
        if amount > unspent + nothing:
            raise BudgetExhausted(
                f"{unspent:g} left, {amount:g} to be held; hold less, or add to the budget with top_up(); "
                "can_ask() says beforehand whether there is enough"
            )
        raise HoldRefused(
            "blocked_by_holds",
            f"open asks hold {held:g} of the {unspent:g} left; tell what one of them cost or forget() it, "
            "then ask again, or add to the budget with top_up(); can_ask() says beforehand whether there is enough",
        )

    def affordable(self, mask: ArmMask, amounts: Array | float, held: float) -> ArmMask:
        """The arms of ``mask`` for which there is the money to be held; an error if there are none."""
        if isinstance(amounts, float):
            self.check(amounts, held)
            return mask
        self.check(float(amounts[mask].min()), held)
        free = self.budget - self.spent - held + self.rounding
        if float(amounts[mask].max()) <= free:
            return mask
        return mask & (amounts <= free)


# --- amounts that come and go -----------------------------------------------------------------------------------------

_LEAST = 1074
"""Every float is a whole multiple of 2^−1074."""

_ONE = 1 << _LEAST


class ExactSum:
    """A running sum in one whole number: `math.fsum` of all that is in it, without looking at all that is in it.

    >>> total = ExactSum()
    >>> for amount in (0.1, 1e16, 0.2):
    ...     total.add(amount)
    >>> total.take(1e16)
    >>> total.value == 0.1 + 0.2
    True
    """

    __slots__ = ("_total", "value")

    def __init__(self) -> None:
        self._total = 0
        self.value = 0.0
        """The float that is nearest to the sum."""

    def add(self, amount: float) -> None:
        """Add a number."""
        self._total += _multiples(amount)
        self.value = self._total / _ONE

    def take(self, amount: float) -> None:
        """Take away what was added before."""
        self._total -= _multiples(amount)
        self.value = self._total / _ONE


def _multiples(amount: float) -> int:
    top, bottom = amount.as_integer_ratio()  # the bottom is a power of two
    return top << (_LEAST + 1 - bottom.bit_length())
