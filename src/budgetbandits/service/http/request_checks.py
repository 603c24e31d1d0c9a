"""Checks before a request reaches its route: sizes, characters and mistakes that are cheap to refuse early.

Validation of a body collects every mistake in it, and collecting a hundred thousand takes as long as a thousand
decisions. So every kind of body has a limit of its size, and a large body is first searched for the kinds of mistake
that can occur very often; the search ends at the first.
"""

from __future__ import annotations

import asyncio
import os
import re
import time

import structlog
from pydantic_core import from_json
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from budgetbandits.service.http.metrics import Metrics
from budgetbandits.service.http.problem_json import InvalidRequest, problem
from budgetbandits.service.http.schemas import RequestBody

BODY_BYTES_MAX = 1_000_000
"""Bytes of any body; each kind of body has a smaller limit of its own."""

SMALL_BODY_BYTES = 2_000
"""Bytes of a body that cannot have many mistakes."""

_NUL = re.compile(rb"(?<!\\)(?:\\\\)*\\u0000")
"""The character as JSON writes it; after another backslash it is a backslash and five characters."""

log = structlog.get_logger("budgetbandits")


# --- middleware ------------------------------------------------------------------------------------------------------


_REQUEST_ID = re.compile(rb"[\x21-\x7e]{1,128}")
_TRACEPARENT = re.compile(rb"[0-9a-f]{2}-([0-9a-f]{32})-([0-9a-f]{16})-[0-9a-f]{2}.*")


def request_ids(scope: Scope) -> dict[str, str]:
    """The ids of a request for logs: the id that its caller gave or a new one, and the caller's W3C trace, if any."""
    ids = {}
    for name, value in scope["headers"]:
        if name == b"x-request-id" and _REQUEST_ID.fullmatch(value):
            ids["request_id"] = value.decode()
        elif name == b"traceparent" and (trace := _TRACEPARENT.fullmatch(value)) is not None:
            ids["trace_id"], ids["parent_id"] = trace[1].decode(), trace[2].decode()
    ids.setdefault("request_id", os.urandom(8).hex())
    return ids


class RequestCounter:
    """Count every request with its status and its time, give it an id, and log unexpected errors."""

    def __init__(self, app: ASGIApp, metrics: Metrics) -> None:
        self.app = app
        self._metrics = metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        begun, status, ids = time.perf_counter(), 500, request_ids(scope)
        structlog.contextvars.bind_contextvars(**ids)
        sent_back = (b"x-request-id", ids["request_id"].encode())

        async def note(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                message["headers"] = [*message["headers"], sent_back]
            await send(message)

        try:
            await self.app(scope, receive, note)
        except Exception as error:
            log_failure(scope, error)
            raise
        finally:
            route = getattr(scope.get("route"), "path", "") or "none"
            self._metrics.count_request(route, status, time.perf_counter() - begun)


class RequestFilter:
    """Refuse bodies that are too large, or that do not state their size, and addresses with the character U+0000, which
    some databases neither keep nor find."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        app = _refused(scope) if scope["type"] == "http" else None
        await (app or self.app)(scope, receive, send)


def _refused(scope: Scope) -> ASGIApp | None:
    for name, value in scope["headers"]:
        if name == b"transfer-encoding":  # whatever the length says, the body may be longer
            return _refusal(scope, 411, "length_required", "send Content-Length with the body")
        if name == b"content-length" and not _is_small(value):
            remedy = "send less at a time; create large campaigns with the API or the command line"
            return _refusal(scope, 413, "body_too_large", f"the body may have {BODY_BYTES_MAX:,} bytes; {remedy}")
    if "\0" in scope["path"] or b"%00" in scope["query_string"]:
        return _refusal(scope, 422, "invalid", "the address has the character U+0000, written %00; leave it out")
    return None


def _refusal(scope: Scope, status: int, kind: str, detail: str) -> ASGIApp:
    """An answer that says what is wrong: a page for a browser that shows one, JSON for programs and scripts."""
    if not shows_pages(scope):
        return problem(status, kind, detail)

    async def page(scope: Scope, receive: Receive, send: Send) -> None:
        from budgetbandits.service.dashboard.rendering import problem_page  # takes long to import

        response = await asyncio.to_thread(problem_page, status, kind, detail)
        await response(scope, receive, send)

    return page


def shows_pages(scope: Scope) -> bool:
    """Whether a request comes from a browser that shows what it gets."""
    accepted = dict(scope["headers"]).get(b"accept", b"")
    return b"text/html" in accepted and b"format=json" not in scope["query_string"].split(b"&")


def _is_small(length: bytes) -> bool:
    """Whether a Content-Length is a number within the limit; it may be long and consist of zeros."""
    digits = length.lstrip(b"0")
    return length.isdigit() and len(digits) < 20 and int(digits or b"0") <= BODY_BYTES_MAX


def log_failure(scope: Scope, error: Exception) -> None:
    """Log a bug of the service, with the path where it happened."""
    log.error("request failed", path=scope["path"], error=repr(error), exc_info=error)


# --- checks that routes call -----------------------------------------------------------------------------------------


async def read_body(request: Request, max_bytes: int) -> bytes:
    """The body, if it is not longer than this; `Request.body` takes four times as long."""
    pieces: list[bytes] = []
    size, more = 0, True
    while more:
        message = await request.receive()
        if message["type"] == "http.disconnect":
            raise ClientDisconnect
        pieces.append(message.get("body", b""))
        size, more = size + len(pieces[-1]), message.get("more_body", False)
        if size > max_bytes:
            check_size(size, max_bytes)
    return pieces[0] if len(pieces) == 1 else b"".join(pieces)


def check_size(size: int, max_bytes: int) -> None:
    """Refuse a body that is too large."""
    if size > max_bytes:
        raise HTTPException(413, f"the body may have {max_bytes:,} bytes here; send less at a time")


def check_no_nul(content: bytes) -> None:
    """Refuse JSON with the character U+0000 in any text: some databases do not keep it."""
    if b"\\u0000" in content and _NUL.search(content):
        raise InvalidRequest(["body"], "a text has the character U+0000; leave it out")


def check_mistakes(content: bytes, kind: type[RequestBody]) -> None:
    """Refuse a body with a mistake that it may have very often."""
    try:
        sent = from_json(content)
    except ValueError as error:  # no JSON, or nested too deeply
        raise InvalidRequest(["body"], f"{error}") from None
    mistake = kind.mistake(sent) if isinstance(sent, dict) else None
    if mistake is not None:
        raise InvalidRequest(["body"], mistake)
