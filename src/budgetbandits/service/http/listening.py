"""The socket of a server, opened before anything else: whoever connects while it starts waits and is answered."""

from __future__ import annotations

import socket

from budgetbandits.errors import BadParameter


def listening(host: str, port: int) -> socket.socket:
    """Nobody else has the port from here on: whoever is shown a key here can use it here."""
    try:
        return socket.create_server((host, port), backlog=2048)
    except OSError as error:
        raise BadParameter(
            f"cannot listen on {host}:{port}: {error.strerror or error}; choose another --host or --port"
        ) from None
