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

Then it finds the price on money: with what recent requests, of which a bounded sample is kept, would earn and cost by
these coefficients, the program of `fluid` for

    rate = money not spent yet / requests not answered yet.

The request at hand, which is one of the program's, gets the arm that is worth most at that price.

How much the requests to come will cost is not sure, and money that is missed is often worth far more than money that
is left over. So the price is the mean of the program's price λ(rate + s Z) over a normal Z, by three points,

    ⅔ λ(rate) + ⅙ (λ(rate − √3 s) + λ(rate + √3 s)),   s² = v (1/T + 1/M),

where v is the variance of what a planned answer costs, T the number of requests to come and M that of the sample.

Weights. Features explain a share of how outcomes vary, however many features there are: the guess that an arm is like
the others is worth ``apart`` outcomes for each column, and the guess that a feature has no effect at all ``shared``.
Columns count by the variance that they have once they are standardised, which is 1, or less for rare flags: sixty
segments that are equally frequent count as nine. Where nearly all rewards are 0, or nearly all 1, the guesses are worth
more (`fit.rarity`): no feature makes a reward of 1 % one of 50 %.

Trials. With many features there is always one more thing to find out, and Thompson sampling finds out everything. So an
arm that another is better than by x, by the means of the posteriors at that price, is tried only if that may pay. m
trials would change what is known of its worth by about

    s² = σ² m/(m + m₀),   m₀ = (1 + columns)/h,

where σ² is the variance of that worth and h the leverage zᵀG⁻¹z of the request: without features, m₀ is the number of
outcomes so far. They cost m x, and earn s (φ(x/s) − x/s Φ(−x/s)) for each of the T requests to come that are like
this one, of which a tenth are taken to be. The level of the arm is that of all T requests: with its variance alone, and
m₀ its outcomes, they may pay as well. Neither earns for more requests than the money left pays for with this arm. If
neither pays for any m, the better arm answers. Arms that were never tried
are, and so are more expensive ones where money is left over by the draw. Where the better arm costs more than the
chosen one, the price is at least that of the means: by a draw in which nothing expensive is worth its money, it is low.

Estimates. Where the price of an arm is estimated before the choice, its costs are learned as if its estimate had been
the usual one, the geometric mean of its estimates so far, and expected in proportion to the estimate. Recent requests
are kept with the mean of how far their estimates were from the usual ones.

Without features that is `bts-paced`, but for normal laws of mean rewards in the place of Betas, and for trials. What
was learned fades as there (`planning`).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from budgetbandits.numerics.arrays import ArmMask, Arms, Array
from budgetbandits.numerics.fluid import chosen_entries, price_curve
from budgetbandits.numerics.regression import LEVEL_WEIGHT
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
from budgetbandits.policies.linear.state import (
    COST,
    COST_SQUARED,
    FEWEST_RECENT,
    LOG_COST,
    RECENT,
    REWARD,
    REWARD_SQUARED,
    LinearState,
    Standard,
)
from budgetbandits.policies.paced.statistics import SMALLEST_COST, spend_weighted_cost
from budgetbandits.policies.planning import Fading, PlanPolicy

WEIGHT_MAX = 1e6

SMALLEST_SHARE = 1e-3
"""A cost counts as at least this share of the arm's typical cost where its logarithm is taken."""

LARGEST_POWER = 20.0
"""Of e: no features or estimates make an arm cost more or less than that many times its mean."""

TINY = 1e-9
"""What is left of the differences between impossible rewards: as ties, the first of the arms would get the request."""

TRIALS = tuple(2.0**power for power in range(12))
"""Numbers of trials that are considered."""

ALIKE = 0.1
"""The share of the requests to come that profit from trials on this one; chosen on records."""

SLOPE_WIDTH = 0.5
"""Of the width of their posterior: the requests vary by themselves, so that less chance is needed to try everything;
chosen on the same records."""

SQRT_2, SQRT_2PI = math.sqrt(2.0), math.sqrt(2.0 * math.pi)

WIDEST_NOISE = 1.0
"""The largest variance of the logarithm of a cost that is reckoned with when money is planned."""

WIDEST = 4.0
"""The largest variance of the logarithm of a mean cost, where it stands for a relative one."""

