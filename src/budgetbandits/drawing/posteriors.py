"""What is believed of each arm: densities of its mean reward, its mean cost and their ratio.

Rewards and costs have Beta densities. The ratio's density and distribution are means over the cost's posterior,
f(z) = E[C·f_R(zC)] and F(z) = E[F_R(zC)], taken at equally likely costs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from scipy import special

from budgetbandits.arrays import Array
from budgetbandits.drawing import axes as scales
from budgetbandits.drawing.picture import Picture, finish, panels
from budgetbandits.drawing.style import SERIES, Sheet, settings

COSTS = 200
"""Costs that a mean over the cost's posterior is taken at."""
POINTS = 240
"""Points of a density."""


SHOWN = 20
"""Arms in one figure."""
FAR = 2.5
"""The axis of ratios ends at so many times the best median."""


@dataclass(frozen=True)
class Posterior:
    """An arm's Beta posteriors, each as (successes, failures), of reward and cost in units of their largest values."""

    arm: str
    reward: tuple[float, float]
    cost: tuple[float, float]
    cost_scale: float = 1.0
    """What its largest cost is, as a share of the largest of all."""


@dataclass(frozen=True)
class Density:
    """A density at points, its median and the ends of the middle 95 %."""

    x: Array
    y: Array
    median: float
    low: float
    high: float


def beta_density(successes: float, failures: float, scale: float = 1.0) -> Density:
    """Of a Beta posterior times a scale.

    >>> round(beta_density(1.0, 1.0).median, 3), round(beta_density(1.0, 1.0, 2.0).high, 3)
    (0.5, 1.95)
    """
    low, median, high = special.betaincinv(successes, failures, np.array([0.025, 0.5, 0.975]))
    least, most = special.betaincinv(successes, failures, np.array([5e-4, 1.0 - 5e-4]))
    x = np.linspace(least, most, POINTS)
    return Density(x * scale, _beta(x, successes, failures) / scale, *(float(q * scale) for q in (median, low, high)))


def _beta(x: Array, a: float, b: float) -> Array:
    with np.errstate(divide="ignore"):
        density = special.xlogy(a - 1.0, x) + special.xlog1py(b - 1.0, -x) - special.betaln(a, b)
    return np.asarray(np.exp(density))


def ratio_density(of: Posterior, scale: float = 1.0) -> Density:
    """Of reward by cost, times a scale.

    >>> density = ratio_density(Posterior("a", (500.0, 500.0), (250.0, 750.0)))
    >>> round(density.median, 2)
    2.0
    """
    costs = special.betaincinv(*of.cost, (np.arange(COSTS) + 0.5) / COSTS)
    least = float(special.betaincinv(*of.reward, 1e-3) / special.betaincinv(*of.cost, 0.999))
    most = float(special.betaincinv(*of.reward, 0.999) / special.betaincinv(*of.cost, 0.02))
    z = np.geomspace(max(least, most * 1e-4), most, 2 * POINTS)
    reward = np.minimum(z[:, None] * costs, 1.0)
    below = special.betainc(*of.reward, reward).mean(axis=1)
    inside = z[:, None] * costs < 1.0
    density = np.where(inside, costs * _beta(np.where(inside, reward, 0.5), *of.reward), 0.0).mean(axis=1)
    median, low, high = (float(np.interp(q, below, z)) * scale for q in (0.5, 0.025, 0.975))
    shown = (below > 5e-4) & (below < 0.995)
    return Density(z[shown] * scale, density[shown] / scale, median, low, high)


def densities(of: Sequence[Posterior], reward_max: float, cost_max: float, sheet: Sheet) -> Picture:
    """Three panels, a row for each arm in its order: reward, cost, and reward by cost; every density is as high as its
    row. A stroke is the middle 95 %, an arrow says that it goes on, a dot is the median, a dotted line the best one."""
    titles = ("mean reward", "mean cost", "reward by cost")
    columns = (
        [beta_density(*each.reward, reward_max) for each in of],
        [beta_density(*each.cost, cost_max * each.cost_scale) for each in of],
        [ratio_density(each, reward_max / (cost_max * each.cost_scale)) for each in of],
    )
    with matplotlib.rc_context(settings(sheet)):
        picture, axes = panels(titles, sheet)
        rows = 1 if sheet.columns(3) == 3 else 3
        picture.set_size_inches(sheet.width, rows * (0.38 * len(of) * sheet.font / 8.6 + 0.6))
        for place, column in enumerate(columns):
            _ridges(axes[place], [each.arm for each in of], column, sheet, named=rows == 3 or place == 0)
        best = max(density.median for density in columns[2])
        # an arm that was hardly pulled may have almost any ratio: the axis ends where the others are still to be seen
        end = min(axes[2].get_xlim()[1], FAR * best)
        axes[2].set_xlim(0.0 if end < axes[2].get_xlim()[1] else None, end)
        beyond = [row for row, density in enumerate(columns[2]) if density.high > end]
        grey = sheet.colours["ink3"]
        axes[2].plot([end] * len(beyond), beyond, linestyle="none", marker=">", color=grey, clip_on=False)
        axes[2].axvline(best, color=grey, linewidth=0.9, linestyle=(0, (1.2, 1.1)), zorder=1)
        return finish(picture)


def _ridges(axes: Axes, names: Sequence[str], of: Sequence[Density], sheet: Sheet, named: bool) -> None:
    count = len(names)
    axes.set_yticks(range(count), names if named else [""] * count)
    axes.set_ylim(count - 0.8, -0.95)
    for row, density in enumerate(of):
        colour = sheet.colours[SERIES[row]] if row < len(SERIES) else sheet.colours["ink3"]
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
