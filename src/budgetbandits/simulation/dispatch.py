"""Which compiled engine plays which policy, and why not a faster one. Importing this needs Numba."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from budgetbandits.errors import NotANumber
from budgetbandits.policies.base import Policy
from budgetbandits.policies.epsilon_first import EpsilonFirst, EpsilonFirstGreedy
from budgetbandits.policies.index import IndexPolicy
from budgetbandits.policies.paced.policy import PacedThompson
from budgetbandits.policies.primal_dual import PrimalDualBwK
from budgetbandits.policies.sampling import SamplingPolicy
from budgetbandits.policies.thompson import BetaThompson, BudgetedThompson, Thompson
from budgetbandits.problems.linear import LinearStream
from budgetbandits.problems.problem import Problem
from budgetbandits.problems.streams import Environment, RequestStream
from budgetbandits.simulation.engine_support import DRIVER_METHODS, EngineUnsupported, check_methods, methods
from budgetbandits.simulation.engines.epsilon_first.engine import EpsilonFirstGames
from budgetbandits.simulation.engines.index.conformance import check_policy
from budgetbandits.simulation.engines.index.engine import PLAIN_LOOP_ARMS_MAX, IndexGames, how_played
from budgetbandits.simulation.engines.paced.engine import PacedGames
from budgetbandits.simulation.engines.paced.engine import check_policy as check_paced
from budgetbandits.simulation.engines.sampling.engine import SamplingGames
from budgetbandits.simulation.engines.sampling.engine import check_policy as check_sampling
from budgetbandits.simulation.engines.thompson.engine import ThompsonGames, why_not_lazily
from budgetbandits.simulation.outcome import Engine

CompiledGames = ThompsonGames | SamplingGames | IndexGames | EpsilonFirstGames | PacedGames

PLAIN_SAMPLING, PLAIN_INDEX, PLAIN_PACED = "sampling plain loop", "index plain loop", "paced plain loop"
HORIZON_REASON = "with a horizon, no engine plays many requests at once"

EPSILON_FIRST_METHODS = (*DRIVER_METHODS, "add_history", "ratio", "affordable", "commit")
"""The methods that the engine of ε-first stands in for."""

THOMPSON_METHODS: dict[type[BetaThompson], dict[str, tuple[Any, ...]]] = {
    kind: methods(kind, *DRIVER_METHODS, "add_history", "draw") for kind in (BudgetedThompson, Thompson)
}
"""The methods that the engine of Thompson sampling stands in for."""


def engine_for(problem: Environment, policy: Policy, horizon: float = math.inf) -> Engine:
    """The fastest engine that plays the policy as it is written, and why not a faster one."""
    if isinstance(problem, LinearStream):
        return Engine("reference", "no compiled engine knows requests with features")
    if policy.own_scales and problem.scales is not None and not _paced(policy, horizon):
        return Engine(
            "reference", "among the compiled engines, only the one of bts-paced learns costs on scales of the arms' own"
        )
    try:
        if _paced(policy, horizon):
            check_paced(policy)
            return Engine(PLAIN_PACED)
        if isinstance(problem, RequestStream):
            return Engine(
                "reference", "among the compiled engines, only the one of bts-paced and primal-dual-bwk knows streams"
            )
        if isinstance(policy, BetaThompson):
            engine = _thompson(policy)
            return Engine(PLAIN_SAMPLING, engine.reason or HORIZON_REASON) if horizon < math.inf else engine
        if isinstance(policy, SamplingPolicy):
            check_sampling(policy)
            return Engine(PLAIN_SAMPLING)
        if isinstance(policy, EpsilonFirst):
            known = EpsilonFirstGreedy if isinstance(policy, EpsilonFirstGreedy) else EpsilonFirst
            check_methods(policy, methods(known, *EPSILON_FIRST_METHODS))
            if horizon < math.inf:
                return Engine("reference", "the engine of ε-first knows no horizon")
            return Engine("epsilon-first")
        if isinstance(policy, IndexPolicy):
            rule = check_policy(policy)
            engine = how_played(rule, len(problem))
            return Engine(PLAIN_INDEX, engine.reason or HORIZON_REASON) if horizon < math.inf else engine
    except EngineUnsupported as reason:
        return Engine("reference", str(reason))
    return Engine("reference", "it is none of the policies with a compiled engine, and has no index that makes one")


def _paced(policy: Policy, horizon: float) -> bool:
    """Whether the policy is one of those that look at the horizon, and has one. Without a horizon the prices of
    `primal-dual-bwk` stand still, and a faster engine plays it."""
    if isinstance(policy, PrimalDualBwK):
        return min(horizon, policy.horizon or math.inf) < math.inf
    return isinstance(policy, PacedThompson)


def _thompson(policy: BetaThompson) -> Engine:
    if type(policy) not in (BudgetedThompson, Thompson):
        raise EngineUnsupported("it is a Thompson sampling of its own, and the engine plays exactly bts and thompson")
    check_methods(policy, THOMPSON_METHODS[type(policy)])
    reason = why_not_lazily(policy)
    return Engine(PLAIN_SAMPLING, reason) if reason else Engine("thompson")


def player(
    problem: Environment, policy: Policy, budgets: Sequence[float], common: bool = False, horizon: float = math.inf
) -> CompiledGames:
    """The engine that `engine_for` found, ready to play; with outcomes that all policies share if ``common``."""
    if _paced(policy, horizon):
        return PacedGames(problem, policy, budgets, horizon)
    assert isinstance(problem, Problem)
    if horizon == math.inf and isinstance(policy, BudgetedThompson | Thompson) and not why_not_lazily(policy):
        return ThompsonGames(problem, policy, budgets, common)
    if isinstance(policy, SamplingPolicy):
        return SamplingGames(problem, policy, budgets, horizon)
    if isinstance(policy, EpsilonFirst):
        return EpsilonFirstGames(problem, policy, budgets, common)
    return IndexGames(problem, policy, budgets, common, horizon=horizon)


_WARM_KINDS: set[tuple[object, ...]] = set()
"""The kinds of games of which this process has played a tiny one."""


def warm_up(problem: Environment, policy: Policy, horizon: float = math.inf) -> None:
    """Have everything compiled that this policy's games on this kind of problem need, by playing a tiny one, once."""
    if isinstance(problem, RequestStream):
        problem = problem.parts[0].problem  # the loop that plays streams plays problems
    assert isinstance(problem, Problem)
    arms = problem.arms[: PLAIN_LOOP_ARMS_MAX + 1]  # another engine may play more arms than these
    laws = frozenset((type(arm.law), *map(type, getattr(arm.law, "__dict__", {}).values())) for arm in arms)
    kind = type(policy), policy.spec, len(arms), laws, horizon < math.inf
    if kind in _WARM_KINDS:
        return
    with contextlib.suppress(NotANumber):  # it may or may not come up in the games that count
        player(Problem(arms), policy, [2.0], False, horizon).play(np.random.SeedSequence(0), 1 << 60)
    _WARM_KINDS.add(kind)
