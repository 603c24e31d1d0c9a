"""Regret against budget: lines with bands of the mean's interval, a panel for each problem or group of problems."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from matplotlib.axes import Axes

from budgetbandits.figures import axes as scales
from budgetbandits.figures import svg
from budgetbandits.figures.layout import PaperFigure, Series, line_panels
from budgetbandits.figures.style import FigureSpec
from budgetbandits.formatting.numbers import number, short
from budgetbandits.numerics.arrays import AnyArray


@dataclass(frozen=True)
class Curve:
    """The curve of a policy: its mean at each budget, the interval of the mean, and the standard deviation of runs."""

    budgets: AnyArray
    mean: AnyArray
    low: AnyArray
    high: AnyArray
    std: AnyArray


@dataclass(frozen=True)
class RegretOptions:
    """Options of a figure of regret.

    deviations  bars of the standard deviation instead of bands of the mean's interval
    log         whether the axis of values is logarithmic; None to decide by the values
    quantity    name of the values
    slopes      slope of the lower bound for panels by title
    """

    deviations: bool = False
    log: bool | None = None
    quantity: str = "regret"
    slopes: Mapping[str, float] | None = None


def regret(
    groups: Mapping[str, Sequence[Curve]],
    series: Sequence[Series],
    spec: FigureSpec,
    options: RegretOptions | None = None,
    ax: Axes | None = None,
) -> PaperFigure | Axes:
    """A figure of curves against budget, a panel for each group; curves are in the order of the series.

    Axes are logarithmic where budgets are `axes.geometric` or policies are `axes.apart` in some panel. ``ax`` takes a
    single group.
    """
    options = options or RegretOptions()
    log = apart(groups.values()) if options.log is None else options.log

    def draw(axes: Axes, panel: int, title: str) -> None:
        _panel(axes, panel, groups[title], series, spec, options, log)
        _slope(axes, groups[title], options, title, spec)

    order = by_final_value(list(groups.values()), series)
    return line_panels(list(groups), order, spec, draw, ("budget", options.quantity), ax)


def apart(groups: Iterable[Sequence[Curve]]) -> bool:
    """Whether the policies' means are `axes.apart` at some budget of some panel."""
    columns = [
        np.array([curve.mean[curve.budgets == budget][0] for curve in curves if budget in curve.budgets])
        for curves in groups
        for budget in np.unique(np.concatenate([curve.budgets for curve in curves]))
    ]
    return scales.apart(columns)


def by_final_value(groups: Sequence[Sequence[Curve]], series: Sequence[Series]) -> list[Series]:
    """The series by their mean rank at the last budget over the panels, the lowest first; curves without a value come
    last."""
    final = np.array([[curve.mean[-1] if curve.mean.size else np.inf for curve in curves] for curves in groups])
    ranks = final.argsort(axis=1).argsort(axis=1).mean(axis=0)
    return [series[place] for place in np.argsort(ranks, kind="stable")]


def _panel(
    axes: Axes,
    panel: int,
    curves: Sequence[Curve],
    series: Sequence[Series],
    spec: FigureSpec,
    options: RegretOptions,
    log: bool,
) -> None:
    budgets = np.unique(np.concatenate([curve.budgets for curve in curves]))
    means = np.concatenate([curve.mean for curve in curves])
    ends = [curve.mean + curve.std if options.deviations else curve.high for curve in curves]
    # an interval of few runs may be far wider than all there is to see
    tops = np.minimum(np.concatenate(ends), 2.0 * means.max())
    scales.value_axis(axes, np.concatenate([means, tops]), log)
    width = spec.width / spec.columns(1 if axes.get_subplotspec() is None else _in_row(axes))
    scales.budget_axis(axes, budgets.tolist(), ticks_max=max(3, int(width / 0.7)))
    for place, (curve, policy) in enumerate(zip(curves, series, strict=True)):
        _curve(axes, panel, curve, policy, spec, options, (place + 0.5) / len(series) - 0.5)


