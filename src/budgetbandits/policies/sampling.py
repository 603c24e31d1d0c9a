"""Policies that score every arm by a random draw and pull the best: the shape of Thompson sampling."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from budgetbandits.arrays import Array
from budgetbandits.policies.base import Policy, State, best
from budgetbandits.policies.ratio import SURE

Arms = NDArray[np.int64]


@dataclass(frozen=True)
class SamplingPolicy(Policy):
    """Each round every arm draws a score, independently of the others, from its own posterior."""

    @abstractmethod
    def draw(self, state: State, rng: np.random.Generator, rounds: int, arms: Arms | None = None) -> Array:
        """The scores of these arms (all of them if None) in so many independent rounds, as (round, arm)."""

    @abstractmethod
    def draw_one(self, state: State, rng: np.random.Generator, arm: int) -> float:
        """The score of one arm in one round."""

    def choose(self, state: State, rng: np.random.Generator) -> int | None:
        return best(np.where(state.active, self.draw(state, rng, 1)[0], -np.inf), rng)


@dataclass(frozen=True)
class SparseSamplingPolicy(SamplingPolicy):
    """One that can also draw only what rises above a level, without drawing the rest."""

    plain_above: ClassVar[float] = SURE
    """Arms whose chance to rise is bounded by no less than this are better drawn plainly than by proposals."""

    @abstractmethod
    def chances_above(self, state: State, level: float) -> Array:
        """For every arm a number that its chance to score above the level does not exceed."""

    @abstractmethod
    def chance_above(self, state: State, level: float, arm: int) -> float:
        """The same for one arm."""

    @abstractmethod
    def propose_above(self, state: State, rng: np.random.Generator, arm: int, level: float) -> float | None:
        """A score above the level, or None, so that one comes with probability P(score > level) / `chance_above`."""

    @abstractmethod
    def draw_above(
        self, state: State, rng: np.random.Generator, rounds: int, level: float
    ) -> tuple[NDArray[np.int64], Arms, Array]:
        """Every score above the level in so many rounds: its round, its arm, and the score itself."""

    @abstractmethod
    def draw_one_above(
        self, state: State, rng: np.random.Generator, arm: int, rounds: int, level: float
    ) -> list[tuple[int, float]] | None:
        """The same for one arm, as (round, score); None if it rises too often for that to be cheap."""
