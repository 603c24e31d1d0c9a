"""The score of a policy with tails, and its margin over others, against numbers worked out by hand."""

from __future__ import annotations

import json
import re
import tomllib

import numpy as np
import pytest
from typer.testing import CliRunner

from budgetbandits.cli import app
from budgetbandits.errors import BadParameter, StudyError
from budgetbandits.experiments import leaderboard, score
from budgetbandits.experiments.experiment_file import SUITE, TRAINING, shipped_text
from budgetbandits.experiments.results import Results
from budgetbandits.experiments.runner import Workers
from budgetbandits.experiments.score import margins, score_document, scores
from budgetbandits.experiments.standings import SettingGames
from budgetbandits.experiments.suite import Suite
from budgetbandits.report import leaderboard as page
from suites import TINY


@pytest.fixture(autouse=True)
def _few_resamples(monkeypatch):
    monkeypatch.setattr(score, "RESAMPLES", 200)


BY_HAND = np.array([51.0, 51.0, 91.0, 100.0])
"""Mean, median, 90 and 99 % of 1, 2, ..., 101."""


@pytest.mark.parametrize(("geometric", "mean"), [(False, (1 / 2.0 + 3 / 1.5) / 2), (True, np.sqrt(3 / (2.0 * 1.5)))])
def test_a_score_is_the_mean_of_four_statistics_by_the_bound(geometric, mean):
    steady, twice = np.arange(1.0, 102.0), 2.0 * np.arange(1.0, 102.0)
    games = np.column_stack([twice, steady])
    settings = {
        "one": SettingGames(("kube", "bts"), games, True),
        "two": SettingGames(("kube", "bts"), 3.0 * games, True),
    }
    first, second = scores(settings, {"one": 2.0, "two": 1.5}, geometric)
    assert (first.policy, second.policy) == ("bts", "kube")
    assert first.statistics == pytest.approx(BY_HAND * mean)
    assert first.score == pytest.approx((np.prod(BY_HAND) ** 0.25 if geometric else BY_HAND.mean()) * mean)
    assert second.score == pytest.approx(2.0 * first.score)
    assert first.low < first.score < first.high
    assert all(low < each <= high for each, (low, high) in zip(first.statistics, first.intervals, strict=True))
    assert scores(settings, {"one": 2.0, "two": 1.5}, geometric, only=["kube"])[0].score == second.score
    assert (first.first, second.first) == (1.0, 0.0)


def test_one_lost_game_in_fifty_costs_more_than_a_better_median_gains():
    rng = np.random.default_rng(7)
    careful = rng.uniform(90.0, 110.0, 500)
    bold = rng.uniform(40.0, 60.0, 500)
    bold[:10] = 30_000.0
    found = scores({"one": SettingGames(("omega-ucb", "bts"), np.column_stack([bold, careful]), True)}, {"one": 1.0})
    assert [each.policy for each in found] == ["bts", "omega-ucb"]


def test_policies_that_miss_a_setting_have_no_score():
    games = np.arange(1.0, 21.0).reshape(10, 2)
    settings = {"one": SettingGames(("bts", "kube"), games, True), "two": SettingGames(("bts",), games[:, :1], True)}
    assert [each.policy for each in scores(settings, {"one": 1.0, "two": 1.0})] == ["bts"]
    with pytest.raises(StudyError, match="no policy that competes"):
        scores(
            settings | {"three": SettingGames(("kube",), games[:, 1:], True)},
            dict.fromkeys(("one", "two", "three"), 1.0),
        )


def test_margins_are_taken_problem_by_problem_over_what_is_in_print():
    rng = np.random.default_rng(8)
    hardness = rng.uniform(100.0, 10_000.0, 200)  # differs far more between problems than policies do
    own, rival, tie = (
        hardness + rng.normal(0, 5, 200),
        hardness + rng.normal(20, 5, 200),
        hardness + rng.normal(0, 5, 200),
    )
    policies = ("imed-ratio", "bts", "ucb-bv1", "maillard-ratio")
    values = SettingGames(policies, np.column_stack([own, rival, tie, 2 * hardness]), True)
    found = {margin.rival: margin for margin in margins({"one": values}, "imed-ratio")}
    assert set(found) == {"bts"}  # ucb-bv1 is given the least cost, maillard-ratio is ours
    assert found["bts"].low < 20.0 < found["bts"].high
    assert found["bts"].high - found["bts"].low < 4.0
    assert found["bts"].apart
    wanted = margins({"one": values}, "imed-ratio", ["maillard-ratio", "ucb-bv1"])
    assert [(margin.rival, margin.apart) for margin in wanted] == [("ucb-bv1", False), ("maillard-ratio", True)]
    assert wanted[1].factor == pytest.approx(2.0, rel=0.01)
    assert wanted[1].factor_low <= wanted[1].factor <= wanted[1].factor_high


