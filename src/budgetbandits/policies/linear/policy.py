"""Thompson sampling for requests with features, and a budget that must last for a number of them.

The mean reward of arm a for a request with the features x is taken to be linear in x, and so is the logarithm of its
mean cost, each with slopes of which a part is common to all arms (`numerics.regression`). Features are standardised by
what was seen; segments are features, too. Before each request the policy draws plausible coefficients of all arms,

    reward of a:  level + slopes · x,
    cost of a:    c exp(v · (x − x̄) − ½ vᵀ C v),

clipped to what is possible. c is a plausible mean cost of the arm, from the law that `bts-paced` has, x̄ and C are the
mean and the covariance of the features of what it has answered: for normal features the mean of the exponential is 1,
so that c stays the mean. Only the slopes v come from logarithms.

Then it finds the price on money: with what recent requests, of which a bounded sample is kept, would earn and cost by
these coefficients, the program of `fluid` for

    rate = money not spent yet / requests not answered yet.

It answers with the arm that the solution names for the request at hand, which is one of the program's.

Without features that is `bts-paced`, but for normal laws of mean rewards in the place of Betas. With ``forget`` each
outcome of an arm makes its earlier ones count less by that share.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from budgetbandits.errors import BadParameter
from budgetbandits.numerics.arrays import ArmMask, Arms, Array
from budgetbandits.numerics.fluid import arms_at_rate
from budgetbandits.numerics.regression import Regressions, regressions
from budgetbandits.policies.base import NO_REQUEST_INFO, NOT_IN_PRINT, NOTHING_KNOWN, Knowledge, Request, RequestPolicy
from budgetbandits.policies.linear.state import (
    COST,
    COST_SQUARED,
    LOG_COST,
    LOG_SQUARED,
    REWARD,
    REWARD_SQUARED,
    LinearState,
    Standard,
)
from budgetbandits.policies.paced.statistics import (
    SMALLEST_COST,
    SQUARES,
    beta_parameters,
    prior_cost_scale,
    spend_weighted_cost,
)

RECENT = 256
"""Recent requests that are kept, of all arms together ..."""

FEWEST_RECENT = 4
"""... and of each at least."""

FORGETTING_MAX, WEIGHT_MAX = 0.5, 1e6

FIRST_MEAN, FIRST_APART = 0.5, 0.5
"""The two rewards that a level begins with are 0 and 1; the two logarithms of costs are as far from their mean."""

SMALLEST_SHARE = 1e-3
"""A cost counts as at least this share of the arm's typical cost where its logarithm is taken."""

LARGEST_POWER = 20.0
"""Of e: no features make an arm cost more or less than that many times its mean."""

TIE = 1e-9
"""Requests that are alike take turns: their costs are varied by this share."""

ENTRIES_AT_ONCE = 2_000_000
"""Of arrays: draws are made in parts."""


class Fit(NamedTuple):
    """What follows from a state: the regressions, and the laws of mean costs."""

    standard: Standard
    regressions: Regressions
    shapes: tuple[Array, Array]
    """The parameters of the Beta of each arm's mean cost ..."""
    mean: Array
    """... the mean of the standardised rows that it was paid for, as (arm, slope) ..."""
    covariance: Array
    """... and their covariance, as (arm, slope, slope)."""