ENTRIES_AT_ONCE = 200_000
"""Of arrays: draws are made in parts."""


class Program(NamedTuple):
    """The requests that the price on money is found with; the last is the one at hand.

    rows      their standardised rows
    factors   the logarithm of what each arm costs by its estimate in units of its usual one, as (request, arm)
    weight    how many requests each stands for, as shares
    arms      the numbers of those planned for
    may       which of these may answer the request at hand
    requests  how many are still to come
    rate      money for each of them
    """

    rows: Array
    factors: Array
    weight: Array
    arms: Arms
    may: ArmMask
    requests: float
    rate: float

    @property
    def ends(self) -> bool:
        """Whether a number of requests is still to come, so that money can be missed or left over at its end."""
        return 0.0 < self.requests < math.inf


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
        program = self.program(state, fit.standard, request)
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
        reward, cost = self.predicted(fit, program, coefficients, level)
        price, left_over = self.money_value(fit, program, reward[:draws], cost[:draws], rng.random(draws))
        rewards, costs = np.where(program.may, reward[:, -1], -np.inf), cost[:, -1]
        chosen = (rewards[:draws] - price[:, None] * costs[:draws]).argmax(axis=1)
        if not program.ends:
            return np.asarray(chosen)
        usual = costs[draws]
        worth = rewards[draws] - price[:, None] * usual
        best = worth.argmax(axis=1)
        upgraded = usual[best] > usual[chosen]
        if upgraded.any():  # where little is worth its money by the draw, its price is not that of what the means say
            by_means, _ = self.money_value(fit, program, reward[draws:], cost[draws:], rng.random(draws))
            price = np.where(upgraded, np.maximum(price, by_means), price)
            worth = rewards[draws] - price[:, None] * usual
            best = worth.argmax(axis=1)
        free = left_over & (usual[chosen] > usual[best])
        for draw in np.flatnonzero((chosen != best) & ~free).tolist():
            arm, better = chosen[draw], best[draw]
            loss, paid = worth[draw, better] - worth[draw, arm], price[draw] * usual[arm]
            affordable = program.rate * program.requests / float(usual[arm])
            if not self.trial_pays(state, fit, program, int(program.arms[arm]), float(loss), float(paid), affordable):
                chosen[draw] = better
        return np.asarray(chosen)

    def money_value(
        self, fit: Fit, program: Program, reward: Array, cost: Array, chance: Array
    ) -> tuple[Array, NDArray[np.bool_]]:
        """What one more unit of money is worth on average, and whether some is left over by the program, for each draw
        of means as (draw, request, arm), or for one of them, and a number by chance, which chooses where both of two
        prices are right."""
        weight, rate = program.weight, program.rate
        curve = price_curve(reward, cost, weight)
        high, low, share = curve.bracket(rate)
        price, left_over = np.where(chance < share, low, high), high == 0.0
        if not program.ends:
            return price, left_over
        arm = (reward - high[:, None, None] * cost).argmax(axis=2)
        planned = chosen_entries(cost, arm)
        noise = math.exp(min(float(fit.regressions.noise[LOG_COST].mean()), WIDEST_NOISE))
        variance = np.maximum(noise * (planned * planned @ weight) - np.square(planned @ weight), 0.0)
        sample = 1.0 / len(weight) if len(weight) > 1 else 0.0
        apart = np.sqrt(3.0 * variance * (1.0 / program.requests + sample))
        return 2.0 / 3.0 * price + curve.price(np.stack([rate - apart, rate + apart])).sum(axis=0) / 6.0, left_over

    def trial_pays(
        self, state: LinearState, fit: Fit, program: Program, arm: int, loss: float, paid: float, affordable: float
    ) -> bool:
        """True where a trial of an arm may pay: by how much less it is worth than another, what its mean cost is
        worth, and how many answers of it the money left pays for."""
        found, row, one = fit.regressions, program.rows[-1], slice(arm, arm + 1)
        count = float(state.counts[arm])
        if count == 0.0:
            return True
        a, b = (float(shape[arm]) for shape in fit.shapes)
        (reward,), (log_cost,) = found.variance(row, one).tolist()
        relative = min(b / (a * (a + b + 1.0)), WIDEST)
        level = float(found.noise[REWARD, arm]) / (count + LEVEL_WEIGHT) + paid * paid * relative
        here = reward + paid * paid * (relative + min(log_cost, WIDEST))
        leverage = float(found.leverage(row, one)[REWARD, 0])
        # of the level, which is that of all requests, and of the worth of requests like this one
        for share, unsure, halved in (
            (1.0, level, count + LEVEL_WEIGHT),
            (ALIKE, here, (1.0 + fit.standard.size) / leverage),
        ):
            for trials in TRIALS:
                learned = math.sqrt(unsure * trials / (trials + halved))
                apart = loss / learned
                gain = math.exp(-0.5 * apart * apart) / SQRT_2PI - 0.5 * apart * math.erfc(apart / SQRT_2)
                profiting = min(share * (program.requests - trials), affordable - trials)
                if max(profiting, 0.0) * learned * gain > trials * loss:
                    return True
        return False

    def program(self, state: LinearState, standard: Standard, request: Request) -> Program:
        """The requests that the price on money is found with, and the one at hand."""
        planned = state.active if request.future_arms is None else state.active | request.future_arms
        (arms,) = planned.nonzero()
        row, here = state.row(request, standard)[None], state.factors(request.prices)[None, arms]
        if state.columns == 1 and not state.estimates:  # all requests are alike
            return Program(standard.row(row), here, np.ones(1), arms, state.active[arms], state.requests, state.rate)
        recent, usual, weight = state.recent_rows()
        weight = np.append(weight, 1.0 / (state.answered_requests + 1.0))
        factors = np.empty((len(weight), len(arms)))
        factors[:-1], factors[-1] = usual[:, None], here
        rows = standard.row(np.concatenate([recent, row]))
        return Program(rows, factors, weight / weight.sum(), arms, state.active[arms], state.requests, state.rate)

    def predicted(self, fit: Fit, program: Program, coefficients: Array, level: Array) -> tuple[Array, Array]:
        """The mean reward and the mean cost of each arm, as (draw, request, arm): by coefficients as (draw, kind, arm,
        column) and mean costs as (draw, arm)."""
        rows, arms = program.rows, program.arms
        if len(arms) < level.shape[1]:
            coefficients, level = coefficients[:, :, arms], level[:, arms]
            fit = fit._replace(rows=fit.rows[arms], scales=fit.scales[arms], two_point=fit.two_point.of(arms))
        reward = rows @ coefficients[:, REWARD].transpose(0, 2, 1)
        slopes = coefficients[:, LOG_COST, :, 1:]
        sums = (fit.rows[:, :, 1:] @ slopes[..., None])[..., 0] / fit.rows[:, :1, 0]
        middle, square = sums[..., 0], (slopes * sums[..., 1:]).sum(axis=2)
        power = rows[:, 1:] @ slopes.transpose(0, 2, 1)
        power -= (middle + 0.5 * (square - middle * middle) + fit.two_point.excess(slopes))[:, None, :]
        power += program.factors
        cost = level[:, None, :] * np.exp(power.clip(-LARGEST_POWER, LARGEST_POWER))
        possible = reward.clip(SMALLEST_COST, 1.0 - 2.0 * TINY) + TINY * (1.0 + reward / (1.0 + np.abs(reward)))
        return possible, cost.clip(SMALLEST_COST, 1.0) * fit.scales

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
        program = self.program(state, fit.standard, request)
        reward, cost = self.predicted(fit, program, fit.regressions.means[None], fit.mean_cost[None])
        curve = price_curve(reward, cost, program.weight)
        return float(curve.price(program.rate)[0]), bool(curve.least[0] >= program.rate)

    def _for_one(
        self, fit: Fit, state: LinearState, request: Request, coefficients: Array, level: Array
    ) -> tuple[Array, Array]:
        arms, row = np.arange(len(state.pulls)), fit.standard.row(state.row(request, fit.standard)[None])
        factors = state.factors(request.prices)[None]
        program = Program(row, factors, np.ones(1), arms, state.active, state.requests, state.rate)
        reward, cost = self.predicted(fit, program, coefficients, level)
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
