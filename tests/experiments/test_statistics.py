"""Intervals and tests against SciPy's, and how often they hold what they should."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from budgetbandits.experiments.statistics import (
    RESAMPLES,
    SampleMoments,
    against_rivals,
    bootstrap_interval,
    holm,
    moments,
    resampled_std,
    student,
    welch,
)
from budgetbandits.numerics.intervals import wilson


@pytest.mark.parametrize(("hits", "trials"), [(0, 20), (3, 20), (13, 500), (20, 20)])
def test_wilson(hits, trials):
    expected = stats.binomtest(hits, trials).proportion_ci(0.95, method="wilson")
    low, high = wilson(hits, trials)
    assert (low, high) == (pytest.approx(expected.low, abs=1e-12), pytest.approx(expected.high))


def test_welch_and_student_are_scipys():
    rng = np.random.default_rng(1)
    first, second = rng.normal(0.4, 1.0, 12), rng.normal(0.0, 3.0, 12)
    found = welch(moments(first), moments(second))
    expected = stats.ttest_ind(first, second, equal_var=False)
    ends = expected.confidence_interval(0.95)
    assert [*found[1:]] == pytest.approx([ends.low, ends.high, expected.pvalue])
    found = student(first)
    expected = stats.ttest_1samp(first, 0.0)
    ends = expected.confidence_interval(0.95)
    assert [*found] == pytest.approx([first.mean(), ends.low, ends.high, expected.pvalue])


def test_without_scatter_every_difference_is_sure_and_a_tie_is_none():
    always = SampleMoments(*(np.array(part, dtype=float) for part in ([1.0, 2.0], [0.0, 0.0], [9, 9])))
    other = SampleMoments(*(np.array(part, dtype=float) for part in ([2.0, 2.0], [0.0, 0.0], [9, 9])))
    assert welch(always, other).p.tolist() == [0.0, 1.0]


def test_a_single_run_decides_nothing():
    found = welch(moments(np.array([[1.0]])), moments(np.array([[2.0]])))
    assert (found.low.item(), found.high.item(), found.p.item()) == (-np.inf, np.inf, 1.0)


def test_holm_goes_step_by_step():
    assert holm(np.array([0.012, 0.3, 0.02, 0.001])).tolist() == [True, False, True, True]
    assert holm(np.array([0.02, 0.03, 0.02, 0.04])).tolist() == [False] * 4  # each below 0.05, none below 0.05/4
    assert holm(np.array([[0.012, 0.04], [0.04, 0.04]])).tolist() == [[True, True], [False, False]]


def test_holm_names_a_false_winner_in_at_most_five_percent():
    """Four rivals as good as the policy itself: of 2,000 problems at most 130 say that it differs from any of them.

    The rate is below 0.05 for independent tests, and for these, which share a sample, smaller still; 130 would be
    exceeded once in a thousand times at 0.05 itself (normal bound: 100 + 3.1 √95).
    """
    values = np.random.default_rng(3).normal(size=(2_000, 5, 20))
    lower, higher = against_rivals(moments(values), np.zeros(2_000, dtype=int))
    assert lower.shape == (2_000, 4)
    assert 20 < (lower | higher).any(axis=1).sum() <= 130


def test_rivals_are_all_policies_but_the_own():
    values = np.array([[10.0, 20.0, 30.0], [30.0, 20.0, 10.0]])[:, :, None] + np.array([-1.0, 0.0, 1.0])
    lower, higher = against_rivals(moments(values), np.array([1, 2]))
    assert lower.tolist() == [[False, True], [True, True]]
    assert higher.tolist() == [[True, False], [False, False]]


def test_resampled_standard_deviations_are_about_the_one_found():
    values = np.random.default_rng(4).exponential(size=(3, 2, 20))
    again = resampled_std(values)
    assert again.shape == (RESAMPLES, 3, 2)
    np.testing.assert_allclose((again**2).mean(axis=0), values.var(axis=-1, ddof=1), rtol=0.05)
    np.testing.assert_array_equal(again, resampled_std(values))
    # as by drawing the runs themselves, one by one: the two differ by less than their noise (s.e. of an end about 2 %)
    drawn = np.random.default_rng(5).choice(values[0, 0], (RESAMPLES, 20)).std(axis=1, ddof=1) * np.sqrt(20 / 19)
    assert np.quantile(drawn, [0.025, 0.975]) == pytest.approx(np.array(bootstrap_interval(again[:, 0, 0])), rel=0.1)


@pytest.mark.parametrize(("runs", "least", "most"), [(20, 0.86, 0.96), (500, 0.915, 0.985)])
def test_the_interval_of_a_ratio_holds_the_truth(runs, least, most):
    """Of 400 ratios of two normal samples. With 20 runs the bootstrap holds in about 0.92 instead of 0.95; the ends
    leave 3.2 standard errors, a false alarm in a thousand."""
    again = resampled_std(np.random.default_rng(6).normal(size=(400, 2, runs)))
    low, high = bootstrap_interval(again[..., 0] / again[..., 1])
    assert least <= ((low <= 1.0) & (high >= 1.0)).mean() <= most


def test_two_equal_runs_leave_a_ratio_open():
    """Drawn again, two runs are often the same one twice, and a ratio of zeros decides nothing."""
    again = resampled_std(np.array([[[1.0, 2.0], [1.0, 3.0]]]))
    with np.errstate(invalid="ignore", divide="ignore"):
        low, high = bootstrap_interval(again[..., 0] / again[..., 1])
    assert np.isnan(low).all()
    assert np.isnan(high).all()
