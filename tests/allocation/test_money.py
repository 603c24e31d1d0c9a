"""What hold, cap and overrun promise; loops that hold money; ids of asks; sums over many open asks."""

import json
import math
import pickle
import random
import warnings
from fractions import Fraction

import pytest

from budgetbandits import Allocation, Ask
from budgetbandits.allocation.money import ExactSum
from budgetbandits.errors import BadParameter, CostOverrun, HoldRefused, UnknownArm, UnknownAsk

ARMS = ["search", "social", "mail"]


def fresh(policy="bts", arms=ARMS, **settings):
    return Allocation(policy, arms, **({"budget": 10.0, "cost_max": 2.0, "seed": 7} | settings))


# --- costs above what was held, and above cost_max -----------------------------------------------------------------


def test_a_cost_above_cost_max_is_booked_and_learned_as_cost_max():
    spend, other = fresh(), fresh()
    ask, same = spend.ask(hold=True), other.ask(hold=True)
    with pytest.warns(CostOverrun, match=r"has cost 3\.2, above its cost_max 2; all of it is booked") as said:
        spend.tell(ask, reward=1.0, cost=3.2)
    assert said[0].filename == __file__
    other.tell(same, reward=1.0, cost=2.0)
    assert (spend.spent, spend.held, spend.left, spend.pending) == (3.2, 0.0, 6.8, ())
    assert spend.overrun == pytest.approx(1.2)
    assert other.overrun == 0.0
    assert spend._session.learner.to_dict() == other._session.learner.to_dict()
    assert Allocation.from_json(spend.to_json()).overrun == spend.overrun


@pytest.mark.parametrize("first", ["cost", "reward"])
def test_an_overrun_counts_once_though_cost_and_reward_come_one_by_one(first):
    spend = fresh("bts-paced", horizon=50)
    ask = spend.ask()
    if first == "reward":
        spend.tell(ask, reward=1.0)
    with pytest.warns(CostOverrun):
        spend.tell(ask, cost=3.0)
    spend = Allocation.from_json(spend.to_json())
    if first == "cost":
        spend.tell(ask, reward=1.0)
    assert (spend.spent, spend.overrun, spend.pending) == (3.0, 1.0, ())
    # the policy has learned of 2.0, and plans without the rest, in units of cost_max
    assert spend._session.learner.state.known.budget == pytest.approx((10.0 - 1.0) / 2.0)
    assert "3.000" in spend._repr_html_()  # the mean cost


def test_what_a_failure_cost_above_cost_max_is_booked():
    spend = fresh("bts-paced", horizon=50)
    with pytest.warns(CostOverrun) as said:
        spend.tell(spend.ask(hold=True), failed=True, cost=5.0)
    assert said[0].filename == __file__
    assert (spend.spent, spend.overrun, spend.held) == (5.0, 3.0, 0.0)
    assert spend._session.learner.state.known.budget == pytest.approx(2.5)


def test_who_makes_errors_of_overruns_can_tell_again():
    spend = fresh()
    ask = spend.ask(hold=True)
    before = spend.to_json()
    with warnings.catch_warnings():
        warnings.simplefilter("error", CostOverrun)
        with pytest.raises(CostOverrun):
            spend.tell(ask, reward=1.0, cost=3.2)
        assert spend.to_json() == before
        spend.tell(ask, reward=1.0, cost=2.0)


def test_an_overrun_of_more_than_the_budget_is_booked_too():
    spend = fresh()
    ask = spend.ask(hold=True)
    with pytest.warns(CostOverrun):
        spend.tell(ask, reward=1.0, cost=30.0)
    assert (spend.spent, spend.earned, spend.left, spend.exhausted) == (30.0, 0.0, 0.0, True)


