"""The effect of one campaign on another: the delay of a stranger's requests, alone and next to a greedy campaign.

    python benchmarks/neighbours.py [--seconds 6] [--clients 4]
    bash tests/helpers/with_postgres.sh python benchmarks/neighbours.py      # on PostgreSQL as well

One server process. The stranger decides and reports on a campaign of two arms, one request after the other. The greedy
clients are a process of their own, and do one of these as fast as they are answered:

- ``draws``: decisions with 64 features, 50 arms and the most ``propensity_draws`` that the server takes;
- ``arms``: decisions of 100 arms without features, and the most draws that the server takes;
- ``segments``: decisions with 64 features and as many arms as the server takes, each naming a new segment while any is
  taken;
- ``batches``: 1,000 decisions under one key, then their outcomes in one request, with two arms;
- ``large batches``: the same with 64 features and 50 arms.

Sizes that the server refuses are lowered until it takes them. Each greedy campaign has learned from some outcomes
before it is measured. The stranger is measured alone before and after each, so the ratios are of one run.
"""

from __future__ import annotations

import argparse
import contextlib
import http.client
import json
import os
import random
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

POSTGRES = "BUDGETBANDITS_POSTGRES"
FEATURES = [f"feature {number}" for number in range(64)]
BATCH = 1000
PAUSE_SECONDS = 0.003
"""Pause between two requests of the stranger, short enough that the server is never idle."""


@dataclass(frozen=True)
class Greed:
    """A greedy campaign: its size and how it is used. ``draws`` is where the search for the most begins."""

    arms: int
    draws: int = 0
    features: bool = False
    segments: bool = False
    batch: bool = False

    def terms(self, arms: int, draws: int) -> dict[str, Any]:
        terms: dict[str, Any] = {"horizon": 1e6} | ({"propensity_draws": draws} if draws else {})
        names = {f"arm {number}": 1.0 for number in range(arms)}
        return {"budget": 1e9, "arms": names, **terms, **({"features": FEATURES} if self.features else {})}


GREEDY = {
    "draws": Greed(arms=50, draws=10_000, features=True),
    "arms": Greed(arms=100, draws=10_000),
    "segments": Greed(arms=60, features=True, segments=True),
    "batches": Greed(arms=2, batch=True),
    "large batches": Greed(arms=50, features=True, batch=True),
}


class Caller:
    """HTTP over one connection that stays open; gives the status and the answer of each request."""

    def __init__(self, port: int, key: str) -> None:
        self._connection = http.client.HTTPConnection("127.0.0.1", port, timeout=600)
        self._head = {"Authorization": f"Bearer {key}", "Content-Type": "application/json"}

    def close(self) -> None:
        self._connection.close()

    def post(self, path: str, body: dict[str, Any]) -> tuple[int, Any]:
        head = self._head | {"Idempotency-Key": os.urandom(8).hex()}
        try:
            self._connection.request("POST", path, json.dumps(body), head)
            answer = self._connection.getresponse()
        except (ConnectionError, http.client.RemoteDisconnected):  # the server has closed it while it was idle
            self._connection.close()
            self._connection.request("POST", path, json.dumps(body), head)
            answer = self._connection.getresponse()
        return answer.status, json.loads(answer.read())


def create(caller: Caller, name: str, greed: Greed) -> tuple[str, int, int]:
    """The largest campaign of this kind that the server takes: its id, its arms and its draws."""
    arms, draws = greed.arms, greed.draws
    while True:
        status, answer = caller.post("/v1/campaigns", {"name": name, **greed.terms(arms, draws)})
        if status == 201:
            return str(answer["id"]), arms, draws
        if draws > 1:
            draws = int(draws / 1.25)
        elif arms > 2:
            arms -= 1
        else:
            raise RuntimeError(answer)


def drive(port: int, key: str, campaign: str, greed: Greed, number: int, over: threading.Event) -> int:
    """One greedy client until it is over; how many requests were answered."""
    caller, lots, count = Caller(port, key), random.Random(number), 0
    path = f"/v1/campaigns/{campaign}"
    while not over.is_set():
        body: dict[str, Any] = {}
        if greed.features:
            body["features"] = {feature: lots.gauss(0.0, 1.0) for feature in FEATURES}
        if greed.segments:
            body["segment"] = f"segment {os.urandom(4).hex()}"
        if greed.batch:
            status, answer = caller.post(f"{path}/decisions/batch", body | {"count": BATCH})
            outcomes = [
                {"decision": decision["decision"], "reward": float(lots.random() < 0.3), "cost": 0.5}
                for decision in answer.get("decisions", ())
            ]
            if status == 201 and not over.is_set():
                caller.post(f"{path}/feedback", {"outcomes": outcomes})
        else:
            status, answer = caller.post(f"{path}/decisions", body)
            if status == 422 and greed.segments:  # no more are taken
                body.pop("segment")
                status, answer = caller.post(f"{path}/decisions", body)
            if status == 201:
                outcome = {"reward": float(lots.random() < 0.3), "cost": 0.5}
                caller.post(f"{path}/decisions/{answer['decision']}/feedback", outcome)
        count += status == 201
    return count


