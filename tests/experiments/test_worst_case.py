"""The hardest problem: found, flagged where the sweep ends, and its growth fitted, on tables whose truth is known."""

from __future__ import annotations

import itertools
import json

import numpy as np
import polars as pl
import pytest

from budgetbandits.errors import BadParameter
from budgetbandits.experiments import Experiment, Results, run
from budgetbandits.experiments import growth as worst
from budgetbandits.experiments.runner import Workers
from budgetbandits.report import figures as drawings
from budgetbandits.report.page import write_report
from studies import small

BUDGETS = (1_000.0, 4_000.0, 16_000.0)
ARMS = (2, 8, 32)
GAPS = tuple(0.002 * 2.0**step for step in range(9))


def regret(gap: float, arms: int, budget: float) -> float:
    """2 · B^0.6 · K^0.4 at the hardest gap, √(K/B) on the grid, and 30 % less at twice or half of it."""
    distance = np.log2(gap / (0.002 * np.sqrt(arms / 2) * np.sqrt(64_000 / budget)))
    return float(2 * budget**0.6 * arms**0.4 * 0.7 ** abs(distance))


def made(runs: int = 4, noise: float = 0.0, seed: int = 0, gaps: tuple[float, ...] = GAPS) -> Results:
    """A study whose means are `regret`; ``noise`` is the standard deviation over runs at K = 2, by the mean."""
    rng = np.random.default_rng(seed)
    problems, frames = [], []
    for arms, gap in itertools.product(ARMS, gaps):
        name = f"{arms} arms / {gap:g}"
        problems.append({"name": name, "group": f"{arms} arms", "arms": arms, "gaps": [gap, 0.0]})
        # a run is one game at all budgets, so what is good or bad luck in it is so at all of them
        luck = 1 + noise * np.sqrt(2 / arms) * rng.standard_exponential((runs, 1)) - noise * np.sqrt(2 / arms)
        values = luck * np.array([regret(gap, arms, budget) for budget in BUDGETS])
        frames.append(
            pl.DataFrame(
                {
                    "group": f"{arms} arms", "problem": name, "arms": arms, "policy": "bts",
                    "run": np.repeat(np.arange(runs), len(BUDGETS)), "budget": np.tile(BUDGETS, runs),
                    "pseudo_regret": values.ravel(), "identified": True,
                }
            )
        )  # fmt: skip
    record = {"problems": problems, "policies": ["bts"], "budgets": list(BUDGETS), "runs": runs}
    return Results(pl.concat(frames), record)


def test_the_hardest_gap_of_every_cell():
    table = worst.hardest(made())
    assert table.columns == [
        "policy", "arms", "budget", "problem", "reward_gap", "cost_gap", "mean", "half", "crossed", "edge",
    ]  # fmt: skip
    assert len(table) == len(ARMS) * len(BUDGETS)
    for row in table.rows(named=True):
        assert row["reward_gap"] == pytest.approx(0.002 * np.sqrt(row["arms"] / 2) * np.sqrt(64_000 / row["budget"]))
        assert row["mean"] == pytest.approx(2 * row["budget"] ** 0.6 * row["arms"] ** 0.4)
        assert row["crossed"] == pytest.approx(row["mean"])
        assert not row["edge"]


@pytest.mark.parametrize(("gaps", "short"), [(GAPS[3:], "below"), (GAPS[:5], "above")])
def test_a_sweep_that_ends_too_early_is_flagged(gaps, short):
    """The hardest gap is step 1 to 5, by K and B; where the sweep begins or ends there or before, it shows."""
    flags = worst.hardest(made(gaps=gaps)).select("arms", "budget", "edge").rows()
    for arms, budget, edge in flags:
        step = 1 + ARMS.index(arms) + (len(BUDGETS) - 1 - BUDGETS.index(budget))
        assert edge == (step <= 3 if short == "below" else step >= 4), (arms, budget)
    assert worst.growth(made(gaps=gaps), "bts").at_edge == sum(edge for *_, edge in flags) > 0


def test_directions_are_swept_one_by_one():
    """Gaps in cost do not bracket gaps in reward, nor do those in both."""
    pairs = [(0.1, 0.0), (0.2, 0.0), (0.4, 0.0), (0.0, 0.05), (0.0, 0.1), (0.05, 0.05), (0.1, 0.1), (0.2, 0.2)]
    record = {"problems": [{"name": str(pair), "arms": 2, "gaps": pair} for pair in pairs]}
    table = worst._gaps(Results(pl.DataFrame(), record))
    assert table.filter(~pl.col("edge"))["problem"].to_list() == ["(0.2, 0.0)", "(0.1, 0.1)"]


def test_an_exact_power_law_is_found_exactly():
    growth = worst.growth(made(), "bts")
    for exponent, truth in ((growth.in_budget, 0.6), (growth.in_arms, 0.4)):
        assert (exponent.value, exponent.low, exponent.high) == (pytest.approx(truth),) * 3
    assert growth.constant == pytest.approx(np.log(2))
    assert [(step.first, step.second) for step in growth.budget_steps] == [(1_000, 4_000), (4_000, 16_000)]
    for steps, truth in ((growth.budget_steps, 0.6), (growth.arms_steps, 0.4)):
        found = [(step.exponent.value, step.exponent.low, step.exponent.high) for step in steps]
        assert found == [(pytest.approx(truth),) * 3] * 2
    assert (growth.cells, growth.at_edge) == (9, 0)


