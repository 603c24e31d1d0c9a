"""What pages show, in SQL. Each question costs as much as its answer is long, however long a campaign is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from budgetbandits.service.stores.event_sql import LARGEST_NUMBER, LATEST_FIRST, between
from budgetbandits.service.stores.glance_sql import CampaignSummary, glances
from budgetbandits.service.stores.lease_sql import EVENT
from budgetbandits.service.stores.list_sql import CampaignLists, resumed
from budgetbandits.service.stores.records import Decision, Event
from budgetbandits.service.stores.rows import OF_DECISION, decision_of, segment_of

if TYPE_CHECKING:
    from budgetbandits.service.stores.sql import SqlTransaction

LOOKED_AT = 2000
"""Latest decisions among which those of a kind are looked for."""

MOST_HOLDS = 10_000
"""Open holds that are counted."""

_OPERATORS = "decision IS NULL AND lease IS NULL"

Kind = Literal["all", "held", "settled", "failed", "expired", "voided", "overrun"]
KINDS: dict[Kind, str] = {
    "all": "1 = 1",
    "held": "decision.state = 'pending'",
    "settled": "decision.state = 'settled'",
    "failed": "decision.failed",
    "expired": "decision.state = 'expired'",
    "voided": "decision.state = 'voided'",
    "overrun": "decision.overrun > 0",
}


@dataclass(frozen=True)
class Filter:
    """Which decisions are looked for: of a kind, of the arm of this number, of this segment."""

    kind: Kind = "all"
    arm: int | None = None
    segment: str | None = None


ANY = Filter()


@dataclass(frozen=True)
class Found:
    """Decisions, the newest first, and the number of the event before which to go on; None if there are no more."""

    decisions: list[Decision]
    older: int | None


@dataclass(slots=True)
class Holds:
    """Open holds: for each age in seconds that was asked for, how many are younger, and when the first one expires."""

    counts: list[int]
    """The last is how many there are, or as many as are looked at."""
    expires_at: float | None
    amount: int
    """What the hold is that expires first."""

    @property
    def more(self) -> bool:
        """Whether there may be more than are looked at."""
        return self.counts[-1] >= MOST_HOLDS


class Pages:
    """What pages ask a transaction."""

    def __init__(self, tx: SqlTransaction) -> None:
        self._tx, self._between = tx, tx.EVENTS.between

    def lists(self, only: str | None = None) -> CampaignLists:
        """The list of campaigns, or of one."""
        return CampaignLists(self._tx, only)

    def glances(self, campaigns: Sequence[str]) -> list[CampaignSummary]:
        """These campaigns, in this order."""
        return glances(self._tx, campaigns)

    def names(self, campaigns: Sequence[str]) -> dict[str, str]:
        """What these campaigns are called, by id."""
        if not campaigns:
            return {}
        marks = ", ".join("?" * len(campaigns))
        return dict(self._tx.ask(f"SELECT id, name FROM campaign_name WHERE id IN ({marks})", campaigns).fetchall())

    def spent_by(self, span: int, campaigns: Sequence[str], since: float) -> dict[str, dict[int, int]]:
        """What each of these campaigns has spent, by when the minute, hour or day began, as far as it is added up."""
        spent: dict[str, dict[int, int]] = {id: {} for id in campaigns}
        if not campaigns:
            return spent  # PostgreSQL knows no empty list
        marks = ", ".join("?" * len(campaigns))
        rows = self._tx.ask(
            "SELECT campaign, begins, CAST(SUM(spent) AS BIGINT) FROM rollup "
            f"WHERE campaign IN ({marks}) AND span = {span:d} AND begins >= ? GROUP BY campaign, begins",
            (*campaigns, int(since)),
        )
        for id, begins, amount in rows:
            spent[id][begins] = amount
        return spent

    def decisions(self, campaign: str, limit: int, which: Filter = ANY, before: int | None = None) -> Found:
        """The latest decisions that were made before this event; those of a kind, an arm or a segment among the latest
        thousands."""
        looked = limit + 1 if which == ANY else LOOKED_AT
        made = f"SELECT decision, seq FROM event WHERE {self._between} AND kind = 'decided' ORDER BY {LATEST_FIRST}"
        window, values = f"({made} LIMIT {looked}) AS e", _before(campaign, before)
        arm_state = "" if which.arm is None else " AND decision.arm = ?"
        rows = self._tx.ask(
            f"SELECT e.seq, {OF_DECISION} FROM {window} JOIN decision ON decision.id = e.decision "
            f"WHERE {KINDS[which.kind]}{arm_state} ORDER BY e.seq DESC",
            values if which.arm is None else (*values, which.arm),
        )
        found: list[tuple[int, Decision]] = []
        for seq, *row in rows:
            if len(found) > limit:
                break
            if which.segment is None or segment_of(row) == which.segment:
                found.append((seq, decision_of(row)))
        if len(found) > limit:
            return Found([each for _, each in found[:limit]], found[limit - 1][0])
        least, count = self._tx.ask(f"SELECT MIN(seq), COUNT(*) FROM {window}", values).fetchone()
        return Found([each for _, each in found], int(least) if count == looked else None)

    def operators_events(
        self, campaign: str, limit: int, before: int | None = None, kinds: Sequence[str] = ()
    ) -> list[Event]:
        """What operators have done, and when the campaign froze, before this event; the latest first. All of it, or
        what is of these kinds."""
        of_kinds = f" AND kind IN ({', '.join('?' * len(kinds))})" if kinds else ""
        rows = self._tx.ask(
            f"SELECT {EVENT}, seq FROM event WHERE {self._between} AND {_OPERATORS}{of_kinds} "
            f"ORDER BY {LATEST_FIRST} LIMIT ?",
            (*_before(campaign, before), *kinds, limit),
        )
        return [Event(*row) for row in rows]

    def numbers(self, campaign: str, kind: str) -> list[int]:
        """Of all those events of one kind, the latest first."""
        query = f"SELECT seq FROM event WHERE {self._between} AND {_OPERATORS} AND kind = ? ORDER BY {LATEST_FIRST}"
        return [seq for (seq,) in self._tx.ask(query, (*between(campaign), kind))]

    def last_event(self) -> int:
        """The number of the latest event of any campaign."""
        row = self._tx.ask("SELECT MAX(seq) FROM event").fetchone()
        return int(row[0] or 0)

    def event(self, seq: int) -> Event | None:
        row = self._tx.ask(f"SELECT {EVENT}, seq FROM event WHERE seq = ?", (seq,)).fetchone()
        return None if row is None else Event(*row)

    def resumed_at(self, campaign: str, overran: int) -> float | None:
        """When a campaign was first resumed after the event of this number."""
        given = "(SELECT CAST(? AS TEXT) AS id) AS c, (SELECT CAST(? AS BIGINT) AS overran) AS m"
        row = self._tx.ask(f"SELECT {resumed(self._tx)} FROM {given}", (campaign, overran)).fetchone()
        return None if row is None else row[0]

    def holds(self, campaign: str, now: float, ages: Sequence[float]) -> Holds:
        """The open holds by age, of `MOST_HOLDS` at most: those that expire first."""
        counts = ", ".join(["COALESCE(SUM(CASE WHEN p.created_at > ? THEN 1 ELSE 0 END), 0)"] * len(ages))
        first = "SELECT {} FROM pending WHERE campaign = ? ORDER BY expires_at LIMIT {}"
        row = self._tx.ask(
            f"SELECT {counts}, COUNT(*) FROM ({first.format('created_at', MOST_HOLDS)}) AS p",
            (*(now - age for age in ages), campaign),
        ).fetchone()
        soonest = self._tx.ask(
            f"SELECT p.expires_at, d.hold FROM ({first.format('decision, expires_at', 1)}) AS p "
            "JOIN decision d ON d.id = p.decision",
            (campaign,),
        ).fetchone()
        expires_at, amount = (None, 0) if soonest is None else soonest
        return Holds([int(each) for each in row], expires_at, amount)


def _before(campaign: str, seq: int | None) -> tuple[str, int, str, int]:
    """The values of `EventWords.between` for a campaign's events before this one, or for all."""
    return between(campaign, upto=LARGEST_NUMBER if seq is None else seq - 1)
