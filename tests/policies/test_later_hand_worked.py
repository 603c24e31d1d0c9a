"""The policies that came after the paper: index values worked by hand at three states each, and their traps."""

import math

import numpy as np
import pytest

from budgetbandits import parse_policy
from budgetbandits.errors import BadParameter
from budgetbandits.policies.cost_floor_ucb import budget_ucb
from budgetbandits.policies.empirical import rounded
from budgetbandits.policies.general_costs import group_count, ucb_b1, ucb_b2, ucb_b2c
from budgetbandits.policies.imed_ratio import LOWEST_INDEX, imed_fading, imed_moss, imed_ratio, maillard_ratio
from budgetbandits.policies.index import IndexPolicy
from budgetbandits.policies.omega_ucb import (
    OmegaRising,
    omega_rising,
    omega_star_ucb,
    omega_ucb,
    wilson_lower,
    wilson_upper,
)
from budgetbandits.policies.ratio_ucb import BGreedy, c_ucb, i_ucb, m_ucb, plain_ratio
from budgetbandits.policies.ucb_sc import kl_ucb_sc, kl_ucb_sc_plus, ucb_sc

E2, E4 = math.exp(2.0), math.exp(4.0)
"""Rounds with whole logarithms."""


def kl(p, q):
    return sum(x * math.log(x / y) for x, y in ((p, q), (1 - p, 1 - q)) if x > 0)


def choice(name, history, active=None):
    policy = parse_policy(name)
    state = policy.start(len(history))
    for arm, past in enumerate(history):
        policy.add_history(state, arm, *past)
    state.first_pulls_done = len(history)
    state.active[:] = True if active is None else active
    return policy.choose(state, np.random.default_rng(0))


# --- ω-UCB -------------------------------------------------------------------------------------------------------


def test_omega_ucb():
    # z² = 2·¼·4 = 2, n = 4, r̄ = ½: (2 + 1 + √(2(1 + ½)))/6 = (3 + √3)/6, and the cost's lower end (3 − √3)/6
    assert omega_ucb(0.5, 0.5, 4.0, E4, 0.25) == pytest.approx((3 + math.sqrt(3)) / (3 - math.sqrt(3)))
    # one pull with reward and cost 1: upper end 1, lower end 1/(1 + z²): the index is 1 + 2ρ ln t
    assert omega_ucb(1.0, 1.0, 1.0, E4, 0.25) == pytest.approx(1 + 2)
    # ρ = 1, t = e²: z² = 4, n = 2, r̄ = 0: upper (2 + 2)/6; c̄ = 1: lower 2/6
    assert omega_ucb(0.0, 1.0, 2.0, E2, 1.0) == pytest.approx((4 / 6) / (2 / 6))


def test_wilson_ends_are_the_roots():
    for mean, pulls, square in [(0.3, 7.0, 1.5), (0.9, 40.0, 8.0), (0.01, 3.0, 0.2)]:
        for end in (wilson_upper(mean, pulls, square), wilson_lower(mean, pulls, square)):
            assert pulls * (mean - end) ** 2 == pytest.approx(square * end * (1 - end))


def test_a_mean_cost_of_zero_makes_the_index_infinite_at_every_state():
    """The usual formula of the lower end rounds to less than 0 in a part of these states, and hides the arm."""
    pulls, rounds = (grid.ravel() for grid in np.meshgrid(np.arange(1.0, 200.0), np.arange(2.0, 2000.0, 13.0)))
    square = 0.5 * np.log(rounds)
    usual = square / 2.0 - np.sqrt(square) * np.sqrt(square / 4.0)
    assert (usual < 0.0).mean() > 0.05
    assert (wilson_lower(0.0, pulls, square) == 0.0).all()
    assert (omega_ucb(0.0, 0.0, pulls, rounds, 0.25) == np.inf).all()
    assert choice("omega-ucb", [(50, 45, 5), (7, 0, 0)]) == 1


