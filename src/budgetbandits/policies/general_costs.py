"""UCB-B1, UCB-B2, UCB-B2C and UCB-M1: confidence bounds on the ratio, for costs and rewards of any distribution.

UCB-B1, UCB-B2 and UCB-B2C go by variances, also of correlated rewards and costs.

With a slope ω, the residual z = r − ωc, and widths ε of its mean and η of the mean cost, the ratio of the means is off
by (δz − (ρ − ω) δc)/c̄, so that

    index = r̄/c̄ + 1.4 (ε + |r̄/c̄ − ω| η) / c̄,   +∞ unless η < c̄ (λ − 1)/λ,   λ = 1.28.

The gate compares η with the mean *cost*: the expansion holds while the cost is known to within a factor.

    ucb-b1    variances known: ω = 0, ε = √(2 v α ln t/n) + 2 α ln t/(3n), v = ``reward_variance``, η likewise
    ucb-b2    variances learned: ω = 0, ε = √(2 V α ln t/n) + 3 α ln t/n, η likewise
    ucb-b2c   also the correlation: ω = Cov/Var of the costs, V that of the residuals, 3(1 + |ω|) α ln t/n behind it

α must exceed 2; all prove O(ln B) regret. The paper's UCB-B1 knows each arm's own moments. Here one bound on the
variances serves all arms, and ¼ is right for anything in [0, 1]. Its UCB-B2C knows a bound on the slopes, where the
learned one is used here, and |·| stands where one public code has a positive part, as the error formula above demands.

UCB-M1 goes by medians of means, for heavy tails.

The arm's outcomes are dealt into m groups in turn; ρ̂ is the median of the groups' ratios (+∞ for a group that cost
nothing), ĉ the median of their mean costs. With bounds v on the variances,

    ρ̂ + 2√2 (ε + ρ̂ η) / ĉ,   ε = 11 √(α v ln t / n), η likewise for the cost,   +∞ unless η < ĉ (λ − 1)/λ, λ = 1.28.

The paper has m = ⌊3.5 α ln t⌋ + 1 and each arm's own variances. Here m is the next power of two, at most 256, so that
an arm is described by 256 sums whatever its pulls (a group without outcomes is left out), and one bound on the
variances serves all arms. O(ln B) regret is proved for laws with finite variances. Outcomes here lie in [0, 1], where
means do as well: the gate opens after tens of thousands of pulls of each arm, and until then arms are pulled in turn.

Cayci, Eryilmaz, Srikant: Budget-Constrained Bandits over General Cost and Reward Distributions. AISTATS 2020.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from budgetbandits.errors import BadParameter
from budgetbandits.numerics.arrays import Array
from budgetbandits.numerics.compilation import compiled
from budgetbandits.policies.base import LARGEST_PARAMETER, NOTHING_KNOWN, Knowledge, UnitChange
from budgetbandits.policies.index import RISING_INDEX, IndexPolicy, MomentsPolicy, Monotonicity, where
from budgetbandits.policies.statistics import Moments, T, Tally

GATE = 0.28 / 1.28
"""(λ − 1)/λ: the cost must be known to within this share of it."""


@compiled
def rate_bound(mean_reward: Any, mean_cost: Any, reward_width: Any, cost_width: Any, slope: Any) -> Any:
    """The index for given widths of residual and cost."""
    priced = (mean_cost > 0.0) & (cost_width < GATE * mean_cost)
    price = where(priced, mean_cost, 1.0)
    ratio = mean_reward / price
    return where(priced, ratio + 1.4 * (reward_width + np.abs(ratio - slope) * cost_width) / price, np.inf)


def ucb_b1(
    mean_reward: Any, mean_cost: Any, pulls: Any, rounds: Any, reward_variance: Any, cost_variance: Any, alpha: Any
) -> Any:
    """The index of UCB-B1."""
    share = alpha * np.log(np.maximum(rounds, 1.0)) / pulls
    reward_width = np.sqrt(2.0 * reward_variance * share) + 2.0 * share / 3.0
    cost_width = np.sqrt(2.0 * cost_variance * share) + 2.0 * share / 3.0
    return rate_bound(mean_reward, mean_cost, reward_width, cost_width, 0.0)


def ucb_b2(
    mean_reward: Any, mean_cost: Any, pulls: Any, rounds: Any, reward_variance: Any, cost_variance: Any,
    covariance: Any, alpha: Any,
) -> Any:  # fmt: skip
    """The index of UCB-B2."""
    share = alpha * np.log(np.maximum(rounds, 1.0)) / pulls
    reward_width = np.sqrt(2.0 * reward_variance * share) + 3.0 * share
    cost_width = np.sqrt(2.0 * cost_variance * share) + 3.0 * share
    return rate_bound(mean_reward, mean_cost, reward_width, cost_width, 0.0)


def ucb_b2c(
    mean_reward: Any, mean_cost: Any, pulls: Any, rounds: Any, reward_variance: Any, cost_variance: Any,
    covariance: Any, alpha: Any,
) -> Any:  # fmt: skip
    """The index of UCB-B2C."""
    share = alpha * np.log(np.maximum(rounds, 1.0)) / pulls
    slope = where(cost_variance > 1e-12, covariance / np.maximum(cost_variance, 1e-12), 0.0)
    residual = np.maximum(reward_variance - slope * covariance, 0.0)
    reward_width = np.sqrt(2.0 * residual * share) + 3.0 * (1.0 + np.abs(slope)) * share
    cost_width = np.sqrt(2.0 * cost_variance * share) + 3.0 * share
    return rate_bound(mean_reward, mean_cost, reward_width, cost_width, slope)


def check_alpha(policy: str, alpha: float) -> None:
    """The proofs need α > 2."""
    if not 2.0 < alpha <= LARGEST_PARAMETER:
        raise BadParameter(f"{policy}: alpha is {alpha}; use a number above 2")


@dataclass(frozen=True)
class KnownVariances(IndexPolicy[T]):
    """A policy that knows bounds on the variances of all arms.

    reward_variance  a bound on the variance of every arm's rewards, from 0 to 0.25
    cost_variance    a bound on the variance of every arm's costs, from 0 to 0.25
    alpha            α, the width; the proofs need more than 2
    """

    reward_variance: float = 0.25
    cost_variance: float = 0.25
    alpha: float = 2.1

    def __post_init__(self) -> None:
        check_alpha(self.name, self.alpha)
        for what, value in (("reward_variance", self.reward_variance), ("cost_variance", self.cost_variance)):
            if not 0.0 <= value <= 0.25:
                raise BadParameter(
                    f"{self.name}: {what} is {value}; use a number from 0 to 0.25, the most there is in [0, 1]"
                )


@dataclass(frozen=True)
class UCBB1(KnownVariances):
    r"""Confidence bound on the ratio from known variances.

    Pulls the arm with the largest $\bar r/\bar c + 1.4\, (\varepsilon + (\bar r/\bar c)\, \eta) / \bar c$, where
    $\varepsilon = \sqrt{2 v \alpha \ln t / n} + 2 \alpha \ln t / (3 n)$ with the bound $v$ on the variance, and $\eta$
    likewise for the cost; $+\infty$ unless $\eta < 0.21875\, \bar c$.

    >>> UCBB1(cost_variance=0.1).spec
    'ucb-b1:cost_variance=0.1'
    """

    name = "ucb-b1"
    reference = "Cayci, Eryilmaz and Srikant, AISTATS 2020"
    proven = "O(ln B)"
    index = staticmethod(ucb_b1)
    monotone = RISING_INDEX

    def extras(self, state: Tally) -> tuple[Any, ...]:
        return (self.reward_variance, self.cost_variance, self.alpha)


@dataclass(frozen=True)
class UCBB2(MomentsPolicy):
    r"""Confidence bound on the ratio that learns the variances.

    As `ucb-b1`, with $\varepsilon = \sqrt{2 V \alpha \ln t / n} + 3 \alpha \ln t / n$, where $V$ is the variance
    so far.

    alpha  α, the width; the proof needs more than 2
    """

    name = "ucb-b2"
    reference = "Cayci, Eryilmaz and Srikant, AISTATS 2020"
    proven = "O(ln B)"
    index = staticmethod(ucb_b2)
    monotone = Monotonicity(rises_with_rounds=True)
    alpha: float = 2.1

    def __post_init__(self) -> None:
        check_alpha(self.name, self.alpha)

    def extras(self, state: Moments) -> tuple[Any, ...]:
        return (*state.moments, self.alpha)


@dataclass(frozen=True)
class UCBB2C(UCBB2):
    r"""UCB-B2 that learns the correlation, too.

    As `ucb-b2` for the residual $r - \omega c$, where $\omega = \mathrm{Cov}(r, c) / \mathrm{Var}(c)$ so far.
    """

    name = "ucb-b2c"
    reference = "Cayci, Eryilmaz and Srikant, AISTATS 2020"
    proven = "O(ln B)"
    index = staticmethod(ucb_b2c)


GROUPS_MAX = 256
"""Groups that the outcomes of an arm are dealt to, so that their means have a median."""


@dataclass
class Groups(Tally):
    """Sums, and the same for each of `GROUPS_MAX` groups of outcomes, which are dealt to them in turn."""

    group_pulls: Array = field(default_factory=lambda: np.zeros((GROUPS_MAX, 0)))
    group_reward: Array = field(default_factory=lambda: np.zeros((GROUPS_MAX, 0)))
    group_cost: Array = field(default_factory=lambda: np.zeros((GROUPS_MAX, 0)))


def group_count(alpha: float, rounds: float) -> int:
    """The smallest power of two that is not below ⌊3.5 α ln t⌋ + 1, at most `GROUPS_MAX`."""
    wanted = int(3.5 * alpha * np.log(max(rounds, 1.0))) + 1
    return int(min(1 << (wanted - 1).bit_length(), GROUPS_MAX))


@dataclass(frozen=True)
class UCBM1(KnownVariances[Groups]):
    r"""Confidence bound on the ratio from medians of means.

    Pulls the arm with the largest $\hat\rho + 2\sqrt2\, (\varepsilon + \hat\rho\, \eta) / \hat c$, where $\hat\rho$ and
    $\hat c$ are medians of the ratios and mean costs of groups of outcomes and
    $\varepsilon = 11 \sqrt{\alpha v \ln t / n}$, $\eta$ likewise; $+\infty$ unless $\eta < 0.21875\, \hat c$.

    >>> group_count(alpha=2.1, rounds=1000.0)  # ⌊3.5 · 2.1 · ln 1000⌋ + 1 = 51
    64
    """

    name = "ucb-m1"
    reference = "Cayci, Eryilmaz and Srikant, AISTATS 2020"
    proven = "O(ln B)"

    def start(self, arms: int, known: Knowledge = NOTHING_KNOWN) -> Groups:
        pulls, reward, cost = np.zeros((3, GROUPS_MAX, arms))
        sums = vars(super().start(arms, known))
        return Groups(**sums, group_pulls=pulls, group_reward=reward, group_cost=cost)

    def observe(self, state: Groups, arm: int, reward: float, cost: float, rng: np.random.Generator) -> None:
        group = state.pulls[arm] % GROUPS_MAX
        super().observe(state, arm, reward, cost, rng)
        state.group_pulls[group, arm] += 1.0
        state.group_reward[group, arm] += reward
        state.group_cost[group, arm] += cost

    def add_history(self, state: Groups, arm: int, pulls: int, reward: float, cost: float) -> None:
        """Totals say nothing about the spread: every group gets its share of them."""
        turn = (np.arange(GROUPS_MAX) - state.pulls[arm]) % GROUPS_MAX
        dealt = (pulls - turn + GROUPS_MAX - 1) // GROUPS_MAX
        super().add_history(state, arm, pulls, reward, cost)
        state.group_pulls[:, arm] += dealt
        state.group_reward[:, arm] += dealt * (reward / max(pulls, 1))
        state.group_cost[:, arm] += dealt * (cost / max(pulls, 1))

    def rescaled(self, state: Groups, units: UnitChange) -> Groups | None:
        super().rescaled(state, units)
        state.group_reward = np.minimum(state.group_reward * units.reward, state.group_pulls)
        state.group_cost = np.minimum(state.group_cost * units.costs, state.group_pulls)
        return state

    def scores(self, state: Groups) -> Any:
        rounds = float(state.pulls.sum())
        share = self.alpha * np.log(max(rounds, 1.0)) / state.seen
        reward_width = 11.0 * np.sqrt(self.reward_variance * share)
        cost_width = 11.0 * np.sqrt(self.cost_variance * share)
        score = np.full(len(share), np.inf)
        # a median cost is at most 1, so most gates are seen to be closed without looking at the groups
        possible = np.flatnonzero(cost_width < GATE)
        if len(possible):
            ratio, cost = self.medians(state, rounds, possible)
            priced = (cost_width[possible] < GATE * cost) & (ratio < np.inf)
            arms, ratio, cost = possible[priced], ratio[priced], cost[priced]
            score[arms] = ratio + np.sqrt(8.0) * (reward_width[arms] + ratio * cost_width[arms]) / cost
        return score

    def medians(self, state: Groups, rounds: float, arms: Any) -> tuple[Array, Array]:
        """The median of the groups' ratios and that of their mean costs, for these arms."""
        count = group_count(self.alpha, rounds)

        def grouped(sums: Array) -> Array:
            return np.asarray(sums[:, arms].reshape(GROUPS_MAX // count, count, len(arms)).sum(axis=0))

        pulls, reward, cost = map(grouped, (state.group_pulls, state.group_reward, state.group_cost))
        filled = pulls > 0.0
        ratios = np.divide(reward, cost, out=np.full(pulls.shape, np.inf), where=cost > 0.0)
        costs = np.divide(cost, pulls, out=np.zeros(pulls.shape), where=filled)
        return _medians(ratios, filled), _medians(costs, filled)


def _medians(values: Array, filled: Any) -> Array:
    """The lower median of each column's filled entries."""
    ordered = np.sort(np.where(filled, values, np.inf), axis=0)
    middle = np.maximum(filled.sum(axis=0) - 1, 0) // 2
    return np.asarray(np.take_along_axis(ordered, middle[None, :], axis=0)[0])
