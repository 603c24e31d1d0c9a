"""Figures with a row for each policy: means with intervals at one budget, wins over problems, and pulls of arms."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.patches import Patch

from budgetbandits.figures import axes as scales
from budgetbandits.figures import svg
from budgetbandits.figures.layout import PaperFigure, Series, finish, grow, name_axes, note, panels, shortened
from budgetbandits.figures.style import FigureSpec, settings
from budgetbandits.formatting.numbers import count, number
from budgetbandits.numerics.arrays import AnyArray

ROW_INCHES = 0.2
"""Height of a row for text of 8.6 points."""


class MeanInterval(NamedTuple):
    """A mean and its interval; unknown numbers are not finite."""

    mean: float
    low: float
    high: float


class Wins(NamedTuple):
    """The numbers of problems on which a policy is significantly the best, the best but not significantly so, and not
    significantly worse than the best."""

    surely: int
    unsurely: int
    close: int


def dots(
    groups: Mapping[str, Sequence[MeanInterval]],
    series: Sequence[Series],
    spec: FigureSpec,
    quantity: str = "regret",
    ax: Axes | None = None,
) -> PaperFigure | Axes:
    """A figure of means, a panel for each group with the lowest mean on top. ``ax`` takes a single group.

    Estimates are in the order of the series.
    """
    log = scales.apart([np.array([estimate.mean for estimate in estimates]) for estimates in groups.values()])
    with matplotlib.rc_context(settings(spec)):
        if ax is not None:
            ((_, estimates),) = groups.items()
            _dots(ax, 0, estimates, series, spec, log)
            ax.set_xlabel(quantity)
            return ax
        figure, axes = _stack(list(groups), len(series), spec)
        for place, estimates in enumerate(groups.values()):
            _dots(axes[place], place, estimates, series, spec, log)
        name_axes(axes, quantity)
        return finish(figure)


def _stack(titles: Sequence[str], rows: int, spec: FigureSpec) -> tuple[PaperFigure, list[Axes]]:
    """Panels of this many rows, each at least 3.2 inches wide."""
    figure, axes = panels(titles, spec, columns_max=max(1, int(spec.width / 3.2)))
    above = 0.78 * spec.font / 8.6  # title and axis
    grid = math.ceil(len(titles) / max(1, min(len(titles), int(spec.width / 3.2))))
    figure.set_size_inches(spec.width, grid * (rows * ROW_INCHES * spec.font / 8.6 + above))
    return figure, axes


def _dots(
    axes: Axes, panel: int, estimates: Sequence[MeanInterval], series: Sequence[Series], spec: FigureSpec, log: bool
) -> None:
    order = sorted(range(len(series)), key=lambda place: (math.isnan(estimates[place].mean), estimates[place].mean))
    _names(axes, [series[place] for place in order], panel, spec)
    means = np.array([estimate.mean for estimate in estimates])
    tops = np.minimum([estimate.high for estimate in estimates], 2.0 * np.nanmax(means))
    low, high = scales.limits([*means, *tops])
    if log:
        low, high = min(low, np.nanmin(means)) / 1.3, high * 1.3
        axes.set_xscale("log")
        scales.logarithmic(axes.xaxis, low, high, 5)
    else:
        low, high = min(0.0, low) * 1.05, high * 1.05
        scales.straight(axes.xaxis, 4)
    axes.set_xlim(low, high)
    for row, place in enumerate(order):
        estimate, one = estimates[place], series[place]
        if math.isnan(estimate.mean):
            continue
        colour, has_interval = spec.colour(one.style), math.isfinite(estimate.low) and math.isfinite(estimate.high)
        if has_interval:
            (band,) = axes.plot(
                [max(estimate.low, low), estimate.high], [row, row], color=colour, linewidth=1.6, alpha=0.55
            )
            svg.tag(band, "band", one.number, panel)
        text = number(estimate.mean) + (f" [{number(estimate.low)}, {number(estimate.high)}]" if has_interval else "")
        low_end, high_end = (estimate.low, estimate.high) if has_interval else (None, None)
        point = svg.Point(estimate.mean, row, low_end, high_end, f"{one.name}: {text}")
        (dot,) = axes.plot(
            [estimate.mean], [row], color=colour, marker=one.style.marker, linestyle="none", markersize=4.5
        )
        svg.tag(dot, "line", one.number, panel, points=[point])
        svg.tag(note(axes, row, text, spec), "name", one.number, panel, 1)


def _names(axes: Axes, series: Sequence[Series], panel: int, spec: FigureSpec) -> None:
    """Write the names of the policies from top to bottom, with a hairline for each."""
    cell = axes.get_subplotspec()
    room = 0.4 * spec.width / (1 if cell is None else cell.get_gridspec().ncols)
    axes.set_yticks(range(len(series)), shortened([policy.name for policy in series], room, spec))
    axes.set_ylim(len(series) - 0.5, -0.5)
    for policy, text in zip(series, axes.get_yticklabels(), strict=True):
        svg.tag(text, "name", policy.number, panel)


# opacity of each kind of win, and its name in the legend
SHADES = ((1.0, "surely the best"), (0.5, "the best, not surely"), (0.16, "not surely worse than the best"))


def wins(
    groups: Mapping[str, Sequence[Wins]], problems: Mapping[str, int], series: Sequence[Series], spec: FigureSpec
) -> PaperFigure:
    """A figure of the share of problems on which each policy is the best: a panel for each group, the best on top."""
    with matplotlib.rc_context(settings(spec)):
        figure, axes = _stack([f"{group}, {count(problems[group], 'problem')}" for group in groups], len(series), spec)
        furthest = 102.0 * max(sum(wins) / problems[group] for group, counts in groups.items() for wins in counts)
        for place, (group, counts) in enumerate(groups.items()):
            _wins(axes[place], place, counts, problems[group], series, spec)
            axes[place].set_xlim(0, furthest)
        name_axes(axes, "% of the problems")
        keys = [Patch(facecolor=spec.colours["ink2"], alpha=alpha, label=label) for alpha, label in SHADES]
        columns = 1 if spec.narrow else len(keys)
        grow(figure, figure.legend(handles=keys, loc="outside lower center", ncols=columns, handlelength=1.2))
        return finish(figure)


def _wins(
    axes: Axes, panel: int, counts: Sequence[Wins], problems: int, series: Sequence[Series], spec: FigureSpec
) -> None:
    order = sorted(range(len(series)), key=lambda place: (-sum(counts[place][:2]), -counts[place].close))
    _names(axes, [series[place] for place in order], panel, spec)
    axes.grid(axis="x")
    axes.grid(visible=False, axis="y")
    for row, place in enumerate(order):
        one, start = series[place], 0.0
        for part, ((alpha, _), won) in enumerate(zip(SHADES, counts[place], strict=True)):
            share = 100.0 * won / problems
            (bar,) = axes.barh(row, share, left=start, height=0.66, color=spec.colour(one.style), alpha=alpha)
            svg.tag(bar, "fill", one.number, panel, part)
            start += share
        surely, unsurely, close = counts[place]
        svg.tag(note(axes, row, f"{surely} + {unsurely} + {close}", spec), "name", one.number, panel, 1)
    scales.straight(axes.xaxis, 5)


def pulls(
    groups: Mapping[str, AnyArray], ratios: Mapping[str, AnyArray], series: Sequence[Series], spec: FigureSpec
) -> PaperFigure:
    """A figure of the share of pulls of each arm, a panel for each problem; shares are policies × arms.

    The best arm comes first, in full colour; the others follow by ratio, and worse arms are paler.
    """
    with matplotlib.rc_context(settings(spec)):
        figure, axes = _stack(list(groups), len(series), spec)
        for place, (group, shares) in enumerate(groups.items()):
            _pulls(axes[place], place, shares, ratios[group], series, spec)
        name_axes(axes, "% of the pulls, the best arm's first")
        return finish(figure)


def _pulls(
    axes: Axes, panel: int, shares: AnyArray, ratios: AnyArray, series: Sequence[Series], spec: FigureSpec
) -> None:
    arms = np.argsort(-ratios, kind="stable")
    worth = ratios[arms] / ratios.max()
    alphas = np.where(worth >= 1.0 - 1e-12, 1.0, 0.12 + 0.48 * worth)
    good = shares[:, arms][:, worth >= 1.0 - 1e-12].sum(axis=1)
    order = np.argsort(-good, kind="stable")
    _names(axes, [series[place] for place in order], panel, spec)
    axes.grid(visible=False)
    for row, place in enumerate(order):
        one, ends = series[place], np.cumsum(100.0 * shares[place, arms])
        bars = axes.barh(
            np.full(len(arms), row), 100.0 * shares[place, arms], left=ends - 100.0 * shares[place, arms], height=0.66,
            color=[(spec.colour(one.style), alpha) for alpha in alphas], edgecolor=spec.colours["bg"], linewidth=0.4,
        )  # fmt: skip
        for part, bar in enumerate(bars):
            svg.tag(bar, "fill", one.number, panel, part)
        svg.tag(note(axes, row, f"{100.0 * good[place]:.0f} %", spec), "name", one.number, panel, 1)
    axes.set_xlim(0, 100)
    scales.straight(axes.xaxis, 4)
