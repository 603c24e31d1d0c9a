"""Group commit: work that waits for the same campaign is run in one transaction, and shares its commit and its rows.

Rows that a writer has read or written are kept for as long as nobody else can change them: with PostgreSQL for one
transaction, with SQLite until another connection writes to the file. Rows that every request changes (a campaign, an
arm) or adds (an event) wait in this cache until the end of the transaction, so that a row which many requests have
changed is written once.

If one item fails after it has written something, which is rare, all are rolled back and run again one by one.
"""

from __future__ import annotations

import math
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar

from budgetbandits.errors import StoreError
from budgetbandits.service.shared_budgets.rules import SharedBudget
from budgetbandits.service.stores.records import ArmRow, Campaign, DecisionRow, Event, Lease
from budgetbandits.service.stores.sql.core import SqlTransaction
from budgetbandits.service.stores.work_queue import Answers, WorkItem, WorkQueue, deliver

GROUP_SECONDS = 0.005
"""Seconds after which an event loop runs no further item of a group: it has others to serve."""

TRIES_MAX = 5
"""How often a transaction is run that the database gave up to end a deadlock."""

OPEN_DECISIONS_MAX = 10_000
"""Open decisions that are kept; the oldest leaves first."""


class RowCache:
    """Rows as they are in the database, or will be: campaigns by id and by name, and decisions that are still open.

    A campaign's name never looks like an id. An open decision is what the next feedback asks for.
    """

    def __init__(self) -> None:
        self.campaigns: dict[str, Campaign] = {}
        self.shared: dict[str, SharedBudget] = {}
        self.decisions: dict[str, DecisionRow] = {}
        self.unwritten = UnwrittenRows()
        self.leases_read = False
        """Whether this transaction may have locked a lease, in PostgreSQL alone."""
        self.leases: dict[str, Lease | None] | None = None
        """Leases that it has locked beforehand, and ids of those that have ended, in PostgreSQL alone."""
        self.decisions_by_key: dict[tuple[str, str], DecisionRow | None] = {}
        """Decisions by campaign and key, and keys without one, in PostgreSQL alone."""
        self.now: float | None = None
        """Time of the database when the rows were locked, in PostgreSQL alone."""

    def clear(self) -> None:
        """Forget everything that was read."""
        self.campaigns.clear()
        self.shared.clear()
        self.decisions.clear()
        self.unwritten = UnwrittenRows()
        self.leases_read, self.leases, self.now = False, None, None
        self.decisions_by_key.clear()


class UnwrittenRows:
    """Rows that wait to be written."""

    def __init__(self) -> None:
        self.any = False
        self.money: dict[str, None] = {}
        """The ids of campaigns that have changed, in order; these two have those that changed in another way, too."""
        self.learned: set[str] = set()
        self.status: set[str] = set()
        self.shared: set[str] = set()
        """The names of shared budgets whose money has changed."""
        self.arms: dict[tuple[str, int], ArmRow] = {}
        self.events: list[Event] = []
        self.leases: dict[str, Lease] = {}
        """Leases that have changed, in PostgreSQL alone."""
        self.new_decisions: dict[str, DecisionRow] = {}
        """Decisions that were made, in PostgreSQL alone."""
        self.decisions: dict[str, DecisionRow] = {}
        """Decisions that have changed."""


