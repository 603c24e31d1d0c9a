"""The expiry of holds: how a decision ends that nobody reports on.

A decision without feedback expires ``hold_seconds`` after it was made: its hold is charged or released, as the terms of
its campaign say at that moment. Leases whose time is over end here as well. The server calls `Expiry.expire_due` every
second. Feedback that comes later corrects what was booked (`feedback`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from budgetbandits.service import ledger
from budgetbandits.service.feedback import locked
from budgetbandits.service.leases.leases import Leases
from budgetbandits.service.stores.contract import Clock, Scope, Store, Transaction, find_campaign, isolated, moment
from budgetbandits.service.stores.records import Campaign, Event

EXPIRED_HOLDS_MAX = 500
"""Holds that one call of `Expiry.expire_due` expires."""


def shorten_late_holds(tx: Transaction, campaign: Campaign, now: float) -> bool:
    """Pending decisions that a clock ahead has given a time to come get as much time as one that is made now; whether
    there are any."""
    latest = now + campaign.settings.terms.hold_seconds
    late = [id for id, expires_at in tx.pending_decisions(campaign.id).items() if expires_at > latest]
    for id in late:
        tx.set_expiry(id, latest)
    return bool(late)


class Expiry:
    """Ends the holds and the leases of a store whose time is over."""

    def __init__(self, store: Store, leases: Leases, clock: Clock | None = None) -> None:
        self._store = store
        self._leases = leases
        self._clock = clock

    def expire_due(self) -> dict[str, int]:
        """Expire the holds that are due; how many, by campaign. An error in one campaign does not stop the others."""
        expired: dict[str, int] = {}
        failures: dict[str, Exception] = {}
        while True:
            due, failed = self._due(list(failures)), len(failures)
            for campaign, decisions in sorted(due.items()):
                work = isolated(campaign, partial(self._expire, campaign=campaign, decisions=decisions))
                try:
                    name, count = self._store.write(work, Scope(campaign, decisions=decisions))
                except Exception as error:
                    failures[campaign] = error
                else:
                    expired |= {name: expired.get(name, 0) + count} if count else {}
            # holds of a campaign that cannot be changed stay the oldest, and those of others come after them
            if len(failures) == failed or sum(map(len, due.values())) < EXPIRED_HOLDS_MAX:
                break
        for failure in failures.values():
            raise failure
        return expired

    def _due(self, without: Sequence[str]) -> dict[str, list[str]]:
        """Overdue decisions by campaign, without these campaigns; an empty list where only a lease is overdue."""

        def read(tx: Transaction) -> tuple[list[tuple[str, str]], list[tuple[str, str]]]:
            now = moment(tx, self._clock)
            return tx.due_decisions(now, EXPIRED_HOLDS_MAX, without), tx.due_leases(now)

        pending, over = self._store.read(read, urgent=True)
        due: dict[str, list[str]] = {campaign: [] for campaign, _ in over if campaign not in without}
        for campaign, decision in pending:
            due.setdefault(campaign, []).append(decision)
        return due

    def _expire(self, tx: Transaction, campaign: str, decisions: Sequence[str]) -> tuple[str, int]:
        """The campaign's name, and how many holds have expired."""
        row, count, now = find_campaign(tx, campaign), 0, moment(tx, self._clock)
        if row.settings.lease is not None:
            self._leases.end_due(tx, row, now)
        for decision in decisions:
            funds, stored = locked(tx, self._leases, decision, campaign)
            # or feedback came, or it was given more time, while we waited for the lock
            if stored.hold.state == "pending" and stored.expires_at <= now:
                charge = funds.row.settings.terms.on_expire == "charge"
                account, hold = ledger.expire(funds.account, stored.hold, charge)
                tx.save_decision(replace(stored, hold=hold))
                event = Event(stored.campaign, "expired", now, stored.id, stored.arm, hold.charged)
                funds.book(account, event, stored.created_at)
                count += 1
        return row.name, count
