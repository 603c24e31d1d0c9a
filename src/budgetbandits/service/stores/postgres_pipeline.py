"""A connection to PostgreSQL for an event loop: several statements are one round trip.

The statements are few and known (`STATEMENTS`), so they are prepared when the connection is opened. This is libpq's own
pipeline; psycopg's takes several times as long as the statements do, and that is felt at every decision.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any, Self

import psycopg
from psycopg.adapt import Transformer
from psycopg.errors import error_from_result
from psycopg.pq import ExecStatus, TransactionStatus

from budgetbandits.service.stores.postgres_session import STATEMENT_SECONDS, WRITE_LIMITS, arguments, settings
from budgetbandits.service.stores.sql.core import LEASE_EVENTS
from budgetbandits.service.stores.sql.rows import (
    ARM,
    CAMPAIGN,
    DECISION,
    EVENT,
    FEEDBACK,
    LEASE,
    LEASE_CHANGES,
    MONEY,
    SHARED_BUDGET,
    SHARED_MONEY,
    assigned,
    listed,
)

ANSWER_SECONDS_MAX = STATEMENT_SECONDS + 2.0
"""Seconds after which a database that says nothing is taken for dead; it should have given up by itself before."""

_NO_BITMAPS = "SET enable_bitmapscan = off"
"""An index is read in its order, or backwards, whatever the statistics say: a bitmap would take in all of a key."""

Value = str | int | float | bool | None
Call = tuple[str, Sequence[Value]]
Rows = list[tuple[Any, ...]]


_NAMED = "COALESCE((SELECT id FROM campaign_name WHERE name = $1), (SELECT campaign FROM former_name WHERE name = $1))"
_NOW = "extract(epoch FROM clock_timestamp())::double precision"
_DECISIONS = (
    f"SELECT {listed(DECISION)} FROM json_array_elements_text({{}}) AS asked (value), "
    f"LATERAL (SELECT {listed(DECISION)} FROM decision WHERE {{}} = asked.value LIMIT 1) AS made"
)
"""Decisions are looked up one by one, because of the LIMIT: for a list, a database that has no statistics yet may read
all decisions of a campaign instead."""
_MONEY = [*MONEY, "status"]
_ONE = "id >= {0} AND id <= {0} ORDER BY id DESC LIMIT 1"
_CAMPAIGN = _LEASE = _ONE.format("$1")
_SHARED = "name >= $1 AND name <= $1 ORDER BY name DESC LIMIT 1"
_ARM = "campaign = $1 AND number >= $2 AND number <= $2 ORDER BY number DESC LIMIT 1"
"""A row that changes all the time, by its key. While anybody looks at an old state of the database, no old version of
a row can be cleared away, and by the index on its key they are all found. The newest is nearly always the last, so the
index is read backwards: a range of one key and an order make the database do that, where an equality would not."""
_LEASES = (
    "SELECT json_array_elements_text($1) UNION "
    f"SELECT made.lease FROM ({_DECISIONS.format('$2', 'id')}) AS made WHERE made.lease IS NOT NULL ORDER BY 1"
)
"""The ids of leases: these, and those of these decisions."""

STATEMENTS = {
    "begin": "BEGIN",
    "commit": "COMMIT",
    "rollback": "ROLLBACK",
    "campaign": f"SELECT {listed(CAMPAIGN)}, {_NOW} FROM campaign WHERE {_CAMPAIGN} FOR UPDATE",
    "campaign named": f"SELECT {listed(CAMPAIGN)}, {_NOW} FROM campaign WHERE id = {_NAMED} FOR UPDATE",
    "shared budget": f"SELECT {listed(SHARED_BUDGET)} FROM shared_budget WHERE {_SHARED} FOR UPDATE",
    "keys": _DECISIONS.format("$2", "campaign = $1 AND key"),
    "keys named": _DECISIONS.format("$2", f"campaign = {_NAMED} AND key"),
    "decisions": _DECISIONS.format("$1", "id"),
    "leases": f"SELECT {listed(LEASE)}, {_NOW} FROM ({_LEASES}) AS asked (value), LATERAL "
    f"(SELECT {listed(LEASE)} FROM lease WHERE {_ONE.format('asked.value')} FOR UPDATE) AS found",
    "all leases": f"SELECT {listed(LEASE)} FROM lease WHERE campaign = $1 ORDER BY id FOR UPDATE",
    "lease events": LEASE_EVENTS.format("$1", "$2"),
    "arms": f"SELECT {listed(ARM)} FROM arm WHERE campaign = $1 ORDER BY number",
    "arm": f"SELECT {listed(ARM)} FROM arm WHERE {_ARM}",
    "save money": f"UPDATE campaign SET {assigned(_MONEY, 2)} "
    f"WHERE ctid = (SELECT ctid FROM campaign WHERE {_CAMPAIGN})",
    "save campaign": f"UPDATE campaign SET {assigned([*_MONEY, 'learned', 'arms_down'], 2)} "
    f"WHERE ctid = (SELECT ctid FROM campaign WHERE {_CAMPAIGN})",
    "save shared budget": f"UPDATE shared_budget SET {assigned(SHARED_MONEY, 2)} "
    f"WHERE ctid = (SELECT ctid FROM shared_budget WHERE {_SHARED})",
    "save lease": f"UPDATE lease SET {assigned(LEASE_CHANGES, 2)} WHERE ctid = (SELECT ctid FROM lease WHERE {_LEASE})",
    "save arm": f"UPDATE arm SET learned = $3, active = $4 WHERE ctid = (SELECT ctid FROM arm WHERE {_ARM})",
    "add decisions": f"WITH made AS (INSERT INTO decision ({listed(DECISION)}) SELECT {listed(DECISION)} "
    "FROM json_populate_recordset(null::decision, $1) RETURNING id, campaign, state, created_at, expires_at) "
    "INSERT INTO pending_decision (expires_at, decision, campaign, created_at) "
    "SELECT expires_at, id, campaign, created_at FROM made WHERE state = 'pending'",
    "drop pending": "DELETE FROM pending_decision WHERE expires_at = $1 AND decision = $2",
    "save decision": f"UPDATE decision SET {assigned([*FEEDBACK, 'failed'], 2)} WHERE id = $1",
    "add events": f"INSERT INTO event ({listed(EVENT)}) SELECT {listed(EVENT)} "
    "FROM json_populate_recordset(null::event, $1)",
    "heartbeat": "INSERT INTO heartbeat (number, at) VALUES (1, $1) "
    "ON CONFLICT (number) DO UPDATE SET at = excluded.at",
}


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
    async def open(cls, url: str, statements: dict[str, str] = STATEMENTS) -> Self:
        connection = await psycopg.AsyncConnection.connect(**arguments(url), autocommit=True)
        try:
            for statement in (*settings(WRITE_LIMITS), _NO_BITMAPS):
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
            for _ in range(2):  # what it said last, then that it has closed
                self._pgconn.consume_input()
        except psycopg.Error:
            self.close()
            raise

    async def run(self, calls: Sequence[Call]) -> list[Rows]:
        """The rows of each call, in one round trip; if one fails, those after it are not run."""
        try:
            for name, values in calls:
                texts = [None if value is None else str(value).encode() for value in values]
                self._pgconn.send_query_prepared(name.encode(), texts)
        except BaseException:  # some were sent and some were not
            self.close()
            raise
        return [self._rows(result) for result in await self._sync()]

    async def _sync(self) -> list[Any]:
        """Send what was queued and wait for the results."""
        self._answer, self._results = self._loop.create_future(), []
        limit = self._loop.call_later(ANSWER_SECONDS_MAX, self._silent)
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
        answer, pgconn = self._answer, self._pgconn
        try:
            pgconn.consume_input()
            while answer is not None and not answer.done() and not pgconn.is_busy():
                result = pgconn.get_result()  # None between the results of two statements
                if result is not None and result.status == ExecStatus.PIPELINE_SYNC:
                    answer.set_result(self._results)
                elif result is not None:
                    self._results.append(result)
                elif self.closed:
                    break
        except psycopg.Error as error:
            self._lost(error)

    def _silent(self) -> None:
        self._lost(psycopg.OperationalError(f"no answer for {ANSWER_SECONDS_MAX:g} seconds"))

    def _lost(self, error: psycopg.Error) -> None:
        answer, self._answer = self._answer, None
        self.close()
        if answer is not None and not answer.done():
            # what the database said last, if anything, says more than that the connection is lost
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
