"""The relative entropy of two Bernoulli laws, accurate also where the two are almost the same."""

from __future__ import annotations

import math

SERIES_BELOW = 0.05
"""Where x − ln(1 + x) would lose digits to cancellation, its power series is used."""


def relative_entropy(p: float, q: float) -> float:
    """kl(p, q) = p ln(p/q) + (1 − p) ln((1 − p)/(1 − q)), in nats; infinite where q rules p out or is no probability.

    >>> relative_entropy(0.5, 0.25)
    0.14384103622589045
    >>> f"{relative_entropy(0.5, 0.5 + 1e-9):.4g}"  # the plain formula gives 0 or noise
    '2e-18'
    >>> relative_entropy(0.5, 1.0)
    inf
    """
    if q < 0.0 or q > 1.0 or (q == 0.0 and p > 0.0) or (q == 1.0 and p < 1.0):
        return math.inf
    return shifted_entropy(p, q, q - p)


def shifted_entropy(p: float, q: float, shift: float) -> float:
    """kl(p, q) for 0 ≤ q ≤ 1 when ``shift`` = q − p is known better than the difference of the two numbers.

    The first-order parts of the two logarithms cancel exactly, so they are left out: with g(x) = x − ln(1 + x), which
    is never negative, kl = p·g(shift/p) + (1 − p)·g(−shift/(1 − p)).
    """
    if p == 0.0:
        return -math.log1p(-q)
    if p == 1.0:
        return -math.log(q)
    return _part(p, q, shift) + _part(1.0 - p, 1.0 - q, -shift)


def _part(p: float, q: float, shift: float) -> float:
    """p·(x − ln(1 + x)) with x = shift/p and so 1 + x = q/p."""
    x = shift / p
    if abs(x) >= SERIES_BELOW:
        return p * (x - math.log(q / p))
    total = 0.0
    for power in range(13, 1, -1):  # 0.05¹² is below the last digit of the first term
        total = total * -x + 1.0 / power
    return p * x * x * total
