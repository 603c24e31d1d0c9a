"""Segments, arms for one request, prices, holds, failures and scales of an allocation."""

import json

import numpy as np
import pytest

from budgetbandits import Allocation
from budgetbandits.allocation.cooldowns import COOLDOWN_ASKS_MAX, IDLE_PULLS_MIN, Cooldowns
from budgetbandits.allocation.propensity import Propensities
from budgetbandits.errors import (
    BadParameter,
    BadState,
    BudgetExhausted,
    CostOverrun,
    HoldRefused,
    MissingKnowledge,
    NoArmLeft,
    RewardOutOfRange,
    UnknownArm,
)
from budgetbandits.policies.base import Request
from deep import deep

CAPS = {"small": 0.002, "large": 1.0}


def fresh(policy="bts-paced", arms=("small", "large"), **settings):
    settings = (
        {"budget": 50.0, "cost_max": CAPS, "seed": 1} | ({"horizon": 100} if "paced" in policy else {}) | settings
    )
    return Allocation(policy, list(arms), **settings)


def fail(spend, name, times=1):
    """Failures in a row."""
    for _ in range(times):
        spend.tell(spend.ask(arms=[name]), failed=True)


def test_an_allocation_paces_its_budget():
    spend = fresh(budget=10.0)
    for _ in range(100):
        ask = spend.ask(hold=True)
        reward, cost = (0.5, 0.001) if ask.arm == "small" else (0.9, 0.2)
        spend.tell(ask, reward=reward, cost=cost)
    assert 9.0 < spend.spent <= 10.0
    assert 40 <= spend.pulls["large"] <= 50


def test_segments_are_opened_on_the_way_and_learn_for_themselves():
    spend = fresh(budget=20.0, horizon=200)
    worth = {"code": {"small": 0.1, "large": 0.9}, "chat": {"small": 0.7, "large": 0.75}}
    answers = dict.fromkeys(worth, 0)
    for number in range(200):
        segment = ("code", "chat")[number % 2]
        ask = spend.ask(segment=segment)
        answers[segment] += ask.arm == "large"
        spend.tell(ask, reward=worth[segment][ask.arm], cost={"small": 0.001, "large": 0.2}[ask.arm])
    assert spend.segments == ("code", "chat")
    assert answers["code"] > 70 > 40 > answers["chat"]
    assert spend.spent <= 20.2


def step(spend, rng):
    prices = {"small": 0.001, "large": float(rng.uniform(0.1, 0.4))}
    ask = spend.ask(hold=True, segment=str(rng.choice(["code", "chat", "mail"])), prices=prices)
    if rng.random() < 0.2:
        spend.tell(ask, failed=True, cost=0.0001)
    elif rng.random() < 0.8:
        spend.tell(
            ask, reward=float(rng.random()), cost=float(min(prices[ask.arm] * rng.uniform(0.5, 1.5), CAPS[ask.arm]))
        )
    return ask.arm


@pytest.mark.parametrize("stop", [0, 1, 30])
def test_a_saved_allocation_goes_on_bit_for_bit(stop):
    spend, rng = fresh(budget=100.0), np.random.default_rng(3)
    for _ in range(stop):
        step(spend, rng)
    copy = Allocation.from_json(spend.to_json())
    assert copy.to_json() == spend.to_json()
    trails = [[step(each, np.random.default_rng(seed)) for seed in range(40)] for each in (spend, copy)]
    assert trails[0] == trails[1]
    assert copy.to_json() == spend.to_json()


@pytest.mark.parametrize("policy", ["bts", "kube", "bts-paced", "epsilon-first"])
def test_arms_of_one_request(policy):
    spend = fresh(policy, ["a", "b", "c"], cost_max=1.0)
    for _ in range(10):
        ask = spend.ask(arms=["b", "c"], exclude=["c"])
        assert ask.arm == "b"
        spend.tell(ask, reward=0.0, cost=1.0)
    assert spend.ask(exclude=["b"]).arm != "b"
    spend.retire("a")
    with pytest.raises(NoArmLeft, match="leave no arm"):
        spend.ask(arms=["a"])
    with pytest.raises(BadParameter, match="pass a list"):
        spend.ask(arms="b")


