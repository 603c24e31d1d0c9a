"""What operators ask for, with a program or a browser: FastAPI's routes and the dashboard.

Importing all that takes longer than importing the rest of the service, so a server does it when it is ready to decide.
"""

from __future__ import annotations

from importlib.metadata import version
from typing import Any

from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.routing import Match, Mount, Router

from budgetbandits.errors import BadState
from budgetbandits.service.dashboard.actions.routes import ActionPages
from budgetbandits.service.dashboard.keys import KeyPages
from budgetbandits.service.dashboard.pages import Dashboard
from budgetbandits.service.dashboard.sessions import Sessions
from budgetbandits.service.http import operator_routes, worker_routes
from budgetbandits.service.http.middleware import log_failure
from budgetbandits.service.http.openapi import Document
from budgetbandits.service.http.parts import Service
from budgetbandits.service.http.problem_json import EXPECTED, PROBLEMS, Invalid, answer, not_found


def operators(service: Service) -> Router:
    """The application of operators."""
    api = FastAPI(
        title="budgetbandits", version=version("budgetbandits"), docs_url=None, redoc_url=None, openapi_url=None,
        responses=PROBLEMS, exception_handlers=HANDLERS, redirect_slashes=False,
    )  # fmt: skip
    api.state.service = service
    for routes in (operator_routes.read, operator_routes.admin):
        api.include_router(routes)
    worker_routes.document(api)
    api.add_route("/openapi.json", Document(api.openapi).__call__, methods=["GET"], include_in_schema=False)
    dashboard = Dashboard(service, Sessions(service.store, service.keys))
    pages = [*dashboard.routes(), *KeyPages(dashboard).routes(), *ActionPages(dashboard).routes()]
    return Router([*pages, Mount("/", api)], redirect_slashes=False, default=not_found)


async def _handle(request: Request, error: Exception) -> Response:
    if isinstance(error, BadState):
        log_failure(request.scope, error)
    if isinstance(error, RequestValidationError):
        first = error.errors()[0]
        error = Invalid(first["loc"], first["msg"])
    if isinstance(error, HTTPException) and error.status_code == 405:
        error = HTTPException(405, headers={"Allow": _methods(request)})
    return answer(error)


def _methods(request: Request) -> str:
    """Those that any route of this path takes: each route names its own alone."""
    scopes = {method: {**request.scope, "method": method} for method in ("DELETE", "GET", "PATCH", "POST", "PUT")}
    routes = request.app.routes
    return ", ".join(
        method for method, scope in scopes.items() if any(each.matches(scope)[0] is Match.FULL for each in routes)
    )


HANDLERS: dict[Any, Any] = dict.fromkeys([*EXPECTED, RequestValidationError, Exception], _handle)
