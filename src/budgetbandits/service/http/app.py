"""The service over HTTP: the table of routes and the pages, behind what all requests pass.

Money is in the user's unit. A decision needs an ``Idempotency-Key``: when an answer was lost, repeat the request with
the same key. Every error is a problem in JSON, or for a browser a page.
"""

from __future__ import annotations

import re
from importlib.util import find_spec

from starlette.middleware import Middleware
from starlette.routing import Mount, Router
from starlette.routing import Route as Address
from starlette.types import ASGIApp, Receive, Scope, Send

from budgetbandits.errors import BadParameter
from budgetbandits.service.dashboard.actions.routes import ActionPages
from budgetbandits.service.dashboard.connect import ConnectPages
from budgetbandits.service.dashboard.decision import DecisionPages
from budgetbandits.service.dashboard.keys import KeyPages
from budgetbandits.service.dashboard.pages import Dashboard
from budgetbandits.service.dashboard.sessions import Sessions
from budgetbandits.service.dashboard.shared_budgets import SharedBudgetPages
from budgetbandits.service.dashboard.webhooks import WebhookPages
from budgetbandits.service.http.auth import KeyRing
from budgetbandits.service.http.document import OpenApiDocument
from budgetbandits.service.http.metrics import Metrics
from budgetbandits.service.http.request_checks import RequestCounter, RequestFilter
from budgetbandits.service.http.route import ServerState
from budgetbandits.service.http.serve import NoRoute, addresses
from budgetbandits.service.http.subprocess_reads import LongReads
from budgetbandits.service.http.tracing import RequestTracing, Tracing
from budgetbandits.service.service import DecisionService
from budgetbandits.service.stores.contract import Store
from budgetbandits.web.servers import root_path

if find_spec("jinja2") is None:  # imported with the first page, but reported missing at once
    raise ImportError("No module named 'jinja2'", name="jinja2")

OWN_SEGMENTS = (
    "assets", "campaigns", "docs", "healthz", "keys", "live", "metrics", "new", "new-shared-budget",
    "openapi.json", "readyz", "shared-budgets", "sign-in", "sign-out", "v1", "webhooks",
)  # fmt: skip
"""The first segments of this server's own addresses."""


def checked_root_path(text: str) -> str:
    """The path below which a proxy publishes a server, with a slash at its beginning and none at its end.

    >>> checked_root_path("bandits/"), checked_root_path("/apps/bandits"), checked_root_path("/")
    ('/bandits', '/apps/bandits', '')
    """
    segments = text.strip("/").split("/")
    if segments == [""]:
        return ""
    if not all(re.fullmatch(r"[\w.~-]+", segment, re.ASCII) and segment not in (".", "..") for segment in segments):
        raise BadParameter(
            f"root path {text!r:.80} is no path of an address; use letters, digits, - and _, such as /bandits"
        )
    if segments[0] in OWN_SEGMENTS:
        raise BadParameter(f"root path {text!r:.80} begins like the server's own addresses; choose another")
    return f"/{'/'.join(segments)}"


class RootPath:
    """Serve below a path, such as ``/bandits``, whether the proxy in front leaves it in addresses or takes it off."""

    def __init__(self, app: ASGIApp, path: str) -> None:
        self.app = app
        self._path = path

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            below = "/" + scope["path"].lstrip("/")  # nginx makes // of a location that ends without a slash
            if below == self._path or below.startswith(f"{self._path}/"):
                below = "/" + below.removeprefix(self._path).lstrip("/")
            scope["root_path"], scope["path"] = self._path, self._path + below
            root_path.set(self._path)
        await self.app(scope, receive, send)


class Application(Router):
    """All routes of a server, below a path."""

    def __init__(self, state: ServerState, path: str = "") -> None:
        document = OpenApiDocument()
        shown = [Address("/openapi.json", document.show), Address("/docs", document.show_page)]
        table = [*addresses(state), *shown]
        none = NoRoute(table)
        # no redirects: they would lead to the address in the header Host
        # where pages have another method, there is nothing: hence the mount
        super().__init__(
            [*table, *_pages(state), Mount("/", none)],
            redirect_slashes=False,
            default=none,
            middleware=[
                *([Middleware(RootPath, path=path)] if path else []),
                Middleware(RequestCounter, metrics=state.metrics),
                *([] if state.tracing is None else [Middleware(RequestTracing, tracing=state.tracing)]),
                Middleware(RequestFilter),
            ],
        )


def _pages(state: ServerState) -> list[Address]:
    """The routes of the dashboard."""
    dashboard = Dashboard(state, Sessions(state.store, state.keys))
    parts = (
        DecisionPages(dashboard), KeyPages(dashboard), SharedBudgetPages(dashboard), WebhookPages(dashboard),
        ConnectPages(dashboard), ActionPages(dashboard),
    )  # fmt: skip
    return [*dashboard.routes(), *(address for part in parts for address in part.routes())]


def create_app(
    service: DecisionService, store: Store, metrics: Metrics | None = None, reads: LongReads | None = None,
    keys: KeyRing | None = None, path: str = "", tracing: Tracing | None = None,
) -> Application:  # fmt: skip
    """The application, below a path; its server must call `DecisionService.expire_due` now and then."""
    parts = service.campaigns, service.decisions, service.reports
    metrics, reads = metrics or Metrics(store), reads or LongReads(store)
    tracing = tracing or Tracing.from_environment()
    return Application(ServerState(*parts, store, metrics, keys or KeyRing(store), reads, tracing), path)
