"""ω-UCB, ω*-UCB and ω-rising: Wilson's upper end of the mean reward by Wilson's lower end of the mean cost.

Wilson's interval of a mean x̄ of n numbers in [0, 1] holds all w with n(x̄ − w)² ≤ z² w(1 − w). Its ends are

    upper = (n x̄ + z²/2 + z √(n x̄(1 − x̄) + z²/4)) / (n + z²),   lower = n x̄² / ((n + z²) upper),

the second because the product of the two roots is n x̄²/(n + z²). Written so, the lower end is exactly 0 at x̄ = 0 and
never below it; the usual formula subtracts two almost equal numbers there, and one that rounds to −1e-17 turns the best
index into the worst.

    omega-ucb        upper(r̄) / lower(c̄) with z² = 2ρ ln t for both; +∞ while lower(c̄) = 0
    omega-rising     ω*-UCB with z² = 2ρ ln t + 2(1 − ρ) ln max(t/(wK), 1), ρ = 1/4, K arms
    omega-star-ucb   z² times η = min(1, V/(x̄(1 − x̄))) once n ≥ 30, for reward and cost each with its own variance V

η is 1 for Bernoulli outcomes and narrows the interval of any others. (The paper divides the unbiased variance by
n/(n − 1)·x̄(1 − x̄), which is the same.) It proves O(ln B) regret of ω-UCB for ρ = 1 and recommends ρ = 1/4, for which
nothing is proved. With it an arm can be lost for the game by its first pull: after a reward of 1 and a cost of 1 its
index is 1 + 2ρ ln t. `omega-rising`, which is not in print as far as we know, keeps ρ = 1/4 until every arm could have
been pulled w times, which is where it pays, and has z² rise at the rate of ρ = 1 from then on. Each end moves one way
with x̄, n and z, so the index rises with the mean reward and the rounds and falls with the mean cost and the pulls.

Heyden, Arzamasov, Fouché, Böhm: Budgeted Multi-Armed Bandits with Asymmetric Confidence Intervals. KDD 2024.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from budgetbandits.numerics.compilation import compiled
from budgetbandits.policies.base import NOT_IN_PRINT
from budgetbandits.policies.index import RISING_INDEX, IndexPolicy, MomentsPolicy, Monotonicity, where
from budgetbandits.policies.statistics import Moments, Tally

MANY_PULLS = 30.0
"""The number of pulls from which ω*-UCB trusts the variance."""
RHO = 0.25
"""The value that the paper recommends."""


@compiled
def wilson_upper(mean: Any, pulls: Any, square: Any) -> Any:
    """The upper end of Wilson's interval; ``square`` is z²."""
    middle = pulls * mean + square / 2.0
    half = np.sqrt(np.maximum(square * (pulls * mean * (1.0 - mean) + square / 4.0), 0.0))
    return np.minimum((middle + half) / (pulls + square), 1.0)


@compiled
def wilson_lower(mean: Any, pulls: Any, square: Any) -> Any:
    """The lower end of Wilson's interval; at least 0, and 0 at a mean of 0."""
    upper = wilson_upper(mean, pulls, square)
    return where(mean > 0.0, pulls * mean * mean / ((pulls + square) * np.maximum(upper, 1e-300)), 0.0)


def omega_ucb(mean_reward: Any, mean_cost: Any, pulls: Any, rounds: Any, rho: Any) -> Any:
    """The index of ω-UCB."""
    square = 2.0 * rho * np.log(np.maximum(rounds, 1.0))
    price = wilson_lower(mean_cost, pulls, square)
    return where(price > 0.0, wilson_upper(mean_reward, pulls, square) / where(price > 0.0, price, 1.0), np.inf)


def omega_star_ucb(
    mean_reward: Any, mean_cost: Any, pulls: Any, rounds: Any, reward_variance: Any, cost_variance: Any,
    covariance: Any, rho: Any,
) -> Any:  # fmt: skip
    """The index of ω*-UCB."""
    square = 2.0 * rho * np.log(np.maximum(rounds, 1.0))
    return by_variances(mean_reward, mean_cost, pulls, reward_variance, cost_variance, square)


