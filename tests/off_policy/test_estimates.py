"""Off-policy estimates against exact values: by enumeration of all that could have been chosen, and their coverage."""

import itertools
import json

import numpy as np
import pytest
from scipy import stats
from typer.testing import CliRunner

from budgetbandits import Allocation, off_policy, parse_policy
from budgetbandits.cli import app
from budgetbandits.errors import BadParameter, MissingKnowledge, ProblemError, UnknownArm
from budgetbandits.off_policy import estimates, targets
from coverage_of_intervals import uncovered

LONG = 400
"""Decisions, of which every target of a test has enough."""


def columns(chosen, rewards, costs, propensities, **more):
    return {"arm": chosen, "reward": rewards, "cost": costs, "propensity": propensities} | more


def random_log(rng, n=LONG, segments=("x", "y")):
    """Two arms, chosen by chances that depend on what came before, as a learning policy's do."""
    arms, rewards, costs, chances, segment = [], [], [], [], []
    good = 1.0
    for _ in range(n):
        place = int(rng.integers(len(segments)))
        p = 0.3 + 0.4 * good / (len(arms) + 2)
        arm = int(rng.random() < p)
        reward = float(rng.random() < (0.3, 0.6)[arm] + 0.2 * place)
        good += reward * arm
        arms.append("ab"[arm])
        rewards.append(reward)
        costs.append((0.2 + 0.4 * arm) * rng.random())
        chances.append(p if arm else 1 - p)
        segment.append(segments[place])
    return off_policy.read_log(columns(arms, rewards, costs, chances, segment=segment))


def test_weights_are_right_where_arms_rest():
    """In each of ten games an arm is down for a while, and is missing from most asks that follow. The mean weight of a
    target is the share of requests that it can answer: within four standard errors, a false alarm in 16,000 runs for
    each of two."""
    rng = np.random.default_rng(1)
    log = {name: [] for name in ("arm", "reward", "cost", "propensity", "arms", "failed")}
    for game, request in itertools.product(range(10), range(90)):
        if request == 0:
            spend = Allocation("bts", ["a", "b"], 1e4, seed=game, propensity_draws=60)
        ask = spend.ask()
        failed = ask.arm == "a" and 10 <= request < 80
        reward, cost = float(rng.random() < 0.5), 0.5
        spend.tell(ask, failed=True) if failed else spend.tell(ask, reward=reward, cost=cost)
        could = "" if ask.arms is None else json.dumps(ask.arms)
        for name, value in zip(log, (ask.arm, reward, cost, ask.propensity, could, int(failed)), strict=True):
            log[name].append(None if failed and name in ("reward", "cost") else value)
    read = off_policy.read_log(log)
    for target in (off_policy.even(read), off_policy.one_arm(read, "a")):
        found = off_policy.evaluate(read, target)
        assert found.weight.value == pytest.approx(1.0 - found.unanswered, abs=4.0 * found.weight.error)
    assert 0.2 < found.unanswered < 0.8  # cooling down
    all_said = off_policy.read_log(log | {"arms": [""] * 900})  # as if all arms had always been there
    wrong = off_policy.evaluate(all_said, off_policy.even(all_said)).weight
    assert abs(wrong.value - 1.0) > 4.0 * wrong.error


TRUE = {"a": (0.4, 0.1), "b": (0.7, 0.3)}
"""The mean reward and cost of each arm in `random_log`."""


