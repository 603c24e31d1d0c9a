"""Rollups in SQL: what happened to each arm by minute, hour and day, summed over a campaign's events.

A campaign's `Watermark` says how far they go, and has the times that the list of campaigns looks at.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from budgetbandits.service.stores.records import COUNTS, Counts, Watermark
from budgetbandits.service.stores.sql.rows import WATERMARK, insertion, listed, places, watermark_values
from budgetbandits.service.stores.sql.statements import (
    BETWEEN,
    IN_ORDER,
    LATEST_FIRST,
    Statements,
    between,
    first_after,
)

MINUTE, HOUR, DAY = SPANS = (60, 3600, 86_400)
"""The lengths of a row's time, in seconds."""

SUMS = ("reward", "reward_squared", "cost_squared", "failed_cost_squared")
"""The counts that are floating-point sums."""


@dataclass(slots=True)
class Tail:
    """Events summed by minute and arm, and the watermark after them."""

    counts: list[Counts]
    mark: Watermark


_KEPT = listed(COUNTS)


def _if(condition: str, value: str = "1") -> str:
    return f"CASE WHEN {condition} THEN {value} ELSE 0 END"


_SETTLED, _DELAY = "e.kind = 'settled'", "e.at - d.created_at"
# a hold that had expired stays so, and its event says what was charged then
_CHARGED_BEFORE = "(SELECT x.amount FROM event x WHERE x.decision = d.id AND x.kind = 'expired')"
_TAKEN_BACK = _if("d.state = 'expired'", _CHARGED_BEFORE)
_VALUES = {
    "decided": _if("e.kind = 'decided'"),
    "costs_reported": _if(_SETTLED),
    "rewards_reported": _if("e.reward IS NOT NULL"),
    "voided": _if("e.kind = 'voided'"),
    "expired": _if("e.kind = 'expired'"),
    "overruns": _if(f"{_SETTLED} AND d.overrun > 0"),
    "cost": _if(_SETTLED, "e.amount"),
    # nothing changes what is charged once the cost is reported
    "spent": f"CASE WHEN {_SETTLED} THEN d.charged - {_TAKEN_BACK} WHEN e.kind = 'expired' THEN e.amount ELSE 0 END",
    "overrun": _if(_SETTLED, "d.overrun"),
    "failed": _if("e.kind = 'failed'"),
    "failed_cost": _if("e.kind = 'failed'", "d.cost"),
    "requests_used": f"CASE WHEN {_SETTLED} AND (d.state = 'settled' OR {_CHARGED_BEFORE} = 0) THEN 1 "
    "WHEN e.kind = 'expired' AND e.amount > 0 THEN 1 ELSE 0 END",
    "delay_10": _if(f"{_SETTLED} AND {_DELAY} < 10"),
    "delay_60": _if(f"{_SETTLED} AND {_DELAY} >= 10 AND {_DELAY} < 60"),
    "delay_300": _if(f"{_SETTLED} AND {_DELAY} >= 60 AND {_DELAY} < 300"),
    "reward": "e.reward",
    "reward_squared": "e.reward * e.reward",
    "cost_squared": f"CASE WHEN {_SETTLED} THEN CAST(e.amount AS DOUBLE PRECISION) * e.amount END",
    "failed_cost_squared": "CASE WHEN e.kind = 'failed' THEN CAST(d.cost AS DOUBLE PRECISION) * d.cost END",
}
"""Contribution of an event e of a decision d to each count."""


def _sum(name: str, value: str) -> str:
    return f"COALESCE(SUM({value}), 0.0)" if name in SUMS else f"CAST(SUM({value}) AS BIGINT)"


_COUNTED = (
    f"SELECT {{minute}}, e.arm, {', '.join(_sum(name, _VALUES[name]) for name in COUNTS)}, MAX(e.seq), "
    f"MAX(CASE WHEN e.kind = 'decided' THEN e.at END), MAX(CASE WHEN {_SETTLED} THEN e.at END), "
    f"MAX(CASE WHEN {_SETTLED} AND d.overrun > 0 THEN e.seq END) "
    "FROM (SELECT * FROM event WHERE {between}) AS e JOIN decision d ON d.id = e.decision GROUP BY 1, 2"
)
_ADD = (
    f"INSERT INTO rollup (campaign, span, begins, arm, {_KEPT}) VALUES ({places(range(4 + len(COUNTS)))}) "
    "ON CONFLICT (campaign, span, begins, arm) DO UPDATE SET "
    + ", ".join(f"{name} = rollup.{name} + excluded.{name}" for name in COUNTS)
)
_TOTALS = ", ".join(_sum(name, name) for name in COUNTS)
_MISMATCH = (
    "SELECT begins, arm FROM (SELECT begins / {longer} * {longer} AS begins, arm, {sums} FROM rollup "
    "WHERE campaign = ? AND span = {span} AND begins >= ? GROUP BY 1, 2 "
    "UNION ALL SELECT begins, arm, {minus} FROM rollup WHERE campaign = ? AND span = {longer} AND begins >= ?) AS c "
    "GROUP BY begins, arm HAVING {differ} ORDER BY begins, arm LIMIT 1"
)
_DIFFER = "ABS(SUM({0})) > 1e-9 * (1 + SUM(ABS({0})))"
"""Floating-point sums in another order."""
_SAVE_WATERMARK = (
    f"{insertion('rollup_watermark', ('campaign', *WATERMARK))} ON CONFLICT (campaign) DO UPDATE SET "
    + ", ".join(f"{name} = excluded.{name}" for name in WATERMARK)
)


