"""One rule for numbers at every door of the library."""

import math
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest

from budgetbandits import Allocation, BudgetedThompson
from budgetbandits.errors import BadParameter, BudgetBanditsError, ProblemError
from budgetbandits.validation import integer, number, positive, within

HALVES = [0.5, np.float32(0.5), np.float64(0.5), np.array(0.5), np.float16(0.5), Fraction(1, 2), Decimal("0.5")]
ONES = [1, 1.0, np.int64(1), np.uint8(1), np.float32(1.0), np.array(1)]
NONE = ["0.5", b"1", 1j, [0.5], np.array([0.5]), np.str_("1"), np.datetime64(1, "s"), object(), math.nan, 10**400]
TRUTHS = [True, np.True_, np.array(True)]


def made(**more):
    return Allocation("bts-paced", ["a", "b"], more.pop("budget", 10), **({"horizon": 100} | more))


DOORS = {
    "cost": lambda value: _told(cost=value),
    "reward": lambda value: _told(reward=value),
    "hold": lambda value: made().ask(hold=value),
    "holds": lambda value: made().ask(holds={"a": value}),
    "prices": lambda value: made().ask(prices={"a": value, "b": 0.5}),
    "budget": lambda value: made(budget=value),
    "cost_max": lambda value: made(cost_max=value),
    "cost_max of an arm": lambda value: made(cost_max={"a": value, "b": 1.0}),
    "reward_max": lambda value: made(reward_max=value),
    "horizon": lambda value: made(horizon=value),
    "top_up": lambda value: made().top_up(value),
    "set_horizon": lambda value: made().set_horizon(value),
    "past reward": lambda value: made(history={"a": (2, value, 0.5)}),
    "past cost": lambda value: made(history={"a": (2, 0.5, value)}),
    "costs": lambda value: Allocation("kube-fractional", ["a", "b"], 9.0, costs={"a": value, "b": 0.5}),
    "cost_floor": lambda value: Allocation("ucb-bv1", ["a", "b"], 9.0, cost_floor=value),
    "a policy": lambda value: BudgetedThompson(kappa=value),
}


def _told(reward=0.5, cost=0.5):
    spend = made()
    spend.tell(spend.ask(), reward=reward, cost=cost)
    return spend


@pytest.mark.parametrize("door", DOORS)
def test_every_door_takes_the_same_numbers(door):
    for value in (*HALVES, *ONES):
        DOORS[door](value)
    for value in NONE:
        with pytest.raises(BudgetBanditsError):
            DOORS[door](value)


@pytest.mark.parametrize("door", [door for door in DOORS if door != "hold"])
def test_true_is_a_reward_and_no_amount(door):
    for value in TRUTHS:
        if door in ("reward", "past reward"):
            DOORS[door](value)
        else:
            with pytest.raises(BudgetBanditsError):
                DOORS[door](value)


def test_true_brings_1_and_false_brings_0():
    assert [_told(reward=value).earned for value in (True, np.False_, 1)] == [1.0, 0.0, 1.0]


@pytest.mark.parametrize("pulls", [200, 200.0, np.int32(200), np.float64(200.0)])
def test_pulls_of_a_history_may_be_the_floats_of_a_table(pulls):
    assert made(history={"a": (pulls, 50.0, 20.0)})._session.learner.state.pulls[0] == 200


@pytest.mark.parametrize("pulls", [200.5, -1, True, "200", math.nan, math.inf])
def test_pulls_that_are_no_whole_number_are_refused(pulls):
    with pytest.raises(BadParameter, match=r"history of arm 'a': pulls is .*; give a whole number"):
        made(history={"a": (pulls, 0.0, 0.0)})


def test_what_is_no_number_is_nan():
    assert [number(value) for value in (3, 0.5, np.int8(2))] == [3.0, 0.5, 2.0]
    assert all(math.isnan(number(value)) for value in (*NONE, *TRUTHS))


def test_a_policy_is_named_by_itself_its_class_or_its_text(tmp_path, monkeypatch):
    assert Allocation(BudgetedThompson, ["a", "b"], 1.0).policy == BudgetedThompson()
    (tmp_path / "mine.py").write_text(
        "from dataclasses import dataclass\nfrom typing import ClassVar\n"
        "from budgetbandits.policies.thompson import BudgetedThompson\n\n"
        "@dataclass(frozen=True)\nclass Mine(BudgetedThompson):\n    name: ClassVar[str] = 'mine-here'\n"
    )
    monkeypatch.chdir(tmp_path)
    spend = Allocation("mine.py:Mine:kappa=2", ["a", "b"], 9.0, seed=1)
    assert (spend.policy.name, spend.policy.kappa) == ("mine-here", 2.0)
    assert Allocation.from_json(spend.to_json()).ask() == spend.ask()


def test_what_is_no_policy_is_refused_with_the_remedy():
    from budgetbandits.policies import Policy

    for wrong in (5, dict):
        with pytest.raises(BadParameter, match="give a policy, such as BudgetedThompson"):
            Allocation(wrong, ["a", "b"], 1.0)
    with pytest.raises(BadParameter, match=r"cannot be made without arguments .* pass Policy\(\.\.\.\)"):
        Allocation(Policy, ["a", "b"], 1.0)


@pytest.mark.parametrize("value", [7, np.int64(7), np.uint8(7)])
def test_an_integer_is_an_int_of_python_or_numpy(value):
    assert type(integer("seed", value, 7)) is int


@pytest.mark.parametrize("value", [6, -1, 7.0, True, "7", None])
def test_what_is_no_integer_is_refused_with_the_remedy(value):
    with pytest.raises(ProblemError, match=r"arms is .*; use a whole number from 7 upwards, please"):
        integer("arms", value, 7, hint=", please", error=ProblemError)


@pytest.mark.parametrize(
    ("value", "low", "high", "above", "remedy"),
    [
        (0.0, 0.0, 1.0, True, "above 0, up to 1"), (1.5, 0.0, 1.0, False, "from 0 to 1"),
        (math.inf, 0.0, math.inf, False, "from 0 upwards"), (math.nan, 0.0, 1.0, False, "from 0 to 1"),
        (True, 0.0, 1.0, False, "from 0 to 1"), ("1", 0.0, 1.0, False, "from 0 to 1"),
    ],
)  # fmt: skip
def test_a_number_outside_its_range_is_refused_with_the_range(value, low, high, above, remedy):
    assert within("share", 0.5, low, high, above=above) == 0.5
    with pytest.raises(BadParameter, match=f"share is .*; use a number {remedy}"):
        within("share", value, low, high, above=above)


def test_the_caller_names_the_error_and_ends_the_message():
    with pytest.raises(ProblemError, match=r"budget is 0; use a positive number below 1e.300, in euros"):
        positive("budget", 0, hint=", in euros", error=ProblemError)
