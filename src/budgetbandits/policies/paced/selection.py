"""Who answers a request by `bts-paced`, for means that were drawn: once, or many times over."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from budgetbandits.numerics.arrays import Array
from budgetbandits.numerics.fluid import at_price, best_mix
from budgetbandits.numerics.fluid_draws import arms_at_rate
from budgetbandits.policies.paced.exploration import exploration_is_wasted, too_few_upgrades

Arms = NDArray[np.int64]


class Drawn(NamedTuple):
    """What was drawn for a request.

    arms          the numbers of those planned for
    reward, cost  their plausible means, as (…, segment, arm)
    weight        how often each segment comes
    may           which of the arms may answer this request
    segment       what it is of
    shapes        the parameters of the Betas that the means are from, as (kind, segment, arm)
    scales        what a cost of 1 is for each arm
    tried         of which arms the segment has an outcome
    requests      how many are still to come, if it matters what a choice for them is worth (`worth.py`)
    """

    arms: Arms
    reward: Array
    cost: Array
    weight: Array
    may: NDArray[np.bool_]
    segment: int
    shapes: tuple[Array, Array]
    scales: Array
    tried: NDArray[np.bool_]
    requests: float | None

    @property
    def worth(self) -> Array:
        """The rewards of the request's segment; −∞ of arms that may not answer it."""
        return np.where(self.may, self.reward[..., self.segment, :], -np.inf)

    def usual(self, arm: Any) -> Any:
        """The mean cost of an arm for the request, or of several, by their posteriors."""
        a, b = (each[1, self.segment][arm] for each in self.shapes)
        return a / (a + b) * self.scales[arm]


def named(drawn: Drawn, rate: float, rng: np.random.Generator) -> int:
    """The number of the arm that answers, of one draw."""
    reward, cost, weight, segment = drawn.reward.tolist(), drawn.cost.tolist(), drawn.weight.tolist(), drawn.segment
    mix = best_mix(reward, cost, weight, rate)
    arm = mix.arms[segment]
    if segment == mix.mixed and mix.share > 0.0 and rng.random() < mix.share:
        left_out = False
        if drawn.requests is not None:
            extra, usual = cost[segment][mix.upgrade] - cost[segment][arm], drawn.usual(mix.upgrade) - drawn.usual(arm)
            upgrades = drawn.requests * weight[segment] * mix.share * extra / max(extra, usual)
            left_out = too_few_upgrades(upgrades, mix.price, mix.price_if_short)
        arm = arm if left_out else mix.upgrade
    if not drawn.may[arm]:
        arm = at_price(drawn.worth.tolist(), cost[segment], mix.price)
    if drawn.requests is not None:
        arm = instead(drawn, rate, drawn.requests)[arm]
    return int(drawn.arms[arm])


def select_many(drawn: Drawn, rate: float, lot: Array) -> Arms:
    """The same of many draws; by numbers in [0, 1), one for each, two arms that are mixed take turns."""
    mixes = arms_at_rate(drawn.reward, drawn.cost, drawn.weight, rate, drawn.segment)
    share, price = mixes.share, mixes.price
    if drawn.requests is not None:
        rows, here = np.arange(len(share)), drawn.cost[:, drawn.segment]
        extra = np.where(share > 0.0, here[rows, mixes.upgrade] - here[rows, mixes.arm], 1.0)
        usual = drawn.usual(mixes.upgrade) - drawn.usual(mixes.arm)
        upgrades = drawn.requests * drawn.weight[drawn.segment] * share * extra / np.maximum(extra, usual)
        share = np.where(too_few_upgrades(upgrades, price, mixes.price_if_short), 0.0, share)
    chosen = np.where(lot < share, mixes.upgrade, mixes.arm)
    if not drawn.may.all():
        chosen = np.where(drawn.may[chosen], chosen, most_worth(drawn, drawn.cost[:, drawn.segment], price))
    if drawn.requests is not None:
        chosen = instead(drawn, rate, drawn.requests)[chosen]
    return np.asarray(drawn.arms[chosen])


def most_worth(drawn: Drawn, cost: Array, price: Array) -> Arms:
    """For each draw, the place of the arm that is worth most at these costs and this price on money, of those that may
    answer; the costs of others may be unknown."""
    return np.asarray(np.where(drawn.may, drawn.worth - price[:, None] * cost, -np.inf).argmax(axis=1))


def instead(drawn: Drawn, rate: float, requests: float) -> Arms:
    """For each place its own, or that of the best of the better known arms if it is not worth a trial: by the means of
    the posteriors and the price on money of the program for them."""
    a, b = drawn.shapes
    means = a / (a + b)
    costs = means[1] * drawn.scales
    price = best_mix(means[0].tolist(), costs.tolist(), drawn.weight.tolist(), rate).price
    mean, cost, certainty = means[:, drawn.segment], costs[drawn.segment], (a + b)[:, drawn.segment]
    variance = mean * (1.0 - mean) / (certainty + 1.0)
    unsure = variance[0] + price * price * (variance[1] * drawn.scales * drawn.scales)
    worth, places = mean[0] - price * cost, np.arange(len(cost))
    known = drawn.may & (unsure < unsure[:, None])
    if price == 0.0:
        known &= cost > cost[:, None]
    best = np.where(known, worth, -np.inf).argmax(axis=1)
    loss = np.maximum(worth[best] - worth, 0.0)
    coming = requests * max(float(drawn.weight[drawn.segment]), 1.0 / len(drawn.weight))
    vain = exploration_is_wasted(loss, mean[0], certainty[0], variance[0], unsure + unsure[best], coming)
    return np.where(vain & known[places, best] & (drawn.tried | (cost > cost[best])), best, places)
