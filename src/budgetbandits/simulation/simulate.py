"""Simulate a policy on a problem: `simulate` is the only entry."""

from __future__ import annotations

import hashlib
import math
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from budgetbandits.errors import BadParameter
from budgetbandits.fingerprint import fingerprint, ours
from budgetbandits.policies.base import Policy
from budgetbandits.problem import Problem
from budgetbandits.simulation import reference
from budgetbandits.simulation.outcome import Engine, Outcome
from budgetbandits.simulation.reference import Game

__all__ = ["ENGINES", "Outcome", "identity_of", "simulate"]

ENGINES = ("auto", "fast", "reference")


class Player(Protocol):
    """One policy on one problem at some budgets, ready to be played."""

    def play(self, seed: np.random.SeedSequence, max_rounds: int) -> list[Game]:
        """One run: the game at each of the rising budgets."""


def simulate(
    problem: Problem,
    policy: Policy,
    budgets: Iterable[float],
    runs: int,
    seed: int = 0,
    *,
    first_run: int = 0,
    engine: str = "auto",
    jobs: int = 1,
    max_rounds: int | None = None,
    progress: Callable[[int], None] | None = None,
    compiling: Callable[[], None] | None = None,
) -> Outcome:
    """Play ``runs`` independent games at every budget.

    The same problem, policy, budgets, engine, seed and number of a run give the same bits with any number of ``jobs``.
    Runs are numbered from ``first_run`` on: a long simulation may be played in parts. Budgets may come in any order.
    What other budgets are in the list changes no game's law, nor its bits if the policy must know the budget or the
    engine is "reference" or a plain loop; in the other engines it does change the bits.

    ``engine`` is "fast" (compiled, exact in distribution, in the extra ``lab``), "reference" (any policy, one round at
    a time) or "auto": fast where an engine knows every method of the policy that it stands in for. The outcome says
    which engine it was and why not a faster one. ``max_rounds`` stops a game that goes on too long, by default at 10⁸
    rounds in the reference simulator and at 2⁶⁰ in the fast ones. ``progress`` is called with the number of runs done
    so far, ``compiling`` if the engine has to be compiled first.

    >>> from budgetbandits import BudgetedThompson
    >>> problem = Problem.bernoulli(rewards=[0.9, 0.2], costs=[0.3, 0.6])
    >>> outcome = simulate(problem, BudgetedThompson(), budgets=[100, 1000], runs=20, engine="reference")
    >>> outcome.pseudo_regret.mean(axis=0).round(1)
    array([ 8.8, 12.8])
    """
    asked = _checked_budgets(budgets)
    if runs < 1:
        raise BadParameter(f"runs is {runs}; play at least one")
    if first_run < 0:
        raise BadParameter(f"first_run is {first_run}; use a whole number from 0 upwards")
    if seed < 0:
        raise BadParameter(f"seed is {seed}; use a whole number from 0 upwards")
    if jobs == 0 or jobs < -1:
        raise BadParameter(f"jobs is {jobs}; use the number of workers, or -1 for one per core")
    if max_rounds is not None and max_rounds < 1:
        raise BadParameter(f"max_rounds is {max_rounds}; use a positive number, or None for the engine's own")
    if engine not in ENGINES:
        raise BadParameter(f"engine is {engine!r}; choose one of {', '.join(ENGINES)}")
    rising = sorted(set(asked))
    chosen = _engine(problem, policy, rising, engine, compiling)
    began = time.perf_counter()
    work = _Work(problem, policy, rising, seed, _seed_key(problem, policy), chosen, max_rounds)
    games = _all_games(work, range(first_run, first_run + runs), jobs, progress or (lambda done: None))
    seconds = time.perf_counter() - began
    order = [rising.index(budget) for budget in asked]
    return Outcome(
        problem=problem,
        policy=policy.spec,
        budgets=np.array(asked),
        reward=np.array([[game[b][0] for b in order] for game in games]),
        spend=np.array([[game[b][1] for b in order] for game in games]),
        rounds=np.array([[game[b][2] for b in order] for game in games], dtype=np.int64),
        pulls=np.array([[game[b][3] for b in order] for game in games], dtype=np.int64),
        engine=chosen.name,
        engine_reason=chosen.reason,
        seconds=seconds,
    )


