"""PostgreSQL writes a new version of a row at every change: how many are read, and what they cost the indexes."""

import asyncio
import time

import pytest

from budgetbandits.service.audit.audit import verify
from budgetbandits.service.feedback import FeedbackReport
from budgetbandits.service.service import DecisionService

HOT = ("campaign", "arm", "decision")


@pytest.fixture
def opener(postgres):
    return postgres


@pytest.fixture
def connection(opener):
    import psycopg

    with psycopg.connect(opener.keywords["url"], autocommit=True) as connection:
        yield connection


def play(opener, pairs, clients=1, **terms):
    """Decisions and their feedback by an event loop, from so many clients."""
    with opener() as store:
        engine = DecisionService(store)
        if "ads" not in engine.names():
            engine.create("ads", "bts", budget=1e6, arms={f"arm {n}": 1.0 for n in range(5)}, **terms)

        async def client(name):
            for number in range(pairs // clients):
                [made] = await store.perform(*engine.decision_task("ads", f"{time.time_ns()} {name} {number}"))
                await store.perform(
                    *engine.feedback_task(FeedbackReport(made.decision, float(number % 2), 0.25), "ads")
                )

        async def run():
            await asyncio.gather(*(client(name) for name in range(clients)))

        asyncio.run(run())
        assert verify(store, "ads") == []


def counted(connection, view, columns, made):
    """These statistics of each table, when those of all decisions that were made have come in and no more come."""
    until, earlier = time.monotonic() + 20.0, None
    while time.monotonic() < until:
        told = connection.execute("SELECT pg_stat_get_tuples_updated('decision'::regclass)").fetchone()[0]
        rows = connection.execute(
            f"SELECT relname, {columns} FROM {view} WHERE schemaname = current_schema()"
        ).fetchall()
        if told >= made and rows == earlier:  # each connection hands in its own, when it ends at the latest
            return {name: values for name, *values in rows}
        earlier = rows
        time.sleep(0.2)
    raise AssertionError(f"the database knows of {told} decisions, not {made}")


def test_a_changed_row_leaves_the_indexes_alone(opener, connection):
    """What changes stands in no index, and there is room beside it (PostgreSQL calls that a HOT update)."""
    play(opener, 300, clients=4)
    seen = counted(connection, "pg_stat_user_tables", "n_tup_hot_upd, n_tup_upd", 300)
    shares = {table: seen[table][0] / seen[table][1] for table in HOT}
    assert all(share >= 0.9 for share in shares.values()), shares


def test_a_lease_that_changes_leaves_the_indexes_alone(opener, connection):
    play(opener, 300, clients=4, lease=1e5, lease_seconds=60.0)
    hot, changed = counted(connection, "pg_stat_user_tables", "n_tup_hot_upd, n_tup_upd", 300)["lease"]
    assert changed >= 100
    assert hot >= 0.9 * changed


def test_no_request_reads_the_decisions_of_others(opener, connection):
    """However many there are, and before the database has any statistics of them."""
    play(opener, 400, clients=4)
    seen = counted(connection, "pg_stat_user_tables", "coalesce(idx_tup_fetch, 0) + seq_tup_read", 400)
    # a pair looks for its key, which is not there, for its decision, and changes it; the audit reads each twice or so
    assert seen["decision"][0] <= 10 * 400, seen


@pytest.mark.parametrize(
    "tamper",
    [
        "DELETE FROM pending_decision",
        "UPDATE pending_decision SET expires_at = expires_at + 1",
        "INSERT INTO pending_decision "
        "SELECT expires_at, id, campaign, created_at FROM decision WHERE state = 'settled'",
    ],
)
def test_the_audit_compares_what_may_expire_with_the_decisions(opener, connection, tamper):
    play(opener, 5)
    with opener() as store:
        DecisionService(store).decide("ads", "open")
        assert verify(store, "ads") == []
        assert connection.execute(tamper).rowcount > 0
        assert verify(store, "ads") != []


@pytest.mark.parametrize("terms", [{}, {"lease": 1e5, "lease_seconds": 60.0}], ids=["campaign", "lease"])
def test_who_looks_at_an_old_state_does_not_slow_down_the_new_ones(opener, connection, terms):
    """With a snapshot open no version can be cleared away; those that are not the newest must not be read."""
    import psycopg

    tables = ("lease",) if terms else ("campaign", "arm")
    play(opener, 20, **terms)
    blocks = "coalesce(heap_blks_hit, 0) + coalesce(heap_blks_read, 0)"
    with psycopg.connect(opener.keywords["url"]) as watcher:
        watcher.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        watcher.execute("SELECT count(*) FROM campaign")
        play(opener, 50)
        first = counted(connection, "pg_statio_user_tables", blocks, 70)
        play(opener, 600)
        before = counted(connection, "pg_statio_user_tables", blocks, 670)
        play(opener, 50)
        after = counted(connection, "pg_statio_user_tables", blocks, 720)
    for table in tables:
        assert after[table][0] - before[table][0] < 3 * first[table][0], table
