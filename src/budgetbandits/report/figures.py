"""The figures of a report: each as files next to the page, and drawn for two widths in it; and the legend's marks."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
import polars as pl
from markupsafe import Markup
from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from budgetbandits.experiments import plots
from budgetbandits.experiments.growth import Exponent, Growth
from budgetbandits.experiments.results import Results
from budgetbandits.figures import axes as scales
from budgetbandits.figures import layout as layout
from budgetbandits.figures import profiles, svg
from budgetbandits.figures.layout import PaperFigure, Series, finish, grow, name_axes, panels
from budgetbandits.figures.style import FigureSpec, SeriesStyle, figure_spec, series_style, series_styles, settings
from budgetbandits.formatting.numbers import exact
from budgetbandits.numerics.arrays import AnyArray
from budgetbandits.policies import PAPER_POLICIES, label
from budgetbandits.report.tables import regrets

WIDTHS: dict[str, str | float] = {"wide": 12.0, "narrow": "phone"}
"""Widths of the drawings of a figure, in inches of 96 pixels or by name; the page shows one by its window's width."""
FORMATS = ("png", "svg", "pdf")
"""Formats of the files next to the page."""

LOG, LINEAR = "log", "linear"
"""Scales of a figure."""


Draw = Callable[[FigureSpec], Any]
"""A function that draws a figure on a sheet."""


@dataclass(frozen=True)
class Drawing:
    """A figure drawn for a width and a scale, as SVG."""

    width: str
    scale: str
    svg: Markup


@dataclass(frozen=True)
class PageFigure:
    """A figure of the page.

    ``read`` names what the points at one place have in common, if they are read together; ``legend`` says whether the
    page's list of policies belongs to the figure.
    """

    id: str
    title: str
    caption: str
    drawings: tuple[Drawing, ...] = ()
    read: str = ""
    legend: bool = False

    @property
    def scales(self) -> list[str]:
        """The scales in which the figure is drawn."""
        return list(dict.fromkeys(drawing.scale for drawing in self.drawings))


def names(policies: Sequence[str]) -> list[str]:
    """The names of policies as pages show them."""
    return [label(policy) for policy in policies]


def legend_marks(policies: Sequence[str]) -> list[LegendMark]:
    """The marks of these policies in the page's legend."""
    return marks(series_styles(policies, PAPER_POLICIES))


def of_study(results: Results, folder: Path) -> list[PageFigure]:
    """The figures of a study: regret against budget, or at a single one, and the differences between problems."""
    several = len(results.record["problems"]) > len(results.groups)
    figures = [_dots(results, folder) if len(results.budgets) == 1 else _regret(results, folder)]
    if several and len(results.policies) > 1:
        figures += _over_problems(results, folder)
    return figures


def _regret(results: Results, folder: Path) -> PageFigure:
    caption = f"Mean pseudo-regret. {_intervals(results)}"
    return two_scales(folder, PageFigure("regret", "Regret against budget", caption, read="B =", legend=True), results)


def _dots(results: Results, folder: Path) -> PageFigure:
    caption = f"Mean pseudo-regret at B = {exact(results.largest())}, the lowest first. {_intervals(results)}"
    return single_scale(folder, PageFigure("dots", "Regret", caption, legend=True), partial(plots.dots, results))


def _intervals(results: Results) -> str:
    """The caption that explains bands and lines, and counts the groups that are not drawn."""
    alone = len(results.record["problems"]) == len(results.groups)
    over = "the runs" if alone else "the problems of a group, or over the runs where it has one problem"
    left_out = len(results.groups) > plots.PANELS_MAX
    return f"Intervals of 95 % are over {over}." + (
        f" The first {plots.PANELS_MAX} groups of {len(results.groups)}." if left_out else ""
    )


