"""SQLite: the store for one host, one file, nothing to set up.

One thread writes. It takes whatever has been handed in, runs it all in one transaction, each piece under a savepoint of
its own, and commits once: the price of an fsync is shared by everybody who waits for it. With WAL and synchronous=FULL
what `write` has returned from survives `kill -9` and a power cut. Readers see the last commit and never wait.
"""

from __future__ import annotations

import json
import queue
import sqlite3
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import replace
from importlib import resources
from pathlib import Path
from typing import Any

from budgetbandits.errors import StoreError
from budgetbandits.service.ledger import Account, Hold
from budgetbandits.service.stores.base import ArmRow, Campaign, Decision, Event, Store, T, Transaction

GROUP = 64
"""At most this many pieces of work share a commit."""

PATIENCE = 30.0
"""Seconds to wait for another process that is writing."""

MIGRATIONS = "budgetbandits.service.stores.migrations"

_CAMPAIGN = "id, name, policy, budget, spent, held, overrun, status, settings, learned, version, created_at"
_ARM = "campaign, number, name, cost_cap, learned, version, active"
_DECISION = (
    "id, campaign, arm, hold, state, charged, overrun, reported, cost, reward, key, payload, created_at, expires_at"
)
_EVENT = "campaign, kind, at, decision, arm, amount, reward"


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
    """Bring the database to this version, one numbered file at a time, each whole or not at all."""
    files = sorted(
        (int(entry.name.split("_")[0]), entry.read_text(encoding="utf-8"))
        for entry in resources.files(MIGRATIONS).iterdir()
        if entry.name.endswith(".sql")
    )
    connection.execute("BEGIN IMMEDIATE")  # two processes may start at once
    try:
        (done,) = connection.execute("PRAGMA user_version").fetchone()
        for number, text in files:
            if number > done:
                for statement in _statements(text):
                    connection.execute(statement)
                connection.execute(f"PRAGMA user_version = {number}")
    except BaseException:
        connection.execute("ROLLBACK")
        raise
    connection.execute("COMMIT")
    newest = files[-1][0]
    if done > newest:
        raise StoreError(f"the database is of version {done}, this package knows {newest}; upgrade budgetbandits")


def _statements(text: str) -> list[str]:
    found, statement = [], ""
    for line in text.splitlines(keepends=True):
        statement += line
        if sqlite3.complete_statement(statement):
            found.append(statement)
            statement = ""
    return found


class _Transaction(Transaction):
    def __init__(self, connection: sqlite3.Connection) -> None:
        self._do = connection.execute
        self._do_many = connection.executemany

    def campaign(self, id: str) -> Campaign | None:
        row = self._do(f"SELECT {_CAMPAIGN} FROM campaign WHERE id = ?", (id,)).fetchone()
        return None if row is None else _campaign(row)

    def campaigns(self) -> list[Campaign]:
        return [_campaign(row) for row in self._do(f"SELECT {_CAMPAIGN} FROM campaign ORDER BY created_at, id")]

    def add_campaign(self, campaign: Campaign) -> None:
        a = campaign.account
        self._do(
            f"INSERT INTO campaign ({_CAMPAIGN}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (
                campaign.id, campaign.name, campaign.policy, a.budget, a.spent, a.held, a.overrun, a.status,
                json.dumps(campaign.settings), json.dumps(campaign.learned), campaign.version, campaign.created_at,
            ),
        )  # fmt: skip

    def save_campaign(self, campaign: Campaign) -> None:
        a = campaign.account
        self._do(
            "UPDATE campaign SET budget = ?, spent = ?, held = ?, overrun = ?, status = ?, settings = ?, learned = ?, "
            "version = ? WHERE id = ?",
            (
                a.budget, a.spent, a.held, a.overrun, a.status,
                json.dumps(campaign.settings), json.dumps(campaign.learned), campaign.version, campaign.id,
            ),
        )  # fmt: skip

    def arms(self, campaign: str, since: int = -1) -> list[ArmRow]:
        rows = self._do(f"SELECT {_ARM} FROM arm WHERE campaign = ? AND version > ? ORDER BY number", (campaign, since))
        return [
            ArmRow(campaign, number, name, cost_cap, json.loads(learned), version, bool(active))
            for campaign, number, name, cost_cap, learned, version, active in rows
        ]

    def save_arms(self, arms: Sequence[ArmRow]) -> None:
        self._do_many(
            f"INSERT INTO arm ({_ARM}) VALUES (?, ?, ?, ?, ?, ?, ?) ON CONFLICT (campaign, number) DO UPDATE SET "
            "cost_cap = excluded.cost_cap, learned = excluded.learned, version = excluded.version, "
            "active = excluded.active",
            [(a.campaign, a.number, a.name, a.cost_cap, json.dumps(a.learned), a.version, a.active) for a in arms],
        )

    def decision(self, id: str) -> Decision | None:
        return self._one_decision("id = ?", (id,))

    def decision_by_key(self, campaign: str, key: str) -> Decision | None:
        return self._one_decision("campaign = ? AND key = ?", (campaign, key))

    def _one_decision(self, where: str, values: tuple[str, ...]) -> Decision | None:
        row = self._do(f"SELECT {_DECISION} FROM decision WHERE {where}", values).fetchone()
        return None if row is None else _decision(row)

    def add_decision(self, decision: Decision) -> None:
        d, h = decision, decision.hold
        self._do(
            f"INSERT INTO decision ({_DECISION}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (
                d.id, d.campaign, d.arm, h.amount, h.state, h.charged, h.overrun, h.reported, d.cost, d.reward,
                d.key, d.payload, d.created_at, d.expires_at,
            ),
        )  # fmt: skip

    def save_decision(self, decision: Decision) -> None:
        d, h = decision, decision.hold
        self._do(
            "UPDATE decision SET state = ?, charged = ?, overrun = ?, reported = ?, cost = ?, reward = ? WHERE id = ?",
            (h.state, h.charged, h.overrun, h.reported, d.cost, d.reward, d.id),
        )

    def due(self, now: float, limit: int) -> list[Decision]:
        rows = self._do(
            f"SELECT {_DECISION} FROM decision WHERE state = 'pending' AND expires_at <= ? ORDER BY expires_at LIMIT ?",
            (now, limit),
        )
        return [_decision(row) for row in rows]

    def add_event(self, event: Event) -> None:
        e = event
        self._do(
            f"INSERT INTO event ({_EVENT}) VALUES (?, ?, ?, ?, ?, ?, ?)",
            (e.campaign, e.kind, e.at, e.decision, e.arm, e.amount, e.reward),
        )

    def events(self, campaign: str, after: int = 0, limit: int = 1000) -> list[Event]:
        rows = self._do(
            f"SELECT {_EVENT}, seq FROM event WHERE campaign = ? AND seq > ? ORDER BY seq LIMIT ?",
            (campaign, after, limit),
        )
        return [Event(*row) for row in rows]


def _campaign(row: Sequence[Any]) -> Campaign:
    id, name, policy, budget, spent, held, overrun, status, settings, learned, version, created_at = row
    account = Account(budget, spent, held, overrun, status)
    return Campaign(id, name, policy, account, created_at, json.loads(settings), json.loads(learned), version)


def _decision(row: Sequence[Any]) -> Decision:
    id, campaign, arm, amount, state, charged, overrun, reported, cost, reward, key, payload, created, expires = row
    hold = Hold(amount, state, charged, overrun, bool(reported))
    return replace(Decision(id, campaign, arm, hold, key, payload, created, expires), cost=cost, reward=reward)
