"""Budgeted Thompson Sampling (BTS), the algorithm of the paper, and Thompson sampling that ignores prices.

BTS draws θr ~ Beta(Sr + 1, Fr + 1) and θc ~ Beta(Sc + 1, Fc + 1) for every arm and pulls argmax θr / θc. A reward r
or cost c strictly between 0 and 1 counts as the outcome of one Bernoulli(r) or Bernoulli(c) trial, which keeps the
means and so the analysis. It needs no prior knowledge, and its regret is proven to be O(ln B).

The 1 in each place is the uniform prior Beta(1, 1). ``prior_reward`` and ``prior_cost`` put another Beta(a, b) there,
for all arms or for each, and ``kappa`` multiplies the counts: Beta(a + κS, b + κF) is the posterior that each outcome
counts for κ times. The proof is for uniform priors and κ = 1; a κ above 1 forfeits it.

Xia, Li, Qin, Yu, Liu: Thompson Sampling for Budgeted Multi-armed Bandits. IJCAI 2015, Algorithm 1.
Thompson: On the likelihood that one unknown probability exceeds another. Biometrika 25, 1933.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from budgetbandits.numerics.arrays import Arms, Array, trial
from budgetbandits.numerics.posteriors import ArmPosterior, BetaPosterior
from budgetbandits.policies.beta_priors import UNIFORM, Pairs, Prior, pairs, spread
from budgetbandits.policies.sampling import Posterior, SamplingPolicy

REWARD_SUCCESSES, COST_SUCCESSES, REWARD_FAILURES, COST_FAILURES = range(4)
"""The statistics of an arm: the parameters of both Betas."""

KAPPA_MIN, KAPPA_MAX = 0.01, 100.0
"""A sane range: at the ends a hundred pulls count for one, or one for a hundred."""


def score(statistics: Array, rng: np.random.Generator, kappa: float) -> float:
    """The algorithm's draw, θr / θc: a plausible mean reward by a plausible mean cost."""
    reward: float = rng.beta(statistics[REWARD_SUCCESSES], statistics[REWARD_FAILURES])
    cost: float = rng.beta(statistics[COST_SUCCESSES], statistics[COST_FAILURES])
    return reward / cost


def learn(statistics: Array, reward: float, cost: float, rng: np.random.Generator, kappa: float) -> None:
    """Its update: a trial for the reward and one for the cost, each a success or a failure."""
    statistics[REWARD_SUCCESSES if trial(reward, rng) == 1.0 else REWARD_FAILURES] += kappa
    statistics[COST_SUCCESSES if trial(cost, rng) == 1.0 else COST_FAILURES] += kappa


def reward_score(statistics: Array, rng: np.random.Generator, kappa: float) -> float:
    """θr alone, of Thompson sampling that ignores prices."""
    reward: float = rng.beta(statistics[REWARD_SUCCESSES], statistics[REWARD_FAILURES])
    return reward


@dataclass
class BetaState(Posterior):
    """The parameters of both Betas of every arm, as (successes of reward and cost, failures of both; arm)."""

    positive: ClassVar[tuple[str, ...]] = ("statistics",)


