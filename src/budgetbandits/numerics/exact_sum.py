"""A sum of floats that is exact, however many are added and taken away again, and in whatever order."""

from __future__ import annotations

_LEAST = 1074
"""Every float is a whole multiple of 2^−1074."""

_ONE = 1 << _LEAST


class ExactSum:
    """A running sum in one whole number: `math.fsum` of all that is in it, without looking at all that is in it.

    >>> total = ExactSum()
    >>> for amount in (0.1, 1e16, 0.2):
    ...     total.add(amount)
    >>> total.take(1e16)
    >>> total.value == 0.1 + 0.2
    True
    """

    __slots__ = ("_total", "value")

    def __init__(self) -> None:
        self._total = 0
        self.value = 0.0
        """The float that is nearest to the sum."""

    def add(self, amount: float) -> None:
        self._total += _multiples(amount)
        self.value = self._total / _ONE

    def take(self, amount: float) -> None:
        """Take away what was added before."""
        self._total -= _multiples(amount)
        self.value = self._total / _ONE


def _multiples(amount: float) -> int:
    top, bottom = amount.as_integer_ratio()  # the bottom is a power of two
    return top << (_LEAST + 1 - bottom.bit_length())
