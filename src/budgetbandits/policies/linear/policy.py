"""Thompson sampling for requests with features, and a budget that must last for a number of them.

The mean reward of arm a for a request with the features x is taken to be linear in x, and so is the logarithm of its
mean cost, each with slopes of which a part is common to all arms (`numerics.regression`). Features are standardised by
what was seen; segments are features, too. Before each request the policy draws plausible coefficients of all arms
(slopes half as far from their means as their posterior has them),

    reward of a:  level + slopes · x,
    cost of a:    c exp(v · (x − x̄) − ½ vᵀ C v),

clipped to what is possible. c is a plausible mean cost of the arm, from the law that `bts-paced` has; x̄ and C are the
mean and the covariance of the features of what it has answered: for normal features the mean of the exponential is 1,
so that c stays the mean. A feature with two values, as flags and segments are, has ln E exp(v (x − x̄)) in the place of
½ v² times its own variance. Only the slopes v come from logarithms.

Then it finds the price on money at which recent requests use up what is left (`program`). The request at hand, which is
one of them, gets the arm that is worth most at that price, unless a trial of that arm cannot pay (`trials`).

Weights. Features explain a share of how outcomes vary, however many features there are: the guess that an arm is like
the others is worth ``apart`` outcomes for each column, and the guess that a feature has no effect at all ``shared``.
Columns count by the variance that they have once they are standardised, which is 1, or less for rare flags: sixty
segments that are equally frequent count as nine. Where nearly all rewards are 0, or nearly all 1, the guesses are worth
more (`fit.rarity`): no feature makes a reward of 1 % one of 50 %.

Estimates. Where the price of an arm is estimated before the choice, its costs are learned as if its estimate had been
the usual one, the geometric mean of its estimates so far, and expected in proportion to the estimate. Recent requests
are kept with the mean of how far their estimates were from the usual ones.

Without features that is `bts-paced`, but for normal laws of mean rewards in the place of Betas, and for trials. What
was learned fades as there (`planning`).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from budgetbandits.numerics.arrays import ArmMask, Array
from budgetbandits.numerics.fluid import price_curve
from budgetbandits.policies.base import (
    NO_REQUEST_INFO,
    NOT_IN_PRINT,
    NOTHING_KNOWN,
    ChoiceWork,
    FeatureSlopes,
    Knowledge,
    Request,
    UnitChange,
)
from budgetbandits.policies.linear.fit import Fit, fit
from budgetbandits.policies.linear.program import Program, money_value, predicted, program_of
from budgetbandits.policies.linear.state import (
    COST,
    COST_SQUARED,
    FEWEST_RECENT,
    LOG_COST,
    RECENT,
    REWARD,
    REWARD_SQUARED,
    LinearState,
)
from budgetbandits.policies.linear.trials import trial_pays
from budgetbandits.policies.paced.statistics import SMALLEST_COST, spend_weighted_cost
from budgetbandits.policies.planning import Fading, PlanPolicy

WEIGHT_MAX = 1e6
"""The largest weight of a guess, in outcomes."""

SMALLEST_SHARE = 1e-3
"""A cost counts as at least this share of the arm's typical cost where its logarithm is taken."""

SLOPE_WIDTH = 0.5
"""Width of the draws of slopes, as a share of that of their posterior. Requests vary by themselves, so that less chance
is needed to try everything. Tuned on `examples/data`."""

ENTRIES_AT_ONCE = 200_000
"""Entries of an array, at most: draws are made in parts."""


