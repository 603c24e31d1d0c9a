"""Log-gamma pieces that keep their accuracy at counts of a billion and more."""

from __future__ import annotations

import math

import numpy as np
from numba import njit

HALF_LOG_TWO_PI = 0.5 * math.log(2.0 * math.pi)
"""The constant ln(2π)/2."""

ONE_OVER_TWO_PI = 0.5 / math.pi
"""The constant 1/(2π)."""


def _small_corrections(size: int) -> np.ndarray:
    table = np.zeros(size)
    for z in range(1, size):
        table[z] = math.lgamma(z) - ((z - 0.5) * math.log(z) - z + HALF_LOG_TWO_PI)
    return table


# Posterior parameters are whole numbers, so a table answers most calls; it is small enough to stay in the cache.
TABLE_SIZE = 1024
CORRECTIONS = _small_corrections(TABLE_SIZE)


@njit(cache=True, nogil=True, error_model="numpy")
def stirling_series(z):
    """The difference between log-gamma and Stirling's formula; full double accuracy from z = 10 on."""
    inverse = 1.0 / z
    w = inverse * inverse
    if z > 100.0:
        return inverse * (1.0 / 12.0 - w * (1.0 / 360.0 - w * (1.0 / 1260.0 - w / 1680.0)))
    inner = 1.0 / 1188.0 - w * (691.0 / 360360.0 - w / 156.0)
    return inverse * (1.0 / 12.0 - w * (1.0 / 360.0 - w * (1.0 / 1260.0 - w * (1.0 / 1680.0 - w * inner))))


@njit(cache=True, nogil=True, error_model="numpy")
def stirling_correction(z):
    """log-gamma(z) minus (z - 1/2) log z - z + log(2 pi)/2, for z > 0."""
    if z < TABLE_SIZE:
        whole = int(z)
        if z == whole:
            return CORRECTIONS[whole]
    if z >= 12.0:
        return stirling_series(z)
    product = 1.0
    shifted = z
    while shifted < 12.0:
        product *= shifted
        shifted += 1.0
    # The recurrence gamma(z + 1) = z gamma(z) carries small arguments up to where the series holds.
    return (
        stirling_series(shifted)
        + (shifted - 0.5) * math.log(shifted)
        - shifted
        - math.log(product)
        - (z - 0.5) * math.log(z)
        + z
    )


@njit(cache=True, nogil=True, error_model="numpy")
def scaled_log(weight, difference, value, reference):
    """weight * log(value / reference) where difference = value - reference, through log1p where they are close.

    The difference comes from the caller because it is exact there, and then nothing is lost when weight is huge.
    """
    relative = difference / reference
    if relative > -0.5:
        return weight * math.log1p(relative)
    if value <= 0.0:
        return -np.inf
    return weight * math.log(value / reference)


@njit(cache=True, nogil=True, error_model="numpy")
def kernel_body(x, a, b):
    """log of x^a (1-x)^b / B(a,b) without its factor sqrt(a b / (2 pi (a+b))), for 0 < x < 1 and a, b > 0.

    Written as a deviance from the mean a/(a+b): the large terms n log n cancel on paper, not in floating point.
    Callers collect the square roots of several kernels under one logarithm.
    """
    total = a + b
    inverse = 1.0 / total
    mean = a * inverse
    other = b * inverse
    return (
        scaled_log(a, x - mean, x, mean)
        + scaled_log(b, mean - x, 1.0 - x, other)
        - stirling_correction(a)
        - stirling_correction(b)
        + stirling_correction(total)
    )


@njit(cache=True, nogil=True, error_model="numpy")
def root_change(a, b, shift):
    """The square of the quotient of the factors that kernel_body leaves out, for (a, b) over (a + shift, b)."""
    return a * (a + b + shift) / ((a + b) * (a + shift))
