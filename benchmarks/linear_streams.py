"""The value of features of requests where the truth is linear, and the cost of useless ones.

    python benchmarks/linear_streams.py [--games 6] [--jobs 2]
    python benchmarks/linear_streams.py --useless [--games 6] [--jobs 2]

Random streams of the family `linear` (`budgetbandits.problems.families`), one for each game, with 0.06 of money for a
request. The first table has the share of the fluid bound that is earned: with features by `bts-linear`, without them by
`bts-paced`, and by a player who knows the mean reward and cost of every arm for every request, and plays at the price
on money of the program over requests for what is left.

With ``--useless``: what `bts-linear` earns when requests show 20 features of pure noise, divided by what it earns on
the same stream without them, where no other feature matters and where five do.

± are standard errors over games. Each table takes about ten minutes on two cores.
"""

from __future__ import annotations

import argparse
import datetime
import itertools
from collections.abc import Iterable
from dataclasses import replace
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
NOISE, USEFUL = 20, (0, 5)
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
    """Share of the fluid bound that a policy earns in one game on a stream of its own."""
    stream, budget = linear(features, arms, game), MONEY * horizon
    if policy == TRUTH:
        reward = knowing(stream, budget, horizon, game)
    else:
        reward = float(simulate(stream, policy, [budget], runs=1, seed=game, horizon=horizon).reward[0, 0])
    return reward / fluid_requests(stream, budget, float(horizon)).reward


def without_noise(stream: LinearStream, useful: int) -> LinearStream:
    """The same arms for requests that show their first features alone; the others must have no effect."""
    arms = (
        replace(arm, reward_slopes=arm.reward_slopes[:useful], cost_slopes=arm.cost_slopes[:useful])
        for arm in stream.arms
    )
    return LinearStream(stream.features[:useful], tuple(arms))


def noisy_reward(useful: int, noise: int, arms: int, horizon: int, game: int) -> float:
    """The reward of `bts-linear` in one game, with as many features of noise after the useful ones."""
    stream = linear(useful + NOISE, arms, game, useless=NOISE)
    seen = stream if noise else without_noise(stream, useful)
    return float(simulate(seen, "bts-linear", [MONEY * horizon], runs=1, seed=game, horizon=horizon).reward[0, 0])


def estimate(values: Iterable[float]) -> str:
    """A mean in per cent, with its standard error."""
    sample: NDArray[np.float64] = np.array(list(values))
    error = sample.std(ddof=1) / len(sample) ** 0.5 if len(sample) > 1 else np.nan
    return f"{100 * sample.mean():.1f} ± {100 * error:.1f} %"


def worth(games: int, jobs: int) -> None:
    """Print the share of the bound that each policy earns."""
    cells = sorted(itertools.product(FEATURES, ARMS, HORIZONS))
    print(f"| features | arms | requests | {' | '.join(f'`{p}`' if p != TRUTH else p for p in POLICIES)} |")
    print("|---" * (3 + len(POLICIES)) + "|")
    tasks: list[Any] = [
        joblib.delayed(share)(policy, *cell, game) for cell in cells for policy in POLICIES for game in range(games)
    ]
    shares = iter(joblib.Parallel(n_jobs=jobs, return_as="generator")(tasks))
    for features, arms, horizon in cells:
        row = [estimate(itertools.islice(shares, games)) for _ in POLICIES]
        print(f"| {features} | {arms} | {horizon:,} | {' | '.join(row)} |", flush=True)


def useless(games: int, jobs: int) -> None:
    """Print what noise costs."""
    cells = sorted(itertools.product(USEFUL, ARMS, HORIZONS))
    print(f"| useful features | arms | requests | reward with {NOISE} useless features, divided by that without them |")
    print("|---|---|---|---|")
    tasks: list[Any] = [
        joblib.delayed(noisy_reward)(useful, noise, arms, horizon, game)
        for useful, arms, horizon in cells
        for noise in (NOISE, 0)
        for game in range(games)
    ]
    rewards = iter(joblib.Parallel(n_jobs=jobs, return_as="generator")(tasks))
    for useful, arms, horizon in cells:
        noisy, clean = (np.array(list(itertools.islice(rewards, games))) for _ in range(2))
        print(f"| {useful} | {arms} | {horizon:,} | {estimate(noisy / clean)} |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--games", type=int, default=6)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--useless", action="store_true", help="the table of useless features")
    asked = parser.parse_args()
    if asked.useless:
        useless(asked.games, asked.jobs)
    else:
        worth(asked.games, asked.jobs)
    options = " --useless" * asked.useless + f" --games {asked.games}" * (asked.games != parser.get_default("games"))
    command = f"python benchmarks/linear_streams.py{options}"
    today = f"{datetime.date.today():%Y-%m-%d}"
    print(f"\nMeasured by `{command}`, seeds 0 to {asked.games - 1}, {today}; {asked.games} games each.")


if __name__ == "__main__":
    main()
