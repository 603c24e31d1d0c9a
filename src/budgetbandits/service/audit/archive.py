"""The archive: events and decisions that have left the store, as Parquet files in a folder that the operator names.

    FOLDER/CAMPAIGN/2026-01/events-000000125000-0001.parquet

A campaign's folder has its id, and in it a folder for each month (UTC). The columns are those of the store's tables,
money in micros, and the names of the arms. What one pruning has written is a *piece*. The store's checkpoint lists the
files of each piece: a file that it does not list is left over from a pruning that was interrupted, and is deleted by
the next. Files are complete and durable before the checkpoint is written, and never changed. A file ``latest`` has the
digest of the latest piece: a store whose checkpoint does not list that is a copy, and leaves the folder alone.

So a digest of its bytes says whether a file is the one that was written. The digest of a piece is of its list of files
with theirs, and of the piece before it. The event of each pruning has the digest of its piece: what is changed in the
archive contradicts the ledger.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import hashlib
import io
import os
import shutil
from collections.abc import Collection, Iterator, Sequence
from dataclasses import astuple, dataclass, field, fields
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Literal

from pydantic_core import to_json

from budgetbandits.errors import BadState, Conflict, DiskFull, MissingExtra, StoreError, install
from budgetbandits.service.ledger import Hold
from budgetbandits.service.names import is_id
from budgetbandits.service.stores.records import DecisionRow, Event
from budgetbandits.service.stores.sql import rows

if TYPE_CHECKING:
    import polars

ROWS_PER_FILE = 50_000
"""Rows that are kept in memory and written to one file."""

ROWS_READ = 1000
"""Events that are given at once, as from a store."""

LATEST = "latest"
"""The file in a campaign's folder that has the digest of its latest piece."""

ArchiveTable = Literal["events", "decisions"]


def _kinds(record: type, paths: Collection[str]) -> list[str]:
    """The first word of the type of each of these fields: str, int, float or bool."""
    own = {attribute.name: str(attribute.type) for attribute in fields(record)}
    own |= {f"hold.{attribute.name}": str(attribute.type) for attribute in fields(Hold)}
    return [own[path].split()[0] for path in paths]


COLUMNS: dict[ArchiveTable, dict[str, str]] = {
    "events": dict(zip(rows.NUMBERED_EVENT, _kinds(Event, rows.NUMBERED_EVENT), strict=True)),
    "decisions": dict(zip(rows.DECISION, _kinds(DecisionRow, rows.DECISION_PATHS), strict=True)),
}
"""The columns of each table and their types."""


@dataclass(frozen=True)
class ArchiveFile:
    """One file: its path in the campaign's folder, how many rows it has, and a digest of its bytes."""

    name: str
    rows: int
    digest: str


@dataclass(frozen=True)
class Piece:
    """The files that one pruning has written.

    seq     the number of its last event
    before  the digest of the piece before it; empty for the first
    files   those of events in order
    """

    seq: int
    before: str
    files: tuple[ArchiveFile, ...]

    @classmethod
    def from_json(cls, values: dict[str, Any]) -> Piece:
        """The piece of an event's JSON."""
        return cls(values["seq"], values["before"], tuple(ArchiveFile(**file) for file in values["files"]))

    @property
    def digest(self) -> str:
        """The digest of this piece and of all before it."""
        return new_digest(to_json([self.seq, self.before, [astuple(file) for file in self.files]])).hexdigest()

    @property
    def events(self) -> int:
        """How many it has."""
        return sum(file.rows for file in self.files_of("events"))

    @property
    def decisions(self) -> int:
        """How many it has."""
        return sum(file.rows for file in self.files_of("decisions"))

    def files_of(self, table: ArchiveTable) -> list[ArchiveFile]:
        """The files of one table."""
        return [file for file in self.files if f"/{table}-" in file.name]


new_digest = partial(hashlib.blake2b, digest_size=16)
"""The kind of all digests of archives and checkpoints."""


