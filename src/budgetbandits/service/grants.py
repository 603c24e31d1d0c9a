"""The periods that a campaign or a shared budget has been granted, as its events tell (`periods.Grant`).

A renewal grants a period. An operator who says that the clocks are right takes back all that lies ahead of that moment.
"""

from __future__ import annotations

from collections.abc import Iterable

from budgetbandits.service.periods import Grant
from budgetbandits.service.stores.contract import Transaction
from budgetbandits.service.stores.records import Event

GRANT_EVENTS = ("renewed", "clock reset")
"""The kinds of events that grant periods and take them back."""


def grant_of(event: Event) -> Grant:
    """The grant that the event of a renewal tells."""
    return Grant.from_json(event.amount, event.request)


def standing_grants(events: Iterable[Event]) -> list[Grant]:
    """The grants of the renewals among these events that were not taken back."""
    grants: list[Grant] = []
    for event in events:
        if event.kind == "renewed":
            grants.append(grant_of(event))
        elif event.kind == "clock reset":
            grants = [grant for grant in grants if grant.begun <= event.at]
    return grants


def read_grants(tx: Transaction, key: str, upto: float = float("inf")) -> list[Grant]:
    """The standing grants of a campaign or a shared budget, by what its events name, up to the event of this number."""
    events: list[Event] = []
    for kind in GRANT_EVENTS:
        after = 0
        while page := tx.events(key, after, kind=kind):
            events += page
            after = page[-1].seq
    return standing_grants(event for event in sorted(events, key=lambda event: event.seq) if event.seq <= upto)
