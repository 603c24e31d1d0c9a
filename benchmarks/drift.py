"""How soon policies notice that arms have changed, and what it costs to look; tables of docs/measurements/pacing.md.

    python benchmarks/drift.py [--problems 60] [--runs 20] [--figure docs/figures/paced-drift.png]
    python benchmarks/drift.py --recorded [bts-linear] [--runs 20]

Bernoulli problems of five arms, means from U(0.05, 1), as in paced.py, and a tight budget for 20,000 requests. At
request 10,000 something happens to the arm with the highest reward: its costs are halved, its rewards are halved, or it
comes only then.

The gain is what the best mix after the change earns for a request beyond the mix that was best before it, both with
the money for a request that there was at the start. A policy that keeps to the old mix has 0 % of it. Problems in which
it is below 0.02 are left out. The delay is the end of the first window of 250 requests in which the mean of problems
is 90 % of the gain; the share is the mean over all requests after the change. It may be above 1, because a policy that
is late saves money meanwhile; it is below 0 where the money has run out. Intervals are 95 %, a bootstrap over problems.

With ``--recorded`` the arms are the three language models of examples/data: what the default of ``forget`` earns, and
what ``forget=0`` does. Streams that change: the benchmarks in the order of what the middle model gains there, the
smallest gain first or last; a jump and a ramp from the two that gain least to the five that gain most; and all mixed,
where rewards of the middle model are a twentieth in the second third. Budgets lie 0.3 and 0.6 of the way from the
cheapest model's cost to the middle one's. In the trap, 60 requests come first that both arms answer badly. The bound is
what one earns on average who knows all means beforehand. Then the table as it is, in shuffled orders, the same for
both. Intervals are 95 %, Student's over games.
"""

from __future__ import annotations

import argparse
import itertools
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import joblib
import numpy as np
import paced_figures
from llm_routing import COLUMNS, DATA, tables
from numpy.typing import NDArray
from paced import problems, rate

from budgetbandits import Problem, parse_policy, simulate
from budgetbandits.figures.layout import save
from budgetbandits.numerics.fluid import Mix, best_mix
from budgetbandits.numerics.intervals import student_quantile
from budgetbandits.problems.distributions import JointTable
from budgetbandits.problems.oracle_horizon import fluid_plan
from budgetbandits.problems.problem import Arm
from budgetbandits.problems.streams import DRIFTS, RequestStream, StreamPart, drifting, scaled
from budgetbandits.simulation.replay import replay

Array = NDArray[np.float64]

ARMS, HORIZON, AT, WINDOW, TIGHT = 5, 20_000, 10_000, 250, 0.3
POLICIES = ("bts-paced", "bts-paced:forget=0", "bts-paced:forget=0.002", "primal-dual-bwk")
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
    """The mean reward of a mix for a request in a part."""
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


def row(name: str, drift: str, earned: list[Array]) -> str:
    """A row of the table, from the windows of each problem, averaged over its runs."""
    table = np.array([table_of.mean(axis=0) for table_of in earned])
    rng = np.random.default_rng(0)
    drawn = [table[rng.integers(len(table), size=len(table))].mean(axis=0) for _ in range(RESAMPLES)]
    low, high = np.quantile([delay(sample) for sample in drawn], [0.025, 0.975], method="nearest")
    overall = [sample.mean() for sample in drawn]
    words = [f"{value:,.0f}" if np.isfinite(value) else "never" for value in (delay(table.mean(axis=0)), low, high)]
    share = f"{table.mean():.2f} ({np.quantile(overall, 0.025):.2f} to {np.quantile(overall, 0.975):.2f})"
    return f"| {drift} | {name} | {words[0]} ({words[1]} to {words[2]}) | {share} | {len(table)} |"


# --- recorded answers -----------------------------------------------------------------------------------------------

RATES, SHARES, STEPS = (8.3e-5, 2.3e-4, 6.6e-4), (0.3, 0.6), 20
CHEAP, MIDDLE = "meta-llama/llama-3.1-8b-instruct", "mistralai/mistral-large-2512"
REQUESTS, TRAP, HARD = 1_824, 3_000, 60


def mixed(segments: RequestStream, shares: dict[str, float]) -> Problem:
    """The problem of requests of these segments, as often as the shares say."""
    parts = {part.segment: part.problem for part in segments.parts}
    first, arms = segments.parts[0].problem, []
    for place, arm in enumerate(first.arms):
        rows = []
        for segment, share in shares.items():
            outcomes = np.array(parts[segment].arms[place].law.outcomes)  # type: ignore[attr-defined]
            outcomes[:, 2] *= share / outcomes[:, 2].sum()
            rows.append(outcomes)
        cap = max(problem.arms[place].cost_max or 1.0 for problem in parts.values())
        arms.append(Arm(arm.name, JointTable(np.concatenate(rows).tolist()), cap))
    return replace(first, arms=tuple(arms))


