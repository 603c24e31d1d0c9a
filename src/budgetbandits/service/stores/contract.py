"""The contract of a store: rows, and transactions in which they are read and written.

The rules of money live in `ledger` and nowhere else. A store reads a campaign's row so that nobody else can change it
before the transaction ends, and writes the rows it is given. It has one rule of its own, the database's CHECK that
spent + held + leased never exceeds the budget. Everything in a transaction is durable when `Store.write` returns, or
none of it happened.
"""

from __future__ import annotations

import asyncio
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from typing import Generic, NamedTuple, Self, TypeVar

from budgetbandits.errors import BadState, BudgetBanditsError, NotFound
from budgetbandits.service.shared_budgets.rules import SharedBudget
from budgetbandits.service.stores.records import ArmRow, Campaign, DecisionRow, Event, Key, KeyEvent, Lease, LeaseEvent
from budgetbandits.service.stores.sql.dashboard import Pages
from budgetbandits.service.stores.sql.pruning import Pruning
from budgetbandits.service.stores.sql.rollups import Rollups
from budgetbandits.service.stores.sql.shared_budgets import SharedBudgetRows
from budgetbandits.service.stores.sql.webhooks import Webhooks

T = TypeVar("T")
"""Type of the result of work."""


class Scope(NamedTuple):
    """The subject of work: a campaign, by its id or name, and decisions of it, by their keys or ids.

    Work about the same campaign may share a transaction, and a store may read all this beforehand, at once. If
    ``lease`` is not None the campaign, which is named by its id, leases; it is the lease that decisions would be made
    under, if any. Such work may be run in a transaction that has leases alone (`Transaction.leases_alone`).
    """

    campaign: str = ""
    keys: Sequence[str] = ()
    decisions: Sequence[str] = ()
    lease: str | None = None


NO_SCOPE = Scope()
"""Scope of work that names no campaign."""

ANSWERS_KEPT = 100
"""How many answers to operators a campaign keeps: an answer has a line for each of its arms."""


class CampaignNeeded(Exception):
    """Work in a transaction that has leases alone needs the campaign, which must be locked before them.

    It is run again in a transaction that may read campaigns.
    """


