"""Replay a campaign's events and compare: the money, every hold, every choice and everything that was learned.

The events are written in the transaction of what they tell, and never changed. If the rows that decisions are made from
say anything else than their replay, something is wrong with the database or with us.

The campaign, its arms and its leases are read once, with which events there are by then, and these are replayed in
slices. A decision's row is compared once its feedback is complete, since nothing changes it from there on, so that only
open decisions must be remembered. The rows of these are compared at the end. One with new feedback is ahead of the
replay: the next audit compares it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Any

from pydantic_core import from_json, to_json

from budgetbandits.errors import BadState, BudgetBanditsError, Conflict, NotFound, UnknownPolicy
from budgetbandits.service.audit.archive import Archive, Piece
from budgetbandits.service.audit.checkpoint import Checkpoint, unconfirmed
from budgetbandits.service.audit.open_decisions import OpenDecision, OpenDecisions
from budgetbandits.service.audit.replay import Replay, first_caps, policy_at
from budgetbandits.service.audit.slices import ROWS_READ, Cut, event_slices
from budgetbandits.service.campaign_session import CampaignSession
from budgetbandits.service.ledger import Account
from budgetbandits.service.own_policies import policy_of
from budgetbandits.service.rollups import Recount
from budgetbandits.service.session_rows import arm_state
from budgetbandits.service.stores.contract import UNREADABLE, Store, Transaction, find_campaign
from budgetbandits.service.stores.records import ArmRow, Campaign, DecisionRow, Event
from budgetbandits.terms import TERMS, Terms

DIFFERENCES_LISTED_MAX = 1000
"""Differences that are put into words; the rest are counted."""

ARCHIVED_COMPARED = 20_000
"""Decisions that are looked up in the archive at once: each time its files are read."""

ROUNDING = 1e-3
"""Seconds by which a sum of two times may differ from what it should be."""

Progress = Callable[[int, int], None]
"""Gets the number of the event that was replayed, and that of the last one."""


def verify(
    store: Store, campaign: str, progress: Progress = lambda read, last: None, archive: Path | None = None
) -> list[str]:
    """The differences between rows and events, in words; empty if all agree.

    A campaign that was pruned is replayed from its checkpoint on; with the folder of its ``archive``, from the
    beginning.
    """

    def compare(differences: Differences) -> None:
        books = store.read(lambda tx: Books.of(tx, campaign))
        for _ in replayed(store, books, differences, progress, archive):
            pass

    def checkpoint(tx: Transaction) -> int:
        try:
            row = find_campaign(tx, campaign)
            check_not_being_deleted(row)
            return tx.pruning().checkpoint(row.id)
        except UNREADABLE as error:
            if isinstance(error, NotFound | Conflict):
                raise
            return 0

    return compared(store, f"campaign {campaign!r:.60}", compare, checkpoint)


def check_not_being_deleted(row: Campaign) -> None:
    """Refuse to audit a campaign of whose events a part is missing."""
    if row.settings.being_deleted:
        end = f"budgetbandits campaign delete {row.name!r:.60}"
        raise Conflict(f"{row.name!r:.60} is being deleted; bring that to its end: {end}")


def compared(
    store: Store, what: str, compare: Callable[[Differences], None], checkpoints: Callable[[Transaction], object]
) -> list[str]:
    """The differences that a comparison notes, and whether rows can be read at all; compared again if there are any and
    something was pruned meanwhile, as its ``checkpoints`` say: what was pruned was missing."""
    while True:
        differences, before = Differences(), store.read(checkpoints)
        try:
            compare(differences)
        except (BudgetBanditsError, *UNREADABLE) as error:
            if isinstance(error, BudgetBanditsError) and not isinstance(error, UnknownPolicy | BadState):
                store.read(checkpoints)  # raises if it was deleted meanwhile, which is the reason
                raise
            differences.add(f"rows of {what} cannot be read: {error!r:.200}; restore an undamaged copy")
        if not differences.listed() or store.read(checkpoints) == before:
            return differences.listed()


def replayed(
    store: Store,
    books: Books,
    differences: Differences,
    progress: Progress = lambda read, last: None,
    folder: Path | None = None,
) -> Iterator[tuple[Event, Account, Account, float | None]]:
    """Replay a campaign and note what does not agree. Yields each event that the store has, with the campaign's money
    before and after it, and when the decision was made that it is about, if it is about one."""
    cut, checkpoint = books.cut, books.checkpoint
    differences.add(unconfirmed(store, books.row.id, checkpoint, books.prunings))
    with OpenDecisions() as open:
        replay = books.replay(store, open, books.recount, from_checkpoint=folder is None)
        if checkpoint is not None and folder is not None:
            _replay_archive(Archive(folder, books.row.id), checkpoint, replay, books.recount, differences)
        for events in event_slices(store, books.row.id, 0 if checkpoint is None else checkpoint.seq, cut.last):
            for event in events:
                if cut.has(event):
                    before = replay.account
                    apply(replay, event, books.recount, differences.add)
                    change = replay.changed
                    yield event, before, replay.account, None if change is None else change[1].created_at
            for _, text in wrong_rows(store, books.row.id, replay.finished):
                differences.add(text)
            replay.finished.clear()
            progress(events[-1].seq if events else cut.last, cut.last)
        _compare_books(books, replay, differences)
        _compare_open(store, books, open, differences)
    for text in books.recount.differences():
        differences.add(text)


def apply(replay: Replay, event: Event, recount: Recount, note: Callable[[str | None], None]) -> None:
    """Replay an event and count it; ``note`` gets the reason if it cannot have happened."""
    replay.changed = None
    note(replay.apply(event))
    if replay.changed is not None:
        recount.add(event, *replay.changed)


def _replay_archive(
    archive: Archive, checkpoint: Checkpoint, replay: Replay, recount: Recount, differences: Differences
) -> None:
    """Replay what the archive has, and compare its decisions and the digests of its files."""
    archive.check(checkpoint.pieces)
    for piece in checkpoint.pieces:
        for events in archive.events(piece):
            for event in events:
                apply(replay, event, recount, differences.add)
            if len(replay.finished) >= ARCHIVED_COMPARED:
                _compare_archived(archive, piece, replay, differences)
        _compare_archived(archive, piece, replay, differences)
        _close_archived(archive, piece, replay, differences)
        for path in archive.changed(piece):
            differences.add(f"{path} is not as it was written; restore an undamaged copy of the archive")


def _compare_archived(archive: Archive, piece: Piece, replay: Replay, differences: Differences) -> None:
    """Decisions that came to their end in this piece."""
    archived = {decision.id: decision for decision in archive.decisions_of(piece, replay.finished)}
    for id, open_decision in replay.finished.items():
        differences.add(row_difference(id, archived.get(id), open_decision, replay.row.id))
    replay.finished.clear()


def _close_archived(archive: Archive, piece: Piece, replay: Replay, differences: Differences) -> None:
    """Compare the decisions that are still open after the replay, too old for more feedback, with their rows in the
    archive."""
    for ids in [list(chunk) for chunk in replay.open.chunks(ARCHIVED_COMPARED)]:
        for decision in archive.decisions_of(piece, ids):
            differences.add(row_difference(decision.id, decision, replay.open.take(decision.id), replay.row.id))


@dataclass
class Books:
    """A campaign at one moment: its rows, how many arms it began with, its leases and events, and its rollups."""

    row: Campaign
    arms: list[ArmRow]
    first: int
    cut: Cut
    recount: Recount
    checkpoint: Checkpoint | None
    prunings: list[Event]
    """The events of all prunings, in order; they are never deleted."""
    begun: Event | None
    """Its first event, which is never deleted."""
    listed_as: str | None
    """Its name in the list of names."""

    @classmethod
    def of(cls, tx: Transaction, campaign: str) -> Books:
        """The books of a campaign."""
        row = find_campaign(tx, campaign)
        arms = tx.arms(row.id)
        added = tx.events(row.id, limit=1, kind="arm added")
        first = added[0].arm if added else None
        number = len(arms) if first is None else first
        begun = tx.events(row.id, limit=1)
        return cls(
            row, arms, number, Cut.of(tx, row.id), Recount.of(tx, row.id), Checkpoint.latest(tx, row.id),
            tx.pruning().prunings(row.id), begun[0] if begun else None, tx.pages().names([row.id]).get(row.id),
        )  # fmt: skip

    def replay(self, store: Store, open: OpenDecisions, recount: Recount, from_checkpoint: bool = True) -> Replay:
        """A replay that begins at the checkpoint, if there is one, or at the beginning."""
        # all that it has played, or an error before anything is compared
        policies = [
            policy_of(replace(self.row, policy=policy_at(self.row, number), settings=settings))
            for number, settings in enumerate(self.row.settings.versions)
        ]
        if from_checkpoint and self.checkpoint is not None:
            return self.checkpoint.replay(store, self.row, self.arms, open, recount)
        first = self.arms[: self.first]
        names, caps = [arm.name for arm in first], first_caps(self.row, first)
        session = CampaignSession.new(policies[0], names, caps, self.row.settings.versions[0])
        return Replay(self.row, self.arms, session, open)


class Differences:
    """However many there are, a number of them in words."""

    def __init__(self) -> None:
        self._texts: list[str] = []
        self._more = 0

    def add(self, text: str | None) -> None:
        """Add a difference, if there is one."""
        if text is None:
            return
        if len(self._texts) < DIFFERENCES_LISTED_MAX:
            self._texts.append(text)
        else:
            self._more += 1

    def listed(self) -> list[str]:
        """The differences as lines; beyond the limit, only their number."""
        return self._texts + ([f"and {self._more:,} more"] if self._more else [])


def _compare_books(books: Books, replay: Replay, differences: Differences) -> None:
    """The campaign's row, its arms and its leases."""
    row, session = books.row, replay.session
    if replay.account != row.account:
        differences.add(f"the campaign's row says {row.account}, its events {replay.account}")
    if replay.closed_before != row.settings.archived_before:
        differences.add(
            f"decisions made before {row.settings.archived_before} are archived, by the events {replay.closed_before}"
        )
    if replay.restored is not None and replay.restored != (row.settings.restored_from is not None):
        waits = "waits" if row.settings.restored_from is not None else "does not wait"
        differences.add(f"the campaign's row {waits} to hear what was spent since a copy, against its events")
    if books.listed_as != row.name:
        differences.add(f"the campaign's row has the name {row.name!r}, the list of names {books.listed_as!r}")
    if books.begun is not None and books.begun.at != row.created_at:
        differences.add(f"the campaign's row says it was created at {row.created_at}, its events {books.begun.at}")
    for text in _wrong_terms(books):
        differences.add(text)
    if replay.changes_untold:
        differences.add(f"the campaign's row has {replay.changes_untold} more changes of terms than its events")
    cut_leases, replayed = books.cut.leases, {id: lent.lease for id, lent in replay.leases.items()}
    for id in sorted(cut_leases.keys() | replayed.keys()):
        if cut_leases.get(id) != replayed.get(id):
            differences.add(f"lease {id}: the row says {cut_leases.get(id)}, the events {replayed.get(id)}")
    for arm in books.arms:
        learned = arm_state(session, arm.number)
        cap = int(session.caps[arm.number])
        if arm.cost_cap != cap:
            differences.add(f"arm {arm.name!r}: the row says it may cost {arm.cost_cap}, the events {cap}")
        if arm.learned != learned or arm.active != session.state.active[arm.number]:
            differences.add(f"arm {arm.name!r}: the row says {arm.learned}, the events {learned}")
    kept = row.learned["single"] | {"segments": row.learned.get("segments", [])}
    expected = session.learner.shared_state() | {"segments": list(session.segments)}
    if kept != expected:
        differences.add(f"the campaign's row says {kept}, its events {expected}")


