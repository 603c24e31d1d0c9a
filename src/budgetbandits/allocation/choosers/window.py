"""Choices of a sampling policy, drawn ahead of time: the law of `choose` at a fraction of its price.

A posterior stands still until something is learned of its arm. So the scores of the coming rounds can be drawn at once,
for all arms (`DenseWindowChooser`) or only as far as they rise above a level that some arm will surely reach
(`SparseWindowChooser`); the few arms learned of since are *stale* and are drawn again in each round. Nothing changes in
distribution: a score is used in one round at most, it is dropped unseen when its posterior changes, and when a window
ends depends on the past alone.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from budgetbandits.allocation.choosers.threshold import ScoresAbove
from budgetbandits.numerics.arrays import Array
from budgetbandits.policies.base import Scoring, State

WINDOW = 64
"""Rounds drawn at once."""

STALE_ARMS_MAX = 8
"""Arms drawn one by one in every round, before it is cheaper to open a new window."""


@dataclass
class DenseWindowChooser:
    """All scores of the coming rounds. At ten arms the price of one call to the generator dominates: it is shared."""

    policy: Scoring
    scores: Array = field(default_factory=lambda: np.zeros((0, 0)))
    position: int = 0
    stale: list[int] = field(default_factory=list)

    def choose(self, state: State, rng: np.random.Generator) -> int | None:
        if self.position >= len(self.scores) or len(self.stale) > STALE_ARMS_MAX:
            self.scores = np.where(state.active, self.policy.draw(state, rng, _rounds(state)), -np.inf)
            self.position = 0
            self.stale = []
        arm: int | None
        arm, top = _top(self.scores[self.position])
        self.position += 1
        if self.stale:
            arm, top = _with_stale(self.policy, state, rng, self.stale, arm, top)
        return arm if top > -math.inf else None

    def learned(self, state: State, rng: np.random.Generator, arm: int) -> None:
        """The arm's scores are void."""
        if self.position < len(self.scores) and arm not in self.stale:
            self.scores[self.position :, arm] = -np.inf
            self.stale.append(arm)

    def reset(self, state: State, arm: int | None = None) -> None:
        """All scores are void."""
        self.position = len(self.scores)

    def to_dict(self) -> dict[str, Any]:
        return {"scores": self.scores[self.position :].tolist(), "stale": list(self.stale)}

    def restore(self, saved: Mapping[str, Any], state: State, changed: Sequence[int] | None = None) -> None:
        self.scores = np.array(saved["scores"], dtype=float).reshape(-1, len(state.pulls))
        self.position = 0
        self.stale = [int(arm) for arm in saved["stale"]]


