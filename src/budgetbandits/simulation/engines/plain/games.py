"""One game after another by the plain loop, for any rule whose outcomes are drawn by the Python side."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from budgetbandits.policies.base import Policy
from budgetbandits.problems.streams import Environment
from budgetbandits.simulation.common_outcomes import CommonOutcomes
from budgetbandits.simulation.engines.plain.loop import PlainRecord
from budgetbandits.simulation.engines.runtime.records import NOT_A_NUMBER, ROUND_LIMIT
from budgetbandits.simulation.reference import Game, counted, draws, own_seed, round_limit


class PlainGames(ABC):
    """Runs of one policy on one problem: the games of the reference simulator, draw for draw."""

    def __init__(
        self, problem: Environment, policy: Policy, record: PlainRecord, budgets: Sequence[float], horizon: float
    ) -> None:
        self._problem = problem
        self._policy = policy
        self._record = record
        self._budgets = [float(budget) for budget in budgets]
        self._horizon = horizon

    def play(
        self, seed: np.random.SeedSequence, max_rounds: int = 1 << 60, outcomes: CommonOutcomes | None = None
    ) -> list[Game]:
        """One run: a single game to the largest of the rising budgets, or one for each if the policy must know it."""
        if self._policy.anytime:
            return self._game(self._budgets, seed, max_rounds, outcomes)
        return [self._game([budget], own_seed(seed, budget), max_rounds, outcomes)[0] for budget in self._budgets]

    def _game(
        self, budgets: Sequence[float], seed: np.random.SeedSequence, max_rounds: int, outcomes: CommonOutcomes | None
    ) -> list[Game]:
        record = self._record
        world, player, order = (np.random.default_rng(child) for child in seed.spawn(3))
        record.clear()
        record.budget[: len(budgets)] = budgets
        record.set(budgets=len(budgets), max_rounds=max_rounds, horizon=self._horizon)
        self.begin(budgets[-1], order)
        draw = [of_arm for of_part in draws(self._problem, outcomes or world) for of_arm in of_part]
        while (status := self.play_on(record.game, player)) >= 0:
            record.refill(int(status), draw[int(status)])
        if status == NOT_A_NUMBER:
            raise self.not_a_number(record.leader)
        if status == ROUND_LIMIT:
            raise round_limit(self._policy, record.rounds, budgets[record.checkpoint])
        return [
            (reward, spent, rounds, counted(self._problem, pulls.reshape(-1, len(self._problem))))
            for reward, spent, rounds, pulls in record.results(len(budgets))
        ]

    @abstractmethod
    def begin(self, budget: float, order: np.random.Generator) -> None:
        """Set what a rule must know before the first request of a game to this budget; ``order`` draws requests."""

    @abstractmethod
    def play_on(self, game: NDArray[np.void], player: np.random.Generator) -> int:
        """Play by the loop of the rule until its `status` says more than GOING_ON."""

    def not_a_number(self, arm: int) -> Exception:
        """The error of a rule by which a score of an arm is NaN."""
        raise AssertionError(f"arm {arm} has a score that is not a number by a rule that has none")
