"""Policies that rank arms by an index of their counts and means."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, ClassVar

import numpy as np

from budgetbandits.errors import BadParameter, NotANumber
from budgetbandits.numerics.arrays import Array, where
from budgetbandits.policies.base import NOTHING_KNOWN, Knowledge, UnitChange, best, first_pull
from budgetbandits.policies.statistics import Moments, T, TallyPolicy

__all__ = [
    "RISING_INDEX",
    "IndexPolicy",
    "MomentsPolicy",
    "MoneyPolicy",
    "Monotonicity",
    "check_arity",
    "not_a_number",
    "where",
]


@dataclass(frozen=True)
class Monotonicity:
    """The directions in which an index moves. ``rises`` may be weak: an index that ignores an argument rises and falls.

    ``rises_with_rounds`` alone lets the engine evaluate arms lazily; all of the first four let it skip blocks of pulls.
    ``rises_with_first`` is asked of a rule whose first extra is the variance, ``falls_with_first`` of one whose first
    extra is the smallest mean cost or the best ratio, ``rises_with_money`` of a `MoneyPolicy`. ``error`` is how far,
    relative to 1 + |index|, rounding may break monotonicity.
    """

    rises_with_reward: bool = False
    falls_with_cost: bool = False
    falls_with_pulls: bool = False
    rises_with_rounds: bool = False
    ignores_cost: bool = False
    ignores_rounds: bool = False
    rises_with_first: bool = False
    falls_with_first: bool = False
    rises_with_money: bool = False
    error: float = 1e-9

    @property
    def lazy(self) -> bool:
        """Whether an engine may evaluate an arm again only when its turn may have come."""
        return self.rises_with_rounds

    @property
    def blocks(self) -> bool:
        """Whether an engine may play many rounds of one arm at once."""
        return self.rises_with_reward and self.falls_with_cost and self.falls_with_pulls and self.rises_with_rounds


RISING_INDEX = Monotonicity(rises_with_reward=True, falls_with_cost=True, falls_with_pulls=True, rises_with_rounds=True)
"""The monotonicity of most upper confidence bounds."""


@dataclass(frozen=True)
class IndexPolicy(TallyPolicy[T]):
    """First every arm once, in order, unless `first_pulls` says otherwise; then the arm with the highest index.

    ``index(mean_reward, mean_cost, pulls, rounds, *extras)`` is one function made of NumPy ufuncs, so that it serves
    whole arrays here and can be compiled for single arms elsewhere. It may divide by zero as long as it replaces the
    result: an index whose denominator is not positive is +∞.
    """

    index: ClassVar[Callable[..., Any]]
    monotone: ClassVar[Monotonicity] = Monotonicity()
    """The directions in which the index moves, by which fast engines skip evaluations. A wrong one is found by spot
    checks; a missing one only costs speed."""
    first_extra: ClassVar[str] = "constant"
    """The kind of the first extra: "constant", "own" (a number for each arm), "variance" (of the arm's rewards),
    "moments" (the first three are the variances of the arm's rewards and costs and their covariance; see
    `MomentsPolicy`), "money" (the first three are these variances and the money left; see `MoneyPolicy`), "smallest
    cost" (the smallest mean cost of all arms) or "best ratio" (the best mean reward by mean cost, infinite if an arm
    has cost nothing)."""
    first_pulls: ClassVar[bool] = True
    """Whether every arm is pulled once first. If not, the index must be a number where pulls and means are 0."""
    softmax: ClassVar[bool] = False
    """Whether the arm is drawn in proportion to the exponential of its index, instead of the highest index."""

    lead: ClassVar[float] = 0.0
    """The gain in likelihood from which on a prior is fitted to all arms (`policies.prior`); 0: there is none."""

    def rule_kind(self, horizon: float) -> str:
        return "index"

    def extras(self, state: T) -> tuple[Any, ...]:
        """Further arguments of the index: hyper-parameters, or what all arms together say."""
        return ()

    def exploration(self, arms: int) -> float:
        """The weight of exploration: with probability min(1, this / rounds) an arm is drawn uniformly."""
        return 0.0

    def affordable(self, state: T) -> Array | None:
        """A mask of the arms that may be pulled, or None for all."""
        return None

    def can_continue(self, state: T) -> bool:
        mask = self.affordable(state)
        return mask is None or bool((state.active & mask.astype(bool)).any())

    def choose(self, state: T, rng: np.random.Generator) -> int | None:
        mask = self.affordable(state)
        while self.first_pulls and (arm := first_pull(state)) is not None:
            if mask is None or mask[arm]:
                return arm
        allowed = state.active if mask is None else state.active & mask.astype(bool)
        exploration = self.exploration(len(state.pulls))
        if exploration > 0.0 and rng.random() * state.pulls.sum() < exploration:
            return best(np.where(allowed, 0.0, -np.inf), rng)
        score = np.where(allowed, self.scores(state), -np.inf)
        if self.first_pulls:  # an arm whose first feedback is still on its way could be anything
            score = np.where(allowed & (state.pulls == 0), np.inf, score)
        try:
            if self.softmax and np.isfinite(score.max()):
                return int(rng.choice(len(score), p=self.chances(score)))
            return best(score, rng)
        except NotANumber:
            arm = int(score.argmax())
            means = state.mean_reward[arm], state.mean_cost[arm]
            raise not_a_number(self, arm, *means, int(state.pulls[arm]), int(state.pulls.sum())) from None

    @staticmethod
    def chances(score: Array) -> Array:
        """The probabilities with which softmax draws the arms: all of it to those with an infinite score, if any."""
        weight = np.exp(score - score.max()) if score.max() < np.inf else (score == np.inf).astype(float)
        return np.asarray(weight / weight.sum())

    def scores(self, state: T) -> Any:
        """The index of every arm as the counts stand; of an arm without pulls it says nothing where `first_pulls`."""
        pulls = state.seen if self.first_pulls else state.pulls.astype(float)
        index, extras = index_of(self), self.extras(state)
        try:
            with np.errstate(divide="ignore", invalid="ignore"):
                return index(state.mean_reward, state.mean_cost, pulls, float(state.pulls.sum()), *extras)
        except TypeError:
            check_arity(self, extras)
            raise


@dataclass(frozen=True)
class MomentsPolicy(IndexPolicy[Moments]):
    """An index policy that also learns the variance of costs and their covariance with rewards."""

    first_extra = "moments"

    def start(self, arms: int, known: Knowledge = NOTHING_KNOWN) -> Moments:
        return Moments(**vars(super().start(arms, known)), cost_squared=np.zeros(arms), product=np.zeros(arms))

    def observe(self, state: Moments, arm: int, reward: float, cost: float, rng: np.random.Generator) -> None:
        super().observe(state, arm, reward, cost, rng)
        state.cost_squared[arm] += cost * cost
        state.product[arm] += reward * cost

    def add_history(self, state: Moments, arm: int, pulls: int, reward: float, cost: float) -> None:
        super().add_history(state, arm, pulls, reward, cost)
        state.cost_squared[arm] += cost  # the largest variance the history allows, and no correlation
        state.product[arm] += reward * cost / max(pulls, 1)

    def rescaled(self, state: Moments, units: UnitChange) -> Moments | None:
        super().rescaled(state, units)
        state.cost_squared = np.minimum(state.cost_squared * units.costs**2, state.cost)
        state.product = np.minimum(state.product * units.reward * units.costs, np.minimum(state.reward, state.cost))
        return state


MONEY_STEPS = 16
"""Steps in which policies see the money left, for each factor of two."""


def rounded_money(left: float) -> float:
    """The money left, rounded down to a step: 2 to the power of a multiple of 1/16, or 4 % at most.

    So what an index says of an arm that is not pulled stands still for many rounds.

    >>> rounded_money(1000.0), rounded_money(970.0), rounded_money(64.0)
    (980.5..., 939.0..., 64.0)
    """
    step = np.floor(MONEY_STEPS * np.log2(max(left, SMALLEST_MONEY)) + 1e-9)
    return float(np.exp2(step / MONEY_STEPS))


SMALLEST_MONEY = 2.0**-60
"""Less than this is nothing."""


@dataclass(frozen=True)
class MoneyPolicy(MomentsPolicy):
    """An index policy that looks at the variances of rewards and costs, and at the money left of a known budget."""

    first_extra = "money"
    needs = frozenset({"budget"})
    watches_money = True

    def set_remaining(self, state: Moments, money: float, requests_used: int) -> None:
        state.know(budget=money + state.spent)

    def money_extras(self, state: Moments) -> tuple[Any, ...]:
        """The first three of the extras."""
        reward_variance, cost_variance, _ = state.moments
        return reward_variance, cost_variance, rounded_money(state.left)


def index_of(policy: IndexPolicy) -> Callable[..., Any]:
    """The policy's index; an error if it has none."""
    index: Callable[..., Any] | None = getattr(type(policy), "index", None)
    if index is None:
        raise BadParameter(f"{policy.name} has no index; write index = staticmethod(function) in the class")
    return index