class Transaction(ABC):
    """The rows of a store, to be read and written.

    Reading a campaign keeps others from changing it until the end, and then its shared budget, if it has one. So does
    reading a lease. Work that needs both reads the campaign first, and leases in the order of their ids.

    Writing a campaign's money moves that of its shared budget in the same transaction (`move_shared`).
    """

    leases_alone = False
    """Whether this transaction may read leases but no campaign: to ask for one is `CampaignNeeded`."""

    def now(self) -> float:
        """The time of all who share the store, in seconds since 1970."""
        return time.time()

    @abstractmethod
    def campaign(self, id_or_name: str) -> Campaign | None:
        """A campaign by its id or its name."""

    @abstractmethod
    def save_campaign(self, campaign: Campaign) -> None:
        """Write a campaign's money and what was learned; its name and policy never change."""

    @abstractmethod
    def save_money(self, campaign: Campaign) -> None:
        """Write a campaign's money alone."""

    @abstractmethod
    def shared_budget(self, name: str) -> SharedBudget | None:
        """The shared budget of this name, locked."""

    @abstractmethod
    def save_shared_budget(self, shared: SharedBudget) -> None:
        """Write the money of a shared budget."""

    def move_shared(self, before: Campaign | None, campaign: Campaign) -> None:
        """Move the money of a campaign's shared budget as that of the campaign has moved, if it has one."""
        shared = None if before is None else self.shared_of(campaign)
        if before is not None and shared is not None:
            moved = shared.moved(before.account, campaign.account)
            if moved is not shared:
                self.save_shared_budget(moved)

    def shared_of(self, campaign: Campaign) -> SharedBudget | None:
        """The shared budget of a campaign that was read in this transaction, if it has one."""
        name = campaign.settings.terms.shared_budget
        if name is None:
            return None
        shared = self.shared_budget(name)
        if shared is None:
            raise BadState(
                f"the shared budget {name!r:.60} of {campaign.name!r:.60} is missing; restore an undamaged copy"
            )
        return shared

    @abstractmethod
    def arms(self, campaign: str, numbers: Sequence[int] | None = None) -> list[ArmRow]:
        """The arms of a campaign in order, or only those with these numbers, which are in order."""

    @abstractmethod
    def save_arms(self, arms: Sequence[ArmRow]) -> None:
        """Write what was learned about arms, and whether they are active; their names and cost caps never change."""

    @abstractmethod
    def decision(self, id: str) -> DecisionRow | None:
        """The decision of this id."""

    @abstractmethod
    def decision_by_key(self, campaign: str, key: str) -> DecisionRow | None:
        """The decision of this key."""

    @abstractmethod
    def add_decision(self, decision: DecisionRow) -> None:
        """Add a decision."""

    @abstractmethod
    def save_decision(self, decision: DecisionRow) -> None:
        """Write a decision's feedback."""

    @abstractmethod
    def add_event(self, event: Event) -> None:
        """Add an event."""

    @abstractmethod
    def lease(self, id: str) -> Lease | None:
        """The lease of this id, locked."""

    @abstractmethod
    def leases(self, campaign: str) -> list[Lease]:
        """All leases of a campaign that has been read, in the order of their ids."""

    @abstractmethod
    def save_lease(self, lease: Lease) -> None:
        """Write a lease."""

    @abstractmethod
    def lease_events(self, lease: str, after: int) -> list[LeaseEvent]:
        """The events of a lease after this number, in order."""

    @abstractmethod
    def write_heartbeat(self, now: float) -> None:
        """Write something that nobody reads."""

    @abstractmethod
    def rollups(self) -> Rollups:
        """The campaigns' rollups, in this transaction."""

    @abstractmethod
    def pages(self) -> Pages:
        """Queries for pages, in this transaction."""

    @abstractmethod
    def pruning(self) -> Pruning:
        """Checkpoints, and rows that leave for the archive, in this transaction."""

    @abstractmethod
    def webhooks(self) -> Webhooks:
        """Webhooks and their outbox, in this transaction."""

    @abstractmethod
    def shared_budgets(self) -> SharedBudgetRows:
        """Shared budgets and their members, in this transaction."""

    @abstractmethod
    def save_shared_settings(self, shared: SharedBudget) -> None:
        """Write the terms of a shared budget, and its money."""

    @abstractmethod
    def campaigns(self, limit: int | None = None, after: str = "") -> list[Campaign]:
        """All that can be read, the oldest first; or at most ``limit`` that come after the one with this id."""

    def damaged_campaigns(self) -> list[str]:
        """The names of campaigns whose rows cannot be read."""
        return []

    @abstractmethod
    def add_campaign(self, campaign: Campaign) -> None:
        """Add a campaign."""

    @abstractmethod
    def drop_campaign(self, campaign: Campaign) -> None:
        """Delete a campaign whose events and decisions have been deleted, with all else that belongs to it."""

    @abstractmethod
    def save_settings(self, campaign: Campaign) -> None:
        """Write a campaign's settings, its name and its policy, which change seldom."""

    @abstractmethod
    def former_names(self, campaign: str) -> list[str]:
        """The names that a campaign had before; they go on meaning it."""

    @abstractmethod
    def save_caps(self, campaign: str, caps: Mapping[int, int]) -> None:
        """Write the cost caps of these arms."""

    @abstractmethod
    def add_arms(self, arms: Sequence[ArmRow]) -> None:
        """Add arms."""

    @abstractmethod
    def decisions_of(self, ids: Sequence[str]) -> list[DecisionRow]:
        """Those of these decisions that exist, in any order; a thousand ids at most."""

    @abstractmethod
    def forget_key(self, decision: DecisionRow) -> None:
        """The decision is not found by its key any more, and the key may be used again."""

    @abstractmethod
    def due_decisions(self, now: float, limit: int, without: Sequence[str] = ()) -> list[tuple[str, str]]:
        """The campaign and id of each pending decision whose time is over, the oldest first; ``without`` those of these
        campaigns."""

    @abstractmethod
    def pending_decisions(self, campaign: str) -> dict[str, float]:
        """When each of a campaign's pending decisions expires, as `due_decisions` would find them; by id."""

    @abstractmethod
    def pending_of(self, ids: Sequence[str]) -> dict[str, float]:
        """When those of these decisions expire that are pending, as `due_decisions` would find them; by id."""

    @abstractmethod
    def set_expiry(self, decision: str, expires_at: float) -> None:
        """When a pending decision expires."""

    @abstractmethod
    def booked_between(self, campaign: str, begin: float, end: float) -> int:
        """Micros that the decisions made from ``begin`` to before ``end`` hold and were charged. Slow.

        Those that were made under a lease are left out.
        """

    @abstractmethod
    def decisions(self, campaign: str, after: int = 0, limit: int = 1000) -> list[tuple[int, DecisionRow]]:
        """Decisions in the order they were made, each with the number of the event of its making."""

    @abstractmethod
    def pending_by_arm(self, campaign: str) -> dict[int, int]:
        """How many decisions of each arm are pending, by the arm's number, if any are."""

    @abstractmethod
    def add_lease(self, lease: Lease) -> None:
        """Add a lease."""

    @abstractmethod
    def drop_lease(self, id: str) -> None:
        """Delete a lease."""

    @abstractmethod
    def due_leases(self, now: float) -> list[tuple[str, str]]:
        """The campaign and id of each lease whose time is over."""

    @abstractmethod
    def operation(self, campaign: str, key: str) -> str | None:
        """The digest of the change that an operator made under this key; None if there was none."""

    @abstractmethod
    def answer(self, campaign: str, key: str) -> str | None:
        """The answer to the operator who used this key; None if there was none, or it is not kept any more."""

    @abstractmethod
    def add_operation(self, campaign: str, key: str, digest: str, now: float, answer: str | None = None) -> None:
        """A change was made under this key, and answered; a campaign keeps the latest `ANSWERS_KEPT` answers."""

    @abstractmethod
    def add_key(self, key: Key) -> None:
        """Add a key."""

    @abstractmethod
    def key(self, prefix: str) -> Key | None:
        """The key with this prefix."""

    @abstractmethod
    def keys(self) -> list[Key]:
        """All keys."""

    @abstractmethod
    def note_key_used(self, prefix: str, at: float) -> None:
        """Write when a key was used."""

    @abstractmethod
    def set_key_off(self, prefix: str, off: bool) -> None:
        """Turn a key off or on."""

    @abstractmethod
    def drop_key(self, prefix: str) -> None:
        """Delete a key."""

    @abstractmethod
    def add_key_event(self, event: KeyEvent) -> None:
        """Note what was done to a key; the note stays when the key does not."""

    @abstractmethod
    def key_made_under(self, operation: str) -> str | None:
        """The prefix of the key that was made under this idempotency key."""

    @abstractmethod
    def key_events(self, limit: int, before: int | None = None) -> list[KeyEvent]:
        """The latest first, those with lower numbers than ``before``."""

    @abstractmethod
    def events(self, campaign: str, after: int = 0, limit: int = 1000, kind: str | None = None) -> list[Event]:
        """Events in order, those of one kind or all."""

    @abstractmethod
    def last_event(self, campaign: str) -> int:
        """The number of the campaign's latest event; 0 if there is none."""

    @abstractmethod
    def last_own_event(self, campaign: str) -> int:
        """The number of the latest of the campaign's own events; a lease's count if they are milestones."""


