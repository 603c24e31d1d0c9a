"""The figures of a report: each as files beside the page, and drawn for two widths in it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import joblib
import polars as pl
from markupsafe import Markup
from matplotlib import rc_context
from matplotlib.figure import Figure

from budgetbandits.experiments import plots
from budgetbandits.experiments.growth import Growth
from budgetbandits.experiments.paper.findings import Findings
from budgetbandits.experiments.results import Results
from budgetbandits.figures import layout as picture
from budgetbandits.figures import profiles, svg
from budgetbandits.figures.layout import Series
from budgetbandits.figures.style import FigureSpec, looks, sheet
from budgetbandits.formatting.numbers import exact
from budgetbandits.numerics.arrays import AnyArray
from budgetbandits.policies import PAPER_POLICIES, label
from budgetbandits.report import paper_figures, theory_figures
from budgetbandits.report.legend import Mark, marks
from budgetbandits.report.tables import regrets

WIDTHS: dict[str, str | float] = {"wide": 12.0, "narrow": "phone"}
"""What the page shows one of, by the width of its window; in inches of 96 pixels, or by name."""
FORMATS = ("png", "svg", "pdf")
LOG, LINEAR = "log", "linear"

Draw = Callable[[FigureSpec], Any]


@dataclass(frozen=True)
class Drawing:
    """A figure drawn for a width and a scale, as SVG."""

    width: str
    scale: str
    svg: Markup


@dataclass(frozen=True)
class Drawn:
    """A figure of the page. ``read`` is what the points at one place share, if they are read together; ``legend`` says
    whether the page's list of policies belongs to it."""

    id: str
    title: str
    caption: str
    drawings: tuple[Drawing, ...] = ()
    read: str = ""
    legend: bool = False

    @property
    def scales(self) -> list[str]:
        return list(dict.fromkeys(drawing.scale for drawing in self.drawings))


def names(policies: Sequence[str]) -> list[str]:
    return [label(policy) for policy in policies]


def marks_of(policies: Sequence[str]) -> list[Mark]:
    return marks(looks(policies, PAPER_POLICIES))


def of_study(results: Results, folder: Path) -> list[Drawn]:
    """Regret against budget, or at a single one; with several problems in a group also how they differ."""
    several = len(results.record["problems"]) > len(results.groups)
    found = [_dots(results, folder) if len(results.budgets) == 1 else _regret(results, folder)]
    if several and len(results.policies) > 1:
        found += _over_problems(results, folder)
    return found


def _regret(results: Results, folder: Path) -> Drawn:
    caption = f"Mean pseudo-regret. {_intervals(results)}"
    return _scaled(folder, Drawn("regret", "Regret against budget", caption, read="B =", legend=True), results)


def _dots(results: Results, folder: Path) -> Drawn:
    caption = f"Mean pseudo-regret at B = {exact(results.largest())}, the lowest first. {_intervals(results)}"
    return _plain(folder, Drawn("dots", "Regret", caption, legend=True), partial(plots.dots, results))


def _intervals(results: Results) -> str:
    """What bands and lines are, and how many groups are not drawn."""
    alone = len(results.record["problems"]) == len(results.groups)
    over = "the runs" if alone else "the problems of a group, or over the runs where it has one problem"
    left_out = len(results.groups) > plots.PANELS_MAX
    return f"Intervals of 95 % are over {over}." + (
        f" The first {plots.PANELS_MAX} groups of {len(results.groups)}." if left_out else ""
    )


