"""Arms: the pulls of a policy next to the true ratios, and arms in the plane of cost and reward."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import matplotlib
import numpy as np
from matplotlib.axes import Axes

from budgetbandits.figures import axes as scales
from budgetbandits.figures.layout import PaperFigure, check_axes, finish, note
from budgetbandits.figures.style import FigureSpec, settings
from budgetbandits.formatting.numbers import number
from budgetbandits.numerics.arrays import AnyArray

ARMS_SHOWN_MAX = 20
"""Most arms with a row of their own; the others share one."""
ARMS_NAMED_MAX = 12
"""Most arms with a name in the plane; of more arms only the best have one."""
NAME_DISTANCE = 0.045
"""Smallest distance of two names, as a share of the plane, at which they do not cover each other."""


@dataclass(frozen=True)
class PullShares:
    """The arms with their true ratios, mean numbers of pulls, and shares of the pulls with their intervals."""

    names: Sequence[str]
    ratios: AnyArray
    count: AnyArray
    share: AnyArray
    low: AnyArray
    high: AnyArray


def pulls(shares: PullShares, title: str, spec: FigureSpec) -> PaperFigure:
    """A figure with a row for each arm, the best on top: its share of pulls, their number, its ratio and its gap."""
    order = np.argsort(-shares.ratios, kind="stable")
    shown, rest = order[:ARMS_SHOWN_MAX], order[ARMS_SHOWN_MAX:]
    labels = [shares.names[arm] for arm in shown] + ([f"{len(rest)} others"] if len(rest) else [])
    with matplotlib.rc_context(settings(spec)):
        figure = PaperFigure(spec, len(labels) * 0.2 * spec.font / 8.6 + 0.75)
        left, right = figure.subplots(1, 2, sharey=True, width_ratios=[3, 2])
        left.set_title(title)
        left.set_yticks(range(len(labels)), labels)
        left.set_ylim(len(labels) - 0.5, -0.5)
        share, count = (
            np.append(part[shown], part[rest].sum() if len(rest) else []) for part in (shares.share, shares.count)
        )
        share *= 100.0
        left.barh(range(len(labels)), share, height=0.62, color=spec.colours["series-1"], alpha=0.75)
        low, high = 100.0 * shares.low[shown], 100.0 * shares.high[shown]
        left.hlines(np.arange(len(shown)), low, high, color=spec.colours["ink"], linewidth=1.0)
        for row, value in enumerate(count):
            note(left, row, number(value), spec)
        left.set_xlim(0, max(share.max(), np.nan_to_num(high).max()) * 1.02)
        left.set_xlabel("% of the pulls, and their number")
        _ratios(right, shares.ratios[shown], spec)
        for axes in (left, right):
            axes.grid(visible=False, axis="y")
            axes.grid(axis="x")
            scales.straight(axes.xaxis, 4 if axes is left else 3)
        return finish(figure)


def _ratios(axes: Axes, ratios: AnyArray, spec: FigureSpec) -> None:
    rows = np.arange(len(ratios))
    axes.axvline(ratios.max(), color=spec.colours["ink3"], linewidth=0.8, linestyle=(0, (1.2, 1.1)))
    axes.hlines(rows, ratios, ratios.max(), color=spec.colours["series-2"], linewidth=1.2)
    axes.plot(ratios, rows, linestyle="none", marker="o", markersize=4, color=spec.colours["series-2"])
    axes.tick_params(labelleft=False)
    axes.set_xlim(0, ratios.max() * 1.06)
    axes.set_xlabel("ratio, gap" if spec.narrow else "ratio, and gap to the best")


def plane(
    names: Sequence[str], costs: AnyArray, rewards: AnyArray, spec: FigureSpec, ax: Axes | None = None
) -> PaperFigure | Axes:
    """A figure of arms by mean cost and mean reward.

    The ratio is constant on a line through the origin. The steepest line is that of the best arm; each other line has
    its ratio as a share of the best ratio at its end.
    """
    check_axes(ax)
    with matplotlib.rc_context(settings(spec)):
        if ax is not None:
            _plane(ax, names, costs, rewards, spec)
            return ax
        size = min(spec.width, 5.0)
        figure = PaperFigure(FigureSpec(size, spec.font, spec.colours), size * 0.85)
        _plane(figure.subplots(), names, costs, rewards, spec)
        return finish(figure)


def _plane(axes: Axes, names: Sequence[str], costs: AnyArray, rewards: AnyArray, spec: FigureSpec) -> None:
    ratios = rewards / costs
    right, top = float(costs.max()) * 1.12, float(rewards.max()) * 1.12
    best = ratios >= ratios.max() * (1.0 - 1e-12)
    for part in (1.0, 0.75, 0.5, 0.25):
        slope = part * float(ratios.max())
        x = min(right, top / slope)
        axes.plot(
            [0.0, x], [0.0, x * slope], color=spec.colours["ink2" if part == 1.0 else "line"], linewidth=0.9,
            linestyle="-" if part == 1.0 else "--", zorder=1,
        )  # fmt: skip
        axes.annotate(
            f"{slope:.3g}", (x, x * slope), xytext=(2, 2), textcoords="offset points", color=spec.colours["ink3"],
            ha="left" if x == right else "center", va="center" if x == right else "bottom", annotation_clip=False,
        )  # fmt: skip
    for which, series, marker in ((~best, "series-1", "o"), (best, "series-2", "D")):
        colour = spec.colours[series]
        axes.plot(costs[which], rewards[which], linestyle="none", marker=marker, markersize=4.5, color=colour, zorder=3)
    placed: list[tuple[float, float]] = []
    for arm in np.argsort(-ratios, kind="stable"):
        places = costs[arm] / right, rewards[arm] / top
        crowded = any(abs(places[0] - x) < 4 * NAME_DISTANCE and abs(places[1] - y) < NAME_DISTANCE for x, y in placed)
        if (len(names) <= ARMS_NAMED_MAX and not crowded) or best[arm]:
            placed.append(places)
            axes.annotate(
                names[arm], (costs[arm], rewards[arm]), xytext=(4, -1), textcoords="offset points", va="top",
                color=spec.colours["ink" if best[arm] else "ink2"], zorder=4,
            )  # fmt: skip
    axes.set(xlim=(0, right), ylim=(0, top), xlabel="mean cost", ylabel="mean reward")
    axes.grid(visible=False)
    axes.spines["left"].set_visible(True)
    for axis in (axes.xaxis, axes.yaxis):
        scales.straight(axis, 4)