def _wrong_terms(books: Books) -> Iterator[str]:
    """Terms in the campaign's row that neither its first event nor a change has made so."""
    versions = books.row.settings.versions
    facts = from_json((books.begun.request if books.begun is not None else None) or "{}")
    expected = _as_json(versions[0].terms) if "terms" not in facts else _as_json(Terms()) | facts["terms"]
    for number, settings in enumerate(versions):
        expected |= {name: values[1] for name, values in settings.change.items() if name in TERMS} if number else {}
        actual = _as_json(settings.terms)
        for name in TERMS:
            if actual[name] != expected[name]:
                when = f"after {number} changes of terms" if number else "from the beginning"
                yield f"the campaign's row has {name} {actual[name]!r} {when}, its events {expected[name]!r}"


def _as_json(terms: Terms) -> dict[str, Any]:
    result: dict[str, Any] = from_json(to_json(vars(terms)))
    return result


def _compare_open(store: Store, books: Books, open: OpenDecisions, differences: Differences) -> None:
    """The rows of decisions that wait for feedback."""
    campaign, cut = books.row.id, books.cut
    ahead: set[str] = set()
    """Decisions with feedback that has not been replayed."""
    after = cut.first
    """Number of the event up to which feedback was examined."""
    longest = max(version.terms.hold_seconds for version in books.row.settings.versions)
    for chunk in open.chunks():
        wrong = wrong_rows(store, campaign, chunk, longest)
        if wrong:  # feedback before these rows were read has its event by now
            present = store.read(lambda tx: Cut.of(tx, campaign))
            for events in event_slices(store, campaign, after, present.last):
                later = [event.decision for event in events if not cut.has(event)]
                ahead.update(id for id in later if id is not None and id in open)
            after = max(after, present.first)
        for id, text in wrong:
            if id not in ahead:
                differences.add(text)


