"""A campaign of the service: where its money is, and how often each arm was pulled."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import matplotlib
from matplotlib.axes import Axes
from matplotlib.patches import Patch
from matplotlib.ticker import FuncFormatter, MaxNLocator

from budgetbandits.figures.layout import PaperFigure, finish, note, shortened
from budgetbandits.figures.style import FigureSpec, settings
from budgetbandits.formatting.money import shown
from budgetbandits.formatting.numbers import short

SHOWN = 20
"""Arms in one figure."""
PARTS = {"spent": "accent", "held": "series-2", "leased": "series-4", "left": "track"}
"""What a budget is made of, and the colours."""


class Pulled(NamedTuple):
    arm: str
    pulls: int
    active: bool


def campaign(title: str, money: Mapping[str, float], arms: Sequence[Pulled], sheet: FigureSpec) -> PaperFigure:
    """The budget as a bar of its `PARTS`; below, the arms pulled most, in the campaign's order."""
    most = sorted(sorted(range(len(arms)), key=lambda place: -arms[place].pulls)[:SHOWN])
    rows = [arms[place] for place in most]
    heights = [0.75, 0.2 * len(rows) * sheet.font / 8.6 + 0.45] if rows else [0.75]
    with matplotlib.rc_context(settings(sheet)):
        picture = PaperFigure(sheet, sum(heights))
        axes = picture.subplots(len(heights), 1, squeeze=False, height_ratios=heights)[:, 0]
        _money(axes[0], title, money, sheet)
        if rows:
            _pulls(axes[1], rows, len(arms), sheet)
        return finish(picture)


def _money(axes: Axes, title: str, money: Mapping[str, float], sheet: FigureSpec) -> None:
    axes.set_title(shortened([title], sheet.width - 0.3, sheet)[0])
    start, keys = 0.0, []
    for (name, colour), text in zip(PARTS.items(), shown([money[name] for name in PARTS]), strict=True):
        if money[name] > 0.0 or name in ("spent", "left"):
            axes.barh(0, money[name], left=start, height=0.8, color=sheet.colours[colour])
            keys.append(Patch(facecolor=sheet.colours[colour], label=f"{name} {text}"))
            start += money[name]
    axes.set_xlim(0.0, start or 1.0)
    axes.set_axis_off()
    axes.legend(
        handles=keys, loc="upper left", bbox_to_anchor=(0.0, 0.0), borderaxespad=0.2, borderpad=0.0,
        ncols=2 if sheet.narrow else len(keys), handlelength=1.2, columnspacing=1.4,
    )  # fmt: skip


def _pulls(axes: Axes, rows: Sequence[Pulled], count: int, sheet: FigureSpec) -> None:
    names = shortened([each.arm for each in rows], 0.4 * sheet.width, sheet)
    names = [name if each.active else f"{name} (retired)" for name, each in zip(names, rows, strict=True)]
    axes.set_title("pulls" if len(rows) == count else f"pulls, of the {len(rows)} arms of {count:,} pulled most")
    axes.set_yticks(range(len(rows)), names)
    axes.set_ylim(len(rows) - 0.5, -0.5)
    colours = [sheet.colours["series-1" if each.active else "ink3"] for each in rows]
    axes.barh(range(len(rows)), [each.pulls for each in rows], height=0.62, color=colours, alpha=0.75)
    for row, each in enumerate(rows):
        note(axes, row, f"{each.pulls:,}", sheet)
    axes.set_xlim(0.0, 1.02 * max(1, *(each.pulls for each in rows)))
    axes.grid(visible=False, axis="y")
    axes.grid(axis="x")
    axes.xaxis.set_major_locator(MaxNLocator(nbins=4, integer=True, steps=[1, 2, 5, 10]))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: short(value)))
