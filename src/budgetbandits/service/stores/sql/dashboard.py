"""The queries of pages, in SQL. The cost of each grows with the length of its answer, not of the campaign.

The list of campaigns is filtered, counted and ordered where the rows are, and only the campaigns of one page are read.
They are ordered by urgency first: by their `Rank`, which is found here and nowhere else.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Literal

from budgetbandits.formatting.datetimes import DAY, HOUR
from budgetbandits.service.ledger import Account
from budgetbandits.service.shared_budgets.rules import SharedBudget
from budgetbandits.service.stores.records import CampaignSummary, DecisionRow, Event, Group, Rank, Watermark
from budgetbandits.service.stores.sql.decision_search import DecisionSearch
from budgetbandits.service.stores.sql.rows import (
    ACCOUNT,
    DECISION,
    NUMBERED_EVENT,
    decision_of,
    listed,
    places,
    settings_of,
    tags_text,
)
from budgetbandits.service.stores.sql.shared_budgets import SharedBudgetRows
from budgetbandits.service.stores.sql.statements import (
    BETWEEN,
    EVENT_NUMBER_MAX,
    LATEST_FIRST,
    Statements,
    between,
    first_after,
)

Order = Literal["alarm", "name", "left", "newest"]

SILENCE_SECONDS = HOUR
"""Seconds that the first decision since the latest feedback may wait before it is an alarm, if anything is held or was
decided in as many seconds: short holds have expired before anybody misses the feedback."""
ALARM_SECONDS = DAY
"""Seconds for which it is an alarm that all money is spent, or that a campaign goes on after an overrun: from the
moment it was resumed, however long it had been frozen."""


@dataclass(frozen=True)
class CampaignPage:
    """The campaigns of one page, in order, and for each rank the number of campaigns whose name fits."""

    ids: list[str]
    counts: dict[Rank, int]


@dataclass(frozen=True)
class CampaignSums:
    """Sums over the campaigns of one currency: their number, and their money in micros."""

    currency: str | None
    campaigns: int
    money: dict[str, int]


_HALF = 2**32
_OWN_LEFT = "(c.budget - c.spent - c.held - c.leased)"
_SHARED_LEFT = "(s.budget - s.spent - s.held - s.leased)"
_BY_SHARED = f"(s.name IS NOT NULL AND {_SHARED_LEFT} < {_OWN_LEFT})"
"""Whether the shared budget s of a campaign c has less left than the campaign itself."""
_LEFT = f"(CASE WHEN {_BY_SHARED} THEN {_SHARED_LEFT} ELSE {_OWN_LEFT} END)"
_OPEN = f"(CASE WHEN {_BY_SHARED} THEN s.held + s.leased ELSE c.held + c.leased END)"
"""Money that is not left but may come back: open holds and leases."""
_HEARD = "(CASE WHEN m.last_feedback_at > c.created_at THEN m.last_feedback_at ELSE c.created_at END)"
_LATEST = f"(CASE WHEN m.last_decision_at > {_HEARD} THEN m.last_decision_at ELSE {_HEARD} END)"
_HELD_IN_LEASES = "(SELECT CAST(COALESCE(SUM(l.held), 0) AS BIGINT) FROM lease l WHERE l.campaign = c.id)"
"""Money that decisions under leases of a campaign c hold; ``leased`` contains it."""
_FREE_IN_LEASES = (
    "(SELECT CAST(COALESCE(MAX(l.amount - l.spent - l.held), 0) AS BIGINT) FROM lease l WHERE l.campaign = c.id)"
)
"""The most that one lease of a campaign c has for a new decision."""
_SPENT_IN_LEASES = "(SELECT CAST(COALESCE(SUM(l.spent), 0) AS BIGINT) FROM lease l WHERE l.campaign = c.id)"
_OVERRUN_AT = "(SELECT e.at FROM event e WHERE e.seq = m.last_overrun_event)"
_GROUP = f"(CASE WHEN rank < {Rank.RUNNING:d} THEN 0 WHEN rank = {Rank.RUNNING:d} THEN 1 ELSE 2 END)"
_ORDERS: dict[Order, str] = {
    "alarm": "rank, COALESCE(last_decision_at, 0.0) DESC, name",
    "name": f"{_GROUP}, folded_name, id",
    "left": f"{_GROUP}, CAST(unspent AS DOUBLE PRECISION) / budget, name",
    "newest": f"{_GROUP}, created_at DESC, name",
}


def _resumed(tx: Statements) -> str:
    """An expression for when a campaign c with its watermark m was first resumed after its latest overrun."""
    condition = "e.decision IS NULL AND e.lease IS NULL AND e.kind = 'active'"
    return first_after("at", "c.id", "m.last_overrun_event", condition)


def _cap(extreme: str) -> str:
    """The smallest (MIN) or the largest (MAX) cap of a campaign c."""
    return f"COALESCE((SELECT {extreme}(a.cost_cap) FROM arm a WHERE a.campaign = c.id AND a.active), 0)"


def _sum(name: str) -> str:
    """Expressions for the upper and the lower half of a sum, which may be more than a database's largest number."""
    halves = f"{name} / {_HALF}", f"{name} & {_HALF - 1}"
    return ", ".join(f"CAST(COALESCE(SUM({half}), 0) AS BIGINT)" for half in halves)


