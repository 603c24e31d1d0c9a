"""Hostile clients against a real server on this machine: whatever they do, others are answered.

Every attack is bounded in count and time. The server may open 1,024 files, as is usual.
"""

import contextlib
import json
import socket
import threading
import time
from pathlib import Path

import httpx
import pytest

from servers import admin_key, free_port, serving

FEW_FILES = "import resource; resource.setrlimit(resource.RLIMIT_NOFILE, (1024, 1024))"

pytestmark = pytest.mark.attack


@pytest.fixture
def server(tmp_path):
    class Served:
        port = free_port()
        process = serving(tmp_path, port, first=FEW_FILES)
        address = f"http://127.0.0.1:{port}"
        headers = {"Authorization": f"Bearer {admin_key(tmp_path)}"}  # noqa: RUF012 - a namespace

        @staticmethod
        def memory():
            """Megabytes that the server has in memory."""
            return int(Path(f"/proc/{Served.process.pid}/statm").read_text().split()[1]) * 4096 / 1e6

        @staticmethod
        def open(source="127.0.0.1"):
            return socket.create_connection(("127.0.0.1", Served.port), timeout=30, source_address=(source, 0))

    yield Served
    Served.process.terminate()
    Served.process.wait(timeout=30)


@contextlib.contextmanager
def bystander(server, path="/healthz", source="127.0.0.7"):
    """Another client, which asks all the time; gives the list of its delays, which a failed request ends."""
    delays, over = [], threading.Event()

    def ask():
        transport = httpx.HTTPTransport(local_address=source)
        with httpx.Client(transport=transport, timeout=60.0, headers=server.headers) as client:
            while not over.is_set():
                begun = time.perf_counter()
                client.get(server.address + path).raise_for_status()
                delays.append(time.perf_counter() - begun)
                over.wait(0.005)

    thread = threading.Thread(target=ask)
    thread.start()
    try:
        yield delays
        assert thread.is_alive(), "a request of the bystander failed"
    finally:
        over.set()
        thread.join()


def late(delays):
    """The delay that one request in a hundred exceeds."""
    assert len(delays) > 20, "the bystander was kept waiting"
    return sorted(delays)[int(len(delays) * 0.99)]


def patience(server, path="/healthz"):
    """How long a request may take during an attack: a moment, or ten times as long as now, on a machine that is busy
    with other things."""
    with bystander(server, path) as delays:
        while len(delays) < 50:
            time.sleep(0.05)
    return max(0.2, 10 * late(delays))


@pytest.mark.parametrize("header", [b"X: " + b"y" * 1_000_000, b"X: yyyy\r\n" * 100_000], ids=["one", "many"])
def test_an_endless_header_stops_nobody(server, header):
    before, moment = server.memory(), patience(server)
    with bystander(server) as delays, contextlib.ExitStack() as stack:
        for _ in range(4):
            connection = stack.enter_context(server.open())
            with contextlib.suppress(ConnectionError):
                connection.sendall(b"GET / HTTP/1.1\r\n" + header)
                for _ in range(40):
                    connection.sendall(header[-1_000_000:])
        more = server.memory() - before
    assert late(delays) < moment
    assert more < 50


def test_bodies_with_very_many_mistakes_stop_nobody(server):
    unknown = {f"f{number}": 1 for number in range(60_000)}
    wrong = {"name": "x", "budget": 1, "arms": dict.fromkeys(unknown, "1")}
    bodies = [json.dumps(body).encode() for body in (unknown, wrong)]  # now: it would keep the bystander waiting
    headers, moment = server.headers | {"Content-Type": "application/json"}, patience(server)
    with bystander(server) as delays, httpx.Client(base_url=server.address, headers=headers) as client:
        for body in bodies * 200:
            assert client.post("/v1/campaigns", content=body).status_code == 422
            if len(delays) > 100:  # so many on a slow machine, and on a quick one
                break
        for path in ("decisions", "feedback", "decisions/d/feedback", "top-up"):
            client.post(f"/v1/campaigns/ads/{path}", content=bodies[0], headers={"Idempotency-Key": "k"})
    assert late(delays) < moment


def test_a_batch_among_very_many_arms_keeps_nobody_waiting(server):
    """A policy that draws every arm for each decision takes seconds."""
    with httpx.Client(base_url=server.address, headers=server.headers, timeout=120.0) as client:
        arms = {f"arm {number}": 1.0 for number in range(50_000)}
        body = {"name": "large", "budget": 1e6, "arms": arms, "policy": "thompson"}
        assert client.post("/v1/campaigns", json=body).status_code == 201
        ask = "/v1/campaigns/large/decisions"
        client.post(ask, headers={"Idempotency-Key": "first"})  # which reads the arms
        with bystander(server, "/readyz") as delays:  # writes and commits as decisions do
            begun = time.perf_counter()
            answer = client.post(f"{ask}/batch", json={"count": 500}, headers={"Idempotency-Key": "many"})
            took = time.perf_counter() - begun
        assert len(answer.json()["decisions"]) == 500
        assert took > 1.0, "too quick to keep anybody waiting"
        assert late(delays) < max(0.2, took / 10)  # on a busy machine a single choice takes as long


def test_requests_that_are_never_finished_do_not_stay(server):
    head = b"POST /v1/campaigns HTTP/1.1\r\nHost: here\r\nContent-Length: 500\r\n"
    with contextlib.ExitStack() as stack:
        halves = [stack.enter_context(server.open()) for _ in range(200)]
        for number, each in enumerate(halves):
            each.sendall(head if number % 2 else head + b"Authorization: Bearer bb_x_y\r\n\r\n{")
        begun = time.monotonic()
        for each in halves:
            with contextlib.suppress(ConnectionError):
                while each.recv(65536):
                    pass
        assert time.monotonic() - begun < 25.0


def test_idle_connections_do_not_shut_others_out(server):
    moment = patience(server, "/readyz")
    with contextlib.ExitStack() as stack:
        for _ in range(1200):
            with contextlib.suppress(ConnectionError):
                stack.enter_context(server.open())
        with bystander(server, "/readyz") as delays:  # which needs the store as well
            time.sleep(2.0)
        assert late(delays) < moment
        with bystander(server, "/v1/campaigns"):
            time.sleep(0.5)
    with httpx.Client(base_url=server.address) as client:
        assert client.get("/readyz").status_code == 200


def test_clients_that_do_not_read_do_not_stay(server):
    """Their answers fill the buffers on the way, and wait in the server."""
    ask = b"GET /openapi.json HTTP/1.1\r\nHost: here\r\n\r\n"
    before = server.memory()
    with contextlib.ExitStack() as stack:
        deaf = [stack.enter_context(server.open()) for _ in range(5)]
        for each in deaf:
            each.setblocking(False)
            with contextlib.suppress(BlockingIOError):
                for _ in range(400):
                    each.send(ask)
        time.sleep(22.0)
        assert server.memory() - before < 100
        for each in deaf:
            with contextlib.suppress(ConnectionError):
                while each.recv(1 << 20):  # a BlockingIOError if the server waits for them still
                    pass
        with httpx.Client(base_url=server.address) as client:
            assert client.get("/readyz").status_code == 200
