"""What every store of the service must do. A new one is a line in stores.py."""

import asyncio
import sqlite3
import subprocess
import sys
import threading
import time
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import MISSING, fields, replace
from itertools import pairwise

import pytest

from budgetbandits.errors import Conflict, HoldRefused, NotFound, OutcomeUnknown, StoreError
from budgetbandits.service.audit.audit import verify
from budgetbandits.service.audit.slices import event_slices
from budgetbandits.service.decisions import BatchRefused
from budgetbandits.service.feedback import FeedbackReport
from budgetbandits.service.http.auth import make_first_key
from budgetbandits.service.ledger import Account, Hold
from budgetbandits.service.service import DecisionService
from budgetbandits.service.stores.contract import Scope
from budgetbandits.service.stores.records import ArmRow, Campaign, CampaignSettings, DecisionRow, Event, Key, Lease
from budgetbandits.service.stores.sqlite import SQLiteStore
from budgetbandits.service.stores.work_queue import WorkItem
from budgetbandits.terms import Terms
from stores import STORES, all_decisions, all_events, in_threads

ACCOUNT = Account(1000, 100, 50, 5, "active", 3, 40, 90, 6)
SETTINGS = CampaignSettings(Terms(currency="EUR"), 9, "plain", {"costs": [1.0, 2.0]})
ONE = Campaign("c1", "ads", "bts", ACCOUNT, 7.5, SETTINGS, {"number": 3})
ARMS = [ArmRow("c1", 0, "search", 40, {"pulls": 2}), ArmRow("c1", 1, "mail", 50, {}, active=False)]
LEASE = Lease("l1", "c1", Account(90, 10, 30, requests_used=3), 30.0, 7, 4, "abc")
MADE = DecisionRow("d1", "c1", 1, Hold(50, placed_at=10.0), "key", "digest", 10.0, 20.0)


@pytest.fixture
def filled(store):
    def work(tx):
        tx.add_campaign(ONE)
        tx.add_arms(ARMS)
        tx.add_decision(MADE)

    store.write(work)
    return store


def numbered(row, number):
    """The campaign with this number, which stands for what is learned."""
    return replace(row, learned={"number": number})


def number_of(row):
    return row.learned["number"]


def raising(fail):
    """Raises the campaign's number by one, and may fail after it has."""

    def work(tx):
        row = tx.campaign("c1")
        tx.save_campaign(numbered(row, number_of(row) + 1))
        if fail:
            raise NotFound("on purpose")
        return number_of(row)

    return work


def test_servers_that_start_together_make_one_admin_key(opener):
    together = threading.Barrier(4)

    def start(_):
        with opener() as store:
            together.wait()
            return make_first_key(store, 1.0)

    with ThreadPoolExecutor(4) as pool:
        made = [key for key in pool.map(start, range(4)) if key is not None]
    with opener() as store:
        assert [key.prefix for key in store.read(lambda tx: tx.keys())] == [made[0].split("_")[1]]
    assert len(made) == 1


def test_rows_come_back_as_they_went(filled):
    assert filled.read(lambda tx: tx.campaign("c1")) == ONE
    assert filled.read(lambda tx: (tx.campaign("ads"), tx.campaign("search"))) == (ONE, None)
    assert filled.read(lambda tx: tx.campaigns()) == [ONE]
    assert filled.read(lambda tx: tx.arms("c1")) == ARMS
    assert filled.read(lambda tx: tx.arms("c1", [1])) == ARMS[1:]
    assert filled.read(lambda tx: tx.decision("d1")) == MADE
    assert filled.read(lambda tx: tx.decision_by_key("c1", "key")) == MADE
    assert filled.read(lambda tx: (tx.campaign("no"), tx.decision("no"), tx.decision_by_key("c1", "no"))) == (None,) * 3


def test_changes_are_written(filled):
    changed = replace(ONE, account=Account(2000, 1, 2, 3, "frozen", 4, 3, 70, 12), learned={"tag": "y"})
    told = replace(MADE, hold=Hold(50, "settled", 30, 0, True, 10.0), cost=30, reward=0.5)

    def work(tx):
        tx.save_campaign(changed)
        tx.save_arms([replace(ARMS[0], learned={"pulls": 3}, active=False)])
        tx.save_decision(told)

    filled.write(work)
    assert filled.read(lambda tx: tx.campaign("c1")) == changed
    assert filled.read(lambda tx: tx.arms("c1"))[0].learned == {"pulls": 3}
    assert filled.read(lambda tx: tx.decision("d1")) == told


def test_money_alone_is_written(filled):
    money = Account(1000, 7, 8, 9, "paused", 5, 6, 7, 8)
    filled.write(lambda tx: tx.save_money(replace(ONE, account=money, learned={"other": 1})))
    assert filled.read(lambda tx: tx.campaign("c1")) == replace(ONE, account=money)


def test_a_heartbeat_can_be_written_again_and_again(store):
    store.write(lambda tx: tx.write_heartbeat(1.0))
    store.write(lambda tx: tx.write_heartbeat(2.0))


def test_decisions_come_in_the_order_they_were_made(filled):
    made = [replace(MADE, id=f"x{9 - n}", key=f"k{n}") for n in range(5)]

    def work(tx):
        for each in made:
            tx.add_decision(each)
            tx.add_event(Event("c1", "decided", 1.0, each.id))
            tx.add_event(Event("c1", "settled", 2.0, each.id))

    filled.write(work)
    assert all_decisions(filled, "c1") == made
    first = filled.read(lambda tx: tx.decisions("c1", limit=2))
    assert [each for _, each in first] == made[:2]
    assert [each for _, each in filled.read(lambda tx: tx.decisions("c1", first[1][0], 2))] == made[2:4]


def test_totals_of_arms(filled):
    def work(tx):
        told = Hold(50, "settled", 30, 20, True, 10.0)
        tx.add_decision(replace(MADE, id="t1", key="1", arm=0, hold=told, cost=50, reward=0.5))
        tx.add_decision(replace(MADE, id="t2", key="2", arm=0, hold=told, cost=50))
        tx.add_decision(replace(MADE, id="t3", key="3", arm=1, hold=Hold(50, "voided", placed_at=10.0)))

    filled.write(work)
    assert filled.read(lambda tx: tx.pending_by_arm("c1")) == {1: 1}
    assert filled.read(lambda tx: tx.pending_by_arm("none")) == {}


