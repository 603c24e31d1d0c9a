"""The listening socket of a server, opened first: clients that connect during the start wait and are served."""

from __future__ import annotations

import socket

from budgetbandits.errors import BadParameter


def listening(host: str, port: int, remedy: str = "choose another --host or --port") -> socket.socket:
    """Open the socket; from here on the port is ours, so a printed key or address can be used."""
    if not 0 <= port <= 65535:
        raise BadParameter(f"there is no port {port}; {remedy}")
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, port), family=family, backlog=2048)
    except (OSError, UnicodeError) as error:
        raise BadParameter(
            f"cannot listen on {host}:{port}: {getattr(error, 'strerror', None) or error}; {remedy}"
        ) from None
