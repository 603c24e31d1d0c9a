"""Gittins-ratio: its boundary against exact indices, its index against bisection, its first choices."""

import numpy as np
import pytest
from scipy.special import ndtr

from budgetbandits.numerics.divergence import largest_weighted_ratio, ratio_divergence, relative_entropy
from budgetbandits.numerics.stopping import allowed_evidence
from budgetbandits.policies import Knowledge, parse_policy
from budgetbandits.policies.gittins_ratio import gittins_ratio, scatter
from budgetbandits.policies.index import rounded_money
from budgetbandits.theory.stopping import boundary_series

STATES = 2_000


def test_the_polynomial_is_the_boundary():
    series = boundary_series(1e16)
    share = np.concatenate([np.exp(-np.linspace(0.0, 36.8, 2_000)), [1.0 - 1e-12, 0.999999]])
    exact = series(np.sqrt(-np.log(share))) ** 2 * (1.0 - share) / 2.0
    assert allowed_evidence(share) == pytest.approx(exact, rel=2e-5)
    assert series(0.0) == pytest.approx(0.6388332158, abs=1e-9)  # Chernoff and Ray's constant at the end
    assert allowed_evidence(1e-30) == allowed_evidence(1e-16)
    assert allowed_evidence(2.0) == 0.0


def test_the_boundary_lies_between_two_that_are_proved():
    """docs/explanation/gittins_ratio.md, "The boundary between two logarithms": both conditions of the proof.

    At s = 1e15 a boundary 3 % higher or 15 % lower would fail.
    """

    def excess(x):
        return np.exp(-x * x / 2.0) / np.sqrt(2.0 * np.pi) - x * ndtr(-x)

    z, k = np.linspace(0.01, 9.0, 900), np.exp(np.linspace(-6.0, 6.0, 121))[:, None]
    below, spread = (z - 1.0 / z)[z > 1.0], np.sqrt(k / (1.0 + k))
    for s in (1.5, 3.0, 12.0, 100.0, 1e4, 1e8, 1e15):
        boundary = np.sqrt(2.0 * allowed_evidence(1.0 / s))
        above = z[z > 1.0][s * excess(below) <= below / z[z > 1.0] ** 2].min()
        worth = ((s - 1.0 - k) * spread * excess(z / spread) > z * k).any(axis=0)
        assert z[worth].max() <= boundary <= above
        assert boundary <= np.sqrt(2.0 * np.log(s))


def test_a_prior_adds_no_more_than_its_own_evidence():
    """docs/explanation/gittins_ratio.md, "The prior adds a constant": d is convex in the means."""
    rng = np.random.default_rng(7)
    pulls = rng.integers(1, 1_000, STATES)
    reward, cost = rng.binomial(pulls, rng.random((2, STATES)))
    prior, ratio = np.exp(rng.uniform(-3.0, 3.0, STATES)), np.exp(rng.normal(0.0, 1.5, STATES))
    counted = pulls + 2.0 * prior
    evidence = counted * ratio_divergence((reward + prior) / counted, (cost + prior) / counted, ratio)
    own = 2.0 * prior * ratio_divergence(0.5, 0.5, ratio)
    assert (evidence <= pulls * ratio_divergence(reward / pulls, cost / pulls, ratio) + own + 1e-9).all()
    assert (evidence > own).mean() > 0.2  # the prior alone would not do


def test_outcomes_of_0_and_1_scatter_fully():
    policy = parse_policy("gittins-ratio")
    state = policy.start(3, Knowledge(budget=1e3))
    rng = np.random.default_rng(11)
    for _ in range(600):
        policy.observe(state, int(rng.integers(3)), float(rng.random() < 0.03), float(rng.random() < 0.6), rng)
    reward_variance, cost_variance, _ = state.moments
    assert scatter(state.mean_reward, reward_variance, state.pulls) == pytest.approx(np.ones(3), rel=1e-12)
    assert scatter(state.mean_cost, cost_variance, state.pulls) == pytest.approx(np.ones(3), rel=1e-12)


