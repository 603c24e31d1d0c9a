"""Amounts of money as text, for messages and tables: as many decimals as they need, and the same for all of them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from decimal import Decimal


def decimals(amounts: Iterable[float], fewest: int = 2) -> int:
    """How many decimals it takes to show these amounts in full; at most six, which is a micro.

    >>> decimals([500.0, 0.25]), decimals([500.0, 0.000021])
    (2, 6)
    """
    exponents = (Decimal(repr(round(amount, 6))).normalize().as_tuple().exponent for amount in amounts)
    return min(max([fewest, *(-each for each in exponents if isinstance(each, int))]), 6)


def shown(amounts: Sequence[float], beside: Iterable[float] = ()) -> list[str]:
    """The amounts, all with as many decimals as any of them needs, or any amount ``beside`` them.

    >>> shown([1234.5, 0.1 + 1e-6])
    ['1,234.500000', '0.100001']
    """
    digits = decimals([*amounts, *beside])
    return [f"{amount:,.{digits}f}" for amount in amounts]
