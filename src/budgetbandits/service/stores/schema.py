"""The tables: numbered migrations in SQL that both databases understand, with a few words that each spells itself."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from importlib import resources
from typing import Literal

from budgetbandits.errors import StoreError

Database = Literal["sqlite", "postgresql"]
_VACUUM = "autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 2000"
"""Old versions are cleared away after this many changes, however many rows there are."""

_EVENTS_BY_CAMPAIGN = "CREATE INDEX event_campaign ON event (campaign, seq)"

DIALECTS = {
    "sqlite": {
        "COUNTED_KEY": "INTEGER PRIMARY KEY",
        "OFTEN_CHANGED": "",
        "CHANGED_ONCE": "",
        "BYTEWISE_TEXT": "TEXT",
        "EVENTS_BY_CAMPAIGN": _EVENTS_BY_CAMPAIGN,
        "PENDING_DECISIONS": "CREATE VIEW pending_decision AS "
        "SELECT expires_at, id AS decision, campaign, created_at FROM decision WHERE state = 'pending';\n"
        "CREATE INDEX decision_due ON decision (expires_at) WHERE state = 'pending';\n"
        "CREATE INDEX decision_pending ON decision (campaign, expires_at, created_at) WHERE state = 'pending'",
    },
    "postgresql": {
        "COUNTED_KEY": "BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY",
        # room in every page for new versions of its rows
        "OFTEN_CHANGED": f"WITH (fillfactor = 50, {_VACUUM})",
        "CHANGED_ONCE": "WITH (fillfactor = 80)",
        "BYTEWISE_TEXT": 'TEXT COLLATE "C"',
        # counted while there was one campaign, its share of the events would be taken for that of any
        "EVENTS_BY_CAMPAIGN": f"{_EVENTS_BY_CAMPAIGN};\nALTER TABLE event ALTER COLUMN campaign SET STATISTICS 0",
        # a view would need an index on what changes
        "PENDING_DECISIONS": "CREATE TABLE pending_decision ("
        "expires_at DOUBLE PRECISION NOT NULL, decision TEXT NOT NULL, campaign TEXT NOT NULL, "
        "created_at DOUBLE PRECISION NOT NULL, "
        f"PRIMARY KEY (expires_at, decision)) WITH ({_VACUUM});\n"
        "CREATE INDEX pending_decision_campaign ON pending_decision (campaign, expires_at)",
    },
}
"""The words of the migrations that each database spells itself: the type of a key that counts by itself, how a table is
kept, a text that is ordered by its bytes, and how events of a campaign and pending decisions are found."""


def migrations(database: Database) -> list[tuple[int, list[str]]]:
    """(number, statements) of every migration in order."""
    steps = []
    for entry in resources.files("budgetbandits.service.stores").joinpath("migrations").iterdir():
        if entry.name.endswith(".sql"):
            text = entry.read_text(encoding="utf-8")
            for word, spelling in DIALECTS[database].items():
                text = text.replace(word, spelling)
            steps.append((int(entry.name.split("_")[0]), list(_statements(text))))
    return sorted(steps)


def check_version(version: int, newest: int) -> None:
    """Refuse a database that a later package has made."""
    if version > newest:
        raise StoreError(f"the database is of version {version}, this package knows {newest}; upgrade budgetbandits")


def _statements(text: str) -> Iterator[str]:
    statement = ""
    for line in text.splitlines(keepends=True):
        statement += line
        if sqlite3.complete_statement(statement):  # knows about semicolons inside texts and comments
            yield statement
            statement = ""
