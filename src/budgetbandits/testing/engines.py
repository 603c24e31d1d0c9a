"""Checks that the compiled engines play a policy as it is written: two-sample tests of whole games, and rehearsals."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from budgetbandits.errors import BudgetBanditsError, missing_extra
from budgetbandits.policies.base import Policy
from budgetbandits.policies.index import IndexPolicy
from budgetbandits.policies.sampling import SamplingPolicy
from budgetbandits.problems import distributions
from budgetbandits.problems.families import family
from budgetbandits.problems.problem import Arm, Problem
from budgetbandits.simulation.outcome import Engine, Outcome
from budgetbandits.simulation.simulate import choose_engine, simulate
from budgetbandits.testing.contract import Check, Violation, expect

FALSE_ALARM = 1e-6
"""Probability that one call of `smallest_p` fails although the distributions agree, after Bonferroni."""


def rows(outcome: Outcome) -> NDArray[np.float64]:
    """An outcome as a table, one row for each run: for every budget the reward, spend, rounds and pulls of each arm."""
    numbers = [outcome.reward[..., None], outcome.spend[..., None], outcome.rounds[..., None], outcome.pulls]
    return np.concatenate(numbers, axis=2, dtype=np.float64).reshape(outcome.runs, -1)


def smallest_p(first: NDArray[np.float64], second: NDArray[np.float64], bins: int = 12) -> float:
    """The smallest p-value over all columns: chi-square on pooled quantiles and Kolmogorov-Smirnov, with Bonferroni's
    correction. Below `FALSE_ALARM` the samples differ."""
    from scipy import stats  # late: it takes a second to import

    lowest, tests = 1.0, 0
    for a, b in zip(first.T, second.T, strict=True):
        edges = np.unique(np.quantile(np.concatenate([a, b]), np.linspace(0.0, 1.0, bins + 1)[1:-1]))
        table = np.array([np.bincount(np.searchsorted(edges, x), minlength=len(edges) + 1) for x in (a, b)])
        table = _merged(table)
        if table.shape[1] > 1:
            lowest = min(lowest, stats.chi2_contingency(table, correction=False).pvalue)
        lowest = min(lowest, stats.ks_2samp(a, b, method="asymp").pvalue)
        tests += 2
    return min(1.0, lowest * tests)


def _merged(table: NDArray[np.int64]) -> NDArray[np.int64]:
    """Join neighbouring bins until each holds at least 20 values of both samples together, as chi-square needs."""
    columns: list[NDArray[np.int64]] = []
    for column in table.T:
        if columns and columns[-1].sum() < 20:
            columns[-1] = columns[-1] + column
        else:
            columns.append(column.copy())
    if len(columns) > 1 and columns[-1].sum() < 20:
        last = columns.pop()
        columns[-1] = columns[-1] + last
    return np.array(columns).T


GAMES: dict[str, tuple[Problem, list[float], int]] = {
    "a near tie": (Problem.bernoulli([0.6, 0.58], [0.4, 0.4]), [5.0, 25.0], 400),
    "ten arms": (family("uniform-bernoulli", 10, seed=4, low=0.1), [6.0, 15.0, 15.5], 400),
    "laws of every kind": (
        Problem(
            (
                Arm("table", distributions.JointTable([[1, 1, 0.5], [0, 0.5, 0.5]])),
                Arm("copula", distributions.Copula(distributions.Beta(2, 2), distributions.Beta(1, 3), 0.6)),
                Arm(
                    "mixed",
                    distributions.Independent(distributions.Lattice([0.1, 0.7], [1, 2]), distributions.Fixed(0.3)),
                ),
            )
        ),
        [2.0, 10.0],
        400,
    ),
}
"""Problem, budgets and runs of the reference simulator; the engine plays three times as many."""


def declares_the_truth(policy: Policy) -> str | None:
    """An index is as its class declares it: monotone, a number, with constant extras. A compiled score is the same as
    the plain one."""
    if not isinstance(policy, IndexPolicy | SamplingPolicy):
        return "it has no index and no score"
    try:
        from budgetbandits.simulation.engine_support import EngineUnsupported
        from budgetbandits.simulation.engines.index import conformance, rules
        from budgetbandits.simulation.engines.plain import sampling_games as sampling
    except ImportError as error:
        needed = missing_extra(error)
        if needed is None:
            raise
        return str(needed)
    try:
        if isinstance(policy, IndexPolicy):
            rules.rule_of(policy)
        else:
            sampling.known_rule(policy)
    except EngineUnsupported as reason:
        return str(reason)
    try:
        if isinstance(policy, IndexPolicy):
            conformance.check_policy(policy)
        else:
            sampling.check_policy(policy)
    except (EngineUnsupported, BudgetBanditsError) as reason:
        raise Violation(str(reason)) from None
    return None


def engine_of(policy: Policy) -> Engine:
    """The engine that plays the policy, as in every simulation and study of ten arms, and why not a faster one."""
    return choose_engine(GAMES["ten arms"][0], policy, "auto", None)


def plays_on_the_reference(policy: Policy) -> None:
    """The reference simulator plays the policy."""
    problem, budgets, _ = GAMES["ten arms"]
    try:
        simulate(problem, policy, budgets, runs=5, engine="reference")
    except BudgetBanditsError as error:
        raise Violation(str(error)) from None


def engines_agree(policy: Policy) -> str | None:
    """Two-sample tests of rewards, spends, rounds and pulls; engines that agree fail a comparison once in a million."""
    for name, (problem, budgets, runs) in GAMES.items():
        fast = simulate(problem, policy, budgets, 3 * runs, seed=7)
        if fast.engine == "reference":
            return f"no compiled engine plays it: {fast.engine_reason}"
        slow = simulate(problem, policy, budgets, runs, seed=7, engine="reference")
        p = smallest_p(rows(slow), rows(fast))
        expect(p > FALSE_ALARM, f"on {name} the engine '{fast.engine}' plays another game (p = {p:.1e})")
    return None


ENGINES: dict[str, Check] = {  # the checks of the engines, by name
    check.__name__.replace("_", " "): check for check in (plays_on_the_reference, declares_the_truth, engines_agree)
}
