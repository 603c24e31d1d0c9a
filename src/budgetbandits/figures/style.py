"""The style of figures: colours, lines and markers of policies, sizes for each width, Matplotlib's settings.

Policies differ in colour, line style and marker at once. Six colours and five line styles are taken in
step, so that thirty policies in a row all differ in the pair and neighbours in both; eleven markers in the same step
keep 330 apart. The colours stay apart for every eye: at least 14 in CIE76 under simulated protanopia, deuteranopia
and tritanopia (`tests/figures/test_style.py`).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from budgetbandits.errors import BadParameter
from budgetbandits.web.assets import DARK, LIGHT, SERIES

# line styles and markers, taken in step with the colours
LINES: tuple[Any, ...] = ("-", (0, (5.0, 1.6)), (0, (1.2, 1.1)), (0, (6.0, 1.5, 1.2, 1.5)), (0, (2.6, 1.2)))
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "p", "<", "*", ">")

WIDTHS = {"paper": 3.3, "page": 10.0, "phone": 380 / 96}
"""Widths of figures in inches: a column of a two-column paper; a page of text at 96 pixels an inch; a phone of 412
pixels without its margins."""

WIDTH_MIN = 2.0
"""Smallest width of a figure in inches."""


@dataclass(frozen=True)
class SeriesStyle:
    """The style of a policy: the name of its colour (``series``), its line and its marker."""

    series: str
    line: Any
    marker: str


@dataclass(frozen=True)
class FigureSpec:
    """The sheet of a figure: its width in inches, the size of its text in points, its colours, and whether it has a
    legend of its own."""

    width: float
    font: float
    colours: Mapping[str, str]
    legend: bool = True

    @property
    def narrow(self) -> bool:
        """Whether two panels do not fit side by side."""
        return self.width < 5.0

    def columns(self, panels: int, columns_max: int = 4) -> int:
        """The number of panels side by side: each at least 2.2 inches wide, with rows of about equal length."""
        fit = max(1, min(panels, columns_max, int(self.width / (2.2 * self.font / 7.5))))
        return math.ceil(panels / math.ceil(panels / fit))

    def colour(self, style: SeriesStyle) -> str:
        """The colour of a policy."""
        return self.colours[style.series]


def figure_spec(width: str | float = "page", dark: bool = False) -> FigureSpec:
    """The sheet with a width by name, or in inches.

    >>> figure_spec("paper").width, figure_spec("paper").font, figure_spec(7).font
    (3.3, 7.5, 8.6)
    """
    if isinstance(width, str):
        if width not in WIDTHS:
            raise BadParameter(f"unknown width {width!r}; choose {', '.join(WIDTHS)}, or a number of inches")
        inches = WIDTHS[width]
    elif isinstance(width, bool) or not isinstance(width, int | float):
        raise BadParameter(f"width is {width!r:.40}; use {', '.join(WIDTHS)}, or a number of inches")
    else:
        inches = float(width)
    if not inches >= WIDTH_MIN:
        raise BadParameter(f"a width of {inches:g} inches leaves no room; use at least {WIDTH_MIN:g}")
    # print is read closer than a screen: 7.5 points there, 11.5 pixels here
    return FigureSpec(inches, 7.5 if width == "paper" else 8.6, DARK if dark else LIGHT)


def series_style(place: int) -> SeriesStyle:
    """The style of a place; neighbours differ in colour, line and marker."""
    return SeriesStyle(SERIES[place % len(SERIES)], LINES[place % len(LINES)], MARKERS[place % len(MARKERS)])


def series_styles(policies: Sequence[str], fixed: Sequence[str] = ()) -> list[SeriesStyle]:
    """The styles of these policies, in order.

    Those in ``fixed`` have the places of that list in every study. The others take the first place that is free,
    differs in colour and line style from the policy before and, if that is a fixed one, the policy after, and has a
    colour that no other policy of the figure has, as long as there is one.

    >>> [each.series for each in series_styles(["bts", "mine", "kube"], fixed=["bts", "kube"])]
    ['series-1', 'series-3', 'series-2']
    """
    places = [fixed.index(policy) if policy in fixed else None for policy in policies]
    taken = {place for place in places if place is not None} | set(range(len(fixed)))
    for i, place in enumerate(places):
        if place is None:
            neighbours = [places[j] for j in (i - 1, i + 1) if 0 <= j < len(places)]
            used = {other % len(SERIES) for other in places if other is not None}
            chosen = _first_free(taken, [other for other in neighbours if other is not None], used)
            places[i] = chosen
            taken.add(chosen)
    return [series_style(place) for place in places if place is not None]


def _first_free(taken: set[int], neighbours: Sequence[int], used: set[int]) -> int:
    """The first free place that is unlike its neighbours and has an unused colour; five line styles leave one."""
    avoided = used if len(used) < len(SERIES) else set()
    place = 0
    while place in taken or place % len(SERIES) in avoided or any(_alike(place, other) for other in neighbours):
        place += 1
    return place


def _alike(first: int, second: int) -> bool:
    apart = first - second
    return apart % len(SERIES) == 0 or apart % len(LINES) == 0


def settings(spec: FigureSpec) -> Any:
    """Matplotlib's settings while a figure is drawn on this sheet."""
    colours = spec.colours
    return {
        "font.family": "DejaVu Sans",
        "font.size": spec.font,
        "axes.titlesize": spec.font,
        "axes.titleweight": "bold",
        "axes.titlelocation": "left",
        "axes.labelsize": spec.font,
        "xtick.labelsize": spec.font,
        "ytick.labelsize": spec.font,
        "legend.fontsize": spec.font,
        "legend.frameon": False,
        "figure.facecolor": colours["bg"],
        "savefig.facecolor": colours["bg"],
        "axes.facecolor": "none",
        "text.color": colours["ink"],
        "axes.titlecolor": colours["ink"],
        "axes.labelcolor": colours["ink2"],
        "axes.edgecolor": colours["ink3"],
        "xtick.color": colours["ink3"],
        "ytick.color": colours["ink3"],
        "xtick.labelcolor": colours["ink2"],
        "ytick.labelcolor": colours["ink2"],
        "axes.linewidth": 0.6,
        "xtick.major.width": 0.6,
        "ytick.major.width": 0.6,
        "xtick.minor.width": 0.4,
        "ytick.minor.width": 0.4,
        "xtick.major.size": 2.5,
        "ytick.major.size": 0.0,
        "xtick.minor.size": 1.5,
        "ytick.minor.size": 0.0,
        "axes.spines.top": False,
        "axes.spines.right": False,
        "axes.spines.left": False,
        "axes.grid": True,
        "axes.grid.axis": "y",
        "grid.color": colours["line"],
        "grid.linewidth": 0.6,
        "axes.axisbelow": True,
        "lines.linewidth": 1.3,
        "lines.markersize": 3.2,
        "hatch.linewidth": 0.6,
        "text.parse_math": False,  # names of problems are text, whatever signs are in them
        **SAVE_SETTINGS,
    }


SAVE_SETTINGS: Any = {
    "svg.fonttype": "none",  # text stays text
    "svg.hashsalt": "budgetbandits",  # the same figure is the same file
    "pdf.fonttype": 42,  # fonts that publishers accept
}
"""Matplotlib's settings while a figure is written."""
