"""The cost of failures: random ones, and a provider that is down for a minute, next to the same run without them.

    python benchmarks/failing_provider.py [--seeds 8] [--only Allocation | service | minute] [--rates 10 1000]

Three language models with mean prices of 0.0008, 0.006 and 0.04 and mean ratings of 0.45, 0.65 and 0.8; `bts-paced`
with a budget of 0.005 for each request, which come at 10 or 1,000 a second by a virtual clock. An answer or
a failure is reported 0.1 seconds after the request. A call that fails earns nothing and costs ``--failed-cost`` of its
price, nothing unless said otherwise; nobody tries again. The same seed has the same ratings and prices in every run.

Printed: the share of the requests that were answered; the reward by that of the same seed without failures; the share
of the budget that was spent; and after which share of the requests no money was left, 100 % if it never was. Each is a
mean with a 95 % interval over the seeds. The service is the `DecisionService` on SQLite. Where there are too few
requests for a minute, an arm is down for a third of the time; ``--only minute`` plays a whole one at 1,000
requests a second.
"""

from __future__ import annotations

import argparse
import heapq
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Protocol

import numpy as np

from budgetbandits import Allocation
from budgetbandits.errors import BudgetExhausted, HoldRefused
from budgetbandits.numerics.intervals import student_quantile
from budgetbandits.service.service import DecisionService
from budgetbandits.service.stores.sqlite import SQLiteStore

PRICES = {"small": 0.0008, "medium": 0.006, "large": 0.04}
RATINGS = {"small": 0.45, "medium": 0.65, "large": 0.8}
CAPS = {name: 3.0 * price for name, price in PRICES.items()}
MONEY = 0.005
"""Money for each request."""
DELAY = 0.1
"""Seconds until a request is reported."""


class Router(Protocol):
    """Anything that decides which provider answers."""

    def ask(self, now: float) -> tuple[str, str]:
        """The arm for a request, and the name of the decision."""

    def tell(self, decision: str, now: float, reward: float | None, cost: float) -> None:
        """Report the reward of a decision, None if it failed, and its cost."""

    @property
    def spent(self) -> float: ...


class InProgram:
    """An `Allocation`."""

    def __init__(self, requests: int, seed: int) -> None:
        money = MONEY * requests
        self._spend = Allocation("bts-paced", list(PRICES), money, cost_max=CAPS, horizon=requests, seed=seed)

    def ask(self, now: float) -> tuple[str, str]:
        ask = self._spend.ask()
        return ask.arm, str(ask.id)

    def tell(self, decision: str, now: float, reward: float | None, cost: float) -> None:
        self._spend.tell(int(decision), reward=reward, cost=cost, failed=reward is None)

    @property
    def spent(self) -> float:
        return self._spend.spent


class InService:
    """A campaign of a decision service."""

    def __init__(self, requests: int, file: Path) -> None:
        self._now, self._asked = 1_700_000_000.0, 0
        self._engine = DecisionService(SQLiteStore(file), lambda: self._now)
        self._id = self._engine.create("models", "bts-paced", MONEY * requests, CAPS, horizon=requests)

    def ask(self, now: float) -> tuple[str, str]:
        self._now, self._asked = 1_700_000_000.0 + now, self._asked + 1
        answer = self._engine.decide(self._id, str(self._asked))
        return answer.arm, answer.decision

    def tell(self, decision: str, now: float, reward: float | None, cost: float) -> None:
        self._now = 1_700_000_000.0 + now
        self._engine.feedback(decision, reward=reward, cost=cost, failed=reward is None)

    @property
    def spent(self) -> float:
        return self._engine.account(self._id).spent / 1e6


@dataclass(frozen=True)
class Trouble:
    """Which share of the calls fails, and which arms are down from when to when, in seconds."""

    name: str
    share: float = 0.0
    down: tuple[str, ...] = ()
    begins: float = 0.0
    ends: float = 0.0

    def fails(self, arm: str, now: float, lot: float) -> bool:
        return lot < self.share or (arm in self.down and self.begins <= now < self.ends)


@dataclass(frozen=True)
class Run:
    """The outcome of a run: shares of all requests, and the reward."""

    answered: float
    reward: float
    spent: float
    lasted: float


