"""What the dashboard costs: pages of a long campaign and of many campaigns, and what people who look cost who decides.

    python benchmarks/dashboard.py [--decisions 1000000] [--campaigns 10000] [--seconds 10]

First, a SQLite store is filled by plain SQL with one campaign of so many decisions, told in full over a month, and so
many others. Times are processor time of this process, the median of nine. Then eight clients decide and tell on a
server, in turns alone and with ten pages open that are told what happens and ask for what is new. What counts is the
server's processor time for a pair of requests, which other work on the machine changes little.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import httpx
import psutil  # type: ignore[import-untyped]
import service

from budgetbandits.service.dashboard.campaign_view import Wanted, campaign_view
from budgetbandits.service.dashboard.overview import Asked, overview
from budgetbandits.service.dashboard.pages import render
from budgetbandits.service.engine import Engine
from budgetbandits.service.rollups import roll_up
from budgetbandits.service.stores.base import Transaction, found
from budgetbandits.service.stores.sqlite import SQLiteStore
from budgetbandits.times import Times

MONTH = 30 * 86_400.0
VIEWERS = 10
CLIENTS = 8


def fill(store: SQLiteStore, decisions: int, campaigns: int) -> None:
    """By SQL: what the rows say is what a campaign with these decisions would have."""
    engine, now = Engine(store, lambda: time.time() - MONTH - 60.0), time.time()
    arms = {f"arm {number}": 1.0 for number in range(10)}
    long = engine.create("long", "bts", float(decisions), arms)
    numbers = "WITH RECURSIVE n (i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < ? - 1)"
    step = MONTH / decisions

    id, arm = "printf('%032x', i)", "(i * 7919) % 10"

    def many(tx: Transaction) -> None:
        change = tx.change  # type: ignore[attr-defined]
        change(
            f"INSERT INTO decision {numbers} SELECT {id}, ?, {arm}, 1000000, 'settled', 500000, 0, 1, 500000, "
            "i % 3 = 0, 'key ' || i, '', ? + i * ?, ? + i * ? + 3600, NULL FROM n",
            (decisions, long, now - MONTH, step, now - MONTH, step),
        )
        change(
            "INSERT INTO event (campaign, kind, decision, arm, amount, reward, at) "
            f"{numbers} SELECT ?, CASE i % 2 WHEN 0 THEN 'decided' ELSE 'settled' END, printf('%032x', i / 2), "
            "(i / 2 * 7919) % 10, CASE i % 2 WHEN 0 THEN 1000000 ELSE 500000 END, "
            "CASE i % 2 WHEN 1 THEN i / 2 % 3 = 0 END, ? + i * ? FROM n",
            (2 * decisions, long, now - MONTH, step / 2),
        )
        change("UPDATE campaign SET spent = ? WHERE id = ?", (500_000 * decisions, long))
        change(f"INSERT INTO campaign_name {numbers} SELECT {id}, 'campaign ' || i FROM n", (campaigns,))
        change(
            f"INSERT INTO arm {numbers} SELECT printf('%032x', i / 5), i % 5, 'arm ' || (i % 5), cost_cap, learned, 1 "
            "FROM n, arm WHERE campaign = ? AND number = 0",
            (5 * campaigns, long),
        )
        change(
            "INSERT INTO campaign (id, name, policy, status, budget, spent, settings, learned, created_at) "
            f"{numbers} SELECT {id}, 'campaign ' || i, policy, status, 1000000000, i * 90000, settings, learned, 1.0 "
            "FROM n, campaign WHERE id = ?",
            (campaigns, long),
        )

    store.write(many)


def cost(work: Callable[[], object], times: int = 9) -> float:
    """Milliseconds of processor time, the median."""
    took = []
    for _ in range(times):
        begun = time.process_time()
        work()
        took.append(1e3 * (time.process_time() - begun))
    return statistics.median(took)


def measure_pages(decisions: int, campaigns: int) -> None:
    with tempfile.TemporaryDirectory() as folder, SQLiteStore(Path(folder) / "money.db") as store:
        fill(store, decisions, campaigns)
        begun = time.process_time()
        roll_up(store)
        each = 1e6 * (time.process_time() - begun) / (2 * decisions)
        print(f"{decisions:,} decisions rolled up: {each:.1f} µs an event")
        times = Times.of("Europe/Berlin", time.time())
        shared = {"times": times, "admin": True, "session": None, "inline": False}

        def page() -> None:
            view = store.read(lambda tx: campaign_view(tx, found(tx, "long"), Wanted()))
            render("_campaign.html", view=view, **shared)

        def listed(text: str) -> None:
            view = store.read(lambda tx: overview(tx, Asked(text), None))
            render("_overview.html", view=view, **shared)

        page()
        listed("")
        print(f"page of that campaign: {cost(page):.0f} ms")
        print(f"first page of {campaigns:,} campaigns: {cost(lambda: listed('')):.0f} ms")
        print(f"the same, filtered: {cost(lambda: listed('9999')):.0f} ms")


@contextlib.contextmanager
def looked_at(key: str, campaign: str) -> Iterator[None]:
    """Ten pages are open, in a process of their own."""
    viewers = psutil.Popen([sys.executable, __file__, "--look", key, campaign, str(service.PORT)])
    time.sleep(3.0)
    try:
        yield
    finally:
        viewers.terminate()
        viewers.wait()


async def look(key: str, campaign: str, port: int) -> None:
    """What ten browsers do: listen, and ask for the page when something has happened."""

    async def one() -> None:
        async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}", timeout=None) as client:
            await client.post("/sign-in", data={"key": key})
            async with client.stream("GET", f"/campaigns/{campaign}/live") as events:
                async for line in events.aiter_lines():
                    if line.startswith("event: changed"):
                        answer = await client.get(f"/campaigns/{campaign}", headers={"X-Part": "live"})
                        answer.raise_for_status()

    await asyncio.gather(*(one() for _ in range(VIEWERS)))


def measure_viewers(seconds: float) -> None:
    with tempfile.TemporaryDirectory() as folder, service.server(str(Path(folder) / "money.db")) as key:
        campaign = service.create(key, "looked at", 10)
        process = psutil.Process().children()[0]
        with looked_at(key, campaign):  # which imports what pages need
            asyncio.run(service.drive(service.pair, key, [campaign], CLIENTS, 2.0))
        print(f"{'':14} pairs/s   server's µs of processor time for a pair   ({CLIENTS} clients)")
        for _ in range(3):
            for what, way in (("nobody looks", contextlib.nullcontext()), ("ten look", looked_at(key, campaign))):
                with way:
                    before = sum(process.cpu_times()[:2])
                    load = asyncio.run(service.drive(service.pair, key, [campaign], CLIENTS, seconds))
                    used = sum(process.cpu_times()[:2]) - before
                print(f"{what:14} {load.rate:7.0f} {1e6 * used / (load.rate * seconds):12.0f}", flush=True)


def main() -> None:
    if sys.argv[1:2] == ["--look"]:
        asyncio.run(look(sys.argv[2], sys.argv[3], int(sys.argv[4])))
        return
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--decisions", type=int, default=1_000_000)
    options.add_argument("--campaigns", type=int, default=10_000)
    options.add_argument("--seconds", type=float, default=10.0)
    given = options.parse_args()
    measure_pages(given.decisions, given.campaigns)
    measure_viewers(given.seconds)


if __name__ == "__main__":
    main()
