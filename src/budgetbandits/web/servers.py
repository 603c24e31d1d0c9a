"""What the servers of pages share: the listening socket, and the server-sent events that keep pages up to date.

A page that listens (`live.js`) hears something within `BEAT` seconds, or it says that it is not live.
"""

from __future__ import annotations

import socket

from budgetbandits.errors import BadParameter

BEAT = 10.0
"""Seconds within which every listening page gets an event."""
STREAM_HEADERS = {
    "Content-Type": "text/event-stream; charset=utf-8",
    "Cache-Control": "no-store, no-transform",
    "X-Accel-Buffering": "no",
}
"""nginx and other proxies buffer slow responses unless the last header forbids it; they compress what may be
transformed, which delays it as well."""


def listening(host: str, port: int, remedy: str = "choose another --host or --port") -> socket.socket:
    """Open the socket of a server, before anything else: clients that connect during the start wait and are served.

    From here on the port is ours, so a printed key or address can be used.
    """
    if not 0 <= port <= 65535:
        raise BadParameter(f"there is no port {port}; {remedy}")
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, port), family=family, backlog=2048)
    except (OSError, UnicodeError) as error:
        raise BadParameter(
            f"cannot listen on {host}:{port}: {getattr(error, 'strerror', None) or error}; {remedy}"
        ) from None


def event(kind: str, data: object) -> bytes:
    """
    >>> event("changed", 7)
    b'event: changed\\ndata: 7\\n\\n'
    """
    return f"event: {kind}\ndata: {data}\n\n".encode("utf-8", "replace")


def change(latest: int, known: int) -> bytes:
    """The number of the latest event, as "changed" if the page knows an older one."""
    return event("changed" if latest != known else "quiet", latest)


BEAT_EVENT = event("beat", 1)
"""Only says that the stream still works."""