def recorded() -> tuple[Problem, dict[str, RequestStream]]:
    """All requests mixed, and the streams that change, by name."""
    segments = RequestStream.from_csv(DATA / "llm-routing-test.csv", COLUMNS)
    cheap, middle = (segments.names.index(name) for name in (CHEAP, MIDDLE))
    gain = segments.reward_means[:, middle] - segments.reward_means[:, cheap]
    shares = {segments.parts[part].segment: segments.parts[part].share for part in gain.argsort()}
    order, whole = list(shares), mixed(segments, shares)

    def in_order(names: list[str]) -> RequestStream:
        ends = REQUESTS * np.cumsum([0.0, *(shares[name] for name in names)])
        return RequestStream.phases(
            (round(first), mixed(segments, {name: 1.0})) for first, name in zip(ends, names, strict=False)
        )

    def between(later: float) -> Problem:
        few, many = order[:2], order[4:]
        weights = {name: (1.0 - later) * shares[name] / sum(shares[name_of] for name_of in few) for name in few}
        weights |= {name: later * shares[name] / sum(shares[name_of] for name_of in many) for name in many}
        return mixed(segments, {name: weight for name, weight in weights.items() if weight > 0.0})

    ramp = RequestStream.phases((round(REQUESTS * i / STEPS), between(i / (STEPS - 1))) for i in range(STEPS))
    third, broken = REQUESTS // 3, scaled(whole, MIDDLE, reward=0.05)
    return whole, {
        "sorted, gains grow": in_order(order),
        "sorted, gains shrink": in_order(order[::-1]),
        "a jump": RequestStream.phases([(0, between(0.0)), (REQUESTS // 2, between(1.0))]),
        "a ramp": ramp,
        "breaks and heals": RequestStream.phases([(0, whole), (third, broken), (2 * third, whole)]),
    }


def settings() -> Iterator[tuple[str, RequestStream, float, int]]:
    """The title, the stream, the budget and the horizon of each game on a stream that changes."""
    costs = (0.1, 0.5)
    trap = RequestStream.phases(
        [(0, Problem.bernoulli([0.15, 0.15], costs)), (HARD, Problem.bernoulli([0.7, 0.85], costs))]
    )
    yield "the trap", trap, TRAP * (costs[0] + 0.3 * (costs[1] - costs[0])), TRAP
    whole, streams = recorded()
    cheap, middle = (whole.cost_means[whole.names.index(name)] for name in (CHEAP, MIDDLE))
    for name, stream in streams.items():
        for share in SHARES:
            yield f"{name}, {share:g}", stream, REQUESTS * float(cheap + share * (middle - cheap)), REQUESTS


def around(values: Array, digits: int = 4) -> str:
    """A mean and half of its interval."""
    half = student_quantile(0.975, len(values) - 1) * values.std(ddof=1) / np.sqrt(len(values))
    return f"{values.mean():.{digits}f} ± {half:.{digits}f}"


def drifting_rewards(policy: str, title: str, runs: int) -> Array:
    """The mean reward of a request in each game on the stream of this title."""
    stream, budget, horizon = {name: (stream, budget, horizon) for name, stream, budget, horizon in settings()}[title]
    played = simulate(stream, policy, [budget], runs=runs, horizon=horizon)
    assert played.part_pulls is not None
    return np.asarray((played.part_pulls[:, 0] * stream.reward_means).sum(axis=(1, 2)) / horizon)


def replayed_rewards(policy: str, segments: bool, per_request: float, runs: int) -> Array:
    """The mean reward of a request of the table in each of its orders."""
    _, test = tables()
    table = test if segments else test.without_segments()
    return np.asarray(replay(table, parse_policy(policy), per_request, runs).reward)


def show_recorded(policy: str, runs: int) -> None:
    """Print both tables of a policy; all processors are used."""
    versions = (f"{policy}:forget=0", policy)
    streams, table_cells = list(settings()), list(itertools.product((False, True), RATES))
    tasks: list[Any] = [
        joblib.delayed(drifting_rewards)(version, title, runs) for title, *_ in streams for version in versions
    ]
    tasks += [joblib.delayed(replayed_rewards)(version, *cell, runs) for cell in table_cells for version in versions]
    rewards = iter(joblib.Parallel(n_jobs=-1, return_as="generator")(tasks))
    print(f"| stream | `{versions[0]}` | `{policy}` | bound | share of the bound |\n|---|---|---|---|---|", flush=True)
    for title, stream, budget, horizon in streams:
        bound = float((fluid_plan(stream, budget, horizon) * stream.reward_means).sum()) / horizon
        kept, faded = next(rewards), next(rewards)
        cells = [around(kept), around(faded), f"{bound:.4f}", f"{100 * faded.mean() / bound:.1f} %"]
        print(f"| {title} | {' | '.join(cells)} |", flush=True)
    print(f"\n| table | `{versions[0]}` | `{policy}` | difference |\n|---|---|---|---|", flush=True)
    for segments, per_request in table_cells:
        kept, faded = next(rewards), next(rewards)
        change = around(100.0 * (faded - kept) / kept.mean(), 2)
        title = "with segments" if segments else "without segments"
        print(f"| {title}, {per_request:g} | {around(kept)} | {around(faded)} | {change} % |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--problems", type=int, default=60)
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--figure", type=Path)
    parser.add_argument("--recorded", nargs="?", const="bts-paced", help="this policy on recorded answers")
    asked = parser.parse_args()
    if asked.recorded:
        show_recorded(asked.recorded, asked.runs)
        return
    print("| what happens | policy | requests until 90 % of the gain | share of the gain | problems |")
    print("|---|---|---|---|---|")
    curves: dict[str, dict[str, Array]] = {}
    for drift in DRIFTS:
        for policy in POLICIES:
            played = [gained(problem, drift, policy, asked.runs) for problem in problems(ARMS, asked.problems)]
            results = [result for result in played if result is not None]
            curves.setdefault(drift, {})[policy] = np.array([result.mean(axis=0) for result in results]).mean(axis=0)
            print(row(f"`{policy}`", drift, results), flush=True)
    if asked.figure is not None:
        save(paced_figures.drift({TITLES[drift]: lines for drift, lines in curves.items()}, WINDOW), asked.figure)


if __name__ == "__main__":
    main()
