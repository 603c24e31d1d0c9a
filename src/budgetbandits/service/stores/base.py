"""The contract of a store: rows, and transactions in which they are read and written.

The rules of money live in `ledger` and nowhere else. A store reads a campaign's row so that nobody else can change it
before the transaction ends, and writes what it is given; its only rule of its own is the database's CHECK that
spent + held + leased never exceeds the budget. Everything in a transaction is durable when `Store.write` returns, or
none of it happened.

Rows are never changed, only replaced. Python could be told to see to that (``frozen``), and would take five times as
long to make one, which is felt at every decision.
"""

from __future__ import annotations

import asyncio
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple, Self, TypeVar

from budgetbandits.errors import NotFound
from budgetbandits.service.ledger import Account, Hold
from budgetbandits.service.names import normal

if TYPE_CHECKING:
    from budgetbandits.service.stores.key_sql import KeyRecord
    from budgetbandits.service.stores.page_sql import Pages
    from budgetbandits.service.stores.rollup_sql import Rollups

T = TypeVar("T")


@dataclass(slots=True)
class Campaign:
    """A budget, a policy, and what the policy has learnt that is not one arm's."""

    id: str
    name: str
    policy: str
    account: Account
    created_at: float
    settings: dict[str, Any] = field(default_factory=dict)
    learned: dict[str, Any] = field(default_factory=dict)

    def with_money(self, account: Account) -> Campaign:
        """This campaign with another account; `dataclasses.replace` takes seven times as long."""
        return Campaign(self.id, self.name, self.policy, account, self.created_at, self.settings, self.learned)

    def with_learned(self, learned: dict[str, Any]) -> Campaign:
        return Campaign(self.id, self.name, self.policy, self.account, self.created_at, self.settings, learned)


@dataclass(slots=True)
class ArmRow:
    """One arm: its place in the campaign, what a pull may cost at most, and what is learnt of it."""

    campaign: str
    number: int
    name: str
    cost_cap: int
    learned: dict[str, Any] = field(default_factory=dict)
    active: bool = True


@dataclass(slots=True)
class Decision:
    """One decision and the hold behind it."""

    id: str
    campaign: str
    arm: int
    hold: Hold
    key: str
    payload: str
    """A digest of what was asked: the same key with another one is a conflict."""
    created_at: float
    expires_at: float
    cost: int | None = None
    reward: float | None = None
    lease: str | None = None
    """The lease it was made under, if any; it may have ended since."""
    request: str | None = None
    """What was said of the request before its arm was chosen, as JSON (`requests.Wanted`); most say nothing."""
    propensity: float | None = None
    """How likely this choice was, where that was recorded."""
    failed: bool = False
    """Whether it was told that there was no answer."""

    def told(self, hold: Hold, cost: int | None, reward: float | None) -> Decision:
        """This decision with what is known of it now."""
        return Decision(
            self.id, self.campaign, self.arm, hold, self.key, self.payload, self.created_at, self.expires_at,
            cost, reward, self.lease, self.request, self.propensity, self.failed,
        )  # fmt: skip


@dataclass(slots=True)
class Lease:
    """Money that a server decides with by itself. One that has ended has no row: the events tell of it."""

    id: str
    campaign: str
    account: Account
    """Its budget is the amount of the lease."""
    expires_at: float
    """When anybody may end it."""
    turn: int = 0
    """How many events it has had ..."""
    merged: int = 0
    """... how many of them the campaign has learnt from ..."""
    tag: str = ""
    """... and a digest of them all: who has the same digest knows the same."""


@dataclass(slots=True)
class Event:
    """Something that happened to a campaign's money or knowledge; never changed, never deleted."""

    campaign: str
    kind: str
    at: float
    decision: str | None = None
    arm: int | None = None
    amount: int | None = None
    reward: float | None = None
    lease: str | None = None
    """The lease that it happened to; a campaign's own events have none ..."""
    turn: int | None = None
    """... and its number among the events of that lease."""
    actor: str | None = None
    """Who did it, if an operator did."""
    request: str | None = None
    """Of a decision: as in its row ..."""
    propensity: float | None = None
    """... and so is this."""
    seq: int = 0
    """Given by the store; events of the campaign's own, and those of one lease, are in the order of commits."""


OWN = ("leased", "merged", "returned")
"""Events of a lease that are the campaign's own as well: it is locked for them."""


