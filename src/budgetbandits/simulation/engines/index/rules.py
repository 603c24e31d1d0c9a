"""Index rules as the engines call them: the policy's own function, compiled for single arms.

No formula is written here. A policy's `index` is made of NumPy ufuncs and `where`; Numba compiles that very function
for scalars and keeps the result in its disk cache, next to the file of the formula, so that a changed formula is
compiled again. The engines take the rule as the address of a function, which leaves the engines themselves in the cache.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable
from dataclasses import dataclass
from types import FunctionType
from typing import Any

import numpy as np
from numba import types
from numba.core.dispatcher import Dispatcher

from budgetbandits.errors import BadParameter
from budgetbandits.policies.index import IndexPolicy, MomentsPolicy, Monotonicity, index_of
from budgetbandits.policies.kube import FractionalKUBE
from budgetbandits.policies.primal_dual import PrimalDualBwK
from budgetbandits.policies.prior import PriorPolicy
from budgetbandits.simulation.engine_support import EngineUnsupported, check_methods, methods, once
from budgetbandits.simulation.engines.index.state import (
    BEST_RATIO,
    CONSTANT,
    EXTRAS,
    FLOOR_SEEN,
    MOMENTS,
    MONEY,
    OWN,
    VARIANCE,
)
from budgetbandits.simulation.engines.runtime.policy_functions import (
    Address,
    check_frozen,
    compiled_function,
    content_of,
    numbers_at,
    plain,
)

SLOTS = len(EXTRAS)
"""Extra arguments that the engines hand on one by one; the others stand in an array, of which they hand on the address."""


class CompiledIndex(Address):
    """A compiled index, called with the first extra arguments and the address of the others, whether it has any or not."""

    SIGNATURE = types.float64(*[types.float64] * (4 + SLOTS), types.int64)

    def __init__(self, index: FunctionType) -> None:
        count = extras_of(index)
        scalar = compiled_function(index, "index", types.float64(*[types.float64] * (4 + count)))
        super().__init__(self.SIGNATURE, _with_all(scalar, count))

    def __call__(self, *numbers: float) -> float:
        first, more = numbers[: 4 + SLOTS], np.array(numbers[4 + SLOTS :], dtype=float)
        padded = [*map(float, first), *[0.0] * (4 + SLOTS - len(first))]
        return float(self.dispatcher(*padded, more.ctypes.data))


def _with_all(scalar: Dispatcher, count: int) -> Callable[..., float]:
    """The index with all that the engines hand on."""
    if count <= SLOTS:
        return lambda reward, cost, pulls, rounds, a, b, c, more: scalar(
            reward, cost, pulls, rounds, *(a, b, c)[:count]
        )
    rest = numbers_at(count - SLOTS)
    return lambda reward, cost, pulls, rounds, a, b, c, more: scalar(reward, cost, pulls, rounds, a, b, c, *rest(more))


def extras_of(index: Callable[..., Any]) -> int:
    """How many arguments an index takes besides its first four."""
    assert isinstance(index, FunctionType)
    return index.__code__.co_argcount - 4


def completed(index: Callable[..., Any], extras: tuple[Any, ...]) -> tuple[Any, ...]:
    """The extras, and the index's own defaults for those that are left out."""
    assert isinstance(index, FunctionType)
    defaults = index.__defaults__ or ()
    missing = extras_of(index) - len(extras)
    return (*extras, *defaults[len(defaults) - missing :])


def compiled(index: Callable[..., Any]) -> CompiledIndex:
    """The compiled index, once per process and for each value of what it reads; `EngineUnsupported` if it cannot be compiled."""
    odd = inspect.CO_VARARGS | inspect.CO_VARKEYWORDS
    if not isinstance(index, FunctionType) or index.__code__.co_flags & odd or index.__code__.co_kwonlyargcount:
        raise EngineUnsupported("its index is no plain function of numbered arguments")
    if extras_of(index) < 0:
        raise EngineUnsupported(
            f"its index takes {4 + extras_of(index)} arguments; the first four are the mean reward, the mean cost, the "
            f"pulls and the rounds"
        )
    check_frozen(index, "index")
    result: CompiledIndex = once(("index", content_of(index)), lambda: CompiledIndex(index))
    return result


@dataclass(frozen=True)
class IndexRule:
    """An index, what is known of it, and what its extra arguments are.

    ``kind`` says what the first extra is: `CONSTANT`, `OWN` (a number for each arm), `VARIANCE`, `MOMENTS`, `MONEY`,
    `FLOOR_SEEN` or `BEST_RATIO`. ``drawn`` says that the arm is drawn by its index, or explored, at random.
    """

    index: Callable[..., Any]
    monotone: Monotonicity
    kind: int = CONSTANT
    drawn: bool = False


# --- which rule a policy has -----------------------------------------------------------------------------------------


KINDS = {
    "constant": CONSTANT,
    "own": OWN,
    "variance": VARIANCE,
    "moments": MOMENTS,
    "money": MONEY,
    "smallest cost": FLOOR_SEEN,
    "best ratio": BEST_RATIO,
}
"""Numbers of the kinds of extras, by name."""

INDEX_METHODS = methods(IndexPolicy, "select_knowledge", "scores", "chances") | {
    "start": (IndexPolicy.start, MomentsPolicy.start, PriorPolicy.start, PrimalDualBwK.start),
    "observe": (IndexPolicy.observe, MomentsPolicy.observe, PriorPolicy.observe, PrimalDualBwK.observe),
    "add_history": (IndexPolicy.add_history, MomentsPolicy.add_history, PriorPolicy.add_history),
    "affordable": (IndexPolicy.affordable, FractionalKUBE.affordable),
    "choose": (IndexPolicy.choose, PrimalDualBwK.choose),
    "can_continue": (IndexPolicy.can_continue, PrimalDualBwK.can_continue),
}
"""The methods that the engines of index policies stand in for."""

PRICE_METHODS = {
    name: (None, *kept) for name, kept in methods(PrimalDualBwK, "_raise_prices", "_common_budget").items()
}
"""Those of `PrimalDualBwK`, whose prices stand still as long as it has no horizon; other policies have none."""


def rule_of(policy: IndexPolicy) -> IndexRule:
    """The policy's rule; `EngineUnsupported` where only the reference simulator can play it as it is written.

    The engines know how `IndexPolicy` learns and chooses, and the two variants that the library has. A
    policy that does otherwise, or whose index Numba cannot compile, is left to the reference simulator.
    """
    if policy.rule_kind(math.inf) == "priced":
        raise EngineUnsupported("with a horizon its prices move in every round")
    check_methods(policy, INDEX_METHODS | PRICE_METHODS)
    if policy.lead > 0.0 and (policy.first_pulls or policy.first_extra != "money"):
        raise EngineUnsupported("only a rule without first pulls whose first extra is money has its prior fitted there")
    index = plain(index_of(policy))
    compiled(index)
    if policy.first_extra not in KINDS:
        raise BadParameter(f"{policy.name}: first_extra is {policy.first_extra!r}; use one of {', '.join(KINDS)}")
    drawn = policy.softmax or policy.exploration(1) > 0.0
    return IndexRule(index, policy.monotone, KINDS[policy.first_extra], drawn)
