"""How many ask + tell pairs a second: our Allocation with BTS beside what users would pick instead.

Everybody plays the same Bernoulli arms for the same time, in turns, in one process; the figure is the median of the
turns. The others run their plain Thompson sampling, which looks at rewards alone and so draws half as much as BTS.

    make benchmark
"""

from __future__ import annotations

import argparse
import logging
import time
import warnings
from collections.abc import Callable
from statistics import median

import numpy as np

from budgetbandits import Allocation, BudgetedThompson

Pair = Callable[[], None]
"""One choice, and the feedback for it."""


class World:
    """Bernoulli arms; outcomes are drawn beforehand so that the clock sees the contender alone."""

    def __init__(self, arms: int) -> None:
        rng = np.random.default_rng(arms)
        self.names = [f"arm-{i}" for i in range(arms)]
        self.number = {name: i for i, name in enumerate(self.names)}
        self._means = rng.uniform(0.1, 1.0, size=(2, arms)).tolist()
        self._uniform = rng.random(1 << 16).tolist()
        self._next = 0

    def pull(self, arm: int) -> tuple[int, int]:
        u = self._uniform
        self._next = (self._next + 2) & 0xFFFF
        return int(u[self._next] < self._means[0][arm]), int(u[self._next + 1] < self._means[1][arm])


def budgetbandits(world: World) -> Pair:
    spend = Allocation(BudgetedThompson(), world.names, budget=1e12, seed=1)

    def pair() -> None:
        ask = spend.ask()
        reward, cost = world.pull(world.number[ask.arm])
        spend.tell(ask, reward, cost)

    return pair


def numpy_thompson(world: World) -> Pair:
    """Ten lines of NumPy, no names, no checks, no budget, rewards alone."""
    rng = np.random.default_rng(1)
    successes, failures = np.ones(len(world.names)), np.ones(len(world.names))

    def pair() -> None:
        arm = int(rng.beta(successes, failures).argmax())
        reward, _ = world.pull(arm)
        successes[arm] += reward
        failures[arm] += 1 - reward

    return pair


def mabwiser(world: World) -> Pair:
    from mabwiser.mab import MAB, LearningPolicy

    mab = MAB(world.names, LearningPolicy.ThompsonSampling(), seed=1)
    mab.fit(world.names, [0] * len(world.names))

    def pair() -> None:
        arm = mab.predict()
        reward, _ = world.pull(world.number[arm])
        mab.partial_fit([arm], [reward])

    return pair


def river(world: World) -> Pair:
    from river import bandit, proba

    policy = bandit.ThompsonSampling(reward_obj=proba.Beta(), seed=1)

    def pair() -> None:
        arm = policy.pull(world.names)
        reward, _ = world.pull(world.number[arm])
        policy.update(arm, reward)

    return pair


def pybandits(world: World) -> Pair:
    from pybandits.smab import SmabBernoulli

    mab = SmabBernoulli.cold_start(action_ids=set(world.names))

    def pair() -> None:
        (arm, *_), _ = mab.predict(n_samples=1)
        reward, _ = world.pull(world.number[arm])
        mab.update(actions=[arm], rewards=[reward])

    return pair


def rovingbandit(world: World) -> Pair:
    from rovingbandit import ThompsonSampling

    policy = ThompsonSampling(len(world.names), seed=1)

    def pair() -> None:
        arm = policy.select_arm()
        reward, _ = world.pull(arm)
        policy.update(arm, reward)

    return pair


CONTENDERS: dict[str, Callable[[World], Pair]] = {
    "budgetbandits": budgetbandits,
    "mabwiser": mabwiser,
    "river": river,
    "pybandits": pybandits,
    "rovingbandit": rovingbandit,
    "NumPy by hand": numpy_thompson,
}


def rate(pair: Pair, seconds: float) -> float:
    began = time.perf_counter()
    pairs = 0
    while (spent := time.perf_counter() - began) < seconds:
        for _ in range(10):
            pair()
        pairs += 10
    return pairs / spent


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--arms", type=int, nargs="+", default=[10, 100, 1000])
    parser.add_argument("--seconds", type=float, default=0.5, help="of one turn")
    parser.add_argument("--turns", type=int, default=5)
    options = parser.parse_args()
    warnings.filterwarnings("ignore")
    logging.disable(logging.CRITICAL)  # some of the others log every call
    print(f"{'ask + tell pairs a second':16}" + "".join(f"{f'K = {arms}':>14}" for arms in options.arms))
    table: dict[str, list[float]] = {name: [] for name in CONTENDERS}
    for arms in options.arms:
        pairs: dict[str, Pair] = {}
        for name, make in CONTENDERS.items():
            try:
                pairs[name] = make(World(arms))
            except ImportError as error:
                print(f"{name} is left out: {error}; install it with pip")
        turns = [{name: rate(pair, options.seconds) for name, pair in pairs.items()} for _ in range(options.turns)]
        for name in pairs:
            table[name].append(median(turn[name] for turn in turns))
    ours = table["budgetbandits"]
    for name, rates in table.items():
        if rates:
            cells = "".join(f"{r:>9,.0f}{f'{r / o:.2f}×':>8}" for r, o in zip(rates, ours, strict=True))
            print(f"{name:16}{cells}")


if __name__ == "__main__":
    main()
