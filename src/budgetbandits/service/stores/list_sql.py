"""Which campaigns a page of the list shows, in SQL: found, counted and ordered where the rows are.

Only the campaigns of one page are read. What they are ordered by first, how urgent each is, is the `Rank` that
`dashboard.status.standing` gives the same row.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from budgetbandits.service.stores.sql import SqlTransaction

Order = Literal["alarm", "name", "left", "newest"]
Group = Literal["attention", "running", "stopped"]


class Rank(IntEnum):
    """How a campaign is; the most urgent have the lowest."""

    FROZEN = 0
    EXHAUSTED = 1
    """Since a day ago or less."""
    BLOCKED = 2
    SILENT = 3
    OVERRAN = 4
    """It was resumed a day ago or less, after an overrun."""
    DOWN = 5
    """An arm has failed so often in a row that it rests."""
    NEARLY_EXHAUSTED = 6
    RUNNING = 7
    PAUSED = 8
    SPENT = 9
    """Exhausted for longer."""
    CLOSED = 10

    @property
    def group(self) -> Group:
        return "attention" if self < Rank.RUNNING else "running" if self == Rank.RUNNING else "stopped"


@dataclass(frozen=True)
class Since:
    """Moments that tell alarms from what is well: ``silent`` is when decisions that still have no feedback must have
    been made, ``recent`` since when money that is gone, or going on after an overrun, is news."""

    silent: float
    recent: float


@dataclass(frozen=True)
class Listed:
    """The campaigns of one page, in order, and how many there are of each rank whose name fits."""

    ids: list[str]
    counts: dict[Rank, int]


@dataclass(frozen=True)
class Sums:
    """Over campaigns: how many there are, their money in micros, and their currency."""

    campaigns: int
    money: dict[str, int]
    currencies: list[str | None]
    """Two at most: which they are counts only if there is one."""


_HALF = 2**32
_LEFT = "(c.budget - c.spent - c.held - c.leased)"
_HEARD = "(CASE WHEN m.last_feedback_at > c.created_at THEN m.last_feedback_at ELSE c.created_at END)"
_LATEST = f"(CASE WHEN m.decided_at > {_HEARD} THEN m.decided_at ELSE {_HEARD} END)"
HELD_IN_LEASES = "(SELECT CAST(COALESCE(SUM(l.held), 0) AS BIGINT) FROM lease l WHERE l.campaign = c.id)"
"""What decisions under leases of a campaign c hold, which is in ``leased`` with what they may still hold."""
FREE_IN_LEASES = (
    "(SELECT CAST(COALESCE(MAX(l.amount - l.spent - l.held), 0) AS BIGINT) FROM lease l WHERE l.campaign = c.id)"
)
"""The most that one lease of a campaign c has for a new decision."""
_GROUP = f"(CASE WHEN rank < {Rank.RUNNING:d} THEN 0 WHEN rank = {Rank.RUNNING:d} THEN 1 ELSE 2 END)"
_ORDERS: dict[Order, str] = {
    "alarm": "rank, COALESCE(decided_at, 0.0) DESC, name",
    "name": f"{_GROUP}, folded, id",
    "left": f"{_GROUP}, CAST(unspent AS DOUBLE PRECISION) / budget, name",
    "newest": f"{_GROUP}, created_at DESC, name",
}


def resumed(tx: SqlTransaction) -> str:
    """An expression for when a campaign c with its mark m was first resumed after its latest overrun."""
    which = "e.decision IS NULL AND e.lease IS NULL AND e.kind = 'active'"
    return tx.EVENTS.first_after("at", "c.id", "m.overran", which)


def _cap(which: str) -> str:
    """The smallest or the largest cap of a campaign c."""
    return f"COALESCE((SELECT {which}(a.cost_cap) FROM arm a WHERE a.campaign = c.id AND a.active), 0)"


def _sum(name: str) -> str:
    """Expressions for a sum over campaigns, which may be more than a database's largest number: its upper half and its
    lower one, for `_whole`."""
    halves = f"{name} / {_HALF}", f"{name} & {_HALF - 1}"
    return ", ".join(f"CAST(COALESCE(SUM({each}), 0) AS BIGINT)" for each in halves)


def _whole(halves: Sequence[int]) -> list[int]:
    return [upper * _HALF + lower for upper, lower in zip(halves[::2], halves[1::2], strict=True)]


def _below(which: str) -> str:
    """Whether the money left is below this of the arms' caps, which are looked up only where it may be."""
    return f"{_LEFT} < f.cost_max AND {_LEFT} < {_cap(which)}"


