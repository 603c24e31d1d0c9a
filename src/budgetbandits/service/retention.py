"""Retention: what a campaign did long ago leaves the store for an archive of Parquet files.

A pruning of a campaign goes through these steps. Killed at any point, the next one goes on where this one stopped, and
nothing is lost or there twice:

    close       from now on decisions made before a certain time take no more feedback once their holds are resolved;
                this is an event, and all leases end
    replay      the events are replayed, from the last checkpoint up to one that is as old, and compared with the
                decisions' rows; if anything disagrees, nothing is archived
    archive     the events, and the decisions that came to their end by then, are written to files, which are durable
                before the next step
    checkpoint  the campaign as it was after those events, and the list of files: from here on they count; an event has
                digests of both
    delete      the events and decisions are deleted, some at a time

The events of operators stay, and so do rollups. A decision that had an event later than the checkpoint stays too, as
one of its open decisions, and so does one whose hold is pending; its events stay with it.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from budgetbandits.errors import BadParameter, BudgetBanditsError, Conflict, Disagreement
from budgetbandits.formatting.datetimes import DAY
from budgetbandits.service.audit.archive import Archive, Piece, PieceWriter
from budgetbandits.service.audit.audit import Books, apply, row_difference, wrong_rows
from budgetbandits.service.audit.checkpoint import Checkpoint, unconfirmed, write_checkpoint
from budgetbandits.service.audit.open_decisions import OpenDecisions
from budgetbandits.service.audit.replay import Replay
from budgetbandits.service.audit.slices import event_slices
from budgetbandits.service.leases.leases import Leases
from budgetbandits.service.ledger import DAY_SECONDS_MAX, MICROS
from budgetbandits.service.rollups import Recount, roll_up_campaign
from budgetbandits.service.shared_budgets import members
from budgetbandits.service.stores.contract import (
    Clock,
    Scope,
    Store,
    T,
    Transaction,
    find_campaign,
    isolated,
    moment,
    named_damage,
)
from budgetbandits.service.stores.records import END_OF_TIME, Campaign, DecisionRow, Event, KeyEvent
from budgetbandits.service.stores.sql.statements import EVENT_NUMBER_MAX

SLICE_EVENTS = 200
"""Events that one transaction deletes, with their decisions."""
SLICE_PARTS = 5
"""Parts of a checkpoint that one transaction deletes."""
SLICE_PAGES = 40
"""Pages that one transaction gives back."""

REST = 3.0
"""Length of the pause after each slice, as a multiple of the slice's own time."""


@dataclass(frozen=True)
class PruneResult:
    """The result of one pruning: the numbers of events and decisions in the archive, and of its files."""

    events: int = 0
    decisions: int = 0
    files: int = 0


