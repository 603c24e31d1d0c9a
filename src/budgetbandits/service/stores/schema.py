"""The tables, as numbered migrations in SQL that two databases understand, and what each of them is told besides."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from importlib import resources
from typing import Literal

from budgetbandits.errors import StoreError

MIGRATIONS = "budgetbandits.service.stores.migrations"
Database = Literal["sqlite", "postgresql"]
_CLEARED = "autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 2000"
"""Old versions are cleared away after so many changes, however many rows there are."""

WORDS = {
    "sqlite": {
        "COUNTED_KEY": "INTEGER PRIMARY KEY",
        "OFTEN_CHANGED": "",
        "CHANGED_ONCE": "",
        "BYTEWISE_TEXT": "TEXT",
        "LIST_OF_PENDING": "CREATE VIEW pending AS "
        "SELECT expires_at, id AS decision, campaign, created_at FROM decision WHERE state = 'pending';\n"
        "CREATE INDEX decision_due ON decision (expires_at) WHERE state = 'pending';\n"
        "CREATE INDEX decision_open ON decision (campaign, expires_at, created_at) WHERE state = 'pending'",
    },
    "postgresql": {
        "COUNTED_KEY": "BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY",
        # room in every page for new versions of its rows
        "OFTEN_CHANGED": f"WITH (fillfactor = 50, {_CLEARED})",
        "CHANGED_ONCE": "WITH (fillfactor = 80)",
        "BYTEWISE_TEXT": 'TEXT COLLATE "C"',
        # a view would need an index on what changes
        "LIST_OF_PENDING": "CREATE TABLE pending (expires_at DOUBLE PRECISION NOT NULL, decision TEXT NOT NULL, "
        "campaign TEXT NOT NULL, created_at DOUBLE PRECISION NOT NULL, "
        f"PRIMARY KEY (expires_at, decision)) WITH ({_CLEARED});\n"
        "CREATE INDEX pending_campaign ON pending (campaign, expires_at)",
    },
}
"""What the migrations leave to the database: the type of a key that counts by itself, how a table is kept, a text that
is ordered by its bytes, and how the pending decisions are found."""


def migrations(database: Database) -> list[tuple[int, list[str]]]:
    """(number, statements) of every migration in order."""
    steps = []
    for entry in resources.files(MIGRATIONS).iterdir():
        if entry.name.endswith(".sql"):
            text = _worded(entry.read_text(encoding="utf-8"), database)
            steps.append((int(entry.name.split("_")[0]), list(_statements(text))))
    return sorted(steps)


def _worded(text: str, database: Database) -> str:
    for word, meaning in WORDS[database].items():
        text = text.replace(word, meaning)
    return text


def check_version(done: int, newest: int) -> None:
    if done > newest:
        raise StoreError(f"the database is of version {done}, this package knows {newest}; upgrade budgetbandits")


def _statements(text: str) -> Iterator[str]:
    statement = ""
    for line in text.splitlines(keepends=True):
        statement += line
        if sqlite3.complete_statement(statement):  # knows about semicolons inside texts and comments
            yield statement
            statement = ""
