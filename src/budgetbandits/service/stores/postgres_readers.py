"""Connections that read, some at a time. Whoever needs one opens it, so nobody has to notice that the database is back:
the next who asks is answered."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Iterator
from typing import Any

import psycopg
from psycopg.pq import TransactionStatus

from budgetbandits.errors import StoreError
from budgetbandits.service.stores.postgres_session import READING, connect

PATIENCE = 5.0
"""Seconds to wait for a connection that others have."""
KEPT = 600.0
"""Seconds after which a connection that nobody needed is closed."""


class Readers:
    """At most ``largest`` connections."""

    def __init__(self, url: str, largest: int) -> None:
        self._url = url
        self._room = threading.BoundedSemaphore(largest)
        self._lock = threading.Lock()
        self._idle: list[tuple[float, psycopg.Connection[Any]]] = []
        self.closed = False

    @contextlib.contextmanager
    def connection(self) -> Iterator[psycopg.Connection[Any]]:
        """One that works, for as long as the block lasts; psycopg's errors if the database cannot be reached."""
        if not self._room.acquire(timeout=PATIENCE):
            raise StoreError("cannot read: the server reads as much from the database as it may at once; ask again")
        try:
            connection = self._take()
            try:
                yield connection
            finally:
                self._give_back(connection)
        finally:
            self._room.release()

    def close(self) -> None:
        """Close those that nobody has; the others are closed when they are given back."""
        with self._lock:
            self.closed = True
            idle, self._idle = self._idle, []
        for _, connection in idle:
            connection.close()

    def _take(self) -> psycopg.Connection[Any]:
        while True:
            with self._lock:
                _, connection = self._idle.pop() if self._idle else (0.0, None)
            if connection is None:
                made = connect(self._url, READING)
                made.autocommit = True  # or else the look whether it works would begin a transaction
                return made
            try:
                connection.execute("")
            except psycopg.Error:
                connection.close()
            else:
                return connection

    def _give_back(self, connection: psycopg.Connection[Any]) -> None:
        now, unused = time.monotonic(), []
        with self._lock:
            if self.closed or connection.info.transaction_status != TransactionStatus.IDLE:
                unused.append(connection)
            else:
                self._idle.append((now, connection))
            while self._idle and self._idle[0][0] < now - KEPT:
                unused.append(self._idle.pop(0)[1])
        for each in unused:
            each.close()
