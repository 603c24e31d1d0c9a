"""How soon policies notice that arms have changed; the table of docs/measurements/pacing.md.

    python benchmarks/drift.py [--problems 60] [--runs 20] [--figure docs/figures/paced-drift.png]

Bernoulli problems of five arms, means from U(0.05, 1), as in paced.py, and a tight budget for 20,000 requests. At
request 10,000 something happens to the arm with the highest reward: its costs are halved, its rewards are halved, or it
comes only then.

The gain is what the best mix after the change earns for a request beyond the mix that was best before it, both with
the money for a request that there was at the start. A policy that keeps to the old mix has 0 % of it. Problems in which
it is below 0.02 are left out. The delay is the end of the first window of 250 requests in which the mean of problems
is 90 % of the gain; the share is the mean over all requests after the change. It may be above 1, because a policy that
is late saves money meanwhile; it is below 0 where the money has run out. Intervals are 95 %, a bootstrap over problems.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
import paced_figures
from numpy.typing import NDArray
from paced import problems, rate

from budgetbandits import Problem, simulate
from budgetbandits.figures.layout import save
from budgetbandits.numerics.fluid import Mix, best_mix
from budgetbandits.problems.streams import DRIFTS, RequestStream, StreamPart, drifting

Array = NDArray[np.float64]

ARMS, HORIZON, AT, WINDOW, TIGHT = 5, 20_000, 10_000, 250, 0.3
POLICIES = ("bts-paced", "bts-paced:forget=0.001", "bts-paced:forget=0.004", "primal-dual-bwk")
LEAST_GAIN = 0.02
TITLES = {"price-cut": "A price is halved", "quality-drop": "An arm pays half", "new-arm": "An arm comes"}
RESAMPLES = 1_000


def in_windows(stream: RequestStream) -> RequestStream:
    """The same stream with a part for every window after the change, so that its pulls are counted."""
    last = stream.parts[-1].problem
    return RequestStream((*stream.parts[:-1], *(StreamPart(last, first) for first in range(AT, HORIZON, WINDOW))))


def mix_of(stream: RequestStream, part: int, per_request: float) -> tuple[Mix, list[int]]:
    """The best mix of a part's arms, and which arms those are."""
    arms = np.flatnonzero(stream.available_arms[part]).tolist()
    rewards, costs = ([table[part][arms].tolist()] for table in (stream.reward_means, stream.cost_means))
    return best_mix(rewards, costs, [1.0], per_request), arms


def earnings(stream: RequestStream, mix: Mix, arms: list[int], part: int) -> float:
    """What a mix earns for a request in a part."""
    return mix.spend([stream.reward_means[part][arms].tolist()], [1.0])


def gained(problem: Problem, drift: str, policy: str, runs: int) -> Array | None:
    """The share of the gain in each window after the change, of each run; None where there is nothing to gain."""
    stream = drifting(problem, drift, AT)
    per_request = rate(stream.parts[0].problem, TIGHT)
    before, after = (mix_of(stream, part, per_request) for part in (0, 1))
    old, new = (earnings(stream, *mix, 1) for mix in (before, after))
    if new - old < LEAST_GAIN:
        return None
    budget = max(1, round(per_request * HORIZON))
    played = simulate(in_windows(stream), policy, [budget], runs=runs, horizon=HORIZON)
    assert played.part_pulls is not None
    windows = played.part_pulls[:, 0, 1:]
    return np.asarray((windows @ stream.reward_means[1] / WINDOW - old) / (new - old))


def delay(shares: Array) -> float:
    """Requests until 90 % of the gain, from the mean of each window; infinite if it is never reached."""
    reached = np.flatnonzero(shares >= 0.9)
    return float((reached[0] + 1) * WINDOW) if len(reached) else np.inf


def row(name: str, drift: str, found: list[Array]) -> str:
    """A row of the table, from the windows of each problem, averaged over its runs."""
    table = np.array([each.mean(axis=0) for each in found])
    rng = np.random.default_rng(0)
    drawn = [table[rng.integers(len(table), size=len(table))].mean(axis=0) for _ in range(RESAMPLES)]
    low, high = np.quantile([delay(each) for each in drawn], [0.025, 0.975], method="nearest")
    overall = [each.mean() for each in drawn]
    words = [f"{value:,.0f}" if np.isfinite(value) else "never" for value in (delay(table.mean(axis=0)), low, high)]
    share = f"{table.mean():.2f} ({np.quantile(overall, 0.025):.2f} to {np.quantile(overall, 0.975):.2f})"
    return f"| {drift} | {name} | {words[0]} ({words[1]} to {words[2]}) | {share} | {len(table)} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--problems", type=int, default=60)
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--figure", type=Path)
    asked = parser.parse_args()
    print("| what happens | policy | requests until 90 % of the gain | share of the gain | problems |")
    print("|---|---|---|---|---|")
    curves: dict[str, dict[str, Array]] = {}
    for drift in DRIFTS:
        for policy in POLICIES:
            played = [gained(problem, drift, policy, asked.runs) for problem in problems(ARMS, asked.problems)]
            found = [each for each in played if each is not None]
            curves.setdefault(drift, {})[policy] = np.array([each.mean(axis=0) for each in found]).mean(axis=0)
            print(row(f"`{policy}`", drift, found), flush=True)
    if asked.figure is not None:
        save(paced_figures.drift({TITLES[drift]: lines for drift, lines in curves.items()}, WINDOW), asked.figure)


if __name__ == "__main__":
    main()
