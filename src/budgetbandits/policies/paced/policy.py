"""Paced Thompson sampling: a budget that must last for a number of requests.

With money B for T requests two things are scarce, and the best ratio is the wrong goal where money is left over at the
end. Before each request the policy draws plausible means θr and θc of every arm, as BTS does, takes

    rate = money not spent yet / requests not answered yet,

and solves the program of `fluid` for the drawn means: of all mixes of arms that cost ``rate`` on average, the one that
earns most. It pulls what that mix says: one arm, or one of two by lot. Without a horizon, T = ∞ and rate = 0: then it
is the rule of BTS, argmax θr/θc. A request counts as answered when its feedback comes, as its cost does. The horizon is
often an estimate; it may be corrected on the way, and past its end all that is left may be spent on the next request.

Posteriors. What is kept of an arm are the number, the sums and the sums of squares of its rewards and costs. θ is drawn
from Beta(κm, κ(1 − m)), where m and s² are the mean and variance of the outcomes together with one 0 and one 1, and

    κ = (n + 2) m(1 − m) / s².

For outcomes 0 and 1, s² = m(1 − m), and that is the Beta(S + 1, F + 1) of BTS. Others vary less, and their posterior is
narrower. Costs begin with ¼ and ¾ in the place of 0 and 1: the largest cost of an arm says how expensive it is, and to
hope that it is nearly free would cost a small budget's worth, again and again. But a largest cost may be far above what
arms cost. Where Σc²/Σc, the mean cost weighted by spend, is below one half, the two are ½ and 3/2 of it; of an arm on
which nothing was spent, that of all arms. For costs 0 and 1 it is 1, and nothing changes. With ``trials=1`` the
posteriors are BTS's own: uniform priors, and a Bernoulli trial for each outcome between 0 and 1.

Segments. Requests of several segments, such as the features of a product, have posteriors of their own and one price on
money. A segment starts from what all others know, as if it had seen w outcomes of theirs: w is the variance of an arm's
outcomes within segments divided by that of its means between them, as far as is known, starting from ``pooling``. Their
mean reward is moved by what sets the segment apart in its other arms, as far as that predicts rewards. It
starts no surer than 40 outcomes 0 and 1 would make it, and with no posterior whose mass is at 0 or 1 (`pooling`).
With segments, trials that cannot pay any more are left out, and so are a plan's last upgrades where being short after
them would cost more than they bring (`selection`).

Drift. Each request makes the earlier outcomes of all arms count less, by the share ``forget``, or by one that follows
from the horizon (`planning`). So an arm that is not asked becomes unsure again. With 0, nothing is forgotten.

Hope. With ``hope`` nothing is drawn: the program is solved for means that are hoped for, as much above those of the
posteriors as the requests and the money left could pay for what is learned (`hope`). Multiples of estimates are drawn.

Plans. The program is for the requests to come, so it has all arms that these may have. Where the request at hand may
not have the arm that the mix names, it gets the one that is worth most at the price on money of the program.

Estimates. Where the price of each arm is estimated before the choice, how many times its estimate a cost is gets
learned too. That number has no upper end, so its mean is drawn from a Gamma law, with the mean m and the shape
(n + 2) m²/s² of the outcomes together with ½ and 3/2. The choice compares what the arms will cost this time. The price
on money is for estimates that vary from request to request as they did (`fluid.price_for_varied`).

Ferreira, Simchi-Levi, Wang: Online Network Revenue Management Using Thompson Sampling. Operations Research 66, 2018:
posteriors of the true prior and 0/1 outcomes; a Bayesian regret of O(√(T K ln K)). Nothing is proven for segments,
estimates, κ > n + 2 or outcomes that fade.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from budgetbandits.errors import BadParameter
from budgetbandits.numerics.arrays import ArmMask, Array
from budgetbandits.numerics.fluid import at_price, best_mix, price_for_varied
from budgetbandits.policies.base import NO_REQUEST_INFO, NOTHING_KNOWN, Knowledge, Request, UnitChange
from budgetbandits.policies.paced.hope import hoped_means, pulls_left
from budgetbandits.policies.paced.pooling import MULTIPLES, pooled
from budgetbandits.policies.paced.selection import DrawnMeans, most_worth, select, select_many
from budgetbandits.policies.paced.statistics import (
    COST,
    COST_SQUARED,
    COUNT,
    JITTER,
    PRICED,
    REWARD,
    REWARD_SQUARED,
    SMALLEST_COST,
    SQUARES,
    PacedState,
    add_outcome,
    beta_parameters,
    gamma_parameters,
    prior_cost_scale,
    spend_weighted_cost,
)
from budgetbandits.policies.planning import Fading, PlanPolicy

POOLING_MAX, HOPE_MAX = 1e6, 1e3
"""The largest values of the parameters ``pooling`` and ``hope``."""

RELATIVE_COST_MAX = 50.0
"""A cost counts as at most a hundred times its estimate: one such estimate must not outweigh all others."""


@dataclass(frozen=True)
class PacedThompson(PlanPolicy[PacedState]):
    r"""Thompson sampling for a budget that must last for a number of requests, with segments and price estimates.

    Draws $\theta \sim \mathrm{Beta}(\kappa m,\, \kappa (1 - m))$ for the reward and the cost of every arm and segment,
    with $\kappa = (n + 2)\, m (1 - m) / s^2$ from the mean $m$ and the variance $s^2$ of its outcomes. Of all mixes of
    arms that cost (money left)/(requests left) on average, it takes the one that earns most for the drawn means, with
    one price on money for all segments, and pulls an arm of it by lot. Without a horizon it is BTS's rule.

    pooling  how many outcomes of all other segments a segment starts from at first
    trials   1 makes Bernoulli trials of outcomes between 0 and 1, as BTS does; 0 does not
    forget   the share by which each request makes earlier outcomes count less, up to 0.5; by the horizon if not given
    hope     above 0 nothing is drawn: the mix is the best for means that are hoped for, less so near the end

    >>> policy, rng = PacedThompson(), np.random.default_rng(1)
    >>> state = policy.start(2, Knowledge(budget=300.0, horizon=1000.0))
    >>> for _ in range(1000):
    ...     arm = policy.choose(state, rng)
    ...     policy.observe(state, arm, reward=(0.2, 0.8)[arm], cost=(0.1, 0.5)[arm], rng=rng)
    >>> state.pulls.tolist(), round(state.left, 6)
    ([500, 500], 0.0)
    """

    name = "bts-paced"
    label = "paced BTS"
    reference = "after Ferreira, Simchi-Levi and Wang, Operations Research 2018"
    proven = "with forget=0, O(√T) in Bayes' mean, for outcomes 0 and 1 and one segment"
    own_scales: ClassVar[bool] = True
    pooling: float = 8.0
    trials: float = 0.0
    forget: float | None = None
    hope: float = 0.0

    def __post_init__(self) -> None:
        self.between(1.0, POOLING_MAX, pooling=self.pooling)
        self.check_forgetting(self.forget)
        if not 0.0 <= self.hope <= HOPE_MAX:
            raise BadParameter(f"{self.name}: hope is {self.hope}; use 0 to draw means, or up to {HOPE_MAX:g}")
        if self.trials not in (0.0, 1.0):
            raise BadParameter(f"{self.name}: trials is {self.trials}; use 1 for Bernoulli trials, 0 for none")

    def rule_kind(self, horizon: float) -> str:
        return "paced"

    def start(self, arms: int, known: Knowledge = NOTHING_KNOWN) -> PacedState:
        return PacedState(
            active=np.ones(arms, dtype=bool),
            pulls=np.zeros(arms, dtype=np.int64),
            known=self.select_knowledge(known),
            sums=np.zeros((9, 1, arms)),
        )

    def new_arm_state(self, state: PacedState, known: Knowledge) -> PacedState:
        arm = self.start(1, known)
        arm.widen(state.segments)
        return arm

    def segments(self, state: PacedState) -> int:
        return state.segments

    def open_segment(self, state: PacedState) -> int:
        state.widen(state.segments + 1)
        return state.segments - 1

    def choose(self, state: PacedState, rng: np.random.Generator, request: Request = NO_REQUEST_INFO) -> int | None:
        if not state.active.any():
            return None
        drawn = self.draw(state, request, rng)
        if request.prices is None:
            return select(drawn, state.rate, rng)
        one = drawn._replace(reward=drawn.reward[None], cost=drawn.cost[None])
        cost, price = self.priced(state, request, one, rng)
        return int(drawn.arms[at_price(drawn.worth.tolist(), cost[0].tolist(), float(price[0]))])

    def choices(
        self, state: PacedState, rng: np.random.Generator, draws: int, request: Request = NO_REQUEST_INFO
    ) -> NDArray[np.int64]:
        """The arms of ``draws`` independent calls of `choose`, drawn all at once."""
        drawn, lot = self.draw(state, request, rng, draws), rng.random(draws)
        if request.prices is None:
            return select_many(drawn, state.rate, lot)
        cost, price = self.priced(state, request, drawn, rng)
        return np.asarray(drawn.arms[most_worth(drawn, cost, price)])

    def draw(
        self, state: PacedState, request: Request, rng: np.random.Generator, draws: int | None = None
    ) -> DrawnMeans:
        """Plausible means, once or ``draws`` times."""
        planned = state.active if request.future_arms is None else state.active | request.future_arms
        arms = np.flatnonzero(planned)
        shapes, scales = self.laws(state, arms), np.broadcast_to(state.scales, state.pulls.shape)[arms]
        size = shapes[0].shape if draws is None else (draws, *shapes[0].shape)
        # a segment comes as often as it did, and once more
        weight, segment = np.array(state.answered) + 1.0, request.segment
        weight /= weight.sum()
        if self.hope > 0.0:
            means = np.broadcast_to(self.hoped(state, arms, shapes, scales, weight), size)
        else:
            means = _means(rng.beta(*shapes, size=size))
        reward, cost = np.moveaxis(means, -3, 0)
        prune_exploration = state.segments > 1 and 0.0 < state.requests < np.inf
        requests = state.requests if prune_exploration else None
        may, tried = state.active[arms], state.sums[COUNT, segment, arms] > 0.0
        return DrawnMeans(arms, reward, cost * scales, weight, may, segment, shapes, scales, tried, requests)

    def hoped(
        self, state: PacedState, arms: NDArray[np.int64], shapes: tuple[Array, Array], scales: Array, weight: Array
    ) -> Array:
        """The means that are hoped for, as (kind, segment, arm)."""
        counts = shapes[0] + shapes[1]
        reward, cost = shapes[0] / counts
        price = best_mix(reward.tolist(), (cost * scales).tolist(), weight.tolist(), state.rate).price
        left = pulls_left(cost * scales, weight[:, None], max(state.requests, 1.0), state.left)
        outcomes = state.sums[COUNT][:, arms]
        return np.stack(hoped_means(reward, counts[0], cost, counts[1], price * scales, outcomes, left, self.hope))

    def laws(self, state: PacedState, arms: NDArray[np.int64]) -> tuple[Array, Array]:
        """The parameters of the Betas of these arms; what is known of the others counts."""
        a, b = self.all_laws(state.sums)
        return (a, b) if len(arms) == len(state.pulls) else (a[..., arms], b[..., arms])

    def priced(
        self, state: PacedState, request: Request, drawn: DrawnMeans, rng: np.random.Generator
    ) -> tuple[Array, Array]:
        """The cost of each arm by its estimate, and the price on money, for each draw."""
        assert request.prices is not None
        arms, draws = drawn.arms, len(drawn.reward)
        times = 2.0 * self.draw_relative(state.sums[PRICED:, :, arms], rng, draws)
        usual, spread = state.typical_prices()
        # not by the costs that were paid: an expensive arm was chosen where it was cheap, so these are its lowest
        cost = np.where(np.isnan(usual[arms]), drawn.cost, usual[arms] * times)
        local = request.prices[arms] * times[:, request.segment] * np.exp(JITTER * rng.standard_normal((draws, 1)))
        return local, price_for_varied(drawn.reward, cost, drawn.weight, state.rate, spread)

    def all_laws(self, sums: Array) -> tuple[Array, Array]:
        """The parameters of the Betas that mean rewards and mean costs are drawn from, as (kind, segment, arm)."""
        sizes = np.ones((2, 1, sums.shape[2]))
        total, squares = sums[COST].sum(axis=0), sums[COST_SQUARED].sum(axis=0)
        sizes[1] = prior_cost_scale(total, squares, spend_weighted_cost(total.sum(), squares.sum()))
        first = np.ones((2, 1, 1)) if self.trials else SQUARES
        if sums.shape[1] == 1:
            return self.shapes(sums[COUNT], sums[REWARD:REWARD_SQUARED], sums[REWARD_SQUARED:PRICED], first, sizes)
        rewards = self.shapes(sums[COUNT], sums[REWARD], sums[REWARD_SQUARED], first[0], shifted=True)
        costs = self.shapes(sums[COUNT], sums[COST], sums[COST_SQUARED], first[1], sizes[1])
        return np.stack([rewards[0], costs[0]]), np.stack([rewards[1], costs[1]])

    def shapes(
        self,
        count: Array,
        total: Array,
        squares: Array,
        first: float | Array,
        sizes: float | Array = 1.0,
        shifted: bool = False,
    ) -> tuple[Array, Array]:
        """The same from the number, the sum and the squares of outcomes as (segment, arm), the squares of the first two
        and what these are to be multiplied by; sums of several kinds of outcome have a further axis in front."""
        prior = pooled(count, total, squares, first, self.pooling, sizes=sizes, shifted=shifted)
        return beta_parameters(count, total, squares, *prior)

    def draw_relative(self, sums: Array, rng: np.random.Generator, draws: int) -> Array:
        """Plausible means of costs as shares of twice their estimate, from the last three rows of sums."""
        shape, scale = self.relative_laws(sums)
        return _means(rng.gamma(shape, scale, size=(draws, *shape.shape)))

    def relative_laws(self, sums: Array) -> tuple[Array, Array]:
        """The parameters of the Gammas that these are drawn from, as (segment, arm)."""
        count, total, squares = sums
        prior = pooled(count, total, squares, float(SQUARES[1, 0, 0]), self.pooling, MULTIPLES)
        return gamma_parameters(count, total, squares, prior)

    def expected_prices(self, state: PacedState, request: Request) -> Array:
        """The expected cost of each arm: its estimate times the mean ratio of its costs to their estimates."""
        assert request.prices is not None
        shape, scale = self.relative_laws(state.sums[PRICED:])
        return np.asarray(request.prices * 2.0 * (shape * scale)[request.segment])

    # --- what it plans -------------------------------------------------------------------------------------------

    @property
    def sums_by_segment(self) -> bool:
        return self.forget == 0.0 and self.trials == 0.0

    def plausible_means(
        self, state: PacedState, request: Request, available: ArmMask, rng: np.random.Generator
    ) -> tuple[Array, Array]:
        drawn = self.draw(replace(state, active=available), Request(request.segment), rng)
        reward, cost = drawn.reward[request.segment], drawn.cost[request.segment]
        return reward, cost if request.prices is None else self.expected_prices(state, request)[drawn.arms]

    def expected_cost(self, state: PacedState, request: Request, arm: int) -> float | None:
        if request.prices is not None and not np.isnan(request.prices[arm]):
            return float(self.expected_prices(state, request)[arm])
        return state.mean_cost(arm, request.segment)

    def plan(self, state: PacedState, request: Request) -> tuple[float, bool]:
        rate, arms = state.rate, np.flatnonzero(state.active)
        a, b = self.laws(state, arms)
        scales = np.broadcast_to(state.scales, state.pulls.shape)[arms]
        reward, cost = (a / (a + b))[0].tolist(), ((a / (a + b))[1] * scales).tolist()
        weight = ((np.array(state.answered) + 1.0) / (sum(state.answered) + state.segments)).tolist()
        mix = best_mix(reward, cost, weight, rate)
        return mix.price, mix.share == 0.0 and mix.spend(cost, weight) > rate

    # --- learning ------------------------------------------------------------------------------------------------

    def observe(
        self,
        state: PacedState,
        arm: int,
        reward: float,
        cost: float,
        rng: np.random.Generator,
        request: Request = NO_REQUEST_INFO,
    ) -> None:
        state.pulls[arm] += 1
        fading = Fading.by_forgetting(self.forget, state.known, len(state.pulls))
        shares = fading.shares(state.sums[COUNT].sum(axis=0), arm, state.answered_requests)
        if shares is not None:
            state.sums = np.concatenate([state.sums[:COUNT], state.sums[COUNT:] * shares])
        sums = state.sums[:, request.segment, arm]
        if request.prices is not None:
            scale = float(np.broadcast_to(state.scales, state.pulls.shape)[arm])
            relative = min(cost * scale / (2.0 * float(request.prices[arm])), RELATIVE_COST_MAX)
            state.record_price_estimates(request.prices)
            sums[PRICED:] += (1.0, relative, relative * relative)
        add_outcome(sums, reward, cost, rng, self.trials)
        state.count(request.segment)

    def add_history(self, state: PacedState, arm: int, pulls: int, reward: float, cost: float) -> None:
        state.pulls[arm] += pulls
        # squares of numbers in [0, 1] are at most the numbers: the largest variance that the sums allow
        state.sums[COUNT:PRICED, 0, arm] += (pulls, reward, cost, reward, cost)
        state.past_pulls += pulls

    def rescaled(self, state: PacedState, units: UnitChange) -> PacedState:
        state.rescale(units, trials=self.trials > 0.0)
        return state


def _means(drawn: Array) -> Array:
    return np.asarray(np.maximum(drawn, SMALLEST_COST))