def _over_problems(results: Results, folder: Path) -> list[PageFigure]:
    budget = exact(results.largest())
    profile = PageFigure(
        "profile",
        "How far from the best",
        f"On which share of the problems a policy's mean regret at B = {budget} is at most this many times that of "
        "the problem's best policy: further up and to the left is better.",
        read="times the best:",
        legend=True,
    )
    wins = PageFigure(
        "wins",
        "Who wins where",
        f"On which share of the problems a policy has the lowest mean regret at B = {budget}: surely, not surely, or "
        f"is not surely worse than the lowest ({results.test}, 95 %, Holm over the others of a problem).",
    )
    quantiles = PageFigure(
        "quantiles",
        "Easy and hard problems",
        f"The mean regrets of each policy at B = {budget}, sorted over the problems: its quantiles.",
        read="% of the problems:",
        legend=True,
    )
    return [
        single_scale(folder, profile, partial(plots.profile, results)),
        single_scale(folder, wins, partial(plots.wins, results)),
        single_scale(folder, quantiles, partial(plots.quantiles, results)),
    ]


def over_settings(
    all_problems: AnyArray, settings: Mapping[str, AnyArray], policies: Sequence[str], folder: Path
) -> list[PageFigure]:
    """The figures of a leaderboard: distance from the best over the problems of all settings, and tails by setting.

    Values are problems × policies.
    """
    series = [
        Series(place, label(policy), style)
        for place, (policy, style) in enumerate(zip(policies, series_styles(policies, PAPER_POLICIES), strict=True))
    ]
    profile = PageFigure(
        "profile",
        "How far from the best",
        "On which share of the problems of all settings the regret of a policy is at most this many times that of the "
        "problem's best policy among these: further up and to the left is better.",
        read="times the best:",
        legend=True,
    )
    quantiles = PageFigure(
        "quantiles",
        "Easy and hard problems, and the tails",
        "The regrets of each policy at the largest budget, sorted over the problems of a setting. Where a line rises "
        "at the right end, a policy loses some games altogether, which means and medians of few games do not show.",
        read="% of the problems:",
        legend=True,
    )
    return [
        single_scale(folder, profile, partial(profiles.profile, {"all problems": all_problems}, series)),
        single_scale(folder, quantiles, partial(profiles.quantiles, settings, series)),
    ]


def growth(slopes: pl.DataFrame, folder: Path) -> PageFigure:
    """The figure of the growth of the regret of BTS."""
    page_figure = PageFigure(
        "growth-figure",
        "How fast the regret of BTS grows",
        "The slope of the mean regret against ln B from each budget to the next, by the constant of the asymptotic "
        "lower bound: no policy that is good on every problem can stay below 1 in the long run. "
        "Bars are 95 % intervals.",
    )
    return single_scale(folder, page_figure, partial(growth_beside_the_bound, slopes), "growth")


def worst(hardest: pl.DataFrame, fitted: Sequence[Growth], folder: Path) -> PageFigure:
    """The figure of the regret on the hardest problems."""
    page_figure = PageFigure(
        "worst-case",
        "The hardest problem",
        "The largest mean pseudo-regret over all gaps that were played: one half of the runs chooses the hardest "
        "problem, the other half measures it, and the other way round. Lines are the fit ln regret = c + a ln B + b ln "
        "K. Hollow: the hardest gap is the first or last of its sweep.",
    )
    return single_scale(folder, page_figure, partial(worst_regret, hardest, fitted))


def single_scale(folder: Path, page_figure: PageFigure, draw: Draw, name: str | None = None) -> PageFigure:
    """A figure with one scale."""
    saved = _save(draw(figure_spec(WIDTHS["wide"])), folder, name or page_figure.id)
    wide = drawing_of(page_figure, draw, "wide") if page_figure.legend else _as_drawing(page_figure, saved, "wide")
    return replace(page_figure, drawings=(wide, drawing_of(page_figure, draw, "narrow")))


