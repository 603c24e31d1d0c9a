"""The decisions that a replay must remember: those that wait for feedback. The newest in memory, the rest in a file.

For most decisions feedback comes soon. But a campaign may have a million whose reward never comes, and these must not
fill the memory of the audit.
"""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Iterator, Sequence
from dataclasses import astuple, dataclass
from itertools import islice
from typing import Any, Self

from budgetbandits.errors import DiskFull
from budgetbandits.service.ledger import Hold
from budgetbandits.service.stores.sql.rows import places

IN_MEMORY_MAX = 50_000
"""Decisions that are kept in memory, about 20 MB."""

CHUNK_DECISIONS = 1000
"""Decisions in one chunk."""


@dataclass(slots=True)
class OpenDecision:
    """A decision as its events make it."""

    hold: Hold
    arm: int = 0
    cost: int | None = None
    reward: float | None = None
    request: str | None = None
    propensity: float | None = None
    created_at: float = 0.0
    failed: bool = False

    @property
    def final(self) -> bool:
        """Whether no more feedback can come."""
        in_full = self.cost is not None and (self.reward is not None or self.failed)
        return in_full or self.hold.state == "voided"

    def to_row(self, id: str) -> tuple[Any, ...]:
        """The row of a table, or of JSON."""
        k = self
        return (id, *astuple(k.hold), k.arm, k.cost, k.reward, k.request, k.propensity, k.created_at, k.failed)

    @classmethod
    def from_row(cls, row: Sequence[Any]) -> OpenDecision:
        """The decision of a row that `to_row` has made, whose first value is the id."""
        _, amount, state, charged, overrun, reported, day, *rest = row
        return cls(Hold(amount, state, charged, overrun, bool(reported), day), *rest)


class OpenDecisions:
    """Decisions by id. The file is temporary, has no name, and ends with the ``with`` block."""

    def __init__(self, size: int = IN_MEMORY_MAX) -> None:
        self._size = size
        self._near: dict[str, OpenDecision] = {}
        self._far: sqlite3.Connection | None = None

    def put(self, id: str, known: OpenDecision) -> None:
        """Add a decision, or replace it."""
        if len(self._near) >= self._size:
            self._move()
        self._near[id] = known

    def take(self, id: str) -> OpenDecision:
        """Remove this decision and return it; KeyError if there is none."""
        open_decision = self._near.pop(id, None)
        if open_decision is None:
            row = self._ask("DELETE FROM known WHERE id = ? RETURNING *", id)
            if row is None:
                raise KeyError(id)
            open_decision = OpenDecision.from_row(row)
        return open_decision

    def __contains__(self, id: str) -> bool:
        return id in self._near or self._ask("SELECT id FROM known WHERE id = ?", id) is not None

    def chunks(self, size: int = CHUNK_DECISIONS) -> Iterator[dict[str, OpenDecision]]:
        """All of them, some at a time; nothing may be put or taken meanwhile."""
        near = iter(self._near.items())
        while chunk := dict(islice(near, size)):
            yield chunk
        if self._far is not None:
            rows = self._far.execute("SELECT * FROM known")
            while page := rows.fetchmany(size):
                yield {row[0]: OpenDecision.from_row(row) for row in page}

    def _ask(self, statement: str, id: str) -> Any:
        return None if self._far is None else self._far.execute(statement, (id,)).fetchone()

    def _move(self) -> None:
        """The older half of what is in memory goes to the file."""
        oldest = list(islice(self._near, self._size // 2 + 1))
        rows = [open_decision.to_row(id) for id, open_decision in _taken(self._near, oldest)]
        try:
            if self._far is None:
                self._far = sqlite3.connect("", isolation_level=None)  # a temporary file
                self._far.execute("PRAGMA synchronous = OFF")
                self._far.execute(
                    "CREATE TABLE known (id TEXT PRIMARY KEY, amount, state, charged, overrun, reported, day, "
                    "arm, cost, reward, request, propensity, created_at, failed) WITHOUT ROWID"
                )
            self._far.execute("BEGIN")
            self._far.executemany(f"INSERT INTO known VALUES ({places(range(14))})", rows)
            self._far.execute("COMMIT")
        except sqlite3.OperationalError as error:
            raise DiskFull(
                f"no room for open decisions: {error}; make room in the temporary folder, or set SQLITE_TMPDIR"
            ) from None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._far is not None:
            with contextlib.suppress(sqlite3.Error):
                self._far.close()


def _taken(known: dict[str, OpenDecision], ids: list[str]) -> Iterator[tuple[str, OpenDecision]]:
    for id in ids:
        yield id, known.pop(id)
