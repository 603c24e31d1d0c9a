"""What is kept with a state of `bts-linear` is what follows from it, to the bit, whatever was done to it."""

import copy
from dataclasses import replace

import numpy as np
import pytest

from budgetbandits.allocation.learner import Learner
from budgetbandits.policies.base import Knowledge, Request, UnitChange
from budgetbandits.policies.linear import LinearThompson
from budgetbandits.policies.linear.fit import TwoPointLaws, rarity
from budgetbandits.policies.linear.state import STANDARDISED_EVERY, ColumnMoments
from budgetbandits.policies.transfer import carried

ARMS, FEATURES = 5, 32
KNOWN = Knowledge(budget=300.0, horizon=2000.0, features=FEATURES)


def play(policy, state, rounds, seed=1, segments=1):
    rng = np.random.default_rng(seed)
    for _ in range(rounds):
        request = Request(int(rng.integers(segments)), features=rng.standard_normal(FEATURES))
        arm = policy.choose(state, rng, request)
        policy.observe(state, arm, rng.random(), 0.1 + 0.1 * arm * rng.random(), rng, request)


def check_kept(policy, state):
    """What is kept, where there is anything, against a state that keeps nothing yet."""
    other = copy.deepcopy(state)
    other.kept = None
    mine, fresh = policy.fit(state), policy.fit(other)
    for name in ("factor", "means", "follow", "shared", "shared_factor", "noise"):
        np.testing.assert_array_equal(getattr(mine.regressions, name), getattr(fresh.regressions, name), err_msg=name)
    np.testing.assert_array_equal(mine.rows, fresh.rows)
    np.testing.assert_array_equal(mine.shapes, fresh.shapes)
    np.testing.assert_array_equal(mine.two_point, fresh.two_point)


@pytest.mark.parametrize("forget", [0.0, 0.01])
def test_after_each_outcome(forget):
    policy = LinearThompson(forget=forget)
    state = policy.start(ARMS, KNOWN)
    for number in range(60):
        play(policy, state, 1, seed=number)
        check_kept(policy, state)


def test_after_whatever_else_changes_a_state():
    policy = LinearThompson()
    state = policy.start(ARMS, KNOWN)

    def changed(change):
        play(policy, state, 40)
        policy.fit(state)
        change()
        check_kept(policy, state)

    changed(lambda: policy.add_history(state, 2, 30, 12.0, 3.0))
    changed(lambda: policy.open_segment(state))
    changed(lambda: play(policy, state, 20, segments=2))
    changed(lambda: state.extend(policy.new_arm_state(state, state.known)))
    changed(lambda: state.active.__setitem__(1, False))
    saved = state.to_dict()
    changed(lambda: state.filled(saved))
    units = UnitChange(0.5, np.full(ARMS + 1, 0.5), 0.5)
    state = carried(policy, state, policy, replace(state.known), units, 1.0)
    check_kept(policy, state)


def test_after_an_arm_is_read_from_a_database():
    policy = LinearThompson()
    mine, theirs = (Learner.new(policy, ARMS, KNOWN, kind="plain") for _ in range(2))
    play(policy, mine.state, 50)
    theirs.load_state(mine.shared_state(), {arm: mine.arm_state(arm) for arm in range(ARMS)})
    policy.fit(theirs.state)
    play(policy, mine.state, 1, seed=5)
    theirs.load_state(mine.shared_state(), {arm: mine.arm_state(arm) for arm in range(ARMS)})
    check_kept(policy, theirs.state)
    np.testing.assert_array_equal(policy.fit(mine.state).rows, policy.fit(theirs.state).rows)


def test_other_weights_are_other_posteriors():
    state = LinearThompson().start(ARMS, KNOWN)
    play(LinearThompson(), state, 50)
    before = LinearThompson().fit(state).regressions.means.copy()
    check_kept(LinearThompson(apart=1.0), state)
    assert not np.array_equal(LinearThompson(apart=1.0).fit(state).regressions.means, before)
    check_kept(LinearThompson(), state)