class Archive:
    """The files of one campaign."""

    def __init__(self, folder: Path, campaign: str) -> None:
        if not is_id(campaign):
            raise BadState(f"{campaign!r:.60} is no id of a campaign, so nothing is read or deleted by it")
        self.folder = folder / campaign

    @contextlib.contextmanager
    def locked(self) -> Iterator[None]:
        """Only one process at a time prunes a campaign into this folder; it is made if need be."""
        _polars()  # an error before anything is made
        with writing(self.folder):
            self.folder.mkdir(parents=True, exist_ok=True)
            handle = os.open(self.folder / ".lock", os.O_CREAT | os.O_RDWR, 0o600)
        try:
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                raise Conflict(
                    f"another process is archiving into {self.folder}; try again when it has ended"
                ) from None
            yield
        finally:
            os.close(handle)

    def check_latest(self, pieces: Sequence[Piece]) -> None:
        """Refuse if the latest piece that is complete is none of these: then it is another store's."""
        path = self.folder / LATEST
        digest = path.read_text() if path.exists() else ""
        if digest and digest not in [piece.digest for piece in pieces]:
            raise Conflict(
                f"{self.folder} was archived by another store, or by this one after it was copied; name another "
                f"folder, with a copy of what is here; if no other store is in use, delete {path} first"
            )

    def note_latest(self, piece: Piece) -> None:
        """Write down that this piece is complete, and the latest."""
        path = self.folder / LATEST
        unfinished = path.with_name(f"{LATEST}.partial")
        with writing(path):
            with unfinished.open("w") as file:
                file.write(piece.digest)
                file.flush()
                os.fsync(file.fileno())
            unfinished.replace(path)
            sync_folder(self.folder)

    def drop_strangers(self, pieces: Sequence[Piece]) -> None:
        """Delete files of a pruning that did not come to its end."""
        listed = {file.name for piece in pieces for file in piece.files}
        for path in self.folder.glob("*/*.parquet*"):
            if path.relative_to(self.folder).as_posix() not in listed:
                path.unlink()

    def delete(self) -> None:
        """Delete all files of the campaign."""
        if self.folder.exists():
            shutil.rmtree(self.folder)

    def check(self, pieces: Sequence[Piece]) -> None:
        """Refuse if a file is missing."""
        for path in (self.folder / file.name for piece in pieces for file in piece.files):
            if not path.is_file():
                raise _missing(path)

    def changed(self, piece: Piece) -> Iterator[Path]:
        """The files of a piece that are not as they were written."""
        for archive_file in piece.files:
            path = self.folder / archive_file.name
            with _reading(path), path.open("rb") as file:
                if hashlib.file_digest(file, new_digest).hexdigest() != archive_file.digest:
                    yield path

    def events(self, piece: Piece) -> Iterator[list[Event]]:
        """The events of a piece in order, some at a time."""
        for path in (self.folder / file.name for file in piece.files_of("events")):
            with _reading(path):
                frame = _polars().read_parquet(path, columns=list(COLUMNS["events"]))
            for part in frame.iter_slices(ROWS_READ):
                yield [Event(*row) for row in part.iter_rows()]

    def decisions_of(self, piece: Piece, ids: Collection[str]) -> list[DecisionRow]:
        """Those of these decisions that the piece has."""
        files = [self.folder / file.name for file in piece.files_of("decisions")]
        if not files or not ids:
            return []
        polars = _polars()
        wanted = polars.Series(list(ids))
        with _reading(self.folder):
            result = polars.scan_parquet(files).filter(polars.col("id").is_in(wanted.implode()))
            result = result.select(*COLUMNS["decisions"])
            return [rows.decision_of(row) for row in result.collect().iter_rows()]


