"""SQLite: the store for one host, one file, nothing to set up.

One transaction at a time, and whatever waits for it in the same one. With WAL and synchronous=FULL what `write` has
returned from survives `kill -9` and a power cut. Readers see the last commit and never wait.
"""

from __future__ import annotations

import asyncio
import random
import sqlite3
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from functools import partial
from pathlib import Path
from typing import Any

from budgetbandits.errors import StoreError
from budgetbandits.service.stores.contract import NOTHING, About, Store, T, Transaction
from budgetbandits.service.stores.group_commit import GROUP, Answerable, Answers, GroupWriter, Piece, Waiting, give
from budgetbandits.service.stores.row_cache import RowCache, WritingTransaction
from budgetbandits.service.stores.schema import check_version, migrations
from budgetbandits.service.stores.sql import SqlTransaction
from budgetbandits.service.stores.sqlite_session import PATIENCE, Readers, connect

FILLER = "." * 65_536
"""What a heartbeat writes: more than a decision does, also when many share its commit."""

_NOBODY: Future[None] = Future()
"""Who waits for a piece that is answered when it returns."""


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
        self.address = str(self._path.resolve())
        self._readers = Readers(self._path)
        self._gate = threading.Lock()
        self._closed = False
        self._queue = Waiting()
        """For the writer's thread ..."""
        self._waiting: list[Piece] = []
        """... and for the event loop."""
        self._alone = True
        """Whether no other request seems to be under way: then none is waited for."""
        connection = connect(self._path)
        try:
            _migrate(connection)
        except BaseException as error:
            connection.close()
            if isinstance(error, sqlite3.Error):
                raise StoreError(f"cannot use {self._path}: {error}; is it a database of budgetbandits?") from None
            raise
        self._writer = _Writer(connection, self._queue)

    def submit(self, work: Callable[[Transaction], T], about: About = NOTHING) -> Future[T]:
        future: Future[T] = Future()
        with self._gate:
            if self._closed:
                raise StoreError("the store is closed; open it again")
            self._queue.put((work, future), "the file")
        return future

    async def perform(self, work: Callable[[Transaction], T], about: About = NOTHING) -> T:
        """In the event loop's own thread, together with whatever else comes in meanwhile.

        Two threads that are busy with Python pass its lock to and fro at every statement, which costs more than the
        loop's waiting for the disk. The writer's thread takes over when it, or another process, is writing.
        """
        if self._closed:
            raise StoreError("the store is closed; open it again")
        loop = asyncio.get_running_loop()
        if self._alone:
            self._alone = False  # whoever comes before the loop's next round is not, and waits for others
            # in two rounds: what came in during the commit has been read by then
            loop.call_soon(loop.call_soon, self._check_idle)
            return await self._perform_at_once(work)
        future: asyncio.Future[T] = loop.create_future()
        self._waiting.append((work, future))
        if len(self._waiting) == 1:  # two rounds later, so that requests on the wire already share the commit
            loop.call_soon(loop.call_soon, loop.call_soon, self._run_waiting)
        return await future

    def _check_idle(self) -> None:
        self._alone = not self._waiting
        if self._alone and self.on_idle is not None and self._writer.busy.acquire(blocking=False):
            try:
                self.on_idle()
            finally:
                self._writer.busy.release()

    async def _perform_at_once(self, work: Callable[[Transaction], T]) -> T:
        try:
            answers = self._run_at_once([(work, _NOBODY)])
        except Exception as error:
            raise _cannot_write(error) from None
        if answers is None:
            return await asyncio.wrap_future(self.submit(work))
        [(_, answer, problem)] = answers
        if problem is not None:
            raise problem
        return answer  # type: ignore[no-any-return]

    def _run_waiting(self) -> None:
        group, self._waiting = self._waiting[:GROUP], self._waiting[GROUP:]
        if self._waiting:
            asyncio.get_running_loop().call_soon(self._run_waiting)
        self._alone = len(group) == 1
        try:
            answers = self._run_at_once(group)
            if answers is not None:
                give(answers)
                return
            for work, future in group:
                asyncio.wrap_future(self.submit(work)).add_done_callback(partial(_pass_on, future))
        except Exception as error:  # the store was closed meanwhile, say: somebody waits for an answer
            failure = _cannot_write(error)
            give([(future, None, failure) for _, future in group])

    def _run_at_once(self, group: Sequence[Piece]) -> Answers | None:
        """None, and nothing has happened, if that would keep the loop waiting."""
        writer = self._writer
        if not writer.busy.acquire(blocking=False):
            return None
        try:
            return writer.run_begun(group) if writer.begin_at_once() else None
        except BaseException:
            writer.undo()
            raise
        finally:
            writer.busy.release()

    def read(self, work: Callable[[Transaction], T], urgent: bool = False) -> T:
        try:
            with self._readers.reading() as connection:
                return work(_Transaction(connection))
        except sqlite3.Error as error:
            raise StoreError(f"cannot read {self._path}: {error}") from error

    def close(self) -> None:
        with self._gate:
            if self._closed:
                return
            self._closed = True
        self._queue.stop()
        self._writer.join()
        with self._writer.busy:
            pass  # an event loop may be in the middle of a transaction
        self._readers.close()
        self._writer.close()


