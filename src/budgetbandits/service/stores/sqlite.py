"""SQLite: the store for one host, one file, nothing to set up.

One transaction at a time, and all work that waits goes into the next one. With WAL and synchronous=FULL, work that
`write` has returned from survives `kill -9` and a power cut. Readers see the last commit and never wait.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import os
import random
import sqlite3
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from functools import partial
from pathlib import Path
from typing import Any

from budgetbandits.errors import StoreError
from budgetbandits.service.stores.contract import NO_SCOPE, PoolLoad, Scope, Store, T, Transaction
from budgetbandits.service.stores.group_commit import GROUP_SECONDS, CachedTransaction, GroupWriter
from budgetbandits.service.stores.schema import check_version, migrations
from budgetbandits.service.stores.sql.core import SqlTransaction
from budgetbandits.service.stores.sql.pruning import Pruning, SqlitePruning
from budgetbandits.service.stores.work_queue import GROUP_MAX, Answerable, Answers, WorkItem, WorkQueue, resolve_futures

WRITE_WAIT_SECONDS = 8.0
"""How long to wait for another process that is writing."""

PAGE_BYTES = 2048
"""The page of a new database: a commit writes about seven pages whole, for a few bytes in each."""

LOG_PAGES_MAX = 8000
"""The log's pages are copied to their places when there are this many: most are written many times before."""

IDLE_READERS_MAX = 4
"""Connections that are kept for the next reader; those beyond are closed after use."""

HEARTBEAT_TEXT = "." * 65_536
"""A heartbeat writes more than a decision does, also when many share its commit."""

_NOBODY: Future[None] = Future()
"""The future of an item that is answered when it returns."""


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
        self._readers = _Readers(self._path)
        self._gate = threading.Lock()
        self._closed = False
        self._queue = WorkQueue()
        """Work for the writer's thread."""
        self._waiting: list[tuple[WorkItem, str]] = []
        """Work for the event loop, each with its campaign."""
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
        self._writer = SqliteWriter(connection, self._queue)

    def submit(self, work: Callable[[Transaction], T], scope: Scope = NO_SCOPE) -> Future[T]:
        future: Future[T] = Future()
        with self._gate:
            if self._closed:
                raise StoreError("the store is closed; open it again")
            self._queue.put([WorkItem(work, future)], "the file")
        return future

    async def perform(self, work: Callable[[Transaction], T], scope: Scope = NO_SCOPE) -> T:
        """Perform work in the event loop's own thread, together with all other work that comes in meanwhile.

        Two threads that are busy with Python pass its lock to and fro at every statement, which costs more than the
        loop's waiting for the disk. The writer's thread takes over when it, or another process, is writing.
        """
        if self._closed:
            raise StoreError("the store is closed; open it again")
        loop = asyncio.get_running_loop()
        if self._alone:
            self._alone = False  # what comes before the loop's next round is not alone, and waits for others
            # in two rounds: what came in during the commit has been read by then
            loop.call_soon(loop.call_soon, self._check_idle)
            return await self._perform_at_once(work)
        future: asyncio.Future[T] = loop.create_future()
        self._waiting.append((WorkItem(work, future), scope.campaign))
        if len(self._waiting) == 1:  # two rounds later, so that requests on the wire already share the commit
            loop.call_soon(loop.call_soon, loop.call_soon, self._run_waiting)
        return await future

    def _check_idle(self) -> None:
        self._alone = not self._waiting
        if self._alone and self.prefetch is not None and self._writer.busy.acquire(blocking=False):
            try:
                self.prepare()
            finally:
                self._writer.busy.release()

    async def _perform_at_once(self, work: Callable[[Transaction], T]) -> T:
        try:
            answers = self._run_at_once([WorkItem(work, _NOBODY)])
        except Exception as error:
            raise _cannot_write(error) from None
        if answers is None:
            return await asyncio.wrap_future(self.submit(work))
        [(_, answer, problem)] = answers
        if problem is not None:
            raise problem
        return answer  # type: ignore[no-any-return]

    def _run_waiting(self) -> None:
        turns = _in_turn(self._waiting)
        group, self._waiting = [item for item, _ in turns[:GROUP_MAX]], turns[GROUP_MAX:]
        self._alone = len(turns) == 1
        try:
            answers = self._run_at_once(group)
            if answers is not None:
                self._waiting = turns[len(answers) :]
                resolve_futures(answers)
                return
            for work, future, _ in group:
                asyncio.wrap_future(self.submit(work)).add_done_callback(partial(_pass_on, future))
        except Exception as error:  # the store was closed meanwhile, say: callers wait for an answer
            failure = _cannot_write(error)
            resolve_futures([(item.future, None, failure) for item in group])
        finally:
            if self._waiting:
                asyncio.get_running_loop().call_soon(self._run_waiting)

    def _run_at_once(self, group: Sequence[WorkItem]) -> Answers | None:
        """Run a group in this thread; None, and nothing has happened, if that would keep the loop waiting."""
        writer = self._writer
        if not writer.busy.acquire(blocking=False):
            return None
        try:
            return writer.run_begun(group, GROUP_SECONDS) if writer.begin_at_once() else None
        except BaseException:
            writer.rollback()
            raise
        finally:
            writer.busy.release()

    def read(self, work: Callable[[Transaction], T], urgent: bool = False) -> T:
        try:
            with self._readers.reading() as connection:
                return work(SqliteTransaction(connection))
        except sqlite3.Error as error:
            raise StoreError(f"cannot read {self._path}: {error}") from error

    def pools(self) -> list[PoolLoad]:
        busy = int(self._writer.busy.locked())
        return [PoolLoad("writers", 1 - busy, busy, self._queue.load()[1] + len(self._waiting)), self._readers.load()]

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


