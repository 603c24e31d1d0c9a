"""The row cache: rows that a writer has read or written, for as long as nobody else can change them.

A store decides how long that is: PostgreSQL for one transaction, SQLite until another connection writes to the file.
Rows that every request changes (a campaign, an arm) or adds (an event) wait in the cache until the end of the
transaction, so that a row which many requests have changed is written once.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from budgetbandits.service.stores.records import ArmRow, Campaign, DecisionRow, Event
from budgetbandits.service.stores.sql.core import DECISION_STATEMENTS, SqlTransaction

OPEN_DECISIONS_MAX = 10_000
"""Open decisions that are kept; the oldest leaves first."""


class RowCache:
    """Rows as they are in the database, or will be: campaigns by id and by name, and decisions that are still open.

    A campaign's name never looks like an id. An open decision is what the next feedback asks for.
    """

    def __init__(self) -> None:
        self.campaigns: dict[str, Campaign] = {}
        self.decisions: dict[str, DecisionRow] = {}
        self.unwritten = UnwrittenRows()
        self.leases_read = False
        """In PostgreSQL: whether this transaction may have locked a lease."""

    def clear(self) -> None:
        self.campaigns.clear()
        self.decisions.clear()
        self.unwritten = UnwrittenRows()
        self.leases_read = False


class UnwrittenRows:
    """Rows that wait to be written."""

    def __init__(self) -> None:
        self.any = False
        self.money: dict[str, None] = {}
        """The ids of campaigns that have changed, in order; these two have those that changed in another way, too."""
        self.learned: set[str] = set()
        self.status: set[str] = set()
        self.arms: dict[tuple[str, int], ArmRow] = {}
        self.events: list[Event] = []


class CachedTransaction(SqlTransaction):
    """A transaction that reads a row once and keeps it in the cache; `write_rest` is called before it is committed."""

    def __init__(self, cache: RowCache) -> None:
        self._cache = cache
        self._campaigns, self._decisions = cache.campaigns, cache.decisions

    def campaign(self, id_or_name: str) -> Campaign | None:
        return self._campaigns.get(id_or_name) or self._keep(super().campaign(id_or_name))

    def save_campaign(self, campaign: Campaign) -> None:
        self._put(campaign)
        self._cache.unwritten.learned.add(campaign.id)

    def save_settings(self, campaign: Campaign) -> None:
        super().save_settings(campaign)
        self._keep(campaign)

    def save_money(self, campaign: Campaign) -> None:
        row = self.campaign(campaign.id)
        if row is not None:
            self._put(row.with_money(campaign.account))

    def _put(self, campaign: Campaign) -> None:
        waiting = self._waiting()
        waiting.money[campaign.id] = None
        before = self._campaigns.get(campaign.id)
        # only if it changed: SQLite takes longer to check that it is one of four than to write all the money
        if before is None or campaign.account.status != before.account.status:
            waiting.status.add(campaign.id)
        self._keep(campaign)

    def save_arms(self, arms: Sequence[ArmRow]) -> None:
        waiting = self._waiting().arms
        for arm in arms:
            waiting[arm.campaign, arm.number] = arm

    def add_event(self, event: Event) -> None:
        self._waiting().events.append(event)

    def _waiting(self) -> UnwrittenRows:
        """Where to put changed rows."""
        self.wrote = self._cache.unwritten.any = True
        return self._cache.unwritten

    def write_rest(self) -> None:
        """Write the rows that have waited."""
        waiting, self._cache.unwritten = self._cache.unwritten, UnwrittenRows()
        for id in waiting.money:
            row = self._campaigns[id]
            (super().save_campaign if id in waiting.learned else super().save_money)(row)
            if id in waiting.status:
                self._save_status(row)
        super().save_arms(list(waiting.arms.values()))
        self._add_events(waiting.events)

    def _do(self, statement: str, values: Sequence[Any] = ()) -> Any:
        # rows that wait are written before anything else is read or written
        if self._cache.unwritten.any and statement not in DECISION_STATEMENTS:
            self.write_rest()
        return super()._do(statement, values)  # type: ignore[safe-super] # the database's own is next in line

    def _do_many(self, statement: str, rows: Sequence[Sequence[Any]]) -> None:
        if self._cache.unwritten.any:
            self.write_rest()
        super()._do_many(statement, rows)  # type: ignore[safe-super]

    def decision(self, id: str) -> DecisionRow | None:
        return self._decisions.get(id) or super().decision(id)

    def add_decision(self, decision: DecisionRow) -> None:
        super().add_decision(decision)
        if len(self._decisions) >= OPEN_DECISIONS_MAX:
            del self._decisions[next(iter(self._decisions))]  # the oldest
        self._decisions[decision.id] = decision

    def save_decision(self, decision: DecisionRow) -> None:
        self._decisions.pop(decision.id, None)
        super().save_decision(decision)

    def set_expiry(self, decision: str, expires_at: float) -> None:
        self._decisions.pop(decision, None)
        super().set_expiry(decision, expires_at)

    def _keep(self, campaign: Campaign | None) -> Campaign | None:
        if campaign is not None:
            self._campaigns[campaign.id] = self._campaigns[campaign.name] = campaign
        return campaign
