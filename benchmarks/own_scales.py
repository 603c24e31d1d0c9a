"""The gain from learning each arm's costs on its own scale; the table of docs/measurements/pacing.md.

    python benchmarks/own_scales.py [ORDERS]

The recorded answers of three language models, whose prices are up to 500 times apart (`test` alone, without segments).
`bts-paced` and `bts` play them twice: with the costs of each arm as shares of that arm's largest, and all as shares of
the largest of all. Mean reward of a request over shuffled orders, the same orders for both, the standard deviation from
order to order, and the paired difference with its 95 % interval.
"""

from __future__ import annotations

import sys

import numpy as np
from llm_routing import BUDGETS, COLUMNS, DATA

from budgetbandits.numerics.intervals import half_width
from budgetbandits.policies.base import Policy
from budgetbandits.policies.paced.policy import PacedThompson
from budgetbandits.policies.thompson import BudgetedThompson
from budgetbandits.problems.records import ReplayTable
from budgetbandits.simulation.replay import replay


class PacedOnOneScale(PacedThompson):
    own_scales = False


class OnOneScale(BudgetedThompson):
    own_scales = False


def main(orders: str = "40") -> None:
    table = ReplayTable.from_csv(DATA / "llm-routing-test.csv", COLUMNS).without_segments()
    print("| policy | dollars a request | own scales | std | one scale | std | difference |")
    print("|---|---|---|---|---|---|---|")
    pairs: list[tuple[Policy, Policy]] = [
        (PacedThompson(forget=0.0), PacedOnOneScale(forget=0.0)),
        (BudgetedThompson(), OnOneScale()),
    ]
    for own, common in pairs:
        for rate in BUDGETS:
            one, other = (replay(table, policy, rate, int(orders)).reward for policy in (own, common))
            gain = one - other
            half = half_width(gain.std(ddof=1) / np.sqrt(len(gain)), len(gain))
            cells = [f"{values:.4f}" for shares in (one, other) for values in (shares.mean(), shares.std(ddof=1))]
            print(f"| `{own.name}` | {rate:g} | {' | '.join(cells)} | {gain.mean():+.4f} ± {half:.4f} |", flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