def test_prices_decide_and_are_held_with_a_margin():
    spend = fresh(budget=20.0, horizon=400)
    rng = np.random.default_rng(5)
    dear = {True: 0, False: 0}
    for number in range(400):
        prices = {"small": 0.001, "large": (0.05, 0.5)[number % 2]}
        ask = spend.ask(hold=True, prices=prices)
        assert spend.held == pytest.approx(min(1.5 * prices[ask.arm], CAPS[ask.arm]))
        dear[bool(number % 2)] += ask.arm == "large"
        cost = min(prices[ask.arm] * rng.uniform(0.8, 1.2), CAPS[ask.arm])
        spend.tell(ask, reward={"small": 0.4, "large": 0.9}[ask.arm], cost=cost)
    assert dear[False] > 190  # for the same reward, money goes to the requests that cost less: 10 of it,
    assert dear[True] < 30  # and what is left pays for 20 of the others
    assert 18.0 < spend.spent <= 20.0


def test_holds_by_arm_and_arms_that_cannot_be_paid():
    spend = fresh(budget=0.5)
    assert spend.ask(hold=True).arm == "small"  # the large one's cap is not there
    assert spend.held == 0.002
    with pytest.raises(BudgetExhausted, match="hold less"):
        spend.ask(hold=True, arms=["large"])
    assert spend.ask(holds={"large": 0.3}, arms=["large"]).arm == "large"
    assert spend.held == pytest.approx(0.302)


def test_costs_above_an_arms_own_cap_are_booked_and_learned_as_the_cap():
    spend, other = fresh("bts"), fresh("bts")
    with pytest.warns(CostOverrun, match=r"has cost 0\.01, above its cost_max 0\.002; all of it is booked"):
        spend.tell(spend.ask(arms=["small"]), reward=1.0, cost=0.01)
    other.tell(other.ask(arms=["small"]), reward=1.0, cost=0.002)
    assert (spend.spent, spend.overrun) == (0.01, 0.008)
    assert spend._session.learner.state.to_dict() == other._session.learner.state.to_dict()


def test_failures_are_paid_and_not_learned_and_after_four_in_a_row_a_new_arm_cools_down():
    spend = fresh("bts", cost_max=1.0)
    spend.tell(spend.ask(arms=["large"]), failed=True, cost=0.25)
    assert (spend.spent, spend.pulls["large"], spend.failures["large"]) == (0.25, 0, 1)
    fail(spend, "large", 2)
    assert spend.cooling == ()
    fail(spend, "large")
    assert spend.cooling == ("large",)
    assert [spend.ask().arm for _ in range(2)] == ["small"] * 2  # two asks of cooldown, half of four
    assert spend.cooling == ()
    fail(spend, "large")
    assert [spend.ask().arm for _ in range(4)] == ["small"] * 4  # then four, half of seven
    probe = spend.ask(arms=["large"])
    assert [spend.ask().arm for _ in range(5)] == ["small"] * 5  # one ask at a time until it is told
    spend.tell(probe, reward=1.0, cost=0.5)
    assert spend.cooling == ()
    fail(spend, "large")
    assert spend.cooling == ()
    assert spend.ask(arms=["large"]).arm == "large"
    with pytest.raises(BadParameter, match="has failed and earned"):
        spend.tell(spend.ask(), reward=1.0, failed=True)


def test_a_policy_that_plans_hears_what_failures_cost():
    spend = fresh(budget=10.0)
    spend.tell(spend.ask(arms=["large"]), failed=True, cost=0.5)
    assert spend._session.learner.state.known.budget == 9.5
    spend.top_up(1.0)
    assert spend._session.learner.state.known.budget == 10.5
    spend.set_horizon(50)
    assert spend._session.learner.state.known.horizon == 50.0


@pytest.mark.parametrize("policy", ["bts", "kube"])
def test_a_dead_arm_is_asked_ever_more_rarely(policy):
    """Told as failed, and told as reward 0 and cost 0: without a rule bts gives it a third of the asks, kube all."""
    # each cooldown is half as long as all before it: 4 + log(3000 / 4) / log(1.5) = 20.3
    for failed, most in ((True, 21), (False, 160)):
        spend, dead = fresh(policy, cost_max=1.0, budget=1e6), 0
        for _ in range(3000):
            ask = spend.ask()
            if ask.arm == "large":
                dead += 1
                spend.tell(ask, failed=True) if failed else spend.tell(ask, reward=0.0, cost=0.0)
            else:
                spend.tell(ask, reward=1.0, cost=0.5)
        assert dead <= most


