"""How the service is connected to SQLite: settings that make commits durable, and a few connections for readers."""

from __future__ import annotations

import contextlib
import errno
import os
import sqlite3
import threading
from collections.abc import Iterator
from pathlib import Path

from budgetbandits.errors import StoreError

PATIENCE = 8.0
"""Seconds to wait for another process that is writing."""

PAGE = 2048
"""Bytes of a page in a new database: a commit writes about seven of them whole, for a few bytes in each."""

LOG_PAGES = 8000
"""Pages that the log may have before they are copied to their places: most are written many times before."""

IDLE_READERS = 4
"""Connections that are kept for the next reader. More are opened when more read at once, and closed afterwards."""


def connect(path: Path) -> sqlite3.Connection:
    try:
        # Whoever can read the file needs no key, so that shall be its owner alone. Only a new file is opened here:
        # to close one takes away this process's locks on it, and then others delete SQLite's log under us.
        os.close(os.open(path.resolve(), os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
    except FileExistsError:
        if path.is_dir():
            raise StoreError(f"cannot open {path}: it is a folder; give the path of a file") from None
    except OSError as error:
        remedy = "raise the limit (ulimit -n)" if error.errno == errno.EMFILE else "give the path of a file"
        raise StoreError(f"cannot open {path}: {error.strerror}; {remedy}") from None
    connection = None
    try:
        connection = sqlite3.connect(path, timeout=PATIENCE, isolation_level=None, check_same_thread=False)
        for setting in (
            f"page_size = {PAGE}", "journal_mode = WAL", "synchronous = FULL", "foreign_keys = ON",
            f"wal_autocheckpoint = {LOG_PAGES}",
        ):  # fmt: skip
            connection.execute(f"PRAGMA {setting}")
    except sqlite3.Error as error:
        if connection is not None:
            connection.close()
        raise StoreError(
            f"cannot open {path}: {error}; is it a database of budgetbandits, and may more files be opened (ulimit -n)?"
        ) from None
    return connection


class Readers:
    """Connections that read, each by one thread at a time.

    SQLite keeps the file of a connection that is closed, for the next one, as long as the process has another one on
    it: as many files stay open as have been read from at once.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._idle: list[sqlite3.Connection] = []
        self._closed = False
        self._gate = threading.Lock()

    @contextlib.contextmanager
    def reading(self) -> Iterator[sqlite3.Connection]:
        """A connection with a view of what is committed, for a ``with`` block."""
        with self._gate:
            if self._closed:
                raise StoreError("the store is closed; open it again")
            connection = self._idle.pop() if self._idle else None
        if connection is None:
            connection = connect(self._path)
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

    def _give_back(self, connection: sqlite3.Connection, keep: bool = True) -> None:
        with self._gate:
            if keep and not self._closed and len(self._idle) < IDLE_READERS:
                self._idle.append(connection)
                return
        connection.close()

    def close(self) -> None:
        with self._gate:
            self._closed, idle, self._idle = True, self._idle, []
        for connection in idle:
            connection.close()