def _over_problems(results: Results, folder: Path) -> list[Drawn]:
    budget = exact(results.largest())
    profile = Drawn(
        "profile",
        "How far from the best",
        f"On which share of the problems the mean regret of a policy at B = {budget} is at most so many times that of "
        "the problem's best policy: further up and to the left is better.",
        read="times the best:",
        legend=True,
    )
    wins = Drawn(
        "wins",
        "Who wins where",
        f"On which share of the problems a policy has the lowest mean regret at B = {budget}: surely, not surely, or "
        f"is not surely worse than the lowest ({results.test}, 95 %, Holm over the others of a problem).",
    )
    quantiles = Drawn(
        "quantiles",
        "Easy and hard problems",
        f"The mean regrets of each policy at B = {budget}, sorted over the problems: its quantiles.",
        read="% of the problems:",
        legend=True,
    )
    return [
        _plain(folder, profile, partial(plots.profile, results)),
        _plain(folder, wins, partial(plots.wins, results)),
        _plain(folder, quantiles, partial(plots.quantiles, results)),
    ]


def over_settings(
    all_problems: AnyArray, settings: Mapping[str, AnyArray], policies: Sequence[str], folder: Path
) -> list[Drawn]:
    """Of a leaderboard: how far from the best, over the problems of all settings, and the tails, setting by setting;
    values are problems × policies."""
    series = [
        Series(place, label(policy), look)
        for place, (policy, look) in enumerate(zip(policies, looks(policies, PAPER_POLICIES), strict=True))
    ]
    profile = Drawn(
        "profile",
        "How far from the best",
        "On which share of the problems of all settings the regret of a policy is at most so many times that of the "
        "problem's best policy among these: further up and to the left is better.",
        read="times the best:",
        legend=True,
    )
    quantiles = Drawn(
        "quantiles",
        "Easy and hard problems, and the tails",
        "The regrets of each policy at the largest budget, sorted over the problems of a setting. Where a line rises "
        "at the right end, a policy loses some games altogether, which means and medians of few games do not show.",
        read="% of the problems:",
        legend=True,
    )
    return [
        _plain(folder, profile, partial(_profile, all_problems, series)),
        _plain(folder, quantiles, partial(_quantiles, settings, series)),
    ]


def _profile(values: AnyArray, series: Sequence[Series], of: FigureSpec) -> Any:
    return profiles.profile({"all problems": values}, series, of)


def _quantiles(settings: Mapping[str, AnyArray], series: Sequence[Series], of: FigureSpec) -> Any:
    return profiles.quantiles(settings, series, of)


def growth(slopes: pl.DataFrame, folder: Path) -> Drawn:
    about = Drawn(
        "growth-figure",
        "How fast the regret of BTS grows",
        "The slope of the mean regret against ln B from each budget to the next, by the constant of the asymptotic "
        "lower bound: no policy that is good on every problem can stay below 1 in the long run. "
        "Bars are 95 % intervals.",
    )
    return _plain(folder, about, partial(theory_figures.growth_beside_the_bound, slopes), "growth")


def worst(hardest: pl.DataFrame, fitted: Sequence[Growth], folder: Path) -> Drawn:
    about = Drawn(
        "worst-case",
        "The hardest problem",
        "The largest mean pseudo-regret over all gaps that were played: one half of the runs chooses the hardest "
        "problem, the other half measures it, and the other way round. Lines are the fit ln regret = c + a ln B + b ln "
        "K. Hollow: the hardest gap is the first or last of its sweep.",
    )
    return _plain(folder, about, partial(theory_figures.worst_regret, hardest, fitted))


def of_paper(found: Findings, folder: Path) -> Iterable[Drawn]:
    """The paper's figures, drawn by as many processes as `joblib.parallel_config` has been told to use, while the
    caller does other things."""
    calibrated, ensemble, bounds = found.calibrated, found.ensemble, found.bounds
    drawn: Iterable[Drawn] = joblib.Parallel(return_as="generator")(
        joblib.delayed(draw)(folder, *arguments, **options)
        for draw, arguments, options in (
            (_scaled, (FIGURE_1, calibrated), {"log": False, "deviations": True}),  # linear as in the paper
            (_plain, (_figure_2(ensemble), partial(paper_figures.who_wins, ensemble)), {}),
            (_plain, (FIGURE_3, partial(theory_figures.bounds_over_regret, calibrated, bounds)), {}),
            (_plain, (FIGURE_4, partial(theory_figures.slope_of_the_lower_bound, calibrated, bounds)), {}),
        )
    )
    return drawn