def _whole(halves: Sequence[int]) -> list[int]:
    return [upper * _HALF + lower for upper, lower in zip(halves[::2], halves[1::2], strict=True)]


def _below(extreme: str) -> str:
    """Whether the money left is below the smallest or the largest cap, which is looked up only where it may be."""
    return f"{_LEFT} < f.cost_max AND {_LEFT} < {_cap(extreme)}"


_SILENT = (
    "m.oldest_unanswered_at < ? AND m.oldest_unanswered_at >= COALESCE(m.last_feedback_at, 0.0) "
    f"AND (c.held > 0 OR m.last_decision_at > ? OR {_HELD_IN_LEASES} > 0)"
)
"""Whether decisions wait for feedback; since the time of both values."""
_RESTORED = """REPLACE(c.settings, '"restored_from":null', '') = c.settings"""
"""Whether a campaign c has a ``restored_from``. As text: where those of one campaign are damaged, a database that
reads them as JSON would refuse the whole list. In texts of users quotes are escaped."""
_RANK = (
    f"CASE WHEN c.status = 'frozen' THEN {Rank.FROZEN:d} "
    f"WHEN c.status = 'paused' THEN CASE WHEN {_RESTORED} THEN {Rank.RESTORED:d} ELSE {Rank.PAUSED:d} END "
    f"WHEN c.status = 'closed' THEN {Rank.CLOSED:d} "
    f"WHEN {_below('MIN')} AND {_FREE_IN_LEASES} < {_cap('MIN')} "
    f"THEN CASE WHEN {_OPEN} > 0 THEN {Rank.BLOCKED:d} "
    f"WHEN {_LATEST} > ? THEN {Rank.EXHAUSTED:d} ELSE {Rank.SPENT:d} END "
    f"WHEN {_SILENT} THEN {Rank.SILENT:d} "
    f"WHEN c.overrun > 0 AND {{resumed}} > ? THEN {Rank.OVERRAN:d} "
    f"WHEN c.arms_down IS NOT NULL THEN {Rank.DOWN:d} "
    f"WHEN {_below('MAX')} THEN {Rank.NEARLY_EXHAUSTED:d} ELSE {Rank.RUNNING:d} END"
)
"""The rank of a campaign c with its name f, its watermark m and its shared budget s, with `_resumed` to fill in. The
values are `_alarm_values`."""


def _alarm_values(now: float) -> list[Any]:
    """The values of `_RANK` at this moment."""
    silent, recent = now - SILENCE_SECONDS, now - ALARM_SECONDS
    return [recent, silent, silent, recent]


