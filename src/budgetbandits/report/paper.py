"""The page of the paper's two studies: its content, and the figures that only this page has."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import joblib
import matplotlib
import numpy as np
import polars as pl
from matplotlib.axes import Axes

from budgetbandits.experiments.growth import growth_budgets
from budgetbandits.experiments.paper.findings import CALIBRATED, ENSEMBLE, Bounds, Findings
from budgetbandits.experiments.paper.observations import bts_against_others
from budgetbandits.experiments.plots import series_of
from budgetbandits.experiments.results import BTS, Results
from budgetbandits.figures import axes as scales
from budgetbandits.figures import svg
from budgetbandits.figures.layout import PaperFigure, Series, finish, legend, name_axes, panels
from budgetbandits.figures.style import FigureSpec, settings
from budgetbandits.formatting.numbers import count, exact, number
from budgetbandits.numerics.arrays import AnyArray
from budgetbandits.report import study, summary, tables
from budgetbandits.report.figures import PageFigure, legend_below, place_style, single_scale, two_scales


def content(findings: Findings, folder: Path) -> dict[str, Any]:
    """The values of the page's template; writes the figures and tables next to the page."""
    calibrated, ensemble = findings.calibrated, findings.ensemble
    figures = paper_figures(findings, folder)  # drawn by other processes meanwhile
    tables.write_files(calibrated, folder / CALIBRATED)
    tables.write_files(ensemble, folder / ENSEMBLE)
    shown = {
        "title": "Thompson Sampling for Budgeted Multi-armed Bandits, reproduced",
        "facts": f"The simulations of Xia, Li, Qin, Yu and Liu (IJCAI 2015) · {len(calibrated.groups)} panels at "
        f"{count(calibrated.record['runs'], 'run')} · {count(len(ensemble.record['problems']), 'random problem')} at "
        f"{count(ensemble.record['runs'], 'run')} and budgets up to {exact(ensemble.largest())}",
        "warning": None
        if findings.is_full
        else "This is a quick look, not the reproduction: run 'budgetbandits paper' without --quick or --runs.",
        "sentences": summary.of_paper(findings),
        "claims": findings.claims,
        "figures": [],
        "winners": tables.winners(ensemble),
        "exceptions": tables.exceptions(ensemble),
        "growth": None,
        "worst": None,
        "records": [calibrated.record, ensemble.record],
    } | study.about(calibrated)
    return shown | {"figures": list(figures)}


def paper_figures(findings: Findings, folder: Path) -> Iterable[PageFigure]:
    """The paper's figures, drawn by the processes of `joblib.parallel_config` while the caller goes on."""
    calibrated, ensemble, bounds = findings.calibrated, findings.ensemble, findings.bounds
    drawn: Iterable[PageFigure] = joblib.Parallel(return_as="generator")(
        joblib.delayed(draw)(folder, *arguments, **options)
        for draw, arguments, options in (
            (two_scales, (FIGURE_1, calibrated), {"log": False, "deviations": True}),  # linear as in the paper
            (single_scale, (_figure_2(ensemble), partial(who_wins, ensemble)), {}),
            (single_scale, (FIGURE_3, partial(bounds_over_regret, calibrated, bounds)), {}),
            (single_scale, (FIGURE_4, partial(slope_of_the_lower_bound, calibrated, bounds)), {}),
        )
    )
    return drawn


FIGURE_1 = PageFigure(  # the paper's own figure
    "figure-1",
    "Regret against budget, as in the paper's figure",
    "Mean pseudo-regret; bars are one standard deviation of it over the runs. The problem of panel (a) was searched "
    "for until ε-first agreed with the three numbers the paper gives; the other panels are the same seed.",
    read="B =",
    legend=True,
)
FIGURE_3 = PageFigure(  # the proven bounds
    "figure-3",
    "What is proven",
    "The regret of BTS on the same problems, both axes logarithmic. Theorem 1 is evaluated term by term, γ optimised "
    "for each arm; a bound above the dotted line says nothing.",
)
FIGURE_4 = PageFigure(  # the slope of the lower bound
    "figure-4",
    "The slowest growth there can be",
    "The regret of BTS against ln B. The lower bound is one on the slope alone, in the long run: no policy that is "
    "good on every problem can keep rising more slowly than the triangle's long side. It says nothing about the regret "
    "at any budget, so where the triangle stands means nothing.",
)


def _figure_2(ensemble: Results) -> PageFigure:
    return PageFigure(
        "figure-2",
        "Random problems",
        f"Each point is a random problem at B = {exact(ensemble.largest())}. Above the diagonal BTS has the lowest "
        "mean regret, below it another policy has; colour and shape say which of the others is the best. Hollow: "
        "unsure, for neither is BTS surely the lowest nor another one surely lower (Welch's test, Holm over the four).",
        legend=True,
    )


