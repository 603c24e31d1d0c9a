"""Every command that prints a result prints it as JSON too, and errors with it."""

from __future__ import annotations

import json
import sys
import tomllib

import pytest
import typer
from typer.testing import CliRunner

from budgetbandits import POLICIES, family
from budgetbandits.__main__ import main
from budgetbandits.cli import app
from budgetbandits.cli import study as studies
from budgetbandits.experiments.paper.claims import Claim, ComparisonCounts
from budgetbandits.problems.families import ARMS_FAMILIES, FAMILIES
from budgetbandits.report import page
from budgetbandits.service.stores.sqlite import SQLiteStore
from studies import SMALL

WITHOUT_RESULT = {"serve", "view"}


def commands(group=None, path=()):
    """(words, command) of every command there is."""
    for name, command in (group or typer.main.get_command(app)).commands.items():
        if hasattr(command, "commands"):
            yield from commands(command, (*path, name))
        else:
            yield (*path, name), command


@pytest.mark.parametrize(("words", "command"), [pytest.param(*each, id=" ".join(each[0])) for each in commands()])
def test_every_command_has_the_option(words, command):
    assert any("--json" in option.opts for option in command.params) == (words[0] not in WITHOUT_RESULT)


@pytest.fixture
def said(tmp_path, monkeypatch):
    """Run a command with --json in a folder of its own; the document it printed."""
    monkeypatch.chdir(tmp_path)

    def said(*words, code=0):
        result = CliRunner().invoke(app, [*words, "--json"])
        assert result.exit_code == code, (result.output, result.exception)
        assert result.stdout.count("\n") == 1
        return json.loads(result.stdout)

    return said


def test_policies(said):
    document = said("policies")
    assert set(document) == {"policies", "knowledge"}
    found = {policy["name"]: policy for policy in document["policies"]}
    assert found.keys() >= set(POLICIES)  # tests of plug-ins may have added theirs, which need no summary
    assert all(found[name]["summary"] for name in POLICIES)
    assert found["epsilon-first"]["parameters"] == {"epsilon": 0.1}
    assert found["epsilon-first"]["needs"] == ["budget"]
    assert {need for policy in document["policies"] for need in policy["needs"]} <= set(document["knowledge"])


def test_laws_and_families(said):
    laws = {law["name"]: law for law in said("distributions")["distributions"]}
    assert laws["lattice"]["parameters"] == ["support", "weights"]
    assert [name for name, law in laws.items() if law["joint"]] == ["table", "copula"]
    families = said("families")["families"]
    assert [each["name"] for each in families] == [*FAMILIES, *ARMS_FAMILIES]
    assert all(each["summary"] for each in families)


def test_a_problem_is_its_file(said):
    document = said("problem", "uniform-bernoulli", "--arms", "3", "--seed", "2")
    assert document == tomllib.loads(family("uniform-bernoulli", 3, seed=2).to_toml())


def test_simulate_names_the_best(said, tmp_path):
    problem = family("uniform-bernoulli", 3, seed=2, low=0.2)
    (tmp_path / "problem.toml").write_text(problem.to_toml())
    document = said(
        "simulate", "problem.toml", "--policy", "bts", "--budget", "9", "--runs", "1", "--engine", "reference"
    )  # fmt: skip
    assert document["arms"] == list(problem.names)
    assert document["best_ratio"] == (problem.reward_means / problem.cost_means).max()
    assert len(document["best_arms"]) == 1
    (result,) = document["results"]
    assert result["regret"]["std"] is None  # a single run


def test_a_study_says_where_its_report_is(said, tmp_path, monkeypatch):
    monkeypatch.setattr(page, "write_report", lambda folder: folder / "report.html")  # figures take seconds
    (tmp_path / "study.toml").write_text(SMALL.replace("runs = 6", "runs = 2"))
    slower = ["BTS, ε-first, ε-first epsilon=0.2, KUBE: the reference simulator played (asked for)"]
    assert said("run", "study.toml", "--out", "out", "--jobs", "1") == {"report": "out/report.html", "slower": slower}
    assert said("report", "out") == {"report": "out/report.html", "slower": slower}
    (compared,) = said("compare", "out")["studies"]
    assert [group["group"] for group in compared["groups"]] == ["inline", "random"]
    assert compared["slower"] == slower


def test_campaigns_and_keys(said, tmp_path):
    SQLiteStore(tmp_path / "budgetbandits.db").close()
    created = said("campaign", "create", "ads", "--budget", "500", "--arm", "search=1", "--arm", "mail=2")
    assert (created["name"], created["budget"]) == ("ads", 500.0)
    assert said("campaign", "top-up", "ads", "20.5")["budget"] == 520.5
    assert said("campaign", "pause", "ads") == {"campaign": "ads", "status": "paused"}
    assert said("campaign", "resume", "ads") == {"campaign": "ads", "status": "active"}
    assert [arm["name"] for arm in said("campaign", "add-arm", "ads", "tv=2")["arms"]] == ["search", "mail", "tv"]
    assert said("campaign", "retire-arm", "ads", "tv")["arms"][2]["active"] is False
    assert said("campaign", "show", "ads")["status"] == said("campaign", "list")[0]["status"] == "active"
    made = {"file": "made.csv", "table": "decisions", "rows": 0, "archived": 0}
    assert said("campaign", "export", "ads", "made.csv") == made
    assert said("campaign", "verify", "ads") == {"campaign": "ads", "agrees": True, "differences": []}
    assert said("campaign", "close", "ads") == {"campaign": "ads", "status": "closed"}
    key = said("key", "create", "--scope", "read", "--campaign", "ads")["key"]
    (listed,) = said("key", "list")
    assert key.startswith(f"bb_{listed['prefix']}_")
    assert (listed["scopes"], listed["campaign"]) == (["read"], "ads")
    assert said("key", "drop", listed["prefix"]) == {"dropped": listed["prefix"]}
    assert said("key", "list") == []


def test_a_claim_of_the_paper():
    counts = ComparisonCounts(holds=2), ComparisonCounts(holds=1, undecided=1)
    claim = Claim("BTS is best.", "by means", ("on (a)",), *counts, "problems")
    assert json.loads(json.dumps(studies._record(claim))) == {
        "says": "BTS is best.", "criterion": "by means", "measured": ["on (a)"], "verdict": "undecided",
        "panels": {"holds": 2, "fails": 0, "undecided": 0, "silent": 0},
        "random": {"holds": 1, "fails": 0, "undecided": 1, "silent": 0}, "among": "problems", "proven": False,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("words", "error", "message"),
    [
        (["problem", "normal", "--json"], "BadParameter", "unknown family 'normal'; choose one of"),
        (["compare", "nowhere", "--json"], "StudyError", "holds no study"),
        (["problem", "--arms", "ten", "--json"], "UsageError", "Invalid value for '--arms'"),
    ],
)
def test_errors_are_json_on_stderr(words, error, message, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", ["budgetbandits", *words])
    with pytest.raises(SystemExit) as leave:
        main()
    printed = capsys.readouterr()
    assert (leave.value.code, printed.out) == (2, "")
    document = json.loads(printed.err)
    assert document["error"] == error
    assert message in document["message"]