@pytest.fixture(scope="module")
def played(tmp_path_factory):
    """A tiny suite, whose setting "one" is a single problem and so not scored, and where it was played."""
    out = tmp_path_factory.mktemp("score")
    (out / "suite.toml").write_text(TINY.replace('["bts", "kube", "kube-fractional"]', '["bts", "kube", "ucb1"]'))
    suite = Suite.load(out / "suite.toml")
    leaderboard.play(suite, out / "board", Workers(jobs=1))
    return suite, out


def test_the_score_of_what_was_played(played):
    suite, out = played
    document = score_document(suite, out / "board")
    values = SettingGames.of(Results.load(out / "board" / "many"))
    bound = leaderboard.bounds(suite.settings[0].experiment)[-1]
    assert values.policies == ("bts", "ucb1")
    assert document["settings"] == ["many"]
    best, other = document["policies"]
    games = values.games[:, values.policies.index(best["policy"])]
    by_hand = [games.mean(), *np.quantile(games, [0.5, 0.9, 0.99])]
    assert [best[key] for key in ("mean", "median", "q90", "q99")] == pytest.approx([each / bound for each in by_hand])
    assert best["score"] == pytest.approx(np.mean(by_hand) / bound)
    assert best["first"] + other["first"] == pytest.approx(1.0)
    assert document["champion"] == best["policy"]
    pairs = document["pairs"]
    assert pairs["all"] == pairs["ahead"] + pairs["tied"] + pairs["behind"] == 1
    turned = score_document(suite, out / "board", other["policy"])
    assert turned["champion"] == other["policy"]
    assert turned["pairs"] == pairs | {"ahead": pairs["behind"], "behind": pairs["ahead"]}


def command(out, *options):
    named = ["--suite", f"{out}/suite.toml", "--out", f"{out}/board", "--jobs", "1"]
    return CliRunner().invoke(app, ["leaderboard", *named, *options])


def test_the_command_shows_it(played, monkeypatch):
    monkeypatch.setattr(leaderboard, "ROUNDS", 20)
    monkeypatch.setattr(page, "write_page", lambda *_: "report.html")  # it is tested for itself
    suite, out = played
    said = json.loads(command(out, "--champion", "ucb1", "--json").stdout)
    assert said["score"] == score_document(suite, out / "board", "ucb1")
    shown = " ".join(command(out, "--score").stdout.split())
    assert "averaged over 1 of 2 settings (those with several problems" in shown
    assert "of 1 pair surely ahead in" in shown


def test_a_score_that_cannot_be_had_is_refused(played):
    suite, out = played
    missing = command(out, "--champion", "moss").exception
    assert isinstance(missing, BadParameter)
    assert "add it by --with moss" in str(missing)
    with pytest.raises(StudyError, match="count = 2 or more"):
        score_document(Suite(suite.name, suite.settings[1:]), out / "board")


def test_what_cannot_be_scored_is_refused_before_anything_is_played(tmp_path):
    (tmp_path / "single.toml").write_text(re.sub(r"count = \d+", "count = 1", TINY))
    out = ["--suite", str(tmp_path / "single.toml"), "--out", str(tmp_path / "out")]
    told = CliRunner().invoke(app, ["leaderboard", *out, "--score"])
    assert isinstance(told.exception, StudyError)
    assert "no setting can be scored" in str(told.exception)
    assert not (tmp_path / "out").exists()


def test_a_leaderboard_without_a_policy_everywhere_says_so():
    summary = {"overall": [{"competes": True, "comparable": False, "policy": "bts"}], "settings": []}
    assert page.sentences(summary) == [
        "No policy that competes plays in every setting, so there is no order over all of them."
    ]


def test_no_problem_of_the_training_is_in_the_suite():
    def seeds(name):
        entries = [entry["problems"][0] for entry in tomllib.loads(shipped_text(name))["settings"]]
        return {entry.get("seed", 0) + number for entry in entries for number in range(entry.get("count", 1))}

    assert len(seeds(TRAINING)) == 4_140
    assert not seeds(TRAINING) & seeds(SUITE)
    assert max(seeds(SUITE)) < min(seeds(TRAINING))
