"""A campaign with a million decisions: the server's memory, and what audits and exports cost its clients meanwhile.

    python benchmarks/long_campaign.py [--decisions 1000000] [--seconds 10]
    bash tests/helpers/with_postgres.sh python benchmarks/long_campaign.py --decisions 100000    # on PostgreSQL instead

The campaign is filled over HTTP in batches. Then eight clients decide and tell, first undisturbed, then while an audit
runs, while two exports run, and while twelve clients ask for exports again and again. Rates are compared within one
run; memory is what the system says is resident.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import multiprocessing
import os
import tempfile
import threading
import time
import urllib.error
import urllib.request
from collections import Counter
from collections.abc import Iterator
from multiprocessing.queues import SimpleQueue
from multiprocessing.synchronize import Event
from pathlib import Path

import psutil  # type: ignore[import-untyped]
import service

BATCH = 1000
CLIENTS = 8


class Memory:
    """The resident memory of the server and of the processes it has started, in MB, watched in a thread."""

    def __init__(self) -> None:
        [self._server] = psutil.Process().children()
        self.of_reader: list[float] = []
        self._over = threading.Event()
        threading.Thread(target=self._watch, daemon=True).start()

    def of_server(self) -> float:
        return float(self._server.memory_info().rss) / 1e6

    def _watch(self) -> None:
        while not self._over.wait(0.1):
            with contextlib.suppress(psutil.Error):
                self.of_reader += [child.memory_info().rss / 1e6 for child in self._server.children()]


def ask(key: str, path: str, body: object = None, name: str = "") -> bytes:
    data = None if body is None else json.dumps(body).encode()
    headers = {"Authorization": f"Bearer {key}", "Content-Type": "application/json"}
    if name:
        headers["Idempotency-Key"] = name
    request = urllib.request.Request(f"http://127.0.0.1:{service.PORT}/v1/campaigns/{path}", data, headers)
    with urllib.request.urlopen(request) as answer:
        return bytes(answer.read())


def fill(key: str, campaign: str, decisions: int, memory: Memory) -> None:
    begun, batches = time.perf_counter(), decisions // BATCH
    for number in range(batches):
        answer = ask(key, f"{campaign}/decisions/batch", {"count": BATCH}, f"batch {number}")
        ids = [decision["decision"] for decision in json.loads(answer)["decisions"]]
        outcomes = [{"decision": decision, "reward": float(n % 3 == 0), "cost": 0.5} for n, decision in enumerate(ids)]
        ask(key, f"{campaign}/feedback", {"outcomes": outcomes})
        if number % max(1, batches // 10) == 0:
            print(f"{number * BATCH:>12,} decisions: the server has {memory.of_server():.0f} MB", flush=True)
    print(f"{decisions:>12,} decisions in {time.perf_counter() - begun:.0f} s", flush=True)


def verify(key: str, campaign: str) -> str:
    verdict = json.loads(ask(key, f"{campaign}/verify"))
    assert verdict["agrees"], verdict
    return "done"


def export(key: str, campaign: str) -> str:
    address = f"http://127.0.0.1:{service.PORT}/v1/campaigns/{campaign}/export"
    request = urllib.request.Request(address, headers={"Authorization": f"Bearer {key}"})
    try:
        with urllib.request.urlopen(request) as answer:
            while answer.read(1 << 18):
                pass
    except urllib.error.HTTPError as error:
        time.sleep(0.1)
        return str(error.code)
    return "done"


JOBS = {"an audit": (1, verify), "two exports": (2, export), "twelve ask for exports": (12, export)}


def repeat(name: str, key: str, campaign: str, port: int, over: Event, answers: SimpleQueue[str]) -> None:
    """Do this in this many threads, again and again, in a process of its own."""
    service.PORT = port
    threads, job = JOBS[name]

    def run() -> None:
        while not over.is_set():
            answers.put(job(key, campaign))

    running = [threading.Thread(target=run) for _ in range(threads)]
    for thread in running:
        thread.start()
    for thread in running:
        thread.join()


@contextlib.contextmanager
def meanwhile(name: str, key: str, campaign: str) -> Iterator[Counter[str]]:
    """Others do this; in the end the counter has what was answered."""
    over, counts = multiprocessing.Event(), Counter[str]()
    answers: SimpleQueue[str] = multiprocessing.SimpleQueue()
    others = multiprocessing.Process(target=repeat, args=(name, key, campaign, service.PORT, over, answers))
    others.start()
    yield counts
    over.set()
    while others.is_alive() or not answers.empty():
        if answers.empty():
            time.sleep(0.05)
        else:
            counts[answers.get()] += 1


def measure(key: str, campaign: str, seconds: float, memory: Memory) -> None:
    print(f"{'':24} pairs/s   of alone   median ms   p99 ms   (of a request, {CLIENTS} clients)")
    for name in JOBS:
        alone = load(key, campaign, seconds)  # measured again each time: the machine may have other work
        show("alone", alone, alone)
        with meanwhile(name, key, campaign) as answers:
            time.sleep(2.0)  # the processes have started
            during = load(key, campaign, seconds)
        show(name, during, alone)
        print(f"{'':24} answers to them: {dict(answers)}")
    memory.of_reader.clear()
    begun = time.perf_counter()
    verify(key, campaign)
    took, watched = time.perf_counter() - begun, memory.of_reader
    first, most = max(watched[:10]), max(watched)
    print(f"an audit alone: {took:.0f} s, {first:.0f} MB in the first second, {most:.0f} MB at most")
    print(f"the server has {memory.of_server():.0f} MB")


def load(key: str, campaign: str, seconds: float) -> service.Load:
    return asyncio.run(service.drive(service.pair, key, [campaign], CLIENTS, seconds, [service.PORT]))


def show(name: str, load: service.Load, alone: service.Load) -> None:
    print(f"{name:24} {load.rate:7.0f} {load.rate / alone.rate:10.2f} {load.median:11.2f} {load.p99:8.2f}", flush=True)


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--decisions", type=int, default=1_000_000)
    options.add_argument("--seconds", type=float, default=10.0)
    options.add_argument("--port", type=int, default=service.PORT)
    given = options.parse_args()
    service.PORT = given.port
    with tempfile.TemporaryDirectory() as folder:
        store = os.environ.get(service.POSTGRES, str(Path(folder) / "money.db"))
        with service.server(store, given.port) as key:
            memory = Memory()
            campaign = service.create(key, "long", 10)
            fill(key, campaign, given.decisions, memory)
            measure(key, campaign, given.seconds, memory)


if __name__ == "__main__":
    main()
