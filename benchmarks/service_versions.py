"""The processor time of a decide+feedback pair, with two or more versions of the package in turns.

    git worktree add /tmp/before COMMIT
    python benchmarks/service_versions.py before=/tmp/before/src now=src [--clients 8] [--seconds 3] [--turns 6]
    bash tests/helpers/with_postgres.sh python benchmarks/service_versions.py …      # on PostgreSQL instead of SQLite

Each version has a server (with ``--servers 2``: two) and a database of its own, all started before the first turn. In a
turn clients drive one version for some seconds; turns go to and fro between the versions, so that what else the machine
does falls on all of them. Processor time is the kernel's, to the nanosecond, of the servers, of all processes of
PostgreSQL and of the clients; the medians of the turns are printed, and every turn. With ``--lease 1e5`` the campaign
leases. A version may name its policy, and the number of features of each request, which is compared so:

    python benchmarks/service_versions.py paced=src,bts-paced linear=src,bts-linear,32

and of how many campaigns, which share a budget, it decides in turn: ``shared=src,,,1``.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import os
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import psutil  # type: ignore[import-untyped]
import service

PORT = 8780
WARM_UP = 1.5


@dataclass
class Version:
    """A version that is served, and its turns: µs for a pair of servers, PostgreSQL and clients, and pairs a second."""

    name: str
    ports: list[int]
    servers: list[subprocess.Popen[bytes]]
    key: str
    campaign: list[str]
    features: int = 0
    turns: list[tuple[float, float, float, float]] = field(default_factory=list)

    def drive(self, clients: int, seconds: float) -> service.Load:
        job = partial(service.pair, features=self.features)
        return asyncio.run(service.drive(job, self.key, self.campaign, clients * len(self.ports), seconds, self.ports))

    def turn(self, clients: int, seconds: float) -> None:
        before = self._used()
        load = self.drive(clients, seconds)
        pairs = load.rate * seconds
        used = [(now - then) / pairs * 1e6 for now, then in zip(self._used(), before, strict=True)]
        self.turns.append((used[0], used[1], used[2], load.rate))

    def _used(self) -> tuple[float, float, float]:
        return (
            sum(processor_seconds(server.pid) for server in self.servers),
            sum(map(processor_seconds, postgres_processes())),
            time.process_time(),
        )

    def line(self) -> str:
        server, database, clients, rate = (statistics.median(turn) for turn in zip(*self.turns, strict=True))
        turns = " ".join(f"{turn[0]:.0f}+{turn[1]:.0f}" for turn in self.turns)
        return f"{self.name:10} {server:9.0f} {database:9.0f} {clients:9.0f} {rate:9.0f}   {turns}"


def processor_seconds(process: int) -> float:
    """Processor time of all threads of a process that are alive, as the scheduler counts."""
    total = 0
    with contextlib.suppress(FileNotFoundError, ProcessLookupError):
        for thread in os.listdir(f"/proc/{process}/task"):
            with contextlib.suppress(FileNotFoundError, ProcessLookupError):
                total += int(Path(f"/proc/{process}/task/{thread}/schedstat").read_text().split()[0])
    return total / 1e9


def postgres_processes() -> list[int]:
    """Processes of the PostgreSQL that is measured, which is on this host; none on SQLite."""
    if service.POSTGRES not in os.environ:
        return []
    import psycopg

    with psycopg.connect(os.environ[service.POSTGRES]) as connection:
        first = psutil.Process(connection.info.backend_pid).parent()
        return [first.pid, *(child.pid for child in first.children())]


@contextlib.contextmanager
def served(name: str, about: str, ports: list[int], folder: Path, arms: int, **terms: Any) -> Iterator[Version]:
    """Servers of this version on a database of its own, with a campaign, or some that share a budget."""
    source, policy, features, members = [*about.split(","), "", "", ""][:4]
    store, key_file = database(name, folder), folder / f"{name}.key"
    start = [sys.executable, "-c", "from budgetbandits.__main__ import main; main()", "serve", "--store", store]
    environment = os.environ | {"PYTHONPATH": str(Path(source).resolve())}
    with contextlib.ExitStack() as running:
        servers = []
        for port in ports:
            command = [*start, "--port", str(port), "--key-file", str(key_file)]
            process = subprocess.Popen(
                command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
            )  # fmt: skip
            running.callback(process.wait)
            running.callback(process.terminate)
            servers.append(process)
            wait_for(port)
        key = key_file.read_text().strip()
        service.PORT = ports[0]
        if policy:
            terms |= {"policy": policy, "horizon": 1e9}
        if features:
            terms["features"] = service.features(int(features))
        if members:
            service.post(key, "/v1/shared-budgets", {"name": "all", "budget": 1e10})
            terms["shared_budget"] = "all"
        names = [f"arms {number}" for number in range(int(members or 1))]
        campaigns = [service.create(key, name, arms, **terms) for name in names]
        yield Version(name, ports, servers, key, campaigns, int(features or 0))


def database(name: str, folder: Path) -> str:
    """A new database on the PostgreSQL that there is, or a new file."""
    if service.POSTGRES not in os.environ:
        return str(folder / f"{name}.db")
    import psycopg

    address, new = os.environ[service.POSTGRES], f"{name}_{os.urandom(4).hex()}"
    with psycopg.connect(address, autocommit=True) as connection:
        connection.execute(f'CREATE DATABASE "{new}"')
    return f"{address.rpartition('/')[0]}/{new}"


def wait_for(port: int) -> None:
    for _ in range(300):
        with contextlib.suppress(OSError):
            urllib.request.urlopen(f"http://127.0.0.1:{port}/readyz")
            return
        time.sleep(0.1)
    raise SystemExit(f"no server on port {port} after 30 seconds; is the port free?")


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("versions", nargs="+", help="NAME=FOLDER[,POLICY[,FEATURES[,MEMBERS]]] of its source")
    options.add_argument("--arms", type=int, default=10)
    options.add_argument("--clients", type=int, default=8, help="of each server")
    options.add_argument("--servers", type=int, default=1)
    options.add_argument("--seconds", type=float, default=3.0)
    options.add_argument("--turns", type=int, default=6)
    options.add_argument("--lease", type=float)
    given = options.parse_args()
    terms = {} if given.lease is None else {"lease": given.lease}
    with tempfile.TemporaryDirectory() as folder, contextlib.ExitStack() as running:
        versions = []
        for number, text in enumerate(given.versions):
            name, _, about = text.partition("=")
            ports = [PORT + number * given.servers + number_of for number_of in range(given.servers)]
            versions.append(running.enter_context(served(name, about, ports, Path(folder), given.arms, **terms)))
            versions[-1].drive(given.clients, WARM_UP)
        for number in range(given.turns):
            for version in versions if number % 2 == 0 else reversed(versions):
                version.turn(given.clients, given.seconds)
    print("µs a pair    servers  database   clients   pairs/s   servers+database of every turn")
    for version in versions:
        print(version.line())


if __name__ == "__main__":
    main()
