"""The folder of a study: what was asked (study.json), what is done (parts/HASH.parquet), and how far it is.

A part is written under another name, flushed to disk and renamed, so it is either there and whole or not there. The
record of what was asked is written in the same way.
"""

from __future__ import annotations

import contextlib
import json
import math
import os
import platform
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, fields
from datetime import UTC, datetime
from importlib import metadata
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import budgetbandits
from budgetbandits.errors import StudyError
from budgetbandits.experiments.plan import Cell, Experiment
from budgetbandits.numerics.arrays import Array
from budgetbandits.policies.base import Policy, written
from budgetbandits.problems.streams import Environment, RequestStream
from budgetbandits.simulation.outcome import slower_lines

# --- the record -------------------------------------------------------------------------------------------------------


LARGEST_COUNT = 2**53
"""Largest count that is exact as a number of JSON."""


def checked(content: Any) -> dict[str, Any]:
    """The content, if it is the record of a study; a ValueError names what is missing.

    >>> checked({"name": "x", "policies": ["bts"], "problems": [], "budgets": [1], "runs": 3, "cells": []})
    Traceback (most recent call last):
    ...
    ValueError: 'problems' is no list of problems with a name and a group
    """
    if not isinstance(content, dict):
        raise ValueError("it is no record of a study")  # noqa: TRY004 (what it holds, not how it was called)
    name, policies = content.get("name"), _list(content, "policies")
    if not isinstance(name, str):
        raise ValueError("it has no 'name'")  # noqa: TRY004
    if not policies or not all(isinstance(policy, str) for policy in policies):
        raise ValueError("'policies' is no list of policies")
    problems = _list(content, "problems")
    if not problems or not all(isinstance(problem, dict) and _texts(problem, "name", "group") for problem in problems):
        raise ValueError("'problems' is no list of problems with a name and a group")
    budgets = _list(content, "budgets")
    if not budgets or not all(_is_amount(budget) for budget in budgets):
        raise ValueError("'budgets' is no list of numbers")
    if not _is_count(content.get("runs")):
        raise ValueError("'runs' is no number of runs")
    for place, cell in enumerate(_list(content, "cells")):
        if not _is_cell(cell, set(policies)):
            raise ValueError(f"cell {place + 1} has no key, no policy of this study or no number of runs")
    return content


def _list(content: dict[str, Any], name: str) -> list[Any]:
    value = content.get(name)
    if not isinstance(value, list):
        raise ValueError(f"it has no list {name!r}")  # noqa: TRY004
    return value


def _texts(content: dict[str, Any], *names: str) -> bool:
    return all(isinstance(content.get(name), str) for name in names)


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < LARGEST_COUNT


def _is_amount(value: Any) -> bool:
    return isinstance(value, int | float) and abs(value) < LARGEST_COUNT**2 and math.isfinite(value)


def _is_cell(cell: Any, policies: set[str]) -> bool:
    return (
        isinstance(cell, dict) and _texts(cell, "key", "policy") and cell["policy"] in policies
        and _is_count(cell.get("runs")) and isinstance(cell.get("problems", []), list)
    )  # fmt: skip


# --- the folder -------------------------------------------------------------------------------------------------------


SUFFIX = ".parquet"
"""Ending of the files of parts."""

LIBRARIES = ("numpy", "scipy", "numba", "joblib", "polars", "matplotlib")
"""Libraries whose versions a study records."""


class Effort(NamedTuple):
    """The effort of a part: processor seconds, the engine that played, and why not a faster one."""

    seconds: float
    engine: str
    reason: str


