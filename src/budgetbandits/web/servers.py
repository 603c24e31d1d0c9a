"""The common part of servers of pages: the listening socket, and the server-sent events that keep pages up to date.

A page that listens (`live.js`) hears something within `BEAT` seconds, or it says that it is not live.
"""

from __future__ import annotations

import contextlib
import os
import socket
import stat
from collections.abc import Iterator
from contextvars import ContextVar
from pathlib import Path

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

root_path: ContextVar[str] = ContextVar("root_path", default="")
"""The path below which a proxy publishes this server, such as ``/bandits``; set for the time of a request."""


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


@contextlib.contextmanager
def listening_file(path: Path) -> Iterator[socket.socket]:
    """Open the socket of a server on a Unix socket, whose file exists while it listens.

    A file that a killed server has left is replaced, at once: nobody finds none in between. All who may enter its
    folder may connect, as all on this machine may to a port.
    """
    new, listener = path.with_name(f"{path.name}.{os.getpid()}"), socket.socket(socket.AF_UNIX)
    with listener:
        try:
            _check_unused(path)
            listener.bind(str(new))
            listener.listen(2048)
            new.chmod(0o666)
            new.rename(path)
        except OSError as error:
            new.unlink(missing_ok=True)
            raise BadParameter(
                f"cannot listen on {path}: {error.strerror or error}; choose another --unix-socket"
            ) from None
        status = path.stat()
        try:
            yield listener
        finally:
            with contextlib.suppress(OSError):  # unless another server has taken its place
                if os.path.samestat(path.stat(), status):
                    path.unlink()


def _check_unused(path: Path) -> None:
    try:
        is_socket = stat.S_ISSOCK(path.lstat().st_mode)
    except FileNotFoundError:
        return
    if not is_socket:
        raise BadParameter(f"{path} is there and is no socket; move it away, or choose another --unix-socket")
    with socket.socket(socket.AF_UNIX) as probe, contextlib.suppress(ConnectionRefusedError):
        probe.settimeout(1.0)
        probe.connect(str(path))
        raise BadParameter(f"another server listens on {path}; stop it, or choose another --unix-socket")


def event(kind: str, data: object) -> bytes:
    """The bytes of a server-sent event."""
    return f"event: {kind}\ndata: {data}\n\n".encode("utf-8", "replace")


def change(latest: int, seen: int) -> bytes:
    """The number of the latest event, as "changed" if the page knows an older one."""
    return event("changed" if latest != seen else "quiet", latest)


BEAT_EVENT = event("beat", 1)
"""Only says that the stream still works."""
