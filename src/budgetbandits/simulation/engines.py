"""Which compiled engine plays which policy, and why not a faster one. Importing this needs Numba."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from typing import Any

import numpy as np

from budgetbandits.errors import NotANumber
from budgetbandits.policies.base import Policy
from budgetbandits.policies.epsilon_first import EpsilonFirst, EpsilonFirstGreedy
from budgetbandits.policies.index_policy import IndexPolicy
from budgetbandits.policies.sampling import SamplingPolicy
from budgetbandits.policies.thompson import BetaThompson, BudgetedThompson, Thompson
from budgetbandits.problem import Problem
from budgetbandits.simulation.epsilon_first.player import EpsilonFirstGames
from budgetbandits.simulation.index.player import FEW_ARMS, how_played
from budgetbandits.simulation.index.player import Games as IndexGames
from budgetbandits.simulation.index.rehearsal import check_policy
from budgetbandits.simulation.known import Unsuited, check_methods, methods
from budgetbandits.simulation.outcome import Engine
from budgetbandits.simulation.sampling.player import SamplingGames
from budgetbandits.simulation.sampling.rehearsal import check_policy as check_sampling
from budgetbandits.simulation.thompson.player import ThompsonGames, why_not_lazily

Compiled = ThompsonGames | SamplingGames | IndexGames | EpsilonFirstGames

PLAIN_SAMPLING = "sampling plain loop"

EXPLORING = (
    "needs",
    "anytime",
    "take",
    "start",
    "observe",
    "recall",
    "choose",
    "goes_on",
    "ratio",
    "affordable",
    "commit",
)
"""What the engine of ε-first stands in for."""


THOMPSON: dict[type[BetaThompson], dict[str, tuple[Any, ...]]] = {
    kind: methods(kind, "needs", "anytime", "take", "start", "observe", "recall", "choose", "draw", "goes_on")
    for kind in (BudgetedThompson, Thompson)
}
"""What the engine of Thompson sampling stands in for."""


def engine_for(problem: Problem, policy: Policy, budgets: Sequence[float]) -> Engine:
    """The fastest engine that plays the policy as it is written, and why not a faster one."""
    try:
        if isinstance(policy, BetaThompson):
            return _thompson(policy)
        if isinstance(policy, SamplingPolicy):
            check_sampling(policy)
            return Engine(PLAIN_SAMPLING)
        if isinstance(policy, EpsilonFirst):
            return _epsilon_first(policy)
        if isinstance(policy, IndexPolicy):
            rule = check_policy(problem, policy, budgets[-1])
            return how_played(rule, len(problem))
    except Unsuited as reason:
        return Engine("reference", str(reason))
    return Engine("reference", "it is none of the policies with a compiled engine, and has no index that makes one")


def _thompson(policy: BetaThompson) -> Engine:
    if type(policy) not in (BudgetedThompson, Thompson):
        raise Unsuited("it is a Thompson sampling of its own, and the engine plays exactly bts and thompson")
    check_methods(policy, THOMPSON[type(policy)])
    reason = why_not_lazily(policy)
    return Engine(PLAIN_SAMPLING, reason) if reason else Engine("thompson")


def _epsilon_first(policy: EpsilonFirst) -> Engine:
    known = EpsilonFirstGreedy if isinstance(policy, EpsilonFirstGreedy) else EpsilonFirst
    check_methods(policy, methods(known, *EXPLORING))
    return Engine("epsilon-first")


def player(problem: Problem, policy: Policy, budgets: Sequence[float], common: bool = False) -> Compiled:
    """The engine that `engine_for` found, ready to play; with outcomes that all policies share if ``common``."""
    if isinstance(policy, BudgetedThompson | Thompson) and not why_not_lazily(policy):
        return ThompsonGames(problem, policy, budgets, common)
    if isinstance(policy, SamplingPolicy):
        return SamplingGames(problem, policy, budgets)
    if isinstance(policy, EpsilonFirst):
        return EpsilonFirstGames(problem, policy, budgets, common)
    return IndexGames(problem, policy, budgets, common)


_WARM: set[tuple[object, ...]] = set()
"""What this process has played a tiny game of."""


def warm_up(problem: Problem, policy: Policy) -> None:
    """Have everything compiled that this policy's games on this kind of problem need, by playing a tiny one, once."""
    arms = problem.arms[: FEW_ARMS + 1]  # another engine may play more arms than these
    laws = frozenset((type(arm.law), *map(type, getattr(arm.law, "__dict__", {}).values())) for arm in arms)
    kind = type(policy), policy.spec, len(arms), laws
    if kind in _WARM:
        return
    with contextlib.suppress(NotANumber):  # it may or may not come up in the games that count
        player(Problem(arms), policy, [2.0]).play(np.random.SeedSequence(0), 1 << 60)
    _WARM.add(kind)
