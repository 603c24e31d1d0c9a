"""Index policies of a user's own, for tests: one with everything declared, one with nothing, one like UCB-BV2."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from budgetbandits.policies.index import RISING_INDEX, IndexPolicy, Monotonicity, where
from budgetbandits.policies.statistics import Tally


def cautious_ratio(mean_reward: Any, mean_cost: Any, pulls: Any, rounds: Any, width: Any) -> Any:
    radius = np.sqrt(width * np.log(np.maximum(rounds, 1.0)) / pulls)
    return (mean_reward + radius) / np.maximum(mean_cost - 0.5 * radius, 0.01 * mean_cost)


def steep(mean_reward: Any, mean_cost: Any, pulls: Any, rounds: Any, floor: Any) -> Any:
    """UCB-BV1 with something huge, but without ties, where that is infinite."""
    radius = np.sqrt(np.log(np.maximum(rounds, 1.0)) / pulls)
    bonus = where(floor > radius, radius / np.maximum(floor - radius, 1e-3), 1e3 + radius)
    return mean_reward / mean_cost + bonus


def above_the_floor(mean_reward: Any, mean_cost: Any, pulls: Any, rounds: Any, floor: Any) -> Any:
    radius = np.sqrt(np.log(np.maximum(rounds, 1.0)) / pulls)
    return mean_reward / mean_cost + radius / (floor * floor)


def forgetful(mean_reward: Any, mean_cost: Any, pulls: Any, rounds: Any) -> Any:
    """Monotone in nothing: the plain loop must play it."""
    return mean_reward / (mean_cost + 0.1) + np.cos(rounds + pulls)


@dataclass(frozen=True)
class CautiousRatio(IndexPolicy):
    name: ClassVar[str] = "cautious-ratio"
    index = staticmethod(cautious_ratio)
    monotone: ClassVar[Monotonicity] = RISING_INDEX

    def extras(self, state: Tally) -> tuple[Any, ...]:
        return (0.3,)


@dataclass(frozen=True)
class Steep(IndexPolicy):
    name: ClassVar[str] = "steep"
    index = staticmethod(steep)
    monotone: ClassVar[Monotonicity] = RISING_INDEX

    def extras(self, state: Tally) -> tuple[Any, ...]:
        return (0.5,)


@dataclass(frozen=True)
class AboveTheFloor(IndexPolicy):
    name: ClassVar[str] = "above-the-floor"
    index = staticmethod(above_the_floor)
    monotone: ClassVar[Monotonicity] = replace(RISING_INDEX, falls_with_first=True)
    first_extra: ClassVar[str] = "smallest cost"

    def extras(self, state: Tally) -> tuple[Any, ...]:
        return (state.mean_cost[state.pulls > 0].min() if state.pulls.any() else 0.0,)


@dataclass(frozen=True)
class Forgetful(IndexPolicy):
    name: ClassVar[str] = "forgetful"
    index = staticmethod(forgetful)


def with_own(parent: type, name: str) -> type:
    """A subclass whose method or property of this name does the same, and is another one."""
    method = getattr(parent, name)
    if isinstance(method, property):
        return type("Own", (parent,), {name: property(lambda self: method.fget(self))})
    return type("Own", (parent,), {name: lambda *given, **words: method(*given, **words)})
