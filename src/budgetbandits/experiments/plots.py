"""Figures of a study: the numbers of `Results`, handed to `budgetbandits.figures`."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from budgetbandits import plugins
from budgetbandits.errors import BadParameter, UnknownPolicy
from budgetbandits.experiments.growth import lower_bound_of
from budgetbandits.experiments.plan import scaled
from budgetbandits.experiments.results import Results, towards_less
from budgetbandits.figures import profiles, rankings
from budgetbandits.figures import regret as curves
from budgetbandits.figures.layout import PaperFigure, Series, chosen
from budgetbandits.figures.style import FigureSpec, figure_spec, series_styles
from budgetbandits.numerics.arrays import AnyArray
from budgetbandits.numerics.intervals import half_width
from budgetbandits.policies import PAPER_POLICIES, label
from budgetbandits.problems.oracle import ratios
from budgetbandits.simulation.simulate import simulate

if TYPE_CHECKING:
    from matplotlib.axes import Axes

PANELS_MAX = 12
"""Most panels of a figure; further groups are left to the tables."""
REPLAYED_RUNS = 50
"""Number of runs that are played again to count pulls, which a study does not keep."""
SURELY, UNSURELY, CLOSE, WORSE = range(4)
"""How a policy compares with the best on a problem."""


def draw(results: Results, figure: str | None, width: str | float, dark: bool, ax: Axes | None, **options: Any) -> Any:
    """One of `FIGURES`, on a sheet of this width, or in ``ax`` if it has a single panel. Without a name it is regret
    against budget, and dots if there is a single budget."""
    figure = figure or ("regret" if len(results.budgets) > 1 else "dots")
    if ax is not None:
        if figure in ("wins", "pulls"):
            raise BadParameter(f"figure {figure!r} needs a figure of its own; leave out ax")
        if len(results.groups) > 1:
            raise BadParameter(f"the study has {len(results.groups)} groups of problems, a panel each; leave out ax")
        options["ax"] = ax
    return chosen(FIGURES, figure, options)(results, figure_spec(width, dark), **options)


def series_of(results: Results) -> list[Series]:
    """The study's policies as they are drawn in every one of its figures."""
    styles = series_styles(results.policies, PAPER_POLICIES)
    return [Series(place, label(policy), styles[place]) for place, policy in enumerate(results.policies)]


def regret(
    results: Results, spec: FigureSpec, *, metric: str = "pseudo_regret", deviations: bool = False,
    log: bool | None = None, lower_bound: bool = False, ax: Axes | None = None,
) -> PaperFigure | Axes:  # fmt: skip
    """Means against budget, with 95 % intervals: over the runs of a single problem, over the means of several.

    ``deviations`` draws bars of the standard deviation instead, of the runs or of the problems' means. ``log`` makes
    the axis of regret logarithmic or straight, whatever the numbers are. ``lower_bound`` adds the slope of the lower
    bound to panels of a single problem that has one.
    """
    summary = with_intervals(results, metric)
    groups = {}
    for group in results.groups[:PANELS_MAX]:
        rows = summary.filter(pl.col("group") == group)
        groups[group] = [_curve(rows.filter(pl.col("policy") == policy).sort("budget")) for policy in results.policies]
    slopes = {group: lower_bound_of(results, group) for group in groups} if lower_bound else {}
    known_slopes = {group: slope for group, slope in slopes.items() if slope is not None}
    chosen_options = curves.RegretOptions(deviations, log, _words(metric), known_slopes)
    return curves.regret(groups, series_of(results), spec, chosen_options, ax)


def with_intervals(results: Results, metric: str = "pseudo_regret") -> pl.DataFrame:
    """`Results.summary_of_groups` with ``low`` and ``high``, the mean's 95 % interval by Student's t."""
    summary = results.summary_of_groups(metric)
    count = pl.when(pl.col("problems") > 1).then(pl.col("problems")).otherwise(pl.col("runs"))
    counts = summary.select(count.alias("count"))["count"].to_numpy()
    error = summary["sem"].fill_null(np.nan).to_numpy()
    half = half_width(error, counts)
    mean = summary["mean"].to_numpy()
    return summary.with_columns(pl.Series("low", mean - half), pl.Series("high", mean + half))


def _curve(rows: pl.DataFrame) -> curves.Curve:
    columns = ("budget", "mean", "low", "high", "std")
    return curves.Curve(*(rows[name].cast(pl.Float64).fill_null(np.nan).to_numpy() for name in columns))


def _words(metric: str) -> str:
    return metric.replace("_", "-")


def _at(results: Results, metric: str, budget: float | None) -> str:
    return f"{_words(metric)} at B = {results.largest(budget):,g}"


