"""The page of one decision, from its request to its last feedback, and the search that leads there.

A search finds a decision by its id, by the beginning of its id or by its idempotency key, which have an index, and
decisions by an entry of metadata among the latest 2,000, page by page.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from budgetbandits.errors import BadParameter, DecisionArchived, NotFound
from budgetbandits.formatting.money import exact_money
from budgetbandits.formatting.numbers import plain, significant
from budgetbandits.service.dashboard.campaign import decision_json
from budgetbandits.service.dashboard.pages import Dashboard, wants_json
from budgetbandits.service.dashboard.query import campaign_address, event_of, whole_number
from budgetbandits.service.dashboard.sessions import Session
from budgetbandits.service.ledger import known_units, to_units
from budgetbandits.service.names import check_text
from budgetbandits.service.request import ResolvedRequest
from budgetbandits.service.stores.contract import Transaction
from budgetbandits.service.stores.records import Campaign, DecisionRow, Event
from budgetbandits.service.stores.sql.dashboard import DecisionFilter

TEXT_LENGTH_MAX = 2_000
"""Most characters of a search."""

FOUND_MAX = 50
"""Decisions on a page of the search."""
PREFIX = re.compile(r"[0-9a-f]{6,32}")
"""The beginning of an id: lists show eight digits of it."""


@dataclass(frozen=True)
class DecisionView:
    """One decision, the events of its life that were found, and what its request said."""

    now: float
    row: Campaign
    decision: DecisionRow
    names: list[str]
    """Names of all arms, by number."""
    events: list[Event]
    further: int | None
    """The number of the event after which more of its events may be; None if all are here."""
    after: int | None
    """The number that these events come after, if the address names one."""

    @property
    def arm(self) -> str:
        """The name of the arm."""
        return self.names[self.decision.arm]

    @property
    def settled_after(self) -> float | None:
        """Seconds until its cost was reported, if that event is here."""
        return next((event.at - self.decision.created_at for event in self.events if event.kind == "settled"), None)

    @property
    def request(self) -> list[tuple[str, str]]:
        """The options of the request as (label, text), without its metadata."""
        request = ResolvedRequest.from_json(self.decision.request) or ResolvedRequest()
        lines = [] if request.segment is None else [("Segment", request.segment)]
        lines.append(("Arms", "all that were active" if request.arms is None else self._named(request.arms)))
        if request.unavailable:
            lines.append(
                ("Could not be chosen", f"{self._named(request.unavailable)}: cooling down, or not affordable")
            )
        for label, amounts in (("Prices", request.prices), ("Holds", request.holds)):
            if amounts is not None and request.arms is not None:
                pairs = zip(request.arms, amounts, strict=True)
                lines.append((label, ", ".join(f"{self.names[a]} {exact_money(to_units(m))}" for a, m in pairs)))
        if request.features is not None:
            values = zip(self.row.settings.terms.features or (), request.features, strict=True)
            lines.append(("Features", ", ".join(f"{name} {plain(value)}" for name, value in values)))
        if self.decision.propensity is not None:
            lines.append(("Propensity", f"{significant(self.decision.propensity)}: how likely this choice was"))
        if self.decision.lease is not None:
            lines.append(("Lease", self.decision.lease))
        return lines

    @property
    def metadata(self) -> Mapping[str, str | float]:
        """The metadata of the request."""
        request = ResolvedRequest.from_json(self.decision.request)
        return {} if request is None else request.metadata or {}

    def _named(self, arms: list[int]) -> str:
        return ", ".join(self.names[arm] for arm in arms)

    def as_json(self) -> dict[str, Any]:
        """The view as JSON."""
        return decision_json(self.decision, self.names) | {
            "campaign": self.row.name, "charged": to_units(self.decision.hold.charged),
            "expires_at": self.decision.expires_at, "propensity": self.decision.propensity,
            "lease": self.decision.lease,
            "request": dict(self.request), "look_further_after": self.further,
            "events": [
                {"seq": event.seq, "at": event.at, "kind": event.kind, "amount": known_units(event.amount),
                 "reward": event.reward, "by": event.actor}
                for event in self.events
            ],
        }  # fmt: skip


def decision_view(tx: Transaction, row: Campaign, id: str, after: int | None) -> DecisionView:
    """The page of a decision, with its events after a number."""
    decision = tx.decision(id) if id.isprintable() else None
    if decision is None or decision.campaign != row.id:
        if row.settings.archived_before:
            raise DecisionArchived(f"no decision {id!r:.60} here; those before the retention's term are in the archive")
        raise NotFound(f"no decision {id!r:.60} in {row.name!r:.60}; use the links of the page, or its search")
    result = tx.pages().search().events(decision, after)
    return DecisionView(
        tx.now(), row, decision, [arm.name for arm in tx.arms(row.id)], result.events,
        None if _complete(decision, result.events) else result.upto, after,
    )  # fmt: skip


def _complete(decision: DecisionRow, events: list[Event]) -> bool:
    """Whether these are all events that the decision has or can still get."""
    kinds = {event.kind for event in events}
    rewarded = decision.reward is not None and any(event.reward is not None for event in events)
    final = "voided" in kinds or "failed" in kinds or ("settled" in kinds and rewarded)
    return final and "decided" in kinds


# --- the search ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class SearchView:
    """Decisions that fit a text, the newest first where metadata is looked for."""

    row: Campaign
    text: str
    names: list[str]
    decisions: list[DecisionRow]
    indexed: bool
    """Whether they were found by id or key, not by metadata."""
    older: int | None
    """The number of the event before which to look further; None if there is nothing more."""

    def as_json(self) -> dict[str, Any]:
        """The view as JSON."""
        decisions = [decision_json(decision, self.names) for decision in self.decisions]
        return {"campaign": self.row.name, "decisions": decisions, "older": self.older}


def search_view(tx: Transaction, row: Campaign, text: str, before: int | None) -> SearchView:
    """The page of decisions that fit a text."""
    names, rows = [arm.name for arm in tx.arms(row.id)], list[DecisionRow]()
    if before is None and text:
        decision = tx.decision_by_key(row.id, text)
        rows = [] if decision is None else [decision]
        if PREFIX.fullmatch(text.lower()):
            rows += tx.pages().search().with_prefix(text.lower(), FOUND_MAX, row.id)
    name, equals, value = text.partition("=")
    if rows or not equals:
        return SearchView(row, text, names, rows, True, None)
    page = tx.pages().decisions(row.id, FOUND_MAX, DecisionFilter(metadata=(name.strip(), value.strip())), before)
    return SearchView(row, text, names, page.decisions, False, page.older)


# --- the pages -------------------------------------------------------------------------------------------------------


class DecisionPages:
    """The pages of single decisions, of one server."""

    def __init__(self, dashboard: Dashboard) -> None:
        self._dashboard = dashboard

    def routes(self) -> list[Route]:
        """The routes of these pages."""
        page = self._dashboard.page
        return [
            Route("/campaigns/{campaign}/decisions", page(self._search)),
            Route("/campaigns/{campaign}/decisions/{decision}", page(self._decision)),
        ]

    async def _decision(self, request: Request, session: Session) -> Response:
        row, id = await self._dashboard.campaign(request, session), request.path_params["decision"]
        after = whole_number(request.query_params.get("after", ""))
        view = await self._dashboard.read_of(row, lambda tx, row: decision_view(tx, row, id, after))
        return self._dashboard.shown("decision.html", request, session, view)

    async def _search(self, request: Request, session: Session) -> Response:
        row, text = await self._dashboard.campaign(request, session), request.query_params.get("q", "").strip()
        before = event_of(request.query_params)
        if len(text) > TEXT_LENGTH_MAX:
            raise BadParameter(f"the text has {len(text):,} characters; search for {TEXT_LENGTH_MAX:,} at most")
        check_text("the text", text)
        view = await self._dashboard.read_of(row, lambda tx, row: search_view(tx, row, text, before))
        if view.indexed and len(view.decisions) == 1 and not wants_json(request):
            return RedirectResponse(campaign_address(row.name, "decisions", view.decisions[0].id), 303)
        return self._dashboard.shown("decisions.html", request, session, view, before=before)
