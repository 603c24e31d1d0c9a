"""PostgreSQL from an event loop: requests about a campaign go together, in two round trips.

    BEGIN, lock the campaign, read the decisions that the requests name
    write every row that has changed once, COMMIT

Between them the work is done in memory (`PreloadedTransaction`), so the campaign is locked for little longer than the
commit takes. If the campaign leases, leases are locked in its place (`PreloadedLeases`): this server's, and those of
the decisions that the requests name, in the order of their ids. If this server has no lease to decide under, all leases
are locked, after the campaign.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Hashable, Sequence
from functools import partial
from typing import Any

import psycopg
from psycopg.errors import DeadlockDetected, IdleInTransactionSessionTimeout, UniqueViolation
from pydantic_core import to_json

from budgetbandits.errors import StoreError
from budgetbandits.service.names import is_id
from budgetbandits.service.stores.contract import DecisionTransaction, NeedsFullTransaction, Scope, T
from budgetbandits.service.stores.group_commit import (
    GROUP_MAX,
    GROUP_SECONDS,
    TRIES_MAX,
    Answers,
    one_line,
    resolve_futures,
)
from budgetbandits.service.stores.postgres_pipeline import Call, Pipeline
from budgetbandits.service.stores.postgres_session import LostInCommit, cannot_write
from budgetbandits.service.stores.preload import ArmsNeeded, EventsNeeded, PreloadedLeases, PreloadedTransaction
from budgetbandits.service.stores.records import ArmRow, Campaign, LeaseEvent
from budgetbandits.service.stores.sql import rows
from budgetbandits.service.stores.sql.rows import json_text

CONNECTIONS_MAX = 4
"""Connections of one event loop, each for another campaign at a time."""

LOOP_ROUNDS = 6
"""Rounds of the event loop before groups are started, unless a single client is asking. In these rounds answers are
sent and what is on the wire is read, so that clients that ask again at once go together with those that have waited: a
group costs as much as several requests, be it large or small."""

ScopedItem = tuple[Callable[[DecisionTransaction], Any], Scope, asyncio.Future[Any]]


class LoopWriter:
    """Connections that write, all of one event loop; each for another campaign at a time."""

    def __init__(self, url: str, loop: asyncio.AbstractEventLoop) -> None:
        self.loop = loop
        self._url = url
        self._ids: dict[str, str] = {}
        """The ids of campaigns by name, as they were when they were last read: requests by name and by id go together.
        A name may mean another campaign once its own was deleted."""
        self._shared: dict[str, str] = {}
        """The names of the shared budgets of campaigns, by their ids, as they were when they were last read."""
        self._waiting: dict[Hashable, list[ScopedItem]] = {}
        """By campaign; what has waited longest comes first."""
        self._busy: dict[Hashable, asyncio.Task[None]] = {}
        self._starting = False
        """Whether groups will be started in some rounds."""
        self._alone = True
        """Whether the last group was a single item and nobody waited meanwhile."""
        self._free: list[Pipeline] = []
        self._all: list[Pipeline] = []

    async def perform(self, work: Callable[[DecisionTransaction], T], scope: Scope) -> T:
        future: asyncio.Future[T] = self.loop.create_future()
        group = self._ids.get(scope.campaign, scope.campaign) or object()  # work without a campaign is alone
        if group in self._waiting:
            self._waiting[group].append((work, scope, future))
        else:
            self._waiting[group] = [(work, scope, future)]
            self._start_soon()
        return await future

    def close(self) -> None:
        for connection in self._all:
            connection.close()

    def _start_soon(self) -> None:
        if not self._starting:
            self._starting = True
            self.loop.call_soon(self._start, 0 if self._alone else LOOP_ROUNDS - 1)

    def _start(self, rounds: int) -> None:
        """Start the groups that wait, after this many further rounds of the loop."""
        if rounds:
            self.loop.call_soon(self._start, rounds - 1)
            return
        self._starting = False
        for group in [each for each in self._waiting if each not in self._busy]:
            if len(self._busy) == CONNECTIONS_MAX:
                return
            self._busy[group] = self.loop.create_task(self._run(group))

    async def _run(self, group: Hashable) -> None:
        items = self._waiting.pop(group)
        if len(items) > GROUP_MAX:
            self._waiting[group] = items[GROUP_MAX:]
        try:
            answers = await self._group(items[:GROUP_MAX])
            rest = items[len(answers) : GROUP_MAX]  # there was no time for these
            if rest:
                self._waiting[group] = rest + self._waiting.get(group, [])
            resolve_futures(answers)
        except BaseException as error:  # callers wait for an answer
            resolve_futures([(future, None, error) for _, _, future in items[:GROUP_MAX]])
        finally:
            del self._busy[group]
            self._alone = len(items) == 1 and not self._waiting and not self._busy
            if self._waiting:
                self._start_soon()

    async def _group(self, items: Sequence[ScopedItem], tries: int = TRIES_MAX) -> Answers:
        connection, answers = None, None
        try:
            connection, tx = await self._begin([scope for _, scope, _ in items])
            answers = await _run_items(connection, tx, items)
        except (UniqueViolation, DeadlockDetected) as error:
            # under another lease, the same key was used: what became of it is seen when it is tried again
            if tries == 1:
                refused = StoreError(f"the store refused: {one_line(error)}; nothing was written")
                return [(future, None, refused) for _, _, future in items]
        except (psycopg.OperationalError, IdleInTransactionSessionTimeout) as error:
            failure = cannot_write(error)
            return [(future, None, failure) for _, _, future in items]
        except psycopg.Error as error:  # the database refused something: which item it was is seen one by one
            refused = StoreError(f"the store refused: {one_line(error)}; nothing was written")
            answers = [(future, None, refused) for _, _, future in items] if len(items) == 1 else None
        finally:
            if connection is not None:
                await self._give_back(connection)
        if answers is None:
            return [answer for item in items for answer in await self._group([item], tries - 1)]
        return answers

    async def _begin(self, scopes: Sequence[Scope]) -> tuple[Pipeline, PreloadedTransaction]:
        connection, campaign = await self._connection(), scopes[0].campaign
        id = self._ids.get(campaign) or (campaign if is_id(campaign) else None)
        lock: Callable[[Pipeline], Awaitable[PreloadedTransaction]]
        if all(map(_needs_no_campaign, scopes)):
            lock = partial(_lock_leases, id=id, scopes=scopes)
        else:
            lock = partial(_lock_campaign, id=id, scopes=scopes, shared=self._shared.get(id or ""))
        try:
            tx = await lock(connection)
        except psycopg.Error:
            if not connection.closed:
                await self._give_back(connection)
                raise
            connection = await self._connection()  # the other was lost while it was idle, and nothing was written
            try:
                tx = await lock(connection)
            except psycopg.Error:
                await self._give_back(connection)
                raise
        if tx.campaign_row is not None:
            self._ids[tx.campaign_row.name] = tx.campaign_row.id
            self._note_shared(tx.campaign_row)
        elif not tx.leases_alone and self._ids.pop(campaign, None) is not None:  # deleted since: who has the name now?
            await self._give_back(connection)
            return await self._begin(scopes)
        return connection, tx

    def _note_shared(self, row: Campaign) -> None:
        name = row.settings.terms.shared_budget
        if name is not None:
            self._shared[row.id] = name
        elif row.id in self._shared:  # it has left
            del self._shared[row.id]

    async def _connection(self) -> Pipeline:
        while self._free:
            connection = self._free.pop()
            if not connection.closed:
                return connection
        connection = await Pipeline.open(self._url)
        self._all = [each for each in self._all if not each.closed] + [connection]
        return connection

    async def _give_back(self, connection: Pipeline) -> None:
        """Ready for the next group, or closed."""
        try:
            if not connection.closed and connection.in_transaction:
                await connection.run([("rollback", ())])
            self._free.append(connection)
        except psycopg.Error:
            connection.close()


async def _run_items(connection: Pipeline, tx: PreloadedTransaction, items: Sequence[ScopedItem]) -> Answers | None:
    """The answers, when they are committed, or those of the first items; None, and nothing is, if each needs a
    transaction of its own."""
    answers: Answers = []
    end = time.perf_counter() + GROUP_SECONDS
    for work, _, future in items:
        if answers and time.perf_counter() > end:
            break
        before = tx.wrote
        answer, problem = await _run_item(connection, tx, work)
        answers.append((future, answer, problem))
        if problem is not None and tx.wrote != before:  # the others must not lose what they wrote
            return answers if len(items) == 1 else None
    await _commit(connection, _changes(tx))
    return answers


async def _run_item(
    connection: Pipeline, tx: PreloadedTransaction, work: Callable[[DecisionTransaction], Any]
) -> tuple[Any, BaseException | None]:
    """The answer of an item, or its error; run again when rows that it asked for have been read."""
    before = tx.wrote
    while True:
        try:
            return work(tx), None
        except (ArmsNeeded, EventsNeeded) as asked:
            needed = asked
        except BaseException as error:
            return None, error
        if tx.wrote != before:
            return None, NeedsFullTransaction()
        if isinstance(needed, ArmsNeeded):
            tx.arms_read[needed.numbers] = await _arms(connection, needed)
        elif isinstance(tx, PreloadedLeases):
            tx.events_read[needed.lease, needed.after] = await _lease_events(connection, needed)


async def _lock_campaign(
    connection: Pipeline, id: str | None, scopes: Sequence[Scope], shared: str | None = None
) -> PreloadedTransaction:
    """Lock the campaign, then read its decisions, so that these are as the last transaction has left them.

    ``shared`` is probably the name of its shared budget: if not, locking that takes one more round trip.
    """
    campaign, named = (scopes[0].campaign, " named") if id is None else (id, "")
    keys = [key for scope in scopes for key in scope.keys]
    ids = [id for scope in scopes for id in scope.decisions]
    calls: list[Call] = [("begin", ()), (f"campaign{named}", (campaign,))]
    if shared is not None:
        calls.append(("shared budget", (shared,)))
    leasing = id is not None and any(scope.lease is not None for scope in scopes)
    if leasing:  # before the decisions, which others may change under their leases
        calls.append(("all leases", (id,)))
    if keys:
        calls.append((f"keys{named}", (campaign, _as_json(keys))))
    if ids:
        calls.append(("decisions", (_as_json(ids),)))
    _, campaigns, *others = await connection.run(calls)
    budgets = others.pop(0) if shared is not None else []
    leases = [rows.lease_of(each) for each in others.pop(0)] if leasing else None
    made = [rows.decision_of(each) for found in others for each in found]
    if not campaigns:
        return PreloadedTransaction(None, made, scopes, None)
    *row, now = campaigns[0]
    read = rows.campaign_of(row)
    name = read.settings.terms.shared_budget
    if name is not None and name != shared:
        [budgets] = await connection.run([("shared budget", (name,))])
    budget = rows.shared_budget_of(budgets[0]) if name is not None and budgets else None
    return PreloadedTransaction(read, made, scopes, now, leases, budget)


def _needs_no_campaign(scope: Scope) -> bool:
    """Whether this is feedback, or a decision under a lease."""
    return bool(scope.lease) or (scope.lease is not None and not scope.keys)


async def _lock_leases(connection: Pipeline, id: str | None, scopes: Sequence[Scope]) -> PreloadedLeases:
    """Lock leases, then read decisions, so that these are as the last transaction has left them."""
    assert id is not None
    keys = [key for scope in scopes for key in scope.keys]
    ids = [id for scope in scopes for id in scope.decisions]
    own = sorted({scope.lease for scope in scopes if scope.lease})
    calls: list[Call] = [("begin", ()), ("leases", (_as_json(own), _as_json(ids)))]
    if keys:
        calls.append(("keys", (id, _as_json(keys))))
    if ids:
        calls.append(("decisions", (_as_json(ids),)))
    _, leases, *decisions = await connection.run(calls)
    made = [rows.decision_of(each) for found in decisions for each in found]
    now = leases[-1][-1] if leases else None  # when the last of them was locked
    return PreloadedLeases(id, [rows.lease_of(row[:-1]) for row in leases], made, scopes, now)


async def _lease_events(connection: Pipeline, needed: EventsNeeded) -> list[LeaseEvent]:
    [found] = await connection.run([("lease events", (needed.lease, needed.after))])
    return [rows.lease_event_of(row) for row in found]


async def _arms(connection: Pipeline, needed: ArmsNeeded) -> list[ArmRow]:
    calls: list[Call] = [("arms", (needed.campaign,))]
    if needed.numbers is not None:
        calls = [("arm", (needed.campaign, number)) for number in needed.numbers]
    return [rows.arm_of(row) for found in await connection.run(calls) for row in found]


async def _commit(connection: Pipeline, changes: Sequence[Call]) -> None:
    connection.check()  # from here on, a lost connection leaves open what was done
    try:
        await connection.run([*changes, ("commit", ())])
    except psycopg.OperationalError as error:
        if connection.closed:
            raise LostInCommit(str(error)) from None
        raise


def _changes(tx: PreloadedTransaction) -> list[Call]:
    """The statements that write every changed row once."""
    changes: list[Call] = [("heartbeat", (now,)) for now in tx.heartbeats[-1:]]
    row = tx.campaign_row
    if row is not None and tx.learned_changed:
        texts = json_text(row.learned), rows.arms_down_text(row)
        changes.append(("save campaign", (row.id, *rows.money_of(row.account), row.account.status, *texts)))
    elif row is not None and tx.money_changed:
        changes.append(("save money", (row.id, *rows.money_of(row.account), row.account.status)))
    if tx.shared_row is not None and tx.shared_changed:
        shared = tx.shared_row
        changes.append(("save shared budget", (shared.name, *rows.shared_money_of(shared.account))))
    changes += [("save lease", (lease.id, *rows.lease_changes(lease))) for lease in tx.changed_leases.values()]
    # one statement for each row, which costs no round trip: a join with a list of rows would have to be planned
    for a in tx.changed_arms.values():
        changes.append(("save arm", (a.campaign, a.number, json_text(a.learned), a.active)))
    if tx.new_decisions:
        # in the order of their keys: servers that add the same keys under different leases cannot wait in a circle
        made = sorted(tx.new_decisions.values(), key=lambda each: each.key)
        changes.append(("add decisions", (rows.json_rows(rows.DECISION, rows.decision_values, made),)))
    for d in tx.changed_decisions.values():
        changes.append(("save decision", (d.id, *rows.feedback_values(d), d.failed)))
        if d.hold.state != "pending":
            changes.append(("drop pending", (d.expires_at, d.id)))
    if tx.new_events:
        changes.append(("add events", (rows.json_rows(rows.EVENT, rows.event_values, tx.new_events),)))
    return changes


def _as_json(values: Sequence[Any]) -> str:
    return to_json(values).decode()
