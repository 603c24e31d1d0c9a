"""Amounts of money as text: with as many decimals as they need, and equally many for amounts shown together."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from decimal import Decimal

from budgetbandits.formatting.numbers import truncated

MICRO = 1e-6
"""The smallest amount that a campaign's books hold."""
DECIMAL_ROUNDING = 1e-12
"""Largest difference between an amount and its rounded value that counts as a floating-point error."""


def decimals(amounts: Iterable[float], fewest: int = 2) -> int:
    """The decimals that show all these amounts in full, at most six.

    >>> decimals([500.0, 0.25]), decimals([500.0, 0.000021])
    (2, 6)
    """
    exponents = (Decimal(repr(round(amount, 6))).normalize().as_tuple().exponent for amount in amounts)
    return min(max([fewest, *(-exponent for exponent in exponents if isinstance(exponent, int))]), 6)


def same_decimals(amounts: Sequence[float], others: Iterable[float] = ()) -> list[str]:
    """The amounts as text, with as many decimals as any of them or of the ``others`` needs.

    >>> same_decimals([1234.5, 0.1 + 1e-6])
    ['1,234.500000', '0.100001']
    """
    digits = decimals([*amounts, *others])
    return [f"{amount:,.{digits}f}" for amount in amounts]


def budget_decimals(budget: float) -> int:
    """The number of decimals for amounts of a campaign: two, more for a tiny budget, none for one of millions.

    >>> budget_decimals(2e7), budget_decimals(500.0), budget_decimals(2.5), budget_decimals(0.01)
    (0, 2, 4, 6)
    """
    return 0 if budget >= 1e7 else 2 if budget >= 10 else 4 if budget >= 0.1 else 6


def money(amount: float, digits: int = 2) -> str:
    """An amount with this many decimals, or with more if it would otherwise read as zero.

    >>> money(1497.239), money(-0.004), money(0.0000251), money(2e-8), money(-1e-17)
    ('1,497.24', '−0.004', '0.00003', '< 0.000001', '0.00')
    """
    if abs(amount) < DECIMAL_ROUNDING:
        return f"{0:.{digits}f}"
    if abs(amount) < MICRO / 2:
        return "< 0.000001" if amount > 0 else "> −0.000001"
    while digits < 6 and not round(amount, digits):
        digits += 1
    return f"{amount:,.{digits}f}".replace("-", "−")


def exact_money(amount: float, digits: int = 2) -> str:
    """An amount with all its decimals, at least this many.

    >>> exact_money(20.0), exact_money(0.0025), exact_money(1.000001)
    ('20.00', '0.0025', '1.000001')
    """
    return money(amount, max(digits, decimals([amount])))


@dataclass(frozen=True)
class MoneyFormat:
    """How a campaign's page writes money: the number of decimals and the currency."""

    digits: int
    currency: str = ""

    @classmethod
    def for_budget(cls, budget: float, currency: str | None, *amounts: float) -> MoneyFormat:
        """The format for a budget, with more decimals if any of these amounts needs them.

        >>> MoneyFormat.for_budget(500.0, "EUR", 0.0025).money(20.0)
        '20.0000 EUR'
        """
        return cls(max(budget_decimals(budget), decimals(amounts)), truncated(currency or ""))

    def money(self, amount: float) -> str:
        """The amount as text, with the currency."""
        return f"{money(amount, self.digits)} {self.currency}".rstrip()
