"""Budgeted Thompson Sampling (BTS), the algorithm of the paper, and Thompson sampling that ignores prices.

BTS draws θr ~ Beta(Sr + 1, Fr + 1) and θc ~ Beta(Sc + 1, Fc + 1) for every arm and pulls argmax θr / θc. A reward r
or cost c strictly between 0 and 1 counts as the outcome of one Bernoulli(r) or Bernoulli(c) trial, which keeps the
means and so the analysis. It must know nothing and proves O(ln B) regret.

The 1 in each place is the uniform prior Beta(1, 1). ``prior_reward`` and ``prior_cost`` put another Beta(a, b) there,
for all arms or for each, and ``kappa`` multiplies the counts: Beta(a + κS, b + κF) is the posterior that each outcome
counts for κ times. The proof is for uniform priors and κ = 1; a κ above 1 forfeits it.

Xia, Li, Qin, Yu, Liu: Thompson Sampling for Budgeted Multi-armed Bandits. IJCAI 2015, Algorithm 1.
Thompson: On the likelihood that one unknown probability exceeds another. Biometrika 25, 1933.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from budgetbandits.numerics.arrays import Array, trial
from budgetbandits.policies.base import State
from budgetbandits.policies.beta_priors import UNIFORM, Pairs, Prior, pairs, spread
from budgetbandits.policies.sampling import Arms, SamplingPolicy

LEAST_KAPPA, MOST_KAPPA = 0.01, 100.0
"""A sane range: at the ends a hundred pulls count for one, or one for a hundred."""


@dataclass
class BetaState(State):
    """Beta parameters of every arm: row 0 for its reward, row 1 for its cost."""

    successes: Array = field(default_factory=lambda: np.ones((2, 0)))
    failures: Array = field(default_factory=lambda: np.ones((2, 0)))
    positive: ClassVar[tuple[str, ...]] = ("successes", "failures")


def learn(statistics: Array, reward: float, cost: float, rng: np.random.Generator, kappa: float) -> None:
    """One trial for the reward and one for the cost; the statistics are the successes of both, then the failures."""
    paid = trial(reward, rng)
    statistics[0] += kappa * paid
    statistics[2] += kappa * (1.0 - paid)
    charged = trial(cost, rng)
    statistics[1] += kappa * charged
    statistics[3] += kappa * (1.0 - charged)


def ratio(statistics: Array, rng: np.random.Generator, kappa: float) -> float:
    """θr / θc."""
    reward: float = rng.beta(statistics[0], statistics[2])
    cost: float = rng.beta(statistics[1], statistics[3])
    return reward / cost


def reward_alone(statistics: Array, rng: np.random.Generator, kappa: float) -> float:
    """θr."""
    reward: float = rng.beta(statistics[0], statistics[2])
    return reward


@dataclass(frozen=True)
class BetaThompson(SamplingPolicy):
    """Beta posteriors, and Bernoulli trials for values between 0 and 1."""

    prior_reward: Prior = UNIFORM
    kappa: float = 1.0

    learn = staticmethod(learn)

    def __post_init__(self) -> None:
        object.__setattr__(self, "prior_reward", pairs(self.prior_reward, f"{self.name}: prior_reward"))
        self.between(LEAST_KAPPA, MOST_KAPPA, kappa=self.kappa)

    @property
    def priors(self) -> tuple[Pairs, Pairs]:
        """Of the reward and of the cost."""
        return pairs(self.prior_reward, "prior_reward"), UNIFORM

    def extras(self) -> tuple[float, ...]:
        return (self.kappa,)

    def start(self, arms: int, known: Mapping[str, Any]) -> BetaState:
        return self._arms(range(arms))

    def new_arm_state(self, state: State, known: Mapping[str, Any]) -> BetaState:
        return self._arms(range(len(state.pulls), len(state.pulls) + 1))

    def _arms(self, numbers: range) -> BetaState:
        first = np.stack([spread(prior, numbers) for prior in self.priors], axis=1)
        return BetaState(
            active=np.ones(len(numbers), dtype=bool),
            pulls=np.zeros(len(numbers), dtype=np.int64),
            successes=first[0],
            failures=first[1],
        )

    def statistics(self, state: State) -> Array:
        assert isinstance(state, BetaState)
        return np.concatenate([state.successes, state.failures])

    # What `learn` says, on a state that is kept in two arrays; `draw_one` below says what `score` says.
    def observe(self, state: State, arm: int, reward: float, cost: float, rng: np.random.Generator) -> None:
        assert isinstance(state, BetaState)
        state.pulls[arm] += 1
        paid = state.successes if trial(reward, rng) else state.failures
        paid[0, arm] += self.kappa
        charged = state.successes if trial(cost, rng) else state.failures
        charged[1, arm] += self.kappa

    def recall(self, state: State, arm: int, pulls: int, reward: float, cost: float) -> None:
        assert isinstance(state, BetaState)
        state.pulls[arm] += pulls
        state.successes[:, arm] += (self.kappa * reward, self.kappa * cost)
        state.failures[:, arm] += (self.kappa * (pulls - reward), self.kappa * (pulls - cost))


@dataclass(frozen=True)
class BudgetedThompson(BetaThompson):
    """Budgeted Thompson Sampling, the paper's algorithm.

    >>> from budgetbandits import Allocation
    >>> spend = Allocation(BudgetedThompson(), ["search", "mail"], budget=100.0, seed=7)
    >>> while not spend.exhausted:
    ...     ask = spend.ask()
    ...     spend.tell(ask, reward=1.0, cost=0.25 if ask.arm == "mail" else 1.0)
    >>> spend.pulls["mail"] > 10 * spend.pulls["search"]
    True
    """

    name = "bts"
    label = "BTS"
    reference = "Xia et al., IJCAI 2015"
    proven = "O(ln B)"
    own_scales: ClassVar[bool] = True
    score = staticmethod(ratio)

    prior_cost: Prior = UNIFORM

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "prior_cost", pairs(self.prior_cost, f"{self.name}: prior_cost"))

    @property
    def priors(self) -> tuple[Pairs, Pairs]:
        return pairs(self.prior_reward, "prior_reward"), pairs(self.prior_cost, "prior_cost")

    def draw(self, state: State, rng: np.random.Generator, rounds: int, arms: Arms | None = None) -> Array:
        assert isinstance(state, BetaState)
        successes, failures = state.successes, state.failures
        if arms is not None:
            successes, failures = successes[:, arms], failures[:, arms]
        theta = rng.beta(successes, failures, size=(rounds, *successes.shape))
        return np.asarray(theta[:, 0] / theta[:, 1])

    def draw_one(self, state: State, rng: np.random.Generator, arm: int) -> float:
        assert isinstance(state, BetaState)
        successes, failures = state.successes, state.failures
        reward = rng.beta(successes[0, arm], failures[0, arm])
        return float(reward / rng.beta(successes[1, arm], failures[1, arm]))


@dataclass(frozen=True)
class Thompson(BetaThompson):
    """Thompson sampling; ignores costs."""

    name = "thompson"
    label = "Thompson"
    reference = "Thompson 1933"
    proven = "O(ln B) if every cost is 1"
    score = staticmethod(reward_alone)

    def draw(self, state: State, rng: np.random.Generator, rounds: int, arms: Arms | None = None) -> Array:
        assert isinstance(state, BetaState)
        chosen = slice(None) if arms is None else arms
        successes, failures = state.successes[0, chosen], state.failures[0, chosen]
        return rng.beta(successes, failures, size=(rounds, len(successes)))

    def draw_one(self, state: State, rng: np.random.Generator, arm: int) -> float:
        assert isinstance(state, BetaState)
        return float(rng.beta(state.successes[0, arm], state.failures[0, arm]))
