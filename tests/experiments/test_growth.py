"""The slope of the regret against ln B: from tables whose slope is known."""

import math

import numpy as np
import polars as pl
import pytest

from budgetbandits import Problem
from budgetbandits.experiments import Experiment, Results, run
from budgetbandits.experiments.growth import beside_root, growth_budgets, root_growth, slope_ratio, slopes
from budgetbandits.experiments.runner import Workers
from budgetbandits.problems.distributions import JointTable
from budgetbandits.problems.problem import Arm
from budgetbandits.report import figures
from budgetbandits.report.page import write_report
from budgetbandits.theory import lower_constant
from studies import small

BUDGETS = [10.0, 1000.0, 100_000.0]
TWO = Problem.bernoulli([0.6, 0.4], [0.5, 0.5])


def made_up(*studies, problem=TWO):
    """Results with these regrets on each of some problems, a row for each run and a column for each budget."""
    rows = [
        {"policy": "bts", "problem": f"{place}", "budget": budget, "run": number, "pseudo_regret": value}
        for place, values in enumerate(studies)
        for number, games in enumerate(values)
        for budget, value in zip(BUDGETS, games, strict=True)
    ]
    problems = [{"name": f"{place}", "group": "two", "toml": problem.to_toml()} for place in range(len(studies))]
    return Results(pl.DataFrame(rows), {"budgets": BUDGETS, "problems": problems})


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
    steps = np.random.default_rng(8).normal(7.0, 3.0, (400, 12, 3)) * math.log(100.0)
    found = slopes(made_up(*steps.cumsum(axis=2).tolist())).filter(pl.col("from") == BUDGETS[0])
    assert 364 <= ((found["low"] <= 7.0) & (found["high"] >= 7.0)).sum() <= 394


def test_correlated_arms_have_no_lower_bound():
    arms = Problem((Arm("a", JointTable(((1, 1, 1), (0, 0.5, 1)))), TWO.arms[1]))
    assert slopes(made_up([[1.0, 2.0, 3.0]] * 2, problem=arms))["lower"].to_list() == [None, None]


def test_the_report_shows_growth_where_there_is_some(tmp_path, monkeypatch):
    monkeypatch.setattr(figures, "of_study", lambda *_: [])
    monkeypatch.setattr(figures, "FORMATS", ())
    run(small(budgets=(2, 20, 200), policies=small().policies[:1]), tmp_path, Workers(jobs=1))
    page = write_report(tmp_path).read_text()
    assert "How fast the regret of BTS grows" in page
    assert "2 to 20" in page
    assert pl.read_csv(tmp_path / "growth.csv").height == 6
    run(small(), tmp_path / "other", Workers(jobs=1))
    assert "How fast" not in write_report(tmp_path / "other").read_text()


FIVE_APART = (2_000.0, 10_000.0, 50_000.0)


@pytest.mark.parametrize(
    ("growth", "expected"),
    [(np.log, 1.0), (np.sqrt, math.sqrt(5.0)), (lambda b: np.asarray(b, dtype=float), 5.0)],
)
def test_slope_ratio_tells_growth_apart(growth, expected):
    rng = np.random.default_rng(5)
    values = 3.0 * growth(np.array(FIVE_APART)) * rng.normal(1.0, 0.05, (400, 1))
    ratio, low, high = slope_ratio(values, FIVE_APART)
    assert low <= expected <= high or math.isclose(ratio, expected, rel_tol=1e-9)
    assert root_growth(*FIVE_APART) == pytest.approx(math.sqrt(5.0))


def test_slope_ratio_covers_the_truth():
    """95 % intervals: of 400, between 366 and 393 hold with a false alarm in a thousand (normal bound)."""
    rng = np.random.default_rng(6)
    held = 0
    for _ in range(400):
        steps = rng.normal([10.0, 4.0, 5.0], [1.0, 2.0, 3.0], (100, 3))
        _, low, high = slope_ratio(steps.cumsum(axis=1), FIVE_APART)
        held += low <= 5.0 / 4.0 <= high
    assert 364 <= held <= 394


def test_growth_like_a_root_is_on_neither_side_of_it():
    """Of 400 studies whose regret grows like √B, 95 % lie within the interval: 366 to 394, one false alarm in a
    thousand (normal bound)."""
    rng = np.random.default_rng(7)
    games = np.sqrt(FIVE_APART) + rng.normal(0.0, 20.0, (400, 20, 3))
    found = beside_root(games, FIVE_APART)
    assert 366 <= ((found.low <= 0.0) & (found.high >= 0.0)).sum() <= 394
    assert (beside_root(np.log(FIVE_APART) + 0.0 * games, FIVE_APART).high < 0.0).all()
    assert (beside_root(np.array(FIVE_APART) + 0.0 * games, FIVE_APART).low > 0.0).all()


def test_growth_budgets_are_factors_of_five_apart_where_possible():
    assert growth_budgets(Experiment.load("paper").budgets) == (2_000, 10_000, 50_000)
    assert growth_budgets((100.0, 500.0, 2_000.0, 10_000.0)) == (500, 2_000, 10_000)
