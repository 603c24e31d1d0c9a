"""One choice of a sampling policy among very many arms, without drawing the arms that cannot win.

With thousands of arms nearly all of them lose every round. For a level that the winner will most likely exceed, the
chance G of each arm to rise above it is bounded from above once and kept until something is learned of the arm. A round
then asks which arms propose, each by itself with probability G, and whether a proposal is kept; that is the law of the
scores above the level. Arms with a large G are drawn plainly. Only if no arm rises are all arms drawn, each on the
condition that it stays at or below the level.

Who proposes is drawn in one go: with rates −ln(1 − G), points of a Poisson process fall on each arm independently, and
on at least one with probability G.

A choice depends on the posterior, the level and the generator alone, and the level on the posterior and the level
before. So the three are enough to repeat it, which a window of rounds drawn ahead does not allow.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Generic

import numpy as np
from numpy.typing import NDArray

from budgetbandits.numerics.arrays import ArmMask, Arms, Array
from budgetbandits.policies.base import S, Scoring, State

PROPOSALS_MIN, PROPOSALS_TARGET, PROPOSALS_MAX = 3.5, 5.5, 8.0
"""Proposals a round: where the level is moved, and what it is moved to. At 5.5, one round in 250 draws
every arm, or a little more since chances are bounds; that is expensive with thousands of them, a proposal is cheap."""

CHANGED_ARMS_MAX = 32
"""Most changed arms that are evaluated one by one; more are evaluated all at once."""

LEVEL_MIN = 1e-9
"""A level that every arm exceeds: all are drawn plainly, which is right for a handful."""


class ScoresAbove(ABC, Generic[S]):
    """How a sampling policy's scores behave above a level, without drawing the rest.

    A sampling policy that can tell is one of these itself, or has an adapter here.
    """

    plain_above: ClassVar[float] = 0.25
    """Arms whose chance to rise is bounded by no less than this are better drawn plainly than by proposals."""

    @abstractmethod
    def chances_above(self, state: S, level: float) -> Array:
        """An upper bound of the chance of every arm to score above the level."""

    @abstractmethod
    def chance_above(self, state: S, level: float, arm: int) -> float:
        """The bound of `chances_above` for one arm."""

    @abstractmethod
    def propose_above(self, state: S, rng: np.random.Generator, arm: int, level: float) -> float | None:
        """A score above the level, or None, so that one comes with probability P(score > level) / `chance_above`."""

    @abstractmethod
    def draw_above(
        self, state: S, rng: np.random.Generator, rounds: int, level: float
    ) -> tuple[NDArray[np.int64], Arms, Array]:
        """Every score above the level in ``rounds`` rounds: its round, its arm, and the score itself."""

    @abstractmethod
    def draw_one_above(
        self, state: S, rng: np.random.Generator, arm: int, rounds: int, level: float
    ) -> list[tuple[int, float]] | None:
        """The scores of one arm above the level, as (round, score); None if it rises too often for that to be cheap."""


@dataclass
class ThresholdChooser:
    """The level and, for each arm, the rate at which it proposes."""

    policy: Scoring
    above: ScoresAbove
    level: float = math.e / 2.0
    """No simple fraction, so that no arm's chance falls on the border between plain draws and proposals."""
    _rates: Array = field(default_factory=lambda: np.zeros(0))
    _plain: Arms = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    """Arms that are drawn plainly, in order."""
    _proposing: Array = field(default_factory=lambda: np.zeros(0))
    """The rates of the active arms that are not drawn plainly, 0 for the others."""
    _active: ArmMask = field(default_factory=lambda: np.zeros(0, dtype=np.bool_))
    """The active arms that `_proposing` is for."""

    def reset(self, state: State, arm: int | None = None) -> None:
        if arm is not None:
            self._learn(state, arm)
            return
        chances = self.above.chances_above(state, self.level)
        self._rates = -np.log1p(-np.minimum(chances, self.above.plain_above))
        self._plain = np.flatnonzero(chances >= self.above.plain_above)
        self._sort_out(state)

    def learned(self, state: State, rng: np.random.Generator, arm: int) -> None:
        self._learn(state, arm)

    def choose(self, state: State, rng: np.random.Generator) -> int | None:
        plain, sums, total = self._proposals(state)
        if total == 0.0 and not state.active.any():
            return None
        if not PROPOSALS_MIN <= total <= PROPOSALS_MAX:
            self._move(state, total)
            plain, sums, total = self._proposals(state)
        best, score = -1, -math.inf
        if len(plain):
            scores = self.policy.draw(state, rng, 1, plain)[0]
            top = int(scores.argmax())
            best, score = int(plain[top]), float(scores[top])
        points = rng.random(rng.poisson(sums[-1])) * sums[-1]
        for arm in sorted(set(sums.searchsorted(points, side="right").tolist())):
            proposed = self.above.propose_above(state, rng, arm, self.level)
            if proposed is not None and proposed > score:
                best, score = arm, proposed
        if score > self.level:
            return best
        cold = state.active.copy()
        cold[plain] = False
        others = np.flatnonzero(cold)
        if len(others):
            below = self._below(state, rng, others)
            top = int(below.argmax())
            if below[top] > score:
                return int(others[top])
        return best

    def to_dict(self) -> dict[str, Any]:
        return {"level": self.level}

    def restore(self, saved: Mapping[str, Any], state: State, changed: Sequence[int] | None = None) -> None:
        if changed is None or len(changed) > CHANGED_ARMS_MAX or self.level != saved["level"]:
            self.level = float(saved["level"])
            self.reset(state)
            return
        for arm in changed:
            self._learn(state, arm)

    def _learn(self, state: State, arm: int) -> None:
        """The chance of an arm whose posterior has changed."""
        chance = self.above.chance_above(state, self.level, arm)
        self._rates[arm] = -math.log1p(-min(chance, self.above.plain_above))
        before, now = len(self._plain) > 0 and arm in self._plain, chance >= self.above.plain_above
        if before and not now:
            self._plain = self._plain[self._plain != arm]
        elif now and not before:
            self._plain = np.sort(np.append(self._plain, arm))
        self._proposing[arm] = self._rates[arm] if self._active[arm] and not now else 0.0

    def _proposals(self, state: State) -> tuple[Arms, Array, float]:
        """The active arms that are drawn plainly, the running sums of the others' rates, and the sum of all rates."""
        if not np.array_equal(state.active, self._active):
            self._sort_out(state)
        plain = self._plain[state.active[self._plain]]
        sums = self._proposing.cumsum()
        return plain, sums, float(sums[-1] + self._rates[plain].sum())

    def _sort_out(self, state: State) -> None:
        self._active = state.active.copy()
        self._proposing = np.where(state.active, self._rates, 0.0)
        self._proposing[self._plain] = 0.0

    def _below(self, state: State, rng: np.random.Generator, arms: Arms) -> Array:
        """One round of these arms, each on the condition that it does not rise."""
        scores: Array = self.policy.draw(state, rng, 1, arms)[0]
        while len(risen := np.flatnonzero(scores > self.level)):
            scores[risen] = self.policy.draw(state, rng, 1, arms[risen])[0]
        return scores

    def _move(self, state: State, total: float) -> None:
        """Move the level to where about as many propose as are wanted: fewer do the higher it is."""
        low = high = math.log(self.level)
        step, floor = math.log(2.0), math.log(LEVEL_MIN)
        if total < PROPOSALS_TARGET:
            while total < PROPOSALS_TARGET and low > floor:
                low, high = max(low - step, floor), low
                total = self._try(state, low)
                step *= 2.0
        else:
            while total > PROPOSALS_TARGET:
                low, high = high, high + step
                total = self._try(state, high)
                step *= 2.0
        for _ in range(50):
            if abs(total - PROPOSALS_TARGET) < 0.5 or high - low < 1e-9:
                return
            middle = (low + high) / 2.0
            total = self._try(state, middle)
            low, high = (middle, high) if total > PROPOSALS_TARGET else (low, middle)

    def _try(self, state: State, log_level: float) -> float:
        self.level = math.exp(log_level)
        self.reset(state)
        return self._proposals(state)[2]
