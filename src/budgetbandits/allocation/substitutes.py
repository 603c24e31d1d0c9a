"""Substitutes: which arm answers in place of one cooling down (`cooldowns`), as far as the money goes.

An outage must not spend what is meant for later requests. A policy names an arm as if none were cooling down. If that
arm cools down, available arms take its place while their cost fits what the request may cost. For the other requests
the arm cooling down is asked all the same: the call may fail as before, or the outage may be over.

By a policy that plans money for a number of requests (`PlanPolicy.planned_substitute`), a request may cost what the arm
cooling down costs: the plan has no more for it. It may cost as much money as there is for each request where money is
not scarce or where it is not known what the arm costs, and at most that where the plan itself is short of money. The
arms available answer by the mix that earns most of all that cost this much on average (`fluid`), by drawn means. If
that much is not enough for them, the one with the best ratio answers with probability

    what the request may cost / what the arm costs.

So the money lasts for as many requests as without the outage. It may end earlier where nothing is known of the price of
arms that are down from the first request on: no plan can count on them.

Other policies keep no pace. By these the policy's choice among the arms available answers with probability

    min(1, 2 × what the arm cooling down costs / what this one costs).

An arm that costs about as much takes its place always, and while one that costs fifty times as much is the only one,
money is spent twice as fast, not fifty times.

To get another arm at any price, leave the one cooling down out of the request, or retire it.
"""

from __future__ import annotations

import numpy as np

from budgetbandits.numerics.arrays import ArmMask
from budgetbandits.policies.base import Policy, State

PRICE_RATIO_MAX = 2.0
"""How many times the price of an arm cooling down another may cost, where there is no pace to keep."""


def share(policy: Policy, state: State, arm: int, other: int) -> float:
    """How likely the other arm is to answer in the place of an arm cooling down, by a policy that keeps no pace."""
    usual, price = known_cost(policy, state, arm), known_cost(policy, state, other)
    # 1 where a price is not known or 0
    return min(1.0, PRICE_RATIO_MAX * usual / price) if usual and price else 1.0


def known_cost(policy: Policy, state: State, arm: int) -> float | None:
    """The mean cost of an arm, in units of the largest cost; None if nothing is known of it."""
    means = _known_means(policy, state, arm)
    return None if means is None else means[1]


def likely(policy: Policy, state: State, arm: int, available: ArmMask) -> tuple[int, float] | None:
    """The available arm with the best ratio so far, and how many times the price of this one it costs, for people; None
    if that is not known."""
    usual = known_cost(policy, state, arm)
    means = {other: _known_means(policy, state, other) for other in np.flatnonzero(available).tolist()}
    ratios = {
        other: (pair[0] / pair[1], pair[1]) for other, pair in means.items() if pair is not None and pair[1] > 0.0
    }
    if not usual or not ratios:
        return None
    best = max(ratios, key=lambda other: ratios[other][0])
    return best, ratios[best][1] / usual


def _known_means(policy: Policy, state: State, arm: int) -> tuple[float, float] | None:
    """The mean reward and cost of an arm."""
    means = policy.means(state, arm)
    if means is None:
        return None
    scales = state.known.scales
    return means[0], means[1] * (1.0 if scales is None else float(scales[arm]))