def test_an_event_loop_performs_many_at_once_and_some_of_them_fail(filled):
    """Those that fail have written something before, so the others' work must survive its being undone."""

    async def run():
        works = [raising(n % 5 == 0) for n in range(150)]
        return await asyncio.gather(*(filled.perform(work) for work in works), return_exceptions=True)

    results = asyncio.run(run())
    assert [isinstance(result, NotFound) for result in results] == [n % 5 == 0 for n in range(150)]
    numbers = [result for result in results if not isinstance(result, NotFound)]
    assert sorted(numbers) == list(range(number_of(ONE), number_of(ONE) + 120))
    assert number_of(filled.read(lambda tx: tx.campaign("c1"))) == number_of(ONE) + 120


def test_an_event_loop_does_not_stand_still_while_another_process_writes(tmp_path):
    """SQLite lets one write at a time: the loop goes on turning, and the work is done when the other is."""
    with SQLiteStore(tmp_path / "money.db") as store:
        other = sqlite3.connect(tmp_path / "money.db", isolation_level=None)
        other.execute("BEGIN IMMEDIATE")

        async def run():
            pieces = [
                lambda tx: tx.add_campaign(ONE),
                lambda tx: tx.write_heartbeat(1.0),
                lambda tx: len(tx.campaigns()),
            ]
            work = asyncio.gather(*(store.perform(piece) for piece in pieces))
            ticks = 0
            while ticks < 20:
                await asyncio.sleep(0.005)
                ticks += 1
            assert not work.done()
            other.execute("COMMIT")
            assert await work == [None, None, 1]

        asyncio.run(asyncio.wait_for(run(), 20.0))
        other.close()
        assert store.read(lambda tx: tx.campaign("c1")) == ONE


def test_who_is_alone_waits_for_nobody_and_a_crowd_shares_commits(tmp_path):
    with SQLiteStore(tmp_path / "money.db") as store:
        commits = []
        store._writer.commit = lambda: commits.append(1) or type(store._writer).commit(store._writer)

        async def alone():
            rounds = 0

            async def count():
                nonlocal rounds
                while True:
                    await asyncio.sleep(0)
                    rounds += 1

            counting = asyncio.ensure_future(count())
            await asyncio.sleep(0)
            before = rounds
            await store.perform(lambda tx: tx.write_heartbeat(1.0))
            counting.cancel()
            return rounds - before

        async def crowd():
            async def one():
                for _ in range(20):
                    await store.perform(lambda tx: tx.write_heartbeat(1.0))

            await asyncio.gather(*(one() for _ in range(8)))

        assert asyncio.run(alone()) == 0
        assert len(commits) == 1
        asyncio.run(crowd())
        assert len(commits) <= 1 + 160 / 4


def test_nobody_waits_for_a_store_that_was_closed(tmp_path):
    store = SQLiteStore(tmp_path / "money.db")

    async def run():
        waiting = [asyncio.ensure_future(store.perform(lambda tx: tx.write_heartbeat(1.0))) for _ in range(3)]
        await asyncio.sleep(0)
        store.close()
        return await asyncio.wait_for(asyncio.gather(*waiting, return_exceptions=True), 10.0)

    first, *others = asyncio.run(run())
    assert first is None  # nobody was there when it came, so it was done at once
    assert [type(answer) for answer in others] == [StoreError] * 2
    with pytest.raises(StoreError, match="closed"):
        asyncio.run(store.perform(lambda tx: tx.write_heartbeat(1.0)))


def test_a_process_that_leaves_does_not_take_the_log_along(tmp_path):
    """The last one to close a database deletes its log, and must not believe that it is while others have it open."""
    path = tmp_path / "money.db"
    visitor = f"import sys; from budgetbandits.service.stores import open_store; s = open_store({str(path)!r}); s.read("
    visitor += "lambda tx: print(len(tx.campaigns()))); s.close()"
    with SQLiteStore(path) as store:
        store.write(lambda tx: tx.add_campaign(ONE))
        store.read(lambda tx: tx.campaigns())  # opens the file once more
        log = (tmp_path / "money.db-wal").stat().st_ino
        for count in (1, 2):
            seen = subprocess.run([sys.executable, "-c", visitor], capture_output=True, text=True, timeout=60)
            assert seen.stdout.strip() == str(count), seen.stderr
            assert (tmp_path / "money.db-wal").stat().st_ino == log
            store.write(lambda tx, n=count: tx.add_campaign(replace(ONE, id=f"c{n + 1}", name=f"ads {n}")))


def test_sqlite_waits_for_the_disk(tmp_path):
    with SQLiteStore(tmp_path / "money.db") as store:
        settings = store.write(
            lambda tx: [tx.ask(f"PRAGMA {name}").fetchone()[0] for name in ("synchronous", "journal_mode")]
        )
    assert settings == [2, "wal"]  # 2 is FULL


def test_an_error_undoes_all_of_its_own_work_and_nothing_else(filled):
    def fails(tx):
        tx.save_campaign(replace(ONE, name="other", account=Account(1)))
        tx.add_event(Event("c1", "lost", 1.0))
        raise NotFound("no")

    with pytest.raises(NotFound, match="no"):
        filled.write(fails)
    assert filled.read(lambda tx: tx.campaign("c1")) == ONE
    assert filled.read(lambda tx: tx.events("c1")) == []
    filled.write(lambda tx: tx.add_event(Event("c1", "kept", 1.0)))
    assert [event.kind for event in filled.read(lambda tx: tx.events("c1"))] == ["kept"]


def test_a_writer_outlives_a_rollback_that_fails(filled):
    """Whoever asked is told, and what comes next is written."""
    writers = getattr(filled, "_writers", None) or [filled._writer]

    def cannot():
        for writer in writers:
            del writer.rollback
        raise writers[0].errors("the disk is gone")

    for writer in writers:
        writer.rollback = cannot
    with pytest.raises(StoreError, match="cannot write"):
        filled.submit(raising(True)).result(10.0)
    for writer in writers:  # each of them may have been the one
        assert writer.run([WorkItem(raising(False), Future())])[0][2] is None
    assert number_of(filled.read(lambda tx: tx.campaign("c1"))) == number_of(ONE) + len(writers)


def test_many_writers_at_once_lose_nothing(filled):
    """Each reads and writes the same row; some fail on purpose in the middle."""

    def raise_it(fail):
        try:
            filled.write(raising(fail))
        except NotFound:
            assert fail

    in_threads(lambda n: [raise_it((n + m) % 3 == 0) for m in range(30)], range(8))
    assert number_of(filled.read(lambda tx: tx.campaign("c1"))) == number_of(ONE) + 160


