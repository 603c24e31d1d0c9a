"""The laboratory's page over HTTP, with the standard library's server.

It reads files and has no sign-in, so it listens on this machine only, unless another host is given. A few lines
connect pages with requests, so the laboratory needs none of the service's packages.
"""

from __future__ import annotations

import contextlib
import http.server
import logging
import os
import sys
import threading
import time
from collections.abc import Iterator
from urllib.parse import parse_qsl, unquote_to_bytes, urlsplit

from budgetbandits.report.viewer.pages import PageResponse, Viewer, why
from budgetbandits.web.servers import BEAT, BEAT_EVENT, STREAM_HEADERS, change, event, listening

log = logging.getLogger(__name__)
# names of this machine
LOOPBACK = ("127.0.0.1", "localhost", "::1")
NOT_READ, FAILED = -1, -2
"""Values in place of a page's number: the page was not read yet, or could not be."""
LOOK_SECONDS = 1.0
"""Time between two checks whether a page has changed; longer if a check is slow."""


class Server(http.server.ThreadingHTTPServer):
    """Serves a viewer on a host and port until it is shut down."""

    daemon_threads = True

    def __init__(self, viewer: Viewer, host: str, port: int) -> None:
        self.viewer, self.local = viewer, host in LOOPBACK
        self.stopping = threading.Event()
        remedy = "choose another --host or --port, such as --port 0 for any that is free"
        listener = listening(host, port, remedy)
        self.address_family = listener.family
        super().__init__((host, port), Handler, bind_and_activate=False)
        self.socket.close()
        self.socket, self.server_address = listener, listener.getsockname()

    @property
    def url(self) -> str:
        """The address of the server."""
        host, port = str(self.server_address[0]), self.server_address[1]
        return f"http://{f'[{host}]' if ':' in host else host}:{port}"

    def handle_error(self, request: object, client_address: object) -> None:
        """Log what ends a connection, unless the browser has disconnected."""
        error = sys.exc_info()[1]
        if not isinstance(error, ConnectionError | TimeoutError):
            log.error("a connection has failed: %s", error, exc_info=error)


class Handler(http.server.BaseHTTPRequestHandler):
    """The handler of one connection."""

    server: Server
    protocol_version = "HTTP/1.1"
    timeout = 60.0

    def do_GET(self) -> None:
        """Answer a request with a page, a file or a stream of events."""
        try:
            asked = urlsplit(self.path)
        except ValueError:
            self._send(PageResponse(b"this is no address of a page\n", "text/plain", 400))
            return
        # names of files are bytes, and not always text
        path = os.fsdecode(unquote_to_bytes(asked.path.encode("latin-1", "replace")))
        if not self._for_us():
            self._send(PageResponse(b"open this page by its address on this machine\n", "text/plain", 403))
        elif path.startswith("/live/"):
            self._stream(path.removeprefix("/live"))
        else:
            query = dict(parse_qsl(asked.query))
            self._send(self.server.viewer.answer(path, query, "X-Part" in self.headers))

    def do_HEAD(self) -> None:
        """Answer a request with the headers alone."""
        self.do_GET()

    def _for_us(self) -> bool:
        """Whether the request is meant for this server: on a loopback host, a request by another name comes from a page
        elsewhere that tries to read these."""
        if not self.server.local:
            return True
        with contextlib.suppress(ValueError):  # no name of a host at all
            return urlsplit(f"//{self.headers.get('Host', '')}").hostname in LOOPBACK
        return False

    def _send(self, answer: PageResponse) -> None:
        self.send_response(answer.status)
        self.send_header("Content-Type", answer.kind)
        self.send_header("Content-Length", str(len(answer.body)))
        self.send_header("X-Content-Type-Options", "nosniff")
        self.send_header("Referrer-Policy", "no-referrer")
        for name, value in ({"Cache-Control": "no-store"} | dict(answer.headers)).items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(answer.body)

    def _stream(self, path: str) -> None:
        """Send an event whenever the page has changed; the page then requests its changing part."""
        self.send_response(200)
        for name, value in {**STREAM_HEADERS, "Connection": "close"}.items():
            self.send_header(name, value)
        self.end_headers()
        for message in self._events(path):
            self.wfile.write(message)
            self.wfile.flush()

    def _events(self, path: str) -> Iterator[bytes]:
        seen, sent_at, words = NOT_READ, time.monotonic(), ""
        stopping = self.server.stopping
        while not stopping.is_set():
            began = time.monotonic()
            try:
                last = self.server.viewer.pulse(path)
            except Exception as error:
                words = words if seen == FAILED else why(error, path)
                seen = FAILED
                yield event("store", " ".join(words.split()))
            else:
                if last != seen or began - sent_at >= BEAT:  # so that ages and rates are right
                    yield change(last, seen)
                    seen, sent_at = last, began
            seconds = max(LOOK_SECONDS, 20.0 * (time.monotonic() - began))
            while seconds > BEAT / 2 and not stopping.wait(BEAT / 2):
                seconds -= BEAT / 2
                yield BEAT_EVENT
            stopping.wait(min(seconds, BEAT / 2))

    def log_message(self, format: str, *args: object) -> None:
        """Log nothing: there would be a line for every check."""
