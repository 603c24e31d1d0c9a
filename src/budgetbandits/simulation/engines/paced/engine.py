"""Games with a budget and a horizon by the compiled plain loops: the Python side."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from budgetbandits.policies.base import Policy
from budgetbandits.policies.paced.policy import PacedThompson
from budgetbandits.policies.paced.statistics import SQUARES
from budgetbandits.policies.planning import Fading
from budgetbandits.policies.primal_dual import PrimalDualBwK
from budgetbandits.problems.streams import Environment, RequestStream
from budgetbandits.simulation.common_outcomes import CommonOutcomes
from budgetbandits.simulation.engine_support import DRIVER_METHODS, check_methods, methods
from budgetbandits.simulation.engines.index.rules import compiled
from budgetbandits.simulation.engines.paced.plain_loop import PacedRecord, play_paced, play_priced
from budgetbandits.simulation.engines.runtime.records import ROUND_LIMIT, buffer_size
from budgetbandits.simulation.reference import Game, counted, draws, own_seed, round_limit, what_is_known

METHODS = {
    PacedThompson: methods(
        PacedThompson, *DRIVER_METHODS, "segments", "open_segment", "draw", "hoped", "laws", "all_laws", "shapes"
    ),
    PrimalDualBwK: methods(
        PrimalDualBwK,
        *(*DRIVER_METHODS, "affordable", "exploration", "scores", "extras", "index", "width", "uses", "growth"),
        *("requests", "_raise_prices", "_common_budget", "softmax"),
    ),
}
"""What the loops stand in for."""


def check_policy(policy: Policy) -> None:
    """`EngineUnsupported` if no loop plays the policy as it is written."""
    for kind, known in METHODS.items():
        if isinstance(policy, kind):
            check_methods(policy, known)


class PacedGames:
    """Runs of `bts-paced` or `primal-dual-bwk`: the games of the reference simulator, draw for draw."""

    def __init__(self, problem: Environment, policy: Policy, budgets: Sequence[float], horizon: float) -> None:
        assert isinstance(policy, PacedThompson | PrimalDualBwK)
        self._problem = problem
        self._policy = policy
        self._budgets = [float(budget) for budget in budgets]
        self._horizon = horizon
        first = problem.firsts if isinstance(problem, RequestStream) else (0,)
        offer = (
            problem.available_arms if isinstance(problem, RequestStream) else np.ones((1, len(problem)), dtype=np.bool_)
        )
        plan, segments = offer, 1
        if isinstance(problem, RequestStream) and isinstance(policy, PacedThompson):  # which looks at requests
            plan, segments = problem.future_arms, len(problem.segments)
        self._record = PacedRecord(first, offer, plan, segments, buffer_size(offer.size))
        if policy.own_scales and problem.scales is not None:
            self._record.arrays["scales"][:] = problem.scales
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
        record, arms = self._record, len(self._problem)
        world, player, order = (np.random.default_rng(child) for child in seed.spawn(3))
        record.clear(self._parts(order), max_rounds=max_rounds, **self._fields(budget))
        draw = [each for part in draws(self._problem, outcomes or world) for each in part]
        while (status := self._loop(record.game, player)) >= 0:
            record.refill(int(status), draw[int(status)])
        rounds = record.whole("rounds")
        if status == ROUND_LIMIT:
            raise round_limit(self._policy, rounds, budget)
        pulls = record.arrays["pulls"].reshape(-1, arms)
        reward, spent = (float(record.game[name][0]) for name in ("reward", "spent"))
        return reward, spent, rounds, counted(self._problem, pulls)

    def _parts(self, order: np.random.Generator) -> NDArray[np.int64] | None:
        """The parts of the requests; None where each phase has one, which the loop knows."""
        problem = self._problem
        if isinstance(problem, RequestStream) and len(problem.segments) > 1:
            return problem.sequence(int(self._horizon), order)
        return None

    def _fields(self, budget: float) -> dict[str, float]:
        """What the policy and its loop know before the first request."""
        policy = self._policy
        known = what_is_known(self._problem, policy, budget, self._horizon)
        fields = {"budget": budget, "horizon": self._horizon}
        if isinstance(policy, PacedThompson):
            squares = (1.0, 1.0) if policy.trials else SQUARES.ravel().tolist()
            fields |= dict(zip(("reward_squares", "cost_squares"), squares, strict=True))
            fields |= Fading.by_forgetting(policy.forget, known, len(self._problem))._asdict()
            return fields | {name: getattr(policy, name) for name in ("trials", "pooling", "hope")}
        state = policy.start(len(self._problem), known)
        names = ("money_use", "time_use", "money_growth", "time_growth")
        numbers = dict(zip(names, (*policy.uses(state), *policy.growth(state)), strict=True))
        # a horizon of the policy's own may end the game first
        fields["horizon"] = min(self._horizon, policy.requests(state))
        return fields | numbers | {"width_of_bounds": policy.width(state)}
