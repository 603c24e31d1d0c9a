"""Policies that plan: money for a number of requests, so that it lasts for all of them.

They name an arm as every policy does. Besides that they say what they expect and what they plan, for those who have to
answer in their place: substitutes of arms cooling down, and the pages of a campaign.

Forgetting. Each answered request makes all earlier outcomes count less, those of arms that were not asked as well.
Otherwise an arm that looked bad once, and is not asked any more, would never be unsure again, whatever has become of
the requests. Until f is given, it follows from the horizon T and the number K of arms,

    f = 0.15/√(K T).

A memory of 1/f requests means that all arms are learned T f times over, which costs about K T f trials; a change is
noticed about 1/f requests late. Both grow like √(K T). Without a horizon nothing is forgotten.

Outcomes fade in steps, not with each request: after every 0.05/f of them. So most requests change what is known of
their own arm alone. An arm that others are asked in place of keeps `FEWEST_KEPT` outcomes.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, NamedTuple, Self, TypeVar

import numpy as np

from budgetbandits.errors import BadState
from budgetbandits.numerics.arrays import ArmMask, Array
from budgetbandits.numerics.compilation import compiled
from budgetbandits.numerics.fluid import mix_of_one
from budgetbandits.policies.base import FORGETTING_MAX, Knowledge, Request, RequestPolicy, State

FORGETTING = 0.15
"""The share that a request makes outcomes count less, times the root of arms × requests; chosen on arms that change in
the middle of a game, and on games in which nothing does."""

FADED_AT_ONCE = 0.05
"""The most that outcomes fade in one step, unless one request makes them fade more."""

STEP_MAX = 1e15
"""Requests between two steps, at most: nobody has that many."""

FEWEST_KEPT = 4.0
"""Outcomes that are kept of an arm while others are asked. An arm of which less were kept would be tried as if it were
new, and an expensive one might cost a small budget's worth, again and again."""


class Fading(NamedTuple):
    """How outcomes fade: after how many answered requests, 0 for never, and the share that is kept of them then."""

    every: int
    kept: float

    @classmethod
    def by_forgetting(cls, forget: float | None, known: Knowledge, arms: int) -> Fading:
        """The fading by the share that each request makes outcomes count less; by the horizon if that is None.

        >>> Fading.by_forgetting(None, Knowledge(horizon=11_250), arms=2).every
        50
        >>> Fading.by_forgetting(0.5, Knowledge(), arms=2)
        Fading(every=1, kept=0.5)
        """
        if forget is None:
            forget = min(FORGETTING / math.sqrt(arms * known.horizon), FORGETTING_MAX)
        if forget == 0.0:
            return cls(0, 1.0)
        every = max(int(min(FADED_AT_ONCE / forget, STEP_MAX)), 1)
        return cls(every, (1.0 - forget) ** every)

    def shares(self, count: Array, asked: int, answered: int) -> Array | None:
        """The shares kept of the outcomes of each arm, from their numbers; None between two steps. This number of
        requests is answered, the last by the arm ``asked``."""
        if self.every == 0 or answered % self.every:
            return None
        shares = np.asarray(kept_share(count, self.kept))
        shares[asked] = self.kept
        return shares


@compiled
def kept_share(count: Any, kept: Any) -> Any:
    """The share kept of the outcomes of an arm while others are asked. Numbers or arrays; engines compile it."""
    return np.maximum(kept, FEWEST_KEPT / np.maximum(count, FEWEST_KEPT))


