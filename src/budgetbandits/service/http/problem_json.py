"""Errors over HTTP: application/problem+json, with what is wrong and what to do about it."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable
from typing import Any

from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect
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
    TooManyWrongKeys,
    UnknownArm,
    WrongClock,
)

STATUS: dict[type[BudgetBanditsError], int] = {
    NotFound: 404,
    UnknownArm: 404,
    Conflict: 409,
    AlreadyResolved: 409,
    NoArmLeft: 409,
    DiskFull: 507,
    TooManyWrongKeys: 429,
    StoreError: 503,
    WrongClock: 503,
    BadState: 503,
    ServerBusy: 503,
    ServiceError: 500,
}
"""All other errors of the package: 422. The title of a problem is the name of the error's class, by which the client
raises it again: whoever renames a class changes the protocol."""

PROBLEM = {
    "type": "object",
    "properties": {name: {"type": "string"} for name in ("type", "title", "detail")} | {"status": {"type": "integer"}},
    "required": ["type", "title", "status", "detail"],
}
PROBLEMS: dict[int | str, dict[str, Any]] = {
    code: {"description": text, "content": {"application/problem+json": {"schema": PROBLEM}}}
    for code, text in {
        400: "no JSON",
        401: "no such key",
        402: "the budget is gone",
        403: "the key may not do this",
        404: "not found",
        405: "not allowed here",
        409: "a conflict, or no decision now",
        411: "Content-Length is missing",
        413: "the body is too large",
        422: "malformed",
        429: "too many wrong keys",
        503: "the store cannot write, or a clock is wrong, and nothing was decided; or the server is busy",
        507: "no room for a temporary file",
    }.items()
}


REMEDIES = {
    404: "there is nothing at this address; /openapi.json lists what there is",
    405: "not with this method; /openapi.json says which one to use",
}
"""For what no route has taken."""


class Invalid(Exception):
    """What was sent is not as it should be: where, and why."""

    def __init__(self, where: Iterable[object], why: str) -> None:
        super().__init__(f"{'.'.join(map(str, where))}: {why}"[:500])


def describe(error: BudgetBanditsError) -> dict[str, Any]:
    """An error of ours as the fields of a problem."""
    if isinstance(error, HoldRefused):
        return _fields(402 if error.reason == "exhausted" else 409, error.reason, str(error))
    if isinstance(error, NotAllowed):
        return _fields(*((403, "forbidden") if error.known else (401, "unauthorized")), str(error))
    status = next((code for kind, code in STATUS.items() if isinstance(error, kind)), 422)
    return _fields(status, type(error).__name__, str(error))


def problem(status: int, kind: str, detail: str, headers: dict[str, str] | None = None) -> Response:
    """An answer that says what is wrong."""
    return _response(_fields(status, kind, detail), headers)


def answer(error: Exception) -> Response:
    """What is answered to a request that ended in this error."""
    if isinstance(error, BudgetBanditsError):
        return _response(describe(error), _headers(error))
    if isinstance(error, Invalid):
        return problem(422, "invalid", str(error))
    if isinstance(error, HTTPException):  # no such path, or not with this method
        detail = REMEDIES.get(error.status_code, str(error.detail))
        return problem(error.status_code, "http", detail, dict(error.headers or {}))
    if isinstance(error, ClientDisconnect):
        return problem(400, "disconnected", "the connection closed before the body came")  # which nobody will read
    return problem(500, "internal", "internal error; see the log of the service")


async def not_found(scope: Scope, receive: Receive, send: Send) -> None:
    """What is answered where no route has the path, be it no path at all."""
    await answer(HTTPException(404))(scope, receive, send)


EXPECTED = (BudgetBanditsError, Invalid, HTTPException, ClientDisconnect)
"""Errors that are the caller's; all others are mistakes of ours, and logged."""


def _headers(error: BudgetBanditsError) -> dict[str, str]:
    if isinstance(error, HoldRefused | ServerBusy | TooManyWrongKeys) and error.retry_after is not None:
        return {"Retry-After": str(math.ceil(error.retry_after))}
    if isinstance(error, NotAllowed) and not error.known:
        return {"WWW-Authenticate": "Bearer"}
    return {}


def _fields(status: int, kind: str, detail: str) -> dict[str, Any]:
    return {"type": f"urn:budgetbandits:{kind}", "title": kind, "status": status, "detail": detail}


def _response(fields: dict[str, Any], headers: dict[str, str] | None = None) -> Response:
    return Response(json.dumps(fields), fields["status"], headers, media_type="application/problem+json")