class LeaseEvent(NamedTuple):
    """An event of a lease, with what is known of its decision now."""

    event: Event
    cost: int | None = None
    reward: float | None = None
    request: str | None = None


@dataclass(frozen=True)
class Key:
    """An API key as it is kept: its public prefix, a digest of its secret, and what it may do."""

    prefix: str
    digest: str
    scopes: tuple[str, ...]
    created_at: float
    campaign: str | None = None
    """The only campaign it is for; None for all."""


class About(NamedTuple):
    """What a piece of work is about: a campaign, by its id or name, and decisions of it, by their keys or ids.

    Pieces about the same campaign may share a transaction, and a store may read all this beforehand, at once. If
    ``lease`` is not None the campaign, which is named by its id, leases; it is the lease that decisions would be made
    under, if any. Such a piece may be run in a transaction that has leases alone (`Transaction.leases_alone`).
    """

    campaign: str = ""
    keys: Sequence[str] = ()
    decisions: Sequence[str] = ()
    lease: str | None = None


NOTHING = About()


class Unforeseen(Exception):
    """This work is not for a transaction over rows that were read beforehand."""


class Transaction(ABC):
    """What can be read and written at once. Reading a campaign keeps others from changing it until the end.

    So does reading a lease. Whoever needs both reads the campaign first, and leases in the order of their ids.
    """

    leases_alone = False
    """Whether this transaction may read leases but no campaign; work that needs one raises `Unforeseen`, and is run
    again in a transaction that may."""

    def now(self) -> float:
        """What time it is for all who share the store, in seconds since 1970."""
        return time.time()

    def rollups(self) -> Rollups:
        """The campaigns' rollups, in this transaction."""
        raise Unforeseen

    def pages(self) -> Pages:
        """What pages show of campaigns, in this transaction."""
        raise Unforeseen

    def key_record(self) -> KeyRecord:
        """Who has made and dropped which key, in this transaction."""
        raise Unforeseen

    @abstractmethod
    def campaign(self, id: str) -> Campaign | None: ...

    @abstractmethod
    def campaign_named(self, name: str) -> Campaign | None:
        """Kept from others like one that is read by its id."""

    @abstractmethod
    def campaigns(self) -> list[Campaign]:
        """All of them, the oldest first."""

    @abstractmethod
    def add_campaign(self, campaign: Campaign) -> None: ...

    @abstractmethod
    def save_campaign(self, campaign: Campaign) -> None:
        """Write a campaign's money and what is learnt; its name and policy never change."""

    def save_settings(self, campaign: Campaign) -> None:
        """Write a campaign's settings, which change seldom."""
        raise Unforeseen

    @abstractmethod
    def save_money(self, campaign: Campaign) -> None:
        """Write a campaign's money alone."""

    @abstractmethod
    def arms(self, campaign: str, numbers: Sequence[int] | None = None) -> list[ArmRow]:
        """The arms of a campaign in order, or only those with these numbers, which are in order."""

    @abstractmethod
    def add_arms(self, arms: Sequence[ArmRow]) -> None: ...

    @abstractmethod
    def save_arms(self, arms: Sequence[ArmRow]) -> None:
        """Write what is learnt of arms, and whether they are active; their names and cost caps never change."""

    @abstractmethod
    def decision(self, id: str) -> Decision | None: ...

    @abstractmethod
    def decisions_of(self, ids: Sequence[str]) -> list[Decision]:
        """Those of these decisions that there are, in any order; a thousand ids at most."""

    @abstractmethod
    def decision_by_key(self, campaign: str, key: str) -> Decision | None: ...

    @abstractmethod
    def add_decision(self, decision: Decision) -> None: ...

    @abstractmethod
    def save_decision(self, decision: Decision) -> None: ...

    @abstractmethod
    def forget_key(self, decision: Decision) -> None:
        """The decision is not found by its key any more, which may be used again."""

    @abstractmethod
    def due(self, now: float, limit: int) -> list[Decision]:
        """Pending decisions whose time is over, the oldest first."""

    @abstractmethod
    def pending(self, campaign: str) -> dict[str, float]:
        """When each of a campaign's pending decisions expires, as `due` would find them; by id."""

    @abstractmethod
    def pending_of(self, ids: Sequence[str]) -> dict[str, float]:
        """Of these decisions the pending ones, as `due` would find them, and when each expires."""

    @abstractmethod
    def set_expiry(self, decision: str, expires_at: float) -> None:
        """When a pending decision expires."""

    @abstractmethod
    def booked(self, campaign: str, begin: float, end: float) -> int:
        """What the decisions that were made in this time, without its end, hold and were charged. Slow.

        Those that were made under a lease are left out.
        """

    @abstractmethod
    def decisions(self, campaign: str, after: int = 0, limit: int = 1000) -> list[tuple[int, Decision]]:
        """Decisions in the order they were made, each with the number of the event that tells of it."""

    @abstractmethod
    def totals(self, campaign: str) -> list[tuple[int, int, int, float]]:
        """For each arm that was ever chosen its number, how many decisions are open, what they cost and brought."""

    @abstractmethod
    def lease(self, id: str) -> Lease | None: ...

    @abstractmethod
    def leases(self, campaign: str) -> list[Lease]:
        """All leases of a campaign that has been read, in the order of their ids."""

    @abstractmethod
    def add_lease(self, lease: Lease) -> None: ...

    @abstractmethod
    def save_lease(self, lease: Lease) -> None: ...

    @abstractmethod
    def drop_lease(self, id: str) -> None: ...

    @abstractmethod
    def due_leases(self, now: float) -> list[tuple[str, str]]:
        """The campaign and id of each lease whose time is over."""

    @abstractmethod
    def lease_events(self, lease: str, after: int) -> list[LeaseEvent]:
        """The events of a lease after this turn, in order."""

    @abstractmethod
    def add_event(self, event: Event) -> None: ...

    @abstractmethod
    def operation(self, campaign: str, key: str) -> str | None:
        """What was asked under this key by the operator who changed the campaign; None if nobody did."""

    @abstractmethod
    def add_operation(self, campaign: str, key: str, payload: str, at: float) -> None: ...

    @abstractmethod
    def add_key(self, key: Key) -> None: ...

    @abstractmethod
    def key(self, prefix: str) -> Key | None: ...

    @abstractmethod
    def keys(self) -> list[Key]: ...

    @abstractmethod
    def drop_key(self, prefix: str) -> None: ...

    @abstractmethod
    def beat(self, now: float) -> None:
        """Write something that nobody reads."""

    @abstractmethod
    def events(self, campaign: str, after: int = 0, limit: int = 1000, kind: str | None = None) -> list[Event]:
        """Events in order, those of one kind or all."""

    @abstractmethod
    def last_event(self, campaign: str) -> int:
        """The number of the campaign's latest event; 0 if there is none."""

    @abstractmethod
    def last_own_event(self, campaign: str) -> int:
        """The same of events of the campaign's own; those of leases count if they are (`OWN`)."""


