"""What was learned, in other units or by another policy: hand-worked, for every policy, and against a fresh start."""

from dataclasses import replace

import numpy as np
import pytest

from budgetbandits.policies import POLICIES, parse_policy
from budgetbandits.policies.base import Knowledge, Request, RequestPolicy, UnitChange
from budgetbandits.policies.transfer import carried, totals

ARMS = 3
KNOWN = Knowledge(budget=100.0, horizon=500.0, cost_floor=0.01, costs=[0.2, 0.4, 0.6])
SAME = UnitChange(1.0, np.ones(ARMS), 1.0)
HALVED = UnitChange(0.5, np.full(ARMS, 0.5), 0.5)
"""The largest reward and the largest cost are twice what they were."""


def learned(policy, factor=1.0, seed=3, whole=False):
    """The state after 60 pulls with these outcomes, in units in which they are ``factor`` times as large."""
    rng, state = np.random.default_rng(seed), policy.start(ARMS, KNOWN)
    for number in range(60):
        reward, cost = rng.integers(0, 2, 2) if whole else rng.uniform(0.05, 0.9, 2)
        policy.observe(
            state, number % ARMS, float(reward) * factor, float(cost) * factor, np.random.default_rng(number)
        )
    return state


@pytest.mark.parametrize("name", [name for name in POLICIES if name != "epsilon-first-greedy"])
def test_means_in_the_users_unit_stay(name):
    policy = parse_policy(name)
    state = learned(policy)
    before = [totals(policy, state, arm) for arm in range(ARMS)]
    after = carried(policy, state, policy, KNOWN, HALVED, 0.0)
    assert after.pulls.tolist() == [20] * ARMS
    for arm, (pulls, reward, cost) in enumerate(before):
        assert totals(policy, after, arm) == (pulls, pytest.approx(reward / 2), pytest.approx(cost / 2))


@pytest.mark.parametrize("name", ["kube", "ucb-b2", "ucb-m1", "bts-paced", "bts-linear", "bts-gaussian", "pd-bwk"])
def test_sums_are_those_of_outcomes_reported_in_the_new_unit(name):
    """Exactly what would have been learned had the unit been the new one from the beginning."""
    policy = parse_policy(name)
    moved, fresh = carried(policy, learned(policy), policy, KNOWN, HALVED, 0.0), learned(policy, 0.5)
    for field, value in vars(fresh).items():
        if isinstance(value, np.ndarray):
            assert getattr(moved, field) == pytest.approx(value), field


def test_squares_of_trials_stay_those_of_zeros_and_ones():
    policy = parse_policy("bts-paced:trials=1")
    state = learned(policy, whole=True)
    after = carried(policy, state, policy, KNOWN, HALVED, 0.0)
    assert after.sums[4:6].tolist() == after.sums[2:4].tolist()


def test_what_is_above_the_new_largest_counts_as_the_largest():
    twice = UnitChange(2.0, np.full(ARMS, 2.0), 2.0)
    for name in ("bts", "kube", "bts-paced", "bts-linear"):
        policy = parse_policy(name)
        state = learned(policy)
        after = carried(policy, state, policy, KNOWN, twice, 0.0)
        for arm in range(ARMS):
            pulls, reward, cost = totals(policy, after, arm)
            assert max(reward, cost) <= pulls
        assert policy.choose(after, np.random.default_rng(1)) in range(ARMS)


def test_money_that_was_spent_stays_spent():
    policy = parse_policy("kube")
    state = learned(policy)
    spent = state.spent
    assert carried(policy, state, policy, KNOWN, HALVED, 0.0).spent == pytest.approx(spent / 2)
    after = carried(parse_policy("bts"), learned(parse_policy("bts")), policy, KNOWN, SAME, 7.0)
    assert after.spent == pytest.approx(7.0)


@pytest.mark.parametrize("old", ["bts", "bts-joint", "kube", "bts-paced", "npts-ratio"])
@pytest.mark.parametrize("new", ["bts", "bts-gaussian", "ucb-b2", "bts-paced", "epsilon-first"])
def test_another_policy_begins_with_the_totals(old, new):
    before, after = parse_policy(old), parse_policy(new)
    state = learned(before, whole=True)
    known = [totals(before, state, arm) for arm in range(ARMS)]
    state = carried(before, state, after, KNOWN, SAME, 0.0)
    for arm, (pulls, reward, cost) in enumerate(known):
        assert totals(after, state, arm) == (pulls, pytest.approx(reward), pytest.approx(cost))


def test_segments_and_estimates_stay():
    policy = parse_policy("bts-paced")
    assert isinstance(policy, RequestPolicy)
    state, rng = policy.start(ARMS, KNOWN), np.random.default_rng(1)
    policy.open_segment(state)
    request = Request(1, np.array([0.2, 0.4, 0.8]))
    policy.observe(state, 2, 0.5, 0.6, rng, request)
    paid, relative = state.paid, state.sums[6:].copy()
    other = replace(policy, forget=0.1)
    after = carried(policy, state, other, KNOWN, UnitChange(1.0, np.array([1.0, 1.0, 0.25]), 0.5), 0.0)
    assert after.sums[3, 1, 2] == pytest.approx(0.15)
    assert after.paid == pytest.approx(paid / 4)  # of the arm's own scale, which is not known here
    assert after.sums[6:].tolist() == relative.tolist()  # costs as multiples of their estimates have no unit
    assert after.typical_prices()[0] == pytest.approx([0.1, 0.2, 0.4])
