"""Many Bernoulli trials at once: up to 64 in order, as the bits of a word, or the number of successes among up to 2^62.

For bits, every lane compares a uniform number with p, bit by bit from the top; 64 lanes share the random words. A lane
is decided at the first bit in which the two differ, so the number of words needed is about two more than log2 of the
lanes.
"""

from __future__ import annotations

import math

import numpy as np
from llvmlite import ir
from numba import njit, types
from numba.extending import intrinsic

from budgetbandits.simulation.engines.runtime.draws import beta, next_word, uniform
from budgetbandits.simulation.engines.runtime.special import TABLE_SIZE, stirling_correction

ALL_BITS = np.uint64(0xFFFFFFFFFFFFFFFF)
"""A word in which all bits are set."""

ONE = np.uint64(1)
"""The number 1 as a word."""

TOP = np.uint64(63)
"""Number of the highest bit of a word."""


@intrinsic
def ones(typing_context, word):
    """How many bits of a word are set."""

    def code(context, builder, signature, arguments):
        return builder.zext(builder.ctpop(arguments[0]), ir.IntType(64))

    return types.int64(types.uint64), code


@njit(cache=True, nogil=True, forceinline=True)
def low_bits(count):
    """A word whose lowest ``count`` bits are set, 0 <= count <= 64."""
    return ALL_BITS if count >= 64 else (ONE << np.uint64(count)) - ONE


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


LOG_FACTORIALS = np.array([math.lgamma(k + 1.0) for k in range(TABLE_SIZE)])
"""Logarithms of the factorials of small numbers."""


@njit(cache=True, nogil=True, error_model="numpy")
def binomial_by_inversion(stream, n, p):
    """Sequential search from 0; for n p below about 12."""
    odds = p / (1.0 - p)
    start = math.exp(n * math.log1p(-p))
    while True:
        u = uniform(stream)
        mass = start
        k = 0
        # Beyond 120 only rounding of the partial sums could lead (mean 12): draw again instead of running on.
        while u > mass and k <= 120 and k < n:
            u -= mass
            k += 1
            mass *= odds * (n - k + 1) / k
        if k <= 120:
            return np.int64(k)


@njit(cache=True, nogil=True, error_model="numpy")
def binomial_by_rejection(stream, n, p):
    """Hormann's BTRS (transformed rejection with squeeze), p <= 1/2 and n p >= 10.

    The density ratio f(k)/f(mode) goes through log1p of (k - mode), a difference of order sqrt(n), so that
    its error stays near sqrt(n) 1e-16 instead of n 1e-16.
    """
    size = float(n)
    q = 1.0 - p
    deviation = math.sqrt(size * p * q)
    b = 1.15 + 2.53 * deviation
    a = -0.0873 + 0.0248 * b + 0.01 * p
    c = size * p + 0.5
    v_r = 0.92 - 4.2 / b
    alpha = (2.83 + 5.1 / b) * deviation
    mode = math.floor((size + 1.0) * p)
    while True:
        v = uniform(stream)
        u = uniform(stream) - 0.5
        us = 0.5 - abs(u)
        k = math.floor((2.0 * a / us + b) * u + c)
        if us >= 0.07 and v <= v_r:
            return np.int64(k)
        if k < 0.0 or k > size:
            continue
        step = k - mode
        if n < TABLE_SIZE:
            log_ratio = step * math.log(p / q)
            log_ratio += LOG_FACTORIALS[np.int64(mode)] + LOG_FACTORIALS[n - np.int64(mode)]
            log_ratio -= LOG_FACTORIALS[np.int64(k)] + LOG_FACTORIALS[n - np.int64(k)]
        else:
            log_ratio = (
                step * (math.log((p / q) * ((size - k + 1.0) / (k + 1.0))))
                - (mode + 0.5) * math.log1p(step / (mode + 1.0))
                - (size - mode + 0.5) * math.log1p(-step / (size - mode + 1.0))
                + stirling_correction(mode + 1.0)
                + stirling_correction(size - mode + 1.0)
                - stirling_correction(k + 1.0)
                - stirling_correction(size - k + 1.0)
            )
        if math.log(v * alpha / (a / (us * us) + b)) <= log_ratio:
            return np.int64(k)


@njit(cache=True, nogil=True, error_model="numpy")
def binomial(stream, n, p):
    """Binomial(n, p) for whole n up to 2^62 and 0 <= p <= 1."""
    if n <= 0 or p <= 0.0:
        return np.int64(0)
    if p >= 1.0:
        return np.int64(n)
    successes = np.int64(0)
    if n <= 4:
        for _ in range(n):
            successes += np.int64(uniform(stream) < p)
        return successes
    if n <= 64:
        return ones(trials(stream, p, n))
    left = np.int64(n)
    # Past 2^45 the floating point of the rejection step gets coarse.  The middle order statistic of n uniforms is
    # Beta, and tells on which side of it p falls: half of the trials are decided by one draw, exactly.
    while left > (1 << 45) and 0.0 < p < 1.0:
        middle = (left + 1) // 2
        place = beta(stream, float(middle), float(left + 1 - middle))
        if place <= p:
            successes += middle
            left -= middle
            p = (p - place) / (1.0 - place)
        else:
            left = middle - 1
            p = p / place
    if p <= 0.0:
        return successes
    if p >= 1.0:
        return successes + left
    if p > 0.5:
        rest = (
            binomial_by_inversion(stream, left, 1.0 - p)
            if left * (1.0 - p) < 10.0
            else (binomial_by_rejection(stream, left, 1.0 - p))
        )
        return successes + left - rest
    if left * p < 10.0:
        return successes + binomial_by_inversion(stream, left, p)
    return successes + binomial_by_rejection(stream, left, p)
