"""What features of requests are worth where the truth is linear, and what useless ones cost.

    python benchmarks/linear_streams.py [--games 6] [--jobs 2]

Random streams of the family `linear` (`budgetbandits.problems.families`), one for each game, with 0.06 of money for a
request. The first table has the share of the fluid bound that is earned: with features by `bts-linear`, without them by
`bts-paced`, and by a player who knows the mean reward and cost of every arm for every request, and plays at the price
on money of the program over requests for what is left.

The second is about 20 features of pure noise and none that matters: the true mean rewards of what `bts-linear` pulls
with these features, by those of the same arms without them, so that the luck of single rewards is left out.

± are standard errors over games. It takes about ten minutes on two cores.
"""

from __future__ import annotations

import argparse
import datetime
import itertools
from collections.abc import Iterable
from typing import Any

import joblib
import numpy as np
from numpy.typing import NDArray

from budgetbandits import simulate
from budgetbandits.problems.families import linear
from budgetbandits.problems.linear import LinearStream
from budgetbandits.problems.oracle_horizon import fluid_requests

MONEY = 0.06
FEATURES, ARMS, HORIZONS = (20, 5), (10, 3), (10_000, 2_000)
NOISE, NOISY_HORIZON = 20, 10_000
TRUTH = "knows the truth"
POLICIES = ("bts-linear", "bts-paced", TRUTH)


def knowing(stream: LinearStream, budget: float, horizon: int, seed: int) -> float:
    """The reward of a game of the player who knows the truth."""
    order, world = (np.random.default_rng(child) for child in np.random.SeedSequence(seed).spawn(2))
    reward, cost = stream.means(stream.typical_rows())
    prices = fluid_requests(stream, budget, float(horizon)).price * np.geomspace(5.0, 0.2, 65)
    spend = [cost[np.arange(len(cost)), (reward - price * cost).argmax(axis=1)].mean() for price in prices]
    left, earned = budget, 0.0
    for number, row in zip(range(horizon), stream.requests(order), strict=False):
        price = np.interp(left / (horizon - number), spend, prices)
        mean_reward, mean_cost = stream.means(row)
        pays, costs = stream.outcome(int((mean_reward - price * mean_cost).argmax()), row, world)
        if costs > left:
            break
        left, earned = left - costs, earned + pays
    return earned


def share(policy: str, features: int, arms: int, horizon: int, game: int) -> float:
    """Of the fluid bound, in one game on a stream of its own."""
    stream, budget = linear(features, arms, game), MONEY * horizon
    if policy == TRUTH:
        reward = knowing(stream, budget, horizon, game)
    else:
        reward = float(simulate(stream, policy, [budget], runs=1, seed=game, horizon=horizon).reward[0, 0])
    return reward / fluid_requests(stream, budget, float(horizon)).reward


def mean_rewards(noise: int, arms: int, game: int) -> float:
    """Of what `bts-linear` pulls in one game, with features that are all noise."""
    stream, horizon = linear(noise, arms, game, useless=noise), NOISY_HORIZON
    played = simulate(stream, "bts-linear", [MONEY * horizon], runs=1, seed=game, horizon=horizon)
    return float(played.pulls[0, 0] @ stream.reward_means)


def estimate(values: Iterable[float]) -> str:
    found: NDArray[np.float64] = np.array(list(values))
    error = found.std(ddof=1) / len(found) ** 0.5 if len(found) > 1 else np.nan
    return f"{100 * found.mean():.1f} ± {100 * error:.1f} %"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--games", type=int, default=6)
    parser.add_argument("--jobs", type=int, default=2)
    asked = parser.parse_args()
    cells = list(itertools.product(POLICIES, FEATURES, ARMS, HORIZONS))
    noises = list(itertools.product((NOISE, 0), ARMS))
    games = range(asked.games)
    parallel = joblib.Parallel(n_jobs=asked.jobs)
    tasks: list[Any] = [joblib.delayed(mean_rewards)(*noise, game) for noise in noises for game in games]
    tasks += [joblib.delayed(share)(*cell, game) for cell in cells for game in games]
    results = np.array(parallel(tasks)).reshape(-1, asked.games)
    rewards, shares = dict(zip(noises, results, strict=False)), dict(zip(cells, results[len(noises) :], strict=True))
    print(f"| features | arms | requests | {' | '.join(f'`{p}`' if p != TRUTH else p for p in POLICIES)} |")
    print("|---" * (3 + len(POLICIES)) + "|")
    for features, arms, horizon in sorted(itertools.product(FEATURES, ARMS, HORIZONS)):
        found = [estimate(shares[policy, features, arms, horizon]) for policy in POLICIES]
        print(f"| {features} | {arms} | {horizon:,} | {' | '.join(found)} |")
    print(f"\n| arms | reward with {NOISE} useless features, divided by that without them |\n|---|---|")
    for arms in sorted(ARMS):
        print(f"| {arms} | {estimate(rewards[NOISE, arms] / rewards[0, arms])} |")
    last, options = asked.games - 1, "" if asked.games == parser.get_default("games") else f" --games {asked.games}"
    command = f"python benchmarks/linear_streams.py{options}"
    print(f"\nMeasured by `{command}`, seeds 0 to {last}, {datetime.date.today():%Y-%m-%d}; {asked.games} games each.")


if __name__ == "__main__":
    main()
