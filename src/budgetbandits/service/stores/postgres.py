"""PostgreSQL: the store for many hosts. Extra ``postgres``.

A transaction that reads a campaign locks its row, so changes of a campaign are made one after the other, on whichever
host. Requests about a campaign that one server gets while it waits go into one transaction. No transaction is about two
campaigns, and leases are locked after their campaign and in the order of their ids, so servers never wait for each
other in a circle. Events of a campaign, or of a lease, are numbered under its lock, so their numbers are in the order
of their commits.

A writer's thread runs a group. What its items are about (`Scope`) is locked and read in one round trip, and what they
have changed is written in another, with the commit (`postgres_pipeline`). In between a statement is run for whatever
else is asked for: the arms that another server has changed, say.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from functools import partial
from typing import Any

import psycopg
from psycopg.errors import (
    DeadlockDetected,
    IdleInTransactionSessionTimeout,
    SerializationFailure,
    UniqueViolation,
)
from psycopg_pool import ConnectionPool

from budgetbandits.errors import BudgetBanditsError, StoreError
from budgetbandits.service.stores.contract import (
    NO_SCOPE,
    UNREADABLE,
    CampaignNeeded,
    PoolLoad,
    Scope,
    Store,
    T,
    Transaction,
)
from budgetbandits.service.stores.group_commit import TRIES_MAX, GroupWriter, one_line
from budgetbandits.service.stores.loop_groups import LoopGroups
from budgetbandits.service.stores.postgres_pipeline import Pipeline
from budgetbandits.service.stores.postgres_session import (
    READ_LIMITS,
    WRITE_LIMITS,
    LostInCommit,
    OutOfOrder,
    arguments,
    cannot_write,
    check_encoding,
    connect,
    prepare,
    reason,
)
from budgetbandits.service.stores.postgres_transaction import PostgresTransaction, PostgresWritingTransaction
from budgetbandits.service.stores.schema import check_version, migrations
from budgetbandits.service.stores.work_queue import Answers, WorkItem, WorkQueue

READERS_MAX = 10
"""Most connections that read."""

URGENT_READERS_MAX = 2
"""Connections for urgent reads: without a key nobody gets a decision."""
WRITERS = 4
"""Connections that write, each for another campaign at a time."""

READER_WAIT_SECONDS = 5.0
"""How long to wait for one of the connections that read."""

RECONNECT_SECONDS = 1.0
"""Time after which a lost connection is given up, so that the next reader tries again. The pool alone would wait
ever longer between tries: after an outage of a minute, for most of another."""

CLOSE_SECONDS = 5.0
"""How long to wait, when the store is closed, for writers that wait for the database."""

MIGRATION_LOCK = 2015_07_25
"""The number of the advisory lock that one server holds while it makes the tables."""


class PostgresStore(Store):
    """An existing database; its tables are made when it is first opened."""

    def __init__(self, url: str) -> None:
        try:
            with connect(url, READ_LIMITS) as connection:
                check_encoding(connection)
                _migrate(connection)
        except psycopg.Error as error:
            raise StoreError(f"cannot open the database: {one_line(error)}; check the address and the rights") from None
        self._pool, self._urgent = _pool(url, READERS_MAX), _pool(url, URGENT_READERS_MAX)
        self.address = self._url = url
        self._in_loop: LoopGroups | None = None
        self._queue = WorkQueue()
        shared_budgets: dict[str, str] = {}
        self._writers = [PostgresWriter(url, number, self._queue, shared_budgets) for number in range(WRITERS)]
        self._gate = threading.Lock()

    def submit(self, work: Callable[[Transaction], T], scope: Scope = NO_SCOPE) -> Future[T]:
        future: Future[T] = Future()
        with self._gate:
            if self._pool.closed:
                raise StoreError("the store is closed; open it again")
            self._queue.put(
                [WorkItem(work, future, scope)], scope.campaign or object()
            )  # work without a campaign is alone
        return future

    async def perform(self, work: Callable[[Transaction], T], scope: Scope = NO_SCOPE) -> T:
        """Perform work in a writer's thread, together with all other work on the campaign that comes in meanwhile."""
        if self._pool.closed:
            raise StoreError("the store is closed; open it again")
        loop = asyncio.get_running_loop()
        if self._in_loop is None or self._in_loop.loop is not loop:
            self._in_loop = LoopGroups(loop, self._queue)
        future: asyncio.Future[T] = loop.create_future()
        self._in_loop.put(WorkItem(work, future, scope))
        return await future

    def read(self, work: Callable[[Transaction], T], urgent: bool = False) -> T:
        if self._pool.closed:
            raise StoreError("the store is closed; open it again")
        pool = self._urgent if urgent else self._pool
        try:  # when no connection comes free in time, that is an OperationalError
            with pool.connection() as connection, connection.transaction():
                connection.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY")
                return work(PostgresTransaction(connection))
        except psycopg.Error as error:
            raise StoreError(f"cannot read: {reason(error)}") from None

    def pools(self) -> list[PoolLoad]:
        busy, waiting = self._queue.load()
        waiting += 0 if self._in_loop is None else self._in_loop.waiting()
        loads = [PoolLoad("writers", WRITERS - busy, busy, waiting)]
        for name, pool in (("readers", self._pool), ("urgent readers", self._urgent)):
            stats = pool.get_stats()
            idle = stats.get("pool_available", 0)
            loads.append(PoolLoad(name, idle, stats.get("pool_size", 0) - idle, stats.get("requests_waiting", 0)))
        return loads

    def close(self) -> None:
        with self._gate:
            if self._pool.closed:
                return
            self._pool.close()
            self._urgent.close()
        self._queue.stop()
        end = time.monotonic() + CLOSE_SECONDS
        for writer in self._writers:
            writer.join(max(0.0, end - time.monotonic()))