class PoolLoad(NamedTuple):
    """Connections that a store keeps for one purpose, and the work that waits for them."""

    name: str
    idle: int
    busy: int
    waiting: int


class Store(ABC):
    """A place that keeps what was written."""

    address: str
    """The argument of `open_store` for it, in any process of this host."""

    prefetch: Callable[[], None] | None = None
    """Prepares what the next request is likely to need."""

    def prepare(self) -> None:
        """Call `prefetch`, once. A store that knows such moments does so when no request is waiting."""
        prefetch, self.prefetch = self.prefetch, None
        if prefetch is not None:
            prefetch()

    @abstractmethod
    def submit(self, work: Callable[[Transaction], T], scope: Scope = NO_SCOPE) -> Future[T]:
        """Run ``work`` in a transaction and make it durable; the future has its answer, or the error that undid it.

        ``work`` may be run again from the start if the database asks for it, so it must change nothing but the
        transaction.
        """

    def write(self, work: Callable[[Transaction], T], scope: Scope = NO_SCOPE) -> T:
        """`submit`, and wait for its answer."""
        return self.submit(work, scope).result()

    async def perform(self, work: Callable[[Transaction], T], scope: Scope = NO_SCOPE) -> T:
        """`submit` for an event loop; all calls come from one loop."""
        return await asyncio.wrap_future(self.submit(work, scope))

    @abstractmethod
    def read(self, work: Callable[[Transaction], T], urgent: bool = False) -> T:
        """Run ``work`` on a consistent view of what is committed; it must not write.

        ``urgent`` work, which is short, does not wait for readers that are not urgent.
        """

    def pools(self) -> list[PoolLoad]:
        """How busy its connections are."""
        return []

    @abstractmethod
    def close(self) -> None:
        """Finish what was accepted and close the database."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def find_campaign(transaction: Transaction, campaign: str) -> Campaign:
    """A campaign by its id or its name, or the error that there is none."""
    # no id or name is otherwise, and a database might not take it
    row = transaction.campaign(campaign) if campaign.isprintable() else None
    if row is None:
        raise NotFound(
            f"no campaign {campaign!r:.60}; 'budgetbandits campaign list' has all, 'campaign create' makes one"
        )
    return row


Clock = Callable[[], float]
"""Seconds since 1970."""


def moment(tx: Transaction, clock: Clock | None) -> float:
    """The time: by this clock, or by the store's if there is none. On PostgreSQL that is the database's, which all
    servers share; on SQLite that of the only host."""
    return tx.now() if clock is None else clock()


class Task(NamedTuple, Generic[T]):
    """Work in a transaction, and what it is about: the arguments of `Store.write`, `submit` and `perform`, so that an
    operation is the same for callers that wait and for those that do not."""

    work: Callable[[Transaction], T]
    scope: Scope


UNREADABLE = (LookupError, ArithmeticError, TypeError, ValueError, AttributeError, AssertionError)
"""Errors that come of reading a damaged row."""


def isolated(campaign: str | None, work: Callable[[Transaction], T]) -> Callable[[Transaction], T]:
    """The work, with errors that name the campaign if its rows are damaged."""

    def run(tx: Transaction) -> T:
        try:
            return work(tx)
        except BudgetBanditsError:
            raise
        except UNREADABLE as error:
            raise _damaged(campaign, error) from error

    return run


@contextmanager
def named_damage(campaign: str | None) -> Iterator[None]:
    """The same for a block."""
    try:
        yield
    except BudgetBanditsError:
        raise
    except UNREADABLE as error:
        raise _damaged(campaign, error) from error


def _damaged(campaign: str | None, error: Exception) -> BadState:
    whose = "a campaign" if campaign is None else f"campaign {campaign!r:.60}"
    return BadState(
        f"what the store has of {whose} is damaged ({error!r:.80}); "
        "'budgetbandits campaign verify' says where, restore an undamaged copy"
    )
