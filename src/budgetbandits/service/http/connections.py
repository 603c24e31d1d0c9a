"""Connections with limits, which uvicorn lacks: on the size of headers, the time to send them, and their number.

A client without a key gets this far, so it must cost little: a request that arrives in one piece, as nearly all do, is
looked at twice, at its beginning and at its end.
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

HEADER_BYTES_MAX = 32_768
"""Bytes of a request's line and headers."""

SEND_SECONDS_MAX = 15.0
"""Time for a client to send a request, and to accept any part of an answer."""

LINGER_SECONDS = 0.5
"""Time for a refused client to read why: closing at once would lose the answer on its way."""

LAST_REQUEST_SECONDS = 1.0
"""Time for a request that may be on its way when the server stops. Closing at once would lose it."""

CONNECTIONS_MAX = 8192
"""Most connections of a process."""


def connection_limit() -> int:
    """How many connections the descriptors allow; the store, exports and refused connections need some too."""
    descriptors, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if descriptors == resource.RLIM_INFINITY:
        return CONNECTIONS_MAX
    return max(16, min(CONNECTIONS_MAX, descriptors - min(256, descriptors // 2)))


class Connections:
    """All connections of a server: counts them, and closes those that take too long."""

    def __init__(self, limit: int, per_address: int) -> None:
        self._limit = limit
        self._per_address = per_address
        self._by_address: Counter[str] = Counter()
        self._open: set[BoundedConnection] = set()
        self.stopping = False
        """Set when the server stops: each connection answers one more request at most."""

    def admit(self, connection: BoundedConnection, address: str) -> bool:
        """Whether one more connection is allowed; if so, it counts until `leave`."""
        if len(self._open) >= self._limit or self._by_address[address] >= self._per_address:
            return False
        self._open.add(connection)
        self._by_address[address] += 1
        return True

    def leave(self, connection: BoundedConnection, address: str) -> None:
        """Remove a connection from the open ones."""
        if connection in self._open:
            self._open.remove(connection)
            self._by_address[address] -= 1
            if not self._by_address[address]:
                del self._by_address[address]

    async def sweep(self) -> None:
        """Close connections that take too long; called about once a second."""
        for connection in list(self._open):
            connection.check_time()


class BoundedConnection(HttpToolsProtocol):
    """One connection. A request that is refused here is answered here, and never reaches the application."""

    def __init__(self, *args: Any, connections: Connections, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._all = connections
        self._address = ""
        self._part: Literal["head", "body", ""] = ""
        """The part of a request that is being received."""
        self._earlier = self._piece = 0
        """Bytes of a head that came in earlier pieces, and bytes of this piece."""
        self._since: float | None = None
        """Time at which the server began to wait for a request, if it waits."""
        self._stuck: float | None = None
        """Time at which the client stopped reading the answer."""
        self._refused = False

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Register the connection, or refuse it."""
        super().connection_made(transport)
        self._address = network(self.client[0]) if self.client else ""
        self._since = self.loop.time()
        if not self._all.admit(self, self._address):
            self._refuse(503, "busy", "there are too many connections; try again in a second", "retry-after: 1\r\n")
            transport.close()  # at once: others need its descriptor

    def connection_lost(self, exc: Exception | None) -> None:
        """Remove the connection."""
        self._all.leave(self, self._address)
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Read a piece of a request, within the limits."""
        if self._refused:
            return
        after_another = self._part == "body"  # it is not known how much of this piece belongs to the next request
        self._piece = len(data)
        try:
            self.parser.feed_data(data)
        except httptools.HttpParserUpgrade:
            pass  # answer the request, and ignore the upgrade
        except httptools.HttpParserError:
            self._refuse(400, "malformed", "this is not an HTTP/1.1 request; /openapi.json describes the API")
        if self._part != "head":
            self._earlier = 0
        elif not after_another:
            self._earlier += self._piece
            if self._earlier > HEADER_BYTES_MAX:
                self._refuse_head()

    def _refuse_head(self) -> None:
        self._refuse(431, "headers_too_large", f"the request's headers may have {HEADER_BYTES_MAX:,} bytes; send fewer")

    def on_message_begin(self) -> None:
        """Begin to wait for the request's headers."""
        self._unset_keepalive_if_required()
        self._part, self._since = "head", self.loop.time()
        super().on_message_begin()

    def on_headers_complete(self) -> None:
        """Begin to wait for the request's body."""
        if self._earlier + self._piece > HEADER_BYTES_MAX:  # a piece may have several requests, or a body
            if len(self.url) + sum(len(name) + len(value) + 4 for name, value in self.headers) > HEADER_BYTES_MAX:
                self._refuse_head()
                raise ValueError  # ends the parsing
            self._earlier = 0
        self._part = "body"
        super().on_headers_complete()
        if self._all.stopping:
            self.cycle.keep_alive = False

    def on_message_complete(self) -> None:
        """End the wait for the request."""
        self._part, self._since = "", None
        super().on_message_complete()

    def on_response_complete(self) -> None:
        """Begin to wait for the next request."""
        super().on_response_complete()
        if self._part:  # the next request is on its way already
            self._unset_keepalive_if_required()

    def pause_writing(self) -> None:
        """Note that the client does not read the answer."""
        self._stuck = self.loop.time()
        super().pause_writing()

    def resume_writing(self) -> None:
        """Note that the client reads on."""
        self._stuck = None
        super().resume_writing()

    def shutdown(self) -> None:
        """The server stops: answer the request that is under way, or one that comes at once, and close."""
        if self._is_idle():
            self.loop.call_later(LAST_REQUEST_SECONDS, self._close_idle)
        else:
            self.cycle.keep_alive = False

    def _close_idle(self) -> None:
        if self._is_idle() and not self._part:
            self.transport.close()

    def _is_idle(self) -> bool:
        return self.cycle is None or self.cycle.response_complete

    def check_time(self) -> None:
        """Close a connection whose client takes too long to send or to read."""
        now = self.loop.time()
        if self._stuck is None and self.transport.is_closing():
            self._stuck = now  # it closes once the client has read the rest
        if self._stuck is not None and now - self._stuck > SEND_SECONDS_MAX:
            self.transport.abort()
        elif self.flow.read_paused and self._since is not None:
            self._since = now  # the client waits for us
        elif self._since is not None and now - self._since > SEND_SECONDS_MAX:
            if self._part:
                self._refuse(
                    408,
                    "request_timeout",
                    f"the request did not come within {SEND_SECONDS_MAX:g} seconds; send it again",
                )
            else:
                self.transport.close()

    def _refuse(self, status: int, kind: str, detail: str, header: str = "") -> None:
        """Answer why, unless another answer has begun, and close."""
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
        self.loop.call_later(LINGER_SECONDS, self.transport.abort)
