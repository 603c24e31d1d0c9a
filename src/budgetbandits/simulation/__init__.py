"""Simulate a policy on a problem: `simulate` is the only entry."""

from __future__ import annotations

import hashlib
import math
import time
from collections.abc import Callable, Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from budgetbandits.errors import BadParameter
from budgetbandits.policies.base import Policy
from budgetbandits.problem import Problem
from budgetbandits.simulation import reference
from budgetbandits.simulation.outcome import Outcome

__all__ = ["Outcome", "simulate"]

Games = list[tuple[float, float, int, NDArray[np.int64]]]


def simulate(
    problem: Problem,
    policy: Policy,
    budgets: Iterable[float],
    runs: int,
    seed: int = 0,
    *,
    jobs: int = 1,
    max_rounds: int = 100_000_000,
    progress: Callable[[int], None] | None = None,
) -> Outcome:
    """Play ``runs`` independent games at every budget; the same seed gives the same bits with any number of ``jobs``.

    ``progress`` is called with the number of runs done so far. Budgets may come in any order.

    >>> from budgetbandits import BudgetedThompson
    >>> problem = Problem.bernoulli(rewards=[0.9, 0.2], costs=[0.3, 0.6])
    >>> outcome = simulate(problem, BudgetedThompson(), budgets=[100, 1000], runs=20)
    >>> outcome.pseudo_regret.mean(axis=0).round(1)
    array([ 7.8, 12.8])
    """
    asked = _checked_budgets(budgets)
    if runs < 1:
        raise BadParameter(f"runs is {runs}; play at least one")
    if seed < 0:
        raise BadParameter(f"seed is {seed}; use a whole number from 0 upwards")
    rising = sorted(set(asked))
    began = time.perf_counter()
    games = _all_games(problem, policy, rising, runs, seed, jobs, max_rounds, progress)
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
        engine="reference",
        seconds=seconds,
    )


def _all_games(
    problem: Problem,
    policy: Policy,
    budgets: Sequence[float],
    runs: int,
    seed: int,
    jobs: int,
    max_rounds: int,
    progress: Callable[[int], None] | None,
) -> list[Games]:
    def report(done: int) -> None:
        if progress is not None:
            progress(done)

    if jobs == 1:
        games = []
        for run in range(runs):
            games.append(play_run(problem, policy, budgets, run, seed, max_rounds))
            report(run + 1)
        return games
    import joblib  # in the lab extra: one worker needs nothing but NumPy

    parallel = joblib.Parallel(n_jobs=jobs, return_as="generator")
    tasks = (joblib.delayed(play_run)(problem, policy, budgets, run, seed, max_rounds) for run in range(runs))
    games = []
    for game in parallel(tasks):
        games.append(game)
        report(len(games))
    return games


def play_run(problem: Problem, policy: Policy, budgets: Sequence[float], run: int, seed: int, max_rounds: int) -> Games:
    """One run: a single game to the largest budget, or one game for each if the policy must know it."""
    if policy.anytime:
        return reference.play(problem, policy, budgets, *_generators(problem, policy, run, seed, 0.0), max_rounds)
    return [
        reference.play(problem, policy, [budget], *_generators(problem, policy, run, seed, budget), max_rounds)[0]
        for budget in budgets
    ]


def _generators(
    problem: Problem, policy: Policy, run: int, seed: int, budget: float
) -> tuple[np.random.Generator, np.random.Generator]:
    """The world's and the player's randomness, from what the game is and not from when it is played."""
    policy_identity = int.from_bytes(hashlib.blake2b(policy.spec.encode(), digest_size=8).digest(), "little")
    budget_identity = int.from_bytes(np.float64(budget).tobytes(), "little")
    sequence = np.random.SeedSequence(seed, spawn_key=(problem.identity, policy_identity, budget_identity, run))
    world, player = sequence.spawn(2)
    return np.random.default_rng(world), np.random.default_rng(player)


def _checked_budgets(budgets: Iterable[float]) -> list[float]:
    asked = [float(budget) for budget in budgets]
    if not asked:
        raise BadParameter("no budget; give at least one")
    for budget in asked:
        if not 0.0 < budget < math.inf:
            raise BadParameter(f"budget is {budget:g}; use a positive, finite number")
    return asked