def drive_all(port: int, key: str, campaign: str, kind: str, clients: int) -> None:
    """All greedy clients, as a process of its own: until standard input ends, then says how many were answered."""
    counts, over = list[int](), threading.Event()

    def one(number: int) -> None:
        counts.append(drive(port, key, campaign, GREEDY[kind], number, over))

    threads = [threading.Thread(target=one, args=(number,), daemon=True) for number in range(clients)]
    for thread in threads:
        thread.start()
    sys.stdin.read()
    over.set()
    for thread in threads:
        thread.join(20.0)
    print(sum(counts), flush=True)
    os._exit(0)  # also where a request is not answered yet


def delays(port: int, key: str, campaign: str, seconds: float) -> list[float]:
    """The delays of a stranger's requests, in milliseconds, in order."""
    delays, end, path = list[float](), time.perf_counter() + seconds, f"/v1/campaigns/{campaign}/decisions"
    with contextlib.closing(Caller(port, key)) as caller:
        while time.perf_counter() < end:
            begun = time.perf_counter()
            status, answer = caller.post(path, {})
            delays.append(time.perf_counter() - begun)
            if status != 201:
                raise RuntimeError(answer)
            begun = time.perf_counter()
            caller.post(f"{path}/{answer['decision']}/feedback", {"reward": 1.0, "cost": 0.5})
            delays.append(time.perf_counter() - begun)
            time.sleep(PAUSE_SECONDS)
    return sorted(1e3 * delay for delay in delays)


def share(delays: list[float], part: float) -> float:
    return delays[int(part * (len(delays) - 1))]


@dataclass(frozen=True)
class Delays:
    """A stranger's delays alone and next to a greedy campaign, and how many answers that one got a second."""

    arms: int
    draws: int
    alone: list[float]
    disturbed: list[float]
    rate: float

    @property
    def ratio(self) -> float:
        """Ratio of the delays, disturbed to alone, that one request in a hundred exceeds."""
        return share(self.disturbed, 0.99) / share(self.alone, 0.99)


def measure(port: int, key: str, kind: str, seconds: float, clients: int) -> Delays:
    """One kind of greed next to a stranger."""
    run = os.urandom(4).hex()
    with contextlib.closing(Caller(port, key)) as caller:
        quiet, _, _ = create(caller, f"quiet {run}", Greed(arms=2))
        campaign, arms, draws = create(caller, f"greedy {run}", GREEDY[kind])
    delays(port, key, quiet, 1.0)
    alone = delays(port, key, quiet, seconds / 2)
    asked = json.dumps([port, key, campaign, kind, clients])
    with subprocess.Popen(
        [sys.executable, __file__, "--greedy", asked], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        time.sleep(3.0)  # until it has learned something
        disturbed = delays(port, key, quiet, seconds)
        answered = int(process.communicate()[0])
    alone = sorted(alone + delays(port, key, quiet, seconds / 2))
    return Delays(arms, draws, alone, disturbed, answered / (seconds + 3.0))


@contextlib.contextmanager
def server(store: str, port: int) -> Iterator[str]:
    """A server; on an empty store, gives the admin key."""
    start = "from budgetbandits.__main__ import main; main()"
    command = [sys.executable, "-c", start, "serve", "--store", store, "--port", str(port)]
    with (
        tempfile.TemporaryDirectory() as folder,
        subprocess.Popen(
            [*command, "--key-file", f"{folder}/key"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        ) as process,
    ):
        try:
            for _ in range(200):
                with contextlib.suppress(OSError):
                    urllib.request.urlopen(f"http://127.0.0.1:{port}/healthz")
                    break
                time.sleep(0.1)
            yield Path(folder, "key").read_text().strip()
        finally:
            process.terminate()


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--seconds", type=float, default=6.0)
    options.add_argument("--clients", type=int, default=4)
    options.add_argument("--port", type=int, default=8769)
    options.add_argument("--kinds", nargs="*", default=list(GREEDY))
    options.add_argument("--greedy", help=argparse.SUPPRESS)
    given = options.parse_args()
    if given.greedy:
        drive_all(*json.loads(given.greedy))
    with tempfile.TemporaryDirectory() as folder:
        postgres = {"PostgreSQL": os.environ[POSTGRES]} if POSTGRES in os.environ else {}
        for store, address in {"SQLite": str(Path(folder) / "money.db"), **postgres}.items():
            print(f"{store}: {given.clients} greedy clients; the stranger's delays in ms", flush=True)
            print(f"{'':14} arms  draws   answers/s   alone p50     p99disturbed p50     p99      max   ratio of p99")
            with server(address, given.port) as key:
                for kind in given.kinds:
                    measurement = measure(given.port, key, kind, given.seconds, given.clients)
                    figures = [
                        share(measurement.alone, 0.5),
                        share(measurement.alone, 0.99),
                        share(measurement.disturbed, 0.5),
                    ]
                    figures += [share(measurement.disturbed, 0.99), measurement.disturbed[-1], measurement.ratio]
                    print(
                        f"{kind:14} {measurement.arms:4} {measurement.draws:6} {measurement.rate:11.1f}"
                        "{:12.2f}{:8.2f}{:13.2f}{:8.2f}{:9.2f}{:15.1f}".format(*figures),
                        flush=True,
                    )


if __name__ == "__main__":
    main()
