"""`bts-linear`: the laws it draws from, the requests it prices money with, and which trials it leaves out."""

import math

import numpy as np
import pytest
from scipy import stats

from budgetbandits import Allocation
from budgetbandits.errors import BadParameter, BadState
from budgetbandits.policies import parse_policy
from budgetbandits.policies.base import Knowledge, Request
from budgetbandits.policies.linear import LinearThompson
from budgetbandits.policies.linear.program import program_of
from budgetbandits.policies.linear.state import FEWEST_RECENT, RECENT
from budgetbandits.policies.linear.trials import trial_pays
from budgetbandits.policies.paced import PacedThompson

FALSE_ALARM = 1e-6

KNOWN = {"budget": 300.0, "horizon": 1000.0}


def learned(policy, arms, features, requests=300, seed=1, transform=lambda x: x, slopes=(0.1, -0.1)):
    """A state after requests that the arms answered in turn; rewards and costs follow the first feature."""
    rng, state = np.random.default_rng(seed), policy.start(arms, Knowledge(**KNOWN, features=features))
    for number in range(requests):
        x = rng.standard_normal(features)
        follow = x[0] if features else 0.0
        reward = np.clip(0.5 + slopes[number % arms % 2] * follow + 0.05 * rng.standard_normal(), 0.0, 1.0)
        cost = np.clip(0.1 * np.exp(0.5 * follow + 0.1 * rng.standard_normal()), 0.0, 1.0)
        policy.observe(
            state, number % arms, reward, cost, rng, Request(features=transform(x)) if features else Request()
        )
    return state


def test_without_features_the_laws_are_those_of_the_paced_policy():
    linear, paced = LinearThompson(), PacedThompson()
    state, other = (learned(policy, 3, 0, 50) for policy in (linear, paced))
    fit, (a, b) = linear.fit(state), paced.laws(other, np.arange(3))
    for mine, theirs in zip(fit.shapes, (a[1, 0], b[1, 0]), strict=True):
        assert mine == pytest.approx(theirs, rel=1e-12)
    mean = (a / (a + b))[0, 0]
    assert fit.regressions.means[0, :, 0] == pytest.approx(mean, rel=1e-12)
    # Beta(κm, κ(1 − m)) with κ = n m(1 − m)/s² has about the variance s²/n
    assert fit.regressions.variance(np.ones(1))[0] == pytest.approx(mean * (1 - mean) / (a + b)[0, 0], rel=1e-9)


def test_slopes_are_found():
    policy = LinearThompson(forget=0.0)
    state = learned(policy, 2, 3, 2000)
    reward, cost = policy.expected(state, Request(features=np.array([1.0, 0.0, 0.0])))
    assert reward == pytest.approx([0.6, 0.4], abs=0.01)
    assert cost == pytest.approx(np.full(2, 0.1 * np.exp(0.5)), rel=0.05)


def test_the_scale_of_features_makes_no_difference():
    policy = LinearThompson()
    plain = learned(policy, 3, 2)
    scaled = learned(policy, 3, 2, transform=lambda x: 1e9 + 1e4 * x)
    for x in np.random.default_rng(2).standard_normal((5, 2)):
        for mine, theirs in zip(
            policy.expected(plain, Request(features=x)), policy.expected(scaled, Request(features=1e9 + 1e4 * x)),
            strict=True,
        ):  # fmt: skip
            assert mine == pytest.approx(theirs, rel=1e-6)


def test_a_feature_that_never_varies_changes_nothing():
    policy = LinearThompson()
    with_it = learned(policy, 2, 2, transform=lambda x: np.array([x[0], 7.0]))
    reward, cost = policy.expected(with_it, Request(features=np.array([0.5, 7.0])))
    other, price = policy.expected(with_it, Request(features=np.array([0.5, 9.0])))
    assert reward == pytest.approx(other)
    assert cost == pytest.approx(price)


def test_an_outlier_counts_as_ten_standard_deviations():
    policy = LinearThompson()
    state = learned(policy, 2, 1)
    far, farther = (policy.expected(state, Request(features=np.array([x]))) for x in (1e3, 1e20))
    assert far[0] == pytest.approx(farther[0])
    rng = np.random.default_rng(1)
    policy.observe(state, 0, 0.5, 0.1, rng, Request(features=np.array([1e20])))
    assert policy.expected(state, Request(features=np.zeros(1)))[0] == pytest.approx([0.5, 0.5], abs=0.05)