def omega_rising(
    mean_reward: Any, mean_cost: Any, pulls: Any, rounds: Any, reward_variance: Any, cost_variance: Any,
    covariance: Any, waits: Any,
) -> Any:  # fmt: skip
    """The index of ω*-UCB with a confidence that rises."""
    later = (1.0 - RHO) * np.log(np.maximum(rounds / waits, 1.0))
    square = 2.0 * (RHO * np.log(np.maximum(rounds, 1.0)) + later)
    return by_variances(mean_reward, mean_cost, pulls, reward_variance, cost_variance, square)


@compiled
def by_variances(
    mean_reward: Any, mean_cost: Any, pulls: Any, reward_variance: Any, cost_variance: Any, square: Any
) -> Any:
    """The ratio of the ends for z², narrowed where outcomes are seen to scatter less than 0 and 1 would."""
    largest_reward, largest_cost = mean_reward * (1.0 - mean_reward), mean_cost * (1.0 - mean_cost)
    trusted = pulls >= MANY_PULLS
    reward_share = np.minimum(reward_variance / np.maximum(largest_reward, 1e-300), 1.0)
    cost_share = np.minimum(cost_variance / np.maximum(largest_cost, 1e-300), 1.0)
    reward_square = square * where(trusted & (largest_reward > 0.0), reward_share, 1.0)
    cost_square = square * where(trusted & (largest_cost > 0.0), cost_share, 1.0)
    price = wilson_lower(mean_cost, pulls, cost_square)
    best = wilson_upper(mean_reward, pulls, reward_square)
    return where(price > 0.0, best / where(price > 0.0, price, 1.0), np.inf)


@dataclass(frozen=True)
class OmegaUCB(IndexPolicy):
    r"""Wilson's upper end of the reward by the lower end of the cost.

    Pulls the arm with the largest upper end of Wilson's interval of $\bar r$ divided by the lower end of that of
    $\bar c$, with $z^2 = 2 \rho \ln t$.

    rho  ρ, the width; 1 is proven, 1/4 is what the paper recommends

    >>> OmegaUCB(rho=1.0).spec
    'omega-ucb:rho=1.0'
    """

    name = "omega-ucb"
    reference = "Heyden et al., KDD 2024"
    proven = "O(ln B) for ρ = 1, nothing for ρ = 1/4"
    index = staticmethod(omega_ucb)
    monotone = RISING_INDEX
    rho: float = RHO

    def __post_init__(self) -> None:
        self.positive(rho=self.rho)

    def extras(self, state: Tally) -> tuple[Any, ...]:
        return (self.rho,)


@dataclass(frozen=True)
class OmegaStarUCB(MomentsPolicy):
    r"""ω-UCB that learns the variances.

    As `omega-ucb`, with $z^2$ multiplied by $\min(1,\, V / (\bar x (1 - \bar x)))$ from 30 pulls on, where $V$ is the
    variance of the rewards or costs $x$ so far.

    rho  ρ, the width
    """

    name = "omega-star-ucb"
    reference = "Heyden et al., KDD 2024"
    proven = "nothing"
    index = staticmethod(omega_star_ucb)
    monotone = Monotonicity(rises_with_rounds=True)
    rho: float = RHO

    def __post_init__(self) -> None:
        self.positive(rho=self.rho)

    def extras(self, state: Moments) -> tuple[Any, ...]:
        return (*state.moments, self.rho)


@dataclass(frozen=True)
class OmegaRising(MomentsPolicy):
    r"""ω*-UCB that asks arms again in a long game.

    As `omega-star-ucb`, with $z^2 = \tfrac12 \ln t + \tfrac32 \ln \max(t / (w K),\, 1)$.

    wait  w, for how many pulls of each arm it is as narrow as with ρ = 1/4

    >>> OmegaRising(wait=30).spec
    'omega-rising:wait=30.0'
    """

    name = "omega-rising"
    reference = NOT_IN_PRINT
    proven = "nothing"
    index = staticmethod(omega_rising)
    monotone = Monotonicity(rises_with_rounds=True)
    wait: float = 300.0

    def __post_init__(self) -> None:
        self.positive(wait=self.wait)

    def extras(self, state: Moments) -> tuple[Any, ...]:
        return (*state.moments, self.wait * float(max(state.active.sum(), 1)))
