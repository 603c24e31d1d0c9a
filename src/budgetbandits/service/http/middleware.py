"""What every request passes before its route: what is too large, or no text, stays outside, and all is counted."""

from __future__ import annotations

import asyncio
import time

import structlog
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from budgetbandits.service.http.metrics import Metrics
from budgetbandits.service.http.problem_json import problem

LARGEST_BODY = 1_000_000

log = structlog.get_logger("budgetbandits")


class CountRequests:
    """Counts every request with its status and its time, and logs the errors that nobody expected."""

    def __init__(self, app: ASGIApp, metrics: Metrics) -> None:
        self.app = app
        self._metrics = metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        begun, status = time.perf_counter(), 500

        async def note(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        try:
            await self.app(scope, receive, note)
        except Exception as error:
            log_failure(scope, error)
            raise
        finally:
            route = getattr(scope.get("route"), "path", "") or "none"  # FastAPI is mounted at ""
            self._metrics.seen(route, status, time.perf_counter() - begun)


class LimitBodies:
    """Refuses bodies that are too large, or that do not say how large they are."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        app = self.app
        for name, value in scope["headers"] if scope["type"] == "http" else ():
            if name == b"transfer-encoding":  # whatever the length says, the body may be longer
                app = refusal(scope, 411, "length required", "send Content-Length with the body")
                break
            if name == b"content-length" and not _small(value):
                remedy = "send less at a time; a campaign of so many arms is created by the API or the command line"
                app = refusal(scope, 413, "too large", f"the body may have {LARGEST_BODY:,} bytes; {remedy}")
        await app(scope, receive, send)


class RefuseNul:
    """Refuses addresses with the character U+0000, which not every database keeps, or looks for."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        app = self.app
        if scope["type"] == "http" and ("\0" in scope["path"] or b"%00" in scope["query_string"]):
            app = refusal(scope, 422, "invalid", "the address has the character U+0000, written %00; leave it out")
        await app(scope, receive, send)


def refusal(scope: Scope, status: int, kind: str, detail: str) -> ASGIApp:
    """An answer that says what is wrong: a page to a browser that shows one, JSON to programs and scripts."""
    headers = dict(scope["headers"])
    if b"text/html" not in headers.get(b"accept", b"") or b"format=json" in scope["query_string"].split(b"&"):
        return problem(status, kind, detail)

    async def page(scope: Scope, receive: Receive, send: Send) -> None:
        from budgetbandits.service.dashboard.rendering import problem_page  # takes long to import

        response = await asyncio.to_thread(problem_page, status, kind, detail)
        await response(scope, receive, send)

    return page


def _small(length: bytes) -> bool:
    """Whether a Content-Length is a number that is not too large; it may be long, of noughts alone."""
    digits = length.lstrip(b"0")
    return length.isdigit() and len(digits) < 20 and int(digits or b"0") <= LARGEST_BODY


def log_failure(scope: Scope, error: Exception) -> None:
    """A mistake of ours, with where it happened."""
    log.error("request failed", path=scope["path"], error=repr(error), exc_info=error)
