"""How likely a choice was: what an evaluation of other policies needs to know of each.

For some policies the probability of a choice has a closed form; for Thompson sampling with several resources it has
none. It is estimated from n further choices at the same state, of which m named the same arm:

    propensity = (1 + m) / (1 + n).

The choice itself is one of the n + 1, which is what makes its inverse nearly unbiased: for m ~ Bin(n, p),

    E[(1 + n) / (1 + m)] = (1 − (1 − p)ⁿ⁺¹) / p,

so that only choices less likely than about 1/n count for too little, and no weight is above n + 1. A policy that leaves
nothing to chance gets 1, and so does the only arm that can be chosen.

The n further choices are drawn before the choice itself: some policies count what they have chosen, and would then go
on to the next arm.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from budgetbandits.allocation import substitutes
from budgetbandits.allocation.learner import Learner
from budgetbandits.numerics.arrays import ArmMask
from budgetbandits.policies.base import NO_REQUEST_INFO, Policy, Request, Scoring, State
from budgetbandits.validation import whole

AT_ONCE = 1_000_000
"""Scores that are drawn into one array."""


@dataclass(frozen=True)
class Propensities:
    """The propensities of an allocation's asks, from ``draws`` further choices each; 0 for none. Each ask has a
    generator of its own, so that no choice is changed and there is nothing to save but the seed."""

    draws: int
    seed: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "draws", whole("propensity_draws", self.draws))  # 0 for no propensities

    def before(
        self, learner: Learner, number: int, mask: ArmMask, request: Request, cooling: ArmMask | None = None
    ) -> Chances:
        """How likely each choice is that the learner may make next, in the ask of this number."""
        return chances(learner, np.random.default_rng([self.seed, number]), self.draws, mask, request, cooling)


@dataclass(frozen=True)
class Chances:
    """How often each arm was named in ``draws`` choices; None if there is only one arm to choose."""

    named: NDArray[np.int64] | None
    draws: int

    def of(self, arm: int) -> float:
        """The propensity of a choice of this arm."""
        return 1.0 if self.named is None else (1.0 + float(self.named[arm])) / (1.0 + self.draws)


@runtime_checkable
class DrawsMany(Protocol):
    """A policy that draws many choices at once."""

    def choices(
        self, state: State, rng: np.random.Generator, draws: int, request: Request = NO_REQUEST_INFO
    ) -> NDArray[np.int64]:
        """The arms of ``draws`` independent choices."""


def chances(
    learner: Learner,
    rng: np.random.Generator,
    draws: int,
    mask: ArmMask | None = None,
    request: Request = NO_REQUEST_INFO,
    cooling: ArmMask | None = None,
) -> Chances:
    """How likely each choice is that the learner may make next, of the arms in ``mask`` or of all that are active.

    Ask before the choice is made: some policies count their choices. No choice is changed if ``rng`` is not the
    generator that they are made with.
    """
    could = learner.state.active if mask is None else mask
    alone = int(could.sum()) == 1
    return Chances(None if alone else counts(learner, rng, draws, mask, request, cooling), draws)


def counts(
    learner: Learner,
    rng: np.random.Generator,
    draws: int,
    mask: ArmMask | None = None,
    request: Request = NO_REQUEST_INFO,
    cooling: ArmMask | None = None,
) -> NDArray[np.int64]:
    """How often each arm is named in ``draws`` choices, none of which is made."""
    with learner.restricted_to(mask, request) as seen:
        chosen = _choices(learner.policy, learner.state, rng, draws, seen)
    if cooling is not None and cooling[chosen].any():
        available = (learner.state.active if mask is None else mask) & ~cooling
        chosen = _with_substitutes(learner, rng, chosen, cooling, available, request)
    return np.bincount(chosen, minlength=len(learner.state.pulls))


def _with_substitutes(
    learner: Learner,
    rng: np.random.Generator,
    chosen: NDArray[np.int64],
    cooling: ArmMask,
    available: ArmMask,
    request: Request,
) -> NDArray[np.int64]:
    """The choices, with the arms that answer in place of those cooling down (`substitutes`)."""
    policy, state = learner.policy, learner.state
    if policy.keeps_pace(state):
        in_place = [policy.planned_substitute(state, arm, available, rng, request) if cooling[arm] else None
                    for arm in chosen.tolist()]  # fmt: skip
        named = [arm if other is None else other for arm, other in zip(chosen.tolist(), in_place, strict=True)]
        return np.array(named, dtype=np.int64)
    with learner.restricted_to(available, request) as seen:
        others = _choices(policy, state, rng, len(chosen), seen)
    if len(others) < len(chosen):  # the policy stops without the arms cooling down
        return chosen
    lot, taken = rng.random(len(chosen)), np.zeros(len(chosen), dtype=bool)
    for arm in np.unique(chosen[cooling[chosen]]).tolist():
        for other in np.unique(others).tolist():
            pair = (chosen == arm) & (others == other)
            taken |= pair & (lot < substitutes.share(policy, state, arm, other))
    return np.where(taken, others, chosen)


def _choices(policy: Policy, state: State, rng: np.random.Generator, draws: int, request: Request) -> NDArray[np.int64]:
    if isinstance(policy, DrawsMany):
        return policy.choices(state, rng, draws, request)
    if policy.scoring is not None:
        return _highest(policy.scoring, state, rng, draws)
    named = []
    for _ in range(draws):
        spare = copy.deepcopy(state)  # some policies count the choices that they have made
        looks = policy.looks_at_requests
        arm = policy.for_requests.choose(spare, rng, request) if looks else policy.choose(spare, rng)
        if arm is not None:
            named.append(arm)
    return np.array(named, dtype=np.int64)


def _highest(policy: Scoring, state: State, rng: np.random.Generator, draws: int) -> NDArray[np.int64]:
    """The arm of the highest score in each of ``draws`` rounds; ties, which have no chance, go to the first."""
    arms = np.flatnonzero(state.active)
    scales = 1.0 if state.known.scales is None else state.known.scales[arms]
    chosen, rounds = [], max(1, AT_ONCE // len(arms))
    for begin in range(0, draws, rounds):
        scores = policy.draw(state, rng, min(rounds, draws - begin), arms) / scales
        chosen.append(arms[scores.argmax(axis=1)])
    return np.concatenate(chosen)
