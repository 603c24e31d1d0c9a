"""Allocation: money, names, units, late feedback, and that a refused call changes nothing."""

import copy
import json
import math
import pickle
import sys
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from budgetbandits import POLICIES, Allocation, Ask, BudgetedThompson, parse_policy
from budgetbandits.allocation.learner import Learner
from budgetbandits.errors import (
    BadParameter,
    BadState,
    BudgetBanditsError,
    BudgetExhausted,
    CostOutOfRange,
    HoldRefused,
    MissingKnowledge,
    NoArmLeft,
    RewardOutOfRange,
    UnknownArm,
    UnknownAsk,
)

ARMS = ["search", "social", "mail"]


def fresh(policy="bts", **settings):
    settings = {"budget": 10.0, "cost_max": 2.0, "reward_max": 4.0, "seed": 7} | settings
    return Allocation(parse_policy(policy), ARMS, **settings)


def test_a_policy_goes_by_its_name_too():
    assert "kappa=1.5" in Allocation("bts:kappa=1.5", ["a", "b"], budget=1.0).to_json()


def test_without_a_policy_the_recommended_one_is_taken():
    assert Allocation(arms=ARMS, budget=9.0).policy.spec == "gittins-ratio"
    assert Allocation(arms=ARMS, budget=9.0, cost_max=dict.fromkeys(ARMS, 2.0)).policy.spec == "bts"
    assert Allocation(arms=ARMS, budget=9.0, horizon=20).policy.spec == "bts-paced"
    with pytest.raises(BadParameter, match="at least 2 arms"):
        Allocation(budget=9.0)
    with pytest.raises(BadParameter, match="budget is missing"):
        Allocation(arms=ARMS)
    with pytest.raises(BadParameter, match="write arms="):
        Allocation(ARMS, 9.0)


def test_money_that_was_paid_and_not_learned_from_is_not_left():
    spend = Allocation(arms=ARMS, budget=20.0, seed=1)
    for _ in range(15):
        spend.tell(spend.ask(), cost=1.0)  # the rewards are late
    state = spend._session.state
    assert state.left == pytest.approx(spend.left) == 5.0
    for ask in list(spend.pending):
        spend.tell(ask, reward=1.0)
    assert state.left == pytest.approx(spend.left) == 5.0


def test_a_prior_that_all_arms_have_said_survives_a_restart_and_serves_a_new_arm():
    spend, arms = Allocation("gittins-ratio", [f"a{i}" for i in range(12)], budget=100.0, seed=3), 12
    while sum(spend.pulls.values()) < 40:
        spend.tell(spend.ask(), reward=0.0, cost=1.0)
    again = Allocation.from_json(spend.to_json())
    assert again.to_json() == spend.to_json()
    again.add_arm("late")
    prior = np.array(json.loads(again.to_json())["state"]["prior"])
    assert prior.shape == (4, arms + 1)
    assert prior[2, 0] > 1.0 > prior[3, 0]  # every pull costs 1
    assert (prior == prior[:, :1]).all()


def test_the_readme_example():
    spend = Allocation(BudgetedThompson(), ARMS, budget=500.0, cost_max=2.0, seed=7)
    rng = np.random.default_rng(0)
    while not spend.exhausted:
        arm = spend.ask()
        spend.tell(arm, reward=float(rng.random() < 0.2), cost=0.37 if arm.arm == "mail" else 1.5)
    assert spend.spent >= 500.0 - 1e-6
    assert spend.spent < 502.0
    assert spend.pulls["mail"] == max(spend.pulls.values())


def test_units_are_mapped_to_the_policys():
    spend = fresh()
    spend.tell(spend.ask(), reward=4.0, cost=2.0)
    state = json.loads(spend.to_json())["state"]
    assert np.sum(state["statistics"][:2]) - 6 == 2  # reward_max and cost_max are one success each
    assert (spend.earned, spend.spent, spend.left) == (4.0, 2.0, 8.0)


def test_asks_are_told_in_any_order():
    spend = fresh()
    asks = [spend.ask() for _ in range(4)]
    assert list(spend.pending) == asks
    assert [repr(ask) for ask in asks] == [f"Ask({number}, {ask.arm!r})" for number, ask in enumerate(asks)]
    for ask in reversed(asks):
        spend.tell(ask, reward=1.0, cost=0.5)
    assert spend.pending == ()
    assert sum(spend.pulls.values()) == 4