def test_a_cost_above_its_hold_is_booked_from_what_is_left():
    """Held for an estimated price; the price was too low, and the money is there, or held for another."""
    spend = fresh("bts-paced", ["a", "b"], cost_max=4.0, horizon=50)
    first = spend.ask(hold=True, prices={"a": 0.2, "b": 0.2})
    assert spend.held == pytest.approx(0.3)
    spend.tell(first, reward=1.0, cost=2.5)
    assert (spend.spent, spend.held, spend.overrun) == (2.5, 0.0, 0.0)
    small, large = spend.ask(hold=0.5), spend.ask(hold=4.0)
    other = spend.ask(hold=3.0)
    spend.tell(small, reward=1.0, cost=4.0)  # 7.5 were left, and 7 of them held for others
    assert (spend.spent, spend.held, spend.left) == (6.5, 7.0, 0.0)
    assert not spend.can_ask()
    spend.tell(large, reward=1.0, cost=0.5)
    spend.tell(other, reward=1.0, cost=0.5)
    assert (spend.left, spend.can_ask(hold=2.5)) == (2.5, True)


# --- loops that hold money -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("policy", ["bts", "kube", "bts-paced"])
def test_a_loop_that_holds_ends_when_no_hold_can_be_paid_any_more(policy):
    spend = fresh(policy)
    while not spend.exhausted:
        spend.tell(spend.ask(hold=True), reward=1.0, cost=1.5)
    assert spend.spent == 9.0  # 1.0 is left, and 2.0 would have to be held
    assert Allocation.from_json(spend.to_json()).exhausted
    assert spend.can_ask(hold=0.5)
    assert not spend.can_ask(hold=True)
    spend.top_up(1.0)
    assert not spend.exhausted
    spend.tell(spend.ask(hold=True), reward=1.0, cost=2.0)
    assert spend.spent == 11.0


@pytest.mark.parametrize("restart", [False, True])
@pytest.mark.parametrize("held", [{"hold": True}, {"hold": 1.5}, {"holds": {"cheap": 0.1, "large": 2.0, "new": 0.2}}])
def test_a_loop_that_holds_ends_though_the_arms_change(held, restart):
    """What an ask like the last one must hold is known of every arm, and only those count that can be asked."""
    spend = fresh(arms=["cheap", "large", "new"], cost_max={"cheap": 0.1, "large": 2.0, "new": 0.4}, budget=1.0)
    spend.tell(spend.ask(exclude=["new"], **held), reward=1.0, cost=0.05)
    if restart:
        spend = Allocation.from_json(spend.to_json())
    assert not spend.exhausted
    spend.retire("cheap")
    assert spend.exhausted  # 2.0 or 1.5 would have to be held, and 0.95 is left
    spend.retire("large")
    assert not spend.exhausted  # an ask like the last one cannot be made for another reason
    spend.ask(**held)


def test_an_arm_that_comes_and_can_be_paid_lets_a_loop_go_on():
    spend = fresh(arms=["a", "b"], cost_max={"a": 2.0, "b": 1.5}, budget=2.0)
    spend.tell(spend.ask(hold=True), reward=1.0, cost=1.0)
    assert spend.exhausted
    spend.add_arm("small", cost_max=0.5)
    assert not spend.exhausted
    assert spend.ask(hold=True).arm == "small"


def test_a_loop_with_many_asks_open_waits_for_one_when_it_cannot_ask():
    spend, open_asks, most = fresh(), [], 0
    while spend.can_ask(hold=True) or open_asks:
        if spend.can_ask(hold=True):
            open_asks.append(spend.ask(hold=True))
            most = max(most, len(open_asks))
        else:
            assert spend.held > 0.0
            spend.tell(open_asks.pop(0), reward=1.0, cost=0.5)
    assert most == 5
    assert 8.0 < spend.spent <= 10.0
    assert spend.exhausted


def test_what_can_be_asked_is_what_ask_answers():
    spend = fresh(arms=["small", "large"], cost_max={"small": 0.5, "large": 4.0}, budget=4.0)
    spend.ask(hold=1.0, arms=["large"])
    questions = [{}, {"hold": True}, {"hold": True, "arms": ["large"]}, {"holds": {"large": 3.0}, "arms": ["large"]}]
    assert [spend.can_ask(**each) for each in questions] == [True, True, False, True]
    before = spend.to_json()
    with pytest.raises(HoldRefused, match=r"can_ask\(\) says beforehand"):
        spend.ask(hold=True, arms=["large"])
    with pytest.raises(BadParameter):
        spend.can_ask(hold=9.0)
    assert spend.to_json() == before
    knows = fresh("kube-fractional", costs=dict.fromkeys(ARMS, 0.6), budget=1.0)
    knows.tell(knows.ask(), reward=1.0, cost=0.6)
    assert not knows.can_ask()  # the policy stops
    assert knows.exhausted


