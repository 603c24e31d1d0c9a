"""The commands ``key``, ``backup`` and ``restore``, and what commands on a service's store share: the option
``--store``, and changes that are made once.
"""

from __future__ import annotations

import contextlib
import os
import time
import uuid
from collections.abc import Callable, Iterator
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any
from urllib.parse import parse_qs, urlsplit

import typer
from rich.markup import escape

from budgetbandits.answers import KeyAnswer
from budgetbandits.cli.remote import STORE_NEEDED, RemoteService, ServerAddress
from budgetbandits.cli.screen import AsJson, local_time, plain_table, print_json, terminal
from budgetbandits.errors import BadParameter, OutcomeUnknown, ServiceUnreachable

if TYPE_CHECKING:  # the service takes a quarter of a second to import, which other commands need not wait for
    from budgetbandits.service.service import DecisionService
    from budgetbandits.service.stores.contract import Store


DEFAULT_STORE = "budgetbandits.db"
"""Store of a command without --store."""

ACTOR = "command line"
"""The actor of events that these commands write."""
RETRY_PAUSES = (0.5, 1.0, 2.0)
"""Seconds between tries of a change whose outcome is unknown."""


PASSWORD_FILE = "BUDGETBANDITS_STORE_PASSWORD_FILE"
"""Environment variable that names the file with the password of PostgreSQL."""


def use_password(file: Path) -> None:
    """Have connections to PostgreSQL use the password in a file, those of processes that are started later too."""
    try:
        os.environ["PGPASSWORD"] = file.read_text(encoding="utf-8").rstrip("\r\n")
    except (OSError, UnicodeDecodeError, ValueError) as error:
        raise BadParameter(
            f"cannot read the store's password from {file}: {getattr(error, 'strerror', None) or error}; "
            f"correct {PASSWORD_FILE}, or leave it out"
        ) from None


def _without_password(context: typer.Context, store: str) -> str:
    """The store's address, refused with a password: every user of a machine can list its processes."""
    if file := os.environ.get(PASSWORD_FILE):
        use_password(Path(file))
    source = context.get_parameter_source("store")
    if source is not None and source.name == "COMMANDLINE" and "://" in store:
        address = urlsplit(store)
        if address.password is not None or "password" in parse_qs(address.query):
            raise BadParameter(
                "--store has a password, which the list of processes shows to all users; leave it out and set "
                "PGPASSWORD, PGPASSFILE or BUDGETBANDITS_STORE_PASSWORD_FILE, or set BUDGETBANDITS_STORE to the whole "
                "address instead"
            )
    return store


Address = Annotated[
    str,
    typer.Option(
        "--store", envvar="BUDGETBANDITS_STORE", help="A SQLite file, or postgresql://… (extra postgres).",
        callback=_without_password,
    ),
]  # fmt: skip


def opened_store(address: str) -> Store:
    """An existing store, for a block that closes it."""
    if isinstance(address, ServerAddress):
        raise BadParameter(STORE_NEEDED)
    from budgetbandits.service.stores import open_store

    return open_store(address, must_exist=True)


@contextlib.contextmanager
def opened_service(address: str) -> Iterator[DecisionService]:
    """The service on that store, without HTTP; or, over HTTP, a server that does the same."""
    if isinstance(address, ServerAddress):
        with address.client() as client:
            yield RemoteService(client)  # type: ignore[misc]
        return
    from budgetbandits.service.service import DecisionService

    with opened_store(address) as store:
        yield DecisionService(store)


def once(change: Callable[[str], object]) -> None:
    """Make a change under a new idempotency key, and repeat it if the store was lost: it is made once."""
    key = uuid.uuid4().hex
    try:
        _repeated(change, key)
    except ServiceUnreachable as error:  # whose message names the key, which no command takes
        raise ServiceUnreachable(
            f"no answer from the service: {error.__cause__}; the change may have been made all the same, so see "
            "whether the service runs, and look before you repeat the command"
        ) from error


def _repeated(change: Callable[[str], object], key: str) -> None:
    for pause in RETRY_PAUSES:
        try:
            change(key)
        except OutcomeUnknown:
            time.sleep(pause)
        else:
            return
    change(key)


