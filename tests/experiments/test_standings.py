"""Policies in order, in a study and in a setting."""

from __future__ import annotations

import json
import sys

import numpy as np
import pytest
from scipy import stats

from budgetbandits.__main__ import main
from budgetbandits.cli import compare as comparing
from budgetbandits.errors import BadParameter
from budgetbandits.experiments import Results
from budgetbandits.experiments.standings import (
    SettingGames,
    overall,
    policies_shown,
    quantile_interval,
    ranking,
    standings,
)
from made_up import study

GROUPS = ["one kind", "another kind"]
REGRET = {"bts": 40.0, "kube": 40.1, "epsilon-first:epsilon=0.05": 90.0, "ucb1": 1_234_567.0}


def regret(group, problem, policy, budget):
    return REGRET[policy] + 0.3 * np.sin(7 * problem + group + len(policy))


@pytest.fixture(scope="module")
def single():
    return study(regret, std=2.0, policies=list(REGRET), groups=GROUPS)


@pytest.fixture(scope="module")
def several():
    return study(regret, std=2.0, problems=5, policies=list(REGRET), groups=GROUPS)


def test_over_several_problems_differences_are_paired(several):
    means = several.values().mean(axis=-1)[:5]
    rows = [row for row in ranking(several).rows(named=True) if row["group"] == GROUPS[0]]
    order = [list(REGRET).index(row["policy"]) for row in rows]
    assert order == np.argsort(means.mean(axis=0)).tolist()
    assert rows[0]["difference"] is None
    for row, place in zip(rows[1:], order[1:], strict=True):
        paired = stats.ttest_rel(means[:, place], means[:, order[0]])
        interval = paired.confidence_interval()
        assert row["difference"] == pytest.approx(means[:, place].mean() - means[:, order[0]].mean())
        assert (row["low"], row["high"]) == pytest.approx((interval.low, interval.high))
        assert row["sure"] == (paired.pvalue < 0.05 / 3)  # the three p-values are far from Holm's other steps
    assert rows[0]["sure"] == all(row["sure"] for row in rows[1:])
    assert sum(row["best_on"] for row in rows) == rows[0]["problems"] == 5


def test_on_one_problem_the_runs_decide(single):
    runs = single.values()[1]
    rows = [row for row in ranking(single).rows(named=True) if row["group"] == GROUPS[1]]
    order = [list(REGRET).index(row["policy"]) for row in rows]
    assert sorted(order[:2]) == [0, 1]
    for row, place in zip(rows[1:], order[1:], strict=True):
        interval = stats.ttest_ind(runs[place], runs[order[0]], equal_var=False).confidence_interval()
        assert (row["low"], row["high"]) == pytest.approx((interval.low, interval.high))
    assert [row["sure"] for row in rows] == [False, False, True, True]


def test_more_reward_comes_first(single):
    rows = ranking(single, metric="reward").rows(named=True)
    assert rows[3]["policy"] == "ucb1"
    assert rows[3]["difference"] < 0.0
    with pytest.raises(BadParameter, match="neither more nor less spend is better"):
        ranking(single, metric="spend")


@pytest.fixture
def compare(monkeypatch, capsys):
    def said(results, *options, columns=80):
        monkeypatch.setattr(Results, "load", lambda folder: results)
        monkeypatch.setenv("COLUMNS", str(columns))
        monkeypatch.setattr(sys, "argv", ["budgetbandits", "compare", "folder", *options])
        main()
        return capsys.readouterr().out

    return said


@pytest.mark.parametrize("columns", [60, 80])
@pytest.mark.parametrize("problems", ["single", "several"])
def test_intervals_are_never_cut(compare, request, columns, problems):
    results = request.getfixturevalue(problems)
    said = compare(results, columns=columns)
    assert max(map(len, said.splitlines())) <= columns
    assert "…" not in said
    for row in ranking(results).rows(named=True):
        if row["difference"] is not None:
            assert all(text in said for text in comparing._behind(row))
    assert said.count("\n 4 ") == 4  # the last policy, in the ranking and the matrix of both groups


