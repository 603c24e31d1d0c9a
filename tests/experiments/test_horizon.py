"""Studies of budgets that must last: horizons, money for a request, arms that change, recorded outcomes."""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from budgetbandits import simulate
from budgetbandits.errors import ExperimentError, StudyError
from budgetbandits.experiments import Experiment
from budgetbandits.experiments.leaderboard import decision_time
from budgetbandits.experiments.runner import _play, duration
from budgetbandits.experiments.study import _record
from budgetbandits.experiments.suite import Suite
from budgetbandits.policies import parse_policy
from budgetbandits.problems.families import linear
from budgetbandits.problems.streams import RequestStream, drifting

SUITE = Path(__file__).parents[2] / "examples/paced-suite.toml"
TEXT = """
name = "paced"
runs = 3
budgets = [0.25, 0.75]
budget_unit = "cheap to expensive"
horizon = 40
policies = ["bts-paced", "bts"]
engine = "reference"
[[problems]]
name = "p"
rewards = [0.3, 0.5, 0.9]
costs = [0.2, 0.4, 0.8]
drift = "price-cut"
at = 20
"""


def test_a_cell_holds_the_games_of_simulate():
    experiment = Experiment.from_toml(TEXT)
    cell = experiment.cells()[0]
    stream = experiment.problems[0].problem
    assert cell.budgets_of(stream) == (14.0, 26.0)  # of 40 requests at 0.2 + 0.25 · 0.6 and 0.2 + 0.75 · 0.6
    assert isinstance(stream, RequestStream)
    assert experiment.problems[0].origin == "means in the experiment file, price-cut at request 20"
    table = pl.read_parquet(io.BytesIO(_play(cell).content))
    played = simulate(stream, "bts-paced", [14, 26], 3, horizon=40, engine="reference")
    assert np.allclose(table["pseudo_regret"].to_numpy().reshape(3, 2), played.pseudo_regret)
    assert table["budget"].unique().sort().to_list() == [0.25, 0.75]
    assert duration(cell) > 0.0


def test_a_study_plays_a_stream_with_features_from_its_file(tmp_path):
    stream = linear(features=2, arms=3, seed=1)
    (tmp_path / "stream.toml").write_text(stream.to_toml())
    named = TEXT[: TEXT.index("[[problems]]")] + '[[problems]]\nfile = "stream.toml"\n'
    experiment = Experiment.from_toml(named, tmp_path)
    cell = experiment.cells()[0]
    assert experiment.problems[0].problem == stream
    table = pl.read_parquet(io.BytesIO(_play(cell).content))
    played = simulate(stream, "bts-paced", cell.budgets_of(stream), 3, horizon=40)
    assert np.allclose(table["reward"].to_numpy().reshape(3, 2), played.reward)
    (problem,) = _record(experiment, experiment.cells(), "")["problems"]
    assert problem["cost_means"] == stream.cost_means.tolist()
    with pytest.raises(ExperimentError, match="stream, but there is no horizon"):
        Experiment.from_toml(named.replace('budget_unit = "cheap to expensive"\nhorizon = 40', ""), tmp_path)
    with pytest.raises(ExperimentError, match="for a problem that is no request stream"):
        Experiment.from_toml(named + 'drift = "price-cut"\nat = 20\n', tmp_path)


def test_another_horizon_is_another_cell():
    keys = {Experiment.from_toml(TEXT.replace("40", count, 1)).cells()[0].key for count in ("40", "41")}
    assert len(keys) == 2


def test_the_record_has_means_over_requests():
    experiment = Experiment.from_toml(TEXT)
    (problem,) = _record(experiment, experiment.cells(), "")["problems"]
    assert problem["cost_means"] == pytest.approx([0.2, 0.4, 0.6])  # 0.8, and half of it for half of the requests
    assert RequestStream.from_toml(problem["toml"]) == experiment.problems[0].problem


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (("horizon = 40", ""), "there is no horizon"),
        (("horizon = 40", "horizon = 0"), "whole number from 1"),
        (('budget_unit = "cheap to expensive"\nhorizon = 40', ""), "stream, but there is no horizon"),
        (('engine = "reference"', "common = true"), "no common outcomes"),
        (('"price-cut"', '"weather"'), "write one of price-cut"),
        (("at = 20", ""), "at is None"),
        (("at = 20", 'at = 20\ncolumns = "arm=model"'), "unknown key 'columns'"),
    ],
)
def test_what_is_refused(change, why):
    with pytest.raises(ExperimentError, match=why):
        Experiment.from_toml(TEXT.replace(*change))


def test_the_suite_of_the_examples_can_be_built():
    suite = Suite.from_toml(SUITE.read_text().replace("count = 500", "count = 2"), SUITE.parent)
    by_name = {setting.name: setting.experiment for setting in suite.settings}
    models = by_name["language-models"]
    cell, stream = models.cells()[0], models.problems[0].problem
    assert (len(stream), len(stream.segments), models.horizon) == (3, 9, 1824)
    assert cell.budgets_of(stream)[0] * stream.parts[0].problem.cost_max == pytest.approx(8.3e-5 * 1824)
    assert by_name["new-arm"].problems[0].problem.firsts == (0, 3000)
    assert by_name["two-resources-3"].problems[0].problem == by_name["two-resources-3"].cells()[0].problems[0].problem


def test_a_study_of_a_stream_has_no_problems_to_bound(tmp_path):
    from budgetbandits.experiments.results import Results

    experiment = Experiment.from_toml(TEXT)
    results = Results(pl.DataFrame({"problem": ["p"]}), _record(experiment, experiment.cells(), ""))
    with pytest.raises(StudyError, match="is a request stream"):
        results.problems()


@pytest.mark.parametrize("policy", ["bts-paced", "primal-dual-bwk"])
def test_the_time_of_a_decision_needs_no_horizon(policy):
    assert decision_time(parse_policy(policy)) > 0.0


def test_a_drift_changes_what_a_cell_plays():
    before = Experiment.from_toml(TEXT.replace('drift = "price-cut"\nat = 20', ""))
    problem = before.problems[0].problem
    assert drifting(problem, "price-cut", 20) == Experiment.from_toml(TEXT).problems[0].problem
    assert before.cells()[0].key != Experiment.from_toml(TEXT).cells()[0].key
