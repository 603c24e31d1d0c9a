"""How likely a choice was, from extra draws.

Thompson sampling has no closed form for the probability p of the arm that it chose. With m of n further draws that
choose the same arm, (1 + m)/(1 + n) is recorded: it is never 0, and what off-policy evaluation divides by it is nearly
unbiased, since for m ~ Binomial(n, p)

    E[(1 + n)/(1 + m)] = (1 − (1 − p)^(n+1)) / p.
"""

from __future__ import annotations

import numpy as np

from budgetbandits.learner import Among, Learner
from budgetbandits.policies.base import PLAIN, Request
from budgetbandits.policies.sampling import SamplingPolicy

AT_ONCE = 1_000_000
"""Scores that are drawn into one array."""


def propensity_of(
    learner: Learner, arm: int, among: Among, request: Request, draws: int, rng: np.random.Generator
) -> float:
    """The recorded probability of this arm, of these that could be chosen; nothing is changed."""
    if int(among.sum()) == 1:
        return 1.0
    if request is PLAIN and isinstance(learner.policy, SamplingPolicy):
        same = _of_scores(learner, arm, np.flatnonzero(among), draws, rng)
    else:
        same = sum(learner.choose(rng, among, request) == arm for _ in range(draws))
    return (1 + same) / (1 + draws)


def _of_scores(learner: Learner, arm: int, arms: np.ndarray, draws: int, rng: np.random.Generator) -> int:
    """How many of so many rounds this arm wins, drawn as arrays: ties, which have no chance, count for the first."""
    policy, state = learner.policy, learner.state
    assert isinstance(policy, SamplingPolicy)
    scales = state.known["scales"][arms] if "scales" in state.known else 1.0
    same, rounds = 0, max(1, AT_ONCE // len(arms))
    for begin in range(0, draws, rounds):
        scores = policy.draw(state, rng, min(rounds, draws - begin), arms) / scales
        same += int((arms[scores.argmax(axis=1)] == arm).sum())
    return same
