"""A shared budget compared with the events of all its campaigns.

Every member is replayed as `audit.verify` does, up to one moment that is the same for all. The account must be the sum
of what these replays end with, and of what former members had spent when they left. Its terms and its period must be
what its own events have made of them, and it waits for those members that were restored from a copy.

The events that move a member's money are numbered while the shared budget is locked, so in the order of their numbers
they are what happened to it. From the latest of all checkpoints and changes of membership on, when all the money there
is can be replayed, they are followed together: the shared budget is never over, and each event knows what was left.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field, replace

from pydantic_core import from_json

from budgetbandits.errors import WrongClock
from budgetbandits.service.audit.audit import Books, Differences, check_not_being_deleted, compared, replayed
from budgetbandits.service.grants import grant_of
from budgetbandits.service.leases.leases import CLOCK_STEP_SECONDS_MAX
from budgetbandits.service.ledger import Account
from budgetbandits.service.names import normal
from budgetbandits.service.periods import Grant
from budgetbandits.service.shared_budgets.members import former_members, member_events, own_events
from budgetbandits.service.shared_budgets.operations import find_shared_budget
from budgetbandits.service.shared_budgets.rules import TERM_NAMES, SharedBudget, SharedSettings, all_overruns
from budgetbandits.service.stores.contract import UNREADABLE, Store, Transaction, find_campaign
from budgetbandits.service.stores.records import LEASE_MILESTONES, Event
from budgetbandits.terms import Terms

Step = tuple[int, str, Event, Account | None, Account | None, float | None]
"""The number of an event and its campaign, the event, the campaign's money before and after it, and when the decision
was made that it is about."""


@dataclass
class SharedBooks:
    """A shared budget at one moment: its row, its own events, its members and what former ones had spent."""

    shared: SharedBudget
    events: list[Event]
    members: dict[str, Books]
    former: dict[str, Account]
    joined: set[str]
    """The members, by the events."""

    @classmethod
    def of(cls, tx: Transaction, name: str) -> SharedBooks:
        """The books of a shared budget."""
        shared, joined = find_shared_budget(tx, name), set[str]()
        for event in member_events(tx, shared):
            campaign = from_json(event.request or "{}")["campaign"]
            (joined.add if event.kind == "joined" else joined.discard)(campaign)
        members = {id: Books.of(tx, id) for id in tx.shared_budgets().members(shared.name)}
        return cls(shared, own_events(tx, shared), members, former_members(tx, shared), joined)

    @property
    def known_since(self) -> int:
        """The event from which on all money is replayed."""
        changes = [event.seq for event in self.events if event.kind in ("joined", "left")]
        checkpoints = [books.checkpoint.seq for books in self.members.values() if books.checkpoint is not None]
        return max([*changes, *checkpoints], default=0)


def verify_shared_budget(store: Store, name: str) -> list[str]:
    """The differences between the rows of a shared budget and its members, and their events; empty if all agree."""

    def compare(differences: Differences) -> None:
        _compare(store, store.read(lambda tx: SharedBooks.of(tx, name)), differences)

    def checkpoints(tx: Transaction) -> list[int]:
        result = []
        for id in tx.shared_budgets().members(normal(name)):
            with suppress(*UNREADABLE):  # which the comparison says
                check_not_being_deleted(find_campaign(tx, id))
            result.append(tx.pruning().checkpoint(id))
        return result

    return compared(store, f"{name!r:.60}", compare, checkpoints)


def _compare(store: Store, books: SharedBooks, differences: Differences) -> None:
    if books.joined != set(books.members):
        differences.add(f"its campaigns are {sorted(books.members)}, by its events {sorted(books.joined)}")
    if any(member.row.settings.terms.shared_budget != books.shared.name for member in books.members.values()):
        differences.add("the terms of one of its campaigns name another shared budget")
    waiting = {id for id, member in books.members.items() if member.row.settings.restored_from is not None}
    if waiting != set(books.shared.settings.unreported):
        differences.add(
            f"it waits for {sorted(books.shared.settings.unreported)} to say what they have spent since a copy, by "
            f"their rows for {sorted(waiting)}"
        )
    watch = _Watch(books, differences)
    steps = [_steps(store, id, member, differences) for id, member in books.members.items()]
    own: Iterator[Step] = ((event.seq, "", event, None, None, None) for event in books.events)
    for step in heapq.merge(own, *steps):
        watch.apply(step)
    watch.finish()


def _steps(store: Store, campaign: str, books: Books, differences: Differences) -> Iterator[Step]:
    for event, before, after, made_at in replayed(store, books, differences):
        if event.lease is None or event.kind in LEASE_MILESTONES:
            yield event.seq, campaign, event, before, after, made_at


@dataclass
class _Watch:
    """The money of a shared budget, event by event."""

    books: SharedBooks
    differences: Differences
    budget: int = 0
    settings: SharedSettings = field(default_factory=SharedSettings)
    period: int = 0
    advance: int = 0
    grants: list[Grant] = field(default_factory=list)
    """Grants of periods that were not taken back."""
    to_lapse: int = 0
    """Money that decisions of earlier periods have given back and that no event has let lapse."""
    moved: bool = False
    """Whether a member's event has been followed: each event of a lapse comes after that of its decision."""
    merged_at: dict[str | None, float] = field(default_factory=dict)
    """When leases were merged."""
    accounts: dict[str, Account] = field(default_factory=dict)
    """Accounts of members, as far as they are replayed."""

    def __post_init__(self) -> None:
        for id, member in self.books.members.items():
            self.accounts[id] = Account(0) if member.checkpoint is None else member.checkpoint.account
        self._since, self._name = self.books.known_since, self.books.shared.name
        members = [*self.accounts.values(), *self.books.former.values()]
        self._taken = sum(account.taken for account in members)

    def apply(self, step: Step) -> None:
        seq, campaign, event, before, after, made_at = step
        if before is None or after is None:
            self._apply_own(event)
            return
        self.accounts[campaign] = after
        if event.kind in ("leased", "merged"):
            self.merged_at[event.lease] = event.at
        elif event.kind == "returned" and self.merged_at.pop(event.lease, 0.0) > event.at + CLOCK_STEP_SECONDS_MAX:
            made_at = math.inf  # by a clock that was ahead
        at_once = event.kind in LEASE_MILESTONES  # these know what was left after them
        self._taken += after.taken - before.taken if at_once else 0
        left, own = self.budget - self._taken, (after if at_once else before).left
        self._taken += 0 if at_once else after.taken - before.taken
        if seq <= self._since:
            return
        self.moved = True
        self._check_period(event)
        if made_at is not None:
            account = self._account()
            kept = self.settings.given_back(account, before.taken - after.taken, made_at, event.at)
            self.to_lapse += account.budget - kept.budget
        if self._taken > self.budget:
            self.differences.add(f"event {seq} ({event.kind}) takes more than the shared budget {self._name!r:.60} has")
        knows = event.kind in ("decided", "settled", "leased", "merged", "spent elsewhere")
        expected = left if knows and left < own else None
        if event.shared_left != expected:
            self.differences.add(
                f"event {seq} ({event.kind}) says that {event.shared_left} was left of {self._name!r:.60}, "
                f"by the events of all its campaigns it was {expected}"
            )

    def _apply_own(self, event: Event) -> None:
        """Apply an event of the shared budget itself to the money and settings replayed so far."""
        complete = event.seq > self._since
        if event.kind in ("joined", "left"):
            return
        if event.kind == "renewed":
            self._renew(event, complete)
        elif event.kind == "clock reset":
            self._set_back(event, complete)
        elif event.kind == "lapsed":
            self.to_lapse += (event.amount or 0) if self.moved else 0
            self.advance = from_json(event.request or "{}")["advance"]
        else:
            before, self.settings = self.settings, _settings_after(self.settings, event)
            self.period = self.settings.period_after(before, self._account(), event.at)
        self.budget += event.amount or 0

    def _account(self) -> Account:
        """Its money, as far as renewals look at it."""
        return Account(self.budget, min(self._taken, self.budget), period=self.period, advance=self.advance)

    def _renew(self, event: Event, known: bool) -> None:
        """Add a period's budget to what is left, or replace that, which must then be known."""
        try:
            account = self.settings.renewed(self._account(), event.at)
        except WrongClock as ahead:
            self.differences.add(f"event {event.seq} (renewed) cannot have happened: {ahead}")
            return
        grant = grant_of(event)
        expected = None if account is None else self.settings.grant(self._account(), account)
        if expected is not None and not known and self.settings.terms.unspent == "lapse":
            expected = replace(expected, amount=grant.amount)
        if account is None or expected != grant:
            self.differences.add(
                f"event {event.seq} (renewed) grants {grant.amount}, by the terms it would be {expected}, not {grant}"
            )
        self.period, self.advance = grant.begun, self.advance if account is None else account.advance
        self.grants.append(grant)

    def _set_back(self, event: Event, known: bool) -> None:
        """Take back the grants of periods to come, as far as they are not spent or held, which must be known."""
        account = self.settings.set_back(self._account(), event.at, self.grants)
        facts = from_json(event.request or "{}")
        expected = self.budget + (event.amount or 0), facts["begun"], facts["advance"]
        if known and (account.budget, account.period, account.advance) != expected:
            self.differences.add(f"event {event.seq} (clock reset) says {expected}, by the events before it {account}")
        _, self.period, self.advance = expected
        self.grants = [grant for grant in self.grants if grant.begun <= event.at]

    def _check_period(self, event: Event) -> None:
        """No money is taken from a period that lies ahead, or before one that has begun is granted."""
        if event.kind not in ("decided", "leased", "merged", "spent elsewhere"):
            return
        try:
            due = self.settings.renewed(self._account(), event.at) is not None and event.kind == "decided"
        except WrongClock as ahead:
            self.differences.add(f"event {event.seq} ({event.kind}) cannot have happened: {ahead}")
            return
        if due:
            self.differences.add(f"event {event.seq} (decided) cannot have happened: a new period had begun")

    def finish(self) -> None:
        """Compare with the row."""
        if self.books.shared.settings.terms != self.settings.terms:
            self.differences.add(
                f"the shared budget's row has the terms {self.books.shared.settings.to_dict()['terms']}, its events "
                f"{self.settings.to_dict()['terms']}"
            )
        if self.to_lapse:
            self.differences.add(f"decisions of earlier periods gave back {self.to_lapse} that has not lapsed")
        whole = [*self.accounts.values(), *self.books.former.values()]
        spent, held, leased = (sum(getattr(account, name) for account in whole) for name in ("spent", "held", "leased"))
        overrun = all_overruns(*(account.overrun for account in whole))
        actual = self.books.shared.account
        try:
            expected = Account(
                self.budget, spent, held, overrun, leased=leased, period=self.period, advance=self.advance
            )
        except ArithmeticError as error:
            self.differences.add(f"the shared budget {self._name!r:.60} by its events: {error}")
            return
        if expected != actual:
            self.differences.add(f"the shared budget's row says {actual}, the events of its campaigns {expected}")


def _settings_after(before: SharedSettings, event: Event) -> SharedSettings:
    """The terms as an event of their change has made them, or as that of the beginning."""
    facts = from_json(event.request or "{}")
    if event.kind == "created":
        return SharedSettings(Terms(**facts).checked(TERM_NAMES))
    return SharedSettings(replace(before.terms, **{name: after for name, (_, after) in facts.items()}))
