"""An allocation as a table: what is known of each arm, in the user's units."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from budgetbandits.arrays import Array
from budgetbandits.policies.base import Policy, State
from budgetbandits.policies.paced import COST, REWARD, Paced
from budgetbandits.policies.tally import Tally
from budgetbandits.policies.thompson import BetaPosterior, BudgetedThompson
from budgetbandits.tables import MOST_ROWS, Table, column, left_out
from budgetbandits.units import Units

DRAWS = 4_000
"""From the posterior, for the interval of a ratio; with a seed of their own, so that the same state shows the same."""


def allocation_table(
    names: Sequence[str], told: NDArray[np.int64], policy: Policy, state: State, units: Units
) -> Table:
    """Of the first arms: pulls that were told, means, and the ratio with the posterior's interval if there is one."""
    arms = np.arange(min(len(names), MOST_ROWS))
    reward, cost = _means(state, arms)
    scale = np.array([units.scale(name) for name in names[: len(arms)]])
    reward, cost = reward * units.reward_max, cost * scale
    low, high = _interval(policy, state, arms) * (units.reward_max / scale)
    ratio = np.divide(reward, cost, out=np.full(len(arms), np.nan), where=cost > 0.0)
    columns = [column(values.tolist()) for values in (reward, cost, ratio)]
    rows = []
    for arm in arms.tolist():
        name = names[arm] if state.active[arm] else f"{names[arm]} (retired)"
        interval = "–" if np.isnan(low[arm]) else f"{low[arm]:,.3g} – {high[arm]:,.3g}"
        rows.append((name, f"{told[arm]:,}", *(values[arm] for values in columns), interval))
    heads = ("arm", "pulls", "mean reward", "mean cost", "ratio", "95 % of the ratio")
    return Table(heads, rows, note=left_out(len(names)))


def _means(state: State, arms: NDArray[np.int64]) -> tuple[Array, Array]:
    """Mean reward and cost of these arms in the policy's units: the posterior's, or what was seen."""
    if isinstance(state, BetaPosterior):
        share = state.successes[:, arms] / (state.successes[:, arms] + state.failures[:, arms])
        return share[0], share[1]
    if isinstance(state, Paced):
        seen = np.where(state.pulls[arms] > 0, state.pulls[arms], np.nan)
        reward, cost = (state.sums[row].sum(axis=0)[arms] / seen for row in (REWARD, COST))
        return reward, cost
    if isinstance(state, Tally):
        seen = np.where(state.pulls[arms] > 0, state.pulls[arms], np.nan)
        return state.reward[arms] / seen, state.cost[arms] / seen
    return np.full(len(arms), np.nan), np.full(len(arms), np.nan)


def _interval(policy: Policy, state: State, arms: NDArray[np.int64]) -> Array:
    """The middle 95 % of the ratio under the posterior, in the policy's units; NaN if it has none."""
    if not isinstance(policy, BudgetedThompson):
        return np.full((2, len(arms)), np.nan)
    ratios = policy.draw(state, np.random.default_rng(0), DRAWS, arms)
    return np.asarray(np.quantile(ratios, [0.025, 0.975], axis=0))
