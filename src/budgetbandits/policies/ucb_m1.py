"""UCB-M1: a confidence bound on the ratio from medians of means, for heavy tails.

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

from budgetbandits.numerics.arrays import Array
from budgetbandits.policies.base import NOTHING_KNOWN, Knowledge
from budgetbandits.policies.general_costs import GATE, KnownVariances
from budgetbandits.policies.statistics import Tally

MOST_GROUPS = 256


@dataclass
class Groups(Tally):
    """Sums, and the same for each of `MOST_GROUPS` groups of outcomes, which are dealt to them in turn."""

    group_pulls: Array = field(default_factory=lambda: np.zeros((MOST_GROUPS, 0)))
    group_reward: Array = field(default_factory=lambda: np.zeros((MOST_GROUPS, 0)))
    group_cost: Array = field(default_factory=lambda: np.zeros((MOST_GROUPS, 0)))


def group_count(alpha: float, rounds: float) -> int:
    """The smallest power of two that is not below ⌊3.5 α ln t⌋ + 1, at most `MOST_GROUPS`."""
    wanted = int(3.5 * alpha * np.log(max(rounds, 1.0))) + 1
    return int(min(1 << (wanted - 1).bit_length(), MOST_GROUPS))


@dataclass(frozen=True)
class UCBM1(KnownVariances[Groups]):
    """Confidence bound on the ratio from medians of means.

    >>> group_count(alpha=2.1, rounds=1000.0)  # ⌊3.5 · 2.1 · ln 1000⌋ + 1 = 51
    64
    """

    name = "ucb-m1"
    reference = "Cayci, Eryilmaz and Srikant, AISTATS 2020"
    proven = "O(ln B)"

    def start(self, arms: int, known: Knowledge = NOTHING_KNOWN) -> Groups:
        pulls, reward, cost = np.zeros((3, MOST_GROUPS, arms))
        sums = vars(super().start(arms, known))
        return Groups(**sums, group_pulls=pulls, group_reward=reward, group_cost=cost)

    def observe(self, state: Groups, arm: int, reward: float, cost: float, rng: np.random.Generator) -> None:
        group = state.pulls[arm] % MOST_GROUPS
        super().observe(state, arm, reward, cost, rng)
        state.group_pulls[group, arm] += 1.0
        state.group_reward[group, arm] += reward
        state.group_cost[group, arm] += cost

    def add_history(self, state: Groups, arm: int, pulls: int, reward: float, cost: float) -> None:
        """Totals say nothing about the spread: every group gets its share of them."""
        turn = (np.arange(MOST_GROUPS) - state.pulls[arm]) % MOST_GROUPS
        dealt = (pulls - turn + MOST_GROUPS - 1) // MOST_GROUPS
        super().add_history(state, arm, pulls, reward, cost)
        state.group_pulls[:, arm] += dealt
        state.group_reward[:, arm] += dealt * (reward / max(pulls, 1))
        state.group_cost[:, arm] += dealt * (cost / max(pulls, 1))

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
            known = (cost_width[possible] < GATE * cost) & (ratio < np.inf)
            arms, ratio, cost = possible[known], ratio[known], cost[known]
            score[arms] = ratio + np.sqrt(8.0) * (reward_width[arms] + ratio * cost_width[arms]) / cost
        return score

    def medians(self, state: Groups, rounds: float, arms: Any) -> tuple[Array, Array]:
        """The median of the groups' ratios and that of their mean costs, for these arms."""
        count = group_count(self.alpha, rounds)

        def grouped(sums: Array) -> Array:
            return np.asarray(sums[:, arms].reshape(MOST_GROUPS // count, count, len(arms)).sum(axis=0))

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