class Store(ABC):
    """A place that keeps what was written."""

    address: str
    """What `open_store` opens it by, from any process of this host."""

    on_idle: Callable[[], None] | None = None
    """Called between transactions when no request is waiting, by a store that knows such moments: what the next
    request will need can be prepared."""

    @abstractmethod
    def submit(self, work: Callable[[Transaction], T], about: About = NOTHING) -> Future[T]:
        """Run ``work`` in a transaction and make it durable; the future has its answer, or the error that undid it.

        ``work`` may be run again from the start if the database asks for it, so it must change nothing but the
        transaction.
        """

    def write(self, work: Callable[[Transaction], T], about: About = NOTHING) -> T:
        """`submit`, and wait for its answer."""
        return self.submit(work, about).result()

    async def perform(self, work: Callable[[Transaction], T], about: About = NOTHING) -> T:
        """`submit` for an event loop; all calls come from one loop."""
        return await asyncio.wrap_future(self.submit(work, about))

    @abstractmethod
    def read(self, work: Callable[[Transaction], T], urgent: bool = False) -> T:
        """Run ``work`` on a consistent view of what is committed; it must not write.

        What is ``urgent`` (and short) does not wait for readers that are not.
        """

    @abstractmethod
    def close(self) -> None:
        """Finish what was accepted and close the database."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def found(transaction: Transaction, campaign: str) -> Campaign:
    """A campaign by its id or its name."""
    row = transaction.campaign(campaign) if len(campaign) == 32 else None  # as ids are, and few names
    if row is None and campaign.isprintable():
        row = transaction.campaign_named(normal(campaign))
    if row is None:
        raise NotFound(f"no campaign {campaign!r:.60}; create it first")
    return row
