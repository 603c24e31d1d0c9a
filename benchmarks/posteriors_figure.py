"""The figures of benchmarks/posteriors.py: regrets divided by those of BTS, with their intervals."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import matplotlib as mpl

from budgetbandits.figures.style import figure_spec, series_style, settings
from budgetbandits.numerics.arrays import Array

mpl.use("Agg")
import matplotlib.pyplot as plt
from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

Ratios = Mapping[str, Array]
"""Ratio to BTS and the ends of its interval by statistic, with a row for each policy."""

NAMES = {
    "bts:prior_reward=jeffreys,prior_cost=jeffreys": "BTS, Jeffreys",
    "bts:kappa=1.5": "BTS, κ = 1.5",
    "bts:kappa=2": "BTS, κ = 2",
    "bts-joint": "joint",
    "bts-gaussian": "Gaussian, σ = ½",
    "bts-gaussian:sigma=0.25": "Gaussian, σ = ¼",
}
TICKS = {"x": (0.25, 0.5, 1.0, 2.0, 4.0, 8.0), "y": (0.35, 0.5, 0.7, 1.0, 1.4, 2.0)}
SHEET = figure_spec("page")


def draw_priors(of: Mapping[str, Ratios], policies: Sequence[str], path: Path) -> None:
    """A panel for each family of problems, a row for each policy, a point for each statistic."""
    others = policies[1:]
    with plt.rc_context(settings(SHEET)):
        figure, panels = plt.subplots(
            1, len(of), figsize=(SHEET.width, 4.4), sharex=True, sharey=True, layout="constrained"
        )
        for panel, (family, ratios) in zip(panels, of.items(), strict=True):
            _one_line(panel, "x")
            for place, (name, rows) in enumerate(ratios.items()):
                at = [row + 0.18 * (place - 1.5) for row in range(len(others))]
                _points(panel, place, name, at, rows[1:], across=True)
            panel.set_title(family)
            panel.set_yticks(range(len(others)), [NAMES[policy] for policy in others])
            panel.tick_params(axis="y", length=0)
        panels[0].invert_yaxis()
        panels[len(of) // 2].set_xlabel("pseudo-regret divided by that of BTS (lower is better)")
        figure.legend(*panels[0].get_legend_handles_labels(), loc="outside upper center", ncols=4)
        figure.savefig(path, dpi=160)


def draw_correlated(of: Mapping[str, Ratios], correlations: Sequence[float], path: Path) -> None:
    """The joint posterior over the correlation, a line for each statistic."""
    with plt.rc_context(settings(SHEET)):
        figure, panel = plt.subplots(figsize=(0.7 * SHEET.width, 3.8), layout="constrained")
        _one_line(panel, "y")
        for place, name in enumerate(next(iter(of.values()))):
            rows = [ratios[name][1] for ratios in of.values()]
            at = [correlation + 0.022 * (place - 1.5) for correlation in correlations]
            _points(panel, place, name, at, rows, across=False)
        panel.set_xticks(correlations)
        panel.set_xlabel("correlation of reward and cost (of the copula's normals)")
        panel.set_ylabel("pseudo-regret of bts-joint divided by that of BTS")
        figure.legend(*panel.get_legend_handles_labels(), loc="outside upper center", ncols=4)
        figure.savefig(path, dpi=160)


def _one_line(panel: Any, axis: str) -> None:
    """A logarithmic axis of ratios, and a line where both are the same."""
    (panel.set_xscale if axis == "x" else panel.set_yscale)("log")
    ratios = panel.xaxis if axis == "x" else panel.yaxis
    ratios.set_major_locator(FixedLocator(TICKS[axis]))
    ratios.set_minor_locator(NullLocator())
    ratios.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    (panel.axvline if axis == "x" else panel.axhline)(1.0, color=SHEET.colours["ink2"], linewidth=1.0, zorder=0)


def _points(panel: Any, place: int, name: str, at: Sequence[float], rows: Any, across: bool) -> None:
    series = series_style(place)
    colour = SHEET.colour(series)
    centres = [row[0] for row in rows]
    ends = [[row[0] - row[1] for row in rows], [row[2] - row[0] for row in rows]]
    style: dict[str, Any] = {
        "color": colour,
        "marker": series.marker,
        "markersize": 4.5,
        "linewidth": 1.2,
        "label": name,
    }
    if across:
        panel.errorbar(centres, at, xerr=ends, linestyle="none", elinewidth=1.2, **style)
    else:
        panel.errorbar(at, centres, yerr=ends, linestyle=series.line, elinewidth=1.2, **style)
