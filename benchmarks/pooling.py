"""Whether a segment finds an arm that is better there than elsewhere.

    python benchmarks/pooling.py [GAMES]

Four segments with rewards of 0.5 and 0.55, ± 0.02, at costs of 0.1 and 0.2 and with money for 0.15 a request, so that
both arms are pulled. From request 150 of 800 on a fifth segment comes, with 0.75 and 0.95. How many games end with the
costlier arm below 10 % of what the fifth segment had among the last 200 requests: with the limit on how sure a segment
starts (`policies/paced/pooling.py`), and without it.
"""

from __future__ import annotations

import math
import sys
from unittest.mock import patch

import numpy as np

from budgetbandits.policies.base import Knowledge, Request
from budgetbandits.policies.paced.policy import PacedThompson
from budgetbandits.policies.paced.pooling import MAX_PRIOR_STRENGTH

REQUESTS, BEFORE, LAST, MONEY, NOISE = 800, 150, 200, 0.15, 0.02
OTHERS, FIFTH, COSTS = (0.5, 0.55), (0.75, 0.95), (0.1, 0.2)


def share(policy: PacedThompson, seed: int) -> float:
    """Share of the more expensive arm in the fifth segment, at the end of a game."""
    state, rng = (
        policy.start(2, Knowledge(budget=MONEY * REQUESTS, horizon=float(REQUESTS))),
        np.random.default_rng(seed),
    )
    state.widen(5)
    chosen = []
    for number in range(REQUESTS):
        segment = int(rng.integers(4 if number < BEFORE else 5))
        if number >= BEFORE and rng.random() < 0.3:
            segment = 4
        arm = policy.choose(state, rng, Request(segment))
        assert arm is not None
        reward = float(np.clip((FIFTH if segment == 4 else OTHERS)[arm] + NOISE * rng.normal(), 0.0, 1.0))
        cost = float(np.clip(COSTS[arm] * (1.0 + NOISE * rng.normal()), 0.0, 1.0))
        policy.observe(state, arm, reward, cost, rng, Request(segment))
        if segment == 4 and number >= REQUESTS - LAST:
            chosen.append(arm)
    return float(np.mean(chosen))


def main(games: str = "20") -> None:
    for name, max_prior_strength in (("with the limit", MAX_PRIOR_STRENGTH), ("without it", math.inf)):
        with patch("budgetbandits.policies.paced.pooling.MAX_PRIOR_STRENGTH", max_prior_strength):
            stuck = sum(share(PacedThompson(forget=0.0), seed) < 0.1 for seed in range(100, 100 + int(games)))
        print(f"{name}: {stuck} of {games} games do without the better arm", flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
