"""The means that `bts-paced` hopes for with ``hope``, in the place of drawn ones: Gittins' index at a price on money.

What is learned of an arm pays only on requests that are left. A draw from a posterior does not know how many these are,
and tries arms until the end. At a price λ on money an arm is a one-armed bandit, whose pulls gain R − λC, and Gittins'
index for a finite horizon is what a pull must bring elsewhere so that trying the arm is worth nothing (`gittins_ratio`
has the same for a budget without a horizon). To first order it is the mean gain and h standard errors,

    h = h(n/N),   N = n + min(requests left, money left/mean cost),

where n counts the two outcomes that an arm begins with, too, N is how often it could have been pulled by the end, and h
is the boundary of the stopping problem (`theory.stopping`). It is about √(2 ln N/n) at first, and 0 at the end.

λ is the price of the program for the means of the posteriors. With Beta(κr, κ(1 − r)) and Beta(ηc, η(1 − c)) for the
mean reward and the mean cost, the variance of the mean gain has the parts

    u = r(1 − r)/κ,   v = λ² c(1 − c)/η,

and the evidence A h²/2 is divided in their proportion. The largest r′ and the smallest c′ with

    κ kl(r, r′) ≤ A h²/2 · u/(u + v),   η kl(c, c′) ≤ A h²/2 · v/(u + v)

are hoped for. For normal laws that is the mean gain and √A h standard errors; kl keeps it right near 0 and 1. The
program is solved for these means, and the mix that it names is played as ever. A = ``hope``.

A segment's requests are those left times the share of requests that it has had so far.

Not in print as far as we know, and nothing is proven.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from budgetbandits.numerics.compilation import compiled
from budgetbandits.numerics.stopping import allowed_evidence
from budgetbandits.policies.classical import bernoulli_upper
from budgetbandits.policies.paced.pooling import FIRST_COUNT
from budgetbandits.policies.paced.statistics import SMALLEST_COST

SMALLEST_PART = 1e-300
"""The smallest part of the variance of a gain: two parts that are both 0 are not divided."""


@compiled
def pulls_left(cost: Any, weight: Any, requests: Any, money: Any) -> Any:
    """How often an arm of this mean cost could be pulled: once on each request left, as far as the money left goes, in
    a segment that has this share of both. Numbers or arrays, as below; engines compile these very functions.

    >>> float(pulls_left(0.5, 1.0, requests=100.0, money=20.0)), float(pulls_left(0.1, 0.5, requests=100.0, money=20.0))
    (40.0, 50.0)
    """
    return weight * np.minimum(requests, money / np.maximum(cost, SMALLEST_COST))


@compiled
def hoped_means(
    reward: Any, reward_count: Any, cost: Any, cost_count: Any, price: Any, outcomes: Any, left: Any, hope: Any
) -> tuple[Any, Any]:
    """The mean reward and the mean cost that are hoped for: their means, the sums of the parameters of their Betas, the
    price of a cost of 1, how many outcomes there are, and how many more there could be.

    >>> reward, cost = hoped_means(0.5, 12.0, 0.5, 12.0, 1.0, 10.0, 12.0, 2.0)  # h(½)²/2 to each
    >>> round(float(reward), 4), round(float(cost), 4)
    (0.5827, 0.4173)
    >>> [float(mean) for mean in hoped_means(0.5, 12.0, 0.5, 12.0, 1.0, 10.0, 0.0, 2.0)]  # nothing is left to gain
    [0.5, 0.5]
    """
    seen = outcomes + FIRST_COUNT
    evidence = hope * allowed_evidence(seen / (seen + left))
    reward_part = reward * (1.0 - reward) / reward_count
    cost_part = price * price * (cost * (1.0 - cost) / cost_count)
    share = reward_part / np.maximum(reward_part + cost_part, SMALLEST_PART)
    higher = bernoulli_upper(reward, evidence * share / reward_count)
    lower = 1.0 - bernoulli_upper(1.0 - cost, evidence * (1.0 - share) / cost_count)
    return higher, np.maximum(lower, SMALLEST_COST)