class SqliteTransaction(SqlTransaction):
    """A transaction of SQLite."""

    def pruning(self) -> Pruning:
        return SqlitePruning(self)

    def write_heartbeat(self, now: float) -> None:
        """More than a decision writes, and into pages that are free or new: one row that is written again and again
        finds its place on a full disk, too."""
        values = (now, HEARTBEAT_TEXT)
        self.change("INSERT INTO heartbeat SELECT COALESCE(MAX(number), 0) + 1, ?, ? FROM heartbeat", values)
        self.change("DELETE FROM heartbeat WHERE number < (SELECT MAX(number) FROM heartbeat)")


class SqliteWritingTransaction(CachedTransaction, SqliteTransaction):
    """The writer's, with its cache."""


class SqliteWriter(GroupWriter):
    """The writer of SQLite."""

    errors = sqlite3.Error
    broken = sqlite3.OperationalError

    def __init__(self, connection: sqlite3.Connection, queue: WorkQueue) -> None:
        connection.execute("PRAGMA busy_timeout = 0")  # `begin` waits by itself, or not
        self._version = -1
        super().__init__("store-writer", queue, connection)

    def begin(self, group: Sequence[WorkItem] = ()) -> None:
        end = time.monotonic() + WRITE_WAIT_SECONDS
        while not self.begin_at_once():
            if time.monotonic() > end:
                raise sqlite3.OperationalError(f"another process has been writing for {WRITE_WAIT_SECONDS:g} seconds")
            time.sleep(random.uniform(0.0005, 0.005))

    def begin_at_once(self) -> bool:
        """False, and nothing has happened, if another process is writing."""
        try:
            if self._connection.in_transaction:  # the last one could not be rolled back
                self.rollback()
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
        """Close the connection."""
        self._connection.close()

    def transaction(self) -> SqliteWritingTransaction:
        return SqliteWritingTransaction(self._connection, self._cache)

    def commit(self) -> None:
        """Commit the transaction."""
        self._connection.execute("COMMIT")

    def rollback(self) -> None:
        """Roll the transaction back."""
        self._cache.clear()
        if self._connection.in_transaction:
            self._connection.execute("ROLLBACK")


def _in_turn(waiting: Sequence[tuple[WorkItem, str]]) -> list[tuple[WorkItem, str]]:
    """Items with their campaigns, so that the campaigns take turns: the first item of each, then the second."""
    earlier, turns = Counter[str](), list[int]()
    for _, campaign in waiting:
        turns.append(earlier[campaign])
        earlier[campaign] += 1
    return [waiting[place] for place in sorted(range(len(waiting)), key=turns.__getitem__)]