def test_a_budget_spent_to_the_cent_counts():
    spend = fresh(budget=0.3, cost_max=0.1)
    for _ in range(3):  # 0.1 + 0.1 + 0.1 is more than 0.3 in floats
        spend.tell(spend.ask(), reward=1.0, cost=0.1)
    assert spend.exhausted
    assert spend.earned == 3.0


def other(ask):
    return next(name for name in ARMS if name != ask.arm)


BAD_CALLS = {
    "unknown arm": (
        lambda s, a: s.tell("serach", reward=1.0, cost=1.0),
        UnknownArm,
        "no arm 'serach'; the arms are 'search'",
    ),
    "NaN reward": (lambda s, a: s.tell(a, reward=math.nan, cost=1.0), RewardOutOfRange, "reward nan"),
    "NaN cost": (lambda s, a: s.tell(a, reward=1.0, cost=math.nan), CostOutOfRange, "cost nan"),
    "negative cost": (lambda s, a: s.tell(a, reward=1.0, cost=-0.1), CostOutOfRange, "cost -0.1"),
    "a cost too large to be one": (
        lambda s, a: s.tell(a, reward=1.0, cost=1e300),
        CostOutOfRange,
        "no amount of money",
    ),
    "infinite cost": (lambda s, a: s.tell(a, reward=1.0, cost=math.inf), CostOutOfRange, "cost inf"),
    "reward too large": (
        lambda s, a: s.tell(a, reward=4.5, cost=1.0),
        RewardOutOfRange,
        "above reward_max 4; tell reward=4, and",
    ),
    "text for a cost": (lambda s, a: s.tell(a, reward=1.0, cost="much"), CostOutOfRange, "cost 'much'"),
    "telling twice": (
        lambda s, a: s.tell(0, reward=1.0, cost=1.0),
        UnknownAsk,
        "ask 0 is closed; tell or forget each ask once",
    ),
    "an arm without an open ask": (
        lambda s, a: s.tell(other(a), reward=1.0, cost=1.0),
        UnknownAsk,
        "call ask\\(\\) first",
    ),
    "nothing told": (lambda s, a: s.tell(a), BadParameter, "neither reward nor cost"),
    "a hold above cost_max": (lambda s, a: s.ask(hold=2.5), BadParameter, "above cost_max 2"),
    "a hold of nothing": (lambda s, a: s.ask(hold=0), BadParameter, "hold is 0; use a positive"),
    "a negative hold": (lambda s, a: s.ask(hold=-1.0), BadParameter, "hold is -1"),
    "a hold in words": (lambda s, a: s.ask(hold="all"), BadParameter, "hold is 'all'"),
    "an ask of another": (lambda s, a: s.tell(Ask(99, a.arm), reward=1.0, cost=1.0), UnknownAsk, "ask 99 is none"),
    "an arm of another": (
        lambda s, a: s.tell(Ask(a.id, other(a)), reward=1.0, cost=1.0),
        UnknownAsk,
        "none of this allocation",
    ),
    "no such arm to retire": (lambda s, a: s.retire("radio"), UnknownArm, "no arm 'radio'"),
    "an arm that is there": (lambda s, a: s.add_arm("mail"), BadParameter, "there already"),
    "a history that is impossible": (
        lambda s, a: s.add_arm("radio", history=(3, 100.0, 1.0)),
        RewardOutOfRange,
        "total past reward",
    ),
    "a history in pieces": (lambda s, a: s.add_arm("radio", history=(3, 1.0)), BadParameter, "total reward"),
    "pulls by halves": (lambda s, a: s.add_arm("radio", history=(2.5, 1.0, 1.0)), BadParameter, "whole number"),
    "more pulls than can be counted": (lambda s, a: s.add_arm("radio", history=(10**30, 0, 0)), BadParameter, "2\\^53"),
    "a number too large": (lambda s, a: s.tell(a, reward=10**400, cost=1.0), RewardOutOfRange, "not a number"),
    "text that looks like a number": (lambda s, a: s.tell(a, reward="1.0", cost=1.0), RewardOutOfRange, "not a number"),
    "a list for an arm": (lambda s, a: s.tell(["mail"], reward=1.0, cost=1.0), UnknownArm, "no arm"),
    "an arm without a name": (lambda s, a: s.add_arm(""), BadParameter, "not text"),
    "an arm with a number": (lambda s, a: s.add_arm(5), BadParameter, "not text"),
    "a negative top-up": (lambda s, a: s.top_up(-1.0), BadParameter, "amount"),
    "forgetting what was never asked": (lambda s, a: s.forget(Ask(12, "mail")), UnknownAsk, "ask 12"),
}


