"""The cost of the dashboard: pages of a long campaign and of many campaigns, and the effect of viewers on decisions.

    python benchmarks/dashboard.py [--decisions 1000000] [--campaigns 10000] [--seconds 20]
    bash tests/helpers/with_postgres.sh python benchmarks/dashboard.py

First, a store is filled by plain SQL with one campaign of many decisions, reported in full over a month, and many
others, all of which have spent in every hour of the last day with each of their five arms: SQLite, or the PostgreSQL
that BUDGETBANDITS_POSTGRES names, which must be on this machine and empty. Times are processor time of this process,
and of PostgreSQL's next to it, the median of nine. On SQLite, eight clients decide and tell on a server, in turns alone
and with ten pages open that hear what happens and ask for what is new as a browser does: all the same page, or each
in a time zone of its own. What counts is the server's processor time for a pair of requests, which other work on the
machine changes little.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import httpx
import psutil  # type: ignore[import-untyped]
import service

from budgetbandits.formatting.datetimes import Times
from budgetbandits.service.dashboard.campaign import campaign_view
from budgetbandits.service.dashboard.overview import overview
from budgetbandits.service.dashboard.query import ListQuery, PageQuery
from budgetbandits.service.dashboard.rendering import render
from budgetbandits.service.rollups import roll_up
from budgetbandits.service.service import DecisionService
from budgetbandits.service.stores.contract import Store, Transaction, find_campaign
from budgetbandits.service.stores.records import COUNTS
from budgetbandits.service.stores.sql.dashboard import Order
from budgetbandits.service.stores.sql.rows import ARM, listed
from budgetbandits.service.stores.sqlite import SQLiteStore

MONTH = 30 * 86_400.0
ZONES = ("Europe/Berlin", "America/New_York", "Asia/Tokyo", "Australia/Sydney", "America/Los_Angeles", "Asia/Kolkata",
         "Africa/Nairobi", "America/Sao_Paulo", "Asia/Dubai", "Pacific/Auckland")  # fmt: skip
"""One for each of those who look."""
CLIENTS = 8
SETTLING = 8.0
"""Seconds with pages open before anything is measured."""


def fill(store: Store, decisions: int, campaigns: int) -> None:
    """Fill a store by SQL with the rows that campaigns with these decisions have."""
    engine, now = DecisionService(store, lambda: time.time() - MONTH - 60.0), time.time()
    arms = {f"arm {number}": 1.0 for number in range(10)}
    long = engine.create("long", "bts", float(decisions), arms)
    numbers = "WITH RECURSIVE n (i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < ? - 1)"
    step = MONTH / decisions

    on_sqlite = isinstance(store, SQLiteStore)
    as_id = "printf('%032x', {})" if on_sqlite else "lpad(to_hex({}), 32, '0')"
    id, half, yes = as_id.format("i"), as_id.format("i / 2"), "1" if on_sqlite else "TRUE"

    def rest(of: str, by: int) -> str:
        return f"({of} - {of} / {by} * {by})"  # a percent sign means something else to psycopg

    arm, told_arm = (rest(f"(CAST({of} AS BIGINT) * 7919)", 10) for of in ("i", "(i / 2)"))

    def many(tx: Transaction) -> None:
        change = tx.change  # type: ignore[attr-defined]
        if not on_sqlite:
            change("SET LOCAL statement_timeout = 0")  # a million rows take longer than anything else may
        change(
            "INSERT INTO decision (id, campaign, arm, hold, state, charged, overrun, reported, cost, reward, key, "
            f"request_digest, created_at, expires_at, lease) {numbers} "
            f"SELECT {id}, ?, {arm}, 1000000, 'settled', 500000, 0, "
            f"{yes}, 500000, CASE {rest('i', 3)} WHEN 0 THEN 1.0 ELSE 0.0 END, 'key ' || i, '', ? + i * ?, "
            "? + i * ? + 3600, NULL FROM n",
            (decisions, long, now - MONTH, step, now - MONTH, step),
        )
        change(
            f"INSERT INTO event (campaign, kind, decision, arm, amount, reward, at) {numbers} SELECT ?, "
            f"CASE {rest('i', 2)} WHEN 0 THEN 'decided' ELSE 'settled' END, {half}, {told_arm}, "
            f"CASE {rest('i', 2)} WHEN 0 THEN 1000000 ELSE 500000 END, CASE WHEN {rest('i', 2)} = 0 THEN NULL "
            f"WHEN {rest('(i / 2)', 3)} = 0 THEN 1.0 ELSE 0.0 END, ? + i * ? FROM n",
            (2 * decisions, long, now - MONTH, step / 2),
        )
        change("UPDATE campaign SET spent = ? WHERE id = ?", (500_000 * decisions, long))
        change(
            f"INSERT INTO campaign_name (id, name, folded_name, cost_max) {numbers} "
            f"SELECT {id}, 'campaign ' || i, 'campaign ' || i, 1000000 FROM n",
            (campaigns,),
        )
        change(
            "INSERT INTO campaign (id, name, policy, status, budget, spent, settings, learned, created_at) "
            f"{numbers} SELECT {id}, 'campaign ' || i, policy, status, 1000000000, i * CAST(90000 AS BIGINT), "
            "settings, learned, 1.0 FROM n, campaign WHERE id = ?",
            (campaigns, long),
        )
        change(
            f"INSERT INTO arm ({listed(ARM)}) {numbers} SELECT {as_id.format('i / 5')}, {rest('i', 5)}, "
            f"'arm ' || {rest('i', 5)}, cost_cap, learned, {yes} FROM n, arm WHERE campaign = ? AND number = 0",
            (5 * campaigns, long),
        )
        # a day of hours of each arm, and a mark, as servers would have added them up from its decisions
        happened = {"decided": 1, "costs_reported": 1, "rewards_reported": 1, "cost": 150_000, "spent": 150_000}
        counts = ", ".join(f"{happened.get(name, 0)} * (1 + {rest('i', 7)})" for name in COUNTS)
        change(
            f"INSERT INTO rollup (campaign, span, begins, arm, {listed(COUNTS)}) {numbers} "
            f"SELECT {as_id.format('i / 120')}, 3600, ? - 3600 * ({rest('i', 120)} / 5), {rest('i', 5)}, {counts} "
            "FROM n",
            (120 * campaigns, int(now - now % 3600)),
        )
        change(
            f"INSERT INTO rollup_watermark (campaign, seq, last_decision_at, last_feedback_at) {numbers} "
            f"SELECT {id}, ?, ? - {rest('i', 1800)}, ? - {rest('i', 1800)} + 5.0 FROM n",
            (campaigns, 2 * decisions, now, now),
        )
        if not on_sqlite:
            change("ANALYZE")  # as PostgreSQL does by itself some time later

    store.write(many)


Used = Callable[[], tuple[float, float]]
"""Seconds of processor time so far: of this process, and of a database next to it."""


def cost(work: Callable[[], object], used: Used, times: int = 9) -> str:
    """Milliseconds of processor time, the medians."""
    took = []
    for _ in range(times):
        begun = used()
        work()
        took.append([1e3 * (now - then) for now, then in zip(used(), begun, strict=True)])
    first, second = (statistics.median(seconds_of) for seconds_of in zip(*took, strict=True))
    return f"{first:.0f} ms" + (f" and {second:.0f} ms of PostgreSQL's" if second else "")


@contextlib.contextmanager
def filled_store() -> Iterator[tuple[Store, Used]]:
    """An empty store, and what it and this process have used."""
    address = os.environ.get("BUDGETBANDITS_POSTGRES")
    if address is None:
        with tempfile.TemporaryDirectory() as folder, SQLiteStore(Path(folder) / "money.db") as store:
            yield store, lambda: (time.process_time(), 0.0)
        return
    import psycopg

    from budgetbandits.service.stores.postgres import PostgresStore

    with psycopg.connect(address) as connection:
        (folder_of,) = connection.execute("SHOW data_directory").fetchone()
    server = psutil.Process(int((Path(folder_of) / "postmaster.pid").read_text().split()[0]))

    def used() -> tuple[float, float]:
        return time.process_time(), sum(sum(process.cpu_times()[:2]) for process in server.children(recursive=True))

    with PostgresStore(url=address) as postgres:
        yield postgres, used


def measure_pages(decisions: int, campaigns: int) -> None:
    with filled_store() as (store, used):
        fill(store, decisions, campaigns)
        begun = sum(used())
        roll_up(store)
        microseconds = 1e6 * (sum(used()) - begun) / (2 * decisions)
        print(f"{decisions:,} decisions rolled up: {microseconds:.1f} µs an event")
        times = Times.of("Europe/Berlin", time.time())
        shared = {"times": times, "admin": True, "session": None, "inline": False}

        def page() -> None:
            view = store.read(lambda tx: campaign_view(tx, find_campaign(tx, "long"), PageQuery()))
            render("_campaign.html", view=view, **shared)

        def listed(text: str, order: Order = "alarm") -> None:
            view = store.read(lambda tx: overview(tx, ListQuery(text, order=order), None))
            render("_overview.html", view=view, **shared)

        page()
        listed("")
        print(f"page of that campaign: {cost(page, used)}")
        print(f"first page of {campaigns:,} campaigns: {cost(lambda: listed(''), used)}")
        print(f"the same, filtered: {cost(lambda: listed('9999'), used)}")
        print(f"the same, by name: {cost(lambda: listed('', 'name'), used)}")
        print(f"the same, by name, with a filter that all fit: {cost(lambda: listed('n', 'name'), used)}", flush=True)


@contextlib.contextmanager
def looked_at(key: str, campaign: str, zones: Sequence[str]) -> Iterator[None]:
    """Ten pages are open, in a process of their own, and have been for a while: the first drawing is not the rule."""
    viewers = psutil.Popen([sys.executable, __file__, "--look", key, campaign, str(service.PORT), *zones])
    asyncio.run(service.drive(service.pair, key, [campaign], CLIENTS, SETTLING))
    try:
        yield
    finally:
        viewers.terminate()
        viewers.wait()


async def look(key: str, campaign: str, port: int, zones: Sequence[str]) -> None:
    """Act as browsers, one in each zone: listen, and request the page until it has the latest event."""

    async def one(zone: str) -> None:
        cookies = {"zone": zone}
        async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}", timeout=None, cookies=cookies) as client:
            await client.post("/sign-in", data={"key": key})
            newer: asyncio.Task[None] | None = None

            async def draw(wanted: int, later: float = 0.0) -> None:
                while True:
                    await asyncio.sleep(later)
                    answer = await client.get(f"/campaigns/{campaign}", headers={"X-Part": "live"})
                    answer.raise_for_status()
                    if int(answer.headers["X-Event"]) >= wanted:
                        return
                    later = max(1.0, float(answer.headers.get("X-Again", 1.0)))

            async with client.stream("GET", f"/campaigns/{campaign}/live") as events:
                async for line in events.aiter_lines():
                    if line.startswith("data:"):
                        if newer is not None:
                            newer.cancel()
                        newer = asyncio.ensure_future(draw(int(line.removeprefix("data:"))))

    await asyncio.gather(*(one(zone) for zone in zones))


def measure_viewers(seconds: float) -> None:
    with tempfile.TemporaryDirectory() as folder, service.server(str(Path(folder) / "money.db")) as key:
        campaign = service.create(key, "looked at", 10)
        process = psutil.Process().children()[0]
        ways = {"nobody looks": None, "ten look": ZONES[:1] * len(ZONES), "in ten zones": ZONES}
        with looked_at(key, campaign, ZONES):  # which imports what pages need
            pass
        print(f"{'':14} pairs/s   server's µs of processor time for a pair   ({CLIENTS} clients)")
        for _ in range(3):
            for what, zones in ways.items():
                with contextlib.nullcontext() if zones is None else looked_at(key, campaign, zones):
                    before = sum(process.cpu_times()[:2])
                    load = asyncio.run(service.drive(service.pair, key, [campaign], CLIENTS, seconds))
                    used = sum(process.cpu_times()[:2]) - before
                print(f"{what:14} {load.rate:7.0f} {1e6 * used / (load.rate * seconds):12.0f}", flush=True)


def main() -> None:
    if sys.argv[1:2] == ["--look"]:
        asyncio.run(look(sys.argv[2], sys.argv[3], int(sys.argv[4]), sys.argv[5:]))
        return
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--decisions", type=int, default=1_000_000)
    options.add_argument("--campaigns", type=int, default=10_000)
    options.add_argument("--seconds", type=float, default=20.0)
    given = options.parse_args()
    measure_pages(given.decisions, given.campaigns)
    if "BUDGETBANDITS_POSTGRES" not in os.environ:
        measure_viewers(given.seconds)


if __name__ == "__main__":
    main()