def two_scales(
    folder: Path, page_figure: PageFigure, results: Results, log: bool | None = None, **options: Any
) -> PageFigure:
    """A figure of regret against budget with a logarithmic and a linear axis, if the numbers are positive.

    The files have the axis that comes first: ``log``, or the one that suits the numbers.
    """
    saved = plots.regret(results, figure_spec(WIDTHS["wide"]), log=log, **options)
    assert isinstance(saved, Figure)
    _save(saved, folder, page_figure.id)
    scales = [LOG, LINEAR] if saved.axes[0].get_yscale() == LOG else [LINEAR, LOG]
    if not (regrets(results)["mean"] > 0.0).all():
        scales = [LINEAR]
    drawings = [
        drawing_of(page_figure, partial(plots.regret, results, log=scale == LOG, **options), width, scale)
        for scale in scales
        for width in WIDTHS
    ]
    return replace(page_figure, drawings=tuple(drawings))


def drawing_of(page_figure: PageFigure, draw: Draw, width: str, scale: str = "") -> Drawing:
    """A figure drawn for one of `WIDTHS`."""
    on = figure_spec(WIDTHS[width])
    return _as_drawing(page_figure, _laid_out(draw(replace(on, legend=not page_figure.legend))), width, scale)


def _as_drawing(page_figure: PageFigure, figure: Figure, width: str, scale: str = "") -> Drawing:
    prefix = "-".join(filter(None, (page_figure.id, width, scale)))
    return Drawing(width, scale, Markup(svg.to_svg(figure, prefix, page_figure.title)))


def _laid_out(figure: Figure) -> Figure:
    """A figure that keeps its layout: with an engine of layout, even an idle one, it is drawn twice for each file."""
    with rc_context({"figure.autolayout": False, "figure.constrained_layout.use": False}):
        figure.set_layout_engine(None)
    return figure


def _save(figure: Figure, folder: Path, name: str) -> Figure:
    (folder / "figures").mkdir(parents=True, exist_ok=True)
    figure = _laid_out(figure)
    for kind in FORMATS:
        layout.save(figure, folder / "figures" / f"{name}.{kind}")
    return figure


MARKERS = {
    "o": "M11.6 6a3.4 3.4 0 1 1 6.8 0a3.4 3.4 0 1 1-6.8 0z",
    "s": "M12 3h6v6h-6z",
    "^": "M15 2.2l3.8 7h-7.6z",
    "v": "M15 9.8l3.8-7h-7.6z",
    "<": "M11.2 6l7-3.8v7.6z",
    ">": "M18.8 6l-7-3.8v7.6z",
    "D": "M15 1.9l4.1 4.1-4.1 4.1-4.1-4.1z",
    "P": "M13.6 2.2h2.8v2.4h2.4v2.8h-2.4v2.4h-2.8v-2.4h-2.4v-2.8h2.4z",
    "X": "M12.6 2l2.4 2.4 2.4-2.4 1.6 1.6-2.4 2.4 2.4 2.4-1.6 1.6-2.4-2.4-2.4 2.4-1.6-1.6 2.4-2.4-2.4-2.4z",
    "p": "M15 2l4 2.9-1.5 4.7h-5l-1.5-4.7z",
    "*": "M15 1.4l1.2 3.2 3.4.1-2.7 2.1 1 3.3-2.9-1.9-2.9 1.9 1-3.3-2.7-2.1 3.4-.1z",
}
"""Paths of markers around the point (15, 6), by Matplotlib's names."""
STROKE = 1.75
"""Width of a line, the unit of the lengths of its dashes."""


@dataclass(frozen=True)
class LegendMark:
    """The mark of a policy in a legend: the name of its colour, the dashes of its line and the path of its marker."""

    series: str
    dashes: str
    marker: str


def marks(styles: Sequence[SeriesStyle]) -> list[LegendMark]:
    """The marks of policies with these styles."""
    return [LegendMark(style.series, _dashes(style.line), MARKERS[style.marker]) for style in styles]


