"""The socket of a server, opened before anything else: whoever connects while it starts waits and is answered."""

from __future__ import annotations

import socket

from budgetbandits.errors import BadParameter


def listening(host: str, port: int, remedy: str = "choose another --host or --port") -> socket.socket:
    """Nobody else has the port from here on: whoever is shown a key here can use it here."""
    if not 0 <= port <= 65535:
        raise BadParameter(f"there is no port {port}; {remedy}")
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, port), family=family, backlog=2048)
    except (OSError, UnicodeError) as error:
        raise BadParameter(
            f"cannot listen on {host}:{port}: {getattr(error, 'strerror', None) or error}; {remedy}"
        ) from None
