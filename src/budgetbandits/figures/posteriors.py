"""What is believed of each arm: densities of its mean reward, its mean cost and their ratio."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import matplotlib
import numpy as np
from matplotlib.axes import Axes

from budgetbandits.figures import axes as scales
from budgetbandits.figures.layout import PaperFigure, finish, panels
from budgetbandits.figures.style import FigureSpec, settings
from budgetbandits.numerics.arrays import Array
from budgetbandits.numerics.posteriors import ArmPosterior, MeanPosterior, RatioPosterior
from budgetbandits.web.assets import SERIES

POINTS = 160
"""Points of a density."""
LEVELS = np.array([5e-4, 0.025, 0.5, 0.975, 1.0 - 5e-4])
"""Where a density begins, the end of the middle 95 %, the median, the other end, and where a density ends."""
LAST = 0.995
"""Where the density of a ratio ends: its tail is long."""
SHOWN = 20
"""Arms in one figure."""
FAR = 2.5
"""The axis of ratios ends at this many times the best median."""


@dataclass(frozen=True)
class Density:
    """A density at points, its median and the ends of the middle 95 %."""

    x: Array
    y: Array
    median: float
    low: float
    high: float


def density(law: MeanPosterior | RatioPosterior, scale: float = 1.0) -> Density:
    """Of a law times a scale.

    >>> from budgetbandits.numerics.posteriors import BetaPosterior
    >>> round(density(BetaPosterior(1.0, 1.0)).median, 3), round(density(BetaPosterior(1.0, 1.0), 2.0).high, 3)
    (0.5, 1.95)
    """
    levels = np.append(LEVELS[:-1], LAST) if isinstance(law, RatioPosterior) else LEVELS
    least, low, median, high, most = law.quantile(levels)
    if isinstance(law, RatioPosterior):
        edges = np.geomspace(max(least, most * 1e-3), most, POINTS + 1)
    else:
        edges = np.linspace(least, most, POINTS + 1)
    heights = np.diff(law.cdf(edges)) / np.diff(edges)
    middles = (edges[1:] + edges[:-1]) / 2.0
    return Density(middles * scale, heights / scale, *(float(each * scale) for each in (median, low, high)))


def densities(
    of: Mapping[str, ArmPosterior], reward_max: float, costs_max: Sequence[float], spec: FigureSpec
) -> PaperFigure:
    """Three panels, a row for each arm in its order: reward, cost, and reward by cost; every density is as high as its
    row. A stroke is the middle 95 %, an arrow says that it goes on, a dot is the median, a dotted line the best one."""
    titles = ("mean reward", "mean cost", "reward by cost")
    columns = (
        [density(each.reward, reward_max) for each in of.values()],
        [density(each.cost, largest) for each, largest in zip(of.values(), costs_max, strict=True)],
        [density(each.ratio, reward_max / largest) for each, largest in zip(of.values(), costs_max, strict=True)],
    )
    with matplotlib.rc_context(settings(spec)):
        figure, axes = panels(titles, spec)
        rows = 1 if spec.columns(3) == 3 else 3
        figure.set_size_inches(spec.width, rows * (0.38 * len(of) * spec.font / 8.6 + 0.6))
        for place, column in enumerate(columns):
            _ridges(axes[place], list(of), column, spec, named=rows == 3 or place == 0)
        best = max(each.median for each in columns[2])
        # an arm that was hardly pulled may have almost any ratio: the axis ends where the others are still to be seen
        end = min(axes[2].get_xlim()[1], FAR * best)
        axes[2].set_xlim(0.0 if end < axes[2].get_xlim()[1] else None, end)
        beyond = [row for row, each in enumerate(columns[2]) if each.high > end]
        grey = spec.colours["ink3"]
        if beyond:  # Matplotlib makes no room for a line without points that is not clipped
            axes[2].plot([end] * len(beyond), beyond, linestyle="none", marker=">", color=grey, clip_on=False)
        axes[2].axvline(best, color=grey, linewidth=0.9, linestyle=(0, (1.2, 1.1)), zorder=1)
        return finish(figure)


def _ridges(axes: Axes, names: Sequence[str], of: Sequence[Density], spec: FigureSpec, named: bool) -> None:
    count = len(names)
    axes.set_yticks(range(count), names if named else [""] * count)
    axes.set_ylim(count - 0.8, -0.95)
    for row, density in enumerate(of):
        colour = spec.colours[SERIES[row]] if row < len(SERIES) else spec.colours["ink3"]
        tallest = density.y[np.isfinite(density.y)].max()
        ridge = row - 0.82 * np.minimum(density.y / tallest, 1.0)
        axes.fill_between(density.x, row, ridge, color=colour, alpha=0.28, linewidth=0, zorder=2)
        axes.plot(density.x, ridge, color=colour, linewidth=1.0, zorder=3)
        axes.plot([density.low, density.high], [row, row], color=colour, linewidth=2.2, solid_capstyle="butt", zorder=4)
        axes.plot([density.median], [row], color=colour, marker="o", markersize=4.5, zorder=5)
    low = min(density.x.min() for density in of)
    high = max(density.x.max() for density in of)
    axes.set_xlim(0.0 if low < 0.35 * high else low - 0.03 * (high - low), high + 0.03 * (high - low))
    scales.straight(axes.xaxis, 4)
