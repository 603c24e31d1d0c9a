"""Games with a budget and a horizon by the compiled plain loops: the Python side."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from budgetbandits.errors import RoundLimit
from budgetbandits.policies.base import Policy
from budgetbandits.policies.paced import SQUARES, PacedThompson
from budgetbandits.policies.pooling import FIRST_COUNT
from budgetbandits.policies.primal_dual import PrimalDualBwK
from budgetbandits.simulation.common import CommonOutcomes
from budgetbandits.simulation.compiled.status import ROUND_LIMIT
from budgetbandits.simulation.index.rules import compiled
from budgetbandits.simulation.known import Unsuited, check_methods, methods
from budgetbandits.simulation.paced.memory import Memory
from budgetbandits.simulation.paced.plain_loop import play_paced, play_priced
from budgetbandits.simulation.reference import (
    LARGEST_BATCH,
    Game,
    counted,
    draws,
    own_seed,
    refill,
    what_is_known,
)
from budgetbandits.traffic import Played, Traffic

LARGEST_BUFFER = 1 << 22
"""Outcomes kept at once, over all phases and arms."""

METHODS = {
    PacedThompson: methods(
        PacedThompson, "needs", "anytime", "take", "start", "choose", "draw", "shapes", "observe", "goes_on"
    ),
    PrimalDualBwK: methods(
        PrimalDualBwK,
        *("needs", "anytime", "take", "start", "choose", "observe", "goes_on", "affordable", "exploration", "scores"),
        *("extras", "index", "width", "uses", "growth", "requests", "_raise_prices", "_common_budget", "softmax"),
    ),
}
"""What the loops stand in for."""


def check_policy(problem: Played, policy: Policy) -> None:
    """`Unsuited` if no loop plays the policy on this problem as it is written."""
    for kind, known in METHODS.items():
        if isinstance(policy, kind):
            check_methods(policy, known)
    if isinstance(problem, Traffic) and len(problem.segments) > 1:
        raise Unsuited("no compiled engine knows segments")


class PacedGames:
    """Runs of `bts-paced` or `primal-dual-bwk`: the games of the reference simulator, draw for draw."""

    def __init__(self, problem: Played, policy: Policy, budgets: Sequence[float], horizon: float) -> None:
        assert isinstance(policy, PacedThompson | PrimalDualBwK)
        self._problem = problem
        self._policy = policy
        self._budgets = [float(budget) for budget in budgets]
        self._horizon = horizon
        first = problem.firsts if isinstance(problem, Traffic) else (0,)
        offer = problem.offered if isinstance(problem, Traffic) else np.ones((1, len(problem)), dtype=np.bool_)
        self._memory = Memory(first, offer, min(LARGEST_BATCH, max(1, LARGEST_BUFFER // offer.size)))
        if policy.own_scales and problem.scales is not None:
            self._memory.arrays["scales"][:] = problem.scales
        self._loop: Callable[[Any, np.random.Generator], int] = play_paced
        if isinstance(policy, PrimalDualBwK):
            index = compiled(PrimalDualBwK.index)
            self._loop = lambda game, rng: play_priced(game, index, rng)

    def play(
        self, seed: np.random.SeedSequence, max_rounds: int = 1 << 60, outcomes: CommonOutcomes | None = None
    ) -> list[Game]:
        """One run: a game for each budget, because the policy must know it."""
        return [self._game(budget, own_seed(seed, budget), max_rounds, outcomes) for budget in self._budgets]

    def _game(
        self, budget: float, seed: np.random.SeedSequence, max_rounds: int, outcomes: CommonOutcomes | None
    ) -> Game:
        memory, arms = self._memory, len(self._problem)
        memory.clear(max_rounds=max_rounds, **self._fields(budget))
        world, player = (np.random.default_rng(child) for child in seed.spawn(2))
        draw = [each for part in draws(self._problem, outcomes or world) for each in part]
        while (status := self._loop(memory.game, player)) >= 0:
            refill(memory.arrays, int(status), draw[int(status)])
        rounds = memory.whole("rounds")
        if status == ROUND_LIMIT:
            raise RoundLimit(
                f"{self._policy.spec} has played {rounds:,} rounds and part of a budget of {budget:g} is left; raise "
                f"max_rounds (--max-rounds) or lower the budget"
            )
        pulls = memory.arrays["pulls"].reshape(-1, arms)
        reward, spent = (float(memory.game[name][0]) for name in ("reward", "spent"))
        return reward, spent, rounds, counted(self._problem, pulls)

    def _fields(self, budget: float) -> dict[str, float]:
        """What the policy and its loop know before the first request."""
        policy = self._policy
        known = what_is_known(self._problem, policy, budget, self._horizon)
        fields = {"budget": budget, "horizon": self._horizon}
        if isinstance(policy, PacedThompson):
            squares = (1.0, 1.0) if policy.trials else SQUARES.ravel().tolist()
            first = dict(zip(("reward_square", "cost_square"), squares, strict=True))
            fields |= {"trials": policy.trials, "forget": policy.forget}
            return fields | {name: each / FIRST_COUNT for name, each in first.items()}
        state = policy.start(len(self._problem), known)
        names = ("money_use", "time_use", "money_growth", "time_growth")
        numbers = dict(zip(names, (*policy.uses(state), *policy.growth(state)), strict=True))
        # a horizon of the policy's own may end the game first
        fields["horizon"] = min(self._horizon, policy.requests(state))
        return fields | numbers | {"width": policy.width(state)}
