"""Route requests between three priced language models, so that the money lasts for all of them.

The answers and their prices are recorded ones (examples/data/README.md): how good each model's answer to the same 1,824
prompts was, and what it cost. The allocation knows which benchmark a prompt comes from, as a program knows which of
its features asks, and is shown the outcome of the model that it chose, and no other.

    python examples/llm_routing.py [DOLLARS_PER_REQUEST]
"""

import sys
from pathlib import Path

import numpy as np

from budgetbandits import Allocation
from budgetbandits.problems.records import ReplayTable

COLUMNS = {"request": "prompt", "arm": "model", "reward": "reward", "cost": "cost_usd", "segment": "source"}
table = ReplayTable.from_csv(Path(__file__).parent / "data/llm-routing-test.csv", COLUMNS)
dollars = float(sys.argv[1]) if len(sys.argv) > 1 else 2.3e-4

spend = Allocation(
    "bts-paced",
    table.arms,
    budget=dollars * len(table),
    cost_max=dict(zip(table.arms, table.costs.max(axis=0), strict=True)),
    horizon=len(table),
    seed=1,
)
answers = {segment: dict.fromkeys(table.arms, 0) for segment in table.segments}
for number in np.random.default_rng(1).permutation(len(table)):
    segment = table.segments[table.segment[number]]
    fits = [arm for arm, cost in zip(table.arms, table.costs[number], strict=True) if cost <= spend.left]
    if not fits:
        break
    ask = spend.ask(segment=segment, arms=fits)
    model = table.arms.index(ask.arm)
    spend.tell(ask, reward=table.rewards[number, model], cost=table.costs[number, model])
    answers[segment][ask.arm] += 1

print(f"{len(table):,} requests with {spend.budget:.4f} dollars: spent {spend.spent:.4f}")
print(f"  bts-paced, knowing nothing at first   {spend.earned / len(table):.3f} reward a request")
for model, name in enumerate(table.arms):
    reward, cost = table.rewards[:, model].mean(), table.costs[:, model].mean()
    answered = min(1.0, dollars / cost)
    short = "" if answered == 1.0 else f", and the money would last for {answered:.0%} of the requests"
    print(f"  always {name:<34} {reward * answered:.3f} reward a request{short}")
print("\nAnswers by segment:")
for segment, counts in answers.items():
    shares = ", ".join(f"{name.split('/')[1]} {count / sum(counts.values()):.0%}" for name, count in counts.items())
    print(f"  {segment:<16} {shares}")