@pytest.mark.parametrize("policy", ["bts", "kube", "epsilon-first"])
@pytest.mark.parametrize("what", BAD_CALLS)
def test_a_refused_call_names_the_remedy_and_changes_nothing(what, policy):
    call, error, words = BAD_CALLS[what]
    spend = fresh(policy)
    for _ in range(5):
        spend.tell(spend.ask(), reward=1.0, cost=0.5)
    ask = spend.ask()
    before = spend.to_json()
    with pytest.raises(error, match=words):
        call(spend, ask)
    assert spend.to_json() == before


def test_after_exhaustion_nothing_is_asked_until_a_top_up():
    spend = fresh(budget=2.0)
    late, last = spend.ask(), spend.ask()
    spend.tell(last, reward=1.0, cost=2.0)
    before = spend.to_json()
    with pytest.raises(BudgetExhausted, match="top_up"):
        spend.ask()
    assert spend.to_json() == before
    spend.top_up(5.0)
    spend.tell(late, reward=1.0, cost=0.5)
    assert (spend.spent, spend.budget) == (2.5, 7.0)


@pytest.mark.parametrize("policy", POLICIES)
def test_what_is_told_after_exhaustion_is_booked(policy):
    """Fifty calls in flight on a budget of 1.00: all were made, so all were paid for."""
    known = {"costs": dict.fromkeys(ARMS, 0.05), "cost_floor": 0.01}
    spend = fresh(policy, budget=1.0, cost_max=0.1, **known)
    asks = []
    while len(asks) < 50 and not spend.exhausted:
        asks.append(spend.ask())
    for ask in asks:
        spend.tell(ask, reward=1.0, cost=0.0625)
    assert len(asks) == 50
    assert spend.exhausted
    assert spend.spent == 50 * 0.0625
    assert spend.earned == 16.0  # what fitted the budget, as in the paper
    assert sum(spend.pulls.values()) == 50
    assert spend.left == 0.0


def test_a_late_pull_that_cost_nothing_is_earned_if_the_budget_was_not_overdrawn():
    spend = fresh(budget=2.0)
    free, last, too_late, over = (spend.ask() for _ in range(4))
    spend.tell(last, reward=1.0, cost=2.0)
    spend.tell(free, reward=1.0, cost=0.0)
    assert (spend.earned, spend.spent) == (2.0, 2.0)
    spend.tell(over, reward=1.0, cost=0.5)
    spend.tell(too_late, reward=1.0, cost=0.0)
    assert (spend.earned, spend.spent) == (2.0, 2.5)


def test_holds_keep_the_budget():
    spend = fresh(budget=5.0)
    first, second = spend.ask(hold=True), spend.ask(hold=1.5)
    assert (spend.held, spend.left, spend.spent) == (3.5, 1.5, 0.0)
    before = spend.to_json()
    with pytest.raises(HoldRefused, match=r"hold 3\.5 of the 5 left; tell what one of them cost") as refused:
        spend.ask(hold=True)
    assert refused.value.reason == "blocked_by_holds"
    assert spend.to_json() == before
    third = spend.ask(hold=1.5)  # to the cent
    with pytest.raises(HoldRefused, match="forget"):
        spend.ask()  # nothing is left for an ask without a hold either
    assert not spend.exhausted
    spend.tell(first, reward=1.0, cost=0.5)
    assert (spend.held, spend.left, spend.spent) == (3.0, 1.5, 0.5)
    spend.forget(second)
    assert (spend.held, spend.left) == (1.5, 3.0)
    with pytest.raises(UnknownAsk, match="ask 1 is closed"):
        spend.tell(second, reward=1.0, cost=1.0)
    spend.tell(third, cost=1.5)
    assert (spend.held, spend.left, spend.spent) == (0.0, 3.0, 2.0)


