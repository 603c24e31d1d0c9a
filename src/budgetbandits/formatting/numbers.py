"""How numbers are written, in reports and on the command line."""

from __future__ import annotations

import math
from decimal import Decimal


def number(value: float | None) -> str:
    """Three digits or so, thousands set off.

    >>> number(1234.5), number(12.34), number(0.01234), number(-math.inf), number(None)
    ('1,234', '12.3', '0.0123', '-∞', '–')
    """
    if value is None or math.isnan(value):
        return "–"
    if math.isinf(value):
        return "∞" if value > 0.0 else "-∞"
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:,.1f}" if abs(value) >= 1 else f"{value:,.3g}"


def short(value: float) -> str:
    """Three digits and K, M or G, where there is little room.

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
    """A number that somebody wrote down, with thousands set off.

    >>> exact(50_000.0), exact(0.25)
    ('50,000', '0.25')
    """
    return f"{value:,.10g}"


def in_full(number: float) -> str:
    """A number with all its digits, so that two that differ never read the same.

    >>> in_full(100.0), in_full(100.4), in_full(12345.678), in_full(1e12), in_full(2.5e-7)
    ('100', '100.4', '12,345.678', '1,000,000,000,000', '0.00000025')
    """
    text = f"{Decimal(repr(float(number))):,f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def written(value: object) -> str:
    """What somebody gave for a number: one as people write it, anything else as Python does; cut if it is long.

    >>> written(1e20), written(0.5), written("two"), written(math.inf), written(True)
    ('100,000,000,000,000,000,000', '0.5', "'two'", 'inf', 'True')
    """
    plain = isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < 1e25
    return in_full(value) if plain else f"{value!r:.40}"  # type: ignore[arg-type]


def estimate(value: float | None, half: float | None) -> tuple[str, str]:
    """A value and half the width of its interval, both to the second digit of the half.

    >>> estimate(1234.56, 12.3), estimate(-0.51234, 0.0123), estimate(-0.01, 3.1), estimate(5.0, 0.0)
    (('1,235', '12'), ('−0.512', '0.012'), ('0.0', '3.1'), ('5.0', '0'))
    """
    if value is None or half is None or not (math.isfinite(half) and half > 0.0 and math.isfinite(value)):
        return _minus(number(value)), _minus(number(half))
    digits = _decimals(half)
    return _minus(f"{value:,.{digits}f}"), f"{half:,.{digits}f}"


def interval(low: float | None, high: float | None) -> str:
    """Both ends to the second digit of half the width.

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
    """Like `interval`, where an end that is not known, or infinite, leaves a bound.

    >>> open_interval(38.123, 52.2), open_interval(1078.0, None), open_interval(None, None)
    ('38.1 – 52.2', 'above 1,078', '–')
    """
    if high is None or math.isinf(high):
        return "–" if low is None or math.isinf(low) else f"above {number(low)}"
    return interval(low, high)


def count(things: int, name: str) -> str:
    """
    >>> count(1, "problem"), count(1200, "run"), count(3, "policy")
    ('1 problem', '1,200 runs', '3 policies')
    """
    plural = name[:-1] + "ies" if name.endswith("y") else name + "s"
    return f"{things:,} {name if things == 1 else plural}"


def listed(words: list[str]) -> str:
    """
    >>> listed(["a"]), listed(["a", "b"]), listed(["a", "b", "c"])
    ('a', 'a and b', 'a, b and c')
    """
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"


def _decimals(half: float) -> int:
    """Places after the point that show two digits of a half-width."""
    return min(max(1 - math.floor(math.log10(half)), 0), 9)


def _minus(text: str) -> str:
    """With a minus sign, and none before a zero."""
    return text.replace("-", "−" if text.strip("-0.,") else "")
