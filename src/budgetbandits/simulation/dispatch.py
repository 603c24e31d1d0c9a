"""Which compiled engine plays which policy, and why not a faster one. Importing this needs Numba."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from budgetbandits.errors import NotANumber
from budgetbandits.policies.base import Policy
from budgetbandits.policies.epsilon_first import EpsilonFirst, EpsilonFirstGreedy
from budgetbandits.policies.thompson import BetaThompson, BudgetedThompson, Thompson
from budgetbandits.problems.linear import LinearStream
from budgetbandits.problems.problem import Problem
from budgetbandits.problems.streams import Environment, RequestStream
from budgetbandits.simulation.engine_support import DRIVER_METHODS, EngineUnsupported, check_methods, methods
from budgetbandits.simulation.engines.epsilon_first.engine import EpsilonFirstGames
from budgetbandits.simulation.engines.index.conformance import check_policy as check_index
from budgetbandits.simulation.engines.index.engine import PLAIN_LOOP_ARMS_MAX, IndexGames, how_played
from budgetbandits.simulation.engines.plain.paced_games import PacedGames, PricedGames
from budgetbandits.simulation.engines.plain.sampling_games import SamplingGames
from budgetbandits.simulation.engines.plain.sampling_games import check_policy as check_sampling
from budgetbandits.simulation.engines.thompson.engine import ThompsonGames, why_not_lazily
from budgetbandits.simulation.outcome import Engine
from budgetbandits.simulation.parallel import Player

PLAIN_SAMPLING, PLAIN_INDEX, PLAIN_PACED = "sampling plain loop", "index plain loop", "paced plain loop"
HORIZON_REASON = "with a horizon, no engine plays many requests at once"
"""Reason why no fast engine plays with a horizon."""

EPSILON_FIRST_METHODS = (*DRIVER_METHODS, "add_history", "ratio", "affordable", "commit")
"""The methods that the engine of ε-first stands in for."""

THOMPSON_METHODS: dict[type[Policy], dict[str, tuple[Any, ...]]] = {
    kind: methods(kind, *DRIVER_METHODS, "add_history", "draw") for kind in (BudgetedThompson, Thompson)
}
"""The methods that the engine of Thompson sampling stands in for."""


# --- which engine plays ----------------------------------------------------------------------------------------------


def engine_for(problem: Environment, policy: Policy, horizon: float = math.inf) -> Engine:
    """The fastest engine that plays the policy as it is written, and why not a faster one."""
    try:
        return _fastest(problem, policy, horizon)
    except EngineUnsupported as reason:
        return Engine("reference", str(reason))


def _fastest(problem: Environment, policy: Policy, horizon: float) -> Engine:
    kind = policy.rule_kind(horizon)
    paced = kind in PACED_GAMES
    if isinstance(problem, LinearStream):
        raise EngineUnsupported("no compiled engine knows requests with features")
    if policy.own_scales and problem.scales is not None and not paced:
        raise EngineUnsupported(
            "among the compiled engines, only the one of bts-paced learns costs on scales of the arms' own"
        )
    if isinstance(problem, RequestStream) and not paced:
        raise EngineUnsupported(
            "among the compiled engines, only the one of bts-paced and primal-dual-bwk knows streams"
        )
    if kind not in ENGINE_BY_KIND:
        raise EngineUnsupported("it is none of the policies with a compiled engine, and has no index that makes one")
    return ENGINE_BY_KIND[kind](policy, len(problem), horizon)


def _plain(name: str, reason: str, horizon: float) -> Engine:
    """The plain loop of this name, where the horizon or a reason rules out a faster engine."""
    return Engine(name, reason or (HORIZON_REASON if horizon < math.inf else ""))


def _index(policy: Any, arms: int, horizon: float) -> Engine:
    engine = how_played(check_index(policy), arms)
    return _plain(PLAIN_INDEX, engine.reason, horizon) if horizon < math.inf else engine


def _beta(policy: BetaThompson, arms: int, horizon: float) -> Engine:
    if type(policy) not in THOMPSON_METHODS:
        raise EngineUnsupported("it is a Thompson sampling of its own, and the engine plays exactly bts and thompson")
    check_methods(policy, THOMPSON_METHODS[type(policy)])
    reason = why_not_lazily(policy)
    return _plain(PLAIN_SAMPLING, reason, horizon) if reason or horizon < math.inf else Engine("thompson")


def _score(policy: Any, arms: int, horizon: float) -> Engine:
    check_sampling(policy)
    return Engine(PLAIN_SAMPLING)


def _explore_first(policy: EpsilonFirst, arms: int, horizon: float) -> Engine:
    check_methods(policy, methods(EpsilonFirstGreedy if policy.greedy else EpsilonFirst, *EPSILON_FIRST_METHODS))
    if horizon < math.inf:
        raise EngineUnsupported("the engine of ε-first knows no horizon")
    return Engine("epsilon-first")


def _paced(policy: Policy, arms: int, horizon: float) -> Engine:
    PACED_GAMES[policy.rule_kind(horizon)].check_policy(policy)
    return Engine(PLAIN_PACED)


PACED_GAMES: dict[str, type[PacedGames]] = {"paced": PacedGames, "priced": PricedGames}
"""Games of the paced engine, by kind of rule."""


ENGINE_BY_KIND: dict[str, Callable[[Any, int, float], Engine]] = {
    "beta": _beta,
    "score": _score,
    "explore first": _explore_first,
    "index": _index,
    **dict.fromkeys(PACED_GAMES, _paced),
}
"""Functions that choose the engine for a policy, a number of arms and a horizon, by `Policy.rule_kind`."""


# --- players ---------------------------------------------------------------------------------------------------------


Budgets = Sequence[float]

PLAYERS: dict[str, Callable[[Any, Any, Budgets, bool, float], Player]] = {
    "thompson": lambda problem, policy, budgets, common, _: ThompsonGames(problem, policy, budgets, common),
    "epsilon-first": lambda problem, policy, budgets, common, _: EpsilonFirstGames(problem, policy, budgets, common),
    PLAIN_SAMPLING: lambda problem, policy, budgets, _, horizon: SamplingGames(problem, policy, budgets, horizon),
    PLAIN_PACED: lambda problem, policy, budgets, _, horizon: PACED_GAMES[policy.rule_kind(horizon)](
        problem, policy, budgets, horizon
    ),
    **dict.fromkeys(("index blocks", "index bounds", PLAIN_INDEX), IndexGames),
}
"""Players by the name of their engine, for a policy, a problem, budgets, outcomes that all policies share or not, and a
horizon."""


def player(
    problem: Environment, policy: Policy, budgets: Budgets, common: bool = False, horizon: float = math.inf
) -> Player:
    """The compiled engine that `engine_for` finds, ready to play."""
    return PLAYERS[engine_for(problem, policy, horizon).name](problem, policy, budgets, common, horizon)


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
