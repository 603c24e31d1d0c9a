"""Leases in an event loop's transactions: see `postgres_loop`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pydantic_core import to_json

from budgetbandits.service.stores.contract import About
from budgetbandits.service.stores.lease_sql import lease_event_of, lease_of
from budgetbandits.service.stores.postgres_pipeline import Call, Pipeline
from budgetbandits.service.stores.preloaded_leases import EventsNeeded, ForeseenLeases
from budgetbandits.service.stores.records import LeaseEvent
from budgetbandits.service.stores.rows import decision_of


def needs_no_campaign(about: About) -> bool:
    """To tell of decisions, or to decide under a lease."""
    return bool(about.lease) or (about.lease is not None and not about.keys)


async def locked_leases(connection: Pipeline, id: str | None, abouts: Sequence[About]) -> ForeseenLeases:
    """Lock leases, then read decisions, so that these are as whoever had a lease before has left them."""
    assert id is not None
    keys = [key for about in abouts for key in about.keys]
    ids = [id for about in abouts for id in about.decisions]
    own = sorted({about.lease for about in abouts if about.lease})
    calls: list[Call] = [("begin", ()), ("leases", (as_json(own), as_json(ids)))]
    if keys:
        calls.append(("keys", (id, as_json(keys))))
    if ids:
        calls.append(("decisions", (as_json(ids),)))
    _, leases, *decisions = await connection.run(calls)
    made = [decision_of(each) for rows in decisions for each in rows]
    now = leases[-1][-1] if leases else None  # when the last of them was locked
    return ForeseenLeases(id, [lease_of(row[:-1]) for row in leases], made, abouts, now)


async def lease_events(connection: Pipeline, needed: EventsNeeded) -> list[LeaseEvent]:
    [rows] = await connection.run([("lease events", (needed.lease, needed.after))])
    return [lease_event_of(row) for row in rows]


def as_json(rows: list[Any]) -> str:
    return to_json(rows).decode()
