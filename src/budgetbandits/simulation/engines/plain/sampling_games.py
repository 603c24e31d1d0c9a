"""Games of sampling policies by the compiled plain loop: the Python side.

No formula is written here. Numba compiles the very `score` and `learn` of the policy and keeps the result in its disk
cache, next to their file. The loop takes each as the address of a function, which leaves the loop in the cache. Numba's
generator methods draw the same numbers as NumPy's.

The methods of a policy from outside the package must be those of `SamplingPolicy`, which the loop stands in for. And
once per process such a policy is played on short games by the loop and by the reference simulator, which must pull the
same arms: both draw the same numbers.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Sequence
from dataclasses import dataclass
from types import FunctionType
from typing import Any

import numpy as np
from numba import carray, typeof, types
from numba.core.dispatcher import Dispatcher
from numpy.typing import NDArray

from budgetbandits.errors import NotANumber
from budgetbandits.fingerprint import is_builtin
from budgetbandits.policies.sampling import SamplingPolicy, function_of
from budgetbandits.problems import distributions
from budgetbandits.problems.problem import Arm, Problem
from budgetbandits.simulation.engine_support import (
    DRIVER_METHODS,
    EngineUnsupported,
    check_methods,
    check_once,
    methods,
    once,
)
from budgetbandits.simulation.engines.plain.games import PlainGames
from budgetbandits.simulation.engines.plain.sampling import SamplingRecord, play_sampling
from budgetbandits.simulation.engines.runtime.policy_functions import (
    Address,
    check_frozen,
    compiled_function,
    content_of,
    numbers_at,
    plain,
)
from budgetbandits.simulation.engines.runtime.records import buffer_size, float_pointer
from budgetbandits.simulation.reference import ReferencePlayer

# --- the policy's functions ------------------------------------------------------------------------------------------


NUMBER = types.float64
"""Type of a number in compiled functions."""

STATISTICS = types.Array(NUMBER, 1, "C")
"""Type of the statistics of an arm."""

GENERATOR = typeof(np.random.default_rng(0))
"""Type of a random generator."""

SCORE = NUMBER(types.int64, GENERATOR, types.int64)
"""Signature of a function that draws a score; statistics and further arguments are handed on by address."""

LEARN = types.void(types.int64, NUMBER, NUMBER, GENERATOR, types.int64)
"""Signature of a function that learns an outcome, likewise."""


@dataclass(frozen=True)
class SamplingRule:
    """How a policy draws and learns, as the loop calls it."""

    score: Address
    learn: Address


def rule_of(policy: SamplingPolicy) -> SamplingRule:
    """The policy's rule, compiled once per process; `EngineUnsupported` where Numba cannot compile it."""
    score, learn = (plain(function_of(policy, name)) for name in ("score", "learn"))
    for name, function in (("score", score), ("learn", learn)):
        if not isinstance(function, FunctionType):
            raise EngineUnsupported(f"it has no {name} that could be compiled")
        check_frozen(function, name)
    rows, count = len(policy.start(1).statistics), len(policy.extras())
    key = content_of(score), content_of(learn), rows, count
    result: SamplingRule = once(key, lambda: _compiled(score, learn, rows, count))
    return result


def _compiled(score: FunctionType, learn: FunctionType, rows: int, count: int) -> SamplingRule:
    draw = _scalar("score", score, NUMBER(STATISTICS, GENERATOR, *[NUMBER] * count))
    add = _scalar("learn", learn, types.void(STATISTICS, NUMBER, NUMBER, GENERATOR, *[NUMBER] * count))
    more = numbers_at(count)
    return SamplingRule(
        Address(SCORE, lambda at, rng, extras: draw(carray(float_pointer(at), (rows,)), rng, *more(extras))),
        Address(
            LEARN,
            lambda at, reward, cost, rng, extras: add(
                carray(float_pointer(at), (rows,)), reward, cost, rng, *more(extras)
            ),
        ),
    )


