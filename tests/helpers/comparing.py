"""Samples of games as rows, and Pearson's test."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from budgetbandits.simulation.parallel import Player


def sample(games: Player, runs: int, seed: int) -> NDArray[np.float64]:
    """One row a run: for every budget the reward, the spend, the rounds and each arm's pulls."""
    rows = []
    for run in range(runs):
        results = games.play(np.random.SeedSequence(seed, spawn_key=(run,)))
        rows.append(np.concatenate([[r[0], r[1], r[2], *r[3]] for r in results]))
    return np.array(rows)


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
