"""Figures from results: regret against budget, who wins on which random problem, and the worst there is."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
import numpy as np
import polars as pl
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FixedLocator, FuncFormatter, NullFormatter

from budgetbandits.experiments.paper.observations import bts_against_others
from budgetbandits.experiments.results import BTS, Results
from budgetbandits.policies.names import label
from budgetbandits.words import short

# Okabe and Ito's colours, told apart by every eye; each policy keeps its own in every figure.
COLOURS = ["#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#8C6D31"]
MARKERS = ["o", "s", "^", "D", "v", "P", "X", "*"]
STYLE: Any = {
    "font.family": "DejaVu Sans",
    "font.size": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.color": "#e4e4e4",
    "grid.linewidth": 0.6,
    "axes.axisbelow": True,
    "axes.titlesize": 10,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "text.parse_math": False,  # names of problems are text, whatever signs are in them
    "svg.fonttype": "none",
    "svg.hashsalt": "budgetbandits",  # the same figure is the same file
}
MANY = 12
"""Panels in one figure; further groups are left to the tables."""


def look(place: int) -> dict[str, Any]:
    """Colour and marker of a policy by its place in the study; the ninth differs from the first by its marker."""
    marker = MARKERS[(place + place // len(COLOURS)) % len(MARKERS)]
    return {"color": COLOURS[place % len(COLOURS)], "marker": marker}


def regret_against_budget(results: Results) -> Figure:
    """A panel for each group: mean pseudo-regret over problems and runs; where it is one problem, bars of the standard
    deviation of the regret."""
    groups = results.groups[:MANY]
    columns = 1 if len(groups) == 1 else 2
    rows = math.ceil(len(groups) / columns)
    with plt.rc_context(STYLE):
        figure, axes = plt.subplots(rows, columns, figsize=(4.6 * columns, 3.3 * rows + 0.5), squeeze=False)
        where = ["group", "policy", "budget"]
        spread = results.summary("regret", by=where).select(*where, pl.col("std").alias("regret_std"))
        summary = results.summary(by=where).join(spread, on=where, maintain_order="left")
        for place, axis in enumerate(axes.flat):
            if place >= len(groups):
                axis.set_visible(False)
                continue
            _regret_panel(axis, summary.filter(pl.col("group") == groups[place]), results, groups[place])
            if place % columns == 0:
                axis.set_ylabel("regret")
            if place + columns >= len(groups):
                axis.set_xlabel("budget")
        handles, labels = axes[0, 0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="upper center", ncols=min(len(labels), 5), frameon=False)
        figure.tight_layout(rect=(0, 0, 1, 1 - 0.35 / figure.get_size_inches()[1]))
    return figure


def _regret_panel(axis: Axes, summary: pl.DataFrame, results: Results, group: str) -> None:
    single = sum(problem["group"] == group for problem in results.record["problems"]) == 1
    low, high = min(results.budgets), max(results.budgets)
    decades = high >= 1000 * low  # on a straight axis all but the largest would be one point
    for place, policy in enumerate(results.policies):
        rows = summary.filter(pl.col("policy") == policy).sort("budget")
        # a little to the side of each other, or the bars hide one another
        side = place - (len(results.policies) - 1) / 2
        budgets = rows["budget"].to_numpy()
        axis.errorbar(
            budgets * (1.0 + 0.03 * side) if decades else budgets + side * 0.004 * (high - low),
            rows["mean"].to_numpy(),
            yerr=rows["regret_std"].fill_null(0.0).to_numpy() if single else None,
            label=label(policy),
            **look(place),
            markersize=3.5,
            linewidth=1.4,
            elinewidth=0.9,
            capsize=1.8,
            zorder=3 if place == 0 else 2,
        )
    axis.set_title(group)
    axis.set_ylim(bottom=0)
    if decades:
        axis.set_xscale("log")
        axis.xaxis.set_minor_formatter(NullFormatter())
    else:
        axis.set_xlim(left=0)
    axis.xaxis.set_major_formatter(FuncFormatter(on_axis))
    axis.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.0f}"))


def on_axis(value: float, _: int = 0) -> str:
    """A number as Matplotlib asks for it, with its place."""
    return short(value)


def round_numbers(low: float, high: float) -> list[float]:
    """1, 2, 5, 10, ... between the two; without the 2 and 5 where there are many."""
    digits = (1, 2, 5) if high / low < 50 else (1,)
    tens = range(math.floor(math.log10(low)), math.ceil(math.log10(high)))
    return [number for ten in tens for digit in digits if low <= (number := digit * 10.0**ten) <= high]


def who_wins(ensemble: Results) -> Figure:
    """A point for each random problem: the regret of BTS against that of the best other policy, hollow if unsure."""
    means = ensemble.values().mean(axis=-1)
    bts = ensemble.policies.index(BTS)
    ours, others = means[:, bts], np.where(np.arange(means.shape[1]) == bts, np.inf, means)
    lower, higher = bts_against_others(ensemble)
    groups = np.array([problem["group"] for problem in ensemble.record["problems"]])
    with plt.rc_context(STYLE):
        figure, axes = plt.subplots(1, len(ensemble.groups), figsize=(9.6, 3.3), squeeze=False)
        for axis, group in zip(axes.flat, ensemble.groups, strict=True):
            here = groups == group
            x, y = ours[here], others[here].min(axis=1)
            for place, policy in enumerate(ensemble.policies):
                best, sure = others[here].argmin(axis=1) == place, (lower | higher)[here]
                mark = look(place)
                for chosen, face in ((best & sure, mark["color"]), (best & ~sure, "none")):
                    if chosen.any():
                        axis.scatter(
                            x[chosen], y[chosen], s=13, label=label(policy), marker=mark["marker"], facecolors=face,
                            edgecolors=mark["color"], linewidths=0.7,
                        )  # fmt: skip
            _diagonal(axis, min(x.min(), y.min()) * 0.8, max(x.max(), y.max()) * 1.25)
            unsure = int((~lower & ~higher)[here].sum())
            axis.set_title(
                f"{group}\nBTS lowest on {lower[here].sum()}, not on {higher[here].sum()},\nunsure on {unsure}",
                fontsize=8.5,
            )
            axis.set_xlabel("regret of BTS")
        axes[0, 0].set_ylabel("regret of the best other")
        handles = [Line2D([], [], linestyle="", markersize=4, **look(place)) for place in range(means.shape[1])]
        shown = [place for place in range(means.shape[1]) if (others.argmin(axis=1) == place).any()]
        figure.legend(
            [handles[place] for place in shown],
            [f"{label(ensemble.policies[place])} is the best other" for place in shown],
            loc="lower center",
            ncols=4,
            frameon=False,
        )
        figure.tight_layout(rect=(0, 0.09, 1, 1))
    return figure


def _diagonal(axis: Axes, low: float, high: float) -> None:
    """A square in logarithms with its diagonal."""
    axis.plot([low, high], [low, high], color="#555555", linewidth=0.8, zorder=1)
    axis.set(xscale="log", yscale="log", xlim=(low, high), ylim=(low, high))
    for scale in (axis.xaxis, axis.yaxis):
        scale.set_major_locator(FixedLocator(round_numbers(low, high)))
        scale.set_major_formatter(FuncFormatter(on_axis))
        scale.set_minor_formatter(NullFormatter())
    axis.set_box_aspect(1)


def save(figure: Figure, folder: Path, name: str) -> str:
    """Write the figure as PNG, SVG and PDF and close it; returns the SVG as an element to put into a page."""
    folder.mkdir(parents=True, exist_ok=True)
    with plt.rc_context(STYLE):
        # without dates in them, the same figure is the same file
        figure.savefig(folder / f"{name}.png", dpi=160)
        figure.savefig(folder / f"{name}.svg", metadata={"Date": None})
        figure.savefig(folder / f"{name}.pdf", metadata={"CreationDate": None})
    plt.close(figure)
    text = (folder / f"{name}.svg").read_text(encoding="utf-8")
    return text[text.index("<svg") :]
