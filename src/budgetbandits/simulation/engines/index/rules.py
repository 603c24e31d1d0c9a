"""Index rules as the engines call them: the policy's own function, compiled for single arms.

No formula is written here. A policy's `index` is made of NumPy ufuncs and `either`; Numba compiles that very function
for scalars and keeps the result in its disk cache, beside the file the formula stands in, so that a changed formula is
compiled anew. The engines take the rule as the address of a function of eight floats, which is a type of its own to
Numba and leaves the engines themselves in the cache.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from types import FunctionType
from typing import Any

import numpy as np
from numba import types
from numba.core.dispatcher import Dispatcher
from numba.core.errors import NumbaError
from numba.extending import register_jitable

from budgetbandits.errors import BadParameter
from budgetbandits.numerics import (
    divergence,
    numba_extension,  # noqa: F401 - lets indices call `either`
)
from budgetbandits.policies import classical, general_costs, omega_ucb, primal_dual
from budgetbandits.policies.index import Monotone
from budgetbandits.simulation.engines.index.state import CONSTANT, EXTRAS, MOMENTS
from budgetbandits.simulation.engines.runtime.addresses import Address, compiled_function, why_not
from budgetbandits.simulation.engines.runtime.extras import packed, unpacked
from budgetbandits.simulation.engines.runtime.frozen import can_be_kept, check_frozen, content_of, register_called
from budgetbandits.simulation.known import EngineUnsupported

SLOTS = len(EXTRAS)
"""Extra arguments that the engines hand on one by one; if there are more, the last stands for the rest (`extras`)."""


HELPERS = (
    primal_dual.upper, primal_dual.lower, classical.bernoulli_upper, omega_ucb.wilson_upper, omega_ucb.wilson_lower,
    omega_ucb.by_variances,
    general_costs.rate_bound, divergence.tilt_at_gap, divergence.plain_divergence, divergence.ratio_divergence,
    divergence.largest_ratio,
)  # fmt: skip
"""The functions that the package's indices are made of."""

for helper in HELPERS:
    register_jitable(helper)


class CompiledIndex(Address):
    """A compiled index, with all the extra arguments that the engines know."""

    SIGNATURE = types.float64(*[types.float64] * (4 + SLOTS))

    def __init__(self, index: FunctionType, cached: bool) -> None:
        count = extras_of(index)
        scalar = compiled_function(index, types.float64(*[types.float64] * (4 + count)), cached)
        super().__init__(self.SIGNATURE, _with_all(scalar, count))

    def __call__(self, *numbers: float) -> float:
        extras, _kept = packed(numbers[4:], SLOTS)
        padded = [*numbers[:4], *extras, *[0.0] * (SLOTS - len(extras))]
        return float(self.dispatcher(*map(float, padded)))


def _with_all(scalar: Dispatcher, count: int) -> Callable[..., float]:
    """The index with all that the engines hand on, whether it looks at them or not."""
    if count == 0:
        return lambda reward, cost, pulls, rounds, a, b, c, d: scalar(reward, cost, pulls, rounds)
    if count == 1:
        return lambda reward, cost, pulls, rounds, a, b, c, d: scalar(reward, cost, pulls, rounds, a)
    if count == 2:
        return lambda reward, cost, pulls, rounds, a, b, c, d: scalar(reward, cost, pulls, rounds, a, b)
    if count == 3:
        return lambda reward, cost, pulls, rounds, a, b, c, d: scalar(reward, cost, pulls, rounds, a, b, c)
    if count == SLOTS:
        return lambda reward, cost, pulls, rounds, a, b, c, d: scalar(reward, cost, pulls, rounds, a, b, c, d)
    rest = count - SLOTS + 1
    return lambda reward, cost, pulls, rounds, a, b, c, d: scalar(
        reward, cost, pulls, rounds, a, b, c, *unpacked(d, rest)
    )


def extras_of(index: FunctionType) -> int:
    """How many arguments an index takes besides its first four."""
    return index.__code__.co_argcount - 4


