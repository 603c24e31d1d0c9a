"""Server-sent events: a page is told that something has happened. What, it asks for itself."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from functools import partial
from typing import Any

from starlette.responses import Response, StreamingResponse

from budgetbandits.errors import BudgetBanditsError
from budgetbandits.service.dashboard.fresh import Fresh
from budgetbandits.service.http.parts import Service
from budgetbandits.service.stores.base import Transaction

MOST_LIVE = 500
"""Pages of one server that are told what happens as it happens; others are told that they are not."""
FULL = b"event: full\ndata: %d\n\n" % MOST_LIVE
QUIET = 10.0
"""Seconds after which a page is told that nothing has happened."""


class Live:
    """The streams of one server."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self._pulses = Fresh(0.9)
        self._open = 0

    def stream(
        self, drawn: Fresh, subject: tuple[Any, ...], look: Callable[[Transaction], int],
        signed_in: Callable[[], Awaitable[bool]],
    ) -> Response:  # fmt: skip
        """A page is told no more often than it is drawn, and no longer than who looks at it has signed in for."""
        if self._open >= MOST_LIVE:
            return Response(FULL, media_type="text/event-stream")  # and the page asks again some time later
        events = self._events(drawn, subject, partial(self._service.store.read, look), signed_in)
        return StreamingResponse(events, media_type="text/event-stream")

    async def _events(
        self, drawn: Fresh, subject: tuple[Any, ...], pulse: Callable[[], int], signed_in: Callable[[], Awaitable[bool]]
    ) -> AsyncIterator[bytes]:
        self._open += 1
        try:
            seen, quiet = -1, 0.0
            while not self._service.reads.stopping:
                every = drawn.lasts()
                try:
                    if not await signed_in():
                        yield b"event: over\ndata: signed out\n\n"
                        return
                    last = await self._pulses.get(subject, None, pulse)
                except BudgetBanditsError:
                    yield b"event: store\ndata: cannot be read\n\n"
                else:
                    if last != seen:
                        yield b"event: changed\ndata: %d\n\n" % last
                    elif quiet >= QUIET:
                        yield b"event: quiet\ndata: %d\n\n" % last
                    quiet = 0.0 if last != seen or quiet >= QUIET else quiet + every
                    seen = last
                await asyncio.sleep(every)
        finally:
            self._open -= 1
