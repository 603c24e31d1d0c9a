"""Simulate a policy on a problem: `simulate` is the only entry."""

from __future__ import annotations

import math
import secrets
import time
from collections.abc import Callable, Iterable, Sequence

import numpy as np

from budgetbandits.errors import BadParameter, BudgetBanditsError, MissingExtra, install
from budgetbandits.policies.base import Policy
from budgetbandits.policies.files import policy_of
from budgetbandits.problems.problem import Problem
from budgetbandits.problems.streams import Environment, RequestStream
from budgetbandits.simulation.engine_support import attributed_to
from budgetbandits.simulation.outcome import Engine, Outcome
from budgetbandits.simulation.parallel import Work, all_games, check_jobs
from budgetbandits.simulation.reference import Game
from budgetbandits.validation import integer, positive

__all__ = ["ENGINES", "Outcome", "simulate"]

ENGINES = ("auto", "fast", "reference")
"""Values of the option ``engine``."""

LISTED_REQUESTS_MAX = 100_000_000
"""The longest stream that is played: the part of each request is listed before the game."""


def simulate(
    problem: Environment,
    policy: Policy | str,
    budgets: Iterable[float],
    runs: int,
    seed: int | None = 0,
    *,
    horizon: int | None = None,
    first_run: int = 0,
    engine: str = "auto",
    jobs: int = 1,
    common: bool = False,
    max_rounds: int | None = None,
    progress: Callable[[int], None] | None = None,
    compiling: Callable[[], None] | None = None,
) -> Outcome:
    """Play ``runs`` independent games at every budget.

    ``policy`` may be a name, as on the command line: "bts", "epsilon-first:epsilon=0.2", "mine.py:OmegaUCB". Without a
    seed (None) one is drawn; `Outcome.seed` says which.

    With a ``horizon`` the game also ends after that number of pulls: the budget is for that many requests, and regret
    is measured against the fluid bound (`oracle_horizon`). A stream, whose arms change (`problems.streams`) or whose
    requests have features (`problems.linear`), needs one.

    The same problem, policy, budgets, engine, seed and number of a run give the same bits with any number of ``jobs``.
    Runs are numbered from ``first_run`` on: a long simulation may be played in parts. Budgets may come in any order.
    What other budgets are in the list changes no game's law, nor its bits if the policy must know the budget or the
    engine is "reference" or a plain loop; in the other engines it does change the bits.

    ``engine`` is "fast" (compiled, exact in distribution, in the extra ``lab``), "reference" (any policy, one round at
    a time) or "auto": fast where an engine knows every method of the policy that it stands in for. The outcome says
    which engine it was and why not a faster one. ``jobs`` is the number of workers, or -1 for one per core. With
    ``common`` the n-th pull of an arm has the same outcome in every policy's game of the same number: their differences
    vary less. ``max_rounds`` stops a game that goes on too long, by default at 10⁸ rounds in the reference simulator
    and at 2⁶⁰ in the fast ones. ``progress`` is called with the number of runs done so far, ``compiling`` if the engine
    has to be compiled first; without it a line on stderr says so, at a terminal or in a notebook.

    >>> problem = Problem.bernoulli(rewards=[0.9, 0.2], costs=[0.3, 0.6])
    >>> outcome = simulate(problem, "bts", budgets=[100, 1000], runs=20, engine="reference")
    >>> outcome.pseudo_regret.mean(axis=0).round(1)
    array([ 8.8, 12.8])
    """
    asked = checked_budgets(budgets)
    check_numbers(runs, first_run, max_rounds, engine)
    check_jobs(jobs)
    seed = seed_of(seed)
    policy = policy_of(policy)
    requests = checked_horizon(problem, horizon, common)
    rising = sorted(set(asked))
    chosen = choose_engine(problem, policy, engine, compiling, horizon=requests)
    began = time.perf_counter()
    work = Work(problem, policy, rising, seed, chosen, max_rounds, common, requests)
    games = all_games(work, range(first_run, first_run + runs), jobs, progress or (lambda finished: None))
    return outcome_of(work, asked, games, first_run, time.perf_counter() - began)


def checked_horizon(problem: Environment, horizon: int | None, common: bool) -> float:
    """The horizon as a float, infinite for None; refused if the problem needs another."""
    if not isinstance(problem, Environment):
        raise BadParameter(f"problem is {problem!r:.40}; give a Problem, such as Problem.load('problem.toml')")
    if not isinstance(problem, Problem):
        if horizon is None:
            raise BadParameter("a stream comes in requests; say how many there are: horizon=10_000 (--horizon 10000)")
        if common:
            raise BadParameter("a request stream has no common outcomes, since its laws change; leave out common")
    if horizon is None:
        return math.inf
    integer("horizon", horizon, 1, hint=", the number of requests")
    if isinstance(problem, RequestStream) and horizon > LISTED_REQUESTS_MAX:
        raise BadParameter(f"horizon is {horizon:,}; use at most {LISTED_REQUESTS_MAX:,} requests with a stream")
    return float(horizon)


