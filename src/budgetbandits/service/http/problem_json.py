"""Errors over HTTP as application/problem+json, and the OpenAPI document, which lists them.

The title of a problem is the name of the error's class, by which the client raises the same error again: renaming a
class in `errors` changes the protocol. Refusals that no class stands for have a title such as ``body_too_large``.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import math
import re
from collections.abc import Callable, Iterable
from functools import cached_property
from typing import Any

from pydantic import BaseModel
from pydantic_core import to_json
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from budgetbandits.errors import (
    AlreadyResolved,
    BadState,
    BudgetBanditsError,
    Conflict,
    DiskFull,
    HoldRefused,
    NoArmLeft,
    NotAllowed,
    NotFound,
    ServerBusy,
    ServiceError,
    StoreError,
    TooManyRequests,
    TooManyWrongKeys,
    UnknownArm,
    WrongClock,
)
from budgetbandits.web.servers import root_path

STATUS_CODES: dict[type[BudgetBanditsError], int] = {
    NotFound: 404,
    UnknownArm: 404,
    Conflict: 409,
    AlreadyResolved: 409,
    NoArmLeft: 409,
    DiskFull: 507,
    TooManyWrongKeys: 429,
    TooManyRequests: 429,
    StoreError: 503,
    WrongClock: 503,
    BadState: 503,
    ServerBusy: 503,
    ServiceError: 500,
}
"""All other errors of the package: 422."""

PROBLEM_SCHEMA = {
    "type": "object",
    "properties": {name: {"type": "string"} for name in ("type", "title", "detail")} | {"status": {"type": "integer"}},
    "required": ["type", "title", "status", "detail"],
}
PROBLEMS: dict[int | str, dict[str, Any]] = {
    code: {"description": text, "content": {"application/problem+json": {"schema": PROBLEM_SCHEMA}}}
    for code, text in {
        400: "The body is not JSON.",
        401: "There is no such key.",
        402: "The budget is exhausted.",
        403: "The key may not do this.",
        404: "Not found.",
        405: "Another method must be used.",
        409: "A conflict, or no decision can be made now.",
        411: "Content-Length is missing.",
        413: "The body is too large.",
        422: "A field is missing, unknown or out of its range.",
        429: "Too many wrong keys, or too many requests with this one.",
        503: "The store cannot write, a clock is wrong, or the server is busy. Nothing was decided.",
        507: "The disk is full.",
    }.items()
}

TITLES = {404: "not_found", 405: "method_not_allowed", 413: "body_too_large"}
REMEDIES = {
    404: "there is nothing at this address; /openapi.json lists all addresses",
    405: "not with this method; /openapi.json says which one to use",
}
"""For requests that no route accepts."""


class InvalidRequest(Exception):
    """A request that cannot be read: where, and why."""

    def __init__(self, place: Iterable[object], reason: str) -> None:
        super().__init__(f"{'.'.join(map(str, place))}: {reason}"[:500])


def describe(error: BudgetBanditsError) -> dict[str, Any]:
    """An error of the package as the fields of a problem."""
    if isinstance(error, HoldRefused):
        return _fields(402 if error.reason == "exhausted" else 409, error.reason, str(error))
    if isinstance(error, NotAllowed):
        return _fields(*((403, "forbidden") if error.known else (401, "unauthorized")), str(error))
    status = next((code for kind, code in STATUS_CODES.items() if isinstance(error, kind)), 422)
    return _fields(status, type(error).__name__, str(error))


def problem(status: int, kind: str, detail: str, headers: dict[str, str] | None = None) -> Response:
    """An answer that says what is wrong."""
    return _response(_fields(status, kind, detail), headers)


def answer(error: Exception) -> Response:
    """The response to a request that ended in this error."""
    if isinstance(error, BudgetBanditsError):
        return _response(describe(error), _headers(error))
    if isinstance(error, InvalidRequest):
        return problem(422, "invalid", str(error))
    if isinstance(error, HTTPException):  # no such path, or not with this method
        detail = REMEDIES.get(error.status_code, str(error.detail))
        return problem(error.status_code, TITLES.get(error.status_code, "http"), detail, dict(error.headers or {}))
    if isinstance(error, ClientDisconnect):
        return problem(400, "client_disconnected", "the connection closed before the body came")  # nobody reads this
    return problem(500, "internal_error", "internal error; see the log of the service")


async def not_found(scope: Scope, receive: Receive, send: Send) -> None:
    """Answer a request whose path no route has."""
    await answer(HTTPException(404))(scope, receive, send)


CALLER_ERRORS = (BudgetBanditsError, InvalidRequest, HTTPException, ClientDisconnect)
"""Errors of the caller; all others are bugs of the service, and logged."""


def _headers(error: BudgetBanditsError) -> dict[str, str]:
    if (
        isinstance(error, HoldRefused | ServerBusy | TooManyWrongKeys | TooManyRequests)
        and error.retry_after is not None
    ):
        return {"Retry-After": str(math.ceil(error.retry_after))}
    if isinstance(error, NotAllowed) and not error.known:
        return {"WWW-Authenticate": "Bearer"}
    return {}


def _fields(status: int, kind: str, detail: str) -> dict[str, Any]:
    return {"type": f"urn:budgetbandits:{kind}", "title": kind, "status": status, "detail": detail}


def _response(fields: dict[str, Any], headers: dict[str, str] | None = None) -> Response:
    return Response(json.dumps(fields), fields["status"], headers, media_type="application/problem+json")


# --- the OpenAPI document --------------------------------------------------------------------------------------------


class OpenApiDocument:
    """The document as a route, open to all: made when it is first asked for, and kept."""

    def __init__(self, make: Callable[[], dict[str, Any]]) -> None:
        self._make = make

    @cached_property
    def content(self) -> bytes:
        path = root_path.get()
        return to_json(self._make() | ({"servers": [{"url": path}]} if path else {}))

    @cached_property
    def tag(self) -> str:
        return f'"{hashlib.sha256(self.content).hexdigest()[:16]}"'

    async def __call__(self, request: Request) -> Response:
        tag = self.tag if "tag" in vars(self) else await asyncio.to_thread(lambda: self.tag)
        headers = {"ETag": tag, "Cache-Control": "no-cache"}
        known = [each.strip().removeprefix("W/") for each in request.headers.get("if-none-match", "").split(",")]
        if tag in known or known == ["*"]:
            return Response(status_code=304, headers=headers)
        return Response(self.content, media_type="application/json", headers=headers)


def openapi_extra(path: str, body: type[BaseModel] | None, keyed: bool) -> dict[str, Any]:
    """The parameters and the body of a route that reads its request itself, for FastAPI's document."""
    text = {"type": "string", "minLength": 1, "maxLength": 200}
    names = re.findall(r"{(\w+)}", path)
    parameters = [{"name": n, "in": "path", "required": True, "schema": text} for n in names]
    if keyed:
        parameters.append({"name": "Idempotency-Key", "in": "header", "required": True, "schema": text})
    extra: dict[str, Any] = {"parameters": parameters}
    if body is not None:
        schema = body.model_json_schema()
        content = {"application/json": {"schema": _inlined(schema, schema.pop("$defs", {}))}}
        extra["requestBody"] = {"required": True, "content": content}
    return extra


def _inlined(schema: Any, definitions: dict[str, Any]) -> Any:
    """A schema that refers to nothing outside itself."""
    if isinstance(schema, list):
        return [_inlined(each, definitions) for each in schema]
    if not isinstance(schema, dict):
        return schema
    if "$ref" in schema:
        return _inlined(definitions[schema["$ref"].rsplit("/", 1)[1]], definitions)
    return {name: _inlined(each, definitions) for name, each in schema.items()}
