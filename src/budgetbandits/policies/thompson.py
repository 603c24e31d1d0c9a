"""Budgeted Thompson Sampling (BTS), the algorithm of the paper, and Thompson sampling that ignores prices.

BTS draws θr ~ Beta(Sr + 1, Fr + 1) and θc ~ Beta(Sc + 1, Fc + 1) for every arm and pulls argmax θr / θc. A reward r
or cost c strictly between 0 and 1 counts as the outcome of one Bernoulli(r) or Bernoulli(c) trial, which keeps the
means and so the analysis. It must know nothing and proves O(ln B) regret.

Xia, Li, Qin, Yu, Liu: Thompson Sampling for Budgeted Multi-armed Bandits. IJCAI 2015, Algorithm 1.
Thompson: On the likelihood that one unknown probability exceeds another. Biometrika 25, 1933.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from budgetbandits.arrays import Array
from budgetbandits.policies.base import State
from budgetbandits.policies.sampling import Arms, SamplingPolicy


@dataclass
class BetaPosterior(State):
    """Beta parameters of every arm: row 0 for its reward, row 1 for its cost."""

    successes: Array = field(default_factory=lambda: np.ones((2, 0)))
    failures: Array = field(default_factory=lambda: np.ones((2, 0)))
    positive: ClassVar[tuple[str, ...]] = ("successes", "failures")


@dataclass(frozen=True)
class BetaThompson(SamplingPolicy):
    """Beta posteriors with uniform priors, and Bernoulli trials for values between 0 and 1."""

    def start(self, arms: int, known: Mapping[str, Any]) -> BetaPosterior:
        return BetaPosterior(
            active=np.ones(arms, dtype=bool),
            pulls=np.zeros(arms, dtype=np.int64),
            successes=np.ones((2, arms)),
            failures=np.ones((2, arms)),
        )

    def observe(self, state: State, arm: int, reward: float, cost: float, rng: np.random.Generator) -> None:
        assert isinstance(state, BetaPosterior)
        state.pulls[arm] += 1
        for row, value in enumerate((reward, cost)):
            trial = value if value in (0.0, 1.0) else float(rng.random() < value)
            state.successes[row, arm] += trial
            state.failures[row, arm] += 1.0 - trial

    def recall(self, state: State, arm: int, pulls: int, reward: float, cost: float) -> None:
        assert isinstance(state, BetaPosterior)
        state.pulls[arm] += pulls
        state.successes[:, arm] += (reward, cost)
        state.failures[:, arm] += (pulls - reward, pulls - cost)


@dataclass(frozen=True)
class BudgetedThompson(BetaThompson):
    """Budgeted Thompson Sampling, the paper's algorithm.

    >>> from budgetbandits import Allocation
    >>> spend = Allocation(BudgetedThompson(), ["search", "mail"], budget=100.0, seed=7)
    >>> while not spend.exhausted:
    ...     arm = spend.ask()
    ...     spend.tell(arm, reward=1.0, cost=0.25 if arm == "mail" else 1.0)
    >>> spend.pulls["mail"] > 10 * spend.pulls["search"]
    True
    """

    name: ClassVar[str] = "bts"

    def draw(self, state: State, rng: np.random.Generator, rounds: int, arms: Arms | None = None) -> Array:
        assert isinstance(state, BetaPosterior)
        successes, failures = state.successes, state.failures
        if arms is not None:
            successes, failures = successes[:, arms], failures[:, arms]
        theta = rng.beta(successes, failures, size=(rounds, *successes.shape))
        return np.asarray(theta[:, 0] / theta[:, 1])

    def draw_one(self, state: State, rng: np.random.Generator, arm: int) -> float:
        assert isinstance(state, BetaPosterior)
        reward = rng.beta(state.successes[0, arm], state.failures[0, arm])
        return float(reward / rng.beta(state.successes[1, arm], state.failures[1, arm]))


@dataclass(frozen=True)
class Thompson(BetaThompson):
    """Thompson sampling; ignores costs."""

    name: ClassVar[str] = "thompson"

    def draw(self, state: State, rng: np.random.Generator, rounds: int, arms: Arms | None = None) -> Array:
        assert isinstance(state, BetaPosterior)
        chosen = slice(None) if arms is None else arms
        successes, failures = state.successes[0, chosen], state.failures[0, chosen]
        return rng.beta(successes, failures, size=(rounds, len(successes)))

    def draw_one(self, state: State, rng: np.random.Generator, arm: int) -> float:
        assert isinstance(state, BetaPosterior)
        return float(rng.beta(state.successes[0, arm], state.failures[0, arm]))