def outcome_of(
    work: Work, asked: Sequence[float], games: Sequence[Sequence[Game]], first_run: int, seconds: float
) -> Outcome:
    """The games of some work, with the budgets in the order in which they were asked for."""
    order = [work.budgets.index(budget) for budget in asked]
    pulls = np.array([[game[b][3] for b in order] for game in games], dtype=np.int64)
    stream = isinstance(work.problem, RequestStream)
    return Outcome(
        problem=work.problem,
        policy=work.policy.spec,
        budgets=np.array(asked),
        reward=np.array([[game[b][0] for b in order] for game in games]),
        spend=np.array([[game[b][1] for b in order] for game in games]),
        rounds=np.array([[game[b][2] for b in order] for game in games], dtype=np.int64),
        pulls=pulls.sum(axis=2) if stream else pulls,
        part_pulls=pulls if stream else None,
        engine=work.engine.name,
        engine_reason=work.engine.reason,
        seconds=seconds,
        seed=work.seed,
        first_run=first_run,
        horizon=work.horizon,
    )


def choose_engine(
    problem: Environment,
    policy: Policy,
    wish: str,
    compiling: Callable[[], None] | None,
    ready: bool = False,
    horizon: float = math.inf,
) -> Engine:
    """The engine that plays; unless it is ``ready``, it is compiled or loaded from the disk cache on the way."""
    _check_priors(policy, len(problem))
    if wish == "reference":
        return Engine("reference", "asked for")
    try:
        from budgetbandits.simulation import dispatch
    except ImportError:
        if wish == "fast":
            raise MissingExtra(f"the fast engines need Numba; {install('lab')}") from None
        return Engine("reference", f"Numba is not installed; {install('lab')}")
    from budgetbandits.simulation.engines.runtime.cache import on_compile, say_compiling

    with on_compile(compiling or say_compiling), attributed_to(policy):
        chosen = dispatch.engine_for(problem, policy, horizon)
        if chosen.compiled and not ready:
            dispatch.warm_up(problem, policy, horizon)
    if wish == "fast" and not chosen.compiled:
        raise BadParameter(
            f"no fast engine plays {policy.spec}: {chosen.reason}; use engine='auto' or engine='reference'"
        )
    return chosen


def _check_priors(policy: Policy, arms: int) -> None:
    """Refuse priors of arms that a problem does not have: in a game no arm comes later."""
    most = max(map(len, policy.priors), default=1)
    if most > max(arms, 1):
        raise BadParameter(
            f"{policy.spec} has priors of {most} arms, and the problem has {arms}; give one for each arm"
        )


def check_specs(policies: Sequence[Policy], error: type[BudgetBanditsError] = BadParameter) -> None:
    """Tables tell policies apart by their words."""
    specs = [policy.spec for policy in policies]
    for spec in specs:
        if specs.count(spec) > 1:
            raise error(f"policies names {spec} twice; name each once, with a name of its own")


def seed_of(seed: int | None) -> int:
    """The seed, checked; a fresh one for None."""
    if seed is None:
        return secrets.randbelow(1 << 32)
    return integer("seed", seed, hint=", or None for a fresh one")


def check_numbers(runs: int, first_run: int, max_rounds: int | None, engine: str) -> None:
    """Refuse numbers of runs and rounds out of range, and unknown engines."""
    integer("runs", runs, 1)
    integer("first_run", first_run)
    if max_rounds is not None:
        integer("max_rounds", max_rounds, 1, hint=", or None for the engine's own")
    if engine not in ENGINES:
        raise BadParameter(f"engine is {engine!r}; choose one of {', '.join(ENGINES)}")


def checked_budgets(budgets: Iterable[float]) -> list[float]:
    """The budgets of a game, rising and without repetitions."""
    if isinstance(budgets, str) or not isinstance(budgets, Iterable):
        raise BadParameter(f"budgets is {budgets!r}; give a list, such as [1000]")
    try:
        asked = [float(budget) for budget in budgets]
    except (TypeError, ValueError) as error:
        raise BadParameter(f"a budget is not a number ({error}); give a list, such as [1000]") from None
    if not asked:
        raise BadParameter("no budget; give at least one")
    return [positive("budget", budget) for budget in asked]
