"""Replays of recorded requests with features. Those without are in tests/problems/test_records.py."""

import json
from dataclasses import replace

import numpy as np
import pytest
from scipy.optimize import linprog
from typer.testing import CliRunner

from budgetbandits import parse_policy
from budgetbandits.cli import app
from budgetbandits.errors import BadParameter
from budgetbandits.policies.linear import LinearThompson
from budgetbandits.problems.records import ReplayTable
from budgetbandits.simulation.replay import fluid_reward_of, hindsight_reward_of, logged, replay


def made_up(requests=300, seed=1, segments=("", "")):
    """The first feature says whether the costly arm is worth its price; the second says nothing."""
    rng = np.random.default_rng(seed)
    features = rng.normal(size=(requests, 2))
    worth = features[:, 0] > 0.0
    rewards = np.where(worth[:, None], [0.2, 0.9], [0.7, 0.7]) + rng.uniform(-0.1, 0.1, (requests, 2))
    costs = np.array([0.001, 0.1]) * rng.uniform(0.5, 1.5, (requests, 2))
    segment = rng.integers(len(set(segments)), size=requests)
    names = segments if len(set(segments)) > 1 else ()
    return ReplayTable(("small", "large"), names, rewards, costs, segment, ("worth", "noise"), features)


def test_features_earn_what_they_are_worth():
    """No mix that is the same for all requests earns more than 0.62; who knows all outcomes earns 0.81."""
    table, policy = made_up(400), parse_policy("bts-linear")
    best = fluid_reward_of(table, 0.05)
    with_them, without = (replay(each, policy, 0.05, orders=2) for each in (table, table.without_features()))
    assert with_them.reward.min() > best + 0.05
    assert without.reward.max() < best + 0.02
    assert with_them.reward.max() < hindsight_reward_of(table, 0.05)
    assert max(with_them.used.max(), without.used.max()) <= 1.0


def test_a_policy_sees_the_features_and_the_segment_of_each_request(monkeypatch):
    """Of the request at hand, and of each table in turn."""
    seen = []

    def choose(self, state, rng, request):
        seen.append((state.known.features, request.segment, *request.features))
        return 0

    monkeypatch.setattr(LinearThompson, "choose", choose)
    table, before = (made_up(20, seed, ("mail", "code")) for seed in (1, 2))
    replay(table, parse_policy("bts-linear"), 1.0, orders=1, learn_on=before)
    for requests, each in ((seen[:20], before), (seen[20:], table)):
        rows = zip([2] * 20, each.segment.tolist(), *each.features.T.tolist(), strict=True)
        assert sorted(requests) == sorted(rows)


@pytest.mark.parametrize("name", ["bts-paced", "bts"])
def test_other_policies_play_as_if_there_were_no_features(name):
    table, policy = made_up(60), parse_policy(name)
    one, other = (replay(each, policy, 0.05, orders=2) for each in (table, table.without_features()))
    assert one.reward.tolist() == other.reward.tolist()


def test_tables_with_different_features_are_refused():
    table = made_up(20)
    for other, complaint in (
        (table.without_features(), "noise, worth"),
        (replace(table, feature_names=("worth", "size")), "noise, size"),
        (replace(table, feature_names=("noise", "worth")), "in another order"),
    ):
        with pytest.raises(BadParameter, match=complaint):
            replay(table, parse_policy("bts-linear"), 1.0, 1, learn_on=other)


def test_a_log_has_the_segment_and_the_features_of_each_request():
    """Whether the policy looks at them or not."""
    table = made_up(30, 1, ("mail", "code"))
    known = {tuple(row): table.segments[each] for row, each in zip(table.features, table.segment, strict=True)}
    for name in ("bts-linear", "bts"):
        log = logged(table, parse_policy(name), 1.0, draws=2)
        features = [json.loads(cell) for cell in log["features"]]
        assert [list(each) for each in features] == [["worth", "noise"]] * 30
        assert [known[tuple(each.values())] for each in features] == log["segment"]
        assert len({tuple(each.values()) for each in features}) == 30
    assert logged(table.without_features(), parse_policy("bts"), 1.0, draws=2)["features"] == [None] * 30


# --- what could have been earned ---


