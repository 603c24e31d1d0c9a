"""The door of the service: what every request passes before FastAPI sees it."""

from __future__ import annotations

import re
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence

import structlog
from fastapi import FastAPI, Response
from fastapi.exceptions import RequestValidationError
from starlette.requests import ClientDisconnect

from budgetbandits.errors import BudgetBanditsError
from budgetbandits.service.http.metrics import Message, Metrics, Receive, Send
from budgetbandits.service.http.problem_json import of_error, of_invalid, of_mistake, problem

LARGEST_BODY = 1_000_000

log = structlog.get_logger("budgetbandits")


class Asked:
    """A request as workers' routes read it; Starlette's own does more, and takes as long as a decision."""

    __slots__ = ("_headers", "_receive", "path")

    def __init__(self, headers: Mapping[bytes, bytes], path: Mapping[str, str], receive: Receive) -> None:
        self.path = path
        """What the names in the route's path stand for."""
        self._headers = headers
        self._receive = receive

    def header(self, name: bytes) -> str:
        """Empty if it was not sent."""
        return self._headers.get(name, b"").decode("latin-1")

    async def body(self) -> bytes:
        message = await self._receive()
        content: bytes = message.get("body", b"")
        while message.get("more_body"):
            message = await self._receive()
            content += message.get("body", b"")
        if message["type"] == "http.disconnect":
            raise ClientDisconnect
        return content


class Json(Response):
    """An answer whose headers need not be put together."""

    def __init__(self, content: bytes, status: int = 200) -> None:
        self.body = content
        self.status_code = status
        self.background = None
        self.raw_headers = [(b"content-length", b"%d" % len(content)), (b"content-type", b"application/json")]


class ShortCut:
    """A route that need not go through FastAPI: what leads there, and who answers."""

    def __init__(self, path: str, answer: Callable[[Asked], Awaitable[Response]]) -> None:
        self.path = path
        self.answer = answer
        self.matches = re.compile(re.sub(r"\{(\w+)\}", r"(?P<\1>[^/]+)", path)).fullmatch


class Door:
    """What every request passes: bodies too large stay outside, the rest is counted, workers go straight on."""

    def __init__(self, app: FastAPI, metrics: Metrics, short_cuts: Sequence[ShortCut]) -> None:
        self.app = app
        self._metrics = metrics
        self._short_cuts = short_cuts

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        begun, status, headers = time.perf_counter(), 500, headers_of(scope)
        try:
            answer = _too_large(headers) or await self._straight(scope, headers, receive)
            if answer is not None:
                status = answer.status_code
                await answer(scope, receive, send)
                return

            async def note(message: Message) -> None:
                nonlocal status
                if message["type"] == "http.response.start":
                    status = message["status"]
                await send(message)

            await self.app(scope, receive, note)
        except Exception as error:
            _log_mistake(scope, error)  # by now FastAPI has answered
            raise
        finally:
            route = getattr(scope.get("route"), "path", "none")
            self._metrics.seen(route, status, time.perf_counter() - begun)

    async def _straight(self, scope: Message, headers: Mapping[bytes, bytes], receive: Receive) -> Response | None:
        """The answer of a short cut, if the request takes one."""
        if scope["method"] != "POST":
            return None
        for way in self._short_cuts:
            if found := way.matches(scope["path"]):
                scope["route"] = way
                try:
                    return await way.answer(Asked(headers, found.groupdict(), receive))
                except BudgetBanditsError as error:
                    return of_error(error)
                except RequestValidationError as error:
                    return of_invalid(error)
                except ClientDisconnect:
                    return problem(400, "disconnected", "the body did not come")  # which nobody will read
                except Exception as error:
                    _log_mistake(scope, error)
                    return of_mistake()
        return None


def headers_of(scope: Message) -> dict[bytes, bytes]:
    """The first of each name."""
    return dict(reversed(scope["headers"]))


def _log_mistake(scope: Message, error: Exception) -> None:
    log.error("request failed", path=scope["path"], error=repr(error), exc_info=error)


def _too_large(headers: Mapping[bytes, bytes]) -> Response | None:
    length = headers.get(b"content-length")
    if b"transfer-encoding" in headers:  # whatever the length says, the body may be longer
        return problem(411, "length required", "send Content-Length with the body")
    if length is not None and (not length.isdigit() or int(length) > LARGEST_BODY):
        return problem(413, "too large", f"the body may have {LARGEST_BODY:,} bytes; send less at a time")
    return None
