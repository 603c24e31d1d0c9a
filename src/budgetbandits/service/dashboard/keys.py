"""The keys page: all keys, the record of who made, dropped or turned on which, and forms to do so."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import structlog
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from budgetbandits.errors import BadParameter, BudgetBanditsError, Conflict, NotFound
from budgetbandits.formatting.datetimes import DAY, Times, duration
from budgetbandits.service.dashboard.actions.fields import Change, Field, number
from budgetbandits.service.dashboard.actions.flow import FormFlow, Preview, follow, operation
from budgetbandits.service.dashboard.pages import Dashboard
from budgetbandits.service.dashboard.query import address, event_of
from budgetbandits.service.dashboard.sessions import Session, sent_for_all
from budgetbandits.service.http.auth import (
    SCOPES,
    check_rate,
    check_scopes,
    checked_words,
    drop_key,
    make_key,
    prefix_of,
    turn_on_keys,
)
from budgetbandits.service.stores.contract import Transaction, find_campaign
from budgetbandits.service.stores.records import Key, KeyEvent

log = structlog.get_logger("budgetbandits")
EVENTS_PER_PAGE = 50
"""Events of the record on a page."""
FIELDS = (
    Field("campaign", "For one campaign only", "Its name. Empty: for all.", optional=True),
    Field("name", "Name", "What it is for. May be empty.", optional=True),
    Field("owner", "Owner", "Who has it. May be empty.", optional=True),
    Field("days", "Expires after days", "Empty: never.", "decimal", optional=True),
    Field("rate", "Requests a second", "The most to each server process. Empty: any number.", "decimal", optional=True),
)
"""Fields of a new key, next to its scopes."""


@dataclass(frozen=True)
class KeysView:
    """All keys, and a page of the record; ``names`` of the campaigns that any of them is for, by id."""

    keys: list[Key]
    events: list[KeyEvent]
    older: int | None
    """Where the next page of the record begins; None if this is the last."""
    names: Mapping[str, str]

    def campaign(self, entry: Key | KeyEvent) -> str | None:
        """The name of the only campaign it is for."""
        return None if entry.campaign is None else self.names.get(entry.campaign, entry.campaign)

    def as_json(self) -> dict[str, Any]:
        """The view as JSON."""
        return {
            "keys": [
                {"prefix": key.prefix, "scopes": key.scopes, "campaign": self.campaign(key), "made_at": key.created_at,
                 "name": key.name, "owner": key.owner, "expires_at": key.expires_at,
                 "requests_per_second": key.requests_per_second, "last_used_at": key.last_used_at, "off": key.off}
                for key in self.keys
            ],
            "events": [
                {"at": e.at, "kind": e.kind, "prefix": e.prefix, "scopes": e.scopes, "campaign": self.campaign(e),
                 "by": e.actor}
                for e in self.events
            ],
            "older": self.older,
        }  # fmt: skip


def keys_view(tx: Transaction, before: int | None) -> KeysView:
    """The page of keys, with events before a number."""
    keys, events = tx.keys(), tx.key_events(EVENTS_PER_PAGE + 1, before)
    older = events[EVENTS_PER_PAGE - 1].seq if len(events) > EVENTS_PER_PAGE else None
    both: list[Key | KeyEvent] = [*keys, *events]
    limited = {key.campaign for key in both if key.campaign is not None}
    return KeysView(keys, events[:EVENTS_PER_PAGE], older, tx.pages().names(sorted(limited)))


class KeyPages:
    """The pages of keys of one server."""

    def __init__(self, dashboard: Dashboard) -> None:
        self._dashboard = dashboard
        self._store = dashboard.service.store

    def routes(self) -> list[Route]:
        """The routes of these pages."""
        both, page = ["GET", "POST"], self._dashboard.page
        return [
            Route("/keys", page(self._all)),
            Route("/keys/make", page(self._make), methods=both),
            Route("/keys/drop", page(self._drop), methods=both),
            Route("/keys/turn-on", page(self._turn_on), methods=both),
        ]

    async def _all(self, request: Request, session: Session) -> Response:
        before = event_of(await sent_for_all(request, session, "the keys"))
        view = await self._dashboard.read(lambda tx: keys_view(tx, before))
        return self._dashboard.shown("keys.html", request, session, view, before=before, now=time.time())

    async def _make(self, request: Request, session: Session) -> Response:
        form = await sent_for_all(request, session, "the keys")
        wanted = _WantedKey.of(form)

        def do() -> Response:
            self._store.read(lambda tx: _to_make(tx, wanted)).check(form)
            now, days = time.time(), wanted.seconds
            text = make_key(
                self._store, wanted.scopes, now, wanted.campaign or None, session.name, operation(form),
                name=wanted.name or None, owner=wanted.owner or None, expires_at=None if days is None else now + days,
                requests_per_second=wanted.requests_per_second,
            )  # fmt: skip
            log.info("key made", key=prefix_of(text), scopes=wanted.scopes, actor=session.name)
            return self._dashboard.filled("key_made.html", request, session, key=text)

        def preview(tx: Transaction, in_full: bool) -> Preview:
            return _to_make(tx, wanted, in_full)

        values = {"scopes": SCOPES, "fields": FIELDS}
        step = FormFlow("Make a key", address("keys", "make"), _crumbs(), "make_key.html", values, preview, do)
        return await follow(self._dashboard, request, session, form, step)

    async def _drop(self, request: Request, session: Session) -> Response:
        def done(prefix: str) -> None:
            drop_key(self._store, prefix, session.name)
            log.info("key dropped", key=prefix, actor=session.name)

        return await self._act_on_one(request, session, "drop", "Drop a key", _to_drop, done)

    async def _turn_on(self, request: Request, session: Session) -> Response:
        def done(prefix: str) -> None:
            turn_on_keys(self._store, [prefix], session.name)
            log.info("key turned on", key=prefix, actor=session.name)

        return await self._act_on_one(request, session, "turn-on", "Turn on a key", _to_turn_on, done)

    async def _act_on_one(
        self, request: Request, session: Session, action: str, title: str,
        to_do: Callable[[Transaction, str, Session, Times], Preview], execute: Callable[[str], None],
    ) -> Response:  # fmt: skip
        """Preview what is done to the key that the form names, and do it once that is confirmed."""
        form = await sent_for_all(request, session, "the keys")
        prefix, times = form.get("key", ""), Times.of(request.cookies.get("zone", ""), time.time())

        def preview(tx: Transaction, in_full: bool = True) -> Preview:
            return to_do(tx, prefix, session, times)

        def do() -> Response:
            self._store.read(preview).check(form)
            execute(prefix)
            return RedirectResponse(address("keys"), 303)

        values = {"fields": (), "back": "All keys"}
        step = FormFlow(title, address("keys", action), _crumbs(), "action.html", values, preview, do)
        return await follow(self._dashboard, request, session, form, step)


OWN_KEY = "this is the key that you have signed in with; sign in with another one to drop it"
"""Reason why a session cannot drop its own key."""


def _crumbs() -> list[tuple[str, str]]:
    return [(address("keys"), "Keys")]


@dataclass(frozen=True)
class _WantedKey:
    """A key as the form describes it; empty texts say nothing."""

    scopes: list[str]
    campaign: str
    name: str
    owner: str
    days: str
    rate: str

    @classmethod
    def of(cls, form: Mapping[str, str]) -> _WantedKey:
        words = [form.get(field.name, "").strip() for field in FIELDS]
        return cls([scope for scope in SCOPES if form.get(scope)], *words)

    @property
    def seconds(self) -> float | None:
        """How long it lasts; None for ever."""
        if not self.days:
            return None
        days = number(vars(self), "days", "days")
        if not 0.0 < days <= DAYS_MAX:
            raise BadParameter(f"days is {days:g}; give more than 0 and at most {DAYS_MAX:,}, or nothing")
        return days * DAY

    @property
    def requests_per_second(self) -> float | None:
        """The most that a server takes; None for any number."""
        if not self.rate:
            return None
        rate = number(vars(self), "rate", "rate")
        check_rate("rate", rate)
        return rate


DAYS_MAX = 10_000
"""Most days until a key expires."""


def _to_make(tx: Transaction, wanted: _WantedKey, in_full: bool = True) -> Preview:
    button, scopes, campaign = "Make the key", wanted.scopes, wanted.campaign
    if not in_full and not scopes and not campaign:
        return Preview(button, [])
    try:
        check_scopes(scopes)
        only = find_campaign(tx, campaign).name if campaign else None
        name, owner = checked_words(wanted.name or None, wanted.owner or None)
        seconds, rate = wanted.seconds, wanted.requests_per_second
    except BudgetBanditsError as error:
        return Preview(button, [], error, fixable=True, fields=("scopes", *(field.name for field in FIELDS)))
    may = "everything, and make and drop keys" if only is None else "everything that is done to it"
    changes = [
        ("It may", may if "admin" in scopes else " and ".join(scopes), ""),
        ("For", "all campaigns, those to come too" if only is None else f"{only} alone", ""),
        *([] if name is None and owner is None else [("Name", f"{name or '–'}, owner {owner or '–'}", "")]),
        ("Expires", "never" if seconds is None else f"in {duration(seconds)}", ""),
        *([] if rate is None else [("Requests", f"{rate:,g} a second at most, to each server process", "")]),
        ("Shown", "once, on the next page; the store keeps a digest of it", ""),
    ]
    return Preview(
        button, changes, relies_on=[scopes, campaign, name, owner, seconds, rate], dangerous="admin" in scopes
    )


def _to_drop(tx: Transaction, prefix: str, session: Session, times: Times) -> Preview:
    button, key = f"Drop bb_{prefix}", _key(tx, prefix)
    if key is None:
        return Preview(button, [], _dropped(prefix))
    if prefix == session.key.prefix:
        return Preview(button, [], Conflict(OWN_KEY))
    changes = [
        *_described(tx, key, times),
        ("Programs", "that show it are refused within five seconds, on every server", ""),
        ("People", "who have signed in with it are signed out", ""),
    ]
    return Preview(button, changes, relies_on=[prefix, *key.scopes], dangerous=True, final=True)


def _to_turn_on(tx: Transaction, prefix: str, session: Session, times: Times) -> Preview:
    button, key = f"Turn on bb_{prefix}", _key(tx, prefix)
    if key is None:
        return Preview(button, [], _dropped(prefix))
    if not key.off:
        return Preview(button, [], Conflict(f"the key bb_{prefix} is on already"))
    used = "never" if key.last_used_at is None else times.moment(key.last_used_at)
    changes = [
        *_described(tx, key, times),
        ("Last used", f"{used}, as the restored copy knows", ""),
        ("Programs", "that show it are accepted again, on every server", ""),
    ]
    return Preview(button, changes, relies_on=[prefix, *key.scopes], dangerous="admin" in key.scopes)


def _key(tx: Transaction, prefix: str) -> Key | None:
    return tx.key(prefix) if prefix.isalnum() else None


def _dropped(prefix: str) -> NotFound:
    return NotFound(f"no key bb_{prefix:.40}; it may have been dropped already")


def _described(tx: Transaction, key: Key, times: Times) -> list[Change]:
    """Which key it is, and what it may."""
    only = "all campaigns" if key.campaign is None else tx.pages().names([key.campaign])[key.campaign]
    return [
        ("Key", f"bb_{key.prefix}_…, made {times.moment(key.created_at)}", ""),
        ("It may", f"{' and '.join(key.scopes)}, for {only}", ""),
    ]