def completed(index: Callable[..., Any], extras: tuple[Any, ...]) -> tuple[Any, ...]:
    """The extras, and the index's own defaults for those that are left out."""
    assert isinstance(index, FunctionType)
    defaults = index.__defaults__ or ()
    missing = extras_of(index) - len(extras)
    return (*extras, *defaults[len(defaults) - missing :])


_COMPILED: dict[object, CompiledIndex | str] = {}
"""By what the index is: compiled, or why it cannot be."""


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
    content = content_of(index)
    if content not in _COMPILED:
        register_called(index)
        try:
            _COMPILED[content] = CompiledIndex(index, cached=can_be_kept(index))
        except NumbaError as error:
            _COMPILED[content] = why_not(error)
    result = _COMPILED[content]
    if isinstance(result, str):
        raise EngineUnsupported(f"Numba cannot compile its index: {result}")
    return result


@dataclass(frozen=True)
class IndexRule:
    """An index, what is known of it, and what its extra arguments are.

    ``kind`` says what the first extra is: `CONSTANT`, `OWN` (a number for each arm), `VARIANCE`, `MOMENTS`,
    `FLOOR_SEEN` or `BEST_RATIO`. ``drawn`` says that the arm is drawn by its index, or explored, at random.
    """

    index: Callable[..., Any]
    monotone: Monotone
    kind: int = CONSTANT
    drawn: bool = False


def _moments(mean_reward: float, mean_cost: float, rng: np.random.Generator) -> list[float]:
    """Variances and a covariance that numbers in [0, 1] with these means can have, or nearly so."""
    rewards, costs = (rng.random() * mean * (1.0 - mean) for mean in (mean_reward, mean_cost))
    return [rewards, costs, rng.uniform(-1.0, 1.0) * np.sqrt(rewards * costs)]


def spot_check(
    rule: IndexRule, extras: tuple[float, ...] = (), points: int = 2_000, seed: int = 0, policy: str = "this policy"
) -> None:
    """Raise BadParameter where a declared monotonicity fails at random points; it can refute, never prove."""
    f = compiled(rule.index)
    known = rule.monotone
    rng = np.random.default_rng(seed)
    moves = (
        (known.rises_with_reward, 0, 1.0, "rise with mean_reward"),
        (known.falls_with_cost, 1, -1.0, "fall with mean_cost"),
        (known.falls_with_pulls, 2, -1.0, "fall with pulls"),
        (known.rises_with_rounds, 3, 1.0, "rise with rounds"),
        (known.ignores_cost, 1, 0.0, "ignore mean_cost"),
        (known.ignores_rounds, 3, 0.0, "ignore rounds"),
        (known.rises_with_first, 4, 1.0, "rise with its first extra"),
        (known.falls_with_first, 4, -1.0, "fall with its first extra"),
    )
    for _ in range(points):
        pulls = np.floor(np.exp(rng.uniform(0.0, 18.0)))
        point = [rng.random(), rng.random(), pulls, pulls + np.floor(np.exp(rng.uniform(0.0, 18.0))), *extras]
        if rule.kind == MOMENTS:
            point[4:7] = _moments(point[0], point[1], rng)
        elif rule.kind != CONSTANT:
            point[4:5] = [rng.random()]
        for declared, which, direction, words in moves:
            if not declared:
                continue
            other = list(point)
            if which < 2 or which == 4:
                other[which] += (1.0 - point[which]) * rng.random()
            else:
                other[which] = np.floor(point[which] * np.exp(rng.exponential()) + 1.0)
            low, high = f(*point), f(*other)
            slack = known.error * (1.0 + abs(low)) if np.isfinite(low) else 0.0
            fine = low == high or (direction > 0 and high >= low - slack) or (direction < 0 and high <= low + slack)
            if not fine:
                places = [", ".join(f"{number:g}" for number in place) for place in (point, other)]
                raise BadParameter(
                    f"{policy}: its index {rule.index.__name__} does not {words}: {low:g} at ({places[0]}) and {high:g} at "
                    f"({places[1]}); leave that declaration out"
                )