def test_failures_of_asks_that_were_under_way_together_make_no_cooldown_longer():
    spend = fresh("bts", cost_max=1.0)
    together = [spend.ask(arms=["large"]) for _ in range(10)]
    for ask in together[:4]:
        spend.tell(ask, failed=True)
    copy = Allocation.from_json(spend.to_json())
    for each in (spend, copy):
        for ask in together[4:]:
            each.tell(ask, failed=True)
        assert each.failures["large"] == 10
        assert [each.ask().arm for _ in range(5)] == ["small"] * 5  # half of the ten asks
        assert each.cooling == ()
    assert spend.to_json() == copy.to_json()


def test_an_answer_ends_a_row_and_its_failures_are_usual_from_then_on():
    """An arm that has failed in every second of 60 asks cools down after thirteen failures in a row, not after four."""
    spend = fresh("bts", cost_max=1.0)
    for _ in range(30):
        fail(spend, "large")
        spend.tell(spend.ask(arms=["large"]), reward=1.0, cost=0.5)
        assert spend.cooling == ()
    for _ in range(12):  # (31/80)^12 = 1.1e-5, and the thirteenth makes it 4.4e-6
        fail(spend, "large")
        assert spend.cooling == ()
    fail(spend, "large")
    assert spend.cooling == ("large",)


@pytest.mark.parametrize(
    ("scattered", "answers", "enough"),
    [(0, 0, 4), (0, 50, 3), (10, 990, 3), (50, 950, 4), (100, 900, 5), (200, 800, 8), (900, 100, 17)],
)
def test_failures_in_a_row_are_an_outage_where_chance_would_make_them_once_in_100_000_asks(scattered, answers, enough):
    cooldowns = Cooldowns(1)
    cooldowns.load_arm(0, {"scattered": scattered, "answers": answers, "idle": -1})
    assert cooldowns.arms[0].outage_failures == enough
    for number in range(1, enough + 1):
        cooldowns.record_failure(0, number, number - 1)
        assert (cooldowns.cooling(number) is not None) == (number == enough)


def paced_with_cheap_arms_down(seed, policy="bts-paced", **terms):
    """An arm of 0.04, two cheaper ones that are known and down, and 0.005 for each of 600 requests."""
    prices = {"small": 0.0008, "medium": 0.006, "large": 0.04}
    rewards = {"small": 0.45, "medium": 0.65, "large": 0.8}
    spend = fresh(policy, list(prices), budget=3.0, cost_max=0.1, horizon=600, seed=seed, **terms)
    for name in list(prices) * 20:
        spend.tell(spend.ask(arms=[name]), reward=rewards[name], cost=prices[name])
    for name in ("small", "medium"):
        fail_in_a_row(spend, name)
    return spend, prices, rewards


def fail_in_a_row(spend, name):
    while name not in spend.cooling:
        spend.tell(spend.ask(arms=[name]), failed=True)


@pytest.mark.parametrize("policy", ["bts-paced", "bts-linear"])
def test_an_allocation_says_which_arms_are_down_and_who_stands_in_at_what_price(policy):
    spend, *_ = paced_with_cheap_arms_down(1, policy)
    assert spend.down == {
        "small": (4, 60, "large", pytest.approx(50.0)),
        "medium": (4, 64, "large", pytest.approx(0.04 / 0.006)),
    }
    assert "medium (down)" in spend._repr_html_()
    spend.tell(spend.ask(arms=["small"]), reward=1.0, cost=0.0008)
    assert spend.down == {"medium": (4, 64, "small", pytest.approx(0.0008 / 0.006))}
    new = fresh("bts", ["a", "b"], cost_max=1.0)
    fail_in_a_row(new, "a")
    assert new.down == {"a": (4, 0, None, None)}


@pytest.mark.parametrize(
    ("seed", "policy"),
    [*((seed, "bts-paced") for seed in range(3)), (0, "bts-linear"), *deep((1, "bts-linear"), (2, "bts-linear"))],
)
def test_a_plan_keeps_its_pace_while_cheaper_arms_are_down(seed, policy):
    """The large arm takes what there is, never far ahead of the plan; other requests try an arm cooling down. The
    money lasts to the end. A pull costs what there is for ten requests, and the last of n pulls at random times comes
    before a share x of the requests with probability xⁿ: that is one false alarm in 10,000."""
    spend, prices, rewards = paced_with_cheap_arms_down(seed, policy)
    left, requests, asked = spend.left, int(spend._session.learner.state.requests), 0
    while not spend.exhausted and asked < requests:
        ask = spend.ask()
        asked += 1
        if ask.arm == "large":
            spend.tell(ask, reward=rewards["large"], cost=prices["large"])
        else:
            spend.tell(ask, failed=True)
        assert left - spend.left < left * (asked / requests + 0.12)
    pulls = left / prices["large"]
    assert asked > 1e-4 ** (1.0 / pulls) * requests
    assert 3.0 - spend.spent < 0.1


