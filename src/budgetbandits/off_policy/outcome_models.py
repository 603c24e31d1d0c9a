"""Outcome models: guesses at what each arm would have earned or cost for the request of each decision.

Without features a guess is the mean of the segment and arm, drawn towards that of the arm in all segments. With
features it is the regression of `bts-linear` (`numerics.regression`) on features and segments: each arm has its own
slopes, drawn towards those that all arms share. Outcomes are in units of their arm's mean there, so that arms whose
costs are far apart can share slopes; guesses are clipped to what is possible.

Guesses are cross-fitted: those for a fifth of the decisions, every fifth one, come from the other four. So no outcome
is used to guess itself.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from budgetbandits.numerics.arrays import Array
from budgetbandits.numerics.regression import regressions
from budgetbandits.off_policy.log import Log
from budgetbandits.policies.linear import LinearThompson

FOLDS = 5
"""Parts of a log, each of which is guessed by models of the others."""
PRIOR = 1.0
"""Outcomes of the arm in all segments that the guess of a segment and arm begins with; of all arms, that of an arm."""
FIRST_APART = 1.0
"""Distance of the two outcomes that a level begins with from the arm's mean, in units of that mean."""


def guesses(log: Log, outcome: Array) -> Array:
    """The mean outcome of every arm for each decision, by the decisions of other folds; as (decision, arm)."""
    return _by_regression(log, outcome) if log.feature_names else _by_segment(log, outcome)


def _by_segment(log: Log, outcome: Array) -> Array:
    fold, segment = np.arange(len(log)) % FOLDS, log.segment
    count, total = np.zeros((2, FOLDS, int(segment.max()) + 1, len(log.arms)))
    np.add.at(count, (fold, segment, log.arm), 1.0)
    np.add.at(total, (fold, segment, log.arm), outcome)
    count, total = count.sum(axis=0) - count, total.sum(axis=0) - total
    anything = total.sum(axis=(1, 2)) / np.maximum(count.sum(axis=(1, 2)), 1.0)
    arm = _drawn_towards(total.sum(axis=1), count.sum(axis=1), anything[:, None])
    return np.asarray(_drawn_towards(total, count, arm[:, None, :])[fold, segment])


def _drawn_towards(total: Array, count: Array, prior: Array) -> Array:
    return np.asarray((total + PRIOR * prior) / (count + PRIOR))


def _by_regression(log: Log, outcome: Array) -> Array:
    rows, fold = request_rows(log), np.arange(len(log)) % FOLDS
    guessed = np.zeros((len(log), len(log.arms)))
    for number in range(FOLDS):
        own, others = fold == number, fold != number
        guessed[own] = rows[own] @ coefficients(rows[others], log.arm[others], outcome[others], len(log.arms)).T
    return np.asarray(np.clip(guessed, 0.0, outcome.max()))


def request_rows(log: Log) -> Array:
    """The row of each decision's request, as `bts-linear` has it: 1, its features and its segment, standardised."""
    segments = np.eye(len(log.segments))[log.segment] if log.segments else np.zeros((len(log), 0))
    columns = np.hstack([log.features - log.features[:1], segments])  # large numbers may differ by little
    spread = columns.std(axis=0)
    varies = spread > 1e-9 * np.abs(columns).max(axis=0)
    columns = np.where(varies, (columns - columns.mean(axis=0)) / np.where(varies, spread, 1.0), 0.0)
    return np.hstack([np.ones((len(log), 1)), columns])


def coefficients(rows: Array, arm: NDArray[np.int64], outcome: Array, arms: int) -> Array:
    """The mean coefficients of the regression of each arm's outcomes on rows whose first entry is 1, as (arm, column).

    >>> rows = np.array([[1.0, -1.0], [1.0, 1.0]] * 2000)
    >>> coefficients(rows, np.zeros(4000, dtype=int), 3.0 + 2.0 * rows[:, 1], arms=1).round(2).tolist()
    [[3.0, 2.0]]
    """
    columns = rows.shape[1]
    products, responses = np.zeros((arms, columns, columns)), np.zeros((1, arms, columns))
    squares, unit = np.zeros((1, arms)), np.full(arms, float(outcome.mean()) or 1.0)
    for number in range(arms):
        mine = arm == number
        if outcome[mine].any():
            unit[number] = outcome[mine].mean()
        shares = outcome[mine] / unit[number]
        products[number] = rows[mine].T @ rows[mine]
        responses[0, number], squares[0, number] = rows[mine].T @ shares, shares @ shares
    policy = LinearThompson()
    apart, shared = policy.apart * max(columns - 1, 1), policy.shared / policy.apart
    fit = regressions(products, responses, squares, np.ones((1, arms)), FIRST_APART, apart, shared)
    return np.asarray(fit.means[0] * unit[:, None])
