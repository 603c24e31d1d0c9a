"""Connections with limits: uvicorn's own has none on how long a request's head may be, on how long a client may take to
send it, or on how many connections there are.

Whoever has no key gets as far as this, so it must cost little: a request that comes in one piece, as nearly all do, is
looked at twice, when it begins and when it has come.
"""

from __future__ import annotations

import asyncio
import resource
from collections import Counter
from typing import Any, Literal

import httptools
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol

from budgetbandits.service.http.problem_json import problem
from budgetbandits.service.http.rate_limit import network

LARGEST_HEAD = 32_768
"""Bytes of a request's line and headers."""

SEND_WITHIN = 15.0
"""Seconds that a client may take to send a request, and to take any of an answer."""

LINGER = 0.5
"""Seconds in which a client that is refused can read why: to close at once would lose the answer on its way."""

MOST_CONNECTIONS = 8192


def room() -> int:
    """How many connections fit beside what else needs descriptors: the store, exports, connections to be refused."""
    descriptors, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if descriptors == resource.RLIM_INFINITY:
        return MOST_CONNECTIONS
    return max(16, min(MOST_CONNECTIONS, descriptors - min(256, descriptors // 2)))


class Connections:
    """All connections of a server: how many there are, and which of them take too long."""

    def __init__(self, most: int, per_address: int) -> None:
        self._most = most
        self._per_address = per_address
        self._of: Counter[str] = Counter()
        self._open: set[BoundedConnection] = set()

    def admit(self, connection: BoundedConnection, address: str) -> bool:
        """Whether there is room for one more; then it counts until `leave`."""
        if len(self._open) >= self._most or self._of[address] >= self._per_address:
            return False
        self._open.add(connection)
        self._of[address] += 1
        return True

    def leave(self, connection: BoundedConnection, address: str) -> None:
        if connection in self._open:
            self._open.remove(connection)
            self._of[address] -= 1
            if not self._of[address]:
                del self._of[address]

    async def sweep(self) -> None:
        """Close those that take too long; to be called about once a second."""
        for each in list(self._open):
            each.check_time()


class BoundedConnection(HttpToolsProtocol):
    """One connection. What is refused here is answered here, and never reaches the application."""

    def __init__(self, *given: Any, among: Connections, **more: Any) -> None:
        super().__init__(*given, **more)
        self._among = among
        self._address = ""
        self._part: Literal["head", "body", ""] = ""
        """What of a request is being received."""
        self._earlier = self._piece = 0
        """Bytes of a head that came in earlier pieces, and bytes of this piece."""
        self._since: float | None = None
        """Since when a request is awaited, if it is ..."""
        self._stuck: float | None = None
        """... and since when the client takes nothing of an answer."""
        self._refused = False

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._address = network(self.client[0]) if self.client else ""
        self._since = self.loop.time()
        if not self._among.admit(self, self._address):
            self._refuse(503, "busy", "there are too many connections; ask again in a second", "retry-after: 1\r\n")
            transport.close()  # at once: it has a descriptor that others need

    def connection_lost(self, exc: Exception | None) -> None:
        self._among.leave(self, self._address)
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        if self._refused:
            return
        after_another = self._part == "body"  # how much of this piece is of the next request is not known
        self._piece = len(data)
        try:
            self.parser.feed_data(data)
        except httptools.HttpParserUpgrade:
            pass  # the request is answered as if it had asked for nothing else
        except httptools.HttpParserError:
            self._refuse(400, "malformed", "this is no HTTP/1.1 request; /openapi.json says what can be sent")
        if self._part != "head":
            self._earlier = 0
        elif not after_another:
            self._earlier += self._piece
            if self._earlier > LARGEST_HEAD:
                self._refuse_head()

    def _refuse_head(self) -> None:
        self._refuse(431, "head too large", f"the request's headers may have {LARGEST_HEAD:,} bytes; send fewer")

    def on_message_begin(self) -> None:
        self._unset_keepalive_if_required()
        self._part, self._since = "head", self.loop.time()
        super().on_message_begin()

    def on_headers_complete(self) -> None:
        if self._earlier + self._piece > LARGEST_HEAD:  # a piece may have several requests, or a body
            if len(self.url) + sum(len(name) + len(value) + 4 for name, value in self.headers) > LARGEST_HEAD:
                self._refuse_head()
                raise ValueError  # which ends the parsing
            self._earlier = 0
        self._part = "body"
        super().on_headers_complete()

    def on_message_complete(self) -> None:
        self._part, self._since = "", None
        super().on_message_complete()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        if self._part:  # the next request is on its way already
            self._unset_keepalive_if_required()

    def pause_writing(self) -> None:
        self._stuck = self.loop.time()
        super().pause_writing()

    def resume_writing(self) -> None:
        self._stuck = None
        super().resume_writing()

    def check_time(self) -> None:
        """Close a connection whose client takes too long to send or to read."""
        now = self.loop.time()
        if self._stuck is None and self.transport.is_closing():
            self._stuck = now  # it closes when the client has read the rest
        if self._stuck is not None and now - self._stuck > SEND_WITHIN:
            self.transport.abort()
        elif self.flow.read_paused and self._since is not None:
            self._since = now  # the client waits for us
        elif self._since is not None and now - self._since > SEND_WITHIN:
            if self._part:
                self._refuse(408, "too slow", f"the request did not come within {SEND_WITHIN:g} seconds; send it again")
            else:
                self.transport.close()

    def _refuse(self, status: int, kind: str, detail: str, header: str = "") -> None:
        """Say why, if nothing else is being said, and close."""
        if self._refused or self.transport.is_closing():
            return
        self._refused = True
        under_way = self.cycle is not None and not self.cycle.response_complete
        answered = self.cycle is not None and self.cycle.response_started and (under_way or self._part == "body")
        if answered or self.pipeline or self.transport.get_write_buffer_size():
            self.transport.abort()
            return
        if under_way:  # the application waits for a body that will not come
            self.cycle.disconnected = True
            self.cycle.message_event.set()
        body = bytes(problem(status, kind, detail).body)
        head = f"{header}content-type: application/problem+json\r\ncontent-length: {len(body)}\r\nconnection: close"
        self.transport.write(STATUS_LINE[status] + f"{head}\r\n\r\n".encode() + body)
        self.flow.pause_reading()
        self.loop.call_later(LINGER, self.transport.abort)
