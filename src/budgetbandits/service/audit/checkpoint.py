"""A checkpoint: a campaign after one of its events, as a replay of all events up to it has made it.

It holds everything that a replay needs to go on: money, what was learned, which terms held, the decisions that were
open, and the counts that rollups are compared with. So an audit begins there, and what came before can leave the store
for the archive. It is made from events alone, never from the rows that an audit compares them with.

A checkpoint is JSON in parts of bounded size, written in as many transactions. The first part is written last and makes
the others count, so one that was interrupted is none. With it goes an event of the kind ``pruned``, with digests of all
parts and of the archive's files: a checkpoint that is changed contradicts the ledger (`unconfirmed`).
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import islice
from typing import Any

from pydantic_core import from_json, to_json

from budgetbandits.errors import BadState, Conflict
from budgetbandits.formatting.datetimes import DAY
from budgetbandits.service import ledger
from budgetbandits.service.audit.archive import Piece, new_digest
from budgetbandits.service.audit.open_decisions import OpenDecision, OpenDecisions
from budgetbandits.service.audit.replay import Replay
from budgetbandits.service.grants import read_grants
from budgetbandits.service.ledger import Account
from budgetbandits.service.rollups import Recount
from budgetbandits.service.session_rows import arm_state, campaign_row, read_session
from budgetbandits.service.stores.contract import Clock, Scope, Store, Transaction, find_campaign, moment
from budgetbandits.service.stores.records import ArmRow, Campaign, Counts, Event
from budgetbandits.service.stores.sql.rows import json_text

ARMS_IN_PART, COUNTS_IN_PART, DECISIONS_IN_PART = 200, 2000, 1000
"""Rows of a part: a few hundred kilobytes."""


@dataclass(frozen=True)
class Checkpoint:
    """The first part of a checkpoint.

    seq            the number of the last event it knows of
    policy         the campaign's policy then
    version        which of its terms held, of `CampaignSettings.versions`
    closed_before  decisions made before this time took no more feedback
    account        the money
    learned        what was learned that does not belong to one arm
    booked         micros that the decisions of each quarter of an hour hold and were charged, of the last days
    counted_since  days before this are counted together, by arm
    pieces         what the archive has, the oldest first
    parts          how many parts follow
    """

    seq: int
    policy: str
    version: int
    closed_before: float
    account: Account
    learned: dict[str, Any]
    booked: dict[int, int]
    counted_since: int
    pieces: tuple[Piece, ...]
    parts: int

    @classmethod
    def latest(cls, tx: Transaction, campaign: str) -> Checkpoint | None:
        """The latest checkpoint of a campaign."""
        pruning = tx.pruning()
        seq = pruning.checkpoint(campaign)
        text = pruning.part(campaign, seq, 0) if seq else None
        if text is None:
            return None
        values = json.loads(text)
        parsed = {
            "account": Account(**values["account"]),
            "booked": {int(day): micros for day, micros in values["booked"].items()},
            "pieces": tuple(Piece.from_json(value) for value in values["pieces"]),
        }
        return cls(**{**values, **parsed})

    def replay(self, store: Store, row: Campaign, arms: list[ArmRow], open: OpenDecisions, recount: Recount) -> Replay:
        """A replay that goes on from here; ``row`` and ``arms`` are as they are now. Fills the other two."""
        arm_rows: list[ArmRow] = []
        for kind, values in self._rows(store, row.id):
            if kind == "arms":
                number, cap, active, learned = values
                arm_rows.append(ArmRow(row.id, number, arms[number].name, cap, learned, active))
            elif kind == "counts":
                recount.begin_with(Counts(*values))
        self.put_open(store, row.id, open)
        recount.since = self.counted_since
        before = replace(row, policy=self.policy, account=self.account, learned=self.learned)
        settings = row.settings.versions[self.version]
        session = read_session(replace(before, settings=settings), arm_rows)
        grants, archived_up_to = store.read(  # operators' events are never deleted
            lambda tx: (read_grants(tx, row.id, self.seq), tx.pruning().archived_up_to(row.id, self.seq))
        )
        return Replay(
            before, arms, session, open, self.account, booked=Counter(self.booked), version=self.version,
            closed_before=self.closed_before, archived_up_to=archived_up_to, restored=None, grants=grants,
        )  # fmt: skip

    def digest(self, store: Store, campaign: str) -> str:
        """The digest of all its parts."""
        digest = new_digest()
        for part in (*range(1, self.parts + 1), 0):  # as they were written
            digest.update(to_json(self._part(store, campaign, part)))
        return digest.hexdigest()

    def put_open(self, store: Store, campaign: str, open: OpenDecisions) -> None:
        """The decisions that were open."""
        for kind, values in self._rows(store, campaign):
            if kind == "open":
                open.put(values[0], OpenDecision.from_row(values))

    def _rows(self, store: Store, campaign: str) -> Iterator[tuple[str, list[Any]]]:
        for part in range(1, self.parts + 1):
            kind, rows = json.loads(self._part(store, campaign, part))
            for values in rows:
                yield kind, values

    def _part(self, store: Store, campaign: str, part: int) -> str:
        text = store.read(lambda tx: tx.pruning().part(campaign, self.seq, part))
        if text is None:
            raise BadState(f"part {part} of the checkpoint at event {self.seq} is missing; restore an undamaged copy")
        return text


def unconfirmed(store: Store, campaign: str, checkpoint: Checkpoint | None, prunings: Sequence[Event]) -> str | None:
    """The difference between a campaign's checkpoint and the events of its prunings, in words; None if there is
    none."""
    recorded = [from_json(event.request or "{}") for event in prunings]
    if checkpoint is None:
        return "there is no checkpoint, and its events tell of prunings" if recorded else None
    pieces, before = checkpoint.pieces, ["", *(piece.digest for piece in checkpoint.pieces)]
    for piece, last in zip(pieces, before, strict=False):
        if piece.before != last:
            return f"the list of archived files up to event {piece.seq} does not go on from those before"
    if [(event.get("seq"), event.get("archive")) for event in recorded] != [
        (piece.seq, piece.digest) for piece in pieces
    ]:
        return "the list of archived files is not the one that the events of the prunings tell of"
    if not recorded or recorded[-1]["checkpoint"] != checkpoint.digest(store, campaign):
        return f"the checkpoint after event {checkpoint.seq} is not the one that the event of the pruning tells of"
    return None


def write_checkpoint(
    store: Store, replay: Replay, recount: Recount, pieces: Sequence[Piece], base: int, clock: Clock | None,
    actor: str | None,
) -> Iterator[int]:  # fmt: skip
    """Write a checkpoint of this replay after the last event of the last piece, and an event with its digest; yields
    after each transaction.

    ``base`` is the checkpoint that the replay went on from: if there is another one by now, this one is given up.
    """
    campaign, seq, parts, digest = replay.row.id, pieces[-1].seq, 0, new_digest()
    recount.sum_before(recount.latest_day)
    for content in _contents(replay, recount):
        parts += 1
        digest.update(to_json(content))
        store.write(lambda tx, part=parts, content=content: tx.pruning().add_part(campaign, seq, part, content))  # type: ignore[misc]
        yield parts
    head = Checkpoint(
        seq, replay.row.policy, replay.version, replay.closed_before, replay.account,
        campaign_row(replay.session, replay.row).learned, _lately(replay), recount.since, tuple(pieces), parts,
    )  # fmt: skip

    first = json_text(asdict(head))
    digest.update(to_json(first))
    digests = {"seq": seq, "archive": pieces[-1].digest, "checkpoint": digest.hexdigest()}

    def commit(tx: Transaction) -> None:
        find_campaign(tx, campaign)  # which keeps others from changing it: the event is the campaign's own
        if tx.pruning().checkpoint(campaign) != base:
            raise Conflict("another process has pruned this campaign meanwhile; nothing was deleted by this one")
        tx.pruning().add_part(campaign, seq, 0, first)
        tx.add_event(Event(campaign, "pruned", moment(tx, clock), actor=actor, request=json_text(digests)))

    store.write(commit, Scope(campaign))
    yield 0


def _lately(replay: Replay) -> dict[int, int]:
    """Amounts booked for quarters of days that have not ended; earlier quarters take no more decisions."""
    since = replay.closed_before - 2.0 * DAY
    return {quarter: micros for quarter, micros in replay.booked.items() if quarter * ledger.QUARTER >= since}


def _contents(replay: Replay, recount: Recount) -> Iterator[str]:
    session = replay.session
    arms = ((arm, int(session.caps[arm]), bool(session.state.active[arm]), arm_state(session, arm))
            for arm in range(len(session.names)))  # fmt: skip
    yield from _parts("arms", arms, ARMS_IN_PART)
    counts = ((entry.begins, entry.arm, *entry.values()) for entry in recount.made)
    yield from _parts("counts", counts, COUNTS_IN_PART)
    open = (open_decision.to_row(id) for chunk in replay.open.chunks() for id, open_decision in chunk.items())
    yield from _parts("open", open, DECISIONS_IN_PART)


def _parts(kind: str, rows: Iterable[Sequence[Any]], size: int) -> Iterator[str]:
    rest = iter(rows)
    while chunk := list(islice(rest, size)):
        yield json_text([kind, chunk])
