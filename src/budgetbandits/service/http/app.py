"""The service over HTTP: problem+json for every error, bearer keys with scopes.

Money is in the user's unit. A decision needs an ``Idempotency-Key``: send the same one again when an answer was lost.

The routes that workers call all the time are Starlette's; all others are FastAPI's, which takes as long to answer as
a decision takes to make. One OpenAPI document has both.
"""

from __future__ import annotations

from importlib.metadata import version

from fastapi import FastAPI
from starlette.middleware import Middleware
from starlette.routing import Mount, Router

from budgetbandits.service.dashboard.action_routes import Actions
from budgetbandits.service.dashboard.routes import Dashboard
from budgetbandits.service.dashboard.sessions import Sessions
from budgetbandits.service.engine import Engine
from budgetbandits.service.http import operator_routes, worker_routes
from budgetbandits.service.http.auth import KeyRing
from budgetbandits.service.http.dependencies import Service
from budgetbandits.service.http.long_reads import LongReads
from budgetbandits.service.http.metrics import Metrics
from budgetbandits.service.http.middleware import CountRequests, LimitBodies
from budgetbandits.service.http.problem_json import HANDLERS, PROBLEMS
from budgetbandits.service.stores.base import Store


def create_app(engine: Engine, store: Store, metrics: Metrics | None = None, reads: LongReads | None = None) -> Router:
    """The application; whoever serves it sees to `Engine.expire_due`."""
    service = Service(engine, engine, store, metrics or Metrics(engine), KeyRing(store), reads or LongReads(store))
    operators = FastAPI(
        title="budgetbandits", version=version("budgetbandits"), docs_url=None, redoc_url=None, responses=PROBLEMS,
        exception_handlers=HANDLERS, redirect_slashes=False,
    )  # fmt: skip
    operators.state.service = service
    for routes in (operator_routes.anyone, operator_routes.read, operator_routes.admin):
        operators.include_router(routes)
    worker_routes.document(operators)
    # no redirects: they would lead wherever the header Host says
    # what workers' routes do not answer, a method that is not POST for example, is FastAPI's as well
    dashboard = Dashboard(service, Sessions(store, service.keys))
    return Router(
        [*worker_routes.routes(service), *dashboard.routes(), *Actions(dashboard).routes(), Mount("/", operators)],
        redirect_slashes=False,
        middleware=[Middleware(CountRequests, metrics=service.metrics), Middleware(LimitBodies)],
    )
