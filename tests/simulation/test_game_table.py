"""simulate_many: the games of simulate in one table; policies by name, fresh seeds, and the one meaning of jobs."""

from __future__ import annotations

import gc
import threading

import numpy as np
import polars as pl
import pytest

from budgetbandits import BudgetedThompson, Problem, family, random_problems, simulate, simulate_many
from budgetbandits.errors import BadParameter, MissingExtra, UnknownPolicy
from budgetbandits.experiments.runner import Workers
from budgetbandits.problems.streams import drifting
from budgetbandits.simulation import dispatch, outcome
from budgetbandits.simulation.engines.runtime import laws
from budgetbandits.simulation.engines.runtime.laws import tables_of
from budgetbandits.simulation.game_table import COLUMNS

PROBLEMS = random_problems("uniform-bernoulli", arms=4, count=3, seed=5, low=0.2)
POLICIES = ["bts", "kube", "epsilon-first:epsilon=[0.1, 0.2]"]
SPECS = ["bts", "kube", "epsilon-first", "epsilon-first:epsilon=0.2"]
BUDGETS = [30.0, 10.0]


@pytest.fixture(scope="module")
def games():
    return simulate_many(PROBLEMS, POLICIES, BUDGETS, runs=5, seed=3)


def test_the_games_are_those_of_simulate(games):
    assert tuple(games.columns) == COLUMNS
    parts = []
    for name, problem in PROBLEMS.items():
        for spec in SPECS:
            frame = simulate(problem, spec, BUDGETS, runs=5, seed=3).to_frame()
            parts.append(frame.select(pl.lit(name).alias("problem"), pl.lit(4, pl.Int64).alias("arms"), pl.all()))
    assert games.equals(pl.concat(parts))
    assert games.schema == pl.concat(parts).schema


def test_a_summary_is_that_of_every_outcome(games):
    short = simulate_many(PROBLEMS, POLICIES, BUDGETS, runs=5, seed=3, summary="regret")
    assert short.equals(
        outcome.summarise(games, "regret", ("problem", "arms", "policy", "budget")).select(short.columns)
    )
    assert short.height == len(PROBLEMS) * len(SPECS) * len(BUDGETS)


@pytest.mark.parametrize("engine", ["auto", "reference"])
def test_the_same_table_with_any_number_of_workers(engine):
    one, two = (simulate_many(PROBLEMS, ["bts", "kube"], [10.0], 3, engine=engine, jobs=jobs) for jobs in (1, 2))
    assert one.equals(two)


def test_problems_in_a_list_are_numbered():
    problems = [family("uniform-bernoulli", 3, seed, low=0.2) for seed in (1, 2)]
    games = simulate_many(iter(problems), BudgetedThompson(), [5], 2)
    assert games["problem"].unique(maintain_order=True).to_list() == ["problem 1", "problem 2"]
    assert games["policy"].unique().to_list() == ["bts"]


def test_an_engine_is_made_ready_once(monkeypatch):
    ready = []
    monkeypatch.setattr(dispatch, "warm_up", lambda problem, policy, horizon: ready.append(policy.spec))
    simulate_many(PROBLEMS, ["bts", "kube"], [5.0], 1)
    assert ready == ["bts", "kube"]


