"""Off-policy evaluation of requests with features: logs, outcome models and targets, against values known exactly."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from typer.testing import CliRunner

from budgetbandits import off_policy, parse_policy
from budgetbandits.cli import app
from budgetbandits.errors import BadParameter, ProblemError
from budgetbandits.numerics.regression import LEVEL_WEIGHT
from budgetbandits.off_policy import estimates, outcome_models
from budgetbandits.policies.linear import LinearThompson
from budgetbandits.problems.records import ReplayTable
from budgetbandits.simulation.replay import logged
from coverage_of_intervals import uncovered

DATA = Path(__file__).parents[2] / "examples/data"


def evenly(table, rng):
    """A log of arms chosen evenly, and what the table says of all arms for each of its decisions."""
    arm = rng.integers(len(table.arms), size=len(table))
    rows = np.arange(len(table))
    log = off_policy.read_log({
        "arm": [table.arms[each] for each in arm],
        "reward": table.rewards[rows, arm],
        "cost": table.costs[rows, arm],
        "propensity": [1 / len(table.arms)] * len(table),
        "segment": [table.segments[each] for each in table.segment] if table.segments else [None] * len(table),
        "features": [json.dumps(dict(zip(table.feature_names, row, strict=True))) for row in table.features.tolist()],
    })  # fmt: skip
    places = [table.arms.index(name) for name in log.arms]
    return log, table.rewards[:, places], table.costs[:, places]


def made_up(requests, seed=1):
    """The costly arm is worth its price where the feature is positive; rewards are all but linear in it."""
    rng = np.random.default_rng(seed)
    x = rng.uniform(-1.0, 1.0, requests)
    rewards = np.column_stack([0.5 - 0.4 * x, 0.5 + 0.4 * x]) + rng.uniform(-0.02, 0.02, (requests, 2))
    costs = np.column_stack([0.01 * (1.0 + 0.5 * x), 0.5 * (1.0 + 0.5 * x)])
    return ReplayTable(("small", "large"), (), rewards, costs, np.zeros(requests, dtype=int), ("x",), x[:, None])


# --- the log ---


def test_features_are_a_column_of_json_objects(tmp_path):
    cells = ['{"x": 1.5, "y": true}', '{"y": 0, "x": -2}', '{"x": 1.5, "y": 1}', ""]
    columns = {"arm": list("abab"), "reward": [1, 0, 1, None], "cost": [1.0] * 4, "propensity": [0.5] * 4}
    log = off_policy.read_log(columns | {"features": cells})
    assert log.feature_names == ("x", "y")
    assert log.features.tolist() == [[1.5, 1.0], [-2.0, 0.0], [1.5, 1.0]]
    assert log.left_out == 1  # whose features need not be there
    assert (log.situation.tolist(), len(log.situations)) == ([0, 1, 0], 2)  # requests that are alike
    assert log.aligned(log).features.tolist() == log.features.tolist()
    assert off_policy.held_still(log, parse_policy("bts-linear"), log, 1.0, draws=5).probability.shape == (2, 2)
    assert log.part(slice(1, None)).features.tolist() == [[-2.0, 0.0], [1.5, 1.0]]
    plain = log.without_features()
    assert (plain.feature_names, plain.features.shape) == ((), (3, 0))
    assert plain.situation.tolist() == [0, 0, 0]
    frame = pl.DataFrame({name: values[:3] for name, values in columns.items()})
    frame.with_columns(features=pl.Series([{"x": x, "y": 1.0} for x in (1.5, -2.0, 1.5)])).write_parquet(
        tmp_path / "log.parquet"
    )
    assert off_policy.read_log(tmp_path / "log.parquet").features.tolist() == [[1.5, 1.0], [-2.0, 1.0], [1.5, 1.0]]
    assert off_policy.read_log(columns | {"features": [None] * 4}).feature_names == ()


@pytest.mark.parametrize(
    ("cell", "complaint"),
    [
        ("", "row 2 has no features, as other rows have"),
        ("[1, 2]", "row 2: features is "),
        ("{1", "row 2: "),
        ('{"x": 1}', r"row 2 has other features than the rows before it \(y\)"),
        ('{"x": 1, "y": 2, "z": 3}', r"row 2 has other features than the rows before it \(z\)"),
        ('{"x": 1, "y": NaN}', "row 2: feature 'y' is nan"),
        ('{"x": 1, "y": Infinity}', "row 2: feature 'y' is inf"),
        ('{"x": 1, "y": null}', "row 2: feature 'y' is None"),
    ],
)
def test_features_that_cannot_be_read_are_named_with_their_row(cell, complaint):
    columns = {"arm": ["a", "b"], "reward": [1, 0], "cost": [1, 1], "propensity": [0.5, 0.5]}
    with pytest.raises(ProblemError, match=complaint):
        off_policy.read_log(columns | {"features": ['{"x": 1, "y": 2}', cell]})


def test_two_logs_are_aligned_by_the_names_of_features():
    columns = {"arm": ["a", "b"], "reward": [1, 0], "cost": [1, 1], "propensity": [0.5, 0.5]}
    one = off_policy.read_log(columns | {"features": ['{"x": 1, "y": 2}', '{"x": 3, "y": 4}']})
    other = off_policy.read_log(columns | {"features": ['{"y": 2, "x": 1}', '{"x": 3, "y": 4}']})
    assert other.feature_names == ("y", "x")
    assert other.aligned(one).features.tolist() == one.features.tolist()
    with pytest.raises(BadParameter, match=r"different features \(x, y\)"):
        one.without_features().aligned(one)
    # a policy that does not look at features needs none
    assert off_policy.held_still(one, parse_policy("bts"), one.without_features(), draws=5).probability.shape == (1, 2)
    with pytest.raises(BadParameter, match="different features"):
        off_policy.held_still(one, parse_policy("bts-linear"), one.without_features(), 1.0)


# --- outcome models ---


def test_coefficients_are_the_posterior_mean_of_all_slopes_together():
    """By the normal equations of one large system: shared slopes and the coefficients of each arm, in units of the
    arm's mean outcome, with the noise that the regression of each arm alone leaves over."""
    rng, arms, slopes = np.random.default_rng(3), 3, 2
    arm = rng.permutation(np.repeat([0, 1, 2], [60, 30, 4]))
    rows = np.column_stack([np.ones(len(arm)), rng.normal(size=(len(arm), slopes))])
    outcome = np.array([1.0, 50.0, 3.0])[arm] * (1.0 + 0.2 * rows[:, 1] + 0.1 * rng.normal(size=len(arm)))
    size = 1 + slopes
    apart, shared = (each * slopes for each in (LinearThompson().apart, LinearThompson().shared))
    unit = np.array([outcome[arm == each].mean() for each in range(arms)])
    matrix, side, precisions = np.zeros((slopes + arms * size,) * 2), np.zeros(slopes + arms * size), []
    for each in range(arms):
        z, y = rows[arm == each], outcome[arm == each] / unit[each]
        prior = np.diag([LEVEL_WEIGHT, apart, apart])
        alone = np.linalg.solve(z.T @ z + prior, z.T @ y + [LEVEL_WEIGHT, 0, 0])
        # the mean square of what is left over, with two outcomes of 0 and 2 that the level begins with
        left = ((y - z @ alone) ** 2).sum() + alone[1:] @ alone[1:] * apart
        left += LEVEL_WEIGHT * ((alone[0] - 1.0) ** 2 + 1.0)
        precision = (len(y) + LEVEL_WEIGHT) / left
        at = slice(slopes + each * size, slopes + (each + 1) * size)
        matrix[at, at] += precision * (z.T @ z + prior)
        side[at] += precision * (z.T @ y + [LEVEL_WEIGHT, 0, 0])
        link = np.zeros((size, slopes))
        link[1:] = np.eye(slopes)
        matrix[at, :slopes] -= precision * apart * link
        matrix[:slopes, at] -= precision * apart * link.T
        matrix[:slopes, :slopes] += precision * apart * np.eye(slopes)
        precisions.append(precision)
    matrix[:slopes, :slopes] += shared * np.mean(precisions) * np.eye(slopes)
    exact = np.linalg.solve(matrix, side)[slopes:].reshape(arms, size) * unit[:, None]
    assert outcome_models.coefficients(rows, arm, outcome, arms) == pytest.approx(exact, rel=1e-8)


