"""Stores of earlier versions open, are what their events say, and go on deciding."""

import contextlib
import sqlite3
from functools import partial

import pytest

from budgetbandits.service.audit.audit import verify
from budgetbandits.service.rollups import History, roll_up
from budgetbandits.service.service import DecisionService
from budgetbandits.service.stores.schema import migrations
from budgetbandits.service.stores.sqlite import SQLiteStore
from clock import Clock
from dump_store import CAMPAIGNS, FOLDER
from stores import STORES

DUMPS = {int(path.stem.split("_")[1]): path for path in FOLDER.glob("version_*.sql")}


def on_sqlite(path, version):
    with contextlib.closing(sqlite3.connect(path)) as connection:
        connection.executescript(DUMPS[version].read_text(encoding="utf-8"))
    return partial(SQLiteStore, path)


def on_postgres(path, version, opener):
    """The tables as that version made them, and the rows of SQLite's dump."""
    import psycopg

    on_sqlite(path, version)
    with (
        contextlib.closing(sqlite3.connect(path)) as source,
        psycopg.connect(opener.keywords["url"]) as target,
    ):
        for number, statements in migrations("postgresql"):
            for statement in statements if number <= version else ():
                target.execute(statement)
        target.execute("CREATE TABLE migration (number INTEGER PRIMARY KEY)")
        target.execute("INSERT INTO migration VALUES (%s)", (version,))
        for (table,) in source.execute(
            "SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name <> 'campaign_name'"
        ).fetchall():
            rows = source.execute(f"SELECT * FROM {table}")
            names = [each[0] for each in rows.description]
            types = [each.type_code for each in target.execute(f"SELECT {', '.join(names)} FROM {table}").description]
            flags = [code == psycopg.adapters.types["bool"].oid for code in types]
            places = ", ".join(["%s"] * len(names))
            insert = f"INSERT INTO {table} ({', '.join(names)}) OVERRIDING SYSTEM VALUE VALUES ({places})"
            for row in rows:
                target.execute(insert, [bool(value) if flag else value for flag, value in zip(flags, row, strict=True)])
        target.execute(
            "INSERT INTO pending_decision SELECT expires_at, id, campaign, created_at FROM decision "
            "WHERE state = 'pending'"
        )
        for table in ("event", "key_event"):
            target.execute(
                f"SELECT setval(pg_get_serial_sequence('{table}', 'seq'), (SELECT COALESCE(MAX(seq), 1) FROM {table}))"
            )
    return opener


@pytest.fixture(params=sorted(STORES))
def loader(request, tmp_path):
    with STORES[request.param](tmp_path) as opener:
        path = tmp_path / "dump.db"
        yield partial(on_sqlite, path) if request.param == "sqlite" else partial(on_postgres, path, opener=opener)


def test_the_newest_schema_has_a_dump():
    assert max(DUMPS) == migrations("sqlite")[-1][0], "run tests/helpers/dump_store.py"


@pytest.mark.parametrize("version", sorted(DUMPS))
def test_a_dump_audits_clean_and_goes_on_deciding(loader, version):
    with loader(version=version)() as store:
        latest = store.read(lambda tx: max(tx.events(row.id, 0, 10**6)[-1].at for row in tx.campaigns()))
        service = DecisionService(store, Clock(latest + 1.0))
        assert service.names() == list(CAMPAIGNS)
        for name in CAMPAIGNS:
            assert verify(store, name) == []
            before = service.account(name)
            assert before.overrun > 0
            assert before.requests_used > 0
            assert service.decide(name, "open").expires_at <= latest + 3600.0  # found by its key
            for number in range(3):
                service.feedback(service.decide(name, f"new {number}").decision, reward=0.5, cost=0.25)
        roll_up(store)
        for name in CAMPAIGNS:
            assert verify(store, name) == []
            totals = store.read(lambda tx, name=name: History.of(tx, tx.campaign(name)).totals())
            assert sum(each.costs_reported for each in totals.values()) >= 3
            assert sum(each.failed for each in totals.values()) > 0
        assert len(store.read(lambda tx: tx.keys())) == 1
