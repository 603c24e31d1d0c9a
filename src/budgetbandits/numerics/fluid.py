"""The program of two scarce resources, money and requests; policies and the oracle share it.

A request of segment s, which comes with probability w_s, is answered by arm a with probability x_sa, earns r_sa and
costs c_sa on average. With ``rate`` units of money for each request that comes, the best mix is

    max Σ w_s x_sa r_sa   subject to   Σ w_s x_sa c_sa ≤ rate   and   Σ_a x_sa = 1 for every segment.

One price λ on money solves it: every segment takes the arm with the largest r − λc. It is found from above. At the
largest price worth paying, λ = ρ*, the ratio of what all segments earn to what they cost is best. Then the price falls
from one break to the next, where one segment changes to an arm that earns and costs more, until the money for a
request is used up. At the last break that segment mixes two arms, and all others use one.

Where not even the arms at ρ* can be paid for every request, money is the only scarce resource. The best is to answer
with them until it is used up; with one segment, that is pulling the arm with the best ratio, as in the paper.

`best_mix` solves the program for one set of means, in plain loops that engines compile, too. `arms_at_rate` solves it
for many draws at once, in another order: in each segment the arms beyond that of the best ratio form a chain in which
each earns and costs more than the one before, and the price at which a step of a chain pays falls along it. So all
steps of all chains, in the order of their prices, are what a falling price takes, until the money is used up.
"""

from __future__ import annotations

import math
from collections.abc import MutableSequence, Sequence
from typing import NamedTuple

import numpy as np

from budgetbandits.numerics.arrays import Arms, Array
from budgetbandits.numerics.compilation import compiled

Rows = Sequence[Sequence[float]]
"""A table of numbers: one row for each segment, one column for each arm."""


class Mix(NamedTuple):
    """Which arm answers: ``arms[s]`` for segment s, but ``upgrade`` with probability ``share`` in segment ``mixed``."""

    arms: list[int]
    mixed: int
    upgrade: int
    share: float
    price: float
    """The price on money: the reward of one more unit; 0 where money is not scarce."""
    price_if_short: float
    """The price on money if there were too little of it for ``arms``: that of the step before."""

    def spend(self, cost: Rows, weight: Sequence[float]) -> float:
        """The mean of ``cost`` over requests; with rewards in its place, the mean reward."""
        total = sum(w * row[arm] for w, row, arm in zip(weight, cost, self.arms, strict=True))
        more = cost[self.mixed][self.upgrade] - cost[self.mixed][self.arms[self.mixed]]
        return total + weight[self.mixed] * self.share * more


def best_mix(reward: Rows, cost: Rows, weight: Sequence[float], rate: float) -> Mix:
    """The best mix, by the linear program. Costs are positive; an arm that cannot be chosen has the reward −∞.

    >>> mix = best_mix([[0.2, 0.8, 0.9]], [[0.1, 0.5, 1.0]], [1.0], rate=0.3)
    >>> mix.arms, mix.upgrade, round(mix.share, 3), round(mix.price, 3)
    ([0], 1, 0.5, 1.5)
    """
    arms, break_arms = [0] * len(reward), [0] * len(reward)
    return Mix(arms, *solve(reward, cost, weight, rate, arms, [0.0] * len(reward), break_arms))