def play(router: Router, requests: int, rate: float, trouble: Trouble, seed: int, failed_cost: float) -> Run:
    """All requests, at the times at which they come."""
    rng = np.random.default_rng(seed)
    lots, ratings, sizes = rng.random(requests), rng.random(requests), np.minimum(rng.gamma(4.0, 0.25, requests), 3.0)
    under_way: list[tuple[float, int, str, float | None, float]] = []
    answered, reward, lasted = 0, 0.0, requests

    def hear(until: float) -> None:
        nonlocal answered, reward
        while under_way and under_way[0][0] <= until:
            at, _, decision, brought, cost = heapq.heappop(under_way)
            router.tell(decision, at, brought, cost)
            answered += brought is not None
            reward += brought or 0.0

    for number in range(requests):
        now = number / rate
        hear(now)
        try:
            arm, decision = router.ask(now)
        except (BudgetExhausted, HoldRefused) as refused:
            if isinstance(refused, BudgetExhausted) or refused.reason == "exhausted":  # or it is held by other calls
                lasted = min(lasted, number)
            continue
        cost = PRICES[arm] * float(sizes[number])
        if trouble.fails(arm, now, lots[number]):
            report: tuple[float | None, float] = None, failed_cost * cost
        else:
            report = float(ratings[number] < RATINGS[arm]), cost
        heapq.heappush(under_way, (now + DELAY, number, decision, *report))
    hear(np.inf)
    return Run(answered / requests, reward, router.spent / (MONEY * requests), lasted / requests)


def interval(values: Sequence[float]) -> str:
    """The mean in per cent, with its interval."""
    mean, runs = 100.0 * float(np.mean(values)), len(values)
    if runs < 2:
        return f"{mean:.1f}"
    half = 100.0 * student_quantile(0.975, runs - 1) * float(np.std(values, ddof=1)) / runs**0.5
    return f"{mean:.1f} ± {half:.1f}"


def show(
    where: str, make: Callable[[int, int], Router], cases: Sequence[tuple[float, int, Sequence[Trouble]]],
    seeds: int, failed_cost: float,
) -> None:  # fmt: skip
    for rate, requests, troubles in cases:
        without = [play(make(requests, seed), requests, rate, Trouble("none"), seed, 0.0) for seed in range(seeds)]
        line(where, rate, requests, "none", without, without)
        for trouble in troubles:
            runs = [play(make(requests, seed), requests, rate, trouble, seed, failed_cost) for seed in range(seeds)]
            line(where, rate, requests, trouble.name, runs, without)


def line(where: str, rate: float, requests: int, name: str, runs: Sequence[Run], without: Sequence[Run]) -> None:
    cells = [
        [run.answered for run in runs],
        [run.reward / usual.reward for run, usual in zip(runs, without, strict=True)],
        [run.spent for run in runs],
        [run.lasted for run in runs],
    ]
    print(f"| {where} | {rate:,.0f} | {requests:,} | {name} | {' | '.join(map(interval, cells))} |", flush=True)


def troubles(seconds: float) -> list[Trouble]:
    """The troubles of a run of this many seconds: a provider fails after a third of it, for at most a minute."""
    begins, ends = seconds / 3.0, seconds / 3.0 + min(60.0, seconds / 3.0)
    for_how_long = f"{ends - begins:.3g} s"
    return [
        Trouble("1 % fail", 0.01), Trouble("5 % fail", 0.05),
        Trouble(f"medium down for {for_how_long}", 0.0, ("medium",), begins, ends),
        Trouble(f"small and medium down for {for_how_long}", 0.0, ("small", "medium"), begins, ends),
    ]  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=8)
    parser.add_argument("--only", choices=["Allocation", "service", "minute"])
    parser.add_argument("--rates", type=float, nargs="+", default=[10.0, 1_000.0], help="requests a second")
    parser.add_argument("--failed-cost", type=float, default=0.0)
    wanted = parser.parse_args()
    print("| | requests a second | requests | trouble | answered | reward | spent | money lasted |")
    print("|---|---:|---:|---|---:|---:|---:|---:|")
    sizes = [(rate, 1_800 if rate < 100.0 else 3_000) for rate in wanted.rates]
    cases = [(rate, requests, troubles(requests / rate)) for rate, requests in sizes]
    if wanted.only in (None, "Allocation"):
        show("Allocation", InProgram, cases, wanted.seeds, wanted.failed_cost)
    if wanted.only in (None, "service"):
        with tempfile.TemporaryDirectory() as folder:
            numbers = count()

            def in_service(requests: int, seed: int) -> Router:
                return InService(requests, Path(folder) / f"{next(numbers)}.db")

            show("service", in_service, cases, wanted.seeds, wanted.failed_cost)
    if wanted.only == "minute":
        minute = Trouble("medium down for 60 s", 0.0, ("medium",), 15.0, 75.0)
        show("Allocation", InProgram, [(1_000.0, 90_000, [minute])], wanted.seeds, wanted.failed_cost)


if __name__ == "__main__":
    main()
