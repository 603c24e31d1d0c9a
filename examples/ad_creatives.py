"""Show ad creatives whose price is known at once and whose conversions come later, in batches, late or never.

The cost of an impression is reported at once, so its money is settled. Conversions arrive hours later, several at a
time and some of them twice; after two days without one, a reward of 0 is reported. Time is simulated.

    python examples/ad_creatives.py
"""

import heapq
import random
import uuid

from local_service import compare, service

from budgetbandits.client import Client
from budgetbandits.errors import HoldRefused

BUDGET = 300.00
CAP = 0.40
PATIENCE = 48.0
"""Hours after which an impression is taken to have brought nothing."""

CREATIVES = {  # mean price of a click, chance that it converts (unknown to the service)
    "blue, short": (0.20, 0.040), "blue, long": (0.22, 0.055), "red, short": (0.15, 0.030),
    "red, long": (0.18, 0.035), "video": (0.30, 0.150), "cartoon": (0.10, 0.012),
}  # fmt: skip
chance = random.Random(9)


def show(name):
    """The exchange: what the click cost, and after how many hours it converts (never: None)."""
    mean, converts = CREATIVES[name]
    delay = chance.expovariate(1 / 9.0)
    return min(CAP, chance.expovariate(1 / mean)), delay if chance.random() < converts and delay < PATIENCE else None


def run(client, campaign):
    """Ten impressions an hour until the money is spent, and then the conversions that are still to come."""
    coming, converted, spent, hour = [], 0, 0.0, 0  # coming: (hour, decision, reward)
    while True:
        hour += 1
        due = []
        while coming and coming[0][0] <= hour:
            due.append(heapq.heappop(coming))
        converted += sum(reward for _, _, reward in due)
        outcomes = [{"decision": decision, "reward": float(reward)} for _, decision, reward in due]
        for first in range(0, len(outcomes), 100):  # delivered twice now and then: it counts once
            client.feedback_many(campaign, outcomes[first : first + 100])
            if chance.random() < 0.2:
                client.feedback_many(campaign, outcomes[first : first + 100])
        try:
            shown = client.decide_many(campaign, 10, key=f"hour {hour}")
        except HoldRefused:
            if not coming:
                return converted, spent
            continue
        costs = []
        for d in shown:
            cost, delay = show(d.arm)
            spent += cost
            costs.append({"decision": d.id, "cost": cost})
            late = hour + (PATIENCE if delay is None else delay)
            heapq.heappush(coming, (late, d.id, delay is not None))
        client.feedback_many(campaign, costs)


def even_split():
    """The same money on each creative."""
    converted = 0
    for name in CREATIVES:
        left = BUDGET / len(CREATIVES)
        while left > CAP:
            cost, delay = show(name)
            left, converted = left - cost, converted + (delay is not None)
    return converted


with service() as (url, key), Client(url, key) as client:
    name = f"creatives {uuid.uuid4().hex[:6]}"
    client.create(name, BUDGET, dict.fromkeys(CREATIVES, CAP), hold_seconds=600)
    print(f"Showing {len(CREATIVES)} creatives for {BUDGET:.2f}, conversions up to {PATIENCE:g} hours late ...")
    compare("conversions", BUDGET, *run(client, name), even_split())
    print("  pulls: " + ", ".join(f"{arm.name} {arm.pulls}" for arm in client.campaign(name).arms))
