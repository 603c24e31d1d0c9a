"""Errors over HTTP as application/problem+json.

The title of a problem is the name of the error's class, by which the client raises the same error again: renaming a
class in `errors` changes the protocol. Refusals that no class stands for have a title such as ``body_too_large``.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping
from typing import Any

from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from budgetbandits import errors
from budgetbandits.answers import ProblemDetails
from budgetbandits.errors import (
    REFUSALS,
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

PROTOCOL_TITLES = {
    "unauthorized": "401. No key, or none that there is: a `NotAllowed` in Python.",
    "forbidden": "403. The key may not do this: its scope or its campaign is another. A `NotAllowed` in Python.",
    "not_found": "404. Nothing is at this address.",
    "method_not_allowed": "405. The address has other methods.",
    "length_required": "411. Content-Length is missing.",
    "body_too_large": "413. The body is too large.",
    "invalid": "422. The request cannot be read; the detail says where.",
    "malformed": "400. It is not HTTP/1.1.",
    "request_timeout": "408. The request did not come in time.",
    "headers_too_large": "431. The headers are too large.",
    "busy": "503. There are too many connections.",
    "client_disconnected": "400. The connection closed before the body came.",
    "http": "Any other status that a route answers with.",
    "internal_error": "500. A bug of the service; its log says more.",
}
"""Titles that no class of the package stands for, with their status."""

PROBLEM_TITLES = (
    *REFUSALS,
    *PROTOCOL_TITLES,
    *sorted(
        name
        for name, kind in vars(errors).items()
        if isinstance(kind, type) and issubclass(kind, BudgetBanditsError)
        if kind not in (BudgetBanditsError, HoldRefused, NotAllowed)
    ),
)
"""Every title that a problem can have: refusals by their reason, other errors by their class."""

TITLES = {404: "not_found", 405: "method_not_allowed", 413: "body_too_large"}
"""Kinds of the problems of requests that no route accepts."""

REMEDIES = {
    404: "there is nothing at this address; /openapi.json lists all addresses",
    405: "not with this method; /openapi.json says which one to use",
}
"""Problems of requests that no route accepts."""


MISTAKES = {
    "missing": "it is missing; give it",
    "dict_type": "use an object that maps names to values",
    "list_type": "use a list",
    "string_type": "use a text",
    "bool_type": "use true or false",
    "float_type": "use a number",
    "int_type": "use a whole number",
    "int_from_float": "use a whole number",
    "finite_number": "use a finite number",
    "greater_than": "use more than {gt:g}",
    "greater_than_equal": "use {ge:g} or more",
    "less_than": "use less than {lt:g}",
    "less_than_equal": "use {le:g} or less",
    "too_short": "give at least {min_length}",
    "too_long": "give at most {max_length}",
    "string_too_short": "use {min_length} or more characters",
    "string_too_long": "use at most {max_length} characters",
    "literal_error": "use {expected}",
}
"""Remedies for values that Pydantic refuses, by the kind of mistake; other kinds use its own message."""


class InvalidRequest(Exception):
    """A request that cannot be read: where, and why."""

    def __init__(self, place: Iterable[object], reason: str) -> None:
        super().__init__(f"{'.'.join(map(str, place))}: {reason}"[:500])

    @classmethod
    def of(cls, error: Mapping[str, Any], *place: str) -> InvalidRequest:
        """The error for a mistake that Pydantic has found at or below this place."""
        kind = error["type"].replace("_parsing", "_type")  # a text that is no number
        reason = MISTAKES[kind].format(**error.get("ctx", {})) if kind in MISTAKES else error["msg"]
        return cls([*place, *error["loc"]], reason)


def describe(error: BudgetBanditsError) -> ProblemDetails:
    """An error of the package as a problem."""
    if isinstance(error, HoldRefused):
        return _problem(402 if error.reason == "exhausted" else 409, error.reason, str(error))
    if isinstance(error, NotAllowed):
        return _problem(*((403, "forbidden") if error.key_valid else (401, "unauthorized")), str(error))
    status = next((code for kind, code in STATUS_CODES.items() if isinstance(error, kind)), 422)
    return _problem(status, type(error).__name__, str(error))


def problem(status: int, kind: str, detail: str, headers: dict[str, str] | None = None) -> Response:
    """An answer that says what is wrong."""
    return _response(_problem(status, kind, detail), headers)


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
    return _response(INTERNAL_ERROR)


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
    if isinstance(error, NotAllowed) and not error.key_valid:
        return {"WWW-Authenticate": "Bearer"}
    return {}


def _problem(status: int, kind: str, detail: str) -> ProblemDetails:
    return ProblemDetails(f"urn:budgetbandits:{kind}", kind, status, detail)


def _response(problem: ProblemDetails, headers: dict[str, str] | None = None) -> Response:
    return Response(json.dumps(vars(problem)), problem.status, headers, media_type="application/problem+json")


INTERNAL_ERROR = _problem(500, "internal_error", "internal error; see the log of the service")
"""Problem of an unexpected error."""
