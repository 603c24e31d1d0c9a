"""The events page: what operators did to a campaign, and when it froze."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from budgetbandits.service.dashboard.actions.terms import differences
from budgetbandits.service.ledger import to_units
from budgetbandits.service.rollups import History
from budgetbandits.service.stores.contract import Transaction
from budgetbandits.service.stores.records import Campaign, Event

PAGE = 50


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
    pages, events = tx.pages(), operators_events(tx, row, PAGE + 1, before)
    older = events[PAGE - 1].seq if len(events) > PAGE else None
    names = [arm.name for arm in tx.arms(row.id)]
    return EventsView(
        row, names, events[:PAGE], changes_of_terms(row, pages.event_numbers(row.id, "terms changed")), older
    )


def operators_events(tx: Transaction, row: Campaign, limit: int, before: int | None = None) -> list[Event]:
    """What operators have done, and when the campaign froze, before this event; the latest first."""
    events, freeze = tx.pages().operator_events(row.id, limit, before), _unwritten_freeze(tx, row)
    if freeze is not None and (before is None or freeze.seq < before):
        events = sorted([*events, freeze], key=lambda event: -event.seq)[:limit]
    return events


def _unwritten_freeze(tx: Transaction, row: Campaign) -> Event | None:
    """The freeze of a campaign that is frozen by a service that wrote no event of it: the latest overrun says when."""
    if row.account.status != "frozen":
        return None
    latest = tx.pages().operator_events(row.id, 1, kinds=("frozen", "active", "created"))
    if [event.kind for event in latest] == ["frozen"]:
        return None
    seq = History.of(tx, row).mark.last_overrun_event
    overran = None if seq is None else tx.pages().event(seq)
    made = None if overran is None or overran.decision is None else tx.decision(overran.decision)
    if overran is None or made is None:
        return None
    return replace(overran, kind="frozen", decision=None, amount=made.hold.overrun, reward=None)


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
