"""What commands share that work on a service's store: where it is, how it is opened, changes that are made once."""

from __future__ import annotations

import contextlib
import time
import uuid
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Annotated, Any
from urllib.parse import parse_qs, urlsplit

import typer

from budgetbandits.cli.screen import print_json
from budgetbandits.errors import BadParameter, OutcomeUnknown

if TYPE_CHECKING:  # the service takes a quarter of a second to import, which other commands need not wait for
    from budgetbandits.service.service import DecisionService
    from budgetbandits.service.stores.contract import Store


DATABASE = "budgetbandits.db"
HERE = "command line"
"""Who events say has done what is done here."""
AGAIN_AFTER = (0.5, 1.0, 2.0)
"""Seconds between tries of a change of which nobody knows whether it was made."""


def _without_password(context: typer.Context, store: str) -> str:
    """The store's address, if it gives no password away: every user of a machine may list its processes."""
    source = context.get_parameter_source("store")
    if source is not None and source.name == "COMMANDLINE" and "://" in store:
        address = urlsplit(store)
        if address.password is not None or "password" in parse_qs(address.query):
            raise BadParameter(
                "--store has a password, which the list of processes shows to everybody; leave it out and set "
                "PGPASSWORD or PGPASSFILE, or set BUDGETBANDITS_STORE to the whole address instead"
            )
    return store


Address = Annotated[
    str,
    typer.Option(
        "--store", envvar="BUDGETBANDITS_STORE", help="A SQLite file, or postgresql://… (extra postgres).",
        callback=_without_password,
    ),
]  # fmt: skip


@contextlib.contextmanager
def opened_store(address: str) -> Iterator[Store]:
    """The store that is there; closed afterwards."""
    from budgetbandits.service.stores import open_store

    with open_store(address, must_exist=True) as store:
        yield store


@contextlib.contextmanager
def opened_engine(address: str) -> Iterator[DecisionService]:
    """The whole service on that store, without HTTP."""
    from budgetbandits.service.service import DecisionService

    with opened_store(address) as store:
        yield DecisionService(store)


def once(change: Callable[[str], object]) -> None:
    """Make a change under a key of its own. If the store was lost meanwhile it is asked for again, and made once."""
    key = uuid.uuid4().hex
    for pause in AGAIN_AFTER:
        try:
            change(key)
        except OutcomeUnknown:
            time.sleep(pause)
        else:
            return
    change(key)


def say(document: dict[str, Any], text: str, as_json: bool) -> None:
    """What a command has done, for a program or for a person."""
    if as_json:
        print_json(document)
    else:
        print(text)
