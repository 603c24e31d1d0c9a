"""The decision service under load: decide+feedback pairs a second and their delay, next to a route that does nothing.

    python benchmarks/service.py [--seconds 5] [--snapshot 10]
    bash tests/helpers/with_postgres.sh python benchmarks/service.py      # on PostgreSQL as well

One server process (what ``budgetbandits serve`` starts) and one process of clients that write their requests by hand,
so that the clients are not what is measured; on two cores each has its own. The no-op is ``GET /healthz``: the same
server, the same middleware, no key, no store. Every figure is from this run; rates are compared, not kept.

On PostgreSQL also: with a transaction left open that sees the state before, as a dump does, measured after some
seconds of load (``--snapshot``); and two servers next to one, eight campaigns, 24 clients. One
campaign is served by two servers with and without leases too. Where two servers, the clients and the database share
two cores that shows little; a database whose commits take as long as over a network shows more:

    export PGOPTIONS="-c commit_delay=5000 -c commit_siblings=0"
    bash tests/helpers/with_postgres.sh python benchmarks/service.py
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import os
import random
import subprocess
import sys
import tempfile
import time
import urllib.request
import zlib
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil  # type: ignore[import-untyped]

PORT = 8765
POSTGRES = "BUDGETBANDITS_POSTGRES"


@dataclass
class Load:
    """The load of a number of clients: rounds a second, and the delay of a single request in milliseconds.

    ``processor`` is what a round has cost all servers together, in microseconds of processor time: unlike the rate it
    changes little when the machine has other work.
    """

    rate: float
    median: float
    p99: float
    processor: float


class Connection:
    """HTTP/1.1 over a socket that stays open, written and read by hand."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, key: str) -> None:
        self._reader, self._writer = reader, writer
        self._head = (
            f" HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {key}\r\nContent-Type: application/json\r\n"
        )
        self.delays: list[float] = []

    def close(self) -> None:
        self._writer.close()

    async def send(self, method: str, path: str, body: str = "", key: str = "") -> bytes:
        head = f"{method} {path}{self._head}" + (f"Idempotency-Key: {key}\r\n" if key else "")
        begun = time.perf_counter()
        self._writer.write(f"{head}Content-Length: {len(body)}\r\n\r\n{body}".encode())
        answer = await self._reader.readuntil(b"\r\n\r\n")
        length = int(answer.lower().partition(b"content-length: ")[2].partition(b"\r")[0])
        content = await self._reader.readexactly(length)
        self.delays.append(time.perf_counter() - begun)
        if answer[9] != ord("2"):
            raise RuntimeError(f"{answer[:12]!r}: {content!r}")
        return content


Job = Callable[[Connection, Sequence[str], str], Awaitable[None]]


async def noop(client: Connection, _: Sequence[str], __: str) -> None:
    await client.send("GET", "/healthz")


def features(count: int) -> list[str]:
    """The names of this many features."""
    return [f"feature {number}" for number in range(count)]


async def pair(client: Connection, campaigns: Sequence[str], name: str, features: int = 0) -> None:
    """A decision and its feedback in one of the campaigns, whose requests may have features."""
    chance = zlib.crc32(name.encode())
    campaign, body = campaigns[chance % len(campaigns)], "{}"
    if features:
        lots = random.Random(chance)
        body = json.dumps({"features": {f"feature {number}": lots.gauss(0.0, 1.0) for number in range(features)}})
    answer = json.loads(await client.send("POST", f"/v1/campaigns/{campaign}/decisions", body, name))
    outcome = json.dumps({"reward": float(chance % 3 == 0), "cost": 0.5})
    await client.send("POST", f"/v1/campaigns/{campaign}/decisions/{answer['decision']}/feedback", outcome)


