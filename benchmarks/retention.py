"""A campaign pruned under load: the delay of requests before and meanwhile, and the size of the store before and after.

    python benchmarks/retention.py [--decisions 1000000] [--keep 100000] [--seconds 5] [--clients 2]
    bash tests/helpers/with_postgres.sh python benchmarks/retention.py --decisions 100000 --keep 10000

All but ``--keep`` of the decisions are a hundred days old. Clients decide and report over HTTP, first undisturbed, then
while a process of low priority prunes what is older than fifty days. In the end no decision is missing, and the audits
from the checkpoint and from the archive agree. The size on PostgreSQL is that of events and decisions with their
indexes.
"""

from __future__ import annotations

import argparse
import asyncio
import multiprocessing
import os
import tempfile
import time
from pathlib import Path

import polars
import service

from budgetbandits.service.audit.audit import verify
from budgetbandits.service.feedback import FeedbackReport
from budgetbandits.service.rollups import roll_up
from budgetbandits.service.service import DecisionService
from budgetbandits.service.stores import open_store
from budgetbandits.service.stores.contract import Store

BATCH = 1000
DAY = 86_400.0


def fill(store: Store, decisions: int, age: float) -> None:
    """This many decisions with feedback, made ``age`` seconds ago."""
    engine = DecisionService(store, clock=lambda: time.time() - age)
    if not engine.names():
        engine.create("ads", "bts", budget=1e9, arms={f"arm {number}": 1.0 for number in range(10)})
    for number in range(decisions // BATCH):
        batch = engine.decide_many("ads", f"batch {age} {number}", BATCH)
        engine.feedback_many(
            "ads", [FeedbackReport(decision.decision, float(n % 3 == 0), 0.5) for n, decision in enumerate(batch)]
        )
        roll_up(store)  # as a server does all the time


def prune(address: str, folder: str) -> None:
    os.nice(15)
    begun = time.perf_counter()
    with open_store(address) as store:
        moved = DecisionService(store).retention.prune("ads", Path(folder), 50.0)
    took = time.perf_counter() - begun
    print(f"{moved.events:,} events and {moved.decisions:,} decisions archived in {took:.0f} s", flush=True)


def report_size(address: str, when: str, decisions: int, full: bool = False) -> None:
    if "://" in address:
        import psycopg

        with psycopg.connect(address, autocommit=True) as connection:
            connection.execute("VACUUM FULL" if full else "VACUUM")
            query = "SELECT sum(pg_total_relation_size(oid)) FROM pg_class WHERE relname IN ('event', 'decision')"
            row = connection.execute(query).fetchone()
            assert row is not None
            size = int(row[0])
    else:
        size = Path(address).stat().st_size
    print(f"{when}: {size / 1e6:.1f} MB, {size / decisions:.0f} bytes a decision", flush=True)


def report_load(key: str, when: str, clients: int, seconds: float) -> None:
    load = asyncio.run(service.drive(service.pair, key, ["ads"], clients, seconds))
    print(f"{when}: {load.rate:.0f} pairs a second, median {load.median:.1f} ms, p99 {load.p99:.1f} ms", flush=True)


def measure_load(address: str, folder: str, given: argparse.Namespace) -> None:
    with service.server(address) as key:
        report_load(key, "before", given.clients, given.seconds)
        pruning = multiprocessing.Process(target=prune, args=(address, folder))
        pruning.start()
        while pruning.is_alive():
            report_load(key, "during", given.clients, given.seconds)
        report_load(key, "after", given.clients, given.seconds)


def measure(address: str, folder: str, given: argparse.Namespace) -> None:
    with open_store(address) as store:
        fill(store, given.decisions - given.keep, 100 * DAY)
        fill(store, given.keep, 0.0)
    report_size(address, "before", given.decisions)
    if given.clients:
        measure_load(address, folder, given)
    else:
        prune(address, folder)
    with open_store(address) as store:
        begun = time.perf_counter()
        assert verify(store, "ads") == []
        print(f"verified from the checkpoint in {time.perf_counter() - begun:.0f} s", flush=True)
        begun = time.perf_counter()
        assert verify(store, "ads", archive=Path(folder)) == []
        print(f"verified from the archive in {time.perf_counter() - begun:.0f} s", flush=True)
        left = sum(total.decided for total in store.read(lambda tx: tx.rollups().totals(tx.campaigns()[0].id)))
    archived = polars.scan_parquet(f"{folder}/*/*/decisions-*.parquet").select(polars.len()).collect().item()
    assert archived == given.decisions - given.keep
    print(f"{left:,} decisions in all, {archived:,} of them in the archive", flush=True)
    report_size(address, "after", left - archived)
    if "://" in address:
        report_size(address, "after VACUUM FULL", left - archived, full=True)


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--decisions", type=int, default=1_000_000)
    options.add_argument("--keep", type=int, default=100_000)
    options.add_argument("--seconds", type=float, default=5.0)
    options.add_argument("--clients", type=int, default=2, help="0: no load, only sizes")
    given = options.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        address = os.environ.get(service.POSTGRES, str(Path(folder) / "money.db"))
        measure(address, str(Path(folder) / "archive"), given)


if __name__ == "__main__":
    main()
