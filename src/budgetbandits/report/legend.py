"""The sign of each policy in lists and tables of the page: its line and marker as figures have them, for HTML."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from budgetbandits.figures.style import SeriesStyle

MARKERS = {
    "o": "M11.6 6a3.4 3.4 0 1 1 6.8 0a3.4 3.4 0 1 1-6.8 0z",
    "s": "M12 3h6v6h-6z",
    "^": "M15 2.2l3.8 7h-7.6z",
    "v": "M15 9.8l3.8-7h-7.6z",
    "<": "M11.2 6l7-3.8v7.6z",
    ">": "M18.8 6l-7-3.8v7.6z",
    "D": "M15 1.9l4.1 4.1-4.1 4.1-4.1-4.1z",
    "P": "M13.6 2.2h2.8v2.4h2.4v2.8h-2.4v2.4h-2.8v-2.4h-2.4v-2.8h2.4z",
    "X": "M12.6 2l2.4 2.4 2.4-2.4 1.6 1.6-2.4 2.4 2.4 2.4-1.6 1.6-2.4-2.4-2.4 2.4-1.6-1.6 2.4-2.4-2.4-2.4z",
    "p": "M15 2l4 2.9-1.5 4.7h-5l-1.5-4.7z",
    "*": "M15 1.4l1.2 3.2 3.4.1-2.7 2.1 1 3.3-2.9-1.9-2.9 1.9 1-3.3-2.7-2.1 3.4-.1z",
}
"""Paths around the point (15, 6), by Matplotlib's names of markers."""
STROKE = 1.75
"""Width of the line, by which dashes are measured."""


@dataclass(frozen=True)
class Mark:
    """The name of a colour, the dashes of a line and the path of a marker."""

    series: str
    dashes: str
    marker: str


def marks(looks: Sequence[SeriesStyle]) -> list[Mark]:
    """The marks of policies that figures draw with these looks."""
    return [Mark(look.series, _dashes(look.line), MARKERS[look.marker]) for look in looks]


def _dashes(line: str | tuple[float, Sequence[float]]) -> str:
    return "" if isinstance(line, str) else " ".join(f"{STROKE * part:g}" for part in line[1])
