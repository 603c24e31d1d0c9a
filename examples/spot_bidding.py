"""Bid on four spot markets from eight workers at once, for as much finished work as the budget buys.

Each hour on a spot machine costs the price of the moment, up to the bid, and may be interrupted before the hour's work
is done. All workers share one budget; the service sees to it that together they never spend more. A bid that wins no
machine is voided and costs nothing.

    python examples/spot_bidding.py
"""

import asyncio
import random
import uuid

from local_service import compare, service

from budgetbandits.client import AsyncClient, Client
from budgetbandits.errors import HoldRefused

BUDGET = 250.00
WORKERS = 8
BID = 0.60

MARKETS = {  # mean price of an hour, chance to be interrupted in it, chance to get a machine at all
    "frankfurt": (0.34, 0.20, 0.95), "ohio": (0.22, 0.45, 0.90), "tokyo": (0.41, 0.05, 0.95),
    "mumbai": (0.14, 0.15, 0.60),
}  # fmt: skip
chance = random.Random(1)


def run_for_an_hour(market):
    """The market: the share of the hour's work that got done and what it cost; None if no machine was to be had."""
    mean, interrupted, available = MARKETS[market]
    if chance.random() > available:
        return None
    cost = min(BID, chance.gammavariate(4.0, mean / 4.0))
    return (chance.random(), cost) if chance.random() < interrupted else (1.0, cost)


async def worker(client, campaign, pulls):
    """Bid, run and report until the money is spent."""
    while True:
        try:
            async with await client.decide(campaign, wait=5.0) as d:
                await asyncio.sleep(0)  # here the hour would pass
                outcome = run_for_an_hour(d.arm)
                if outcome is None:
                    await d.void()
                else:
                    pulls.append(outcome)
                    await d.settle(reward=outcome[0], cost=outcome[1])
        except HoldRefused:
            return


async def bid(url, key, campaign):
    pulls = []
    async with AsyncClient(url, key) as client:
        await asyncio.gather(*(worker(client, campaign, pulls) for _ in range(WORKERS)))
    return sum(work for work, _ in pulls), sum(cost for _, cost in pulls)


def even_split():
    """The same money in each market."""
    work = 0.0
    for market in MARKETS:
        left = BUDGET / len(MARKETS)
        while left > BID:
            outcome = run_for_an_hour(market)
            if outcome is not None:
                work, left = work + outcome[0], left - outcome[1]
    return work


with service() as (url, key), Client(url, key) as client:
    name = f"spot {uuid.uuid4().hex[:6]}"
    client.create(name, BUDGET, dict.fromkeys(MARKETS, BID), hold_seconds=7200)
    print(f"{WORKERS} workers bid on {len(MARKETS)} markets with {BUDGET:.2f} ...")
    compare("hours of work", BUDGET, *asyncio.run(bid(url, key, name)), even_split())
    print("  pulls: " + ", ".join(f"{arm.name} {arm.pulls}" for arm in client.campaign(name).arms))
