"""Two-sample tests of whole games: do two engines draw from the same distribution?"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from budgetbandits.simulation.simulate import Player

FALSE_ALARM = 1e-6
"""Probability that one call of `smallest_p` fails although the distributions agree, after Bonferroni."""


def sample(games: Player, runs: int, seed: int) -> NDArray[np.float64]:
    """One row a run: for every budget the reward, the spend, the rounds and each arm's pulls."""
    rows = []
    for run in range(runs):
        results = games.play(np.random.SeedSequence(seed, spawn_key=(run,)))
        rows.append(np.concatenate([[r[0], r[1], r[2], *r[3]] for r in results]))
    return np.array(rows)


def smallest_p(first: NDArray[np.float64], second: NDArray[np.float64], bins: int = 12) -> float:
    """The smallest p-value over all columns, by chi-square on pooled quantiles and by Kolmogorov-Smirnov, Bonferroni
    corrected: below `FALSE_ALARM` the samples differ."""
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


def chi_square(counts: np.ndarray, probabilities: np.ndarray) -> float:
    """The p-value of Pearson's test; cells expecting fewer than 10 are pooled."""
    expected = probabilities / probabilities.sum() * counts.sum()
    rare = expected < 10
    if rare.any():
        counts = np.append(counts[~rare], counts[rare].sum())
        expected = np.append(expected[~rare], expected[rare].sum())
    keep = expected > 0
    assert counts[~keep].sum() == 0
    return float(stats.chisquare(counts[keep], expected[keep], sum_check=False).pvalue)
