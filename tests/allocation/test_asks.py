"""Who is asked: arms that can be paid, arms cooling down, plain asks next to segments; and what is written down."""

import json
from dataclasses import replace

import numpy as np
import pytest

from budgetbandits import Allocation
from budgetbandits.errors import BadParameter, BudgetExhausted
from budgetbandits.policies.paced.statistics import COUNT

CAPS = {"small": 0.002, "large": 1.0}


def fail(spend, name, times=4, **asked):
    """So often in a row that an arm nothing is known of cools down."""
    for _ in range(times):
        spend.tell(spend.ask(arms=[name], **asked), failed=True)


def test_the_only_arm_that_can_be_paid_is_asked_though_it_cools_down():
    """Among the arms that are allowed and can be paid, those ready; if none is, all of them."""
    spend = Allocation("bts-paced", ["small", "large"], 0.5, cost_max=CAPS, horizon=100, seed=1)
    fail(spend, "small", hold=True)
    assert spend.cooling == ("small",)
    assert spend.ask(hold=True).arm == "small"  # the large one is ready and cannot be paid
    with pytest.raises(BudgetExhausted):
        spend.ask(hold=True, exclude=["small"])


def test_an_arm_cooling_down_is_asked_if_the_policy_can_pay_no_other():
    """The policy knows the costs: of 0.5 that are left it can pay the small arm alone."""
    spend = Allocation("kube-fractional", ["small", "large"], 0.5, costs={"small": 0.1, "large": 0.9}, seed=1)
    fail(spend, "small")
    assert not spend.exhausted
    assert (spend.ask().arm, spend.cooling) == ("small", ("small",))


def test_an_arm_that_is_ready_goes_before_one_cooling_down():
    spend = Allocation("bts", ["small", "large"], 9.0, seed=1)
    fail(spend, "small")
    assert [spend.ask(hold=True).arm for _ in range(2)] == ["large"] * 2


def test_an_ask_says_whom_it_was_chosen_from_also_after_others_have_come():
    spend = Allocation("bts", ["a", "b"], 9.0, seed=1, propensity_draws=5)
    ask = spend.ask()
    spend.add_arm("c")
    spend.retire("a")
    restored = Allocation.from_json(spend.to_json())
    assert [each.arms for each in (ask, *spend.pending, *restored.pending)] == [("a", "b")] * 3
    assert spend.ask().arms == ("b", "c")
    assert json.loads(spend.to_json())["open"][0][2]["could"] == [0, 1]


@pytest.mark.parametrize("restart", [False, True])
def test_a_plain_ask_is_learned_apart_from_a_segment_that_is_named_before_it_is_told(restart):
    spend = Allocation("bts-paced:forget=0", ["a", "b"], 9.0, horizon=30, seed=1)
    plain = spend.ask()
    named = spend.ask(segment="code")
    if restart:
        spend = Allocation.from_json(spend.to_json())
    spend.tell(plain, reward=1.0, cost=0.5)
    spend.tell(spend.ask(), reward=1.0, cost=0.5)
    learned = spend._session.learner.state.sums[COUNT].sum(axis=1)
    assert learned.tolist() == [2.0, 0.0]  # of requests that name none, and of code
    spend.tell(named, reward=0.0, cost=0.5)
    assert spend._session.learner.state.sums[COUNT].sum(axis=1).tolist() == [2.0, 1.0]
    assert spend.segments == ("code",)


@pytest.mark.parametrize("policy", ["bts", "kube", "epsilon-first", "pd-bwk", "primal-dual-bwk:horizon=50.0"])
def test_a_horizon_that_would_do_nothing_is_refused(policy):
    with pytest.raises(BadParameter, match=f"{policy} does not plan with a number of requests; leave out horizon"):
        Allocation(policy, ["a", "b"], 9.0, horizon=100)
    with pytest.raises(BadParameter, match="leave out horizon"):
        Allocation(policy, ["a", "b"], 9.0).set_horizon(100)


def test_an_ask_that_is_dropped_is_no_request_of_primal_dual():
    """Neither of its horizon nor of its prices, which rise with what is told."""
    spend = Allocation("primal-dual-bwk", ["a", "b"], 9.0, horizon=10, seed=1)
    for _ in range(4):
        spend.tell(spend.ask(), reward=1.0, cost=0.5)
    before = {name: getattr(spend._session.learner.state, name) for name in ("chosen", "log_money", "log_time")}
    for _ in range(20):
        spend.forget(spend.ask())
    assert {name: getattr(spend._session.learner.state, name) for name in before} == before
    for _ in range(6):
        assert not spend.exhausted
        ask = spend.ask()
    assert spend.exhausted  # those that are open count
    spend.forget(ask)
    assert not spend.exhausted


def test_what_is_saved_of_the_knowledge_is_what_differs_from_none():
    spend = Allocation("bts-paced:forget=0", ["a", "b"], 9.0, horizon=30, seed=1)
    known = json.loads(spend.to_json())["state"]["known"]
    assert known == {"budget": 9.0, "horizon": 30.0}
    assert Allocation.from_json(spend.to_json()).to_json() == spend.to_json()
    spend.tell(spend.ask(), failed=True)
    assert json.loads(spend.to_json())["state"]["known"] == {**known, "unlearned": 1}


def test_exclusions_do_not_change_the_price_on_money():
    """With the cheap arm, money for 0.55 a request buys the dear one for half of them: its price is 0.8/0.9. Without,
    it would seem that money is scarcer still, and that nothing dear is worth it."""
    spend = Allocation("bts-paced", ["cheap", "middle", "dear"], 1e6, horizon=1e6, seed=1)
    state, learned = spend._session.learner.state, [(0.1, 0.1), (0.3, 0.6), (0.9, 1.0)]
    for arm, (reward, cost) in enumerate(learned):
        state.pulls[arm] = 20_000
        state.sums[:6, 0, arm] = 20_000 * np.array([cost, 1.0, reward, cost, reward**2, cost**2])
    state.known = replace(state.known, budget=float(state.sums[0].sum()) + 0.55 * 1e5)
    state.known = replace(state.known, horizon=60_000 + 1e5)
    asked = [spend.ask(exclude=["cheap"]).arm for _ in range(40)]
    # at that price the dear arm is worth 0.9 − 0.89 = 0.01, the middle one 0.3 − 0.53 = −0.23
    assert set(asked) == {"dear"}
