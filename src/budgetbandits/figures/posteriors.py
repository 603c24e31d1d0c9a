"""The posteriors of arms as figures: densities of the mean reward, the mean cost and their ratio."""

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

DENSITY_POINTS = 160
"""Number of points of a density."""
LEVELS = np.array([5e-4, 0.025, 0.5, 0.975, 1.0 - 5e-4])
"""Levels of the ends of a density (the first and the last), of its middle 95 %, and of its median."""
RATIO_LEVEL_MAX = 0.995
"""Level at which the density of a ratio ends, since its tail is long."""
ARMS_SHOWN_MAX = 20
"""Most arms in one figure."""
RATIO_AXIS_MAX = 2.5
"""End of the axis of ratios, as a multiple of the best median."""


@dataclass(frozen=True)
class Density:
    """A density at some points, with its median and the ends of the middle 95 %."""

    x: Array
    y: Array
    median: float
    low: float
    high: float


def density(law: MeanPosterior | RatioPosterior, scale: float = 1.0) -> Density:
    """The density of a posterior times a scale.

    >>> from budgetbandits.numerics.posteriors import BetaPosterior
    >>> round(density(BetaPosterior(1.0, 1.0)).median, 3), round(density(BetaPosterior(1.0, 1.0), 2.0).high, 3)
    (0.5, 1.95)
    """
    levels = np.append(LEVELS[:-1], RATIO_LEVEL_MAX) if isinstance(law, RatioPosterior) else LEVELS
    least, low, median, high, most = law.quantile(levels)
    if isinstance(law, RatioPosterior):
        edges = np.geomspace(max(least, most * 1e-3), most, DENSITY_POINTS + 1)
    else:
        edges = np.linspace(least, most, DENSITY_POINTS + 1)
    heights = np.diff(law.cdf(edges)) / np.diff(edges)
    middles = (edges[1:] + edges[:-1]) / 2.0
    return Density(middles * scale, heights / scale, *(float(level * scale) for level in (median, low, high)))


def densities(
    posteriors: Mapping[str, ArmPosterior], reward_max: float, costs_max: Sequence[float], spec: FigureSpec
) -> PaperFigure:
    """A figure of the densities of reward, cost and reward by cost: three panels with a row for each arm.

    Every density is as high as its row. A stroke marks the middle 95 %, an arrow that it goes on, a dot the median, and
    a dotted line the best median.
    """
    titles = ("mean reward", "mean cost", "reward by cost")
    columns = (
        [density(posterior.reward, reward_max) for posterior in posteriors.values()],
        [density(posterior.cost, largest) for posterior, largest in zip(posteriors.values(), costs_max, strict=True)],
        [
            density(posterior.ratio, reward_max / largest)
            for posterior, largest in zip(posteriors.values(), costs_max, strict=True)
        ],
    )
    with matplotlib.rc_context(settings(spec)):
        figure, axes = panels(titles, spec)
        rows = 1 if spec.columns(3) == 3 else 3
        figure.set_size_inches(spec.width, rows * (0.38 * len(posteriors) * spec.font / 8.6 + 0.6))
        for place, column in enumerate(columns):
            _ridges(axes[place], list(posteriors), column, spec, named=rows == 3 or place == 0)
        best = max(row.median for row in columns[2])
        # an arm that was hardly pulled may have almost any ratio: the axis ends where the others are still to be seen
        end = min(axes[2].get_xlim()[1], RATIO_AXIS_MAX * best)
        axes[2].set_xlim(0.0 if end < axes[2].get_xlim()[1] else None, end)
        beyond = [row for row, row_density in enumerate(columns[2]) if row_density.high > end]
        grey = spec.colours["ink3"]
        if beyond:  # Matplotlib makes no room for a line without points that is not clipped
            axes[2].plot([end] * len(beyond), beyond, linestyle="none", marker=">", color=grey, clip_on=False)
        axes[2].axvline(best, color=grey, linewidth=0.9, linestyle=(0, (1.2, 1.1)), zorder=1)
        return finish(figure)


def _ridges(axes: Axes, names: Sequence[str], rows: Sequence[Density], spec: FigureSpec, named: bool) -> None:
    count = len(names)
    axes.set_yticks(range(count), names if named else [""] * count)
    axes.set_ylim(count - 0.8, -0.95)
    for row, density in enumerate(rows):
        colour = spec.colours[SERIES[row]] if row < len(SERIES) else spec.colours["ink3"]
        tallest = density.y[np.isfinite(density.y)].max()
        ridge = row - 0.82 * np.minimum(density.y / tallest, 1.0)
        axes.fill_between(density.x, row, ridge, color=colour, alpha=0.28, linewidth=0, zorder=2)
        axes.plot(density.x, ridge, color=colour, linewidth=1.0, zorder=3)
        axes.plot([density.low, density.high], [row, row], color=colour, linewidth=2.2, solid_capstyle="butt", zorder=4)
        axes.plot([density.median], [row], color=colour, marker="o", markersize=4.5, zorder=5)
    low = min(density.x.min() for density in rows)
    high = max(density.x.max() for density in rows)
    axes.set_xlim(0.0 if low < 0.35 * high else low - 0.03 * (high - low), high + 0.03 * (high - low))
    scales.straight(axes.xaxis, 4)
