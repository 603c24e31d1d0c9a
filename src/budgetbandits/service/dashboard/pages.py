"""The pages of a server: their routes, what every page goes through, sign-in, and the live streams."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Hashable
from functools import partial
from typing import Any, Protocol
from urllib.parse import quote

from starlette.requests import Request
from starlette.responses import JSONResponse, RedirectResponse, Response, StreamingResponse
from starlette.routing import Route

from budgetbandits.errors import BadParameter, BudgetBanditsError, NotAllowed
from budgetbandits.formatting.datetimes import Times
from budgetbandits.service.dashboard.campaign import CampaignView, campaign_json, campaign_view, events_view
from budgetbandits.service.dashboard.features import DRAWS, field_name, request_view
from budgetbandits.service.dashboard.overview import overview
from budgetbandits.service.dashboard.query import (
    ListQuery,
    PageQuery,
    address,
    address_of,
    campaign_address,
    cookie_path,
    event_of,
    path_of,
)
from budgetbandits.service.dashboard.rendering import PAGES, html_response, render, secured, warm
from budgetbandits.service.dashboard.sessions import COOKIE, COOKIE_SECONDS, Session, Sessions, check_origin, read_form
from budgetbandits.service.http.problem_json import CALLER_ERRORS, INTERNAL_ERROR, describe
from budgetbandits.service.http.request_checks import log_failure
from budgetbandits.service.http.route import ServerState
from budgetbandits.service.stores.contract import T, Transaction, find_campaign, isolated
from budgetbandits.service.stores.records import Campaign
from budgetbandits.web.servers import BEAT, BEAT_EVENT, STREAM_HEADERS, change, event
from budgetbandits.web.view_cache import ViewCache

LIFETIMES = {"campaign": 1.0, "overview": 3.0}
"""Seconds that a drawn page is good for everybody who looks at the same, and between two looks whether anything has
happened; longer if it takes long to draw."""
NAMES_MAX = 10_000
"""Most campaigns whose names a server remembers."""
NAME_SECONDS = 5.0
"""Time for which a name is remembered: a campaign may be renamed, or be deleted and its name be given to another."""

Handler = Callable[[Request, Session], Awaitable[Response]]

Subject = tuple[str, str | None]
"""The kind of a page that stays up to date, one of `LIFETIMES`, and the id of its campaign."""


class JsonView(Protocol):
    """A view of a page that programs can have as JSON."""

    def as_json(self) -> dict[str, Any]:
        """The view as JSON."""


class Dashboard:
    """The pages of one server."""

    def __init__(self, service: ServerState, sessions: Sessions) -> None:
        self.service, self.sessions = service, sessions
        self._views = ViewCache()
        self._known: dict[str, tuple[str, str, float]] = {}
        self._live = LiveStreams(service, self._views)

    def clear(self) -> None:
        """Drop all cached views, after a change."""
        self._views.clear()
        self._known.clear()

    def routes(self) -> list[Route]:
        """The routes of these pages."""
        return [
            Route("/", self.page(self._overview)),
            Route("/live", self.page(self._overview_live)),
            Route("/campaigns/{campaign}", self.page(self._campaign)),
            Route("/campaigns/{campaign}/live", self.page(self._campaign_live)),
            Route("/campaigns/{campaign}/file", self.page(self._file)),
            Route("/campaigns/{campaign}/events", self.page(self._events)),
            Route("/campaigns/{campaign}/request", self.page(self._request)),
            Route("/sign-in", self._sign_in, methods=["GET", "POST"]),
            Route("/sign-out", self.page(self._sign_out), methods=["POST"]),
            Route("/assets/{digest}/{name}", self._asset),
        ]

    # --- what every page passes ----------------------------------------------------------------------------------

    def page(self, handler: Handler) -> Callable[[Request], Awaitable[Response]]:
        """A route for signed-in users; errors are pages as well."""

        async def answer(request: Request) -> Response:
            session = None
            try:
                session = await self.sessions.of(request.cookies.get(COOKIE, ""))
                if session is None:
                    return self._to_sign_in(request)
                response = await handler(request, session)
            except Exception as error:
                response = self._problem(request, session, error)
            return secured(response)

        return answer

    def _to_sign_in(self, request: Request) -> Response:
        if request.method not in ("GET", "HEAD") or _of_a_script(request):
            error = NotAllowed(self.sessions.why_over(request.cookies.get(COOKIE, "")), key_valid=False)
            return self._problem(request, None, error)
        return secured(RedirectResponse(address("sign-in", next=address_of(request)), 303))

    def _problem(self, request: Request, session: Session | None, error: Exception) -> Response:
        if not isinstance(error, CALLER_ERRORS):
            log_failure(request.scope, error)
        problem = describe(error) if isinstance(error, BudgetBanditsError) else INTERNAL_ERROR
        if _of_a_script(request):
            return secured(JSONResponse(vars(problem), problem.status, media_type="application/problem+json"))
        return self.filled("problem.html", request, session, problem.status, problem=problem)

    def shared(self, request: Request, session: Session | None) -> dict[str, Any]:
        """The values that every template gets."""
        times = Times.of(request.cookies.get("zone", ""), time.time())
        return {"session": session, "times": times, "live": "", "path": path_of(request), "inline": False}

    def filled(
        self, template: str, request: Request, session: Session | None, status: int = 200, **values: Any
    ) -> Response:
        """A page of this template."""
        return html_response(render(template, **self.shared(request, session) | values), status)

    def shown(
        self, template: str, request: Request, session: Session, view: JsonView, status: int = 200, **values: Any
    ) -> Response:
        """A view as a page of this template, or as JSON, with status 200, for a program that asks for it."""
        if wants_json(request):
            return JSONResponse(view.as_json())
        return self.filled(template, request, session, status, view=view, **values)

    async def read(self, work: Callable[[Transaction], T]) -> T:
        """The result of reading work, in a thread."""
        return await asyncio.to_thread(self.service.store.read, work)

    async def read_of(self, row: Campaign, work: Callable[[Transaction, Campaign], T]) -> T:
        """Read something of a campaign as it is in the same transaction; damaged rows are named."""
        return await self.read(isolated(row.name, lambda tx: work(tx, find_campaign(tx, row.id))))

    async def campaign(self, request: Request, session: Session) -> Campaign:
        """The campaign in the path, if the session may see it; one that is not there is refused in the same words."""
        name = request.path_params["campaign"]
        try:
            row = await self.read(isolated(name, lambda tx: find_campaign(tx, name)))
        except BudgetBanditsError:
            session.check(name, "")
            raise
        session.check(name, row.id)
        return row

    async def named(self, request: Request, session: Session) -> tuple[str, str]:
        """The id and the name of that campaign, as of some seconds ago: live pages need not look them up each time."""
        path = request.path_params["campaign"]
        id, name, until = self._known.get(path, ("", "", 0.0))
        if time.monotonic() >= until:
            row = await self.campaign(request, session)
            id, name = row.id, row.name
            if len(self._known) >= NAMES_MAX:
                self._known.clear()
            self._known[path] = id, name, time.monotonic() + NAME_SECONDS
        session.check(path, id)
        return id, name

    # --- pages ---------------------------------------------------------------------------------------------------

    async def _overview(self, request: Request, session: Session) -> Response:
        query, only = ListQuery.of(request.query_params), session.key.campaign
        if wants_json(request):
            return JSONResponse(await self.read(lambda tx: overview(tx, query, only).as_json()))
        return await self._live_page(
            "overview.html", request, session, ("overview", only), query,
            lambda tx: (_last_event(tx, only), overview(tx, query, only)), {"creates": session.creates},
            live=address("live"),
        )  # fmt: skip

    async def _campaign(self, request: Request, session: Session) -> Response:
        id, name = await self.named(request, session)
        query = PageQuery.of(request.query_params)
        viewed = _viewed(id, query)
        if wants_json(request):
            return JSONResponse(campaign_json(await self.read(viewed)))
        return await self._live_page(
            "campaign.html", request, session, ("campaign", id), query,
            lambda tx: (tx.last_event(id), viewed(tx)), {"admin": session.admin, "creates": session.creates},
            live=campaign_address(name, "live"), name=name,
        )  # fmt: skip

    async def _live_page(
        self, template: str, request: Request, session: Session, subject: Subject, query: Hashable,
        read: Callable[[Transaction], tuple[int, Any]], rights: dict[str, bool], **values: Any,
    ) -> Response:  # fmt: skip
        """A page that stays up to date; only the part of it that changes, if its script asks for that.

        The part is read once for all who look at it, and drawn once for all who have the same rights and zone. ``read``
        gives the number of the latest event and the view.
        """
        shared = self.shared(request, None) | rights
        variant, key = (shared["times"].zone_key, *rights.values()), (subject, query)
        (last, _), part = await self._views.rendered(
            key, partial(self.service.store.read, read), variant,
            lambda result: render(f"_{template}", **shared, view=result[1]), LIFETIMES[subject[0]],
        )  # fmt: skip
        if "x-part" in request.headers:  # with the latest event that it knows of, and when there may be something newer
            headers = {"X-Event": str(last), "X-Again": f"{self._views.time_left(key, LIFETIMES[subject[0]]):.1f}"}
            return html_response(part, headers=headers)
        return self.filled(template, request, session, part=part, query=query, **values)

    async def _file(self, request: Request, session: Session) -> Response:
        """The page as one file to send by mail: no scripts, nothing to load, no buttons."""
        row, query = await self.campaign(request, session), PageQuery.of(request.query_params)
        view = await self.read(_viewed(row.id, query))
        values = self.shared(request, None) | {"inline": True, "admin": False, "creates": False}
        values |= {"view": view, "query": query}
        page = render("campaign.html", **values, name=row.name, part=render("_campaign.html", **values))
        file_name = f"attachment; filename*=UTF-8''{quote(row.name, safe='')}.html"
        return html_response(page, headers={"Content-Disposition": file_name})

    async def _events(self, request: Request, session: Session) -> Response:
        """All that operators have done, and when the campaign froze."""
        row, before = await self.campaign(request, session), event_of(request.query_params)
        view = await self.read_of(row, lambda tx, row: events_view(tx, row, before))
        return self.shown("events.html", request, session, view, before=before)

    async def _request(self, request: Request, session: Session) -> Response:
        """The chances of the arms for a request that a reader types in."""
        row, query = await self.campaign(request, session), request.query_params
        view = await self.read_of(row, lambda tx, row: request_view(tx, row, query))
        status, values = 422 if view.problem else 200, {"draws": DRAWS, "field_name": field_name}
        return self.shown("request.html", request, session, view, status, **values)

    async def _asset(self, request: Request) -> Response:
        name = request.path_params["name"]
        if name not in PAGES.media_types:
            return self._problem(request, None, BadParameter("there is no such file; reload the page"))
        forever = {"Cache-Control": "public, max-age=31536000, immutable"}
        return secured(Response(PAGES.asset(name), headers=forever, media_type=PAGES.media_types[name]))

    # --- live ----------------------------------------------------------------------------------------------------

    async def _overview_live(self, request: Request, session: Session) -> Response:
        only = session.key.campaign
        look = partial(_last_event, only=only)
        return self._live.stream(("overview", only), look, self._over(session))

    async def _campaign_live(self, request: Request, session: Session) -> Response:
        id, _ = await self.named(request, session)
        return self._live.stream(("campaign", id), lambda tx: tx.last_event(id), self._over(session))

    def _over(self, session: Session) -> Callable[[], Awaitable[str]]:
        async def why() -> str:
            signed_in = await self.sessions.of(session.token) is not None
            return "" if signed_in else self.sessions.why_over(session.token)

        return why

    # --- sign in and out -----------------------------------------------------------------------------------------

    async def _sign_in(self, request: Request) -> Response:
        target = request.query_params.get("next", "")
        if not target.startswith("/") or target.startswith(("//", "/\\")):
            target = address()
        values: dict[str, Any] = {"target": target, "error": "", "over": ""}
        if request.method in ("GET", "HEAD"):
            await asyncio.to_thread(warm)
            token = request.cookies.get(COOKIE, "")
            if token and await self.sessions.of(token) is None:
                values["over"] = self.sessions.why_over(token)
            return self.filled("sign_in.html", request, None, **values)
        try:
            check_origin(request)
            form = await read_form(request)
            token = await self.sessions.sign_in(form.get("key", ""), request.scope.get("client"))
        except BudgetBanditsError as error:
            values["error"] = _sign_in_words(error)
            return self.filled("sign_in.html", request, None, describe(error).status, **values)
        response = RedirectResponse(target, 303)
        secure = request.headers.get("x-forwarded-proto", request.url.scheme) == "https"
        response.set_cookie(
            COOKIE, token, max_age=COOKIE_SECONDS, httponly=True, samesite="strict", secure=secure,
            path=cookie_path(),
        )  # fmt: skip
        return secured(response)

    async def _sign_out(self, request: Request, session: Session) -> Response:
        session.check_form((await read_form(request)).get("code", ""))
        response = RedirectResponse(address("sign-in"), 303)
        response.delete_cookie(COOKIE, path=cookie_path())
        return response


def _viewed(campaign: str, query: PageQuery) -> Callable[[Transaction], CampaignView]:
    """A reader of the view of a campaign's page; damaged rows are named."""
    return isolated(campaign, lambda tx: campaign_view(tx, find_campaign(tx, campaign), query))


