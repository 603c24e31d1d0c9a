"""Recorded outcomes: read from files and tables, as problems and for replays."""

import json

import numpy as np
import polars as pl
import pytest
from typer.testing import CliRunner

from budgetbandits import Problem, parse_policy
from budgetbandits.allocation.learner import Learner
from budgetbandits.cli import app
from budgetbandits.errors import BadParameter, ProblemError
from budgetbandits.problems.records import ReplayTable, parse_columns, read_csv, read_table
from budgetbandits.simulation.replay import fluid_reward_of, logged, replay

COLUMNS = {"request": "prompt", "arm": "model", "cost": "usd"}
TEXT = """prompt,model,reward,usd,segment
7,large,0.9,0.04,code
7,small,0.5,0.001,code
9,small,0.7,0.002,mail
9,large,1.0,0.05,mail
"""


@pytest.fixture
def path(tmp_path):
    (tmp_path / "records.csv").write_text(TEXT)
    return tmp_path / "records.csv"


def test_a_file_is_a_table_of_requests(path):
    table = ReplayTable.from_csv(path, COLUMNS)
    assert (table.arms, table.segments) == (("large", "small"), ("code", "mail"))
    assert table.rewards.tolist() == [[0.9, 0.5], [1.0, 0.7]]
    assert table.costs.tolist() == [[0.04, 0.001], [0.05, 0.002]]
    assert table.segment.tolist() == [0, 1]
    other = ReplayTable.from_csv(path, COLUMNS, arms=("small", "large"), segments=("chat", "mail"))
    assert (other.arms, other.segments) == (("small", "large"), ("chat", "mail", "code"))
    assert other.rewards.tolist() == [[0.5, 0.9], [0.7, 1.0]]
    assert other.segment.tolist() == [2, 1]


def test_a_problem_keeps_its_units(path):
    problem = Problem.from_csv(path, COLUMNS)
    assert (problem.names, problem.reward_max, problem.cost_max) == (("large", "small"), 1.0, 0.05)
    assert problem.reward_means.tolist() == pytest.approx([0.95, 0.6])
    assert (problem.cost_means * problem.cost_max).tolist() == pytest.approx([0.045, 0.0015])
    assert Problem.from_toml(problem.to_toml()) == problem
    with pytest.raises(ProblemError, match="cost_max is 0"):
        Problem.from_toml("cost_max = 0\n" + Problem.bernoulli([0.1, 0.2], [0.3, 0.4]).to_toml())


def test_frames_are_read_as_mappings_are():
    rows = {"arm": ["a", "b"], "reward": [1.0, 0.5], "cost": [0.2, 3.0]}
    assert Problem.from_table(pl.DataFrame(rows)) == Problem.from_table(rows)


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        (("7,small,0.5", "7,small,-1"), "row 2 is not a number"),
        (("7,small,0.5", "7,small,"), "row 2 is not a number"),
        (("9,large", "9,small"), "twice for one request"),
        (("0.05,mail", "0.05,code"), "different segments"),
        (("1.0,0.05,mail", "1.0"), "line 5 has 3 fields"),
        (("prompt,model", "prompt,arm"), "no column 'model' for arm"),
        ((TEXT[31:], ""), "there are no rows"),
    ],
)
def test_what_is_wrong_with_a_file_is_said_with_its_place(path, change, complaint):
    path.write_text(TEXT.replace(*change))
    with pytest.raises(ProblemError, match=complaint) as refused:
        ReplayTable.from_csv(path, COLUMNS)
    assert str(path) in str(refused.value)


def test_other_refusals(tmp_path):
    with pytest.raises(ProblemError, match="name a readable CSV file"):
        read_csv(tmp_path / "nothing.csv")
    with pytest.raises(ProblemError, match="columns=cost=COLUMN"):
        read_table({"arm": ["a"], "reward": [1]})
    with pytest.raises(ProblemError, match="columns=request=COLUMN"):
        ReplayTable.from_records(read_table({"arm": ["a"], "reward": [1], "cost": [1]}))
    for text in ("model", "model=arm", "arm=", "arm=a,arm=b"):
        with pytest.raises(BadParameter):
            parse_columns(text)


