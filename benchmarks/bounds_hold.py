"""Theorem 1 against play: simulated pulls of every arm below the evaluated bound, on random problems.

    python benchmarks/bounds_hold.py [--problems 30] [--runs 200]

Plays BTS on random problems of several kinds and sizes at B = 50,000 and prints, for each kind, how many bounds there
are, how many of them lie below what the budget pays for and so could be exceeded, whether any mean (with four standard
errors) does exceed its bound, and how far the bounds lie above. Then the constants before ln B on 3,000 problems.
"""

from __future__ import annotations

import argparse
import math
import time

import numpy as np

from budgetbandits import family, parse_policy, simulate
from budgetbandits.theory import bts_constant, lower_constant, ucb_bv1_constant, ucb_bv2_constant, upper_bound
from budgetbandits.theory.upper import CHAINS

BUDGET = 50_000.0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--problems", type=int, default=30)
    parser.add_argument("--runs", type=int, default=200)
    options = parser.parse_args()
    policy = parse_policy("bts")
    print(
        f"{'kind':20} {'arms':>5} {'chain':6} {'bounds':>9} {'could be':>9} {'exceeded':>9} {'bound/mean: least':>18} "
        f"{'median':>8}"
    )
    for kind in ("uniform-bernoulli", "uniform-multinomial", "uniform-beta"):
        for arms in (2, 10, 100):
            count = options.problems if arms < 100 else max(options.problems // 6, 1)
            ratios: dict[str, list[float]] = {chain: [] for chain in CHAINS}
            could_be, exceeded = dict.fromkeys(CHAINS, 0), dict.fromkeys(CHAINS, 0)
            for seed in range(count):
                problem = family(kind, arms, seed, low=0.1)
                pulls = simulate(problem, policy, [BUDGET], runs=options.runs, seed=seed, jobs=-1).pulls[:, 0]
                mean, error = pulls.mean(axis=0), pulls.std(axis=0) / math.sqrt(len(pulls))
                most = (BUDGET + (not problem.is_bernoulli)) / problem.cost_means
                for chain in CHAINS:
                    for arm in upper_bound(problem, BUDGET, chain=chain).arms:
                        could_be[chain] += int(arm.pulls < most[arm.arm])
                        exceeded[chain] += mean[arm.arm] + 4 * error[arm.arm] > arm.pulls
                        ratios[chain].append(arm.pulls / max(mean[arm.arm], 1e-9))
            for chain in CHAINS:
                ratio = np.array(ratios[chain])
                print(
                    f"{kind:20} {arms:5} {chain:6} {len(ratio):9,} {could_be[chain]:9,} {exceeded[chain]:9} "
                    f"{ratio.min():18,.1f} {np.median(ratio):8,.0f}",
                    flush=True,
                )
    constants()
    problem = family("uniform-bernoulli", 100, 1_000, low=0.1)  # not played above: its sums are not in the cache
    upper_bound(family("uniform-bernoulli", 2, 0), BUDGET)
    start = time.perf_counter()
    upper_bound(problem, BUDGET)
    print(f"\nthe bound for 100 arms, gamma optimised: {time.perf_counter() - start:.2f} s")


def constants() -> None:
    """The rivals' constants by that of BTS (Remark 1), and Theorem 1's by the lower bound's."""
    checks = []
    for arms in (2, 10, 100):
        for seed in range(1_000):
            problem = family("uniform-bernoulli", arms, seed, low=0.01)
            ours = bts_constant(problem)
            checks.append(
                (
                    ucb_bv1_constant(problem) / ours,
                    ucb_bv2_constant(problem) / ours,
                    bts_constant(problem, gamma=1.0) / lower_constant(problem),
                )
            )
    print(f"\nconstants before ln B on {len(checks):,} problems")
    for name, ratios in zip(("UCB-BV1 / BTS", "UCB-BV2 / BTS", "BTS / lower bound"), np.transpose(checks), strict=True):
        print(f"{name:20} from {ratios.min():.2f} to {ratios.max():,.0f}, median {np.median(ratios):,.0f}")


if __name__ == "__main__":
    main()
