"""What an ask holds for each arm, and what arms are estimated to cost for one request; in the user's units."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from budgetbandits.allocation.units import Units
from budgetbandits.errors import BadParameter, MissingKnowledge
from budgetbandits.numerics.arrays import Array
from budgetbandits.validation import positive

MARGIN = 1.5
"""A hold for an estimated price is this many times the price, but not above the arm's largest cost."""


LEAST_PRICE = 1e-12
"""Of the largest cost: a price below that is a mistake, and dividing by it would tell nothing."""


def estimated(prices: Mapping[str, float], allowed: NDArray[np.bool_], names: Sequence[str], units: Units) -> Array:
    """The estimates by arm; of those that may not answer, NaN. Arms at rest must have one, too: which prices are asked
    for does not depend on what failed."""
    given = _amounts("price", prices, names)
    found = np.full(len(names), np.nan)
    for arm in np.flatnonzero(allowed).tolist():
        name = names[arm]
        cap = units.cap(name)
        if name not in given:
            raise MissingKnowledge(f"prices has no entry for arm {name!r}; give every arm one that may be asked")
        if given[name] > cap:
            raise BadParameter(
                f"price of arm {name!r} is {given[name]:g}, above its cost_max {cap:g}; exclude that arm"
            )
        if given[name] < LEAST_PRICE * units.cost_max:
            raise BadParameter(
                f"price of arm {name!r} is {given[name]:g}, next to nothing beside cost_max {units.cost_max:g}; "
                "give it in the unit of the budget"
            )
        found[arm] = given[name]
    return found


def _amounts(what: str, amounts: Mapping[str, float], names: Sequence[str]) -> dict[str, float]:
    """Amounts by arm, each of them checked."""
    if not isinstance(amounts, Mapping):
        raise BadParameter(f"{what}s is {amounts!r:.40}; map the names of arms to amounts")
    there = set(names)
    for name in amounts:
        if name not in there:
            raise BadParameter(f"{what}s has {name!r:.40}, which is no arm; correct the name")
    return {name: positive(f"{what} of arm {name!r}", amount) for name, amount in amounts.items()}


def amounts_to_hold(
    hold: float | bool,
    holds: Mapping[str, float] | None,
    estimates: Array | None,
    names: Sequence[str],
    units: Units,
) -> Array | float:
    """What an ask holds if it is for this arm: one number if it is the same for all."""
    amount = units.cost_max if hold is True else 0.0 if hold is False else positive("hold", hold)
    if amount > units.cost_max:
        raise BadParameter(f"hold is {amount:g}, above cost_max {units.cost_max:g}; hold that or less")
    held = {} if holds is None else _amounts("hold", holds, names)
    if not held and (amount == 0.0 or (units.caps is None and estimates is None)):
        return amount  # with many arms, what follows takes longer than choosing one
    caps = np.array([units.cap(name) for name in names])
    amounts = np.minimum(amount, caps)
    if hold is True and estimates is not None:
        amounts = np.minimum(MARGIN * estimates, caps)
    for name, value in held.items():
        arm = names.index(name)
        if value > caps[arm]:
            raise BadParameter(
                f"hold of arm {name!r} is {value:g}, above its cost_max {caps[arm]:g}; hold that or less"
            )
        amounts[arm] = value
    return np.asarray(amounts)