@compiled
def solve(
    reward: Rows,
    cost: Rows,
    weight: Sequence[float],
    rate: float,
    arms: MutableSequence[int],
    break_prices: MutableSequence[float],
    break_arms: MutableSequence[int],
) -> tuple[int, int, float, float, float]:
    """Write each segment's arm into ``arms`` and return the rest of a `Mix`; the last two arguments are workspace.

    Plain loops over any sequences of numbers, so that engines compile this very function.
    """
    if len(reward) == 1:
        arms[0], upgrade, share, price, before = mix_of_one(reward[0], cost[0], rate)
        return 0, upgrade, share, price, before
    # ρ* and the arms that reach it: Newton's method on Σ w max (r − ρc) = 0, which rises to it in a few steps
    before, better, spent = -1.0, 0.0, 0.0
    while better > before:
        before = better
        earned, spent = 0.0, 0.0
        for segment in range(len(reward)):
            arm = at_price(reward[segment], cost[segment], before)
            arms[segment] = arm
            earned += weight[segment] * reward[segment][arm]
            spent += weight[segment] * cost[segment][arm]
        better = earned / spent
    if spent >= rate:
        return 0, arms[0], 0.0, before, before
    for segment in range(len(reward)):
        break_prices[segment], break_arms[segment] = next_break(reward[segment], cost[segment], arms[segment])
    while True:
        segment = 0
        for other in range(1, len(reward)):
            if break_prices[other] > break_prices[segment]:
                segment = other
        price, arm = break_prices[segment], break_arms[segment]
        if price <= 0.0:
            return 0, arms[0], 0.0, 0.0, before
        more = weight[segment] * (cost[segment][arm] - cost[segment][arms[segment]])
        if spent + more > rate:
            return segment, arm, (rate - spent) / more, price, before
        before, spent = price, spent + more
        arms[segment] = arm
        break_prices[segment], break_arms[segment] = next_break(reward[segment], cost[segment], arm)


@compiled
def mix_of_one(reward: Sequence[float], cost: Sequence[float], rate: float) -> tuple[int, int, float, float, float]:
    """The best mix for one segment: its arm, the arm that replaces it with some probability, that probability, and both
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


@compiled
def at_price(reward: Sequence[float], cost: Sequence[float], price: float) -> int:
    """The arm with the largest reward − price × cost, the first of several. Engines compile it, too."""
    best, top = 0, -math.inf
    for arm in range(len(reward)):
        value = reward[arm] - price * cost[arm]
        if value > top:
            best, top = arm, value
    return best


@compiled
def next_break(reward: Sequence[float], cost: Sequence[float], arm: int) -> tuple[float, int]:
    """The highest price at which a more expensive arm is worth its extra cost, and that arm; price 0 if none is."""
    price, best = 0.0, arm
    for other in range(len(reward)):
        if cost[other] > cost[arm] and reward[other] > reward[arm]:
            slope = (reward[other] - reward[arm]) / (cost[other] - cost[arm])
            if slope > price:
                price, best = slope, other
    return price, best


NEWTON_STEPS = 100
"""Limit on the steps of Newton's method, which needs only a few."""

BISECTIONS, SEARCH_DEVIATIONS = 30, 10.0
"""Steps of the bisection for a price, and its range beyond the outermost prices in standard deviations."""


class Mixes(NamedTuple):
    """The best mixes of many draws: the arm, the one that replaces it with some probability, that probability, the
    price on money, and the price if there were too little money for the first arm alone."""

    arm: Arms
    upgrade: Arms
    share: Array
    price: Array
    price_if_short: Array