def test_an_arm_without_outcomes_is_guessed_by_the_others():
    rows = np.array([[1.0, -1.0], [1.0, 1.0]] * 500)
    found = outcome_models.coefficients(rows, np.zeros(1000, dtype=int), 3.0 + rows[:, 1], arms=2)
    assert found[0] == pytest.approx([3.0, 1.0], rel=0.01)
    assert found[1] == pytest.approx([3.0, 1.0], rel=0.2)
    assert outcome_models.coefficients(rows, np.zeros(1000, dtype=int), np.zeros(1000), 2)[0] == pytest.approx(
        [0, 0], abs=0.01
    )


def test_no_outcome_is_used_to_guess_itself():
    log, _, _ = evenly(made_up(50), np.random.default_rng(1))
    before = outcome_models.guesses(log, log.reward)
    other = log.reward.copy()
    other[7] = 0.9 * other[7]
    after = outcome_models.guesses(log, other)
    same = np.arange(50) % 5 == 2
    assert (before[same] == after[same]).all()
    assert (before[~same] != after[~same]).any()


def test_large_numbers_that_differ_by_little_are_features_all_the_same():
    table, log = made_up(100), evenly(made_up(100), np.random.default_rng(3))[0]
    late = replace(table, features=table.features + 1e9)
    moved = outcome_models.request_rows(evenly(late, np.random.default_rng(3))[0])
    assert moved == pytest.approx(outcome_models.request_rows(log), abs=1e-5)