def test_estimates_are_unbiased_whatever_was_chosen(monkeypatch):
    """All 2⁴ courses of a log whose propensities depend on what was chosen before, each by its probability. A guess
    that is fixed leaves doubly robust estimates unbiased, however wrong it is."""
    monkeypatch.setattr(estimates, "EFFECTIVE_MIN", 0.0)
    monkeypatch.setattr(estimates, "FEW_CHOICES", 0)
    guess = {"a": 3.0, "b": -1.0}
    monkeypatch.setattr(estimates, "guesses", lambda log, outcome: np.array([[guess[arm] for arm in log.arms]] * 4))
    rewards = {"a": [0.1, 0.9, 0.3, 0.5], "b": [0.8, 0.2, 0.6, 1.0]}
    shares = {"a": 0.3, "b": 0.7}
    true = np.mean([shares["a"] * a + shares["b"] * b for a, b in zip(*rewards.values(), strict=True)])
    inverse = robust = total = 0.0
    for course in itertools.product("ab", repeat=4):
        chance, chances = 1.0, []
        for n, arm in enumerate(course):
            p_b = 0.25 + 0.5 * course[:n].count("b") / 4  # more of b makes more of b
            chances.append(p_b if arm == "b" else 1 - p_b)
            chance *= chances[-1]
        outcomes = [rewards[arm][n] for n, arm in enumerate(course)]
        everything = [json.dumps(["a", "b"])] * 4
        log = off_policy.read_log(columns(course, outcomes, outcomes, chances, arms=everything))
        found = off_policy.evaluate(log, off_policy.mix(log, shares))
        inverse += chance * found.reward.inverse_propensity.value
        robust += chance * found.reward.doubly_robust.value
        total += chance
    assert total == pytest.approx(1.0)
    assert inverse == pytest.approx(true, rel=1e-12)
    assert robust == pytest.approx(true, rel=1e-12)


def test_each_estimate_by_hand(monkeypatch):
    """Of w = 0, 2, 4, 0 and y = ·, 1, 0.5, ·: the mean of wy is 1, and over the mean of w, 1.5, it is 2/3."""
    monkeypatch.setattr(estimates, "EFFECTIVE_MIN", 0.0)
    monkeypatch.setattr(estimates, "FEW_CHOICES", 0)
    log = off_policy.read_log(columns("abba", [0.2, 1.0, 0.5, 0.4], [1.0] * 4, [0.5, 0.5, 0.25, 0.8]))
    found = off_policy.evaluate(log, off_policy.one_arm(log, "b"))
    assert found.effective == pytest.approx(36 / 20)
    assert found.weight.value == pytest.approx(1.5)
    assert found.reward.inverse_propensity.value == pytest.approx(1.0)
    assert found.reward.inverse_propensity.error == pytest.approx(np.std([0, 2, 2, 0], ddof=1) / 2)
    ends = found.reward.inverse_propensity.low, found.reward.inverse_propensity.high
    once_more = [np.std([0, 2, 2, 0, extreme], ddof=1) / 5**0.5 for extreme in (0, 2)]
    assert ends == pytest.approx((0.8 - 1.96 * once_more[0], 1.2 + 1.96 * once_more[1]), abs=1e-4)
    assert found.reward.self_normalised.value == pytest.approx(2 / 3)
    # guesses of b, without the decision itself: those of the arm with one outcome as of all arms; and with one more as
    # of the arm
    arm_state = [(1.5 + 1.9 / 3) / 3, (0.5 + 1.1 / 3) / 2, (1.0 + 1.6 / 3) / 2, (1.5 + 1.7 / 3) / 3]
    guesses = [(1.5 + arm_state[0]) / 3, (0.5 + arm_state[1]) / 2, (1.0 + arm_state[2]) / 2, (1.5 + arm_state[3]) / 3]
    terms = [guesses[0], guesses[1] + 2 * (1.0 - guesses[1]), guesses[2] + 4 * (0.5 - guesses[2]), guesses[3]]
    assert found.reward.doubly_robust.value == pytest.approx(np.mean(terms))
    more = np.array(terms) - [0.2, 1.0, 0.5, 0.4]
    assert found.reward.more.value == pytest.approx(more.mean())
    assert found.reward.more.error == pytest.approx(more.std(ddof=1) / 2)


@pytest.mark.deep
def test_intervals_cover_what_they_promise():
    """Of 250 logs, each of 400 decisions of a policy that learns; of twelve shares, one is a false alarm in about 1 of
    800 runs with other seeds."""
    rng = np.random.default_rng(11)
    assert uncovered([random_log(rng) for _ in range(250)], TRUE) == {}


