"""Choosers: choose exactly as a policy does, without drawing every arm. No policy lives here.

`best_kind` names the quickest chooser and `chooser_for` makes it. A *repeatable* chooser needs only the state and a
generator, so that a replay makes the same choice; others may draw future rounds in advance.

beta_ratio  the scores of Budgeted Thompson Sampling above a level
threshold   one choice among very many arms
window      rounds drawn ahead
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, Protocol

import numpy as np

from budgetbandits.allocation.choosers.beta_ratio import SCALAR_ARMS_MAX, BetaRatios, choose_of_few
from budgetbandits.allocation.choosers.threshold import ScoresAbove, ThresholdChooser
from budgetbandits.allocation.choosers.window import DenseWindowChooser, SparseWindowChooser
from budgetbandits.errors import BadState
from budgetbandits.policies.base import Policy, State

__all__ = ["Chooser", "Kind", "ScoresAbove", "best_kind", "chooser_for", "scores_above"]

Kind = Literal["plain", "threshold", "window", "sparse window"]
"""The policy's own `choose`; a level that few arms exceed; rounds drawn ahead, whole or above a level."""

THRESHOLD_ARMS_MIN = 256
"""Arms from which on a level pays for one choice at a time; with fewer it is quicker to draw them all."""

SPARSE_WINDOW_ARMS_MIN = 64
"""Arms from which on a level pays for rounds drawn ahead."""

SPARSE_WINDOW_ARMS_MAX = 5_000
"""Arms from which on it pays no longer: each arm would have to be looked at once in 128 rounds."""


class Chooser(Protocol):
    """Chooses as its policy does, in distribution, and may keep something from one choice to the next."""

    def choose(self, state: State, rng: np.random.Generator) -> int | None:
        """The next arm among the active ones; None if there is none."""

    def learned(self, state: State, rng: np.random.Generator, arm: int) -> None:
        """The policy has learned something about this arm."""

    def reset(self, state: State, arm: int | None = None) -> None:
        """Discard what was drawn ahead, because this arm or, without one, the set of arms has changed."""

    def to_dict(self) -> dict[str, Any]:
        """Everything that it cannot work out again from the state, for JSON."""

    def restore(self, saved: Mapping[str, Any], state: State, changed: Sequence[int] | None = None) -> None:
        """Go on from what `to_dict` said, with a state in which these arms, or all, have changed."""


class PlainChooser:
    """Asks the policy."""

    def __init__(self, policy: Policy) -> None:
        self._policy = policy
        self._of_few: Callable[[Any, np.random.Generator], int | None] = (
            choose_of_few if policy.draws_beta_ratios else policy.choose
        )

    def choose(self, state: State, rng: np.random.Generator) -> int | None:
        return (self._of_few if len(state.pulls) <= SCALAR_ARMS_MAX else self._policy.choose)(state, rng)

    def learned(self, state: State, rng: np.random.Generator, arm: int) -> None:
        pass

    def reset(self, state: State, arm: int | None = None) -> None:
        pass

    def to_dict(self) -> dict[str, Any]:
        return {}

    def restore(self, saved: Mapping[str, Any], state: State, changed: Sequence[int] | None = None) -> None:
        pass


def best_kind(policy: Policy, arms: int, repeatable: bool) -> Kind:
    """The kind of chooser that is quickest for a policy and a number of arms."""
    if policy.scoring is None:
        return "plain"
    lazily = scores_above(policy) is not None
    if repeatable:
        return "threshold" if lazily and arms >= THRESHOLD_ARMS_MIN else "plain"
    if not lazily or arms < SPARSE_WINDOW_ARMS_MIN:
        return "window"
    return "sparse window" if arms < SPARSE_WINDOW_ARMS_MAX else "threshold"


def chooser_for(kind: Kind, policy: Policy, state: State) -> Chooser:
    """A new chooser of this kind."""
    if kind == "plain":
        return PlainChooser(policy)
    scoring = policy.scoring
    if scoring is not None:
        if kind == "window":
            return DenseWindowChooser(scoring)
        above = scores_above(policy)
        if above is not None and kind == "sparse window":
            return SparseWindowChooser(scoring, above)
        if above is not None and kind == "threshold":
            threshold = ThresholdChooser(scoring, above)
            threshold.reset(state)
            return threshold
    raise BadState(f"{policy.name} cannot choose by {kind!r:.40}; restore the state with the policy that wrote it")


def scores_above(policy: Policy) -> ScoresAbove | None:
    """The description of the policy's scores above a level; None if there is none."""
    if isinstance(policy, ScoresAbove):
        return policy
    return BetaRatios() if policy.draws_beta_ratios else None
