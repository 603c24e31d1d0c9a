"""Which index policies the engines play, read off the policies themselves."""

from __future__ import annotations

from typing import Any

import numpy as np

from budgetbandits.errors import BadParameter
from budgetbandits.policies.base import Policy
from budgetbandits.policies.estimates import IndexPolicy
from budgetbandits.policies.kube import FractionalKUBE
from budgetbandits.policies.primal_dual import PrimalDualBwK
from budgetbandits.simulation.index import desk
from budgetbandits.simulation.index.rules import IndexRule, compiled, spot_check

KINDS = {
    "constant": desk.CONSTANT,
    "own": desk.OWN,
    "variance": desk.VARIANCE,
    "smallest cost": desk.FLOOR_SEEN,
}

_checked: set[type[Policy]] = set()


def rule_of(policy: Policy) -> IndexRule | None:
    """The policy's rule, or None where only the reference simulator can play it.

    The engines know how `IndexPolicy` chooses, and the two ways of it that the library has. Whoever chooses otherwise,
    or has an index that Numba cannot compile, is left to the reference simulator.
    """
    if not isinstance(policy, IndexPolicy):
        return None
    kind: type[IndexPolicy] = type(policy)
    plain = kind.choose is IndexPolicy.choose
    priced = isinstance(policy, PrimalDualBwK) and kind.choose is PrimalDualBwK.choose and policy.horizon is None
    known_purse = kind.affordable in (IndexPolicy.affordable, FractionalKUBE.affordable)
    if not (plain or priced) or not known_purse or compiled(kind.index) is None:
        return None
    if policy.first_extra not in KINDS:
        raise BadParameter(f"{policy.name}: first_extra is {policy.first_extra!r}; use one of {', '.join(KINDS)}")
    return IndexRule(kind.index, policy.monotone, KINDS[policy.first_extra])


def check_once(policy: IndexPolicy, rule: IndexRule, extras: tuple[Any, ...]) -> None:
    """Spot-check a user's declarations, once a process; the library's own are tested."""
    kind = type(policy)
    if not kind.__module__.startswith("budgetbandits.") and kind not in _checked:
        spot_check(rule, tuple(0.5 if np.ndim(extra) else float(extra) for extra in extras))
        _checked.add(kind)