_SILENT = (
    "m.oldest_unanswered_at < ? AND m.oldest_unanswered_at >= COALESCE(m.last_feedback_at, 0.0) "
    f"AND (c.held > 0 OR m.decided_at > ? OR {HELD_IN_LEASES} > 0)"
)
"""Whether decisions wait for feedback; both values are ``silent`` of `Since`."""
_RANK = (
    f"CASE WHEN c.status = 'frozen' THEN {Rank.FROZEN:d} WHEN c.status = 'paused' THEN {Rank.PAUSED:d} "
    f"WHEN c.status = 'closed' THEN {Rank.CLOSED:d} "
    f"WHEN {_below('MIN')} AND {FREE_IN_LEASES} < {_cap('MIN')} "
    f"THEN CASE WHEN c.held + c.leased > 0 THEN {Rank.BLOCKED:d} "
    f"WHEN {_LATEST} > ? THEN {Rank.EXHAUSTED:d} ELSE {Rank.SPENT:d} END "
    f"WHEN {_SILENT} THEN {Rank.SILENT:d} "
    f"WHEN c.overrun > 0 AND {{resumed}} > ? THEN {Rank.OVERRAN:d} "
    f"WHEN c.down IS NOT NULL THEN {Rank.DOWN:d} "
    f"WHEN {_below('MAX')} THEN {Rank.NEARLY_EXHAUSTED:d} ELSE {Rank.RUNNING:d} END"
)
"""The rank of a campaign c with its facts f and its mark m, with `resumed` to fill in. The values are of `Since`:
``recent``, ``silent`` twice and ``recent`` again."""


class CampaignLists:
    """What the list of campaigns asks a transaction; ``only`` the campaign of this id, if one is given."""

    def __init__(self, tx: SqlTransaction, only: str | None) -> None:
        self._tx, self._only = tx, only

    def listed(
        self, since: Since, text: str, group: Group | Literal["all"], order: Order, limit: int, offset: int
    ) -> Listed:
        """Those of a group with this text in their names, from ``offset`` on."""
        table, values = self._table(since, text)
        ranks = [rank for rank in Rank if group in ("all", rank.group)]
        # ranked once for both: the counts, and the page
        rows = self._tx.ask(
            f"WITH t AS MATERIALIZED ({table}) SELECT NULL, rank, COUNT(*) FROM t GROUP BY rank UNION ALL "
            f"SELECT id, rank, ROW_NUMBER() OVER (ORDER BY {_ORDERS[order]}) FROM (SELECT * FROM t "
            f"WHERE rank BETWEEN {min(ranks):d} AND {max(ranks):d} "
            f"ORDER BY {_ORDERS[order]} LIMIT {limit:d} OFFSET {offset:d}) AS p",
            values,
        ).fetchall()
        page = sorted((number, id) for id, _, number in rows if id is not None)
        return Listed([id for _, id in page], {Rank(rank): count for id, rank, count in rows if id is None})

    def sums(self) -> Sums:
        """Over all campaigns that there are to be seen."""
        which, values = ("", ()) if self._only is None else (" WHERE id = ?", (self._only,))
        names = ("budget", "spent", "held", "leased", "overrun")
        sums = ", ".join(map(_sum, names))
        count, *halves = self._tx.ask(f"SELECT COUNT(*), {sums} FROM campaign{which}", values).fetchone()
        money = dict(zip(names, _whole(halves), strict=True))
        money["left"] = money["budget"] - money["spent"] - money["held"] - money["leased"]
        of_one = "" if self._only is None else " WHERE campaign = ?"
        [in_leases] = _whole(self._tx.ask(f"SELECT {_sum('spent')} FROM lease{of_one}", values).fetchone())
        money["spent_with_leases"] = money["spent"] + in_leases
        found = self._tx.ask(f"SELECT DISTINCT currency FROM campaign_name{which} LIMIT 2", values)
        return Sums(count, money, [currency for (currency,) in found])

    def _table(self, since: Since, text: str) -> tuple[str, list[Any]]:
        """A query for what the list is ordered by, and its values."""
        values: list[Any] = [since.recent, since.silent, since.silent, since.recent]
        which = []
        if text:
            which.append(self._tx.contains("f.folded"))
            values.append(text.casefold())
        if self._only is not None:
            which.append("c.id = ?")
            values.append(self._only)
        table = (
            f"SELECT c.id, c.name, c.created_at, c.budget, {_LEFT} AS unspent, m.decided_at, "
            f"f.folded, {_RANK.format(resumed=resumed(self._tx))} AS rank "
            "FROM campaign c JOIN campaign_name f ON f.id = c.id "
            f"LEFT JOIN rollup_mark m ON m.campaign = c.id{' WHERE ' if which else ''}{' AND '.join(which)}"
        )
        return table, values
