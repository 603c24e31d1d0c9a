"""Audits and exports: in little memory, a few at once, ended when nobody wants them, and never in the way."""

import asyncio
import contextlib
import errno
import io
import json
import os
import sqlite3
import subprocess
import threading
import tracemalloc
from functools import partial

import httpx
import polars
import pytest

from budgetbandits.errors import DiskFull, StoreError
from budgetbandits.service.audit import audit, export
from budgetbandits.service.audit.audit import verify
from budgetbandits.service.audit.open_decisions import OpenDecision, OpenDecisions
from budgetbandits.service.audit.reader import Job
from budgetbandits.service.feedback import FeedbackReport
from budgetbandits.service.http import subprocess_reads
from budgetbandits.service.http.auth import KeyRing, make_key
from budgetbandits.service.http.subprocess_reads import LongReads
from budgetbandits.service.ledger import Hold
from budgetbandits.service.service import DecisionService
from budgetbandits.service.stores import open_store
from budgetbandits.service.stores.sqlite import IDLE_READERS_MAX, SQLiteStore
from called import Service, sent
from clock import Clock
from memory_store import MemoryStore
from reads_here import ReadsHere

ARMS = {"a": 1.0, "b": 0.5}


def filled(engine, batches, count=1000, reward=True):
    """A campaign whose decisions are all told."""
    engine.create("ads", "bts", budget=1e6, arms=ARMS)
    for batch in range(batches):
        made = engine.decide_many("ads", f"batch {batch}", count)
        outcomes = [
            FeedbackReport(each.decision, float(n % 3 == 0) if reward else None, 0.25) for n, each in enumerate(made)
        ]
        engine.feedback_many("ads", outcomes)


def of_every_kind(engine):
    """A campaign with decisions in every state; gives their ids."""
    engine.create("ads", "bts", budget=100.0, arms=ARMS, hold_seconds=10.0)
    made = {}
    for kind in ("expired", "expired, told", "pending", "rewarded", "settled", "told", "voided"):
        made[kind] = [each.decision for each in engine.decide_many("ads", kind, 3)]
        if kind == "expired, told":
            engine._clock.now += 20.0
            assert engine.expire_due() == {"ads": 6}
    for kind, outcome in {"expired, told": (1.0, 0.25), "rewarded": (1.0, None), "settled": (None, 0.25),
                          "told": (0.0, 0.5)}.items():  # fmt: skip
        engine.feedback_many("ads", [FeedbackReport(decision, *outcome) for decision in made[kind]])
    for decision in made["voided"]:
        engine.void(decision)
    return made


# --- audits ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("most", [1, 4, 1000])
def test_an_audit_finds_every_wrong_row_wherever_it_is_remembered(store, monkeypatch, most):
    monkeypatch.setattr(audit, "OpenDecisions", partial(OpenDecisions, size=most))
    made = of_every_kind(DecisionService(store, Clock(1e9)))
    assert verify(store, "ads") == []
    for ids in made.values():
        row = store.read(lambda tx, id=ids[1]: tx.decision(id))
        store.write(lambda tx, row=row: tx.save_decision(row.with_feedback(row.hold, row.cost, 0.125)))
        [difference] = verify(store, "ads")
        assert ids[1] in difference
        store.write(lambda tx, row=row: tx.save_decision(row))
    assert verify(store, "ads") == []


def test_an_audit_while_decisions_are_made_and_told(store):
    """What is told while the events are replayed is ahead of the replay, not wrong."""
    engine = DecisionService(store)
    filled(engine, 1, 300)
    made = [each.decision for each in engine.decide_many("ads", "late", 50)]

    def tell(done, _last):
        if done and made:
            engine.feedback(made.pop(), cost=0.25, reward=1.0)
            engine.feedback(made.pop(), cost=0.25)
            engine.decide("ads", f"new {len(made)}")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("budgetbandits.service.audit.slices.ROWS_READ", 50)
        assert verify(store, "ads", tell) == []
    assert len(made) < 50
    assert verify(store, "ads") == []


