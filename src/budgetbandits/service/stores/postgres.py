"""PostgreSQL: the store for many hosts. Extra ``postgres``.

A transaction that reads a campaign locks its row, so whatever is done to a campaign is done one after the other, on
whichever host; different campaigns do not wait for each other. Events of a campaign are numbered under that lock, so
their numbers are in the order of their commits.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import psycopg
from psycopg.errors import DeadlockDetected, SerializationFailure
from psycopg_pool import ConnectionPool

from budgetbandits.errors import StoreError
from budgetbandits.service.stores.base import Store, T, Transaction
from budgetbandits.service.stores.sql import SqlTransaction, check_version, migrations

CONNECTIONS = 10
PATIENCE = 30.0
"""Seconds to wait for a connection."""

TRIES = 5
"""Of a transaction that the database gave up to end a deadlock."""

MIGRATION_LOCK = 2015_07_25


class PostgresStore(Store):
    """A database that is there already; its tables are made when it is first opened."""

    def __init__(self, url: str) -> None:
        try:
            with psycopg.connect(url, connect_timeout=int(PATIENCE)) as connection:
                _migrate(connection)
        except psycopg.Error as error:
            raise StoreError(
                f"cannot open the database: {_one_line(error)}; check the address and the rights"
            ) from None
        self._pool = ConnectionPool(url, min_size=1, max_size=CONNECTIONS, timeout=PATIENCE, open=True)
        self._threads = ThreadPoolExecutor(CONNECTIONS, "store-writer")

    def submit(self, work: Callable[[Transaction], T]) -> Future[T]:
        if self._pool.closed:
            raise StoreError("the store is closed; open it again")
        return self._threads.submit(self.write, work)

    def write(self, work: Callable[[Transaction], T]) -> T:
        for attempt in range(TRIES):
            try:
                with self._connection() as connection, connection.transaction():
                    return work(_Locking(connection))
            except (DeadlockDetected, SerializationFailure) as error:
                if attempt == TRIES - 1:
                    raise StoreError(f"cannot write: {_one_line(error)}; nothing was decided") from None
            except psycopg.OperationalError as error:
                raise StoreError(f"cannot write: {_one_line(error)}; nothing was decided") from None
            except psycopg.Error as error:
                raise StoreError(f"the store refused: {_one_line(error)}; nothing was written") from None
        raise AssertionError

    def read(self, work: Callable[[Transaction], T]) -> T:
        try:
            with self._connection() as connection, connection.transaction():
                connection.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY")
                return work(_Transaction(connection))
        except psycopg.Error as error:
            raise StoreError(f"cannot read: {_one_line(error)}") from None

    def close(self) -> None:
        self._threads.shutdown()
        self._pool.close()

    def _connection(self) -> Any:
        if self._pool.closed:
            raise StoreError("the store is closed; open it again")
        return self._pool.connection()  # when none comes free in time, that is an OperationalError


class _Transaction(SqlTransaction):
    def __init__(self, connection: psycopg.Connection[Any]) -> None:
        self._connection = connection

    def _rows_of(self, statement: str, values: Sequence[Any] = ()) -> Any:
        return self._connection.execute(statement.replace("?", "%s"), values)

    def _change(self, statement: str, values: Sequence[Any] = ()) -> None:
        self._connection.execute(statement.replace("?", "%s"), values)

    def _change_many(self, statement: str, rows: Sequence[Sequence[Any]]) -> None:
        with self._connection.cursor() as cursor:
            cursor.executemany(statement.replace("?", "%s"), rows)


class _Locking(_Transaction):
    LOCK = " FOR UPDATE"


def _migrate(connection: psycopg.Connection[Any]) -> None:
    steps = migrations(counted_key="BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY")
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


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split())