def test_a_hold_that_can_never_be_paid_says_so():
    spend = fresh(budget=3.0)
    spend.tell(spend.ask(hold=True), reward=1.0, cost=2.0)
    with pytest.raises(BudgetExhausted, match=r"1 left, 2 to be held; hold less"):
        spend.ask(hold=True)
    spend.tell(spend.ask(hold=1), reward=1.0, cost=1.0)  # the number 1 is an amount
    assert spend.exhausted


def test_sums_of_holds_are_exact():
    spend = fresh(budget=0.3, cost_max=0.1)
    for _ in range(3):
        asks = [spend.ask(hold=0.1) for _ in range(3)]  # 0.1 + 0.1 + 0.1 is more than 0.3 in floats
        for ask in asks:
            spend.forget(ask)
    assert spend.held == 0.0


def test_totals_are_the_history_of_another_allocation():
    spend = fresh(history={"mail": (5, 3.0, 2.0)})
    for reward, cost in ((1.0, 0.5), (3.0, 1.5), (0.0, 1.0)):
        spend.tell(spend.ask(), reward=reward, cost=cost)
    spend.ask()
    assert tuple(map(sum, zip(*spend.totals.values(), strict=True))) == (3, 4.0, 3.0)
    assert {arm: pulls for arm, (pulls, _, _) in spend.totals.items()} == spend.pulls
    again = fresh(history=spend.totals)
    assert again.to_json() != fresh().to_json()
    assert again.totals == fresh().totals


@pytest.mark.parametrize("first", ["cost", "reward"])
def test_cost_and_reward_come_one_by_one(first):
    spend, other = fresh(), fresh()
    ask, same = spend.ask(hold=True), other.ask(hold=True)
    parts = {"cost": 0.5, "reward": 3.0}
    spend.tell(ask, **{first: parts.pop(first)})
    assert spend.pending == (ask,)
    assert spend.unpaid == (() if first == "cost" else (ask,))
    assert spend.pulls[ask.arm] == 0
    assert (spend.spent, spend.held, spend.earned) == ((0.5, 0.0, 0.0) if first == "cost" else (0.0, 2.0, 0.0))
    spend = Allocation.from_json(spend.to_json())
    before = spend.to_json()
    with pytest.raises(UnknownAsk, match=f"the {first} of ask 0 is known already; tell its"):
        spend.tell(ask, **{first: 1.0})
    with pytest.raises(UnknownAsk, match="is known already"):
        spend.tell(ask, reward=1.0, cost=1.0)
    with pytest.raises(UnknownAsk, match="is known already"):
        spend.forget(ask)
    assert spend.to_json() == before
    spend.tell(ask, **parts)
    other.tell(same, reward=3.0, cost=0.5)
    assert (spend.spent, spend.earned, spend.held, spend.pending) == (0.5, 3.0, 0.0, ())
    assert spend.to_json() == other.to_json()  # learned the same, with the same randomness


def test_a_reward_is_earned_if_its_cost_was_told_in_time():
    spend = fresh(budget=3.0)
    in_time, over = spend.ask(), spend.ask()
    spend.tell(in_time, cost=2.0)
    spend.tell(over, cost=2.0)
    spend = Allocation.from_json(spend.to_json())
    spend.tell(over, reward=4.0)
    spend.tell(in_time, reward=1.0)
    assert (spend.earned, spend.spent) == (1.0, 4.0)


def test_arms_come_and_go():
    spend = fresh(budget=1000.0)
    open_ask = spend.ask()
    for name in set(ARMS) - {open_ask.arm}:
        spend.retire(name)
    with pytest.raises(NoArmLeft, match="add_arm"):
        spend.retire(open_ask.arm)
    spend.add_arm("radio", history=(100, 390.0, 10.0))
    spend.retire(open_ask.arm)
    spend.tell(open_ask, reward=1.0, cost=1.0)  # retired, and still told
    assert spend.arms == ("radio",)
    assert {spend.ask().arm for _ in range(100)} == {"radio"}


@pytest.mark.parametrize("policy", ["bts", "kube", "ucb-v", "kl-ucb"])
def test_history_makes_the_difference(policy):
    history = {"mail": (500, 1900.0, 100.0), "search": (500, 100.0, 900.0), "social": (500, 100.0, 900.0)}
    assert [fresh(policy, history=history, seed=seed).ask().arm for seed in range(20)] == ["mail"] * 20


