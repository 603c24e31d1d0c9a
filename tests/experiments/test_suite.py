"""A suite: what its file means, the one that ships, and what a mistake in one is answered with."""

from __future__ import annotations

import tomllib

import numpy as np
import pytest

from budgetbandits.errors import BadParameter, BrokenInstallation, ExperimentError
from budgetbandits.experiments import Experiment, experiment_file, leaderboard
from budgetbandits.experiments.experiment_file import EXPERIMENTS, FOLDER, SUITE, SUITES, shipped_text
from budgetbandits.experiments.suite import Suite
from budgetbandits.policies import PAPER_POLICIES, POLICIES, provenance
from deep import EVERY_POLICY
from suites import TINY


def test_settings_share_policies_and_are_experiments():
    many, one = Suite.from_toml(TINY).settings
    assert [policy.spec for policy in many.experiment.policies] == ["bts", "kube-fractional"]
    assert [policy.spec for policy in one.experiment.policies] == ["bts", "kube", "kube-fractional"]
    assert (many.without, many.experiment.seed, len(many.experiment.problems)) == (("kube",), 3, 12)


def test_budgets_in_smallest_mean_costs():
    cell = Suite.from_toml(TINY).settings[0].experiment.cells()[0]
    problem = cell.problems[3].problem
    assert cell.budgets_of(problem) == tuple(np.array([40.0, 80.0]) * problem.cost_means.min())


def test_few_runs_share_a_part_and_many_do_not():
    many, one = Suite.from_toml(TINY).settings
    assert [len(cell.problems) for cell in many.experiment.cells()] == [12, 12]
    assert [len(cell.problems) for cell in one.experiment.cells()] == [1, 1, 1]


@pytest.mark.parametrize("entry", tomllib.loads(shipped_text(SUITE))["settings"], ids=lambda entry: entry["name"])
def test_every_setting_that_ships_can_be_built(entry):
    few = shipped_text(SUITE).replace("count = 500", "count = 2").replace("count = 100", "count = 2")
    (setting,) = Suite.from_toml(few, only=[entry["name"]]).settings
    assert len(setting.experiment.problems[-1].problem) == entry["problems"][0]["arms"]
    assert setting.experiment.cells()
    assert setting.about[-1] != "."


def test_the_suite_that_ships_plays_each_of_its_policies_and_500_problems():
    document = tomllib.loads(shipped_text(SUITE))
    names = {text.partition(":")[0] for text in document["policies"]}
    assert names == {policy.name for policy in Suite.load("suite", ["start"]).settings[0].experiment.policies}
    assert set(PAPER_POLICIES) <= names <= set(POLICIES)
    for entry in document["settings"]:
        count = entry["problems"][0].get("count", 1)
        assert count == 500 or entry["runs"] == 100 or entry["name"] == "arms-1000", entry["name"]


def test_the_first_problems_are_part_of_the_whole():
    whole, few = Suite.from_toml(TINY), Suite.from_toml(TINY).first(5)
    assert few.settings[0].experiment.problems == whole.settings[0].experiment.problems[:5]
    assert [each.experiment.runs for each in few.settings] == [1, 5]
    with pytest.raises(BadParameter, match="from 2 upwards"):
        whole.first(1)


def test_a_quick_look_is_small():
    quick = Suite.from_toml(TINY.replace("count = 12", "count = 40")).quick()
    assert [len(each.experiment.problems) for each in quick.settings] == [10, 1]
    assert [each.experiment.runs for each in quick.settings] == [1, 10]
    assert quick.settings[0].experiment.budgets == (40.0,)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('name = "one"', 'name = "many"', "two settings are called 'many'"),
        ('name = "one"', 'name = "One of"', "setting One of: name is 'One of'; use small letters"),
        ('laws = "bernoulli"', 'laws = "normal"', "setting many: laws is 'normal'; write one of bernoulli, lattice"),
        ('without = ["kube"]', 'without = ["moss"]', "without names 'moss', which the suite does not have"),
        ('without = ["kube"]', 'without = ["bts", "kube", "kube-fractional"]', "leave at least one"),
        ("runs = 12", "ruins = 12", "setting one: unknown key 'ruins'; a setting has name"),
        ('budget_unit = "smallest mean cost"', 'budget_unit = "euro"', "budget_unit is 'euro'; write one of"),
        ("seed = 3", "sed = 3", "unknown key 'sed'; a suite has name"),
        ('"near-ties"', '"far-ties"', "unknown family 'far-ties'; choose one of"),
    ],
)
def test_mistakes_are_named_with_their_remedy(old, new, message):
    with pytest.raises(ExperimentError, match=message):
        Suite.from_toml(TINY.replace(old, new, 1))


def test_a_suite_is_no_experiment_and_says_how_to_run_it(tmp_path):
    (tmp_path / "suite.toml").write_text(TINY)
    with pytest.raises(ExperimentError, match="budgetbandits leaderboard --suite"):
        Experiment.load(tmp_path / "suite.toml")
    with pytest.raises(BadParameter, match="no setting 'few'; it has many, one"):
        Suite.load(tmp_path / "suite.toml", ["few"])
    with pytest.raises(ExperimentError, match="cannot read"):
        Suite.load(tmp_path / "other.toml")


def test_an_experiment_is_no_suite_and_says_how_to_run_it():
    with pytest.raises(ExperimentError, match="budgetbandits run FILE"):
        Suite.load("paper")


def test_what_ships_is_found_by_its_name(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert Suite.load("training", ["bernoulli-3"]).settings[0].name == "bernoulli-3"
    with pytest.raises(ExperimentError, match="suite: this is a suite of settings"):
        Experiment.load("suite")
    with pytest.raises(ExperimentError, match="or one that ships: suite, training"):
        Suite.load("trainings")
    (tmp_path / "training").write_text(TINY)  # a file of that name comes first
    assert Suite.load("training").settings[0].name == "many"


def test_every_file_that_ships_is_listed():
    assert {*EXPERIMENTS, *SUITES} == {path.name.removesuffix(".toml") for path in FOLDER.iterdir()} - {
        "leaderboard.json",
        "paced.json",
    }


def test_a_file_that_should_ship_and_does_not_is_named(monkeypatch, tmp_path):
    monkeypatch.setattr(experiment_file, "FOLDER", tmp_path)
    with pytest.raises(BrokenInstallation, match=r"leaderboard.json ships .* install budgetbandits again"):
        leaderboard.shipped_summary()
    with pytest.raises(BrokenInstallation, match=r"paper\.toml ships"):
        Experiment.load("paper")


def test_every_policy_has_its_source():
    assert all({"name", "reference", "proven"} <= vars(kind).keys() for kind in POLICIES.values())
    assert provenance("omega-ucb:rho=1.0").reference == "Heyden et al., KDD 2024"
    assert provenance("mine:a=1").reference == "yours"


@pytest.mark.parametrize("name", EVERY_POLICY)
def test_of_every_policy_the_time_of_a_decision_is_measured(name, monkeypatch):
    monkeypatch.setattr(leaderboard, "ROUNDS", 20)
    assert leaderboard.about_policy(name)["microseconds"] > 0.0
