"""The contract of a store: rows, and transactions in which they are read and written.

The rules of money live in `ledger` and nowhere else. A store reads a campaign's row so that nobody else can change it
before the transaction ends, and writes what it is given; its only rule of its own is the database's CHECK that
spent + held + leased never exceeds the budget. Everything in a transaction is durable when `Store.write` returns, or
none of it happened.
"""

from __future__ import annotations

import asyncio
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from typing import TYPE_CHECKING, NamedTuple, Self, TypeVar

from budgetbandits.errors import NotFound
from budgetbandits.service.names import is_id, normal
from budgetbandits.service.stores.records import ArmRow, Campaign, Decision, Event, Key, Lease, LeaseEvent

if TYPE_CHECKING:
    from budgetbandits.service.stores.key_sql import KeyRecord
    from budgetbandits.service.stores.page_sql import Pages
    from budgetbandits.service.stores.rollup_sql import Rollups

T = TypeVar("T")


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

ANSWERS = 100
"""How many answers to operators a campaign keeps: an answer has a line for each of its arms."""


class NeedsFullTransaction(Exception):
    """This work is not for a transaction over rows that were read beforehand."""


class Transaction(ABC):
    """What can be read and written at once. Reading a campaign keeps others from changing it until the end.

    So does reading a lease. Whoever needs both reads the campaign first, and leases in the order of their ids.
    """

    leases_alone = False
    """Whether this transaction may read leases but no campaign; work that needs one raises `NeedsFullTransaction`,
    and is run again in a transaction that may."""

    def now(self) -> float:
        """What time it is for all who share the store, in seconds since 1970."""
        return time.time()

    def rollups(self) -> Rollups:
        """The campaigns' rollups, in this transaction."""
        raise NeedsFullTransaction

    def pages(self) -> Pages:
        """What pages show of campaigns, in this transaction."""
        raise NeedsFullTransaction

    def key_record(self) -> KeyRecord:
        """Who has made and dropped which key, in this transaction."""
        raise NeedsFullTransaction

    @abstractmethod
    def campaign(self, id: str) -> Campaign | None: ...

    @abstractmethod
    def campaign_named(self, name: str) -> Campaign | None:
        """Kept from others like one that is read by its id."""

    @abstractmethod
    def campaigns(self, limit: int | None = None, after: str = "") -> list[Campaign]:
        """All of them that can be read, the oldest first; or so many that come after the one with this id."""

    def damaged(self) -> list[str]:
        """The names of campaigns whose rows cannot be read."""
        return []

    @abstractmethod
    def add_campaign(self, campaign: Campaign) -> None: ...

    @abstractmethod
    def save_campaign(self, campaign: Campaign) -> None:
        """Write a campaign's money and what is learnt; its name and policy never change."""

    def save_settings(self, campaign: Campaign) -> None:
        """Write a campaign's settings, which change seldom."""
        raise NeedsFullTransaction

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
    def due(self, now: float, limit: int) -> list[tuple[str, str]]:
        """The campaign and id of each pending decision whose time is over, the oldest first."""

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
    def answer(self, campaign: str, key: str) -> str | None:
        """What the operator who used this key was answered; None if nothing was, or it is not kept any more."""

    @abstractmethod
    def add_operation(self, campaign: str, key: str, payload: str, at: float, answer: str | None = None) -> None:
        """A change was made under this key, and answered so; of a campaign the latest `ANSWERS` are kept."""

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
    row, can_be = None, campaign.isprintable()  # no name or id is otherwise, and a database might not take it
    if is_id(campaign):
        row = transaction.campaign(campaign)
    if row is None and can_be:
        row = transaction.campaign_named(normal(campaign))
    if row is None:
        raise NotFound(f"no campaign {campaign!r:.60}; create it first")
    return row
