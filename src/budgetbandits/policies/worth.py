"""Whether a choice for one segment of several is worth its price; `paced_plans` uses both rules, engines compile them.

Each segment learns on its own, so what Thompson sampling pays to find out, it pays in each of them.

Trying a cheaper arm. Of an arm that is taken to be worth x less than the best, on average and at the price on money,
with a difference of standard deviation σ, to know the truth would bring σ (φ(x/σ) − (x/σ) Φ(−x/σ)) for each request of
the segment that is to come, and no more than

    σ φ(x/σ) / (1 + x²/σ²).

That is the most that any number of trials can bring. Where all requests to come make less of it than x, the price of
one trial, there is none. Dearer arms are rationed by money; and the cheaper arm of the segment that mixes two is no
trial, since the price on money is the one at which both are worth the same.

The last upgrades. Money is paid in lumps. A plan that has fewer than one upgrade left cannot pay for it, and one that
has few may be short after it, because costs vary; then money is missed at the price of the step before, λ⁺, and not at
the λ of the upgrade. So an upgrade is left out where the plan has fewer than 2 (1 − λ/λ⁺) of them: where money that is
missed costs no more than money that is left over, none is; where it costs much more, all below two.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

UPGRADES_KEPT = 2.0
"""An upgrade, and as much again for costs that vary."""


def in_vain(loss: Any, variance: Any, requests: Any) -> Any:
    """Whether an arm that is taken to be worth so much less than the best is not worth a trial, where the difference
    has this variance and so many requests are to come. Numbers or arrays, as below."""
    squared = loss * loss / variance
    most = np.sqrt(variance / (2.0 * math.pi)) * np.exp(-0.5 * squared) / (1.0 + squared)
    return requests * most < loss


def too_few(upgrades: Any, price: Any, price_if_short: Any) -> Any:
    """Whether a plan has so few upgrades left that none is worth it."""
    return upgrades * price_if_short < UPGRADES_KEPT * (price_if_short - price)
