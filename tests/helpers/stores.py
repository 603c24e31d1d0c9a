"""The stores that the contract is tested on: each a context that gives a way to open one and the same database."""

from __future__ import annotations

import contextlib
import os
import shutil
import sqlite3
import uuid
from concurrent.futures import ThreadPoolExecutor
from functools import cache, partial
from urllib.parse import urlsplit

import pytest

from budgetbandits.service.audit.slices import decision_slices, event_slices
from budgetbandits.service.http.auth import turn_on_keys
from budgetbandits.service.stores.sqlite import SQLiteStore

SERVER = "BUDGETBANDITS_POSTGRES"
"""The address of a PostgreSQL to test on, such as postgresql://localhost/test; ``make postgres`` starts one."""


@contextlib.contextmanager
def sqlite(folder):
    yield partial(SQLiteStore, path=folder / "money.db")


@contextlib.contextmanager
def postgres(_folder):
    """A schema of its own, so that tests do not meet."""
    if SERVER not in os.environ:
        pytest.skip(f"no PostgreSQL: set {SERVER}, or run 'make postgres'")
    import psycopg

    from budgetbandits.service.stores.postgres import PostgresStore

    address, schema = _own_database(os.environ[SERVER]), f"test_{uuid.uuid4().hex}"
    with psycopg.connect(address, autocommit=True) as connection:
        connection.execute(f"CREATE SCHEMA {schema}")
        try:
            mark = "&" if "?" in address else "?"
            yield partial(PostgresStore, url=f"{address}{mark}options=-csearch_path%3D{schema}")
        finally:
            connection.execute(f"DROP SCHEMA {schema} CASCADE")


@cache
def _own_database(address):
    """The address of a database for each process of pytest: some tests end all connections to theirs."""
    import psycopg

    worker = os.environ.get("PYTEST_XDIST_WORKER")
    if worker is None:
        return address
    with psycopg.connect(address, autocommit=True) as connection:
        connection.execute(f"DROP DATABASE IF EXISTS tests_of_{worker}")
        connection.execute(f"CREATE DATABASE tests_of_{worker}")
    return urlsplit(address)._replace(path=f"/tests_of_{worker}").geturl()


STORES = {"sqlite": sqlite, "postgres": postgres}


def tamper(path, statement, *values):
    """How many rows this changes in a SQLite file, behind the back of its store and whatever its constraints say."""
    with contextlib.closing(sqlite3.connect(path)) as database:
        database.execute("PRAGMA ignore_check_constraints = ON")
        changed = database.execute(statement, values).rowcount
        database.commit()
    return changed


@contextlib.contextmanager
def tampered_copy(path, statement, *values):
    """A store on a copy of a SQLite file, in which this was changed behind its back."""
    copy = path.with_name("tampered.db")
    shutil.copy(path, copy)
    assert tamper(copy, statement, *values) > 0
    with SQLiteStore(copy) as store:
        yield store


def all_decisions(store, campaign):
    """Every decision of a campaign in order."""
    id, last = _latest(store, campaign)
    return [made for page in decision_slices(store, id, last) for _, made in page]


def all_events(store, campaign):
    """Every event of a campaign in order."""
    id, last = _latest(store, campaign)
    return [event for page in event_slices(store, id, 0, last) for event in page]


def _latest(store, campaign):
    """The id of a campaign, which may be named, and the number of its latest event."""

    def read(tx):
        row = tx.campaign(campaign)
        return row.id, tx.last_event(row.id)

    return store.read(read)


def turn_on_all_keys(store):
    """Let the keys of a store be used that was restored."""
    keys = store.read(lambda tx: tx.keys())
    turn_on_keys(store, [key.prefix for key in keys])


def in_threads(work, arguments):
    """What this work returns for each of these arguments, each in a thread of its own; or the first error."""
    with ThreadPoolExecutor(len(arguments)) as pool:
        return list(pool.map(work, arguments))
