"""Webhooks in SQL: addresses that want to hear of campaigns, what they were last notified of, and an outbox.

A notification is written to the outbox together with the state that it is about, so both are there or neither. It stays
there until its address has accepted it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

from budgetbandits.service.stores.sql.rows import insertion, listed
from budgetbandits.service.stores.sql.statements import Statements

LAST_PAUSE_SECONDS = 3600.0
"""The longest time after which a delivery is tried again."""


@dataclass(frozen=True)
class Webhook:
    """An address that is notified, of one campaign (its id) or of all."""

    id: str
    url: str
    secret: str
    created_at: float
    campaign: str | None = None
    tried_at: float | None = None
    """Time at which a notification was last sent."""
    problem: str | None = None
    """Reason why it was not accepted; None if it was."""
    off: bool = False
    """Whether nothing is sent: it came back with a restored copy, and no operator has turned it on."""


@dataclass(frozen=True)
class Notified:
    """The latest state of a campaign that was notified: its standing, and its overrun in micros."""

    standing: str
    overrun: int


@dataclass(frozen=True)
class Delivery:
    """A notification for one address, which has not accepted it yet."""

    id: str
    webhook: str
    body: str
    made_at: float
    due_at: float
    """When to try it again."""
    tries: int = 0


_WEBHOOK, _DELIVERY = (tuple(attribute.name for attribute in fields(kind)) for kind in (Webhook, Delivery))
_DUE = "(due_at <= ? OR due_at > ?)"
_ON = "webhook NOT IN (SELECT id FROM webhook WHERE off)"


def _due_at(now: float) -> tuple[float, float]:
    """The values of `_DUE`: what waits for longer than anything does was put off by a clock that was ahead."""
    return now, now + 2.0 * LAST_PAUSE_SECONDS


def _webhook_of(row: Sequence[Any]) -> Webhook:
    return replace(Webhook(*row), off=bool(row[-1]))


class Webhooks:
    """Webhooks and their outbox, in a transaction."""

    def __init__(self, tx: Statements) -> None:
        self._tx = tx

    def all(self) -> list[Webhook]:
        """All webhooks."""
        rows = self._tx.ask(f"SELECT {listed(_WEBHOOK)} FROM webhook ORDER BY created_at, id")
        return [_webhook_of(row) for row in rows]

    def get(self, id: str) -> Webhook | None:
        """The webhook of this id."""
        row = self._tx.ask(f"SELECT {listed(_WEBHOOK)} FROM webhook WHERE id = ?", (id,)).fetchone()
        return None if row is None else _webhook_of(row)

    def add(self, webhook: Webhook) -> None:
        """Add a webhook."""
        self._tx.change(insertion("webhook", _WEBHOOK), [getattr(webhook, name) for name in _WEBHOOK])

    def set_off(self, id: str, off: bool) -> None:
        """Turn a webhook off or on."""
        self._tx.change("UPDATE webhook SET off = ? WHERE id = ?", (off, id))

    def drop(self, id: str) -> None:
        """Delete an address and all that it has not accepted."""
        self._tx.change("DELETE FROM webhook_delivery WHERE webhook = ?", (id,))
        self._tx.change("DELETE FROM webhook WHERE id = ?", (id,))

    def note_try(self, id: str, at: float, problem: str | None) -> None:
        """A notification was sent to an address, and was accepted or not."""
        self._tx.change("UPDATE webhook SET tried_at = ?, problem = ? WHERE id = ?", (at, problem, id))

    def waiting(self) -> dict[str, tuple[int, int]]:
        """How many notifications an address has not accepted, and how often one of them was tried, by its id."""
        rows = self._tx.ask("SELECT webhook, COUNT(*), MAX(tries) FROM webhook_delivery GROUP BY webhook")
        return {webhook: (count, tries) for webhook, count, tries in rows}

    def notified(self, campaign: str) -> Notified | None:
        """The latest state that was notified; in a transaction that writes, no other can change it."""
        if self._tx.LOCK:
            first = insertion("webhook_state", ("campaign", "overrun"))
            self._tx.change(f"{first} ON CONFLICT DO NOTHING", (campaign, 0))
        query = f"SELECT standing, overrun FROM webhook_state WHERE campaign = ?{self._tx.LOCK}"
        row = self._tx.ask(query, (campaign,)).fetchone()
        return None if row is None or row[0] is None else Notified(*row)

    def set_notified(self, campaign: str, state: Notified) -> None:
        """Write the state that was last notified of a campaign."""
        self._tx.change(
            f"{insertion('webhook_state', ('campaign', 'standing', 'overrun'))} ON CONFLICT (campaign) "
            "DO UPDATE SET standing = excluded.standing, overrun = excluded.overrun",
            (campaign, state.standing, state.overrun),
        )

    def forget_notified(self) -> None:
        """Forget all notified states."""
        self._tx.change("DELETE FROM webhook_state")

    def add_deliveries(self, deliveries: Sequence[Delivery]) -> None:
        """Add deliveries."""
        rows = [[getattr(delivery, name) for name in _DELIVERY] for delivery in deliveries]
        self._tx.change_many(insertion("webhook_delivery", _DELIVERY), rows)

    def due(self, now: float) -> list[str]:
        """Webhooks, by their ids, that have deliveries whose time has come; one of them may have been dropped."""
        query = f"SELECT DISTINCT webhook FROM webhook_delivery WHERE {_DUE} AND {_ON} ORDER BY webhook"
        return [webhook for (webhook,) in self._tx.ask(query, _due_at(now))]

    def take_due(self, webhook: str, now: float, until: float, limit: int) -> list[Delivery]:
        """Deliveries to a webhook whose time has come, which are then this server's until that time."""
        query = (
            f"SELECT {listed(_DELIVERY)} FROM webhook_delivery WHERE webhook = ? AND {_DUE} AND {_ON} "
            f"ORDER BY due_at, id LIMIT {limit:d}"
        )
        due = [Delivery(*row) for row in self._tx.ask(query + self._tx.LOCK, (webhook, *_due_at(now)))]
        self._tx.change_many(
            "UPDATE webhook_delivery SET due_at = ? WHERE id = ?", [(until, delivery.id) for delivery in due]
        )
        return due

    def put_off(self, delivery: Delivery, due_at: float) -> None:
        """It was not accepted: once more at this time."""
        values = due_at, delivery.tries + 1, delivery.id
        self._tx.change("UPDATE webhook_delivery SET due_at = ?, tries = ? WHERE id = ?", values)

    def remove(self, delivery: Delivery) -> None:
        """It was accepted, or is given up."""
        self._tx.change("DELETE FROM webhook_delivery WHERE id = ?", (delivery.id,))
