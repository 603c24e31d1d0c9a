"""Numbers, counts and names as text, for pages, reports and the command line."""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Sequence
from decimal import Decimal

NO_BREAK_SPACE = "\u00a0"
"""A space at which no line breaks."""
MAGNITUDES = ((12, "tn"), (9, "bn"), (6, "M"))
"""Powers of ten that have a short name, the largest first."""

SUPERSCRIPT = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")
"""Translation of the digits of an exponent."""


def number(value: float | None) -> str:
    """A number with about three digits and thousands separators.

    >>> number(1234.5), number(12.34), number(0.01234), number(-math.inf), number(None)
    ('1,234', '12.3', '0.0123', '-∞', '–')
    """
    if value is None or math.isnan(value):
        return "–"
    if math.isinf(value):
        return "∞" if value > 0.0 else "-∞"
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:,.1f}" if abs(value) >= 1 else f"{value:,.3g}"


def short(value: float) -> str:
    """A number with three digits and K, M or G, for places with little room.

    >>> short(200), short(5000), short(1.234e7), short(2e13), short(math.inf)
    ('200', '5K', '12.3M', '2e13', '∞')
    """
    if not 0.0 <= value < 1e12:
        return f"{value:.3g}".replace("e+", "e") if math.isfinite(value) else number(value)
    for unit, letter in ((1e9, "G"), (1e6, "M"), (1e3, "K")):
        if value >= unit:
            return f"{value / unit:.3g}{letter}"
    return f"{value:.3g}"


def exact(value: float) -> str:
    """A number as it was given, with thousands separators.

    >>> exact(50_000.0), exact(0.25)
    ('50,000', '0.25')
    """
    return f"{value:,.10g}"


def in_full(number: float) -> str:
    """A number with all its digits, so that different numbers never read the same.

    >>> in_full(100.0), in_full(100.4), in_full(12345.678), in_full(1e12), in_full(2.5e-7)
    ('100', '100.4', '12,345.678', '1,000,000,000,000', '0.00000025')
    """
    text = f"{Decimal(repr(float(number))):,f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def written(value: object) -> str:
    """A value for a message: a number as people write it, anything else as Python does; shortened if it is long.

    >>> written(1e20), written(0.5), written("two"), written(math.inf), written(True)
    ('100,000,000,000,000,000,000', '0.5', "'two'", 'inf', 'True')
    """
    plain = isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < 1e25
    return in_full(value) if plain else f"{value!r:.40}"  # type: ignore[arg-type]


def estimate(value: float | None, half: float | None) -> tuple[str, str]:
    """A value and half the width of its interval as text, both to the second digit of the half.

    >>> estimate(1234.56, 12.3), estimate(-0.51234, 0.0123), estimate(-0.01, 3.1), estimate(5.0, 0.0)
    (('1,235', '12'), ('−0.512', '0.012'), ('0.0', '3.1'), ('5.0', '0'))
    """
    if value is None or half is None or not (math.isfinite(half) and half > 0.0 and math.isfinite(value)):
        return _minus(number(value)), _minus(number(half))
    digits = _decimals(half)
    return _minus(f"{value:,.{digits}f}"), f"{half:,.{digits}f}"


def interval(low: float | None, high: float | None) -> str:
    """An interval as text, its ends to the second digit of half its width.

    >>> interval(38.123, 52.2), interval(-8.04, 1.21), interval(-math.inf, math.inf), interval(2.0, 2.0)
    ('38.1 – 52.2', '−8.0 to 1.2', '−∞ to ∞', '2.0 – 2.0')
    """
    if low is None or high is None or not (math.isfinite(low) and math.isfinite(high) and low < high):
        ends = _minus(number(low)), _minus(number(high))
    else:
        digits = _decimals((high - low) / 2)
        ends = _minus(f"{low:,.{digits}f}"), _minus(f"{high:,.{digits}f}")
    # between numbers with a sign a dash would look like another minus
    return f" {'to' if '−' in ends[0] else '–'} ".join(ends)


def open_interval(low: float | None, high: float | None) -> str:
    """An interval as text, or one bound if the other end is unknown or infinite.

    >>> open_interval(38.123, 52.2), open_interval(1078.0, None), open_interval(None, None)
    ('38.1 – 52.2', 'above 1,078', '–')
    """
    if high is None or math.isinf(high):
        return "–" if low is None or math.isinf(low) else f"above {number(low)}"
    return interval(low, high)


def count(things: int, name: str) -> str:
    """A number with its noun in the singular or plural.

    >>> count(1, "problem"), count(1200, "run"), count(3, "policy")
    ('1 problem', '1,200 runs', '3 policies')
    """
    plural = name[:-1] + "ies" if name.endswith("y") else name + "s"
    return f"{things:,} {name if things == 1 else plural}"


def listed(words: list[str]) -> str:
    """The words as one phrase, with commas and "and".

    >>> listed(["a"]), listed(["a", "b"]), listed(["a", "b", "c"])
    ('a', 'a and b', 'a, b and c')
    """
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"


