"""Several processes of one server: they are asked for their metrics as one, replaced when killed, and stopped together.

All but the first tests need a PostgreSQL (``make postgres``).
"""

import contextlib
import json
import os
import signal
import threading
import time

import httpx
import psutil
import pytest
from prometheus_client.parser import text_string_to_metric_families

from budgetbandits.client import Client
from budgetbandits.errors import BudgetBanditsError
from budgetbandits.service.audit.audit import verify
from budgetbandits.service.http import workers
from budgetbandits.service.http.metrics import joined
from budgetbandits.service.http.workers import Peers
from servers import admin_key, free_port, serving
from stores import STORES, all_decisions


def test_each_process_is_asked_and_one_that_does_not_answer_is_left_out(monkeypatch):
    monkeypatch.setattr(workers, "ASK_SECONDS_MAX", 0.2)
    peers, long = Peers(3), b"x" * 500_000
    threading.Thread(target=peers.answer, args=(1, lambda: long), daemon=True).start()
    for _ in range(3):
        assert peers.answers(0, lambda: b"mine") == {0: b"mine", 1: long}
    # the third was only slow to start: it drops what nobody waits for any more, and answers what comes
    threading.Thread(target=peers.answer, args=(2, lambda: b"late"), daemon=True).start()
    assert peers.answers(0, lambda: b"mine") == {0: b"mine", 1: long, 2: b"late"}


def test_the_pages_of_processes_are_one_page_with_a_label():
    page = b"""# HELP a_total How many.
# TYPE a_total counter
a_total{kind="x\\"y"} 3.0
# HELP h_seconds How long.
# TYPE h_seconds histogram
h_seconds_bucket{le="0.1"} 1.0
h_seconds_bucket{le="+Inf"} 2.0
h_seconds_count 2.0
h_seconds_sum 0.5
"""
    both = joined({0: page, 3: page}).decode()
    assert both.count("# TYPE a_total counter") == both.count("# HELP h_seconds How long.") == 1
    samples = {
        (sample.name, *sorted(sample.labels.items())): sample.value
        for family in text_string_to_metric_families(both)
        for sample in family.samples
    }
    assert len(samples) == 10
    assert samples["a_total", ("kind", 'x"y'), ("worker", "3")] == 3.0
    assert samples["h_seconds_bucket", ("le", "0.1"), ("worker", "0")] == 1.0


# --- real processes on a real PostgreSQL -----------------------------------------------------------------------------


@contextlib.contextmanager
def served_by(folder, count):
    """The address of a server of so many processes, its key, its parent process, and what opens its store."""
    with STORES["postgres"](folder) as opener:
        port = free_port()
        server = serving(folder, port, opener.keywords["url"], options=("--workers", str(count)))
        try:
            yield f"http://127.0.0.1:{port}", admin_key(folder), server, opener
        finally:
            for each in [*children(server), server]:
                with contextlib.suppress(psutil.NoSuchProcess, ProcessLookupError):
                    each.kill()
            server.wait()


def children(server):
    """The processes that serve, in the order in which they were started."""
    with contextlib.suppress(psutil.NoSuchProcess):
        found = psutil.Process(server.pid).children()
        return [each for each in found if any("spawn_main" in word for word in each.cmdline())]
    return []


def until(true, seconds=180.0):
    end = time.monotonic() + seconds
    while not (answer := true()):
        assert time.monotonic() < end, "not in time"
        time.sleep(0.05)
    return answer


def logged(folder, event):
    lines = (folder / "said").read_text().splitlines()
    return [entry for line in lines if line.startswith("{") and (entry := json.loads(line))["event"] == event]


def samples(base, key, name):
    page = httpx.get(f"{base}/metrics", headers={"Authorization": f"Bearer {key}"}, timeout=30.0).text
    found = [s for family in text_string_to_metric_families(page) for s in family.samples if s.name == name]
    assert len({tuple(sorted(s.labels.items())) for s in found}) == len(found)
    return {s.labels.get("worker"): s.value for s in found}


@contextlib.contextmanager
def load(base, key, campaign, count=4):
    """Programs that decide and settle until the end of the block; the ids of decisions that were answered, by key."""
    over, answered, failures = threading.Event(), {}, []

    def work(name):
        number = 0
        while not over.is_set():
            with Client(base, key, timeout=30.0) as client:  # a new connection, which any process may take
                for _ in range(5):
                    number += 1
                    try:
                        d = client.decide(campaign, key=f"{name} {number}")
                        answered[f"{name} {number}"] = d.id
                        d.settle(cost=0.25, reward=1.0)
                    except BudgetBanditsError as error:
                        failures.append(error)

    threads = [threading.Thread(target=work, args=(name,)) for name in range(count)]
    for each in threads:
        each.start()
    try:
        yield answered, failures
    finally:
        over.set()
        for each in threads:
            each.join(60.0)


