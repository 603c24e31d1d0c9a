"""The transfer of what a policy has learned to other units or to another policy.

A policy learns rewards and costs as shares of the largest there can be. When these largest values change, `carried`
writes what was learned as shares of the new ones: counts stay, and so does every mean in the user's unit
(`Policy.rescaled`). A posterior, and a policy with other statistics than the one before, begins again with the totals
of each arm (`Policy.totals`), as if they were its history. A mean that would be above the new largest value counts as
that value.
"""

from __future__ import annotations

from dataclasses import fields

from budgetbandits.errors import BadParameter
from budgetbandits.policies.base import Knowledge, Policy, State, UnitChange


def carried(old: Policy, state: State, new: Policy, known: Knowledge, units: UnitChange, spent: float) -> State:
    """A state for the policy ``new`` with what ``old`` has learned in ``state``.

    ``known`` and ``spent``, the money spent of the budget, are in the new units.
    """
    empty: State = new.start(len(state.pulls), known)
    kept = old.rescaled(state, units) if type(empty) is type(state) else None
    if kept is not None:
        for field in fields(kept):
            if field.name != "known":
                setattr(empty, field.name, getattr(kept, field.name))
        return empty
    empty.active = state.active
    for arm in range(len(state.pulls)):
        pulls, reward, cost = totals(old, state, arm)
        if pulls:
            shares = min(reward * units.reward, pulls), min(cost * float(units.costs[arm]), pulls)
            new.add_history(empty, arm, pulls, *shares)
    new.set_spent(empty, spent)
    return empty


def totals(policy: Policy, state: State, arm: int) -> tuple[int, float, float]:
    """The remembered pulls of an arm, and the totals of their rewards and costs, in the policy's units."""
    sums = policy.totals(state, arm)
    if sums is None:
        raise BadParameter(
            f"{policy.name} does not say what it has learned; write totals(self, state, arm) in its class, or create a "
            "new campaign"
        )
    pulls = round(sums[0])
    reward, cost = (min(max(total, 0.0), float(pulls)) for total in sums[1:])
    return pulls, reward, cost