class _Writer(GroupWriter):
    errors = sqlite3.Error
    broken = sqlite3.OperationalError

    def __init__(self, connection: sqlite3.Connection, waiting: Waiting) -> None:
        connection.execute("PRAGMA busy_timeout = 0")  # `begin` waits by itself, or not
        self._connection = connection
        self._version = -1
        self._cache = RowCache()
        """For as long as nobody else writes to the file."""
        super().__init__("store-writer", waiting)

    def begin(self) -> None:
        end = time.monotonic() + PATIENCE
        while not self.begin_at_once():
            if time.monotonic() > end:
                raise sqlite3.OperationalError(f"another process has been writing for {PATIENCE:g} seconds")
            time.sleep(random.uniform(0.0005, 0.005))

    def begin_at_once(self) -> bool:
        """False, and nothing has happened, if another process is writing."""
        try:
            if self._connection.in_transaction:  # the last one could not be undone
                self.undo()
            self._connection.execute("BEGIN IMMEDIATE")
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY:  # the upper bits say why it is busy
                raise
            return False
        (version,) = self._connection.execute("PRAGMA data_version").fetchone()
        if version != self._version:  # another connection has written
            self._version = version
            self._cache.clear()
        return True

    def close(self) -> None:
        self._connection.close()

    def transaction(self) -> WritingTransaction:
        return _Writing(self._connection, self._cache)

    def commit(self) -> None:
        self._connection.execute("COMMIT")

    def undo(self) -> None:
        self._cache.clear()
        if self._connection.in_transaction:
            self._connection.execute("ROLLBACK")


def _cannot_write(error: Exception) -> StoreError:
    return StoreError(f"cannot write: {error}; nothing was decided")


def _pass_on(future: Answerable, done: asyncio.Future[Any]) -> None:
    problem = done.exception()
    give([(future, None if problem else done.result(), problem)])


def _migrate(connection: sqlite3.Connection) -> None:
    """Bring the database to this version, all of it or nothing."""
    steps = migrations("sqlite")
    (done,) = connection.execute("PRAGMA user_version").fetchone()
    if done >= steps[-1][0]:
        check_version(done, steps[-1][0])
        return  # nothing to do, for which nobody who is writing need be waited for
    connection.execute("BEGIN IMMEDIATE")  # two processes may start at once
    try:
        (done,) = connection.execute("PRAGMA user_version").fetchone()
        check_version(done, steps[-1][0])
        for number, statements in steps:
            if number > done:
                for statement in statements:
                    connection.execute(statement)
                connection.execute(f"PRAGMA user_version = {number}")
    except BaseException:
        connection.execute("ROLLBACK")
        raise
    connection.execute("COMMIT")


class _Transaction(SqlTransaction):
    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def _do(self, statement: str, values: Sequence[Any] = ()) -> Any:
        return self._connection.execute(statement, values)

    def _do_many(self, statement: str, rows: Sequence[Sequence[Any]]) -> None:
        self._connection.executemany(statement, rows)

    def beat(self, now: float) -> None:
        """More than a decision writes, and into pages that are free or new: one row that is written again and again
        finds its place on a full disk, too."""
        self._change("INSERT INTO heartbeat SELECT COALESCE(MAX(number), 0) + 1, ?, ? FROM heartbeat", (now, FILLER))
        self._change("DELETE FROM heartbeat WHERE number < (SELECT MAX(number) FROM heartbeat)")


class _Writing(WritingTransaction, _Transaction):
    def __init__(self, connection: sqlite3.Connection, cache: RowCache) -> None:
        WritingTransaction.__init__(self, cache)
        _Transaction.__init__(self, connection)