def arms_at_rate(reward: Array, cost: Array, weight: Array, rate: float, segment: int) -> Mixes:
    """The arms that answer a request of this segment, for each draw of the means, which are (draw, segment, arm).

    >>> reward, cost = np.array([[[0.2, 0.8, 0.9]]] * 2), np.array([[[0.1, 0.5, 1.0]]] * 2)
    >>> mixes = arms_at_rate(reward, cost, np.array([1.0]), 0.3, 0)
    >>> mixes.arm.tolist(), mixes.upgrade.tolist(), mixes.share.round(3).tolist(), mixes.price.round(3).tolist()
    ([0, 0], [1, 1], [0.5, 0.5], [1.5, 1.5])
    """
    draws, segments, arms = reward.shape
    ratio, first = _best_ratio(reward, cost, weight)
    spent = (weight * chosen_entries(cost, first)).sum(axis=1)
    if arms == 1:
        only = first[:, segment]
        return Mixes(only, only, np.zeros(draws), np.where(spent >= rate, ratio, 0.0), ratio)
    prices, more, to = _chains(reward, cost, first)
    more = weight[:, None] * more
    order = np.argsort(-prices.reshape(draws, -1), axis=1, kind="stable")
    price = np.take_along_axis(prices.reshape(draws, -1), order, axis=1)
    total = spent[:, None] + np.cumsum(np.take_along_axis(more.reshape(draws, -1), order, axis=1), axis=1)
    scarce = spent >= rate  # not even the best ratio can be paid for every request
    over = ((total > rate) | scarce[:, None]) & (price > 0.0)
    ends = np.where(over.any(axis=1), over.argmax(axis=1), price.shape[1])
    taken = np.zeros(price.shape, dtype=bool)
    before = (np.arange(price.shape[1]) < ends[:, None]) & (price > 0.0)
    np.put_along_axis(taken, order, before, axis=1)
    steps = taken.reshape(draws, segments, -1)[:, segment].sum(axis=1)
    chain = np.concatenate([first[:, segment, None], to[:, segment]], axis=1)
    rows = np.arange(draws)
    chosen = chain[rows, steps]
    last = np.minimum(ends, price.shape[1] - 1)
    mixes = over[rows, last] & ~scarce & (order[rows, last] // to.shape[2] == segment)
    extra = more.reshape(draws, -1)[rows, order[rows, last]]
    share = np.where(mixes, (rate - (total[rows, last] - extra)) / np.where(mixes, extra, 1.0), 0.0)
    upgraded = chain[rows, np.minimum(steps + 1, to.shape[2])]
    paid = np.where(scarce, ratio, np.where(over[rows, last], price[rows, last], 0.0))
    steps = before.sum(axis=1)
    short = np.where(steps == 0, ratio, price[rows, np.maximum(steps, 1) - 1])
    return Mixes(chosen, upgraded, share, paid, short)


def price_for_varied(reward: Array, cost: Array, weight: Array, rate: float, spread: float) -> Array:
    """The price on money for each draw, where requests differ in cost.

    The costs of a request are its segment's mean costs times a factor of its own, which is known beforehand. The factor
    is lognormal with mean 1, and ``spread`` is the standard deviation of its logarithm.

    At a price λ a request with the factor z takes each step of its chain, from the cheapest arm on, that pays at λz. A
    step that pays at λⱼ and costs mⱼ more is then taken for z < λⱼ/λ, and costs mⱼ Φ(ln(λⱼ/λ)/σ − σ/2) for a request on
    average. The price is the one at which all of that is the rate. Where the arms at the best ratio cannot be paid for
    every request, it is that ratio: as without estimates, money is the only scarce resource.

    >>> reward, cost = np.array([[[0.2, 0.8]]]), np.array([[[0.1, 0.5]]])
    >>> price_for_varied(reward, cost, np.array([1.0]), 0.3, spread=0.5).round(3).tolist()  # half take the step
    [1.324]
    """
    from scipy.special import ndtr  # takes long to import, and only requests with estimates need it

    draws, _, arms = reward.shape
    ratio, best = _best_ratio(reward, cost, weight)
    scarce = (weight * chosen_entries(cost, best)).sum(axis=1) >= rate
    if arms == 1:
        return np.where(scarce, ratio, 0.0)
    least_cost, _, prices, more = _steps(reward, cost)
    prices, more = prices.reshape(draws, -1), (more * weight).reshape(draws, -1)
    pays = prices > 0.0
    logs, more = np.log(np.where(pays, prices, 1.0)), np.where(pays, more, 0.0)
    room = rate - least_cost @ weight
    enough = more.sum(axis=1) <= room
    low = np.where(pays, logs, np.inf).min(axis=1) - SEARCH_DEVIATIONS * spread
    high = np.where(pays, logs, -np.inf).max(axis=1) + SEARCH_DEVIATIONS * spread
    low, high = (np.where(scarce | enough, 0.0, end) for end in (low, high))
    for _ in range(BISECTIONS):
        middle = 0.5 * (low + high)
        spends = (more * ndtr((logs - middle[:, None]) / spread - 0.5 * spread)).sum(axis=1)
        low, high = np.where(spends > room, middle, low), np.where(spends > room, high, middle)
    return np.asarray(np.where(scarce, ratio, np.where(enough, 0.0, np.exp(high))))


CLOSE = 0.002
"""Relative distance of the two prices of a bracket from the price between them."""


class PriceBracket(NamedTuple):
    """Two prices for each draw between which the money is just used up, and the share of requests at the lower one.

    Both prices are 0 where money is left over, and the best ratio where money is the only scarce resource.
    """

    high: Array
    low: Array
    share: Array


class PriceCurve(NamedTuple):
    """The spending of many requests as the price on money falls, for each draw: it rises in steps.

    steps  the falling prices of the steps: the best ratio before the first one, and 0 after the last
    spent  the spending per request after 0, 1, … steps
    ratio  the best ratio of rewards to costs
    least  the spending per request at the best ratio
    """

    steps: Array
    spent: Array
    ratio: Array
    least: Array

    def price(self, rate: float | Array) -> Array:
        """The price on money at a rate for all draws, or one for each; or at several, as (rate, draw)."""
        rate = np.asarray(rate)
        taken = (self.spent <= rate[..., None]).sum(axis=-1)
        return np.where(self.least >= rate, self.ratio, self.steps[np.arange(len(self.steps)), taken])

    def bracket(self, rate: float) -> PriceBracket:
        """Two prices near each other, and the share of the lower one, at which the mean spending is ``rate``.

        One price hardly ever spends just that much: requests change arms one after the other as the price falls, and
        those that are alike change together. So each request is answered at one of two prices by lot.
        """
        price = self.price(rate)
        between = (price > 0.0) & (self.least < rate)
        low, high = (1.0 - CLOSE) * price, np.minimum((1.0 + CLOSE) * price, self.ratio)
        low, high = np.where(between, low, price), np.where(between, high, price)
        draws = np.arange(len(price))
        less, more = (self.spent[draws, (self.steps[:, 1:-1] > at[:, None]).sum(axis=1)] for at in (high, low))
        share = np.where(between, (rate - less) / np.where(between, more - less, 1.0), 0.0)
        return PriceBracket(high, low, share)


def price_curve(reward: Array, cost: Array, weight: Array) -> PriceCurve:
    """The program for many different requests at every rate; means are (draw, request, arm).

    >>> reward, cost = np.array([[[0.2, 0.8, 0.9]] * 2]), np.array([[[0.1, 0.5, 1.0]] * 2])
    >>> curve = price_curve(reward, cost, np.array([0.5, 0.5]))
    >>> curve.price(0.3).round(3).tolist(), curve.price(0.6).round(3).tolist()
    ([1.5], [0.2])
    >>> curve.bracket(0.3).share.round(3).tolist()  # half of the requests are to take the second arm
    [0.5]
    """
    draws = len(reward)
    least_cost, its_reward, prices, more = _steps(reward, cost)
    prices, more = prices.reshape(draws, -1), (more * weight).reshape(draws, -1)
    order = np.argsort(-prices, axis=1)
    order += np.arange(draws)[:, None] * prices.shape[1]
    steps, spent = np.zeros((draws, prices.shape[1] + 2)), np.zeros((draws, prices.shape[1] + 1))
    steps[:, 1:-1], spent[:, 1:] = prices.reshape(-1)[order], more.reshape(-1)[order]
    earned = steps[:, :-1] * spent  # but for the first, which are those of the cheapest arms
    spent[:, 0], earned[:, 0] = least_cost @ weight, its_reward @ weight
    spent, earned = spent.cumsum(axis=1), earned.cumsum(axis=1)
    best = (earned / spent).argmax(axis=1)
    rows = np.arange(draws)
    least = spent[rows, best]
    steps[:, 0] = ratio = earned[rows, best] / least
    return PriceCurve(steps, spent, ratio, least)


def chosen_entries(values: Array, arm: Arms) -> Array:
    """The value of the chosen arm, for each draw and segment."""
    places = arm + np.arange(0, values.size, values.shape[2]).reshape(arm.shape)
    return np.asarray(values.reshape(-1)[places])


def _best_ratio(reward: Array, cost: Array, weight: Array) -> tuple[Array, Arms]:
    """The best ratio of what all segments earn to what they cost, and the arms that reach it."""
    # no mix has a better ratio, and that of each segment's best ratio is close
    arm = (reward / cost).argmax(axis=2)
    ratio = (weight * chosen_entries(reward, arm)).sum(axis=1) / (weight * chosen_entries(cost, arm)).sum(axis=1)
    for _ in range(NEWTON_STEPS):
        arm = (reward - ratio[:, None, None] * cost).argmax(axis=2)
        better = (weight * chosen_entries(reward, arm)).sum(axis=1) / (weight * chosen_entries(cost, arm)).sum(axis=1)
        if not (better > ratio).any():
            break
        ratio = np.maximum(ratio, better)
    return ratio, arm


def _steps(reward: Array, cost: Array) -> tuple[Array, Array, Array, Array]:
    """The cost and reward of the cheapest arm of each draw and segment, and the steps of the chain that begins with it.

    Of several cheapest arms it is the one that earns most. The steps are (draw, step, segment): the price at which each
    pays, 0 where there is none, and its extra cost. The arms are not returned: a maximum is computed far faster than
    its index.
    """
    draws, segments, arms = reward.shape
    rewards, costs = (np.ascontiguousarray(means.reshape(-1, arms).T) for means in (reward, cost))
    paid = least_cost = costs.min(axis=0)
    earned = its_reward = np.where(costs == paid, rewards, -np.inf).max(axis=0)
    price, more = np.zeros((arms - 1, len(paid))), np.zeros((arms - 1, len(paid)))
    for step in range(arms - 1):
        extra = costs - paid
        np.putmask(extra, extra <= 0.0, np.inf)
        slope = (rewards - earned) / extra
        best = slope.max(axis=0)
        pays = best > 0.0
        if not pays.any():
            price, more = price[: step + 1], more[: step + 1]
            break
        leads = slope == np.where(pays, best, np.nan)
        above = np.where(leads, costs, paid).max(axis=0)
        earned = np.where(leads, rewards, earned).max(axis=0)
        price[step], more[step], paid = best, above - paid, above
    steps_by_draw = (
        np.maximum(values, 0.0).reshape(-1, draws, segments).transpose(1, 0, 2) for values in (price, more)
    )
    return least_cost.reshape(draws, segments), its_reward.reshape(draws, segments), *steps_by_draw


def _chains(reward: Array, cost: Array, first: Arms) -> tuple[Array, Array, Arms]:
    """The steps of each segment's chain as (draw, segment, step): the price at which each pays (0 where there is none),
    its extra cost, and the arm that it leads to."""
    arms = reward.shape[2]
    rows = np.arange(0, reward.size, arms)
    rewards, costs = reward.reshape(-1, arms), cost.reshape(-1, arms)
    at = rows + first.reshape(-1)
    steps, of_all = arms - 1, len(rows)
    paid, price, to = np.empty((arms, of_all)), np.empty((steps, of_all)), np.empty((steps, of_all), dtype=np.int64)
    paid[0] = cost.reshape(-1)[at]
    for step in range(steps):
        extra = costs - paid[step, :, None]
        extra[extra <= 0.0] = np.inf
        slope = (rewards - reward.reshape(-1)[at][:, None]) / extra
        best = rows + slope.argmax(axis=1)
        price[step] = slope.reshape(-1)[best]
        pays = price[step] > 0.0
        at = np.where(pays, best, at)
        paid[step + 1], to[step] = cost.reshape(-1)[at], at
        if not pays.any():
            steps = step + 1
            break
    shape = (*first.shape, steps)
    price, more = np.maximum(price[:steps], 0.0), paid[1 : steps + 1] - paid[:steps]
    return price.T.reshape(shape), more.T.reshape(shape), (to[:steps] - rows).T.reshape(shape)