@dataclass
class PlanState(State):
    """The state of a policy that plans money for a number of requests.

    past_pulls  how many of the pulls were not made with this budget
    estimates   of each arm's price, where requests have some: their number, their sum, the sums of their squares and of
                their logarithms

    Lists are replaced at every change: others may hold those before.
    """

    past_pulls: int = 0
    estimates: list[list[float]] = field(default_factory=list)

    @property
    def has_price_estimates(self) -> bool:
        return bool(self.estimates)

    @property
    def scales(self) -> Any:
        """The cost that counts as 1 for each arm, in units of the largest: 1, or the arm's own cap."""
        return 1.0 if self.known.scales is None else self.known.scales

    @property
    def paid(self) -> float:
        """The money spent out of this budget."""
        raise NotImplementedError

    @property
    def left(self) -> float:
        """The money left of the budget."""
        return max(self.known.budget - self.paid, 0.0)

    @property
    def requests(self) -> float:
        """How many are still to come; 0 or less past the horizon."""
        return self.known.horizon - (self.answered_requests + self.known.unlearned)

    @property
    def answered_requests(self) -> int:
        """How many were answered with this budget."""
        return int(self.pulls.sum()) - self.past_pulls

    @property
    def rate(self) -> float:
        """Money for each request that is still to come; 0 without a horizon."""
        return self.left / max(self.requests, 1.0)

    def arm_sums(self, arm: int, segment: int | None = None) -> tuple[float, float, float]:
        """Outcomes of an arm, and the sums of their rewards and costs: in a segment, if they are kept by segment."""
        raise NotImplementedError

    def mean_cost(self, arm: int, segment: int | None = None) -> float | None:
        """The mean cost of the outcomes of an arm, in units of the largest cost; None if there are none."""
        count, _, cost = self.arm_sums(arm, segment)
        return float(cost / count * np.broadcast_to(self.scales, self.pulls.shape)[arm]) if count > 0.0 else None

    @property
    def estimate_sums(self) -> Array:
        """The sums of estimates as (row, arm)."""
        sums = np.zeros((4, len(self.pulls)))
        saved = np.array(self.estimates).reshape(4, -1)  # arms may have come since
        sums[:, : saved.shape[1]] = saved
        return sums

    def record_price_estimates(self, prices: Array) -> None:
        """Add the estimated prices of one more request; NaN for an arm without one."""
        sums, given = self.estimate_sums, np.isfinite(prices)
        amounts = prices[given]
        sums[:, given] += [np.ones_like(amounts), amounts, amounts * amounts, np.log(amounts)]
        self.estimates = sums.tolist()

    def rescale_estimates(self, money: float) -> None:
        """Write the estimates in another unit of money: ``money`` is the old one as a multiple of the new one."""
        if self.estimates:
            count, total, squares, logs = self.estimate_sums
            scaled = count, total * money, squares * money**2, logs + count * np.log(money)
            self.estimates = [row.tolist() for row in scaled]

    def filled(self, values: Mapping[str, Any]) -> Self:
        super().filled(values)
        try:
            sums = self.estimate_sums
        except ValueError:
            raise BadState("'estimates' are no sums for each arm; the saved state is damaged") from None
        if not np.isfinite(sums).all() or (sums[:3, sums[0] > 0.0] <= 0.0).any():
            raise BadState("'estimates' are no sums of prices; the saved state is damaged")
        return self


P = TypeVar("P", bound=PlanState)
"""The kind of states of a policy that plans."""


@dataclass(frozen=True)
class PlanPolicy(RequestPolicy[P]):
    """A policy that plans money for a number of requests."""

    needs: ClassVar[frozenset[str]] = frozenset({"budget", "horizon"})
    watches_money = True

    def totals(self, state: P, arm: int) -> tuple[float, float, float]:
        return state.arm_sums(arm)

    def set_remaining(self, state: P, money: float, requests_used: int) -> None:
        if math.isfinite(state.known.horizon):
            unlearned = requests_used - (int(state.pulls.sum()) - state.past_pulls)
            state.know(budget=money + state.paid, unlearned=unlearned)

    def keeps_pace(self, state: P) -> bool:
        return math.isfinite(state.known.horizon)

    def planned_substitute(
        self, state: P, arm: int, available: ArmMask, rng: np.random.Generator, request: Request
    ) -> int | None:
        """The choice of the mix that earns most of all that cost what the request may on average, by drawn means."""
        price, arms = self._price_in_place(state, arm, request), np.flatnonzero(available)
        reward, cost = (means.tolist() for means in self.plausible_means(state, request, available, rng))
        first, upgrade, often, *_ = mix_of_one(reward, cost, price)
        lot = rng.random()
        if often > 0.0:
            return int(arms[upgrade if lot < often else first])
        return int(arms[first]) if lot * cost[first] < price else None

    def _price_in_place(self, state: P, arm: int, request: Request) -> float:
        """The price that a request may have in place of an arm cooling down, by the plan for the posteriors' means."""
        usual, rate = self.expected_cost(state, request, arm), state.rate
        if usual is None:
            return rate
        price, short = self.plan(state, request)
        if price == 0.0:
            return max(usual, rate)
        return min(usual, rate) if short else usual

    @abstractmethod
    def plausible_means(
        self, state: P, request: Request, available: ArmMask, rng: np.random.Generator
    ) -> tuple[Array, Array]:
        """Plausible mean rewards and costs for a request, of the arms available."""

    @abstractmethod
    def expected_cost(self, state: P, request: Request, arm: int) -> float | None:
        """The expected cost of a request with an arm, in units of the largest cost; None if nothing is known of it."""

    @abstractmethod
    def plan(self, state: P, request: Request) -> tuple[float, bool]:
        """The price on money by the posteriors' means, and whether all requests together cost more than there is."""
