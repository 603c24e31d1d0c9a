"""The service over HTTP: problem+json for every error, bearer keys with scopes.

Money is in the user's unit. A decision needs an ``Idempotency-Key``: when an answer was lost, repeat the request with
the same key. Workers' routes are Starlette's and served at once; operators' routes are FastAPI's and imported later.
"""

from __future__ import annotations

import asyncio
import re
import threading
from collections.abc import Callable
from importlib.util import find_spec

from starlette.middleware import Middleware
from starlette.routing import Mount, Router
from starlette.types import ASGIApp, Receive, Scope, Send

from budgetbandits.errors import BadParameter
from budgetbandits.service.http import worker_routes
from budgetbandits.service.http.auth import KeyRing
from budgetbandits.service.http.metrics import Metrics
from budgetbandits.service.http.problem_json import not_found
from budgetbandits.service.http.request_checks import RequestCounter, RequestFilter
from budgetbandits.service.http.subprocess_reads import LongReads
from budgetbandits.service.http.tracing import RequestTracing, Tracing
from budgetbandits.service.http.worker_routes import ServerState
from budgetbandits.service.service import DecisionService
from budgetbandits.service.stores.contract import Store
from budgetbandits.web.servers import root_path

for _needed in ("fastapi", "jinja2"):  # imported later, but reported missing at once
    if find_spec(_needed) is None:
        raise ImportError(f"No module named {_needed!r}", name=_needed)


class LazyApplication:
    """An application that is made at its first request, or by `get` before that."""

    def __init__(self, make: Callable[[], ASGIApp]) -> None:
        self._make = make
        self._made: ASGIApp | None = None
        self._gate = threading.Lock()

    def get(self) -> ASGIApp:
        with self._gate:
            if self._made is None:
                self._made = self._make()
            return self._made

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        # in a thread, so that workers need not wait
        made = self._made if self._made is not None else await asyncio.to_thread(self.get)
        await made(scope, receive, send)


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
    if not all(re.fullmatch(r"[\w.~-]+", each, re.ASCII) and each not in (".", "..") for each in segments):
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
    """All routes; ``operators`` are those that are imported later."""

    def __init__(self, state: ServerState, path: str = "") -> None:
        def make() -> ASGIApp:
            from budgetbandits.service.http.operator_app import operators

            return operators(state)

        self.operators = LazyApplication(make)
        # no redirects: they would lead to the address in the header Host
        # FastAPI also answers what workers' routes do not, such as a method that is not POST
        super().__init__(
            [*worker_routes.routes(state), Mount("/", self.operators)],
            redirect_slashes=False,
            default=not_found,
            middleware=[
                *([Middleware(RootPath, path=path)] if path else []),
                Middleware(RequestCounter, metrics=state.metrics),
                *([] if state.tracing is None else [Middleware(RequestTracing, tracing=state.tracing)]),
                Middleware(RequestFilter),
            ],
        )


def create_app(
    service: DecisionService, store: Store, metrics: Metrics | None = None, reads: LongReads | None = None,
    keys: KeyRing | None = None, path: str = "", tracing: Tracing | None = None,
) -> Application:  # fmt: skip
    """The application, below a path; its server must call `DecisionService.expire_due` now and then."""
    parts = service.campaigns, service.decisions, service.reports
    metrics, reads = metrics or Metrics(store), reads or LongReads(store)
    tracing = tracing or Tracing.from_environment()
    return Application(ServerState(*parts, store, metrics, keys or KeyRing(store), reads, tracing), path)
