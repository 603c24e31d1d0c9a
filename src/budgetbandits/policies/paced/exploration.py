"""Whether a choice for one segment of several is worth its price; `paced_plans` uses both rules, engines compile them.

Each segment learns on its own, so what Thompson sampling pays to find out, it pays in each of them.

Trials. By the means of the posteriors, and at the price on money of the program for them, an arm is worth x less than
the best of those that are better known. To know the truth would bring something only where its mean reward, drawn from
Beta(a, b) with mean m, is at least m + x, and then about

    σ φ(z) / (1 + z²),   z² = 2 (a + b) kl(m, m + x),

for each request of the segment that is to come, as often as it has come or as the average segment does. σ² is the
variance of the difference, of which the reward's is a part, and z² is made smaller by as much. (By quadrature, that is
0.9 to 5 times what it would bring.) No number of trials in the segment can bring more. Where all requests to come make
less of it than x, the price of one trial, there is none; unless the arm is cheaper and the segment has no outcome of it
yet, or it is dearer and money is left over in any case.

The last upgrades. Money is paid in lumps. A plan that has fewer than one upgrade left cannot pay for it, and one that
has few may be short after it, because costs vary; then money is missed at the price of the step before, λ⁺, and not at
the λ of the upgrade. So an upgrade is left out where the plan has money for fewer than 2 (1 − λ/λ⁺) of them, each at
what it is drawn to cost, or at what it does on average if that is more: where money that is missed costs no more than
money that is left over, none is; where it costs much more, all below two.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

UPGRADES_KEPT = 2.0
"""An upgrade, and as much again for costs that vary."""

LARGEST = 1.0 - 1e-12
"""No mean reward is above."""


def exploration_is_wasted(loss: Any, mean: Any, certainty: Any, variance: Any, spread: Any, requests: Any) -> Any:
    """Whether a trial of an arm that is worth so much less than another cannot pay: the mean, the sum of the parameters
    and the variance of the Beta of its mean reward, the variance of the difference, and how many requests are to come.
    Numbers or arrays, as below."""
    needed = np.minimum(mean + loss, LARGEST)
    apart = mean * np.log(mean / needed) + (1.0 - mean) * np.log((1.0 - mean) / (1.0 - needed))
    squared = 2.0 * certainty * apart * (variance / spread)
    return requests * np.sqrt(spread / (2.0 * math.pi)) * np.exp(-0.5 * squared) / (1.0 + squared) < loss


def too_few_upgrades(upgrades: Any, price: Any, price_if_short: Any) -> Any:
    """Whether a plan has so few upgrades left that none is worth it."""
    return upgrades * price_if_short < UPGRADES_KEPT * (price_if_short - price)
