"""The folder of a study: what was asked (study.json) and what is done (parts/HASH.parquet).

A part is written under another name, flushed to disk and renamed, so it is either there and whole or not there. What
was asked is written in the same way.
"""

from __future__ import annotations

import contextlib
import json
import os
import platform
from collections.abc import Sequence
from dataclasses import dataclass, fields
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import budgetbandits
from budgetbandits.errors import StudyError
from budgetbandits.experiments.plan import Cell, Experiment
from budgetbandits.experiments.study_record import checked
from budgetbandits.numerics.arrays import Array
from budgetbandits.policies.base import Policy, written
from budgetbandits.problems.streams import Environment, RequestStream
from budgetbandits.simulation.outcome import slower_lines

SUFFIX = ".parquet"
LIBRARIES = ("numpy", "scipy", "numba", "joblib", "polars", "matplotlib")


class Effort(NamedTuple):
    """What a part took: processor seconds, the engine that played, and why not a faster one."""

    seconds: float
    engine: str
    reason: str


@dataclass(frozen=True)
class Study:
    """A folder that holds, or will hold, a study."""

    folder: Path

    @property
    def record(self) -> Path:
        return self.folder / "study.json"

    @property
    def efforts_file(self) -> Path:
        return self.folder / "efforts.jsonl"

    @property
    def parts(self) -> Path:
        return self.folder / "parts"

    def part(self, key: str) -> Path:
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
        """What begin wrote."""
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
        """What each part took, as far as it was written down; of a part made twice, the last time."""
        found: dict[str, Effort] = {}
        with contextlib.suppress(FileNotFoundError):
            for line in self.efforts_file.read_text(encoding="utf-8", errors="replace").splitlines():
                # a line that a killed writer did not finish, or that is none of ours
                with contextlib.suppress(ValueError, TypeError, RecursionError):
                    key, seconds, engine, reason = json.loads(line)
                    found[str(key)] = Effort(float(seconds), str(engine), str(reason))
        return found

    def slower(self, record: dict[str, Any]) -> list[str]:
        """Where no faster engine has played, and why: a line for each engine and reason."""
        taken = self.efforts()
        cells = [(cell["policy"], taken[cell["key"]]) for cell in record["cells"] if cell["key"] in taken]
        return slower_lines((policy, effort.engine, effort.reason) for policy, effort in cells)

    def there(self) -> dict[str, os.stat_result]:
        """The parts that are there, by their cells' keys; whatever else has such a name is none."""
        if not self.parts.is_dir():
            return {}
        with os.scandir(self.parts) as files:
            found = [file for file in files if file.name.endswith(SUFFIX) and file.is_file()]
            return {file.name[: -len(SUFFIX)]: file.stat() for file in found}

    def missing(self, cells: Sequence[Cell]) -> list[Cell]:
        """Those that have no part yet."""
        there = self.there()
        return [cell for cell in cells if cell.key not in there]

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
    found: list[float] = table.tolist()
    return found


def _parameters(policy: Policy) -> dict[str, str]:
    """Every parameter of a policy as text, also those that its spec leaves out; what is not given, without a value."""
    values = {field.name: getattr(policy, field.name) for field in fields(policy)}
    return {
        name: "" if value is None else f"{value:g}" if isinstance(value, float) else written(value)
        for name, value in values.items()
    }


def versions() -> dict[str, str]:
    found = {"budgetbandits": budgetbandits.__version__, "python": platform.python_version()}
    for library in LIBRARIES:
        with contextlib.suppress(metadata.PackageNotFoundError):
            found[library] = metadata.version(library)
    return found