@dataclass(frozen=True)
class Study:
    """A folder that holds, or will hold, a study."""

    folder: Path

    @property
    def record(self) -> Path:
        """The path of the file that describes the study."""
        return self.folder / "study.json"

    @property
    def efforts_file(self) -> Path:
        """The path of the file with the efforts of parts."""
        return self.folder / "efforts.jsonl"

    @property
    def parts(self) -> Path:
        """The path of the folder of parts."""
        return self.folder / "parts"

    def part(self, key: str) -> Path:
        """The path of the part with this key."""
        return self.parts / f"{key}{SUFFIX}"

    def begin(self, experiment: Experiment, cells: Sequence[Cell], command: str) -> None:
        """Write down what is asked and remove what a killed writer left behind."""
        with self.writing():
            self.parts.mkdir(parents=True, exist_ok=True)
            of_files = ("study.json.*.tmp", "results.*.tmp")
            for leftover in [*self.parts.glob("*.tmp"), *(path for of in of_files for path in self.folder.glob(of))]:
                leftover.unlink(missing_ok=True)
        record = _record(experiment, cells, command)
        with contextlib.suppress(StudyError):  # asked once more, a study keeps the day on which it was begun
            before = self.asked()
            if before["cells"] == record["cells"]:
                record["begun"] = before.get("begun", record["begun"])
        self.write(self.record, json.dumps(record, indent=1).encode())

    def asked(self) -> dict[str, Any]:
        """The record that `begin` wrote."""
        try:
            return checked(json.loads(self.record.read_text(encoding="utf-8")))
        except FileNotFoundError:
            raise StudyError(
                f"{self.folder} holds no study; run 'budgetbandits run EXPERIMENT.toml --out {self.folder}' first"
            ) from None
        except (OSError, ValueError, RecursionError) as error:
            raise StudyError(
                f"cannot read {self.record}: {error}; run the experiment again, its parts are kept"
            ) from None

    def note(self, key: str, effort: Effort) -> None:
        """Write down what a part took, apart from it: games are the same bits wherever they are played."""
        with self.writing(), self.efforts_file.open("a", encoding="utf-8") as file:
            file.write(json.dumps([key, *effort]) + "\n")

    def efforts(self) -> dict[str, Effort]:
        """The effort of each part, as far as it was written down; of a part made twice, the last."""
        efforts: dict[str, Effort] = {}
        with contextlib.suppress(FileNotFoundError):
            for line in self.efforts_file.read_text(encoding="utf-8", errors="replace").splitlines():
                # a line that a killed writer did not finish, or that is none of ours
                with contextlib.suppress(ValueError, TypeError, RecursionError):
                    key, seconds, engine, reason = json.loads(line)
                    efforts[str(key)] = Effort(float(seconds), str(engine), str(reason))
        return efforts

    def slower(self, record: dict[str, Any]) -> list[str]:
        """Where no faster engine has played, and why: a line for each engine and reason."""
        taken = self.efforts()
        cells = [(cell["policy"], taken[cell["key"]]) for cell in record["cells"] if cell["key"] in taken]
        return slower_lines((policy, effort.engine, effort.reason) for policy, effort in cells)

    def there(self) -> dict[str, os.stat_result]:
        """The files of the parts by their cells' keys; anything else in the folder is ignored."""
        if not self.parts.is_dir():
            return {}
        with os.scandir(self.parts) as files:
            paths = [file for file in files if file.name.endswith(SUFFIX) and file.is_file()]
            return {file.name[: -len(SUFFIX)]: file.stat() for file in paths}

    def missing(self, cells: Sequence[Cell]) -> list[Cell]:
        """The cells that have no part yet."""
        stored = self.there()
        return [cell for cell in cells if cell.key not in stored]

    def write(self, path: Path, content: bytes) -> os.stat_result:
        """Write a whole file or none; returns what the file is known by."""
        temporary = path.with_name(f"{path.name}.{os.getpid()}.tmp")
        with self.writing():
            try:
                with temporary.open("wb") as file:
                    file.write(content)
                    file.flush()
                    os.fsync(file.fileno())
                    written = os.fstat(file.fileno())
                temporary.replace(path)
            except BaseException:
                temporary.unlink(missing_ok=True)
                raise
        return written

    @contextlib.contextmanager
    def writing(self) -> Any:
        """Turn an error of the file system into a `StudyError`."""
        try:
            yield
        except OSError as error:
            raise StudyError(
                f"cannot write into {self.folder}: {error.strerror or error}; make room or choose another --out, then "
                f"give the same command: what is done is kept"
            ) from None


def _record(experiment: Experiment, cells: Sequence[Cell], command: str) -> dict[str, Any]:
    return {
        "name": experiment.name,
        "command": command,
        "begun": datetime.now(UTC).date().isoformat(),
        "file": experiment.file,
        "seed": experiment.seed,
        "runs": experiment.runs,
        "budgets": experiment.budgets,
        "budget_unit": experiment.budget_unit,
        "horizon": experiment.horizon,
        "policies": [policy.spec for policy in experiment.policies],
        "parameters": [_parameters(policy) for policy in experiment.policies],
        "engine": experiment.engine,
        "paired": experiment.common,
        "problems": [
            {
                "name": named.name,
                "group": named.group,
                "arms": len(named.problem),
                "origin": named.origin,
                "names": named.problem.names,
                "reward_means": _over_requests(named.problem, "reward_means", experiment.horizon),
                "cost_means": _over_requests(named.problem, "cost_means", experiment.horizon),
                "gaps": named.gaps,
                "toml": named.problem.to_toml() if named.problem.writable else None,
            }
            for named in experiment.problems
        ],
        "cells": [
            {
                "key": cell.key,
                "problems": [named.name for named in cell.problems],
                "policy": cell.policy.spec,
                "runs": cell.runs,
            }
            for cell in cells
        ],
        "versions": versions(),
    }


