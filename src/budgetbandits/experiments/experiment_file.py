"""An experiment file (TOML), read: from the user or shipped with the package.

name = "my study"
seed = 1
runs = 200
budgets = [1_000, 10_000]
policies = ["bts", "kube", "epsilon-first:epsilon=[0.05, 0.1, 0.2]", "mine.py:OmegaUCB:rho=[0.25, 1]"]
plugins = ["my_laws.py"]

[[problems]]
file = "shop.toml"

[[problems]]
name = "random"
family = "uniform-bernoulli"
arms = 10
seed = 0
count = 25

`read_document` returns the fields of an `Experiment`; every error is an `ExperimentError` that names the key.
"""

from __future__ import annotations

import itertools
import tomllib
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Any

from budgetbandits import plugins
from budgetbandits.errors import BrokenInstallation, BudgetBanditsError, ExperimentError, PluginError
from budgetbandits.policies.base import Policy
from budgetbandits.problems.families import ARMS_FAMILIES, KNOWN_FAMILIES, family, two_gap
from budgetbandits.problems.problem import Problem
from budgetbandits.problems.records import parse_columns
from budgetbandits.problems.streams import DRIFTS, Environment, RequestStream, drifting, load
from budgetbandits.simulation.simulate import ENGINES
from budgetbandits.validation import LARGEST, FileKey, integer, positive, within

# --- files that ship with the package ---------------------------------------------------------------------------------


FOLDER = resources.files("budgetbandits.experiments") / "shipped"
"""Folder of the experiment files and suites that ship with the package."""

SUITE = "suite"
"""The settings of the leaderboard: no experiment, but one for each of them."""
TRAINING = "training"
"""The same for the problems that a policy is chosen by."""
SUITES = (SUITE, TRAINING)
"""Names of the suites that ship."""

EXPERIMENTS = ("growth", "omega-ucb", "paper", "uniform-ensemble", "worst-case")
"""Names of the experiments that ship."""


def find(asked: str | Path, names: Sequence[str]) -> tuple[str, Path]:
    """The text of a file, or of the one that ships under that name, and the folder in which it looks for others.

    A file that is there comes before one that ships. ``names`` are those that the user could have meant.
    """
    path = Path(asked)
    if str(path) in (*SUITES, *EXPERIMENTS) and not path.is_file():
        return shipped_text(str(path)), Path()
    try:
        return path.read_text(encoding="utf-8-sig"), path.parent
    except (OSError, UnicodeDecodeError) as error:
        raise ExperimentError(
            f"cannot read {str(path)!r}: {error}; name a readable TOML file, or one that ships: {', '.join(names)}"
        ) from None


def shipped_text(name: str) -> str:
    """The text of an experiment or a suite that ships with the package."""
    return shipped_file(f"{name}.toml")


def shipped_file(name: str) -> str:
    """The text of any file that ships."""
    try:
        return (FOLDER / name).read_text(encoding="utf-8")
    except OSError as error:
        raise BrokenInstallation(
            f"{name} ships with the package and is not there ({error}); install budgetbandits again"
        ) from None


# --- fields -----------------------------------------------------------------------------------------------------------


def no_others(table: dict[str, Any], allowed: Collection[str], owner: str) -> None:
    """Raise an `ExperimentError` if the table has a key that is not allowed."""
    for key in table:
        if key not in allowed:
            raise ExperimentError(f"unknown key {key!r}; {owner} has {', '.join(allowed)}")


def text_in(table: dict[str, Any], key: str) -> str:
    """The printable text of a key."""
    value = table.get(key)
    if not isinstance(value, str) or not value.strip() or not value.isprintable():
        raise ExperimentError(f'{key} is {value!r}; write {key} = "some text"')
    return value


def whole_in(table: dict[str, Any], key: str, smallest: int, default: int | None = None) -> int:
    """The whole number of a key, from ``smallest`` upwards."""
    return integer(key, table.get(key, default), smallest, error=ExperimentError)


