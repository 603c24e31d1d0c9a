"""The command ``serve``: the decision service over HTTP."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated
from urllib.parse import urlsplit

import typer

from budgetbandits.cli.store_option import DATABASE, Address


def serve_command(
    store: Address = DATABASE,
    host: Annotated[str, typer.Option(help="The address to listen on; 127.0.0.1 is this machine only.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=1, max=65535, help="The port.")] = 8000,
    key_file: Annotated[
        Path | None, typer.Option(help="The file for the first admin key. Without it, a terminal shows the key.")
    ] = None,
    per_address: Annotated[
        int | None,
        typer.Option("--connections-per-address", min=1, help="The most from one client. Without it, half of all."),
    ] = None,
) -> None:
    """Serve campaigns over HTTP; the first time, an admin key is made."""
    from budgetbandits.web.servers import listening

    # before the slow imports, and before a key is shown that would scroll away
    with listening(host, port) as listener:
        from budgetbandits.service.http.server import serve

        serve(listener, store, _public(store), key_file, per_address)


def _public(store: str) -> str:
    """An address without the password that may be in it."""
    address = urlsplit(store)
    return store if not address.netloc else f"{address.scheme}://{address.hostname or ''}{address.path}"