def test_the_database_refuses_what_the_ledger_must_never_do(filled):
    """The rows are written past the ledger: the CHECK is the second lock on the door."""
    broken = object.__new__(Account)
    numbers = {
        "budget": 100,
        "spent": 60,
        "overrun": 0,
        "day": 0,
        "today": 0,
        "status": "active",
        "requests_used": 0,
        "period": 0,
        "advance": 0,
    }
    for tied in ({"held": 41, "leased": 0}, {"held": 20, "leased": 21}, {"held": 0, "leased": -1}):
        for name, value in (numbers | tied).items():
            object.__setattr__(broken, name, value)
        with pytest.raises(StoreError, match="refused"):
            filled.write(lambda tx: tx.save_campaign(replace(ONE, account=broken)))
    for account in ({"spent": 60, "held": 41}, {"spent": 0, "held": -1}, {"spent": -1, "held": 0}):
        for name, value in account.items():
            object.__setattr__(broken, name, value)
        with pytest.raises(StoreError, match="refused"):
            filled.write(lambda tx: tx.add_lease(replace(LEASE, account=broken)))
    assert filled.read(lambda tx: (tx.campaign("c1"), tx.leases("c1"))) == (ONE, [])


def test_leases_come_and_go(filled):
    others = [replace(LEASE, id="l0", expires_at=31.0), replace(LEASE, id="l2", campaign="c2", expires_at=29.0)]
    merged = replace(
        LEASE, account=Account(80, 5, 25, requests_used=4), expires_at=40.0, lease_seq=9, merged_seq=8, digest="abd"
    )

    def work(tx):
        for lease in (LEASE, *others):
            tx.add_lease(lease)

    filled.write(work)
    assert filled.read(lambda tx: (tx.lease("l1"), tx.lease("no"))) == (LEASE, None)
    assert filled.read(lambda tx: tx.leases("c1")) == [others[0], LEASE]
    assert filled.read(lambda tx: (tx.due_leases(30.0), tx.due_leases(28.0))) == ([("c1", "l1"), ("c2", "l2")], [])
    filled.write(lambda tx: tx.save_lease(merged))
    assert filled.read(lambda tx: tx.lease("l1")) == merged
    filled.write(lambda tx: tx.drop_lease("l1"))
    assert filled.read(lambda tx: (tx.lease("l1"), tx.leases("c1"))) == (None, others[:1])


def test_the_events_of_a_lease_come_with_what_is_known_of_their_decisions(filled):
    said = {"request": '{"segment":"é \\"code\\"","arms":[0]}', "propensity": 1 / 3}
    told = replace(MADE, id="d2", key="k2", cost=30, reward=0.5, lease="l1", hold=Hold(50, "settled", 30, 0, True, -1))
    told = replace(told, **said)
    events = [
        Event("c1", "leased", 1.0, amount=90, lease="l1", lease_seq=1),
        Event("c1", "decided", 2.0, "d2", 1, 50, lease="l1", lease_seq=2, **said),
        Event("c1", "settled", 3.0, "d2", 1, 30, 0.5, lease="l1", lease_seq=3),
    ]

    def work(tx):
        tx.add_decision(told)
        for event in (*events, Event("c1", "decided", 4.0, "d1", 1, 50)):
            tx.add_event(event)

    filled.write(work)
    assert filled.read(lambda tx: tx.decision("d2")) == told
    assert [replace(event, seq=0) for event in all_events(filled, "c1")][:3] == events
    known = filled.read(lambda tx: tx.lease_events("l1", 0))
    assert [(replace(event, seq=0), *rest) for event, *rest in known] == [
        (events[0], None, None, None, None), *((event, 30, 0.5, told.request, 10.0) for event in events[1:])
    ]  # fmt: skip
    filled.write(lambda tx: tx.save_decision(replace(told, failed=True)))
    assert filled.read(lambda tx: tx.decision("d2")) == replace(told, failed=True)
    assert [each.event.lease_seq for each in filled.read(lambda tx: tx.lease_events("l1", 2))] == [3]
    assert filled.read(lambda tx: tx.lease_events("l2", 0)) == []
    with pytest.raises(StoreError):  # a turn is taken once
        filled.write(lambda tx: tx.add_event(events[1]))


def test_a_key_is_used_once_in_a_campaign(filled):
    with pytest.raises(StoreError, match="refused"):
        filled.write(lambda tx: tx.add_decision(replace(MADE, id="d2")))


def test_due_decisions_come_oldest_first_and_only_pending_ones(filled):
    def work(tx):
        for number, (expires, state) in enumerate([(15.0, "pending"), (12.0, "pending"), (11.0, "settled")]):
            made = replace(
                MADE, id=f"e{number}", key=f"k{number}", expires_at=expires, hold=Hold(1, state, placed_at=10.0)
            )
            tx.add_decision(made)

    filled.write(work)
    assert filled.read(lambda tx: tx.due_decisions(15.0, 10)) == [("c1", "e1"), ("c1", "e0")]
    assert filled.read(lambda tx: tx.due_decisions(99.0, 2)) == [("c1", "e1"), ("c1", "e0")]
    assert filled.read(lambda tx: tx.due_decisions(99.0, 2, ["c2"])) == [("c1", "e1"), ("c1", "e0")]
    assert filled.read(lambda tx: tx.due_decisions(99.0, 2, ["c1", "c2"])) == []


def test_events_are_numbered_in_order_and_read_in_pages(filled):
    events = [Event("c1", f"kind {n}", float(n), "d1", n, n * 10, n / 2) for n in range(2500)]
    filled.write(lambda tx: [tx.add_event(event) for event in events])
    last = filled.read(lambda tx: tx.last_event("c1"))
    found = [event for page in event_slices(filled, "c1", 0, last) for event in page]
    assert [replace(event, seq=0) for event in found] == events
    assert all(a.seq < b.seq for a, b in pairwise(found))
    assert filled.read(lambda tx: tx.events("c1", after=found[10].seq, limit=2)) == found[11:13]
    assert filled.read(lambda tx: tx.events("c1", kind="kind 7")) == found[7:8]
    middle = [event for page in event_slices(filled, "c1", found[10].seq, found[2100].seq) for event in page]
    assert middle == found[11:2101]
    assert (last, filled.read(lambda tx: tx.last_event("none"))) == (found[-1].seq, 0)


