"""What an ask holds for each arm, and what arms are estimated to cost for one request; in the user's units."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from budgetbandits.arrays import Array
from budgetbandits.errors import BadParameter, MissingKnowledge
from budgetbandits.units import Units, positive

MARGIN = 1.5
"""A hold for an estimated price is this many times the price, but not above the arm's largest cost."""


def estimated(prices: Mapping[str, float], among: NDArray[np.bool_], names: Sequence[str], units: Units) -> Array:
    """The estimates by arm; of those that may not be asked, the largest cost."""
    for name in prices:
        if name not in names:
            raise BadParameter(f"prices has {name!r:.40}, which is no arm; correct the name")
    caps = np.array([units.cap(name) for name in names])
    for arm in np.flatnonzero(among).tolist():
        name = names[arm]
        if name not in prices:
            raise MissingKnowledge(f"prices has no entry for arm {name!r}; give every arm one that may be asked")
        price = positive(f"price of arm {name!r}", prices[name])
        if price > caps[arm]:
            raise BadParameter(
                f"price of arm {name!r} is {price:g}, above its cost_max {caps[arm]:g}; exclude that arm"
            )
        caps[arm] = price
    return caps


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
    if not holds and (amount == 0.0 or (units.caps is None and estimates is None)):
        return amount  # with many arms, what follows takes longer than choosing one
    caps = np.array([units.cap(name) for name in names])
    amounts = np.minimum(amount, caps)
    if hold is True and estimates is not None:
        amounts = np.minimum(MARGIN * estimates, caps)
    for name, value in (holds or {}).items():
        if name not in names:
            raise BadParameter(f"holds has {name!r:.40}, which is no arm; correct the name")
        arm = names.index(name)
        amounts[arm] = positive(f"hold of arm {name!r}", value)
        if amounts[arm] > caps[arm]:
            raise BadParameter(
                f"hold of arm {name!r} is {value:g}, above its cost_max {caps[arm]:g}; hold that or less"
            )
    return np.asarray(amounts)
