"""The events page: what operators did to a campaign, and when it froze."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from budgetbandits.service.dashboard.actions.terms import differences
from budgetbandits.service.ledger import to_units
from budgetbandits.service.stores.contract import Transaction
from budgetbandits.service.stores.records import Campaign, Event

EVENTS_PER_PAGE = 50


@dataclass(frozen=True)
class EventsView:
    """A page of a campaign's events, the latest first."""

    row: Campaign
    names: list[str]
    """Of all arms, by their numbers."""
    events: list[Event]
    changes: dict[int, str]
    """What each change of terms among them changed, by the event's number."""
    older: int | None
    """Where the next page begins; None if this is the last."""

    def as_json(self) -> dict[str, Any]:
        events = [event_json(event, self.names) | {"changed": self.changes.get(event.seq)} for event in self.events]
        return {"campaign": self.row.name, "events": events, "older": self.older}


def events_view(tx: Transaction, row: Campaign, before: int | None) -> EventsView:
    pages = tx.pages()
    events = pages.operator_events(row.id, EVENTS_PER_PAGE + 1, before)
    older = events[EVENTS_PER_PAGE - 1].seq if len(events) > EVENTS_PER_PAGE else None
    names = [arm.name for arm in tx.arms(row.id)]
    changes = changes_of_terms(row, pages.event_numbers(row.id, "terms changed"))
    return EventsView(row, names, events[:EVENTS_PER_PAGE], changes, older)


def changes_of_terms(row: Campaign, numbers: Sequence[int]) -> dict[int, str]:
    """What changed at the events of these numbers, which are those of the latest changes, the latest first."""
    terms = [replace(row, settings=each) for each in reversed(row.settings.versions)]
    return {
        seq: "; ".join(f"{label.lower()} {old} → {new}" for label, old, new in differences(before, after))
        for seq, after, before in zip(numbers, terms, terms[1:], strict=False)
    }


def event_json(event: Event, names: Sequence[str]) -> dict[str, Any]:
    return {
        "at": event.at, "kind": event.kind, "by": event.actor, "arm": None if event.arm is None else names[event.arm],
        "amount": None if event.amount is None else to_units(event.amount),
    }  # fmt: skip
