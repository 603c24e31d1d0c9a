"""The tables of a report against what `Results` says."""

import itertools
import json

import numpy as np
import pytest

from budgetbandits import Problem
from budgetbandits.experiments import Experiment
from budgetbandits.experiments.statistics import student_quantile
from budgetbandits.experiments.study import Study
from budgetbandits.figures.layout import titles
from budgetbandits.figures.style import figure_spec
from budgetbandits.problems.oracle import gaps, ratios
from budgetbandits.report import figures, paper, tables
from made_up import GROUPS, study
from studies import small


def uneven(group, number, policy, budget):
    return 10.0 + len(policy) + 3.0 * (group - number) * (policy == "kube") + 0.001 * budget


@pytest.fixture(scope="module")
def several():
    return study(uneven, problems=3)


def test_the_matrices_say_what_compare_says(several):
    """A difference is the row less the column, in both directions."""
    for budget in several.budgets:
        matrices = tables.differences(several, budget)
        assert list(matrices) == GROUPS
        for row in several.compare(budget).rows(named=True):
            first, second = (several.policies.index(row[side]) for side in ("first", "second"))
            cell, turned = matrices[row["group"]][first][second], matrices[row["group"]][second][first]
            assert {name: row[name] for name in cell if name != "verdict"}.items() < cell.items()
            assert len(cell) == 7
            numbers = [turned[name] for name in ("difference", "low", "high")]
            assert numbers == [-row["difference"], -row["high"], -row["low"]]
            assert (turned["wins"], turned["losses"]) == (row["losses"], row["wins"])
            expected = "lower" if row["high"] < 0 else "higher" if row["low"] > 0 else "unsure"
            assert cell["verdict"] == expected
            assert turned["verdict"] == {"lower": "higher", "higher": "lower", "unsure": "unsure"}[expected]
        assert all(matrix[place][place] is None for matrix in matrices.values() for place in range(5))


def test_every_budget_of_every_group_is_there_with_its_intervals():
    results = study(uneven)
    groups = tables.by_group(results)
    assert [table["group"] for table in groups] == GROUPS
    for table in groups:
        assert [at["budget"] for at in table["budgets"]] == sorted(results.budgets, reverse=True)
        for at in table["budgets"]:
            means = [row["mean"] for row in at["rows"]]
            assert means == sorted(means)
            assert [results.policies[place] for place in at["order"]] == [row["policy"] for row in at["rows"]]
            for row in at["rows"]:
                assert row["half"] == pytest.approx(student_quantile(0.975, 23) / np.sqrt(24))


@pytest.mark.parametrize(("wide", "sure"), [(1.0, True), (1000.0, False)])
def test_the_page_makes_only_what_is_sure_bold(wide, sure):
    groups = tables.by_group(study(lambda _g, _p, policy, _b: 10.0 if policy == "bts" else 20.0, wide))
    assert [table["budgets"][0]["sure"] for table in groups] == [sure] * 4
    row = groups[0]["budgets"][0]["rows"][0]
    assert row["policy"] == "bts"
    assert row["std_low"] < wide < row["std_high"]


def test_many_groups_have_every_budget_in_the_file_only():
    results = study(uneven, policies=["bts", "kube"], groups=[f"group {n}" for n in range(tables.GROUPS_SHOWN_MAX + 2)])
    budgets = [len(table["budgets"]) for table in tables.by_group(results)]
    assert budgets == [3] * tables.GROUPS_SHOWN_MAX + [1, 1]


def test_arms_are_listed_by_ratio_with_their_gaps():
    problem = Problem.bernoulli([0.2, 0.9, 0.5], [0.8, 0.3, 0.5])
    record = {
        "names": problem.names,
        "reward_means": problem.reward_means.tolist(),
        "cost_means": problem.cost_means.tolist(),
    }
    rows = tables.arms(record)
    assert [row["name"] for row in rows] == ["arm-2", "arm-3", "arm-1"]
    order = [1, 2, 0]
    assert [row["ratio"] for row in rows] == pytest.approx(ratios(problem)[order])
    assert [row["gap"] for row in rows] == pytest.approx(gaps(problem)[order])