@pytest.mark.parametrize("policy", ["bts-paced", "bts-linear"])
def test_a_stand_in_is_taken_to_cost_what_its_estimates_turned_out_to_mean(policy):
    """The large arm costs ten times its estimate: money for 800 requests was gone after 400 to 520 in an outage."""
    spend = fresh(policy, ["small", "large"], budget=20.0, cost_max=1.0, horizon=1000)
    for name, cost in (("small", 0.01), ("large", 0.2)) * 40:
        spend.tell(spend.ask(arms=[name], prices={name: 0.01 if name == "small" else 0.02}), reward=0.5, cost=cost)
    policy, state, request = spend.policy, spend._session.learner.state, Request(prices=np.array([0.01, 0.02]))
    assert policy.expected_cost(state, request, 0) == pytest.approx(0.01, rel=0.1)
    assert policy.expected_cost(state, request, 1) == pytest.approx(0.2, rel=0.1)
    rng, ready = np.random.default_rng(1), np.array([False, True])
    taken = [policy.planned_substitute(state, 0, ready, rng, request) for _ in range(200)]
    assert 1 <= taken.count(1) <= 30  # one in twenty; it was one in two


def test_a_stand_in_is_taken_to_cost_what_the_features_of_the_request_say():
    """The large arm costs 0.1 for short requests and 0.4 for long ones, small a tenth of that, and money is scarce: a
    stand-in for small is to cost as much as small would, a tenth of what it does."""
    spend = fresh("bts-linear", ["small", "large"], budget=70.0, cost_max=1.0, horizon=1000, features=["length"])
    for number in range(160):
        name, length = ("small", "large")[number % 2], float(number // 2 % 2)
        cost = (0.4 if length else 0.1) / (10.0 if name == "small" else 1.0)
        spend.tell(
            spend.ask(arms=[name], features={"length": length}), reward=0.5 if name == "small" else 0.9, cost=cost
        )
    policy, state, rng = spend.policy, spend._session.learner.state, np.random.default_rng(1)
    for length, cost in ((0.0, 0.1), (1.0, 0.4)):
        request = Request(features=np.array([length]))
        assert policy.expected_cost(state, request, 1) == pytest.approx(cost, rel=0.3)
        assert policy.expected_cost(state, request, 0) == pytest.approx(cost / 10, rel=0.3)
        taken = [policy.planned_substitute(state, 0, np.array([False, True]), rng, request) for _ in range(200)]
        assert 5 <= taken.count(1) <= 40  # about 20, by binomial odds 1 : 10⁵ to be outside


def test_an_arm_that_comes_later_is_restored_with_the_others():
    """As many recent requests are kept of it as of the first arms."""
    spend = fresh("bts-linear", ["small", "large"], budget=20.0, cost_max=1.0, horizon=100, features=["length"])
    spend.add_arm("middle")
    for number in range(12):
        spend.tell(spend.ask(features={"length": number}), reward=0.5, cost=0.1)
    again = Allocation.from_json(spend.to_json())
    for number in range(12):
        asks = [each.ask(features={"length": number}, segment="new") for each in (spend, again)]
        assert asks[0].arm == asks[1].arm
        for each, ask in zip((spend, again), asks, strict=True):
            each.tell(ask, reward=0.25, cost=0.2)
    assert spend.to_json() == again.to_json()


def test_a_cheaper_arm_takes_the_place_of_one_cooling_down():
    spend, prices, rewards = paced_with_cheap_arms_down(1)
    for _ in range(2):
        spend.tell(spend.ask(arms=["small"]), reward=rewards["small"], cost=prices["small"])
    asked = []
    for _ in range(100):
        ask = spend.ask()
        asked.append(ask.arm)
        if ask.arm == "medium":
            spend.tell(ask, failed=True)
        else:
            spend.tell(ask, reward=rewards[ask.arm], cost=prices[ask.arm])
    assert asked.count("medium") <= 6  # when a cooldown is over
    assert asked.count("large") <= 25


def test_while_money_is_not_scarce_a_more_expensive_arm_takes_the_place_of_one_cooling_down():
    spend = fresh("bts-paced", ["good", "costly"], budget=60.0, cost_max=1.0, horizon=100, seed=1)
    for name, reward, cost in (("good", 0.9, 0.1), ("costly", 0.5, 0.5)) * 10:
        spend.tell(spend.ask(arms=[name]), reward=reward, cost=cost)
    fail_in_a_row(spend, "good")
    assert [spend.ask().arm for _ in range(5)].count("costly") >= 4


def test_without_a_pace_an_arm_of_a_like_price_takes_the_place_and_a_far_more_expensive_one_rarely():
    for price, least, most in ((0.03, 100, 100), (0.9, 2, 20)):
        spend = fresh("bts", ["cheap", "other"], budget=1e6, cost_max=1.0, seed=1)
        for name, cost in (("cheap", 0.02), ("other", price)) * 400:
            spend.tell(spend.ask(arms=[name]), reward=0.5, cost=cost)
        for ask in [spend.ask(arms=["cheap"]) for _ in range(500)]:
            spend.tell(ask, failed=True)  # it cools down for 250 asks
        assert least <= [spend.ask().arm for _ in range(100)].count("other") <= most


@pytest.mark.parametrize("policy", ["bts-paced", "bts", "kube"])
def test_how_likely_a_stand_in_is(policy):
    """Estimated from 300 choices, and how often it is chosen in 150; false alarm 1e-4."""
    terms = {"horizon": 600} if policy == "bts-paced" else {}
    spend = fresh(policy, ["cheap", "other"], budget=3.0 if terms else 1e6, cost_max=0.1, seed=3,
                  propensity_draws=300, **terms)  # fmt: skip
    for name, reward, cost in (("cheap", 0.5, 0.006), ("other", 0.6, 0.04)) * 25:
        spend.tell(spend.ask(arms=[name]), reward=reward, cost=cost)
    for ask in [spend.ask(arms=["cheap"]) for _ in range(5)]:
        spend.tell(ask, failed=True)
    saved, asks = spend.to_json(), []
    for seed in range(150):
        again = Allocation.from_json(saved)
        again._propensities = Propensities(300 if seed < 3 else 0, seed)
        again._rng = np.random.default_rng(seed)
        asks.append(again.ask())
    share = sum(ask.arm == "other" for ask in asks) / len(asks)
    for ask in asks[:3]:
        likely = ask.propensity if ask.arm == "other" else 1.0 - ask.propensity
        assert likely == pytest.approx(share, abs=4.0 * (0.25 / 150 + 0.25 / 300) ** 0.5)
        assert ask.arms == (("other",) if ask.arm == "other" else ("cheap", "other"))


def test_a_request_that_failed_is_one_gone():
    """The money that is left is for the requests that are neither answered nor failed."""
    spend, rng = fresh(cost_max=1.0, budget=20.0, horizon=100), np.random.default_rng(2)
    for _ in range(40):
        ask = spend.ask()
        if rng.random() < 0.5:
            spend.tell(ask, failed=True, cost=0.01)
        else:
            reward, cost = (0.3, 0.02) if ask.arm == "small" else (0.8, 0.3)
            spend.tell(ask, reward=reward, cost=cost)
    spend.forget(spend.ask())  # never acted on: no request of the plan
    assert 10 < sum(spend.failures.values()) < 30
    for each in (spend, Allocation.from_json(spend.to_json())):
        assert each._session.learner.state.rate == pytest.approx((20.0 - spend.spent) / 60)
    spend.set_horizon(30)  # all that is left may go to the next one
    assert spend._session.learner.state.rate == pytest.approx(20.0 - spend.spent)


@pytest.mark.parametrize("restart", [False, True])
def test_what_was_paid_for_rewards_that_come_late_is_gone(restart):
    """The rewards of the dear arm come 150 requests later; planned without their costs, the money ends too soon."""
    spend = Allocation("bts-paced", ["cheap", "dear"], 100.0, cost_max=1.0, horizon=1000, seed=0)
    late = []
    for request in range(985):
        ask = spend.ask()
        spend.tell(ask, cost=0.02 if ask.arm == "cheap" else 0.5)
        late.append((request if ask.arm == "cheap" else request + 150, ask))
        for _, due in [each for each in late if each[0] <= request]:
            spend.tell(due, reward=0.3 if due.arm == "cheap" else 0.8)
        late = [each for each in late if each[0] > request]
        if restart and request == 500:
            assert late
            spend = Allocation.from_json(spend.to_json())
    assert 95.0 < spend.spent <= 100.0
    for _, due in late:
        spend.tell(due, reward=0.8)
    known = json.loads(spend.to_json())["state"]["known"]
    assert (known["budget"], known.get("unlearned", 0)) == (100.0, 0)


def test_another_policy_counts_a_failed_request_too():
    spend = fresh("primal-dual-bwk", cost_max=1.0, horizon=10)
    for _ in range(10):
        spend.tell(spend.ask(), failed=True)
    assert spend.exhausted


def test_an_ask_that_is_refused_opens_no_segment():
    spend = fresh(budget=0.5)
    spend.ask(holds={"large": 0.4}, arms=["large"])
    before = spend.to_json()
    for asked in (
        {"hold": 0.45, "arms": ["large"]},
        {"holds": {"small": 9}},
        {"prices": {"small": 9.0, "large": 1.0}},
        {"hold": True, "arms": ["large"]},
    ):
        with pytest.raises((BadParameter, BudgetExhausted, HoldRefused)):
            spend.ask(segment="new", **asked)
        assert spend.to_json() == before


def test_a_propensity_says_among_which_arms():
    spend = fresh("bts", ["a", "b", "c"], cost_max=1.0, propensity_draws=5)
    assert spend.ask().arms == ("a", "b", "c")
    fail(spend, "c", 4)
    ask = spend.ask(exclude=["a"])
    assert (ask.arm, ask.arms, ask.propensity) == ("b", ("b",), 1.0)  # c is cooling down
    restored = Allocation.from_json(spend.to_json())
    assert [each.arms for each in restored.pending] == [("a", "b", "c"), ("b",)]
    assert fresh("bts").ask(arms=["small"]).arms is None  # no propensity, nothing to say


@pytest.mark.deep
def test_prices_are_learned_however_wrong_the_estimates_are():
    """Estimates five times too low, three games: the money lasts for 97 % of the requests or more, and the dear arm is
    taken as often as by right estimates. If a cost counted as at most twice its estimate, it would go far sooner."""
    shares = []
    for wrong in (1.0, 0.2):
        dear = 0
        for seed in range(3):
            spend, rng = fresh(cost_max=1.0, budget=40.0, horizon=400, seed=seed), np.random.default_rng(seed)
            while sum(spend.pulls.values()) < 400 and not spend.exhausted:
                costs = {"small": 0.02 * rng.uniform(0.5, 1.5), "large": 0.5 * rng.uniform(0.5, 1.5)}
                ask = spend.ask(prices={name: wrong * cost for name, cost in costs.items()})
                dear += ask.arm == "large"
                spend.tell(ask, reward={"small": 0.3, "large": 0.8}[ask.arm], cost=costs[ask.arm])
            assert sum(spend.pulls.values()) >= 390
            assert 39.0 < spend.spent <= 40.5
        shares.append(dear)
    assert shares[1] == pytest.approx(shares[0], rel=0.1)


def answer(cooldowns, now, asked_at, idle=False):
    """An answer to an ask, with all that it earned and cost."""
    cooldowns.record_answer(0, now, asked_at)
    cooldowns.record_outcome(0, idle, now)


def test_cooldowns_end():
    cooldowns = Cooldowns(1)
    for _ in range(4):
        cooldowns.record_failure(0, now=10_000, asked_at=5)
    assert cooldowns.arms[0].until == 10_000 + COOLDOWN_ASKS_MAX
    for _ in range(IDLE_PULLS_MIN):
        answer(cooldowns, 5, 4, idle=True)
    assert cooldowns.arms[0].until == 5 + IDLE_PULLS_MIN
    answer(cooldowns, 6, 5)
    assert cooldowns.cooling(6) is None


def test_a_reported_cost_ends_a_row_of_failures_and_a_late_reward_does_not():
    spend = fresh("bts")
    early = [spend.ask(arms=["small"]) for _ in range(10)]
    for ask in early:
        spend.tell(ask, cost=0.001)
    for ask in early:
        fail(spend, "small")
        spend.tell(ask, reward=1.0)
    assert spend.down["small"].failures == 10
    spend.tell(spend.ask(arms=["small"]), cost=0.001)
    assert not spend.down


def test_an_ask_counts_as_answered_from_its_cost_on_also_if_its_reward_is_late_or_it_fails_then():
    """Of an arm with 60 answers the third failure in a row makes an outage; with fewer than 27, the fourth."""
    spend = fresh("bts")
    asks = [spend.ask(arms=["small"]) for _ in range(60)]
    for ask in asks:
        spend.tell(ask, cost=0.001)
    spend.tell(asks[-1], failed=True)  # the first in the row
    spend = Allocation.from_json(spend.to_json())
    for _ in range(2):
        assert not spend.down
        fail(spend, "small")
    assert spend.down["small"].failures == 3


def test_late_failures_take_no_arm_down_that_has_answered_since():
    cooldowns = Cooldowns(1)
    answer(cooldowns, 51, 50)
    for ask in range(30, 50):
        cooldowns.record_failure(0, 60, ask)
    assert (
        cooldowns.arms[0].row,
        cooldowns.arms[0].since,
        cooldowns.arms[0].failures,
        cooldowns.arms[0].scattered,
    ) == (0, 0, 20, 20)
    cooldowns.record_failure(0, 61, 51)
    assert cooldowns.arms[0].row == 1


def test_a_rest_of_a_time_to_come_does_not_count():
    """The clock was set back by an hour: the arm is asked at once, and further failures are a row of their own."""
    cooldowns, hour = Cooldowns(1, 1000), 3600.0
    for number in range(10):
        now = 2 * hour + 10 * number
        cooldowns.record_failure(0, now, now)
    assert cooldowns.cooling(now) is not None
    back = hour + 0.5
    assert cooldowns.cooling(back) is None
    cooldowns.record_failure(0, back, back)
    seen = cooldowns.arms[0]
    assert (seen.row, seen.began, seen.since, seen.until) == (1, 1000 * back, 0, 0)
    answer(cooldowns, 2 * hour, 2 * hour)
    for number in range(10):
        now = back + 10 * number
        cooldowns.record_failure(0, now, now)
    assert cooldowns.cooling(now) is not None  # that it has answered later is of no account


def test_a_cooldown_after_nothing_was_brought_does_not_count_either_when_the_clock_was_set_back():
    cooldowns = Cooldowns(1, 1000)
    for now in 7200.0 + np.arange(IDLE_PULLS_MIN) / 1000:
        answer(cooldowns, now, now, idle=True)
    assert cooldowns.cooling(now) is not None
    assert cooldowns.cooling(3600.0) is None


def test_own_scales_divide_the_drawn_ratios():
    """The share of one arm in 2,000 asks against draws of its own; false alarm 1e-4."""
    history = {"small": (4, 0.0, 0.4), "large": (4, 4.0, 2.0)}
    spend = fresh("bts", cost_max={"small": 0.2, "large": 1.0}, history=history)
    hits = sum(spend.ask().arm == "large" for _ in range(2000))
    rng = np.random.default_rng(2)
    small = rng.beta(1, 5, 100_000) / rng.beta(3, 3, 100_000) / 0.2
    share = (rng.beta(5, 1, 100_000) / rng.beta(3, 3, 100_000) > small).mean()
    assert 0.3 < share < 0.9
    assert hits / 2000 == pytest.approx(share, abs=3.9 * np.sqrt(share * (1 - share) / 2000))


def test_an_arm_of_its_own_scale_comes_later():
    spend = fresh()
    with pytest.raises(MissingKnowledge, match="pass one for arm 'medium'"):
        spend.add_arm("medium")
    with pytest.raises(BadParameter, match="above the largest"):
        spend.add_arm("medium", cost_max=3.0)
    spend.add_arm("medium", cost_max=0.1, history=(10, 8.0, 0.5))
    spend.tell(spend.ask(arms=["medium"], segment="code"), reward=1.0, cost=0.05)
    assert spend.pulls["medium"] == 1


@pytest.mark.parametrize(
    ("asked", "error", "complaint"),
    [
        ({"prices": {"small": 0.001}}, MissingKnowledge, "no entry for arm 'large'"),
        ({"prices": {"small": 0.001, "large": 2.0}}, BadParameter, "above its cap 1"),
        ({"prices": {"smal": 0.001}}, UnknownArm, "no arm"),
        ({"holds": {"smal": 0.001}}, UnknownArm, "no arm"),
        ({"holds": {"small": 0.5}}, BadParameter, "above its cap"),
        ({"segment": ""}, BadParameter, "name it by a text"),
        ({"segment": 3}, BadParameter, "name it by a text"),
        ({"exclude": 3}, BadParameter, "pass a list of names"),
        ({"arms": 3}, BadParameter, "pass a list of names"),
        ({"arms": [3]}, BadParameter, "3, which is no name"),
        ({"exclude": np.array(["small", "large"])}, NoArmLeft, "leave no arm"),
        ({"prices": np.array([0.001, 0.5])}, BadParameter, "map the names of arms"),
        ({"holds": np.array([0.001, 0.5])}, BadParameter, "map the names of arms"),
        ({"prices": {"small": 5e-324, "large": 0.5}}, BadParameter, "in the unit of the budget"),
        ({"prices": {"small": 0.001, "large": float("nan")}, "exclude": ["large"]}, BadParameter, "positive number"),
    ],
)
def test_what_an_ask_refuses(asked, error, complaint):
    spend = fresh()
    before = spend.to_json()
    with pytest.raises(error, match=complaint):
        spend.ask(**asked)
    assert spend.to_json() == before


def test_names_may_be_arrays_and_nobody_need_be_excluded():
    spend = fresh()
    assert spend.ask(arms=np.array(["large"]), exclude=None).arm == "large"
    assert spend.ask(exclude=np.array(["large"])).arm == "small"
    # so that rounds drawn ahead can serve
    assert spend._resolve(False, {"exclude": []})[0] is spend._session.learner.state.active


def test_the_price_of_an_arm_cooling_down_is_checked_like_any():
    spend = fresh()
    fail(spend, "large")
    before = spend.to_json()
    with pytest.raises(BadParameter, match="prices: 'large' is nan"):
        spend.ask(prices={"small": 0.001, "large": float("nan")})
    with pytest.raises(MissingKnowledge, match="no entry for arm 'large'"):
        spend.ask(prices={"small": 0.001})
    assert spend.to_json() == before
    assert spend.ask(prices={"small": 0.001, "large": 5.0}, exclude=["large"]).arm == "small"  # not asked for


@pytest.mark.parametrize("reward", ["x", float("nan"), -1.0])
def test_a_failure_with_a_reward_that_is_none(reward):
    spend = fresh("bts")
    ask = spend.ask()
    with pytest.raises(RewardOutOfRange, match=r"pass (one|a number) in"):
        spend.tell(ask, reward=reward, failed=True)
    spend.tell(ask, reward=0.0, failed=True)
    assert spend.failures[ask.arm] == 1


def test_other_policies_say_that_they_do_not_look_at_requests():
    with pytest.raises(BadParameter, match="use bts-paced"):
        fresh("bts").ask(segment="code")
    with pytest.raises(MissingKnowledge, match="cost_max has no entry for arm 'large'"):
        fresh(cost_max={"small": 1.0})
    with pytest.raises(BadParameter, match="which is no arm"):
        fresh(cost_max=CAPS | {"huge": 1.0})


@pytest.mark.parametrize("policy", ["pd-bwk", "primal-dual-bwk"])
def test_a_budget_that_a_policy_takes_for_a_constant_stays_one(policy):
    horizon = {"horizon": 100} if policy == "primal-dual-bwk" else {}
    spend = Allocation(policy, ["a", "b"], 60.0, **horizon)
    for number in range(6):
        ask = spend.ask()
        if number % 2:
            spend.tell(ask, failed=True, cost=0.5)
        else:
            spend.tell(ask, cost=0.5)  # its reward comes later
    assert spend._session.learner.state.known.budget == 60.0
    spend.top_up(20.0)
    assert spend._session.learner.state.known.budget == 80.0


def test_prices_of_arms_that_are_not_there_are_refused_when_read():
    spend = fresh(cost_max=1.0, budget=20.0, horizon=100)
    spend.ask(prices={"small": 0.1, "large": 0.4})
    saved = json.loads(spend.to_json())
    saved["open"][0][2]["prices"] = [0.1] * 3
    with pytest.raises(BadState, match="arms that are not there"):
        Allocation.from_json(json.dumps(saved))