def test_omega_star_ucb_narrows_the_interval_from_thirty_pulls_on():
    assert omega_star_ucb(0.5, 0.5, 29.0, E4, 0.05, 0.05, 0.0, 0.25) == omega_ucb(0.5, 0.5, 29.0, E4, 0.25)
    # η = 0.05/0.25 = 1/5 for the reward, z² = 2/5; the cost never varies: its interval is a point
    upper = (15 + 0.2 + math.sqrt(0.4 * (7.5 + 0.1))) / 30.4
    assert omega_star_ucb(0.5, 0.5, 30.0, E4, 0.05, 0.0, 0.0, 0.25) == pytest.approx(upper / 0.5)
    # Bernoulli outcomes have η = 1, at the ends as well
    assert omega_star_ucb(0.4, 0.6, 50.0, E4, 0.24, 0.24, 0.0, 1.0) == pytest.approx(omega_ucb(0.4, 0.6, 50.0, E4, 1.0))
    assert omega_star_ucb(1.0, 1.0, 50.0, E4, 0.0, 0.0, 0.0, 1.0) == pytest.approx(omega_ucb(1.0, 1.0, 50.0, E4, 1.0))


def test_omega_rising_begins_with_a_quarter_and_goes_on_with_one():
    state = (0.4, 0.6, 50.0, E4, 0.1, 0.1, 0.0)
    assert omega_rising(*state, E4) == omega_star_ucb(*state, 0.25)  # ln t = 4, z² = 2
    # z² = 2·¼·4 + 2·¾·2 = 5 after e² rounds, as with ρ = 5/8
    assert omega_rising(*state, math.exp(2.0)) == pytest.approx(omega_star_ucb(*state, 0.625))
    # after one pull with a reward and a cost of 1 the index is 1 + z²
    assert omega_rising(1.0, 1.0, 1.0, E4, 0.0, 0.0, 0.0, math.exp(2.0)) == pytest.approx(6.0)
    # two arms and w = 2: from the fifth round on
    assert OmegaRising(wait=2.0).extras(OmegaRising().start(2))[-1] == 4.0


# --- i-UCB, c-UCB, m-UCB, b-greedy, Budget-UCB ---------------------------------------------------------------------

T = 1.0 + E4
"""ln(t − 1) = 4: with 16 pulls √(ln(t − 1)/n) is ½."""


def test_i_c_and_m_ucb():
    assert i_ucb(0.6, 0.5, 16.0, T, 0.25) == pytest.approx(1.2 + 0.125)
    assert i_ucb(0.0, 1.0, 64.0, T, 1.0) == pytest.approx(0.25)
    assert c_ucb(0.6, 0.5, 16.0, T, 0.125) == pytest.approx((0.6 + 0.0625) / 0.5)
    assert c_ucb(1.0, 0.25, 64.0, T, 1.0) == pytest.approx(5.0)
    assert m_ucb(0.6, 0.5, 16.0, T, 0.0625) == pytest.approx((0.6 + 0.03125) / (0.5 - 0.03125))
    assert m_ucb(0.9, 0.75, 16.0, T, 1.0) == pytest.approx(1.0 / 0.25)  # the reward is capped at 1
    assert m_ucb(0.9, 0.5, 16.0, T, 1.0) == np.inf  # c̄ = e
    assert i_ucb(0.3, 0.0, 16.0, T, 0.25) == c_ucb(0.3, 0.0, 16.0, T, 0.25) == np.inf


def test_b_greedy_explores_less_and_less():
    """2 arms, α = 1: of 4,000 choices at t = 10 one in five is uniform, so one in ten takes the worse arm (5 σ)."""
    policy = BGreedy()
    state = policy.start(2)
    policy.add_history(state, 0, 5, 4.0, 2.0)
    policy.add_history(state, 1, 5, 1.0, 2.0)
    state.first_pulls_done = 2
    rng = np.random.default_rng(0)
    worse = sum(policy.choose(state, rng) for _ in range(4_000))
    assert abs(worse - 400) < 5 * math.sqrt(4_000 * 0.1 * 0.9)
    assert plain_ratio(0.6, 0.5, 3.0, 9.0) == pytest.approx(1.2)
    assert plain_ratio(0.0, 0.0, 3.0, 9.0) == np.inf
    assert BGreedy(alpha=0.5).exploration(4) == 2.0


def test_b_greedy_takes_an_arm_that_has_neither_paid_nor_cost_for_a_free_one():
    """Where it exploits, 0/0 is +∞ and comes before any ratio; with 0 it would come last."""
    policy = BGreedy(alpha=1e-9)
    state = policy.start(2)
    policy.add_history(state, 0, 5, 5.0, 1.0)
    policy.add_history(state, 1, 5, 0.0, 0.0)
    state.first_pulls_done = 2
    assert {policy.choose(state, np.random.default_rng(seed)) for seed in range(20)} == {1}


