"""The application of operators: their routes together with the dashboard.

Importing FastAPI and the dashboard takes longer than importing the rest of the service, so a server imports this module
when it is ready to decide.
"""

from __future__ import annotations

from functools import cache
from importlib.metadata import version
from typing import Any

from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.routing import Match, Mount, Router
from starlette.types import Receive, Scope, Send

from budgetbandits.errors import BadState
from budgetbandits.service.dashboard.actions.routes import ActionPages
from budgetbandits.service.dashboard.connect import ConnectPages
from budgetbandits.service.dashboard.decision import DecisionPages
from budgetbandits.service.dashboard.keys import KeyPages
from budgetbandits.service.dashboard.pages import Dashboard
from budgetbandits.service.dashboard.rendering import problem_page
from budgetbandits.service.dashboard.sessions import Sessions
from budgetbandits.service.dashboard.shared_budgets import SharedBudgetPages
from budgetbandits.service.dashboard.webhooks import WebhookPages
from budgetbandits.service.http import operator_routes, shared_budget_routes
from budgetbandits.service.http.openapi import DESCRIPTION, PROBLEM_RESPONSES, OpenApiDocument, add_worker_routes
from budgetbandits.service.http.problem_json import CALLER_ERRORS, InvalidRequest, answer, not_found
from budgetbandits.service.http.request_checks import log_failure, shows_pages
from budgetbandits.service.http.worker_routes import ServerState


@cache
def api() -> FastAPI:
    """FastAPI's routes; one object serves all services of a process, since it takes long to make.

    `operators` says by the scope which service a request is for.
    """
    made = FastAPI(
        title="budgetbandits", version=version("budgetbandits"), description=DESCRIPTION, docs_url=None,
        redoc_url=None, openapi_url=None, responses=PROBLEM_RESPONSES, exception_handlers=HANDLERS,
        redirect_slashes=False, generate_unique_id_function=lambda route: route.name,
    )  # fmt: skip
    for routes in (*operator_routes.ROUTERS, *shared_budget_routes.ROUTERS):
        made.include_router(routes)
    add_worker_routes(made)
    document = OpenApiDocument(made)
    made.add_route("/openapi.json", document.__call__, methods=["GET"], include_in_schema=False)
    made.add_route("/docs", document.show, methods=["GET"], include_in_schema=False)
    return made


def operators(service: ServerState) -> Router:
    """The application of operators: FastAPI's routes and the dashboard."""
    routes = api()

    async def ask_api(scope: Scope, receive: Receive, send: Send) -> None:
        scope["service"] = service
        await routes(scope, receive, send)

    dashboard = Dashboard(service, Sessions(service.store, service.keys))
    parts = (
        DecisionPages(dashboard), KeyPages(dashboard), SharedBudgetPages(dashboard), WebhookPages(dashboard),
        ConnectPages(dashboard), ActionPages(dashboard),
    )  # fmt: skip
    pages = [*dashboard.routes(), *(route for part in parts for route in part.routes())]
    return Router([*pages, Mount("/", ask_api)], redirect_slashes=False, default=not_found)


async def _handle(request: Request, error: Exception) -> Response:
    if isinstance(error, BadState):
        log_failure(request.scope, error)
    if isinstance(error, RequestValidationError):
        error = InvalidRequest.of(error.errors()[0])
    if isinstance(error, HTTPException) and error.status_code == 404 and shows_pages(request.scope):
        return problem_page(404, "not_found", "there is no page at this address")
    if isinstance(error, HTTPException) and error.status_code == 405:
        error = HTTPException(405, headers={"Allow": _methods(request)})
    return answer(error)


def _methods(request: Request) -> str:
    """The methods of all routes of this path; each route names only its own."""
    scopes = {method: {**request.scope, "method": method} for method in ("DELETE", "GET", "PATCH", "POST", "PUT")}
    routes = request.app.routes
    return ", ".join(
        method for method, scope in scopes.items() if any(each.matches(scope)[0] is Match.FULL for each in routes)
    )


HANDLERS: dict[Any, Any] = dict.fromkeys([*CALLER_ERRORS, RequestValidationError, Exception], _handle)