FIGURE_1 = Drawn(
    "figure-1",
    "Regret against budget, as in the paper's figure",
    "Mean pseudo-regret; bars are one standard deviation of it over the runs. The problem of panel (a) was searched "
    "for until ε-first agreed with the three numbers the paper gives; the other panels are the same seed.",
    read="B =",
    legend=True,
)
FIGURE_3 = Drawn(
    "figure-3",
    "What is proven",
    "The regret of BTS on the same problems, both axes logarithmic. Theorem 1 is evaluated term by term, γ optimised "
    "for each arm; a bound above the dotted line says nothing.",
)
FIGURE_4 = Drawn(
    "figure-4",
    "The slowest growth there can be",
    "The regret of BTS against ln B. The lower bound is one on the slope alone, in the long run: no policy that is "
    "good on every problem can keep rising more slowly than the triangle's long side. It says nothing about the regret "
    "at any budget, so where the triangle stands means nothing.",
)


def _figure_2(ensemble: Results) -> Drawn:
    return Drawn(
        "figure-2",
        "Random problems",
        f"Each point is a random problem at B = {exact(ensemble.largest())}. Above the diagonal BTS has the lowest "
        "mean regret, below it another policy has; colour and shape say which of the others is the best. Hollow: "
        "unsure, for neither is BTS surely the lowest nor another one surely lower (Welch's test, Holm over the four).",
        legend=True,
    )


def _plain(folder: Path, about: Drawn, draw: Draw, name: str | None = None) -> Drawn:
    """A figure with one scale."""
    saved = _save(draw(sheet(WIDTHS["wide"])), folder, name or about.id)
    wide = drawing_of(about, draw, "wide") if about.legend else _as_drawing(about, saved, "wide")
    return replace(about, drawings=(wide, drawing_of(about, draw, "narrow")))


def _scaled(folder: Path, about: Drawn, results: Results, log: bool | None = None, **options: Any) -> Drawn:
    """Regret against budget with a logarithmic and a linear axis; the files have the one that comes first: ``log``, or
    what suits the numbers. A logarithm needs positive ones."""
    saved = plots.regret(results, sheet(WIDTHS["wide"]), log=log, **options)
    assert isinstance(saved, Figure)
    _save(saved, folder, about.id)
    scales = [LOG, LINEAR] if saved.axes[0].get_yscale() == LOG else [LINEAR, LOG]
    if not (regrets(results)["mean"] > 0.0).all():
        scales = [LINEAR]
    drawings = [
        drawing_of(about, partial(plots.regret, results, log=scale == LOG, **options), width, scale)
        for scale in scales
        for width in WIDTHS
    ]
    return replace(about, drawings=tuple(drawings))


def drawing_of(about: Drawn, draw: Draw, width: str, scale: str = "") -> Drawing:
    """The figure drawn for one of `WIDTHS`."""
    on = sheet(WIDTHS[width])
    return _as_drawing(about, _laid_out(draw(replace(on, legend=not about.legend))), width, scale)


def _as_drawing(about: Drawn, figure: Figure, width: str, scale: str = "") -> Drawing:
    prefix = "-".join(filter(None, (about.id, width, scale)))
    return Drawing(width, scale, Markup(svg.to_svg(figure, prefix, about.title)))


def _laid_out(figure: Figure) -> Figure:
    """A figure that keeps its layout: with an engine of layout, even an idle one, it is drawn twice for each file."""
    with rc_context({"figure.autolayout": False, "figure.constrained_layout.use": False}):
        figure.set_layout_engine(None)
    return figure


def _save(figure: Figure, folder: Path, name: str) -> Figure:
    (folder / "figures").mkdir(parents=True, exist_ok=True)
    figure = _laid_out(figure)
    for kind in FORMATS:
        picture.save(figure, folder / "figures" / f"{name}.{kind}")
    return figure