class CachedTransaction(SqlTransaction):
    """A transaction that reads a row once and keeps it in the cache; `write_rest` is called before it is committed."""

    wrote = False
    """Whether anything was written."""

    def __init__(self, connection: Any, cache: RowCache) -> None:
        self._connection, self._cache = connection, cache
        self._campaigns, self._decisions = cache.campaigns, cache.decisions

    def campaign(self, id_or_name: str) -> Campaign | None:
        row = self._campaigns.get(id_or_name) or self._keep(super().campaign(id_or_name))
        if row is not None and row.settings.terms.shared_budget is not None:
            self.shared_budget(row.settings.terms.shared_budget)  # locked before anything is written
        return row

    def shared_budget(self, name: str) -> SharedBudget | None:
        """The shared budget of this name, read once."""
        shared = self._cache.shared.get(name)
        if shared is None:
            shared = super().shared_budget(name)
            if shared is not None:
                self._cache.shared[name] = shared
        return shared

    def save_shared_budget(self, shared: SharedBudget) -> None:
        self._waiting().shared.add(shared.name)
        self._cache.shared[shared.name] = shared

    def save_shared_settings(self, shared: SharedBudget) -> None:
        super().save_shared_settings(shared)
        self._cache.shared[shared.name] = shared

    def save_campaign(self, campaign: Campaign) -> None:
        self._put(campaign)
        self._cache.unwritten.learned.add(campaign.id)

    def drop_campaign(self, campaign: Campaign) -> None:
        super().drop_campaign(campaign)
        for key in (campaign.id, campaign.name):
            self._campaigns.pop(key, None)

    def save_settings(self, campaign: Campaign) -> None:
        before = self.campaign(campaign.id)
        super().save_settings(campaign)
        if before is not None:
            self._campaigns.pop(before.name, None)
            campaign = campaign.with_money(before.account)  # which is not written here
        self._keep(campaign)

    def save_money(self, campaign: Campaign) -> None:
        row = self.campaign(campaign.id)
        if row is not None:
            self._put(row.with_money(campaign.account))

    def _put(self, campaign: Campaign) -> None:
        before = self._campaigns.get(campaign.id)
        if campaign.settings.terms.shared_budget is not None:
            self.move_shared(before or self.campaign(campaign.id), campaign)
        waiting = self._waiting()
        waiting.money[campaign.id] = None
        # only if it changed: SQLite takes longer to check that it is one of four than to write all the money
        if before is None or campaign.account.status != before.account.status:
            waiting.status.add(campaign.id)
        self._keep(campaign)

    def save_arms(self, arms: Sequence[ArmRow]) -> None:
        waiting = self._waiting().arms
        for arm in arms:
            waiting[arm.campaign, arm.number] = arm

    def add_event(self, event: Event) -> None:
        """Add an event when the transaction commits."""
        self._waiting().events.append(event)

    def _waiting(self) -> UnwrittenRows:
        """Where to put changed rows."""
        self.wrote = self._cache.unwritten.any = True
        return self._cache.unwritten

    def write_rest(self) -> None:
        """Write the rows that have waited."""
        waiting, self._cache.unwritten = self._cache.unwritten, UnwrittenRows()
        for id in waiting.money:
            row = self._campaigns[id]
            (super().save_campaign if id in waiting.learned else super().save_money)(row)
            if id in waiting.status:
                self._save_status(row)
        for name in waiting.shared:
            super().save_shared_budget(self._cache.shared[name])
        if waiting.arms:
            super().save_arms(list(waiting.arms.values()))
        if waiting.events:
            self._add_events(waiting.events)

    def ask(self, statement: str, values: Sequence[Any] = ()) -> Any:
        self._write_waiting()
        return self._execute(statement, values)

    def change(self, statement: str, values: Sequence[Any] = ()) -> None:
        self._write_waiting()
        self.wrote = True
        self._execute(statement, values)

    def change_many(self, statement: str, rows: Sequence[Sequence[Any]]) -> None:
        self._write_waiting()
        self.wrote = True
        self._execute_many(statement, rows)

    def _write_waiting(self) -> None:
        if self._cache.unwritten.any:
            self.write_rest()

    def decision(self, id: str) -> DecisionRow | None:
        """The decision of this id, possibly not written yet."""
        return self._decisions.get(id) or super().decision(id)

    def add_decision(self, decision: DecisionRow) -> None:
        """Add a decision when the transaction commits."""
        self.wrote = True
        super().add_decision(decision)
        if len(self._decisions) >= OPEN_DECISIONS_MAX:
            del self._decisions[next(iter(self._decisions))]  # the oldest
        self._decisions[decision.id] = decision

    def save_decision(self, decision: DecisionRow) -> None:
        """Write a decision's feedback when the transaction commits."""
        self.wrote = True
        self._decisions.pop(decision.id, None)
        super().save_decision(decision)

    def set_expiry(self, decision: str, expires_at: float) -> None:
        self._decisions.pop(decision, None)
        super().set_expiry(decision, expires_at)

    def _keep(self, campaign: Campaign | None) -> Campaign | None:
        if campaign is not None:
            self._campaigns[campaign.id] = self._campaigns[campaign.name] = campaign
        return campaign


