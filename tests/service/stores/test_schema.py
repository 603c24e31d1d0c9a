"""A database is brought up to date whole or not at all."""

import sqlite3

import pytest

from budgetbandits.service.stores import schema
from budgetbandits.service.stores.sqlite import SQLiteStore


def test_a_migration_that_fails_changes_nothing(tmp_path, monkeypatch):
    SQLiteStore(tmp_path / "money.db").close()
    before = sqlite3.connect(tmp_path / "money.db")
    tables = before.execute("SELECT name FROM sqlite_master ORDER BY name").fetchall()
    before.close()
    steps = schema.migrations("sqlite")
    broken = [*steps, (steps[-1][0] + 1, ["CREATE TABLE more (a INTEGER);", "CREATE TABLE campaign (a INTEGER);"])]
    monkeypatch.setattr("budgetbandits.service.stores.sqlite.migrations", lambda database: broken)
    with pytest.raises(Exception, match="already exists"):
        SQLiteStore(tmp_path / "money.db")
    after = sqlite3.connect(tmp_path / "money.db")
    assert after.execute("SELECT name FROM sqlite_master ORDER BY name").fetchall() == tables
    assert after.execute("PRAGMA user_version").fetchone() == (steps[-1][0],)
    after.close()


def test_a_reader_does_not_wait_for_a_writer(tmp_path, monkeypatch):
    monkeypatch.setattr("budgetbandits.service.stores.sqlite.WRITE_WAIT_SECONDS", 0.1)
    with SQLiteStore(tmp_path / "money.db") as store:
        writer = sqlite3.connect(tmp_path / "money.db", isolation_level=None)
        assert writer.execute("PRAGMA auto_vacuum").fetchone() == (2,)
        writer.execute("BEGIN IMMEDIATE")
        assert store.read(lambda tx: tx.campaigns()) == []
        with SQLiteStore(tmp_path / "money.db") as other:
            assert other.read(lambda tx: tx.campaigns()) == []
        writer.close()