def by_linear_programming(table, rate):
    """The same program as a matrix, solved by another method; every request is answered."""
    recorded = ~np.isnan(table.costs)
    request, _ = np.nonzero(recorded)
    each = (request == np.arange(len(table))[:, None]).astype(float)
    solved = linprog(
        -table.rewards[recorded] / len(table),
        A_ub=table.costs[recorded][None] / len(table), b_ub=[rate], A_eq=each, b_eq=np.ones(len(table)),
    )  # fmt: skip
    return -solved.fun


@pytest.mark.parametrize("rate", [0.02, 0.05, 0.08, 1.0])
def test_hindsight_is_the_optimum_of_the_linear_program(rate):
    table = made_up(40)
    table.rewards[5:15, 1], table.costs[5:15, 1] = np.nan, np.nan  # not recorded: no money buys it
    assert hindsight_reward_of(table, rate) == pytest.approx(by_linear_programming(table, rate), rel=1e-9)


def test_hindsight_by_hand():
    """Two requests with 0.6 for both: the upgrade of the first pays 0.8 for each unit of money, that of the second 0.1.
    What is left after two cheap answers buys half of the first. Free arms cost nothing."""
    rewards, costs = np.array([[0.2, 1.0], [0.5, 0.6]]), np.array([[0.05, 1.05], [0.05, 1.05]])
    table = ReplayTable(("small", "large"), (), rewards, costs, np.zeros(2, dtype=int))
    assert hindsight_reward_of(table, 0.3) == pytest.approx((0.2 + 0.5 * 0.8 + 0.5) / 2)
    assert hindsight_reward_of(table, 9.0) == pytest.approx(0.8)
    # too little for all requests: the best ratio of what all earn to what they cost, as long as the money lasts
    assert hindsight_reward_of(table, 0.01) == pytest.approx(0.7 * 0.01 / 0.1)
    free = replace(table, costs=np.array([[0.0, 1.0], [0.0, 1.0]]))
    assert hindsight_reward_of(free, 0.25) == pytest.approx((0.2 + 0.5 * 0.8 + 0.5) / 2)
    assert hindsight_reward_of(free, 0.25) > fluid_reward_of(free, 0.25) == pytest.approx(0.35 + 0.25 * 0.45)


# --- the command ---


def run(folder, *options, policies=("bts-linear", "bts-paced")):
    table = made_up(30)
    rows = [f"{n},{arm},{table.rewards[n, a]},{table.costs[n, a]},{table.features[n, 0]}"
            for n in range(30) for a, arm in enumerate(table.arms)]  # fmt: skip
    (folder / "table.csv").write_text("\n".join(["id,arm,reward,cost,worth", *rows]))
    second = [f"{n},{table.features[n, 0]}" for n in range(30)]
    (folder / "features.csv").write_text("\n".join(["id,worth", *second]))
    named = [word for name in policies for word in ("--policy", name)]
    base = ["replay", str(folder / "table.csv"), "--columns", "request=id", *named]
    return CliRunner().invoke(app, [*base, "--budget-per-request", "0.05", "--orders", "2", *options])


def test_the_command_reads_features_from_a_file_or_from_columns(tmp_path):
    second = str(tmp_path / "features.csv")
    learned = ["--learn-on", str(tmp_path / "table.csv")]
    for first, other in (
        (["--features", second], ["--features", "worth"]),
        (["--features", second, *learned, "--learn-on-features", second], ["--features", "worth", *learned]),
    ):
        documents = [json.loads(run(tmp_path, *options, "--json").output) for options in (first, other)]
        assert documents[0] == documents[1]
        assert documents[0]["features"] == ["worth"]
        best = [each["hindsight_reward"] for each in documents[0]["results"]]
        assert best == [hindsight_reward_of(made_up(30), 0.05)] * 2
    shown = run(tmp_path, "--features", "worth").output
    assert "1 feature" in shown
    assert "hindsight" in shown
    assert "paced BTS†" in shown
    assert "does not look at features" not in run(tmp_path).output


def test_the_command_says_which_options_go_together(tmp_path):
    second, table = str(tmp_path / "features.csv"), str(tmp_path / "table.csv")
    for options, complaint in (
        (["--features", second, "--learn-on", table], "say --learn-on-features"),
        (["--learn-on-features", second], "is for --learn-on with --features"),
        (["--features", "worth", "--learn-on", table, "--learn-on-features", second], "is for --learn-on with"),
    ):
        with pytest.raises(BadParameter, match=complaint):
            raise run(tmp_path, *options).exception
    with pytest.raises(BadParameter, match="none of these policies looks at features"):
        raise run(tmp_path, "--features", second, policies=["bts"]).exception
