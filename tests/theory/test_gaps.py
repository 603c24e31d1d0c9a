"""Δ, δ(γ) and ε(γ): the identity that defines them, ties, and what is refused."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from budgetbandits import Problem
from budgetbandits.errors import BadParameter, NotIndependent
from budgetbandits.problems.distributions import JointTable
from budgetbandits.problems.problem import Arm
from budgetbandits.theory import delta_gaps, epsilon_gaps, lower_constant, reference_arm, upper_bound

mean = st.floats(0.001, 1.0)


@given(
    rewards=st.lists(mean, min_size=2, max_size=5), costs=st.lists(mean, min_size=5, max_size=5), gamma=st.floats(0, 1)
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


def test_of_several_best_arms_the_dearest_is_arm_one():
    assert reference_arm(Problem.bernoulli([0.2, 0.4, 0.3], [0.25, 0.5, 0.9])) == 1


def test_correlated_arms_are_refused():
    arms = (Arm("a", JointTable(((1, 1, 1), (0, 0.5, 1)))), Problem.bernoulli([0.5, 0.5], [0.5, 0.5]).arms[1])
    for evaluate in (lower_constant, lambda problem: upper_bound(problem, 100)):
        with pytest.raises(NotIndependent, match="'a' has a joint law"):
            evaluate(Problem(arms))
