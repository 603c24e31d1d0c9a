"""Whether intervals of off-policy estimates cover what they should: logs of bts-paced on recorded answers of language
models, and other policies, held still, whose values on the same records are known exactly.

    python benchmarks/off_policy.py [--repetitions 200] [--requests 1000] [--draws 100] [--rate 2.3e-4] [--no-segments]

Each repetition draws requests from the records, with replacement, lets bts-paced answer them from a cold
start, and estimates from its log what each target earns and spends for a request. A target's true values are means over
all records, since each says what every model's answer would have been worth and have cost. The targets that are
policies have learned from one log of other records before.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from budgetbandits import parse_policy
from budgetbandits.numerics.intervals import half_width, wilson
from budgetbandits.off_policy import Log, Target, evaluate, even, held_still, mix, one_arm, read_log
from budgetbandits.problems.records import ReplayTable
from budgetbandits.simulation.replay import logged

DATA = Path(__file__).parent.parent / "examples" / "data"
COLUMNS = {"request": "prompt", "arm": "model", "reward": "reward", "cost": "cost_usd", "segment": "source"}
SMALL, MIDDLE = "meta-llama/llama-3.1-8b-instruct", "mistralai/mistral-large-2512"
WAYS = ("inverse_propensity", "self_normalised", "doubly_robust")


@dataclass
class Tally:
    """The estimates for one target, next to the truth."""

    truth: dict[str, float]
    refused: int = 0
    effective: list[float] = field(default_factory=list)
    covered: dict[tuple[str, str], list[bool]] = field(default_factory=dict)
    errors: dict[tuple[str, str], list[float]] = field(default_factory=dict)
    widths: dict[tuple[str, str], list[float]] = field(default_factory=dict)


def one_log(table: ReplayTable, given: argparse.Namespace, seed: int) -> Log:
    """A log of bts-paced on requests drawn from the table, but for the last, when money was short for the two cheaper
    arms: which arms fit depends on what the answers cost."""
    requests = np.random.default_rng([2, seed]).integers(len(table), size=given.requests).tolist()
    columns = logged(table, parse_policy("bts-paced"), given.rate, given.draws, seed, requests)
    keep = [row for row, arms in enumerate(columns["arms"]) if SMALL in arms and MIDDLE in arms]
    return read_log({name: [values[row] for row in keep] for name, values in columns.items()})


def all_targets(log: Log, before: Log) -> list[Target]:
    """Fixed ones, and policies held still with what they have learned before."""
    targets = [one_arm(log, SMALL), one_arm(log, MIDDLE), even(log)]
    targets.append(mix(log, {SMALL: 0.5, MIDDLE: 0.5}))
    for rate in (1e-4, 4e-4):
        played = held_still(log, parse_policy("bts-paced"), before, rate)
        targets.append(replace(played, name=f"{played.name} at {rate:g}"))
    targets.append(held_still(log, parse_policy("bts"), before))
    return targets


def truth(table: ReplayTable, log: Log, target: Target) -> dict[str, float]:
    """Its reward and cost of a request, over all records."""
    of = {segment: target.probability[number] for number, (segment, could, _) in enumerate(log.situations)
          if all(could)}  # fmt: skip
    number = [log.segments.index(name) for name in table.segments] or [0]
    chances = np.array([of[number[segment]] for segment in table.segment])
    places = [table.arms.index(name) for name in log.arms]
    return {
        name: float((chances * values[:, places]).sum(axis=1).mean())
        for name, values in (("reward", table.rewards), ("cost", table.costs))
    }


def moved(target: Target, reference: Log, log: Log) -> Target:
    """The target in the situations of another log, with its arms and segments numbered as in the reference."""
    rows = {segment: target.probability[number] for number, (segment, could, _) in enumerate(reference.situations)
            if all(could)}  # fmt: skip
    among = np.array([rows[segment] * np.array(could) for segment, could, _ in log.situations])
    return Target(target.name, among / among.sum(axis=1, keepdims=True), target.draws)


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--repetitions", type=int, default=200)
    options.add_argument("--draws", type=int, default=100)
    options.add_argument("--requests", type=int, default=1000)
    options.add_argument("--rate", type=float, default=2.3e-4)
    options.add_argument("--no-segments", action="store_true")
    given = options.parse_args()
    other = ReplayTable.from_csv(DATA / "llm-routing-online.csv", COLUMNS)
    table = ReplayTable.from_csv(DATA / "llm-routing-test.csv", COLUMNS, arms=other.arms, segments=other.segments)
    if given.no_segments:
        other, table = other.without_segments(), table.without_segments()
    before = one_log(other, given, 10**6)
    reference = one_log(table, given, 10**6 + 1)
    targets = all_targets(reference, before)
    tallies = {target.name: Tally(truth(table, reference, target)) for target in targets}
    for repetition in range(given.repetitions):
        log = one_log(table, given, repetition).aligned(reference)
        for target in targets:
            tally, evaluated = tallies[target.name], evaluate(log, moved(target, reference, log))
            tally.effective.append(evaluated.effective)
            if evaluated.problem:
                tally.refused += 1
                continue
            for what in ("reward", "cost"):
                for way in WAYS:
                    estimate, true = getattr(getattr(evaluated, what), way), tally.truth[what]
                    tally.covered.setdefault((what, way), []).append(estimate.low <= true <= estimate.high)
                    tally.errors.setdefault((what, way), []).append(estimate.value - true)
                    tally.widths.setdefault((what, way), []).append(estimate.error)
        if (repetition + 1) % 10 == 0:
            print(f"{repetition + 1} of {given.repetitions}", flush=True)
    show(tallies, given.repetitions)


def show(tallies: dict[str, Tally], repetitions: int) -> None:
    print(f"{'target':52} effective  no estimate")
    for name, tally in tallies.items():
        print(f"\n{name:52} {np.median(tally.effective):8.0f} {tally.refused:6d} of {repetitions}")
        for (what, way), covered in tally.covered.items():
            low, high = wilson(sum(covered), len(covered))
            errors, widths = np.array(tally.errors[what, way]), np.array(tally.widths[what, way])
            half = half_width(errors.std() / len(errors) ** 0.5, len(errors))
            print(
                f"  {what:7} {way:20} covered {np.mean(covered):.3f} ({low:.3f} – {high:.3f})  true "
                f"{tally.truth[what]:.4g}  mean error {errors.mean():+.2g} ± {half:.1g}  "
                f"standard error: said {np.sqrt((widths**2).mean()):.2g}, seen {errors.std():.2g}"
            )


if __name__ == "__main__":
    main()
