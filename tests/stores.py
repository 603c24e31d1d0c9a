"""The stores that the contract is tested on: each a context that gives a way to open one and the same database."""

from __future__ import annotations

import contextlib
import os
import sqlite3
import uuid
from functools import partial

import pytest

from budgetbandits.service.stores.sql import migrations
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

    address, schema = os.environ[SERVER], f"test_{uuid.uuid4().hex}"
    with psycopg.connect(address, autocommit=True) as connection:
        connection.execute(f"CREATE SCHEMA {schema}")
        try:
            mark = "&" if "?" in address else "?"
            yield partial(PostgresStore, url=f"{address}{mark}options=-csearch_path%3D{schema}")
        finally:
            connection.execute(f"DROP SCHEMA {schema} CASCADE")


def old_database(opener, version, tables):
    """Fill an empty database as of an older version with these rows, past the code of today."""
    address = opener.keywords
    if "path" in address:
        connection = sqlite3.connect(address["path"])
        mark, database = "?", "sqlite"
    else:
        import psycopg

        connection = psycopg.connect(address["url"])
        mark, database = "%s", "postgresql"
    for number, statements in migrations(database):
        for statement in statements if number <= version else ():
            connection.execute(statement)
    for table, rows in tables.items():
        for row in rows:
            columns, marks = ", ".join(row), ", ".join([mark] * len(row))
            connection.execute(f"INSERT INTO {table} ({columns}) VALUES ({marks})", list(row.values()))
    if "path" in address:
        connection.execute(f"PRAGMA user_version = {version}")
    else:
        connection.execute("CREATE TABLE migration (number INTEGER PRIMARY KEY)")
        for number in range(1, version + 1):
            connection.execute("INSERT INTO migration VALUES (%s)", (number,))
    connection.commit()
    connection.close()


STORES = {"sqlite": sqlite, "postgres": postgres}