def test_segments_are_columns_of_the_regression():
    """Without them nothing tells the requests apart: the feature is a constant, which counts for nothing."""
    rng, n = np.random.default_rng(2), 2000
    segment = rng.integers(2, size=n)
    table = ReplayTable(
        ("a",),
        ("x", "y"),
        np.where(segment, 0.9, 0.1)[:, None],
        np.ones((n, 1)),
        segment,
        ("same",),
        np.full((n, 1), 4.0),
    )
    log, rewards, _ = evenly(table, rng)
    assert outcome_models.guesses(log, log.reward) == pytest.approx(rewards, abs=0.1)


# --- estimates ---


def test_estimates_by_enumeration():
    """A log that has each request and choice as often as it is likely, in each fold. The target chooses by the feature,
    so no mean of segments and arms knows its value; the weighted estimates are exact whatever the guess."""
    rows = [(x, arm) for x in (-1.0, 0.0, 2.0) for arm in "ab" for _ in range(5)] * 100
    reward = {"a": {-1.0: 0.1, 0.0: 0.3, 2.0: 0.9}, "b": {-1.0: 0.8, 0.0: 0.4, 2.0: 0.2}}
    log = off_policy.read_log({
        "arm": [arm for _, arm in rows], "reward": [reward[arm][x] for x, arm in rows],
        "cost": [0.2 if arm == "a" else 0.4 for _, arm in rows], "propensity": [0.5] * len(rows),
        "features": [json.dumps({"x": x}) for x, _ in rows],
    })  # fmt: skip
    assert len(log.situations) == 3
    chances = np.array([[1.0, 0.0] if each.features[0] > 0.0 else [0.25, 0.75] for each in log.situations])
    found = off_policy.evaluate(log, off_policy.Target("by feature", chances))
    true = ((0.25 * 0.1 + 0.75 * 0.8) + (0.25 * 0.3 + 0.75 * 0.4) + 0.9) / 3
    cost = (2 * (0.25 * 0.2 + 0.75 * 0.4) + 0.2) / 3
    for value, truth in ((found.reward, true), (found.cost, cost)):
        assert value.inverse_propensity.value == pytest.approx(truth)
        assert value.doubly_robust.value == pytest.approx(truth)
        assert value.direct == pytest.approx(truth, rel=0.05)
    assert found.reward.direct != pytest.approx(true, rel=1e-6)  # slopes are drawn towards 0
    plain = off_policy.evaluate(log.without_features(), off_policy.Target("same", chances, None, log.situation))
    assert plain.reward.doubly_robust.value == pytest.approx(true)
    assert abs(plain.reward.direct - true) > 0.1


