"""Statements of retention: checkpoints, and rows that are deleted once the archive has them."""

from __future__ import annotations

from collections.abc import Sequence

from budgetbandits.service.ledger import to_units
from budgetbandits.service.stores.records import Event
from budgetbandits.service.stores.sql.rows import NUMBERED_EVENT, insertion, listed, places
from budgetbandits.service.stores.sql.statements import (
    BETWEEN,
    EVENT_NUMBER_MAX,
    IN_ORDER,
    LATEST_FIRST,
    Statements,
    between,
)

CAMPAIGN_TABLES = (
    ("rollup", "campaign"), ("rollup_watermark", "campaign"), ("refusal", "campaign"), ("operation", "campaign"),
    ("api_key", "campaign"), ("checkpoint", "campaign"), ("webhook", "campaign"), ("webhook_state", "campaign"),
    ("former_name", "campaign"), ("arm", "campaign"), ("arm_name", "campaign"), ("campaign", "id"),
    ("campaign_name", "id"),
)  # fmt: skip
"""The tables that know a campaign, besides its events and decisions, in the order in which they can be emptied."""

_OPERATORS = "decision IS NULL AND lease IS NULL"


class Pruning:
    """The SQL of checkpoints, of deleting what a campaign has in its archive, and of deleting a campaign."""

    def __init__(self, tx: Statements) -> None:
        self._tx = tx

    # --- checkpoints ---------------------------------------------------------------------------------------------

    def checkpoint(self, campaign: str) -> int:
        """The number of the event that the campaign's checkpoint is after; 0 without one."""
        query = "SELECT seq FROM checkpoint WHERE campaign = ? AND part = 0 ORDER BY seq DESC LIMIT 1"
        row = self._tx.ask(query, (campaign,)).fetchone()
        return 0 if row is None else int(row[0])

    def prunings(self, campaign: str) -> list[Event]:
        """The events of all prunings, in order."""
        query = (
            f"SELECT {listed(NUMBERED_EVENT)} FROM event WHERE {BETWEEN} AND {_OPERATORS} AND kind = 'pruned' "
            f"ORDER BY {IN_ORDER}"
        )
        return [Event(*row) for row in self._tx.ask(query, between(campaign))]

    def part(self, campaign: str, seq: int, part: int) -> str | None:
        """A part of a checkpoint."""
        query = "SELECT content FROM checkpoint WHERE campaign = ? AND seq = ? AND part = ?"
        row = self._tx.ask(query, (campaign, seq, part)).fetchone()
        return None if row is None else str(row[0])

    def add_part(self, campaign: str, seq: int, part: int, content: str) -> None:
        """Add a part of a checkpoint."""
        self._tx.change(insertion("checkpoint", ("campaign", "seq", "part", "content")), (campaign, seq, part, content))

    def drop_parts(self, campaign: str, keep: int, limit: int) -> bool:
        """Delete parts of other checkpoints than this one, ``limit`` of them; whether there may be more."""
        query = f"SELECT seq, part FROM checkpoint WHERE campaign = ? AND seq <> ? ORDER BY seq, part LIMIT {limit:d}"
        rows = [(campaign, *row) for row in self._tx.ask(query, (campaign, keep)).fetchall()]
        if rows:
            self._tx.change_many("DELETE FROM checkpoint WHERE campaign = ? AND seq = ? AND part = ?", rows)
        return len(rows) == limit

    # --- what may leave ------------------------------------------------------------------------------------------

    def latest_request(self, campaign: str) -> float | None:
        """When a program last asked or reported; None if the store has no such event. Holds expire without one."""
        query = (
            f"SELECT at FROM event WHERE {BETWEEN} AND decision IS NOT NULL AND kind <> 'expired' "
            f"ORDER BY {LATEST_FIRST} LIMIT 1"
        )
        row = self._tx.ask(query, between(campaign)).fetchone()
        return None if row is None else float(row[0])

    def latest_resolved(self, campaign: str, begin: float, end: float) -> float | None:
        """When the latest decision between these times was made that is not pending; None without one."""
        query = (
            "SELECT MAX(created_at) FROM decision "
            "WHERE campaign = ? AND created_at >= ? AND created_at < ? AND state <> 'pending'"
        )
        (latest,) = self._tx.ask(query, (campaign, begin, end)).fetchone()
        return latest  # type: ignore[no-any-return]

    def archived_up_to(self, campaign: str, upto: int = EVENT_NUMBER_MAX) -> float:
        """The latest time up to which decisions may have left, by the events up to this number; 0 if none may have.
        A clock that is set back opens some again, but those that have left stay in the archive."""
        query = f"SELECT MAX(amount) FROM event WHERE {BETWEEN} AND {_OPERATORS} AND kind = 'archived'"
        (latest,) = self._tx.ask(query, between(campaign, 0, upto)).fetchone()
        return 0.0 if latest is None else to_units(latest)

    # --- rows that leave -----------------------------------------------------------------------------------------

    def prunable(self, campaign: str, after: int, upto: int, limit: int) -> list[tuple[int, str | None]]:
        """(number, decision) of events in between that are not an operator's, in order."""
        rows = self._tx.ask(
            f"SELECT seq, decision FROM event WHERE {BETWEEN} AND NOT ({_OPERATORS}) "
            f"ORDER BY {IN_ORDER} LIMIT {limit:d}",
            between(campaign, after, upto),
        )
        return [(int(seq), decision) for seq, decision in rows]

    def delete(self, events: Sequence[int], decisions: Sequence[str]) -> None:
        """Delete these events, by their numbers, and these decisions."""
        if decisions:
            self._tx.change(f"DELETE FROM decision WHERE id IN ({places(decisions)})", decisions)
        if events:
            self._tx.change(f"DELETE FROM event WHERE seq IN ({places(events)})", events)

    def delete_rest(self, campaign: str, limit: int) -> bool:
        """Delete events of operators and rollups, ``limit`` of each; whether there may be more."""
        query = f"SELECT seq FROM event WHERE {BETWEEN} ORDER BY {IN_ORDER} LIMIT {limit:d}"
        numbers = [seq for (seq,) in self._tx.ask(query, between(campaign)).fetchall()]
        self.delete(numbers, ())
        query = f"SELECT span, begins, arm FROM rollup WHERE campaign = ? LIMIT {limit:d}"
        sums = [(campaign, *row) for row in self._tx.ask(query, (campaign,)).fetchall()]
        if sums:
            self._tx.change_many("DELETE FROM rollup WHERE campaign = ? AND span = ? AND begins = ? AND arm = ?", sums)
        return limit in (len(numbers), len(sums))

    def delete_campaign(self, campaign: str) -> None:
        """Delete a campaign that has no events and decisions any more; its keys and webhooks are dropped with it."""
        of_it = "SELECT id FROM webhook WHERE campaign = ?"
        self._tx.change(f"DELETE FROM webhook_delivery WHERE webhook IN ({of_it})", (campaign,))
        for table, column in CAMPAIGN_TABLES:
            self._tx.change(f"DELETE FROM {table} WHERE {column} = ?", (campaign,))

    def shrink(self, pages: int) -> bool:
        """Give pages of the file back to the system, this number at most; whether there may be more.

        PostgreSQL fills the room with new rows instead.
        """
        return False


class SqlitePruning(Pruning):
    """The statements on archived pasts for SQLite."""

    def shrink(self, pages: int) -> bool:
        (free,) = self._tx.ask("PRAGMA freelist_count").fetchone()
        for _ in range(min(free, pages)):  # Python's module steps this statement once, which is one page
            self._tx.change("PRAGMA incremental_vacuum(1)")
        (left,) = self._tx.ask("PRAGMA freelist_count").fetchone()
        return 0 < int(left) < int(free)