def say(document: dict[str, Any], text: str, as_json: bool) -> None:
    """Print the result of a command, for a program or for a person."""
    if as_json:
        print_json(document)
    else:
        print(text)


def backup_command(
    file: Annotated[Path, typer.Argument(help="The file to write; it must be new.")],
    store: Address = DEFAULT_STORE,
    as_json: AsJson = False,
) -> None:
    """Copy a SQLite store to a file, also while servers use it."""
    from budgetbandits.service.backup import back_up

    if "://" in store:
        raise BadParameter("PostgreSQL is copied by its own programs; use pg_dump --format=custom --file FILE")
    back_up(Path(store), file)
    say({"file": str(file)}, f"{store} is copied to {file}", as_json)


def restore_command(
    file: Annotated[
        Path | None, typer.Argument(help="A copy of a SQLite store. Without it, --store itself was restored already.")
    ] = None,
    store: Address = DEFAULT_STORE,
    as_json: AsJson = False,
) -> None:
    """Make a store from a copy. Its keys and webhooks are off until you turn on those that are still good, and its
    campaigns are paused until you say what they have spent since."""
    from budgetbandits.service.backup import restoring

    if file is None:
        marked = _marked(store)
    elif "://" in store:
        raise BadParameter("PostgreSQL is restored by pg_restore; run this command without a file after it")
    else:
        with restoring(file, Path(store)) as new:
            marked = _marked(str(new))
    address, paused = public_address(store), f"paused until resumed: {', '.join(marked['paused']) or 'none'}"
    say({"store": address} | marked, "\n".join([*_off(marked, address), paused]), as_json)


def _marked(store: str) -> dict[str, Any]:
    """The campaigns that were paused, and how many keys and webhooks are off."""
    from budgetbandits.service.service import DecisionService

    with opened_store(store) as database:
        paused = DecisionService(database).mark_restored(actor=ACTOR)
        keys, hooks = database.read(lambda tx: (tx.keys(), tx.webhooks().all()))
    return {"paused": paused, "keys_off": len(keys), "webhooks_off": len(hooks)}


def _off(marked: dict[str, Any], store: str) -> list[str]:
    """Lines about keys and webhooks that are off, with the commands that turn them on."""
    counts = {"key": marked["keys_off"], "webhook": marked["webhooks_off"]}
    commands = []
    for name in [name for name, count in counts.items() if count]:
        tool = f"budgetbandits {name}"
        commands += [
            f"  {tool} list --store {store}", f"  {tool} turn-on {name.upper()} --store {store}",
            f"  {tool} turn-on --all --store {store}",
        ]  # fmt: skip
    if not commands:
        return []
    numbers = " and ".join(f"{count:,} {name}{'' if count == 1 else 's'}" for name, count in counts.items())
    return [f"all keys and webhooks are off ({numbers}): turn on those that were not dropped since the copy", *commands]


def public_address(store: str) -> str:
    """An address without the password that may be in it, also after the question mark.

    >>> public_address("postgresql:///name?host=/run/postgresql&password=s3cret"), public_address("money.db")
    ('postgresql:///name', 'money.db')
    """
    address = urlsplit(store)
    return f"{address.scheme}://{address.hostname or ''}{address.path}" if "://" in store else store


key_app = typer.Typer(no_args_is_help=True, help="Create, list and drop API keys, and turn them on after a restore.")


@key_app.command("create")
def create_key_command(
    scope: Annotated[list[str], typer.Option(help="decide, feedback, read or admin. May be repeated.")],
    campaign: Annotated[list[str] | None, typer.Option(help="For this campaign only. Without it, for all.")] = None,
    name: Annotated[str | None, typer.Option(help="What it is for.")] = None,
    owner: Annotated[str | None, typer.Option(help="Who has it.")] = None,
    days: Annotated[float | None, typer.Option(min=0.0, help="It expires after this time. Without it, never.")] = None,
    rate: Annotated[
        float | None,
        typer.Option(help="The most requests a second to a server. Without it, any number."),
    ] = None,
    store: Address = DEFAULT_STORE,
    as_json: AsJson = False,
) -> None:
    """Create a key and show it this one time."""
    if campaign is not None and len(campaign) > 1:
        raise BadParameter(
            f"a key is for one campaign or for all, not for {', '.join(campaign)!s:.200}; make one for each, or leave "
            "--campaign out"
        )
    now = time.time()
    terms: dict[str, Any] = {
        "campaign": campaign[0] if campaign else None, "name": name, "owner": owner, "requests_per_second": rate,
        "expires_at": None if days is None else now + 86_400.0 * days,
    }  # fmt: skip
    if isinstance(store, ServerAddress):
        with store.client() as client:
            key = client.create_key(*scope, **terms)
    else:
        from budgetbandits.service.http.auth import make_key

        with opened_store(store) as database:
            key = make_key(database, scope, now, actor=ACTOR, **terms)
    say({"key": key}, key, as_json)