def test_many_decisions_are_read_at_once(filled):
    made = [replace(MADE, id=f"m{n}", key=f"m{n}") for n in range(3)]
    filled.write(lambda tx: [tx.add_decision(each) for each in made])
    read = filled.read(lambda tx: tx.decisions_of(["m2", "none", "m0"]))
    assert sorted(read, key=lambda each: each.id) == [made[0], made[2]]
    assert filled.read(lambda tx: tx.decisions_of([])) == []


def test_keys(filled):
    key = Key("abcd", "digest", ("decide", "read"), 5.0, "c1")
    filled.write(lambda tx: tx.add_key(key))
    filled.write(lambda tx: tx.add_key(replace(key, prefix="b", campaign=None)))
    assert filled.read(lambda tx: tx.key("abcd")) == key
    assert filled.read(lambda tx: tx.keys()) == [key, replace(key, prefix="b", campaign=None)]
    filled.write(lambda tx: tx.drop_key("abcd"))
    assert filled.read(lambda tx: tx.key("abcd")) is None


def test_what_was_written_is_there_after_opening_again(opener):
    with opener() as store:
        store.write(lambda tx: tx.add_campaign(ONE))
    with opener() as store:
        assert store.read(lambda tx: tx.campaign("c1")) == ONE
        store.close()
        with pytest.raises(StoreError, match="closed"):
            store.write(lambda tx: tx.campaigns())


def test_two_at_once_on_the_same_database(opener):
    with opener() as one, opener() as two:
        one.write(lambda tx: tx.add_campaign(ONE))
        two.write(lambda tx: tx.save_campaign(numbered(ONE, 4)))
        assert number_of(one.read(lambda tx: tx.campaign("c1"))) == 4


def test_sqlite_files_that_are_something_else(tmp_path):
    (tmp_path / "text.db").write_text("this is no database, and longer than a header would be " * 30)
    with pytest.raises(StoreError, match="is it a database of budgetbandits"):
        SQLiteStore(tmp_path / "text.db")
    with pytest.raises(StoreError, match="cannot open"):
        SQLiteStore(tmp_path / "no such folder" / "money.db")


def test_a_database_of_a_later_version_is_left_alone(tmp_path):
    SQLiteStore(tmp_path / "money.db").close()
    connection = sqlite3.connect(tmp_path / "money.db")
    connection.execute("PRAGMA user_version = 99")
    connection.close()
    with pytest.raises(StoreError, match=r"version 99.*upgrade"):
        SQLiteStore(tmp_path / "money.db")


def test_a_postgres_that_drops_its_connections_is_found_again(tmp_path):
    """Whoever is cut off is told so, nothing is half done, and the next ones are served."""
    with STORES["postgres"](tmp_path) as opener, opener() as store:
        store.write(lambda tx: tx.add_campaign(ONE))

        def cut_off(tx):
            tx.save_campaign(numbered(ONE, 8))
            tx.ask("SELECT pg_terminate_backend(pg_backend_pid())").fetchone()

        with pytest.raises(StoreError, match="nothing was decided"):
            store.write(cut_off)
        store.write(lambda tx: tx.write_heartbeat(1.0))
        assert store.read(lambda tx: tx.campaign("c1")) == ONE


def test_postgres_waits_for_the_disk_whatever_it_is_set_to(tmp_path):
    with STORES["postgres"](tmp_path) as opener:
        for given, wanted in (("off", "on"), ("local", "on"), ("remote_apply", "remote_apply")):
            with opener.func(f"{opener.keywords['url']}%20-csynchronous_commit%3D{given}") as store:
                assert store.write(lambda tx: tx.ask("SHOW synchronous_commit").fetchone()) == (wanted,)


@pytest.mark.parametrize("level", ["serializable", "repeatable read", "read uncommitted"])
def test_postgres_transactions_are_as_the_service_relies_on_whatever_it_is_set_to(tmp_path, level):
    """Whoever waits for a campaign goes on with what it is by then, which stricter levels refuse."""
    with STORES["postgres"](tmp_path) as opener:
        set_to = f"-cdefault_transaction_isolation%3D{level.replace(' ', '%5C%20')}%20-cextra_float_digits%3D-9"
        url = f"{opener.keywords['url']}%20{set_to}"
        shows = "SHOW transaction_isolation", "SELECT 0.1::float8 + 0.2::float8"

        with opener.func(url) as store:
            seen = [run(lambda tx: [tx.ask(text).fetchone() for text in shows]) for run in (store.write, store.read)]
            exact = (0.1 + 0.2,)  # every digit comes through
            assert seen == [[("read committed",), exact], [("repeatable read",), exact]]


@pytest.mark.parametrize("encoding", ["LATIN1", "SQL_ASCII"])
def test_a_postgres_that_cannot_keep_every_name_is_refused(tmp_path, encoding):
    with STORES["postgres"](tmp_path) as opener:
        import psycopg

        url, name = opener.keywords["url"], f"test_{encoding.lower()}"
        with psycopg.connect(url, autocommit=True) as connection:
            made = f"CREATE DATABASE {name} ENCODING '{encoding}' LOCALE 'C' TEMPLATE template0"
            connection.execute(made)
            try:
                with pytest.raises(StoreError, match=rf"encoding is {encoding}.*createdb --encoding=UTF8"):
                    opener.func(psycopg.conninfo.make_conninfo(url, dbname=name))
            finally:
                connection.execute(f"DROP DATABASE {name}")


@pytest.fixture
def impatient(monkeypatch):
    """Connections that wait for nobody as long as they should."""
    limits = {"lock_timeout": 1.0, "idle_in_transaction_session_timeout": 0.3, "statement_timeout": 2.0}
    session = pytest.importorskip("budgetbandits.service.stores.postgres_session")
    for name, seconds in limits.items():
        monkeypatch.setitem(session.WRITE_LIMITS, name, seconds)


