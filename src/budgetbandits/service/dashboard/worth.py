"""What a request is worth with each arm, in a campaign whose budget is for so many requests.

There the best ratio is not the goal: the program of money and requests (`fluid`) has a price on money, and takes the
arm with the largest mean reward less that price times the mean cost. So arms are compared by this difference, with the
price as it is now, and with reward and cost taken as independent.

Nothing is drawn at random: a law is its values at equally likely points.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from budgetbandits.numerics.arrays import Array
from budgetbandits.service.dashboard.beliefs import Belief, Estimate, density, estimate

POINTS = 32
"""Of the law of a mean; a difference has the square of that."""
COMPARED = 64
"""Points of each arm at which it is compared with the others."""


@dataclass(frozen=True, eq=False)
class Worth:
    """Of a request that one arm answers, in units of reward; ``values`` are equally likely, in order."""

    worth: Estimate
    values: Array

    def curve(self, what: str, ends: tuple[float, float]) -> tuple[Array, Array]:
        """Where, and how dense between 0 and 1; like that of a belief."""
        return density(self.values, ends)


@lru_cache(maxsize=1024)
def worth_of(belief: Belief, price: float) -> Worth:
    """At this price on money."""
    from scipy.special import betaincinv  # a server that shows no page need not wait for it

    levels = (np.arange(POINTS) + 0.5) / POINTS
    reward, cost = (betaincinv(a, b, levels) * scale for a, b, scale in belief.betas)
    values = np.sort(np.subtract.outer(reward, price * cost).ravel())
    return Worth(estimate(values), values)


def chances_of_most(arms: Sequence[Worth]) -> list[float]:
    """For each arm the probability that it is worth the most, each independent of the others."""
    if not arms:
        return []
    places = np.linspace(0, POINTS * POINTS - 1, COMPARED).astype(int)
    points = np.concatenate([arm.values[places] for arm in arms])
    # between the two sides, so that arms which are worth the same have the same chance
    counts = [np.searchsorted(arm.values, points) + np.searchsorted(arm.values, points, "right") for arm in arms]
    below = np.log(np.maximum(np.array(counts) / (2 * POINTS * POINTS), 1e-12))
    others = below.sum(axis=0).reshape(len(arms), -1) - np.stack(
        [below[place].reshape(len(arms), -1)[place] for place in range(len(arms))]
    )
    chances = np.exp(others).mean(axis=1)
    return [float(each) for each in chances / chances.sum()]
