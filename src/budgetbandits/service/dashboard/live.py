"""Server-sent events: a page is told that something has happened. What, it asks for itself."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from functools import partial
from typing import Any

from starlette.responses import Response, StreamingResponse

from budgetbandits import web
from budgetbandits.errors import BudgetBanditsError
from budgetbandits.service.dashboard.view_cache import Fresh
from budgetbandits.service.http.server_state import ServerState
from budgetbandits.service.stores.contract import Transaction

MOST_LIVE = 500
"""Pages of one server that are told what happens as it happens; others are told that they are not."""
FULL = b"event: full\ndata: %d\n\n" % MOST_LIVE
BEAT = b"event: beat\ndata: 1\n\n"
"""That the stream is still there, and nothing else."""


class Live:
    """The streams of one server."""

    def __init__(self, service: ServerState) -> None:
        self._service = service
        self._pulses = Fresh(0.9)
        self._open = 0

    def stream(
        self, drawn: Fresh, subject: tuple[Any, ...], look_at: Callable[[Transaction], int],
        over: Callable[[], Awaitable[str]],
    ) -> Response:  # fmt: skip
        """A page is told no more often than it is drawn, and no longer than who looks at it has signed in for: ``over``
        says why that has ended, and nothing until then."""
        if self._open >= MOST_LIVE:
            return Response(FULL, headers=web.STREAM)  # and the page asks again some time later
        events = self._events(drawn, subject, partial(self._service.store.read, look_at), over)
        return StreamingResponse(events, headers=web.STREAM)

    async def _events(
        self, drawn: Fresh, subject: tuple[Any, ...], pulse: Callable[[], int], over: Callable[[], Awaitable[str]]
    ) -> AsyncIterator[bytes]:
        self._open += 1
        try:
            seen, told = -1, 0.0
            while not self._service.reads.stopping:
                every = drawn.lasts()
                try:
                    if why := await over():
                        yield b"event: over\ndata: %s\n\n" % why.encode()
                        return
                    last = await self._pulses.get(subject, None, pulse)
                except BudgetBanditsError:
                    yield b"event: store\ndata: cannot be read\n\n"
                else:
                    now = time.monotonic()
                    if last != seen or now >= told + web.BEAT:
                        yield b"event: %s\ndata: %d\n\n" % (b"changed" if last != seen else b"quiet", last)
                        seen, told = last, now
                async for beat in _waiting(every):
                    yield beat
        finally:
            self._open -= 1


async def _waiting(seconds: float) -> AsyncIterator[bytes]:
    """Wait for so long, with a beat wherever that is longer than a page goes without one."""
    while seconds > web.BEAT / 2:
        await asyncio.sleep(web.BEAT / 2)
        seconds -= web.BEAT / 2
        yield BEAT
    await asyncio.sleep(seconds)
