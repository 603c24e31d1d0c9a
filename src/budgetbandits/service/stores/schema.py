"""The tables, as numbered migrations in SQL that two databases understand, and what each of them is told besides."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from importlib import resources
from typing import Literal

from budgetbandits.errors import StoreError

MIGRATIONS = "budgetbandits.service.stores.migrations"
Database = Literal["sqlite", "postgresql"]
_CLEARED = "autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 2000"
"""Old versions are cleared away after so many changes, however many rows there are."""

COMPLETE_PENDING = (
    "UPDATE pending SET campaign = d.campaign, created_at = d.created_at FROM decision d "
    "WHERE d.id = pending.decision AND pending.campaign IS NULL"
)
"""On PostgreSQL, for those that a server of an earlier version has listed without their campaign."""

WORDS = {
    "sqlite": {
        "COUNTED_KEY": "INTEGER PRIMARY KEY",
        "OFTEN_CHANGED": "",
        "CHANGED_ONCE": "",
        "BYTEWISE_TEXT": "TEXT",
        "SETTING(cost_max)": "json_extract(settings, '$.cost_max')",
        "SETTING(currency)": "json_extract(settings, '$.currency')",
        "LIST_OF_PENDING": "CREATE VIEW pending AS "
        "SELECT expires_at, id AS decision FROM decision WHERE state = 'pending';\n"
        "CREATE INDEX decision_due ON decision (expires_at) WHERE state = 'pending'",
        "PENDING_BY_CAMPAIGN": "DROP VIEW pending;\nCREATE VIEW pending AS "
        "SELECT expires_at, id AS decision, campaign, created_at FROM decision WHERE state = 'pending';\n"
        "CREATE INDEX decision_open ON decision (campaign, expires_at, created_at) WHERE state = 'pending'",
    },
    "postgresql": {
        "COUNTED_KEY": "BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY",
        # room in every page for new versions of its rows
        "OFTEN_CHANGED": f"WITH (fillfactor = 50, {_CLEARED})",
        "CHANGED_ONCE": "WITH (fillfactor = 80)",
        "BYTEWISE_TEXT": 'TEXT COLLATE "C"',
        "SETTING(cost_max)": "CAST(settings AS json) ->> 'cost_max'",
        "SETTING(currency)": "CAST(settings AS json) ->> 'currency'",
        # a view would need an index on what changes
        "LIST_OF_PENDING": "CREATE TABLE pending (expires_at DOUBLE PRECISION NOT NULL, decision TEXT NOT NULL, "
        f"PRIMARY KEY (expires_at, decision)) WITH ({_CLEARED})",
        "PENDING_BY_CAMPAIGN": "ALTER TABLE pending ADD COLUMN campaign TEXT;\n"
        "ALTER TABLE pending ADD COLUMN created_at DOUBLE PRECISION;\n"
        f"{COMPLETE_PENDING};\nCREATE INDEX pending_campaign ON pending (campaign, expires_at)",
    },
}
"""What the migrations leave to the database: the type of a key that counts by itself, how a table is kept, a text that
is ordered by its bytes, how an entry of JSON is read, and how the pending decisions are found."""

INCOMPLETE = "SELECT id, name FROM campaign_name WHERE folded IS NULL OR cost_max IS NULL"
"""Campaigns that lack what the list of all campaigns looks at: those from before a migration, and those that a server
of an earlier version has made since, on a database that a newer one had migrated already."""

_COMPLETE = (
    "UPDATE campaign_name SET folded = ?, "
    "cost_max = (SELECT CAST(SETTING(cost_max) AS BIGINT) FROM campaign WHERE campaign.id = campaign_name.id), "
    "currency = (SELECT SETTING(currency) FROM campaign WHERE campaign.id = campaign_name.id) WHERE id = ?"
)


def migrations(database: Database) -> list[tuple[int, list[str]]]:
    """(number, statements) of every migration in order."""
    steps = []
    for entry in resources.files(MIGRATIONS).iterdir():
        if entry.name.endswith(".sql"):
            text = _worded(entry.read_text(encoding="utf-8"), database)
            steps.append((int(entry.name.split("_")[0]), list(_statements(text))))
    return sorted(steps)


def missing_facts(database: Database, incomplete: Iterable[Sequence[str]]) -> list[tuple[str, tuple[str, str]]]:
    """What to run, with ``?`` for these values, so that no campaign is `INCOMPLETE`. Names are folded here because
    databases do not agree with Python about it."""
    statement = _worded(_COMPLETE, database)
    return [(statement, (name.casefold(), id)) for id, name in incomplete]


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