MANY = """
name = "many"
runs = 2
budgets = [5]
policies = ["bts"]
[[problems]]
name = "random"
family = "uniform-bernoulli"
arms = 4
seed = 7
count = 5
low = 0.2
[[problems]]
name = "inline"
rewards = [0.9, 0.2]
costs = [0.3, 0.6]
"""

BTS = {"prior_reward": "1/1", "kappa": "1", "prior_cost": "1/1"}
"""Its parameters as text."""


def test_a_record_says_what_was_asked(tmp_path):
    experiment = Experiment.from_toml(MANY)
    begun = Study(tmp_path)
    begun.begin(experiment, experiment.cells(), "the command")
    record = begun.asked()
    assert record["file"] == MANY
    assert record["begun"][:2] == "20"
    assert record["parameters"] == [BTS]
    assert [problem["origin"] for problem in record["problems"][-2:]] == [
        "family uniform-bernoulli, means from 0.2 to 1, seeds 7 to 11",
        "means in the experiment file",
    ]
    record["begun"] = "2001-02-03"
    begun.write(begun.record, json.dumps(record).encode())
    begun.begin(experiment, experiment.cells(), "the command, again")
    assert begun.asked()["begun"] == "2001-02-03"
    changed = experiment.changed(runs=3)
    assert changed.file is None
    begun.begin(changed, changed.cells(), "another command")
    assert begun.asked()["begun"] != "2001-02-03"


def test_many_problems_are_shown_by_their_range(tmp_path):
    experiment = Experiment.from_toml(MANY)
    begun = Study(tmp_path)
    begun.begin(experiment, experiment.cells(), "")
    record = begun.asked()
    groups = ["random", "inline"]
    random, inline = tables.problems(type("Results", (), {"record": record, "groups": groups}))
    assert random["problems"] == []
    assert random["count"] == 5
    quantiles = {row["what"]: row["quantiles"] for row in random["range"]}
    members = [named.problem for named in experiment.problems[:5]]
    assert quantiles["best ratio"][-1] == pytest.approx(max(ratios(problem).max() for problem in members))
    second = [np.sort(gaps(problem))[1] for problem in members]
    assert quantiles["gap of the second best arm"][2] == pytest.approx(np.median(second))
    assert inline["range"] is None
    assert [row["name"] for row in inline["problems"][0]["arms"]] == ["arm-1", "arm-2"]


def test_parameters_are_recorded_with_their_defaults(tmp_path):
    experiment = small()
    begun = Study(tmp_path)
    begun.begin(experiment, experiment.cells(), "")
    assert begun.asked()["parameters"] == [BTS, {"epsilon": "0.1"}, {"epsilon": "0.2"}, {}]


@pytest.mark.parametrize("width", [12.0, "phone"])
def test_what_stands_above_the_panels_of_who_wins_is_neither_cut_nor_covered(width):
    groups = [f"({letter}) Multinomial, 100 arms" for letter in "abcd"]
    policies = ["bts", "kube", "pd-bwk"]
    ensemble = study(lambda g, n, policy, _b: 10.0 + n + policies.index(policy), 1.0, 2, policies, groups)
    drawn = figures._laid_out(paper.who_wins(ensemble, figure_spec(width)))
    drawn._canvas_that_measures.draw()
    assert titles(drawn)[0].startswith("(a) Multinomial, 100 arms BTS lowest on")
    whole = drawn.bbox.extents
    boxes = [axes._left_title.get_window_extent() for axes in drawn.axes]
    for box in boxes:
        assert (box.x0, box.y0) > (0, 0)
        assert box.x1 < whole[2]
        assert box.y1 < whole[3]
    assert not any(first.overlaps(second) for first, second in itertools.combinations(boxes, 2))