def test_a_postgres_server_that_stands_still_blocks_others_for_a_moment_only(tmp_path, impatient):
    """The database ends its transaction; when it goes on it is told, and nothing is written twice."""
    with STORES["postgres"](tmp_path) as opener, opener() as stopped, opener() as other:
        other.write(lambda tx: tx.add_campaign(ONE))
        gate, begun = threading.Event(), threading.Event()

        def stands_still(tx):
            row = tx.campaign("c1")
            begun.set()
            gate.wait(30.0)
            tx.save_campaign(numbered(row, 99))

        late = stopped.submit(stands_still, Scope("c1"))
        begun.wait(30.0)
        before = time.monotonic()
        other.write(raising(False), Scope("c1"))
        assert time.monotonic() - before < 5.0
        gate.set()
        with pytest.raises(StoreError, match="nothing was decided"):
            late.result(30.0)
        assert number_of(other.read(lambda tx: tx.campaign("c1"))) == number_of(ONE) + 1
        assert stopped.write(raising(False), Scope("c1")) == number_of(ONE) + 1  # and all is well again


def test_who_waits_for_a_postgres_campaign_too_long_is_told_to_ask_again(tmp_path, impatient):
    """Others go on, and the store can be closed."""
    with STORES["postgres"](tmp_path) as opener, opener() as store:
        import psycopg

        store.write(lambda tx: tx.add_campaign(ONE))
        store.write(lambda tx: tx.add_campaign(replace(ONE, id="c2", name="more")))
        with psycopg.connect(opener.keywords["url"]) as keeper:
            keeper.execute("SELECT 1 FROM campaign WHERE id = 'c1' FOR UPDATE")
            waiting = [store.submit(raising(False), Scope("c1")) for _ in range(3)]
            store.write(lambda tx: tx.save_campaign(replace(ONE, id="c2", name="more")), Scope("c2"))
            assert not any(each.done() for each in waiting)
            before = time.monotonic()
            for each in waiting:
                with pytest.raises(StoreError, match=r"kept the campaign.*ask again"):
                    each.result(30.0)
            last = store.submit(raising(False), Scope("c1"))
            store.close()
            assert isinstance(last.exception(0.0), StoreError)
            assert time.monotonic() - before < 5.0


def test_what_operators_change_under_a_key_is_changed_once(opener):
    """Also by another server, and by two at the same time."""
    arms = {"search": 1.0, "mail": 0.5}
    with opener() as one, opener() as two:
        engines = [DecisionService(one), DecisionService(two)]
        assert len({engine.create("ads", "bts", 10.0, arms, key="k") for engine in engines}) == 1
        with ThreadPoolExecutor(8) as pool:
            for _ in pool.map(lambda number: engines[number % 2].top_up("ads", 5.0, key="monday"), range(16)):
                pass
        for engine in engines:
            engine.add_arm("ads", "tv", 0.75, key="tv")
            engine.retire_arm("ads", "tv", key="no tv")
            engine.bring_back_arm("ads", "tv", key="tv after all")
            engine.change_terms("ads", {"daily_cap": 3.0, "hold_seconds": 60.0}, key="slower")
        with pytest.raises(Conflict, match="another change"):
            engines[1].top_up("ads", 6.0, key="monday")
        with pytest.raises(Conflict, match="another change"):
            engines[1].create("ads", "bts", 11.0, arms, key="k")
        for engine in engines:
            engine.set_status("ads", "closed", key="end")
        row = one.read(lambda tx: tx.campaign("ads"))
        assert row.account.budget == 15_000_000
        assert (row.settings.daily_cap, row.settings.terms.hold_seconds) == (3_000_000, 60.0)
        kinds = [event.kind for event in one.read(lambda tx: tx.events(row.id))]
        assert kinds == [
            "created", "topped up", "arm added", "arm retired", "arm brought back", "terms changed", "closed"
        ]  # fmt: skip
        assert verify(one, "ads") == []


@pytest.fixture
def sliced(monkeypatch):
    """Every slice of a batch makes one decision."""
    monkeypatch.setattr("budgetbandits.service.decisions.SLICE_SECONDS", 0.0)


def test_what_an_operator_was_answered_is_kept_with_the_key(opener, monkeypatch):
    """For other servers and after a restart; and of the oldest, how the campaign is now."""
    monkeypatch.setattr("budgetbandits.service.stores.sql.core.ANSWERS_KEPT", 3)
    with opener() as store:
        moments = iter(range(100))
        engine = DecisionService(store, lambda: float(next(moments)))
        engine.create("ads", "bts", 10.0, {"search": 1.0, "mail": 1.0}, key="made")
        engine.decide("ads", "one")
        engine.top_up("ads", 5.0, key="more")
        told = engine.campaigns.answer("ads", "more")
        assert ('"budget":15.0' in told, '"held":1.0' in told) == (True, True)
        engine.decide("ads", "two")
        engine.top_up("ads", 5.0, key="more")
        assert engine.campaigns.answer("ads", "more") == told
    with opener() as store:
        engine = DecisionService(store, lambda: 100.0)
        engine.set_status("ads", "paused", key="stop")
        stopped = engine.campaigns.answer("ads", "stop")
        engine.set_status("ads", "active", key="go")
        assert engine.campaigns.answer("ads", "stop") == stopped
        assert engine.campaigns.answer("ads", "more") == told
        now = engine.campaigns.answer("ads", None)
        assert engine.campaigns.answer("ads", "made") == now  # the fourth last
        assert '"budget":15.0' in now


@pytest.mark.usefixtures("sliced")
@pytest.mark.parametrize("policy", ["bts", "epsilon-first"])
def test_a_batch_in_slices_is_made_whole_or_not_at_all(opener, policy):
    with opener() as store:
        engine = DecisionService(store)
        engine.create("ads", policy, 10.0, {"search": 1.0, "mail": 1.0})
        made = engine.decide_many("ads", "one", 4)
        assert engine.decide_many("ads", "one", 4) == made
        with pytest.raises(HoldRefused, match="6 of 8 fit") as refused:
            engine.decide_many("ads", "two", 8)
        assert refused.value.reason == "blocked_by_holds"
        assert engine.account("ads").held == 4_000_000
        for each in made:
            engine.feedback(each.decision, reward=1.0, cost=1.0)
        with pytest.raises(HoldRefused, match="6 of 8 fit") as refused:
            engine.decide_many("ads", "two", 8)
        assert refused.value.reason == "exhausted"  # nobody else holds anything
        engine.top_up("ads", 2.0)
        assert len(engine.decide_many("ads", "two", 8)) == 8  # the key was free again
        assert engine.account("ads").held == 8_000_000
        assert verify(store, "ads") == []


