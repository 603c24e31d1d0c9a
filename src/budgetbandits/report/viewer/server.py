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
LOOPBACK = ("127.0.0.1", "localhost", "::1")
NOT_READ, FAILED = -1, -2
"""In place of the number of a page: it was not looked at yet, or could not be."""
LOOK_SECONDS = 1.0
"""Seconds between two looks whether a page has changed; more if a look is slow."""


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
        host, port = str(self.server_address[0]), self.server_address[1]
        return f"http://{f'[{host}]' if ':' in host else host}:{port}"

    def handle_error(self, request: object, client_address: object) -> None:
        """A browser that disconnects is no error; anything else that ends a connection is logged."""
        error = sys.exc_info()[1]
        if not isinstance(error, ConnectionError | TimeoutError):
            log.error("a connection has failed: %s", error, exc_info=error)


class Handler(http.server.BaseHTTPRequestHandler):
    """One connection."""

    server: Server
    protocol_version = "HTTP/1.1"
    timeout = 60.0

    def do_GET(self) -> None:
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
        self.do_GET()

    def _for_us(self) -> bool:
        """On this machine alone, another name for it is a page elsewhere that wants to read along."""
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
        """Server-sent events: that something has changed. What, the page asks for itself."""
        self.send_response(200)
        for name, value in {**STREAM_HEADERS, "Connection": "close"}.items():
            self.send_header(name, value)
        self.end_headers()
        for each in self._events(path):
            self.wfile.write(each)
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
        """Nobody wants a line for every look."""