RARE = 4 / 1824
"""Share of the costs of `with_rare_outliers` that are far above the others; as of recorded answers of a model."""


def with_rare_outliers(rng, shape):
    return np.where(rng.random(shape) < RARE, 41.7, rng.gamma(3.2, 0.86, shape))


@pytest.mark.parametrize(
    ("draw", "true", "n", "share"),
    [
        (lambda rng, shape: rng.lognormal(sigma=1.5, size=shape), np.exp(1.125), 300, 0.945),
        (lambda rng, shape: -rng.lognormal(size=shape), -np.exp(0.5), 100, 0.957),
        (with_rare_outliers, 41.7 * RARE + 3.2 * 0.86 * (1 - RARE), 100, 0.954),
    ],
    ids=["lognormal", "negative lognormal", "rare outliers"],
)
def test_intervals_of_skewed_terms_cover(draw, true, n, share):
    """Of 2,000 samples. They cover these shares, by 40,000 other samples; a count outside of what a share makes 99.9 %
    likely is a false alarm in 1 of 1,000 runs with another seed. Of normal intervals 88.8, 91.1 and 91.0 % cover."""
    runs = 2000
    found = [estimates.mean_of(terms) for terms in draw(np.random.default_rng(21), (runs, n))]
    hits = sum(each.low <= true <= each.high for each in found)
    low, high = stats.binom.ppf([0.0005, 0.9995], runs, share)
    assert low <= hits <= high


def test_terms_that_are_all_alike_have_an_interval_of_no_width():
    for value in (0.1, 1 / 3, 0.7):
        found = estimates.mean_of(np.full(997, value))
        assert found.low <= found.value <= found.high
        assert found.high - found.low == pytest.approx(0.0, abs=1e-12)


def test_segments_and_arms_that_could_not_be_chosen():
    log = random_log(np.random.default_rng(3))
    half = [json.dumps(["a"]) if row % 2 else None for row in range(LONG)]
    arms = ["a" if row % 2 else log.arms[arm] for row, arm in enumerate(log.arm)]
    chances = [1.0 if row % 2 else each for row, each in enumerate(log.propensity)]
    seen = off_policy.read_log(columns(arms, log.reward, log.cost, chances, arms=half))
    assert len(seen.situations) == 2
    found = off_policy.evaluate(seen, off_policy.one_arm(seen, "b"))
    assert found.unanswered == 0.5  # which bring and cost nothing
    assert found.weight.value == pytest.approx(0.5, abs=0.15)
    assert off_policy.evaluate(seen, off_policy.even(seen)).unanswered == 0.0
    none = off_policy.read_log(columns(arms, log.reward, log.cost, chances, segment=[None] * LONG))
    assert none.segments == ()


def offered_half(rng, n):
    """Requests of two situations: in half of them only arm a is on offer, which brings 0.2 then and 0.6 otherwise; b
    brings 0.9. What can be chosen between is chosen evenly."""
    both = rng.random(n) < 0.5
    b = both & (rng.random(n) < 0.5)
    means = np.where(b, 0.9, np.where(both, 0.6, 0.2))
    return columns(
        np.where(b, "b", "a").tolist(), (rng.random(n) < means).astype(float).tolist(), np.where(b, 0.4, 0.1).tolist(),
        np.where(both, 0.5, 1.0).tolist(), arms=[json.dumps(["a", "b"] if each else ["a"]) for each in both],
    )  # fmt: skip


