"""An allocation as a table: what is known of each arm, in the user's units."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from budgetbandits.policies.base import Policy, State
from budgetbandits.policies.beliefs import kept_posterior
from budgetbandits.policies.paced_sums import COST, COUNT, REWARD, Paced
from budgetbandits.policies.tally import Tally
from budgetbandits.tables import MOST_ROWS, Table, column, left_out
from budgetbandits.units import Units

ENDS = np.array([0.025, 0.975])


def allocation_table(
    names: Sequence[str],
    told: NDArray[np.int64],
    policy: Policy,
    state: State,
    units: Units,
    down: NDArray[np.bool_],
) -> Table:
    """Of the first arms: pulls that were told, means, and the ratio with the posterior's interval if there is one."""
    arms = range(min(len(names), MOST_ROWS))
    kept = [kept_posterior(policy, state, arm) for arm in arms]
    means = np.array(
        [
            _seen(state, arm) if of is None else (of.reward.mean, of.cost.mean)
            for arm, of in zip(arms, kept, strict=True)
        ]
    )
    scales = np.array([units.scale(names[arm]) for arm in arms])
    reward, cost = means[:, 0] * units.reward_max, means[:, 1] * scales
    ratio = np.divide(reward, cost, out=np.full(len(arms), np.nan), where=cost > 0.0)
    columns = [column(values.tolist()) for values in (reward, cost, ratio)]
    rows = []
    for arm, of in zip(arms, kept, strict=True):
        note = " (retired)" if not state.active[arm] else " (down)" if down[arm] else ""
        interval = "–"
        if of is not None:
            low, high = of.ratio.quantile(ENDS) * (units.reward_max / scales[arm])
            interval = f"{low:,.3g} – {high:,.3g}"
        rows.append((f"{names[arm]}{note}", f"{told[arm]:,}", *(values[arm] for values in columns), interval))
    heads = ("arm", "pulls", "mean reward", "mean cost", "ratio", "95 % of the ratio")
    return Table(heads, rows, note=left_out(len(names)))


def _seen(state: State, arm: int) -> tuple[float, float]:
    """Mean reward and cost that were seen, in the policy's units; NaN if nothing was."""
    pulls = int(state.pulls[arm])
    if isinstance(state, Tally) and pulls:
        return float(state.reward[arm] / pulls), float(state.cost[arm] / pulls)
    if isinstance(state, Paced) and pulls:  # what it has forgotten counts neither in the sums nor in their number
        count, reward, cost = state.sums[[COUNT, REWARD, COST], :, arm].sum(axis=1).tolist()
        return reward / count, cost / count
    return np.nan, np.nan
