"""Standings against numbers worked by hand, and exact probabilities."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from budgetbandits.experiments.standings import SettingGames, overall, policies_shown, quantile_interval, standings

POLICIES = ("bts", "kube", "ucb1", "kube-fractional")
GAMES = np.array([[1.0, 2.0, 5.0, 0.5], [2.0, 4.0, 5.0, 0.5], [3.0, 3.0, 8.0, 0.5], [2.0, 5.0, 6.0, 0.5]])


def test_paired_differences_by_hand():
    rows = {row["policy"]: row for row in standings(SettingGames(POLICIES, GAMES, paired=True), scale=4.0)}
    assert rows["bts"]["best"]
    assert not rows["kube-fractional"]["competes"]  # it must know the costs, so the lowest mean is no win
    # kube less bts: 1, 2, 0, 3; mean 1.5, standard error sqrt(5/3)/2, t quantile with 3 degrees 3.18245
    assert rows["kube"]["behind"] == 1.5
    assert rows["kube"]["behind_high"] == pytest.approx(1.5 + 3.182446 * np.sqrt(5 / 3) / 2, rel=1e-6)
    assert rows["bts"]["mean"] == 2.0
    assert rows["bts"]["times_bound"] == 0.5
    assert (rows["bts"]["median"], rows["ucb1"]["largest"]) == (2.0, 8.0)
    assert (rows["bts"]["first_on"], rows["kube-fractional"]["first_on"]) == (0.0, 1.0)


def test_holm_over_those_that_compete():
    # ucb1 less bts: 4, 3, 5, 4 has p = 2 P(T3 > 9.8) = 0.0023 <= 0.05/2; kube has p = 0.1027 > 0.05
    rows = {row["policy"]: row for row in standings(SettingGames(POLICIES, GAMES, paired=True))}
    assert rows["ucb1"]["apart"]
    assert not rows["kube"]["apart"]
    assert not rows["bts"]["apart"]  # not from kube
    without = SettingGames(("bts", "ucb1"), GAMES[:, [0, 2]], paired=True)
    assert standings(without)[0]["apart"]


def test_runs_of_one_problem_are_compared_by_welch():
    rows = {row["policy"]: row for row in standings(SettingGames(POLICIES, GAMES, paired=False))}
    expected = stats.ttest_ind(GAMES[:, 1], GAMES[:, 0], equal_var=False).confidence_interval(0.95)
    assert (rows["kube"]["behind_low"], rows["kube"]["behind_high"]) == pytest.approx(tuple(expected))
    assert (rows["bts"]["behind_low"], rows["bts"]["behind_high"]) == (0.0, 0.0)
    assert rows["bts"]["first_on"] is None


@pytest.mark.parametrize(("count", "share"), [(500, 0.99), (500, 0.5), (37, 0.9), (20, 0.99)])
def test_the_interval_of_a_quantile_covers_it(count, share):
    # the quantile lies between the j-th and the k-th value with P(j <= Bin(n, p) < k)
    values = np.arange(1.0, count + 1.0)[:, None]
    low, high = quantile_interval(values, share)
    first = 0 if low[0] == -np.inf else int(low[0])
    last = count + 1 if high[0] == np.inf else int(high[0])
    law = stats.binom(count, share)
    assert law.cdf(last - 1) - law.cdf(first - 1) >= 0.95
    assert law.cdf(first - 1) <= 0.025 < law.cdf(first)
    assert law.sf(last - 1) <= 0.025 < law.sf(last - 2)


def test_over_all_settings_it_is_the_geometric_mean():
    one = SettingGames(("bts", "kube"), np.array([[1.0, 4.0], [1.0, 4.0]]), paired=True)
    other = SettingGames(("bts", "kube", "ucb1"), np.array([[2.0, 1.0, 3.0], [2.0, 1.0, 3.0]]), paired=True)
    rows = {row["policy"]: row for row in overall({"one": one, "other": other})}
    assert rows["bts"]["times"] == pytest.approx(np.sqrt(1 * 2))
    assert rows["kube"]["times"] == pytest.approx(np.sqrt(4 * 1))
    assert (rows["ucb1"]["times"], rows["ucb1"]["settings"]) == (pytest.approx(3.0), 1)
    assert [row["comparable"] for row in overall({"one": one, "other": other})] == [True, True, False]
    assert rows["bts"]["low"] == rows["bts"]["high"] == pytest.approx(np.sqrt(2))  # games without scatter


def test_the_interval_over_all_settings_covers():
    # 40 draws of 60 exponential games around means 1 and 2: an interval of 95 % misses 2 in 7 of them or more with a
    # probability of 0.3 %
    rng, missed = np.random.default_rng(8), 0
    for _ in range(40):
        games = rng.exponential([1.0, 2.0], size=(60, 2))
        row = overall({"one": SettingGames(("bts", "kube"), games, paired=True)})[-1]
        missed += not row["low"] <= 2.0 <= row["high"]
    assert missed < 7


def test_figures_show_the_first_and_those_one_looks_for():
    ranked = [{"policy": name, "competes": name != "d"} for name in "abcdef"]
    assert policies_shown(ranked, ["f", "z"], most=3) == ["f", "a", "b"]