def test_requests_that_the_target_cannot_answer_bring_nothing():
    """By enumeration: a log that has each situation, choice and outcome as often as it is likely. Of always b, half of
    the requests stay unanswered and the others bring 0.9 for 0.4; a mix gives what b cannot have to a."""
    rows = []
    for arms, arm, propensity, mean, cost, times in (
        (["a", "b"], "a", 0.5, 0.6, 0.1, 50), (["a", "b"], "b", 0.5, 0.9, 0.4, 50), (["a"], "a", 1.0, 0.2, 0.1, 100),
    ):  # fmt: skip
        for outcome, share in ((1.0, mean), (0.0, 1.0 - mean)):
            rows += [(arm, outcome, cost, propensity, json.dumps(arms))] * (6 * round(share * times))
    log = off_policy.read_log(
        dict(zip(("arm", "reward", "cost", "propensity", "arms"), zip(*rows, strict=True), strict=True))
    )
    for target, reward, cost in (
        (off_policy.one_arm(log, "b"), 0.45, 0.2),
        (off_policy.one_arm(log, "a"), 0.4, 0.1),
        (off_policy.mix(log, {"a": 1, "b": 3}), 0.5 * (0.25 * 0.6 + 0.75 * 0.9) + 0.5 * 0.2, 0.5 * 0.325 + 0.05),
    ):
        found = off_policy.evaluate(log, target)
        for value, truth in ((found.reward, reward), (found.cost, cost)):
            assert value.self_normalised.value == pytest.approx(truth)
            assert value.inverse_propensity.value == pytest.approx(truth)
    assert off_policy.evaluate(log, off_policy.one_arm(log, "b")).unanswered == 0.5


@pytest.mark.deep
def test_intervals_cover_where_the_target_cannot_answer():
    """Of 200 logs; each of six shares is a false alarm in 1 of 10,000."""
    rng = np.random.default_rng(12)
    logs = [off_policy.read_log(offered_half(rng, 600)) for _ in range(200)]
    assert uncovered(logs, {"b": (0.45, 0.2)}) == {}


def test_a_failure_has_brought_nothing():
    given = columns(["a", "b", "b"], [1.0, None, None], [0.2, None, 0.4], [0.5, 0.5, 0.5], failed=[0, 1, "true"])
    log = off_policy.read_log(given)
    assert (log.reward.tolist(), log.cost.tolist(), log.left_out) == ([1.0, 0.0, 0.0], [0.2, 0.0, 0.4], 0)
    assert off_policy.read_log(given | {"failed": [0, 0, 0]}).left_out == 2


def test_too_little_overlap_is_said():
    rng = np.random.default_rng(4)
    n = 1000
    arms = ["a"] * (n - 3) + ["b"] * 3
    log = off_policy.read_log(columns(arms, rng.random(n), rng.random(n), [0.98] * (n - 3) + [0.02] * 3))
    found = off_policy.evaluate(log, off_policy.one_arm(log, "b"))
    assert "too little overlap: 1,000 decisions say as much of it as 3 of its own" in found.problem
    assert found.reward is None
    assert found.cost is None
    # a hundredth of its choices are of an arm that could bring all that noise could, and more
    found = off_policy.evaluate(log, off_policy.mix(log, {"a": 0.97, "b": 0.03}))
    assert "fewer than 10 of the choices that are 3.00% of its own, such as b" in found.problem
    assert off_policy.evaluate(log, off_policy.one_arm(log, "a")).problem == ""
    unheard = columns(["a"] * n, rng.random(n), rng.random(n), [0.98] * n, arms=[json.dumps(["a", "b"])] * n)
    unheard = off_policy.read_log(unheard)
    found = off_policy.evaluate(unheard, off_policy.mix(unheard, {"a": 0.9999, "b": 0.0001}))
    assert "such as b" in found.problem  # nobody knows how dear it is


def test_a_policy_is_held_still_with_what_it_has_learned():
    log = random_log(np.random.default_rng(5))
    before, here = log.part(slice(200)), log.part(slice(200, None))
    target = off_policy.held_still(here, parse_policy("bts-paced"), before, 0.15, draws=2000)
    assert target.probability.sum(axis=1) == pytest.approx(np.ones(2))
    rich = off_policy.held_still(here, parse_policy("bts-paced"), before, 0.5, draws=2000)
    b = here.arms.index("b")
    assert (rich.probability[:, b] > 0.9).all()  # b brings more, and can be paid
    assert (target.probability[:, b] < 0.7).all()
    assert off_policy.held_still(here, parse_policy("bts"), before, draws=50).name == "bts"
    again = off_policy.held_still(here, parse_policy("bts-paced"), before, 0.15, draws=2000)
    assert (again.probability == target.probability).all()