@pytest.mark.usefixtures("sliced")
def test_a_batch_that_was_interrupted_is_finished_or_undone(opener):
    with opener() as store:
        engine = DecisionService(store)
        engine.create("ads", "bts", 10.0, {"search": 1.0, "mail": 1.0})

        def interrupt(key, count, after):
            done = []

            async def run(task, _):
                if len(done) == after:
                    raise KeyboardInterrupt
                done.append(store.write(*task(None)))
                return done[-1]

            with pytest.raises(KeyboardInterrupt):
                engine.decisions._batch(run, "ads", key, count, None, None).send(None)

        interrupt("one", 5, 2)
        assert engine.account("ads").held == 2_000_000
        assert len(engine.decide_many("ads", "one", 5)) == 5
        assert engine.account("ads").held == 5_000_000
        interrupt("two", 8, 3)
        with pytest.raises(HoldRefused, match="5 of 8 fit"):
            engine.decide_many("ads", "two", 8)
        assert engine.account("ads").held == 5_000_000
        interrupt("three", 5, 2)
        with pytest.raises(Conflict, match="another context, request or count"):
            engine.decide_many("ads", "three", 4)
        assert verify(store, "ads") == []


@pytest.mark.usefixtures("sliced")
def test_others_have_their_turn_between_the_slices_of_a_batch(opener):
    order = []

    async def run():
        with opener() as store:
            engine = DecisionService(store)
            engine.create("ads", "bts", 200.0, {"search": 1.0, "mail": 1.0})
            engine.create("other", "bts", 200.0, {"search": 1.0, "mail": 1.0})

            async def batch():
                assert len(await engine.decisions.decide_many_in_loop("ads", "one", 100)) == 100
                order.append("batch")

            async def single(number):
                await store.perform(*engine.decision_task("other", f"{number}"))
                order.append(number)

            async def singles():
                for number in range(10):
                    await single(number)

            await asyncio.gather(batch(), singles())

    asyncio.run(run())
    assert order == [*range(10), "batch"]


def test_a_change_that_fails_leaves_its_key_free(opener):
    with opener() as store:
        engine = DecisionService(store)
        engine.create("ads", "bts", 10.0, {"search": 1.0, "mail": 0.5})
        with pytest.raises(Conflict):
            engine.add_arm("ads", "mail", 1.0, key="one")
        engine.add_arm("ads", "tv", 1.0, key="one")


def test_nobody_is_told_where_the_postgres_is(tmp_path):
    with STORES["postgres"](tmp_path) as opener, opener() as store:
        for writer in store._writers:
            writer._url = "postgresql://somebody@127.0.0.1:1/secret"
        with pytest.raises(StoreError, match="cannot be reached") as caught:
            store.write(lambda tx: tx.write_heartbeat(1.0))
        assert not any(word in str(caught.value) for word in ("127.0.0.1", "secret", "somebody", "port"))


def test_a_postgres_commit_that_is_cut_off_is_not_said_to_be_undone(tmp_path, monkeypatch):
    with STORES["postgres"](tmp_path) as opener, opener() as store:
        import psycopg

        from budgetbandits.service.stores.postgres_pipeline import Pipeline

        store.write(lambda tx: tx.add_campaign(ONE))
        commit = Pipeline.commit

        def cut_off(connection):
            commit(connection)
            connection.close()
            raise psycopg.OperationalError("gone")

        monkeypatch.setattr(Pipeline, "commit", cut_off)
        with pytest.raises(OutcomeUnknown, match="may have been done, or not; ask again"):
            store.write(raising(False), Scope("c1"))
        monkeypatch.undo()
        assert number_of(store.read(lambda tx: tx.campaign("c1"))) == number_of(ONE) + 1


def test_an_event_loop_decides_as_threads_do(opener, monkeypatch):
    """Everything that workers ask for, on two stores in turn, with threads that decide in between."""
    monkeypatch.setattr("budgetbandits.service.decisions.SLICE_SECONDS", 60.0)  # also on a busy machine
    with opener() as one, opener() as two:
        engines = [DecisionService(one), DecisionService(two)]
        campaign = engines[0].create("ads", "bts", budget=12.0, arms={"a": 1.0, "b": 0.5, "c": 2.0})

        async def run():
            for number in range(8):
                engine, store = engines[number % 2], (one, two)[number % 2]
                name = campaign if number % 3 else "ads"
                [made] = await store.perform(*engine.decision_task(name, f"key {number}"))
                again, other = await asyncio.gather(
                    store.perform(*engine.decision_task(name, f"key {number}")),
                    store.perform(*engine.decision_task(name, f"key {number}", {"another": "context"})),
                    return_exceptions=True,
                )
                assert again == [made]
                assert isinstance(other, Conflict)
                if number == 3:
                    await store.perform(*engine.void_task(made.decision, name))
                    continue
                outcomes = [FeedbackReport(made.decision, 1.0, made.hold / 4), FeedbackReport("nothing", 1.0, 0.1)]
                booked, problem = await store.perform(*engine.feedback_many_task(outcomes, name))
                assert booked.cost_is_new
                assert isinstance(problem, NotFound)
                assert engines[1 - number % 2].decide("ads", f"thread {number}") is not None
                engine.void(engine.decide("ads", f"thread {number}").decision)
            # a batch that is refused has written before, and takes nobody else's work along
            many = [(f"batch {number}", "") for number in range(100)]
            batch, single = await asyncio.gather(
                one.perform(*engines[0].decisions._slice_task(campaign, many, 0, None, None)),
                one.perform(*engines[0].decision_task(campaign, "single")),
                return_exceptions=True,
            )
            assert isinstance(batch, BatchRefused)
            assert single[0].hold in (0.5, 1.0, 2.0)
            with pytest.raises(NotFound):
                await two.perform(*engines[1].decision_task("no such campaign", "key"))
            with pytest.raises(NotFound):
                await two.perform(*engines[1].decision_task("f" * 32, "key"))

        asyncio.run(run())
        assert verify(one, campaign) == []
        assert engines[0].account(campaign).spent > 0


@pytest.mark.parametrize(
    "name", ["n" * 31, "n" * 32, "n" * 33, "n" * 36, "a" * 31, "A" * 32, "a" * 33, "a" * 36, "é" * 32], ids=ascii
)
def test_a_campaign_is_found_by_a_name_of_any_length(opener, name):
    """Ids have 32 characters, which are no reason to take a name for one; nor are digits in another number."""
    with opener() as store:
        engine = DecisionService(store)
        engine.create(name, "bts", 10.0, {"a": 1.0, "b": 1.0})

        async def run():
            with pytest.raises(NotFound):  # nor is what is not there taken for it
                await store.perform(*engine.decision_task(f"{name[:-1]}0", "key"))
            [made] = await store.perform(*engine.decision_task(name, "key"))
            booked = await store.perform(*engine.feedback_task(FeedbackReport(made.decision, 1.0, 0.5), name))
            assert booked.cost_is_new
            assert len(await engine.decisions.decide_many_in_loop(name, "batch", 3)) == 3

        asyncio.run(run())
        assert engine.account(name).held == 3_000_000


