"""Rollups in SQL: what happened to each arm by minute, hour and day, added up from a campaign's events."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields
from operator import add, attrgetter
from typing import Any

from budgetbandits.service.stores.event_sql import between
from budgetbandits.service.stores.watermark import Marks, Watermark

MINUTE, HOUR, DAY = SPANS = (60, 3600, 86_400)
"""Seconds that a row may be about."""


@dataclass(slots=True)
class Counts:
    """What happened to an arm in the time that begins then; the columns of the table ``rollup``.

    A failure is an event after that of its cost, so what failed is counted apart: the prices of an arm are those of
    what it has answered.
    """

    begins: int
    arm: int
    decided: int = 0
    told: int = 0
    rewarded: int = 0
    voided: int = 0
    expired: int = 0
    overran: int = 0
    cost: int = 0
    spent: int = 0
    overrun: int = 0
    failed: int = 0
    failed_cost: int = 0
    gone: int = 0
    delay_10: int = 0
    delay_60: int = 0
    delay_300: int = 0
    reward: float = 0.0
    reward_squared: float = 0.0
    cost_squared: float = 0.0
    failed_squared: float = 0.0

    @property
    def prices(self) -> tuple[int, int, float]:
        """Of what was answered, as far as its cost is told: how many, their sum and the sum of their squares."""
        return self.told - self.failed, self.cost - self.failed_cost, self.cost_squared - self.failed_squared

    def plus(self, other: Counts) -> Counts:
        """Both together, as of the first."""
        return Counts(self.begins, self.arm, *map(add, _numbers(self), _numbers(other)))

    def values(self) -> tuple[Any, ...]:
        return _numbers(self)


NUMBERS = tuple(field.name for field in fields(Counts))[2:]
_numbers = attrgetter(*NUMBERS)
SUMS = ("reward", "reward_squared", "cost_squared", "failed_squared")
"""Those that are no whole numbers."""


@dataclass(slots=True)
class Tail:
    """Events added up, by minute and arm, and the mark that follows."""

    counts: list[Counts]
    mark: Watermark


_KEPT = ", ".join(NUMBERS)
# a hold that had expired stays so, and its event says what was charged then
_CHARGED_BEFORE = "(SELECT x.amount FROM event x WHERE x.decision = d.id AND x.kind = 'expired')"
_RESULT = {
    "decided": "CASE WHEN e.kind = 'decided' THEN 1 ELSE 0 END",
    "told": "CASE WHEN e.kind = 'settled' THEN 1 ELSE 0 END",
    "rewarded": "CASE WHEN e.reward IS NOT NULL THEN 1 ELSE 0 END",
    "voided": "CASE WHEN e.kind = 'voided' THEN 1 ELSE 0 END",
    "expired": "CASE WHEN e.kind = 'expired' THEN 1 ELSE 0 END",
    "overran": "CASE WHEN e.kind = 'settled' AND d.overrun > 0 THEN 1 ELSE 0 END",
    "cost": "CASE WHEN e.kind = 'settled' THEN e.amount ELSE 0 END",
    # nothing changes what is charged once the cost is told
    "spent": f"CASE WHEN e.kind = 'settled' THEN d.charged - CASE WHEN d.state = 'expired' THEN {_CHARGED_BEFORE} "
    "ELSE 0 END WHEN e.kind = 'expired' THEN e.amount ELSE 0 END",
    "overrun": "CASE WHEN e.kind = 'settled' THEN d.overrun ELSE 0 END",
    "failed": "CASE WHEN e.kind = 'failed' THEN 1 ELSE 0 END",
    "failed_cost": "CASE WHEN e.kind = 'failed' THEN d.cost ELSE 0 END",
    "gone": f"CASE WHEN e.kind = 'settled' AND (d.state = 'settled' OR {_CHARGED_BEFORE} = 0) THEN 1 "
    "WHEN e.kind = 'expired' AND e.amount > 0 THEN 1 ELSE 0 END",
    "delay_10": "CASE WHEN e.kind = 'settled' AND e.at - d.created_at < 10 THEN 1 ELSE 0 END",
    "delay_60": "CASE WHEN e.kind = 'settled' AND e.at - d.created_at >= 10 AND e.at - d.created_at < 60 "
    "THEN 1 ELSE 0 END",
    "delay_300": "CASE WHEN e.kind = 'settled' AND e.at - d.created_at >= 60 AND e.at - d.created_at < 300 "
    "THEN 1 ELSE 0 END",
}
_SUMS = ", ".join(f"CAST(SUM({each}) AS BIGINT)" for each in _RESULT.values()) + (
    ", COALESCE(SUM(e.reward), 0.0), COALESCE(SUM(e.reward * e.reward), 0.0), "
    "COALESCE(SUM(CASE WHEN e.kind = 'settled' THEN CAST(e.amount AS DOUBLE PRECISION) * e.amount END), 0.0), "
    "COALESCE(SUM(CASE WHEN e.kind = 'failed' THEN CAST(d.cost AS DOUBLE PRECISION) * d.cost END), 0.0)"
)
if (*_RESULT, *SUMS) != NUMBERS:  # columns are told apart by their places alone
    raise ImportError("the sums of the rollups are not in the order of their columns")
_COUNTED = (
    f"SELECT {{minute}}, e.arm, {_SUMS}, MAX(e.seq), MAX(CASE WHEN e.kind = 'decided' THEN e.at END), "
    "MAX(CASE WHEN e.kind = 'settled' THEN e.at END), "
    "MAX(CASE WHEN e.kind = 'settled' AND d.overrun > 0 THEN e.seq END) "
    "FROM (SELECT * FROM event WHERE {between}) AS e JOIN decision d ON d.id = e.decision GROUP BY 1, 2"
)
_ADD = (
    f"INSERT INTO rollup (campaign, span, begins, arm, {_KEPT}) VALUES ({', '.join('?' * (4 + len(NUMBERS)))}) "
    "ON CONFLICT (campaign, span, begins, arm) DO UPDATE SET "
    + ", ".join(f"{name} = rollup.{name} + excluded.{name}" for name in NUMBERS)
)
_TOTALS = ", ".join(f"SUM({name})" if name in SUMS else f"CAST(SUM({name}) AS BIGINT)" for name in NUMBERS)
_MISMATCH = (
    "SELECT begins, arm FROM (SELECT begins / {longer} * {longer} AS begins, arm, {sums} FROM rollup "
    "WHERE campaign = ? AND span = {span} AND begins >= ? GROUP BY 1, 2 "
    "UNION ALL SELECT begins, arm, {minus} FROM rollup WHERE campaign = ? AND span = {longer} AND begins >= ?) AS c "
    "GROUP BY begins, arm HAVING {differ} ORDER BY begins, arm LIMIT 1"
)

_DIFFER = "ABS(SUM({0})) > 1e-9 * (1 + SUM(ABS({0})))"
"""These were added up in another order."""


class Rollups(Marks):
    """The rollups of campaigns, in a transaction."""

    def behind(self) -> list[str]:
        """Campaigns with events that are not in their rollups."""
        first = self._tx.EVENTS.first_after("seq", "n.id", "COALESCE(m.seq, 0)")
        rows = self._tx.ask(
            f"SELECT n.id FROM campaign_name n LEFT JOIN rollup_mark m ON m.campaign = n.id WHERE {first} IS NOT NULL"
        )
        return [id for (id,) in rows]

    def tail(self, campaign: str, mark: Watermark, upto: int, slot: int = MINUTE) -> Tail:
        """The events after the mark, added up by minute or another ``slot``."""
        statement = _COUNTED.format(
            minute=f"{self._tx.whole(f'e.at / {slot}')} * {slot}", between=self._tx.EVENTS.between
        )
        counts, moved = [], mark
        for row in self._tx.ask(statement, between(campaign, mark.seq, upto)):
            counts.append(Counts(*row[:-4]))
            moved = moved.moved(max(moved.seq, row[-4]), *row[-3:])
        return Tail(counts, self.heard(campaign, moved, max(mark.seq, mark.seen), upto))

    def add(self, campaign: str, counts: Iterable[Counts], mark: Watermark, minutes_from: float) -> None:
        """Add to minutes, hours and days, move the mark, and forget older minutes."""
        rows = list(counts)
        values = [
            (campaign, span, each.begins, each.arm, *each.values())
            for span in SPANS
            for each in by_span(rows, span)
            if span != MINUTE or each.begins >= minutes_from
        ]
        if values:
            self._tx.change_many(_ADD, values)
        self.keep(campaign, mark)
        self._tx.change(
            "DELETE FROM rollup WHERE campaign = ? AND span = ? AND begins < ?", (campaign, MINUTE, int(minutes_from))
        )

    def rows(self, campaign: str, span: int, since: int = 0) -> list[Counts]:
        """What is kept of this span that begins then or later, in order."""
        rows = self._tx.ask(
            f"SELECT begins, arm, {_KEPT} FROM rollup WHERE campaign = ? AND span = ? AND begins >= ? "
            "ORDER BY begins, arm",
            (campaign, span, since),
        )
        return [Counts(*row) for row in rows]

    def slots(self, campaign: str, span: int, slot: int, since: int) -> list[tuple[int, int, int, int]]:
        """(begins, arm, decided, spent) in longer slots, from rows of this span that begin then or later."""
        rows = self._tx.ask(
            f"SELECT begins / {slot} * {slot}, arm, CAST(SUM(decided) AS BIGINT), CAST(SUM(spent) AS BIGINT) "
            f"FROM rollup WHERE campaign = ? AND span = {span} AND begins >= ? GROUP BY 1, 2",
            (campaign, since),
        )
        return list(rows)

    def totals(self, campaign: str) -> list[Counts]:
        """All that is kept of each arm, which begins at 0."""
        rows = self._tx.ask(
            f"SELECT 0, arm, {_TOTALS} FROM rollup WHERE campaign = ? AND span = {DAY} GROUP BY arm ORDER BY arm",
            (campaign,),
        )
        return [Counts(*row) for row in rows]

    def mismatch(self, campaign: str, span: int) -> tuple[int, int] | None:
        """When, and for which arm, the rows of this span do not make those of the next longer one; None if all do."""
        longer, first = SPANS[SPANS.index(span) + 1], 0
        if span == MINUTE:  # of which the older are gone
            row = self._tx.ask(
                "SELECT begins FROM rollup WHERE campaign = ? AND span = ? ORDER BY begins LIMIT 1", (campaign, span)
            ).fetchone()
            first = 0 if row is None else (int(row[0]) // longer + 1) * longer
            if row is None:
                return None
        statement = _MISMATCH.format(
            longer=longer, span=span, sums=", ".join(f"SUM({name}) AS {name}" for name in NUMBERS),
            minus=", ".join(f"-{name}" for name in NUMBERS),
            differ=" OR ".join(_DIFFER.format(name) if name in SUMS else f"SUM({name}) <> 0" for name in NUMBERS),
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
        """How many there were by reason, in the hours that begin then or later."""
        rows = self._tx.ask(
            "SELECT reason, CAST(SUM(count) AS BIGINT) FROM refusal WHERE campaign = ? AND begins >= ? GROUP BY reason",
            (campaign, since),
        )
        return dict(rows)


def by_span(counts: Iterable[Counts], span: int) -> list[Counts]:
    """The same in rows of this span, in order."""
    made: dict[tuple[int, int], Counts] = {}
    for each in counts:
        key = begins, arm = each.begins - each.begins % span, each.arm
        there = made.get(key)
        made[key] = Counts(begins, arm, *each.values()) if there is None else there.plus(each)
    return [made[key] for key in sorted(made)]
