"""Which arm answers a request by `bts-paced`, for means that were drawn: once (`select`), or for many draws at once.

Each segment learns on its own, so what Thompson sampling pays to find out, it pays in each of them.

Trials. By the means of the posteriors, and at the price on money of the program for them, an arm is worth x less than
the best of those that are better known. To know the truth would help only where its mean reward, drawn from
Beta(a, b) with mean m, is at least m + x, and then about

    σ φ(z) / (1 + z²),   z² = 2 (a + b) kl(m, m + x),

for each request of the segment that is to come, as often as it has come or as the average segment does. σ² is the
variance of the difference, of which the reward's is a part, and z² is made smaller by as much. (By quadrature, that is
0.9 to 5 times the true gain.) No number of trials in the segment can gain more. Where all requests to come make
less of it than x, the price of one trial, there is none; unless the arm is cheaper and the segment has no outcome of it
yet, or it is more expensive and money is left over in any case.

The last upgrades. Money is paid in lumps. A plan that has fewer than one upgrade left cannot pay for it, and one that
has few may be short after it, because costs vary; then money is missed at the price of the step before, λ⁺, and not at
the λ of the upgrade. So an upgrade is left out where the plan has money for fewer than 2 (1 − λ/λ⁺) of them, each at
what it is drawn to cost, or at what it does on average if that is more: where money that is missed costs no more than
money that is left over, none is; where it costs much more, all below two.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from budgetbandits.numerics.arrays import ArmMask, Arms, Array
from budgetbandits.numerics.compilation import compiled
from budgetbandits.numerics.fluid import arms_at_rate, best_mix

UPGRADES_KEPT = 2.0
"""Upgrades for which a plan must have money: one, and as much again for costs that vary."""

LARGEST_MEAN = 1.0 - 1e-12
"""The largest mean reward, so that its logarithm is a number."""


@compiled
def exploration_is_wasted(loss: Any, mean: Any, certainty: Any, variance: Any, spread: Any, requests: Any) -> Any:
    """Whether a trial of an arm that is worth so much less than another cannot pay: the mean, the sum of the parameters
    and the variance of the Beta of its mean reward, the variance of the difference, and how many requests are to come.
    Numbers or arrays, as below."""
    needed = np.minimum(mean + loss, LARGEST_MEAN)
    apart = mean * np.log(mean / needed) + (1.0 - mean) * np.log((1.0 - mean) / (1.0 - needed))
    squared = 2.0 * certainty * apart * (variance / spread)
    return requests * np.sqrt(spread / (2.0 * math.pi)) * np.exp(-0.5 * squared) / (1.0 + squared) < loss


@compiled
def too_few_upgrades(upgrades: Any, price: Any, price_if_short: Any) -> Any:
    """Whether a plan has so few upgrades left that none is worth it."""
    return upgrades * price_if_short < UPGRADES_KEPT * (price_if_short - price)


class Candidates(NamedTuple):
    """The arms that may answer a request, in plain sequences: lists here, arrays in the engine.

    who       the number of the arm at each place of the program
    offered   by an arm's number: whether it may answer the request
    laws      by number: the parameters of the Betas of its mean reward and of its mean cost, for the request's segment
    scales    by number: what a cost of 1 is
    outcomes  by number: how many outcomes the segment has of it
    """

    who: Any
    offered: Any
    laws: Any
    scales: Any
    outcomes: Any


REWARDS, COSTS = 0, 2
"""Places of the parameters of the two Betas in a law."""


@compiled
def beta_mean(law: Any, place: int) -> Any:
    """The mean of the Beta at this place of a law."""
    return law[place] / (law[place] + law[place + 1])


@compiled
def beta_variance(law: Any, place: int) -> Any:
    """The variance of the Beta at this place of a law."""
    mean = beta_mean(law, place)
    return mean * (1.0 - mean) / (law[place] + law[place + 1] + 1.0)


@compiled
def worth_variance(law: Any, scale: Any, price: Any) -> Any:
    """The variance of what an arm is worth at this price on money."""
    return beta_variance(law, REWARDS) + price * price * (beta_variance(law, COSTS) * scale * scale)


@compiled
def place_in_mix(
    mix: Any, arm: Any, segment: Any, weight: Any, reward: Any, cost: Any, candidates: Any, requests: Any, rng: Any
) -> Any:
    """The place of the arm that answers by the mix; if it may not, of the one that is worth most at the price on money.
    Reward and cost are the drawn means of the request's segment, ``requests`` as in `DrawnMeans`, 0 for None.

    Like `substitute_place`, plain loops over numbers: engines compile these very functions."""
    who, offered = candidates.who, candidates.offered
    place = arm
    if segment == mix.mixed and mix.share > 0.0 and rng.random() < mix.share:
        place = mix.upgrade
        if requests > 0.0:
            extra, mine, other = cost[place] - cost[arm], who[place], who[arm]
            usual = beta_mean(candidates.laws[mine], COSTS) * candidates.scales[mine]
            usual -= beta_mean(candidates.laws[other], COSTS) * candidates.scales[other]
            upgrades = requests * weight * mix.share * extra / max(extra, usual)
            if too_few_upgrades(upgrades, mix.price, mix.price_if_short):
                place = arm
    if not offered[who[place]]:
        place, top = 0, -math.inf
        for other in range(len(cost)):
            value = reward[other] - mix.price * cost[other]
            if offered[who[other]] and value > top:
                place, top = other, value
    return place


@compiled
def substitute_place(place: Any, price: Any, reward: Any, cost: Any, candidates: Any, requests: Any) -> Any:
    """This place, or that of the best of the better known arms if it is not worth a trial. Reward, cost and price are
    those of the program for the means of the posteriors, ``requests`` how many of the segment are to come."""
    who, laws, scales = candidates.who, candidates.laws, candidates.scales
    law = laws[who[place]]
    unsure = worth_variance(law, scales[who[place]], price)
    best, top, spread = place, -math.inf, 0.0
    for other in range(len(cost)):
        arm = who[other]
        variance = worth_variance(laws[arm], scales[arm], price)
        if candidates.offered[arm] and variance < unsure and (price > 0.0 or cost[other] > cost[place]):
            value = reward[other] - price * cost[other]
            if value > top:
                best, top, spread = other, value, variance
    if best == place or not (candidates.outcomes[who[place]] > 0.0 or cost[place] > cost[best]):
        return place
    loss = max(top - (reward[place] - price * cost[place]), 0.0)
    certainty, variance = law[REWARDS] + law[REWARDS + 1], beta_variance(law, REWARDS)
    wasted = exploration_is_wasted(loss, reward[place], certainty, variance, unsure + spread, requests)
    return best if wasted else place


class DrawnMeans(NamedTuple):
    """Means drawn for a request, and what they were drawn from.

    arms          the numbers of those planned for
    reward, cost  their plausible means, as (…, segment, arm)
    weight        how often each segment comes
    may           which of the arms may answer this request
    segment       index of the request's segment
    shapes        the parameters of the Betas that the means are from, as (kind, segment, arm)
    scales        what a cost of 1 is for each arm
    tried         of which arms the segment has an outcome
    requests      how many are still to come, if it matters what a choice for them is worth (`selection`)
    """

    arms: Arms
    reward: Array
    cost: Array
    weight: Array
    may: ArmMask
    segment: int
    shapes: tuple[Array, Array]
    scales: Array
    tried: ArmMask
    requests: float | None

    @property
    def worth(self) -> Array:
        """The rewards of the request's segment; −∞ of arms that may not answer it."""
        return np.where(self.may, self.reward[..., self.segment, :], -np.inf)

    def usual(self, arm: Any) -> Any:
        """The mean cost of an arm for the request, or of several, by their posteriors."""
        a, b = (shape[1, self.segment][arm] for shape in self.shapes)
        return a / (a + b) * self.scales[arm]


