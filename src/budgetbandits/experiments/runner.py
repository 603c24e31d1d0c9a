"""Run the cells of an experiment that are not done yet: on this machine or on a Dask cluster.

One path for all of them: joblib hands cells to workers, a worker sends back a part as bytes, and this process alone
writes files. So workers need no disk of ours, and a part is written once, whole.

Long cells come first, so that no worker is left alone with one at the end. Engines come before anything else, each
compiled or loaded by one worker; meanwhile the others play what is ready.
"""

from __future__ import annotations

import contextlib
import io
import math
import os
import sys
import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import joblib
import numpy as np
import polars as pl

from budgetbandits.errors import BudgetBanditsError, MissingExtra, StudyError, install
from budgetbandits.experiments.data import PLACE
from budgetbandits.experiments.experiment_file import NamedProblem
from budgetbandits.experiments.plan import Cell, Experiment
from budgetbandits.experiments.study import Effort, Study
from budgetbandits.policies.epsilon_first import EpsilonFirst
from budgetbandits.policies.index import IndexPolicy
from budgetbandits.policies.sampling import SamplingPolicy
from budgetbandits.policies.thompson import BetaThompson
from budgetbandits.simulation.outcome import Outcome
from budgetbandits.simulation.parallel import Work, check_jobs
from budgetbandits.simulation.simulate import choose_engine, outcome_of

# --- the order of the cells -------------------------------------------------------------------------------------------


ENGINE_KINDS: tuple[type, ...] = (BetaThompson, IndexPolicy, SamplingPolicy, EpsilonFirst)
"""Policies that share an engine; the engine that takes the longest to compile comes first."""

Task = tuple[Callable[[Any], object], Cell | list[Cell]]


def kind_of(cell: Cell) -> type:
    """The kind of a cell: its policies share one compiled engine."""
    return next((kind for kind in ENGINE_KINDS if isinstance(cell.policy, kind)), type(cell.policy))


def duration(cell: Cell) -> float:
    """Roughly how long a cell takes, to order them by."""
    together = sum if "budget" in cell.policy.needs else max
    durations = []
    for named in cell.problems:
        costs = named.problem.cost_means
        rounds = [budget / float(costs[costs > 0.0].min()) for budget in cell.budgets_of(named.problem)]
        durations.append(min(together(rounds), len(rounds) * cell.requests) * math.sqrt(len(named.problem)))
    return cell.runs * sum(durations)


class Schedule:
    """The cells, handed out one by one. Before them come their kinds: one cell of each policy, to prepare an engine."""

    def __init__(self, cells: Sequence[Cell]) -> None:
        self._waiting: dict[type, list[Cell]] = {}
        for cell in sorted(cells, key=duration):
            self._waiting.setdefault(kind_of(cell), []).append(cell)
        self._cold = sorted(self._waiting, key=_place)

    @property
    def preparing(self) -> bool:
        """Whether some kind of cells is not ready yet."""
        return bool(self._cold)

    def ready(self, kind: type) -> None:
        """Let cells of this kind be played from now on."""
        self._cold.remove(kind)

    def tasks(self, prepare: Callable[[list[Cell]], object], play: Callable[[Cell], object]) -> Iterator[Task]:
        """The next tasks, decided when they are asked for: by then more may be ready."""
        for kind in list(self._cold):
            yield prepare, list({type(cell.policy): cell for cell in self._waiting[kind]}.values())
        while self._waiting:
            kind = self._next_kind()
            yield play, self._waiting[kind].pop()
            if not self._waiting[kind]:
                del self._waiting[kind]

    def _next_kind(self) -> type:
        """That of the longest cell that is ready; if none is, the kind that is prepared the soonest."""
        ready = [kind for kind in self._waiting if kind not in self._cold]
        if not ready:
            return max(self._waiting, key=_place)
        return max(ready, key=lambda kind: duration(self._waiting[kind][-1]))


def _place(kind: type) -> int:
    return ENGINE_KINDS.index(kind) if kind in ENGINE_KINDS else -1


# --- running them -----------------------------------------------------------------------------------------------------


ProgressCallback = Callable[[str, int, int], None]
"""Called with a description of the current work, the number of runs done and the number of all runs."""


@dataclass(frozen=True)
class Workers:
    """Who computes: processes on this machine, or a Dask cluster."""

    jobs: int = -1
    """The number of worker processes here, or -1 for one per core."""
    cluster: str | None = None
    """The address of a Dask scheduler, or "local" for a Dask cluster that is started here."""

    def __post_init__(self) -> None:
        check_jobs(self.jobs)


def run(
    experiment: Experiment,
    out: str | Path,
    workers: Workers | None = None,
    progress: ProgressCallback | None = None,
    command: str = "",
) -> Study:
    """Compute what ``out`` does not hold yet. Stopped at any moment, the same call goes on from there."""
    tell = progress or (lambda doing, games_played, total: None)
    study = Study(Path(out))
    cells = experiment.cells()
    study.begin(experiment, cells, command)
    missing = list({cell.key: cell for cell in study.missing(cells)}.values())  # equal problems are played once
    total = sum(cell.games for cell in cells)
    games_played = total - sum(cell.games for cell in missing)
    tell("starting" if missing else "nothing to do", games_played, total)
    if not missing:
        return study
    with _parallel(workers or Workers()) as in_parallel:
        schedule = Schedule(missing)
        tell(_doing(schedule), games_played, total)
        for result in in_parallel(schedule.tasks(_prepare, _play)):
            if isinstance(result, type):
                schedule.ready(result)
            else:
                study.write(study.part(result.key), result.content)
                study.note(result.key, result.effort)
                games_played += result.runs
            tell(_doing(schedule), games_played, total)
    return study


