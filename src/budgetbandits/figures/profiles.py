"""Lines over problems: performance profiles and sorted values.

A performance profile (Dolan and Moré, 2002) says of each policy on which share of the problems its value is at most τ
times the best policy's. At τ = 1 that is how often it is the best; the further up and to the left, the better.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.axes import Axes

from budgetbandits.figures import axes as scales
from budgetbandits.figures import svg
from budgetbandits.figures.layout import PaperFigure, Series, line_panels
from budgetbandits.figures.style import FigureSpec
from budgetbandits.formatting.numbers import number
from budgetbandits.numerics.arrays import AnyArray

FACTOR_MAX = 20.0
"""Largest factor that a profile shows."""
FACTORS = (1.0, 1.1, 1.25, 1.5, 2.0, 3.0, 5.0, 10.0, 20.0)
"""Factors at which the lines of a profile have markers."""
SHARES = (5.0, 25.0, 50.0, 75.0, 95.0)
"""Shares of problems, in %, at which the lines of sorted values have markers."""


def factors(values: AnyArray) -> AnyArray:
    """The value of each policy divided by the best policy's, as problems × policies; less is better.

    Where the best value is 0 or less, it is 1 for the best policies and infinite for others.

    >>> factors(np.array([[2.0, 3.0], [0.0, 1.0]]))
    array([[1. , 1.5],
           [1. , inf]])
    """
    best = values.min(axis=1, keepdims=True)
    times = np.full(values.shape, np.inf)
    np.divide(values, best, out=times, where=best > 0.0)
    return np.where(values == best, 1.0, times)


def within(times: AnyArray, factor: AnyArray) -> AnyArray:
    """The share of the problems, in %, on which a policy is within each factor of the best."""
    return 100.0 * np.searchsorted(np.sort(times), factor * (1.0 + 1e-12), side="right") / len(times)


def profile(
    groups: Mapping[str, AnyArray],
    series: Sequence[Series],
    spec: FigureSpec,
    quantity: str = "regret",
    ax: Axes | None = None,
) -> PaperFigure | Axes:
    """A figure of performance profiles, a panel for each group; values are problems × policies, less is better."""
    times = {group: factors(values) for group, values in groups.items()}
    every = np.concatenate(list(times.values()))
    # as far as the policies' worst tenths, unless that is too far
    reach = np.minimum(np.quantile(every, 0.9, axis=0, method="higher"), FACTOR_MAX)
    furthest = float(max(reach.max() * 1.05, 2.0))
    grid = np.geomspace(1.0, furthest, 400)
    marks = np.array([factor for factor in FACTORS if factor <= furthest])

    def draw(axes: Axes, panel: int, group: str) -> None:
        for place, policy in enumerate(series):
            of = times[group][:, place]
            shares = within(of, marks)
            labels = [
                f"{policy.name}: within {factor:g} times the best on {share:.0f} %"
                for factor, share in zip(marks, shares, strict=True)
            ]
            _line(axes, panel, policy, spec, (grid, within(of, grid)), (marks, shares), labels)
        axes.set_xscale("log")
        axes.set(xlim=(1.0, furthest), ylim=(0, 100))
        scales.logarithmic(axes.xaxis, 1.0, furthest, 6)
        scales.straight(axes.yaxis, 4)

    merit = -np.log(np.minimum(every, 1e6)).mean(axis=0)
    words = f"times the best {quantity}", "% of the problems"
    return line_panels(list(groups), _by_merit(series, merit), spec, draw, words, ax)


def quantiles(
    groups: Mapping[str, AnyArray],
    series: Sequence[Series],
    spec: FigureSpec,
    quantity: str = "regret",
    ax: Axes | None = None,
) -> PaperFigure | Axes:
    """A figure of the sorted values of each policy, a panel for each group; values are problems × policies.

    On a logarithmic axis lines begin at the smallest of the marked values above 0.
    """
    marks = np.array(SHARES)
    marked = {group: np.quantile(values, marks / 100.0, axis=0, method="hazen") for group, values in groups.items()}
    log = scales.apart([values[1:].ravel() for values in marked.values()])  # the lowest may be 0

    def draw(axes: Axes, panel: int, group: str) -> None:
        values, at = np.sort(groups[group], axis=0), marked[group]
        shares = 100.0 * (np.arange(len(values)) + 0.5) / len(values)
        seen = at > 0.0 if log else np.full(at.shape, True)
        if log:
            values = np.where(values >= at[seen].min(), values, np.nan)
        scales.value_axis(axes, values.ravel(), log)
        for place, policy in enumerate(series):
            dots = marks[seen[:, place]], at[seen[:, place], place]
            labels = [f"{policy.name}: {number(value)} at {share:g} %" for share, value in zip(*dots, strict=True)]
            _line(axes, panel, policy, spec, (shares, values[:, place]), dots, labels)
        axes.set_xlim(0, 100)
        scales.straight(axes.xaxis, 4)

    ranks = [np.median(values, axis=0).argsort().argsort() for values in groups.values()]
    merit = -np.mean(ranks, axis=0)
    words = "% of the problems, lowest first", quantity
    return line_panels(list(groups), _by_merit(series, merit), spec, draw, words, ax)


def _by_merit(series: Sequence[Series], merit: AnyArray) -> list[Series]:
    return [series[place] for place in np.argsort(-merit, kind="stable")]


def _line(
    axes: Axes, panel: int, series: Series, spec: FigureSpec, line: tuple[AnyArray, AnyArray],
    marks: tuple[AnyArray, AnyArray], labels: Sequence[str],
) -> None:  # fmt: skip
    """Draw a line without markers, and markers at its round places."""
    colour, order = spec.colour(series.style), 40 - series.number
    (drawn,) = axes.plot(
        *line, color=colour, linestyle=series.style.line, label=series.name, zorder=order, clip_on=False
    )
    svg.tag(drawn, "line", series.number, panel)
    (dots,) = axes.plot(
        *marks,
        color=colour,
        linestyle="none",
        marker=series.style.marker,
        markeredgewidth=0,
        zorder=order,
        clip_on=False,
    )
    points = [svg.Point(x, y, None, None, text) for x, y, text in zip(*marks, labels, strict=True)]
    svg.tag(dots, "line", series.number, panel, 1, points)