@key_app.command("list")
def list_keys_command(store: Address = DEFAULT_STORE, as_json: AsJson = False) -> None:
    """List all keys by their public part."""
    keys = _keys(store)
    if as_json:
        print_json([asdict(key) for key in keys])
        return
    table = plain_table("key", "scopes", "campaign", "name", "owner", "created", "expires", "last used")
    table.columns[0].no_wrap = True
    for key in keys:
        rate, scopes = key.requests_per_second, " ".join(key.scopes)
        scopes += "" if rate is None else f", {rate:,g} a second"
        words = [escape(key.name or ""), escape(key.owner or "")]
        times = ["never" if at is None else local_time(at) for at in (key.expires_at, key.last_used_at)]
        table.add_row(
            f"bb_{key.prefix}_…" + (" off" if key.off else ""), scopes, escape(key.campaign or "all"), *words,
            local_time(key.created_at), *times,
        )  # fmt: skip
    terminal().print(table)


def _keys(store: str) -> list[KeyAnswer]:
    """All keys without their digests, with the names of their campaigns."""
    if isinstance(store, ServerAddress):
        with store.client() as client:
            return client.keys()
    from budgetbandits.service.http.auth import listed_keys

    with opened_store(store) as database:
        return database.read(listed_keys)


@key_app.command("drop")
def drop_key_command(
    key: Annotated[str, typer.Argument(help="The key as 'key list' shows it, or its beginning.")],
    store: Address = DEFAULT_STORE,
    as_json: AsJson = False,
) -> None:
    """Delete a key; servers notice within five seconds."""
    from budgetbandits.service.http.auth import drop_key, prefix_meant

    prefix = prefix_meant((listed.prefix for listed in _keys(store)), key)
    if isinstance(store, ServerAddress):
        with store.client() as client:
            client.drop_key(prefix)
    else:
        with opened_store(store) as database:
            drop_key(database, prefix, actor=ACTOR)
    say({"dropped": prefix}, f"bb_{prefix}_… is dropped", as_json)


All = Annotated[bool, typer.Option("--all", help="All that are off.")]


@key_app.command("turn-on")
def turn_on_key_command(
    key: Annotated[str | None, typer.Argument(help="The key as 'key list' shows it, or its beginning.")] = None,
    every: All = False,
    store: Address = DEFAULT_STORE,
    as_json: AsJson = False,
) -> None:
    """Let a key be used again: after a restore all are off, since some were perhaps dropped since the copy."""
    from budgetbandits.service.http.auth import prefix_meant, turn_on_keys

    check_one_or_all(key, every)
    with opened_store(store) as database:
        keys = database.read(lambda tx: tx.keys())
        off = [row.prefix for row in keys if row.off]
        wanted = off if key is None else [prefix_meant((row.prefix for row in keys), key)]
        turned = turn_on_keys(database, wanted, actor=ACTOR)
    say_turned_on("key", [f"bb_{prefix}_…" for prefix in wanted], {"on": turned}, as_json)


def check_one_or_all(one: str | None, every: bool) -> None:
    """Refuse a command with neither a name nor --all, or with both."""
    if (one is None) != every:
        raise BadParameter("name one, as the command list shows it, or pass --all, and not both")


def say_turned_on(kind: str, names: list[str], document: dict[str, Any], as_json: bool) -> None:
    """Print which of a kind are on."""
    say(document, "\n".join(f"{name} is on" for name in names) or f"no {kind} is off", as_json)