@dataclass(frozen=True)
class BetaThompson(SamplingPolicy[BetaState]):
    """Beta posteriors, and Bernoulli trials for values between 0 and 1.

    prior_reward  the Beta prior of the mean reward: one pair, or one for each arm in order
    kappa         the factor of all counts, from 0.01 to 100; above 1 the proof does not hold
    """

    prior_reward: Prior = UNIFORM
    kappa: float = 1.0

    ignores_costs: ClassVar[bool] = False
    """Whether it ranks arms by their rewards alone."""
    state_class = BetaState
    learn = staticmethod(learn)

    def __post_init__(self) -> None:
        object.__setattr__(self, "prior_reward", pairs(self.prior_reward, f"{self.name}: prior_reward"))
        self.between(KAPPA_MIN, KAPPA_MAX, kappa=self.kappa)

    def rule_kind(self, horizon: float) -> str:
        return "beta"

    @property
    def priors(self) -> tuple[Pairs, Pairs]:
        """The priors of the reward and of the cost."""
        return pairs(self.prior_reward, "prior_reward"), UNIFORM

    def first_statistics(self, arms: range) -> Array:
        return np.stack([spread(prior, arms) for prior in self.priors], axis=1).reshape(4, len(arms))

    def extras(self) -> tuple[float, ...]:
        return (self.kappa,)

    def draw_each(self, state: BetaState, rng: np.random.Generator, arms: Sequence[int]) -> list[float]:
        # the numbers as Python's: for a few arms, reading them from an array takes longer than drawing
        score, kappa, statistics = type(self).score, self.kappa, state.statistics
        return [score(statistics[:, arm].tolist(), rng, kappa) for arm in arms]

    def add_history(self, state: BetaState, arm: int, pulls: int, reward: float, cost: float) -> None:
        state.pulls[arm] += pulls
        counts = (reward, cost, pulls - reward, pulls - cost)
        state.statistics[:, arm] += [self.kappa * count for count in counts]

    def totals(self, state: BetaState, arm: int) -> tuple[float, float, float]:
        reward, cost, *_ = (state.statistics[:, arm] - self.first_statistics(range(arm, arm + 1))[:, 0]) / self.kappa
        return float(state.pulls[arm]), float(reward), float(cost)

    def kept_posterior(self, state: BetaState, arm: int) -> ArmPosterior:
        a, c, b, d = state.statistics[:, arm].tolist()
        return ArmPosterior.independent(BetaPosterior(a, b), BetaPosterior(c, d))


@dataclass(frozen=True)
class BudgetedThompson(BetaThompson):
    r"""Budgeted Thompson Sampling, the paper's algorithm.

    Draws $\theta_r \sim \mathrm{Beta}(a_r + \kappa S_r,\, b_r + \kappa F_r)$ and, with the prior and the counts of its
    cost, $\theta_c$ for every arm; pulls the one with the largest $\theta_r / \theta_c$. No arm is pulled first by
    force. A reward or cost strictly between 0 and 1 counts as one Bernoulli trial with that probability.

    prior_cost  the Beta prior of the mean cost: as that of the reward

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
    score = staticmethod(score)

    prior_cost: Prior = UNIFORM

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "prior_cost", pairs(self.prior_cost, f"{self.name}: prior_cost"))

    @property
    def priors(self) -> tuple[Pairs, Pairs]:
        return pairs(self.prior_reward, "prior_reward"), pairs(self.prior_cost, "prior_cost")

    @property
    def draws_beta_ratios(self) -> bool:
        """True unless a subclass scores, draws or begins in another way."""
        own, paper = type(self), BudgetedThompson
        return (
            (own.draw is paper.draw and own.draw_each is paper.draw_each and own.start is paper.start)
            and own.score is paper.score
            and self.scoring is not None
        )

    def draw(self, state: BetaState, rng: np.random.Generator, rounds: int, arms: Arms | None = None) -> Array:
        statistics = state.statistics if arms is None else state.statistics[:, arms]
        successes, failures = statistics[:REWARD_FAILURES], statistics[REWARD_FAILURES:]
        theta = rng.beta(successes, failures, size=(rounds, *successes.shape))
        return np.asarray(theta[:, 0] / theta[:, 1])


@dataclass(frozen=True)
class Thompson(BetaThompson):
    r"""Thompson sampling; ignores costs.

    Draws $\theta_r \sim \mathrm{Beta}(a_r + \kappa S_r,\, b_r + \kappa F_r)$ for every arm and pulls the one with the
    largest; no arm is pulled first by force.
    """

    name = "thompson"
    label = "Thompson"
    reference = "Thompson 1933"
    proven = "O(ln B) if every cost is 1"
    ignores_costs = True
    score = staticmethod(reward_score)

    def draw(self, state: BetaState, rng: np.random.Generator, rounds: int, arms: Arms | None = None) -> Array:
        statistics = state.statistics if arms is None else state.statistics[:, arms]
        successes, failures = statistics[REWARD_SUCCESSES], statistics[REWARD_FAILURES]
        return rng.beta(successes, failures, size=(rounds, len(successes)))
