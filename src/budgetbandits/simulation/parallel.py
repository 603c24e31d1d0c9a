"""Games to be played, and the workers who play them."""

from __future__ import annotations

import contextlib
import hashlib
import math
import warnings
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np

from budgetbandits.errors import BadParameter, MissingExtra, install
from budgetbandits.fingerprint import fingerprint, is_builtin
from budgetbandits.policies.base import Policy
from budgetbandits.problems.problem import Problem
from budgetbandits.problems.streams import Environment
from budgetbandits.simulation.common_outcomes import CommonOutcomes
from budgetbandits.simulation.engine_support import attributed_to
from budgetbandits.simulation.outcome import Engine
from budgetbandits.simulation.reference import Game, ReferencePlayer


class Player(Protocol):
    """One policy on one problem at some budgets, ready to be played."""

    def play(self, seed: np.random.SeedSequence, max_rounds: int, outcomes: CommonOutcomes | None = None) -> list[Game]:
        """One run: the game at each of the rising budgets, with these outcomes if there are any."""


def check_jobs(jobs: int) -> int:
    """The number of workers: positive, or -1 for one per core. It means the same wherever something takes ``jobs``."""
    if isinstance(jobs, bool) or not isinstance(jobs, int) or jobs == 0 or jobs < -1:
        raise BadParameter(f"jobs is {jobs!r:.40}; use the number of workers, or -1 for one per core")
    return jobs


def identity_of(policy: Policy) -> str:
    """The policy as text that no other policy has: its spec and, if it is from outside the package, a hash of it."""
    return policy.spec if is_builtin(type(policy)) else f"{policy.spec} {fingerprint(policy)}"


@dataclass(frozen=True)
class Work:
    """The games to be played, without the numbers of the runs: a worker gets this and some of those numbers."""

    problem: Environment
    policy: Policy
    budgets: Sequence[float]
    seed: int
    engine: Engine
    max_rounds: int | None
    common: bool
    horizon: float = math.inf
    seed_key: tuple[int, int] = field(init=False)
    """The part of the seed that sets these games apart: by their content, not by when or where they are played."""

    def __post_init__(self) -> None:
        digest = hashlib.blake2b(identity_of(self.policy).encode(), digest_size=8).digest()
        object.__setattr__(self, "seed_key", (self.problem.identity, int.from_bytes(digest, "little")))

    def play(self, runs: Iterable[int]) -> Iterator[list[Game]]:
        player: Player
        if self.engine.compiled:
            from budgetbandits.simulation.dispatch import PLAYERS

            start = PLAYERS[self.engine.name]
            player = start(self.problem, self.policy, self.budgets, self.common, self.horizon)
        else:
            player = ReferencePlayer(self.problem, self.policy, self.budgets, self.horizon)
        longest = self.max_rounds or (1 << 60 if self.engine.compiled else 100_000_000)
        for run in runs:
            outcomes = None
            if self.common:
                assert isinstance(self.problem, Problem)
                outcomes = CommonOutcomes(self.problem, self.seed, run)
            with attributed_to(self.policy):
                game = player.play(
                    np.random.SeedSequence(self.seed, spawn_key=(*self.seed_key, run)), longest, outcomes
                )
            yield game

    def play_all(self, runs: Iterable[int]) -> list[list[Game]]:
        """Play these runs and return a list, which can travel between processes."""
        return list(self.play(runs))  # what travels between processes is a list, not a generator


def all_games(work: Work, runs: range, jobs: int, progress: Callable[[int], None]) -> list[list[Game]]:
    """Every run, in order, by ``jobs`` workers."""
    games = []
    if jobs == 1:
        for game in work.play(runs):
            games.append(game)
            progress(len(games))
        return games
    # several runs a task, so that a player serves them all
    size = max(1, min(32, len(runs) // 16)) if work.engine.compiled else 1
    chunks = (runs[start : start + size] for start in range(0, len(runs), size))
    tasks = ((chunk,) for chunk in chunks)
    with contextlib.closing(in_parallel(work.play_all, tasks, jobs, threads=work.engine.compiled)) as results:
        for chunk in results:
            games.extend(chunk)
            progress(len(games))
    return games


def in_parallel(
    function: Callable[..., Any], arguments: Iterable[tuple[Any, ...]], jobs: int, threads: bool
) -> Generator[Any, None, None]:
    """The results in order. Compiled games let go of the interpreter, so that threads do; plain ones need processes."""
    if jobs == 1:
        yield from (function(*values) for values in arguments)
        return
    try:
        import joblib  # in the lab extra: one worker needs nothing but NumPy
    except ImportError:
        raise MissingExtra(f"several workers need joblib; {install('lab')}, or use jobs=1") from None
    parallel = joblib.Parallel(n_jobs=jobs, return_as="generator", prefer="threads" if threads else "processes")
    results: Any = parallel(joblib.delayed(function)(*values) for values in arguments)
    try:
        for result in results:  # noqa: UP028 - "yield from" would close them before the warning is silenced
            yield result
    finally:
        with warnings.catch_warnings():  # a caller who stops before the end knows that tasks were cancelled
            warnings.simplefilter("ignore", UserWarning)
            results.close()