def test_an_audit_tells_how_far_it_is(store, monkeypatch):
    monkeypatch.setattr("budgetbandits.service.audit.slices.ROWS_READ", 50)
    filled(DecisionService(store), 1, 60)
    told = []
    verify(store, "ads", lambda done, last: told.append((done, last)))
    assert len(told) == 3  # of 121 events
    assert told == sorted(told)
    assert told[-1][0] == told[-1][1] == told[0][1]


def test_an_audit_lists_a_thousand_differences_and_counts_the_rest(monkeypatch):
    monkeypatch.setattr(audit, "DIFFERENCES_LISTED_MAX", 10)
    store = MemoryStore()
    filled(DecisionService(store), 1, 30)
    store.decisions = {id: row.with_feedback(row.hold, row.cost, 0.125) for id, row in store.decisions.items()}
    differences = verify(store, "ads")
    assert len(differences) == 11
    assert differences[-1] == "and 20 more"


def test_what_is_not_told_is_remembered_in_memory_or_in_a_file():
    known = {str(n): OpenDecision(Hold(n, "expired", n, 0, n % 2 == 0, 3), None, n / 2) for n in range(100)}
    with OpenDecisions(size=10) as open:
        for id, each in known.items():
            open.put(id, each)
        assert "0" in open
        assert open.take("0") == known.pop("0")
        assert "0" not in open
        with pytest.raises(KeyError):
            open.take("0")
        assert open.take("99") == known.pop("99")
        assert {id: each for chunk in open.chunks() for id, each in chunk.items()} == known


def peak(work):
    """The most memory that Python had while this ran, beside what it had before; in MB."""
    tracemalloc.start()
    try:
        work()
        return tracemalloc.get_traced_memory()[1] / 1e6
    finally:
        tracemalloc.stop()


@pytest.mark.deep
def test_audits_and_exports_take_the_same_memory_however_long_the_campaign_is(tmp_path):
    with SQLiteStore(tmp_path / "money.db") as store:
        filled(DecisionService(store), 4)
        verify(store, "ads")  # imports what it needs
        assert peak(lambda: verify(store, "ads")) < 3.0
        assert peak(lambda: export.export(store, "ads", tmp_path / "made.csv")) < 3.0


def test_no_room_for_what_must_be_remembered(monkeypatch):
    class Full:
        def execute(self, *_):
            raise sqlite3.OperationalError("database or disk is full")

        def close(self):
            pass

    monkeypatch.setattr("budgetbandits.service.audit.open_decisions.sqlite3.connect", lambda *_, **__: Full())
    with OpenDecisions(size=1) as open:
        open.put("1", OpenDecision(Hold(1)))
        with pytest.raises(DiskFull, match="SQLITE_TMPDIR"):
            open.put("2", OpenDecision(Hold(1)))


# --- connections -----------------------------------------------------------------------------------------------------


def open_files():
    return pytest.importorskip("psutil").Process().num_fds()


