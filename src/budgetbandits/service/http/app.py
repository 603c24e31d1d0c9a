"""The service over HTTP: problem+json for every error, bearer keys with scopes.

Money is in the user's unit. A decision needs an ``Idempotency-Key``: when an answer was lost, repeat the request with
the same key. Workers' routes are Starlette's and served at once; operators' routes are FastAPI's and imported later.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from importlib.util import find_spec

from starlette.middleware import Middleware
from starlette.routing import Mount, Router
from starlette.types import ASGIApp, Receive, Scope, Send

from budgetbandits.service.http import worker_routes
from budgetbandits.service.http.auth import KeyRing
from budgetbandits.service.http.metrics import Metrics
from budgetbandits.service.http.problem_json import not_found
from budgetbandits.service.http.request_checks import BodyLimit, NulFilter, RequestCounter
from budgetbandits.service.http.subprocess_reads import LongReads
from budgetbandits.service.http.worker_routes import ServerState
from budgetbandits.service.service import DecisionService
from budgetbandits.service.stores.contract import Store

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


class Application(Router):
    """All routes; ``operators`` are those that are imported later."""

    def __init__(self, state: ServerState) -> None:
        def make() -> ASGIApp:
            from budgetbandits.service.http.operator_routes import operators
            from budgetbandits.service.http.shared_budget_routes import ROUTERS

            return operators(state, ROUTERS)

        self.operators = LazyApplication(make)
        # no redirects: they would lead to the address in the header Host
        # FastAPI also answers what workers' routes do not, such as a method that is not POST
        super().__init__(
            [*worker_routes.routes(state), Mount("/", self.operators)],
            redirect_slashes=False,
            default=not_found,
            middleware=[
                Middleware(RequestCounter, metrics=state.metrics),
                Middleware(BodyLimit),
                Middleware(NulFilter),
            ],
        )


def create_app(
    service: DecisionService, store: Store, metrics: Metrics | None = None, reads: LongReads | None = None,
    keys: KeyRing | None = None,
) -> Application:  # fmt: skip
    """The application; its server must call `DecisionService.expire_due` now and then."""
    parts = service.campaigns, service.decisions, service.reports
    metrics, reads = metrics or Metrics(store), reads or LongReads(store)
    return Application(ServerState(*parts, store, metrics, keys or KeyRing(store), reads))