def test_features_make_estimates_narrower():
    log, rewards, costs = evenly(made_up(1000), np.random.default_rng(1))
    for arm in range(2):
        found = [
            off_policy.evaluate(each, off_policy.one_arm(each, log.arms[arm])) for each in (log, log.without_features())
        ]
        for value, plain, true in zip(
            (found[0].reward, found[0].cost), (found[1].reward, found[1].cost), (rewards, costs), strict=True
        ):
            assert value.doubly_robust.low < true[:, arm].mean() < value.doubly_robust.high
            assert value.direct == pytest.approx(true[:, arm].mean(), rel=0.02)
            # what is left is the spread of requests themselves, which no guess takes away
            assert value.doubly_robust.error < 1.1 * true[:, arm].std() / len(log) ** 0.5
            assert plain.doubly_robust.error > 1.3 * value.doubly_robust.error


@pytest.mark.deep
def test_intervals_cover_what_they_promise():
    """Of 250 logs with other requests each; of eight shares one is a false alarm in about 1 of 1,250 runs with other
    seeds. The means of rewards are 0.5, and those of costs 0.01 and 0.5."""
    logs = [evenly(made_up(300, seed), np.random.default_rng([1, seed]))[0] for seed in range(250)]
    truths = {"small": (0.5, 0.01), "large": (0.5, 0.5)}
    assert uncovered(logs, truths, ("doubly_robust", "self_normalised")) == {}


def test_choices_that_are_never_made_for_some_features_are_noticed():
    """The log has always the large arm for x above 0.8: the weights of always small know nothing of these requests. Of
    100 logs that choose evenly one raises a false alarm in 1 of 160 runs with other seeds."""
    rng, table = np.random.default_rng(4), made_up(2000)
    x, rows = table.features[:, 0], np.arange(2000)
    large = np.where(x > 0.8, True, rng.random(2000) < 0.5)
    log = off_policy.read_log({
        "arm": [table.arms[int(each)] for each in large], "reward": table.rewards[rows, large.astype(int)],
        "cost": table.costs[rows, large.astype(int)], "propensity": np.where(x > 0.8, 1.0, 0.5),
        "features": [json.dumps({"x": each}) for each in x.tolist()],
    })  # fmt: skip
    assert "with some values of x" in off_policy.evaluate(log, off_policy.one_arm(log, "small")).problem
    assert off_policy.evaluate(log, off_policy.one_arm(log, "large")).problem == ""
    plain = log.without_features()
    assert off_policy.evaluate(plain, off_policy.one_arm(plain, "small")).problem == ""  # nothing tells
    for seed in range(100):
        even, _, _ = evenly(made_up(250, seed), np.random.default_rng(seed))
        assert off_policy.evaluate(even, off_policy.one_arm(even, "small")).problem == ""


def test_a_policy_held_still_chooses_by_features():
    before, here = (evenly(made_up(n, n), np.random.default_rng(n))[0] for n in (400, 150))
    target = off_policy.held_still(here, parse_policy("bts-linear"), before, 0.26, draws=20)
    chances = target.probability[target.rows(here)][:, here.arms.index("large")]
    x = here.features[:, 0]
    assert chances[x > 0.3].mean() > 0.9
    assert chances[x < -0.3].mean() < 0.1
    assert target.draws == 20
    again = off_policy.held_still(here, parse_policy("bts-linear"), before, 0.26, draws=20)
    assert (again.probability == target.probability).all()


def test_a_policy_that_does_not_look_at_features_is_counted_once_for_all(monkeypatch):
    """As on the same log without them: same probabilities, same estimate of the noise of counting."""
    log, _, _ = evenly(made_up(300), np.random.default_rng(1))
    plain = log.without_features()
    target, same = (off_policy.held_still(each, parse_policy("bts"), each, draws=50) for each in (log, plain))
    assert target.probability.tolist() == same.probability.tolist()
    monkeypatch.setattr(estimates, "guesses", lambda log, outcome: np.tile([1.0, 0.2], (len(log), 1)))
    for value in ("reward", "cost"):
        assert getattr(off_policy.evaluate(log, target), value) == getattr(off_policy.evaluate(plain, same), value)


