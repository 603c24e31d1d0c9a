"""SQLite: the store for one host, one file, nothing to set up.

One thread writes. It takes whatever has been handed in, runs it all in one transaction and commits once: the price of
an fsync is shared by everybody who waits for it. If a piece fails after it has written something, which is rare, all
are undone and run again one by one. With WAL and synchronous=FULL what `write` has returned from survives `kill -9`
and a power cut. Readers see the last commit and never wait.
"""

from __future__ import annotations

import asyncio
import queue
import sqlite3
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from functools import partial
from pathlib import Path
from typing import Any

from budgetbandits.errors import StoreError
from budgetbandits.service.stores.base import Campaign, Store, T, Transaction
from budgetbandits.service.stores.sql import SqlTransaction, check_version, migrations

GROUP = 64
"""At most this many pieces of work share a commit."""

Answerable = Future[Any] | asyncio.Future[Any]
Piece = tuple[Callable[[Transaction], Any], Answerable]
Answers = list[tuple[Answerable, Any, BaseException | None]]

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
        self._work: queue.SimpleQueue[Piece | None] = queue.SimpleQueue()
        self._readers = threading.local()
        self._campaigns = _Campaigns()
        self._connections: list[sqlite3.Connection] = []
        self._gate = threading.Lock()
        self._closed = False
        self._waiting: list[Piece] = []
        self._writing = threading.Lock()
        """Held from the beginning of a transaction to its end, by whichever thread is at it."""
        self._writer = self._connect()
        try:
            _migrate(self._writer)
        except BaseException as error:
            self._writer.close()
            if isinstance(error, sqlite3.Error):
                raise StoreError(f"cannot use {self._path}: {error}; is it a database of budgetbandits?") from None
            raise
        self._thread = threading.Thread(target=self._run, name="store-writer", daemon=True)
        self._thread.start()

    def submit(self, work: Callable[[Transaction], T]) -> Future[T]:
        future: Future[T] = Future()
        with self._gate:
            if self._closed:
                raise StoreError("the store is closed; open it again")
            self._work.put((work, future))
        return future

    async def perform(self, work: Callable[[Transaction], T]) -> T:
        """In the event loop's own thread, together with whatever else came in with this round of the loop.

        Two threads that are busy with Python pass its lock to and fro at every statement, which costs more than the
        loop's waiting for the disk. The writer takes over when it, or another process, is writing.
        """
        if self._closed:
            raise StoreError("the store is closed; open it again")
        loop = asyncio.get_running_loop()
        future: asyncio.Future[T] = loop.create_future()
        self._waiting.append((work, future))
        if len(self._waiting) == 1:  # a round later, so that requests on the wire already share the commit
            loop.call_soon(loop.call_soon, self._run_waiting)
        return await future

    def _run_waiting(self) -> None:
        group, self._waiting = self._waiting, []
        if self._writing.acquire(blocking=False):
            try:
                answers = self._run_pieces(group, patient=False)
            finally:
                self._writing.release()
            if answers is not None:
                _give(answers)
                return
        for work, future in group:
            asyncio.wrap_future(self.submit(work)).add_done_callback(partial(_pass_on, future))

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

    def _run(self) -> None:
        while (first := self._work.get()) is not None:
            group, more = [first], True
            while more and len(group) < GROUP and not self._work.empty():
                piece = self._work.get()
                more = piece is not None
                if piece is not None:
                    group.append(piece)
            with self._writing:
                answers = self._run_pieces(group, patient=True)
            _give(answers or [])
            if not more:
                return

    def _run_pieces(self, group: Sequence[Piece], patient: bool) -> Answers | None:
        """Run the group in one transaction. What to answer, now that it is on disk.

        None, and nothing has happened, if another process is writing and we are not patient.
        """
        answers: Answers = []
        try:
            if not self._begin(patient):
                return None
            for work, future in group:
                transaction = _Writing(self._writer, self._campaigns)
                try:
                    answers.append((future, work(transaction), None))
                except sqlite3.OperationalError:
                    raise  # the disk is full, or gone: not this piece's fault
                except BaseException as error:
                    answers.append((future, None, _named(error)))
                    if transaction.wrote:
                        self._undo()
                        return answers if len(group) == 1 else self._one_by_one(group)
            self._writer.execute("COMMIT")
        except sqlite3.Error as error:
            self._undo()
            failure = StoreError(f"cannot write {self._path}: {error}; nothing was decided")
            return [(future, None, failure) for _, future in group]
        return answers

    def _one_by_one(self, group: Sequence[Piece]) -> Answers:
        """A piece failed after it had written something: the others must not lose what they wrote."""
        return [answer for piece in group for answer in self._run_pieces([piece], patient=True) or ()]

    def _begin(self, patient: bool) -> bool:
        if not patient:
            self._writer.execute("PRAGMA busy_timeout = 0")
        try:
            self._writer.execute("BEGIN IMMEDIATE")
        except sqlite3.OperationalError as error:
            if patient or error.sqlite_errorcode != sqlite3.SQLITE_BUSY:
                raise
            return False
        finally:
            if not patient:
                self._writer.execute(f"PRAGMA busy_timeout = {PATIENCE * 1000:.0f}")
        self._campaigns.look(self._writer)
        return True

    def _undo(self) -> None:
        self._campaigns.forget()
        if self._writer.in_transaction:
            self._writer.execute("ROLLBACK")


