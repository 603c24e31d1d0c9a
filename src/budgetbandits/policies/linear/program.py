"""The price on money of `bts-linear`: how much one more unit of it would earn, by recent requests.

Drawn coefficients say what recent requests, of which a bounded sample is kept, would earn and cost with each arm. The
program of `fluid` for them has a price λ(rate), where

    rate = money not spent yet / requests not answered yet.

How much the requests to come will cost is not sure, and money that is missed is often worth far more than money that
is left over. So the price is the mean of the program's price λ(rate + s Z) over a normal Z, by three points,

    ⅔ λ(rate) + ⅙ (λ(rate − √3 s) + λ(rate + √3 s)),   s² = v (1/T + 1/M),

where v is the variance of what a planned answer costs, T the number of requests to come and M that of the sample.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from budgetbandits.numerics.arrays import ArmMask, Arms, Array
from budgetbandits.numerics.fluid import chosen_entries, price_curve
from budgetbandits.policies.base import Request
from budgetbandits.policies.linear.fit import Fit
from budgetbandits.policies.linear.state import LOG_COST, REWARD, LinearState, Standard
from budgetbandits.policies.paced.statistics import SMALLEST_COST

LARGEST_POWER = 20.0
"""The largest power of e that features and estimates multiply or divide the mean cost of an arm by."""

TINY = 1e-9
"""Weight kept on the differences of clipped rewards, so that they do not tie."""

WIDEST_NOISE = 1.0
"""The largest variance of the logarithm of a cost that the plan for money takes into account."""


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


def program_of(state: LinearState, standard: Standard, request: Request) -> Program:
    """The requests that the price on money is found with, and the one at hand."""
    planned = state.active if request.future_arms is None else state.active | request.future_arms
    (arms,) = planned.nonzero()
    row, local = state.row(request, standard)[None], state.factors(request.prices)[None, arms]
    if state.columns == 1 and not state.estimates:  # all requests are alike
        return Program(standard.row(row), local, np.ones(1), arms, state.active[arms], state.requests, state.rate)
    recent, usual, weight = state.recent_rows()
    weight = np.append(weight, 1.0 / (state.answered_requests + 1.0))
    factors = np.empty((len(weight), len(arms)))
    factors[:-1], factors[-1] = usual[:, None], local
    rows = standard.row(np.concatenate([recent, row]))
    return Program(rows, factors, weight / weight.sum(), arms, state.active[arms], state.requests, state.rate)


def predicted(fit: Fit, program: Program, coefficients: Array, level: Array) -> tuple[Array, Array]:
    """The mean reward and the mean cost of each arm, as (draw, request, arm).

    ``coefficients`` are (draw, kind, arm, column), and ``level``, the arms' mean costs, (draw, arm)."""
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


def money_value(
    fit: Fit, program: Program, reward: Array, cost: Array, chance: Array
) -> tuple[Array, NDArray[np.bool_]]:
    """The worth of one more unit of money on average, and whether the program leaves some over.

    Both are arrays over draws of means, which are given as (draw, request, arm). Where all prices between two are
    right, ``chance``, a random number for each draw, chooses between them."""
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
    deviation = np.sqrt(3.0 * variance * (1.0 / program.requests + sample))
    return 2.0 / 3.0 * price + curve.price(np.stack([rate - deviation, rate + deviation])).sum(axis=0) / 6.0, left_over