def test_a_postgres_decision_takes_two_round_trips_and_many_at_once_no_more(postgres, trips):
    with postgres() as store:
        engine = DecisionService(store)
        campaign = engine.create("ads", "bts", budget=1e6, arms={"a": 1.0, "b": 0.5})

        async def decide(count, name):
            tasks = [engine.decision_task(campaign, f"{name} {number}") for number in range(count)]
            return [made for [made] in await asyncio.gather(*(store.perform(*task) for task in tasks))]

        async def play():
            await decide(1, "first")  # reads the arms as well
            for count in (1, 20):
                trips.clear()
                made = await decide(count, count)
                assert len(trips) == 2
                assert trips[1].count("WITH decision") == trips[1].count("UPDATE campaign") == 1
                trips.clear()
                told = [engine.feedback_task(FeedbackReport(each.decision, 1.0, 0.25), campaign) for each in made]
                await asyncio.gather(*(store.perform(*task) for task in told))
                assert len(trips) == 2
                assert trips[1].count("UPDATE decision") == count
                assert trips[1].count("UPDATE campaign") == 1

        asyncio.run(play())
        assert verify(store, campaign) == []


def test_clients_of_a_postgres_server_come_to_share_their_commits(postgres, trips):
    """A client that was just answered and asks again goes together with those that have waited: a commit for all."""
    with postgres() as store:
        engine = DecisionService(store)
        campaign = engine.create("ads", "bts", budget=1e6, arms={"a": 1.0, "b": 0.5})

        async def ask(client, count):
            for number in range(count):
                await store.perform(*engine.decision_task(campaign, f"{client} {number}"))
                for _ in range(3):  # rounds in which an answer is sent and the next request is read
                    await asyncio.sleep(0)

        async def play():
            first = asyncio.create_task(ask("first", 25))
            while not trips:  # the first is under way by itself
                await asyncio.sleep(0)
            await asyncio.gather(first, *(ask(f"client {number}", 25) for number in range(3)))

        asyncio.run(play())
        assert (
            25 <= sum(trip[-1] == "COMMIT" for trip in trips) <= 30
        )  # and 50 if the first of them went by itself ever after


def test_feedback_to_a_postgres_server_that_has_fallen_behind_takes_one_round_trip_more(postgres, trips):
    """It reads the arms that others have changed before it writes anything, so nothing must be undone."""
    with postgres() as store, postgres() as other:
        engine = DecisionService(store)
        campaign = engine.create("ads", "bts", budget=1e6, arms={f"arm {n}": 1.0 for n in range(40)})

        async def play():
            made = [(await store.perform(*engine.decision_task(campaign, f"key {n}")))[0] for n in range(3)]
            DecisionService(other).feedback(made[0].decision, reward=1.0, cost=0.25)
            trips.clear()
            told = [engine.feedback_task(FeedbackReport(each.decision, 1.0, 0.25), campaign) for each in made[1:]]
            await asyncio.gather(*(store.perform(*task) for task in told))

        asyncio.run(play())
        assert [len(trips), trips[1], trips[2][-1]] == [3, ["SELECT arm"], "COMMIT"]
        assert verify(store, campaign) == []


def test_an_event_loop_that_stands_still_loses_its_postgres_transaction(tmp_path, impatient):
    with STORES["postgres"](tmp_path) as opener, opener() as stopped, opener() as other:
        engine = DecisionService(stopped)
        campaign = engine.create("ads", "bts", budget=10.0, arms={"a": 1.0, "b": 0.5})

        def stands_still(tx):
            row = tx.campaign(campaign)
            taken = threading.Thread(target=lambda: DecisionService(other).top_up(campaign, 5.0))
            taken.start()
            taken.join(10.0)
            tx.save_money(row.with_money(replace(row.account, budget=99_000_000)))

        async def run():
            with pytest.raises(StoreError, match="ask again; nothing was decided"):
                await stopped.perform(stands_still, Scope(campaign))
            return await stopped.perform(*engine.decision_task(campaign, "after"))

        assert asyncio.run(run())
        assert engine.account(campaign).budget == 15_000_000
        assert verify(other, campaign) == []


def test_an_event_loop_notices_that_a_postgres_has_dropped_its_connections(tmp_path):
    """Those that did nothing are opened again unseen; what was under way is told to ask again."""
    with STORES["postgres"](tmp_path) as opener, opener() as store:
        import psycopg

        engine = DecisionService(store)
        campaign = engine.create("ads", "bts", budget=10.0, arms={"a": 1.0, "b": 0.5})

        def drop_all(tx=None):
            with psycopg.connect(opener.keywords["url"]) as connection:
                connection.execute(
                    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid != pg_backend_pid() "
                    "AND datname = current_database() AND (query LIKE '%COMMIT%' OR state = 'idle in transaction')"
                )
            if tx is not None:
                tx.save_money(tx.campaign(campaign))

        async def run():
            await store.perform(*engine.decision_task(campaign, "one"))
            drop_all()
            await store.perform(*engine.decision_task(campaign, "two"))
            with pytest.raises(StoreError, match="ask again"):
                await store.perform(drop_all, Scope(campaign))
            await store.perform(*engine.decision_task(campaign, "three"))

        asyncio.run(run())
        assert len(all_decisions(store, campaign)) == 3
        assert verify(store, campaign) == []


def test_what_a_database_refuses_an_event_loop_is_refused_alone(filled):
    broken = object.__new__(Account)
    numbers = dict.fromkeys(["overrun", "day", "today", "leased", "requests_used", "period", "advance"], 0)
    for name, value in ({"budget": 1, "spent": 1, "held": 1} | numbers).items():
        object.__setattr__(broken, name, value)
    broken.status = "active"

    def good(tx):
        row = tx.campaign("ads")
        tx.save_campaign(numbered(row, number_of(row) + 1))

    async def run():
        works = [good, lambda tx: tx.save_money(replace(tx.campaign("ads"), account=broken)), good]
        return await asyncio.gather(*(filled.perform(work, Scope("ads")) for work in works), return_exceptions=True)

    first, refused, last = asyncio.run(run())
    assert (first, last) == (None, None)
    assert isinstance(refused, StoreError)
    assert "refused" in str(refused)
    assert filled.read(lambda tx: tx.campaign("c1")) == numbered(ONE, number_of(ONE) + 2)


