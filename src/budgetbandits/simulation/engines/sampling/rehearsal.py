"""Find out, before a game begins, whether the plain loop plays a sampling policy from outside the package as written.

Its methods must be those of `SamplingPolicy`, which the loop stands in for. And once per process it is played on short
games by the loop and by the reference simulator, which must pull the same arms: both draw the same numbers.
"""

from __future__ import annotations

import numpy as np

from budgetbandits.fingerprint import fingerprint, ours
from budgetbandits.policies.sampling import SamplingPolicy
from budgetbandits.problems import distributions
from budgetbandits.problems.problem import Arm, Problem
from budgetbandits.simulation.engines.sampling.engine import SamplingGames
from budgetbandits.simulation.engines.sampling.rules import SamplingRule, rule_of
from budgetbandits.simulation.known import EngineUnsupported, check_methods, methods
from budgetbandits.simulation.reference import ReferencePlayer

PLAYED = methods(
    SamplingPolicy,
    *("needs", "anytime", "select_knowledge", "start", "observe", "choose", "draw", "draw_one", "can_continue"),
)
"""What the loop stands in for."""

STAGE = Problem(
    (
        Arm("even", distributions.Independent(distributions.Bernoulli(0.5), distributions.Bernoulli(0.5))),
        Arm("fixed", distributions.Independent(distributions.Fixed(0.25), distributions.Fixed(0.5))),
        Arm("tied", distributions.Table([[1, 1, 0.3], [0, 0.25, 0.3], [0.5, 0, 0.4]])),
        Arm("any", distributions.Copula(distributions.Beta(2, 2), distributions.Beta(1, 3), -0.6)),
    )
)
BUDGETS = (1.0, 20.0, 60.0)
RUNS = 3

_judged: dict[str, str] = {}
"""By fingerprint: why the loop does not play a policy as it is written, or nothing if it does."""


def check_policy(policy: SamplingPolicy) -> None:
    """`EngineUnsupported` if the plain loop would play the policy otherwise than it is written."""
    known_rule(policy)
    if ours(type(policy)):
        return
    identity = fingerprint(policy)
    if identity not in _judged:
        _judged[identity] = _why_not(policy)
    if _judged[identity]:
        raise EngineUnsupported(_judged[identity])


def _why_not(policy: SamplingPolicy) -> str:
    try:
        rehearse(policy)
    except EngineUnsupported as reason:
        return str(reason)
    return ""


def known_rule(policy: SamplingPolicy) -> SamplingRule:
    """The rule of a policy that learns and chooses as `SamplingPolicy` does, or one of the package's own does."""
    if not ours(type(policy)):  # the package's own are tested once for all
        check_methods(policy, PLAYED)
    return rule_of(policy)


def rehearse(policy: SamplingPolicy) -> None:
    """Raise `EngineUnsupported` if the loop and the reference simulator do not pull the same arms."""
    games = [kind(STAGE, policy, BUDGETS) for kind in (ReferencePlayer, SamplingGames)]
    for run in range(RUNS):
        try:
            slow, fast = (each.play(np.random.SeedSequence(run), 100_000) for each in games)
        except Exception as error:  # whatever the policy's own code does
            raise EngineUnsupported(f"in a rehearsal: {error}") from error
        for budget, one, other in zip(BUDGETS, slow, fast, strict=True):
            if not np.array_equal(one[3], other[3]):
                raise EngineUnsupported(
                    f"in a rehearsal to a budget of {budget:g} the engine pulled its arms {other[3].tolist()} times, "
                    f"the reference {one[3].tolist()} times; compiled, its score or learn does something else"
                )
