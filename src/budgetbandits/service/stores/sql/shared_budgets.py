"""Shared budgets in SQL: their rows, their members, and their own events.

A row changes with every decision of a member, so it is kept like a campaign's: no unique index and none on what
changes. A table that never changes sees to it that a name is used once.
"""

from __future__ import annotations

from collections.abc import Sequence

from budgetbandits.service.shared_budgets.rules import SharedBudget
from budgetbandits.service.stores.records import Event
from budgetbandits.service.stores.sql.rows import (
    NUMBERED_EVENT,
    SHARED_BUDGET,
    SHARED_MONEY,
    assigned,
    insertion,
    json_text,
    listed,
    places,
    shared_budget_of,
    shared_money_of,
)
from budgetbandits.service.stores.sql.statements import BETWEEN, LATEST_FIRST, Statements, between

_ROWS = f"SELECT {listed(SHARED_BUDGET)} FROM shared_budget"


class SharedBudgetRows:
    """Shared budgets, in a transaction."""

    def __init__(self, tx: Statements) -> None:
        self._tx = tx

    def add(self, shared: SharedBudget) -> None:
        """Add a shared budget."""
        self._tx.change(insertion("shared_budget_name", ("name",)), (shared.name,))
        values = (*shared_money_of(shared.account), shared.created_at, json_text(shared.settings.to_dict()))
        self._tx.change(insertion("shared_budget", SHARED_BUDGET), (shared.name, *values))

    def save(self, shared: SharedBudget) -> None:
        """Write its money and its settings."""
        values = (*shared_money_of(shared.account), json_text(shared.settings.to_dict()), shared.name)
        self._tx.change(f"UPDATE shared_budget SET {assigned((*SHARED_MONEY, 'settings'))} WHERE name = ?", values)

    def all(self, limit: int | None = None) -> list[SharedBudget]:
        """All shared budgets by name, or the first of them."""
        clause = "" if limit is None else f" LIMIT {limit:d}"
        return [shared_budget_of(row) for row in self._tx.ask(f"{_ROWS} ORDER BY name{clause}")]

    def named(self, names: Sequence[str]) -> list[SharedBudget]:
        """Those with these names, by name."""
        if not names:
            return []  # PostgreSQL knows no empty list
        rows = self._tx.ask(f"{_ROWS} WHERE name IN ({places(names)}) ORDER BY name", names)
        return [shared_budget_of(row) for row in rows]

    def count(self) -> int:
        """The number of shared budgets."""
        return int(self._tx.ask("SELECT COUNT(*) FROM shared_budget").fetchone()[0])

    def members(self, name: str) -> list[str]:
        """The ids of its campaigns, by their names."""
        query = "SELECT id FROM campaign_name WHERE shared_budget = ? ORDER BY folded_name, id"
        return [id for (id,) in self._tx.ask(query, (name,))]

    def of_campaigns(self, campaigns: Sequence[str]) -> dict[str, SharedBudget]:
        """The shared budgets of these campaigns that have one, by the campaign's id."""
        if not campaigns:
            return {}  # PostgreSQL knows no empty list
        query = (
            f"SELECT f.id, {listed(SHARED_BUDGET, 's')} FROM campaign_name f JOIN shared_budget s "
            f"ON s.name = f.shared_budget WHERE f.id IN ({places(campaigns)})"
        )
        return {row[0]: shared_budget_of(row[1:]) for row in self._tx.ask(query, campaigns)}

    def latest_events(self, shared: SharedBudget, limit: int) -> list[Event]:
        """The latest events of a shared budget, the latest first."""
        rows = self._tx.ask(
            f"SELECT {listed(NUMBERED_EVENT)} FROM event WHERE {BETWEEN} ORDER BY {LATEST_FIRST} LIMIT {limit:d}",
            between(shared.event_key),
        )
        return [Event(*row) for row in rows]