def test_probabilities_counted_from_draws_widen_the_errors(monkeypatch):
    """By the variance of a mean of so many draws in each situation, times the square of the situation's share: with
    guesses of 1 and 0.2, chosen 1 to 1 in one and 1 to 3 in the other, that is 0.16 and 0.12 a draw."""
    monkeypatch.setattr(estimates, "guesses", lambda log, outcome: np.tile([1.0, 0.2], (len(log), 1)))
    log = random_log(np.random.default_rng(6))
    chances = np.array([[0.5, 0.5], [0.25, 0.75]])
    exact, counted = (off_policy.evaluate(log, off_policy.Target("t", chances, draws)).reward for draws in (None, 20))
    first = float((log.situation == 0).mean())
    noise = (first**2 * 0.16 + (1.0 - first) ** 2 * 0.12) / 20
    for way in ("inverse_propensity", "self_normalised", "doubly_robust", "more"):
        sure, unsure = getattr(exact, way), getattr(counted, way)
        assert unsure.error**2 - sure.error**2 == pytest.approx(noise)
        assert unsure.value == sure.value
        assert unsure.low < sure.low
        assert sure.high < unsure.high


def test_what_a_policy_held_still_hardly_ever_chooses_is_left_out(monkeypatch):
    """Less often than once in a thousand times; the others make up for it."""
    log = random_log(np.random.default_rng(7), 60, segments=("x",))
    for named, shares in (((9_991, 9), (1.0, 0.0)), ((9_990, 10), (0.999, 0.001))):
        monkeypatch.setattr(targets, "counts", lambda *_, named=named: np.array(named))
        target = off_policy.held_still(log, parse_policy("bts"), log)
        assert target.probability.tolist() == [list(shares)]
        assert target.draws == 10_000


@pytest.mark.parametrize(
    ("change", "error", "words"),
    [
        ({"propensity": [0.0, 0.5]}, ProblemError, "a propensity is 0"),
        ({"propensity": [1.5, 0.5]}, ProblemError, "a propensity is 1.5"),
        ({"propensity": [None, None]}, ProblemError, "propensity_draws"),
        ({"reward": ["much", 1]}, ProblemError, "reward 'much'"),
        ({"arms": ["[1", None]}, ProblemError, "as JSON"),
        ({"arms": ['["b"]', None]}, ProblemError, "row 1 chose 'a'"),
    ],
)
def test_logs_that_cannot_be_read(change, error, words):
    with pytest.raises(error, match=words.replace("[", r"\[")):
        off_policy.read_log(columns(["a", "b"], [1, 0], [1, 1], [0.5, 0.5]) | change)


def test_mistakes_have_a_remedy(tmp_path):
    log = random_log(np.random.default_rng(6), 20)
    with pytest.raises(UnknownArm, match="the arms are"):
        off_policy.one_arm(log, "c")
    with pytest.raises(BadParameter, match="from 0 upwards"):
        off_policy.mix(log, {"a": -1.0})
    with pytest.raises(BadParameter, match="a share above 0"):
        off_policy.mix(log, {"a": 0.0})
    with pytest.raises(MissingKnowledge, match="budget_per_request"):
        off_policy.held_still(log, parse_policy("bts-paced"), log)
    with pytest.raises(MissingKnowledge, match="which no log says"):
        off_policy.held_still(log, parse_policy("ucb-bv1"), log)
    with pytest.raises(BadParameter, match="one of two logs names segments"):
        off_policy.held_still(log, parse_policy("bts"), random_log(np.random.default_rng(6), 20, segments=("",)))
    with pytest.raises(ProblemError, match="cannot read"):
        off_policy.read_log(tmp_path / "nothing.parquet")
    (tmp_path / "log.csv").write_text("arm,reward\na,1\n")
    with pytest.raises(ProblemError, match=r"log.csv: no column says cost"):
        off_policy.read_log(tmp_path / "log.csv")