def test_budget_ucb():
    # e = ½: 0.3/0.75 + (0.5/0.75)(1 + 0.8/0.25)
    assert budget_ucb(0.3, 0.75, 16.0, T, 0.1, 1.0) == pytest.approx((0.3 + 0.5 * (1 + 0.8 / 0.25)) / 0.75)
    # the floor holds the denominator, 1 the numerator
    assert budget_ucb(0.9, 0.5, 16.0, T, 0.2, 1.0) == pytest.approx((0.9 + 0.5 * (1 + 1 / 0.2)) / 0.5)
    # width 4 doubles e
    assert budget_ucb(0.2, 1.0, 64.0, T, 0.1, 4.0) == pytest.approx(0.2 + 0.5 * (1 + 0.7 / 0.5))
    assert parse_policy("budget-ucb").needs == {"cost_floor"}


# --- UCB-SC and KL-UCB-SC ------------------------------------------------------------------------------------------


def test_ucb_sc_is_the_tangent_of_a_circle():
    # n = 2, t = 2e^0.36: w = 0.09; r̄ = 0.3, c̄ = 0.9: α = √(0.09/0.81) = 1/3, (0.3 + 0.3)/(0.9 − 0.1)
    assert ucb_sc(0.3, 0.9, 2.0, 2 * math.exp(0.36)) == pytest.approx(0.75)
    # r̄ = 0: α = √(w/(c̄² − w)) = 0.3/0.4 with c̄ = ½
    assert ucb_sc(0.0, 0.5, 2.0, 2 * math.exp(0.36)) == pytest.approx(0.75)
    assert ucb_sc(0.8, 0.3, 2.0, 2 * math.exp(0.36)) == np.inf  # c̄² ≤ w
    assert ucb_sc(0.6, 0.5, 7.0, 7.0) == pytest.approx(1.2)  # t = n: nothing to explore


def test_kl_ucb_sc_inverts_its_definition():
    # at ρ = 1 the nearest law to (0.3, 0.5) is (0.4, 0.4): with n = 10 and ln t = 10 (kl + kl) the index is 1
    level = kl(0.3, 0.4) + kl(0.5, 0.4)
    assert kl_ucb_sc(0.3, 0.5, 10.0, math.exp(10 * level), 0.0) == pytest.approx(1.0)
    assert kl_ucb_sc_plus(0.3, 0.5, 10.0, 10 * math.exp(10 * level)) == pytest.approx(1.0)
    # reward and cost always 1: only the cost can be lower, −n ln c = ln t
    assert kl_ucb_sc(1.0, 1.0, 2.0, E2, 0.0) == pytest.approx(math.e)
    assert kl_ucb_sc_plus(1.0, 1.0, 2.0, 2 * E2) == pytest.approx(math.e)
    # ln t + 3 ln ln t at t = e^e: e + 3
    assert kl_ucb_sc(1.0, 1.0, 2.0, math.exp(math.e), 3.0) == pytest.approx(math.exp((math.e + 3) / 2))
    assert kl_ucb_sc(0.3, 0.0, 2.0, E2, 0.0) == kl_ucb_sc_plus(0.3, 0.0, 2.0, E2) == np.inf


def test_pinsker_makes_ucb_sc_the_wider():
    rng = np.random.default_rng(0)
    reward, cost = rng.random((2, 2_000))
    pulls = rng.integers(1, 200, 2_000).astype(float)
    assert (kl_ucb_sc_plus(reward, cost, pulls, 1000.0) <= ucb_sc(reward, cost, pulls, 1000.0) * (1 + 1e-9)).all()


# --- UCB-B1, B2, B2C -------------------------------------------------------------------------------------------------


def test_ucb_b1():
    # α ln t/n = 2.5·4/1000 = 0.01; ε = √(2·0.08·0.01) + 0.02/3, η with variance 0.02
    reward_width, cost_width = 0.04 + 0.02 / 3, 0.02 + 0.02 / 3
    expected = 1.2 + 1.4 * (reward_width + 1.2 * cost_width) / 0.5
    assert ucb_b1(0.6, 0.5, 1000.0, E4, 0.08, 0.02, 2.5) == pytest.approx(expected)
    # η = 0.0267 against 0.21875·c̄: closed at 0.12, open at 0.13
    assert ucb_b1(0.6, 0.12, 1000.0, E4, 0.08, 0.02, 2.5) == np.inf
    assert ucb_b1(0.6, 0.13, 1000.0, E4, 0.08, 0.02, 2.5) < np.inf


