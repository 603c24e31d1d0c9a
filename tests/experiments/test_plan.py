"""Experiment files: what they mean, and what a mistake in one is answered with."""

from __future__ import annotations

import pickle
from dataclasses import replace

import pytest

from budgetbandits.errors import ExperimentError
from budgetbandits.experiments import Experiment, plan
from budgetbandits.experiments.experiment_file import EXPERIMENTS, shipped_text
from budgetbandits.experiments.plan import CHUNK
from budgetbandits.plugins import sweep
from budgetbandits.problems.problem import Problem
from studies import SMALL, small

OWN = """\
name = "shops"
seed = 1
runs = 40
budgets = [200, 1_000]
policies = ["bts", "kube", "ucb-bv1", "epsilon-first:epsilon=[0.05, 0.1, 0.2]"]

[[problems]]
file = "shop.toml"

[[problems]]
name = "two offers"
rewards = [0.3, 0.6]
costs = [0.2, 0.8]

[[problems]]
family = "uniform-multinomial"
arms = 5
seed = 4
"""


def test_a_study_of_ones_own_is_a_short_file(tmp_path):
    (tmp_path / "shop.toml").write_text(Problem.bernoulli([0.5, 0.4], [0.3, 0.2]).to_toml())
    (tmp_path / "study.toml").write_text(OWN)
    experiment = Experiment.load(tmp_path / "study.toml")
    assert len(OWN.splitlines()) < 30
    assert [problem.name for problem in experiment.problems] == [
        "shop", "two offers", "uniform-multinomial, 5 arms, seed 4",
    ]  # fmt: skip
    assert [policy.spec for policy in experiment.policies] == [
        "bts", "kube", "ucb-bv1", "epsilon-first:epsilon=0.05", "epsilon-first", "epsilon-first:epsilon=0.2",
    ]  # fmt: skip
    assert len(experiment.cells()) == 3 * 6


def test_groups_of_problems():
    experiment = small()
    assert [(p.group, p.name) for p in experiment.problems] == [
        ("inline", "inline"), ("random", "random / seed 7"), ("random", "random / seed 8"),
    ]  # fmt: skip


def test_a_sweep_over_two_parameters():
    assert sweep("omega:rho=[0.25, 1],z=[1,2]") == [
        "omega:rho=0.25,z=1", "omega:rho=0.25,z=2", "omega:rho=1,z=1", "omega:rho=1,z=2",
    ]  # fmt: skip
    assert sweep("bts") == ["bts"]


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("runs = 6", "runs = 0", "runs is 0; use a whole number from 1"),
        ("runs = 6", "runs = true", "runs is True"),
        ("runs = 6", "", "runs is None"),
        ("runs = 6", "ruins = 6", "unknown key 'ruins'; an experiment has name"),
        ("seed = 3", "seed = -1", "seed is -1"),
        ("budgets = [5, 20]", "budgets = [5, -20]", "a value of budgets is -20; use a positive number"),
        ("budgets = [5, 20]", "budgets = [5, 5]", "the same budget twice"),
        ("budgets = [5, 20]", "budgets = []", "budgets is \\[\\]; write a list"),
        ("budgets = [5, 20]", "budgets = [nan]", "a value of budgets is nan; use a positive number"),
        ('"kube"', '"cube"', "policies: unknown policy 'cube'; choose one of"),
        ('"kube"', '"bts"', "policies names bts twice"),
        ('"kube"', '"epsilon-first:epsilon=[0.3"', "opens a list and does not close it; add a \\]"),
        ('"kube"', '"epsilon-first:epsilon=[0.3,]"', "empty value"),
        ('"kube"', "7", "policies holds 7; write each policy as text"),
        ('engine = "reference"', 'engine = "warp"', "engine is 'warp'; choose one of auto"),
        ('name = "small"', "name = 3", "name is 3; write name = "),
        ("arms = 3", "arms = 1", "problems, number 2: arms is 1"),
        ("arms = 3", 'arms = "three"', "problems, number 2: arms is 'three'; use a whole number"),
        ("low = 0.2", "low = 1.2", "problems, number 2: the range is \\[1.2, 1"),
        ("low = 0.2", "lowest = 0.2", "problems, number 2: unknown key 'lowest'; a problem with family has"),
        ('family = "uniform-bernoulli"', 'family = "uniform"', "unknown family 'uniform'; choose one of"),
        ("rewards = [0.9, 0.2, 0.5]", "rewards = [0.9, 0.2]", "2 mean rewards but 3 mean costs"),
        ("rewards = [0.9, 0.2, 0.5]", 'file = "x.toml"', "unknown key 'costs'; a problem with file has name, file"),
        ("count = 2", 'file = "x.toml"', "give exactly one"),
        ('name = "random"', 'name = "inline"', "number 2: 'inline' is there already; give it a name"),
        (
            "budgets = [5, 20]",
            "budgets = [1" + "0" * 400 + "]",
            "a value of budgets is 1000.*; use a positive number below",
        ),
    ],
)
def test_mistakes_are_named_with_their_key(old, new, message):
    assert old in SMALL
    with pytest.raises(ExperimentError, match=message):
        Experiment.from_toml(SMALL.replace(old, new, 1))


