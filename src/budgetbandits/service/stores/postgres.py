"""PostgreSQL: the store for many hosts. Extra ``postgres``.

A transaction that reads a campaign locks its row, so whatever is done to a campaign is done one after the other, on
whichever host. What one server is asked about a campaign while it waits goes into one transaction. No transaction is
about two campaigns, so servers never wait for each other in a circle. Events of a campaign are numbered under that
lock, so their numbers are in the order of their commits.
"""

from __future__ import annotations

import contextlib
import logging
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
    QueryCanceled,
    SerializationFailure,
)
from psycopg_pool import ConnectionPool

from budgetbandits.errors import StoreError
from budgetbandits.service.stores.base import Store, T, Transaction
from budgetbandits.service.stores.group_commit import GroupWriter, Waiting, one_line
from budgetbandits.service.stores.postgres_session import (
    IDLE_SECONDS,
    LOCK_SECONDS,
    READING,
    STATEMENT_SECONDS,
    WRITING,
    arguments,
    check_encoding,
    connect,
    prepare,
)
from budgetbandits.service.stores.row_cache import RowCache, WritingTransaction
from budgetbandits.service.stores.sql import SqlTransaction, check_version, migrations

READERS = 10
WRITERS = 4
"""Connections that write, each for another campaign at a time."""

PATIENCE = 5.0
"""Seconds to wait for one of the connections that read."""

FINISH_WITHIN = 5.0
"""Seconds to wait, when the store is closed, for writers that wait for the database."""

MIGRATION_LOCK = 2015_07_25

log = logging.getLogger("budgetbandits")


class PostgresStore(Store):
    """A database that is there already; its tables are made when it is first opened."""

    def __init__(self, url: str) -> None:
        try:
            with connect(url, READING) as connection:
                check_encoding(connection)
                _migrate(connection)
        except psycopg.Error as error:
            raise StoreError(f"cannot open the database: {one_line(error)}; check the address and the rights") from None
        self._pool = ConnectionPool(
            kwargs=arguments(url),
            configure=partial(prepare, limits=READING),
            min_size=1,
            max_size=READERS,
            timeout=PATIENCE,
            open=True,
            check=ConnectionPool.check_connection,
        )
        self._waiting = Waiting()
        self._writers = [_Writer(url, number, self._waiting) for number in range(WRITERS)]
        self._gate = threading.Lock()

    def submit(self, work: Callable[[Transaction], T], about: str = "") -> Future[T]:
        future: Future[T] = Future()
        with self._gate:
            if self._pool.closed:
                raise StoreError("the store is closed; open it again")
            self._waiting.put((work, future), about or object())  # about nothing that is known: alone
        return future

    def read(self, work: Callable[[Transaction], T]) -> T:
        try:
            with self._connection() as connection, connection.transaction():
                connection.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY")
                return work(_Transaction(connection))
        except psycopg.Error as error:
            raise StoreError(f"cannot read: {_reason(error)}") from None

    def close(self) -> None:
        with self._gate:
            if self._pool.closed:
                return
            self._pool.close()
        self._waiting.stop()
        end = time.monotonic() + FINISH_WITHIN
        for writer in self._writers:
            writer.join(max(0.0, end - time.monotonic()))

    def _connection(self) -> Any:
        if self._pool.closed:
            raise StoreError("the store is closed; open it again")
        return self._pool.connection()  # when none comes free in time, that is an OperationalError


class _Writer(GroupWriter):
    errors = psycopg.Error
    broken = (psycopg.OperationalError, IdleInTransactionSessionTimeout)

    def __init__(self, url: str, number: int, waiting: Waiting) -> None:
        self._url = url
        self._connection: psycopg.Connection[Any] | None = None
        self._cache = RowCache()
        super().__init__(f"store-writer-{number}", waiting)

    def begin(self) -> None:
        if self._connection is None or self._connection.closed:
            self._connection = connect(self._url, WRITING)
        self._cache.clear()  # what is read is locked until the end of the transaction, and no longer

    def transaction(self) -> WritingTransaction:
        return _Writing(self._connection, self._cache)

    def commit(self) -> None:
        assert self._connection is not None
        try:
            self._connection.commit()
        except psycopg.OperationalError as error:
            if self._connection.closed:
                raise _OutcomeUnknown(str(error)) from None
            raise

    def undo(self) -> None:
        with contextlib.suppress(psycopg.Error):
            if self._connection is not None:
                self._connection.rollback()

    def again(self, error: Exception) -> bool:
        return isinstance(error, DeadlockDetected | SerializationFailure)

    def failure(self, error: Exception) -> StoreError:
        if isinstance(error, _OutcomeUnknown):
            log.warning("the connection to the database was lost during a commit: %s", one_line(error))
            return StoreError("the database was lost during the commit: what was asked may have been done, or not; "
                              "ask again, a decision under the same key")  # fmt: skip
        return StoreError(f"cannot write: {_reason(error)}; nothing was decided")

    def join(self, seconds: float | None = None) -> bool:
        ended = super().join(seconds)
        if ended and self._connection is not None:
            self._connection.close()
        return ended


class _OutcomeUnknown(psycopg.OperationalError):  # type: ignore[misc]
    """The connection was lost after the database had been asked to commit."""


def _reason(error: Exception) -> str:
    """What went wrong and what to do about it, for whoever asked; only the log has the database's address."""
    if isinstance(error, LockNotAvailable):
        return f"another server has kept the campaign for {LOCK_SECONDS:g} seconds; ask again"
    if isinstance(error, QueryCanceled):
        return f"the database took more than {STATEMENT_SECONDS:g} seconds; ask again"
    if isinstance(error, IdleInTransactionSessionTimeout):
        return f"this server stood still for {IDLE_SECONDS:g} seconds, so the database has undone its work; ask again"
    if isinstance(error, psycopg.OperationalError) and error.sqlstate is None:
        log.warning("the database cannot be reached: %s", one_line(error))
        return "the database cannot be reached, the server's log says why; ask again"
    return one_line(error)


class _Transaction(SqlTransaction):
    def __init__(self, connection: psycopg.Connection[Any]) -> None:
        self._connection = connection

    def _do(self, statement: str, values: Sequence[Any] = ()) -> Any:
        return self._connection.execute(statement.replace("?", "%s"), values)

    def _do_many(self, statement: str, rows: Sequence[Sequence[Any]]) -> None:
        with self._connection.cursor() as cursor:
            cursor.executemany(statement.replace("?", "%s"), rows)


class _Writing(WritingTransaction, _Transaction):
    LOCK = " FOR UPDATE"

    def __init__(self, connection: psycopg.Connection[Any], cache: RowCache) -> None:
        WritingTransaction.__init__(self, cache)
        _Transaction.__init__(self, connection)


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
