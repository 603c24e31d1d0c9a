"""Whether the compiled engines play a policy as it is written."""

from __future__ import annotations

from budgetbandits.errors import BudgetBanditsError, missing_extra
from budgetbandits.policies.base import Policy
from budgetbandits.policies.index import IndexPolicy
from budgetbandits.policies.sampling import SamplingPolicy
from budgetbandits.problems import distributions
from budgetbandits.problems.families import family
from budgetbandits.problems.problem import Arm, Problem
from budgetbandits.simulation.outcome import Engine
from budgetbandits.simulation.simulate import choose_engine, simulate
from budgetbandits.testing.contract import Broken, Check, expect
from budgetbandits.testing.two_samples import FALSE_ALARM, rows, smallest_p

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
    """An index is what its class says of it: monotone, a number, with extras that stay as they are. A score is the same
    compiled."""
    if not isinstance(policy, IndexPolicy | SamplingPolicy):
        return "it has no index and no score"
    try:
        from budgetbandits.simulation.engine_support import EngineUnsupported
        from budgetbandits.simulation.engines.index import conformance, rules
        from budgetbandits.simulation.engines.sampling import engine as sampling
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
        raise Broken(str(reason)) from None
    return None


def engine_of(policy: Policy) -> Engine:
    """The engine that plays the policy, as in every simulation and study of ten arms, and why not a faster one."""
    problem, budgets, _ = GAMES["ten arms"]
    return choose_engine(problem, policy, budgets, "auto", None)


def plays_on_the_reference(policy: Policy) -> None:
    problem, budgets, _ = GAMES["ten arms"]
    try:
        simulate(problem, policy, budgets, runs=5, engine="reference")
    except BudgetBanditsError as error:
        raise Broken(str(error)) from None


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


ENGINES: dict[str, Check] = {
    check.__name__.replace("_", " "): check for check in (plays_on_the_reference, declares_the_truth, engines_agree)
}