class Retention:
    """Prunes and deletes the campaigns of a store.

    ``reached`` is called with the name of each step, after each of its transactions. ``rest`` is as `REST`.
    """

    def __init__(
        self,
        store: Store,
        leases: Leases,
        clock: Clock | None = None,
        reached: Callable[[str], None] = lambda step: None,
        rest: float = REST,
    ) -> None:
        self._store = store
        self._leases = leases
        self._clock = clock
        self._reached = reached
        self._rest = rest

    def prune(self, campaign: str, folder: Path, days: float, actor: str | None = None) -> PruneResult:
        """Archive what is older than these days, in this folder. ``actor`` is who the event says has done it."""
        if not 0.0 <= days < math.inf:
            raise BadParameter(f"days is {days!r:.40}; use a number of days that is not negative")
        row, now = self._store.read(lambda tx: (find_campaign(tx, campaign), moment(tx, self._clock)))
        return self._prune(row, folder, float(max(int(now - _kept_seconds(days)), 0)), actor)

    def _prune(self, row: Campaign, folder: Path, before: float, actor: str | None = None) -> PruneResult:
        archive = Archive(folder, row.id)
        with archive.locked():
            base = self._finish_earlier(row.id, archive)
            self._close(row.id, before, actor)
            books, recount = self._store.read(lambda tx: Books.of(tx, row.id)), Recount(EVENT_NUMBER_MAX, [])
            self._disagree(unconfirmed(self._store, row.id, books.checkpoint, books.prunings))
            with OpenDecisions() as open:
                replay = books.replay(self._store, open, recount)
                piece = self._archive(archive, base, replay, recount, before)
                if piece is None:
                    return PruneResult()
                roll_up_campaign(self._store, row.id)
                pieces = (*(base.pieces if base else ()), piece)
                base_seq = base.seq if base else 0
                for _ in write_checkpoint(self._store, replay, recount, pieces, base_seq, self._clock, actor):
                    self._reached("checkpoint")
                archive.note_latest(piece)
                self._delete(row.id, piece.seq, open)
            self._tidy(row.id, piece.seq)
        return PruneResult(piece.events, piece.decisions, len(piece.files))

    def prune_all(self, folder: Path, days: float) -> dict[str, PruneResult | BudgetBanditsError]:
        """Archive what is older than these days, and the rest of that day (UTC), of every campaign that has any, by its
        name. An error in one campaign does not stop the others.

        A campaign's time is that of its latest request: a clock that is far ahead makes nothing old.
        """
        rows, now = self._store.read(lambda tx: (tx.campaigns(), moment(tx, self._clock)))
        results = dict[str, PruneResult | BudgetBanditsError]()
        for row in rows:
            try:
                with named_damage(row.name):
                    before = self._old_before(row.id, now, days)
                    if before is not None:
                        results[row.name] = self._prune(row, folder, before)
            except BudgetBanditsError as error:
                results[row.name] = error
            except Exception as error:
                results[row.name] = BudgetBanditsError(f"nobody has foreseen {error!r:.300}; tell us")
        return results

    def _old_before(self, campaign: str, now: float, days: float) -> float | None:
        """The time before which everything is old; None if nothing after the checkpoint is."""

        def read(tx: Transaction) -> float | None:
            latest = tx.pruning().latest_request(campaign)
            if latest is None:
                return None
            latest = min(now, latest)
            before = latest - latest % DAY - _kept_seconds(days)
            first = tx.events(campaign, tx.pruning().checkpoint(campaign), limit=1)
            return float(max(int(before), 0)) if first and first[0].at < before else None

        return self._store.read(read)

    def delete(self, campaign: str, folder: Path | None = None, actor: str | None = None) -> None:
        """Delete a closed campaign with all that the store has of it, and with its archive in this folder.

        Interrupted, it is finished when it is asked for again.
        """

        def close(tx: Transaction) -> None:
            row = find_campaign(tx, campaign)
            if row.account.status != "closed":
                raise Conflict(f"campaign {row.name!r} is {row.account.status}; close it first")
            if row.account.open:
                raise Conflict(f"decisions of {row.name!r} are open; report on them, or wait until their holds expire")
            tx.save_settings(replace(row, settings=replace(row.settings, archived_before=END_OF_TIME)))

        def drop(tx: Transaction) -> None:
            row, now, keys = find_campaign(tx, campaign), moment(tx, self._clock), tx.keys()
            for key in [key for key in keys if key.campaign == row.id]:
                tx.drop_key(key.prefix)
                tx.add_key_event(KeyEvent("dropped", key.prefix, key.scopes, row.id, now, actor))
            members.leave(tx, row, now, actor)
            tx.drop_campaign(row)

        row = self._store.read(lambda tx: find_campaign(tx, campaign))
        id = row.id
        if folder is not None and not row.settings.being_deleted:
            base = self._store.read(lambda tx: Checkpoint.latest(tx, id))
            Archive(folder, id).check_latest(base.pieces if base else ())
        self._store.write(isolated(campaign, close), Scope(campaign))
        with OpenDecisions() as none:
            self._delete(id, EVENT_NUMBER_MAX, none)
        self._tidy(id, 0)
        while self._slice(lambda tx: tx.pruning().delete_rest(id, SLICE_EVENTS)):
            self._reached("delete")
        if folder is not None:
            Archive(folder, id).delete()
        self._store.write(drop, Scope(campaign))

    # --- the steps -----------------------------------------------------------------------------------------------

    def _finish_earlier(self, campaign: str, archive: Archive) -> Checkpoint | None:
        """Do what a pruning that was interrupted has left to do; the campaign's checkpoint."""
        base = self._store.read(lambda tx: Checkpoint.latest(tx, campaign))
        archive.check_latest(base.pieces if base else ())
        archive.drop_strangers(base.pieces if base else ())
        if base is not None:
            archive.check(base.pieces[-1:])
            archive.note_latest(base.pieces[-1])
            with OpenDecisions() as open:
                base.put_open(self._store, campaign, open)
                self._delete(campaign, base.seq, open)
        self._tidy(campaign, base.seq if base else 0)
        return base

    def _close(self, campaign: str, before: float, actor: str | None) -> None:
        """Decisions made before this time take no more feedback, and all leases end."""

        def work(tx: Transaction) -> None:
            row = self._leases.recalled(tx, find_campaign(tx, campaign))
            if before > row.settings.archived_before:
                tx.save_settings(replace(row, settings=replace(row.settings, archived_before=before)))
                now = moment(tx, self._clock)
                tx.add_event(Event(row.id, "archived", now, amount=int(before) * MICROS, actor=actor))

        self._store.write(isolated(campaign, work), Scope(campaign))
        self._reached("close")

    def _archive(
        self, archive: Archive, base: Checkpoint | None, replay: Replay, recount: Recount, before: float
    ) -> Piece | None:
        """Replay up to the last event that may leave, and write what leaves; None if nothing does."""
        campaign, after = replay.row.id, base.seq if base else 0
        last = self._last_event(campaign, after, before)
        if last == after:
            return None
        names = [arm.name for arm in replay.arms]
        writer = PieceWriter(archive, names, last)
        for events in event_slices(self._store, campaign, after, last):
            for event in events:
                writer.add_event(event)
                apply(replay, event, recount, self._disagree)
            for _, text in wrong_rows(self._store, campaign, replay.finished):
                self._disagree(text)
            for decision in self._rows(list(replay.finished)):
                writer.add_decision(decision)
            replay.finished.clear()
            self._reached("archive")
        for decision in self._closed(replay, before):
            writer.add_decision(decision)
        piece = writer.finish(base.pieces[-1].digest if base else "")
        self._reached("files")
        return piece

    def _last_event(self, campaign: str, after: int, before: float) -> int:
        """The last event before this time at which no lease was open; ``after`` if there is none."""
        leases, last, free = set[str | None](), after, after
        for events in event_slices(self._store, campaign, after, EVENT_NUMBER_MAX):
            for event in events:
                if event.at >= before:
                    return free
                if event.kind == "leased":
                    leases.add(event.lease)
                elif event.kind == "returned":
                    leases.discard(event.lease)
                last = event.seq
                free = free if leases else last
        return free

    def _closed(self, replay: Replay, before: float) -> Iterator[DecisionRow]:
        """Open decisions that are too old for feedback, and have had none since; they are open no more."""
        for chunk in list(replay.open.chunks()):
            for decision in self._rows(
                [id for id, open_decision in chunk.items() if open_decision.created_at < before]
            ):
                wrong = row_difference(decision.id, decision, chunk[decision.id], replay.row.id)
                if decision.hold.state != "pending" and wrong is None:
                    replay.open.take(decision.id)
                    yield decision

    def _rows(self, ids: list[str]) -> Iterator[DecisionRow]:
        for first in range(0, len(ids), 1000):
            yield from self._store.read(lambda tx, first=first: tx.decisions_of(ids[first : first + 1000]))  # type: ignore[misc]

    def _disagree(self, text: str | None) -> None:
        if text is not None:
            raise Disagreement(f"{text:.300}; nothing was archived: run 'budgetbandits campaign verify', and ask us")

    def _delete(self, campaign: str, upto: int, open: OpenDecisions) -> None:
        """Delete events up to this one and their decisions, but not those of decisions that are open."""
        kept = self._store.read(lambda tx: tx.rollups().watermark(campaign)).last_overrun_event  # pages show its time
        after = 0

        def work(tx: Transaction) -> int | None:
            result = tx.pruning().prunable(campaign, after, upto, SLICE_EVENTS)
            if not result:
                return None
            left = {decision for _, decision in result if decision is None or decision not in open}
            events = [seq for seq, decision in result if decision in left and seq != kept]
            tx.pruning().delete(events, [decision for decision in left if decision is not None])
            return result[-1][0]

        while (pruned := self._slice(work)) is not None:
            after = pruned
            self._reached("delete")

    def _tidy(self, campaign: str, checkpoint: int) -> None:
        """Drop parts of other checkpoints, and give room back."""
        while self._slice(lambda tx: tx.pruning().drop_parts(campaign, checkpoint, SLICE_PARTS)):
            self._reached("tidy")
        while self._slice(lambda tx: tx.pruning().shrink(SLICE_PAGES)):
            self._reached("shrink")

    def _slice(self, work: Callable[[Transaction], T]) -> T:
        begun = time.perf_counter()
        result = self._store.write(work)
        time.sleep(self._rest * (time.perf_counter() - begun))
        return result


def _kept_seconds(days: float) -> float:
    """The seconds of these days: one day is the longest there is, since what the present day was charged may have to be
    counted again."""
    return max(days * DAY, DAY_SECONDS_MAX) if days >= 1.0 else days * DAY
