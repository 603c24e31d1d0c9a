"""The rules of money: an account with a budget, and holds that are resolved at most once. Pure; no clock, no store.

Money is whole micros, a millionth of the user's unit, because sums of floating-point numbers are not money.

A decision places a hold of the arm's cost cap before it is answered. Later the hold is

    settled   what it really cost is spent, the rest is free again; a cost above the cap is an overrun
    voided    the call was never made: the whole hold is free again
    expired   nobody said anything in time: charged in full (the call may have been made), or, if the campaign says so,
              released

and nothing else, once. Feedback for an expired hold corrects what was booked. Whatever happens,

    spent + held ≤ budget,

after every step. What cannot be booked without breaking that (a cost above the cap; a cost reported for a released
hold when the money has gone elsewhere) is booked as overrun, whole and apart, and freezes the account until someone
looks.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

from budgetbandits.errors import AlreadyResolved, BadParameter, HoldRefused

MICROS = 1_000_000
LARGEST = 2**62
"""In micros: sums of two such amounts still fit into a database's 64-bit integers."""

Status = Literal["active", "paused", "frozen", "closed"]
HoldState = Literal["pending", "settled", "voided", "expired"]


def to_micros(amount: float, what: str = "amount") -> int:
    """An amount in the user's unit as whole micros, to the nearest.

    >>> to_micros(0.1) + to_micros(0.2) == to_micros(0.3)
    True
    """
    if isinstance(amount, bool) or not isinstance(amount, int | float) or not 0.0 <= amount * MICROS <= LARGEST:
        raise BadParameter(f"{what} is {amount!r:.40}; use a number from 0 to {LARGEST / MICROS:.3g}")
    return round(amount * MICROS)


def to_units(micros: int) -> float:
    return micros / MICROS


@dataclass(frozen=True)
class Account:
    """A campaign's money, all in micros."""

    budget: int
    spent: int = 0
    held: int = 0
    overrun: int = 0
    status: Status = "active"

    def __post_init__(self) -> None:
        if min(self.budget, self.spent, self.held, self.overrun) < 0 or self.spent + self.held > self.budget:
            raise ArithmeticError(f"{self} breaks spent + held <= budget")

    @property
    def left(self) -> int:
        """What new holds may take."""
        return self.budget - self.spent - self.held


@dataclass(frozen=True)
class Hold:
    """Money set aside for one decision."""

    amount: int
    state: HoldState = "pending"
    charged: int = 0
    """What of the hold has been booked as spent."""
    overrun: int = 0
    """What it cost beyond that."""
    reported: bool = False
    """Whether the real cost has been told."""


def check_open(account: Account) -> None:
    """Refuse unless the campaign is active."""
    if account.status != "active":
        raise HoldRefused(account.status, f"the campaign is {account.status}; no decisions until it is resumed")


def place(account: Account, amount: int) -> tuple[Account, Hold]:
    """Set the whole amount aside, or refuse: a smaller hold would not cover what the call may cost."""
    check_open(account)
    if amount > account.left:
        if account.held:
            raise HoldRefused("blocked_by_holds", f"{to_units(account.left):g} left beside open holds; try again later")
        raise HoldRefused(
            "exhausted", f"{to_units(account.left):g} left, {to_units(amount):g} needed; top up the budget"
        )
    return replace(account, held=account.held + amount), Hold(amount)


def settle(account: Account, hold: Hold, cost: int) -> tuple[Account, Hold]:
    """Book what a decision really cost; for an expired hold, correct what was booked when it expired."""
    if hold.state in ("settled", "voided") or hold.reported:
        raise AlreadyResolved(f"the hold is {hold.state} already; feedback for a decision counts once")
    if hold.state == "pending":
        account = replace(account, held=account.held - hold.amount)
        return _book(account, replace(hold, state="settled", reported=True), cost, cap=hold.amount)
    # expired: take back what was charged, then book the truth; it stays expired, for that is what happened
    account = replace(account, spent=account.spent - hold.charged)
    return _book(account, replace(hold, charged=0, reported=True), cost, cap=hold.amount)


def void(account: Account, hold: Hold) -> tuple[Account, Hold]:
    """The call was never made."""
    _still_pending(hold)
    return replace(account, held=account.held - hold.amount), replace(hold, state="voided")


def expire(account: Account, hold: Hold, charge: bool = True) -> tuple[Account, Hold]:
    """Nobody told in time."""
    _still_pending(hold)
    charged = hold.amount if charge else 0
    account = replace(account, held=account.held - hold.amount, spent=account.spent + charged)
    return account, replace(hold, state="expired", charged=charged)


def top_up(account: Account, amount: int) -> Account:
    if amount <= 0 or account.budget + amount > LARGEST:
        raise BadParameter(
            f"a top-up of {to_units(amount):g}; use a positive amount below {to_units(LARGEST):.3g} in all"
        )
    return replace(account, budget=account.budget + amount)


def _book(account: Account, hold: Hold, cost: int, cap: int) -> tuple[Account, Hold]:
    charged = min(cost, cap, account.left)
    overrun = cost - charged
    account = replace(account, spent=account.spent + charged, overrun=account.overrun + overrun)
    if overrun:
        account = replace(account, status="frozen" if account.status != "closed" else "closed")
    return account, replace(hold, charged=charged, overrun=overrun)


def _still_pending(hold: Hold) -> None:
    if hold.state != "pending":
        raise AlreadyResolved(f"the hold is {hold.state} already; it is resolved once")
