"""The rules of a shared budget: the money of several campaigns together. Pure; no clock, no store.

A campaign that is a member has a budget of its own, and everything that it spends, holds and leases is spent, held and
leased in the shared budget too. Whatever happens,

    of each member         spent + held + leased ≤ budget
    of the shared budget   the same, where each is a sum over members, and former members have left what they spent

after every step. A store moves both accounts in one transaction (`SharedBudget.moved`), so the second is the sum of the
first ones by construction. What a member may take is the smaller of what both have left: the rules of `ledger` see an
account whose budget is as much smaller (`capped`), and what they make of it gets its own budget back (`uncapped`).

A campaign joins with all that it has spent and holds. When it leaves, which it can while it holds nothing, what it has
spent stays spent here.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, NoReturn

from budgetbandits.errors import BadParameter, Conflict, HoldRefused
from budgetbandits.service import ledger
from budgetbandits.service.ledger import RETRY_SECONDS, Account, in_words
from budgetbandits.service.periods import Renewal
from budgetbandits.terms import Terms

TERM_NAMES = ("currency", "period", "period_budget", "unspent", "time_zone")
"""The terms of a campaign that a shared budget has as well."""


@dataclass(frozen=True)
class SharedSettings(Renewal):
    """The terms of a shared budget, of those in `TERM_NAMES`.

    unreported  members that were restored from a copy, by id, until it is said what they have spent since
    """

    terms: Terms = field(default_factory=Terms)
    unreported: tuple[str, ...] = ()

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> SharedSettings:
        """The settings that `to_dict` has written."""
        return cls(Terms(**values["terms"]).checked(TERM_NAMES), tuple(values["unreported"]))

    def to_dict(self) -> dict[str, Any]:
        """The terms as JSON, without those that have no value."""
        terms = {name: getattr(self.terms, name) for name in TERM_NAMES}
        return {
            "terms": {name: value for name, value in terms.items() if value is not None},
            "unreported": self.unreported,
        }


@dataclass(slots=True)
class SharedBudget:
    """A budget over several campaigns, by its name, which never changes. Never changed itself, only replaced."""

    name: str
    account: Account
    created_at: float
    settings: SharedSettings

    @property
    def event_key(self) -> str:
        """The name that its own events have in place of a campaign; no campaign has such an id."""
        return f"shared budget {self.name}"

    def with_money(self, account: Account) -> SharedBudget:
        """The shared budget with this account."""
        return SharedBudget(self.name, account, self.created_at, self.settings)

    def moved(self, before: Account, after: Account) -> SharedBudget:
        """The shared budget when the account of a member has changed; itself if that took and gave back nothing."""
        spent, held, leased = after.spent - before.spent, after.held - before.held, after.leased - before.leased
        overrun = after.overrun - before.overrun
        if not (spent or held or leased or overrun):
            return self
        a = self.account
        return self.with_money(
            Account(a.budget, a.spent + spent, a.held + held, all_overruns(a.overrun, overrun),
                    leased=a.leased + leased, period=a.period, advance=a.advance)
        )  # fmt: skip

    def joined(self, member: Account, left_here: Account) -> SharedBudget:
        """The shared budget with a new member and all that it has spent and holds, less what it has spent as a
        member before; an error if that is more than what is left."""
        taken = member.taken - left_here.spent
        if taken > self.account.left:
            left, asked = in_words(self.account, self.account.left, taken)
            raise BadParameter(
                f"the campaign has spent and holds {asked}, and the shared budget {self.name!r:.60} has {left} left; "
                "raise that first"
            )
        return self.moved(left_here, member)

    def check_leaves(self, member: Account) -> None:
        """Refuse to let a member leave that holds something."""
        if member.open:
            [held] = in_words(member, member.open)
            raise Conflict(
                f"the campaign holds {held} of the shared budget {self.name!r:.60}; pause it, wait until its decisions "
                "are reported on, and try again"
            )

    def check_open(self) -> None:
        """Refuse decisions until it is known what all members have spent."""
        if self.settings.unreported:
            count = len(self.settings.unreported)
            text = (
                f"the shared budget {self.name!r:.60} was restored from a copy; no decisions until it is said what "
                f"{count} of its campaigns {'has' if count == 1 else 'have'} spent since: campaign resume --spent-since"
            )
            raise HoldRefused("paused", text)

    def refuse(self, needed: int, now: float) -> NoReturn:
        """Refuse a hold of this amount, which is more than what is left."""
        account, terms = self.account, self.settings.terms
        left, amount, leased = in_words(account, account.left, needed, account.leased)
        if account.open:
            others = f"open holds and {leased} in leases" if account.leased else "open holds"
            text = f"the shared budget {self.name!r:.60} has {left} left next to {others} of its campaigns"
            raise HoldRefused("blocked_by_holds", f"{text}; try again later", RETRY_SECONDS)
        text = f"the shared budget {self.name!r:.60} has {left} left, {amount} needed; raise it"
        if terms.period is not None:
            wait = self.settings.next_period(account, now) - now
            raise HoldRefused("period_spent", f"{text}, or wait for the next {terms.period}", wait)
        raise HoldRefused("exhausted", f"{text}: budgetbandits shared-budget change {self.name!r:.60} budget=AMOUNT")

    def renewed(self, now: float) -> SharedBudget | None:
        """The shared budget in the period that has begun since its latest one; None if none has."""
        account = self.settings.renewed(self.account, now)
        return None if account is None else self.with_money(account)


def all_overruns(*amounts: int) -> int:
    """The sum of overruns of members, or the largest amount of money: each may be as large, and none of them is refused
    because of the others."""
    return min(sum(amounts), ledger.LARGEST)


def capped(account: Account, left: int | None) -> Account:
    """A member's account as the rules of money see it when its shared budget has only this left."""
    if left is None or left >= account.left:
        return account
    return replace(account, budget=account.budget - account.left + left)


def uncapped(account: Account, before: Account) -> Account:
    """An account that came of a capped one, with its own budget again."""
    return account if account.budget == before.budget else replace(account, budget=before.budget)


def charged(account: Account, micros: int, left: int | None) -> Account:
    """An account with this spent without a decision, where its shared budget has only ``left``."""
    return uncapped(ledger.charge(capped(account, left), micros), account)
