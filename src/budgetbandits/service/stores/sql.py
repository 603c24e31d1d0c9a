"""What SQL databases share: the statements and the rows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any, ClassVar

from budgetbandits.service.stores.event_sql import IN_ORDER, LATEST_FIRST, PLAIN, EventWords, between
from budgetbandits.service.stores.key_sql import KeyRecord
from budgetbandits.service.stores.lease_sql import EVENT, LeaseTransaction
from budgetbandits.service.stores.operator_sql import OperatorTransaction
from budgetbandits.service.stores.page_sql import Pages
from budgetbandits.service.stores.records import ArmRow, Campaign, Decision, Event
from budgetbandits.service.stores.rollup_sql import Rollups
from budgetbandits.service.stores.rows import (
    ARM,
    CAMPAIGN,
    DECISION,
    OF_DECISION,
    PLAIN_DECISION,
    arm_of,
    campaign_of,
    decision_of,
    down_text,
    json_text,
    money_of,
)

_MONEY = "budget = ?, spent = ?, held = ?, overrun = ?, day = ?, today = ?, leased = ?, gone = ?"

# what is run all the time, put together once
_BY_ID = f"SELECT {DECISION} FROM decision WHERE id = ?"
_BY_KEY = f"SELECT {DECISION} FROM decision WHERE campaign = ? AND key = ?"
# of most decisions nothing is said beforehand: NULLs that need not be written are felt at every one
_ADD_PLAIN = f"INSERT INTO decision ({PLAIN_DECISION}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
_ADD_DECISION = f"INSERT INTO decision ({DECISION}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
_SAVE_DECISION = (
    "UPDATE decision SET state = ?, charged = ?, overrun = ?, reported = ?, cost = ?, reward = ? WHERE id = ?"
)
_SAVE_FAILED = "UPDATE decision SET failed = ? WHERE id = ?"
_ADD_PENDING = "INSERT INTO pending (expires_at, decision, campaign, created_at) VALUES (?, ?, ?, ?)"
_DROP_PENDING = "DELETE FROM pending WHERE expires_at = ? AND decision = ?"
OF_DECISIONS = frozenset(
    {_BY_ID, _BY_KEY, _ADD_PLAIN, _ADD_DECISION, _SAVE_DECISION, _SAVE_FAILED, _ADD_PENDING, _DROP_PENDING}
)
"""What is run all the time and is about decisions alone."""
_SAVE_CAMPAIGN = f"UPDATE campaign SET {_MONEY}, learned = ?, down = ? WHERE id = ?"
_SAVE_MONEY = f"UPDATE campaign SET {_MONEY} WHERE id = ?"
_SAVE_STATUS = "UPDATE campaign SET status = ? WHERE id = ?"
_NAMED = "(SELECT id FROM campaign_name WHERE name = ?)"
_SAVE_ARM = "UPDATE arm SET learned = ?, active = ? WHERE campaign = ? AND number = ?"
_ADD_EVENT = f"INSERT INTO event ({EVENT}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
_OWN_EVENT = " AND (lease IS NULL OR kind IN ('leased', 'merged', 'returned'))"


class SqlTransaction(LeaseTransaction, OperatorTransaction):
    """Every row read and written by plain SQL with ``?`` for values; a database supplies how to run it."""

    EVENTS: ClassVar[EventWords] = PLAIN
    LISTS_PENDING = False
    """Whether the list of pending decisions is a table that must be kept, not a view."""

    def whole(self, number: str) -> str:
        """An expression for the whole part of a number that is not negative."""
        return f"CAST({number} AS BIGINT)"

    def contains(self, text: str) -> str:
        """An expression for whether another text, which is its value, is part of a text."""
        return f"instr({text}, ?) > 0"

    def rollups(self) -> Rollups:
        return Rollups(self)

    def pages(self) -> Pages:
        return Pages(self)

    def key_record(self) -> KeyRecord:
        return KeyRecord(self)

    def ask(self, statement: str, values: Sequence[Any] = ()) -> Any:
        """For `rollups` and `pages`, as are the next two: run a statement that changes nothing."""
        return self._do(statement, values)

    def change(self, statement: str, values: Sequence[Any] = ()) -> None:
        self._change(statement, values)

    def change_many(self, statement: str, rows: Sequence[Sequence[Any]]) -> None:
        self._change_many(statement, rows)

    def campaign(self, id: str) -> Campaign | None:
        row = self._do(f"SELECT {CAMPAIGN} FROM campaign WHERE id = ?{self.LOCK}", (id,)).fetchone()
        return None if row is None else campaign_of(row)

    def campaign_named(self, name: str) -> Campaign | None:
        row = self._do(f"SELECT {CAMPAIGN} FROM campaign WHERE id = {_NAMED}{self.LOCK}", (name,)).fetchone()
        return None if row is None else campaign_of(row)

    def campaigns(self, limit: int | None = None, after: str = "") -> list[Campaign]:
        good = (row for row in self._campaigns_there(limit, after) if isinstance(row, Campaign))
        return list(islice(good, limit))

    def damaged(self) -> list[str]:
        return [row for row in self._campaigns_there() if isinstance(row, str)]

    def _campaigns_there(self, at_once: int | None = None, after: str = "") -> Iterator[Campaign | str]:
        """All of them, read at once or so many at a time; of one that cannot be read, the name."""
        some = "" if at_once is None else f" LIMIT {at_once:d}"
        while True:
            later = " WHERE (created_at, id) > (SELECT created_at, id FROM campaign WHERE id = ?)" if after else ""
            statement = f"SELECT {CAMPAIGN} FROM campaign{later} ORDER BY created_at, id{some}"
            rows = self._do(statement, (after,) if after else ()).fetchall()
            for row in rows:
                try:
                    yield campaign_of(row)
                except (LookupError, ArithmeticError, TypeError, ValueError):
                    yield str(row[1])
            if at_once is None or len(rows) < at_once:
                return
            after = rows[-1][0]

    def add_campaign(self, campaign: Campaign) -> None:
        facts = campaign.settings["cost_max"], campaign.settings.get("currency"), campaign.name.casefold()
        self._change(
            "INSERT INTO campaign_name (id, name, cost_max, currency, folded) VALUES (?, ?, ?, ?, ?)",
            (campaign.id, campaign.name, *facts),
        )
        self._change(
            f"INSERT INTO campaign ({CAMPAIGN}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (
                campaign.id, campaign.name, campaign.policy, campaign.account.status, *money_of(campaign.account),
                json_text(campaign.settings), json_text(campaign.learned), campaign.created_at,
            ),
        )  # fmt: skip

    def save_campaign(self, campaign: Campaign) -> None:
        values = (*money_of(campaign.account), json_text(campaign.learned), down_text(campaign), campaign.id)
        self._change(_SAVE_CAMPAIGN, values)

    def save_settings(self, campaign: Campaign) -> None:
        self._change("UPDATE campaign SET settings = ? WHERE id = ?", (json_text(campaign.settings), campaign.id))

    def save_money(self, campaign: Campaign) -> None:
        self._change(_SAVE_MONEY, (*money_of(campaign.account), campaign.id))

    def _save_status(self, campaign: Campaign) -> None:
        self._change(_SAVE_STATUS, (campaign.account.status, campaign.id))

    def arms(self, campaign: str, numbers: Sequence[int] | None = None) -> list[ArmRow]:
        which = "" if numbers is None else f" AND number IN ({', '.join('?' * len(numbers))})"
        values = (campaign, *(numbers or ()))
        return [
            arm_of(row) for row in self._do(f"SELECT {ARM} FROM arm WHERE campaign = ?{which} ORDER BY number", values)
        ]

    def add_arms(self, arms: Sequence[ArmRow]) -> None:
        names = [(a.campaign, a.number, a.name) for a in arms]
        self._change_many("INSERT INTO arm_name (campaign, number, name) VALUES (?, ?, ?)", names)
        rows = [(a.campaign, a.number, a.name, a.cost_cap, json_text(a.learned), a.active) for a in arms]
        self._change_many(f"INSERT INTO arm ({ARM}) VALUES (?, ?, ?, ?, ?, ?)", rows)

    def save_arms(self, arms: Sequence[ArmRow]) -> None:
        self._change_all(_SAVE_ARM, [(json_text(a.learned), a.active, a.campaign, a.number) for a in arms])

    def decision(self, id: str) -> Decision | None:
        return self._one_decision(_BY_ID, (id,))

    def decisions_of(self, ids: Sequence[str]) -> list[Decision]:
        if not ids:
            return []
        marks = ", ".join("?" * len(ids))
        return [decision_of(row) for row in self._do(f"SELECT {DECISION} FROM decision WHERE id IN ({marks})", ids)]

    def decision_by_key(self, campaign: str, key: str) -> Decision | None:
        return self._one_decision(_BY_KEY, (campaign, key))

    def _one_decision(self, statement: str, values: tuple[str, ...]) -> Decision | None:
        row = self._do(statement, values).fetchone()
        return None if row is None else decision_of(row)

    def add_decision(self, decision: Decision) -> None:
        d, h = decision, decision.hold
        values = (
            d.id, d.campaign, d.arm, h.amount, h.state, h.charged, h.overrun, h.reported, d.cost, d.reward,
            d.key, d.payload, d.created_at, d.expires_at, d.lease,
        )  # fmt: skip
        if d.request is None and d.propensity is None:
            self._change(_ADD_PLAIN, values)
        else:
            self._change(_ADD_DECISION, (*values, d.request, d.propensity, d.failed))
        if self.LISTS_PENDING and h.state == "pending":
            self._change(_ADD_PENDING, (d.expires_at, d.id, d.campaign, d.created_at))

    def save_decision(self, decision: Decision) -> None:
        d, h = decision, decision.hold
        self._change(_SAVE_DECISION, (h.state, h.charged, h.overrun, h.reported, d.cost, d.reward, d.id))
        if d.failed:
            self._change(_SAVE_FAILED, (True, d.id))
        if self.LISTS_PENDING and h.state != "pending":
            self._change(_DROP_PENDING, (d.expires_at, d.id))

    def forget_key(self, decision: Decision) -> None:
        self._change("UPDATE decision SET key = id WHERE id = ?", (decision.id,))

    def due(self, now: float, limit: int) -> list[tuple[str, str]]:
        rows = self._do(
            "SELECT decision.campaign, decision.id FROM pending JOIN decision ON decision.id = pending.decision "
            "WHERE pending.expires_at <= ? ORDER BY pending.expires_at LIMIT ?",
            (now, limit),
        )
        return [(campaign, id) for campaign, id in rows]

    def pending(self, campaign: str) -> dict[str, float]:
        return dict(self._do("SELECT decision, expires_at FROM pending WHERE campaign = ?", (campaign,)))

    def pending_of(self, ids: Sequence[str]) -> dict[str, float]:
        if not ids:
            return {}
        marks = ", ".join("?" * len(ids))
        rows = self._do(
            "SELECT pending.decision, pending.expires_at FROM decision JOIN pending "
            "ON pending.expires_at = decision.expires_at AND pending.decision = decision.id "
            f"WHERE decision.id IN ({marks})",
            ids,
        )
        return dict(rows)

    def set_expiry(self, decision: str, expires_at: float) -> None:
        if self.LISTS_PENDING:
            self._change(
                "UPDATE pending SET expires_at = ? WHERE decision = ? "
                "AND expires_at = (SELECT expires_at FROM decision WHERE id = ?)",
                (expires_at, decision, decision),
            )
        self._change("UPDATE decision SET expires_at = ? WHERE id = ?", (expires_at, decision))

    def booked(self, campaign: str, begin: float, end: float) -> int:
        row = self._do(
            "SELECT CAST(COALESCE(SUM(CASE state WHEN 'pending' THEN hold ELSE charged END), 0) AS BIGINT) "
            "FROM decision WHERE campaign = ? AND lease IS NULL AND created_at >= ? AND created_at < ?",
            (campaign, begin, end),
        ).fetchone()
        return int(row[0])

    def decisions(self, campaign: str, after: int = 0, limit: int = 1000) -> list[tuple[int, Decision]]:
        rows = self._do(
            f"SELECT event.seq, {OF_DECISION} FROM (SELECT seq, decision FROM event WHERE {self.EVENTS.between} "
            f"AND kind = 'decided' ORDER BY {IN_ORDER} LIMIT {limit:d}) AS event "
            "JOIN decision ON decision.id = event.decision ORDER BY event.seq",
            between(campaign, after),
        )
        return [(row[0], decision_of(row[1:])) for row in rows]

    def totals(self, campaign: str) -> list[tuple[int, int, int, float]]:
        rows = self._do(
            "SELECT arm, SUM(CASE state WHEN 'pending' THEN 1 ELSE 0 END), CAST(SUM(charged + overrun) AS BIGINT), "
            "COALESCE(SUM(reward), 0.0) FROM decision WHERE campaign = ? GROUP BY arm ORDER BY arm",
            (campaign,),
        )
        return [(arm, int(open), spent, reward) for arm, open, spent, reward in rows]

    def add_event(self, event: Event) -> None:
        self._add_events([event])

    def _add_events(self, events: Sequence[Event]) -> None:
        self._change_all(
            _ADD_EVENT,
            [(e.campaign, e.kind, e.at, e.decision, e.arm, e.amount, e.reward, e.lease, e.turn, e.actor, e.request,
              e.propensity) for e in events],
        )  # fmt: skip

    def events(self, campaign: str, after: int = 0, limit: int = 1000, kind: str | None = None) -> list[Event]:
        of_kind, kinds = ("", ()) if kind is None else (" AND kind = ?", (kind,))
        rows = self._do(
            f"SELECT {EVENT}, seq FROM event WHERE {self.EVENTS.between}{of_kind} ORDER BY {IN_ORDER} LIMIT ?",
            (*between(campaign, after), *kinds, limit),
        )
        return [Event(*row) for row in rows]

    def last_event(self, campaign: str) -> int:
        return self._last_event(campaign, "")

    def last_own_event(self, campaign: str) -> int:
        return self._last_event(campaign, _OWN_EVENT)

    def _last_event(self, campaign: str, which: str) -> int:
        query = f"SELECT seq FROM event WHERE {self.EVENTS.between}{which} ORDER BY {LATEST_FIRST} LIMIT 1"
        row = self._do(query, between(campaign)).fetchone()
        return 0 if row is None else int(row[0])