def test_progress_counts_games_and_a_stop_leaves_nothing_behind():
    said, threads = [], threading.active_count()

    def stop(done: int, total: int) -> None:
        said.append((done, total))
        if len(said) == 2:
            raise KeyboardInterrupt

    for jobs in (1, 2):
        said.clear()
        with pytest.raises(KeyboardInterrupt):
            simulate_many(PROBLEMS, ["bts", "kube"], [5.0], 10, jobs=jobs, progress=stop)
        assert said == [(10, 60), (20, 60)]
    assert threading.active_count() <= threads + 2  # joblib may keep its two threads for the next call
    assert simulate_many(PROBLEMS, "bts", [5.0], 1).height == 3


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"problems": []}, BadParameter, "no problem"),
        ({"problems": next(iter(PROBLEMS.values()))}, BadParameter, "give a list of problems"),
        ({"problems": {"a": "b"}}, BadParameter, "map names to problems"),
        (
            {"problems": [PROBLEMS["seed 5"]] * 2},
            BadParameter,
            "'problem 1' and 'problem 2' are the same problem; give it",
        ),
        ({"policies": []}, BadParameter, "no policy"),
        ({"policies": [3]}, BadParameter, "policy is 3"),
        ({"policies": ["bts", BudgetedThompson()]}, BadParameter, "names bts twice"),
        ({"policies": ["nobody"]}, UnknownPolicy, "nobody"),
        ({"policies": "epsilon-first:epsilon=[0.1"}, BadParameter, "does not close"),
        ({"budgets": []}, BadParameter, "no budget"),
        ({"runs": 0}, BadParameter, "runs is 0"),
        ({"seed": -1}, BadParameter, "seed is -1"),
        ({"summary": "luck"}, BadParameter, "unknown metric 'luck'"),
        ({"engine": "slow"}, BadParameter, "engine is 'slow'"),
    ],
)
def test_what_cannot_be_played_is_named(arguments, error, message):
    usual = {"problems": PROBLEMS, "policies": "bts", "budgets": [5.0], "runs": 1}
    with pytest.raises(error, match=message):
        simulate_many(**{**usual, **arguments})


def test_without_polars_the_extra_is_named(monkeypatch):
    monkeypatch.setattr(outcome, "find_spec", lambda name: None)
    with pytest.raises(MissingExtra, match=r"budgetbandits\[lab\]"):
        simulate_many(PROBLEMS, "bts", [5.0], 1)


# --- simulate: names and seeds; jobs ---------------------------------------------------------------------------------

PROBLEM = Problem.bernoulli([0.9, 0.2], [0.3, 0.6])


def test_a_policy_by_name_is_the_policy(tmp_path):
    by_name, by_hand = (simulate(PROBLEM, policy, [9], 3) for policy in ("bts", BudgetedThompson()))
    assert np.array_equal(by_name.pulls, by_hand.pulls)
    assert simulate(PROBLEM, "epsilon-first:epsilon=0.2", [9], 1).policy == "epsilon-first:epsilon=0.2"
    (tmp_path / "mine.py").write_text(
        "from budgetbandits.policies.kube import KUBE\nclass Mine(KUBE):\n    name = 'mine'\n"
    )
    assert simulate(PROBLEM, f"{tmp_path}/mine.py:Mine", [9], 1, engine="reference").policy == "mine"


def test_a_fresh_seed_is_told_and_gives_the_same_games():
    fresh, other = (simulate(PROBLEM, "bts", [50], 5, seed=None) for _ in range(2))
    assert fresh.seed != other.seed  # equal once in 2³² runs of this test
    assert np.array_equal(simulate(PROBLEM, "bts", [50], 5, seed=fresh.seed).pulls, fresh.pulls)


@pytest.mark.parametrize("jobs", [0, -2, 1.5, True])
def test_jobs_mean_the_same_everywhere(jobs):
    for take in (
        lambda: simulate(PROBLEM, "bts", [9], 1, jobs=jobs),
        lambda: simulate_many([PROBLEM], "bts", [9], 1, jobs=jobs),
        lambda: Workers(jobs=jobs),
    ):
        with pytest.raises(BadParameter, match="use the number of workers, or -1 for one per core"):
            take()


def test_the_budget_may_be_for_so_many_requests():
    still = PROBLEMS["seed 5"]
    problems = {"still": still, "cut": drifting(still, "price-cut", 20)}
    games = simulate_many(problems, ["bts-paced", "bts"], [9.0], runs=3, horizon=30, engine="reference")
    for name, problem in problems.items():
        alone = simulate(problem, "bts-paced", [9.0], 3, horizon=30, engine="reference")
        found = games.filter((pl.col("problem") == name) & (pl.col("policy") == "bts-paced"))
        assert found["reward"].to_list() == alone.reward[:, 0].tolist()
    with pytest.raises(BadParameter, match="say how many"):
        simulate_many(problems, "bts", [9.0], runs=1)


def test_tables_are_made_once_for_a_problem_and_go_with_it():
    problem = Problem.bernoulli([0.4, 0.6], [0.5, 0.5])
    place, made = id(problem), tables_of(problem)
    assert tables_of(problem) is made
    assert tables_of(problem, sampled=True) is not made
    del problem
    gc.collect()
    assert place not in laws._tables
