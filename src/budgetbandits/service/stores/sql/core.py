"""Campaigns, arms, decisions, leases, events and keys: the statements that SQL databases share."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, ClassVar

from budgetbandits.service.names import normal
from budgetbandits.service.shared_budgets.rules import SharedBudget
from budgetbandits.service.stores.contract import ANSWERS_KEPT, Transaction
from budgetbandits.service.stores.records import (
    LEASE_MILESTONES,
    ArmRow,
    Campaign,
    DecisionRow,
    Event,
    Key,
    KeyEvent,
    Lease,
    LeaseEvent,
)
from budgetbandits.service.stores.sql import rows, shared_budgets
from budgetbandits.service.stores.sql.dashboard import Pages
from budgetbandits.service.stores.sql.hot import RowStatements
from budgetbandits.service.stores.sql.pruning import Pruning
from budgetbandits.service.stores.sql.rollups import Rollups
from budgetbandits.service.stores.sql.rows import assigned, insertion, json_text, listed, places
from budgetbandits.service.stores.sql.statements import BETWEEN, IN_ORDER, Statements, between
from budgetbandits.service.stores.sql.webhooks import Webhooks

_CAMPAIGNS = f"SELECT {listed(rows.CAMPAIGN)} FROM campaign"
_ARMS = f"SELECT {listed(rows.ARM)} FROM arm WHERE campaign = ?"
_DECISIONS = f"SELECT {listed(rows.DECISION)} FROM decision"
_BY_ID = f"{_DECISIONS} WHERE id = ?"
_BY_KEY = f"{_DECISIONS} WHERE campaign = ? AND key = ?"
_ADD_PLAIN = insertion("decision", rows.PLAIN_DECISION)
_ADD_DECISION = insertion("decision", rows.DECISION)
_SAVE_DECISION = f"UPDATE decision SET {assigned(rows.FEEDBACK)} WHERE id = ?"
_SAVE_FAILED = "UPDATE decision SET failed = ? WHERE id = ?"
_ADD_PENDING = insertion("pending_decision", ("expires_at", "decision", "campaign", "created_at"))
_DROP_PENDING = "DELETE FROM pending_decision WHERE expires_at = ? AND decision = ?"
LEASES = f"SELECT {listed(rows.LEASE)} FROM lease"
"""Statement that reads leases."""

LEASE_EVENTS = (
    f"SELECT {listed(rows.NUMBERED_EVENT, 'event')}, {listed(LeaseEvent._fields[1:4], 'decision')}, "
    "decision.created_at FROM event LEFT JOIN decision ON decision.id = event.decision "
    "WHERE event.lease = {} AND event.lease_seq > {} ORDER BY event.lease_seq"
)
"""Statement that reads events of leases."""

_ADD_EVENT = insertion("event", rows.EVENT)
_OWN_EVENT = f" AND (lease IS NULL OR kind IN {LEASE_MILESTONES})"
_FORGET_ANSWERS = (
    "UPDATE operation SET answer = NULL WHERE campaign = ? AND answer IS NOT NULL AND at < "
    "(SELECT at FROM operation WHERE campaign = ? AND answer IS NOT NULL ORDER BY at DESC LIMIT 1 OFFSET ?)"
)
_KEYS = f"SELECT {listed(rows.KEY)} FROM api_key"


class SqlTransaction(Statements, Transaction):
    """Every row read and written by plain SQL.

    Rows of campaigns and arms, and events, may wait in a cache before they are written (`group_commit`). `ask` and
    `change` see to it that they are written first. What is about decisions alone does not: it is run by `_execute`, as
    are the writes of rows that have waited.
    """

    ROWS: ClassVar[RowStatements] = RowStatements()
    LISTS_PENDING = False
    """Whether the list of pending decisions is a table that must be kept, not a view."""

    def __init__(self, connection: Any) -> None:
        self._connection = connection

    def _execute(self, statement: str, values: Sequence[Any] = ()) -> Any:
        return self._connection.execute(statement, values)

    def _execute_many(self, statement: str, rows: Sequence[Sequence[Any]]) -> None:
        if len(rows) == 1:  # which is often so, and quicker
            self._execute(statement, rows[0])
        else:
            self._connection.cursor().executemany(statement, rows)

    def ask(self, statement: str, values: Sequence[Any] = ()) -> Any:
        return self._execute(statement, values)

    def change(self, statement: str, values: Sequence[Any] = ()) -> None:
        self._execute(statement, values)

    def change_many(self, statement: str, rows: Sequence[Sequence[Any]]) -> None:
        self._execute_many(statement, rows)

    def rollups(self) -> Rollups:
        return Rollups(self)

    def pages(self) -> Pages:
        return Pages(self)

    def pruning(self) -> Pruning:
        return Pruning(self)

    def webhooks(self) -> Webhooks:
        return Webhooks(self)

    def shared_budgets(self) -> shared_budgets.SharedBudgetRows:
        return shared_budgets.SharedBudgetRows(self)

    def shared_budget(self, name: str) -> SharedBudget | None:
        row = self.ask(self.ROWS.shared_budget + self.LOCK, (name,)).fetchone()
        return None if row is None else rows.shared_budget_of(row)

    def save_shared_budget(self, shared: SharedBudget) -> None:
        self._execute(self.ROWS.save_shared_budget, (*rows.shared_money_of(shared.account), shared.name))

    def save_shared_settings(self, shared: SharedBudget) -> None:
        self.shared_budgets().save(shared)

    # --- campaigns and arms --------------------------------------------------------------------------------------

    def campaign(self, id_or_name: str) -> Campaign | None:
        name = normal(id_or_name)
        row = self.ask(self.ROWS.campaign + self.LOCK, (name, name, id_or_name)).fetchone()
        return None if row is None else rows.campaign_of(row)

    def campaigns(self, limit: int | None = None, after: str = "") -> list[Campaign]:
        good = (row for row in self._all_campaigns(limit, after) if isinstance(row, Campaign))
        return list(islice(good, limit))

    def damaged_campaigns(self) -> list[str]:
        return [row for row in self._all_campaigns() if isinstance(row, str)]

    def _all_campaigns(self, at_once: int | None = None, after: str = "") -> Iterator[Campaign | str]:
        """All of them, ``at_once`` at a time; of one that cannot be read, the name."""
        clause = "" if at_once is None else f" LIMIT {at_once:d}"
        while True:
            later = " WHERE (created_at, id) > (SELECT created_at, id FROM campaign WHERE id = ?)" if after else ""
            statement = f"{_CAMPAIGNS}{later} ORDER BY created_at, id{clause}"
            result = self.ask(statement, (after,) if after else ()).fetchall()
            for row in result:
                try:
                    yield rows.campaign_of(row)
                except (LookupError, ArithmeticError, TypeError, ValueError):
                    yield str(row[1])
            if at_once is None or len(result) < at_once:
                return
            after = result[-1][0]

    def add_campaign(self, campaign: Campaign) -> None:
        terms = campaign.settings.terms
        facts = (
            campaign.settings.cost_max, terms.currency, campaign.name.casefold(), terms.shared_budget,
            rows.tags_text(terms.tags),
        )  # fmt: skip
        self.change(
            insertion("campaign_name", ("id", "name", "cost_max", "currency", "folded_name", "shared_budget", "tags")),
            (campaign.id, campaign.name, *facts),
        )
        self.change(insertion("campaign", rows.CAMPAIGN), rows.campaign_values(campaign))

    def drop_campaign(self, campaign: Campaign) -> None:
        self.pruning().delete_campaign(campaign.id)

    def save_campaign(self, campaign: Campaign) -> None:
        texts = json_text(campaign.learned), rows.arms_down_text(campaign)
        self._execute(self.ROWS.save_campaign, (*rows.money_of(campaign.account), *texts, campaign.id))

    def save_settings(self, campaign: Campaign) -> None:
        text, name = json_text(campaign.settings.to_dict()), campaign.name
        statement = "UPDATE campaign SET settings = ?, name = ?, policy = ? WHERE id = ?"
        self.change(statement, (text, name, campaign.policy, campaign.id))
        statement = (
            "INSERT INTO former_name (name, campaign) SELECT name, id FROM campaign_name WHERE id = ? AND name != ? "
            "ON CONFLICT DO NOTHING"
        )
        self.change(statement, (campaign.id, name))
        terms = campaign.settings.terms
        facts = name, name.casefold(), campaign.settings.cost_max, terms.shared_budget, rows.tags_text(terms.tags)
        changes = "name = ?, folded_name = ?, cost_max = ?, shared_budget = ?, tags = ?"
        self.change(f"UPDATE campaign_name SET {changes} WHERE id = ?", (*facts, campaign.id))

    def former_names(self, campaign: str) -> list[str]:
        return [name for (name,) in self.ask("SELECT name FROM former_name WHERE campaign = ?", (campaign,))]

    def save_caps(self, campaign: str, caps: Mapping[int, int]) -> None:
        rows = [(cap, campaign, arm) for arm, cap in caps.items()]
        self.change_many("UPDATE arm SET cost_cap = ? WHERE campaign = ? AND number = ?", rows)

    def save_money(self, campaign: Campaign) -> None:
        self._execute(self.ROWS.save_money, (*rows.money_of(campaign.account), campaign.id))

    def _save_status(self, campaign: Campaign) -> None:
        self._execute(self.ROWS.save_status, (campaign.account.status, campaign.id))

    def arms(self, campaign: str, numbers: Sequence[int] | None = None) -> list[ArmRow]:
        which = "" if numbers is None else f" AND number IN ({places(numbers)})"
        result = self.ask(f"{_ARMS}{which} ORDER BY number", (campaign, *(numbers or ())))
        return [rows.arm_of(row) for row in result]

    def add_arms(self, arms: Sequence[ArmRow]) -> None:
        names = [(a.campaign, a.number, a.name) for a in arms]
        self.change_many(insertion("arm_name", ("campaign", "number", "name")), names)
        self.change_many(insertion("arm", rows.ARM), [rows.arm_values(arm) for arm in arms])

    def save_arms(self, arms: Sequence[ArmRow]) -> None:
        self._execute_many(self.ROWS.save_arm, [(json_text(a.learned), a.active, a.campaign, a.number) for a in arms])

    # --- decisions -----------------------------------------------------------------------------------------------

    def decision(self, id: str) -> DecisionRow | None:
        return self._one_decision(_BY_ID, (id,))

    def decisions_of(self, ids: Sequence[str]) -> list[DecisionRow]:
        if not ids:
            return []
        return [rows.decision_of(row) for row in self.ask(f"{_DECISIONS} WHERE id IN ({places(ids)})", ids)]

    def decision_by_key(self, campaign: str, key: str) -> DecisionRow | None:
        return self._one_decision(_BY_KEY, (campaign, key))

    def _one_decision(self, statement: str, values: tuple[str, ...]) -> DecisionRow | None:
        row = self._execute(statement, values).fetchone()
        return None if row is None else rows.decision_of(row)

    def add_decision(self, decision: DecisionRow) -> None:
        d = decision
        if rows.seldom_values(d) == rows.SELDOM_DEFAULTS:
            self._execute(_ADD_PLAIN, rows.plain_decision_values(d))
        else:
            self._execute(_ADD_DECISION, rows.decision_values(d))
        if self.LISTS_PENDING and d.hold.state == "pending":
            self._execute(_ADD_PENDING, (d.expires_at, d.id, d.campaign, d.created_at))

    def save_decision(self, decision: DecisionRow) -> None:
        self._execute(_SAVE_DECISION, (*rows.feedback_values(decision), decision.id))
        if decision.failed:
            self._execute(_SAVE_FAILED, (True, decision.id))
        if self.LISTS_PENDING and decision.hold.state != "pending":
            self._execute(_DROP_PENDING, (decision.expires_at, decision.id))

    def forget_key(self, decision: DecisionRow) -> None:
        self.change("UPDATE decision SET key = id WHERE id = ?", (decision.id,))

    def due_decisions(self, now: float, limit: int, without: Sequence[str] = ()) -> list[tuple[str, str]]:
        others = f"AND decision.campaign NOT IN ({places(without)}) " if without else ""
        rows = self.ask(
            "SELECT decision.campaign, decision.id FROM pending_decision JOIN decision "
            f"ON decision.id = pending_decision.decision WHERE pending_decision.expires_at <= ? {others}"
            "ORDER BY pending_decision.expires_at LIMIT ?",
            (now, *without, limit),
        )
        return [(campaign, id) for campaign, id in rows]

    def pending_decisions(self, campaign: str) -> dict[str, float]:
        return dict(self.ask("SELECT decision, expires_at FROM pending_decision WHERE campaign = ?", (campaign,)))

    def pending_of(self, ids: Sequence[str]) -> dict[str, float]:
        if not ids:
            return {}
        rows = self.ask(
            "SELECT pending.decision, pending.expires_at FROM decision JOIN pending_decision AS pending "
            "ON pending.expires_at = decision.expires_at AND pending.decision = decision.id "
            f"WHERE decision.id IN ({places(ids)})",
            ids,
        )
        return dict(rows)

    def set_expiry(self, decision: str, expires_at: float) -> None:
        if self.LISTS_PENDING:
            self.change(
                "UPDATE pending_decision SET expires_at = ? WHERE decision = ? "
                "AND expires_at = (SELECT expires_at FROM decision WHERE id = ?)",
                (expires_at, decision, decision),
            )
        self.change("UPDATE decision SET expires_at = ? WHERE id = ?", (expires_at, decision))

    def booked_between(self, campaign: str, begin: float, end: float) -> int:
        row = self.ask(
            "SELECT CAST(COALESCE(SUM(CASE state WHEN 'pending' THEN hold ELSE charged END), 0) AS BIGINT) "
            "FROM decision WHERE campaign = ? AND lease IS NULL AND created_at >= ? AND created_at < ?",
            (campaign, begin, end),
        ).fetchone()
        return int(row[0])

    def decisions(self, campaign: str, after: int = 0, limit: int = 1000) -> list[tuple[int, DecisionRow]]:
        result = self.ask(
            f"SELECT event.seq, {listed(rows.DECISION, 'decision')} FROM (SELECT seq, decision FROM event "
            f"WHERE {BETWEEN} AND kind = 'decided' ORDER BY {IN_ORDER} LIMIT {limit:d}) AS event "
            "JOIN decision ON decision.id = event.decision ORDER BY event.seq",
            between(campaign, after),
        )
        return [(row[0], rows.decision_of(row[1:])) for row in result]

    def pending_by_arm(self, campaign: str) -> dict[int, int]:
        rows = self.ask(
            "SELECT decision.arm, COUNT(*) FROM pending_decision AS pending JOIN decision "
            "ON decision.id = pending.decision WHERE pending.campaign = ? GROUP BY decision.arm",
            (campaign,),
        )
        return dict(rows)

    # --- leases --------------------------------------------------------------------------------------------------

    def lease(self, id: str) -> Lease | None:
        row = self._lock_leases(self.ROWS.lease, id).fetchone()
        return None if row is None else rows.lease_of(row)

    def leases(self, campaign: str) -> list[Lease]:
        return [rows.lease_of(row) for row in self._lock_leases(f"{LEASES} WHERE campaign = ? ORDER BY id", campaign)]

    def _lock_leases(self, statement: str, value: str) -> Any:
        return self.ask(statement + self.LOCK, (value,))

    def add_lease(self, lease: Lease) -> None:
        self.change(insertion("lease", rows.LEASE), rows.lease_values(lease))

    def save_lease(self, lease: Lease) -> None:
        self.change(self.ROWS.save_lease, (*rows.lease_changes(lease), lease.id))

    def drop_lease(self, id: str) -> None:
        self.change("DELETE FROM lease WHERE id = ?", (id,))

    def due_leases(self, now: float) -> list[tuple[str, str]]:
        rows = self.ask("SELECT campaign, id FROM lease WHERE expires_at <= ? ORDER BY campaign, id", (now,))
        return [(campaign, id) for campaign, id in rows]

    def lease_events(self, lease: str, after: int) -> list[LeaseEvent]:
        return [rows.lease_event_of(row) for row in self.ask(LEASE_EVENTS.format("?", "?"), (lease, after))]

    # --- events --------------------------------------------------------------------------------------------------

    def add_event(self, event: Event) -> None:
        self._add_events([event])

    def _add_events(self, events: Sequence[Event]) -> None:
        self._execute_many(_ADD_EVENT, [rows.event_values(event) for event in events])

    def events(self, campaign: str, after: int = 0, limit: int = 1000, kind: str | None = None) -> list[Event]:
        of_kind, kinds = ("", ()) if kind is None else (" AND kind = ?", (kind,))
        result = self.ask(
            f"SELECT {listed(rows.NUMBERED_EVENT)} FROM event WHERE {BETWEEN}{of_kind} ORDER BY {IN_ORDER} LIMIT ?",
            (*between(campaign, after), *kinds, limit),
        )
        return [Event(*row) for row in result]

    def last_own_event(self, campaign: str) -> int:
        return self.last_event(campaign, _OWN_EVENT)

    # --- operators -----------------------------------------------------------------------------------------------

    def operation(self, campaign: str, key: str) -> str | None:
        return self._one_text("SELECT request_digest FROM operation WHERE campaign = ? AND key = ?", (campaign, key))

    def answer(self, campaign: str, key: str) -> str | None:
        return self._one_text("SELECT answer FROM operation WHERE campaign = ? AND key = ?", (campaign, key))

    def _one_text(self, query: str, values: Sequence[str]) -> str | None:
        row = self.ask(query, values).fetchone()
        return None if row is None else row[0]

    def add_operation(self, campaign: str, key: str, digest: str, now: float, answer: str | None = None) -> None:
        columns = ("campaign", "key", "request_digest", "at", "answer")
        self.change(insertion("operation", columns), (campaign, key, digest, now, answer))
        self.change(_FORGET_ANSWERS, (campaign, campaign, ANSWERS_KEPT - 1))

    def add_key(self, key: Key) -> None:
        values = [" ".join(key.scopes) if name == "scopes" else getattr(key, name) for name in rows.KEY]
        self.change(insertion("api_key", rows.KEY), values)

    def key(self, prefix: str) -> Key | None:
        row = self.ask(f"{_KEYS} WHERE prefix = ?", (prefix,)).fetchone()
        return None if row is None else rows.key_of(row)

    def keys(self) -> list[Key]:
        return [rows.key_of(row) for row in self.ask(f"{_KEYS} ORDER BY created_at, prefix")]

    def note_key_used(self, prefix: str, at: float) -> None:
        self.change("UPDATE api_key SET last_used_at = ? WHERE prefix = ?", (at, prefix))

    def set_key_off(self, prefix: str, off: bool) -> None:
        self.change("UPDATE api_key SET off = ? WHERE prefix = ?", (off, prefix))

    def drop_key(self, prefix: str) -> None:
        self.change("DELETE FROM api_key WHERE prefix = ?", (prefix,))

    def add_key_event(self, event: KeyEvent) -> None:
        values = (event.kind, event.prefix, " ".join(event.scopes), event.campaign, event.at, event.actor)
        self.change(insertion("key_event", rows.KEY_EVENT), (*values, event.operation))

    def key_made_under(self, operation: str) -> str | None:
        return self._one_text("SELECT prefix FROM key_event WHERE operation = ?", (operation,))

    def key_events(self, limit: int, before: int | None = None) -> list[KeyEvent]:
        which, values = ("", ()) if before is None else (" WHERE seq < ?", (before,))
        query = f"SELECT {listed(rows.NUMBERED_KEY_EVENT)} FROM key_event{which} ORDER BY seq DESC LIMIT ?"
        return [rows.key_event_of(row) for row in self.ask(query, (*values, limit))]

    def write_heartbeat(self, now: float) -> None:
        self.change(
            "INSERT INTO heartbeat (number, at) VALUES (1, ?) ON CONFLICT (number) DO UPDATE SET at = excluded.at",
            (now,),
        )