def test_threads_that_have_ended_leave_no_connections_behind(tmp_path):
    with SQLiteStore(tmp_path / "money.db") as store:
        store.read(lambda tx: tx.keys())
        before = open_files()
        together = threading.Barrier(12)
        for _ in range(5):
            threads = [threading.Thread(target=store.read, args=(lambda tx: together.wait(10.0),)) for _ in range(12)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
        # a file and a log for each that is kept, and what SQLite keeps of others to use again: one for each of a burst
        assert open_files() - before <= 2 * IDLE_READERS_MAX + 12


@pytest.fixture
def no_descriptors():
    """Take all file descriptors that this process may have, but for those it has already."""
    resource = pytest.importorskip("resource")
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    taken = []

    def take():
        resource.setrlimit(resource.RLIMIT_NOFILE, (256, hard))
        with contextlib.suppress(OSError):
            while True:
                taken.append(os.open(os.devnull, os.O_RDONLY))

    yield take
    for each in taken:
        os.close(each)
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_a_reader_without_a_descriptor_is_told_what_to_do(tmp_path, no_descriptors):
    with SQLiteStore(tmp_path / "money.db") as store:
        no_descriptors()
        with pytest.raises(StoreError, match="ulimit -n"):
            store.read(lambda tx: tx.keys())


def test_keys_are_looked_up_while_all_other_readers_are_busy(store):
    key = make_key(store, ["decide"], 0.0)
    go_on, reading = threading.Event(), threading.Semaphore(0)

    def read(_tx):
        reading.release()
        go_on.wait(30.0)

    threads = [threading.Thread(target=store.read, args=(read,)) for _ in range(10)]
    for thread in threads:
        thread.start()
    try:
        for _ in threads:
            reading.acquire()
        assert KeyRing(store).check(key, "decide").scopes == ("decide",)
    finally:
        go_on.set()
        for thread in threads:
            thread.join()


# --- over HTTP -------------------------------------------------------------------------------------------------------


@pytest.fixture
def reading(tmp_path):
    """A service with a campaign of ten decisions, which reads by processes of its own."""
    with SQLiteStore(tmp_path / "money.db") as store:
        service = Service(store, reads=LongReads(store))
        filled(service.engine, 1, 10)
        yield service


def asked(service, path, *messages):
    """What is sent when a server hands on a request of its client, and then these messages."""
    body = {"type": "http.request", "body": b"", "more_body": False}
    return sent(service.app, "GET", path, body, *messages, headers=[("authorization", f"Bearer {service.admin}")])


WAITING = ("/bin/sh", "-c", "exec sleep 60")
"""Instead of a process that reads: one that never begins to answer."""


def test_a_process_of_its_own_reads(store):
    service = Service(store, reads=LongReads(store))
    made = of_every_kind(DecisionService(store, Clock(1e9)))
    verdict = service("GET", "/v1/campaigns/ads/verify")
    parquet = service("GET", "/v1/campaigns/ads/export?format=parquet")
    assert verdict.json() == {"agrees": True, "differences": []}
    assert parquet.headers["content-type"] == "application/vnd.apache.parquet"
    assert parquet.headers["content-disposition"] == 'attachment; filename="decisions.parquet"'
    ids = [id for ids in made.values() for id in ids]
    assert polars.read_parquet(io.BytesIO(parquet.content))["decision"].to_list() == ids
    assert service.engine.account("ads").held > 0


def test_one_audit_and_two_exports_at_once_and_all_end_when_the_server_stops(reading, monkeypatch):
    monkeypatch.setattr(subprocess_reads, "PROGRAM", WAITING)
    reads, headers = reading.reads, {"Authorization": f"Bearer {reading.admin}"}

    async def run():
        async with httpx.AsyncClient(transport=reading, base_url="http://service", headers=headers) as http:
            paths = ["/v1/campaigns/ads/verify", *["/v1/campaigns/ads/export"] * 2]
            begun = [asyncio.create_task(http.get(path)) for path in paths]
            while sum(reads.running.values()) < 3:
                await asyncio.sleep(0.01)
            refused = [await http.get(path) for path in paths[:2]]
            assert [task.done() for task in begun] == [False] * 3
            reads.stopping = True
            return refused, await asyncio.wait_for(asyncio.gather(*begun), 5.0)

    refused, stopped = asyncio.run(run())
    assert [(each.status_code, each.json()["title"]) for each in refused + stopped] == [(503, "ServerBusy")] * 5
    assert all(int(each.headers["retry-after"]) > 0 for each in refused)
    assert all("stopping" in each.json()["detail"] for each in stopped)
    assert not any(reads.running.values())


def test_a_read_ends_when_its_client_has_gone(reading, monkeypatch):
    monkeypatch.setattr(subprocess_reads, "PROGRAM", WAITING)
    asked(reading, "/v1/campaigns/ads/verify", *[{"type": "http.disconnect"}] * 9)
    assert not any(reading.reads.running.values())


@pytest.mark.parametrize("program", [("/bin/sh", "-c", "exit 3"), ("/bin/sh", "-c", "echo '{}'; echo half; exit 3")])
def test_a_process_that_fails_is_never_taken_for_one_that_has_ended(reading, monkeypatch, program):
    monkeypatch.setattr(subprocess_reads, "PROGRAM", program)
    answer = reading("GET", "/v1/campaigns/ads/verify")
    assert (answer.status_code, answer.json()["title"]) == (500, "ServiceError")
    begun, *_, last = asked(reading, "/v1/campaigns/ads/export")
    whole = begun["status"] == 200 and not last.get("more_body", False)
    assert not whole


def test_no_file_descriptors_for_a_process(reading, monkeypatch):
    async def none_left(*_, **__):
        raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))

    monkeypatch.setattr(asyncio, "create_subprocess_exec", none_left)
    answer = reading("GET", "/v1/campaigns/ads/export")
    assert (answer.status_code, answer.json()["title"]) == (503, "ServerBusy")
    assert "ulimit -n" in answer.json()["detail"]
    assert not any(reading.reads.running.values())


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="this system has no /dev/full")
def test_no_room_for_a_temporary_file(monkeypatch):
    monkeypatch.setattr(export.tempfile, "TemporaryFile", lambda: open("/dev/full", "w+b", buffering=0))  # noqa: SIM115
    store = MemoryStore()
    filled(DecisionService(store), 1, 10)
    answer = Service(store, reads=ReadsHereAtOnce(store))("GET", "/v1/campaigns/ads/export?format=parquet")
    assert (answer.status_code, answer.json()["title"]) == (507, "DiskFull")
    assert "TMPDIR" in answer.json()["detail"]