@dataclass(frozen=True)
class LinearThompson(RequestPolicy[LinearState]):
    """Thompson sampling for requests with features, and a budget that must last for a number of them."""

    name = "bts-linear"
    label = "linear BTS"
    reference = NOT_IN_PRINT
    proven = "nothing"
    needs = frozenset({"budget", "horizon"})
    own_scales: ClassVar[bool] = True
    uses_features: ClassVar[bool] = True
    apart: float = 100.0
    shared: float = 10.0
    forget: float = 0.0

    def __post_init__(self) -> None:
        self.between(1e-3, WEIGHT_MAX, apart=self.apart, shared=self.shared)
        if not 0.0 <= self.forget <= FORGETTING_MAX:
            raise BadParameter(f"{self.name}: forget is {self.forget}; use a share from 0 to {FORGETTING_MAX}")

    def start(self, arms: int, known: Knowledge = NOTHING_KNOWN) -> LinearState:
        columns = 1 + known.features
        chosen = self.select_knowledge(known)
        return LinearState(
            active=np.ones(arms, dtype=bool),
            pulls=np.zeros(arms, dtype=np.int64),
            known=Knowledge(chosen.budget, chosen.horizon, features=known.features),
            products=np.zeros((columns, columns, arms)),
            responses=np.zeros((2, columns, arms)),
            totals=np.zeros((5, arms)),
            recent=np.zeros((max(RECENT // arms, FEWEST_RECENT), columns, arms), dtype=np.float32),
        )

    def new_arm_state(self, state: LinearState, known: Knowledge) -> LinearState:
        arm = self.start(1, known)
        arm.recent = arm.recent[: len(state.recent)]
        arm.widen(state.columns)
        return arm

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
        rows, weight = self.program_rows(state, fit.standard, request)
        arms = np.flatnonzero(state.active if request.future_arms is None else state.active | request.future_arms)
        may = state.active[arms]
        at_once = max(1, ENTRIES_AT_ONCE // (len(rows) * len(arms)))
        chosen = [
            self.answers(fit, rows, weight, arms, may, state, rng, min(at_once, draws - begin))
            for begin in range(0, draws, at_once)
        ]
        return np.concatenate(chosen)

    def answers(
        self, fit: Fit, rows: Array, weight: Array, arms: Arms, may: ArmMask, state: LinearState,
        rng: np.random.Generator, draws: int,
    ) -> NDArray[np.int64]:  # fmt: skip
        """Who answers the request of the last row, by this many draws."""
        reward, cost = self.predicted(
            fit, fit.regressions.draw(rng, draws), rng.beta(*fit.shapes, size=(draws, *fit.shapes[0].shape)), rows
        )
        scales = np.broadcast_to(state.scales, state.pulls.shape)
        reward, cost = reward[..., arms], (cost * scales)[..., arms]
        cost *= 1.0 + TIE * rng.random((draws, len(rows), 1))
        mixes = arms_at_rate(reward, cost, weight, state.rate, len(rows) - 1)
        chosen = np.where(rng.random(draws) < mixes.share, mixes.upgrade, mixes.arm)
        if not may.all():
            worth = np.where(may, reward[:, -1] - mixes.price[:, None] * cost[:, -1], -np.inf)
            chosen = np.where(may[chosen], chosen, worth.argmax(axis=1))
        return np.asarray(arms[chosen])

    def program_rows(self, state: LinearState, standard: Standard, request: Request) -> tuple[Array, Array]:
        """The standardised rows of the program's requests, the last of which is this one, and their weights."""
        row = state.row(request, standard)
        if state.columns == 1:  # all are alike
            return row[None], np.ones(1)
        rows, weight = state.recent_rows()
        rows, weight = np.vstack([rows, row]), np.append(weight, 1.0 / (state.answered + 1.0))
        return standard.row(rows), weight / weight.sum()

    def predicted(self, fit: Fit, coefficients: Array, level: Array, rows: Array) -> tuple[Array, Array]:
        """The mean reward and, in units of its scale, the mean cost of each arm, as (draw, row, arm): by coefficients
        as (draw, kind, arm, column) and mean costs as (draw, arm)."""
        reward = np.clip(rows @ coefficients[:, REWARD].transpose(0, 2, 1), SMALLEST_COST, 1.0)
        slopes = coefficients[:, LOG_COST, :, 1:]
        usual = (slopes * fit.mean).sum(axis=2) + 0.5 * np.einsum("nac,acd,nad->na", slopes, fit.covariance, slopes)
        power = rows[:, 1:] @ slopes.transpose(0, 2, 1) - usual[:, None, :]
        cost = level[:, None, :] * np.exp(np.clip(power, -LARGEST_POWER, LARGEST_POWER))
        return reward, np.clip(cost, SMALLEST_COST, 1.0)

    def fit(self, state: LinearState) -> Fit:
        """The regressions and the laws of mean costs that follow from a state."""
        standard, count = state.standard(), state.counts
        mean, spread = standard
        products, responses = np.moveaxis(state.products, 2, 0), np.moveaxis(state.responses, 2, 1)
        sums = products[:, 0]
        centred = products - sums[:, :, None] * mean - mean[:, None] * sums[:, None, :]
        centred = (centred + count[:, None, None] * np.outer(mean, mean)) / np.outer(spread, spread)
        told = (responses - responses[:, :, :1] * mean) / spread
        logs = responses[LOG_COST, :, 0]
        usual = np.where(count > 0.0, logs / np.maximum(count, 1e-300), logs.sum() / max(float(count.sum()), 1.0))
        level = np.stack([np.full(len(count), FIRST_MEAN), usual])
        found = regressions(
            centred, told, state.totals[[REWARD_SQUARED, LOG_SQUARED]], level, FIRST_APART, self.apart, self.shared
        )
        weight = (count + 2.0)[:, None]
        middle = centred[:, 0, 1:] / weight
        square = (centred[:, 1:, 1:] + 2.0 * np.diag(np.isfinite(spread[1:]))) / weight[:, :, None]
        covariance = square - middle[:, :, None] * middle[:, None, :]
        total, squares = state.totals[COST], state.totals[COST_SQUARED]
        size = prior_cost_scale(total, squares, spend_weighted_cost(total.sum(), squares.sum()))
        first = float(SQUARES[1, 0, 0]) / 2.0 * size * size
        shapes = beta_parameters(count, total, squares, 2.0, 0.5 * size, first)
        return Fit(standard, found, shapes, middle, covariance)

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
        row = state.row(request, state.standard())
        state.pulls[arm] += 1
        totals = state.totals[:, arm]
        typical = float(spend_weighted_cost(totals[COST] + cost, totals[COST_SQUARED] + cost * cost))
        log = float(np.log(max(cost, SMALLEST_SHARE * typical, SMALLEST_COST)))
        if self.forget > 0.0:
            state.products[..., arm] *= 1.0 - self.forget
            state.responses[..., arm] *= 1.0 - self.forget
            totals[REWARD_SQUARED:] *= 1.0 - self.forget
        state.products[..., arm] += np.outer(row, row)
        state.responses[REWARD, :, arm] += reward * row
        state.responses[LOG_COST, :, arm] += log * row
        totals += (cost, reward * reward, log * log, cost, cost * cost)
        slot = int(state.pulls[arm] - 1) % len(state.recent)
        row[0] = state.answered
        state.recent[slot, :, arm] = row

    def add_history(self, state: LinearState, arm: int, pulls: int, reward: float, cost: float) -> None:
        if pulls == 0:
            return
        row = state.row(NO_REQUEST_INFO, state.standard())
        log = float(np.log(max(cost / pulls, SMALLEST_COST)))
        state.pulls[arm] += pulls
        state.past_pulls += pulls
        state.products[..., arm] += pulls * np.outer(row, row)
        state.responses[REWARD, :, arm] += reward * row
        state.responses[LOG_COST, :, arm] += pulls * log * row
        # squares of numbers in [0, 1] are at most the numbers: the largest variance that the sums allow
        state.totals[REWARD_SQUARED:, arm] += (reward, pulls * log * log, cost, cost)