def test_the_gate_of_ucb_b2_looks_at_the_mean_cost():
    # α ln t/n = 0.01: η = √(2·0.005·0.01) + 0.03 = 0.04, which opens the gate for c̄ > 0.04·1.28/0.28 = 0.183
    def index(mean_reward, mean_cost):
        return ucb_b2(mean_reward, mean_cost, 1000.0, E4, 0.02, 0.005, 0.0, 2.5)

    assert index(0.9, 0.18) == np.inf  # a gate that looked at the mean reward would be open
    assert index(0.01, 0.19) < np.inf  # and here it would be closed
    expected = 0.05 + 1.4 * (0.02 + 0.03 + 0.05 * 0.04) / 0.2
    assert index(0.01, 0.2) == pytest.approx(expected)


def test_correlation_narrows_the_interval_of_ucb_b2c():
    # ω = 0.005/0.005 = 1: the residual's variance is 0.02 − 0.005, |r̄/c̄ − ω| = 0.2, and 3(1 + 1) stands behind it
    reward_width = math.sqrt(2 * 0.015 * 0.01) + 0.06
    expected = 1.2 + 1.4 * (reward_width + 0.2 * 0.04) / 0.5
    assert ucb_b2c(0.6, 0.5, 1000.0, E4, 0.02, 0.005, 0.005, 2.5) == pytest.approx(expected)
    # no correlation, or costs that never vary: UCB-B2
    assert ucb_b2c(0.6, 0.5, 1000.0, E4, 0.02, 0.005, 0.0, 2.5) == ucb_b2(0.6, 0.5, 1000.0, E4, 0.02, 0.005, 0.0, 2.5)
    assert ucb_b2c(0.6, 0.5, 1000.0, E4, 0.02, 0.0, 0.0, 2.5) == ucb_b2(0.6, 0.5, 1000.0, E4, 0.02, 0.0, 0.0, 2.5)
    # a ratio that equals the slope needs no interval for the cost
    wide, narrow = (ucb_b2c(0.5, 0.5, 1e5, E4, 0.1, 0.1, covariance, 2.5) for covariance in (0.0, 0.1))
    assert 1.0 < narrow < wide


def test_variances_and_covariances_are_those_of_the_outcomes():
    policy = parse_policy("ucb-b2c")
    state, rng = policy.start(2), np.random.default_rng(0)
    outcomes = rng.random((50, 2))
    for reward, cost in outcomes:
        policy.observe(state, 1, reward, cost, rng)
    rewards, costs, both = (float(each[1]) for each in state.moments)
    assert rewards == pytest.approx(outcomes[:, 0].var())
    assert costs == pytest.approx(outcomes[:, 1].var())
    assert both == pytest.approx(np.cov(outcomes.T, bias=True)[0, 1])
    policy.add_history(state, 0, 10, 5.0, 4.0)
    assert [float(each[0]) for each in state.moments] == pytest.approx([0.25, 0.24, 0.0])  # as if all were 0 or 1


# --- IMED-ratio and Maillard-ratio -----------------------------------------------------------------------------------


def test_imed_ratio():
    evidence = 10 * (kl(0.3, 0.4) + kl(0.5, 0.4))  # at ρ̂ = 1
    assert imed_ratio(0.3, 0.5, 10.0, 99.0, 1.0, 1.0) == pytest.approx(-evidence - math.log(10))
    assert imed_ratio(0.3, 0.5, 10.0, 99.0, 1.0, 1.5) == pytest.approx(-1.5 * evidence - math.log(10))
    assert imed_ratio(0.5, 0.5, 7.0, 99.0, 1.0, 1.0) == pytest.approx(-math.log(7))  # the best one
    assert imed_ratio(0.5, 0.5, 7.0, 99.0, np.inf, 1.0) == LOWEST_INDEX  # another arm has cost nothing


def test_evidence_fades_from_kappa_fold_to_itself():
    evidence = kl(0.3, 0.4) + kl(0.5, 0.4)
    for pulls, counted in ((1.0, 1.0 + 100 / 101), (100.0, 150.0), (9_900.0, 9_999.0)):
        by_hand = -counted * evidence - math.log(pulls)
        assert imed_fading(0.3, 0.5, pulls, 1e5, 1.0, 2.0, 100.0) == pytest.approx(by_hand)
    assert imed_fading(0.5, 0.5, 7.0, 99.0, 1.0, 2.0, 100.0) == pytest.approx(-math.log(7))  # the best one


