"""The problems of an experiment file: from files, families or numbers, each with its name in the study."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from budgetbandits.errors import BudgetBanditsError, ExperimentError
from budgetbandits.experiments.toml_fields import no_others, number, several_in, text_in, whole_in
from budgetbandits.problems.families import ARMS_FAMILIES, KNOWN_FAMILIES, family, two_gap
from budgetbandits.problems.problem import Problem
from budgetbandits.problems.recorded import parse_columns
from budgetbandits.problems.streams import DRIFTS, Environment, RequestStream, drifting, load

DRIFT_KEYS = ("drift", "at")
FAMILY_KEYS = ("name", "family", "arms", "seed", "count", "low", "high", *DRIFT_KEYS)
GAP_KEYS = ("name", "family", "arms", "reward_gap", "cost_gap")
FILE_KEYS = ("name", "file", "columns", *DRIFT_KEYS)
INLINE_KEYS = ("name", "rewards", "costs", *DRIFT_KEYS)


@dataclass(frozen=True)
class NamedProblem:
    """A problem, its name in the study, the group it is averaged with and where it is from; of the two-gap family also
    its gaps."""

    name: str
    group: str
    problem: Environment
    gaps: tuple[float, float] | None = None
    origin: str = ""


def problems_of(document: dict[str, Any], folder: Path) -> tuple[NamedProblem, ...]:
    entries = document.get("problems")
    if not isinstance(entries, list) or not entries or not all(isinstance(entry, dict) for entry in entries):
        raise ExperimentError("no problems; write each under a line [[problems]], with file or family")
    named: list[NamedProblem] = []
    for place, entry in enumerate(entries, start=1):
        where = f"problems, number {place}"
        try:
            entered = _problem_entry(entry, folder)
        except BudgetBanditsError as error:
            raise ExperimentError(f"{where}: {error}") from None
        if any(problem.group == entered[0].group for problem in named):
            raise ExperimentError(f'{where}: {entered[0].group!r} is there already; give it a name = "..." of its own')
        named += entered
    return tuple(named)


def _problem_entry(entry: dict[str, Any], folder: Path) -> list[NamedProblem]:
    kinds: dict[str, tuple[tuple[str, ...], Callable[[], list[tuple[str, Environment]]]]] = {
        "file": (FILE_KEYS, lambda: _from_file(entry, folder)),
        "rewards": (INLINE_KEYS, lambda: _inline(entry)),
        "family": (
            GAP_KEYS if entry.get("family") == "two-gap" else FAMILY_KEYS,
            lambda: _gap_family(entry) if entry["family"] == "two-gap" else _family(entry),
        ),
    }
    given = [kind for kind in kinds if kind in entry]
    if len(given) != 1:
        raise ExperimentError("has neither or several of file, family and rewards; give exactly one")
    allowed, make = kinds[given[0]]
    no_others(entry, allowed, f"a problem with {given[0]}")
    made = _drifting(entry, make())
    gaps = _gaps(entry) if entry.get("family") == "two-gap" else [None] * len(made)
    origin = _origin(entry)
    if len(made) == 1:
        name = text_in(entry, "name") if "name" in entry else made[0][0]
        return [NamedProblem(name, name, made[0][1], gaps[0], origin)]
    group = text_in(entry, "name") if "name" in entry else f"{entry['family']}, {entry['arms']} arms"
    return [
        NamedProblem(f"{group} / {suffix}", group, problem, pair, origin)
        for (suffix, problem), pair in zip(made, gaps, strict=True)
    ]


def _origin(entry: dict[str, Any]) -> str:
    """Where the problems of an entry are from, in words; what `_problem_entry` has checked."""
    drift = f", {entry['drift']} at request {entry['at']:,}" if "drift" in entry else ""
    return _source(entry) + drift


def _source(entry: dict[str, Any]) -> str:
    if "file" in entry:
        return f"file {Path(entry['file']).name}"
    if "family" not in entry:
        return "means in the experiment file"
    if entry["family"] == "two-gap":
        return "family two-gap"
    first, count = entry.get("seed", 0), entry.get("count", 1)
    seeds = f"seed {first}" if count == 1 else f"seeds {first} to {first + count - 1}"
    if entry["family"] in ARMS_FAMILIES:
        return f"family {entry['family']}, {seeds}"
    return f"family {entry['family']}, means from {entry.get('low', 0.0):g} to {entry.get('high', 1.0):g}, {seeds}"


def _from_file(entry: dict[str, Any], folder: Path) -> list[tuple[str, Environment]]:
    """A problem or a request stream (TOML), or outcomes that were recorded (CSV), with segments if a column says so."""
    name = text_in(entry, "file")
    if Path(name).suffix != ".csv":
        if "columns" in entry:
            raise ExperimentError("columns says what those of a CSV file are; leave it out")
        return [(Path(name).stem, load(folder / name))]
    columns = parse_columns(text_in(entry, "columns")) if "columns" in entry else {}
    kind: type[Problem] | type[RequestStream] = RequestStream if "segment" in columns else Problem
    return [(Path(name).stem, kind.from_csv(folder / name, columns))]


def _drifting(entry: dict[str, Any], made: list[tuple[str, Environment]]) -> list[tuple[str, Environment]]:
    """The problems, with what happens to each of them at a request, if the entry says so."""
    if not any(key in entry for key in DRIFT_KEYS):
        return made
    drift, at = text_in(entry, "drift"), whole_in(entry, "at", smallest=1)
    if drift not in DRIFTS or any(isinstance(problem, RequestStream) for _, problem in made):
        raise ExperimentError(
            f"drift is {drift!r}; write one of {', '.join(DRIFTS)}, for a problem that is no request stream"
        )
    return [(name, drifting(problem, drift, at)) for name, problem in made if isinstance(problem, Problem)]


def _inline(entry: dict[str, Any]) -> list[tuple[str, Environment]]:
    rewards = [number(value, "rewards") for value in several_in(entry, "rewards", "[0.3, 0.6]")]
    costs = [number(value, "costs") for value in several_in(entry, "costs", "[0.2, 0.8]")]
    if "name" not in entry:
        raise ExperimentError('rewards and costs need a name; add name = "..."')
    return [("", Problem.bernoulli(rewards, costs))]


def _family(entry: dict[str, Any]) -> list[tuple[str, Environment]]:
    name = text_in(entry, "family")
    if name not in ARMS_FAMILIES and name not in KNOWN_FAMILIES:
        known = [*KNOWN_FAMILIES, "two-gap", *ARMS_FAMILIES]
        raise ExperimentError(f"unknown family {name!r}; choose one of {', '.join(known)}")
    arms = whole_in(entry, "arms", smallest=2)
    first = whole_in(entry, "seed", smallest=0, default=0)
    count = whole_in(entry, "count", smallest=1, default=1)
    low, high = number(entry.get("low", 0.0), "low"), number(entry.get("high", 1.0), "high")
    seeds = range(first, first + count)
    if count == 1:
        return [(f"{name}, {arms} arms, seed {first}", family(name, arms, first, low, high))]
    return [(f"seed {seed}", family(name, arms, seed, low, high)) for seed in seeds]


def _gap_family(entry: dict[str, Any]) -> list[tuple[str, Environment]]:
    arms = whole_in(entry, "arms", smallest=2)
    made: list[tuple[str, Environment]] = [
        (f"gaps {reward:g} {cost:g}", two_gap(arms, reward, cost)) for reward, cost in _gaps(entry)
    ]
    if not made:
        raise ExperimentError("reward_gap or cost_gap is an empty list; write at least one number")
    return made if len(made) > 1 else [(f"two-gap, {arms} arms, {made[0][0]}", made[0][1])]


def _gaps(entry: dict[str, Any]) -> list[tuple[float, float]]:
    """Every reward gap with every cost gap."""

    def listed(key: str) -> list[float]:
        value = entry.get(key, 0.0)
        return [number(item, key) for item in (value if isinstance(value, list) else [value])]

    return list(itertools.product(listed("reward_gap"), listed("cost_gap")))