def _last_event(tx: Transaction, only: str | None) -> int:
    """The number of the latest event, of one campaign or of all."""
    return tx.pages().last_event() if only is None else tx.last_event(only)


def _sign_in_words(error: BudgetBanditsError) -> str:
    if isinstance(error, NotAllowed) and not error.key_valid:
        return "No such key. Paste the whole of it, from bb_ on."
    if isinstance(error, NotAllowed):
        return "This key may not look at pages. Use one of scope read or admin."
    return str(error)


def _of_a_script(request: Request) -> bool:
    """Whether no person waits for a page as an answer."""
    listens = "text/event-stream" in request.headers.get("accept", "")
    return wants_json(request) or "x-part" in request.headers or listens


def wants_json(request: Request) -> bool:
    """Whether a request asks for JSON."""
    return request.query_params.get("format") == "json"


STREAMS_MAX = 500
"""Pages of one server that may listen at the same time; further ones are refused politely."""
PULSE_SECONDS = 0.9
"""Seconds for which all streams of a page share one look at whether anything has happened."""
FULL_EVENT = event("full", STREAMS_MAX)
"""Event for a page that is not kept up to date, because the server has too many streams."""


class LiveStreams:
    """The streams of one server."""

    def __init__(self, service: ServerState, views: ViewCache) -> None:
        self._service, self._views, self._pulses = service, views, ViewCache()
        self._open = 0

    def stream(
        self, subject: Subject, look_at: Callable[[Transaction], int], over: Callable[[], Awaitable[str]]
    ) -> Response:
        """Events for a page, at most as often as it is drawn, until the session ends: ``over`` says why it has ended,
        and nothing until then."""
        if self._open >= STREAMS_MAX:
            return Response(FULL_EVENT, headers=STREAM_HEADERS)  # and the page asks again some time later
        events = self._events(subject, partial(self._service.store.read, look_at), over)
        return StreamingResponse(events, headers=STREAM_HEADERS)

    async def _events(
        self, subject: Subject, pulse: Callable[[], int], over: Callable[[], Awaitable[str]]
    ) -> AsyncIterator[bytes]:
        self._open += 1
        try:
            seen, sent_at = -1, 0.0
            while not self._service.reads.stopping:
                every = self._views.lifetime(LIFETIMES[subject[0]])
                try:
                    if why := await over():
                        yield event("over", why)
                        return
                    last = await self._pulses.get(subject, pulse, PULSE_SECONDS)
                except BudgetBanditsError:
                    yield event("store", "cannot be read")
                else:
                    now = time.monotonic()
                    if last != seen or now >= sent_at + BEAT:
                        yield change(last, seen)
                        seen, sent_at = last, now
                async for beat in _waiting(every):
                    yield beat
        finally:
            self._open -= 1


async def _waiting(seconds: float) -> AsyncIterator[bytes]:
    """Wait for so long, with a beat wherever that is longer than a page goes without one."""
    while seconds > BEAT / 2:
        await asyncio.sleep(BEAT / 2)
        seconds -= BEAT / 2
        yield BEAT_EVENT
    await asyncio.sleep(seconds)