@dataclass
class SparseWindowChooser:
    """The scores above a level, which one round in twenty stays below.

    The level is a low quantile of the recent winning scores. An arm of which something is learned has its scores above
    the level drawn again, which takes a few microseconds however many arms there are; only one that rises often goes
    stale. Where no arm rises above the level, all are drawn on the condition that they stay below: whatever does not is
    drawn again.
    """

    policy: Scoring
    above: ScoresAbove
    recent: list[float] = field(default_factory=list)
    level: float = 0.0
    rounds: list[dict[int, float]] = field(default_factory=list)
    """The arms above the level and their scores, for each round of the window."""
    places: dict[int, list[int]] = field(default_factory=dict)
    """The rounds in which each of them is: most arms are in none, and feedback on one concerns no other."""
    position: int = 0
    shortfalls: int = 0
    stale: list[int] = field(default_factory=list)

    def choose(self, state: State, rng: np.random.Generator) -> int | None:
        arm: int | None
        if len(self.recent) < WINDOW // 2:  # no level is known yet
            arm, top = _top(np.where(state.active, self.policy.draw(state, rng, 1)[0], -np.inf))
        else:
            if self._worn():
                self._open(state, rng)
            risen = self.rounds[self.position]
            self.position += 1
            arm, top = max(risen.items(), key=_score) if risen else (None, -np.inf)
            arm, top = _with_stale(self.policy, state, rng, self.stale, arm, top)
            if not risen and not top > self.level:
                self.shortfalls += 1
                other, score = _top(self._below(state, rng))
                if score > top:
                    arm, top = other, score
        if top == -np.inf:
            return None
        self.recent = [*self.recent[1 - WINDOW :], top]
        return arm

    def learned(self, state: State, rng: np.random.Generator, arm: int) -> None:
        """The arm's scores are void and are drawn again."""
        if self.position >= len(self.rounds) or arm in self.stale:
            return
        for place in self.places.pop(arm, ()):
            if place >= self.position:
                del self.rounds[place][arm]
        drawn = self.above.draw_one_above(state, rng, arm, len(self.rounds) - self.position, self.level)
        if drawn is None:
            self.stale.append(arm)
        elif drawn and state.active[arm]:
            for when, score in drawn:
                self.rounds[self.position + when][arm] = score
            self.places[arm] = [self.position + when for when, _ in drawn]

    def reset(self, state: State, arm: int | None = None) -> None:
        """All scores are void."""
        self.position = len(self.rounds)

    def to_dict(self) -> dict[str, Any]:
        return {
            "recent": self.recent,
            "level": self.level,
            "rounds": [[[arm, score] for arm, score in risen.items()] for risen in self.rounds],
            "position": self.position,
            "shortfalls": self.shortfalls,
            "stale": list(self.stale),
        }

    def restore(self, saved: Mapping[str, Any], state: State, changed: Sequence[int] | None = None) -> None:
        self.recent = [float(score) for score in saved["recent"]]
        self.level = float(saved["level"])
        self.rounds = [{int(arm): float(score) for arm, score in risen} for risen in saved["rounds"]]
        self.position, self.shortfalls = int(saved["position"]), int(saved["shortfalls"])
        self.stale = [int(arm) for arm in saved["stale"]]
        self._place()

    def _worn(self) -> bool:
        """Whether the window is used up, or its level has become too high, or too many arms are stale."""
        return (
            self.position >= len(self.rounds)
            or self.shortfalls > 4 + self.position // 8
            or len(self.stale) > STALE_ARMS_MAX
        )

    def _open(self, state: State, rng: np.random.Generator) -> None:
        self.level = float(np.quantile(self.recent, 0.05))
        self.rounds = [{} for _ in range(2 * WINDOW)]
        self.position = self.shortfalls = 0
        self.stale = []
        rounds, arms, scores = self.above.draw_above(state, rng, len(self.rounds), self.level)
        for r, a, s in zip(rounds.tolist(), arms.tolist(), scores.tolist(), strict=True):
            if state.active[a]:
                self.rounds[r][a] = s
        self._place()

    def _place(self) -> None:
        self.places = {}
        for place, risen in enumerate(self.rounds):
            for arm in risen:
                self.places.setdefault(arm, []).append(place)

    def _below(self, state: State, rng: np.random.Generator) -> Array:
        """One round of all arms that are not stale, each on the condition that it stays at or below the level."""
        scores: Array = self.policy.draw(state, rng, 1)[0]
        scores[self.stale] = -np.inf
        scores[~state.active] = -np.inf
        while len(risen := np.flatnonzero(scores > self.level)):
            scores[risen] = self.policy.draw(state, rng, 1, risen)[0]
        return scores


def _score(item: tuple[int, float]) -> float:
    return item[1]


def _rounds(state: State) -> int:
    """Fewer rounds with more arms, so that a window stays small enough to be written down."""
    return max(1, min(WINDOW, 4096 // len(state.pulls)))


def _top(scores: Array) -> tuple[int, float]:
    arm = int(scores.argmax())
    return arm, float(scores[arm])


def _with_stale(
    policy: Scoring, state: State, rng: np.random.Generator, stale: list[int], arm: int | None, top: float
) -> tuple[int | None, float]:
    """The better of (arm, top) and the stale arms, which are drawn now."""
    for candidate, score in zip(stale, policy.draw_each(state, rng, stale), strict=True):
        if score > top and state.active[candidate]:
            arm, top = candidate, score
    return arm, top
