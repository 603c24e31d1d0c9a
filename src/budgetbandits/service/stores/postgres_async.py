"""PostgreSQL from an event loop: what is asked about a campaign meanwhile goes together, in two round trips.

    BEGIN, lock the campaign, read the decisions that are asked about
    write every row that has changed once, COMMIT

Between them the work is done in memory (`PreloadedTransaction`), so the campaign is locked for little longer than the
commit takes. If the campaign leases, leases are locked in its place (`ForeseenLeases`): this server's, and those
of the decisions that are asked about, in the order of their ids. If this server has no lease to decide under, all of
them are, after the campaign.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Hashable, Sequence
from typing import Any

import psycopg
from psycopg.errors import DeadlockDetected, IdleInTransactionSessionTimeout, UniqueViolation

from budgetbandits.errors import StoreError
from budgetbandits.service.names import is_id
from budgetbandits.service.stores.contract import About, NeedsFullTransaction, T, Transaction
from budgetbandits.service.stores.group_commit import GROUP, TRIES, Answers, give, one_line
from budgetbandits.service.stores.lease_sql import lease_of, lease_values
from budgetbandits.service.stores.postgres_leases import as_json, lease_events, locked_leases, needs_no_campaign
from budgetbandits.service.stores.postgres_pipeline import Call, Pipeline
from budgetbandits.service.stores.postgres_session import LostInCommit, cannot_write
from budgetbandits.service.stores.postgres_statements import STATEMENTS
from budgetbandits.service.stores.preloaded import ArmsNeeded, PreloadedTransaction
from budgetbandits.service.stores.preloaded_leases import EventsNeeded, ForeseenLeases
from budgetbandits.service.stores.records import ArmRow, Decision, Event
from budgetbandits.service.stores.rows import arm_of, campaign_of, decision_of, down_text, json_text, money_of

CONNECTIONS = 4

ROUNDS = 6
"""Rounds of the event loop before groups are started, unless a single client is asking. In these rounds answers are
sent and what is on the wire is read, so that those who ask again at once go together with those who have waited: a
group costs as much as several requests, be it large or small."""

Piece = tuple[Callable[[Transaction], Any], About, asyncio.Future[Any]]


class LoopWriter:
    """Connections that write, all of one event loop; each for another campaign at a time."""

    def __init__(self, url: str, loop: asyncio.AbstractEventLoop) -> None:
        self.loop = loop
        self._url = url
        self._ids: dict[str, str] = {}
        """Of campaigns by name, which never change: what is asked by name and by id goes together."""
        self._waiting: dict[Hashable, list[Piece]] = {}
        """By campaign; what has waited longest comes first."""
        self._busy: dict[Hashable, asyncio.Task[None]] = {}
        self._starting = False
        """Whether groups will be started in some rounds."""
        self._alone = True
        """Whether the last group was a single piece and nobody waited meanwhile."""
        self._free: list[Pipeline] = []
        self._all: list[Pipeline] = []

    async def perform(self, work: Callable[[Transaction], T], about: About) -> T:
        future: asyncio.Future[T] = self.loop.create_future()
        group = self._ids.get(about.campaign, about.campaign) or object()  # about nothing that is known: alone
        if group in self._waiting:
            self._waiting[group].append((work, about, future))
        else:
            self._waiting[group] = [(work, about, future)]
            self._start_soon()
        return await future

    def close(self) -> None:
        for connection in self._all:
            connection.close()

    def _start_soon(self) -> None:
        if not self._starting:
            self._starting = True
            self.loop.call_soon(self._start, 0 if self._alone else ROUNDS - 1)

    def _start(self, rounds: int) -> None:
        """Start what waits after so many further rounds of the loop."""
        if rounds:
            self.loop.call_soon(self._start, rounds - 1)
            return
        self._starting = False
        for group in [each for each in self._waiting if each not in self._busy]:
            if len(self._busy) == CONNECTIONS:
                return
            self._busy[group] = self.loop.create_task(self._run(group))

    async def _run(self, group: Hashable) -> None:
        pieces = self._waiting.pop(group)
        if len(pieces) > GROUP:
            self._waiting[group] = pieces[GROUP:]
        try:
            give(await self._group(pieces[:GROUP]))
        except BaseException as error:  # somebody waits for an answer
            give([(future, None, error) for _, _, future in pieces[:GROUP]])
        finally:
            del self._busy[group]
            self._alone = len(pieces) == 1 and not self._waiting and not self._busy
            if self._waiting:
                self._start_soon()

    async def _group(self, pieces: Sequence[Piece], tries: int = TRIES) -> Answers:
        connection, answers = None, None
        try:
            connection, tx = await self._begin([about for _, about, _ in pieces])
            answers = await _work(connection, tx, pieces)
        except (UniqueViolation, DeadlockDetected) as error:
            # under another lease, the same key was used: what became of it is seen when it is tried again
            if tries == 1:
                refused = StoreError(f"the store refused: {one_line(error)}; nothing was written")
                return [(future, None, refused) for _, _, future in pieces]
        except (psycopg.OperationalError, IdleInTransactionSessionTimeout) as error:
            failure = cannot_write(error)
            return [(future, None, failure) for _, _, future in pieces]
        except psycopg.Error as error:  # the database refused something: whose it was is seen one by one
            refused = StoreError(f"the store refused: {one_line(error)}; nothing was written")
            answers = [(future, None, refused) for _, _, future in pieces] if len(pieces) == 1 else None
        finally:
            if connection is not None:
                await self._give_back(connection)
        if answers is None:
            return [answer for piece in pieces for answer in await self._group([piece], tries - 1)]
        return answers

    async def _begin(self, abouts: Sequence[About]) -> tuple[Pipeline, PreloadedTransaction]:
        connection, campaign = await self._connection(), abouts[0].campaign
        id = self._ids.get(campaign) or (campaign if is_id(campaign) else None)
        lock = locked_leases if all(map(needs_no_campaign, abouts)) else _locked
        try:
            tx = await lock(connection, id, abouts)
        except psycopg.Error:
            if not connection.closed:
                await self._give_back(connection)
                raise
            connection = await self._connection()  # the other was lost while nobody looked, and nothing was written
            try:
                tx = await lock(connection, id, abouts)
            except psycopg.Error:
                await self._give_back(connection)
                raise
        if tx.campaign_row is not None:
            self._ids[tx.campaign_row.name] = tx.campaign_row.id
        return connection, tx

    async def _connection(self) -> Pipeline:
        while self._free:
            connection = self._free.pop()
            if not connection.closed:
                return connection
        connection = await Pipeline.open(self._url, STATEMENTS)
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


async def _work(connection: Pipeline, tx: PreloadedTransaction, pieces: Sequence[Piece]) -> Answers | None:
    """What to answer, when it is committed; None, and nothing is, if each needs a transaction of its own."""
    answers: Answers = []
    for work, _, future in pieces:
        before = tx.wrote
        answer, problem = await _piece(connection, tx, work)
        answers.append((future, answer, problem))
        if problem is not None and tx.wrote != before:  # the others must not lose what they wrote
            return answers if len(pieces) == 1 else None
    await _commit(connection, _changes(tx))
    return answers


async def _piece(
    connection: Pipeline, tx: PreloadedTransaction, work: Callable[[Transaction], Any]
) -> tuple[Any, BaseException | None]:
    """The answer of a piece, or its error; run again when arms that it asked for have been read."""
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
        elif isinstance(tx, ForeseenLeases):
            tx.events_read[needed.lease, needed.after] = await lease_events(connection, needed)


async def _locked(connection: Pipeline, id: str | None, abouts: Sequence[About]) -> PreloadedTransaction:
    """Lock the campaign, then read its decisions, so that these are as whoever had it before has left them."""
    campaign, named = (abouts[0].campaign, " named") if id is None else (id, "")
    keys = [key for about in abouts for key in about.keys]
    ids = [id for about in abouts for id in about.decisions]
    calls: list[Call] = [("begin", ()), (f"campaign{named}", (campaign,))]
    leasing = id is not None and any(about.lease is not None for about in abouts)
    if leasing:  # before the decisions, which others may change under their leases
        calls.append(("all leases", (id,)))
    if keys:
        calls.append((f"keys{named}", (campaign, as_json(keys))))
    if ids:
        calls.append(("decisions", (as_json(ids),)))
    _, campaigns, *others = await connection.run(calls)
    leases = [lease_of(each) for each in others.pop(0)] if leasing else None
    made = [decision_of(each) for rows in others for each in rows]
    if not campaigns:
        return PreloadedTransaction(None, made, abouts, None)
    *row, now = campaigns[0]
    return PreloadedTransaction(campaign_of(row), made, abouts, now, leases)


async def _arms(connection: Pipeline, needed: ArmsNeeded) -> list[ArmRow]:
    calls: list[Call] = [("arms", (needed.campaign,))]
    if needed.numbers is not None:
        calls = [("arm", (needed.campaign, number)) for number in needed.numbers]
    return [arm_of(row) for rows in await connection.run(calls) for row in rows]


async def _commit(connection: Pipeline, changes: Sequence[Call]) -> None:
    connection.check()  # from here on a connection that is lost leaves open what was done
    try:
        await connection.run([*changes, ("commit", ())])
    except psycopg.OperationalError as error:
        if connection.closed:
            raise LostInCommit(str(error)) from None
        raise


def _changes(tx: PreloadedTransaction) -> list[Call]:
    """What writes all that has changed, each row once."""
    changes: list[Call] = [("beat", (now,)) for now in tx.beats[-1:]]
    row = tx.campaign_row
    if row is not None and tx.learned:
        values = (row.id, *money_of(row.account), row.account.status, json_text(row.learned), down_text(row))
        changes.append(("save campaign", values))
    elif row is not None and tx.money:
        changes.append(("save money", (row.id, *money_of(row.account), row.account.status)))
    changes += [("save lease", (lease.id, *lease_values(lease))) for lease in tx.changed_leases.values()]
    # one statement for each row, which costs no round trip: a join with a list of rows would have to be planned
    for a in tx.changed_arms.values():
        values = (a.campaign, a.number, json_text(a.learned), a.active)
        changes.append(("save arm", values))
    if tx.made:
        # in the order of their keys: servers that add the same keys under different leases cannot wait in a circle
        made = sorted(tx.made.values(), key=lambda each: each.key)
        changes.append(("add decisions", (as_json([_decision(each) for each in made]),)))
    for d in tx.told.values():
        h = d.hold
        values = (h.state, h.charged, h.overrun, h.reported, d.cost, d.reward, d.failed, d.id)
        changes.append(("save decision", values))
        if h.state != "pending":
            changes.append(("drop pending", (d.expires_at, d.id)))
    if tx.new_events:
        changes.append(("add events", (as_json([_event(each) for each in tx.new_events]),)))
    return changes


def _event(e: Event) -> dict[str, Any]:
    values = {
        "campaign": e.campaign, "kind": e.kind, "at": e.at, "decision": e.decision, "arm": e.arm, "amount": e.amount,
        "reward": e.reward, "lease": e.lease, "turn": e.turn,
    }  # fmt: skip
    return _with_request(values, e)


def _with_request(values: dict[str, Any], of: Decision | Event) -> dict[str, Any]:
    """With what few have; the database takes what is missing for NULL."""
    if of.request is not None:
        values["request"] = of.request
    if of.propensity is not None:
        values["propensity"] = of.propensity
    return values


def _decision(d: Decision) -> dict[str, Any]:
    h = d.hold
    values = {
        "id": d.id, "campaign": d.campaign, "arm": d.arm, "hold": h.amount, "state": h.state, "charged": h.charged,
        "overrun": h.overrun, "reported": h.reported, "cost": d.cost, "reward": d.reward, "key": d.key,
        "payload": d.payload, "created_at": d.created_at, "expires_at": d.expires_at, "lease": d.lease,
        "failed": d.failed,
    }  # fmt: skip
    return _with_request(values, d)