def test_a_segment_is_a_feature_of_its_own():
    policy, rng = LinearThompson(), np.random.default_rng(3)
    state = policy.start(2, Knowledge(**KNOWN))
    assert [policy.open_segment(state) for _ in range(2)] == [1, 2]
    for number in range(900):
        segment = number % 3
        policy.observe(state, number // 3 % 2, (0.2, 0.5, 0.8)[segment], 0.1, rng, Request(segment))
    found = [policy.expected(state, Request(segment))[0] for segment in range(3)]
    for rewards, truth in zip(found, (0.2, 0.5, 0.8), strict=True):
        assert rewards == pytest.approx([truth] * 2, abs=0.03)


def test_estimated_prices_are_expected_in_proportion():
    policy, rng = LinearThompson(), np.random.default_rng(4)
    state = policy.start(2, Knowledge(**KNOWN))
    for number in range(400):
        prices = np.array([0.1, 0.2]) * np.exp(0.5 * rng.standard_normal())
        arm = number % 2
        policy.observe(state, arm, 0.5, 1.5 * prices[arm], rng, Request(prices=prices))
    _, cost = policy.expected(state, Request(prices=np.array([0.3, 0.1])))
    assert cost == pytest.approx([0.45, 0.15], rel=0.03)
    assert state.recent[:, 1].std() == pytest.approx(0.5, rel=0.2)  # how prices vary is kept with the requests


def test_recent_requests_stand_for_all_that_were_answered():
    """One arm answers nine requests in ten, of another kind than the tenth, and only some of each are kept."""
    policy, rng = LinearThompson(), np.random.default_rng(5)
    state = policy.start(2, Knowledge(**KNOWN, features=1))
    for number in range(2000):
        rare = number % 10 == 0
        policy.observe(state, int(rare), 0.5, 0.1, rng, Request(features=np.array([float(rare)])))
    rows, _, weight = state.recent_rows()
    assert len(rows) == RECENT
    rare = rows[:, 1] + 1.0  # rows are relative to the first request, which was rare
    assert (weight @ rare) / weight.sum() == pytest.approx(0.1, rel=0.02)


def test_as_many_recent_requests_are_planned_with_whenever_arms_came():
    """Requests with a feature of 1 are one in four, whichever of the arms answers; one arm has left."""
    policy, rng = LinearThompson(), np.random.default_rng(5)
    state = policy.start(2, Knowledge(budget=300.0, horizon=4000.0, features=1))
    for number in range(4000):
        if number in (1000, 1100, 1200, 1300):
            state.extend(policy.new_arm_state(state, state.known))
        arms = range(number >= 2000, len(state.pulls))
        policy.observe(
            state, arms[number % len(arms)], 0.5, 0.1, rng, Request(features=np.array([float(rng.random() < 0.25)]))
        )
        if number % 100 == 99:
            rows, _, _ = state.recent_rows()
            assert RECENT * (number > RECENT) <= len(rows) <= RECENT + FEWEST_RECENT * len(state.pulls)
    rows, _, weight = state.recent_rows()
    assert len(rows) == RECENT + FEWEST_RECENT
    share = weight @ (rows[:, 1] == rows[:, 1].max()) / weight.sum()
    assert stats.binomtest(round(share * RECENT), RECENT, 0.25).pvalue > FALSE_ALARM


def test_many_choices_at_once_are_as_likely_as_one_by_one():
    """Two-sample test of the arms' frequencies."""
    policy = LinearThompson()
    state = learned(policy, 3, 2, 60)
    request, rng = Request(features=np.array([0.4, -1.0])), np.random.default_rng(6)
    together = np.bincount(policy.choices(state, rng, 3000, request), minlength=3)
    single = np.bincount([policy.choose(state, rng, request) for _ in range(1000)], minlength=3)
    counts = np.stack([together, single])[:, together + single > 0]
    assert counts.shape[1] > 1
    assert stats.chi2_contingency(counts).pvalue > FALSE_ALARM


def test_a_trial_that_cannot_pay_is_left_out():
    policy, rng = LinearThompson(), np.random.default_rng(7)
    state = policy.start(2, Knowledge(budget=1e6, horizon=1000.0))
    for number in range(60):
        policy.observe(state, number % 2, float(number // 2 % 10 < (3, 6)[number % 2]), 0.1, rng)
    assert set(policy.choices(state, rng, 2000).tolist()) == {1}
    state.known = Knowledge(budget=1e6, horizon=1e9)  # with that much to come, nothing is sure enough
    assert set(policy.choices(state, rng, 2000).tolist()) == {0, 1}


def test_a_trial_of_an_arm_that_the_money_left_pays_for_once_is_left_out():
    """What it teaches could not be used: on recorded answers such trials of the most expensive model took two thirds
    of the money of one order."""
    policy, rng = LinearThompson(), np.random.default_rng(7)
    state = policy.start(2, Knowledge(budget=1e6, horizon=1e9))
    for number in range(60):
        policy.observe(state, number % 2, float(number // 2 % 10 < (3, 6)[number % 2]), 0.1, rng)
    fit = policy.fit(state)
    program = program_of(state, fit.standard, Request())

    def pays(affordable: float) -> bool:
        return trial_pays(state, fit, program, 0, loss=0.3, paid=0.1, affordable=affordable)

    assert pays(math.inf)
    assert not pays(1.0)


def test_an_expensive_arm_is_not_bought_at_the_price_of_a_draw_in_which_it_is_worthless():
    policy, rng = LinearThompson(), np.random.default_rng(3)
    state = policy.start(2, Knowledge(budget=3.0, horizon=3000.0, features=1))
    for arm, outcomes, cost in ((1, 1000, 1e-4), (0, 12, 0.1)):  # the second is well known, the first seems better
        for number in range(outcomes):
            reward = 0.8 + 0.05 * (-1) ** number if arm else (0.7, 1.0, 1.0, 1.0)[number % 4]
            policy.observe(state, arm, reward, cost, rng, Request(features=rng.standard_normal(1)))
    chosen = [policy.choices(state, rng, 20, Request(features=rng.standard_normal(1))) for _ in range(500)]
    assert np.where(np.array(chosen) == 0, 0.1, 1e-4).mean() < 2.0 * state.rate


def test_an_arm_without_an_outcome_is_worth_trying():
    policy, rng = LinearThompson(), np.random.default_rng(8)
    state = policy.start(2, Knowledge(budget=1e6, horizon=30.0))
    for _ in range(25):
        policy.observe(state, 1, 0.9, 0.1, rng)
    assert set(policy.choices(state, rng, 2000).tolist()) == {0, 1}


def test_what_was_forgotten_no_longer_counts():
    rng = np.random.default_rng(9)
    found = []
    for policy in (LinearThompson(forget=0.0), LinearThompson(forget=0.02)):
        state = policy.start(1, Knowledge(**KNOWN, features=1))
        for number in range(800):
            x = rng.standard_normal(1)
            policy.observe(state, 0, 0.5 + (0.1, -0.1)[number >= 600] * np.tanh(x[0]), 0.1, rng, Request(features=x))
        found.append(policy.expected(state, Request(features=np.ones(1)))[0][0])
    assert found[0] > 0.5
    assert found[1] < 0.45


def test_money_lasts_and_goes_where_it_is_worth_most():
    """Half of the requests need the large arm; the money is for half of them."""
    spend = Allocation("bts-linear", ["small", "large"], budget=300.0, horizon=1000, features=["hard"], seed=1)
    rng, right = np.random.default_rng(2), 0
    while spend.can_ask(hold=True, features={"hard": 0}):
        hard = int(rng.random() < 0.5)
        ask = spend.ask(features={"hard": hard}, hold=True)
        large = ask.arm == "large"
        right += large == hard
        spend.tell(ask, reward=float(rng.random() < (0.9 if large else (0.8, 0.2)[hard])), cost=0.5 if large else 0.1)
    asked = sum(spend.pulls.values())
    assert asked > 980
    assert right > 0.9 * asked
    assert 0.97 < spend.spent / 300.0 <= 1.0


def test_a_saved_state_goes_on_bit_for_bit():
    first = Allocation("bts-linear", ["a", "b"], budget=50.0, horizon=500, features=["x", "y"], seed=3)
    rng = np.random.default_rng(1)

    def step(spend, features, segment, reward):
        ask = spend.ask(features=features, segment=segment)
        spend.tell(ask, reward=reward, cost=0.1)
        return ask

    for number in range(40):
        step(first, {"x": rng.random(), "y": number}, ("one", "two", None)[number % 3], rng.random())
    second = Allocation.from_json(first.to_json())
    first.add_arm("c")
    second.add_arm("c")
    for number in range(40):
        features, reward = {"x": rng.random(), "y": number}, rng.random()
        assert step(first, features, "three", reward) == step(second, features, "three", reward)
    assert first.to_json() == second.to_json()


def test_history_is_that_of_the_mean_request():
    policy = LinearThompson()
    state = learned(policy, 2, 1)
    before = policy.expected(state, Request(features=np.ones(1)))[0]
    policy.add_history(state, 0, 1000, 700.0, 100.0)
    reward, cost = policy.expected(state, Request())
    assert reward[0] == pytest.approx(0.67, abs=0.03)
    assert policy.expected(state, Request(features=np.ones(1)))[0][0] - reward[0] == pytest.approx(
        before[0] - 0.5, abs=0.06
    )
    policy.add_history(state, 0, 0, 0.0, 0.0)
    assert cost[0] == pytest.approx(0.1, rel=0.15)


def test_small_costs_are_told_apart_after_a_history_of_them():
    policy, rng = LinearThompson(), np.random.default_rng(5)
    state = policy.start(2, Knowledge(budget=1.0, horizon=1e3, features=1))
    for arm in range(2):
        policy.add_history(state, arm, 200, 100.0, 200e-5)
    for number, x in enumerate(rng.standard_normal(400)):
        policy.observe(state, number % 2, 0.5, 1e-5 * np.exp(x), rng, Request(features=np.array([x])))
    low, high = (policy.expected(state, Request(features=np.array([x])))[1] for x in (-1.0, 1.0))
    assert high / low == pytest.approx([np.exp(2.0)] * 2, rel=0.2)


def test_free_pulls_of_a_history_count_as_those_that_come():
    policy, rng = LinearThompson(forget=0.0), np.random.default_rng(6)
    told, begun = (policy.start(1, Knowledge(budget=1.0, horizon=1e3, features=1)) for _ in range(2))
    for _ in range(50):
        policy.observe(told, 0, 0.5, 0.0, rng, Request(features=np.array([1.0])))
    policy.add_history(begun, 0, 50, 25.0, 0.0)
    assert begun.past[2] == pytest.approx(told.responses[1, 0])


@pytest.mark.parametrize("past", [0, 100, 10_000])
def test_history_before_the_first_request_says_nothing_of_features(past):
    """The first request is far off, and its features are not those of the history."""
    policy, rng = LinearThompson(), np.random.default_rng(0)
    state = policy.start(2, Knowledge(**KNOWN, features=1))
    for arm in (0, 1):
        policy.add_history(state, arm, past, 0.5 * past, 0.1 * past)
    for number in range(600):
        arm, x = number % 2, 3.0 if number == 0 else rng.normal()
        mean = np.clip(0.5 + (-0.2, 0.2)[arm] * x, 0.0, 1.0)
        policy.observe(state, arm, float(rng.random() < mean), 0.1, rng, Request(features=np.array([x])))
    assert policy.expected(state, Request(features=np.ones(1)))[0] == pytest.approx([0.3, 0.7], abs=0.06)


def test_one_outcome_of_a_new_segment_does_not_overrule_all_others():
    policy, rng = LinearThompson(), np.random.default_rng(0)
    state = policy.start(2, Knowledge(**KNOWN, features=5))
    for number in range(2000):
        reward = float(rng.random() < (0.5, 0.7)[number % 2])
        policy.observe(state, number % 2, reward, 0.1, rng, Request(features=rng.normal(size=5)))
    request = Request(policy.open_segment(state), features=np.zeros(5))
    assert policy.expected(state, request)[0] == pytest.approx([0.5, 0.7], abs=0.05)
    policy.observe(state, 1, 0.0, 0.1, rng, request)
    known = policy.expected(state, request)[0]
    assert 0.2 < known[0] < 0.4  # what all arms share
    assert 0.3 < known[1] < 0.6


def test_a_rare_flag_is_learned_as_a_segment_is():
    policy, rng = LinearThompson(forget=0.0), np.random.default_rng(0)
    state = policy.start(2, Knowledge(**KNOWN, features=1))
    for number in range(5000):
        arm, flag = number % 2, float(rng.random() < 0.004)
        policy.observe(state, arm, 0.5 + flag * (-0.4, 0.4)[arm], 0.1, rng, Request(features=np.array([flag])))
    assert policy.expected(state, Request(features=np.ones(1)))[0] == pytest.approx([0.1, 0.9], abs=0.15)
    assert state.standard.spread[1] == pytest.approx(1 / 3, rel=0.02)


def test_flags_of_many_levels_count_as_few_columns_and_are_learned():
    policy, rng, levels = LinearThompson(forget=0.0), np.random.default_rng(0), 60
    state = policy.start(1, Knowledge(**KNOWN, features=levels))
    good = rng.random(levels) < 0.5
    for number in range(40 * levels):
        flags = np.eye(levels)[number % levels]
        policy.observe(state, 0, 0.9 if good[number % levels] else 0.1, 0.1, rng, Request(features=flags))
    assert state.standard.size == pytest.approx(9.0, rel=0.05)
    found = np.array([policy.expected(state, Request(features=flags))[0][0] for flags in np.eye(levels)])
    assert found[good].mean() > 0.75
    assert found[~good].mean() < 0.25


def test_columns_count_by_how_much_they_vary():
    policy, rng = LinearThompson(), np.random.default_rng(0)
    state = policy.start(1, Knowledge(**KNOWN, features=3))
    for _ in range(2000):
        features = np.array([rng.normal(), 7.0, rng.random() < 0.5])
        policy.observe(state, 0, 0.5, 0.1, rng, Request(features=features))
    np.testing.assert_allclose(state.standard.variance, [0.0, 1.0, 0.0, 1.0], rtol=1e-12)
    assert state.standard.size == pytest.approx(2.0)


@pytest.mark.parametrize(
    "reward",
    [lambda rng: float(rng.random() < 0.01), lambda rng: float(rng.random() < 0.99)],
    ids=["successes", "failures"],
)
def test_useless_features_explain_less_of_what_is_rare(reward):
    """Next to what the same outcomes would say if they were ordinary."""
    policy, found = LinearThompson(), []
    for often in (False, True):
        rng = np.random.default_rng(4)
        state = policy.start(1, Knowledge(**KNOWN, features=12))
        for _ in range(300):
            x = rng.normal(size=12)
            one = reward(rng)
            policy.observe(state, 0, 0.45 + 0.1 * one if often else one, 0.1, rng, Request(features=x))
        slopes = policy.fit(state).regressions.means[0, 0, 1:]
        found.append(np.square(slopes).sum() * (100.0 if often else 1.0))
    assert found[0] < 0.6 * found[1]


def test_impossible_rewards_are_no_ties():
    policy, rng = LinearThompson(), np.random.default_rng(0)
    state = policy.start(3, Knowledge(**KNOWN, features=1))
    for number in range(3000):
        x = rng.normal()
        reward = np.clip(0.5 + (0.3, 0.2, 0.25)[number % 3] * x, 0.0, 1.0)
        policy.observe(state, number % 3, reward, 0.1, rng, Request(features=np.array([x])))
    for x, best in ((-8.0, 1), (8.0, 0)):
        reward, _ = policy.expected(state, Request(features=np.array([x])))
        assert np.ptp(reward) < 1e-8
        assert 0.0 < reward.min() < reward.max() < 1.0
        assert reward.argmax() == best


def test_an_arm_that_failed_once_is_tried_again():
    """Its level is that of all requests to come, however many features there are."""
    policy, rng = LinearThompson(), np.random.default_rng(0)
    state = policy.start(2, Knowledge(budget=1e6, horizon=2000.0, features=25))
    for number in range(60):
        arm, features = int(number > 0), rng.normal(size=25)
        policy.observe(state, arm, 0.9 * arm, 0.1, rng, Request(features=features))
    chosen = [policy.choose(state, rng, Request(features=rng.normal(size=25))) for _ in range(300)]
    assert 0 in chosen


@pytest.mark.parametrize("text", ["bts-linear:apart=0", "bts-linear:forget=0.7", "bts-linear:shared=-1"])
def test_parameters_out_of_range_are_refused(text):
    with pytest.raises(BadParameter, match="use a"):
        parse_policy(text)


def test_a_damaged_state_is_refused():
    policy = LinearThompson()
    state = learned(policy, 2, 1, 10)
    for name, value in (
        ("products", [1.0]), ("responses", [[[np.nan, 0.0]] * 2] * 2), ("totals", [[-1.0, 0.0]] * 5),
        ("origin", [1.0, 2.0]), ("origin", ["q"]), ("products", [[[-1.0, 0.0]] * 2] * 2),
        ("standards", [[0.0]]), ("standards", [[0.0, 0.0], [1.0, -1.0], [0.0, 1.0]]),
        ("standards", [[0.0, np.nan], [1.0, 1.0], [0.0, 1.0]]), ("standards", [[0.0, 0.0], [1.0, 1.0], [0.0, np.inf]]),
        ("standards", "q"), ("standards", [[0.0, 0.0], [0.0, 1.0], [0.0, 1.0]]),
        ("recent", np.full(state.recent.shape, 1e308)), ("powers", np.full(state.powers.shape, 1e308)),
    ):  # fmt: skip
        with pytest.raises(BadState):
            policy.start(2, Knowledge(**KNOWN, features=1)).filled(state.to_dict() | {name: value})
    saved = state.to_dict()
    saved["products"][1][1][0] = 0.0  # a sum of squares
    damaged = policy.start(2, Knowledge(**KNOWN, features=1)).filled(saved)
    with pytest.raises(BadState, match="'products' are no sums"):
        policy.choose(damaged, np.random.default_rng(1), Request(features=np.ones(1)))
