"""Policies by the rules of older campaigns choose as they did when these rules were made."""

import numpy as np
import pytest

from budgetbandits import parse_policy
from budgetbandits.fluid import best_mix
from budgetbandits.learner import Learner
from budgetbandits.policies.base import Request
from budgetbandits.service.earlier_policies import as_it_was
from budgetbandits.service.settings import RULES

AMONG = np.array([True, False, True])


def test_a_campaign_of_the_rules_3_plans_with_the_arms_of_the_request():
    """What it draws and solves, written out: the first costs are a quarter and three quarters of the largest."""
    policy = as_it_was(parse_policy("bts-paced"), 3)
    learner, rng = Learner.new(policy, 3, {"budget": 5.0, "horizon": 40.0}), np.random.default_rng(1)
    outcomes = [(0, 0.3, 0.02), (1, 0.5, 0.01), (2, 0.9, 0.03), (2, 0.8, 0.02)]
    for arm, reward, cost in outcomes:
        learner.learn(arm, reward, cost, rng)
    for seed in range(60):
        rng, shapes = np.random.default_rng(seed), []
        for place, first in ((1, (0.0, 1.0)), (2, (0.25, 0.75))):
            for arm in (0, 2):
                seen = np.array([each[place] for each in outcomes if each[0] == arm] + list(first))
                kappa = len(seen) * seen.mean() * (1 - seen.mean()) / seen.var()
                shapes.append((kappa * seen.mean(), kappa * (1 - seen.mean())))
        reward, cost = rng.beta(*np.array(shapes).T).reshape(2, 2).tolist()
        mix = best_mix([reward], [cost], [1.0], learner.state.rate)
        named = mix.upgrade if mix.share > 0.0 and rng.random() < mix.share else mix.arms[0]
        assert learner.choose(np.random.default_rng(seed), AMONG) == (0, 2)[named]


@pytest.mark.parametrize("spec", ["bts-paced", "primal-dual-bwk"])
def test_new_campaigns_have_the_policy_as_it_is(spec):
    policy = parse_policy(spec)
    assert as_it_was(policy, RULES) is policy
    assert as_it_was(policy, 3).spec == policy.spec
    assert as_it_was(parse_policy("bts"), 0) == parse_policy("bts")


def test_the_prices_of_primal_dual_rose_with_each_choice():
    policy = as_it_was(parse_policy("primal-dual-bwk"), 3)
    state, rng = policy.start(2, {"budget": 5.0, "horizon": 40.0}), np.random.default_rng(1)
    for _ in range(4):
        policy.observe(state, policy.choose(state, rng), 0.5, 0.5, rng)
    before = state.log_time
    policy.choose(state, rng)
    risen = state.log_time
    assert risen > before
    policy.observe(state, 0, 0.5, 0.5, rng)
    assert state.log_time == risen


def test_prices_of_arms_that_may_not_answer_said_nothing():
    policy = as_it_was(parse_policy("bts-paced"), 3)
    learner = Learner.new(policy, 3, {"budget": 5.0, "horizon": 40.0})
    one, other = (
        [learner.choose(np.random.default_rng(seed), AMONG, Request(0, np.array(prices))) for seed in range(20)]
        for prices in ([0.1, 1.0, 0.2], [0.1, 0.001, 0.2])
    )
    assert one == other
    assert set(one) == {0, 2}
