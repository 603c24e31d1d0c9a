"""Server-sent events that keep a page up to date: the headers, the rhythm and the form of an event.

A page that listens (`live.js`) hears something within `BEAT` seconds, or it says that it is not live.
"""

from __future__ import annotations

BEAT = 10.0
"""Seconds within which every listening page gets an event."""
HEADERS = {
    "Content-Type": "text/event-stream; charset=utf-8",
    "Cache-Control": "no-store, no-transform",
    "X-Accel-Buffering": "no",
}
"""nginx and other proxies buffer slow responses unless the last header forbids it; they compress what may be
transformed, which delays it as well."""


def event(kind: str, data: object) -> bytes:
    """
    >>> event("changed", 7)
    b'event: changed\\ndata: 7\\n\\n'
    """
    return f"event: {kind}\ndata: {data}\n\n".encode("utf-8", "replace")


def change(latest: int, known: int) -> bytes:
    """The number of the latest event, as "changed" if the page knows an older one."""
    return event("changed" if latest != known else "quiet", latest)


IDLE = event("beat", 1)
"""Only says that the stream still works."""