class ReadsHereAtOnce(ReadsHere):
    """Reads all of it before the answer begins, as a process does with the first of it."""

    async def open(self, request, job):
        reading = await super().open(request, job)
        reading.pieces = list(reading.pieces)
        return reading


# --- the program -----------------------------------------------------------------------------------------------------


def start(store, job):
    process = subprocess.Popen(subprocess_reads.PROGRAM, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    process.stdin.write(job.line(store.address))
    process.stdin.flush()
    return process


def test_the_program_ends_when_nobody_wants_its_answer(store):
    """Its output is more than a pipe holds, and nobody takes it. Its input is closed, as when a server is killed."""
    filled(DecisionService(store), 2)
    process = start(store, Job("export", "ads"))
    assert process.stdout.readline() == b"{}\n"
    process.stdin.close()
    assert process.wait(20.0) == 1
    process.stdout.close()


def test_the_program_names_its_errors(store):
    process = start(store, Job("verify", "nothing"))
    assert json.loads(process.stdout.readline())["title"] == "NotFound"
    assert process.wait(20.0) == 0
    process.stdin.close()
    process.stdout.close()


def test_errors_of_a_store_are_not_those_of_polars(monkeypatch, tmp_path):
    store = MemoryStore()
    filled(DecisionService(store), 1, 10)

    def broken(*_):
        raise StoreError("the database cannot be reached; ask again")

    monkeypatch.setattr("memory_store._Memory.decisions", broken)
    with pytest.raises(StoreError, match="cannot be reached"):
        export.export(store, "ads", tmp_path / "made.parquet")


def test_a_store_that_is_closed_is_not_read(opener):
    store = opener()
    address = store.address
    store.close()
    with pytest.raises(StoreError, match="closed"):
        store.read(lambda tx: tx.keys())
    with open_store(address) as again:
        assert again.read(lambda tx: tx.campaigns()) == []
