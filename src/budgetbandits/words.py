"""How numbers are written, in reports and on the command line."""

from __future__ import annotations

import math


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