def test_prices_and_segments_that_no_ask_can_have_are_refused_beforehand():
    spend, paced = fresh(), fresh("bts-paced", horizon=50)
    for said in ({"prices": dict.fromkeys(ARMS, 1.0)}, {"segment": "code"}):
        for call in (spend.ask, spend.can_ask):
            with pytest.raises(BadParameter, match="bts looks at neither segments nor prices"):
                call(**said)
        assert paced.can_ask(**said)
    assert paced.segments == ()  # a look opens none


def test_a_budget_that_could_not_be_read_again_is_refused():
    spend = fresh(budget=9e299)
    with pytest.raises(BadParameter, match="the budget with this amount"):
        spend.top_up(9e299)
    assert Allocation.from_json(spend.to_json()).budget == 9e299


def test_fractions_are_named_in_errors():
    spend = fresh()
    with pytest.raises(BadParameter, match=r"has failed and earned 0\.5"):
        spend.tell(spend.ask(), reward=Fraction(1, 2), failed=True)
    with pytest.raises(BadParameter, match=r"cost_floor is 2\.5, above cost_max 2"):
        fresh(cost_floor=Fraction(5, 2))


# --- ids -----------------------------------------------------------------------------------------------------------


def two_of_one_arm(spend):
    return [spend.ask(arms=["mail"]) for _ in range(2)]


def test_an_ask_that_went_through_json_closes_itself():
    spend = fresh()
    first, second, third = *two_of_one_arm(spend), spend.ask()
    written = json.dumps({"ask": second.to_dict(), "id": third.id})
    spend = Allocation.from_json(spend.to_json())
    read = json.loads(written)
    spend.tell(Ask.from_dict(read["ask"]), reward=1.0, cost=0.5)
    spend.tell(read["id"], cost=0.5)
    spend.tell(read["id"], reward=1.0)
    assert spend.pending == (first,)
    with pytest.raises(TypeError, match="not JSON serializable"):
        json.dumps(first)  # as its arm alone, it could not be told from others
    spend.tell("mail", reward=1.0, cost=0.5)
    assert spend.pending == ()


def test_asks_are_equal_if_they_are_the_same():
    spend = fresh(propensity_draws=3)
    first, second = two_of_one_arm(spend)
    assert first != second
    assert len({first, second, *spend.pending}) == 2
    for same in (Ask.from_dict(json.loads(json.dumps(first.to_dict()))), pickle.loads(pickle.dumps(first))):
        assert (same, same.id, same.arm, same.arms) == (first, first.id, "mail", ("mail",))
    assert first != first.id
    with pytest.raises(BadParameter, match=r"compare its arm: ask\.arm"):
        bool(first == "mail")
    for wrong in ({}, "mail", {"id": "x", "arm": "mail"}, None):
        with pytest.raises(BadParameter):
            Ask.from_dict(wrong)


def test_ids_are_used_once_also_after_a_restart():
    spend = fresh()
    first, second = two_of_one_arm(spend)
    spend.tell(first, reward=1.0, cost=0.5)
    spend.forget(second.id)
    spend = Allocation.from_json(spend.to_json())
    third = spend.ask()
    assert third.id not in (first.id, second.id)
    for closed in (first, first.id, second, second.id):
        with pytest.raises(UnknownAsk, match=r"is closed; tell or forget each ask once, `pending` lists those"):
            spend.tell(closed, reward=1.0, cost=0.5)
    for unknown in (99, -1, Ask(99, "mail")):
        with pytest.raises(UnknownAsk, match="is none of this allocation; `pending` lists"):
            spend.tell(unknown, reward=1.0, cost=0.5)
    for nonsense in (True, 1.0, None, "99"):
        with pytest.raises(UnknownArm):
            spend.tell(nonsense, reward=1.0, cost=0.5)
    assert spend.pending == (third,)


