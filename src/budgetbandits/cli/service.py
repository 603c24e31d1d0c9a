"""The command ``serve``."""

from __future__ import annotations

from typing import Annotated

import typer

from budgetbandits.errors import BadParameter


def serve_command(
    store: Annotated[
        str, typer.Option(help="A SQLite file, or postgresql://… for many hosts (extra postgres).")
    ] = "budgetbandits.db",
    host: Annotated[str, typer.Option(help="Where to listen; this machine alone unless told otherwise.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=1, max=65535)] = 8000,
) -> None:
    """Serve campaigns over HTTP; the first time, prints the admin key."""
    try:
        from budgetbandits.service.serve import serve
    except ImportError as error:
        raise BadParameter(f"the service needs {error.name}; pip install 'budgetbandits[service]'") from None
    print(f"Serving {store.split('@')[-1]} on http://{host}:{port}", flush=True)
    serve(store, host, port)
