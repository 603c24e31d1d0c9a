"""Policies as campaigns play them that were created before a policy was changed: an audit repeats every choice."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from budgetbandits.arrays import Array
from budgetbandits.fluid import best_mix
from budgetbandits.fluid_draws import arms_at_rate
from budgetbandits.policies.base import PLAIN, Policy, Request, State
from budgetbandits.policies.paced import PacedThompson
from budgetbandits.policies.paced_plans import Drawn
from budgetbandits.policies.paced_sums import (
    COUNT,
    PRICED,
    SMALLEST_COST,
    SQUARES,
    Paced,
)
from budgetbandits.policies.primal_dual import PDBwK, Priced, PrimalDualBwK


def as_it_was(policy: Policy, rules: int) -> Policy:
    """The policy by the rules of a campaign (`settings.RULES`)."""
    earlier: type[Policy] | None = None
    if type(policy) is PacedThompson:
        before = {3: _PacedBefore3, 4: _PacedBefore4, 5: _PacedBefore5, 6: _PacedBefore6}
        earlier = next((each for changed, each in before.items() if rules < changed), None)
    elif type(policy) is PrimalDualBwK:
        earlier = _PricedBefore4 if rules < 4 else None
    return policy if earlier is None else earlier(**{each.name: getattr(policy, each.name) for each in fields(policy)})


@dataclass(frozen=True)
class _PacedBefore6(PacedThompson):
    """`bts-paced` by the rules before 6: with segments, too, it tries whatever its draws name."""

    careful: ClassVar[bool] = False


@dataclass(frozen=True)
class _PacedBefore5(_PacedBefore6):
    """`bts-paced` by the rules before 5: it weighs segments by what it remembers of the arms it plans with, takes what
    was paid for what requests usually cost, and does not look at what sets a segment apart in its other arms."""

    surest: ClassVar[float] = 20.0
    follows: ClassVar[bool] = False

    def start(self, arms: int, known: Mapping[str, Any]) -> Paced:
        first = super().start(arms, known)
        return Paced(active=first.active, pulls=first.pulls, known=first.known, sums=first.sums)

    def laws(self, state: Paced, arms: NDArray[np.int64]) -> tuple[Array, Array]:
        return self.of_all(state.sums[:, :, arms])

    def weights(self, state: Paced, arms: NDArray[np.int64]) -> Array:
        answered = state.sums[COUNT][:, arms].sum(axis=1) + 1.0
        return np.asarray(answered / answered.sum())

    def priced(self, state: Paced, request: Request, drawn: Drawn, rng: np.random.Generator) -> tuple[Array, float]:
        assert request.prices is not None
        times = self.draw_relative(state.sums[PRICED:, :, drawn.arms], rng)[request.segment]
        mix = best_mix(drawn.reward.tolist(), drawn.cost.tolist(), drawn.weight.tolist(), state.rate)
        return 2.0 * request.prices[drawn.arms] * times, mix.price

    def all_priced(self, state: Paced, request: Request, drawn: Drawn, rng: np.random.Generator) -> tuple[Array, Array]:
        assert request.prices is not None
        times = self.draw_relative(state.sums[PRICED:, :, drawn.arms], rng, len(drawn.reward))[:, request.segment]
        price = arms_at_rate(drawn.reward, drawn.cost, drawn.weight, state.rate, request.segment).price
        return 2.0 * request.prices[drawn.arms] * times, price


@dataclass(frozen=True)
class _PacedBefore4(_PacedBefore5):
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

    surest: ClassVar[float] = math.inf

    def relative(self, cost: float, price: float) -> float:
        return min(cost / (2.0 * price), 1.0)

    def draw_relative(self, sums: Array, rng: np.random.Generator, draws: int | None = None) -> Array:
        count, total, squares = sums
        shapes = self.shapes(count, total, squares, float(SQUARES[1, 0, 0]))
        drawn = rng.beta(*shapes, size=None if draws is None else (draws, *shapes[0].shape))
        return np.asarray(np.maximum(drawn, SMALLEST_COST))


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
