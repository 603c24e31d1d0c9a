"""The record of keys in SQL: who has made and dropped which, and when. It stays when a key is gone."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from budgetbandits.service.stores.sql import SqlTransaction

_COLUMNS = "kind, prefix, scopes, campaign, at, actor, operation"


@dataclass(frozen=True)
class KeyEvent:
    """A key was made or dropped."""

    kind: Literal["made", "dropped"]
    prefix: str
    scopes: tuple[str, ...]
    campaign: str | None
    """The id of the only campaign it is for; None for all."""
    at: float
    actor: str | None
    """Who did it; None where nobody said so."""
    operation: str | None = None
    """The idempotency key that it was asked for under."""
    seq: int = 0
    """Given by the store."""


class KeyRecord:
    """What a transaction is asked about the record, and adds to it."""

    def __init__(self, tx: SqlTransaction) -> None:
        self._tx = tx

    def add(self, event: KeyEvent) -> None:
        values = (event.kind, event.prefix, " ".join(event.scopes), event.campaign, event.at, event.actor)
        self._tx.change(f"INSERT INTO key_event ({_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?)", (*values, event.operation))

    def made_under(self, operation: str) -> str | None:
        """The public part of the key that was made under this idempotency key."""
        row = self._tx.ask("SELECT prefix FROM key_event WHERE operation = ?", (operation,)).fetchone()
        return None if row is None else str(row[0])

    def latest(self, limit: int, before: int | None = None) -> list[KeyEvent]:
        """The latest first, those with lower numbers than ``before``."""
        which, values = ("", ()) if before is None else (" WHERE seq < ?", (before,))
        rows = self._tx.ask(f"SELECT {_COLUMNS}, seq FROM key_event{which} ORDER BY seq DESC LIMIT ?", (*values, limit))
        return [KeyEvent(row[0], row[1], tuple(row[2].split()), *row[3:]) for row in rows]