def _over_requests(problem: Environment, means: str, horizon: int | None) -> list[float]:
    """The means of a problem's arms; of a request stream, over the requests that each arm can answer."""
    table: Array = getattr(problem, means)
    if isinstance(problem, RequestStream):
        weight = problem.requests(horizon or 1)[:, None] * problem.available_arms
        table = (weight * table).sum(axis=0) / np.maximum(weight.sum(axis=0), 1e-12)
    per_arm: list[float] = table.tolist()
    return per_arm


def _parameters(policy: Policy) -> dict[str, str]:
    """Every parameter of a policy as text, also those that its spec leaves out; one that is not given has no value."""
    values = {field.name: getattr(policy, field.name) for field in fields(policy)}
    return {
        name: "" if value is None else f"{value:g}" if isinstance(value, float) else written(value)
        for name, value in values.items()
    }


def versions() -> dict[str, str]:
    """The versions of Python, the package and its libraries."""
    numbers = {"budgetbandits": budgetbandits.__version__, "python": platform.python_version()}
    for library in LIBRARIES:
        with contextlib.suppress(metadata.PackageNotFoundError):
            numbers[library] = metadata.version(library)
    return numbers


# --- progress ---------------------------------------------------------------------------------------------------------


RECENT_PARTS = 20
"""Latest parts over which the rate is taken, of those that came since the study was last begun."""
QUIET = 60.0
"""Seconds without a new part after which a study may have stopped, if its parts came faster before."""


@dataclass(frozen=True)
class Progress:
    """The progress of a study at one moment; times are seconds since 1970.

    ``runs_by_policy`` has (runs done, runs) of each policy; ``latest`` is when the latest part was written, or the
    study begun; ``rate`` is runs a second, if there are enough parts to tell; ``gap`` is the longest time between
    two parts of those; ``state`` differs whenever the record or a part does.
    """

    cells: int
    cells_done: int
    runs_by_policy: dict[str, tuple[int, int]]
    latest: float
    rate: float | None
    gap: float
    now: float
    state: tuple[int, ...]

    @property
    def runs(self) -> int:
        """The number of runs of all policies."""
        return sum(runs for _, runs in self.runs_by_policy.values())

    @property
    def runs_done(self) -> int:
        """The number of runs that were played."""
        return sum(runs_played for runs_played, _ in self.runs_by_policy.values())

    @property
    def finished(self) -> bool:
        """Whether all cells were played."""
        return self.cells_done == self.cells

    @property
    def quiet_for(self) -> float:
        """Seconds since anything was written."""
        return max(self.now - self.latest, 0.0)

    @property
    def running(self) -> bool:
        """Whether a part has come lately, at the pace of this study's parts; a process leaves no other sign."""
        return not self.finished and self.quiet_for < max(QUIET, 5.0 * self.gap)

    @property
    def seconds_left(self) -> float | None:
        """The remaining time at the present rate, as if all cells took equally long."""
        if self.finished or not self.running or not self.rate:
            return None
        return (self.runs - self.runs_done) / self.rate


def progress(study: Study, record: dict[str, Any], now: float) -> Progress:
    """The progress of a study, from the names and times of its parts, none of which is opened."""
    stored, status = study.there(), study.record.stat()
    runs, runs_played = Counter[str](), Counter[str]()
    of_part = Counter[str]()
    for cell in record["cells"]:
        games = cell["runs"] * len(cell.get("problems", [""]))
        runs[cell["policy"]] += games
        if cell["key"] in stored:
            runs_played[cell["policy"]] += games
            of_part[cell["key"]] += games
    written = sorted((stored[key].st_mtime, games) for key, games in of_part.items())
    # begun again, a study's record is written again: how long it stood still before that says nothing
    recent = [(at, games) for at, games in written[-RECENT_PARTS:] if at >= status.st_mtime]
    times = [at for at, _ in recent]
    rate = None
    if len(recent) > 1 and now > times[0]:
        rate = sum(games for _, games in recent[1:]) / (now - times[0])
    cells_done = sum(cell["key"] in stored for cell in record["cells"])
    begun = [status.st_mtime] if cells_done < len(record["cells"]) else []
    parts = [stored[key] for key in of_part]
    return Progress(
        cells=len(record["cells"]),
        cells_done=cells_done,
        runs_by_policy={policy: (runs_played[policy], runs[policy]) for policy in record["policies"]},
        latest=max([*begun, *(at for at, _ in written[-1:])], default=0.0),
        rate=rate,
        gap=max((later - sooner for sooner, later in pairwise(times)), default=0.0),
        now=now,
        state=(status.st_mtime_ns, status.st_size, len(parts), sum(file.st_mtime_ns for file in parts),
               sum(file.st_size for file in parts)),
    )  # fmt: skip