@pytest.mark.parametrize("policy", ["kube-fractional", "kube-knapsack", "epsilon-first-greedy"])
def test_known_costs(policy):
    costs = {"search": 2.0, "social": 1.0, "mail": 0.5}
    spend = fresh(policy, budget=60.3, costs=costs)
    while not spend.exhausted:
        ask = spend.ask()
        spend.tell(ask, reward=1.0, cost=costs[ask.arm])
    before = spend.to_json()
    with pytest.raises(BudgetExhausted, match=r"stops with 0\.3 left"):
        spend.ask()
    assert spend.to_json() == before
    spend.add_arm("radio", cost=0.1)
    assert spend.ask().arm == "radio"
    with pytest.raises(MissingKnowledge, match="radio-2"):
        spend.add_arm("radio-2")
    with pytest.raises(MissingKnowledge, match="entry for arm 'mail'"):
        fresh(policy, costs={"search": 1.0, "social": 1.0})
    with pytest.raises(CostOutOfRange, match="is 0"):
        fresh(policy, costs=costs | {"mail": 0.0})
    with pytest.raises(MissingKnowledge, match="costs"):
        fresh(policy)


def test_the_floor_is_in_the_users_units():
    assert json.loads(fresh("ucb-bv1", cost_floor=0.5).to_json())["state"]["known"] == {"cost_floor": 0.25}
    with pytest.raises(MissingKnowledge, match="cost_floor"):
        fresh("ucb-bv1")


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"budget": 0.0}, "budget"),
        ({"budget": math.nan}, "budget"),
        ({"budget": "lots"}, "budget"),
        ({"cost_max": -1.0}, "cost_max"),
        ({"reward_max": math.inf}, "reward_max"),
        ({"cost_floor": 0.0}, "cost_floor"),
        ({"cost_floor": 50.0}, "above cost_max"),
        ({"budget": 10**400}, "budget"),
        ({"seed": -1}, "seed"),
        ({"history": [1]}, "history"),
    ],
)
def test_bad_settings_are_refused(settings, words):
    with pytest.raises(BadParameter, match=words):
        fresh(**settings)


@pytest.mark.parametrize(
    ("arms", "words"),
    [("a", "list"), (5, "list"), (["a"], "at least 2 arms"), (["a", "a"], "already"), (["a", None], "not text")],
)
def test_bad_arms_are_refused(arms, words):
    with pytest.raises(BadParameter, match=words):
        Allocation(BudgetedThompson(), arms, budget=1.0)


def damaged(change):
    document = json.loads(fresh().to_json())
    change(document)
    return json.dumps(document)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("{", "not JSON"),
        ("[]", "not a saved allocation"),
        ("{}", "not a saved allocation"),
        (damaged(lambda d: d.update(version=99)), "format version 99"),
        (damaged(lambda d: d.pop("spent")), "damaged"),
        (damaged(lambda d: d["state"].pop("statistics")), "lacks 'statistics'"),
        (damaged(lambda d: d["state"].update(pulls=[1])), "damaged"),
        (damaged(lambda d: d.update(open=[[0]])), "damaged"),
        (damaged(lambda d: d.update(generator={})), "damaged"),
        (damaged(lambda d: d.update(spent=-5)), "spent"),
        (damaged(lambda d: d.update(spent=math.nan)), "spent"),
        (damaged(lambda d: d.update(open=[[0, 7]])), "open ask"),
        (damaged(lambda d: d.update(open=[[0, 1]])), "open ask 0"),  # none was made
        (damaged(lambda d: d.update(open=[[0, 1, {"hold": 99.0}]], next_ask=1)), "open ask 0"),
        (damaged(lambda d: d.update(open=[[0, 1, {"cost": -1.0}]], next_ask=1)), "open ask 0"),
        (damaged(lambda d: d.update(open=[[0, 1, {"cost": 1.0, "reward": 1.0}]], next_ask=1)), "open ask 0"),
        (damaged(lambda d: d.update(open=[[0, 1], [0, 2]], next_ask=1)), "open ask 0"),
        (damaged(lambda d: d.update(open=[[0, 1, {"colour": 1.0}]], next_ask=1)), "damaged"),
        (damaged(lambda d: d.update(open=[[0, 1, {"segment": 3}]], next_ask=1)), "segment"),
        (damaged(lambda d: d["cooldowns"].update(until=[1])), "cooldowns"),
        (damaged(lambda d: d["totals"].update(pulls=[1])), "shorter"),
        (damaged(lambda d: d["totals"].update(costs=[0.0, 0.0, -1.0])), "'costs' is not one total for each arm"),
        (damaged(lambda d: d["state"].update(statistics=[[-3, 1, 1]] * 4)), "negative count"),
        (damaged(lambda d: d["state"].update(pulls=[10**30, 0, 0])), "damaged"),
        ('{"number": []}', "not JSON"),
        ("[" * 100_000, "not JSON"),
        (None, "not JSON"),
    ],
)
def test_damaged_states_are_refused(text, words):
    with pytest.raises(BadState, match=words):
        Allocation.from_json(text)


