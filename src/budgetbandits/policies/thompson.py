"""Budgeted Thompson Sampling (BTS), the algorithm of the paper, and Thompson sampling that ignores prices.

BTS draws θr ~ Beta(Sr + 1, Fr + 1) and θc ~ Beta(Sc + 1, Fc + 1) for every arm and pulls argmax θr / θc. A reward r
or cost c strictly between 0 and 1 counts as the outcome of one Bernoulli(r) or Bernoulli(c) trial, which keeps the
means and so the analysis. It must know nothing and proves O(ln B) regret.

Xia, Li, Qin, Yu, Liu: Thompson Sampling for Budgeted Multi-armed Bandits. IJCAI 2015, Algorithm 1.
Thompson: On the likelihood that one unknown probability exceeds another. Biometrika 25, 1933.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from budgetbandits.arrays import Array
from budgetbandits.policies.base import State, best
from budgetbandits.policies.ratio import envelope, envelope_of_one, proposal, ratio_above, ratios_above
from budgetbandits.policies.sampling import Arms, SamplingPolicy, SparseSamplingPolicy

FEW_ARMS = 12


@dataclass
class BetaPosterior(State):
    """Beta parameters of every arm: row 0 for its reward, row 1 for its cost."""

    successes: Array = field(default_factory=lambda: np.ones((2, 0)))
    failures: Array = field(default_factory=lambda: np.ones((2, 0)))


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
class BudgetedThompson(BetaThompson, SparseSamplingPolicy):
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

    def choose(self, state: State, rng: np.random.Generator) -> int | None:
        """The same draws as `draw`, and one by one for a few arms: that is what arrays cost before they do anything."""
        if len(state.pulls) > FEW_ARMS:
            return super().choose(state, rng)
        assert isinstance(state, BetaPosterior)
        (a, c), (b, d) = state.successes.tolist(), state.failures.tolist()
        rewards = list(map(rng.beta, a, b))
        costs = list(map(rng.beta, c, d))
        scores = [
            (reward / cost if cost else math.inf) if on else -math.inf
            for reward, cost, on in zip(rewards, costs, state.active.tolist(), strict=True)
        ]
        top = max(scores)
        if scores.count(top) == 1 and top > -math.inf:
            return scores.index(top)
        return best(np.array(scores), rng)

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

    def chances_above(self, state: State, level: float) -> Array:
        assert isinstance(state, BetaPosterior)
        (a, c), (b, d) = state.successes, state.failures
        return np.asarray(envelope(a, b, c, d, level)[0])

    def chance_above(self, state: State, level: float, arm: int) -> float:
        return envelope_of_one(*_parameters(state, arm), level)[0]

    def propose_above(self, state: State, rng: np.random.Generator, arm: int, level: float) -> float | None:
        a, b, c, d = _parameters(state, arm)
        _, mu, y = envelope_of_one(a, b, c, d, level)
        return proposal(a, b, c, d, level, mu, y, rng)

    def draw_above(
        self, state: State, rng: np.random.Generator, rounds: int, level: float
    ) -> tuple[NDArray[np.int64], Arms, Array]:
        assert isinstance(state, BetaPosterior)
        return ratios_above(state.successes, state.failures, level, rounds, rng)

    def draw_one_above(
        self, state: State, rng: np.random.Generator, arm: int, rounds: int, level: float
    ) -> list[tuple[int, float]] | None:
        return ratio_above(*_parameters(state, arm), level, rounds, rng)


def _parameters(state: State, arm: int) -> tuple[float, float, float, float]:
    assert isinstance(state, BetaPosterior)
    a, c = state.successes[:, arm].tolist()
    b, d = state.failures[:, arm].tolist()
    return a, b, c, d


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