def _cannot_write(error: Exception) -> StoreError:
    return StoreError(f"cannot write: {error}; nothing was decided")


def _pass_on(future: Answerable, finished: asyncio.Future[Any]) -> None:
    problem = finished.exception()
    resolve_futures([(future, None if problem else finished.result(), problem)])


def _migrate(connection: sqlite3.Connection) -> None:
    """Bring the database to this version, all of it or nothing."""
    steps = migrations("sqlite")
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    if version >= steps[-1][0]:
        check_version(version, steps[-1][0])
        return  # nothing to do, so do not wait for a process that is writing
    connection.execute("BEGIN IMMEDIATE")  # two processes may start at once
    try:
        (version,) = connection.execute("PRAGMA user_version").fetchone()
        check_version(version, steps[-1][0])
        for number, statements in steps:
            if number > version:
                for statement in statements:
                    connection.execute(statement)
                connection.execute(f"PRAGMA user_version = {number}")
    except BaseException:
        connection.execute("ROLLBACK")
        raise
    connection.execute("COMMIT")


def connect(path: Path) -> sqlite3.Connection:
    """A connection to the database."""
    try:
        # A reader of the file needs no key, so only its owner may read it. Only a new file is opened here: to close
        # one takes away this process's locks on it, and then others delete SQLite's log under us.
        os.close(os.open(path.resolve(), os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
    except FileExistsError:
        if path.is_dir():
            raise StoreError(f"cannot open {path}: it is a folder; give the path of a file") from None
    except OSError as error:
        remedy = "raise the limit (ulimit -n)" if error.errno == errno.EMFILE else "give the path of a file"
        raise StoreError(f"cannot open {path}: {error.strerror}; {remedy}") from None
    connection = None
    try:
        connection = sqlite3.connect(path, timeout=WRITE_WAIT_SECONDS, isolation_level=None, check_same_thread=False)
        settings = ["journal_mode = WAL", "synchronous = FULL", "foreign_keys = ON"]
        settings.append(f"wal_autocheckpoint = {LOG_PAGES_MAX}")
        (pages,) = connection.execute("PRAGMA page_count").fetchone()
        if pages == 0:  # for good; the second would make every later connection wait for those that write
            settings = [f"page_size = {PAGE_BYTES}", "auto_vacuum = INCREMENTAL", *settings]
        for setting in settings:
            connection.execute(f"PRAGMA {setting}")
    except sqlite3.Error as error:
        if connection is not None:
            connection.close()
        raise StoreError(
            f"cannot open {path}: {error}; is it a database of budgetbandits, and may more files be opened (ulimit -n)?"
        ) from None
    return connection


class _Readers:
    """Connections that read, each used by one thread at a time.

    SQLite keeps the file of a closed connection for the next one, as long as the process has another connection to the
    database: as many files stay open as connections were read from at once.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._idle: list[sqlite3.Connection] = []
        self._busy = 0
        self._closed = False
        self._gate = threading.Lock()

    @contextlib.contextmanager
    def reading(self) -> Iterator[sqlite3.Connection]:
        """A connection with a view of what is committed, for the duration of the block."""
        with self._gate:
            if self._closed:
                raise StoreError("the store is closed; open it again")
            connection = self._idle.pop() if self._idle else None
        if connection is None:
            connection = connect(self._path)
        with self._gate:
            self._busy += 1
        try:
            connection.execute("BEGIN")
            try:
                yield connection
            finally:
                connection.execute("ROLLBACK")
        except BaseException:
            self._give_back(connection, keep=not connection.in_transaction)
            raise
        self._give_back(connection)

    def load(self) -> PoolLoad:
        with self._gate:
            return PoolLoad("readers", len(self._idle), self._busy, 0)

    def _give_back(self, connection: sqlite3.Connection, keep: bool = True) -> None:
        with self._gate:
            self._busy -= 1
            if keep and not self._closed and len(self._idle) < IDLE_READERS_MAX:
                self._idle.append(connection)
                return
        connection.close()

    def close(self) -> None:
        with self._gate:
            self._closed, idle, self._idle = True, self._idle, []
        for connection in idle:
            connection.close()
