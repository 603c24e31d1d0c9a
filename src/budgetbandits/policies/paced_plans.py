"""Who answers a request by `bts-paced`, for means that were drawn: once, or many times over."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from budgetbandits.arrays import Array
from budgetbandits.fluid import at_price, best_mix
from budgetbandits.fluid_draws import arms_at_rate
from budgetbandits.policies.worth import in_vain, too_few

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
    requests      how many of the segment are still to come, if it matters what a choice for them is worth (`worth.py`)
    """

    arms: Arms
    reward: Array
    cost: Array
    weight: Array
    may: NDArray[np.bool_]
    segment: int
    shapes: tuple[Array, Array]
    scales: Array
    requests: float | None

    @property
    def worth(self) -> Array:
        """The rewards of the request's segment; −∞ of arms that may not answer it."""
        return np.where(self.may, self.reward[..., self.segment, :], -np.inf)


def named(drawn: Drawn, rate: float, rng: np.random.Generator) -> int:
    """The number of the arm that answers, of one draw."""
    reward, cost, weight, segment = drawn.reward.tolist(), drawn.cost.tolist(), drawn.weight.tolist(), drawn.segment
    mix = best_mix(reward, cost, weight, rate)
    arm = base = mix.arms[segment]
    mixes = segment == mix.mixed and mix.share > 0.0
    if mixes and rng.random() < mix.share:
        left_out = drawn.requests is not None and too_few(drawn.requests * mix.share, mix.price, mix.price_if_short)
        arm = base if left_out else mix.upgrade
    if not drawn.may[arm]:
        arm = at_price(drawn.worth.tolist(), cost[segment], mix.price)
    if drawn.requests is not None and not (mixes and arm == base):
        [arm] = unless_in_vain(drawn, np.array([arm]), np.array([mix.price]), drawn.requests)
    return int(drawn.arms[arm])


def named_at_once(drawn: Drawn, rate: float, lot: Array) -> Arms:
    """The same of many draws; by numbers in [0, 1), one for each, two arms that are mixed take turns."""
    mixes = arms_at_rate(drawn.reward, drawn.cost, drawn.weight, rate, drawn.segment)
    share, price = mixes.share, mixes.price
    if drawn.requests is not None:
        share = np.where(too_few(drawn.requests * share, price, mixes.price_if_short), 0.0, share)
    chosen = np.where(lot < share, mixes.upgrade, mixes.arm)
    if not drawn.may.all():
        chosen = np.where(drawn.may[chosen], chosen, most_worth(drawn, drawn.cost[:, drawn.segment], price))
    if drawn.requests is not None:
        by_mix = (mixes.share > 0.0) & (chosen == mixes.arm)
        chosen = np.where(by_mix, chosen, unless_in_vain(drawn, chosen, price, drawn.requests))
    return np.asarray(drawn.arms[chosen])


def most_worth(drawn: Drawn, cost: Array, price: Array) -> Arms:
    """For each draw, the place of the arm that is worth most at these costs and this price on money, of those that may
    answer; the costs of others may be unknown."""
    return np.asarray(np.where(drawn.may, drawn.worth - price[:, None] * cost, -np.inf).argmax(axis=1))


def unless_in_vain(drawn: Drawn, chosen: Arms, price: Array, requests: float) -> Arms:
    """The places of the arms chosen, an entry for each draw, or of the best at the draw's price on money instead of a
    cheaper one that is not worth a trial; what the arms are worth is by the means of their posteriors."""
    a, b = (each[:, drawn.segment] for each in drawn.shapes)
    mean = a / (a + b)
    variance = mean * (1.0 - mean) / (a + b + 1.0)
    cost, unsure = mean[1] * drawn.scales, variance[1] * drawn.scales * drawn.scales
    worth = np.where(drawn.may, mean[0] - price[:, None] * cost, -np.inf)
    best, rows = worth.argmax(axis=1), np.arange(len(chosen))
    loss = worth[rows, best] - worth[rows, chosen]
    spread = variance[0][chosen] + variance[0][best] + price * price * (unsure[chosen] + unsure[best])
    return np.where((cost[chosen] < cost[best]) & in_vain(loss, spread, requests), best, chosen)