def test_arms_share_the_logarithm_of_imed_moss():
    evidence = kl(0.3, 0.4) + kl(0.5, 0.4)
    assert imed_moss(0.3, 0.5, 10.0, 99.0, 1.0, 1.0, 20.0) == pytest.approx(-10 * evidence)  # fewer pulls than arms
    assert imed_moss(0.3, 0.5, 60.0, 99.0, 1.0, 1.5, 20.0) == pytest.approx(-90 * evidence - math.log(3))
    assert imed_moss(0.5, 0.5, 80.0, 99.0, 1.0, 1.0, 20.0) == pytest.approx(-math.log(4))  # the best one
    # with two arms ln 500 = 6.2 is more than 10·0.042 + ln 5 = 2.0
    assert choice("imed-moss", [(1000, 500, 500), (10, 3, 5)]) == 1
    # with 200 more, ln(1000/202) = 1.6 is less than 50·0.042 = 2.1
    assert choice("imed-moss", [(1000, 500, 500), *[(50, 15, 25)] * 201]) == 0
    assert choice("imed-ratio", [(1000, 500, 500), *[(50, 15, 25)] * 201]) != 0  # ln 1000 = 6.9, 2.1 + ln 50 = 6.0


def test_imed_ratio_pulls_what_is_least_unlikely_to_be_the_best():
    # the leader has 1000 pulls, ln 1000 = 6.9; the second has evidence 10·0.042 + ln 10 = 2.7
    assert choice("imed-ratio", [(1000, 500, 500), (10, 3, 5)]) == 1
    # 200 pulls: 200·0.042 + ln 200 = 13.7
    assert choice("imed-ratio", [(1000, 500, 500), (200, 60, 100)]) == 0
    assert choice("imed-ratio", [(1000, 500, 500), (3, 0, 0)]) == 1  # it has cost nothing
    # a retired arm is no best ratio: without arm 0, arm 2 is the one to compare with
    assert choice("imed-ratio", [(1000, 900, 100), (200, 60, 100), (1000, 500, 500)], [False, True, True]) == 2


def test_maillard_ratio_has_propensities_in_closed_form():
    """Three arms at ρ̂ = 1: chances as computed by hand, and 2,000 choices within 5 standard deviations of them."""
    policy = parse_policy("maillard-ratio:kappa=0.5")
    state = policy.start(3)
    for arm, past in enumerate([(20, 10.0, 10.0), (10, 3.0, 5.0), (8, 4.0, 4.0)]):
        policy.add_history(state, arm, *past)
    state.first_pulls_done = 3
    weight = math.exp(-0.5 * 10 * (kl(0.3, 0.4) + kl(0.5, 0.4)))
    chances = np.array([1.0, weight, 1.0]) / (2.0 + weight)
    assert IndexPolicy.chances(policy.scores(state)) == pytest.approx(chances)
    rng = np.random.default_rng(1)
    counts = np.bincount([policy.choose(state, rng) for _ in range(2_000)], minlength=3)
    assert (np.abs(counts - 2_000 * chances) < 5 * np.sqrt(2_000 * chances * (1 - chances))).all()
    assert maillard_ratio(0.3, 0.5, 10.0, 99.0, 1.0, 0.5) == pytest.approx(math.log(weight))
    assert maillard_ratio(0.5, 0.5, 10.0, 99.0, 1.0, 0.5) == 0.0
    assert IndexPolicy.chances(np.array([np.inf, 3.0, np.inf, -np.inf])).tolist() == [0.5, 0.0, 0.5, 0.0]


# --- UCB-M1 ----------------------------------------------------------------------------------------------------------


def test_ucb_m1_takes_medians_of_groups():
    """Outcomes are dealt to 256 groups; with one round ln t = 0, so one group, and with t = e² 2⁴ = 16 of them."""
    assert [group_count(2.1, rounds) for rounds in (1.0, E2, 1e30)] == [1, 16, 256]
    policy = parse_policy("ucb-m1")
    state, rng = policy.start(2), np.random.default_rng(0)
    for number in range(512):  # groups 0 to 5 of 16 bring 0.1 at a cost of 0.5, the others 0.8 at 0.4
        policy.observe(state, 1, *((0.1, 0.5) if number % 16 < 6 else (0.8, 0.4)), rng)
    ratio, cost = policy.medians(state, E2, np.array([1]))
    assert (ratio[0], cost[0]) == (pytest.approx(2.0), pytest.approx(0.4))
    ratio, cost = policy.medians(state, 1.0, np.array([1]))  # one group: the mean
    assert ratio[0] == pytest.approx((6 * 0.1 + 10 * 0.8) / (6 * 0.5 + 10 * 0.4))
    assert policy.scores(state).tolist() == [np.inf, np.inf]  # 11 √(¼·2.1 ln t/n) is far above any gate