def test_saved_text_is_portable_json():
    spend = fresh("epsilon-first", budget=1.0)
    spend.tell(spend.ask(), reward=1.0, cost=0.5)
    spend.ask()  # has committed: its ratios hold infinities
    json.loads(spend.to_json(), parse_constant=lambda constant: pytest.fail(f"{constant} is not JSON"))


@pytest.mark.parametrize("policy", ["kube-fractional", "kube-knapsack", "epsilon-first-greedy", "epsilon-first"])
def test_history_is_not_charged_to_the_budget(policy):
    costs = {"costs": dict.fromkeys(ARMS, 1.0)} if policy != "epsilon-first" else {}
    spend = fresh(policy, budget=100.0, history={"mail": (2000, 4000.0, 2000.0)}, **costs)
    seen = set()
    while not spend.exhausted:
        seen.add(spend.ask().arm)
        spend.tell(spend.pending[0], reward=1.0, cost=1.0)
    assert len(seen) > 1
    assert spend.spent == 100.0


def test_a_history_that_sums_to_a_last_bit_too_much_is_accepted():
    total = sum([0.1] * 15)
    assert total > 0.1 * 15
    Allocation(BudgetedThompson(), ARMS, 5.0, reward_max=0.1, cost_max=0.1, history={"mail": (15, total, total)})


def test_a_horizon_ends_an_allocation():
    spend = fresh("primal-dual-bwk:horizon=3", budget=100.0)
    while not spend.exhausted:
        spend.tell(spend.ask(), reward=1.0, cost=0.5)
    assert sum(spend.pulls.values()) == 3
    with pytest.raises(BudgetExhausted, match="horizon is over"):
        spend.ask()