def dots(
    results: Results,
    spec: FigureSpec,
    *,
    metric: str = "pseudo_regret",
    budget: float | None = None,
    ax: Axes | None = None,
) -> PaperFigure | Axes:
    """Means with 95 % intervals at one budget, the largest if none is given."""
    summary = with_intervals(results, metric).filter(pl.col("budget") == results.largest(budget))
    groups = {}
    for group in results.groups[:PANELS_MAX]:
        intervals = {
            row["policy"]: rankings.MeanInterval(row["mean"], row["low"], row["high"])
            for row in summary.filter(pl.col("group") == group).rows(named=True)
        }
        groups[group] = [
            intervals.get(policy, rankings.MeanInterval(np.nan, np.nan, np.nan)) for policy in results.policies
        ]
    return rankings.dots(groups, series_of(results), spec, _at(results, metric, budget), ax)


def wins(
    results: Results, spec: FigureSpec, *, metric: str = "pseudo_regret", budget: float | None = None
) -> PaperFigure:
    """The share of a group's problems on which each policy is surely or unsurely best, or not surely worse."""
    counts = _by_group(results, standing(results, metric, budget))
    groups = {
        group: [rankings.Wins(*np.bincount(column, minlength=4).tolist()[:3]) for column in standings.T]
        for group, standings in counts.items()
    }
    return rankings.wins(
        groups, {group: len(standings) for group, standings in counts.items()}, series_of(results), spec
    )


def standing(results: Results, metric: str = "pseudo_regret", budget: float | None = None) -> AnyArray:
    """Problems × policies: whether a policy has the best mean, SURELY or UNSURELY, is CLOSE to it, that is not surely
    worse, or surely WORSE. As `Results.best` tests it, with Holm's correction over the others."""
    if len(results.policies) < 2:
        raise BadParameter("the study has a single policy, so there is nothing to win; add one to the experiment")
    values = towards_less(metric) * results.values(metric, budget)
    least = values.mean(axis=-1).argmin(axis=1)
    lower = results.below_rivals(values, least)
    standings = np.empty(values.shape[:2], dtype=int)
    rivals = np.arange(len(results.policies)) != least[:, None]
    standings[rivals] = np.where(lower, WORSE, CLOSE).ravel()
    standings[~rivals] = np.where(lower.all(axis=1), SURELY, UNSURELY)
    return standings


def profile(
    results: Results,
    spec: FigureSpec,
    *,
    metric: str = "pseudo_regret",
    budget: float | None = None,
    ax: Axes | None = None,
) -> PaperFigure | Axes:
    """The share of the problems on which a policy is within a factor of the best."""
    if towards_less(metric) < 0.0:
        raise BadParameter(f"a profile is of what should be low, and of {metric} more is better; use regret")
    means = _by_group(results, results.values(metric, budget).mean(axis=-1))
    return profiles.profile(means, series_of(results), spec, _at(results, metric, budget), ax)


def quantiles(
    results: Results,
    spec: FigureSpec,
    *,
    metric: str = "pseudo_regret",
    budget: float | None = None,
    ax: Axes | None = None,
) -> PaperFigure | Axes:
    """The means of each policy sorted over the problems."""
    means = _by_group(results, results.values(metric, budget).mean(axis=-1))
    return profiles.quantiles(means, series_of(results), spec, _at(results, metric, budget), ax)


def _by_group(results: Results, values: AnyArray) -> dict[str, AnyArray]:
    groups = np.array([problem["group"] for problem in results.record["problems"]])
    return {group: values[groups == group] for group in results.groups[:PANELS_MAX]}


def pulls(results: Results, spec: FigureSpec, *, budget: float | None = None) -> PaperFigure:
    """The share of the pulls that each arm got, on the first problem of each group.

    A study keeps no pulls, so its first runs are played again: the same games, as far as it kept them.
    """
    at = results.budgets.index(results.largest(budget))
    record = results.record
    if "seed" not in record:
        raise BadParameter("these are not the results of a study, so no game can be played again; plot an Outcome")
    policies = []
    for text in results.policies:
        try:
            policies.append(plugins.find_policy(text))
        except UnknownPolicy:
            raise BadParameter(
                f"games are played again for this figure, and {text} is no policy of the package; load the file that "
                "it is from: 'budgetbandits --plugin mine.py plot ...', or plugins.load('mine.py')"
            ) from None
    groups, worth = {}, {}
    for group in results.groups[:PANELS_MAX]:
        ((named, problem),) = results.problems(group, 1)
        horizon = record.get("horizon")
        budgets = scaled(tuple(results.budgets), problem, record.get("budget_unit", "1"), horizon)
        played = [
            simulate(problem, policy, budgets, min(record["runs"], REPLAYED_RUNS), record["seed"],
                     engine=record["engine"], common=results.paired, horizon=horizon).pulls[:, at]
            for policy in policies
        ]  # fmt: skip
        groups[named["name"]] = np.array(
            [(pulls_of_policy / pulls_of_policy.sum(axis=1, keepdims=True)).mean(axis=0) for pulls_of_policy in played]
        )
        worth[named["name"]] = ratios(problem)
    return rankings.pulls(groups, worth, series_of(results), spec)


FIGURES: dict[str, Callable[..., Any]] = {
    "regret": regret, "pulls": pulls, "dots": dots, "profile": profile, "wins": wins, "quantiles": quantiles,
}  # fmt: skip
"""The figures of a study by name, as on the command line."""