@pytest.fixture(scope="module")
def recorded():
    """Recorded answers of language models: to learn from, and to evaluate on."""
    columns = {"request": "prompt", "arm": "model", "cost": "cost_usd", "segment": "source"}
    first = ReplayTable.from_csv(DATA / "llm-routing-online.csv", columns, DATA / "llm-routing-online-features.csv")
    known = {"arms": first.arms, "segments": first.segments}
    path = DATA / "llm-routing-test.csv"
    return first, ReplayTable.from_csv(path, columns, DATA / "llm-routing-test-features.csv", **known)


def test_recorded_answers_say_what_a_policy_would_have_earned(recorded):
    """A policy held still is a mix of arms for each prompt, whose value the records say. Each of four estimates is
    four standard errors away in 1 of 16,000 runs with other seeds."""
    online, test = (table.without_segments() for table in recorded)
    rng = np.random.default_rng(5)
    before, _, _ = evenly(online, rng)
    log, rewards, costs = evenly(test, rng)
    log, rewards, costs = log.part(slice(400)), rewards[:400], costs[:400]
    target = off_policy.held_still(log, parse_policy("bts-linear"), before, 2.3e-4, draws=10)
    chances = target.probability[target.rows(log)]
    assert np.unique(chances.argmax(axis=1)).size > 1
    found = off_policy.evaluate(log, target)
    arm = np.asarray(log.arm)
    for value, outcomes, seen in ((found.reward, rewards, log.reward), (found.cost, costs, log.cost)):
        true = (chances * outcomes).sum(axis=1).mean()
        for each in (value.doubly_robust, value.self_normalised):
            assert each.value == pytest.approx(true, abs=4.0 * each.error)
        if value is found.reward:
            assert value.direct == pytest.approx(true, rel=0.02)
            continue
        # costs follow the prompts: what features explain is most of what the means of the arms leave over
        means = np.array([seen[arm == each].mean() for each in range(chances.shape[1])])
        assert abs(value.direct - true) < 0.6 * abs((chances @ means).mean() - true)


def test_a_log_of_a_replay_is_a_log_for_an_evaluation(recorded):
    _, test = recorded
    requests = list(range(60))
    log = off_policy.read_log(logged(test, parse_policy("bts-linear"), 0.1, 20, 1, requests))
    assert log.feature_names == test.feature_names
    assert log.features.tolist() == test.features[:60].tolist()
    assert [log.segments[each] for each in log.segment] == [test.segments[each] for each in test.segment[:60]]


def test_the_command(tmp_path):
    table = made_up(250)
    lines = ["request,arm,reward,cost,x"]
    for n in range(250):
        lines += [f"{n},{arm},{table.rewards[n, a]},{table.costs[n, a]},{table.features[n, 0]}"
                  for a, arm in enumerate(table.arms)]  # fmt: skip
    (tmp_path / "table.csv").write_text("\n".join(lines))
    log = str(tmp_path / "log.csv")
    made = CliRunner().invoke(app, ["replay", str(tmp_path / "table.csv"), "--features", "x", "--policy", "bts-linear",
                                    "--budget-per-request", "0.2", "--orders", "1", "--log", log])  # fmt: skip
    assert made.exit_code == 0, made.exception
    words = ["evaluate", log, "--arm", "small"]
    policy = ["--policy", "bts-linear", "--budget-per-request", "0.2"]
    found = CliRunner().invoke(app, [*words, *policy, "--draws", "10", "--json"])
    assert found.exit_code == 0, found.exception
    document = json.loads(found.output)
    assert document["features"] == ["x"]
    small, policy = document["results"]
    assert (small["draws"], policy["draws"]) == (None, 10)
    assert policy["problem"] is None
    assert policy["reward"]["direct"] == pytest.approx(policy["reward"]["doubly_robust"]["value"], abs=0.05)
    assert " decisions, 1 feature" in CliRunner().invoke(app, words).output
