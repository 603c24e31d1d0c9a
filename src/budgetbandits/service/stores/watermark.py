"""How far rollups go, in SQL: the mark of each campaign, and the moments that the list of campaigns looks at."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from budgetbandits.service.stores.event_sql import IN_ORDER, LATEST_FIRST, between

if TYPE_CHECKING:
    from budgetbandits.service.stores.sql import SqlTransaction


@dataclass(slots=True)
class Watermark:
    """How far a campaign's events have been added up, and when the latest of them happened."""

    seq: int = 0
    decided_at: float | None = None
    last_feedback_at: float | None = None
    overran: int | None = None
    """The number of the latest event that told an overrun."""
    seen: int = 0
    """The number of the latest event that the moments know of; events after the mark may be, that wait for a lease."""
    oldest_unanswered_at: float | None = None
    """When the first decision was made since the latest cost was told, or a decision voided; None without one."""

    def moved(
        self, seq: int, decided_at: float | None, last_feedback_at: float | None, overran: int | None
    ) -> Watermark:
        return replace(
            self, seq=seq, decided_at=_later(self.decided_at, decided_at),
            last_feedback_at=_later(self.last_feedback_at, last_feedback_at), overran=_later(self.overran, overran),
        )  # fmt: skip


class Marks:
    """The marks of campaigns, in a transaction."""

    def __init__(self, tx: SqlTransaction) -> None:
        self._tx = tx

    def mark(self, campaign: str) -> Watermark:
        """How far the rollups go; in a transaction that writes, nobody else moves it meanwhile."""
        tx = self._tx
        if tx.LOCK:
            tx.change("INSERT INTO rollup_mark (campaign, seq) VALUES (?, 0) ON CONFLICT DO NOTHING", (campaign,))
        row = tx.ask(
            "SELECT seq, decided_at, last_feedback_at, overran, seen, oldest_unanswered_at FROM rollup_mark "
            f"WHERE campaign = ?{tx.LOCK}",
            (campaign,),
        ).fetchone()
        return Watermark() if row is None else Watermark(*row)

    def slice_end(self, campaign: str, after: int, upto: int, most: int) -> int:
        """The number of the last of so many events after this one; ``upto`` if there are fewer."""
        row = self._tx.ask(
            f"SELECT seq FROM event WHERE {self._tx.EVENTS.between} ORDER BY {IN_ORDER} LIMIT 1 OFFSET ?",
            (*between(campaign, after, upto), most - 1),
        ).fetchone()
        return upto if row is None else int(row[0])

    def look_ahead(self, campaign: str, most: int) -> bool:
        """Have the moments of the mark know of so many events more, though the mark itself has to wait for a lease;
        whether there are still more."""
        mark, last = self.mark(campaign), self._tx.last_event(campaign)
        after = max(mark.seq, mark.seen)
        if after >= last:
            return False
        upto = self.slice_end(campaign, after, last, most)
        decided_at, last_feedback_at = self._tx.ask(
            "SELECT MAX(CASE WHEN kind = 'decided' THEN at END), MAX(CASE WHEN kind = 'settled' THEN at END) "
            f"FROM event WHERE {self._tx.EVENTS.between}",
            between(campaign, after, upto),
        ).fetchone()
        moved = mark.moved(mark.seq, decided_at, last_feedback_at, None)
        self.keep(campaign, self.heard(campaign, moved, after, upto))
        return upto < last

    def heard(self, campaign: str, mark: Watermark, after: int, upto: int) -> Watermark:
        """The mark, with since when decisions wait: as its events in between say."""
        if after >= upto:
            return mark
        among = self._tx.EVENTS.between
        # not MAX(seq), for which the index of all numbers would serve
        row = self._tx.ask(
            f"SELECT seq FROM event WHERE {among} AND kind IN ('settled', 'voided') ORDER BY {LATEST_FIRST} LIMIT 1",
            between(campaign, after, upto),
        ).fetchone()
        answered = None if row is None else int(row[0])
        since = mark.oldest_unanswered_at if answered is None else None
        if since is None:
            since = self._tx.ask(
                f"SELECT MIN(at) FROM event WHERE {among} AND kind = 'decided'",
                between(campaign, answered or after, upto),
            ).fetchone()[0]
        return replace(mark, seen=upto, oldest_unanswered_at=since)

    def keep(self, campaign: str, mark: Watermark) -> None:
        self._tx.change(
            "INSERT INTO rollup_mark (campaign, seq, decided_at, last_feedback_at, overran, seen, "
            "oldest_unanswered_at) VALUES (?, ?, ?, ?, ?, ?, ?) "
            "ON CONFLICT (campaign) DO UPDATE SET seq = excluded.seq, decided_at = excluded.decided_at, "
            "last_feedback_at = excluded.last_feedback_at, overran = excluded.overran, seen = excluded.seen, "
            "oldest_unanswered_at = excluded.oldest_unanswered_at",
            (
                campaign,
                mark.seq,
                mark.decided_at,
                mark.last_feedback_at,
                mark.overran,
                mark.seen,
                mark.oldest_unanswered_at,
            ),
        )


def _later(one: Any, other: Any) -> Any:
    return other if one is None or (other is not None and other > one) else one
