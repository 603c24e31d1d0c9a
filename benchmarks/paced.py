"""Regret against the fluid bound of policies that make a budget last, on random problems.

    python benchmarks/paced.py [--problems 100] [--runs 5] [--longest 100000] [--figure docs/figures/paced-growth.png]
    python benchmarks/paced.py --policies bts-paced bts-paced:hope=2 --seed 4000000 --longest 10000

Bernoulli problems of K arms with means from U(0.05, 1), in which the arm with the best ratio is not the one with the
highest reward. The budget for a request is 0.3 (tight) or 0.8 (loose) of the way from the cost of the one to that of
the other. The same problems at every horizon, some games on each. Intervals are 95 %: of means and differences
Student's over problems; of slopes, those of ln (mean regret) over ln T by least squares, a bootstrap over problems. √T
has a slope of 0.5.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
import paced_figures
from numpy.typing import NDArray

from budgetbandits import Problem, family, simulate
from budgetbandits.figures.layout import save
from budgetbandits.numerics.intervals import student_quantile

Array = NDArray[np.float64]

POLICIES = ("bts-paced", "primal-dual-bwk")
SHARES = {"tight": 0.3, "loose": 0.8}
ARMS = (3, 5, 10, 20)
RESAMPLES = 2_000


def rate(problem: Problem, share: float) -> float:
    """Money for a request."""
    rewards, costs = problem.reward_means, problem.cost_means
    cheap, costly = costs[(rewards / costs).argmax()], costs[rewards.argmax()]
    return float(cheap + share * (costly - cheap))


def problems(arms: int, count: int, seed: int = 0) -> list[Problem]:
    """The first random ones, from this seed on, in which the best arm for little money is not that for much."""
    members: list[Problem] = []
    while len(members) < count:
        problem = family("uniform-bernoulli", arms, seed, low=0.05)
        if (problem.reward_means / problem.cost_means).argmax() != problem.reward_means.argmax():
            members.append(problem)
        seed += 1
    return members


def regrets(policy: str, members: list[Problem], share: float, horizon: int, runs: int) -> Array:
    """The mean regret on each problem."""
    budgets = [max(1, round(rate(problem, share) * horizon)) for problem in members]
    games = [
        simulate(problem, policy, [b], runs=runs, horizon=horizon) for problem, b in zip(members, budgets, strict=True)
    ]  # fmt: skip
    return np.array([game.pseudo_regret.mean() for game in games])


def spread(values: Array) -> tuple[Array, Array]:
    """Means over problems, the last axis, and half of their intervals."""
    count = values.shape[-1]
    half = student_quantile(0.975, count - 1) * values.std(axis=-1, ddof=1) / np.sqrt(count)
    return np.asarray(values.mean(axis=-1)), np.asarray(half)


def interval(values: Array) -> str:
    """A mean over problems and half of its interval."""
    mean, half = spread(values)
    return f"{mean:.1f} ± {half:.1f}"


def slopes(table: Array, horizons: list[int]) -> tuple[float, float, float]:
    """The slope of ln (mean regret) over ln T, and its interval; the regrets are (horizon, problem)."""
    logs = np.log(horizons) - np.log(horizons).mean()

    def slope(means: Array) -> Array:
        return np.asarray(logs @ np.log(means) / (logs @ logs))

    rng = np.random.default_rng(0)
    drawn = [slope(table[:, rng.integers(table.shape[1], size=table.shape[1])].mean(axis=1)) for _ in range(RESAMPLES)]
    low, high = np.quantile(drawn, [0.025, 0.975])
    return float(slope(table.mean(axis=1))), float(low), float(high)


def measure(arms: int, name: str, horizons: list[int], asked: argparse.Namespace) -> dict[str, Array]:
    """The regrets of each policy as (horizon, problem); their rows of the table are printed."""
    members = problems(arms, asked.problems, asked.seed)
    tables = {
        policy: np.array([regrets(policy, members, SHARES[name], horizon, asked.runs) for horizon in horizons])
        for policy in asked.policies
    }
    for place, (policy, table) in enumerate(tables.items()):
        fits = [slopes(table, horizons), slopes(table[-2:], horizons[-2:])]
        cells = [*map(interval, table), *("{:.2f} ({:.2f} to {:.2f})".format(*fit) for fit in fits)]
        print("|", " | ".join([f"{arms}, {name}" if place == 0 else "", f"`{policy}`", *cells]), "|", flush=True)
    apart = [interval(second - first) for first, second in zip(*tables.values(), strict=True)]
    print("|", " | ".join(["", "difference", *apart, "", ""]), "|", flush=True)
    return tables


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--policies", nargs=2, default=POLICIES)
    parser.add_argument("--seed", type=int, default=0, help="of the first problem")
    parser.add_argument("--problems", type=int, default=100)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--longest", type=int, default=100_000)
    parser.add_argument("--figure", type=Path)
    asked = parser.parse_args()
    horizons = [horizon for horizon in (100, 1_000, 10_000, 100_000) if horizon <= asked.longest]
    names = [f"T = {horizon:,}" for horizon in horizons]
    print("|", " | ".join(["arms, budget", "policy", *names, "slope", "of the last decade"]), "|")
    print("|---" * (len(horizons) + 4) + "|")
    measured = {(arms, name): measure(arms, name, horizons, asked) for name in SHARES for arms in ARMS}
    if asked.figure is not None:
        spreads = {
            f"{arms} arms, {name} budget": {policy: spread(table) for policy, table in tables.items()}
            for (arms, name), tables in measured.items()
        }
        save(paced_figures.growth(spreads, horizons), asked.figure)


if __name__ == "__main__":
    main()
