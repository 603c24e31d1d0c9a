"""SQLite: the store for one host, one file, nothing to set up.

One thread writes. It takes whatever has been handed in, runs it all in one transaction, each piece under a savepoint of
its own, and commits once: the price of an fsync is shared by everybody who waits for it. With WAL and synchronous=FULL
what `write` has returned from survives `kill -9` and a power cut. Readers see the last commit and never wait.
"""

from __future__ import annotations

import queue
import sqlite3
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from pathlib import Path
from typing import Any

from budgetbandits.errors import StoreError
from budgetbandits.service.stores.base import Store, T, Transaction
from budgetbandits.service.stores.sql import SqlTransaction, check_version, migrations

GROUP = 64
"""At most this many pieces of work share a commit."""

PATIENCE = 30.0
"""Seconds to wait for another process that is writing."""


class SQLiteStore(Store):
    """A file that several processes may open; each has its own writer, and SQLite lets one write at a time.

    >>> store = SQLiteStore(":memory:")
    Traceback (most recent call last):
    ...
    budgetbandits.errors.StoreError: ':memory:' is no file; the store must survive the process, so give it a path
    """

    def __init__(self, path: str | Path) -> None:
        if str(path) == ":memory:":
            raise StoreError("':memory:' is no file; the store must survive the process, so give it a path")
        self._path = Path(path)
        self._work: queue.SimpleQueue[tuple[Callable[[Transaction], Any], Future[Any]] | None] = queue.SimpleQueue()
        self._readers = threading.local()
        self._connections: list[sqlite3.Connection] = []
        self._gate = threading.Lock()
        self._closed = False
        writer = self._connect()
        try:
            _migrate(writer)
        except BaseException as error:
            writer.close()
            if isinstance(error, sqlite3.Error):
                raise StoreError(f"cannot use {self._path}: {error}; is it a database of budgetbandits?") from None
            raise
        self._thread = threading.Thread(target=self._run, args=(writer,), name="store-writer", daemon=True)
        self._thread.start()

    def write(self, work: Callable[[Transaction], T]) -> T:
        future: Future[T] = Future()
        with self._gate:
            if self._closed:
                raise StoreError("the store is closed; open it again")
            self._work.put((work, future))
        return future.result()

    def read(self, work: Callable[[Transaction], T]) -> T:
        connection = getattr(self._readers, "connection", None)
        if connection is None:
            connection = self._readers.connection = self._connect()
        try:
            connection.execute("BEGIN")
            try:
                return work(_Transaction(connection))
            finally:
                connection.execute("ROLLBACK")
        except sqlite3.Error as error:
            raise StoreError(f"cannot read {self._path}: {error}") from error

    def close(self) -> None:
        with self._gate:
            if self._closed:
                return
            self._closed = True
            self._work.put(None)
        self._thread.join()
        for connection in self._connections:
            connection.close()

    def _connect(self) -> sqlite3.Connection:
        try:
            connection = sqlite3.connect(self._path, timeout=PATIENCE, isolation_level=None, check_same_thread=False)
            for setting in ("journal_mode = WAL", "synchronous = FULL", "foreign_keys = ON"):
                connection.execute(f"PRAGMA {setting}")
        except sqlite3.Error as error:
            raise StoreError(f"cannot open {self._path}: {error}; is it a database of budgetbandits?") from None
        self._connections.append(connection)
        return connection

    # --- the writer ----------------------------------------------------------------------------------------------

    def _run(self, connection: sqlite3.Connection) -> None:
        while (first := self._work.get()) is not None:
            group, more = [first], True
            while more and len(group) < GROUP and not self._work.empty():
                piece = self._work.get()
                more = piece is not None
                if piece is not None:
                    group.append(piece)
            self._commit(connection, group)
            if not more:
                return

    def _commit(
        self, connection: sqlite3.Connection, group: Sequence[tuple[Callable[[Transaction], Any], Future[Any]]]
    ) -> None:
        """Run the group in one transaction. Nobody gets an answer before it is on disk."""
        answers: list[tuple[Future[Any], Any, BaseException | None]] = []
        try:
            connection.execute("BEGIN IMMEDIATE")
            for work, future in group:
                connection.execute("SAVEPOINT piece")
                try:
                    answers.append((future, work(_Transaction(connection)), None))
                except sqlite3.OperationalError:
                    raise  # the disk is full, or gone: not this piece's fault
                except BaseException as error:
                    connection.execute("ROLLBACK TO piece")
                    answers.append((future, None, _named(error)))
                connection.execute("RELEASE piece")
            connection.execute("COMMIT")
        except sqlite3.Error as error:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            failure = StoreError(f"cannot write {self._path}: {error}; nothing was decided")
            for _, future in group:
                future.set_exception(failure)
            return
        for future, answer, problem in answers:
            if problem is None:
                future.set_result(answer)
            else:
                future.set_exception(problem)


def _named(error: BaseException) -> BaseException:
    if isinstance(error, sqlite3.Error):
        return StoreError(f"the store refused: {error}; nothing was written")
    return error


def _migrate(connection: sqlite3.Connection) -> None:
    """Bring the database to this version, all of it or nothing."""
    steps = migrations(counted_key="INTEGER PRIMARY KEY")
    connection.execute("BEGIN IMMEDIATE")  # two processes may start at once
    try:
        (done,) = connection.execute("PRAGMA user_version").fetchone()
        for number, statements in steps:
            if number > done:
                for statement in statements:
                    connection.execute(statement)
                connection.execute(f"PRAGMA user_version = {number}")
    except BaseException:
        connection.execute("ROLLBACK")
        raise
    connection.execute("COMMIT")
    check_version(done, steps[-1][0])


class _Transaction(SqlTransaction):
    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def _do(self, statement: str, values: Sequence[Any] = ()) -> Any:
        return self._connection.execute(statement, values)

    def _do_many(self, statement: str, rows: Sequence[Sequence[Any]]) -> None:
        self._connection.executemany(statement, rows)