def who_wins(ensemble: Results, spec: FigureSpec) -> PaperFigure:
    """A figure with a point for each random problem: the regret of BTS against that of the best other policy. Points
    are hollow where the difference is not significant."""
    means = ensemble.values().mean(axis=-1)
    bts = ensemble.policies.index(BTS)
    others = np.where(np.arange(means.shape[1]) == bts, np.inf, means)
    x, y, rival = means[:, bts], others.min(axis=1), others.argmin(axis=1)
    lower, higher = bts_against_others(ensemble)
    groups = np.array([problem["group"] for problem in ensemble.record["problems"]])
    names = np.array([problem["name"] for problem in ensemble.record["problems"]])
    series = series_of(ensemble)
    with matplotlib.rc_context(settings(spec)):
        figure, axes = panels(ensemble.groups, spec, shape=1.25)
        for place, group in enumerate(ensemble.groups):
            in_group = groups == group
            axis = axes[place]
            _diagonal(
                axis,
                min(x[in_group].min(), y[in_group].min()) * 0.8,
                max(x[in_group].max(), y[in_group].max()) * 1.25,
                spec,
            )
            for one in series:
                for part, sure in enumerate((True, False)):
                    chosen = in_group & (rival == one.number) & ((lower | higher) == sure)
                    _points(axis, place, part, one, spec, (x[chosen], y[chosen], names[chosen]))
            unsure = int((~lower & ~higher)[in_group].sum())
            axis.set_title(
                f"{group}\nBTS lowest on {lower[in_group].sum()},\nnot on {higher[in_group].sum()}, unsure on {unsure}"
            )
        name_axes(axes, "regret of BTS", "regret of the best other")
        legend(figure, [policy for policy in series if policy.number != bts], spec, line=False)
        return finish(figure)


def _points(
    axes: Axes, panel: int, part: int, series: Series, spec: FigureSpec, points: tuple[AnyArray, AnyArray, AnyArray]
) -> None:
    x, y, names = points
    if not len(x):
        return
    colour = spec.colour(series.style)
    (drawn,) = axes.plot(
        x, y, linestyle="none", marker=series.style.marker, color=colour, markeredgewidth=0.7,
        markerfacecolor="none" if part else colour, clip_on=False,
    )  # fmt: skip
    labels = [
        svg.Point(ours, theirs, None, None, f"{name}: BTS {number(ours)}, {series.name} {number(theirs)}")
        for ours, theirs, name in zip(x.tolist(), y.tolist(), names, strict=True)
    ]
    svg.tag(drawn, "line", series.number, panel, part, labels)


def _diagonal(axes: Axes, low: float, high: float, spec: FigureSpec) -> None:
    """Draw a square with logarithmic axes and its diagonal."""
    axes.plot([low, high], [low, high], color=spec.colours["ink3"], linewidth=0.8, zorder=1)
    axes.set(xscale="log", yscale="log", xlim=(low, high), ylim=(low, high))
    for scale in (axes.xaxis, axes.yaxis):
        scales.logarithmic(scale, low, high, 4)
    axes.set_box_aspect(1)


def bounds_over_regret(calibrated: Results, proven: Sequence[Bounds], spec: FigureSpec) -> PaperFigure:
    """The paper's figure with the proven bounds: BTS below Theorem 1 and below the regret that no policy exceeds."""
    measured = calibrated.summary().filter(pl.col("policy") == BTS)
    grey = spec.colours["ink2"]
    with matplotlib.rc_context(settings(spec)):
        figure, axes = panels([panel.group for panel in proven], spec, shape=0.85)
        for axis, panel in zip(axes, proven, strict=True):
            rows = measured.filter(pl.col("group") == panel.group).sort("budget")
            upper = panel.upper
            axis.set_yscale("log")
            axis.plot(panel.budgets, upper["paper"], color=grey, linestyle="--", label="Theorem 1, the paper's chain")
            axis.plot(panel.budgets, upper["sharp"], color=grey, label="Theorem 1, a sharper chain")
            axis.plot(panel.budgets, panel.trivial, color=grey, linestyle=":", label="no policy exceeds")
            axis.plot(rows["budget"], rows["mean"], **place_style(0, spec), label="BTS, measured")
            axis.set(xscale="log", xlim=(panel.budgets[0] * 0.9, panel.budgets[-1] * 1.1))
            scales.logarithmic(axis.xaxis, *axis.get_xlim(), 4)
            scales.logarithmic(axis.yaxis, *axis.get_ylim(), 5)
        name_axes(axes, "budget", "regret")
        legend_below(figure, axes[0], 1 if spec.narrow else 4)
        return finish(figure)


def slope_of_the_lower_bound(calibrated: Results, proven: Sequence[Bounds], spec: FigureSpec) -> PaperFigure:
    """A figure of the regret of BTS against ln B, with a triangle that rises as slowly as the lower bound allows.

    The bound is on the slope in the long run and on nothing else. Against ln B a slope looks the same at any height, so
    the triangle is drawn where there is room.
    """
    measured = calibrated.summary().filter(pl.col("policy") == BTS)
    with matplotlib.rc_context(settings(spec)):
        figure, axes = panels([panel.group for panel in proven], spec, shape=0.85)
        for axis, panel in zip(axes, proven, strict=True):
            rows = measured.filter(pl.col("group") == panel.group).sort("budget")
            budgets, regret = rows["budget"].to_numpy(), rows["mean"].to_numpy()
            axis.plot(budgets, regret, **place_style(0, spec))
            _, start, end = growth_budgets(panel.budgets)
            rise = panel.lower * math.log(end / start)
            foot = 0.08 * max(regret.max(), rise)
            axis.fill([start, end, end], [foot, foot, foot + rise], color=spec.colours["ink3"], alpha=0.25, zorder=1)
            axis.text(
                0.04, 0.96, f"{_slope(panel.lower)} per ln B", color=spec.colours["ink2"], va="top",
                transform=axis.transAxes,
            )  # fmt: skip
            axis.set(xscale="log", xlim=(budgets[0] * 0.9, budgets[-1] * 1.1))
            axis.set_ylim(0, 1.08 * max(regret.max(), foot + rise))
            scales.logarithmic(axis.xaxis, *axis.get_xlim(), 4)
            scales.straight(axis.yaxis)
        name_axes(axes, "budget", "regret of BTS")
        return finish(figure)


def _slope(value: float) -> str:
    return f"{value:,.0f}" if value >= 10.0 else f"{value:.2g}"
