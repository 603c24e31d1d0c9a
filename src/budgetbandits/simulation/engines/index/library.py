"""Which index policies the engines play, read off the policies themselves."""

from __future__ import annotations

from budgetbandits.errors import BadParameter
from budgetbandits.policies.index import IndexPolicy, MomentsPolicy, index_of
from budgetbandits.policies.kube import FractionalKUBE
from budgetbandits.policies.primal_dual import PrimalDualBwK
from budgetbandits.simulation.engines.index.rules import IndexRule, compiled
from budgetbandits.simulation.engines.index.state import BEST_RATIO, CONSTANT, FLOOR_SEEN, MOMENTS, OWN, VARIANCE
from budgetbandits.simulation.engines.runtime.frozen import plain
from budgetbandits.simulation.known import EngineUnsupported, check_methods, methods

KINDS = {
    "constant": CONSTANT,
    "own": OWN,
    "variance": VARIANCE,
    "moments": MOMENTS,
    "smallest cost": FLOOR_SEEN,
    "best ratio": BEST_RATIO,
}

COUNTING = methods(IndexPolicy, "select_knowledge", "choose", "scores", "chances", "can_continue") | {
    "start": (IndexPolicy.start, MomentsPolicy.start),
    "observe": (IndexPolicy.observe, MomentsPolicy.observe),
    "add_history": (IndexPolicy.add_history, MomentsPolicy.add_history),
    "affordable": (IndexPolicy.affordable, FractionalKUBE.affordable),
}
"""What the engines of index policies stand in for."""

PRICED = COUNTING | methods(
    PrimalDualBwK, "start", "choose", "observe", "can_continue", "_raise_prices", "_common_budget"
)
"""The same for `PrimalDualBwK`, whose prices stand still as long as it has no horizon."""


def rule_of(policy: IndexPolicy) -> IndexRule:
    """The policy's rule; `EngineUnsupported` where only the reference simulator can play it as it is written.

    The engines know how `IndexPolicy` learns and chooses, and the two ways of it that the library has. Whoever does
    otherwise, or has an index that Numba cannot compile, is left to the reference simulator.
    """
    if isinstance(policy, PrimalDualBwK) and policy.horizon is not None:
        raise EngineUnsupported("with a horizon its prices move in every round")
    check_methods(policy, PRICED if isinstance(policy, PrimalDualBwK) else COUNTING)
    index = plain(index_of(policy))
    compiled(index)
    if policy.first_extra not in KINDS:
        raise BadParameter(f"{policy.name}: first_extra is {policy.first_extra!r}; use one of {', '.join(KINDS)}")
    drawn = policy.softmax or policy.exploration(1) > 0.0
    return IndexRule(index, policy.monotone, KINDS[policy.first_extra], drawn)
