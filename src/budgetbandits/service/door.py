"""The door of the service: what every request passes before FastAPI sees it."""

from __future__ import annotations

import re
import time
from collections.abc import Awaitable, Callable, Sequence

import structlog
from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from starlette.requests import ClientDisconnect

from budgetbandits.errors import BudgetBanditsError
from budgetbandits.service.metrics import Message, Metrics, Receive, Send
from budgetbandits.service.problems import of_error, of_invalid, of_mistake, problem

LARGEST_BODY = 1_000_000

log = structlog.get_logger("budgetbandits")


class ShortCut:
    """A route that need not go through FastAPI: what leads there, and who answers."""

    def __init__(self, path: str, answer: Callable[[Request], Awaitable[Response]]) -> None:
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
        begun, status = time.perf_counter(), 500

        async def note(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        try:
            answer = _too_large(scope["headers"]) or await self._straight(scope, receive)
            await (answer or self.app)(scope, receive, note)
        except Exception as error:
            _log_mistake(scope, error)  # by now FastAPI has answered
            raise
        finally:
            self._metrics.seen(scope, status, begun)

    async def _straight(self, scope: Message, receive: Receive) -> Response | None:
        """The answer of a short cut, if the request takes one."""
        if scope["method"] != "POST":
            return None
        for way in self._short_cuts:
            if found := way.matches(scope["path"]):
                scope["route"], scope["path_params"] = way, found.groupdict()
                try:
                    return await way.answer(Request(scope, receive))
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


def _log_mistake(scope: Message, error: Exception) -> None:
    log.error("request failed", path=scope["path"], error=repr(error), exc_info=error)


def _too_large(headers: Sequence[tuple[bytes, bytes]]) -> Response | None:
    length, encoded = None, False
    for name, value in headers:
        if name == b"content-length":
            length = value
        encoded = encoded or name == b"transfer-encoding"
    if length is None and encoded:
        return problem(411, "length required", "send Content-Length with the body")
    if length is not None and (not length.isdigit() or int(length) > LARGEST_BODY):
        return problem(413, "too large", f"the body may have {LARGEST_BODY:,} bytes; send less at a time")
    return None