class CampaignList:
    """The list of campaigns; if ``only`` is given, of the campaign with this id."""

    def __init__(self, tx: Statements, only: str | None) -> None:
        self._tx, self._only = tx, only

    def listed(
        self, now: float, text: str, group: Group | Literal["all"], order: Order, limit: int, offset: int,
        tag: str = "",
    ) -> CampaignPage:  # fmt: skip
        """Campaigns of a group with this text in their names and with this tag, if any, from ``offset`` on."""
        table, values = self._table(now, text, tag)
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
        return CampaignPage([id for _, id in page], {Rank(rank): count for id, rank, count in rows if id is None})

    def tags(self) -> list[str]:
        """All tags of the campaigns of this list, in the order of the alphabet."""
        which, values = ("", ()) if self._only is None else (" AND id = ?", (self._only,))
        rows = self._tx.ask(f"SELECT DISTINCT tags FROM campaign_name WHERE tags IS NOT NULL{which}", values)
        return sorted({tag for (text,) in rows for tag in text.strip("\n").split("\n")})

    def ids(self, limit: int, after: str = "") -> list[str]:
        """The ids of campaigns, the oldest first, from the one after this id on."""
        later = " WHERE (created_at, id) > (SELECT created_at, id FROM campaign WHERE id = ?)" if after else ""
        query = f"SELECT id FROM campaign{later} ORDER BY created_at, id LIMIT {limit:d}"
        return [id for (id,) in self._tx.ask(query, (after,) if after else ())]

    def sums(self) -> list[CampaignSums]:
        """The sums over all campaigns of this list, by currency; those with the most campaigns first."""
        names, values = ("budget", "spent", "held", "leased", "overrun"), () if self._only is None else (self._only,)
        which = "" if self._only is None else " WHERE f.id = ?"
        rows = self._tx.ask(
            f"SELECT f.currency, COUNT(*), {', '.join(_sum(f'c.{name}') for name in names)} FROM campaign c "
            f"JOIN campaign_name f ON f.id = c.id{which} GROUP BY f.currency "
            "ORDER BY COUNT(*) DESC, COALESCE(f.currency, '')",
            values,
        ).fetchall()
        leases = self._tx.ask(
            f"SELECT f.currency, {_sum('l.spent')} FROM lease l JOIN campaign_name f ON f.id = l.campaign{which} "
            "GROUP BY f.currency",
            values,
        )
        in_leases = {currency: _whole(halves)[0] for currency, *halves in leases}
        shared = self._tx.ask(
            f"SELECT f.currency, {_SHARED_LEFT}, {_sum(_OWN_LEFT)} FROM campaign c JOIN campaign_name f ON f.id = c.id "
            f"JOIN shared_budget s ON s.name = f.shared_budget{which} "
            "GROUP BY f.currency, s.name, s.budget, s.spent, s.held, s.leased",
            values,
        )
        beyond = Counter[str | None]()
        for currency, left, *halves in shared:
            beyond[currency] += max(_whole(halves)[0] - left, 0)
        result = []
        for currency, count, *halves in rows:
            money = dict(zip(names, _whole(halves), strict=True))
            unspent = money["budget"] - money["spent"] - money["held"] - money["leased"]
            money["left"] = unspent - beyond[currency]
            money["spent_with_leases"] = money["spent"] + in_leases.get(currency, 0)
            result.append(CampaignSums(currency, count, money))
        return result

    def _table(self, now: float, text: str, tag: str) -> tuple[str, list[Any]]:
        """A query for the columns that the list is ordered by, and its values."""
        values: list[Any] = _alarm_values(now)
        which = []
        if text:
            which.append(self._tx.contains("f.folded_name"))
            values.append(text.casefold())
        if tag:
            which.append(self._tx.contains("f.tags"))
            values.append(tags_text([tag]))
        if self._only is not None:
            which.append("c.id = ?")
            values.append(self._only)
        table = (
            f"SELECT c.id, c.name, c.created_at, c.budget, {_OWN_LEFT} AS unspent, m.last_decision_at, "
            f"f.folded_name, {_RANK.format(resumed=_resumed(self._tx))} AS rank "
            "FROM campaign c JOIN campaign_name f ON f.id = c.id LEFT JOIN shared_budget s ON s.name = f.shared_budget "
            f"LEFT JOIN rollup_watermark m ON m.campaign = c.id{' WHERE ' if which else ''}{' AND '.join(which)}"
        )
        return table, values


