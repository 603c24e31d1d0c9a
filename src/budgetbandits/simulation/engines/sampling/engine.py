"""Games of sampling policies by the compiled plain loop: the Python side."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from budgetbandits.errors import NotANumber, RoundLimit
from budgetbandits.policies.sampling import SamplingPolicy
from budgetbandits.problems.problem import Problem
from budgetbandits.simulation.common_outcomes import CommonOutcomes
from budgetbandits.simulation.engines.runtime.draws import FOREVER
from budgetbandits.simulation.engines.runtime.status import NOT_A_NUMBER, ROUND_LIMIT
from budgetbandits.simulation.engines.sampling.plain_loop import play_sampling
from budgetbandits.simulation.engines.sampling.rules import rule_of
from budgetbandits.simulation.engines.sampling.state import Memory
from budgetbandits.simulation.reference import LARGEST_BATCH, Game, draws, refill

LARGEST_BUFFER = 1 << 22
"""Outcomes kept at once, over all arms."""


class SamplingGames:
    """Runs of one policy on one problem: the games of the reference simulator, draw for draw, arm by arm.

    A policy whose `draw` draws arms in another order than one after the other has the same law of games there, with
    other draws.
    """

    def __init__(
        self, problem: Problem, policy: SamplingPolicy, budgets: Sequence[float], horizon: float = math.inf
    ) -> None:
        self._problem = problem
        self._policy = policy
        self._budgets = np.array(budgets, dtype=float)
        self._horizon = int(min(horizon, FOREVER))
        self._rule = rule_of(policy)
        first = np.ascontiguousarray(policy.start(len(problem)).statistics.T)
        self._memory = Memory(first, self._budgets, min(LARGEST_BATCH, max(1, LARGEST_BUFFER // len(problem))))

    def play(
        self, seed: np.random.SeedSequence, max_rounds: int = 1 << 60, outcomes: CommonOutcomes | None = None
    ) -> list[Game]:
        """One run: the game at each of the rising budgets."""
        memory, rule = self._memory, self._rule
        memory.clear(max_rounds, self._horizon, self._policy.extras())
        world, player = (np.random.default_rng(child) for child in seed.spawn(2))
        draw = draws(self._problem, outcomes or world)[0]
        while (status := play_sampling(memory.game, rule.score, rule.learn, player)) >= 0:
            refill(memory.arrays, int(status), draw[int(status)])
        if status == NOT_A_NUMBER:
            arm = memory.whole("leader")
            raise NotANumber(
                f"{self._policy.name}: the score of arm {arm} is not a number with statistics "
                f"{memory.arrays['statistics'][arm].tolist()}; let score return a number there"
            )
        if status == ROUND_LIMIT:
            raise RoundLimit(
                f"{self._policy.spec} has played {memory.whole('rounds'):,} rounds and part of a budget of "
                f"{self._budgets[memory.whole('checkpoint')]:g} is left; raise max_rounds (--max-rounds) or lower the "
                f"budget"
            )
        return memory.results()
