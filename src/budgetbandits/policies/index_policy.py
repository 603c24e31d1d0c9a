"""Policies that rank arms by an index of their counts and means."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from budgetbandits.arrays import Array
from budgetbandits.errors import BadParameter, NotANumber
from budgetbandits.policies.base import State, best, first_pull
from budgetbandits.policies.tally import Tally, TallyPolicy


def either(condition: Any, yes: Any, no: Any) -> Any:
    """``yes`` where the condition holds, else ``no``; index rules use it so that it can be compiled for scalars."""
    return np.where(condition, yes, no)


@dataclass(frozen=True)
class Monotone:
    """What is known of an index. ``rises`` may be weak: a rule that ignores an argument rises and falls with it.

    ``rises_with_rounds`` alone lets the engine evaluate arms lazily; all of the first four let it skip blocks of pulls.
    ``rises_with_first`` is asked of a rule whose first extra is the variance, ``falls_with_first`` of one whose first
    extra is the smallest mean cost. ``error`` is how far, relative to 1 + |index|, rounding may break monotonicity.
    """

    rises_with_reward: bool = False
    falls_with_cost: bool = False
    falls_with_pulls: bool = False
    rises_with_rounds: bool = False
    ignores_cost: bool = False
    ignores_rounds: bool = False
    rises_with_first: bool = False
    falls_with_first: bool = False
    error: float = 1e-9

    @property
    def lazy(self) -> bool:
        return self.rises_with_rounds

    @property
    def blocks(self) -> bool:
        return self.rises_with_reward and self.falls_with_cost and self.falls_with_pulls and self.rises_with_rounds


RISING = Monotone(rises_with_reward=True, falls_with_cost=True, falls_with_pulls=True, rises_with_rounds=True)


@dataclass(frozen=True)
class IndexPolicy(TallyPolicy):
    """First every arm once, in order; then the arm with the highest index.

    ``index(mean_reward, mean_cost, pulls, rounds, *extras)`` is one function made of NumPy ufuncs, so that it serves
    whole arrays here and can be compiled for single arms elsewhere. It may divide by zero as long as it replaces the
    result: an index whose denominator is not positive is +∞.
    """

    index: ClassVar[Callable[..., Any]]
    monotone: ClassVar[Monotone] = Monotone()
    """What is known of the index. Fast engines skip evaluations by it. What is wrong is found by spot checks; what is
    missing only costs speed."""
    first_extra: ClassVar[str] = "constant"
    """What the first of the `extras` is: "constant", "own" (a number for each arm), "variance" (of the arm's rewards)
    or "smallest cost" (the smallest mean cost of all arms)."""

    def extras(self, state: Tally) -> tuple[Any, ...]:
        """Further arguments of the index: hyper-parameters, or what all arms together say."""
        return ()

    def affordable(self, state: Tally) -> Array | None:
        """A mask of the arms that may be pulled, or None for all."""
        return None

    def goes_on(self, state: State) -> bool:
        assert isinstance(state, Tally)
        mask = self.affordable(state)
        return mask is None or bool((state.active & mask.astype(bool)).any())

    def choose(self, state: State, rng: np.random.Generator) -> int | None:
        assert isinstance(state, Tally)
        mask = self.affordable(state)
        while (arm := first_pull(state)) is not None:
            if mask is None or mask[arm]:
                return arm
        # an arm whose first feedback is still on its way could be anything
        score = np.where(state.pulls > 0, self.scores(state), np.inf)
        allowed = state.active if mask is None else state.active & mask.astype(bool)
        score = np.where(allowed, score, -np.inf)
        try:
            return best(score, rng)
        except NotANumber:
            arm = int(score.argmax())
            means = state.mean_reward[arm], state.mean_cost[arm]
            raise not_a_number(self, arm, *means, int(state.pulls[arm]), int(state.pulls.sum())) from None

    def scores(self, state: Tally) -> Any:
        """The index of every arm as the counts stand; of an arm without pulls it says nothing."""
        pulls = state.seen
        extras = self.extras(state)
        try:
            with np.errstate(divide="ignore", invalid="ignore"):
                return type(self).index(
                    state.reward / pulls, state.cost / pulls, pulls, float(state.pulls.sum()), *extras
                )
        except TypeError:
            check_arity(self, extras)
            raise


def check_arity(policy: IndexPolicy, extras: tuple[Any, ...]) -> None:
    """Refuse `extras` that the index does not take, or fewer than it wants."""
    if not isinstance(extras, tuple):
        raise BadParameter(f"{policy.name}: extras gives {extras!r:.40}; let it return a tuple, such as (width,)")
    index = type(policy).index
    try:
        inspect.signature(index).bind(*range(4), *extras)
    except TypeError:
        wanted = list(inspect.signature(index).parameters)[4:]
        raise BadParameter(
            f"{policy.name}: extras gives {len(extras)} of the further arguments of its index, which takes "
            f"{len(wanted)} ({', '.join(wanted) or 'none'}); let extras return exactly these"
        ) from None


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
        f"{mean_cost:g}, pulls {pulls}, rounds {rounds}; give it one there with either, such as "
        f"either(mean_cost > 0.0, mean_reward / mean_cost, np.inf)"
    )
