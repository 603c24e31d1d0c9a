"""The row cache: what a writer has read or written, for as long as nobody else can change it.

A store decides how long that is: PostgreSQL for one transaction, SQLite until another connection writes to the file.
"""

from __future__ import annotations

from budgetbandits.service.stores.base import Campaign, Decision
from budgetbandits.service.stores.sql import SqlTransaction

LARGEST = 10_000
"""Open decisions that are kept; the oldest leaves first."""


class RowCache:
    """Rows as they are in the database: campaigns by id and by name, and decisions that are still open.

    A campaign's name never looks like an id. An open decision is what the next feedback asks for.
    """

    def __init__(self) -> None:
        self.campaigns: dict[str, Campaign] = {}
        self.decisions: dict[str, Decision] = {}
        self.leases_read = False
        """Whether any has been: in PostgreSQL, whether this transaction may have locked one."""

    def clear(self) -> None:
        self.campaigns.clear()
        self.decisions.clear()
        self.leases_read = False


class WritingTransaction(SqlTransaction):
    """A transaction that reads a row once and keeps it in the cache."""

    def __init__(self, cache: RowCache) -> None:
        self._campaigns, self._decisions = cache.campaigns, cache.decisions

    def campaign(self, id: str) -> Campaign | None:
        return self._campaigns.get(id) or self._keep(super().campaign(id))

    def campaign_named(self, name: str) -> Campaign | None:
        return self._campaigns.get(name) or self._keep(super().campaign_named(name))

    def save_campaign(self, campaign: Campaign) -> None:
        before = self._drop(campaign)
        super().save_campaign(campaign)
        self._save_new_status(campaign, before)
        self._keep(campaign)

    def save_settings(self, campaign: Campaign) -> None:
        super().save_settings(campaign)
        self._keep(campaign)

    def save_money(self, campaign: Campaign) -> None:
        before = self._drop(campaign)
        super().save_money(campaign)
        self._save_new_status(campaign, before)
        self._keep(campaign)

    def _save_new_status(self, campaign: Campaign, before: Campaign | None) -> None:
        """Only if it changed: SQLite takes longer to check that it is one of four than to write all the money."""
        if before is None or campaign.account.status != before.account.status:
            self._save_status(campaign)

    def decision(self, id: str) -> Decision | None:
        return self._decisions.get(id) or super().decision(id)

    def add_decision(self, decision: Decision) -> None:
        super().add_decision(decision)
        if len(self._decisions) >= LARGEST:
            del self._decisions[next(iter(self._decisions))]  # the oldest
        self._decisions[decision.id] = decision

    def save_decision(self, decision: Decision) -> None:
        self._decisions.pop(decision.id, None)
        super().save_decision(decision)

    def set_expiry(self, decision: str, expires_at: float) -> None:
        self._decisions.pop(decision, None)
        super().set_expiry(decision, expires_at)

    def _keep(self, campaign: Campaign | None) -> Campaign | None:
        if campaign is not None:
            self._campaigns[campaign.id] = self._campaigns[campaign.name] = campaign
        return campaign

    def _drop(self, campaign: Campaign) -> Campaign | None:
        self._campaigns.pop(campaign.name, None)
        return self._campaigns.pop(campaign.id, None)