def check_books(opener, campaign, answered):
    with opener() as store:
        kept = {made.id for made in all_decisions(store, campaign)}
        assert set(answered.values()) <= kept
        account = store.read(lambda tx: tx.campaign(campaign).account)
        assert account.spent + account.held <= account.budget
        assert verify(store, campaign) == []


@pytest.mark.crashes
def test_postgres_workers_killed_under_load_are_replaced_and_lose_nothing(tmp_path):
    with served_by(tmp_path, 2) as (base, key, server, opener):
        with Client(base, key) as client:
            client.create("ads", 1e6, {"a": 1.0, "b": 0.5})
            client.create("short", 10.0, {"a": 1.0, "b": 0.5}, hold_seconds=1.0)
        until(lambda: len(logged(tmp_path, "serving")) == 2)
        with load(base, key, "ads") as (answered, failures):
            for round in range(4):
                before, seen = children(server), len(answered)
                assert len(before) == 2
                before[round % 2].kill()  # -9; the first one does the background work
                until(lambda: len(logged(tmp_path, "serving")) == 3 + round)  # noqa: B023
                until(lambda: len(answered) > seen + 20)  # noqa: B023
        assert failures == []  # each was asked again under its key
        assert [each["exitcode"] for each in logged(tmp_path, "worker ended")] == [-signal.SIGKILL] * 4
        check_books(opener, "ads", answered)
        with Client(base, key) as client:
            client.decide("short")
            until(lambda: client.campaign("short").held == 0.0)  # expired by the process that took over
            assert set(samples(base, key, "process_start_time_seconds")) == {"0", "1"}
        server.terminate()
        assert server.wait(30) == 0


@pytest.mark.crashes
def test_postgres_workers_are_replaced_one_by_one_without_refusing_anybody(tmp_path):
    """SIGHUP, as after an upgrade: no connection is refused or cut, though nobody asks twice."""
    with served_by(tmp_path, 2) as (base, key, server, opener):
        with Client(base, key) as client:
            client.create("ads", 1e6, {"a": 1.0, "b": 0.5})
        until(lambda: len(logged(tmp_path, "serving")) == 2)
        before = {each.pid for each in children(server)}
        over, statuses = threading.Event(), []

        def ask(name):
            number, headers = 0, {"Authorization": f"Bearer {key}"}
            while not over.is_set():
                number += 1
                answer = httpx.post(
                    f"{base}/v1/campaigns/ads/decisions",
                    json={},
                    headers=headers | {"Idempotency-Key": f"{name} {number}"},
                )
                statuses.append(answer.status_code)

        threads = [threading.Thread(target=ask, args=(name,)) for name in range(3)]
        for each in threads:
            each.start()
        try:
            server.send_signal(signal.SIGHUP)
            until(lambda: len(logged(tmp_path, "worker replaced")) == 2)
            seen = len(statuses)
            until(lambda: len(statuses) > seen + 20)
        finally:
            over.set()
            for each in threads:
                each.join()
        assert set(statuses) == {201}
        after = {each.pid for each in children(server)}
        assert len(after) == 2
        assert not before & after
        assert logged(tmp_path, "worker ended") == []
        with opener() as store:
            assert len(all_decisions(store, "ads")) == len(statuses)


def test_postgres_workers_count_together_and_stop_with_their_parent(tmp_path):
    with served_by(tmp_path, 2) as (base, key, server, _):
        until(lambda: len(logged(tmp_path, "serving")) == 2)
        with Client(base, key) as client:
            client.create("ads", 1e6, {"a": 1.0, "b": 0.5})
        with load(base, key, "ads") as (answered, failures):
            until(lambda: len(answered) > 60)
        assert failures == []
        counts = samples(base, key, "budgetbandits_decisions_total")
        assert set(counts) == {"0", "1"}
        assert sum(counts.values()) == len(answered)
        assert min(counts.values()) > 0  # both have served
        tasks = {
            (s.labels["task"], s.labels["worker"])
            for family in text_string_to_metric_families(until(lambda: _page_with(base, key, 'task="expire"')))
            for s in family.samples
            if s.name == "budgetbandits_background_success_timestamp_seconds"
        }
        assert {worker for task, worker in tasks if task in ("expire", "notify", "roll up")} == {"0"}
        processes = children(server)
        os.kill(server.pid, signal.SIGKILL)
        _, alive = psutil.wait_procs(processes, 20)
        assert alive == []
        assert [each["event"] for each in logged(tmp_path, "stopped")] == ["stopped"] * 2


def _page_with(base, key, words):
    page = httpx.get(f"{base}/metrics", headers={"Authorization": f"Bearer {key}"}, timeout=30.0).text
    return page if words in page else None
