"""Decisions and events of a campaign as programs read them, page by page, in the order of time.

A page ends with a cursor for the next; the first may begin at a time, give or take a few seconds. Decisions come newest
first, since the latest are asked for most; they change while they are open. Events come oldest first and never change,
so a program that keeps the cursor hears of each once. Under leases an event may be committed after others with higher
numbers; a page of events ends before the first number where that can still happen, so none is missed.
"""

from __future__ import annotations

from typing import cast

from pydantic_core import from_json

from budgetbandits.answers import (
    DecisionDetailAnswer,
    DecisionPageAnswer,
    EventAnswer,
    EventKind,
    EventPageAnswer,
    TermChangeAnswer,
)
from budgetbandits.errors import NotFound, UnknownArm
from budgetbandits.service.audit.slices import Cut
from budgetbandits.service.ledger import known_units, to_units
from budgetbandits.service.names import normal
from budgetbandits.service.request import ResolvedRequest
from budgetbandits.service.stores.contract import Transaction, find_campaign
from budgetbandits.service.stores.records import DecisionRow, Event
from budgetbandits.service.stores.sql.dashboard import DecisionFilter, DecisionKind
from budgetbandits.service.stores.sql.decision_search import CLOCK_TOLERANCE_SECONDS


def read_decision(tx: Transaction, campaign: str, id: str) -> DecisionDetailAnswer:
    """One decision."""
    row = find_campaign(tx, campaign)
    decision = tx.decision(id) if id.isprintable() else None
    if decision is None or decision.campaign != row.id:
        raise NotFound(f"no decision {id!r:.60}; pass the id that decide() answered with")
    return _decision(decision, [arm.name for arm in tx.arms(row.id)])


def read_decisions(
    tx: Transaction, campaign: str, limit: int, before: int | None, until: float | None, kind: DecisionKind,
    arm: str | None,
) -> DecisionPageAnswer:  # fmt: skip
    """A page of decisions, the newest first; those of a kind or an arm are looked for among the next 2,000."""
    row = find_campaign(tx, campaign)
    names, number = [arm.name for arm in tx.arms(row.id)], None
    if arm is not None:
        if normal(arm) not in names:
            raise UnknownArm(f"no arm {arm!r:.60} in this campaign; GET /v1/campaigns/{row.name:.60} lists them")
        number = names.index(normal(arm))
    if until is not None:
        begin = tx.pages().search().last_event_before(row.id, until + CLOCK_TOLERANCE_SECONDS) + 1
        before = begin if before is None else min(before, begin)
    page = tx.pages().decisions(row.id, limit, DecisionFilter(kind, number), before)
    return DecisionPageAnswer(tuple(_decision(row, names) for row in page.decisions), page.older)


def read_events(tx: Transaction, campaign: str, limit: int, after: int, since: float | None) -> EventPageAnswer:
    """A page of events, the oldest first."""
    row = find_campaign(tx, campaign)
    if since is not None:
        after = max(after, tx.pages().search().last_event_before(row.id, since - CLOCK_TOLERANCE_SECONDS))
    names, upto = [arm.name for arm in tx.arms(row.id)], Cut.of(tx, row.id).first
    events = [event for event in tx.events(row.id, after, limit) if event.seq <= upto]
    return EventPageAnswer(tuple(_event(event, names) for event in events), events[-1].seq if events else after)


def _decision(row: DecisionRow, names: list[str]) -> DecisionDetailAnswer:
    asked = ResolvedRequest.from_json(row.request)
    return DecisionDetailAnswer(
        decision=row.id, key=row.key, arm=names[row.arm], segment=None if asked is None else asked.segment,
        metadata=None if asked is None else asked.metadata, state=row.hold.state, failed=row.failed,
        hold=to_units(row.hold.amount), cost=known_units(row.cost), charged=to_units(row.hold.charged),
        overrun=to_units(row.hold.overrun), reward=row.reward, created_at=row.created_at, expires_at=row.expires_at,
        propensity=row.propensity,
    )  # fmt: skip


def _event(event: Event, names: list[str]) -> EventAnswer:
    return EventAnswer(
        seq=event.seq, at=event.at, kind=cast(EventKind, event.kind), decision=event.decision,
        arm=None if event.arm is None else names[event.arm], amount=known_units(event.amount), reward=event.reward,
        actor=event.actor, changes=_changes(event, names),
    )  # fmt: skip


def _changes(event: Event, names: list[str]) -> tuple[TermChangeAnswer, ...] | None:
    """The changes at a change of terms, each with the old and the new value; None for other events."""
    if event.kind != "terms changed" or event.request is None:
        return None
    changes = from_json(event.request)
    caps, budget = changes.pop("caps", {}), changes.pop("budget", None)
    rows = [(term, None, *values) for term, values in changes.items()]
    rows += [] if budget is None else [("budget", None, *map(to_units, budget))]
    rows += [("cap", names[int(arm)], *map(to_units, values)) for arm, values in caps.items()]
    return tuple(TermChangeAnswer(*row) for row in rows)