def number(value: Any, key: str) -> float:
    """A value as a finite number."""
    return within(key, value, -LARGEST, LARGEST, error=ExperimentError)


def several_in(table: dict[str, Any], key: str, example: str) -> list[Any]:
    """The non-empty list of a key."""
    value = table.get(key)
    if not isinstance(value, list) or not value:
        raise ExperimentError(f"{key} is {value!r}; write a list, such as {key} = {example}")
    return value


# --- problems: from files, families or numbers ------------------------------------------------------------------------


NAME_KEY = FileKey("text", "How tables and figures call it.", "made from the other keys")
"""Key for the name of a problem or a family."""

ARMS_KEY = FileKey("whole number, from 2", "How many arms each problem has.")
"""Key for the number of arms."""

DRIFT_KEYS = {
    "drift": FileKey("text", f"A change that happens to the problem: {', '.join(DRIFTS)}.", "nothing changes"),
    "at": FileKey("whole number, from 1", "The request at which it happens.", "only with drift"),
}
"""Keys for a change that happens to the problem."""

FAMILY_KEYS = {
    "name": NAME_KEY,
    "family": FileKey("text", "The name of a family of random problems."),
    "arms": ARMS_KEY,
    "seed": FileKey("whole number", "The seed of the first problem; each further one has the next.", "0"),
    "count": FileKey("whole number, from 1", "How many problems are made; they are averaged as one group.", "1"),
    "low": FileKey("number", "The smallest mean of a reward or cost, in families that take a range.", "0"),
    "high": FileKey("number", "The largest such mean.", "1"),
    **DRIFT_KEYS,
}
"""Keys of problems from a family."""

GAP_KEYS = {
    "name": NAME_KEY,
    "family": FileKey("text", 'The word "two-gap".'),
    "arms": ARMS_KEY,
    "reward_gap": FileKey("number or list", "How much more than ½ the best arm pays; each value of a list.", "0"),
    "cost_gap": FileKey("number or list", "How much less than ½ it costs; each value, with each of the other.", "0"),
}
"""Keys of problems of the family two-gap."""

FILE_KEYS = {
    "name": NAME_KEY,
    "file": FileKey("text", "A problem or request stream (TOML), or recorded outcomes (CSV), next to this file."),
    "columns": FileKey("text", 'What the columns of a CSV file are, such as "arm=model, cost=usd".', "their own names"),
    **DRIFT_KEYS,
}
"""Keys of a problem from a file."""

