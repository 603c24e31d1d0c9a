"""Figures of growth: regret beside what is proven, slopes beside the lower bound, the hardest problem."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import matplotlib
import numpy as np
import polars as pl
from matplotlib.axes import Axes

from budgetbandits.experiments.growth import Exponent, Growth, growth_budgets
from budgetbandits.experiments.paper.findings import Bounds
from budgetbandits.experiments.results import BTS, Results
from budgetbandits.figures import axes as scales
from budgetbandits.figures.layout import PaperFigure, below, finish, grow, leftmost, panels
from budgetbandits.figures.style import FigureSpec, look, settings
from budgetbandits.policies import label


def bounds_over_regret(calibrated: Results, proven: Sequence[Bounds], sheet: FigureSpec) -> PaperFigure:
    """The paper's figure with what is proven drawn over it: BTS below Theorem 1 and below what no policy exceeds."""
    measured = calibrated.summary().filter(pl.col("policy") == BTS)
    grey = sheet.colours["ink2"]
    with matplotlib.rc_context(settings(sheet)):
        picture, axes = panels([panel.group for panel in proven], sheet, shape=0.85, most=4)
        for axis, panel in zip(axes, proven, strict=True):
            rows = measured.filter(pl.col("group") == panel.group).sort("budget")
            upper = panel.upper
            axis.set_yscale("log")
            axis.plot(panel.budgets, upper["paper"], color=grey, linestyle="--", label="Theorem 1, the paper's chain")
            axis.plot(panel.budgets, upper["sharp"], color=grey, label="Theorem 1, a sharper chain")
            axis.plot(panel.budgets, panel.trivial, color=grey, linestyle=":", label="no policy exceeds")
            axis.plot(rows["budget"], rows["mean"], **_mark(0, sheet), label="BTS, measured")
            axis.set(xscale="log", xlim=(panel.budgets[0] * 0.9, panel.budgets[-1] * 1.1))
            scales.logarithmic(axis.xaxis, *axis.get_xlim(), 4)
            scales.logarithmic(axis.yaxis, *axis.get_ylim(), 5)
            _words(axes, axis, "budget", "regret")
        _legend(picture, axes[0], 1 if sheet.narrow else 4)
        return finish(picture)


def slope_of_the_lower_bound(calibrated: Results, proven: Sequence[Bounds], sheet: FigureSpec) -> PaperFigure:
    """The regret of BTS against ln B, and a triangle that rises as slowly as the lower bound lets any policy's.

    The bound is on the slope in the long run and on nothing else: against ln B a slope looks the same at any height, so
    the triangle stands where there is room.
    """
    measured = calibrated.summary().filter(pl.col("policy") == BTS)
    with matplotlib.rc_context(settings(sheet)):
        picture, axes = panels([panel.group for panel in proven], sheet, shape=0.85, most=4)
        for axis, panel in zip(axes, proven, strict=True):
            rows = measured.filter(pl.col("group") == panel.group).sort("budget")
            budgets, regret = rows["budget"].to_numpy(), rows["mean"].to_numpy()
            axis.plot(budgets, regret, **_mark(0, sheet))
            _, start, end = growth_budgets(panel.budgets)
            rise = panel.lower * math.log(end / start)
            foot = 0.08 * max(regret.max(), rise)
            axis.fill([start, end, end], [foot, foot, foot + rise], color=sheet.colours["ink3"], alpha=0.25, zorder=1)
            axis.text(
                0.04, 0.96, f"{_slope(panel.lower)} per ln B", color=sheet.colours["ink2"], va="top",
                transform=axis.transAxes,
            )  # fmt: skip
            axis.set(xscale="log", xlim=(budgets[0] * 0.9, budgets[-1] * 1.1))
            axis.set_ylim(0, 1.08 * max(regret.max(), foot + rise))
            scales.logarithmic(axis.xaxis, *axis.get_xlim(), 4)
            scales.straight(axis.yaxis)
            _words(axes, axis, "budget", "regret of BTS")
        return finish(picture)


def _slope(value: float) -> str:
    return f"{value:,.0f}" if value >= 10.0 else f"{value:.2g}"


def _mark(place: int, sheet: FigureSpec) -> dict[str, Any]:
    """The colour and marker of a place."""
    return {"color": sheet.colour(look(place)), "marker": look(place).marker}


