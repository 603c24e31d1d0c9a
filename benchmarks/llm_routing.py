"""The table of docs/paced.md: policies on recorded answers of three language models, next to the source's figures.

    python benchmarks/llm_routing.py [ORDERS] [segments | none]

Each policy learns on the table `online` and is then played on `test` (warm), or is played on `test` alone (cold), at
five budgets, with and without the segments (which benchmark a prompt comes from). Twenty orders take some minutes.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

from budgetbandits.policies import parse_policy
from budgetbandits.problems.records import ReplayTable
from budgetbandits.simulation.replay import ReplayResult, fluid_reward_of, replay

DATA = Path(__file__).parent.parent / "examples/data"
COLUMNS = {"request": "prompt", "arm": "model", "reward": "reward", "cost": "cost_usd", "segment": "source"}
BUDGETS = [8.3e-5, 2.3e-4, 6.6e-4, 1.9e-3, 5.3e-3]
SOURCE = [0.813, 0.859, 0.898, 0.917, 0.924]
"""What the source of the data reports for its router, which learns on `online` from embeddings of the prompts."""


def main(orders: str = "20", which: str = "") -> None:
    online = ReplayTable.from_csv(DATA / "llm-routing-online.csv", COLUMNS)
    test = ReplayTable.from_csv(
        DATA / "llm-routing-test.csv", COLUMNS, arms=online.arms, segments=online.segments
    )  # fmt: skip
    print("|", " | ".join(["dollars a request", *(f"{rate:g}" for rate in BUDGETS)]), "|")
    print("|---" * (len(BUDGETS) + 1) + "|")
    print("|", " | ".join(["the source's router, warm", *(f"{reward:.3f}" for reward in SOURCE)]), "|")
    for segments in {"segments": (True,), "none": (False,)}.get(which, (True, False)):
        first, second = (table if segments else table.without_segments() for table in (online, test))
        among = "a mix for each segment" if segments else "one mix"
        best = [fluid_reward_of(second, rate) for rate in BUDGETS]
        print("|", " | ".join([f"best, means known, {among}", *(f"{reward:.3f}" for reward in best)]), "|")
        for name in ("bts-paced", *(() if segments else ("primal-dual-bwk",))):
            for learn_on in (first, None):
                played = [replay(second, parse_policy(name), rate, int(orders), learn_on=learn_on) for rate in BUDGETS]
                with_segments = ", segments" if segments else ""
                title = f"`{name}`{with_segments}, {'cold' if learn_on is None else 'warm'}"
                print("|", " | ".join([title, *map(cell, played)]), "|", flush=True)
                used = ", ".join(f"{each.used.mean():.3f} (most {each.used.max():.4f})" for each in played)
                print(f"{title}: share of the budget used {used}", file=sys.stderr, flush=True)


def cell(played: ReplayResult) -> str:
    """Mean reward and, in brackets, its standard error over the orders."""
    error = np.std(played.reward, ddof=1) / np.sqrt(len(played.reward)) if len(played.reward) > 1 else np.nan
    return f"{played.reward.mean():.4f} ({error:.4f})"


if __name__ == "__main__":
    main(*sys.argv[1:])
