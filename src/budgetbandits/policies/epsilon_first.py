"""ε-first: explore with a share ε of the budget, then exploit what was seen.

Exploration pulls the arms in turn until εB is spent. Then

    epsilon-first          always the one arm with the best r̄/c̄ at that moment    Xia et al. 2015, ε = 0.1
    epsilon-first-greedy   the affordable arm with the best r̄/c at that moment, so as many pulls of the densest as fit
                           and then the next densest; costs c known and fixed      the original

Regret O(B^(2/3)) with the best ε. An arm that exploration never reached has no ratio and is not exploited; one that
has cost nothing so far has ratio +∞.

Tran-Thanh, Chapman, Munoz de Cote, Rogers, Jennings: Epsilon-First Policies for Budget-Limited Multi-Armed Bandits.
AAAI 2010.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from budgetbandits.errors import BadParameter
from budgetbandits.numerics.arrays import Array
from budgetbandits.policies.base import NOTHING_KNOWN, Knowledge, best
from budgetbandits.policies.kube import SLACK
from budgetbandits.policies.statistics import Tally, TallyPolicy


@dataclass
class Exploration(Tally):
    """Sums, whose turn it is, and the ratios as they stood when exploration ended."""

    turn: int = 0
    exploring: bool = True
    ratio: Array = field(default_factory=lambda: np.zeros(0))


@dataclass(frozen=True)
class EpsilonFirst(TallyPolicy[Exploration]):
    r"""Explore a share of the budget, then one arm.

    Pulls the arms in turn until $\varepsilon B$ is spent, then the one arm with the largest $\bar r / \bar c$ at that
    moment. Arms that exploration did not reach are left out.

    epsilon  the share of the budget that is for exploration

    >>> EpsilonFirst(epsilon=0.2).spec
    'epsilon-first:epsilon=0.2'
    """

    name = "epsilon-first"
    label = "ε-first"
    reference = "Tran-Thanh et al., AAAI 2010, as in Xia et al. 2015"
    proven = "O(B^(2/3)) with the best ε"
    needs = frozenset({"budget"})
    first_pulls = True
    greedy: ClassVar[bool] = False
    """Whether the best affordable arm may change while it exploits."""
    epsilon: float = 0.1

    def __post_init__(self) -> None:
        if not 0.0 < self.epsilon < 1.0:
            raise BadParameter(f"{self.name}: epsilon is {self.epsilon}; use a share between 0 and 1")

    def rule_kind(self, horizon: float) -> str:
        return "explore first"

    def start(self, arms: int, known: Knowledge = NOTHING_KNOWN) -> Exploration:
        return Exploration(**vars(super().start(arms, known)), ratio=np.full(arms, -np.inf))

    def can_continue(self, state: Exploration) -> bool:
        return bool((state.active & self.affordable(state)).any())

    def choose(self, state: Exploration, rng: np.random.Generator) -> int | None:
        allowed = state.active & self.affordable(state)
        if not allowed.any():
            return None
        if state.exploring and state.spent < self.epsilon * state.known.budget:
            return _next_in_turn(state, allowed)
        if state.exploring:
            state.exploring = False
            state.ratio = np.where(state.pulls > 0, self.ratio(state), -np.inf)
            self.commit(state, rng)
        choice = best(np.where(allowed, state.ratio, -np.inf), rng)
        # every arm with a ratio has been retired or priced out: only arms that were never explored are left
        return choice if choice is not None else _next_in_turn(state, allowed)

    def ratio(self, state: Exploration) -> Array:
        """Estimated reward per cost."""
        unknown = np.full(len(state.cost), np.inf)
        return np.asarray(np.divide(state.reward, state.cost, out=unknown, where=state.cost > 0.0))

    def affordable(self, state: Exploration) -> Any:
        """A mask of the arms that may be pulled."""
        return True

    def commit(self, state: Exploration, rng: np.random.Generator) -> None:
        """Choose among equals once, not in every round; the others stay in reserve below the chosen one."""
        chosen = best(np.where(state.active, state.ratio, -np.inf), rng)
        if chosen is not None:
            state.ratio = np.minimum(state.ratio, np.finfo(float).max)
            state.ratio[chosen] = np.inf


@dataclass(frozen=True)
class EpsilonFirstGreedy(EpsilonFirst):
    r"""The original ε-first, for known costs.

    Pulls the arms in turn until $\varepsilon B$ is spent, then in each round the affordable arm with the largest
    $\bar r / c$ as it was then, where $c$ is the known cost.

    >>> sorted(EpsilonFirstGreedy().needs)
    ['budget', 'costs']
    """

    name = "epsilon-first-greedy"
    label = "ε-first greedy"
    reference = "Tran-Thanh et al., AAAI 2010"
    proven = "O(B^(2/3)) with the best ε"
    needs = frozenset({"budget", "costs"})
    greedy = True

    def ratio(self, state: Exploration) -> Array:
        return np.asarray(state.mean_reward / state.known.costs)

    def affordable(self, state: Exploration) -> Any:
        return state.known.costs <= state.left + SLACK

    def commit(self, state: Exploration, rng: np.random.Generator) -> None:
        """Nothing to commit to: the densest arm that is affordable changes as the budget runs out."""


def _next_in_turn(state: Exploration, allowed: Any) -> int:
    arms = len(state.pulls)
    while not allowed[state.turn % arms]:
        state.turn += 1
    arm = state.turn % arms
    state.turn += 1
    return arm
