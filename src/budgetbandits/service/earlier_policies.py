"""Policies as campaigns play them that were created before a policy was changed: an audit repeats every choice."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields

import numpy as np

from budgetbandits.arrays import Array
from budgetbandits.policies.base import Policy
from budgetbandits.policies.paced import SMALLEST_COST, SQUARES, PacedThompson, beta_parameters
from budgetbandits.policies.pooling import pooled


def as_it_was(policy: Policy, rules: int) -> Policy:
    """The policy by the rules of a campaign (`settings.RULES`)."""
    if rules < 3 and isinstance(policy, PacedThompson):
        return _Paced(**{field.name: getattr(policy, field.name) for field in fields(policy)})
    return policy


@dataclass(frozen=True)
class _Paced(PacedThompson):
    """`bts-paced` by the rules before 3: a cost counts as at most twice its estimate, and a segment may be as sure of
    what the others know as they are."""

    def relative(self, cost: float, price: float) -> float:
        return min(cost / (2.0 * price), 1.0)

    def draw_relative(self, sums: Array, rng: np.random.Generator, draws: int | None = None) -> Array:
        count, total, squares = sums
        shapes = self.shapes(count, total, squares, float(SQUARES[1, 0, 0]))
        drawn = rng.beta(*shapes, size=None if draws is None else (draws, *shapes[0].shape))
        return np.asarray(np.maximum(drawn, SMALLEST_COST))

    def shapes(self, count: Array, total: Array, squares: Array, first: float | Array) -> tuple[Array, Array]:
        prior = pooled(count, total, squares, first, self.pooling, surest=math.inf)
        return beta_parameters(count, total, squares, *prior)
