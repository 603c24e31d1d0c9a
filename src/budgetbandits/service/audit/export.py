"""A campaign's decisions or events as a table: CSV, or Parquet if polars is installed (extra archive).

A table is read in slices and written as it is read, so it takes little memory, however long it is. It has what there
was when the export began; each decision is as it was when its slice was read.

A decision's ``arms`` are those that it was chosen from: active, allowed by the request, ready and affordable; empty if
that was every arm. A propensity is the probability of the choice among these. Its ``features`` and ``metadata`` are
JSON objects.
"""

from __future__ import annotations

import csv
import io
import json
import os
import re
import tempfile
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import IO, Any, Literal, get_args

from budgetbandits.errors import BadParameter, Conflict, install
from budgetbandits.formatting.tables import csv_cell
from budgetbandits.service.audit.archive import writing
from budgetbandits.service.audit.checkpoint import Checkpoint
from budgetbandits.service.audit.open_decisions import OpenDecisions
from budgetbandits.service.audit.slices import decision_slices, event_slices
from budgetbandits.service.campaign_checks import ARM_EVENTS
from budgetbandits.service.ledger import known_units, to_units
from budgetbandits.service.request import ResolvedRequest
from budgetbandits.service.stores.contract import Store, Transaction, find_campaign, named_damage
from budgetbandits.service.stores.records import Campaign, DecisionRow, Event

Table = Literal["decisions", "events"]
Format = Literal["csv", "parquet"]
Row = tuple[Any, ...]

TEXT, NUMBER, COUNT = str, float, int
COLUMNS: dict[Table, dict[str, type]] = {
    "decisions": {
        "decision": TEXT, "key": TEXT, "arm": TEXT, "state": TEXT, "hold": NUMBER, "cost": NUMBER, "charged": NUMBER,
        "overrun": NUMBER, "reward": NUMBER, "created_at": NUMBER, "expires_at": NUMBER,
        "lease": TEXT, "segment": TEXT, "arms": TEXT, "price": NUMBER, "propensity": NUMBER, "failed": COUNT,
        "features": TEXT, "metadata": TEXT,
    },
    "events": {
        "seq": COUNT, "kind": TEXT, "at": NUMBER, "decision": TEXT, "arm": TEXT, "amount": NUMBER, "reward": NUMBER,
        "lease": TEXT, "actor": TEXT, "request": TEXT, "propensity": NUMBER,
    },
}  # fmt: skip

CHANGES_MAX = 2**31 - 1
"""All of them: a campaign has few."""

ROW_GROUP = 64
"""Slices that are written to Parquet at once: it is a format of columns."""

PIECE_BYTES = 1 << 18
"""Bytes that are copied at once."""

REMEDIES = ("make room, or set TMPDIR for temporary files", "choose another place")
"""Where there is no room to write, and where it cannot be written otherwise."""


def export(store: Store, campaign: str, path: Path, table: Table = "decisions") -> int:
    """Write a campaign's table, all of it or nothing; the format is that of the name's ending. How many rows."""
    kind = path.suffix.removeprefix(".")
    if kind not in get_args(Format):
        raise BadParameter(f"{path.name!r:.60} ends in {path.suffix or 'nothing'!r}; use .csv or .parquet")
    count = 0

    def counted(slices: Iterator[list[Row]]) -> Iterator[list[Row]]:
        nonlocal count
        for rows in slices:
            count += len(rows)
            yield rows

    with named_damage(campaign), writing(path, *REMEDIES):
        rows = counted(_slices(store, campaign, table))
        handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
        partial = Path(name)
        try:
            with open(handle, "wb") as file:
                if kind == "parquet":
                    _write_parquet(table, rows, file)
                else:
                    file.writelines(_csv(table, rows))
            partial.replace(path)
        finally:
            partial.unlink(missing_ok=True)
    return count


def pieces(store: Store, campaign: str, table: Table, format: Format) -> Iterator[bytes]:
    """The same table as the bytes of a file, some at a time. Parquet has to be written to a temporary file first."""
    rows = _slices(store, campaign, table)
    if format == "csv":
        yield from _csv(table, rows)
        return
    with writing(Path(tempfile.gettempdir()), *REMEDIES), tempfile.TemporaryFile() as file:
        _write_parquet(table, rows, file)
        file.seek(0)
        while piece := file.read(PIECE_BYTES):
            yield piece


def _csv(table: Table, slices: Iterator[list[Row]]) -> Iterator[bytes]:
    text = io.StringIO(newline="")
    writer = csv.writer(text)
    writer.writerow(COLUMNS[table])
    for rows in slices:
        writer.writerows([csv_cell(cell) if isinstance(cell, str) else cell for cell in row] for row in rows)
        yield text.getvalue().encode()
        text.seek(0)
        text.truncate()
    yield text.getvalue().encode()


def _write_parquet(table: Table, slices: Iterator[list[Row]], file: IO[bytes]) -> None:
    try:
        import polars
        from polars.io.plugins import register_io_source
    except ImportError:
        raise BadParameter(f"Parquet needs polars; {install('archive')}, or export to .csv") from None
    kinds = {TEXT: polars.String(), NUMBER: polars.Float64(), COUNT: polars.Int64()}
    schema = {name: kinds[kind] for name, kind in COLUMNS[table].items()}
    problem: list[BaseException] = []

    def frames(*_: object) -> Iterator[polars.DataFrame]:
        try:
            for rows in _grouped(slices):
                yield polars.DataFrame(rows, schema=schema, orient="row")
        except BaseException as error:  # polars would make it one of its own
            problem.append(error)
            raise

    try:
        register_io_source(frames, schema=schema).sink_parquet(file, maintain_order=True)
    except polars.exceptions.PolarsError as error:
        if problem:
            raise problem[0] from None
        number = re.search(r"os error (\d+)", str(error))
        if number is None:
            raise
        raise OSError(int(number[1]), os.strerror(int(number[1]))) from None