def test_files_that_are_not_there(tmp_path):
    with pytest.raises(
        ExperimentError, match=r"cannot read .*ships: growth, omega-ucb, paper, uniform-ensemble, worst-case"
    ):
        Experiment.load(tmp_path / "none.toml")
    path = tmp_path / "study.toml"
    path.write_text(OWN)
    with pytest.raises(ExperimentError, match=r"study.toml: problems, number 1: cannot read '.*shop.toml'"):
        Experiment.load(path)


def test_cells_are_named_by_what_they_compute():
    keys = {cell.key for cell in small().cells()}
    assert len(keys) == 3 * 4
    # a name is not what is computed
    renamed = Experiment.from_toml(SMALL.replace('name = "inline"', 'name = "mine"'))
    assert {cell.key for cell in renamed.cells()} == keys
    for change in (
        {"budgets": (5.0,)},
        {"seed": 4},
        {"runs": 5},
        {"engine": "auto"},
        {"max_rounds": 7},
        {"common": True},
    ):
        assert keys.isdisjoint(cell.key for cell in small(**change).cells())


def test_budgets_in_every_unit():
    """Mean costs of 0.25 and 0.75, of at most 1, which is 4 of the file's units. The arm with the best ratio costs the
    first, the one with the best reward the second."""
    problem = replace(Problem.bernoulli([0.5, 0.6], [0.25, 0.75]), cost_max=4.0)
    for unit, budgets in {
        "1": (0.5, 100.0),
        "smallest mean cost": (0.125, 25.0),
        "request": (1.25, 250.0),
        "cheap to expensive": (5.0, 502.0),
    }.items():
        assert plan.scaled((0.5, 100.0), problem, unit, 10) == budgets
    experiment = Experiment.from_toml(SMALL.replace("seed", 'budget_unit = "smallest mean cost"\nseed', 1))
    assert experiment.budget_unit == "smallest mean cost"
    for other, cell in zip(small().cells(), experiment.cells(), strict=True):
        least = float(cell.problems[0].problem.cost_means.min())
        assert cell.budgets_of(cell.problems[0].problem) == tuple(least * budget for budget in cell.budgets)
        assert cell.key != other.key


def test_more_runs_keep_the_chunks_that_are_there():
    few = {cell.key for cell in small(runs=2 * CHUNK).cells()}
    more = {cell.key for cell in small(runs=2 * CHUNK + 1).cells()}
    assert few < more


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_what_ships_can_be_read(name):
    """With two of each hundred random problems."""
    text = shipped_text(name)
    experiment = Experiment.from_toml(text.replace("count = 100", "count = 2"))
    assert name != "uniform-ensemble" or text.count("count = 100") == 4
    assert len(experiment.problems) >= 4
    assert len(experiment.policies) >= 1


def test_the_paper_as_it_describes_itself():
    experiment = Experiment.load_shipped("paper")
    assert experiment.runs == 500
    assert len(experiment.policies) >= 3
    assert len(experiment.budgets) == 15
    assert experiment.budgets[0] == 100
    assert experiment.budgets[-1] == 50_000
    assert [len(problem.problem) for problem in experiment.problems] == [10, 100, 10, 100]


def test_a_group_without_a_name_says_what_it_is():
    experiment = Experiment.from_toml(SMALL.replace('name = "random"\n', ""))
    assert [p.name for p in experiment.problems[1:]] == [
        "uniform-bernoulli, 3 arms / seed 7", "uniform-bernoulli, 3 arms / seed 8",
    ]  # fmt: skip


def test_a_folder_called_like_a_shipped_experiment_is_not_in_its_way(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "paper").mkdir()
    assert Experiment.load("paper").runs == 500
    (tmp_path / "paper").rmdir()
    (tmp_path / "paper").write_text("nonsense")
    assert Experiment.load_shipped("paper").runs == 500


def test_the_problems_of_many_cells_are_pickled_and_read_once(monkeypatch):
    dumps, calls = plan.cloudpickle.dumps, []
    monkeypatch.setattr(plan.cloudpickle, "dumps", lambda thing: calls.append(thing) or dumps(thing))
    cells = small().cells()
    found = [pickle.loads(pickle.dumps(cell)) for cell in cells]
    assert [cell.key for cell in found] == [cell.key for cell in cells]
    assert found == cells
    shared = {id(cell.problems) for cell in cells}
    assert len(calls) == len(shared) < len(cells)
    assert len({id(cell.problems) for cell in found}) == len(shared)
