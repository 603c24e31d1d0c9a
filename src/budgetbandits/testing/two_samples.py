"""Two-sample tests of whole games: do two engines draw from the same distribution?"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from budgetbandits.simulation.outcome import Outcome

FALSE_ALARM = 1e-6
"""Probability that one call of `smallest_p` fails although the distributions agree, after Bonferroni."""


def rows(outcome: Outcome) -> NDArray[np.float64]:
    """One row a run: for every budget the reward, the spend, the rounds and each arm's pulls."""
    numbers = [outcome.reward[..., None], outcome.spend[..., None], outcome.rounds[..., None], outcome.pulls]
    return np.concatenate(numbers, axis=2, dtype=np.float64).reshape(outcome.runs, -1)


def smallest_p(first: NDArray[np.float64], second: NDArray[np.float64], bins: int = 12) -> float:
    """The smallest p-value over all columns, by chi-square on pooled quantiles and by Kolmogorov-Smirnov, Bonferroni
    corrected: below `FALSE_ALARM` the samples differ."""
    from scipy import stats  # late: it takes a second to import

    lowest, tests = 1.0, 0
    for a, b in zip(first.T, second.T, strict=True):
        edges = np.unique(np.quantile(np.concatenate([a, b]), np.linspace(0.0, 1.0, bins + 1)[1:-1]))
        table = np.array([np.bincount(np.searchsorted(edges, x), minlength=len(edges) + 1) for x in (a, b)])
        table = _merged(table)
        if table.shape[1] > 1:
            lowest = min(lowest, stats.chi2_contingency(table, correction=False).pvalue)
        lowest = min(lowest, stats.ks_2samp(a, b, method="asymp").pvalue)
        tests += 2
    return min(1.0, lowest * tests)


def _merged(table: NDArray[np.int64]) -> NDArray[np.int64]:
    """Neighbouring bins joined until each holds at least 20 of both samples together: chi-square needs that."""
    columns: list[NDArray[np.int64]] = []
    for column in table.T:
        if columns and columns[-1].sum() < 20:
            columns[-1] = columns[-1] + column
        else:
            columns.append(column.copy())
    if len(columns) > 1 and columns[-1].sum() < 20:
        last = columns.pop()
        columns[-1] = columns[-1] + last
    return np.array(columns).T
