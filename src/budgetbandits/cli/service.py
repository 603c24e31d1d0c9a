"""The decision service from a terminal: ``serve``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated
from urllib.parse import urlsplit

import typer

from budgetbandits.cli.store_option import DATABASE, Address


def serve_command(
    store: Address = DATABASE,
    host: Annotated[str, typer.Option(help="Where to listen; this machine alone unless told otherwise.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=1, max=65535)] = 8000,
    key_file: Annotated[
        Path | None, typer.Option(help="Where the first admin key goes; if not said, to the screen, if there is one.")
    ] = None,
    per_address: Annotated[
        int | None, typer.Option(min=1, help="Connections that one address may have; if not said, half of all.")
    ] = None,
) -> None:
    """Serve campaigns over HTTP; the first time, makes an admin key."""
    from budgetbandits.web.sockets import listening

    # before the rest is imported, which takes most of a second, and before a key is shown that scrolls away
    with listening(host, port) as listener:
        from budgetbandits.service.http.server import serve

        serve(listener, store, _public(store), key_file, per_address)


def _public(store: str) -> str:
    """An address without the password that may be in it."""
    address = urlsplit(store)
    return store if not address.netloc else f"{address.scheme}://{address.hostname or ''}{address.path}"