# --- many open asks ------------------------------------------------------------------------------------------------


class Unread(dict):
    """A dict that can be looked up, and not gone through."""

    def _refused(self):
        raise AssertionError("all open asks are looked at")

    __iter__ = keys = values = items = _refused


def test_neither_ask_nor_tell_looks_at_all_open_asks():
    spend = fresh(budget=1e6, horizon=1000, policy="bts-paced")
    asks = [spend.ask(hold=True) for _ in range(10)]
    spend.tell(asks[3], cost=0.25)
    for name, value in vars(spend._asks).items():
        if isinstance(value, dict):
            setattr(spend._asks, name, Unread(value))
    for ask in (asks[1], asks[7].id):
        spend.tell(ask, reward=1.0, cost=0.5)
    spend.tell(asks[2], cost=0.5)
    spend.tell(asks[3], reward=1.0)
    spend.tell(asks[4], failed=True, cost=0.1)
    spend.forget(asks[5])
    spend.tell(spend.ask(hold=0.75), reward=1.0, cost=0.5)
    assert spend.can_ask(hold=True)
    assert (spend.held, spend.left) == (8.0, 1e6 - 2.35 - 8.0)


class Counted(dict):
    """How many of its entries were read one after the other."""

    def __init__(self, *args):
        super().__init__(*args)
        self.read = 0

    def items(self):
        for each in super().items():
            self.read += 1
            yield each


def test_telling_by_name_looks_at_each_open_ask_once():
    """Costs first, rewards later, and all by name: whoever looked for each among all would look tens of thousands of
    times."""
    spend = fresh(budget=1e6)
    names = [spend.ask().arm for _ in range(200)]
    spend._asks._open = counted = Counted(spend._asks._open)
    for name in names:
        spend.tell(name, cost=0.5)
    for name in names[:50]:
        names.append(spend.ask().arm)
        spend.tell(name, reward=1.0)
    spend.tell(names[-1], failed=True)
    spend.forget(names[-2])
    assert counted.read <= 250
    assert len(spend.pending) == 250 - 52


def test_what_is_kept_to_find_asks_by_name_does_not_grow():
    spend = fresh(budget=1e6)
    spend.tell(spend.ask().arm, reward=1.0, cost=0.5)
    for _ in range(300):
        spend.tell(spend.ask(), reward=1.0, cost=0.5)
    assert len(pickle.dumps(spend._asks)) < 1000


@pytest.mark.parametrize("first", ["cost", "reward"])
def test_a_name_stands_for_the_oldest_ask_that_can_be_told_this(first):
    spend = fresh(arms=["a", "b"])
    second = "reward" if first == "cost" else "cost"
    a, b, c, d = (spend.ask(arms=["a"]) for _ in range(4))
    spend.tell("a", **{first: 0.5})
    spend.tell(c, **{first: 0.5})
    spend.tell("a", reward=1.0, cost=0.5)  # both of the oldest of which neither is known
    assert spend.pending == (a, c, d)
    spend.tell("a", **{second: 0.5})
    assert spend.pending == (c, d)
    spend.forget("a")
    assert spend.pending == (c,)
    with pytest.raises(UnknownAsk, match="no open ask for arm 'a'"):
        spend.tell("a", **{first: 0.5})
    with pytest.raises(UnknownAsk, match="no open ask for arm 'a'"):
        spend.forget("a")
    spend.tell("a", **{second: 0.5})
    assert b not in spend.pending


def test_running_sums_are_exact_in_any_order():
    rng, total = random.Random(1), ExactSum()
    amounts = [rng.random() * 10.0 ** rng.randint(-300, 290) for _ in range(300)] + [5e-324, 0.1, 0.2, 0.3]
    for amount in amounts:
        total.add(amount)
    assert total.value == math.fsum(amounts)
    rng.shuffle(amounts)
    while amounts:
        total.take(amounts.pop())
        assert total.value == math.fsum(amounts)
