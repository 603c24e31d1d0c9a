"""What `bts-paced` and `bts-linear` have learned fades with the requests, also of arms that are not asked."""

import numpy as np
import pytest

from budgetbandits import Problem, simulate
from budgetbandits.policies import parse_policy
from budgetbandits.policies.base import Knowledge, Request
from budgetbandits.policies.paced.statistics import COUNT, PAID
from budgetbandits.policies.planning import Fading
from budgetbandits.problems.streams import RequestStream

POLICIES = ("bts-paced", "bts-linear")


def taught(name, outcomes, horizon=3_000.0):
    """The policy and a state that has seen these outcomes: how many, the arm, the reward and the cost."""
    policy, rng = parse_policy(name), np.random.default_rng(1)
    state = policy.start(2, Knowledge(budget=1_000.0, horizon=horizon))
    for number, arm, reward, cost in outcomes:
        for _ in range(number):
            policy.observe(state, arm, reward, cost, rng)
    return policy, state


@pytest.mark.parametrize("name", POLICIES)
def test_an_arm_that_is_not_asked_becomes_unsure_again(name):
    """Thirty outcomes of the second arm, then 2,900 of the first. The mean of the second stays."""
    _, state = taught(name, [(30, 1, 0.0, 0.5), (2_900, 0, 1.0, 0.1)])
    first, second = (state.arm_sums(arm) for arm in range(2))
    assert second[0] == pytest.approx(4.0)
    assert second[1] == 0.0
    assert second[2] / second[0] == pytest.approx(0.5)
    assert first[0] == pytest.approx(np.sqrt(2 * 3_000) / 0.15, rel=0.05)
    assert state.paid == pytest.approx(30 * 0.5 + 2_900 * 0.1)


@pytest.mark.parametrize("name", POLICIES)
@pytest.mark.parametrize(("told", "horizon"), [(":forget=0", 3_000.0), ("", np.inf)])
def test_nothing_is_forgotten_without_a_horizon_or_if_told_so(name, told, horizon):
    _, state = taught(name + told, [(30, 1, 0.0, 0.5), (300, 0, 1.0, 0.1)], horizon)
    assert [state.arm_sums(arm)[0] for arm in range(2)] == [300.0, 30.0]


def test_each_step_by_hand():
    """Half is forgotten with each request: of six outcomes of the second arm five are left, of which the most that four
    of them are is forgotten; the first arm, which is asked, keeps a half whatever it has."""
    _, state = taught("bts-paced:forget=0.5", [(1, 0, 1.0, 0.5), (1, 1, 1.0, 0.5)])
    state.sums[COUNT:, 0, 1] *= 6.0
    policy, rng, counts = parse_policy("bts-paced:forget=0.5"), np.random.default_rng(1), []
    for _ in range(3):
        policy.observe(state, 0, 0.0, 1.0, rng)
        counts.append(state.sums[COUNT, 0].tolist())
    assert counts == [[1.5, 4.0], [1.75, 4.0], [1.875, 4.0]]
    assert state.sums[PAID, 0].tolist() == [3.5, 0.5]


def test_outcomes_fade_in_steps_of_a_twentieth():
    every, kept = Fading.by_forgetting(0.001, Knowledge(), 2)
    assert (every, kept) == (50, 0.999**50)
    fading = Fading(50, 0.95)
    assert fading.shares(np.array([100.0, 100.0, 4.1, 1.0]), 1, 150).tolist() == [0.95, 0.95, 4.0 / 4.1, 1.0]
    assert fading.shares(np.array([100.0, 2.0]), 1, 150).tolist() == [0.95, 0.95]
    assert fading.shares(np.array([100.0, 100.0]), 1, 151) is None
    assert Fading.by_forgetting(None, Knowledge(horizon=1e-9), 2).kept == 0.5  # at most a half, however few requests
    assert Fading.by_forgetting(1e-310, Knowledge(), 2).kept == 1.0  # and the least that a number can be


@pytest.mark.parametrize("name", POLICIES)
def test_a_step_gives_the_state_new_arrays(name):
    """So that a driver that keeps states by arm writes all of them back; between steps it writes one."""
    policy, rng = parse_policy(f"{name}:forget=0.01"), np.random.default_rng(1)
    state = policy.start(3, Knowledge(budget=90.0, horizon=100.0))
    arrays = [each for each in vars(state) if isinstance(getattr(state, each), np.ndarray) and each != "active"]
    for number in range(1, 21):
        before = {each: getattr(state, each) for each in arrays}
        copies = {each: array.copy() for each, array in before.items()}
        policy.observe(state, 0, 0.5, 0.5, rng, Request())
        kept = [each for each in arrays if getattr(state, each) is before[each]]
        assert all((getattr(state, each)[..., 1:] == copies[each][..., 1:]).all() for each in kept)
        assert (len(kept) < len(arrays)) is (number % 5 == 0)


def test_no_game_stays_with_the_cheap_arm_when_requests_become_easier():
    """Both arms answer 15 % of the first 60 requests, then 70 % and 85 %; money is there for three in ten at the better
    one. A game that is stuck asks it for almost none of the rest."""
    hard, easy = Problem.bernoulli([0.15, 0.15], [0.1, 0.5]), Problem.bernoulli([0.7, 0.85], [0.1, 0.5])
    stream = RequestStream.phases([(0, hard), (60, easy)])
    played = simulate(stream, "bts-paced", [3_000 * 0.22], runs=20, horizon=3_000)
    better = played.part_pulls[:, 0, 1, 1] / 2_940
    assert better.min() > 0.2
