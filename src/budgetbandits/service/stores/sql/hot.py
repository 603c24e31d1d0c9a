"""Statements about one row that changes with nearly every decision: a campaign, an arm, a lease, a shared budget.

They are put together once. A database says how such a row is found by its key (`RowStatements.where`).
"""

from __future__ import annotations

from collections.abc import Sequence

from budgetbandits.service.stores.sql.rows import (
    ARM,
    CAMPAIGN,
    LEASE,
    LEASE_CHANGES,
    MONEY,
    SHARED_BUDGET,
    SHARED_MONEY,
    assigned,
    listed,
)

NAMED = (
    "COALESCE((SELECT id FROM campaign_name WHERE name = {}), (SELECT campaign FROM former_name WHERE name = {}), {})"
)
"""The id of a campaign by its name, which is given twice, or else by its id."""


class RowStatements:
    """Statements with ``?`` for values, those of the key last. The key of ``campaign`` is a name, twice, or an id."""

    def __init__(self) -> None:
        self.campaign = f"SELECT {listed(CAMPAIGN)} FROM campaign WHERE {self.where_is('id', NAMED, 3)}"
        self.save_campaign = self._update("campaign", [*MONEY, "learned", "arms_down"], "id")
        self.save_money = self._update("campaign", MONEY, "id")
        self.save_status = self._update("campaign", ["status"], "id")
        self.arm = self._select("arm", ARM, "campaign", "number")
        self.save_arm = self._update("arm", ["learned", "active"], "campaign", "number")
        self.lease = self._select("lease", LEASE, "id")
        self.save_lease = self._update("lease", LEASE_CHANGES, "id")
        self.shared_budget = self._select("shared_budget", SHARED_BUDGET, "name")
        self.save_shared_budget = self._update("shared_budget", SHARED_MONEY, "name")

    def _select(self, table: str, columns: Sequence[str], *key: str) -> str:
        return f"SELECT {listed(columns)} FROM {table} WHERE {self.where(1, *key)}"

    def _update(self, table: str, columns: Sequence[str], *key: str) -> str:
        return f"UPDATE {table} SET {assigned(columns)} WHERE {self.where_newest(table, len(columns) + 1, *key)}"

    def where_is(self, column: str, expression: str, values: int) -> str:
        """A condition for the row in which a column is an expression of the first ``values`` values."""
        return f"{column} = {expression.format(*['?'] * values)}"

    def where(self, first: int, *key: str) -> str:
        """A condition for the row with these columns, whose values have numbers from ``first`` on."""
        return " AND ".join(f"{column} = ?" for column in key)

    def where_newest(self, table: str, first: int, *key: str) -> str:
        """The same for an UPDATE."""
        return self.where(first, *key)
