"""Figures of one simulation: where the pulls went, and regret against budget."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from budgetbandits.errors import BadParameter
from budgetbandits.figures import arms
from budgetbandits.figures import regret as curves
from budgetbandits.figures.layout import PaperFigure, Series, chosen
from budgetbandits.figures.style import FigureSpec, figure_spec, series_styles
from budgetbandits.numerics.intervals import LEVEL, student_quantile
from budgetbandits.policies.names import PAPER, label
from budgetbandits.problems import oracle

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from budgetbandits.simulation.outcome import Outcome
from budgetbandits.problems.streams import RequestStream


def draw(outcome: Outcome, figure: str, width: str | float, dark: bool, ax: Axes | None, **options: Any) -> Any:
    """One of `FIGURES`, on a sheet of this width, or in ``ax`` if it has a single panel."""
    if ax is not None:
        if figure == "pulls":
            raise BadParameter("figure 'pulls' has two panels; leave out ax")
        options["ax"] = ax
    return chosen(FIGURES, figure, options)(outcome, figure_spec(width, dark), **options)


def pulls(outcome: Outcome, of: FigureSpec, *, budget: float | None = None) -> PaperFigure:
    """Each arm's share of the pulls at one budget, the largest if none is given, beside its true ratio."""
    if isinstance(outcome.problem, RequestStream):
        raise BadParameter("'pulls' shows one ratio for each arm, which in traffic changes; see outcome.part_pulls")
    budgets = outcome.budgets.tolist()
    if budget is not None and budget not in budgets:
        raise BadParameter(f"no budget {budget!r:.40} was played; choose one of {', '.join(f'{b:g}' for b in budgets)}")
    at = budgets.index(max(budgets) if budget is None else budget)
    games = outcome.pulls[:, at]
    share = games / games.sum(axis=1, keepdims=True)
    mean, low, high = _interval(share)
    title = f"{label(outcome.policy)}, B = {budgets[at]:,g}, {outcome.runs} runs"
    names, ratios = outcome.problem.names, oracle.ratios(outcome.problem)
    return arms.pulls(arms.PullShares(names, ratios, games.mean(axis=0), mean, low, high), title, of)


def regret(
    outcome: Outcome, of: FigureSpec, *, deviations: bool = False, log: bool | None = None, ax: Axes | None = None
) -> PaperFigure | Axes:
    """Mean pseudo-regret against budget with its 95 % interval, or with bars of the standard deviation."""
    order = np.argsort(outcome.budgets)
    values = outcome.pseudo_regret[:, order]
    std = values.std(axis=0, ddof=1) if outcome.runs > 1 else np.full(len(order), np.nan)
    curve = curves.Curve(outcome.budgets[order], *_interval(values), std)
    series = Series(0, label(outcome.policy), series_styles([outcome.policy], PAPER)[0])
    return curves.regret({"": [curve]}, [series], of, curves.RegretOptions(deviations, log, "pseudo-regret"), ax)


def _interval(values: Any) -> tuple[Any, Any, Any]:
    """The mean over runs and its 95 % interval by Student's t; NaN with a single run."""
    runs, mean = len(values), values.mean(axis=0)
    if runs < 2:
        return mean, np.full_like(mean, np.nan), np.full_like(mean, np.nan)
    half = student_quantile(0.5 + LEVEL / 2, runs - 1) * values.std(axis=0, ddof=1) / np.sqrt(runs)
    return mean, mean - half, mean + half


FIGURES: dict[str, Callable[..., Any]] = {"pulls": pulls, "regret": regret}