@pytest.mark.deep
def test_intervals_hold_the_truth(monkeypatch):
    """Of 40 studies at least 33 in B and in K; at 95 % fewer would come in one of 1,400 sets of studies."""
    monkeypatch.setattr(worst, "RESAMPLES", 100)
    held = np.zeros(2)
    for seed in range(40):
        growth = worst.growth(made(runs=40, noise=0.8, seed=seed), "bts")
        held += [growth.in_budget.low <= 0.6 <= growth.in_budget.high, growth.in_arms.low <= 0.4 <= growth.in_arms.high]
    assert held.min() >= 33, held


def test_an_interval_is_the_middle_95_percent_of_what_was_drawn_again():
    found = worst._exponent(0.5, np.linspace(0.0, 1.0, 1001))
    assert (found.value, found.low, found.high) == (0.5, pytest.approx(0.025), pytest.approx(0.975))


def test_each_half_is_drawn_again_from_its_own_runs():
    games = np.resize([1.0, 3.0], (2, 6))[:, :, None]
    for half, value in zip(worst._resampled(games, np.random.default_rng(0)), (1.0, 3.0), strict=True):
        assert half.shape == (worst.RESAMPLES, 2, 1)
        assert half == pytest.approx(np.full_like(half, value))


def test_more_runs_narrow_the_interval():
    few, many = (worst.growth(made(runs=runs, noise=0.8, seed=1), "bts") for runs in (40, 160))
    for exponent in ("in_budget", "in_arms"):
        widths = [getattr(growth, exponent).high - getattr(growth, exponent).low for growth in (few, many)]
        assert 0 < widths[1] < 0.75 * widths[0]
    assert worst.growth(made(runs=40, noise=0.8, seed=1), "bts") == few  # the same study, the same interval


def test_the_largest_of_noisy_means_is_too_large_and_the_crossed_one_is_not():
    """Nine gaps that are equally hard: the largest mean is off by more than a standard error."""
    games = np.random.default_rng(3).exponential(1.0, (400, 9, 20, 1))
    largest = np.array([study.mean(axis=1).max() for study in games])
    crossed = np.array([worst._crossed(*worst._halves(study))[0] for study in games])
    assert largest.mean() > 1 + 1 / np.sqrt(20)
    assert abs(crossed.mean() - 1) < 4 * crossed.std() / np.sqrt(len(games))


def test_runs_are_resampled_whole():
    """Luck is shared by the budgets of a game: where one problem is hardest at all, it moves no exponent of B."""
    growth = worst.growth(made(runs=40, noise=0.2, seed=2, gaps=GAPS[4:5]), "bts")
    assert growth.in_budget.high - growth.in_budget.low < 1e-9
    assert growth.in_arms.high - growth.in_arms.low > 0.01


STUDY = """
name = "tiny"
runs = 4
budgets = [20, 80]
policies = ["bts", "epsilon-first"]
engine = "reference"
"""
SWEEP = """
[[problems]]
name = "{arms} arms"
family = "two-gap"
arms = {arms}
{kind}_gap = [0.1, 0.2, 0.4]
"""


def test_a_study_of_gaps_reports_its_hardest_problem(tmp_path, monkeypatch):
    monkeypatch.setattr(drawings, "of_study", lambda *_: [])
    monkeypatch.setattr(drawings, "FORMATS", ("png",))
    text = STUDY + SWEEP.format(arms=2, kind="reward") + SWEEP.format(arms=4, kind="cost")
    run(Experiment.from_toml(text), tmp_path, Workers(jobs=1))
    page = write_report(tmp_path).read_text()
    assert "<h2>The hardest problem</h2>" in page
    table = pl.read_csv(tmp_path / "hardest.csv")
    assert len(table) == 2 * 2 * 2
    for in_reward, in_cost in table.select("reward_gap", "cost_gap").rows():
        assert (f"reward {in_reward:g}" if in_reward else f"cost {in_cost:g}") in page
    growth = worst.growth(Results.load(tmp_path), "bts")
    assert f"{growth.in_budget.value:.2f} [{growth.in_budget.low:.2f}, {growth.in_budget.high:.2f}]" in page
    assert ("†" in page) == table["edge"].any()
    assert (tmp_path / "figures" / "worst-case.png").stat().st_size > 5_000
    # a study from before gaps were recorded has its report without the section
    record = json.loads((tmp_path / "study.json").read_text())
    for problem in record["problems"]:
        del problem["gaps"]
    (tmp_path / "study.json").write_text(json.dumps(record))
    assert "The hardest problem" not in write_report(tmp_path).read_text()


def test_one_number_of_arms_has_a_hardest_problem_but_no_growth(tmp_path, monkeypatch):
    monkeypatch.setattr(drawings, "of_study", lambda *_: [])
    run(Experiment.from_toml(STUDY + SWEEP.format(arms=3, kind="cost")), tmp_path, Workers(jobs=1))
    assert "the study needs two budgets, two numbers of arms and four runs" in write_report(tmp_path).read_text()
    with pytest.raises(BadParameter, match="growth needs two budgets"):
        worst.growth(Results.load(tmp_path), "bts")


def test_other_problems_have_none(tmp_path, monkeypatch):
    monkeypatch.setattr(drawings, "of_study", lambda *_: [])
    run(small(runs=2), tmp_path, Workers(jobs=1))
    assert "The hardest problem" not in write_report(tmp_path).read_text()
    with pytest.raises(BadParameter, match='family = "two-gap"'):
        worst.hardest(Results.load(tmp_path))
