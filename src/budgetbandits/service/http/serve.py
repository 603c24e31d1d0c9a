"""The table of routes, and how a request goes through a row of it: checked, answered, or refused in words."""

from __future__ import annotations

import asyncio
import inspect
from typing import Any
from urllib.parse import parse_qsl

import structlog
from pydantic import BaseModel, ValidationError
from pydantic_core import to_json
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Match
from starlette.routing import Route as Address
from starlette.types import Receive, Scope, Send

from budgetbandits.answers import Answer
from budgetbandits.errors import BadParameter, BadState
from budgetbandits.service.http import operator_routes, shared_budget_routes, worker_routes
from budgetbandits.service.http.auth import actor_of, check_header
from budgetbandits.service.http.problem_json import CALLER_ERRORS, InvalidRequest, answer
from budgetbandits.service.http.request_checks import (
    SMALL_BODY_BYTES,
    check_mistakes,
    check_no_nul,
    log_failure,
    read_body,
    shows_pages,
)
from budgetbandits.service.http.route import CheckedRequest, Route, ServerState
from budgetbandits.service.http.schemas import RequestBody

ROUTES: tuple[Route[Any], ...] = (*worker_routes.ROUTES, *operator_routes.ROUTES, *shared_budget_routes.ROUTES)
"""All routes of the API; those that are called most are looked at first."""

UNUSED_BODY_BYTES_MAX = 1_000
"""Bytes of a body that is sent to a route without one."""


class Endpoint:
    """A row of the table as an ASGI application; it answers errors itself, without a layer for each kind."""

    def __init__(self, server: ServerState, route: Route[Any]) -> None:
        self._server, self._route = server, route
        self._threaded = not inspect.iscoroutinefunction(route.function)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        scope["route"] = self._route  # for the metrics
        try:
            call = await self._checked(Request(scope, receive))
            function = self._route.function
            result = await (run_in_threadpool(function, call) if self._threaded else function(call))
            response = result if isinstance(result, Response) else _Json(result, self._route.status)
        except Exception as error:
            if not isinstance(error, CALLER_ERRORS) or isinstance(error, BadState):
                log_failure(scope, error)
            response = answer(error)
        await response(scope, receive, send)

    async def _checked(self, request: Request) -> CheckedRequest[Any]:
        """The request if it is allowed: the key is looked at before what is sent."""
        route, scope = self._route, request.scope
        if route.scope is None:
            return CheckedRequest(self._server, request, None)
        for name, value in request.path_params.items():
            if not 0 < len(value) <= 200 or not value.isprintable():
                raise BadParameter(f"{name} is {value!r:.60}; use its name or id as the service gave it")
        header, campaign = _header(scope, b"authorization") or "", request.path_params.get("campaign")
        key = await check_header(self._server.keys, header, route.scope, campaign, scope.get("client"))
        actor = actor_of(key.prefix)
        structlog.contextvars.bind_contextvars(actor=actor)
        parameters = _parameters(scope["query_string"], route.query)
        operation = self._idempotency_key(scope) if route.keyed else None
        content = await _body(request, route.body)
        return CheckedRequest(self._server, request, content or parameters, actor, key.campaign, operation)

    def _idempotency_key(self, scope: Scope) -> str | None:
        key = _header(scope, b"idempotency-key")
        if key is None and self._route.keyed == "may":
            return None
        if key is None or not (0 < len(key) <= 200 and key.isprintable()):
            raise BadParameter(
                "Idempotency-Key is missing or invalid; send 1 to 200 printable characters, new for each "
                f"{'decision' if self._route.decides else 'change'}"
            )
        return key


def addresses(server: ServerState) -> list[Address]:
    """The table as Starlette has routes."""
    result = []
    for row in ROUTES:
        address = Address(row.path, Endpoint(server, row), methods=[row.method])
        if row.scope is not None:
            address.methods = {row.method}  # HEAD is for probes alone
        result.append(address)
    return result


class NoRoute:
    """The answer where no route takes a request: for a browser a page, and 405 where another method has one."""

    def __init__(self, addresses: list[Address]) -> None:
        self._addresses = addresses

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        near = [address for address in self._addresses if address.matches(scope)[0] is Match.PARTIAL]
        error = HTTPException(404)
        if near:
            scope["route"] = near[0]
            methods = {method for address in near for method in address.methods or () if method != "HEAD"}
            error = HTTPException(405, headers={"Allow": ", ".join(sorted(methods))})
        elif shows_pages(scope):
            from budgetbandits.service.dashboard.rendering import problem_page

            page = await asyncio.to_thread(problem_page, 404, "not_found", "there is no page at this address")
            await page(scope, receive, send)
            return
        await answer(error)(scope, receive, send)


# --- what is sent, and what is answered ------------------------------------------------------------------------------


def _header(scope: Scope, header: bytes) -> str | None:
    """The first header of this name; `Request.headers` takes several times as long."""
    for name, value in scope["headers"]:
        if name == header:
            return str(value, "latin-1")
    return None


def _parameters(query: bytes, kind: type[BaseModel] | None) -> BaseModel | None:
    """The checked parameters; those that would be ignored are refused: unknown ones, and those given twice."""
    if kind is None and not query:
        return None
    names, sent = () if kind is None else tuple(kind.model_fields), dict[str, str]()
    for name, value in parse_qsl(query.decode("latin-1"), True):
        if name not in names:
            remedy = f"use {', '.join(names)}" if names else "leave it out"
            raise InvalidRequest(["query"], f"there is no parameter {name!r:.60}; {remedy}")
        if name in sent:
            raise InvalidRequest(["query"], f"the parameter {name!r:.60} is given twice; give it once")
        sent[name] = value
    try:
        return None if kind is None else kind.model_validate(sent)
    except ValidationError as error:
        raise InvalidRequest.of(error.errors()[0], "query") from None


async def _body(request: Request, kind: type[RequestBody] | None) -> RequestBody | None:
    """The checked body."""
    content = await read_body(request, UNUSED_BODY_BYTES_MAX if kind is None else kind.max_bytes)
    check_no_nul(content)
    if kind is None:
        return None
    content = content or b"{}"
    if len(content) > SMALL_BODY_BYTES:
        check_mistakes(content, kind)
    try:
        # what model_validate_json calls, in half the time
        checked: RequestBody = kind.__pydantic_validator__.validate_json(content)
    except ValidationError as error:
        check_mistakes(content, kind)  # whose words say more
        raise InvalidRequest.of(error.errors()[0], "body") from None
    return checked


class _Json(Response):
    """A JSON response that skips Starlette's work on headers; bytes are JSON already."""

    def __init__(self, content: Any, status: int) -> None:
        if not isinstance(content, bytes):
            # of a dictionary in half the time
            content = to_json(vars(content) if isinstance(content, Answer) else content)
        self.body = content
        self.status_code = status
        self.background = None
        self.raw_headers = [(b"content-length", b"%d" % len(self.body)), (b"content-type", b"application/json")]
