"""What time it is for a campaign, and how to set it back when a clock was wrong.

The time is the store's: on PostgreSQL the database's, which all servers share; on SQLite that of the only host. A clock
that was far ahead for a moment has made decisions of a day that is yet to come. When it is right again nobody can tell
by the clock alone which of the two was wrong, so no decision is made until it has caught up or somebody has said that
it is right now (`set_back`).
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime

from budgetbandits.errors import Conflict, WrongClock
from budgetbandits.service import ledger
from budgetbandits.service.settings import terms_of
from budgetbandits.service.stores.contract import DecisionTransaction, Transaction
from budgetbandits.service.stores.records import Campaign, Event

Clock = Callable[[], float]

TOLERANCE = 3600.0
"""Seconds that a clock may be behind the day of a campaign's latest decision. Such a decision is of that day."""


def moment(tx: DecisionTransaction, clock: Clock | None) -> float:
    """What time it is: by this clock, or by the store's if there is none."""
    return tx.now() if clock is None else clock()


def time_of_decision(campaign: Campaign, now: float) -> float:
    """When a decision that is made now is made: a day that has begun for one has begun for all."""
    begun = campaign.account.day * ledger.DAY
    if begun > now + TOLERANCE:
        raise WrongClock(
            f"the latest decision of {campaign.name!r} is of {_date(begun)}, and it is {_date(now)} now; set the clock "
            f"right, or, if it is, set the campaign back: budgetbandits campaign reset-clock {campaign.name!r}"
        )
    return max(now, begun)


def set_back(
    tx: Transaction, campaign: Campaign, now: float, by: str | None = None, arms_rest: bool = False
) -> Campaign:
    """Today is the campaign's day again, with what today's decisions hold and were charged.

    Pending decisions whose time is not over when it should be get as much time as one that is made now. Those that were
    made under a lease have no day, so there may be such decisions though the campaign's day is not to come. And
    ``arms_rest`` if arms have failed in that future.
    """
    day, latest = ledger.day_of(now), now + terms_of(campaign).hold_seconds
    late = [id for id, expires_at in tx.pending_decisions(campaign.id).items() if expires_at > latest]
    ahead = campaign.account.day > day
    if not ahead and not late and not arms_rest:
        raise Conflict(
            f"the latest decision of {campaign.name!r} is not of a day to come; there is nothing to set back"
        )
    if ahead:
        booked = tx.booked_between(campaign.id, day * ledger.DAY, (day + 1) * ledger.DAY)
        campaign = campaign.with_money(ledger.set_back(campaign.account, day, booked))
        tx.save_money(campaign)
    for id in late:
        tx.set_expiry(id, latest)
    tx.add_event(Event(campaign.id, "set back", now, actor=by))
    return campaign


def _date(at: float) -> str:
    return f"{datetime.fromtimestamp(at, UTC):%Y-%m-%d %H:%M} UTC"