DECISIONS_SEARCHED_MAX = 2000
"""The latest decisions among which those of a kind are looked for."""

HOLDS_COUNTED_MAX = 10_000
"""Open holds beyond these are not counted."""

_OPERATORS = "decision IS NULL AND lease IS NULL"

DecisionKind = Literal["all", "held", "settled", "failed", "expired", "voided", "overrun"]
DECISION_KINDS: dict[DecisionKind, str] = {
    "all": "1 = 1",
    "held": "decision.state = 'pending'",
    "settled": "decision.state = 'settled'",
    "failed": "decision.failed",
    "expired": "decision.state = 'expired'",
    "voided": "decision.state = 'voided'",
    "overrun": "decision.overrun > 0",
}
"""Conditions of the kinds of decisions."""


@dataclass(frozen=True)
class DecisionFilter:
    """Which decisions to look for: of a kind, of the arm with this number, of a segment, with an entry of metadata."""

    kind: DecisionKind = "all"
    arm: int | None = None
    segment: str | None = None
    metadata: tuple[str, str] | None = None
    """The name of the entry, and its value as text."""

    def matches(self, decision: DecisionRow) -> bool:
        """Whether the request of a decision is as wanted."""
        if self.segment is None and self.metadata is None:
            return True
        request = {} if decision.request is None else json.loads(decision.request)
        if self.segment is not None and request.get("segment") != self.segment:
            return False
        if self.metadata is None:
            return True
        name, text = self.metadata
        notes = request.get("metadata") or {}
        return name in notes and str(notes[name]) == text


ANY_DECISION = DecisionFilter()
"""Filter that every decision passes."""


@dataclass(frozen=True)
class DecisionPage:
    """Decisions, the newest first."""

    decisions: list[DecisionRow]
    older: int | None
    """The number of the event before which the next page begins; None if there are no more."""


@dataclass(slots=True)
class OpenHolds:
    """Open holds by age, and the one that expires first."""

    counts: list[int]
    """Numbers of holds younger than each age that was asked for; the last is the number of all that were counted."""
    expires_at: float | None
    amount: int
    """The amount of the hold that expires first."""

    @property
    def more(self) -> bool:
        """Whether there may be more than were counted."""
        return self.counts[-1] >= HOLDS_COUNTED_MAX


