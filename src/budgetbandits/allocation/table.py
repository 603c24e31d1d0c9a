"""An allocation as a table: what was seen of each arm and what is believed of it, in the user's units."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from budgetbandits.allocation.observations import Observed
from budgetbandits.allocation.units import Units
from budgetbandits.formatting.tables import MOST_ROWS, Table, column, left_out
from budgetbandits.policies.base import Policy, State
from budgetbandits.policies.posteriors import kept_posterior

ENDS = np.array([0.025, 0.975])

HEADS = ("arm", "pulls", "mean reward", "mean cost", "ratio", "believed ratio, 95 %")

SEEN = "Pulls, means and their ratio are of the feedback so far."
BELIEVED = "The believed ratio is the policy's posterior, with its prior and the history it was given."


def allocation_table(
    names: Sequence[str], observed: Observed, policy: Policy, state: State, units: Units, down: NDArray[np.bool_]
) -> Table:
    """Of the first arms: pulls that were told and their means, and the posterior's interval of the ratio if there is
    one."""
    arms = range(min(len(names), MOST_ROWS))
    reward, cost = np.array([observed.means(arm) for arm in arms]).T
    ratio = np.divide(reward, cost, out=np.full(len(arms), np.nan), where=cost > 0.0)
    columns = [column(values.tolist()) for values in (reward, cost, ratio)]
    rows, believed = [], False
    for arm in arms:
        note = " (retired)" if not state.active[arm] else " (down)" if down[arm] else ""
        kept, interval = kept_posterior(policy, state, arm), "–"
        if kept is not None:
            low, high = kept.ratio.quantile(ENDS) * (units.reward_max / units.scale(names[arm]))
            interval, believed = f"{low:,.3g} – {high:,.3g}", True
        rows.append((f"{names[arm]}{note}", f"{observed.pulls[arm]:,}", *(values[arm] for values in columns), interval))
    more = left_out(len(names))
    notes = [f"{more}."] if more else []
    return Table(HEADS, rows, note=" ".join([*notes, SEEN, *([BELIEVED] if believed else [])]))
