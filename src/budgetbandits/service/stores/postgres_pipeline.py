"""A connection to PostgreSQL on which statements wait for each other's answers no longer than they must.

A statement is queued when it is executed. What is queued is sent when a result is looked at, or at the commit: a
transaction that reads all it needs first, and then writes, takes two round trips. This is libpq's own pipeline; with
psycopg's a decision costs the server half as much processor time again.
"""

from __future__ import annotations

import re
import select
import time
from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import count
from typing import Any

import psycopg
from psycopg.adapt import Transformer
from psycopg.errors import error_from_result
from psycopg.pq import ConnStatus, ExecStatus, TransactionStatus

from budgetbandits.service.stores.postgres_session import STATEMENT_SECONDS, connect

ANSWER_SECONDS_MAX = STATEMENT_SECONDS + 2.0
"""Seconds after which a database that says nothing is taken for dead; it should have given up by itself before."""

PREPARED_MAX = 200
"""Statements that one connection prepares, which are those that it runs first: all of a decision are among them."""

Row = tuple[Any, ...]


@lru_cache(maxsize=1000)
def numbered(statement: str) -> str:
    """The statement with ``$1``, ``$2`` … in the places of its ``?``.

    >>> numbered("UPDATE arm SET active = ? WHERE campaign = ? AND number = $2")
    'UPDATE arm SET active = $1 WHERE campaign = $2 AND number = $2'
    """
    numbers = count(1)
    return re.sub(r"\?", lambda _: f"${next(numbers)}", statement)


class Result:
    """The rows of a statement, which is sent at the latest when they are asked for."""

    rows: list[Row] | None = None

    def __init__(self, pipeline: Pipeline) -> None:
        self._pipeline = pipeline

    def fetchall(self) -> list[Row]:
        """All rows of the result."""
        if self.rows is None:
            self._pipeline.sync()
        assert self.rows is not None
        return self.rows

    def fetchone(self) -> Row | None:
        """The first row."""
        rows = self.fetchall()
        return rows[0] if rows else None

    def __iter__(self) -> Iterator[Row]:
        return iter(self.fetchall())


class Pipeline:
    """A connection for one thread, with one transaction after the other: the first statement begins it."""

    def __init__(self, url: str, limits: dict[str, float]) -> None:
        self._connection = connect(url, limits)
        self._pgconn = self._connection.pgconn
        self._pgconn.enter_pipeline_mode()
        self._transformer = Transformer(self._connection)  # kept: it looks up how to read each type once
        self._poll = select.poll()
        self._socket = self._pgconn.socket
        self._names: dict[str, bytes] = {}
        """Names of prepared statements."""
        self._queued: list[Result | str] = []
        """The results of what was queued; of a preparation, the statement."""
        self._begun = False
        self._error: psycopg.Error | None = None
        """The error for which the transaction must be rolled back."""

    @property
    def closed(self) -> bool:
        """Whether the connection is closed or lost."""
        return bool(self._connection.closed)

    @property
    def in_transaction(self) -> bool:
        """Whether a transaction has begun, and is neither committed nor rolled back."""
        return self._begun

    def close(self) -> None:
        """Close the connection; a transaction that has begun is undone."""
        self._begun = False
        self._connection.close()

    def check(self) -> None:
        """Raise if the database has ended the connection; nothing is sent."""
        for _ in range(2):  # what it said last, then that it has closed
            self._pgconn.consume_input()

    def execute(self, statement: str, values: Sequence[Any] = ()) -> Result:
        """Queue a statement with ``?`` for its values."""
        if self._error is not None:
            raise self._error
        if not self._begun:
            self._queue("BEGIN", ())
            self._begun = True
        return self._queue(statement, values)

    def commit(self) -> None:
        """Send what is queued, and make it durable."""
        if self._error is not None:
            raise self._error
        if self._begun:
            self._queue("COMMIT", ())
            self.sync()
            self._begun = False

    def rollback(self) -> None:
        """Undo the transaction, if one has begun."""
        if self._queued and not self.closed:
            self._error = None
            try:
                self.sync()
            except psycopg.Error:
                self._queued.clear()
        self._begun, self._error = False, None
        if not self.closed and self._pgconn.transaction_status != TransactionStatus.IDLE:
            self._queue("ROLLBACK", ())
            self.sync()

    def _queue(self, statement: str, values: Sequence[Any]) -> Result:
        texts = [None if value is None else str(value).encode() for value in values]
        if any(text is not None and b"\0" in text for text in texts):
            raise psycopg.DataError("PostgreSQL text fields cannot contain NUL (0x00) bytes")
        name = self._names.get(statement)
        if name is None and len(self._names) < PREPARED_MAX:
            name = self._names[statement] = str(len(self._names)).encode()
            self._pgconn.send_prepare(name, numbered(statement).encode())
            self._queued.append(statement)
        if name is None:
            self._pgconn.send_query_params(numbered(statement).encode(), texts)
        else:
            self._pgconn.send_query_prepared(name, texts)
        result = Result(self)
        self._queued.append(result)
        return result

    def sync(self) -> None:
        """Send what is queued and wait for the answers; raises the first error."""
        if self._error is not None:
            raise self._error
        results: list[Any] = []
        queued, self._queued = self._queued, []
        try:
            self._pgconn.pipeline_sync()
            self._receive(results)
        except BaseException as error:  # what was sent is not known to be done
            self.close()
            if isinstance(error, psycopg.Error):
                # what the database said last, if anything, says more than that the connection is lost
                self._error = _failure(results) or error
                raise self._error from None
            raise
        self._error = _failure(results)
        for waiting, result in zip(queued, results, strict=True):
            if isinstance(waiting, str):
                if result.status != ExecStatus.COMMAND_OK:
                    del self._names[waiting]
            elif self._error is None:
                waiting.rows = self._rows(result)
        if self._error is not None:
            raise self._error

    def _receive(self, results: list[Any]) -> None:
        """Read results until the end of what was sent."""
        pgconn, end = self._pgconn, time.monotonic() + ANSWER_SECONDS_MAX
        unsent = pgconn.flush()
        while True:
            while not pgconn.is_busy():
                result = pgconn.get_result()  # None between the results of two statements
                if result is None:
                    if pgconn.status != ConnStatus.OK:
                        raise psycopg.OperationalError("the connection is lost")
                elif result.status == ExecStatus.PIPELINE_SYNC:
                    return
                else:
                    results.append(result)
            self._poll.register(self._socket, select.POLLIN | (select.POLLOUT if unsent else 0))
            if not self._poll.poll(1000.0 * max(end - time.monotonic(), 0.0)):
                raise psycopg.OperationalError(f"no answer for {ANSWER_SECONDS_MAX:g} seconds")
            pgconn.consume_input()
            if unsent:
                unsent = pgconn.flush()

    def _rows(self, result: Any) -> list[Row]:
        if result.status != ExecStatus.TUPLES_OK or not result.ntuples:
            return []
        self._transformer.set_pgresult(result)
        rows: list[Row] = self._transformer.load_rows(0, result.ntuples, tuple)
        return rows


def _failure(results: Sequence[Any]) -> psycopg.Error | None:
    failed = (result for result in results if result.status == ExecStatus.FATAL_ERROR)
    return next((error_from_result(result) for result in failed), None)
