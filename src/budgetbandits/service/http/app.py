"""The service over HTTP: problem+json for every error, bearer keys with scopes.

Money is in the user's unit. A decision needs an ``Idempotency-Key``: send the same one again when an answer was lost.

The routes that are called all the time are Starlette's; all others are FastAPI's, which takes as long to answer as a
decision takes to make. One OpenAPI document has both.
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
from budgetbandits.service.http.middleware import CountRequests, LimitBodies, RefuseNul
from budgetbandits.service.http.parts import Service
from budgetbandits.service.http.problem_json import not_found
from budgetbandits.service.http.subprocess_reads import LongReads
from budgetbandits.service.service import DecisionService
from budgetbandits.service.stores.contract import Store

for _needed in ("fastapi", "jinja2"):  # imported later, but missed at once
    if find_spec(_needed) is None:
        raise ImportError(f"No module named {_needed!r}", name=_needed)


class Later:
    """An application that is put together when it is first asked, or when somebody calls `get` before."""

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
        # in a thread: workers need not wait for that
        made = self._made if self._made is not None else await asyncio.to_thread(self.get)
        await made(scope, receive, send)


class Application(Router):
    """All routes; ``operators`` are those that are put together later."""

    def __init__(self, service: Service) -> None:
        def make() -> ASGIApp:
            from budgetbandits.service.http.operators import operators

            return operators(service)

        self.operators = Later(make)
        # no redirects: they would lead wherever the header Host says
        # what workers' routes do not answer, a method that is not POST for example, is FastAPI's as well
        super().__init__(
            [*worker_routes.routes(service), Mount("/", self.operators)],
            redirect_slashes=False,
            default=not_found,
            middleware=[
                Middleware(CountRequests, metrics=service.metrics),
                Middleware(LimitBodies),
                Middleware(RefuseNul),
            ],
        )


def create_app(
    engine: DecisionService, store: Store, metrics: Metrics | None = None, reads: LongReads | None = None
) -> Application:
    """The application; whoever serves it sees to `DecisionService.expire_due`."""
    parts = engine.campaigns, engine.decisions, engine.outcomes
    metrics, reads = metrics or Metrics(engine.campaigns), reads or LongReads(store)
    return Application(Service(*parts, store, metrics, KeyRing(store), reads))