class Rollups:
    """The rollups of campaigns and their watermarks, in a transaction."""

    def __init__(self, tx: Statements) -> None:
        self._tx = tx

    def watermark(self, campaign: str) -> Watermark:
        """How far the rollups go; in a transaction that writes, no other can move it."""
        tx = self._tx
        if tx.LOCK:
            tx.change("INSERT INTO rollup_watermark (campaign, seq) VALUES (?, 0) ON CONFLICT DO NOTHING", (campaign,))
        query = f"SELECT {listed(WATERMARK)} FROM rollup_watermark WHERE campaign = ?{tx.LOCK}"
        row = tx.ask(query, (campaign,)).fetchone()
        return Watermark() if row is None else Watermark(*row)

    def slice_end(self, campaign: str, after: int, upto: int, limit: int) -> int:
        """The number of the last of ``limit`` events after this one; ``upto`` if there are fewer."""
        row = self._tx.ask(
            f"SELECT seq FROM event WHERE {BETWEEN} ORDER BY {IN_ORDER} LIMIT 1 OFFSET ?",
            (*between(campaign, after, upto), limit - 1),
        ).fetchone()
        return upto if row is None else int(row[0])

    def look_ahead(self, campaign: str, limit: int) -> bool:
        """Bring the times of the watermark up to date by at most ``limit`` events, though the watermark itself has to
        wait for a lease; whether there are more."""
        mark, last = self.watermark(campaign), self._tx.last_event(campaign)
        after = max(mark.seq, mark.activity_seq)
        if after >= last:
            return False
        upto = self.slice_end(campaign, after, last, limit)
        decision_at, feedback_at = self._tx.ask(
            "SELECT MAX(CASE WHEN kind = 'decided' THEN at END), MAX(CASE WHEN kind = 'settled' THEN at END) "
            f"FROM event WHERE {BETWEEN}",
            between(campaign, after, upto),
        ).fetchone()
        moved = mark.moved(mark.seq, decision_at, feedback_at, None)
        self.save_watermark(campaign, self._with_activity(campaign, moved, after, upto))
        return upto < last

    def _with_activity(self, campaign: str, mark: Watermark, after: int, upto: int) -> Watermark:
        """The watermark, with `oldest_unanswered_at` brought up to date by the events in between."""
        if after >= upto:
            return mark
        # not MAX(seq), for which the index of all numbers would serve
        row = self._tx.ask(
            f"SELECT seq FROM event WHERE {BETWEEN} AND kind IN ('settled', 'voided') ORDER BY {LATEST_FIRST} LIMIT 1",
            between(campaign, after, upto),
        ).fetchone()
        answered = None if row is None else int(row[0])
        since = mark.oldest_unanswered_at if answered is None else None
        if since is None:
            since = self._tx.ask(
                f"SELECT MIN(at) FROM event WHERE {BETWEEN} AND kind = 'decided'",
                between(campaign, answered or after, upto),
            ).fetchone()[0]
        return replace(mark, activity_seq=upto, oldest_unanswered_at=since)

    def save_watermark(self, campaign: str, mark: Watermark) -> None:
        """Write the watermark of a campaign."""
        self._tx.change(_SAVE_WATERMARK, (campaign, *watermark_values(mark)))

    def behind(self) -> list[str]:
        """Campaigns with events that are not in their rollups."""
        first = first_after("seq", "n.id", "COALESCE(m.seq, 0)")
        rows = self._tx.ask(
            "SELECT n.id FROM campaign_name n LEFT JOIN rollup_watermark m ON m.campaign = n.id "
            f"WHERE {first} IS NOT NULL"
        )
        return [id for (id,) in rows]

    def tail(self, campaign: str, mark: Watermark, upto: int, slot: int = MINUTE) -> Tail:
        """The events after the watermark, summed by minute or another ``slot``."""
        statement = _COUNTED.format(minute=f"{self._tx.whole(f'e.at / {slot}')} * {slot}", between=BETWEEN)
        counts, moved = [], mark
        for row in self._tx.ask(statement, between(campaign, mark.seq, upto)):
            counts.append(Counts(*row[:-4]))
            moved = moved.moved(max(moved.seq, row[-4]), *row[-3:])
        return Tail(counts, self._with_activity(campaign, moved, max(mark.seq, mark.activity_seq), upto))

    def add(self, campaign: str, counts: Iterable[Counts], mark: Watermark, minutes_from: float) -> None:
        """Add to minutes, hours and days, move the watermark, and forget older minutes."""
        rows, first = list(counts), math.ceil(minutes_from)
        values = [
            (campaign, span, counts.begins, counts.arm, *counts.values())
            for span in SPANS
            for counts in by_span(rows, span)
            if span != MINUTE or counts.begins >= first
        ]
        self._tx.change_many(_ADD, values)
        self.save_watermark(campaign, replace(mark, minutes_from=max(mark.minutes_from, first)))
        self._tx.change("DELETE FROM rollup WHERE campaign = ? AND span = ? AND begins < ?", (campaign, MINUTE, first))

    def rows(self, campaign: str, span: int, since: int = 0) -> list[Counts]:
        """The rows of this span that begin at ``since`` or later, in order."""
        rows = self._tx.ask(
            f"SELECT begins, arm, {_KEPT} FROM rollup WHERE campaign = ? AND span = ? AND begins >= ? "
            "ORDER BY begins, arm",
            (campaign, span, since),
        )
        return [Counts(*row) for row in rows]

    def slots(self, campaign: str, span: int, slot: int, since: int) -> list[tuple[int, int, int, int]]:
        """(begins, arm, decided, spent) in longer slots, from rows of this span that begin at ``since`` or later."""
        rows = self._tx.ask(
            f"SELECT begins / {slot} * {slot}, arm, CAST(SUM(decided) AS BIGINT), CAST(SUM(spent) AS BIGINT) "
            f"FROM rollup WHERE campaign = ? AND span = {span} AND begins >= ? GROUP BY 1, 2",
            (campaign, since),
        )
        return list(rows)

    def totals(self, campaign: str) -> list[Counts]:
        """The counts of each arm over all time, which begins at 0."""
        rows = self._tx.ask(
            f"SELECT 0, arm, {_TOTALS} FROM rollup WHERE campaign = ? AND span = {DAY} GROUP BY arm ORDER BY arm",
            (campaign,),
        )
        return [Counts(*row) for row in rows]

    def cost_squares(self, campaigns: Sequence[str]) -> dict[str, float]:
        """The sum of the squares of all costs reported, by campaign, for those of these that have rollups."""
        if not campaigns:
            return {}  # PostgreSQL knows no empty list
        rows = self._tx.ask(
            f"SELECT campaign, SUM(cost_squared) FROM rollup WHERE campaign IN ({places(campaigns)}) AND span = {DAY} "
            "GROUP BY campaign",
            campaigns,
        )
        return dict(rows)

    def rewards(self, campaigns: Sequence[str], since: float) -> dict[str, tuple[int, float]]:
        """How many rewards were reported in the hours that begin at ``since`` or later, and their sum, by campaign."""
        if not campaigns:
            return {}  # PostgreSQL knows no empty list
        rows = self._tx.ask(
            "SELECT campaign, CAST(SUM(rewards_reported) AS BIGINT), SUM(reward) FROM rollup "
            f"WHERE campaign IN ({places(campaigns)}) AND span = {HOUR} AND begins >= ? GROUP BY campaign",
            (*campaigns, int(since)),
        )
        return {campaign: (count, reward) for campaign, count, reward in rows}

    def mismatch(self, campaign: str, span: int) -> tuple[int, int] | None:
        """When, and for which arm, the rows of this span do not make those of the next longer one; None if all do."""
        longer, first = SPANS[SPANS.index(span) + 1], 0
        if span == MINUTE:  # of an hour that had begun before, some may be forgotten
            first = -(-self.watermark(campaign).minutes_from // longer) * longer
        statement = _MISMATCH.format(
            longer=longer, span=span, sums=", ".join(f"SUM({name}) AS {name}" for name in COUNTS),
            minus=", ".join(f"-{name}" for name in COUNTS),
            differ=" OR ".join(_DIFFER.format(name) if name in SUMS else f"SUM({name}) <> 0" for name in COUNTS),
        )  # fmt: skip
        row = self._tx.ask(statement, (campaign, first, campaign, first)).fetchone()
        return None if row is None else (int(row[0]), int(row[1]))

    def add_refusals(self, rows: Sequence[tuple[str, int, str, int]]) -> None:
        """(campaign, when its hour began, reason, how many)."""
        self._tx.change_many(
            "INSERT INTO refusal (campaign, begins, reason, count) VALUES (?, ?, ?, ?) "
            "ON CONFLICT (campaign, begins, reason) DO UPDATE SET count = refusal.count + excluded.count",
            rows,
        )

    def refusals(self, campaign: str, since: int) -> dict[str, int]:
        """How many there were by reason, in the hours that begin at ``since`` or later."""
        rows = self._tx.ask(
            "SELECT reason, CAST(SUM(count) AS BIGINT) FROM refusal WHERE campaign = ? AND begins >= ? GROUP BY reason",
            (campaign, since),
        )
        return dict(rows)


def by_span(counts: Iterable[Counts], span: int) -> list[Counts]:
    """The same in rows of this span, in order."""
    result: dict[tuple[int, int], Counts] = {}
    for count in counts:
        key = begins, arm = count.begins - count.begins % span, count.arm
        summed = result.get(key)
        result[key] = Counts(begins, arm, *count.values()) if summed is None else summed.plus(count)
    return [result[key] for key in sorted(result)]