def _in_row(axes: Axes) -> int:
    cell = axes.get_subplotspec()
    return 1 if cell is None else int(cell.get_gridspec().ncols)


def _curve(
    axes: Axes, panel: int, curve: Curve, series: Series, spec: FigureSpec, options: RegretOptions, side: float
) -> None:  # fmt: skip
    colour, order = spec.colour(series.style), 40 - series.number  # the first policy lies on top
    seen = np.isfinite(curve.mean) & ((curve.mean > 0.0) | (axes.get_yscale() == "linear"))
    if not seen.any():  # empty artists would leave no room for the panel
        return
    x, y, low, high = (part[seen] for part in (curve.budgets, curve.mean, curve.low, curve.high))
    if options.deviations:
        x = _aside(axes, x, side)
        std = np.nan_to_num(curve.std[seen])
        bars = axes.errorbar(x, y, yerr=std, fmt="none", ecolor=colour, elinewidth=0.8, capsize=1.6, zorder=order)
        for part, artist in enumerate(child for child in bars.get_children()):
            svg.tag(artist, "bars", series.number, panel, part)
    else:
        bottom = axes.get_ylim()[0]
        band = axes.fill_between(
            x, np.maximum(np.nan_to_num(low, nan=bottom, neginf=bottom), bottom), np.where(np.isfinite(high), high, y),
            color=colour, alpha=0.16, linewidth=0, zorder=order / 40,
        )  # fmt: skip
        svg.tag(band, "band", series.number, panel)
    (line,) = axes.plot(
        x, y, color=colour, linestyle=series.style.line, marker=series.style.marker, markeredgewidth=0,
        label=series.name, zorder=order, clip_on=False,
    )  # fmt: skip
    svg.tag(line, "line", series.number, panel, points=_points(series.name, curve, seen))


def _points(name: str, curve: Curve, seen: AnyArray) -> list[svg.Point]:
    points = []
    for x, y, low, high in zip(
        *(part[seen].tolist() for part in (curve.budgets, curve.mean, curve.low, curve.high)), strict=True
    ):
        has_interval = math.isfinite(low) and math.isfinite(high)
        text = f"{name}, budget {short(x)}: {number(y)}" + (f" [{number(low)}, {number(high)}]" if has_interval else "")
        points.append(svg.Point(x, y, low if has_interval else None, high if has_interval else None, text))
    return points


def _aside(axes: Axes, x: AnyArray, side: float) -> AnyArray:
    """The x of a curve moved a little to its side, from −½ to ½, so that bars do not hide one another."""
    if axes.get_xscale() == "log":
        return np.asarray(x * 1.2**side)
    low, high = axes.get_xlim()
    return np.asarray(x + side * 0.025 * (high - low))


def _slope(axes: Axes, curves: Sequence[Curve], options: RegretOptions, title: str, spec: FigureSpec) -> None:
    """Draw a triangle whose long side rises as slowly as the lower bound allows any good policy's regret to, in the
    long run.

    It stands on the lowest curve, from the middle budget to the last; where the axes are not ln B and regret, its long
    side is bent as they bend it.
    """
    slope = (options.slopes or {}).get(title)
    if slope is None or not slope > 0.0:
        return
    lowest = min(curves, key=lambda curve: float(curve.mean[-1]))
    start = len(lowest.budgets) // 2
    x = np.geomspace(lowest.budgets[start], lowest.budgets[-1], 60)
    foot = float(lowest.mean[start])
    rise = foot + slope * np.log(x / x[0])
    axes.fill_between(x, foot, rise, color=spec.colours["ink3"], alpha=0.22, linewidth=0, zorder=0.5)
    axes.plot(x, rise, color=spec.colours["ink2"], linewidth=0.8, zorder=0.6)
    axes.text(
        0.99, 0.02, f"the lower bound's slope: {number(slope)} per ln B", transform=axes.transAxes,
        ha="right", va="bottom", color=spec.colours["ink2"],
    )  # fmt: skip
