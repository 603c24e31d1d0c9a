"""The slope of the regret against ln B: from tables whose slope is known."""

import math

import numpy as np
import polars as pl
import pytest

from budgetbandits import Problem
from budgetbandits.experiments import Results, run
from budgetbandits.experiments.slopes import slopes
from budgetbandits.laws import Table
from budgetbandits.problem import Arm
from budgetbandits.report import write_report
from budgetbandits.theory import lower_constant
from studies import small

BUDGETS = [10.0, 1000.0, 100_000.0]
TWO = Problem.bernoulli([0.6, 0.4], [0.5, 0.5])


def made_up(values, problem=TWO):
    """Results with these regrets, a row for each run and a column for each budget."""
    rows = [
        {"policy": "bts", "problem": "two", "budget": budget, "run": number, "pseudo_regret": value}
        for number, games in enumerate(values)
        for budget, value in zip(BUDGETS, games, strict=True)
    ]
    record = {"budgets": BUDGETS, "problems": [{"name": "two", "group": "two", "toml": problem.to_toml()}]}
    return Results(pl.DataFrame(rows), record)


def test_logarithmic_growth_has_its_constant_as_slope():
    found = slopes(made_up([[c * math.log(b) + 5.0 for b in BUDGETS] for c in (2.0, 4.0)]))
    assert found["slope"].to_list() == pytest.approx([3.0, 3.0])
    assert list(zip(found["from"], found["to"], strict=True)) == [(10.0, 1000.0), (1000.0, 100_000.0)]
    half = (
        12.706 * math.sqrt(2.0) / math.sqrt(2.0)
    )  # Student's t with one degree of freedom; the two slopes are 2 and 4
    assert (found["high"] - found["slope"])[0] == pytest.approx(half, rel=1e-4)
    assert found["lower"][0] == pytest.approx(lower_constant(TWO))


def test_the_interval_holds_as_often_as_it_says():
    """400 intervals of 95 %: between 364 and 394 hold but for one false alarm in a thousand."""
    rng = np.random.default_rng(8)
    held = 0
    for _ in range(400):
        steps = rng.normal(7.0, 3.0, (12, 3)) * math.log(100.0)
        row = slopes(made_up(steps.cumsum(axis=1))).row(0, named=True)
        held += row["low"] <= 7.0 <= row["high"]
    assert 364 <= held <= 394


def test_correlated_arms_have_no_lower_bound():
    arms = Problem((Arm("a", Table(((1, 1, 1), (0, 0.5, 1)))), TWO.arms[1]))
    assert slopes(made_up([[1.0, 2.0, 3.0]] * 2, arms))["lower"].to_list() == [None, None]


def test_the_report_shows_growth_where_there_is_some(tmp_path):
    run(small(budgets=(2, 20, 200), policies=small().policies[:1]), tmp_path)
    page = write_report(tmp_path).read_text()
    assert "How fast the regret of BTS grows" in page
    assert "2 to 20" in page
    assert pl.read_csv(tmp_path / "growth.csv").height == 6
    assert "How fast" not in (run(small(), tmp_path / "other"), write_report(tmp_path / "other").read_text())[1]
