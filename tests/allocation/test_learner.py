"""A learner chooses as its policy does, whatever way it takes, and goes on from what was saved."""

from __future__ import annotations

import json

import numpy as np
import pytest

from budgetbandits.allocation.choosers import best_kind
from budgetbandits.allocation.learner import Learner
from budgetbandits.errors import BadParameter, BadState
from budgetbandits.policies import parse_policy
from budgetbandits.policies.base import Knowledge, Request
from budgetbandits.policies.classical import UCB1
from budgetbandits.policies.thompson import BudgetedThompson, Thompson
from comparing import chi_square
from deep import mostly_deep
from quadrature import selection_probabilities

FALSE_ALARM = 1e-6
KINDS = ("plain", "threshold", "window", "sparse window")


class OwnScores(BudgetedThompson):
    """Scores that no bound of ours knows."""

    def draw(self, state, rng, rounds, arms=None):
        return -super().draw(state, rng, rounds, arms)


class OwnChoice(BudgetedThompson):
    """Always the last arm, whatever the scores."""

    def choose(self, state, rng):
        return len(state.pulls) - 1


@pytest.mark.parametrize(
    ("policy", "arms", "repeatable", "kind"),
    [
        (BudgetedThompson(), 3, False, "window"),
        (BudgetedThompson(), 64, False, "sparse window"),
        (BudgetedThompson(), 5_000, False, "threshold"),
        (BudgetedThompson(), 255, True, "plain"),
        (BudgetedThompson(), 256, True, "threshold"),
        (Thompson(), 1_000, False, "window"),
        (Thompson(), 1_000, True, "plain"),
        (OwnScores(), 1_000, False, "window"),
        (OwnScores(), 1_000, True, "plain"),
        (OwnChoice(), 1_000, False, "plain"),
        (UCB1(), 1_000, False, "plain"),
    ],
)
def test_the_way_to_choose_rests_on_nothing_that_was_overridden(policy, arms, repeatable, kind):
    assert best_kind(policy, arms, repeatable) == kind


def test_a_choice_of_its_own_is_the_one_that_is_made():
    assert {Learner.new(OwnChoice(), 3).choose(np.random.default_rng(1)) for _ in range(20)} == {2}


def told(kind: str) -> Learner:
    """Four arms, told something on the way so that what was drawn ahead has to be given up."""
    learner, rng = Learner.new(BudgetedThompson(), 3, kind=kind), np.random.default_rng(3)
    learner.choose(rng)
    learner.add_history(0, 30, 12.0, 20.0)
    learner.add()
    learner.choose(rng)
    for _ in range(6):
        learner.learn(1, 1.0, 1.0, rng)
        learner.learn(3, 0.0, 1.0, rng)
        learner.choose(rng)
    return learner


def exact_chances(learner: Learner, among: list[int]) -> np.ndarray:
    return selection_probabilities(learner.state.statistics[[0, 2, 1, 3]].T[among])


@pytest.mark.parametrize("kind", mostly_deep(KINDS, ("plain", "window")))
def test_every_way_to_choose_has_the_law_of_the_policy(kind):
    learner, rng = told(kind), np.random.default_rng(4)
    counts = np.bincount([learner.choose(rng) for _ in range(12_000)], minlength=4)
    assert chi_square(counts, exact_chances(learner, [0, 1, 2, 3])) > FALSE_ALARM
    among = np.array([True, False, True, True])
    counts = np.bincount([learner.choose(rng, among) for _ in range(12_000)], minlength=4)
    assert counts[1] == 0
    assert chi_square(counts[[0, 2, 3]], exact_chances(learner, [0, 2, 3])) > FALSE_ALARM
    learner.retire(2)
    counts = np.bincount([learner.choose(rng) for _ in range(12_000)], minlength=4)
    assert counts[2] == 0
    assert chi_square(counts[[0, 1, 3]], exact_chances(learner, [0, 1, 3])) > FALSE_ALARM


@pytest.mark.parametrize("kind", KINDS)
def test_a_saved_learner_goes_on_bit_for_bit(kind):
    learner = told(kind)
    other = Learner.from_dict(learner.policy, 4, json.loads(json.dumps(learner.to_dict())))
    one, two = np.random.default_rng(5), np.random.default_rng(5)
    for turn in range(200):
        arm = learner.choose(one)
        assert arm == other.choose(two)
        for each, rng in ((learner, one), (other, two)):
            each.learn(arm, float(turn % 2), 0.5, rng)
    assert learner.to_dict() == other.to_dict()


@pytest.mark.parametrize("kind", ["plain", "threshold"])
def test_parts_of_a_learner_bring_another_up_to_date(kind):
    learner, rng = told(kind), np.random.default_rng(6)
    other = Learner.new(BudgetedThompson(), 4, kind=kind)
    other.load_state(learner.shared_state(), {arm: learner.arm_state(arm) for arm in range(4)})
    for _ in range(50):
        arm = learner.choose(rng)
        learner.learn(arm, 1.0, 0.5, rng)
        other.load_state(learner.shared_state(), {arm: learner.arm_state(arm)})
    assert other.to_dict() == learner.to_dict()
    assert [other.choose(np.random.default_rng(n)) for n in range(50)] == [
        learner.choose(np.random.default_rng(n)) for n in range(50)
    ]


def test_a_state_of_another_policy_is_refused():
    with pytest.raises(BadState, match="cannot choose by 'threshold'"):
        Learner.new(Thompson(), 3, kind="threshold")
    saved = Learner.new(UCB1(), 3).to_dict() | {"chooser": {"kind": "window"}}
    with pytest.raises(BadState, match="ucb1 cannot choose by 'window'"):
        Learner.from_dict(UCB1(), 3, saved)


def test_segments_that_others_have_opened_are_taken_over():
    """As between two servers of one campaign: rows of arms, and the rest."""
    rng = np.random.default_rng(1)
    known = Knowledge(budget=50.0, horizon=100.0)
    one, other = (Learner.new(parse_policy("bts-paced"), 2, known, repeatable=True) for _ in range(2))
    before = dict(vars(one.state))
    one.policy.for_requests.open_segment(one.state)
    one.policy.for_requests.open_segment(one.state)
    assert one.changed_since(before) == [0, 1]  # every arm has two segments more
    for number in range(40):
        request = Request(number % 3)
        one.learn(one.choose(rng, request=request), 0.5, 0.25, rng, request)
    other.load_state(
        json.loads(json.dumps(one.shared_state())), {arm: json.loads(json.dumps(one.arm_state(arm))) for arm in (0, 1)}
    )
    choices = [
        [each.choose(np.random.default_rng(seed), request=Request(2)) for seed in range(20)] for each in (one, other)
    ]
    assert choices[0] == choices[1]
    plain = Learner.new(parse_policy("bts"), 2)
    with pytest.raises(BadState):
        plain.load_state(one.shared_state(), {arm: one.arm_state(arm) for arm in (0, 1)})
    with pytest.raises(BadParameter, match="use bts-paced"):
        plain.choose(rng, request=Request(1))
