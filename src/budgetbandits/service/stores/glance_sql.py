"""A campaign as a list shows it, in SQL: its row, its moments and what its leases have."""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from budgetbandits.service.ledger import Account
from budgetbandits.service.stores.list_sql import FREE_IN_LEASES, HELD_IN_LEASES, resumed
from budgetbandits.service.stores.rows import settings_of

if TYPE_CHECKING:
    from budgetbandits.service.stores.sql import SqlTransaction

_SPENT_IN_LEASES = "(SELECT CAST(COALESCE(SUM(l.spent), 0) AS BIGINT) FROM lease l WHERE l.campaign = c.id)"
_OVERRAN_AT = "(SELECT e.at FROM event e WHERE e.seq = m.overran)"


@dataclass(slots=True)
class CampaignSummary:
    """A campaign as a list shows it."""

    id: str
    name: str
    policy: str
    account: Account
    settings: dict[str, Any]
    created_at: float
    decided_at: float | None
    """When the latest decision was made ..."""
    last_feedback_at: float | None
    """... the latest cost told ..."""
    oldest_unanswered_at: float | None
    """... the first decision made since then ..."""
    overran_at: float | None
    """... and the latest that was an overrun; all as of a few seconds ago."""
    resumed_at: float | None
    """When it was first resumed after that."""
    spent_in_leases: int
    """Of what is leased, what is spent and not merged yet ..."""
    held_in_leases: int
    """... what open decisions hold ..."""
    free_in_leases: int
    """... and the most that one lease has for a new decision."""
    added_up_to: float | None
    """When the first event happened that is in no rollup yet; None if all are in there."""
    down: list[dict[str, Any]]
    """The arms that have failed so often in a row that they rest (`CampaignLearner`)."""
    arms: int = 0
    """Those that can be chosen ..."""
    least: int = 0
    """... and the smallest and the largest of their caps; all 0 if there are none."""
    most: int = 0

    @property
    def spent(self) -> int:
        """Also what leases have spent that is not merged yet."""
        return self.account.spent + self.spent_in_leases

    @property
    def held(self) -> int:
        """What is neither spent nor left for new decisions outside leases: open decisions and leases have it."""
        return self.account.held + self.account.leased - self.spent_in_leases

    @property
    def decides_in_leases(self) -> bool:
        """Whether an arm fits into what some lease has left."""
        return 0 < self.least <= self.free_in_leases


def glances(tx: SqlTransaction, campaigns: Sequence[str]) -> list[CampaignSummary]:
    """These campaigns, in this order, but for those whose accounts are damaged."""
    if not campaigns:
        return []  # PostgreSQL knows no empty list
    marks, added_up_to = ", ".join("?" * len(campaigns)), tx.EVENTS.first_after("at", "c.id", "COALESCE(m.seq, 0)")
    rows = tx.ask(
        "SELECT c.id, c.name, c.policy, c.status, c.budget, c.spent, c.held, c.overrun, c.day, c.today, c.leased, "
        f"c.gone, c.settings, c.created_at, m.decided_at, m.last_feedback_at, m.oldest_unanswered_at, {_OVERRAN_AT}, "
        f"{resumed(tx)}, {_SPENT_IN_LEASES}, {HELD_IN_LEASES}, {FREE_IN_LEASES}, {added_up_to}, c.down "
        "FROM campaign c "
        "LEFT JOIN rollup_mark m ON m.campaign = c.id "
        f"WHERE c.id IN ({marks})",
        campaigns,
    )
    by_id = {}
    for row in rows:
        with suppress(ArithmeticError, TypeError, ValueError):
            by_id[row[0]] = _glance(row)
    arms = tx.ask(
        "SELECT campaign, COUNT(*), MIN(cost_cap), MAX(cost_cap) FROM arm "
        f"WHERE campaign IN ({marks}) AND active GROUP BY campaign",
        campaigns,
    )
    for id, count, least, most in arms:
        if id in by_id:
            glance = by_id[id]
            glance.arms, glance.least, glance.most = count, least, most
    return [by_id[id] for id in campaigns if id in by_id]


def _glance(row: Sequence[Any]) -> CampaignSummary:
    id, name, policy, status, budget, spent, held, overrun, day, today, leased, gone, settings, *rest, down = row
    account = Account(budget, spent, held, overrun, status, day, today, leased, gone)
    return CampaignSummary(id, name, policy, account, settings_of(settings), *[*rest, json.loads(down or "[]")])
