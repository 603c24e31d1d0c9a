"""Up to 64 Bernoulli trials at once, one a bit, in order.

Every lane compares a uniform number with p, bit by bit from the top; 64 lanes share the random words. A lane is decided
at the first bit in which the two differ, so the number of words needed is about two more than log2 of the lanes.
"""

from __future__ import annotations

import numpy as np
from llvmlite import ir
from numba import njit, types
from numba.extending import intrinsic

from budgetbandits.simulation.engines.runtime.draws import next_word

ALL = np.uint64(0xFFFFFFFFFFFFFFFF)
ONE = np.uint64(1)
TOP = np.uint64(63)


@intrinsic
def ones(typing_context, word):
    """How many bits of a word are set."""

    def code(context, builder, signature, arguments):
        return builder.zext(builder.ctpop(arguments[0]), ir.IntType(64))

    return types.int64(types.uint64), code


@njit(cache=True, nogil=True, forceinline=True)
def low_bits(count):
    """A word whose lowest ``count`` bits are set, 0 <= count <= 64."""
    return ALL if count >= 64 else (ONE << np.uint64(count)) - ONE


@njit(cache=True, nogil=True, error_model="numpy", forceinline=True)
def trials(stream, probability, count):
    """A word whose lowest ``count`` bits are independent trials; the others are zero."""
    lanes = low_bits(count)
    if probability >= 1.0:
        return lanes
    level = np.uint64(probability * 18446744073709551616.0)
    successes = np.uint64(0)
    # when the 64 bits of the level are used up, what is undecided equals it: not below
    while lanes != np.uint64(0) and level != np.uint64(0):
        word = next_word(stream)
        if level >> TOP:
            successes |= lanes & ~word
            lanes &= word
        else:
            lanes &= ~word
        level <<= ONE
    return successes