# --- features --------------------------------------------------------------------------------------------------------

SECOND = """length,prompt,code
-1.5,9,1e-3
2,7,0
3,8,1
"""


def test_features_are_in_a_second_file_in_any_order(path, tmp_path):
    """It may have more requests than the table."""
    (tmp_path / "features.csv").write_text(SECOND)
    for features in (tmp_path / "features.csv", str(tmp_path / "features.csv")):
        table = ReplayTable.from_csv(path, COLUMNS, features)
        assert table.feature_names == ("length", "code")
        assert table.features.tolist() == [[2.0, 0.0], [-1.5, 1e-3]]


def test_features_are_columns_of_the_table_or_of_a_frame(path):
    rows = pl.read_csv(path).with_columns(length=pl.Series([2.0, 2.0, -1.5, -1.5]), code=pl.Series([0, 0, 1, 1]))
    rows.write_csv(path)
    replay_table = ReplayTable.from_csv(path, COLUMNS, ["code", "length"])
    assert replay_table.feature_names == ("code", "length")
    assert replay_table.features.tolist() == [[0.0, 2.0], [1.0, -1.5]]
    second = pl.DataFrame({"prompt": [9, 7], "code": [1, 0], "length": [-1.5, 2.0]})
    joined = ReplayTable.from_records(read_table(rows, COLUMNS, second))
    assert joined.features.tolist() == replay_table.features.tolist()
    for flags in ([True, False], ["True", "False"], ["true", "false"]):
        flagged = ReplayTable.from_records(read_table(rows, COLUMNS, second.with_columns(code=pl.Series(flags))))
        assert flagged.features.tolist() == replay_table.features.tolist()
    assert joined.without_segments().features.tolist() == replay_table.features.tolist()
    without = joined.without_features()
    assert (without.feature_names, without.features.shape, without.segments) == ((), (2, 0), joined.segments)
    assert ReplayTable.from_csv(path, COLUMNS).features.shape == (2, 0)


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        (("2,7,0", "2,7,nan"), r"features: code 'nan' in row 2 is not a number between -1e\+30 and 1e\+30"),
        (("2,7,0", "2,7,-inf"), r"features: code '-inf' in row 2 is not a number between -1e\+30 and 1e\+30"),
        (("2,7,0", "2,7,1e99"), r"features: code '1e99' in row 2 is not a number between"),
        (("-1.5,9", ",9"), r"features: length '' in row 1 is not a number between -1e\+30 and 1e\+30"),
        (("2,7,0", "2,6,0"), "features: none for request '7', which row 1 of the outcomes is for"),
        (("3,8,1", "3,9,1"), "features: request '9' is in rows 1 and 3"),
        (("prompt", "query"), "features: no column 'prompt' says the request; the columns are length, query, code"),
        ((SECOND, "prompt\n7\n9\n"), "features: there is no column but 'prompt'"),
    ],
)
def test_what_is_wrong_with_a_file_of_features_is_said_with_its_row(path, tmp_path, change, complaint):
    (tmp_path / "features.csv").write_text(SECOND.replace(*change))
    with pytest.raises(ProblemError, match=complaint):
        ReplayTable.from_csv(path, COLUMNS, tmp_path / "features.csv")