@pytest.fixture(scope="module")
def log_file(tmp_path_factory):
    """A log of bts-paced on made-up outcomes, written by the command, and the table that it was played on."""
    rng, tmp_path = np.random.default_rng(8), tmp_path_factory.mktemp("logs")
    rows = ["prompt,model,reward,cost"]
    for request in range(500):
        rows += [f"{request},small,{rng.random() < 0.5:d},0.1", f"{request},large,{rng.random() < 0.8:d},0.5"]
    (tmp_path / "table.csv").write_text("\n".join(rows))
    words = ["replay", str(tmp_path / "table.csv"), "--columns", "request=prompt,arm=model", "--policy", "bts-paced"]
    words += ["--budget-per-request", "0.3", "--orders", "1", "--log", str(tmp_path / "log.csv")]
    result = CliRunner().invoke(app, words)
    assert result.exit_code == 0, result.output
    return tmp_path / "log.csv"


def evaluated(*words):
    result = CliRunner().invoke(app, ["evaluate", *map(str, words)])
    assert result.exit_code == 0, (result.output, result.exception)
    return result.stdout


def test_the_command_evaluates_what_replay_has_logged(log_file):
    targets = ["--arm", "large", "--mix", "small=1,large=3", "--even", "--policy", "bts-paced"]
    found = json.loads(evaluated(log_file, *targets, "--budget-per-request", "0.4", "--json"))
    assert found["decisions"] == 250  # the second half
    large, mixed, evenly, policy = found["results"]
    assert large["reward"]["doubly_robust"]["low"] < 0.8 < large["reward"]["doubly_robust"]["high"]
    assert mixed["reward"]["doubly_robust"]["value"] == pytest.approx(0.25 * 0.5 + 0.75 * 0.8, abs=0.1)
    assert mixed["cost"]["doubly_robust"]["value"] == pytest.approx(0.25 * 0.1 + 0.75 * 0.5, abs=0.05)
    assert evenly["draws"] is None
    assert (policy["target"], policy["draws"]) == ("bts-paced", 10_000)
    assert policy["cost"]["doubly_robust"]["value"] == pytest.approx(0.4, abs=0.06)  # what it was told to spend
    whole = json.loads(evaluated(log_file, "--arm", "large", "--json"))
    assert whole["decisions"] == 500
    text = evaluated(log_file, "--arm", "large", "--policy", "ucb1", "--learn-on", log_file)
    assert "always large" in text
    assert "what ran" in text
    reward = whole["results"][0]["reward"]["doubly_robust"]
    reach = max(reward["high"] - reward["value"], reward["value"] - reward["low"])
    assert f"{reward['value']:.3f} ± {reach:.3f}" in text


def test_the_command_says_when_it_cannot(log_file, tmp_path):
    text = evaluated(log_file, "--arm", "small", "--columns", "propensity=cost,cost=propensity")
    assert "the log's propensities are not those of its choices" in " ".join(text.split())
    rows = log_file.read_text().splitlines()
    few = tmp_path / "few.csv"
    few.write_text("\n".join([*rows[:60], "huge,1,2,0.01,,,,0"]))
    assert "too little overlap" in evaluated(few, "--arm", "huge")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([], "nothing to evaluate"),
        (["--mix", "small"], "write NAME=SHARE"),
        (["--mix", "small=x"], "write NAME=SHARE"),
        (["--arm", "nobody"], "no arm 'nobody'"),
        (["--policy", "bts-paced"], "budget_per_request"),
        (["--even", "--columns", "colour=arm"], "write MEANING=COLUMN"),
        (["--even", "--learn-on", "nobody.csv"], "are for a --policy"),
        (["--even", "--budget-per-request", "-5"], "are for a --policy"),
    ],
)
def test_the_command_refuses_with_a_remedy(log_file, words, message):
    result = CliRunner().invoke(app, ["evaluate", str(log_file), *words])
    assert result.exit_code != 0
    assert message in str(result.exception)
