"""The cost of a scrape of /metrics: series, bytes, seconds, and the p99 of decisions with and without scrapes.

    python benchmarks/metrics.py [--campaigns 1000] [--seconds 10] [--rounds 3]
    bash tests/helpers/with_postgres.sh python benchmarks/metrics.py      # on PostgreSQL as well

One server, as many campaigns of ten arms, eight clients that decide and report on all of them, and one that scrapes
again and again, a pause of a second in between: fifteen times as often as Prometheus does by default. Both are
measured in turns, in one run. Campaigns have spent by the minute for two hours, so that each has a projected end.
"""

from __future__ import annotations

import argparse
import asyncio
import statistics
import tempfile
import time

from service import PORT, Connection, Load, create, drive, pair, server, stores

from budgetbandits.service.stores import open_store
from budgetbandits.service.stores.contract import Transaction
from budgetbandits.service.stores.records import Counts
from budgetbandits.service.stores.sql.rollups import HOUR, MINUTE

PAUSE_SECONDS = 1.0


def age(store: str, campaigns: list[str]) -> None:
    """Have these campaigns spent something in each of the last 120 minutes."""

    def work(tx: Transaction) -> None:
        minute = int(tx.now()) // MINUTE * MINUTE
        for number, campaign in enumerate(campaigns):
            counts = [
                Counts(minute - MINUTE * back, 0, spent=1000 * (1 + (number + back) % 3)) for back in range(1, 121)
            ]
            mark = tx.rollups().watermark(campaign)
            tx.rollups().add(campaign, counts, mark, 0.0)
        tx.rollups()._tx.change("UPDATE campaign SET created_at = created_at - ?", (2 * HOUR,))

    with open_store(store) as opened:
        opened.write(work)


async def scraped(key: str, campaigns: list[str], seconds: float) -> tuple[Load, bytes, list[float]]:
    """The load while the metrics are scraped, the last page, and the seconds that each took."""
    over, took, page = asyncio.Event(), [], b""

    async def scrape() -> None:
        nonlocal page
        client = Connection(*await asyncio.open_connection("127.0.0.1", PORT), key)
        while not over.is_set():
            begun = time.perf_counter()
            page = await client.send("GET", "/metrics")
            took.append(time.perf_counter() - begun)
            await asyncio.sleep(PAUSE_SECONDS)
        client.close()

    scraping = asyncio.create_task(scrape())
    load = await drive(pair, key, campaigns, 8, seconds)
    over.set()
    await scraping
    return load, page, took


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--campaigns", type=int, default=1000)
    options.add_argument("--seconds", type=float, default=10.0)
    options.add_argument("--rounds", type=int, default=3)
    given = options.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        for kind, store in stores(folder).items():
            with server(store) as key:
                campaigns = [create(key, f"campaign {number}", 10, budget=1e3) for number in range(given.campaigns)]
                age(store, campaigns)
                asyncio.run(drive(pair, key, campaigns, 8, 2.0))
                print(f"{kind}: pairs/s, median and p99 in ms; not scraped, scraped", flush=True)
                for _ in range(given.rounds):
                    still = asyncio.run(drive(pair, key, campaigns, 8, given.seconds))
                    load, page, took = asyncio.run(scraped(key, campaigns, given.seconds))
                    for delays in (still, load):
                        print(f"{delays.rate:8.0f} {delays.median:8.2f} {delays.p99:8.2f}", end="   ")
                    lines = [line for line in page.splitlines() if not line.startswith(b"#")]
                    of_campaigns = sum(b"{campaign=" in line for line in lines)
                    print(
                        f"{len(lines):,} series, {of_campaigns:,} of campaigns, {len(page):,} bytes, "
                        f"{statistics.median(took):.2f} s a scrape, {len(took)} scrapes",
                        flush=True,
                    )


if __name__ == "__main__":
    main()