def wrong_rows(
    store: Store, campaign: str, decisions: Mapping[str, OpenDecision], longest: float = math.inf
) -> list[tuple[str, str]]:
    """Those of these decisions whose rows say something else, each with words for it. No hold lasts longer than
    ``longest``."""
    wrong, entries = [], iter(decisions.items())
    while chunk := dict(islice(entries, ROWS_READ)):
        ids = list(chunk)
        rows, pending = store.read(
            lambda tx, ids=ids: ({decision.id: decision for decision in tx.decisions_of(ids)}, tx.pending_of(ids))  # type: ignore[misc]
        )
        for id, open_decision in chunk.items():
            row = rows.get(id)
            text = row_difference(id, row, open_decision, campaign)
            if text is not None:
                wrong.append((id, text))
            elif row and row.hold.state == "pending" and row.expires_at > row.created_at + longest + ROUNDING:
                wrong.append((id, f"decision {id} expires at {row.expires_at}, later than any hold of the campaign"))
            elif row and pending.get(id) != (row.expires_at if row.hold.state == "pending" else None):
                text = f"decision {id} is {row.hold.state}, and the list of what may expire says otherwise"
                wrong.append((id, text))
    return wrong


def row_difference(id: str, decision: DecisionRow | None, known: OpenDecision, campaign: str) -> str | None:
    """The difference between a decision's row and its events, in words; None if there is none."""
    same = decision is not None and decision.campaign == campaign
    if not same or any(getattr(decision, name) != getattr(known, name) for name in OpenDecision.__slots__):
        return f"decision {id}: the row says {decision}, the events of {campaign} {known}"
    return None