def _dashes(line: str | tuple[float, Sequence[float]]) -> str:
    return "" if isinstance(line, str) else " ".join(f"{STROKE * part:g}" for part in line[1])


def place_style(place: int, spec: FigureSpec) -> dict[str, Any]:
    """The colour and marker of a place."""
    return {"color": spec.colour(series_style(place)), "marker": series_style(place).marker}


def legend_below(figure: PaperFigure, panel: Axes, columns: int) -> None:
    """Add a legend below the panels, with the names that one of them has."""
    grow(figure, figure.legend(*panel.get_legend_handles_labels(), loc="outside lower center", ncols=columns))


def growth_beside_the_bound(slopes: pl.DataFrame, spec: FigureSpec) -> PaperFigure:
    """A figure of the slope of BTS against ln B divided by the lower bound's constant, a panel for each group."""
    groups = slopes["group"].unique(maintain_order=True).to_list()
    with matplotlib.rc_context(settings(spec)):
        figure, axes = panels(groups, spec)
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
                    middle * (1 + 0.12 * place), share, yerr=[share - low, high - share], **place_style(place, spec),
                    elinewidth=0.9, capsize=2, label=problem.removeprefix(group).strip(" /"),
                )  # fmt: skip
            axis.axhline(1.0, color=spec.colours["ink2"], linewidth=0.9, linestyle="--")
            axis.set_xscale("log")
            axis.set_ylim(0.0, 1.05 * max(axis.get_ylim()[1], 1.0))
            scales.logarithmic(axis.xaxis, *axis.get_xlim(), 4)
            scales.straight(axis.yaxis)
            if len(problems) > 1:
                axis.legend(loc="lower right")
        name_axes(axes, "budget", "slope / lower bound's constant")
        return finish(figure)


def worst_regret(hardest: pl.DataFrame, fitted: Sequence[Growth], spec: FigureSpec) -> PaperFigure:
    """A figure of the worst regret against budget: a panel for each policy, a line for each number of arms. Points at
    the edge of the search are hollow."""
    titles = [
        f"{label(growth.policy)}\nB to the power {exponent(growth.in_budget)}\n"
        f"K to the power {exponent(growth.in_arms)}"
        for growth in fitted
    ]
    with matplotlib.rc_context(settings(spec)):
        figure, axes = panels(titles, spec, shape=0.9)
        for axis, growth in zip(axes, fitted, strict=True):
            _worst_panel(axis, hardest.filter(pl.col("policy") == growth.policy), growth, spec)
        name_axes(axes, "budget B", "regret on the hardest problem")
        legend_below(figure, axes[0], 4 if spec.narrow else 8)
        return finish(figure)


def _worst_panel(axis: Axes, rows: pl.DataFrame, growth: Growth, spec: FigureSpec) -> None:
    axis.set(xscale="log", yscale="log")
    for place, arms in enumerate(rows["arms"].unique(maintain_order=True)):
        line = rows.filter(pl.col("arms") == arms)
        budgets, worst, edge = (line[name].to_numpy() for name in ("budget", "crossed", "edge"))
        fit = math.exp(growth.constant) * budgets**growth.in_budget.value * float(arms) ** growth.in_arms.value
        mark = place_style(place, spec)
        axis.plot(budgets, fit, color=mark["color"], linewidth=1.0, zorder=2)
        axis.plot(budgets, worst, linestyle="", markersize=4.5, label=f"K = {arms}", zorder=3, **mark)
        axis.plot(
            budgets[edge], worst[edge], linestyle="", markersize=4.5, markerfacecolor=spec.colours["bg"], zorder=4,
            **mark,
        )  # fmt: skip
    scales.logarithmic(axis.yaxis, *axis.get_ylim(), 5)
    scales.logarithmic(axis.xaxis, *axis.get_xlim(), 5)


def exponent(fit: Exponent) -> str:
    """An estimated exponent with its interval, as text."""
    return f"{fit.value:.2f} [{fit.low:.2f}, {fit.high:.2f}]"
