"""The file of a user's own policy that shares no class but `Policy` and `State` with the package's."""

FADING = '''
from dataclasses import dataclass, field

import numpy as np
from budgetbandits.policies import NOTHING_KNOWN, Policy, State


@dataclass
class Faded(State):
    weights: np.ndarray = field(default_factory=lambda: np.zeros((3, 0)))


@dataclass(frozen=True)
class FadingRatio(Policy[Faded]):
    """The best ratio of sums that fade, after one pull of each arm."""

    name = "fading-ratio"
    fade: float = 0.01

    def start(self, arms, known=NOTHING_KNOWN):
        return Faded(np.ones(arms, bool), np.zeros(arms, np.int64), weights=np.zeros((3, arms)))

    def choose(self, state, rng):
        _, reward, cost = state.weights
        ratio = np.where(state.pulls > 0, reward / np.maximum(cost, 1e-9), np.inf)
        return int(np.where(state.active, ratio, -np.inf).argmax())

    def observe(self, state, arm, reward, cost, rng):
        state.pulls[arm] += 1
        state.weights[:, arm] *= 1.0 - self.fade
        state.weights[:, arm] += (1.0, reward, cost)

    def add_history(self, state, arm, pulls, reward, cost):
        state.pulls[arm] += pulls
        state.weights[:, arm] += (pulls, reward, cost)
'''

SAYS_TOTALS = """
    def totals(self, state, arm):
        return tuple(state.weights[:, arm].tolist())
"""