def test_who_is_not_surely_behind_is_said(compare, single):
    said = compare(single)
    assert "is lowest, but not surely lower than" in said
    assert said.count("·") == 2 * 2 + 2  # both ways in both matrices, and in the words above each


def test_a_matrix_that_does_not_fit_says_so(compare):
    policies = [f"ucb1:width={place}" for place in range(30)]
    results = study(lambda _g, _p, policy, _b: 10.0 * policies.index(policy), policies=policies, groups=GROUPS[:1])
    said = compare(results, columns=60)
    assert said.count("The 435 pairs need a wider screen, or --json.") == 1
    assert max(map(len, said.splitlines())) <= 60


def test_compare_as_json(compare, several):
    document = json.loads(compare(several, "--json"))
    (found,) = document["studies"]
    assert {key: found[key] for key in ("study", "metric", "better", "budget", "runs")} == {
        "study": "made up", "metric": "pseudo_regret", "better": "lower", "budget": 5000.0, "runs": 24
    }  # fmt: skip
    assert [group["group"] for group in found["groups"]] == GROUPS
    for group in found["groups"]:
        assert set(group["policies"][0]) == {
            "policy", "problems", "mean", "difference", "low", "high", "sure", "best_on", "surely_best_on"
        }  # fmt: skip
        assert set(group["pairs"][0]) == {
            "first", "second", "problems", "better", "wins", "losses", "difference", "low", "high"
        }  # fmt: skip
        assert len(group["pairs"]) == 6


def test_what_is_not_known_is_null(compare):
    """A single run: no interval."""
    one_run = study(regret, policies=list(REGRET), groups=GROUPS)
    one_run = Results(one_run.table.filter(one_run.table["run"] == 0), one_run.record | {"runs": 1})
    found = json.loads(compare(one_run, "--json"))["studies"][0]["groups"][0]["policies"]
    assert (found[1]["low"], found[1]["high"]) == (None, None)


def test_tables_for_papers_and_programs(compare, several):
    markdown = compare(several, "--format", "markdown")
    assert markdown.startswith("| policy")
    assert all(group in markdown for group in GROUPS)
    assert r"\toprule" in compare(several, "--format", "latex")
    rows = compare(several, "--format", "csv").splitlines()
    assert rows[0].startswith("study,group,policy,problems,mean,difference,low,high")
    assert len(rows) == 1 + 2 * 4
    with pytest.raises(SystemExit):
        compare(several, "--format", "word")


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
    assert standings(SettingGames(("bts", "ucb1"), GAMES[:, [0, 2]], paired=True))[0]["apart"]


def test_runs_of_one_problem_are_compared_by_welch():
    rows = {row["policy"]: row for row in standings(SettingGames(POLICIES, GAMES, paired=False))}
    expected = stats.ttest_ind(GAMES[:, 1], GAMES[:, 0], equal_var=False).confidence_interval(0.95)
    assert (rows["kube"]["behind_low"], rows["kube"]["behind_high"]) == pytest.approx(tuple(expected))
    assert (rows["bts"]["behind_low"], rows["bts"]["behind_high"]) == (0.0, 0.0)
    assert rows["bts"]["first_on"] is None


@pytest.mark.parametrize(("count", "share"), [(500, 0.99), (500, 0.5), (37, 0.9), (20, 0.99)])
def test_the_interval_of_a_quantile_covers_it(count, share):
    # the quantile lies between the j-th and the k-th value with P(j <= Bin(n, p) < k)
    low, high = quantile_interval(np.arange(1.0, count + 1.0)[:, None], share)
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
    assert policies_shown(ranked, ["f", "z"], count=3) == ["f", "a", "b"]


def test_an_interval_of_one_pair_does_not_contradict_the_verdict():
    def row(policy, low, high, sure):
        return {"policy": policy, "low": low, "high": high, "sure": sure}

    first, close, apart = row("bts", 0.0, 0.0, False), row("kube", -1.0, 3.0, False), row("ucb1", 1.0, 9.0, False)
    assert comparing._verdict([first, close], "lower") == "BTS is lowest, but not surely lower than KUBE."
    said = comparing._verdict([first, close, apart], "lower")
    assert said.endswith("(Each interval is that of one pair; surely allows for all of them, by Holm's method.)")
