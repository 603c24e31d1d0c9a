"""The command ``key``: API keys, made in the store itself."""

from __future__ import annotations

import time
from typing import Annotated

import typer
from rich.console import Console
from rich.markup import escape

from budgetbandits.cli.screen import AsJson, local_time, plain_table, print_json
from budgetbandits.cli.store_option import DATABASE, HERE, Address, opened_store, say

key_app = typer.Typer(no_args_is_help=True, help="Create, list and drop API keys.")


@key_app.command("create")
def create_key_command(
    scope: Annotated[list[str], typer.Option(help="decide, feedback, read or admin. May be repeated.")],
    campaign: Annotated[str | None, typer.Option(help="For this campaign only.")] = None,
    store: Address = DATABASE,
    as_json: AsJson = False,
) -> None:
    """Create a key and show it this one time."""
    from budgetbandits.service.http.auth import make_key

    with opened_store(store) as database:
        key = make_key(database, scope, time.time(), campaign, by=HERE)
    say({"key": key}, key, as_json)


@key_app.command("list")
def list_keys_command(store: Address = DATABASE, as_json: AsJson = False) -> None:
    """List all keys by their public part."""
    with opened_store(store) as database:
        keys = database.read(lambda tx: tx.keys())
        names = database.read(lambda tx: {row.id: row.name for row in tx.campaigns()})
    if as_json:
        print_json(
            [
                {
                    "prefix": key.prefix, "scopes": key.scopes, "created_at": key.created_at,
                    "campaign": None if key.campaign is None else names[key.campaign],
                }
                for key in keys
            ]
        )  # fmt: skip
        return
    table = plain_table()
    for title in ("key", "scopes", "campaign", "created"):
        table.add_column(title, overflow="fold")
    for key in keys:
        only = "all" if key.campaign is None else names[key.campaign]
        table.add_row(f"bb_{key.prefix}_…", " ".join(key.scopes), escape(only), local_time(key.created_at))
    Console().print(table)


@key_app.command("drop")
def drop_key_command(
    key: Annotated[str, typer.Argument(help="The key as 'key list' shows it, or its beginning.")],
    store: Address = DATABASE,
    as_json: AsJson = False,
) -> None:
    """Delete a key; servers notice within five seconds."""
    from budgetbandits.service.http.auth import drop_key, prefix_meant

    with opened_store(store) as database:
        prefix = prefix_meant(database.read(lambda tx: tx.keys()), key)
        drop_key(database, prefix, by=HERE)
    say({"dropped": prefix}, f"bb_{prefix}_… is dropped", as_json)