def test_what_is_wrong_with_columns_of_features_is_said_with_its_row(path, tmp_path):
    rows = pl.read_csv(path).with_columns(length=pl.Series([2.0, 2.0, -1.5, -1.4])).to_dict(as_series=False)
    with pytest.raises(ProblemError, match="length in row 3 differs from another row's of that request"):
        ReplayTable.from_records(read_table(rows, COLUMNS, ["length"]))
    with pytest.raises(ProblemError, match=r"length None in row 2 is not a number between -1e\+30 and 1e\+30"):
        read_table(rows | {"length": [2.0, None, 1.0, 1.0]}, COLUMNS, ["length"])
    assert read_table(rows | {"length": [1e30, 1e30, -1e30, -1e30]}, COLUMNS, ["length"]).features.max() == 1e30
    with pytest.raises(ProblemError, match="no column 'width'; the columns are prompt, model"):
        ReplayTable.from_csv(path, COLUMNS, ["width"])
    with pytest.raises(ProblemError, match="two features have one name"):
        ReplayTable.from_records(read_table(rows | {"length": [1] * 4}, COLUMNS, ["length", "length"]))
    with pytest.raises(ProblemError, match="columns=request=COLUMN"):
        read_table({"arm": ["a"], "reward": [1], "cost": [1]}, features={"request": [1], "length": [1]})
    with pytest.raises(ProblemError, match="name a readable CSV file"):
        ReplayTable.from_csv(path, COLUMNS, tmp_path / "nothing.csv")


@pytest.mark.parametrize("features", [np.zeros((3, 1)), np.zeros((2, 2)), np.full((2, 1), np.nan)])
def test_a_table_has_finite_features_for_every_request(features):
    with pytest.raises(ProblemError, match=r"give finite numbers of shape \(2, 1\)"):
        ReplayTable(("a",), (), np.zeros((2, 1)), np.ones((2, 1)), np.zeros(2, dtype=int), ("length",), features)


# --- replays ---------------------------------------------------------------------------------------------------------


def made_up(requests=300, seed=1):
    """Two segments; the costly arm is worth its price in the second only."""
    rng = np.random.default_rng(seed)
    segment = rng.integers(2, size=requests)
    rewards = np.where(segment[:, None] == 0, [0.7, 0.75], [0.2, 0.9]) + rng.uniform(-0.1, 0.1, (requests, 2))
    costs = np.array([0.001, 0.1]) * rng.uniform(0.5, 1.5, (requests, 2))
    return ReplayTable(("small", "large"), ("easy", "hard"), rewards, costs, segment)


@pytest.mark.parametrize("name", ["bts-paced", "bts", "kube", "primal-dual-bwk", "epsilon-first"])
def test_no_policy_spends_more_than_there_is(name):
    played = replay(made_up(), parse_policy(name), 0.02, orders=2)
    assert (played.used <= 1.0).all()
    assert (played.reward > 0.2).all()


def test_segments_earn_what_they_are_worth():
    """The best mix earns 0.80 with segments and 0.69 without; a cold start takes part of it."""
    table, policy = made_up(600), parse_policy("bts-paced")
    with_them, without = (replay(records, policy, 0.05, orders=3) for records in (table, table.without_segments()))
    best, best_without = fluid_reward_of(table, 0.05), fluid_reward_of(table.without_segments(), 0.05)
    assert best > best_without + 0.1
    assert best_without < with_them.reward.min()
    assert with_them.reward.max() <= best + 0.03
    assert without.reward.max() <= best_without + 0.03
    assert with_them.used.min() > 0.95


def test_learning_before_helps():
    table, before, policy = made_up(80, 1), made_up(300, 2), parse_policy("bts-paced")
    cold, warm = (replay(table, policy, 0.05, orders=4, learn_on=history).reward.mean() for history in (None, before))
    assert warm > cold


def test_a_horizon_after_learning_counts_only_requests_that_were_answered(monkeypatch):
    """The policy counts the same: unanswered requests would make its horizon too long."""
    given = []
    monkeypatch.setattr(Learner, "set_budget", lambda self, budget: given.append(budget))
    monkeypatch.setattr(Learner, "set_horizon", lambda self, horizon: given.append(horizon))
    table, before = made_up(20, 1), made_up(50, 2)
    before.costs[:], table.costs[:], before.costs[:10] = 0.1, 0.1, np.nan
    played = replay(table, parse_policy("bts-paced"), 0.2, orders=1, learn_on=before)
    # in units of the largest cost
    assert given == pytest.approx([40 + 20 * 2, 40 + 20])
    assert played.unanswered.tolist() == [0]
    assert played.used.tolist() == pytest.approx([0.5])


