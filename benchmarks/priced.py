"""Whether money lasts where prices are known before the choice; the table of docs/paced.md, "Estimates".

    python benchmarks/priced.py [GAMES]

Two arms bring 0.2 and 0.8 and cost 0.1 and 0.5 times a factor of each request's own, which is known: 1, or lognormal
with mean 1 and cut at 2. Games of 1,500 requests; by the rules before estimates were looked at for the price on money,
too. The best choice gives the dearer arm to the requests for which it is cheapest.
"""

from __future__ import annotations

import sys

import numpy as np

from budgetbandits.policies.base import Request
from budgetbandits.policies.paced import PacedThompson
from budgetbandits.service.earlier_policies import as_it_was

REQUESTS, REWARDS, COSTS, LARGEST = 1_500, (0.2, 0.8), np.array([0.1, 0.5]), 2.0


def game(policy: PacedThompson, rate: float, spread: float, seed: int) -> tuple[float, list[float]]:
    """The reward as a share of the best, and the share of the money that is gone after each fifth of the requests."""
    rng = np.random.default_rng(seed)
    factors = np.minimum(np.exp(spread * rng.standard_normal(REQUESTS) - spread**2 / 2), LARGEST)
    budget = rate * REQUESTS
    state = policy.start(2, {"budget": budget, "horizon": float(REQUESTS)})
    earned, spent, gone = 0.0, 0.0, []
    for number, factor in enumerate(factors.tolist()):
        request = Request(0, factor * COSTS)
        arm = policy.choose(state, rng, request)
        assert arm is not None
        cost = float(factor * COSTS[arm])
        if spent + cost <= budget:
            reward = float(rng.random() < REWARDS[arm])
            policy.observe(state, arm, reward, cost, rng, request)
            earned, spent = earned + REWARDS[arm], spent + cost
        if (number + 1) % (REQUESTS // 5) == 0:
            gone.append(spent / budget)
    left = budget - COSTS[0] * factors.sum()
    dearer = int(np.searchsorted(np.cumsum(np.sort((COSTS[1] - COSTS[0]) * factors)), left))
    best = REWARDS[0] * REQUESTS + (REWARDS[1] - REWARDS[0]) * dearer
    return earned / best, gone


def main(games: str = "8") -> None:
    print("| prices | money a request | policy | reward | money gone |")
    print("|---|---|---|---|---|")
    for name, spread in (("alike", 0.0), ("varied", 0.7)):
        for rate in (0.16, 0.3):
            for title, rules in (("`bts-paced`", 5), ("by the price of the means", 4)):
                policy = as_it_was(PacedThompson(), rules)
                assert isinstance(policy, PacedThompson)
                played = [game(policy, rate, spread, seed) for seed in range(int(games))]
                reward = np.array([share for share, _ in played])
                gone = " ".join(f"{share:.2f}" for share in np.mean([each for _, each in played], axis=0))
                error = reward.std(ddof=1) / np.sqrt(len(reward)) if len(reward) > 1 else np.nan
                print(f"| {name} | {rate} | {title} | {reward.mean():.3f} ({error:.3f}) | {gone} |", flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
