"""The statements and rows of leases, and of their events, in SQL."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from budgetbandits.service.ledger import Account
from budgetbandits.service.stores.records import Event, Lease, LeaseEvent
from budgetbandits.service.stores.statements import Statements

LEASE = "id, campaign, amount, spent, held, gone, expires_at, turn, merged, tag"
EVENT = "campaign, kind, at, decision, arm, amount, reward, lease, turn, actor, request, propensity"
LEASE_EVENTS = (
    "SELECT "
    + ", ".join(f"event.{name}" for name in [*EVENT.split(", "), "seq"])
    + ", decision.cost, decision.reward, decision.request, decision.created_at FROM event "
    "LEFT JOIN decision ON decision.id = event.decision WHERE event.lease = {} AND event.turn > {} ORDER BY event.turn"
)


class LeaseTransaction(Statements):
    """What `SqlTransaction` does with leases."""

    LOCK = ""
    """What makes a SELECT keep others from changing the row, where a transaction does not do so anyway."""

    def lease(self, id: str) -> Lease | None:
        row = self._lock_leases(f"SELECT {LEASE} FROM lease WHERE id = ?", id).fetchone()
        return None if row is None else lease_of(row)

    def leases(self, campaign: str) -> list[Lease]:
        rows = self._lock_leases(f"SELECT {LEASE} FROM lease WHERE campaign = ? ORDER BY id", campaign)
        return [lease_of(row) for row in rows]

    def _lock_leases(self, statement: str, value: str) -> Any:
        return self._do(statement + self.LOCK, (value,))

    def add_lease(self, lease: Lease) -> None:
        values = (lease.id, lease.campaign, *lease_values(lease))
        self._change(f"INSERT INTO lease ({LEASE}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", values)

    def save_lease(self, lease: Lease) -> None:
        self._change(
            "UPDATE lease SET amount = ?, spent = ?, held = ?, gone = ?, expires_at = ?, turn = ?, merged = ?, tag = ? "
            "WHERE id = ?",
            (*lease_values(lease), lease.id),
        )

    def drop_lease(self, id: str) -> None:
        self._change("DELETE FROM lease WHERE id = ?", (id,))

    def due_leases(self, now: float) -> list[tuple[str, str]]:
        rows = self._do("SELECT campaign, id FROM lease WHERE expires_at <= ? ORDER BY campaign, id", (now,))
        return [(campaign, id) for campaign, id in rows]

    def lease_events(self, lease: str, after: int) -> list[LeaseEvent]:
        return [lease_event_of(row) for row in self._do(LEASE_EVENTS.format("?", "?"), (lease, after))]


def lease_values(lease: Lease) -> tuple[Any, ...]:
    a = lease.account
    return a.budget, a.spent, a.held, a.gone, lease.expires_at, lease.turn, lease.merged, lease.tag


def lease_of(row: Sequence[Any]) -> Lease:
    id, campaign, amount, spent, held, gone, expires_at, turn, merged, tag = row
    return Lease(id, campaign, Account(amount, spent, held, gone=gone), expires_at, turn, merged, tag)


def lease_event_of(row: Sequence[Any]) -> LeaseEvent:
    return LeaseEvent(Event(*row[:-4]), *row[-4:])