def test_a_log_is_of_the_policy_that_has_learned_before():
    table, before, policy = made_up(80, 1), made_up(300, 2), parse_policy("bts-paced")
    cold, warm = (logged(table, policy, 0.05, draws=2, learn_on=history) for history in (None, before))
    assert len(warm["arm"]) <= 80
    assert sum(warm["reward"]) / 80 == pytest.approx(
        replay(table, policy, 0.05, 1, learn_on=before).reward[0], rel=0.05
    )
    assert warm["arm"] != cold["arm"]


def test_the_same_seed_gives_the_same_replay():
    one, other, third = (replay(made_up(50), parse_policy("bts-paced"), 0.05, 2, seed=seed) for seed in (3, 3, 4))
    assert one.reward.tolist() == other.reward.tolist() != third.reward.tolist()


def test_what_was_not_recorded_is_not_chosen():
    table = made_up(100)
    table.rewards[:, 1], table.costs[:, 1] = np.nan, np.nan
    table.costs[:10, 0] = np.nan
    assert replay(table, parse_policy("bts-paced"), 1.0, orders=1).unanswered.tolist() == [10]


def test_tables_with_different_arms_are_refused():
    table = made_up(10)
    other = ReplayTable(("small", "huge"), table.segments, table.rewards, table.costs, table.segment)
    with pytest.raises(BadParameter, match="huge, large"):
        replay(table, parse_policy("bts"), 1.0, 1, learn_on=other)


def run(path, *options):
    columns = "request=prompt,arm=model,cost=usd"
    return CliRunner().invoke(
        app, ["replay", str(path), "--columns", columns, "--policy", "bts-paced", "--policy", "bts",
              "--budget-per-request", "0.02", "--orders", "3", *options],
    )  # fmt: skip


def test_the_command(path):
    document = json.loads(run(path, "--json", "--learn-on", str(path)).output)
    assert [result["policy"] for result in document["results"]] == ["bts-paced", "bts"]
    first = document["results"][0]
    assert first["budget_per_request"] == 0.02
    assert 0.0 <= first["used"]["mean"] <= first["used"]["max"] <= 1.0
    assert 0.5 <= first["reward"]["mean"] <= 1.0
    assert first["reward"]["sem"] >= 0.0
    assert "does not look at segments" in run(path).output
    assert "does not look at segments" not in run(path, "--no-segments").output


@pytest.mark.parametrize(
    ("costs", "budget", "best"), [([0.0, 0.8], 0.4, 0.55), ([0.0, 0.0], 0.4, 0.9), ([0.0, 0.8], 2.0, 0.9)]
)
def test_an_arm_may_be_free(costs, budget, best):
    """A budget of half the costly arm's cost lets that arm answer every second request."""
    rewards = np.tile([0.2, 0.9], (4, 1))
    table = ReplayTable(("local", "big"), ("",), rewards, np.tile(costs, (4, 1)), np.zeros(4, dtype=int))
    assert fluid_reward_of(table, budget) == pytest.approx(best)


def test_two_columns_of_one_name_are_refused(tmp_path):
    path = tmp_path / "twice.csv"
    path.write_text("arm,reward,cost,reward\na,1,0.5,0\n")
    with pytest.raises(ProblemError, match="the header has 'reward' twice"):
        read_csv(path)


def test_the_best_mix_uses_only_what_was_recorded():
    """No request has both arms. Half of them can have the good one, whatever the money: worked by hand."""
    columns = {"request": range(10), "arm": ["good", "bad"] * 5, "reward": [0.9, 0.1] * 5, "cost": [0.5] * 10}
    table = ReplayTable.from_records(read_table(columns))
    assert fluid_reward_of(table, 1.0) == pytest.approx(0.5)
    assert replay(table, parse_policy("bts-paced"), 1.0, orders=2).reward.tolist() == pytest.approx([0.5, 0.5])