def _words(axes: Sequence[Axes], of: Axes, along: str, up: str) -> None:
    """The names of the axes, where a panel stands at the edge."""
    if below(axes, of):
        of.set_xlabel(along)
    if leftmost(of):
        of.set_ylabel(up)


def _legend(picture: PaperFigure, of: Axes, columns: int) -> None:
    """Below the panels, with the names that one of them has."""
    grow(picture, picture.legend(*of.get_legend_handles_labels(), loc="outside lower center", ncols=columns))


def growth_beside_the_bound(slopes: pl.DataFrame, sheet: FigureSpec) -> PaperFigure:
    """A panel for each group: the slope of BTS against ln B by the lower bound's constant, from budget to budget."""
    groups = slopes["group"].unique(maintain_order=True).to_list()
    with matplotlib.rc_context(settings(sheet)):
        picture, axes = panels(groups, sheet)
        for axis, group in zip(axes, groups, strict=True):
            of_group = slopes.filter(pl.col("group") == group)
            problems = of_group["problem"].unique(maintain_order=True).to_list()
            for place, problem in enumerate(problems):
                rows = of_group.filter(pl.col("problem") == problem)
                share, low, high = (
                    rows[name].to_numpy() / rows["lower"].to_numpy() for name in ("slope", "low", "high")
                )
                middle = np.sqrt(rows["from"].to_numpy() * rows["to"].to_numpy())
                axis.errorbar(
                    middle * (1 + 0.12 * place), share, yerr=[share - low, high - share], **_mark(place, sheet),
                    elinewidth=0.9, capsize=2, label=problem.removeprefix(group).strip(" /"),
                )  # fmt: skip
            axis.axhline(1.0, color=sheet.colours["ink2"], linewidth=0.9, linestyle="--")
            axis.set_xscale("log")
            axis.set_ylim(0.0, 1.05 * max(axis.get_ylim()[1], 1.0))
            scales.logarithmic(axis.xaxis, *axis.get_xlim(), 4)
            scales.straight(axis.yaxis)
            _words(axes, axis, "budget", "slope / lower bound's constant")
            if len(problems) > 1:
                axis.legend(loc="lower right")
        return finish(picture)


def worst_regret(hardest: pl.DataFrame, fitted: Sequence[Growth], sheet: FigureSpec) -> PaperFigure:
    """A panel for each policy: the worst regret against budget, a line for each number of arms; hollow at the edge."""
    titles = [
        f"{label(growth.policy)}\nB to the power {exponent(growth.in_budget)}\n"
        f"K to the power {exponent(growth.in_arms)}"
        for growth in fitted
    ]
    with matplotlib.rc_context(settings(sheet)):
        picture, axes = panels(titles, sheet, shape=0.9)
        for axis, growth in zip(axes, fitted, strict=True):
            _worst_panel(axis, hardest.filter(pl.col("policy") == growth.policy), growth, sheet)
            _words(axes, axis, "budget B", "regret on the hardest problem")
        _legend(picture, axes[0], 4 if sheet.narrow else 8)
        return finish(picture)


def _worst_panel(axis: Axes, rows: pl.DataFrame, growth: Growth, sheet: FigureSpec) -> None:
    axis.set(xscale="log", yscale="log")
    for place, arms in enumerate(rows["arms"].unique(maintain_order=True)):
        line = rows.filter(pl.col("arms") == arms)
        budgets, worst, edge = (line[name].to_numpy() for name in ("budget", "crossed", "edge"))
        fit = math.exp(growth.constant) * budgets**growth.in_budget.value * float(arms) ** growth.in_arms.value
        mark = _mark(place, sheet)
        axis.plot(budgets, fit, color=mark["color"], linewidth=1.0, zorder=2)
        axis.plot(budgets, worst, linestyle="", markersize=4.5, label=f"K = {arms}", zorder=3, **mark)
        axis.plot(
            budgets[edge], worst[edge], linestyle="", markersize=4.5, markerfacecolor=sheet.colours["bg"], zorder=4,
            **mark,
        )  # fmt: skip
    scales.logarithmic(axis.yaxis, *axis.get_ylim(), 5)
    scales.logarithmic(axis.xaxis, *axis.get_xlim(), 5)


def exponent(of: Exponent) -> str:
    return f"{of.value:.2f} [{of.low:.2f}, {of.high:.2f}]"