class Pages:
    """Queries for pages, in a transaction."""

    def __init__(self, tx: Statements) -> None:
        self._tx = tx

    def campaign_list(self, only: str | None = None) -> CampaignList:
        """The list of campaigns, or of one."""
        return CampaignList(self._tx, only)

    def search(self) -> DecisionSearch:
        """Queries for single decisions."""
        return DecisionSearch(self._tx)

    def summaries(self, campaigns: Sequence[str], now: float, mark: Watermark | None = None) -> list[CampaignSummary]:
        """These campaigns, in this order, except those whose accounts are damaged.

        The moments of a single campaign may be given by a ``mark`` that is ahead of its rollups.
        """
        if not campaigns:
            return []  # PostgreSQL knows no empty list
        tx, among = self._tx, places(campaigns)
        marks, moments = "rollup_watermark", list[Any]()
        if mark is not None:
            marks = f"(SELECT {', '.join(f'CAST(? AS {kind}) AS {name}' for name, kind in _MOMENTS.items())})"
            moments = [campaigns[0], *(getattr(mark, name) for name in [*_MOMENTS][1:])]
        rolled_up = "COALESCE((SELECT w.seq FROM rollup_watermark w WHERE w.campaign = c.id), 0)"
        rows = tx.ask(
            f"SELECT {listed(_SUMMARY, 'c')}, m.last_decision_at, m.last_feedback_at, m.oldest_unanswered_at, "
            f"{_OVERRUN_AT}, {_SPENT_IN_LEASES}, {_HELD_IN_LEASES}, {_FREE_IN_LEASES}, "
            f"{first_after('at', 'c.id', rolled_up)}, {_RANK.format(resumed=_resumed(tx))}, c.arms_down "
            "FROM campaign c JOIN campaign_name f ON f.id = c.id LEFT JOIN shared_budget s ON s.name = f.shared_budget "
            f"LEFT JOIN {marks} m ON m.campaign = c.id WHERE c.id IN ({among})",
            [*_alarm_values(now), *moments, *campaigns],
        )
        summaries = {}
        for row in rows:
            with suppress(ArithmeticError, TypeError, ValueError):
                summaries[row[0]] = _summary(row)
        arms = tx.ask(
            "SELECT campaign, COUNT(*), MIN(cost_cap), MAX(cost_cap) FROM arm "
            f"WHERE campaign IN ({among}) AND active GROUP BY campaign",
            campaigns,
        )
        for id, *caps in arms:
            if id in summaries:
                summary = summaries[id]
                summary.arms, summary.smallest_cap, summary.largest_cap = caps
        for id, shared in SharedBudgetRows(tx).of_campaigns(list(summaries)).items():
            summaries[id].shared_left = shared.account.left
        return [summaries[id] for id in campaigns if id in summaries]

    def shared_budgets(self, names: Sequence[str]) -> list[SharedBudget]:
        """The shared budgets with these names."""
        return SharedBudgetRows(self._tx).named(names)

    def members(self, shared_budget: str, now: float) -> list[CampaignSummary]:
        """The campaigns of a shared budget, by their names."""
        return self.summaries(SharedBudgetRows(self._tx).members(shared_budget), now)

    def names(self, campaigns: Sequence[str]) -> dict[str, str]:
        """The names of these campaigns, by id."""
        if not campaigns:
            return {}
        marks = places(campaigns)
        return dict(self._tx.ask(f"SELECT id, name FROM campaign_name WHERE id IN ({marks})", campaigns).fetchall())

    def spent_by(self, span: int, campaigns: Sequence[str], since: float) -> dict[str, dict[int, int]]:
        """The spending of each campaign, by the beginning of the minute, hour or day, as far as it is rolled up."""
        spent: dict[str, dict[int, int]] = {id: {} for id in campaigns}
        if not campaigns:
            return spent  # PostgreSQL knows no empty list
        marks = places(campaigns)
        rows = self._tx.ask(
            "SELECT campaign, begins, CAST(SUM(spent) AS BIGINT) FROM rollup "
            f"WHERE campaign IN ({marks}) AND span = {span:d} AND begins >= ? GROUP BY campaign, begins",
            (*campaigns, int(since)),
        )
        for id, begins, amount in rows:
            spent[id][begins] = amount
        return spent

    def decisions(
        self, campaign: str, limit: int, which: DecisionFilter = ANY_DECISION, before: int | None = None
    ) -> DecisionPage:
        """The latest decisions that were made before this event.

        Those that a filter asks for are looked for among the latest `DECISIONS_SEARCHED_MAX`.
        """
        searched = limit + 1 if which == ANY_DECISION else DECISIONS_SEARCHED_MAX
        newest = f"SELECT decision, seq FROM event WHERE {BETWEEN} AND kind = 'decided' ORDER BY {LATEST_FIRST}"
        window, values = f"({newest} LIMIT {searched}) AS e", _before(campaign, before)
        of_arm = "" if which.arm is None else " AND decision.arm = ?"
        rows = self._tx.ask(
            f"SELECT e.seq, {listed(DECISION, 'decision')} FROM {window} JOIN decision ON decision.id = e.decision "
            f"WHERE {DECISION_KINDS[which.kind]}{of_arm} ORDER BY e.seq DESC",
            values if which.arm is None else (*values, which.arm),
        )
        matches: list[tuple[int, DecisionRow]] = []
        for seq, *row in rows:
            if len(matches) > limit:
                break
            decision = decision_of(row)
            if which.matches(decision):
                matches.append((seq, decision))
        if len(matches) > limit:
            return DecisionPage([decision for _, decision in matches[:limit]], matches[limit - 1][0])
        least, count = self._tx.ask(f"SELECT MIN(seq), COUNT(*) FROM {window}", values).fetchone()
        return DecisionPage([decision for _, decision in matches], int(least) if count == searched else None)

    def operator_events(
        self, campaign: str, limit: int, before: int | None = None, kinds: Sequence[str] = ()
    ) -> list[Event]:
        """Changes by operators, and freezes, before this event; the latest first.

        Events of these kinds, or all.
        """
        of_kinds = f" AND kind IN ({places(kinds)})" if kinds else ""
        rows = self._tx.ask(
            f"SELECT {listed(NUMBERED_EVENT)} FROM event WHERE {BETWEEN} AND {_OPERATORS}{of_kinds} "
            f"ORDER BY {LATEST_FIRST} LIMIT ?",
            (*_before(campaign, before), *kinds, limit),
        )
        return [Event(*row) for row in rows]

    def event_numbers(self, campaign: str, kind: str) -> list[int]:
        """The numbers of all operator events of one kind, the latest first."""
        query = f"SELECT seq FROM event WHERE {BETWEEN} AND {_OPERATORS} AND kind = ? ORDER BY {LATEST_FIRST}"
        return [seq for (seq,) in self._tx.ask(query, (*between(campaign), kind))]

    def last_event(self) -> int:
        """The number of the latest event of any campaign."""
        row = self._tx.ask("SELECT MAX(seq) FROM event").fetchone()
        return int(row[0] or 0)

    def event(self, seq: int) -> Event | None:
        """The event of this number."""
        row = self._tx.ask(f"SELECT {listed(NUMBERED_EVENT)} FROM event WHERE seq = ?", (seq,)).fetchone()
        return None if row is None else Event(*row)

    def holds(self, campaign: str, now: float, ages: Sequence[float]) -> OpenHolds:
        """Open holds by age: the `HOLDS_COUNTED_MAX` that expire first."""
        counts = ", ".join(["COALESCE(SUM(CASE WHEN p.created_at > ? THEN 1 ELSE 0 END), 0)"] * len(ages))
        first = "SELECT {} FROM pending_decision WHERE campaign = ? ORDER BY expires_at LIMIT {}"
        row = self._tx.ask(
            f"SELECT {counts}, COUNT(*) FROM ({first.format('created_at', HOLDS_COUNTED_MAX)}) AS p",
            (*(now - age for age in ages), campaign),
        ).fetchone()
        soonest = self._tx.ask(
            f"SELECT p.expires_at, d.hold FROM ({first.format('decision, expires_at', 1)}) AS p "
            "JOIN decision d ON d.id = p.decision",
            (campaign,),
        ).fetchone()
        expires_at, amount = (None, 0) if soonest is None else soonest
        return OpenHolds([int(number) for number in row], expires_at, amount)


def _before(campaign: str, seq: int | None) -> tuple[str, int, int]:
    """The values of `BETWEEN` for a campaign's events before this one, or for all."""
    return between(campaign, upto=EVENT_NUMBER_MAX if seq is None else seq - 1)


_MOMENTS = {
    "campaign": "TEXT", "last_decision_at": "DOUBLE PRECISION", "last_feedback_at": "DOUBLE PRECISION",
    "oldest_unanswered_at": "DOUBLE PRECISION", "last_overrun_event": "BIGINT",
}  # fmt: skip
"""Columns of a watermark by their types: the latest moments of a campaign."""
_SUMMARY = ("id", "name", "policy", *ACCOUNT, "created_at", "settings")
_ACCOUNT_ENDS = 3 + len(ACCOUNT)


def _summary(row: Sequence[Any]) -> CampaignSummary:
    values = list(row)
    values[3:_ACCOUNT_ENDS] = [Account(*row[3:_ACCOUNT_ENDS])]
    values[5], values[-2], values[-1] = settings_of(values[5]), Rank(values[-2]), json.loads(values[-1] or "[]")
    return CampaignSummary(*values)