def _doing(schedule: Schedule) -> str:
    return "compiling engines, once" if schedule.preparing else "playing"


def _prepare(cells: Sequence[Cell]) -> type:
    """Compile the engine that these cells share, or load it if that was done before. Not all policies need it.

    It is the first that a worker does: from what it holds after its first call joblib tells whether memory leaks.
    """
    for cell in cells:
        problem = cell.problems[0].problem
        with contextlib.suppress(BudgetBanditsError):  # playing says which policy and problem it was
            if choose_engine(problem, cell.policy, cell.engine, lambda: None, horizon=cell.requests).compiled:
                break
    return kind_of(cells[0])


class _Part(NamedTuple):
    """The games of a cell, as the content of its file."""

    key: str
    content: bytes
    runs: int
    effort: Effort


def _play(cell: Cell) -> _Part:
    began = time.process_time()
    outcomes = [_play_on(cell, named, place > 0) for place, named in enumerate(cell.problems)]
    seconds = time.process_time() - began
    parts = [outcome.columns() | {"budget": np.tile(cell.budgets, cell.runs)} for outcome in outcomes]
    columns = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
    if len(parts) > 1:
        columns[PLACE] = np.repeat(np.arange(len(parts)), cell.runs * len(cell.budgets))
    buffer = io.BytesIO()
    pl.DataFrame(columns).write_parquet(buffer, compression="zstd")
    engines, reasons = ({getattr(outcome, part): None for outcome in outcomes} for part in ("engine", "engine_reason"))
    effort = Effort(seconds, ", ".join(engines), "; ".join(filter(None, reasons)))
    return _Part(cell.key, buffer.getvalue(), cell.games, effort)


def _play_on(cell: Cell, named: NamedProblem, ready: bool) -> Outcome:
    """The games that `simulate` plays; an engine that has played on another problem of the cell is ``ready``."""
    budgets, runs = cell.budgets_of(named.problem), range(cell.first_run, cell.first_run + cell.runs)
    try:
        engine = choose_engine(named.problem, cell.policy, cell.engine, lambda: None, ready, cell.requests)
        work = Work(
            named.problem, cell.policy, budgets, cell.seed, engine, cell.max_rounds, cell.common, cell.requests
        )  # fmt: skip
        return outcome_of(work, budgets, work.play_all(runs), cell.first_run, 0.0)
    except BudgetBanditsError as error:
        raise StudyError(f"{cell.policy.spec} on {named.name!r}: {error}") from None


# --- joblib, wherever it computes ----------------------------------------------------------------------------------

InParallel = Callable[[Iterable[Task]], Iterable[Any]]

DASK_WORKER_SECONDS = 60
"""How long to wait for the first worker of a Dask cluster."""


@contextlib.contextmanager
def replacing_workers() -> Iterator[None]:
    """A worker that has compiled an engine holds so much memory that joblib replaces it: nothing to warn of."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="A worker stopped while some jobs were given", category=UserWarning)
        yield


@contextlib.contextmanager
def _parallel(workers: Workers) -> Iterator[InParallel]:
    with contextlib.ExitStack() as stack:
        stack.enter_context(replacing_workers())
        if workers.cluster is not None:
            stack.enter_context(_dask_client(workers.cluster, workers.jobs))
        backend = "loky" if workers.cluster is None else "dask"
        stack.enter_context(joblib.parallel_config(backend=backend, n_jobs=workers.jobs))
        parallel = stack.enter_context(joblib.Parallel(batch_size="auto", return_as="generator_unordered"))
        yield lambda tasks: parallel(joblib.delayed(function)(cell) for function, cell in tasks)


@contextlib.contextmanager
def _dask_client(cluster: str, jobs: int) -> Iterator[None]:
    try:
        from distributed import Client, LocalCluster
    except ImportError:
        raise MissingExtra(f"a Dask cluster needs the extra: {install('lab,dask')}") from None
    with contextlib.ExitStack() as stack:
        address: Any = cluster
        if cluster == "local":
            count = jobs if jobs > 0 else os.cpu_count()
            address = stack.enter_context(LocalCluster(n_workers=count, threads_per_worker=1, dashboard_address=None))
        try:
            client = stack.enter_context(Client(address, timeout="20s"))
        except (OSError, ValueError) as error:
            raise StudyError(
                f"no Dask scheduler answers at {cluster}: {error}; start one with 'dask scheduler' and name "
                f"its address, such as --cluster tcp://host:8786"
            ) from None
        try:
            client.wait_for_workers(1, timeout=DASK_WORKER_SECONDS)  # joblib waits for ten seconds only
        except TimeoutError:
            raise StudyError(
                f"the Dask scheduler at {cluster} has no worker after {DASK_WORKER_SECONDS} seconds; start one "
                f"with 'dask worker {cluster}'"
            ) from None
        yield


def command_line() -> str:
    """How this process was called, for the record."""
    name = Path(sys.argv[0]).name
    return " ".join(["python -m budgetbandits" if name == "__main__.py" else name, *sys.argv[1:]])
