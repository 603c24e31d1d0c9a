"""Figures of growth: regret beside what is proven, slopes beside the lower bound, the hardest problem."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import polars as pl
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, FuncFormatter, NullFormatter

from budgetbandits.experiments.paper.proven import Bounds
from budgetbandits.experiments.results import BTS, Results
from budgetbandits.experiments.slopes import growth_budgets
from budgetbandits.experiments.worst_case import Exponent, Growth
from budgetbandits.policies.names import label
from budgetbandits.report.figures import COLOURS, STYLE, look, on_axis, round_numbers


def bounds_over_regret(calibrated: Results, panels: Sequence[Bounds]) -> Figure:
    """The paper's figure with what is proven drawn over it: BTS below Theorem 1 and below what no policy exceeds."""
    measured = calibrated.summary().filter(pl.col("policy") == BTS)
    with plt.rc_context(STYLE):
        figure, axes = plt.subplots(2, 2, figsize=(9.2, 7.1), squeeze=False)
        for axis, panel in zip(axes.flat, panels, strict=True):
            rows = measured.filter(pl.col("group") == panel.group).sort("budget")
            budgets = np.array(panel.budgets)
            upper = panel.upper
            axis.plot(budgets, upper["paper"], color="#555555", linestyle="--", label="Theorem 1, the paper's chain")
            axis.plot(budgets, upper["sharp"], color="#555555", label="Theorem 1, a sharper chain")
            axis.plot(budgets, panel.trivial, color="#555555", linestyle=":", label="no policy exceeds")
            axis.plot(rows["budget"], rows["mean"], **look(0), markersize=3.5, label="BTS, measured")
            axis.set(yscale="log")
            axis.set_title(panel.group)
            _budget_axis(axis, budgets)
            axis.yaxis.set_major_formatter(FuncFormatter(on_axis))
        for axis in axes[:, 0]:
            axis.set_ylabel("regret")
        for axis in axes[-1]:
            axis.set_xlabel("budget")
        handles, labels = axes[0, 0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="upper center", ncols=2, frameon=False)
        figure.tight_layout(rect=(0, 0, 1, 0.92))
    return figure


def slope_of_the_lower_bound(calibrated: Results, panels: Sequence[Bounds]) -> Figure:
    """The regret of BTS against ln B, and a triangle that rises as slowly as the lower bound lets any policy's.

    The bound is on the slope in the long run and on nothing else: against ln B a slope looks the same at any height, so
    the triangle stands where there is room.
    """
    measured = calibrated.summary().filter(pl.col("policy") == BTS)
    with plt.rc_context(STYLE):
        figure, axes = plt.subplots(1, len(panels), figsize=(9.6, 3.2), squeeze=False)
        for axis, panel in zip(axes.flat, panels, strict=True):
            rows = measured.filter(pl.col("group") == panel.group).sort("budget")
            budgets, regret = rows["budget"].to_numpy(), rows["mean"].to_numpy()
            axis.plot(budgets, regret, **look(0), markersize=3.5)
            _, start, end = growth_budgets(panel.budgets)
            rise = panel.lower * math.log(end / start)
            foot = 0.08 * max(regret.max(), rise)
            axis.fill([start, end, end], [foot, foot, foot + rise], facecolor="#f7d9c4", edgecolor=COLOURS[1], zorder=1)
            axis.text(
                0.05, 0.95, f"{_slope(panel.lower)} per ln B", color=COLOURS[1], va="top", transform=axis.transAxes
            )
            axis.set_ylim(0, 1.08 * max(regret.max(), foot + rise))
            axis.set_title(panel.group, fontsize=8.5)
            axis.set_xlabel("budget")
            _budget_axis(axis, budgets)
            axis.yaxis.set_major_formatter(FuncFormatter(on_axis))
        axes[0, 0].set_ylabel("regret of BTS")
        figure.tight_layout()
    return figure


def _slope(value: float) -> str:
    return f"{value:,.0f}" if value >= 10.0 else f"{value:.2g}"


def _budget_axis(axis: Axes, budgets: np.ndarray[Any, Any]) -> None:
    axis.set(xscale="log", xlim=(budgets[0] * 0.9, budgets[-1] * 1.1))
    axis.xaxis.set_major_locator(FixedLocator(round_numbers(budgets[0], budgets[-1])))
    axis.xaxis.set_minor_formatter(NullFormatter())
    axis.xaxis.set_major_formatter(FuncFormatter(on_axis))