async def drive(
    job: Job, key: str, campaigns: Sequence[str], clients: int, seconds: float, ports: Sequence[int] = (PORT,)
) -> Load:
    connections = [
        Connection(*await asyncio.open_connection("127.0.0.1", ports[number % len(ports)]), key)
        for number in range(clients)
    ]
    run, end, rounds = os.urandom(4).hex(), time.perf_counter() + seconds, 0

    async def one(client: Connection, number: int) -> None:
        nonlocal rounds
        count = 0
        while time.perf_counter() < end:
            await job(client, campaigns, f"{run}-{number}-{count}")
            count += 1
        rounds += count

    begun, used = time.perf_counter(), processor_time()
    await asyncio.gather(*(one(client, number) for number, client in enumerate(connections)))
    took, used = time.perf_counter() - begun, processor_time() - used
    delays = sorted(delay * 1e3 for client in connections for delay in client.delays)
    for client in connections:
        client.close()
    return Load(rounds / took, delays[len(delays) // 2], delays[int(len(delays) * 0.99)], used / max(rounds, 1) * 1e6)


def processor_time() -> float:
    """Processor time of all servers that this process has started, in seconds."""
    return sum(sum(process.cpu_times()[:2]) for process in psutil.Process().children())


@contextlib.contextmanager
def server(store: str, port: int = PORT) -> Iterator[str]:
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
            for _ in range(100):
                with contextlib.suppress(OSError):
                    urllib.request.urlopen(f"http://127.0.0.1:{port}/healthz")
                    break
                time.sleep(0.1)
            key = Path(folder, "key")
            yield key.read_text().strip() if key.exists() else ""
        finally:
            process.terminate()


def create(key: str, name: str, arms: int, budget: float = 1e9, **terms: Any) -> str:
    body = {"name": name, "budget": budget, "arms": {f"arm {number}": 1.0 for number in range(arms)}, **terms}
    return str(post(key, "/v1/campaigns", body)["id"])


def post(key: str, path: str, body: dict[str, Any]) -> Any:
    request = urllib.request.Request(
        f"http://127.0.0.1:{PORT}{path}",
        json.dumps(body).encode(),
        {"Authorization": f"Bearer {key}", "Content-Type": "application/json"},
    )
    with urllib.request.urlopen(request) as answer:
        return json.load(answer)


def stores(folder: str) -> dict[str, str]:
    """The addresses of the stores to measure by kind: a SQLite in this folder, and a PostgreSQL if one is set."""
    postgres = {"PostgreSQL": os.environ[POSTGRES]} if POSTGRES in os.environ else {}
    return {"SQLite": str(Path(folder) / "money.db"), **postgres}


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--seconds", type=float, default=5.0)
    options.add_argument("--snapshot", type=float, default=10.0, help="seconds of load before the snapshot is measured")
    given = options.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        for kind, store in stores(folder).items():
            with server(store) as key:
                measure(kind, key, given.seconds)
                if kind == "PostgreSQL":
                    measure_snapshot(store, key, given.seconds, given.snapshot)
                    measure_servers(store, key, given.seconds)
                    with server(store, PORT + 1):
                        measure_leases(key, given.seconds)


def measure(kind: str, key: str, seconds: float) -> None:
    one = [create(key, "ten arms", 10)]
    asyncio.run(drive(pair, key, one, 8, 1.0))
    print(f"{kind:12} clients   no-op/s   pairs/s   share   median ms   p99 ms   server µs a pair", flush=True)
    for clients in (1, 8, 64):
        still = asyncio.run(drive(noop, key, one, clients, seconds))
        load = asyncio.run(drive(pair, key, one, clients, seconds))
        rates = f"{still.rate:9.0f} {load.rate:9.0f} {load.rate / still.rate:7.2f}"
        print(f"{'':12} {clients:7} {rates} {load.median:11.2f} {load.p99:8.2f} {load.processor:18.0f}", flush=True)
    large = [create(key, "ten thousand arms", 10_000)]
    many = [create(key, f"one of many, {number}", 10) for number in range(1000)]
    kinds = {"10 arms": one, "10,000 arms": large, "1,000 campaigns": many, "10 arms, again": one}
    for what, campaigns in kinds.items():
        show(what, asyncio.run(drive(pair, key, campaigns, 8, seconds)))


def measure_snapshot(store: str, key: str, seconds: float, before: float) -> None:
    """Eight clients, while nothing that they change can be cleared away."""
    import psycopg

    campaign = [create(key, "looked at", 10)]
    asyncio.run(drive(pair, key, campaign, 8, 1.0))
    show("no snapshot", asyncio.run(drive(pair, key, campaign, 8, seconds)))
    with psycopg.connect(store) as watcher:
        watcher.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        watcher.execute("SELECT count(*) FROM campaign")
        asyncio.run(drive(pair, key, campaign, 8, before))
        show(f"snapshot, {before:.0f} s", asyncio.run(drive(pair, key, campaign, 8, seconds)))
    show("snapshot closed", asyncio.run(drive(pair, key, campaign, 8, seconds)))


def measure_servers(store: str, key: str, seconds: float) -> None:
    """The same load on one server and on two; in turns, because the second one has to warm up as well."""
    campaigns = [create(key, f"one of eight, {number}", 10) for number in range(8)]
    with server(store, PORT + 1):
        ways = {"one server": [PORT], "two servers": [PORT, PORT + 1]}
        for ports in ways.values():
            asyncio.run(drive(pair, key, campaigns, 24, 1.0, ports))
        for what, ports in [*ways.items(), *ways.items()]:
            show(what, asyncio.run(drive(pair, key, campaigns, 24, seconds, ports)))


def show(what: str, load: Load) -> None:
    print(f"{what:>20} {load.rate:19.0f} {load.median:19.2f} {load.p99:8.2f} {load.processor:18.0f}", flush=True)


def measure_leases(key: str, seconds: float) -> None:
    """One campaign, on one server and on two with as many clients each."""
    print(f"{'':12} clients   one server   two servers   ratio   p99 ms   (pairs/s on one campaign)", flush=True)
    for what, terms in {"no leases": {}, "leases": {"lease": 1e5}}.items():
        for clients in (8, 32):
            one = [create(key, f"{what}, {clients}", 10, **terms)]
            ports = [PORT, PORT + 1]
            asyncio.run(drive(pair, key, one, 2 * clients, 1.0, ports))
            alone = asyncio.run(drive(pair, key, one, clients, seconds, ports[:1]))
            both = asyncio.run(drive(pair, key, one, 2 * clients, seconds, ports))
            rates = f"{alone.rate:12.0f} {both.rate:13.0f} {both.rate / alone.rate:7.2f} {both.p99:8.2f}"
            print(f"{what:12} {clients:7} {rates}", flush=True)


if __name__ == "__main__":
    main()
