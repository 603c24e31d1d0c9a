"""A small leaderboard: played, stopped and gone on with, joined by a policy from a file, shown as one page."""

from __future__ import annotations

import json
import re

import pytest
from typer.testing import CliRunner

from budgetbandits.cli import app
from budgetbandits.errors import BadParameter, StudyError
from budgetbandits.experiments import Results, leaderboard
from budgetbandits.experiments.runner import Workers
from budgetbandits.experiments.suite import Suite
from budgetbandits.report import figures as drawings
from budgetbandits.report.leaderboard import write_page
from suites import TINY

SUITE = TINY.replace("Many problems", "Many <problems>").replace('without = ["kube"]', 'without = ["kube-fractional"]')
MINE = """
from typing import ClassVar
from dataclasses import dataclass
from budgetbandits.policies import IndexPolicy, where

@dataclass(frozen=True)
class Greedy(IndexPolicy):
    "Pulls the best ratio so far."
    name: ClassVar[str] = "greedy-of-mine"
    index = staticmethod(lambda reward, cost, pulls, rounds: where(cost > 0.0, reward / cost, 1e9))
"""


@pytest.fixture(scope="module")
def played(tmp_path_factory):
    out = tmp_path_factory.mktemp("board")
    (out / "suite.toml").write_text(SUITE)
    (out / "mine.py").write_text(MINE)
    suite = Suite.load(out / "suite.toml")
    leaderboard.play(suite, out, Workers(jobs=1))
    return suite, out


def test_rows_of_shared_parts_belong_to_their_problems(played):
    suite, out = played
    results = Results.load(out / "many")
    assert results.values().shape == (12, 2, 1)
    from budgetbandits import simulate

    for place in (0, 7):
        problem = suite.settings[0].experiment.problems[place].problem
        budgets = [40 * problem.cost_means.min(), 80 * problem.cost_means.min()]
        alone = simulate(problem, "kube", budgets, 1, seed=3, engine="reference")
        assert results.values(budget=80.0)[place, 1, 0] == alone.pseudo_regret[0, 1]


def test_what_a_part_took_is_written_down_once(played):
    _, out = played
    taken = leaderboard.efforts(Results.load(out / "many"), leaderboard.Study(out / "many"))
    assert set(taken) == {"bts", "kube"}
    assert all(row["engine"] == "reference" and row["reason"] == "asked for" for row in taken.values())
    assert taken["bts"]["rounds"] > 12 * 40


@pytest.fixture(autouse=True)
def less(monkeypatch):
    monkeypatch.setattr(leaderboard, "ROUNDS", 20)
    monkeypatch.setattr(drawings, "FORMATS", ("png",))


def test_it_goes_on_is_joined_and_shows_everything(played):
    suite, out = played
    parts = {path: path.stat().st_mtime_ns for path in out.glob("*/parts/*")}
    joined = leaderboard.joined(suite, [f"{out}/mine.py:Greedy"])
    leaderboard.play(joined, out, Workers(jobs=1))
    assert {path: path.stat().st_mtime_ns for path in parts} == parts  # nothing was played again
    summary = leaderboard.summarise(joined, out)
    assert leaderboard.read_summary(out)["overall"] == leaderboard.finite(summary["overall"])
    page = write_page(joined, summary, out).read_text()
    assert "greedy-of-mine" in page
    assert "Many &lt;problems&gt;" in page
    assert "<problems>" not in page
    assert not re.search(r'(?:src|href)="(?!#|data:)', page)  # no network
    assert "Too slow to play here: fractional KUBE" in page
    assert page.count("<h3 id=") == 2
    assert "<dt>Slower engines</dt><dd>BTS, KUBE, " in page
    assert "the reference simulator played (asked for)" in page
    assert summary["settings"][0]["efforts"]["bts"]["reason"] == "asked for"
    for name in ("standings.csv", "figures/profile.png", "figures/quantiles.png"):
        assert (out / name).stat().st_size > 0


def test_the_commands(played):
    _, out = played
    options = ["leaderboard", "--suite", f"{out}/suite.toml", "--out", f"{out}/again", "--quick", "--jobs", "1"]
    document = json.loads(CliRunner().invoke(app, [*options, "--setting", "one", "--json"]).stdout)
    assert [row["settings"] for row in document["overall"]] == [1, 1, 1]
    assert not (out / "again" / "many").exists()
    assert document["slower"] == leaderboard.slower(document) != []
    assert document["score"] is None
    told = CliRunner().invoke(app, ["recommend", "--arms", "2", "--budget", "20", "--leaderboard", f"{out}/again"])
    best = next(row["policy"] for row in document["overall"] if row["competes"])
    assert told.stdout.startswith(f"Use {best}.")


def test_mistakes_are_answered_with_their_remedy(tmp_path):
    def failure(*words):
        return CliRunner().invoke(app, list(words)).exception

    assert "either a problem file or --arms" in str(failure("recommend", "--budget", "10"))
    assert "--budget is missing" in str(failure("recommend", "--arms", "3"))
    assert isinstance(failure("recommend", "--arms", "3", "--budget", "9", "--leaderboard", str(tmp_path)), StudyError)
    (tmp_path / "study.json").write_text("{}")
    assert isinstance(failure("leaderboard", "--out", str(tmp_path)), BadParameter)
