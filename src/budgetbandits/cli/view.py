"""The command that shows studies in a browser: view."""

from __future__ import annotations

import contextlib
import os
import threading
import webbrowser
from pathlib import Path
from typing import Annotated

import typer


def view_command(
    folder: Annotated[Path, typer.Argument(help="A study, or a folder with studies in it.")],
    port: Annotated[int, typer.Option(min=0, max=65535, help="The port; 0 for any that is free.")] = 8600,
    host: Annotated[
        str, typer.Option(help="The address to listen on; 0.0.0.0 shows the studies to everybody, without a sign-in.")
    ] = "127.0.0.1",
    no_open: Annotated[bool, typer.Option("--no-open", help="Do not open the page in a browser.")] = False,
) -> None:
    """Show studies and their reports in a browser, and watch those that are running."""
    from budgetbandits.report.viewer.folder import Folder
    from budgetbandits.report.viewer.pages import Viewer, address_of
    from budgetbandits.report.viewer.server import LOOPBACK, Server

    here = Folder(folder)
    with Server(Viewer(here), host, port) as server, contextlib.suppress(KeyboardInterrupt):
        with contextlib.suppress(AttributeError, OSError):
            os.nice(5)  # a study that is watched comes first
        page = server.url + address_of(here)
        print(f"Open {page}\nShows {here.root} until you press Ctrl-C; nothing is written there.", flush=True)
        if host not in LOOPBACK:
            print("There is no sign-in: whoever reaches this address sees the studies.", flush=True)
        if not no_open:
            threading.Thread(target=webbrowser.open, args=(page,), daemon=True).start()
        try:
            server.serve_forever()
        finally:
            server.stopping = True