@dataclass
class PieceWriter:
    """Writes a piece: events in order, and decisions in any; at the end `finish`."""

    archive: Archive
    names: Sequence[str]
    """Names of the arms."""
    upto: int
    """The number of the last event there will be."""
    _waiting: dict[tuple[ArchiveTable, str], list[tuple[Any, ...]]] = field(default_factory=dict)
    _files: list[ArchiveFile] = field(default_factory=list)
    _month: str = ""

    def add_event(self, event: Event) -> None:
        """Add an event to the piece."""
        month = _month_of(event.at)
        if month > self._month:  # an event that comes late goes with the month that has begun: files are in order
            self._flush("events", self._month)
            self._month = month
        self._add("events", self._month, (*rows.event_values(event), event.seq), event.arm)

    def add_decision(self, decision: DecisionRow) -> None:
        """Add a decision to the piece."""
        self._add("decisions", _month_of(decision.created_at), rows.decision_values(decision), decision.arm)

    def finish(self, before: str) -> Piece:
        """Write the rest; the piece, when all of it is durable. ``before`` is the digest of the piece before it."""
        for table, month in list(self._waiting):
            self._flush(table, month)
        with writing(self.archive.folder):
            for folder in {(self.archive.folder / file.name).parent for file in self._files}:
                sync_folder(folder)
            sync_folder(self.archive.folder)
        return Piece(self.upto, before, tuple(self._files))

    def _add(self, table: ArchiveTable, month: str, values: tuple[Any, ...], arm: int | None) -> None:
        waiting = self._waiting.setdefault((table, month), [])
        waiting.append((*values, None if arm is None else self.names[arm]))
        if len(waiting) >= ROWS_PER_FILE:
            self._flush(table, month)

    def _flush(self, table: ArchiveTable, month: str) -> None:
        waiting = self._waiting.pop((table, month), [])
        if not waiting:
            return
        polars = _polars()
        kinds = {"int": polars.Int64(), "float": polars.Float64(), "bool": polars.Boolean()}
        schema = {name: kinds.get(kind, polars.String()) for name, kind in COLUMNS[table].items()}
        frame = polars.DataFrame(waiting, schema=schema | {"arm_name": polars.String()}, orient="row")
        name = f"{month}/{table}-{self.upto:012d}-{len(self._files):04d}.parquet"
        path = self.archive.folder / name
        unfinished = path.with_name(f"{path.name}.partial")
        with writing(path):
            path.parent.mkdir(exist_ok=True)
            with unfinished.open("w+b") as file:
                _write(frame, file)
                file.seek(0)
                digest = hashlib.file_digest(file, new_digest).hexdigest()
            unfinished.replace(path)
        self._files.append(ArchiveFile(name, len(waiting), digest))


def _write(frame: polars.DataFrame, file: IO[bytes]) -> None:
    buffer = io.BytesIO()  # Polars itself would not say that there is no room
    frame.write_parquet(buffer)
    file.write(buffer.getbuffer())
    file.flush()
    os.fsync(file.fileno())


def sync_folder(folder: Path) -> None:
    """Make the names of new files durable."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


@contextlib.contextmanager
def writing(
    path: Path, room: str = "make room, nothing was deleted", elsewhere: str = "choose another archive folder"
) -> Iterator[None]:
    """Errors of the system with the path and what to do: if there is no ``room``, or else."""
    try:
        yield
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
            raise DiskFull(f"no room to write {path}: {error.strerror}; {room}") from None
        raise StoreError(f"cannot write {path}: {error.strerror or error}; {elsewhere}") from None


@contextlib.contextmanager
def _reading(path: Path) -> Iterator[None]:
    """Errors of the system and of Polars with the path and what to do."""
    try:
        yield
    except FileNotFoundError:  # the campaign is being deleted
        raise _missing(path) from None
    except OSError as error:
        raise StoreError(f"cannot read {path}: {error.strerror or error}; let this user read the archive") from None
    except _polars().exceptions.PolarsError as error:
        raise BadState(f"{path} cannot be read: {error!r:.100}; restore an undamaged copy of the archive") from None


def _missing(path: Path) -> StoreError:
    return StoreError(f"{path} is missing; name the folder that the campaign was pruned into, or restore it")


def _month_of(at: float) -> str:
    return f"{datetime.fromtimestamp(at, UTC):%Y-%m}"


def _polars() -> Any:
    try:
        import polars
    except ImportError:
        raise MissingExtra(f"the archive needs polars; {install('archive')}") from None
    return polars