def test_the_largest_ratio_is_that_of_nested_bisection():
    rng = np.random.default_rng(20261117)
    mean_reward, mean_cost = (np.exp(-rng.exponential(2.0, STATES)) for _ in range(2))
    mean_reward, mean_cost = (np.where(rng.random(STATES) < 0.3, 1.0 - mean, mean) for mean in (mean_reward, mean_cost))
    mean_reward, mean_cost = np.clip([mean_reward, mean_cost], 1e-9, 1.0 - 1e-9)
    reward_weight, cost_weight = np.exp(rng.uniform(0.5, 12.0, (2, STATES)))
    level = np.exp(rng.uniform(-9.0, 3.5, STATES))
    found = largest_weighted_ratio(mean_reward, mean_cost, reward_weight, cost_weight, level)
    low, high = np.log(mean_reward / mean_cost), np.full(STATES, 200.0)
    for _ in range(60):
        ratio = np.exp((low + high) / 2.0)
        nearest = _evidence(mean_reward, mean_cost, reward_weight, cost_weight, ratio)
        low, high = np.where(nearest <= level, np.log(ratio), low), np.where(nearest <= level, high, np.log(ratio))
    inside = high < 199.0
    assert inside.mean() > 0.8
    assert found[inside] == pytest.approx(np.exp(low[inside]), rel=1e-6)


def _evidence(mean_reward, mean_cost, reward_weight, cost_weight, ratio):
    """min u kl(r, ρy) + w kl(c, y) over y, whose derivative rises: by bisection of ln y."""
    low, high = np.log(mean_reward / ratio), np.log(np.minimum(mean_cost, (1.0 - 1e-15) / ratio))
    for _ in range(60):
        cost = np.exp((low + high) / 2.0)
        reward = ratio * cost
        slope = reward_weight * (reward - mean_reward) / (1.0 - reward)
        slope += cost_weight * (cost - mean_cost) / (1.0 - cost)
        low, high = np.where(slope < 0.0, np.log(cost), low), np.where(slope < 0.0, high, np.log(cost))
    cost = np.exp(low)
    reward = np.minimum(ratio * cost, 1.0 - 1e-16)
    return reward_weight * relative_entropy(mean_reward, reward) + cost_weight * relative_entropy(mean_cost, cost)


def test_the_index_rises_with_money_in_the_corners_too():
    """`Monotonicity.error` of gittins-ratio in hostile states: a billion pulls, means of 1e-12, narrow widths.

    ln(1 + up) at up ~ 1e-13 by the plain formula breaks it by almost 1 %.
    """
    rng, count = np.random.default_rng(20261119), 20_000
    pulls = np.floor(10.0 ** rng.uniform(0.0, 9.0, count))
    tiny = 10.0 ** rng.uniform(-12.0, 0.0, (2, count))
    mean_reward, mean_cost = np.choose(rng.integers(0, 3, (2, count)), [tiny, 1.0 - tiny, rng.random((2, count))])
    variances = [mean * (1.0 - mean) * 10.0 ** rng.uniform(-6.0, 0.0, count) for mean in (mean_reward, mean_cost)]
    prior, width = 2.0 ** rng.integers(-3, 5, (4, count)), 10.0 ** rng.uniform(-3.0, 1.0, count)
    left = 10.0 ** rng.uniform(-12.0, 12.0, count)
    less, more = (
        gittins_ratio(mean_reward, mean_cost, pulls, pulls, *variances, money, *prior, width)
        for money in (left, left * (1.0 + 10.0 ** rng.uniform(-6.0, 1.0, count)))
    )
    fall = (less - more) / (1.0 + np.abs(less))
    assert fall.max() <= parse_policy("gittins-ratio").monotone.error


@pytest.mark.parametrize("weight", [1e3, 1e9, 1e14])
@pytest.mark.parametrize("mean", [0.5, 1e-6, 1e-12, 1.0 - 1e-12])
def test_a_ratio_close_to_the_arms_own_keeps_its_digits(mean, weight):
    """With many pulls and a small level the distribution is normal: (ρc − r)² = 2 level (ρ² V_c + V_r)."""
    level = 1e-9 * min(mean, 1.0 - mean)
    found = float(largest_weighted_ratio(mean, mean, weight, weight, level))
    expected = np.sqrt(4.0 * level / weight * (1.0 - mean) / mean)
    assert found - 1.0 == pytest.approx(expected, rel=1e-3, abs=1e-14)