def test_rows_are_standardised_by_what_was_seen_not_long_ago():
    policy, rng = LinearThompson(), np.random.default_rng(1)
    state = policy.start(2, replace(KNOWN, features=2))
    for number in range(200):
        flag = float(number == 170)
        policy.observe(state, number % 2, 0.5, 0.1, rng, Request(features=np.array([rng.normal(), flag])))
        now = state.measured()
        if number < STANDARDISED_EVERY or (number + 1) % STANDARDISED_EVERY == 0 or flag:
            np.testing.assert_array_equal(state.standard, now)
        if number > 4 * STANDARDISED_EVERY:
            assert state.standard.scale[1] == pytest.approx(now.scale[1], rel=0.2)
        assert (state.standard.scale[2] > 0.0) == (number >= 170)  # at once, since it has varied now


def test_features_with_two_values_are_known_by_their_moments():
    rng = np.random.default_rng(2)
    rows = np.column_stack([
        rng.random(400) < 0.4, 7.0 - 2.0 * (rng.random(400) < 0.05), rng.standard_normal(400), rng.integers(3, size=400)
    ])  # fmt: skip
    whole = np.column_stack([np.ones(400), rows])
    sums, squares, *powers = (np.sum(whole**power, axis=0)[:, None] for power in (1, 2, 3, 4))
    law = TwoPointLaws.by_moments(ColumnMoments.by_sums(sums, squares, np.array(powers)), np.array([400.0]))
    centred = rows - rows.mean(axis=0)
    np.testing.assert_allclose(law.low[0, :2], centred.min(axis=0)[:2], rtol=1e-6)
    np.testing.assert_allclose(law.high[0, :2], centred.max(axis=0)[:2], rtol=1e-6)
    np.testing.assert_allclose(law.share[0, :2], (centred[:, :2] > 0.0).mean(axis=0), rtol=1e-6)
    assert not np.any([part[0, 2:] for part in law])
    for slopes in (np.array([-6.9, 3.0, 1.0, 1.0]), np.array([0.5, -0.5, 2.0, 2.0])):
        two = slopes[:2]
        exact = np.log(np.exp(centred[:, :2] * two).mean(axis=0)) - 0.5 * two * two * centred[:, :2].var(axis=0)
        assert law.excess(slopes[None, None])[0, 0] == pytest.approx(exact.sum(), rel=1e-6)


def test_what_is_rare_is_known_by_the_mean_and_the_variance_of_rewards():
    count, mean = np.array([0.0, 98.0, 1e6, 1e6, 1e6]), np.array([0.0, 0.5, 0.5, 0.01, 0.99])
    coins = rarity(count, count * mean, count * mean)
    assert coins == pytest.approx([1.0, 1.0, 1.0, *[1.0 / (16.0 * 0.01 * 0.99)] * 2], rel=1e-3)
    narrow = mean * mean + 1e-4  # rewards of one per cent that differ by one per cent are no coins
    assert rarity(count, count * mean, count * narrow) == pytest.approx([1.0] * 5)


@pytest.mark.parametrize("share", [0.02, 0.4])
def test_a_flag_that_makes_requests_nearly_free_leaves_the_others_their_price(share):
    policy, rng = LinearThompson(), np.random.default_rng(7)
    state = policy.start(2, Knowledge(budget=300.0, horizon=2000.0, features=1))
    for number in range(1000):
        free = rng.random() < share
        cost = (0.02, 0.1)[number % 2] * (0.01 if free else 1.0)
        policy.observe(state, number % 2, 0.5, cost, rng, Request(features=np.array([float(free)])))
    assert policy.expected(state, Request(features=np.zeros(1)))[1] == pytest.approx([0.02, 0.1], rel=0.1)


@pytest.mark.parametrize("scale", [1e-120, 1e-70, 1e-29, 1e28])
def test_numbers_however_small_or_large_give_no_warning(scale):
    policy, rng = LinearThompson(), np.random.default_rng(8)
    state = policy.start(2, Knowledge(budget=300.0, horizon=2000.0, features=2))
    with np.errstate(all="raise", under="ignore"):
        for _ in range(60):
            request = Request(features=scale * np.array([rng.standard_normal(), rng.random() < 0.4]))
            policy.observe(state, policy.choose(state, rng, request), 0.5, 0.1, rng, request)
    assert ((state.standard.scale[1:] > 0.0) == (scale > 1e-30)).all()  # what varies by less is a constant