def _engine(
    problem: Problem, policy: Policy, budgets: Sequence[float], wish: str, compiling: Callable[[], None] | None
) -> Engine:
    """The engine that plays; it is compiled or loaded from the disk cache on the way."""
    if wish == "reference":
        return Engine("reference", "asked for")
    try:
        from budgetbandits.simulation import engines
    except ImportError:
        if wish == "fast":
            raise BadParameter("the fast engines need Numba; install budgetbandits[lab]") from None
        return Engine("reference", "Numba is not installed; install budgetbandits[lab]")
    # a cache that is warm answers in a second; whatever takes longer is being compiled
    notice = threading.Timer(1.5, compiling or (lambda: None))
    notice.start()
    try:
        chosen = engines.engine_for(problem, policy, budgets)
        if chosen.compiled:
            engines.warm_up(problem, policy)
    finally:
        notice.cancel()
    if wish == "fast" and not chosen.compiled:
        raise BadParameter(
            f"no fast engine plays {policy.spec}: {chosen.reason}; use engine='auto' or engine='reference'"
        )
    return chosen


@dataclass(frozen=True)
class _Work:
    """What is to be played, apart from which runs of it: a worker gets this and some numbers of runs."""

    problem: Problem
    policy: Policy
    budgets: Sequence[float]
    seed: int
    seed_key: tuple[int, int]
    engine: Engine
    max_rounds: int | None

    def play(self, runs: Iterable[int]) -> Iterator[list[Game]]:
        player: Player
        if self.engine.compiled:
            from budgetbandits.simulation.engines import player as compiled_player

            player = compiled_player(self.problem, self.policy, self.budgets)
        else:
            player = reference.ReferencePlayer(self.problem, self.policy, self.budgets)
        longest = self.max_rounds or (1 << 60 if self.engine.compiled else 100_000_000)
        for run in runs:
            yield player.play(np.random.SeedSequence(self.seed, spawn_key=(*self.seed_key, run)), longest)

    def play_all(self, runs: Iterable[int]) -> list[list[Game]]:
        return list(self.play(runs))  # what travels between processes is a list, not a generator


def _all_games(work: _Work, runs: range, jobs: int, progress: Callable[[int], None]) -> list[list[Game]]:
    games = []
    if jobs == 1:
        for game in work.play(runs):
            games.append(game)
            progress(len(games))
        return games
    try:
        import joblib  # in the lab extra: one worker needs nothing but NumPy
    except ImportError:
        raise BadParameter("several workers need joblib; install budgetbandits[lab] or use jobs=1") from None

    # compiled games let go of the interpreter, plain ones do not; several runs a task, so that a player serves them all
    parallel = joblib.Parallel(
        n_jobs=jobs, return_as="generator", prefer="threads" if work.engine.compiled else "processes"
    )
    size = max(1, min(32, len(runs) // 16)) if work.engine.compiled else 1
    chunks = (runs[start : start + size] for start in range(0, len(runs), size))
    for chunk in parallel(joblib.delayed(work.play_all)(chunk) for chunk in chunks):
        games.extend(chunk)
        progress(len(games))
    return games


def identity_of(policy: Policy) -> str:
    """The policy as text that no other policy has: its spec and, if it is from outside the package, a hash of it."""
    return policy.spec if ours(type(policy)) else f"{policy.spec} {fingerprint(policy)}"


def _seed_key(problem: Problem, policy: Policy) -> tuple[int, int]:
    """What sets the randomness of these games apart: what they are, and not when or where they are played."""
    player = int.from_bytes(hashlib.blake2b(identity_of(policy).encode(), digest_size=8).digest(), "little")
    return problem.identity, player


def _checked_budgets(budgets: Iterable[float]) -> list[float]:
    if not isinstance(budgets, Iterable):
        raise BadParameter(f"budgets is {budgets!r}; give a list, such as [1000]")
    asked = [float(budget) for budget in budgets]
    if not asked:
        raise BadParameter("no budget; give at least one")
    for budget in asked:
        if not 0.0 < budget < math.inf:
            raise BadParameter(f"budget is {budget:g}; use a positive, finite number")
    return asked
