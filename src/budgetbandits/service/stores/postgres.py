"""PostgreSQL: the store for many hosts. Extra ``postgres``.

A transaction that reads a campaign locks its row, so changes of a campaign are made one after the other, on whichever
host. Requests about a campaign that one server gets while it waits go into one transaction. No transaction is about two
campaigns, and leases are locked after their campaign and in the order of their ids, so servers never wait for each
other in a circle. Events of a campaign, or of a lease, are numbered under its lock, so their numbers are in the order
of their commits.

There are two ways to write: from an event loop in two round trips (`postgres_async`), which is how decisions are made,
and from threads statement by statement, for everything else.
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
    LockNotAvailable,
    SerializationFailure,
    UniqueViolation,
)
from psycopg.pq import TransactionStatus
from psycopg_pool import ConnectionPool

from budgetbandits.errors import StoreError
from budgetbandits.service.stores.contract import (
    NO_SCOPE,
    DecisionTransaction,
    NeedsFullTransaction,
    PoolLoad,
    Scope,
    Store,
    T,
    Transaction,
)
from budgetbandits.service.stores.group_commit import GROUP_MAX, CachedTransaction, GroupWriter, WorkQueue, one_line
from budgetbandits.service.stores.postgres_async import LoopWriter
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
from budgetbandits.service.stores.schema import check_version, migrations
from budgetbandits.service.stores.sql.core import SqlTransaction

READERS_MAX = 10
URGENT_READERS_MAX = 2
"""Connections for urgent reads: without a key nobody gets a decision."""
WRITERS = 4
"""Connections that write, each for another campaign at a time."""

READER_WAIT_SECONDS = 5.0
"""How long to wait for one of the connections that read."""

RECONNECT_SECONDS = 1.0
"""After this time a lost connection is given up, so that the next reader tries again. The pool would go on trying by
itself, and wait ever longer in between: after an outage of a minute, for most of another."""

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
        self._in_loop: LoopWriter | None = None
        self._queue = WorkQueue()
        self._writers = [PostgresWriter(url, number, self._queue) for number in range(WRITERS)]
        self._gate = threading.Lock()

    def submit(self, work: Callable[[Transaction], T], scope: Scope = NO_SCOPE) -> Future[T]:
        future: Future[T] = Future()
        with self._gate:
            if self._pool.closed:
                raise StoreError("the store is closed; open it again")
            self._queue.put((work, future), scope.campaign or object())  # work without a campaign is alone
        return future

    async def perform(self, work: Callable[[DecisionTransaction], T], scope: Scope = NO_SCOPE) -> T:
        """In the event loop itself, in two round trips; a writer's thread takes work that needs a full transaction."""
        if self._pool.closed:
            raise StoreError("the store is closed; open it again")
        loop = asyncio.get_running_loop()
        if self._in_loop is None or self._in_loop.loop is not loop:
            self._close_loop()
            self._in_loop = LoopWriter(self._url, loop)
        if len(scope.keys) + len(scope.decisions) > GROUP_MAX:  # a batch that would keep the loop from everybody else
            return await super().perform(work, scope)
        try:
            return await self._in_loop.perform(work, scope)
        except NeedsFullTransaction:
            return await super().perform(work, scope)

    def _close_loop(self) -> None:
        if self._in_loop is not None:
            self._in_loop.close()

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
        loads = [PoolLoad("writers", WRITERS - busy, busy, waiting)]
        for name, pool in (("readers", self._pool), ("urgent readers", self._urgent)):
            said = pool.get_stats()
            idle = said.get("pool_available", 0)
            loads.append(PoolLoad(name, idle, said.get("pool_size", 0) - idle, said.get("requests_waiting", 0)))
        return loads

    def close(self) -> None:
        with self._gate:
            if self._pool.closed:
                return
            self._pool.close()
            self._urgent.close()
        self._close_loop()
        self._queue.stop()
        end = time.monotonic() + CLOSE_SECONDS
        for writer in self._writers:
            writer.join(max(0.0, end - time.monotonic()))


def _pool(url: str, connections: int) -> ConnectionPool:
    return ConnectionPool(
        kwargs=arguments(url),
        configure=partial(prepare, limits=READ_LIMITS),
        min_size=1,
        max_size=connections,
        timeout=READER_WAIT_SECONDS,
        reconnect_timeout=RECONNECT_SECONDS,
        open=True,
        check=ConnectionPool.check_connection,
    )


class PostgresTransaction(SqlTransaction):
    LISTS_PENDING = True

    def now(self) -> float:
        """The database's time: servers' clocks may differ."""
        return float(self._execute("SELECT extract(epoch FROM clock_timestamp())").fetchone()[0])

    def whole(self, number: str) -> str:
        return f"CAST(FLOOR({number}) AS BIGINT)"  # a cast alone would round

    def contains(self, text: str) -> str:
        return f"strpos({text}, ?) > 0"

    def _execute(self, statement: str, values: Sequence[Any] = ()) -> Any:
        return self._connection.execute(statement.replace("?", "%s"), values)

    def _execute_many(self, statement: str, rows: Sequence[Sequence[Any]]) -> None:
        super()._execute_many(statement.replace("?", "%s"), rows)


class PostgresWritingTransaction(CachedTransaction, PostgresTransaction):
    LOCK = " FOR UPDATE"

    def _lock_leases(self, statement: str, value: str) -> Any:
        """Wait for the first, in the order of their ids. To wait for more with these locked could be to wait in a
        circle; so the items of this group are run again, each by itself: an item reads one lease, or all at once."""
        if not self._cache.leases_read:
            self._cache.leases_read = True
            return super()._lock_leases(statement, value)
        try:
            return self.ask(f"{statement}{self.LOCK} NOWAIT", (value,))
        except LockNotAvailable as error:
            raise OutOfOrder(str(error)) from None


class PostgresWriter(GroupWriter):
    errors = psycopg.Error
    broken = (psycopg.OperationalError, IdleInTransactionSessionTimeout, UniqueViolation)
    transaction_type = PostgresWritingTransaction

    def __init__(self, url: str, number: int, queue: WorkQueue) -> None:
        self._url = url
        super().__init__(f"store-writer-{number}", queue)

    def begin(self) -> None:
        if self._connection is not None and self._connection.info.transaction_status != TransactionStatus.IDLE:
            self._connection.close()  # the last transaction could not be rolled back
        if self._connection is None or self._connection.closed:
            self._connection = connect(self._url, WRITE_LIMITS)
        self._cache.clear()  # what is read is locked until the end of the transaction, and no longer

    def commit(self) -> None:
        assert self._connection is not None
        try:
            self._connection.commit()
        except psycopg.OperationalError as error:
            if self._connection.closed:
                raise LostInCommit(str(error)) from None
            raise

    def rollback(self) -> None:
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


def _migrate(connection: psycopg.Connection[Any]) -> None:
    steps = migrations("postgresql")
    connection.execute("SELECT pg_advisory_xact_lock(%s)", (MIGRATION_LOCK,))  # two hosts may start at once
    connection.execute("CREATE TABLE IF NOT EXISTS migration (number INTEGER PRIMARY KEY)")
    row = connection.execute("SELECT max(number) FROM migration").fetchone()
    done = (row[0] if row else None) or 0
    check_version(done, steps[-1][0])
    for number, statements in steps:
        if number > done:
            for statement in statements:
                connection.execute(statement)
            connection.execute("INSERT INTO migration VALUES (%s)", (number,))
