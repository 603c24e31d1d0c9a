"""Policies as campaigns play them that were created before a policy was changed: an audit repeats every choice."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields, replace

import numpy as np
from numpy.typing import NDArray

from budgetbandits.arrays import Array
from budgetbandits.policies.base import PLAIN, Policy, Request, State
from budgetbandits.policies.paced import PacedThompson
from budgetbandits.policies.paced_sums import SMALLEST_COST, SQUARES, beta_parameters
from budgetbandits.policies.pooling import pooled
from budgetbandits.policies.primal_dual import PDBwK, Priced, PrimalDualBwK


def as_it_was(policy: Policy, rules: int) -> Policy:
    """The policy by the rules of a campaign (`settings.RULES`)."""
    earlier: type[Policy] | None = None
    if type(policy) is PacedThompson:
        earlier = _PacedBefore3 if rules < 3 else _PacedBefore4 if rules < 4 else None
    elif type(policy) is PrimalDualBwK:
        earlier = _PricedBefore4 if rules < 4 else None
    return policy if earlier is None else earlier(**{each.name: getattr(policy, each.name) for each in fields(policy)})


@dataclass(frozen=True)
class _PacedBefore4(PacedThompson):
    """`bts-paced` by the rules before 4: it plans with the arms that the request at hand may have, and begins with
    costs of a quarter and three quarters of the largest, whatever was seen."""

    def choose(self, state: State, rng: np.random.Generator, request: Request = PLAIN) -> int | None:
        return super().choose(state, rng, replace(request, coming=None))

    def choices(
        self, state: State, rng: np.random.Generator, draws: int, request: Request = PLAIN
    ) -> NDArray[np.int64]:
        return super().choices(state, rng, draws, replace(request, coming=None))

    def first_costs(self, total: Array, squares: Array) -> Array:
        return np.ones_like(total)


@dataclass(frozen=True)
class _PacedBefore3(_PacedBefore4):
    """`bts-paced` by the rules before 3: a cost counts as at most twice its estimate, too, and a segment may be as sure
    of what the others know as they are."""

    def relative(self, cost: float, price: float) -> float:
        return min(cost / (2.0 * price), 1.0)

    def draw_relative(self, sums: Array, rng: np.random.Generator, draws: int | None = None) -> Array:
        count, total, squares = sums
        shapes = self.shapes(count, total, squares, float(SQUARES[1, 0, 0]))
        drawn = rng.beta(*shapes, size=None if draws is None else (draws, *shapes[0].shape))
        return np.asarray(np.maximum(drawn, SMALLEST_COST))

    def shapes(
        self, count: Array, total: Array, squares: Array, first: float | Array, sizes: float | Array = 1.0
    ) -> tuple[Array, Array]:
        prior = pooled(count, total, squares, first, self.pooling, surest=math.inf, sizes=sizes)
        return beta_parameters(count, total, squares, *prior)


@dataclass(frozen=True)
class _PricedBefore4(PrimalDualBwK):
    """`primal-dual-bwk` by the rules before 4: its prices rise with each choice, whatever comes of it."""

    def choose(self, state: State, rng: np.random.Generator) -> int | None:
        assert isinstance(state, Priced)
        arm = super().choose(state, rng)
        if arm is not None:
            self._raise_prices(state, arm)
        return arm

    def observe(self, state: State, arm: int, reward: float, cost: float, rng: np.random.Generator) -> None:
        PDBwK.observe(self, state, arm, reward, cost, rng)