def _scalar(name: str, function: FunctionType, signature: Any) -> Dispatcher:
    try:
        inspect.signature(function).bind(*signature.args)
    except TypeError as error:
        raise EngineUnsupported(f"its {name} does not take what the engine gives it: {error}") from None
    return compiled_function(function, name, signature)


# --- games -----------------------------------------------------------------------------------------------------------


class SamplingGames(PlainGames):
    """Runs of one policy on one problem: the games of the reference simulator, draw for draw, arm by arm.

    A policy whose `draw` draws arms in another order than one after the other has the same law of games there, with
    other draws.
    """

    _record: SamplingRecord

    def __init__(
        self, problem: Problem, policy: SamplingPolicy, budgets: Sequence[float], horizon: float = math.inf
    ) -> None:
        self._rule = rule_of(policy)
        first = np.ascontiguousarray(policy.start(len(problem)).statistics.T)
        record = SamplingRecord(first, len(budgets), buffer_size(len(problem)), policy.extras())
        super().__init__(problem, policy, record, budgets, horizon)

    def begin(self, budget: float, order: np.random.Generator) -> None:
        """Nothing: scores look at their statistics alone."""

    def play_on(self, game: NDArray[np.void], player: np.random.Generator) -> int:
        return int(play_sampling(game, self._rule.score, self._rule.learn, player))

    def not_a_number(self, arm: int) -> NotANumber:
        return NotANumber(
            f"{self._policy.name}: the score of arm {arm} is not a number with statistics "
            f"{self._record.statistics[arm].tolist()}; let score return a number there"
        )


# --- conformance -----------------------------------------------------------------------------------------------------


LOOP_METHODS = methods(SamplingPolicy, *DRIVER_METHODS, "draw", "draw_each")
"""The methods that the loop stands in for."""

STAGE = Problem(
    (
        Arm("even", distributions.Independent(distributions.Bernoulli(0.5), distributions.Bernoulli(0.5))),
        Arm("fixed", distributions.Independent(distributions.Fixed(0.25), distributions.Fixed(0.5))),
        Arm("tied", distributions.JointTable([[1, 1, 0.3], [0, 0.25, 0.3], [0.5, 0, 0.4]])),
        Arm("any", distributions.Copula(distributions.Beta(2, 2), distributions.Beta(1, 3), -0.6)),
    )
)
"""Problem on which a policy is checked."""

BUDGETS = (1.0, 20.0, 60.0)
"""Budgets of that check."""

RUNS = 3
"""Runs of that check."""


def check_policy(policy: SamplingPolicy) -> None:
    """`EngineUnsupported` if the plain loop would play the policy otherwise than it is written."""
    known_rule(policy)
    check_once(policy, rehearse)


def known_rule(policy: SamplingPolicy) -> SamplingRule:
    """The rule of a policy that learns and chooses as `SamplingPolicy` does, or one of the package's own does."""
    if not is_builtin(type(policy)):  # the package's own are tested once for all
        check_methods(policy, LOOP_METHODS)
    return rule_of(policy)


def rehearse(policy: SamplingPolicy) -> None:
    """Raise `EngineUnsupported` if the loop and the reference simulator do not pull the same arms."""
    games = [kind(STAGE, policy, BUDGETS) for kind in (ReferencePlayer, SamplingGames)]
    for run in range(RUNS):
        try:
            slow, fast = (game.play(np.random.SeedSequence(run), 100_000) for game in games)
        except Exception as error:  # whatever the policy's own code does
            raise EngineUnsupported(f"in a rehearsal: {error}") from error
        for budget, one, other in zip(BUDGETS, slow, fast, strict=True):
            if not np.array_equal(one[3], other[3]):
                raise EngineUnsupported(
                    f"in a rehearsal to a budget of {budget:g} the engine pulled its arms {other[3].tolist()} times, "
                    f"the reference {one[3].tolist()} times; compiled, its score or learn does something else"
                )
