"""How many ask + tell pairs a second: our Allocation with BTS next to what users would pick instead.

All play the same Bernoulli arms for the same processor time, in turns, each in a process of its own; the figure is the
median of the turns. The others run their plain Thompson sampling, which looks at rewards alone and so draws half as
much as BTS. Other versions of the package play along:

    make benchmark
    python benchmarks/ask_tell.py before=/tmp/before/src

`bts-linear`, whose requests have 32 features, plays where it is asked for:

    python benchmarks/ask_tell.py --arms 5 --only bts-linear budgetbandits
"""

from __future__ import annotations

import argparse
import logging
import os
import subprocess
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path
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
        name = ask.arm if hasattr(ask, "arm") else str(ask)  # in earlier versions an ask is its arm's name
        reward, cost = world.pull(world.number[name])
        spend.tell(ask, reward=reward, cost=cost)

    return pair


def linear(world: World) -> Pair:
    """The linear policy with 32 features, costs that depend on the first, and a budget for all requests."""
    names, count = [f"feature {number}" for number in range(32)], 2000
    rows = np.random.default_rng(2).standard_normal((count, len(names)))
    requests = [dict(zip(names, row, strict=True)) for row in rows.tolist()]
    spend = Allocation("bts-linear", world.names, budget=1e6, horizon=1e7, features=names, seed=1)
    number = 0

    def pair() -> None:
        nonlocal number
        number = (number + 1) % count
        ask = spend.ask(features=requests[number])
        reward, _ = world.pull(world.number[ask.arm])
        spend.tell(
            ask, reward=reward, cost=0.1 * (1 + world.number[ask.arm]) * float(np.exp(0.2 * np.tanh(rows[number, 0])))
        )

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
ASKED_FOR = {"bts-linear": linear}
"""Contenders that play only where they are named."""


def rate(pair: Pair, seconds: float) -> float:
    """Pairs in a second of processor time."""
    began = time.process_time()
    pairs = 0
    while (spent := time.process_time() - began) < seconds:
        for _ in range(10):
            pair()
        pairs += 10
    return pairs / spent


class Turns:
    """A contender in a process of its own, with the package from one place; the figures of its turns."""

    def __init__(self, name: str, source: str, arms: int) -> None:
        command = [sys.executable, __file__, "--turns-of", name, "--arms", str(arms)]
        environment = os.environ | ({"PYTHONPATH": str(Path(source).resolve())} if source else {})
        self._process = subprocess.Popen(
            command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        self.rates: list[float] = []

    def ready(self) -> bool:
        """Wait until it can begin; False if it is not installed."""
        return self._answer() == "ready"

    def _answer(self) -> str:
        assert self._process.stdout is not None
        return self._process.stdout.readline().strip()

    def take(self, seconds: float) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(f"{seconds}\n")
        self._process.stdin.flush()
        self.rates.append(float(self._answer()))

    def end(self) -> None:
        self._process.communicate()


def take_turns(name: str, arms: int) -> None:
    """Take a turn for each line of input, in the contender's own process."""
    try:
        pair = (CONTENDERS | ASKED_FOR)[name](World(arms))
    except ImportError as error:
        print(error)
        return
    print("ready", flush=True)
    for line in sys.stdin:
        print(rate(pair, float(line)), flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("versions", nargs="*", help="name=PATH/src of other versions of the package")
    parser.add_argument("--arms", type=int, nargs="+", default=[10, 100, 1000])
    parser.add_argument("--seconds", type=float, default=0.2, help="of processor time in one turn")
    parser.add_argument("--turns", type=int, default=11)
    parser.add_argument("--only", nargs="+", choices=[*CONTENDERS, *ASKED_FOR], help="instead of all contenders")
    parser.add_argument("--turns-of", help=argparse.SUPPRESS)
    options = parser.parse_args()
    warnings.filterwarnings("ignore")
    logging.disable(logging.CRITICAL)  # some of the others log every call
    if options.turns_of:
        take_turns(options.turns_of, options.arms[0])
        return
    sources = {name: (name, "") for name in options.only or CONTENDERS}
    for version in options.versions:
        label, _, source = version.partition("=")
        sources[label] = ("budgetbandits", source)
    for arms in options.arms:
        playing = {label: Turns(name, source, arms) for label, (name, source) in sources.items()}
        for label in [label for label, turns in playing.items() if not turns.ready()]:
            print(f"{label} is left out; install it with pip")
            playing.pop(label).end()
        for _ in range(options.turns + 1):  # the first warms up
            for turns in playing.values():
                turns.take(options.seconds)
        medians = {label: median(turns.rates[1:]) for label, turns in playing.items()}
        print(f"K = {arms}: ask + tell pairs a second", flush=True)
        for label, turns in playing.items():
            turns.end()
            times = medians["budgetbandits"] / medians[label]
            print(f"  {label:16}{medians[label]:>9,.0f}{f'{times:.2f} times slower':>20}", flush=True)


if __name__ == "__main__":
    main()