def test_no_transaction_in_postgres_is_about_two_campaigns(tmp_path):
    """Locks of one campaign at a time cannot make a circle, whatever other servers lock."""
    with STORES["postgres"](tmp_path) as opener, opener() as store:
        writers = len(store._writers)
        gate, begun = threading.Event(), threading.Semaphore(0)

        def number(tx):
            return tx.ask("SELECT pg_current_xact_id()::text").fetchone()[0]

        def wait(tx):
            begun.release()
            gate.wait(30.0)

        waiting = [store.submit(wait, Scope(f"busy {n}")) for n in range(writers)]
        for _ in waiting:
            begun.acquire()
        abouts = ["a", "b", "c", "d", ""] * 8
        futures = [(about, store.submit(number, Scope(about))) for about in abouts]
        gate.set()
        seen = [(future.result(30.0), about) for about, future in futures]
        of = {transaction: {about for other, about in seen if other == transaction} for transaction, _ in seen}
        assert all(len(abouts) == 1 for abouts in of.values())
        assert len(of) == 4 + 8  # what is about the same campaign went together; what is about none, alone


def test_servers_on_one_postgres_never_deadlock(tmp_path, monkeypatch):
    """Two stores, eight campaigns, each group of requests in another order."""
    again = []
    with STORES["postgres"](tmp_path) as opener, opener() as one, opener() as two:
        writer = type(one._writers[0])
        monkeypatch.setattr(writer, "is_retryable", lambda self, error: again.append(error) or True)
        engines = [DecisionService(one), DecisionService(two)]
        arms = {"a": 1.0, "b": 0.5}
        campaigns = [engines[0].create(f"campaign {n}", "bts", budget=1e6, arms=arms) for n in range(8)]

        async def client(engine, store, name):
            for number in range(25):
                campaign = campaigns[(name * 5 + number * 3) % 8]
                [answer] = await store.perform(*engine.decision_task(campaign, f"{name}-{number}"))
                await store.perform(*engine.feedback_task(FeedbackReport(answer.decision, 1.0, 0.25), campaign))

        async def clients(engine, store, first):
            await asyncio.gather(*(client(engine, store, first + n) for n in range(12)))

        in_threads(lambda run: asyncio.run(clients(*run)), [(engines[0], one, 0), (engines[1], two, 12)])
        assert again == []
        assert sum(engines[0].account(campaign).spent for campaign in campaigns) == 24 * 25 * 250_000
        assert all(verify(one, campaign) == [] for campaign in campaigns)


def test_the_same_feedback_from_many_threads_is_booked_once(store):
    """Between reading a decision and booking it nobody else may have booked it."""
    engine = DecisionService(store)
    campaign = engine.create("ads", "bts", budget=100.0, arms={"a": 1.0, "b": 1.0})
    decisions = [engine.decide(campaign, str(n)).decision for n in range(20)]

    def tell(_):
        for decision in decisions:
            engine.feedback(decision, reward=1.0, cost=0.5)

    in_threads(tell, range(6))
    assert engine.account(campaign).spent == 10_000_000
    assert verify(store, campaign) == []


def test_a_decision_at_hand_is_the_one_in_the_database(opener):
    """Two that write the same database: what one has made the other may have told, and what was undone is gone."""
    with opener() as one, opener() as two:
        one.write(lambda tx: tx.add_campaign(ONE))
        one.write(lambda tx: tx.add_decision(MADE))
        assert one.write(lambda tx: tx.decision("d1")) == MADE
        told = replace(MADE, hold=Hold(50, "settled", 30, 0, True, 10.0), cost=30, reward=0.5)
        two.write(lambda tx: tx.save_decision(told))
        assert one.write(lambda tx: tx.decision("d1")) == told

        def undone(tx):
            tx.add_decision(replace(MADE, id="d2", key="k2"))
            raise NotFound("after all")

        with pytest.raises(NotFound):
            one.write(undone)
        assert one.write(lambda tx: tx.decision("d2")) is None


def test_a_writer_keeps_a_number_of_decisions_at_hand(opener, monkeypatch):
    monkeypatch.setattr("budgetbandits.service.stores.group_commit.OPEN_DECISIONS_MAX", 3)
    made = [replace(MADE, id=f"d{n}", key=f"k{n}") for n in range(8)]
    with opener() as store:
        store.write(lambda tx: (tx.add_campaign(ONE), [tx.add_decision(each) for each in made], None)[-1])
        assert store.write(lambda tx: [tx.decision(each.id) for each in made]) == made


@pytest.mark.parametrize("status", ["paused", "frozen", "active"])
def test_a_new_status_is_written(opener, status):
    with opener() as store:
        store.write(lambda tx: tx.add_campaign(ONE))
        for save in ("save_money", "save_campaign"):
            for each in ("closed", status):  # the second time it is at hand
                row = replace(ONE, account=replace(ONE.account, status=each))
                store.write(lambda tx, row=row, save=save: (tx.campaign("c1"), getattr(tx, save)(row))[-1])
                assert store.read(lambda tx: tx.campaign("c1")).account.status == each


OPTIONAL = {"cost": 7, "reward": 0.5, "lease": "l1", "request": "{}", "propensity": 0.25, "failed": True}


@pytest.mark.parametrize("field", OPTIONAL)
def test_every_optional_column_of_a_decision_is_kept(filled, field):
    made = replace(MADE, id="d2", key="other", **{field: OPTIONAL[field]})
    filled.write(lambda tx: tx.add_decision(made))
    assert getattr(filled.read(lambda tx: tx.decision("d2")), field) == OPTIONAL[field]


def test_feedback_changes_nothing_else_of_a_decision():
    assert {each.name for each in fields(DecisionRow) if each.default is not MISSING} == OPTIONAL.keys()
    made = replace(MADE, **OPTIONAL)
    hold = Hold(50, "settled", 5, placed_at=10.0)
    assert made.with_feedback(hold, 5, 0.75) == replace(made, hold=hold, cost=5, reward=0.75)
