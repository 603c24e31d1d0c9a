"""Numbers and money as the pages write them."""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from markupsafe import Markup

from budgetbandits.formatting.money import decimals
from budgetbandits.formatting.numbers import in_full


def digits_for(budget: float) -> int:
    """Decimals for a campaign's money: cents, more for a budget of few of them, and none for one of millions.

    >>> digits_for(2e7), digits_for(500.0), digits_for(2.5), digits_for(0.01)
    (0, 2, 4, 6)
    """
    return 0 if budget >= 1e7 else 2 if budget >= 10 else 4 if budget >= 0.1 else 6


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
    r"""An estimate with so many digits that count, in a few characters whatever its magnitude.

    >>> significant(0.012345), significant(1234.5), significant(0.0), significant(-0.5)
    ('0.0123', '1,234', '0', '−0.500')
    >>> significant(3_612_123_770.0), significant(241_196_951.0, 2), significant(1.613e-10), significant(-2e17)
    ('3.61\xa0bn', '240\xa0M', '1.61\xa0×\xa010⁻¹⁰', '−2.00\xa0×\xa010¹⁷')
    """
    if number == 0 or not math.isfinite(number):
        return "0" if number == 0 else "–"
    power = int(f"{number:.{digits - 1}e}".partition("e")[2])
    if power < -6 or power >= 15:
        return f"{number / 10.0**power:.{digits - 1}f}{SPACE}×{SPACE}10{str(power).translate(RAISED)}".replace("-", "−")
    for size, word in LARGE:
        if power >= size + (size == 6):  # up to ten millions all figures are easily read
            number, power = round(number, digits - 1 - power) / 10.0**size, power - size
            return f"{number:,.{max(0, digits - 1 - power)}f}{SPACE}{word}".replace("-", "−")
    return f"{number:,.{max(0, digits - 1 - power)}f}".replace("-", "−")


SPACE = "\u00a0"
"""At which no line is broken."""
LARGE = ((12, "tn"), (9, "bn"), (6, "M"))
RAISED = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


def on_axis(values: Sequence[float]) -> list[str]:
    """The round values of an axis, each with the digits it needs, in few characters whatever their magnitude.

    >>> on_axis([0.0, 0.5, 1.0]), on_axis([0.0, 2e5]), on_axis([0.0, 0.1, 0.2, 0.30000000000000004])
    (['0', '0.5', '1'], ['0', '200,000'], ['0', '0.1', '0.2', '0.3'])
    >>> on_axis([0.0, 2.5e7]), on_axis([0.0, 5e11, 1e12]), on_axis([0.0, 1e-10, 2e-10]), on_axis([0.0, 2e-6, 4e-6])
    (['0', '25 M'], ['0', '500 bn', '1 tn'], ['0', '1 × 10⁻¹⁰', '2 × 10⁻¹⁰'], ['0', '0.000002', '0.000004'])
    """
    digits, largest = decimals_of(values), max(map(abs, values), default=0.0)
    if (1e-5 > largest > 0 and digits > 7) or largest >= 1e15:
        return [_scientific(value) for value in values]
    names = []
    for value in values:
        size, word = next(((s, w) for s, w in LARGE if abs(value) >= 10.0**s and largest >= 1e7), (0, ""))
        names.append(f"{in_full(round(value / 10.0**size, 6 if size else digits))} {word}".rstrip())
    return names


def _scientific(value: float) -> str:
    """A round value as a few digits and a power of ten."""
    if value == 0:
        return "0"
    figures, _, power = f"{value:.3e}".partition("e")
    return f"{figures.rstrip('0').rstrip('.')} × 10{str(int(power)).translate(RAISED)}".replace("-", "−")


def size_class(text: str) -> Markup:
    """The class of a headline number: the longer it is, the smaller it is set, so that it stays on its line.

    >>> str(size_class("1,497.24")), str(size_class("369,937,528")), str(size_class("1,000,000,000,000"))
    ('', ' class="long"', ' class="longer"')
    """
    return Markup(' class="longer"' if len(text) > 15 else ' class="long"' if len(text) > 10 else "")


def plain(number: float) -> str:
    """A number that was told, as people write it: with all its digits if they are few, else with six.

    >>> plain(1.0), plain(0.25), plain(12345.678), plain(1e12), plain(1 / 3), plain(2.5e-7), plain(1e-12 / 3)
    ('1', '0.25', '12,345.678', '1,000,000,000,000', '0.333333', '0.00000025', '< 0.000001')
    """
    text = in_full(number)
    if len(text) <= 12:
        return text
    if abs(number) >= 1e6:
        return f"{number:,.0f}".replace("-", "−")
    return significant(number, 6) if abs(number) >= SMALLEST else "< 0.000001"


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