class _Campaigns:
    """The writer's own copies of the campaigns it has read, for as long as nobody else writes to the file."""

    def __init__(self) -> None:
        self._version = -1
        self.rows: dict[str, Campaign] = {}

    def look(self, connection: sqlite3.Connection) -> None:
        """At the beginning of a transaction: has another connection written?"""
        (version,) = connection.execute("PRAGMA data_version").fetchone()
        if version != self._version:
            self._version = version
            self.forget()

    def forget(self) -> None:
        self.rows.clear()


def _answer(future: Answerable, answer: Any, problem: BaseException | None) -> None:
    if future.done():
        return  # whoever asked has gone
    if problem is None:
        future.set_result(answer)
    else:
        future.set_exception(problem)


def _give(answers: Answers) -> None:
    for each in answers:
        _answer(*each)


def _pass_on(future: Answerable, done: asyncio.Future[Any]) -> None:
    problem = done.exception()
    _answer(future, None if problem else done.result(), problem)


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

    def _rows_of(self, statement: str, values: Sequence[Any] = ()) -> Any:
        return self._connection.execute(statement, values)

    def _change(self, statement: str, values: Sequence[Any] = ()) -> None:
        self._connection.execute(statement, values)

    def _change_many(self, statement: str, rows: Sequence[Sequence[Any]]) -> None:
        self._connection.executemany(statement, rows)


class _Writing(_Transaction):
    """The writer's: notes whether anything was written, and keeps the campaigns at hand."""

    def __init__(self, connection: sqlite3.Connection, campaigns: _Campaigns) -> None:
        super().__init__(connection)
        self._rows = campaigns.rows
        self.wrote = False

    def campaign(self, id: str) -> Campaign | None:
        row = self._rows.get(id) or super().campaign(id)
        if row is not None:
            self._rows[id] = row
        return row

    def save_campaign(self, campaign: Campaign) -> None:
        self._rows.pop(campaign.id, None)
        super().save_campaign(campaign)
        self._rows[campaign.id] = campaign

    def save_money(self, campaign: Campaign) -> None:
        self._rows.pop(campaign.id, None)
        super().save_money(campaign)
        self._rows[campaign.id] = campaign

    def _change(self, statement: str, values: Sequence[Any] = ()) -> None:
        self.wrote = True
        super()._change(statement, values)

    def _change_many(self, statement: str, rows: Sequence[Sequence[Any]]) -> None:
        self.wrote = True
        super()._change_many(statement, rows)
