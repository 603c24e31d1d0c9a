"""Policies that score every arm by a random draw and pull the best: the shape of Thompson sampling."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from budgetbandits.arrays import Array
from budgetbandits.policies.base import Policy, State, best

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
