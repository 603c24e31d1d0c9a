"""An experiment and the cells of work it is made of: policy × problem × chunk of runs, or several problems at once."""

from __future__ import annotations

import hashlib
import itertools
import json
import math
import pickle
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache, cached_property, lru_cache
from pathlib import Path
from typing import Any

import cloudpickle  # type: ignore[import-untyped]

import budgetbandits
from budgetbandits.errors import ExperimentError
from budgetbandits.experiments.experiment_file import (
    EXPERIMENTS,
    NamedProblem,
    find,
    parsed,
    read_document,
    shipped_text,
)
from budgetbandits.policies.base import Policy
from budgetbandits.problems.streams import Environment, RequestStream
from budgetbandits.simulation.parallel import identity_of
from budgetbandits.simulation.simulate import check_specs

CHUNK = 50
"""Runs in a cell: few enough that little is lost when one is cut off, many enough that a part is worth a file."""

FEW_RUNS = 5
"""Most runs with which problems share cells: hundreds of problems would make as many tiny files."""

PART_FORMAT = 1
"""Version of the columns of a part, which is part of every cell's name."""


class SharedProblems(tuple[NamedProblem, ...]):
    """Problems that the cells of all policies share. They are pickled once for all of them: pickling thousands of laws
    takes longer than many a game."""

    def __reduce__(self) -> tuple[Callable[[bytes], SharedProblems], tuple[bytes]]:
        return _unpickled, (self._pickled,)

    @cached_property
    def _pickled(self) -> bytes:
        return bytes(cloudpickle.dumps(tuple(self)))


@lru_cache(maxsize=16)
def _unpickled(pickled: bytes) -> SharedProblems:
    return SharedProblems(pickle.loads(pickled))


@dataclass(frozen=True)
class Cell:
    """Some runs of one policy on a problem, or on several: computed once, as a unit, and stored."""

    problems: tuple[NamedProblem, ...]
    policy: Policy
    budgets: tuple[float, ...]
    seed: int
    first_run: int
    runs: int
    engine: str
    max_rounds: int | None
    budget_unit: str = "1"
    common: bool = False
    horizon: int | None = None

    @property
    def games(self) -> int:
        """Runs, of all problems."""
        return self.runs * len(self.problems)

    def budgets_of(self, problem: Environment) -> tuple[float, ...]:
        """The budgets in the units of one of the problems."""
        return scaled(self.budgets, problem, self.budget_unit, self.horizon)

    @property
    def requests(self) -> float:
        """How many requests the budgets are for; infinitely many without a horizon."""
        return math.inf if self.horizon is None else float(self.horizon)

    @cached_property
    def key(self) -> str:
        """The hash of what the cell computes. Names are left out: renaming a problem recomputes nothing."""
        problems = [named.problem for named in self.problems]
        content: dict[str, Any] = {
            "format": PART_FORMAT,
            "version": budgetbandits.__version__,
            "problem": problems[0].content if len(problems) == 1 else [problem.identity for problem in problems],
            "policy": identity_of(self.policy),
            "budgets": self.budgets,
            "seed": self.seed,
            "runs": [self.first_run, self.runs],
            "engine": self.engine,
            "max_rounds": self.max_rounds,
        }
        if self.budget_unit != "1":
            content["budget_unit"] = self.budget_unit
        if self.common:
            content["common"] = True
        if self.horizon is not None:
            content["horizon"] = self.horizon
        return hashlib.blake2b(json.dumps(content).encode(), digest_size=16).hexdigest()


def scaled(
    budgets: tuple[float, ...], problem: Environment, unit: str, horizon: int | None = None
) -> tuple[float, ...]:
    """Budgets in units of the largest possible cost; those of each request multiplied by the horizon. Of a
    request stream, the first part says what is cheap and what is expensive.

    >>> from budgetbandits import Problem
    >>> problem = Problem.bernoulli([0.5, 0.6], [0.25, 0.75])
    >>> scaled((100.0,), problem, "smallest mean cost"), scaled((0.5,), problem, "cheap to expensive", horizon=1000)
    ((25.0,), (500.0,))
    """
    arms = problem.parts[0].problem if isinstance(problem, RequestStream) else problem
    if unit == "1":
        return budgets
    if unit == "smallest mean cost":
        return tuple(budget * float(arms.cost_means.min()) for budget in budgets)
    assert horizon is not None
    if unit == "request":
        return tuple(budget * horizon / arms.cost_max for budget in budgets)
    rewards, costs = arms.reward_means, arms.cost_means
    cheap, expensive = float(costs[(rewards / costs).argmax()]), float(costs[rewards.argmax()])
    # whole budgets, which costs of 0 and 1 never overdraw
    return tuple(float(max(1, round(horizon * (cheap + share * (expensive - cheap))))) for share in budgets)


@dataclass(frozen=True)
class Experiment:
    """The content of an experiment file, with every problem made and every sweep of parameters written out.

    ``file`` is the text it was read from, as long as nothing was changed.
    """

    name: str
    problems: tuple[NamedProblem, ...]
    policies: tuple[Policy, ...]
    budgets: tuple[float, ...]
    runs: int
    seed: int = 0
    engine: str = "auto"
    max_rounds: int | None = None
    budget_unit: str = "1"
    common: bool = False
    horizon: int | None = None
    file: str | None = None

    def __post_init__(self) -> None:
        check_specs(self.policies, ExperimentError)

    @classmethod
    def from_toml(cls, text: str, folder: Path | None = None) -> Experiment:
        """Read an experiment; problem files are looked for in ``folder``. An `ExperimentError` names the key."""
        return cls(**read_document(parsed(text), folder or Path()), file=text)

    @classmethod
    def load(cls, path: str | Path) -> Experiment:
        """Read an experiment file, or one of those that ship with the package, by its name (`EXPERIMENTS`)."""
        text, folder = find(path, EXPERIMENTS)
        try:
            return cls.from_toml(text, folder)
        except ExperimentError as error:
            raise ExperimentError(f"{path}: {error}") from None

    @classmethod
    @cache
    def load_shipped(cls, name: str) -> Experiment:
        """One of `EXPERIMENTS`, even if there is a file of that name; its problems are made once a process."""
        return cls.from_toml(shipped_text(name))

    def cells(self) -> list[Cell]:
        """Everything to be computed."""
        together = max(1, CHUNK // self.runs) if self.runs <= FEW_RUNS else 1
        starts = range(0, len(self.problems), together)
        shares = [SharedProblems(self.problems[start : start + together]) for start in starts]
        first_runs = range(0, self.runs, CHUNK)
        return [
            Cell(
                problems, policy, self.budgets, self.seed, first, min(CHUNK, self.runs - first), self.engine,
                self.max_rounds, self.budget_unit, self.common, self.horizon,
            )
            for problems, policy, first in itertools.product(shares, self.policies, first_runs)
        ]  # fmt: skip

    def changed(self, **changes: Any) -> Experiment:
        """This experiment with some fields changed."""
        return replace(self, **{"file": None, **changes}) if changes else self
