"""The option ``--store`` of commands that work on a service's store, how it is opened, and changes made once."""

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
"""The actor of events that these commands write."""
RETRY_PAUSES = (0.5, 1.0, 2.0)
"""Seconds between tries of a change whose outcome is unknown."""


def _without_password(context: typer.Context, store: str) -> str:
    """The store's address, refused with a password: every user of a machine can list its processes."""
    source = context.get_parameter_source("store")
    if source is not None and source.name == "COMMANDLINE" and "://" in store:
        address = urlsplit(store)
        if address.password is not None or "password" in parse_qs(address.query):
            raise BadParameter(
                "--store has a password, which the list of processes shows to all users; leave it out and set "
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
    """An existing store, closed afterwards."""
    from budgetbandits.service.stores import open_store

    with open_store(address, must_exist=True) as store:
        yield store


@contextlib.contextmanager
def opened_engine(address: str) -> Iterator[DecisionService]:
    """The service on that store, without HTTP."""
    from budgetbandits.service.service import DecisionService

    with opened_store(address) as store:
        yield DecisionService(store)


def once(change: Callable[[str], object]) -> None:
    """Make a change under a new idempotency key, and repeat it if the store was lost: it is made once."""
    key = uuid.uuid4().hex
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