def _grouped(slices: Iterator[list[Row]]) -> Iterator[list[Row]]:
    pages = iter(slices)
    while group := list(islice(pages, ROW_GROUP)):
        yield [row for rows in group for row in rows]


def _slices(store: Store, campaign: str, table: Table) -> Iterator[list[Row]]:
    """The rows of a table. The campaign is looked up at once, not when the first of them is asked for."""

    def begin(tx: Transaction) -> tuple[Campaign, list[str], _ArmTimeline, int, Checkpoint | None]:
        row = find_campaign(tx, campaign)
        names = [arm.name for arm in tx.arms(row.id)]
        timeline, last = _ArmTimeline.of(tx, row.id, len(names)), tx.last_event(row.id)
        return row, names, timeline, last, Checkpoint.latest(tx, row.id)

    row, names, present, last, pruned = store.read(begin)
    if table == "events":
        events = event_slices(store, row.id, pruned.seq if pruned else 0, last)
        pages = ([_event(event, names) for event in page] for page in events)
    else:
        features = row.settings.terms.features or ()
        pages = (
            [_decision(decision, names, features, present.at(number)) for number, decision in page]
            for page in _decisions(store, row.id, last, pruned)
        )
    return _whole(store, row.id, pages, pruned)


def _decisions(
    store: Store, campaign: str, last: int, pruned: Checkpoint | None
) -> Iterator[list[tuple[int, DecisionRow]]]:
    """The decisions that are not in the archive: of those before the checkpoint, the ones that were open."""
    with OpenDecisions() as open:
        if pruned is not None:
            pruned.put_open(store, campaign, open)
        for page in decision_slices(store, campaign, last):
            yield [entry for entry in page if pruned is None or entry[0] > pruned.seq or entry[1].id in open]


def _whole(store: Store, campaign: str, pages: Iterator[list[Row]], pruned: Checkpoint | None) -> Iterator[list[Row]]:
    """The pages, and an error in place of the end if some of it has left for the archive meanwhile."""
    yield from pages
    if store.read(lambda tx: tx.pruning().checkpoint(campaign)) != (pruned.seq if pruned else 0):
        raise Conflict("the campaign was pruned while it was exported, so rows are missing; export it again")


def archived_rows(store: Store, campaign: str, table: Table) -> int:
    """How many rows of a table are in the archive, and so in no export."""

    def read(tx: Transaction) -> int:
        checkpoint = Checkpoint.latest(tx, find_campaign(tx, campaign).id)
        return 0 if checkpoint is None else sum(getattr(piece, table) for piece in checkpoint.pieces)

    return store.read(read)


class _ArmTimeline:
    """Which arms there were to choose from, from event to event: they come and go."""

    def __init__(self, arms: set[int], changes: list[Event]) -> None:
        self._arms = arms
        self._changes = changes

    @classmethod
    def of(cls, tx: Transaction, campaign: str, arms: int) -> _ArmTimeline:
        operators = tx.pages().operator_events(campaign, CHANGES_MAX)  # which has an index of its own
        changes = [event for event in reversed(operators) if event.kind in ARM_EVENTS]
        added = {event.arm for event in changes if event.kind == "arm added"}
        return cls(set(range(arms)) - added, changes)

    def at(self, number: int) -> set[int]:
        """The numbers at the event of this number; callers ask in the order of events."""
        while self._changes and self._changes[0].seq < number:
            event = self._changes.pop(0)
            assert event.arm is not None
            (self._arms.discard if event.kind == "arm retired" else self._arms.add)(event.arm)
        return self._arms


def _event(e: Event, names: list[str]) -> Row:
    arm = None if e.arm is None else names[e.arm]
    return (
        e.seq,
        e.kind,
        e.at,
        e.decision,
        arm,
        known_units(e.amount),
        e.reward,
        e.lease,
        e.actor,
        e.request,
        e.propensity,
    )


def _decision(d: DecisionRow, names: list[str], features: Sequence[str], present: set[int]) -> Row:
    h, wanted = d.hold, ResolvedRequest.from_json(d.request) or ResolvedRequest()
    money = (to_units(h.amount), known_units(d.cost), to_units(h.charged), to_units(h.overrun))
    could = present if wanted.arms is None else present.intersection(wanted.arms)
    could = could.difference(wanted.unavailable or ())
    arms = None
    if len(could) < len(names):
        arms = json.dumps([names[arm] for arm in sorted(could)], ensure_ascii=False)
    given = None
    if wanted.features is not None:
        given = json.dumps(dict(zip(features, wanted.features, strict=True)), ensure_ascii=False)
    notes = None if wanted.metadata is None else json.dumps(wanted.metadata, ensure_ascii=False)
    request = (wanted.segment, arms, known_units(wanted.price(d.arm)), d.propensity, int(d.failed), given, notes)
    return d.id, d.key, names[d.arm], h.state, *money, d.reward, d.created_at, d.expires_at, d.lease, *request
