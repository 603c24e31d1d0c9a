"""The program of two scarce resources, money and requests; policies and the oracle share it.

A request of segment s, which comes with probability w_s, is answered by arm a with probability x_sa, brings r_sa and
costs c_sa on average. With ``rate`` units of money for each request that comes, the best mix is

    max Σ w_s x_sa r_sa   subject to   Σ w_s x_sa c_sa ≤ rate   and   Σ_a x_sa = 1 for every segment.

One price λ on money solves it: every segment takes the arm with the largest r − λc. It is found from above. At the
largest price worth paying, λ = ρ*, the ratio of what all segments bring to what they cost is best. Then the price falls
from one break to the next, where one segment changes to an arm that brings and costs more, until the money for a
request is used up. At the last break that segment mixes two arms, and all others use one.

Where not even the arms at ρ* can be paid for every request, money is the only scarce resource. The best is to answer
with them until it is gone; with one segment, that is pulling the arm with the best ratio, as in the paper.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

Rows = Sequence[Sequence[float]]
"""A number for each arm, in a row for each segment."""


class Mix(NamedTuple):
    """Who answers: ``arms[s]`` for segment s, but ``upgrade`` with probability ``share`` in segment ``mixed``."""

    arms: list[int]
    mixed: int
    upgrade: int
    share: float
    price: float
    """What one more unit of money brings; 0 where money is not scarce."""
    price_if_short: float
    """What one more unit would bring if there were too little for ``arms``: the price of the step before."""

    def spend(self, cost: Rows, weight: Sequence[float]) -> float:
        """The mean of ``cost`` over requests; with rewards in its place, the mean reward."""
        total = sum(w * row[arm] for w, row, arm in zip(weight, cost, self.arms, strict=True))
        more = cost[self.mixed][self.upgrade] - cost[self.mixed][self.arms[self.mixed]]
        return total + weight[self.mixed] * self.share * more


def best_mix(reward: Rows, cost: Rows, weight: Sequence[float], rate: float) -> Mix:
    """The solution of the program. Costs are positive; an arm that cannot be chosen has the reward −∞.

    >>> mix = best_mix([[0.2, 0.8, 0.9]], [[0.1, 0.5, 1.0]], [1.0], rate=0.3)
    >>> mix.arms, mix.upgrade, round(mix.share, 3), round(mix.price, 3)
    ([0], 1, 0.5, 1.5)
    """
    if len(reward) == 1:
        arm, upgrade, share, price, before = mix_of_one(reward[0], cost[0], rate)
        return Mix([arm], 0, upgrade, share, price, before)
    before, arms = _best_ratio(reward, cost, weight)
    spent = sum(w * row[arm] for w, row, arm in zip(weight, cost, arms, strict=True))
    if spent >= rate:
        return Mix(arms, 0, arms[0], 0.0, before, before)
    ahead = [next_break(reward[s], cost[s], arm) for s, arm in enumerate(arms)]
    while True:
        segment = max(range(len(ahead)), key=lambda s: ahead[s][0])
        price, arm = ahead[segment]
        if price <= 0.0:
            return Mix(arms, 0, arms[0], 0.0, 0.0, before)
        more = weight[segment] * (cost[segment][arm] - cost[segment][arms[segment]])
        if spent + more > rate:
            return Mix(arms, segment, arm, (rate - spent) / more, price, before)
        before, spent = price, spent + more
        arms[segment] = arm
        ahead[segment] = next_break(reward[segment], cost[segment], arm)


def mix_of_one(reward: Sequence[float], cost: Sequence[float], rate: float) -> tuple[int, int, float, float, float]:
    """The same for one segment: its arm, the arm that takes its place with some probability, that probability, and both
    prices. Plain loops over any sequence of numbers, so that engines compile this very function."""
    arm = 0
    for other in range(1, len(cost)):
        if reward[other] * cost[arm] > reward[arm] * cost[other]:
            arm = other
    before, spent = reward[arm] / cost[arm], cost[arm]
    if spent >= rate:
        return arm, arm, 0.0, before, before
    while True:
        price, upgrade = next_break(reward, cost, arm)
        if price <= 0.0:
            return arm, arm, 0.0, 0.0, before
        more = cost[upgrade] - cost[arm]
        if spent + more > rate:
            return arm, upgrade, (rate - spent) / more, price, before
        before, spent = price, spent + more
        arm = upgrade


def at_price(reward: Sequence[float], cost: Sequence[float], price: float) -> int:
    """The arm with the largest reward less its cost at this price; the first of several. Engines compile it, too."""
    best, top = 0, -math.inf
    for arm in range(len(reward)):
        value = reward[arm] - price * cost[arm]
        if value > top:
            best, top = arm, value
    return best


def _best_ratio(reward: Rows, cost: Rows, weight: Sequence[float]) -> tuple[float, list[int]]:
    """ρ* and the arms that reach it: Newton's method on Σ w max (r − ρc) = 0, which rises to it in a few steps."""
    ratio = -1.0
    better = 0.0
    while better > ratio:
        ratio = better
        arms = [at_price(rewards, costs, ratio) for rewards, costs in zip(reward, cost, strict=True)]
        brings = sum(w * row[arm] for w, row, arm in zip(weight, reward, arms, strict=True))
        better = brings / sum(w * row[arm] for w, row, arm in zip(weight, cost, arms, strict=True))
    return ratio, arms


def next_break(reward: Sequence[float], cost: Sequence[float], arm: int) -> tuple[float, int]:
    """The highest price at which a dearer arm is worth its extra cost, and that arm; price 0 if there is none."""
    price, best = 0.0, arm
    for other in range(len(reward)):
        if cost[other] > cost[arm] and reward[other] > reward[arm]:
            slope = (reward[other] - reward[arm]) / (cost[other] - cost[arm])
            if slope > price:
                price, best = slope, other
    return price, best