def growth_beside_the_bound(slopes: pl.DataFrame) -> Figure:
    """A panel for each group: the slope of BTS against ln B by the lower bound's constant, from budget to budget."""
    groups = slopes["group"].unique(maintain_order=True).to_list()
    with plt.rc_context(STYLE):
        figure, axes = plt.subplots(
            1, len(groups), figsize=(max(3.2 * len(groups), 4.6), 3.2), squeeze=False, sharey=True
        )  # fmt: skip
        for axis, group in zip(axes.flat, groups, strict=True):
            of_group = slopes.filter(pl.col("group") == group)
            problems = of_group["problem"].unique(maintain_order=True).to_list()
            lines = []
            for place, problem in enumerate(problems):
                rows = of_group.filter(pl.col("problem") == problem)
                share, low, high = (
                    rows[name].to_numpy() / rows["lower"].to_numpy() for name in ("slope", "low", "high")
                )
                middle = np.sqrt(rows["from"].to_numpy() * rows["to"].to_numpy())
                lines.append(
                    axis.errorbar(
                        middle * (1 + 0.12 * place), share, yerr=[share - low, high - share], **look(place),
                        markersize=4, linewidth=1.2, elinewidth=0.9, capsize=2,
                    )
                )  # fmt: skip
            axis.axhline(1.0, color="#555555", linewidth=0.9, linestyle="--")
            axis.set(xscale="log", xlabel="budget")
            axis.set_title(group)
            axis.xaxis.set_major_formatter(FuncFormatter(on_axis))
            axis.xaxis.set_minor_formatter(NullFormatter())
            if len(problems) > 1:
                names = [problem.removeprefix(group).strip(" /") for problem in problems]
                axis.legend(lines, names, frameon=False, fontsize=7.5, loc="lower right")
        axes[0, 0].set_ylabel("slope / lower bound's constant")
        axes[0, 0].set_ylim(bottom=0)
        figure.tight_layout()
    return figure


def worst_regret(hardest: pl.DataFrame, fitted: Sequence[Growth]) -> Figure:
    """A panel for each policy: the worst regret against budget, a line for each number of arms; hollow at the edge."""
    columns = min(len(fitted), 3)
    rows = math.ceil(len(fitted) / columns)
    with plt.rc_context(STYLE):
        figure, axes = plt.subplots(
            rows, columns, figsize=(max(3.2 * columns, 4.6), 3.5 * rows + 0.5), squeeze=False, sharex=True, sharey=True
        )
        for axis in axes.flat[len(fitted) :]:
            axis.set_visible(False)
        for place, growth in enumerate(fitted):
            _worst_panel(axes.flat[place], hardest.filter(pl.col("policy") == growth.policy), growth)
            if place + columns >= len(fitted):
                axes.flat[place].set_xlabel("budget B")
                axes.flat[place].tick_params(labelbottom=True)
        for axis in axes[:, 0]:
            axis.set_ylabel("regret on the hardest problem")
        handles, labels = axes[0, 0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="upper center", ncols=min(len(labels), 8), frameon=False)
        figure.tight_layout(rect=(0, 0, 1, 1 - 0.35 / figure.get_size_inches()[1]))
    return figure


def _worst_panel(axis: Axes, rows: pl.DataFrame, growth: Growth) -> None:
    for place, arms in enumerate(rows["arms"].unique(maintain_order=True)):
        line = rows.filter(pl.col("arms") == arms)
        budgets, worst, edge = (line[name].to_numpy() for name in ("budget", "crossed", "edge"))
        fit = math.exp(growth.constant) * budgets**growth.in_budget.value * float(arms) ** growth.in_arms.value
        mark = look(place)
        axis.plot(budgets, fit, color=mark["color"], linewidth=1.0, zorder=2)
        axis.plot(budgets, worst, linestyle="", markersize=4.5, label=f"K = {arms}", zorder=3, **mark)
        axis.plot(
            budgets[edge], worst[edge], linestyle="", markersize=4.5, markerfacecolor="white", zorder=4, **mark
        )  # fmt: skip
    axis.set(xscale="log", yscale="log")
    powers = f"B to the power {interval(growth.in_budget)}\nK to the power {interval(growth.in_arms)}"
    axis.set_title(f"{label(growth.policy)}\n{powers}", fontsize=8.5)
    low, high = axis.get_ylim()
    axis.yaxis.set_major_locator(FixedLocator(round_numbers(low, high)))
    axis.xaxis.set_major_locator(FixedLocator(_spread_out(rows["budget"].unique().sort().to_numpy())))
    for scale in (axis.xaxis, axis.yaxis):
        scale.set_major_formatter(FuncFormatter(on_axis))
        scale.set_minor_formatter(NullFormatter())


def _spread_out(budgets: np.ndarray[Any, Any]) -> list[float]:
    """Every budget, or as many of them as leave room for their names."""
    return [float(budget) for budget in budgets[:: math.ceil(len(budgets) / 6)]]


def interval(exponent: Exponent) -> str:
    return f"{exponent.value:.2f} [{exponent.low:.2f}, {exponent.high:.2f}]"
