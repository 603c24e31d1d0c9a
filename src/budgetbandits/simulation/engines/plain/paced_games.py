"""Games with a budget and a horizon by the plain loop: the Python side of `bts-paced` and `primal-dual-bwk`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from budgetbandits.policies.base import Policy
from budgetbandits.policies.paced.policy import PacedThompson
from budgetbandits.policies.paced.statistics import SQUARES
from budgetbandits.policies.planning import Fading
from budgetbandits.policies.primal_dual import PrimalDualBwK
from budgetbandits.problems.streams import Environment, RequestStream
from budgetbandits.simulation.engine_support import DRIVER_METHODS, check_methods, methods
from budgetbandits.simulation.engines.index.rules import compiled
from budgetbandits.simulation.engines.plain.games import PlainGames
from budgetbandits.simulation.engines.plain.paced import PacedRecord, play_paced
from budgetbandits.simulation.engines.plain.priced import play_priced
from budgetbandits.simulation.engines.runtime.records import buffer_size
from budgetbandits.simulation.reference import what_is_known

PACED_METHODS = methods(
    PacedThompson, *DRIVER_METHODS, "segments", "open_segment", "draw", "hoped", "laws", "all_laws", "shapes"
)
"""Methods of paced Thompson sampling that the engine replaces."""

PRICED_METHODS = methods(
    PrimalDualBwK,
    *(*DRIVER_METHODS, "affordable", "exploration", "scores", "extras", "index", "width", "uses", "growth"),
    *("requests", "_raise_prices", "_common_budget", "softmax"),
)
"""Methods of the primal-dual rule that the engine replaces."""


class PacedGames(PlainGames):
    """Runs of `bts-paced`, which looks at the requests of a stream."""

    METHODS: Mapping[str, tuple[Any, ...]] = PACED_METHODS
    looks_at_requests = True
    _record: PacedRecord
    _policy: PacedThompson

    def __init__(self, problem: Environment, policy: Policy, budgets: Sequence[float], horizon: float) -> None:
        first: Sequence[int] = (0,)
        segments = 1
        plan = offer = np.ones((1, len(problem)), dtype=np.bool_)
        if isinstance(problem, RequestStream):
            first, plan = problem.firsts, problem.available_arms
            offer = plan
            if self.looks_at_requests:
                plan, segments = problem.future_arms, len(problem.segments)
        record = PacedRecord(first, offer, plan, segments, buffer_size(offer.size))
        if policy.own_scales and problem.scales is not None:
            record.scales[:] = problem.scales
        super().__init__(problem, policy, record, budgets, horizon)

    @classmethod
    def check_policy(cls, policy: Policy) -> None:
        """`EngineUnsupported` if the loop does not play the policy as it is written."""
        check_methods(policy, cls.METHODS)

    def begin(self, budget: float, order: np.random.Generator) -> None:
        problem = self._problem
        # where each phase has one part, the loop knows the parts of the requests
        if isinstance(problem, RequestStream) and len(problem.segments) > 1:
            self._record.list_requests(problem.sequence(int(self._horizon), order))
        self._record.set(**self.first_fields(budget))

    def first_fields(self, budget: float) -> dict[str, float]:
        """The fields of the record that follow from what the rule knows before the first request."""
        policy, knowledge = self._policy, what_is_known(self._problem, self._policy, budget, self._horizon)
        squares = (1.0, 1.0) if policy.trials else SQUARES.ravel().tolist()
        fields = dict(zip(("reward_squares", "cost_squares"), squares, strict=True))
        fields |= Fading.by_forgetting(policy.forget, knowledge, len(self._problem))._asdict()
        return fields | {name: getattr(policy, name) for name in ("trials", "pooling", "hope")}

    def play_on(self, game: NDArray[np.void], player: np.random.Generator) -> int:
        return int(play_paced(game, 0, 0, player))


class PricedGames(PacedGames):
    """Runs of `primal-dual-bwk` with a horizon."""

    METHODS = PRICED_METHODS
    looks_at_requests = False
    _policy: PrimalDualBwK  # type: ignore[assignment] # another policy on the same record

    def __init__(self, problem: Environment, policy: Policy, budgets: Sequence[float], horizon: float) -> None:
        super().__init__(problem, policy, budgets, horizon)
        self._index = compiled(PrimalDualBwK.index)

    def first_fields(self, budget: float) -> dict[str, float]:
        policy = self._policy
        state = policy.start(len(self._problem), what_is_known(self._problem, policy, budget, self._horizon))
        names = ("money_use", "time_use", "money_growth", "time_growth")
        fields = dict(zip(names, (*policy.uses(state), *policy.growth(state)), strict=True))
        # a horizon of the policy's own may end the game first
        return fields | {
            "horizon": min(self._horizon, policy.requests(state)),
            "width_of_bounds": policy.width(state),
        }

    def play_on(self, game: NDArray[np.void], player: np.random.Generator) -> int:
        return int(play_priced(game, self._index, 0, player))
