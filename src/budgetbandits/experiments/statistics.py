"""Intervals and tests: of differences of means, of standard deviations; Holm's correction.

Games of different policies are seeded apart, so on one problem they are independent and Welch's interval is the right
one; pairing run by run would pair nothing. Games with common outcomes are paired: the differences of their runs are
judged.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy import special

from budgetbandits.numerics import intervals
from budgetbandits.numerics.arrays import AnyArray
from budgetbandits.numerics.intervals import student_quantile

LEVEL = intervals.LEVEL
"""Confidence level of intervals and tests."""

RESAMPLES = 2_000
"""Number of bootstrap samples."""

SEED = 20150725
"""Seed of the bootstrap, so that the same study has the same intervals."""


class SampleMoments(NamedTuple):
    """Mean, standard deviation and number of the runs behind them."""

    mean: AnyArray
    std: AnyArray
    runs: AnyArray

    def at(self, places: AnyArray) -> SampleMoments:
        """The entries in one column for each row."""
        return SampleMoments(*(np.take_along_axis(part, places, axis=-1) for part in self))


class Difference(NamedTuple):
    """A difference of means, its interval, and the two-sided p-value of there being none."""

    value: AnyArray
    low: AnyArray
    high: AnyArray
    p: AnyArray


def moments(values: AnyArray) -> SampleMoments:
    """The moments of the runs along the last axis; a single run has no standard deviation."""
    runs = values.shape[-1]
    mean = values.mean(axis=-1)
    std = values.std(axis=-1, ddof=1) if runs > 1 else np.full_like(mean, np.nan)
    return SampleMoments(mean, std, np.full_like(mean, runs))


def student(values: AnyArray, level: float = LEVEL) -> Difference:
    """The mean over the last axis against 0; infinitely wide with a single value."""
    mean, std, runs = moments(values)
    with np.errstate(invalid="ignore"):
        return _against_zero(mean, std / np.sqrt(runs), runs - 1, level)


def welch(first: SampleMoments, second: SampleMoments, level: float = LEVEL) -> Difference:
    """Mean of the first less mean of the second; infinitely wide with a single run."""
    ours, theirs = first.std**2 / first.runs, second.std**2 / second.runs
    with np.errstate(invalid="ignore", divide="ignore"):
        freedom = (ours + theirs) ** 2 / (ours**2 / (first.runs - 1) + theirs**2 / (second.runs - 1))
        freedom = np.where(np.isnan(freedom), 1.0, freedom)  # the error is 0 or unknown then, and any will do
        return _against_zero(first.mean - second.mean, np.sqrt(ours + theirs), freedom, level)


def _against_zero(value: AnyArray, error: AnyArray, freedom: AnyArray, level: float) -> Difference:
    """The difference of a value from 0. It is undecided without an error (NaN), and decided by an error of 0."""
    half = np.where(np.isnan(error), np.inf, student_quantile(0.5 + level / 2, np.maximum(freedom, 1)) * error)
    with np.errstate(invalid="ignore", divide="ignore"):
        p = 2.0 * special.stdtr(np.maximum(freedom, 1), -np.abs(value / error))
    p = np.where(np.isnan(error), 1.0, np.where(error == 0.0, np.where(value == 0.0, 1.0, 0.0), p))
    return Difference(value, value - half, value + half, p)


def holm(p: AnyArray, level: float = LEVEL) -> AnyArray:
    """Which of the hypotheses along the last axis Holm rejects: a false one among them with at most 1 - level."""
    order = np.argsort(p, axis=-1)
    steps = np.take_along_axis(p, order, axis=-1) <= (1.0 - level) / np.arange(p.shape[-1], 0, -1)
    rejected = np.empty(p.shape, dtype=bool)
    np.put_along_axis(rejected, order, np.logical_and.accumulate(steps, axis=-1), axis=-1)
    return rejected


def surely(difference: Difference, level: float = LEVEL) -> tuple[AnyArray, AnyArray]:
    """(surely negative, surely positive), Holm over the last axis."""
    rejected = holm(difference.p, level)
    return rejected & (difference.value < 0.0), rejected & (difference.value > 0.0)


def against_rivals(sample: SampleMoments, own: AnyArray) -> tuple[AnyArray, AnyArray]:
    """Problems × policies, and on each problem the column of one policy: is it (surely lower, surely higher) than
    each of the others? Welch's test, Holm over the others of a problem."""
    problems, policies = sample.mean.shape
    others = np.arange(policies) != own[:, None]
    rivals = SampleMoments(*(part[others].reshape(problems, policies - 1) for part in sample))
    return surely(welch(sample.at(own[:, None]), rivals))


def paired_rivals(values: AnyArray, own: AnyArray) -> tuple[AnyArray, AnyArray]:
    """Comparisons as `against_rivals` for problem × policy × run with paired runs, by Student's t on differences."""
    problems, policies, runs = values.shape
    others = np.arange(policies) != own[:, None]
    rivals = values[others].reshape(problems, policies - 1, runs)
    return surely(student(values[np.arange(problems), own][:, None] - rivals))


def resampled_std(values: AnyArray) -> AnyArray:
    """Bootstrap samples of the standard deviation of runs, sample × problem × policy.

    The runs of each policy are drawn apart, RESAMPLES times. Drawing from n runs has a variance of (n - 1)/n of
    theirs, for which it is corrected.
    """
    rng = np.random.default_rng(SEED)
    problems, policies, runs = values.shape
    again = np.empty((RESAMPLES, problems, policies))
    for place in range(policies):
        weights = rng.multinomial(runs, np.full(runs, 1.0 / runs), RESAMPLES) / runs
        centred = values[:, place] - values[:, place].mean(axis=-1, keepdims=True)
        variance = weights @ (centred**2).T - (weights @ centred.T) ** 2
        again[..., place] = np.sqrt(np.maximum(variance, 0.0)) * (runs / max(runs - 1, 1))
    return again


def bootstrap_interval(again: AnyArray, level: float = LEVEL) -> tuple[AnyArray, AnyArray]:
    """The interval that holds the middle share of the samples along the first axis; NaN if any is NaN."""
    with np.errstate(invalid="ignore"):
        low, high = np.quantile(again, [0.5 - level / 2, 0.5 + level / 2], axis=0)
    return low, high
