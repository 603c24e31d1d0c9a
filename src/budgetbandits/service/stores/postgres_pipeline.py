"""A connection to PostgreSQL for an event loop: several statements are one round trip.

The statements are few and known, so they are prepared when the connection is opened. This is libpq's own pipeline;
psycopg's takes several times as long as the statements do, and that is felt at every decision.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any, Self

import psycopg
from psycopg.adapt import Transformer
from psycopg.errors import error_from_result
from psycopg.pq import ExecStatus, TransactionStatus

from budgetbandits.service.stores.postgres_session import STATEMENT_SECONDS, WRITING, arguments, settings

ANSWER_WITHIN = STATEMENT_SECONDS + 2.0
"""Seconds after which a database that says nothing is taken for dead; it should have given up by itself before."""

_IN_ORDER = "SET enable_bitmapscan = off"
"""An index is read in its order, or backwards, whatever the statistics say: a bitmap would take in all of a key."""

Value = str | int | float | bool | None
Call = tuple[str, Sequence[Value]]
Rows = list[tuple[Any, ...]]


class Pipeline:
    """Statements by their names, `$1` for values; made by `open`."""

    def __init__(self, connection: psycopg.AsyncConnection[Any], loop: asyncio.AbstractEventLoop) -> None:
        self._connection = connection
        self._pgconn = connection.pgconn
        self._transformer = Transformer(connection)  # kept: it looks up how to read each type once
        self._loop = loop
        self._results: list[Any] = []
        self._answer: asyncio.Future[list[Any]] | None = None
        self._socket = self._pgconn.socket  # which libpq forgets as soon as the connection is lost
        self._open = True
        loop.add_reader(self._socket, self._readable)

    @classmethod
    async def open(cls, url: str, statements: dict[str, str]) -> Self:
        connection = await psycopg.AsyncConnection.connect(**arguments(url), autocommit=True)
        try:
            for statement in (*settings(WRITING), _IN_ORDER):
                await connection.execute(statement)
            pipeline = cls(connection, asyncio.get_running_loop())
            pipeline._pgconn.enter_pipeline_mode()
            for name, text in statements.items():
                pipeline._pgconn.send_prepare(name.encode(), text.encode())
            await pipeline._sync()
        except BaseException:
            await connection.close()
            raise
        return pipeline

    @property
    def closed(self) -> bool:
        return not self._open

    @property
    def in_transaction(self) -> bool:
        return bool(self._pgconn.transaction_status != TransactionStatus.IDLE)

    def close(self) -> None:
        if self._open:
            self._open = False
            if not self._loop.is_closed():
                self._loop.remove_reader(self._socket)
                self._loop.remove_writer(self._socket)
            self._pgconn.finish()

    def check(self) -> None:
        """Raise if the database has ended the connection; nothing is sent."""
        try:
            for _ in range(2):  # what it said last, then that it is gone
                self._pgconn.consume_input()
        except psycopg.Error:
            self.close()
            raise

    async def run(self, calls: Sequence[Call]) -> list[Rows]:
        """The rows of each call, in one round trip; if one fails, those after it are not run."""
        try:
            for name, values in calls:
                self._pgconn.send_query_prepared(name.encode(), [_bytes(value) for value in values])
        except BaseException:  # some were sent and some were not
            self.close()
            raise
        return [self._rows(result) for result in await self._sync()]

    async def _sync(self) -> list[Any]:
        """Send what was queued and wait for the results."""
        self._answer, self._results = self._loop.create_future(), []
        limit = self._loop.call_later(ANSWER_WITHIN, self._silent)
        try:
            self._pgconn.pipeline_sync()
            if self._pgconn.flush():
                self._loop.add_writer(self._socket, self._writable)
            results = await self._answer
        except BaseException:  # what was sent is not known to be done
            self.close()
            raise
        finally:
            self._answer = None
            limit.cancel()
        failed = _failed(results)
        if failed is not None:
            raise failed
        return results

    def _writable(self) -> None:
        try:
            if not self._pgconn.flush():
                self._loop.remove_writer(self._socket)
        except psycopg.Error as error:
            self._lost(error)

    def _readable(self) -> None:
        try:
            self._pgconn.consume_input()
            while self._answer is not None and not self._answer.done() and not self._pgconn.is_busy():
                result = self._pgconn.get_result()  # None between the results of two statements
                if result is not None and result.status == ExecStatus.PIPELINE_SYNC:
                    self._answer.set_result(self._results)
                elif result is not None:
                    self._results.append(result)
                elif self.closed:
                    break
        except psycopg.Error as error:
            self._lost(error)

    def _silent(self) -> None:
        self._lost(psycopg.OperationalError(f"no answer for {ANSWER_WITHIN:g} seconds"))

    def _lost(self, error: psycopg.Error) -> None:
        answer, self._answer = self._answer, None
        self.close()
        if answer is not None and not answer.done():
            # what the database said last, if anything, tells more than that it is gone
            answer.set_exception(_failed(self._results) or error)

    def _rows(self, result: Any) -> Rows:
        if result.status != ExecStatus.TUPLES_OK or not result.ntuples:
            return []
        self._transformer.set_pgresult(result)
        rows: Rows = self._transformer.load_rows(0, result.ntuples, tuple)
        return rows


def _failed(results: Sequence[Any]) -> psycopg.Error | None:
    failed = (result for result in results if result.status == ExecStatus.FATAL_ERROR)
    return next((error_from_result(result) for result in failed), None)


def _bytes(value: Value) -> bytes | None:
    return None if value is None else str(value).encode()