@pytest.fixture
def impatient_threads():
    """Python passes from one thread to the next as often as it can."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


def test_threads_share_an_allocation(impatient_threads):
    """Eight threads at once: no ask has two owners, no cost is lost, and what is held is never overdrawn."""
    spend = fresh(budget=400.0)

    def work(thread):
        asks = []
        for turn in range(100):
            try:
                ask = spend.ask(hold=True)
            except HoldRefused:
                continue
            asks.append(ask.id)
            if turn % 10 == 9:
                assert json.loads(spend.to_json())["version"] == 1
                pickle.loads(pickle.dumps(spend))
            spend.tell(ask, cost=0.25)
            spend.tell(ask, reward=1.0)
        return asks

    with ThreadPoolExecutor(8) as pool:
        numbers = [number for asks in pool.map(work, range(8)) for number in asks]
    assert sorted(numbers) == list(range(len(numbers)))
    assert spend.pending == ()
    assert (spend.spent, spend.earned, spend.held) == (0.25 * len(numbers), float(len(numbers)), 0.0)
    assert sum(spend.pulls.values()) == len(numbers) == sum(json.loads(spend.to_json())["state"]["pulls"])


def test_the_policy_is_called_by_one_thread_at_a_time(monkeypatch):
    inside, most = [], []

    def slowed(function):
        def call(*arguments):
            inside.append(1)
            most.append(len(inside))
            time.sleep(0.001)  # lets the others in, if anything does
            try:
                return function(*arguments)
            finally:
                inside.pop()

        return call

    monkeypatch.setattr(Learner, "choose", slowed(Learner.choose))
    monkeypatch.setattr(Learner, "learn", slowed(Learner.learn))
    spend = fresh(budget=1000.0)
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda _: spend.tell(spend.ask(), reward=1.0, cost=0.5), range(20)))
    assert spend.spent == 10.0
    assert max(most) == 1


def test_an_allocation_can_be_pickled_and_copied():
    spend = fresh()
    spend.tell(spend.ask(), reward=1.0, cost=0.5)
    ask = spend.ask(hold=True)
    copies = [pickle.loads(pickle.dumps(spend)), copy.deepcopy(spend), copy.copy(spend)]
    for each in copies:
        assert each.to_json() == spend.to_json()
        each.tell(ask, reward=1.0, cost=2.0)
    assert spend.spent == 0.5
    spend.tell(ask, reward=1.0, cost=2.0)
    assert {each.to_json() for each in copies} == {spend.to_json()}


class Money(RuleBasedStateMachine):
    """Any sequence of calls, against a few lines of bookkeeping; saved and restored in between."""

    def __init__(self):
        super().__init__()
        self.spend = fresh(budget=10.0)
        self.spent = self.earned = 0.0
        self.budget = 10.0
        self.open = {}  # by number: the ask, what it holds, what was told, whether its reward counts
        self.names = list(ARMS)
        self.all_held = True

    def held(self):
        return sum(each["hold"] for each in self.open.values())

    @rule(hold=st.sampled_from([False, True, True, 0.5]))
    def ask(self, hold):
        amount = 2.0 if hold is True else float(hold)
        left = self.budget - self.spent
        error = BudgetExhausted if left <= 0.0 or amount > left else HoldRefused
        if left - self.held() > 0.0 and amount <= left - self.held():
            ask = self.spend.ask(hold=hold)
            self.open[ask.id] = {"ask": ask, "hold": amount, "counts": True}
            self.all_held = self.all_held and hold is True
        else:
            with pytest.raises(error):
                self.spend.ask(hold=hold)

    @precondition(lambda self: self.open)
    @rule(data=st.data(), parts=st.sampled_from([("reward", "cost"), ("reward",), ("cost",)]))
    def tell(self, data, parts):
        each = self.open[data.draw(st.sampled_from(sorted(self.open)))]
        told = {part: data.draw(st.sampled_from([0.0, 0.5, 2.0])) for part in parts}
        if told.keys() & each.keys():
            with pytest.raises(UnknownAsk):
                self.spend.tell(each["ask"], **told)
            return
        self.spend.tell(each["ask"], **told)
        each.update(told)
        if "cost" in told:
            each |= {"hold": 0.0, "counts": self.spent + told["cost"] <= self.budget}
            self.spent += told["cost"]
        if "cost" in each and "reward" in each:
            self.earned += each["reward"] if each["counts"] else 0.0
            del self.open[each["ask"].id]

    @precondition(lambda self: self.open)
    @rule(data=st.data())
    def forget(self, data):
        each = self.open[data.draw(st.sampled_from(sorted(self.open)))]
        if "cost" in each or "reward" in each:
            with pytest.raises(UnknownAsk):
                self.spend.forget(each["ask"])
        else:
            self.spend.forget(each["ask"])
            del self.open[each["ask"].id]

    @rule(data=st.data(), cost=st.one_of(st.just(math.nan), st.floats(1e300), st.floats(max_value=-1e-9)))
    def tell_nonsense(self, data, cost):
        with pytest.raises(BudgetBanditsError):
            self.spend.tell(data.draw(st.sampled_from(self.names)), reward=1.0, cost=cost)

    @rule(amount=st.sampled_from([0.5, 3.0]))
    def top_up(self, amount):
        self.spend.top_up(amount)
        self.budget += amount

    @precondition(lambda self: len(self.names) < 8)
    @rule()
    def add(self):
        self.names.append(f"arm-{len(self.names)}")
        self.spend.add_arm(self.names[-1])

    @rule(data=st.data())
    def retire(self, data):
        if len(self.spend.arms) > 1:
            self.spend.retire(data.draw(st.sampled_from(self.spend.arms)))

    @rule()
    def restart(self):
        self.spend = Allocation.from_json(self.spend.to_json())

    @invariant()
    def the_books_agree(self):
        assert (self.spend.spent, self.spend.earned, self.spend.budget) == (self.spent, self.earned, self.budget)
        assert sorted(a.id for a in self.spend.pending) == sorted(self.open)
        assert self.spend.held == self.held()
        assert self.spend.left == max(self.budget - self.spent - self.held(), 0.0)
        if self.all_held:
            assert self.spend.spent + self.spend.held <= self.budget


Money.TestCase.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)
TestMoney = Money.TestCase