@pytest.mark.parametrize(
    ("state", "left"),
    [
        pytest.param((0.0, 0.0, 0.0), 1e3, id="no pulls"),
        pytest.param((0.0, 1.0, 1e6), 1e6, id="never paid, always cost"),
        pytest.param((1.0, 0.0, 1e6), 1e6, id="always paid, never cost"),
        pytest.param((0.5, 0.5, 40.0), 1e-12, id="hardly any money"),
        pytest.param((0.5, 0.5, 40.0), 1e12, id="a fortune"),
    ],
)
def test_at_the_edges_the_index_is_a_number_that_solves_its_equation(state, left):
    mean_reward, mean_cost, pulls = state
    index = float(gittins_ratio(*state, 7.0, 0.0, 0.0, left, 1.0, 1.0, 1.0, 1.0, 1.25))
    counted = pulls + 2.0
    reward, cost = (pulls * mean_reward + 1.0) / counted, (pulls * mean_cost + 1.0) / counted
    level = 1.25 * float(allowed_evidence(counted / (counted + left / cost)))
    # a variance of 0 counts as 10/(n + 10) of that of 0 and 1 from the tenth pull on; at means of 0 and 1 it is 0
    narrow = (pulls + 10.0) / 10.0 if 0.0 < mean_reward < 1.0 and pulls >= 10 else 1.0
    assert counted * narrow * float(ratio_divergence(reward, cost, index)) == pytest.approx(level, rel=1e-6, abs=1e-9)


def test_worked_by_hand():
    # p = q = 1/2 and two counts on each side, against 12 that the money left would add: t = 2/14
    level = 1.25 * float(allowed_evidence(1.0 / 7.0))
    index = float(gittins_ratio(0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 6.0, 1.0, 1.0, 1.0, 1.0, 1.25))
    assert 2.0 * float(ratio_divergence(0.5, 0.5, index)) == pytest.approx(level)
    assert float(scatter(0.5, 0.05, 30.0)) == pytest.approx((30 * 0.2 + 10) / 40)
    assert float(scatter(0.5, 0.05, 9.0)) == float(scatter(1.0, 0.0, 30.0)) == 1.0
    assert float(scatter(0.5, 0.05, 10.0)) == pytest.approx(
        (10 * 0.2 + 10) / 20
    )  # the tenth pull is the first to count


def test_no_arm_is_pulled_first_by_force_and_money_counts():
    policy = parse_policy("gittins-ratio")
    state = policy.start(3, Knowledge(budget=2.0))
    rng = np.random.default_rng(4)
    for _ in range(40):
        policy.observe(state, 1, 1.0, 0.04, rng)
    # 0.4 is left: 25 pulls of the known arm, whose ratio no trial of another is likely to beat in time
    assert {policy.choose(state, rng) for _ in range(20)} == {1}
    rich = policy.start(3, Knowledge(budget=1e6))
    for _ in range(40):
        policy.observe(rich, 1, 1.0, 0.04, rng)
    assert {policy.choose(rich, rng) for _ in range(40)} == {0, 2}


def test_priors_of_rewards_and_costs_may_weigh_differently():
    # 9 + 3 counts of rewards, p = 3/4, and 9 + 1 of costs, q = 1/2: what each adds to the variance of the ratio weighs
    prior = 3.0, 0.0 + 1e-12, 0.5, 0.5
    index = float(gittins_ratio(2 / 3, 0.5, 9.0, 0.0, 0.0, 0.0, 30.0, *prior, 1.0))
    by_reward, by_cost = 0.25 / 0.75, 1.0  # (1 − p)/p and (1 − q)/q
    counted = (by_reward + by_cost) / (by_reward / 12.0 + by_cost / 10.0)
    level = float(allowed_evidence(counted / (counted + 60.0)))
    found = _evidence(*(np.array([value]) for value in (0.75, 0.5, 12.0, 10.0, index)))
    assert float(found[0]) == pytest.approx(level, rel=1e-6)


def test_money_is_seen_in_steps_of_four_per_cent_at_most():
    money = np.exp(np.linspace(-20.0, 30.0, 999))
    seen = np.array([rounded_money(left) for left in money])
    assert ((seen <= money * (1 + 1e-9)) & (seen > 0.957 * money)).all()
    assert rounded_money(0.0) == rounded_money(-1.0) > 0.0
