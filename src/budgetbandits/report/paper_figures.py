"""The figure that only the paper's report has: who wins on which random problem."""

from __future__ import annotations

import matplotlib
import numpy as np
from matplotlib.axes import Axes

from budgetbandits.experiments.paper.observations import bts_against_others
from budgetbandits.experiments.plots import series_of
from budgetbandits.experiments.results import BTS, Results
from budgetbandits.figures import axes as scales
from budgetbandits.figures import svg
from budgetbandits.figures.layout import PaperFigure, Series, below, finish, leftmost, legend, panels
from budgetbandits.figures.style import FigureSpec, settings
from budgetbandits.formatting.numbers import number
from budgetbandits.numerics.arrays import AnyArray


def who_wins(ensemble: Results, sheet: FigureSpec) -> PaperFigure:
    """A point for each random problem: the regret of BTS against that of the best other policy, hollow if unsure."""
    means = ensemble.values().mean(axis=-1)
    bts = ensemble.policies.index(BTS)
    others = np.where(np.arange(means.shape[1]) == bts, np.inf, means)
    x, y, rival = means[:, bts], others.min(axis=1), others.argmin(axis=1)
    lower, higher = bts_against_others(ensemble)
    groups = np.array([problem["group"] for problem in ensemble.record["problems"]])
    names = np.array([problem["name"] for problem in ensemble.record["problems"]])
    series = series_of(ensemble)
    with matplotlib.rc_context(settings(sheet)):
        picture, axes = panels(ensemble.groups, sheet, shape=1.25, most=4)
        for place, group in enumerate(ensemble.groups):
            here = groups == group
            axis = axes[place]
            _diagonal(axis, min(x[here].min(), y[here].min()) * 0.8, max(x[here].max(), y[here].max()) * 1.25, sheet)
            for each in series:
                for part, sure in enumerate((True, False)):
                    chosen = here & (rival == each.number) & ((lower | higher) == sure)
                    _points(axis, place, part, each, sheet, (x[chosen], y[chosen], names[chosen]))
            unsure = int((~lower & ~higher)[here].sum())
            axis.set_title(
                f"{group}\nBTS lowest on {lower[here].sum()},\nnot on {higher[here].sum()}, unsure on {unsure}"
            )
            if below(axes, axis):
                axis.set_xlabel("regret of BTS")
            if leftmost(axis):
                axis.set_ylabel("regret of the best other")
        legend(picture, [each for each in series if each.number != bts], sheet, line=False)
        return finish(picture)


def _points(
    axes: Axes, panel: int, part: int, series: Series, sheet: FigureSpec, at: tuple[AnyArray, AnyArray, AnyArray]
) -> None:
    x, y, names = at
    if not len(x):
        return
    colour = sheet.colour(series.look)
    (drawn,) = axes.plot(
        x, y, linestyle="none", marker=series.look.marker, color=colour, markeredgewidth=0.7,
        markerfacecolor="none" if part else colour, clip_on=False,
    )  # fmt: skip
    said = [
        svg.Point(ours, theirs, None, None, f"{name}: BTS {number(ours)}, {series.name} {number(theirs)}")
        for ours, theirs, name in zip(x.tolist(), y.tolist(), names, strict=True)
    ]
    svg.tag(drawn, "line", series.number, panel, part, said)


def _diagonal(axes: Axes, low: float, high: float, sheet: FigureSpec) -> None:
    """A square in logarithms with its diagonal."""
    axes.plot([low, high], [low, high], color=sheet.colours["ink3"], linewidth=0.8, zorder=1)
    axes.set(xscale="log", yscale="log", xlim=(low, high), ylim=(low, high))
    for scale in (axes.xaxis, axes.yaxis):
        scales.logarithmic(scale, low, high, 4)
    axes.set_box_aspect(1)