def test_the_index_of_ucb_m1():
    policy = parse_policy("ucb-m1:reward_variance=0.01,cost_variance=0.0001")
    state = policy.start(2)
    policy.add_history(state, 0, 10_000, 6_000.0, 5_000.0)
    policy.add_history(state, 1, 10_000, 6_000.0, 1_000.0)
    share = 2.1 * math.log(20_000) / 10_000
    reward_width, cost_width = 11 * math.sqrt(0.01 * share), 11 * math.sqrt(0.0001 * share)
    expected = 1.2 + math.sqrt(8) * (reward_width + 1.2 * cost_width) / 0.5
    assert cost_width < 0.1 * 0.28 / 1.28
    other = 6.0 + math.sqrt(8) * (reward_width + 6.0 * cost_width) / 0.1
    assert policy.scores(state) == pytest.approx([expected, other])
    assert state.group_pulls.sum(axis=0).tolist() == [10_000, 10_000]
    assert np.ptp(state.group_pulls) == 1.0


# --- NPTS-ratio and empirical IMED -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("pairs", "chance_above"),
    [
        ([(1.0, 1.0)], lambda x: 1 / x if x > 1 else 1.0),  # 1/U, U uniform
        ([(0.0, 1.0), (0.0, 1.0)], lambda x: (1 + x) ** -2.0),  # an exponential by a Gamma(2)
        ([(0.0, 0.5)], lambda x: 1 / (1 + x / 2)),  # twice an exponential by another
    ],
)
def test_npts_draws_weights_of_the_pairs(pairs, chance_above):
    """4,000 scores against the exact law at three levels, each within 5 standard deviations (6e-7)."""
    policy = parse_policy("npts-ratio")
    state, rng = policy.start(1), np.random.default_rng(3)
    for reward, cost in pairs:
        policy.observe(state, 0, reward, cost, rng)
    alone = np.array([policy.draw_each(state, rng, [0])[0] for _ in range(4_000)])
    for scores in (alone, policy.draw(state, rng, 4_000)[:, 0]):
        for level in (0.5, 1.5, 4.0):
            exact = chance_above(level)
            assert abs((scores > level).mean() - exact) <= 5 * math.sqrt(exact * (1 - exact) / 4_000)


def test_outcomes_are_rounded_without_changing_the_mean():
    """0.33 is 6.6 steps of 1/20: 7 in 60 % of 20,000 trials (5 σ); multiples take no draw."""
    rng, twin = np.random.default_rng(0), np.random.default_rng(0)
    assert [rounded(multiple / 20, 20, rng) for multiple in range(21)] == list(range(21))
    assert rng.random() == twin.random()
    steps = np.array([rounded(0.33, 20, rng) for _ in range(20_000)])
    assert set(steps) == {6, 7}
    assert abs((steps == 7).mean() - 0.6) < 5 * math.sqrt(0.24 / 20_000)


def test_empirical_imed_sees_which_pulls_pay():
    """Equal means, but arm 1 pays where it costs and arm 2 where it does not: the second could sooner be the best."""
    policy = parse_policy("empirical-imed")
    state, rng = policy.start(3), np.random.default_rng(0)
    for arm, pairs in enumerate(([(1, 1)] * 30, [(1, 1)] * 8 + [(0, 1)] * 8, [(1, 0)] * 8 + [(0, 1)] * 16)):
        for reward, cost in pairs:
            policy.observe(state, arm, float(reward), float(cost), rng)
    leader, tied, opposed = policy.scores(state)
    assert leader == pytest.approx(-math.log(30))
    # ρ̂ = 1: R − C is 0 or −1 for arm 1, so λ = 1 and ln 2 in half of its pulls; ±1 for arm 2, whose entropy is kl(⅓, ½)
    assert tied == pytest.approx(-8 * math.log(2) - math.log(16), rel=1e-9)
    assert opposed == pytest.approx(-24 * kl(1 / 3, 1 / 2) - math.log(24), rel=1e-9)


@pytest.mark.parametrize("name", ["npts-ratio", "empirical-imed"])
def test_steps_are_whole(name):
    for steps in ("0", "2.5", "101", "nan"):
        with pytest.raises(BadParameter, match="whole number from 1 to 100"):
            parse_policy(f"{name}:steps={steps}")
