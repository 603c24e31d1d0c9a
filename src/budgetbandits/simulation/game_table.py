"""Many problems, many policies: `simulate_many` plays them all and returns one table."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from budgetbandits.errors import BadParameter
from budgetbandits.plugins import sweep
from budgetbandits.policies.base import Policy
from budgetbandits.policies.files import policy_of
from budgetbandits.problems.families import check_family, family
from budgetbandits.problems.problem import Problem
from budgetbandits.problems.streams import Environment
from budgetbandits.simulation.outcome import check_metric, need_polars
from budgetbandits.simulation.parallel import Work, check_jobs, in_parallel
from budgetbandits.simulation.simulate import (
    check_numbers,
    check_specs,
    checked_budgets,
    checked_horizon,
    choose_engine,
    outcome_of,
    seed_of,
)
from budgetbandits.validation import integer

if TYPE_CHECKING:
    import polars as pl

COLUMNS = (
    "problem", "arms", "policy", "run", "budget", "regret", "pseudo_regret", "reward", "spend", "rounds", "identified",
)  # fmt: skip
"""Columns of the table, which are those of a study's table."""


def simulate_many(
    problems: Mapping[str, Environment] | Iterable[Environment],
    policies: Iterable[Policy | str] | Policy | str,
    budgets: Iterable[float],
    runs: int,
    seed: int | None = 0,
    *,
    horizon: int | None = None,
    common: bool = False,
    summary: str | None = None,
    engine: str = "auto",
    jobs: int = 1,
    max_rounds: int | None = None,
    progress: Callable[[int, int], None] | None = None,
    compiling: Callable[[], None] | None = None,
) -> pl.DataFrame:
    """Play every policy on every problem; a row for each problem, policy, run and budget. Needs the extra ``lab``.

    Problems go by the names they are given, or by "problem 1", "problem 2", …; `random_problems` makes many. Policies
    may be names, and a list as a parameter's value is a sweep: "epsilon-first:epsilon=[0.1, 0.2]". The games are those
    that `simulate` plays with the same arguments, bit for bit. With ``common`` the n-th pull of an arm gives every
    policy the same: compare them run by run, by ``Results.of(table, paired=True)``. Each budget may be for ``horizon``
    requests, and problems may be streams, as in `simulate`.

    ``summary`` names a metric, to have a row for each problem, policy and budget instead, as `Outcome.summary`: where
    there are too many runs to keep. ``jobs`` is the number of workers, or -1 for one per core; each plays all runs of a
    policy on a problem. ``progress`` is called with the number of games played so far and of all.

    >>> problems = random_problems("uniform-bernoulli", arms=5, count=3, low=0.2)
    >>> games = simulate_many(problems, ["bts", "kube"], budgets=[100], runs=10)
    >>> games.shape, games.columns[:5]
    ((60, 11), ['problem', 'arms', 'policy', 'run', 'budget'])
    """
    need_polars("simulate_many")
    import polars as pl

    named = _named(problems)
    players = _players(policies)
    check_numbers(runs, 0, max_rounds, engine)
    if summary is not None:
        check_metric(summary)
    asked = _different(checked_budgets(budgets))
    requests = max(checked_horizon(problem, horizon, common) for problem in named.values())
    rising, known_seed = sorted(asked), seed_of(seed)
    ready: set[tuple[str, int]] = set()  # the policies that are compiled, and on how many arms they have played

    def works(name: str) -> Iterator[Work]:
        """Each policy on one of the problems."""
        problem = named[name]
        for policy in players:
            kind = policy.spec, len(problem)
            chosen = choose_engine(problem, policy, engine, compiling, kind in ready, requests)
            ready.add(kind)
            yield Work(problem, policy, rising, known_seed, chosen, max_rounds, common, requests)

    on_the_first = list(works(next(iter(named))))  # one problem says whether threads will do
    threads = all(work.engine.compiled for work in on_the_first)
    tasks = ((name, work, asked, runs, summary) for name in named for work in works(name))
    with contextlib.closing(in_parallel(_table, tasks, check_jobs(jobs), threads)) as tables:
        return pl.concat(_counted(tables, runs, len(named) * len(players) * runs, progress), rechunk=True)


def random_problems(
    name: str, arms: int, count: int, seed: int = 0, low: float = 0.0, high: float = 1.0
) -> dict[str, Problem]:
    """Problems of a family with the seeds ``seed``, ``seed + 1``, …, as in a study; see `budgetbandits.family`.

    >>> list(random_problems("uniform-bernoulli", arms=3, count=2, seed=7))
    ['seed 7', 'seed 8']
    """
    integer("count", count, 1, hint=", the number of problems")
    check_family(name, arms, seed, low, high)
    return {f"seed {number}": family(name, arms, number, low, high) for number in range(seed, seed + count)}


def _different(budgets: list[float]) -> list[float]:
    if len(set(budgets)) < len(budgets):
        raise BadParameter("budgets holds the same budget twice; name each once")
    return budgets


def _counted(
    tables: Iterable[pl.DataFrame], runs: int, total: int, progress: Callable[[int, int], None] | None
) -> Iterator[pl.DataFrame]:
    for number, table in enumerate(tables, 1):
        if progress is not None:
            progress(number * runs, total)
        yield table


def _table(name: str, work: Work, asked: Sequence[float], runs: int, summary: str | None) -> pl.DataFrame:
    import polars as pl

    outcome = outcome_of(work, asked, work.play_all(range(runs)), 0, 0.0)
    table = outcome.to_frame() if summary is None else outcome.summary(summary)
    arms = pl.lit(len(work.problem), dtype=pl.Int64)
    return table.select(pl.lit(name).alias("problem"), arms.alias("arms"), pl.all())


def _named(problems: Mapping[str, Environment] | Iterable[Environment]) -> dict[str, Environment]:
    if isinstance(problems, Environment) or not isinstance(problems, Iterable):
        raise BadParameter(f"problems is {problems!r:.60}; give a list of problems, or map names to them")
    if isinstance(problems, Mapping):
        named = dict(problems)
    else:
        named = {f"problem {number}": problem for number, problem in enumerate(problems, start=1)}
    if not named:
        raise BadParameter("no problem; give at least one")
    for name, problem in named.items():
        if not isinstance(name, str) or not isinstance(problem, Environment):
            raise BadParameter(f"{name!r:.40} is mapped to {problem!r:.60}; map names to problems")
    first: dict[int, str] = {}
    for name, problem in named.items():
        if (twin := first.setdefault(problem.identity, name)) != name:  # they would have the very same games
            raise BadParameter(f"{twin!r} and {name!r} are the same problem; give it once, with more runs")
    return named


def _players(policies: Iterable[Policy | str] | Policy | str) -> list[Policy]:
    if not isinstance(policies, Policy | Iterable):
        raise BadParameter(f"policies is {policies!r:.40}; give a list of policies or names, such as ['bts', 'kube']")
    listed = [policies] if isinstance(policies, Policy | str) else list(policies)
    texts = [entry for policy in listed for entry in (sweep(policy) if isinstance(policy, str) else [policy])]
    players = [policy_of(entry) for entry in texts]
    if not players:
        raise BadParameter("no policy; give at least one, such as 'bts'")
    check_specs(players)
    return players