def _pool(url: str, connections: int) -> ConnectionPool:
    return ConnectionPool(
        kwargs={**arguments(url), "cursor_factory": psycopg.RawCursor},
        configure=partial(prepare, limits=READ_LIMITS),
        min_size=1,
        max_size=connections,
        timeout=READER_WAIT_SECONDS,
        reconnect_timeout=RECONNECT_SECONDS,
        open=True,
        check=ConnectionPool.check_connection,
    )


class PostgresWriter(GroupWriter):
    """A connection that writes, and its thread."""

    errors = psycopg.Error
    broken = (psycopg.OperationalError, IdleInTransactionSessionTimeout, UniqueViolation)

    def __init__(self, url: str, number: int, queue: WorkQueue, shared_budgets: dict[str, str]) -> None:
        self._url = url
        self._leases_alone = False
        """Whether the present group is run without its campaign."""
        self._shared_budgets = shared_budgets
        """The names of the shared budgets of campaigns, by these campaigns' names or ids, as they were read last."""
        super().__init__(f"store-writer-{number}", queue)

    def run(self, group: Sequence[WorkItem], tries: int = TRIES_MAX) -> Answers:
        answers = super().run(group, tries)
        if not any(isinstance(problem, CampaignNeeded) for _, _, problem in answers):
            return answers
        items = {id(item.future): item._replace(scope=item.scope._replace(lease=None)) for item in group}
        return [
            self.run([items[id(answer[0])]])[0] if isinstance(answer[2], CampaignNeeded) else answer
            for answer in answers
        ]

    def begin(self, group: Sequence[WorkItem]) -> None:
        scopes = [item.scope for item in group]
        self._leases_alone = all(map(_needs_no_campaign, scopes))
        idle = self._connection is not None
        try:
            self._begin(scopes)
        except psycopg.OperationalError:
            if not idle or not self._connection.closed:
                raise
            self._begin(scopes)  # the other was lost while it was idle, and nothing was written

    def _begin(self, scopes: Sequence[Scope]) -> None:
        if self._connection is not None and self._connection.in_transaction:
            self._connection.close()  # the last transaction could not be rolled back
        if self._connection is None or self._connection.closed:
            self._connection = Pipeline(self._url, WRITE_LIMITS)
        self._cache.clear()  # what is read is locked until the end of the transaction, and no longer
        campaign, tx = scopes[0].campaign, self.transaction()
        if self._leases_alone:
            tx.lock_leases(scopes)
        elif campaign.isprintable() and campaign:
            with contextlib.suppress(*UNREADABLE, BudgetBanditsError):  # the items themselves say what is damaged
                row = tx.lock_campaign(scopes, self._shared_budgets.get(campaign))
                name = None if row is None else row.settings.terms.shared_budget
                if name is not None:
                    self._shared_budgets[campaign] = name
                else:
                    self._shared_budgets.pop(campaign, None)

    def transaction(self) -> PostgresWritingTransaction:
        return PostgresWritingTransaction(self._connection, self._cache, self._leases_alone)

    def commit(self) -> None:
        """Commit the transaction; a lost connection leaves the outcome unknown."""
        self._connection.check()  # from here on, a lost connection leaves open what was done
        try:
            self._connection.commit()
        except psycopg.OperationalError as error:
            if self._connection.closed:
                raise LostInCommit(str(error)) from None
            raise

    def rollback(self) -> None:
        """Roll the transaction back."""
        with contextlib.suppress(psycopg.Error):
            if self._connection is not None:
                self._connection.rollback()

    def is_retryable(self, error: Exception) -> bool:
        # under another lease, the same key was used: what became of it is seen when it is tried again
        return isinstance(error, DeadlockDetected | SerializationFailure | UniqueViolation | OutOfOrder)

    def failure(self, error: Exception) -> StoreError:
        if isinstance(error, UniqueViolation):
            return StoreError(f"the store refused: {one_line(error)}; nothing was written")
        return cannot_write(error)

    def join(self, seconds: float | None = None) -> bool:
        ended = super().join(seconds)
        if ended and self._connection is not None:
            self._connection.close()
        return ended


def _needs_no_campaign(scope: Scope) -> bool:
    """Whether this is feedback, or a decision under a lease."""
    return bool(scope.lease) or (scope.lease is not None and not scope.keys)


def _migrate(connection: psycopg.Connection[Any]) -> None:
    steps = migrations("postgresql")
    connection.execute("SELECT pg_advisory_xact_lock(%s)", (MIGRATION_LOCK,))  # two hosts may start at once
    connection.execute("CREATE TABLE IF NOT EXISTS migration (number INTEGER PRIMARY KEY)")
    row = connection.execute("SELECT max(number) FROM migration").fetchone()
    version = (row[0] if row else None) or 0
    check_version(version, steps[-1][0])
    for number, statements in steps:
        if number > version:
            for statement in statements:
                connection.execute(statement)
            connection.execute("INSERT INTO migration VALUES (%s)", (number,))