class GroupWriter(ABC):
    """A connection that one thread writes on, group after group; a database supplies how."""

    errors: ClassVar[type[Exception]]
    """Errors of the database."""
    broken: ClassVar[type[Exception] | tuple[type[Exception], ...]]
    """Those of them that no item causes: the disk is full, or the connection is lost."""

    def __init__(self, name: str, queue: WorkQueue, connection: Any = None) -> None:
        self._queue = queue
        self._connection = connection
        self._cache = RowCache()
        self.busy = threading.Lock()
        """Held while a transaction is open, by the thread that runs it."""
        self._thread = threading.Thread(target=self._serve, name=name, daemon=True)
        self._thread.start()

    @abstractmethod
    def begin(self, group: Sequence[WorkItem]) -> None:
        """Begin a transaction for this group; what its items are about may be read at once."""

    @abstractmethod
    def transaction(self) -> CachedTransaction:
        """The transaction that has begun, for one item."""

    @abstractmethod
    def commit(self) -> None:
        """Commit the transaction."""

    @abstractmethod
    def rollback(self) -> None:
        """Roll the transaction back."""

    def is_retryable(self, error: Exception) -> bool:
        """Whether a group that failed with this error should be run again, item by item."""
        return False

    def failure(self, error: Exception) -> StoreError:
        """The error that is raised to those who asked."""
        return StoreError(f"cannot write: {one_line(error)}; nothing was decided")

    def join(self, seconds: float | None = None) -> bool:
        """Wait for the thread to end, after `WorkQueue.stop`; whether it has."""
        self._thread.join(seconds)
        return not self._thread.is_alive()

    def _serve(self) -> None:
        while (taken := self._queue.take()) is not None:
            scope, group = taken
            try:
                with self.busy:
                    answers = self.run(group)
            except Exception as error:  # rolling back failed, say: others wait, and more will come
                failure = self.failure(error)
                answers = [(item.future, None, failure) for item in group]
            self._queue.done(scope)
            deliver(answers)

    def run(self, group: Sequence[WorkItem], tries: int = TRIES_MAX) -> Answers:
        """The answers of the group, run in one transaction that has been committed when this returns."""
        try:
            self.begin(group)
            answers = self.run_begun(group)
        except self.errors as error:
            self.rollback()
            if self.is_retryable(error) and tries > 1:
                return self._one_by_one(group, tries - 1)
            failure = self.failure(error)
            return [(item.future, None, failure) for item in group]
        return self._one_by_one(group) if answers is None else answers

    def run_begun(self, group: Sequence[WorkItem], seconds: float = math.inf) -> Answers | None:
        """The group in a transaction that has begun, or its first items if the seconds are over before the last; None,
        and it is rolled back, if each needs one of its own."""
        answers: Answers = []
        end = time.perf_counter() + seconds
        for work, future, _ in group:
            if answers and time.perf_counter() > end:
                break
            transaction = self.transaction()
            try:
                answers.append((future, work(transaction), None))
            except self.broken:
                raise
            except BaseException as error:
                answers.append((future, None, self._named(error)))
                if transaction.wrote or isinstance(error, self.errors):
                    self.rollback()
                    # the others must not lose what they wrote
                    return answers if len(group) == 1 else None
        try:
            transaction.write_rest()
            self.commit()
        except self.broken:
            raise
        except (self.errors, ArithmeticError, TypeError, ValueError) as error:  # which item it was is seen one by one
            self.rollback()
            return [(group[0].future, None, self._refused(error))] if len(group) == 1 else None
        return answers

    def _one_by_one(self, group: Sequence[WorkItem], tries: int = TRIES_MAX) -> Answers:
        return [answer for item in group for answer in self.run([item], tries)]

    def _named(self, error: BaseException) -> BaseException:
        return self._refused(error) if isinstance(error, self.errors) else error

    def _refused(self, error: BaseException) -> StoreError:
        return StoreError(f"the store refused: {one_line(error)}; nothing was written")


def one_line(error: BaseException) -> str:
    """The text of an error in one line."""
    return " ".join(str(error).split())