INLINE_KEYS = {
    "name": FileKey("text", "How tables and figures call it."),
    "rewards": FileKey("list of numbers", "The mean reward of each arm; the arms are Bernoulli."),
    "costs": FileKey("list of numbers", "The mean cost of each arm."),
    **DRIFT_KEYS,
}
"""Keys of a problem that is written in the experiment file."""


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
    """The problems of an experiment file, whose paths are relative to ``folder``."""
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
    kinds: dict[str, tuple[Collection[str], Callable[[], list[tuple[str, Environment]]]]] = {
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
    problems = _drifting(entry, make())
    gaps = _gaps(entry) if entry.get("family") == "two-gap" else [None] * len(problems)
    origin = _origin(entry)
    if len(problems) == 1:
        name = text_in(entry, "name") if "name" in entry else problems[0][0]
        return [NamedProblem(name, name, problems[0][1], gaps[0], origin)]
    group = text_in(entry, "name") if "name" in entry else f"{entry['family']}, {entry['arms']} arms"
    return [
        NamedProblem(f"{group} / {suffix}", group, problem, pair, origin)
        for (suffix, problem), pair in zip(problems, gaps, strict=True)
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


def _drifting(entry: dict[str, Any], problems: list[tuple[str, Environment]]) -> list[tuple[str, Environment]]:
    """The problems, with what happens to each of them at a request, if the entry says so."""
    if not any(key in entry for key in DRIFT_KEYS):
        return problems
    drift, at = text_in(entry, "drift"), whole_in(entry, "at", smallest=1)
    if drift not in DRIFTS or not all(isinstance(problem, Problem) for _, problem in problems):
        raise ExperimentError(
            f"drift is {drift!r}; write one of {', '.join(DRIFTS)}, for a problem that is no request stream"
        )
    return [(name, drifting(problem, drift, at)) for name, problem in problems if isinstance(problem, Problem)]


def _inline(entry: dict[str, Any]) -> list[tuple[str, Environment]]:
    rewards = [number(value, "rewards") for value in several_in(entry, "rewards", "[0.3, 0.6]")]
    costs = [number(value, "costs") for value in several_in(entry, "costs", "[0.2, 0.8]")]
    if "name" not in entry:
        raise ExperimentError('rewards and costs need a name; add name = "..."')
    return [("", Problem.bernoulli(rewards, costs))]


def _family(entry: dict[str, Any]) -> list[tuple[str, Environment]]:
    name = text_in(entry, "family")
    if name not in ARMS_FAMILIES and name not in KNOWN_FAMILIES:
        families = [*KNOWN_FAMILIES, "two-gap", *ARMS_FAMILIES]
        raise ExperimentError(f"unknown family {name!r}; choose one of {', '.join(families)}")
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
    problems: list[tuple[str, Environment]] = [
        (f"gaps {reward:g} {cost:g}", two_gap(arms, reward, cost)) for reward, cost in _gaps(entry)
    ]
    if not problems:
        raise ExperimentError("reward_gap or cost_gap is an empty list; write at least one number")
    return problems if len(problems) > 1 else [(f"two-gap, {arms} arms, {problems[0][0]}", problems[0][1])]


def _gaps(entry: dict[str, Any]) -> list[tuple[float, float]]:
    """Every reward gap with every cost gap."""

    def listed(key: str) -> list[float]:
        value = entry.get(key, 0.0)
        return [number(item, key) for item in (value if isinstance(value, list) else [value])]

    return list(itertools.product(listed("reward_gap"), listed("cost_gap")))


# --- the whole file ---------------------------------------------------------------------------------------------------


KEYS = {
    "name": FileKey("text", "What the study is called in its report."),
    "seed": FileKey("whole number", "All random numbers follow from it.", "0"),
    "runs": FileKey("whole number, from 1", "How many games of each policy on each problem."),
    "budgets": FileKey("list of numbers", "The budgets; each game reports all of them."),
    "budget_unit": FileKey("text", "What a budget of 1 is: one of the units of a study.", '"1"'),
    "horizon": FileKey("whole number, from 1", "How many requests a budget is for.", "as many as can be paid"),
    "policies": FileKey("list of texts", "The policies, each as a policy text; lists of parameters are written out."),
    "plugins": FileKey("list of texts", "Python files with policies, laws or families of your own.", "none"),
    "problems": FileKey("list of tables", "The problems, each under a line [[problems]]."),
    "engine": FileKey("text", f"Who plays: {', '.join(ENGINES)}.", '"auto"'),
    "max_rounds": FileKey("whole number, from 1", "Where a game that does not end is stopped.", "the engine's own"),
    "common": FileKey("true or false", "Whether all policies get the same outcomes of each arm's pulls.", "false"),
}
"""Keys of an experiment file."""

BUDGET_UNITS = {
    "1": "the largest cost there can be",
    "smallest mean cost": "the smallest mean cost of each problem's arms",
    "request": "money for each request, in the problem's own units",
    "cheap to expensive": "for each request, a share of the way from the mean cost of the arm with the best ratio (0) "
    "to that of the arm with the highest reward (1)",
}
"""Units of budgets: the meaning of a budget of 1."""
WITH_HORIZON = ("request", "cheap to expensive")
"""Units of budgets that are for each request, and so need a horizon."""


def parsed(text: str) -> dict[str, Any]:
    """The document of a TOML text, or an `ExperimentError`."""
    try:
        return tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        raise ExperimentError(f"not TOML: {error}; fix that line") from None


def read_document(document: dict[str, Any], folder: Path) -> dict[str, Any]:
    """The fields of an `Experiment`; its files are looked for in ``folder``. An `ExperimentError` names the key."""
    if "settings" in document:
        raise ExperimentError("this is a suite of settings; run it by 'budgetbandits leaderboard --suite FILE'")
    no_others(document, KEYS, "an experiment")
    _load_plugins(document, folder)
    return _together(
        {
            "problems": problems_of(document, folder),
            "name": text_in(document, "name"),
            "policies": _policies(document, folder),
            "budgets": _budgets(document),
            "budget_unit": _budget_unit(document),
            "runs": whole_in(document, "runs", smallest=1),
            "seed": whole_in(document, "seed", smallest=0, default=0),
            "engine": _engine(document),
            "max_rounds": whole_in(document, "max_rounds", smallest=1) if "max_rounds" in document else None,
            "common": _common(document),
            "horizon": whole_in(document, "horizon", smallest=1) if "horizon" in document else None,
        }
    )


def _together(fields: dict[str, Any]) -> dict[str, Any]:
    """Check that the fields fit together, and return them."""
    if fields["horizon"] is None:
        if fields["budget_unit"] in WITH_HORIZON:
            raise ExperimentError(
                f"budget_unit is {fields['budget_unit']!r}, but there is no horizon; add horizon = 10_000"
            )
        if not all(isinstance(named.problem, Problem) for named in fields["problems"]):
            raise ExperimentError("problems hold a request stream, but there is no horizon; add horizon = 10_000")
    if fields["common"] and not all(isinstance(named.problem, Problem) for named in fields["problems"]):
        raise ExperimentError("a request stream has no common outcomes, since its laws change; leave out common")
    return fields


def _engine(document: dict[str, Any]) -> str:
    engine = document.get("engine", "auto")
    if engine not in ENGINES:
        raise ExperimentError(f"engine is {engine!r}; choose one of {', '.join(ENGINES)}")
    return str(engine)


def _budget_unit(document: dict[str, Any]) -> str:
    unit = document.get("budget_unit", "1")
    if not isinstance(unit, str) or unit not in BUDGET_UNITS:
        raise ExperimentError(f"budget_unit is {unit!r}; write one of {', '.join(map(repr, BUDGET_UNITS))}, or nothing")
    return str(unit)


def _common(document: dict[str, Any]) -> bool:
    common = document.get("common", False)
    if not isinstance(common, bool):
        raise ExperimentError(f"common is {common!r}; write true, or leave it out")
    return common


def _budgets(document: dict[str, Any]) -> tuple[float, ...]:
    listed = several_in(document, "budgets", "[1_000, 10_000]")
    budgets = [positive("a value of budgets", value, error=ExperimentError) for value in listed]
    if len(set(budgets)) < len(budgets):
        raise ExperimentError("budgets holds the same budget twice; name each once")
    return tuple(sorted(budgets))


def _load_plugins(document: dict[str, Any], folder: Path) -> None:
    for name in several_in(document, "plugins", '["mine.py"]') if "plugins" in document else ():
        if not isinstance(name, str):
            raise ExperimentError(f'plugins holds {name!r}; write each as the name of a file, such as "mine.py"')
        try:
            plugins.load(folder / name)
        except PluginError as error:
            raise ExperimentError(f"plugins: {error}") from None


def _policies(document: dict[str, Any], folder: Path) -> tuple[Policy, ...]:
    policies: list[Policy] = []
    for text in several_in(document, "policies", '["bts", "kube"]'):
        if not isinstance(text, str):
            raise ExperimentError(f'policies holds {text!r}; write each policy as text, such as "bts"')
        try:
            policies += [plugins.find_policy(spec, folder) for spec in plugins.sweep(text)]
        except BudgetBanditsError as error:
            raise ExperimentError(f"policies: {error}") from None
    return tuple(policies)