def select(drawn: DrawnMeans, rate: float, rng: np.random.Generator) -> int:
    """The number of the arm that answers, of one draw."""
    segment, weight, requests = drawn.segment, drawn.weight.tolist(), drawn.requests
    reward, cost = drawn.reward.tolist(), drawn.cost.tolist()
    mix, candidates = best_mix(reward, cost, weight, rate), candidates_of(drawn)
    place = place_in_mix(
        mix,
        mix.arms[segment],
        segment,
        weight[segment],
        reward[segment],
        cost[segment],
        candidates,
        requests or 0.0,
        rng,
    )
    if requests is not None:
        place = substitute_places(drawn, rate, candidates, [place])[0]
    return int(drawn.arms[place])


def select_many(drawn: DrawnMeans, rate: float, lot: Array) -> Arms:
    """The numbers of the arms that answer, of many draws; by numbers in [0, 1), one for each, two arms that are mixed
    take turns."""
    mixes, requests = arms_at_rate(drawn.reward, drawn.cost, drawn.weight, rate, drawn.segment), drawn.requests
    share, price = mixes.share, mixes.price
    if requests is not None:
        rows, costs = np.arange(len(share)), drawn.cost[:, drawn.segment]
        extra = np.where(share > 0.0, costs[rows, mixes.upgrade] - costs[rows, mixes.arm], 1.0)
        usual = drawn.usual(mixes.upgrade) - drawn.usual(mixes.arm)
        upgrades = requests * drawn.weight[drawn.segment] * share * extra / np.maximum(extra, usual)
        share = np.where(too_few_upgrades(upgrades, price, mixes.price_if_short), 0.0, share)
    chosen = np.where(lot < share, mixes.upgrade, mixes.arm)
    if not drawn.may.all():
        chosen = np.where(drawn.may[chosen], chosen, most_worth(drawn, drawn.cost[:, drawn.segment], price))
    if requests is not None:
        places, draws = np.unique(chosen, return_inverse=True)
        chosen = np.array(substitute_places(drawn, rate, candidates_of(drawn), places.tolist()))[draws]
    return np.asarray(drawn.arms[chosen])


