"""A real server that is asked for many long reads while workers decide. `make attack` runs these."""

import contextlib
import signal
import threading
import time

import httpx
import psutil
import pytest

from budgetbandits.client import Client
from budgetbandits.errors import ServerBusy
from budgetbandits.service.audit.audit import verify
from budgetbandits.service.feedback import FeedbackReport
from budgetbandits.service.http.auth import make_key
from budgetbandits.service.service import DecisionService
from servers import free_port, serving

pytestmark = pytest.mark.attack

SECONDS = 4.0


def fill(store, batches):
    engine = DecisionService(store)
    engine.create("ads", "bts", budget=1e9, arms={"a": 1.0, "b": 0.5})
    for batch in range(batches):
        made = engine.decide_many("ads", f"batch {batch}", 1000)
        engine.feedback_many("ads", [FeedbackReport(each.decision, float(n % 2), 0.25) for n, each in enumerate(made)])


@pytest.fixture
def server(opener, tmp_path):
    """A server with a campaign of two thousand decisions: the process, its address and a key."""
    with opener() as store:
        fill(store, 2)
        key, address = make_key(store, ["admin"], 0.0), store.address
    port = free_port()
    process = serving(tmp_path, port, address)
    yield process, f"http://127.0.0.1:{port}", key
    process.kill()
    process.wait()


def pairs(url, key):
    """How long each pair took of somebody who decides and tells for some seconds."""
    delays, end = [], time.monotonic() + SECONDS
    with Client(url, key) as client:
        while time.monotonic() < end:
            begun = time.monotonic()
            with client.decide("ads") as made:
                made.settle(cost=0.25, reward=1.0)
            delays.append(time.monotonic() - begun)
    return delays


def test_twelve_who_export_do_not_stop_those_who_decide(server, opener):
    _, url, key = server
    alone = pairs(url, key)
    over, exported = threading.Event(), {"whole": 0, "busy": 0}

    def export():
        while not over.is_set():
            answer = http.get(f"{url}/v1/campaigns/ads/export")
            assert answer.status_code == 200 or answer.headers["retry-after"]
            exported["whole" if answer.status_code == 200 else "busy"] += 1
            time.sleep(0.25)

    http = httpx.Client(headers={"Authorization": f"Bearer {key}"}, timeout=60.0)
    threads = [threading.Thread(target=export) for _ in range(12)]
    for thread in threads:
        thread.start()
    delays = pairs(url, key)
    over.set()
    for thread in threads:
        thread.join()
    http.close()
    assert exported["whole"] > 0
    assert exported["busy"] > 0
    assert max(delays) < 2.0  # it would be five, or an error, if exports took all connections
    assert len(delays) > len(alone) / 10  # they share two processors with the exports and those who ask for them
    with opener() as store:
        assert verify(store, "ads") == []


def reader_of(process):
    """The process that reads for a server, once it is one: stopped before that, it would stop the server with it."""
    while True:
        for child in psutil.Process(process.pid).children():
            with contextlib.suppress(psutil.Error):
                if "budgetbandits.service.audit.reader" in child.cmdline():
                    return child
        time.sleep(0.01)


def test_a_server_stops_while_an_audit_stands_still(server):
    process, url, key = server
    answers = []

    def ask():
        try:
            answers.append(httpx.get(f"{url}/v1/campaigns/ads/verify", headers={"Authorization": f"Bearer {key}"}))
        except httpx.TransportError as error:
            answers.append(error)

    asking = threading.Thread(target=ask)
    asking.start()
    reader = reader_of(process)
    reader.suspend()
    with Client(url, key, deadline=1.0) as client, pytest.raises(ServerBusy):
        client.verify("ads")
    begun = time.monotonic()
    process.send_signal(signal.SIGTERM)
    process.wait(10.0)
    assert time.monotonic() - begun < 3.0
    asking.join()
    assert not reader.is_running()
    assert answers[0].status_code == 503


def test_an_audit_ends_when_its_server_is_killed(server):
    process, url, key = server
    readers = []

    def kill():
        readers.append(reader_of(process))
        process.kill()

    killing = threading.Thread(target=kill)
    killing.start()
    with pytest.raises(httpx.TransportError):
        httpx.get(f"{url}/v1/campaigns/ads/verify", headers={"Authorization": f"Bearer {key}"}, timeout=60.0)
    killing.join()
    psutil.wait_procs(readers, timeout=5.0)
    assert not readers[0].is_running()
