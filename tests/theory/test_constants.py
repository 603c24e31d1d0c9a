"""The gaps and the constants of the paper, against its identities and numbers worked out by hand."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from budgetbandits import Problem
from budgetbandits.errors import BadParameter, NotIndependent
from budgetbandits.policies.cost_floor_ucb import ucb_bv1, ucb_bv2
from budgetbandits.problems.distributions import JointTable
from budgetbandits.problems.problem import Arm
from budgetbandits.theory import (
    bts_constant,
    delta_gaps,
    epsilon_gaps,
    lower_constant,
    reference_arm,
    ucb_bv1_constant,
    ucb_bv1_constant_quoted,
    ucb_bv2_constant,
    upper_bound,
)

any_mean = st.floats(0.001, 1.0)


@given(
    rewards=st.lists(any_mean, min_size=2, max_size=5),
    costs=st.lists(any_mean, min_size=5, max_size=5),
    gamma=st.floats(0, 1),
)
def test_delta_and_epsilon_meet_at_one_ratio(rewards, costs, gamma):
    problem = Problem.bernoulli(rewards, costs[: len(rewards)])
    best = reference_arm(problem)
    delta, epsilon = delta_gaps(problem, gamma), epsilon_gaps(problem, gamma)
    raised = (problem.reward_means + delta) / (problem.cost_means - delta)
    lowered = (problem.reward_means[best] - epsilon) / (problem.cost_means[best] + epsilon)
    np.testing.assert_allclose(raised, lowered, rtol=1e-9)


def test_the_ends_of_gamma_give_one_arm_all_of_the_way():
    problem = Problem.bernoulli([0.6, 0.4], [0.5, 0.8])
    assert delta_gaps(problem, 0.0)[1] == epsilon_gaps(problem, 1.0)[1] == 0.0
    lowered = epsilon_gaps(problem, 0.0)[1]
    assert (0.6 - lowered) / (0.5 + lowered) == pytest.approx(0.4 / 0.8)


@pytest.mark.parametrize("gamma", [-0.1, 1.1, np.nan])
def test_gamma_outside_the_unit_interval(gamma):
    problem = Problem.bernoulli([0.6, 0.4], [0.5, 0.8])
    for evaluate in (delta_gaps, epsilon_gaps, lambda p, g: upper_bound(p, 100, gamma=g)):
        with pytest.raises(BadParameter, match="from 0 to 1"):
            evaluate(problem, gamma)


def test_of_several_best_arms_the_most_expensive_is_arm_one():
    assert reference_arm(Problem.bernoulli([0.2, 0.4, 0.3], [0.25, 0.5, 0.9])) == 1


def test_correlated_arms_are_refused():
    arms = (Arm("a", JointTable(((1, 1, 1), (0, 0.5, 1)))), Problem.bernoulli([0.5, 0.5], [0.5, 0.5]).arms[1])
    for evaluate in (lower_constant, lambda problem: upper_bound(problem, 100)):
        with pytest.raises(NotIndependent, match="'a' has a joint law"):
            evaluate(Problem(arms))


mean = st.floats(0.01, 1.0)
two_arms = Problem.bernoulli([0.5, 0.3], [0.5, 0.4])  # ρ* = 1, Δ = 0.25, λ = 0.4


@pytest.mark.parametrize(("index", "constant"), [(ucb_bv1, ucb_bv1_constant), (ucb_bv2, ucb_bv2_constant)])
def test_at_the_constants_number_of_pulls_the_bonus_is_half_the_gap(index, constant):
    """constant = μc Δ n/ln t with n the pulls at which the policy's own index exceeds the ratio by Δ/2."""
    log_time = 50.0
    pulls = constant(two_arms) / (0.4 * 0.25) * log_time
    bonus = index(0.3, 0.4, pulls, np.exp(log_time) + 1.0, 0.4) - 0.75
    assert bonus == pytest.approx(0.125, rel=1e-9)


def test_remark_one_by_hand():
    """w = (2 + 5 + ¼)/(¼ · 0.4) = 72.5."""
    assert bts_constant(two_arms) == pytest.approx(4 * 4 / (0.4 * 0.25))
    assert bts_constant(two_arms, gamma=1.0) == pytest.approx(80.0)
    assert ucb_bv1_constant(two_arms) == pytest.approx(0.4 * 0.25 * 72.5**2)
    assert ucb_bv1_constant_quoted(two_arms) == pytest.approx(1.0 * 72.5**2 + 0.2 * 72.5)
    richer = Problem.bernoulli([0.5, 0.6], [0.5, 0.8])  # the worse arm pays more: its part of the second sum is 0
    assert ucb_bv1_constant_quoted(richer) == pytest.approx(((2 + 4 + 0.25) / (0.25 * 0.5)) ** 2)


@given(rewards=st.lists(mean, min_size=2, max_size=6), costs=st.lists(mean, min_size=6, max_size=6))
@settings(max_examples=300)
def test_remark_one_holds(rewards, costs):
    """And by the sharper count of Lemma 2 as well, which makes the rivals' constants smaller."""
    problem = Problem.bernoulli(rewards, costs[: len(rewards)])
    ours = bts_constant(problem)
    for theirs in (ucb_bv1_constant, ucb_bv2_constant, ucb_bv1_constant_quoted):
        assert ours <= theirs(problem)
    assert ours >= bts_constant(problem, gamma=1.0) >= lower_constant(problem)


def test_the_bound_grows_by_the_constant():
    """The budget grows from B = 10¹⁰⁰ to 10²⁰⁰ at one γ; ⌈L⌉ adds less than a pull."""
    problem = Problem.bernoulli([0.8, 0.4, 0.6], [0.5, 0.5, 0.9])
    early, late = (upper_bound(problem, 10.0**power, gamma=0.5).regret for power in (100, 200))
    assert (late - early) / (100 * math.log(10)) == pytest.approx(bts_constant(problem, gamma=0.5), rel=1e-4)


def test_the_ends():
    assert bts_constant(two_arms, gamma=0.0) == bts_constant(two_arms, gamma=1e-200) == math.inf
    tied = Problem.bernoulli([0.5, 0.25], [0.5, 0.25])
    for constant in (bts_constant, ucb_bv1_constant, ucb_bv2_constant, ucb_bv1_constant_quoted):
        assert constant(tied) == 0.0
    assert bts_constant(tied, gamma=0.0) == 0.0
