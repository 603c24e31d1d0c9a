"""Theorem 1 against play: simulated pulls of every arm below the evaluated bound, on random problems.

    python benchmarks/bounds_hold.py [--problems 30] [--runs 200]

Plays BTS on random problems of several kinds and sizes at B = 50,000 and prints, for each kind, how many arms there
are, whether any mean (with four standard errors) exceeds its bound, and how far the bounds lie above.
"""

from __future__ import annotations

import argparse
import math
import time

import numpy as np

from budgetbandits import family, parse_policy, simulate
from budgetbandits.theory import upper_bound
from budgetbandits.theory.upper import CHAINS

BUDGET = 50_000.0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--problems", type=int, default=30)
    parser.add_argument("--runs", type=int, default=200)
    options = parser.parse_args()
    policy = parse_policy("bts")
    print(f"{'kind':20} {'arms':>5} {'chain':6} {'bounds':>9} {'exceeded':>9} {'bound/mean: least':>18} {'median':>8}")
    for kind in ("uniform-bernoulli", "uniform-multinomial", "uniform-beta"):
        for arms in (2, 10, 100):
            count = options.problems if arms < 100 else max(options.problems // 6, 1)
            ratios: dict[str, list[float]] = {chain: [] for chain in CHAINS}
            exceeded = dict.fromkeys(CHAINS, 0)
            for seed in range(count):
                problem = family(kind, arms, seed, low=0.1)
                pulls = simulate(problem, policy, [BUDGET], runs=options.runs, seed=seed, jobs=-1).pulls[:, 0]
                mean, error = pulls.mean(axis=0), pulls.std(axis=0) / math.sqrt(len(pulls))
                for chain in CHAINS:
                    for arm in upper_bound(problem, BUDGET, chain=chain).arms:
                        exceeded[chain] += mean[arm.arm] + 4 * error[arm.arm] > arm.pulls
                        ratios[chain].append(arm.pulls / max(mean[arm.arm], 1e-9))
            for chain in CHAINS:
                ratio = np.array(ratios[chain])
                print(
                    f"{kind:20} {arms:5} {chain:6} {len(ratio):9,} {exceeded[chain]:9} {ratio.min():18,.1f} "
                    f"{np.median(ratio):8,.0f}",
                    flush=True,
                )
    problem = family("uniform-bernoulli", 100, 0, low=0.1)
    upper_bound(family("uniform-bernoulli", 2, 0), BUDGET)
    start = time.perf_counter()
    upper_bound(problem, BUDGET)
    print(f"\nthe bound for 100 arms, gamma optimised: {time.perf_counter() - start:.2f} s")


if __name__ == "__main__":
    main()