def significant(number: float, digits: int = 3) -> str:
    r"""An estimate with this many significant digits, short at any magnitude.

    >>> significant(0.012345), significant(1234.5), significant(0.0), significant(-0.5)
    ('0.0123', '1,234', '0', '−0.500')
    >>> significant(3_612_123_770.0), significant(241_196_951.0, 2), significant(1.613e-10), significant(-2e17)
    ('3.61\xa0bn', '240\xa0M', '1.61\xa0×\xa010⁻¹⁰', '−2.00\xa0×\xa010¹⁷')
    """
    if number == 0 or not math.isfinite(number):
        return "0" if number == 0 else "–"
    power = int(f"{number:.{digits - 1}e}".partition("e")[2])
    if power < -6 or power >= 15:
        exponent = str(power).translate(SUPERSCRIPT)
        text = f"{number / 10.0**power:.{digits - 1}f}{NO_BREAK_SPACE}×{NO_BREAK_SPACE}10{exponent}"
        return text.replace("-", "−")
    for size, word in MAGNITUDES:
        if power >= size + (size == 6):  # below ten million all digits are easy to read
            number, power = round(number, digits - 1 - power) / 10.0**size, power - size
            return f"{number:,.{max(0, digits - 1 - power)}f}{NO_BREAK_SPACE}{word}".replace("-", "−")
    return f"{number:,.{max(0, digits - 1 - power)}f}".replace("-", "−")


def axis_labels(values: Sequence[float]) -> list[str]:
    """The labels of an axis for these round values, with the digits that they need, short at any magnitude.

    >>> axis_labels([0.0, 0.5, 1.0]), axis_labels([0.0, 2e5]), axis_labels([0.0, 0.1, 0.2, 0.30000000000000004])
    (['0', '0.5', '1'], ['0', '200,000'], ['0', '0.1', '0.2', '0.3'])
    >>> [axis_labels(each) for each in ([0.0, 2.5e7], [0.0, 5e11, 1e12], [0.0, 1e-10, 2e-10], [0.0, 2e-6, 4e-6])]
    [['0', '25 M'], ['0', '500 bn', '1 tn'], ['0', '1 × 10⁻¹⁰', '2 × 10⁻¹⁰'], ['0', '0.000002', '0.000004']]
    """
    digits, largest = _distinct_decimals(values), max(map(abs, values), default=0.0)
    if (1e-5 > largest > 0 and digits > 7) or largest >= 1e15:
        return [_scientific(value) for value in values]
    names = []
    for value in values:
        size, word = next(((s, w) for s, w in MAGNITUDES if abs(value) >= 10.0**s and largest >= 1e7), (0, ""))
        names.append(f"{in_full(round(value / 10.0**size, 6 if size else digits))} {word}".rstrip())
    return names


def _scientific(value: float) -> str:
    """A round value as a few digits and a power of ten."""
    if value == 0:
        return "0"
    figures, _, power = f"{value:.3e}".partition("e")
    return f"{figures.rstrip('0').rstrip('.')} × 10{str(int(power)).translate(SUPERSCRIPT)}".replace("-", "−")


def _distinct_decimals(values: Sequence[float]) -> int:
    """The number of decimals that tell these round values apart.

    >>> _distinct_decimals([0.0, 250.0]), _distinct_decimals([0.0, 0.25]), _distinct_decimals([0.0, 5e-07, 1e-06])
    (0, 2, 7)
    """
    largest = max(values, default=0.0)
    return next((n for n in range(12) if all(abs(round(v, n) - v) <= 1e-9 * largest for v in values)), 12)


def plain(number: float) -> str:
    """A number with all its digits if they are few, else with six.

    >>> plain(1.0), plain(0.25), plain(12345.678), plain(1e12), plain(1 / 3), plain(2.5e-7), plain(1e-12 / 3)
    ('1', '0.25', '12,345.678', '1,000,000,000,000', '0.333333', '0.00000025', '< 0.000001')
    """
    text = in_full(number)
    if len(text) <= 12:
        return text
    if abs(number) >= 1e6:
        return f"{number:,.0f}".replace("-", "−")
    return significant(number, 6) if abs(number) >= 1e-6 else "< 0.000001"


def percentage(value: float) -> str:
    """A share as a percentage with one decimal; 0 and 100 % only if it is exactly that.

    >>> [percentage(each) for each in (0.5, 0.0004, 0.9996, 0.0, 60 / 45, 1.0001)]
    ['50.0 %', '< 0.1 %', '> 99.9 %', '0 %', '133.3 %', '> 100 %']
    """
    if value in (0.0, 1.0):
        return f"{value:.0%}".replace("%", " %")
    if value < 0.001:
        return "< 0.1 %"
    if 0.999 < value < 1.001:
        return "> 99.9 %" if value < 1 else "> 100 %"
    return f"{100 * value:,.1f} %"


def thousands(number: float) -> str:
    """A number rounded to an integer, with thousands separators.

    >>> thousands(1234.4)
    '1,234'
    """
    return f"{number:,.0f}"


def truncated(name: str, width: int = 16) -> str:
    """A name cut to the width of this many digits.

    >>> truncated("EUR"), truncated("thousands of tokens"), truncated("検索広告の費用について")
    ('EUR', 'thousands of toke…', '検索広告の費用…')
    """
    if sum(map(_width, name)) <= width:
        return name
    room, kept = width - 1.0, ""
    for letter in name:
        room -= _width(letter)
        if room < 0:
            break
        kept += letter
    return f"{kept}…"


def _width(letter: str) -> float:
    """The width of a letter in digits."""
    if unicodedata.combining(letter):
        return 0.0
    if unicodedata.east_asian_width(letter) in "WF":
        return 2.0
    if letter in "MWmw@%":
        return 1.6
    return 0.55 if letter in "fijlrtI .,:;'|!-" else 1.2 if letter.isupper() else 1.0


def _decimals(half: float) -> int:
    """Places after the point that show two digits of a half-width."""
    return min(max(1 - math.floor(math.log10(half)), 0), 9)


def _minus(text: str) -> str:
    """The text of a number with a proper minus sign, and none before a zero."""
    return text.replace("-", "−" if text.strip("-0.,") else "")