def most_worth(drawn: DrawnMeans, cost: Array, price: Array) -> Arms:
    """The place of the arm that is worth most in each draw, at these costs and this price on money, of those that may
    answer; the costs of others may be unknown."""
    return np.asarray(np.where(drawn.may, drawn.worth - price[:, None] * cost, -np.inf).argmax(axis=1))


def candidates_of(drawn: DrawnMeans) -> Candidates:
    """The arms that may answer the request, with what is known of them if a trial must pay."""
    places, offered = range(len(drawn.arms)), drawn.may.tolist()
    if drawn.requests is None:
        return Candidates(places, offered, (), (), ())
    (a, b), segment = drawn.shapes, drawn.segment
    laws = np.stack([a[0, segment], b[0, segment], a[1, segment], b[1, segment]], axis=1).tolist()
    return Candidates(places, offered, laws, drawn.scales.tolist(), drawn.tried.tolist())


def substitute_places(drawn: DrawnMeans, rate: float, candidates: Candidates, places: Sequence[int]) -> list[int]:
    """These places, or those of better known arms in place of them (`substitute_place`), by the means of posteriors."""
    assert drawn.requests is not None
    (a, b), segment, weight = drawn.shapes, drawn.segment, drawn.weight.tolist()
    means = a / (a + b)
    reward, cost = means[0].tolist(), (means[1] * drawn.scales).tolist()
    price = best_mix(reward, cost, weight, rate).price
    coming = drawn.requests * max(weight[segment], 1.0 / len(weight))
    return [substitute_place(place, price, reward[segment], cost[segment], candidates, coming) for place in places]