@dataclass(frozen=True)
class LinearThompson(PlanPolicy[LinearState]):
    r"""Thompson sampling for requests with features, and a budget that must last for a number of them.

    The mean reward of an arm is linear in the features $x$ of a request, and so is the logarithm of its mean cost, with
    slopes that arms share in part. Draws the coefficients of all arms, finds the price $\lambda$ at which recent
    requests use up (money left)/(requests left), and pulls the arm with the largest $r(x) - \lambda\, c(x)$, unless a
    trial of it cannot pay.

    apart   how many outcomes for each feature the guess counts for that an arm is like the others
    shared  how many outcomes for each feature the guess counts for that the feature has no effect
    forget  the share by which each request makes earlier outcomes count less, up to 0.5; by the horizon if not given

    >>> policy, rng = LinearThompson(), np.random.default_rng(1)
    >>> state = policy.start(2, Knowledge(budget=300.0, horizon=1000.0, features=1))
    >>> for number in range(1000):
    ...     request = Request(features=np.array([number % 2]))
    ...     arm = policy.choose(state, rng, request)
    ...     reward = (0.5, 0.9)[arm] if number % 2 else (0.5, 0.4)[arm]
    ...     policy.observe(state, arm, reward, (0.1, 0.5)[arm], rng, request)
    >>> state.pulls.tolist(), round(state.left, 6)  # the second arm for odd numbers, but for one
    ([501, 499], 0.4)
    """

    name = "bts-linear"
    label = "linear BTS"
    reference = NOT_IN_PRINT
    proven = "nothing"
    own_scales: ClassVar[bool] = True
    uses_features: ClassVar[bool] = True
    apart: float = 12.0
    shared: float = 4.0
    forget: float | None = None

    def __post_init__(self) -> None:
        self.between(1e-3, WEIGHT_MAX, apart=self.apart, shared=self.shared)
        self.check_forgetting(self.forget)

    def start(self, arms: int, known: Knowledge = NOTHING_KNOWN) -> LinearState:
        columns, slots = 1 + known.features, max(RECENT // arms, FEWEST_RECENT)
        return LinearState(
            active=np.ones(arms, dtype=bool),
            pulls=np.zeros(arms, dtype=np.int64),
            known=replace(self.select_knowledge(known), features=known.features),
            products=np.zeros((columns, columns, arms)),
            responses=np.zeros((2, columns, arms)),
            powers=np.zeros((2, columns, arms)),
            totals=np.zeros((5, arms)),
            past=np.zeros((3, arms)),
            recent=np.zeros((slots, columns + 1, arms), dtype=np.float32),
        )

    def new_arm_state(self, state: LinearState, known: Knowledge) -> LinearState:
        arm = self.start(1, known)
        arm.recent = np.zeros((len(state.recent), arm.columns + 1, 1), dtype=np.float32)
        arm.widen(state.columns)
        return arm

    def work(self, arms: int, columns: int, draws: int, priced: bool) -> ChoiceWork:
        alike = columns == 1 and not priced
        entries = arms * (1 if alike else max(RECENT, FEWEST_RECENT * arms))
        return ChoiceWork(0.12 * arms * columns**2, 1_500.0 + 0.1 * entries * (1 + draws) + 0.6 * arms)

    def segments(self, state: LinearState) -> int:
        return state.segments

    def open_segment(self, state: LinearState) -> int:
        state.widen(state.columns + 1)
        return state.segments - 1

    # --- choosing ------------------------------------------------------------------------------------------------

    def choose(self, state: LinearState, rng: np.random.Generator, request: Request = NO_REQUEST_INFO) -> int | None:
        if not state.active.any():
            return None
        return int(self.choices(state, rng, 1, request)[0])

    def choices(
        self, state: LinearState, rng: np.random.Generator, draws: int, request: Request = NO_REQUEST_INFO
    ) -> NDArray[np.int64]:
        """The arms of ``draws`` independent calls of `choose`, drawn all at once."""
        fit = self.fit(state)
        program = program_of(state, fit.standard, request)
        at_once = max(1, ENTRIES_AT_ONCE // program.factors.size)
        chosen = [
            self.answers(state, fit, program, rng, min(at_once, draws - begin)) for begin in range(0, draws, at_once)
        ]
        return np.asarray(program.arms[np.concatenate(chosen)])

    def answers(
        self, state: LinearState, fit: Fit, program: Program, rng: np.random.Generator, draws: int
    ) -> NDArray[np.int64]:
        """The places of the arms that answer the request at hand, by this many draws."""
        level = np.empty((draws + 1, len(state.pulls)))  # the last is no draw, but the means
        level[:draws], level[draws] = rng.beta(*fit.shapes, size=(draws, len(state.pulls))), fit.mean_cost
        coefficients = np.concatenate([fit.regressions.draw(rng, draws, SLOPE_WIDTH), fit.regressions.means[None]])
        reward, cost = predicted(fit, program, coefficients, level)
        price, left_over = money_value(fit, program, reward[:draws], cost[:draws], rng.random(draws))
        rewards, costs = np.where(program.may, reward[:, -1], -np.inf), cost[:, -1]
        chosen = (rewards[:draws] - price[:, None] * costs[:draws]).argmax(axis=1)
        if not program.ends:
            return np.asarray(chosen)
        usual = costs[draws]
        worth = rewards[draws] - price[:, None] * usual
        best = worth.argmax(axis=1)
        upgraded = usual[best] > usual[chosen]
        if upgraded.any():  # where little is worth its money by the draw, its price is not that of what the means say
            value_of_means, _ = money_value(fit, program, reward[draws:], cost[draws:], rng.random(draws))
            price = np.where(upgraded, np.maximum(price, value_of_means), price)
            worth = rewards[draws] - price[:, None] * usual
            best = worth.argmax(axis=1)
        free = left_over & (usual[chosen] > usual[best])
        for draw in np.flatnonzero((chosen != best) & ~free).tolist():
            arm, better = chosen[draw], best[draw]
            loss, paid = worth[draw, better] - worth[draw, arm], price[draw] * usual[arm]
            affordable = program.rate * program.requests / float(usual[arm])
            if not trial_pays(state, fit, program, int(program.arms[arm]), float(loss), float(paid), affordable):
                chosen[draw] = better
        return np.asarray(chosen)

    def expected(self, state: LinearState, request: Request) -> tuple[Array, Array]:
        """The mean reward and the mean cost of every arm for a request, by the means of the posteriors."""
        fit = self.fit(state)
        return self._for_one(fit, state, request, fit.regressions.means[None], fit.mean_cost[None])

    def feature_slopes(self, state: LinearState) -> FeatureSlopes:
        fit, columns, moments = self.fit(state), slice(1, 1 + state.known.features), state.moments()
        origin = np.array(state.origin) if state.origin else np.zeros(state.known.features)
        deviations = np.sqrt(moments.variance[columns])
        units = (deviations * fit.standard.scale[columns])[:, None]  # of the coefficients
        rows = np.eye(state.columns)[columns]
        unsure = np.sqrt([fit.regressions.variance(row) for row in rows]).transpose(1, 0, 2) * units
        reward, log_cost = (fit.regressions.means[kind, :, columns].T * units for kind in (REWARD, LOG_COST))
        return FeatureSlopes(origin + moments.mean[columns], deviations, reward, log_cost, unsure)

    def plausible_means(
        self, state: LinearState, request: Request, available: ArmMask, rng: np.random.Generator
    ) -> tuple[Array, Array]:
        fit, arms = self.fit(state), np.flatnonzero(available)
        level = rng.beta(*fit.shapes, size=(1, len(state.pulls)))
        reward, cost = self._for_one(fit, state, request, fit.regressions.draw(rng, 1, SLOPE_WIDTH), level)
        return reward[arms], cost[arms]

    def expected_cost(self, state: LinearState, request: Request, arm: int) -> float | None:
        if request.features is None and request.prices is None:
            return state.mean_cost(arm)
        return float(self.expected(state, request)[1][arm]) if state.counts[arm] > 0.0 else None

    def plan(self, state: LinearState, request: Request) -> tuple[float, bool]:
        fit = self.fit(state)
        program = program_of(state, fit.standard, request)
        reward, cost = predicted(fit, program, fit.regressions.means[None], fit.mean_cost[None])
        curve = price_curve(reward, cost, program.weight)
        return float(curve.price(program.rate)[0]), bool(curve.least[0] >= program.rate)

    def _for_one(
        self, fit: Fit, state: LinearState, request: Request, coefficients: Array, level: Array
    ) -> tuple[Array, Array]:
        arms, row = np.arange(len(state.pulls)), fit.standard.row(state.row(request, fit.standard)[None])
        factors = state.factors(request.prices)[None]
        program = Program(row, factors, np.ones(1), arms, state.active, state.requests, state.rate)
        reward, cost = predicted(fit, program, coefficients, level)
        return reward[0, 0], cost[0, 0]

    def fit(self, state: LinearState) -> Fit:
        """The regressions and the laws of mean costs that follow from a state."""
        return fit(state, self.apart, self.shared)

    # --- learning ------------------------------------------------------------------------------------------------

    def observe(
        self,
        state: LinearState,
        arm: int,
        reward: float,
        cost: float,
        rng: np.random.Generator,
        request: Request = NO_REQUEST_INFO,
    ) -> None:
        if request.features is not None and not state.origin:
            state.origin = request.features.tolist()
        factors = state.factors(request.prices)
        standard = state.standard
        row = state.row(request, standard)
        state.pulls[arm] += 1
        totals = state.totals[:, arm]
        usual = min(cost * float(np.exp(-factors[arm])), 1.0)  # at the usual price
        typical = float(spend_weighted_cost(totals[COST] + usual, totals[COST_SQUARED] + usual * usual))
        log = float(np.log(max(usual, SMALLEST_SHARE * typical, SMALLEST_COST)))
        fading = Fading.by_forgetting(self.forget, state.known, len(state.pulls))
        shares = fading.shares(state.counts, arm, state.answered_requests)
        if shares is not None:
            state.fade(shares)
        state.add(arm, row, reward, log)
        state.standardise(row, standard)
        state.totals[:, arm] += (cost, reward * reward, log * log, usual, usual * usual)
        state.remember(arm, row, factors)
        if request.prices is not None:
            state.record_price_estimates(request.prices)

    def add_history(self, state: LinearState, arm: int, pulls: int, reward: float, cost: float) -> None:
        if pulls == 0:
            return
        mean = cost / pulls
        log = float(np.log(max(mean, SMALLEST_COST) if mean > 0.0 else SMALLEST_SHARE))  # as free outcomes have
        state.pulls[arm] += pulls
        state.past_pulls += pulls
        state.past[:, arm] += (pulls, reward, pulls * log)
        # costs are taken to vary as much as their mean, so that small ones still differ; rewards as they may
        state.totals[REWARD_SQUARED:, arm] += (reward, pulls * log * log, cost, min(2.0 * mean, 1.0) * cost)

    def rescaled(self, state: LinearState, units: UnitChange) -> LinearState:
        state.rescale(units)
        return state
