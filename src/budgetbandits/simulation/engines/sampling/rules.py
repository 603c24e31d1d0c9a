"""A policy's own `score` and `learn`, compiled: no formula is written here.

Numba compiles the very functions of the policy and keeps the result in its disk cache, beside the file they stand in.
The loop takes each as the address of a function, which is a type of its own to Numba and leaves the loop in the cache.
Numba's generator methods draw what NumPy's draw.
"""

from __future__ import annotations

import inspect
from dataclasses import dataclass
from types import FunctionType
from typing import Any

import numpy as np
from numba import carray, typeof, types
from numba.core.dispatcher import Dispatcher
from numba.core.errors import NumbaError
from numba.extending import register_jitable

from budgetbandits.numerics import numba_extension  # noqa: F401 - lets scores call `trial`
from budgetbandits.policies.empirical import rounded
from budgetbandits.policies.sampling import SamplingPolicy, function_of
from budgetbandits.simulation.engines.runtime.addresses import Address, compiled_function, why_not
from budgetbandits.simulation.engines.runtime.extras import unpacked
from budgetbandits.simulation.engines.runtime.frozen import (
    can_be_kept,
    check_frozen,
    content_of,
    plain,
    register_called,
)
from budgetbandits.simulation.engines.runtime.pointers import float_pointer
from budgetbandits.simulation.engines.sampling.state import EXTRAS
from budgetbandits.simulation.known import EngineUnsupported

NUMBER = types.float64
STATISTICS = types.Array(NUMBER, 1, "C")
GENERATOR = typeof(np.random.default_rng(0))

SCORE = NUMBER(types.int64, GENERATOR, *[NUMBER] * len(EXTRAS))
LEARN = types.void(types.int64, NUMBER, NUMBER, GENERATOR, *[NUMBER] * len(EXTRAS))


register_jitable(rounded)


@dataclass(frozen=True)
class SamplingRule:
    """How a policy draws and learns, as the loop calls it."""

    score: Address
    learn: Address


_COMPILED: dict[tuple[object, ...], SamplingRule | str] = {}
"""By what the two functions are and what they are given: compiled, or why they cannot be."""


def rule_of(policy: SamplingPolicy) -> SamplingRule:
    """The policy's rule, compiled once per process; `EngineUnsupported` where Numba cannot compile it."""
    score, learn = (plain(function_of(policy, name)) for name in ("score", "learn"))
    for name, function in (("score", score), ("learn", learn)):
        if not isinstance(function, FunctionType):
            raise EngineUnsupported(f"it has no {name} that could be compiled")
        check_frozen(function, name)
    rows, count = len(policy.start(1).statistics), len(policy.extras())
    key = content_of(score), content_of(learn), rows, count
    if key not in _COMPILED:
        _COMPILED[key] = _compiled(score, learn, rows, count)
    result = _COMPILED[key]
    if isinstance(result, str):
        raise EngineUnsupported(result)
    return result


def _compiled(score: FunctionType, learn: FunctionType, rows: int, count: int) -> SamplingRule | str:
    draw = _scalar("score", score, NUMBER(STATISTICS, GENERATOR, *[NUMBER] * count))
    if isinstance(draw, str):
        return draw
    add = _scalar("learn", learn, types.void(STATISTICS, NUMBER, NUMBER, GENERATOR, *[NUMBER] * count))
    if isinstance(add, str):
        return add
    if count <= len(EXTRAS):
        return SamplingRule(
            Address(SCORE, lambda at, rng, a, b, c: draw(carray(float_pointer(at), (rows,)), rng, *(a, b, c)[:count])),
            Address(
                LEARN,
                lambda at, reward, cost, rng, a, b, c: add(
                    carray(float_pointer(at), (rows,)), reward, cost, rng, *(a, b, c)[:count]
                ),
            ),
        )
    rest = count - len(EXTRAS) + 1
    return SamplingRule(
        Address(
            SCORE, lambda at, rng, a, b, c: draw(carray(float_pointer(at), (rows,)), rng, a, b, *unpacked(c, rest))
        ),
        Address(
            LEARN,
            lambda at, reward, cost, rng, a, b, c: add(
                carray(float_pointer(at), (rows,)), reward, cost, rng, a, b, *unpacked(c, rest)
            ),
        ),
    )


def _scalar(name: str, function: FunctionType, signature: Any) -> Dispatcher | str:
    """The function compiled, or why it cannot be."""
    try:
        inspect.signature(function).bind(*signature.args)
    except TypeError as error:
        return f"its {name} does not take what the engine gives it: {error}"
    register_called(function)
    try:
        return compiled_function(function, signature, can_be_kept(function))
    except NumbaError as error:
        return f"Numba cannot compile its {name}: {why_not(error)}"
