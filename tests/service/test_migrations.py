"""Databases that older versions wrote are brought up to date, agree with their events, and go on."""

import json
import sqlite3
from pathlib import Path

import pytest

from budgetbandits.service.audit import verify
from budgetbandits.service.engine import Engine
from budgetbandits.service.stores import sql
from budgetbandits.service.stores.sqlite import SQLiteStore
from stores import STORES, old_database

DATABASES = sorted((Path(__file__).parent / "databases").glob("version-*.json"))


@pytest.mark.parametrize("database", DATABASES, ids=lambda path: path.stem)
@pytest.mark.parametrize("name", STORES)
def test_a_database_of_an_older_version_goes_on(name, database, tmp_path):
    """It was written by the code of that version: four policies, holds in every state, arms added and retired."""
    version, tables = int(database.stem.split("-")[1]), json.loads(database.read_text())
    with STORES[name](tmp_path) as opener:
        old_database(opener, version, tables)
        with opener() as store:
            engine = Engine(store, clock=lambda: 1_700_100_000.0)
            assert engine.names() == ["ads", "routes", "bids", "soft"]
            for campaign in engine.names():
                assert verify(store, campaign) == []
            assert engine.account("ads").today > 0
            engine.set_status("soft", "active")  # it was frozen by an overrun
            for campaign in engine.names():
                answer = engine.decide(campaign, "after the migration")
                engine.feedback(answer.decision, reward=1.0, cost=answer.hold / 2)
                engine.top_up(campaign, 5.0)
                engine.decide(campaign, "another")
            while engine.expire_due():
                pass
            for campaign in engine.names():
                assert verify(store, campaign) == []
                assert engine.decide(campaign, f"{campaign}-3", {"n": 3}).campaign  # keys are remembered


def test_a_migration_that_fails_changes_nothing(tmp_path, monkeypatch):
    SQLiteStore(tmp_path / "money.db").close()
    before = sqlite3.connect(tmp_path / "money.db")
    tables = before.execute("SELECT name FROM sqlite_master ORDER BY name").fetchall()
    before.close()
    steps = sql.migrations("sqlite")
    broken = [*steps, (steps[-1][0] + 1, ["CREATE TABLE more (a INTEGER);", "CREATE TABLE campaign (a INTEGER);"])]
    monkeypatch.setattr("budgetbandits.service.stores.sqlite.migrations", lambda database: broken)
    with pytest.raises(Exception, match="already exists"):
        SQLiteStore(tmp_path / "money.db")
    after = sqlite3.connect(tmp_path / "money.db")
    assert after.execute("SELECT name FROM sqlite_master ORDER BY name").fetchall() == tables
    assert after.execute("PRAGMA user_version").fetchone() == (steps[-1][0],)
    after.close()
