"""What a chooser is, and what it must be able to ask about a policy's scores."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray

from budgetbandits.numerics.arrays import Array
from budgetbandits.policies.base import State
from budgetbandits.policies.sampling import Arms


class Chooser(Protocol):
    """Chooses as its policy does, in distribution, and may keep something from one choice to the next."""

    def choose(self, state: State, rng: np.random.Generator) -> int | None:
        """The next arm among the active ones; None if there is none."""

    def told(self, state: State, rng: np.random.Generator, arm: int) -> None:
        """The policy has learned something about this arm."""

    def reset(self, state: State, arm: int | None = None) -> None:
        """Outside the game, this arm has changed or, without one, the set of arms: what was drawn ahead is void."""

    def to_dict(self) -> dict[str, Any]:
        """What it keeps and cannot work out again from the state, for JSON."""

    def restore(self, saved: Mapping[str, Any], state: State, changed: Sequence[int] | None = None) -> None:
        """Go on from what `to_dict` said, with a state in which these arms, or all, have changed."""


class ScoresAbove(ABC):
    """How a sampling policy's scores behave above a level, without drawing the rest.

    A sampling policy that can tell is one of these itself, or has an adapter here.
    """

    plain_above: ClassVar[float] = 0.25
    """Arms whose chance to rise is bounded by no less than this are better drawn plainly than by proposals."""

    @abstractmethod
    def chances_above(self, state: State, level: float) -> Array:
        """For every arm a number that its chance to score above the level does not exceed."""

    @abstractmethod
    def chance_above(self, state: State, level: float, arm: int) -> float:
        """That number for one arm."""

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
        """Those of one arm, as (round, score); None if it rises too often for that to be cheap."""
