"""Budgets that are renewed by the week or the month: when a period is granted, and taken back. Pure; no clock.

A period is a month or a week of the calendar, whose first moment depends on the time zone. It is granted once, by the
first decision or change in it. In another zone it is the same month or week: until the next one begins there, nothing
is granted.

Nobody can tell by a clock alone that it is ahead: a campaign may rest for a year. So the period that a clock says is
granted, and what was granted is known (`Grant`). Once a clock says otherwise, the period lies ahead, and nobody spends
more of it (`ledger.check_clock`) until the clocks have caught up, or an operator says that they are right: then all
that was granted ahead is taken back (`Renewal.set_back`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from pydantic_core import from_json, to_json

from budgetbandits.service import ledger
from budgetbandits.service.ledger import Account, to_micros
from budgetbandits.terms import Period, Terms


@dataclass(frozen=True)
class Grant:
    """The money that a renewal has granted.

    amount  by how much the budget grew; below 0 where more lapsed than the period got
    period  the kind of period
    before  when the period before began
    begun   when the one that got it began
    """

    amount: int
    period: Period
    before: int
    begun: int

    @classmethod
    def from_json(cls, amount: int | None, text: str | None) -> Grant:
        """The grant whose event has this amount and these facts, which `to_json` has written."""
        facts = from_json(text or "{}")
        return cls(amount or 0, facts["period"], *facts["begun"])

    def to_json(self) -> str:
        """The facts of its event, besides the amount."""
        return to_json({"period": self.period, "begun": [self.before, self.begun]}).decode()


class Renewal:
    """How a budget is renewed, by its terms."""

    terms: Terms

    @cached_property
    def period_budget(self) -> int:
        """The budget of each period, in micros; 0 if the budget is not renewed."""
        amount = self.terms.period_budget
        return 0 if amount is None else to_micros(amount, "period_budget")

    def period_of(self, now: float) -> int:
        """When the period of a moment began; 0 if the budget is not renewed."""
        return 0 if self.terms.period is None else ledger.period_of(now, self.terms.period, self.terms.time_zone)

    def renewed(self, account: Account, now: float) -> Account | None:
        """The account in the period that has begun since its latest one; None if none has. Periods are granted here and
        nowhere else; an account whose period lies ahead of the clock is refused."""
        period = self.terms.period
        if period is None:
            return None
        ledger.check_clock(account.period, now, "the latest period of the budget")
        begun = self.period_of(now)
        periods = ledger.periods_between(account.period, begun, period) if begun > account.period else 0
        if periods < 1:
            return None
        return ledger.renewed(account, begun, self.period_budget, periods, self.terms.unspent == "carry")

    def grant(self, before: Account, after: Account) -> Grant:
        """The grant of the renewal that made one account of the other."""
        assert self.terms.period is not None
        return Grant(after.budget - before.budget, self.terms.period, before.period, after.period)

    def set_back(self, account: Account, now: float, grants: Sequence[Grant]) -> Account:
        """The account without the periods that lie ahead of this moment, of all that are granted; itself if none does.
        Those up to this moment may have to be granted again."""
        ahead = [grant for grant in grants if grant.begun > now]
        if not ahead and account.period <= now:
            return account
        begun = self.period_of(now)
        if ahead and ahead[0].period == self.terms.period and ahead[0].before <= now:
            begun = ahead[0].before
        return ledger.set_back(account, begun, sum(grant.amount for grant in ahead))

    def next_period(self, account: Account, now: float) -> int:
        """When the period after that of the account begins."""
        assert self.terms.period is not None
        begins = ledger.next_period(now, self.terms.period, self.terms.time_zone)
        while ledger.periods_between(account.period, begins, self.terms.period) < 1:
            begins = ledger.next_period(begins, self.terms.period, self.terms.time_zone)
        return begins

    def period_after(self, before: Renewal, account: Account, now: float) -> int:
        """The period of an account whose terms were others ``before``. In another time zone it is the same month or
        week, even where that has not begun yet: it was granted."""
        begun, period = self.period_of(now), self.terms.period
        if period is not None and period == before.terms.period:
            return begun if ledger.periods_between(account.period, begun, period) == 0 else account.period
        return begun

    def given_back(self, account: Account, freed: int, made_at: float, now: float) -> Account:
        """The account to which a decision of that time has just given so much back: that lapses with its period, and
        what was granted too early, by a clock that was ahead, is taken back."""
        if freed > 0 and self.terms.unspent == "lapse" and made_at < account.period:
            return ledger.lapse(account, freed)
        return ledger.pay_back(account, freed) if freed > 0 and account.advance and made_at > now else account
