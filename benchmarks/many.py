"""The cost of `simulate_many` next to a loop of `simulate`, its memory, and the gain from common outcomes.

python benchmarks/many.py cost      # processor time of both, in turn, in this process
python benchmarks/many.py memory    # 1,000 problems, 100 runs: peak memory of this process
python benchmarks/many.py common    # variance of differences between policies, with and without common outcomes
"""

from __future__ import annotations

import argparse
import resource
import sys
import time

import numpy as np
import polars as pl

from budgetbandits import random_problems, simulate, simulate_many

SEED = 1
PAIRS = (("bts", "kube"), ("bts", "pd-bwk"), ("bts", "epsilon-first"), ("kube", "pd-bwk"))
FAMILY = "uniform-bernoulli"


def cost(count: int, runs: int, budget: float) -> None:
    """Print the processor times of both, measured in turn so that other work on the machine slows both down alike."""
    problems = random_problems(FAMILY, arms=10, count=count)
    simulate_many({"first": problems["seed 0"]}, "bts", [budget], 1)  # compile
    loop = many = 0.0
    names = list(problems)
    for start in range(0, count, 10):
        part = {name: problems[name] for name in names[start : start + 10]}
        began = time.process_time()
        for problem in part.values():
            simulate(problem, "bts", [budget], runs, SEED).to_frame()
        loop += time.process_time() - began
        began = time.process_time()
        simulate_many(part, "bts", [budget], runs, SEED)
        many += time.process_time() - began
    print(f"{count} problems, {runs} runs: loop {loop:.1f} s, simulate_many {many:.1f} s, ratio {many / loop:.3f}")


def memory(count: int, runs: int, budget: float) -> None:
    began = time.process_time()
    games = simulate_many(random_problems(FAMILY, arms=10, count=count), "bts", [budget], runs, SEED)
    seconds = time.process_time() - began
    unit = 1 if sys.platform == "darwin" else 1024  # bytes there, kilobytes elsewhere
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit / 1e6
    print(f"{games.height:,} rows, {seconds:.0f} s of processor time, peak {peak:.0f} MB")


def common(count: int, runs: int, budget: float) -> None:
    """The variance of the difference of two policies' runs, as a ratio: common outcomes by independent ones."""
    problems = random_problems(FAMILY, arms=10, count=count, low=0.1)
    policies = sorted({policy for pair in PAIRS for policy in pair})
    seconds, tables = [], []
    for shared in (False, True):
        simulate_many({"first": problems["seed 0"]}, policies, [budget], 1, common=shared)  # compile
        began = time.process_time()
        tables.append(simulate_many(problems, policies, [budget], runs, SEED, common=shared))
        seconds.append(time.process_time() - began)
    print(f"processor time of common outcomes by independent ones: {seconds[1] / seconds[0]:.1f}")
    for first, second in PAIRS:
        ratios = []
        for metric in ("regret", "pseudo_regret"):
            apart, together = (_variances(table, first, second, metric) for table in tables)
            ratios.append(np.quantile(together / apart, [0.25, 0.5, 0.75]))
        shown = ["{1:.2f} | {0:.2f} – {2:.2f}".format(*triple) for triple in ratios]
        print(f"| {first}, {second} | {shown[0]} | {shown[1]} |", flush=True)


def _variances(table: pl.DataFrame, first: str, second: str, metric: str) -> np.ndarray:
    """The variances of the differences between runs, by problem."""
    ours, theirs = (
        table.filter(pl.col("policy") == policy).select("problem", "run", metric) for policy in (first, second)
    )
    both = ours.join(theirs, on=["problem", "run"], maintain_order="left")
    differences = both.with_columns((pl.col(metric) - pl.col(f"{metric}_right")).alias("difference"))
    return differences.group_by("problem", maintain_order=True).agg(pl.col("difference").var())["difference"].to_numpy()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("cost", "memory", "common"))
    parser.add_argument("--count", type=int)
    parser.add_argument("--runs", type=int)
    parser.add_argument("--budget", type=float)
    options = parser.parse_args()
    usual = {
        "cost": (cost, 100, 100, 5000.0), "memory": (memory, 1000, 100, 5000.0), "common": (common, 20, 200, 1000.0),
    }  # fmt: skip
    function, problems, games, money = usual[options.what]
    function(options.count or problems, options.runs or games, options.budget or money)
