"""How fast the Thompson engine is, as ratios measured in one run on one core.

Next to it stand (a) a hand-written vectorised NumPy loop of BTS, (b) the reference simulator and (c) a plain Numba loop
that draws every arm in every round. The slow ones play their first rounds only: their price per round does not depend
on how many came before. Bernoulli arms, means drawn from U(0.1, 1), several problems.

    .venv/bin/python benchmarks/engine.py [--quick]
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from functools import partial
from statistics import median

import numpy as np
from numba import njit
from numpy.typing import NDArray

from budgetbandits import BudgetedThompson, Problem, parse_policy, simulate
from budgetbandits.simulation import reference
from budgetbandits.simulation.dispatch import player, warm_up
from budgetbandits.simulation.engines.runtime.draws import gamma, new_stream, uniform
from budgetbandits.simulation.parallel import Player

Array = NDArray[np.float64]
INDICES = "omega-star-ucb", "gittins-ratio"


def numpy_loop(rewards: Array, costs: Array, rounds: int) -> None:
    """A simple implementation with two calls to the generator per round."""
    rng = np.random.default_rng(1)
    successes, failures = np.ones((2, len(rewards))), np.ones((2, len(rewards)))
    means = np.array([rewards, costs])
    for _ in range(rounds):
        theta = rng.beta(successes, failures)
        arm = int(np.argmax(theta[0] / theta[1]))
        outcome = rng.random(2) < means[:, arm]
        successes[:, arm] += outcome
        failures[:, arm] += ~outcome


@njit(cache=True)  # type: ignore[untyped-decorator]
def numba_loop(stream: int, rewards: Array, costs: Array, rounds: int) -> int:  # pragma: no cover - compiled
    arms = rewards.size
    posterior = np.ones((arms, 4))
    arm = 0
    for _ in range(rounds):
        best = -1.0
        for candidate in range(arms):
            reward = gamma(stream, posterior[candidate, 0])
            reward /= reward + gamma(stream, posterior[candidate, 1])
            cost = gamma(stream, posterior[candidate, 2])
            cost /= cost + gamma(stream, posterior[candidate, 3])
            if reward / cost > best:
                best = reward / cost
                arm = candidate
        posterior[arm, 0 if uniform(stream) < rewards[arm] else 1] += 1.0
        posterior[arm, 2 if uniform(stream) < costs[arm] else 3] += 1.0
    return arm


def nanoseconds(call: Callable[[int], object], rounds: int) -> float:
    call(max(1, rounds // 100))
    began = time.perf_counter()
    call(rounds)
    return (time.perf_counter() - began) / rounds * 1e9


def problems(arms: int, count: int) -> list[tuple[Array, Array]]:
    rng = np.random.default_rng(arms)
    return [(rng.uniform(0.1, 1.0, arms), rng.uniform(0.1, 1.0, arms)) for _ in range(count)]


def engine_times(policy: str, arms: int, budget: float, instances: int, runs: int) -> tuple[float, list[float]]:
    """(ns a round, seconds of each run)."""
    seconds: list[float] = []
    rounds = 0
    for rewards, costs in problems(arms, instances):
        problem = Problem.bernoulli(rewards.tolist(), costs.tolist())
        game: Player = player(problem, parse_policy(policy), [budget])
        for run in range(runs):
            began = time.perf_counter()
            (result,) = game.play(np.random.SeedSequence(run), 1 << 60)
            seconds.append(time.perf_counter() - began)
            rounds += result[2]
    return sum(seconds) / rounds * 1e9, seconds


def one_run(problem: Problem, budget: float) -> float:
    game = player(problem, BudgetedThompson(), [budget])
    began = time.perf_counter()
    game.play(np.random.SeedSequence(0), 1 << 60)
    return time.perf_counter() - began


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="fewer problems and runs")
    options = parser.parse_args()
    few, many = (3, 12) if options.quick else (12, 60)
    warm_up(Problem.bernoulli([0.5, 0.6], [0.5, 0.5]), BudgetedThompson())
    stream = new_stream(np.arange(1, 5, dtype=np.uint64))

    print("bts, B = 50,000")
    print("     K  ns/round     rounds/s   ms/run  slowest    NumPy  reference  Numba")
    for arms in (10, 100, 1000):
        rewards, costs = problems(arms, 1)[0]
        problem = Problem.bernoulli(rewards.tolist(), costs.tolist())

        def by_numpy(n: int, rewards: Array = rewards, costs: Array = costs) -> None:
            numpy_loop(rewards, costs, n)

        def by_numba(n: int, rewards: Array = rewards, costs: Array = costs) -> None:
            numba_loop(stream.ctypes.data, rewards, costs, n)

        def by_reference(n: int, problem: Problem = problem) -> None:
            rng = np.random.default_rng(1)
            state = BudgetedThompson().start(len(problem))
            pulls = [reference.Pulls(partial(arm.sample, rng)) for arm in problem.arms]
            for _ in range(n):
                arm = BudgetedThompson().choose(state, rng)
                assert arm is not None
                BudgetedThompson().observe(state, arm, *pulls[arm].pull(), rng)

        ours, seconds = engine_times("bts", arms, 50_000.0, few, 3)
        slow = [
            nanoseconds(by_numpy, 20_000 if arms < 1000 else 6_000),
            nanoseconds(by_reference, 10_000 if arms < 1000 else 4_000),
            nanoseconds(by_numba, 400_000 // arms * 10),
        ]
        times = "".join(f"{other / ours:>{width},.0f}×" for other, width in zip(slow, (7, 9, 6), strict=True))
        print(
            f"{arms:>6} {ours:>9.1f} {1e9 / ours:>12,.0f} {1e3 * sum(seconds) / len(seconds):>8.2f} "
            f"{1e3 * max(seconds):>8.1f} {times}"
        )

    print(f"\nbts, large budgets: ms per run on {many} problems; shown are those with a gap (of the second best ratio")
    print("below the best) under 1 % and those that take more than 4 times as long")
    for arms in (10, 100):
        both: list[tuple[float, float]] = []
        print(f"{'K':>6} {'gap':>8} {'1e7':>10} {'1e9':>11} {'times':>7}")
        for rewards, costs in problems(arms, many):
            problem = Problem.bernoulli(rewards.tolist(), costs.tolist())
            second, first = np.sort(rewards / costs)[-2:]
            gap = 1.0 - second / first
            both.append((one_run(problem, 1e7), one_run(problem, 1e9)))
            early, late = both[-1]
            if gap < 0.01 or late > 4.0 * early:
                print(
                    f"{arms:>6} {gap:>8.2%} {1e3 * early:>10.1f} {1e3 * late:>11.1f} {late / early:>7.2f}", flush=True
                )
        within = sum(late <= 4.0 * early for early, late in both)
        total_early, total_late = (sum(times) for times in zip(*both, strict=True))
        print(
            f"{'':>6} mean {1e3 * total_early / many:.1f} and {1e3 * total_late / many:.1f} ms: "
            f"{total_late / total_early:.2f} times; problem by problem the median is "
            f"{median(late / early for early, late in both):.2f} times, at most 4 times on {within} of {len(both)}"
        )

    print(f"\nbts, costs that are always 1, B = 1,000,000: ms per run on {many} problems")
    for arms in (2, 10):
        seconds = []
        for rewards, _ in problems(arms, many):
            seconds.append(one_run(Problem.bernoulli(rewards.tolist(), [1.0] * arms), 1e6))
        print(
            f"{arms:>6} mean {1e3 * sum(seconds) / many:.1f}, median {1e3 * median(seconds):.1f}, "
            f"slowest {1e3 * max(seconds):.1f}"
        )

    print("\nother policies, B = 50,000: ms per run (and times the reference simulator)")
    print(f"{'':24}" + "".join(f"{f'K = {arms}':>20}" for arms in (10, 100)))
    for policy in ("thompson", "epsilon-first", "kube", "pd-bwk", "ucb-bv1", "ucb-bv2", "ucb1", "kl-ucb"):
        cells = []
        for arms in (10, 100):
            rewards, costs = problems(arms, 1)[0]
            problem = Problem.bernoulli(rewards.tolist(), costs.tolist())
            slow_run = simulate(problem, parse_policy(policy), [500.0], 1, engine="reference")
            warm_up(problem, parse_policy(policy))
            ours, seconds = engine_times(policy, arms, 50_000.0, 3, 2)
            ratio = slow_run.seconds / float(slow_run.rounds[0, 0]) * 1e9 / ours
            cells.append(f"{1e3 * sum(seconds) / len(seconds):>10.2f} ({ratio:,.0f}×)")
        print(f"{policy:24}" + "".join(f"{cell:>20}" for cell in cells))
    print_indices(few)


def print_indices(problems_played: int) -> None:
    """Two indices with variances, without and with the money left, in turns: the median of the turns."""
    print("\nindices with variances: ns per round, B = 30 K")
    print("     K  omega-star-ucb  gittins-ratio  times")
    for arms in (10, 100, 1000):
        turns = []
        for _ in range(3):
            turns.append([engine_times(name, arms, 30.0 * arms, problems_played, 3)[0] for name in INDICES])
        plain, money = (median(turn[place] for turn in turns) for place in (0, 1))
        print(f"{arms:>6} {plain:>15.0f} {money:>14.0f} {money / plain:>6.2f}")


if __name__ == "__main__":
    main()
