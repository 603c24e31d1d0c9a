"""Whether money lasts where prices are known before the choice; the table of docs/measurements/pacing.md.

    python benchmarks/priced.py [GAMES]

Two arms bring 0.2 and 0.8 and cost 0.1 and 0.5 times a factor of each request's own, which is known: 1, or lognormal
with mean 1 and cut at 2. Games of 1,500 requests; also with the price on money that the mean costs alone give. The best
choice gives the costlier arm to the requests for which it is cheapest.
"""

from __future__ import annotations

import sys

import numpy as np

from budgetbandits.numerics.arrays import Array
from budgetbandits.numerics.fluid import arms_at_rate
from budgetbandits.policies.base import Knowledge, Request
from budgetbandits.policies.paced.policy import PacedThompson
from budgetbandits.policies.paced.selection import DrawnMeans
from budgetbandits.policies.paced.statistics import PacedState

REQUESTS, REWARDS, COSTS, LARGEST = 1_500, (0.2, 0.8), np.array([0.1, 0.5]), 2.0


class PricedByMeans(PacedThompson):
    """Paced Thompson sampling with the price on money of the mean costs, which ignores that estimates vary."""

    def priced(
        self, state: PacedState, request: Request, drawn: DrawnMeans, rng: np.random.Generator
    ) -> tuple[Array, Array]:
        prices, _ = super().priced(state, request, drawn, rng)
        return prices, arms_at_rate(drawn.reward, drawn.cost, drawn.weight, state.rate, request.segment).price


def game(policy: PacedThompson, rate: float, spread: float, seed: int) -> tuple[float, list[float]]:
    """The reward as a share of the best, and the share of the money that is spent after each fifth of the requests."""
    rng = np.random.default_rng(seed)
    factors = np.minimum(np.exp(spread * rng.standard_normal(REQUESTS) - spread**2 / 2), LARGEST)
    budget = rate * REQUESTS
    state = policy.start(2, Knowledge(budget=budget, horizon=float(REQUESTS)))
    earned, spent, spent_shares = 0.0, 0.0, []
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
            spent_shares.append(spent / budget)
    left = budget - COSTS[0] * factors.sum()
    costlier = int(np.searchsorted(np.cumsum(np.sort((COSTS[1] - COSTS[0]) * factors)), left))
    best = REWARDS[0] * REQUESTS + (REWARDS[1] - REWARDS[0]) * costlier
    return earned / best, spent_shares


def main(games: str = "8") -> None:
    print("| prices | money a request | policy | reward | money spent |")
    print("|---|---|---|---|---|")
    for name, spread in (("alike", 0.0), ("varied", 0.7)):
        for rate in (0.16, 0.3):
            for title, policy in (
                ("`bts-paced`", PacedThompson(forget=0.0)),
                ("by the price of the means", PricedByMeans(forget=0.0)),
            ):
                played = [game(policy, rate, spread, seed) for seed in range(int(games))]
                reward = np.array([share for share, _ in played])
                spent_shares = " ".join(f"{share:.2f}" for share in np.mean([shares for _, shares in played], axis=0))
                error = reward.std(ddof=1) / np.sqrt(len(reward)) if len(reward) > 1 else np.nan
                print(f"| {name} | {rate} | {title} | {reward.mean():.3f} ({error:.3f}) | {spent_shares} |", flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