def check_arity(policy: IndexPolicy, extras: tuple[Any, ...]) -> None:
    """Refuse `extras` that the index does not take, or fewer than it wants."""
    if not isinstance(extras, tuple):
        raise BadParameter(f"{policy.name}: extras gives {extras!r:.40}; let it return a tuple, such as (width,)")
    index = index_of(policy)
    try:
        _signature(index).bind(*range(4), *extras)
    except TypeError:
        wanted = list(_signature(index).parameters)[4:]
        raise BadParameter(
            f"{policy.name}: extras gives {len(extras)} of the further arguments of its index, which takes "
            f"{len(wanted)} ({', '.join(wanted) or 'none'}); let extras return exactly these"
        ) from None


_signature = lru_cache(maxsize=64)(inspect.signature)


def not_a_number(
    policy: IndexPolicy, arm: int, mean_reward: float, mean_cost: float, pulls: int, rounds: int, value: float = np.nan
) -> NotANumber:
    """The error for an index that is NaN, the same whichever engine meets it, or −∞, which one of them cannot play."""
    if value == -np.inf:
        return NotANumber(
            f"{policy.name}: the index of arm {arm} is −∞ at mean_reward {mean_reward:g}, mean_cost {mean_cost:g}, "
            f"pulls {pulls}, rounds {rounds}, which the engine cannot tell from an arm that nobody can pay; use "
            f"engine='reference', or a finite number as low as you like"
        )
    return NotANumber(
        f"{policy.name}: the index of arm {arm} is not a number at mean_reward {mean_reward:g}, mean_cost "
        f"{mean_cost:g}, pulls {pulls}, rounds {rounds}; give it one there with where, such as "
        f"where(mean_cost > 0.0, mean_reward / mean_cost, np.inf)"
    )
