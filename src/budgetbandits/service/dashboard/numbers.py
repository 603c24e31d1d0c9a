"""Numbers and money as the pages write them."""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from budgetbandits.amounts import decimals
from budgetbandits.words import in_full


def digits_for(budget: float) -> int:
    """Decimals for a campaign's money: cents, and more for a budget of few of them.

    >>> digits_for(500.0), digits_for(2.5), digits_for(0.01)
    (2, 4, 6)
    """
    return 2 if budget >= 10 else 4 if budget >= 0.1 else 6


SMALLEST = 1e-6
"""A micro: what a campaign's money is counted in."""
NOTHING = 1e-12
"""What floating-point arithmetic may leave of amounts that are the same."""


def money(amount: float, digits: int = 2) -> str:
    """An amount with this many decimals, or with more if it would read as nothing and is not.

    >>> money(1497.239), money(-0.004), money(0.0000251), money(2e-8), money(-1e-17)
    ('1,497.24', '−0.004', '0.00003', '< 0.000001', '0.00')
    """
    if abs(amount) < NOTHING:
        return f"{0:.{digits}f}"
    if abs(amount) < SMALLEST / 2:
        return "< 0.000001" if amount > 0 else "> −0.000001"
    while digits < 6 and not round(amount, digits):
        digits += 1
    return f"{amount:,.{digits}f}".replace("-", "−")


def exact(amount: float, digits: int = 2) -> str:
    """An amount of the books with all its decimals, at least this many.

    >>> exact(20.0), exact(0.0025), exact(1.000001)
    ('20.00', '0.0025', '1.000001')
    """
    return money(amount, max(digits, decimals([amount])))


def short(name: str, most: int = 16) -> str:
    """A name that takes no more room than so many figures.

    >>> short("EUR"), short("thousands of tokens"), short("検索広告の費用について")
    ('EUR', 'thousands of toke…', '検索広告の費用…')
    """
    if sum(map(_width, name)) <= most:
        return name
    room, kept = most - 1.0, ""
    for letter in name:
        room -= _width(letter)
        if room < 0:
            break
        kept += letter
    return f"{kept}…"


def _width(letter: str) -> float:
    """How many figures wide a letter is."""
    if unicodedata.combining(letter):
        return 0.0
    if unicodedata.east_asian_width(letter) in "WF":
        return 2.0
    if letter in "MWmw@%":
        return 1.6
    return 0.55 if letter in "fijlrtI .,:;'|!-" else 1.2 if letter.isupper() else 1.0


@dataclass(frozen=True)
class Unit:
    """What amounts of a campaign are in, and with how many decimals they are written."""

    digits: int
    currency: str = ""

    @classmethod
    def of(cls, budget: float, settings: Mapping[str, Any], *amounts: float) -> Unit:
        """As the campaign's page writes money, with more decimals if any of these amounts needs them.

        >>> Unit.of(500.0, {"currency": "EUR"}, 0.0025).money(20.0)
        '20.0000 EUR'
        """
        return cls(max(digits_for(budget), decimals(amounts)), short(settings.get("currency") or ""))

    def money(self, amount: float) -> str:
        return f"{money(amount, self.digits)} {self.currency}".rstrip()


def decimals_of(values: Sequence[float]) -> int:
    """How many decimals it takes to tell these round values apart.

    >>> decimals_of([0.0, 250.0]), decimals_of([0.0, 0.25]), decimals_of([0.0, 5e-07, 1e-06])
    (0, 2, 7)
    """
    largest = max(values, default=0.0)
    return next((n for n in range(12) if all(abs(round(v, n) - v) <= 1e-9 * largest for v in values)), 12)


def count(number: float) -> str:
    return f"{number:,.0f}"


def significant(number: float, digits: int = 3) -> str:
    """
    >>> significant(0.012345), significant(1234.5), significant(0.0), significant(-0.5)
    ('0.0123', '1,234', '0', '−0.500')
    """
    if number == 0 or not math.isfinite(number):
        return "0" if number == 0 else "–"
    places = max(0, digits - 1 - math.floor(math.log10(abs(number))))
    return f"{number:,.{places}f}".replace("-", "−")


def plain(number: float) -> str:
    """A number that was told, as people write it: with all its digits if they are few, else with six.

    >>> plain(1.0), plain(0.25), plain(12345.678), plain(1e12), plain(1 / 3), plain(2.5e-7), plain(1e-12 / 3)
    ('1', '0.25', '12,345.678', '1,000,000,000,000', '0.333333', '0.00000025', '< 0.000001')
    """
    text = in_full(number)
    if len(text) <= 12:
        return text
    return significant(number, 6) if abs(number) >= SMALLEST else "< 0.000001"


def tick_names(values: Sequence[float]) -> list[str]:
    """The round values of an axis, each with the digits it needs.

    >>> tick_names([0.0, 0.5, 1.0]), tick_names([0.0, 2e7]), tick_names([0.0, 0.1, 0.2, 0.30000000000000004])
    (['0', '0.5', '1'], ['0', '20,000,000'], ['0', '0.1', '0.2', '0.3'])
    """
    digits = decimals_of(values)
    return [in_full(round(value, digits)) for value in values]


def share(value: float) -> str:
    """A share with one decimal; never 0 or 100 % for what is neither.

    >>> share(0.5), share(0.0004), share(0.9996), share(0.0), share(60 / 45), share(1.0001)
    ('50.0 %', '< 0.1 %', '> 99.9 %', '0 %', '133.3 %', '> 100 %')
    """
    if value in (0.0, 1.0):
        return f"{value:.0%}".replace("%", " %")
    if value < 0.001:
        return "< 0.1 %"
    if 0.999 < value < 1.001:
        return "> 99.9 %" if value < 1 else "> 100 %"
    return f"{100 * value:,.1f} %"
