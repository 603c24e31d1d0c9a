"""Failures: settled with what they cost, learned nothing from, and the arm rests by the store's time."""

import pytest

from budgetbandits.errors import AlreadyResolved, BadParameter, Conflict, HoldRefused
from budgetbandits.service.audit import verify
from budgetbandits.service.engine import Engine
from budgetbandits.service.feedback import Outcome
from budgetbandits.service.ledger import DAY
from clock import Clock
from memory_store import MemoryStore

ARMS = {"a": 1.0, "b": 1.0}


@pytest.fixture
def clock():
    return Clock(1000.0)


@pytest.fixture
def store():
    return MemoryStore()


@pytest.fixture
def engine(store, clock):
    return Engine(store, clock)


def arm(engine, campaign, name):
    return next(each for each in engine.describe(campaign)["arms"] if each["name"] == name)


def fail(engine, campaign, key, name, **cost):
    answer = engine.decide(campaign, key, arms=[name])
    engine.feedback(answer.decision, failed=True, **cost)
    return answer


def test_an_arm_rests_twice_as_long_after_each_failure_until_it_answers(engine, store, clock):
    campaign = engine.create("ads", "bts", budget=1000.0, arms=ARMS)
    for number in range(1, 13):
        fail(engine, campaign, f"fail {number}", "a")
        rest = min(2**number, 1024)
        assert (arm(engine, campaign, "a")["failures"], arm(engine, campaign, "a")["rests_until"]) == (
            number,
            clock.now + rest,
        )
        clock.now += rest - 1
        assert {engine.decide(campaign, f"{number} {each}").arm for each in range(12)} == {"b"}
        clock.now += 1
        assert arm(engine, campaign, "a")["rests_until"] is None
    assert "a" in {engine.decide(campaign, f"awake {each}").arm for each in range(40)}
    answer = engine.decide(campaign, "works", arms=["a"])
    engine.feedback(answer.decision, reward=1.0, cost=0.5)
    fail(engine, campaign, "again", "a")
    assert arm(engine, campaign, "a")["rests_until"] == clock.now + 2  # the first of a new row
    assert engine.account(campaign).spent == 500_000
    assert verify(store, campaign) == []


@pytest.mark.parametrize("lease", [{}, {"lease": 20.0, "lease_seconds": 1000.0}])
def test_failures_of_decisions_that_were_under_way_together_count_once(store, clock, lease):
    """Ten calls are under way when a provider goes down: the arm rests as after one failure, not for 1,024 seconds."""
    engines = [Engine(store, clock), Engine(store, clock)]
    campaign = engines[0].create("ads", "bts", budget=1000.0, arms=ARMS, **lease)

    def together(key, rest):
        made = [engines[0].decide(campaign, f"{key} {number}", arms=["a"]) for number in range(10)]
        clock.now += 0.25
        for number, each in enumerate(made):
            engines[number % 2].feedback(each.decision, failed=True)
            clock.now += 0.01
        clock.now = float(int(clock.now) + rest)  # the rest began in the second that has not ended, and ends with it
        assert {engines[0].decide(campaign, f"{key} rests {each}").arm for each in range(12)} == {"b"}
        clock.now += 1.0
        assert "a" in {engines[0].decide(campaign, f"{key} awake {each}").arm for each in range(60)}

    together("first", 2)
    together("second", 4)
    engines[1].set_status(campaign, "paused")  # which ends leases
    assert arm(engines[1], campaign, "a")["failures"] == 20
    assert verify(store, campaign) == []


def test_an_arm_at_rest_answers_where_every_arm_rests(engine, store):
    campaign = engine.create("ads", "bts", budget=100.0, arms=ARMS)
    fail(engine, campaign, "one", "a")
    assert engine.decide(campaign, "two", arms=["a"]).arm == "a"
    fail(engine, campaign, "three", "b")
    engine.decide(campaign, "four")
    assert verify(store, campaign) == []


@pytest.mark.parametrize("open", [False, True], ids=["exhausted", "blocked"])
def test_the_failure_of_the_only_arm_that_can_be_paid_is_not_the_end_of_the_money(engine, store, clock, open):
    """3 of 4 are spent, or held: the dear arm is out of reach, and the other one answers though it rests."""
    campaign = engine.create("ads", "bts", budget=4.0, arms={"cheap": 0.5, "dear": 3.0})
    dear = engine.decide(campaign, "dear", arms=["dear"])
    if not open:
        engine.feedback(dear.decision, reward=1.0, cost=3.0)
    for number in range(4):
        fail(engine, campaign, f"fails {number}", "cheap")
        assert arm(engine, campaign, "cheap")["rests_until"] > clock.now
        answer = engine.decide(campaign, f"answers {number}")
        assert answer.arm == "cheap"
        engine.void(answer.decision)
    with pytest.raises(HoldRefused) as refused:  # which has its own reason
        engine.decide(campaign, "cannot be paid", arms=["dear"])
    assert refused.value.reason == ("blocked_by_holds" if open else "exhausted")
    assert verify(store, campaign) == []


def test_of_the_arms_that_can_be_paid_those_awake_are_chosen(engine, store):
    arms = {"cheap": 0.5, "other": 0.5, "dear": 3.0}
    campaign = engine.create("ads", "bts", budget=4.0, arms=arms)
    engine.feedback(engine.decide(campaign, "dear", arms=["dear"]).decision, reward=1.0, cost=3.0)
    fail(engine, campaign, "fails", "cheap")
    for number in range(12):
        answer = engine.decide(campaign, str(number))
        assert answer.arm == "other"
        engine.void(answer.decision)
    assert verify(store, campaign) == []


def test_a_failure_is_final_and_counts_once(engine, store, clock):
    campaign = engine.create("ads", "bts", budget=10.0, arms=ARMS, hold_seconds=60.0)
    first = fail(engine, campaign, "one", "a", cost=0.25)
    engine.feedback(first.decision, failed=True)
    engine.feedback(first.decision, failed=True, cost=0.25)
    engine.feedback(first.decision, cost=0.25)
    for other in ({"failed": True, "cost": 0.3}, {"reward": 1.0}, {"reward": 1.0, "cost": 0.25}, {"cost": 0.1}):
        with pytest.raises(Conflict):
            engine.feedback(first.decision, **other)
    with pytest.raises(AlreadyResolved):
        engine.void(first.decision)
    with pytest.raises(BadParameter, match="tell the reward, or that it failed"):
        engine.feedback(first.decision, failed=True, reward=1.0)
    rewarded = engine.decide(campaign, "two")
    engine.feedback(rewarded.decision, reward=1.0)
    with pytest.raises(Conflict, match="has not failed"):
        engine.feedback(rewarded.decision, failed=True)
    billed = engine.decide(campaign, "three")  # the cost first, then that there was no answer
    engine.feedback(billed.decision, cost=0.125)
    engine.feedback(billed.decision, failed=True)
    late = engine.decide(campaign, "four")
    clock.now += 60.0
    engine.expire_due()
    engine.feedback(late.decision, failed=True)  # charged when it expired, and nothing was to pay
    account = engine.account(campaign)
    assert (account.spent, account.held) == (250_000 + 125_000 + 1_000_000, 0)  # the rewarded one has expired, charged
    assert sum(each["pulls"] for each in engine.describe(campaign)["arms"]) == 0
    assert [event.kind for event in store.events].count("failed") == 3
    assert verify(store, campaign) == []


def test_many_failures_at_once(engine, store):
    campaign = engine.create("ads", "kube", budget=10.0, arms=ARMS)
    made = engine.decide_many(campaign, "many", 2)
    told = engine.feedback_many(campaign, [Outcome(each.decision, failed=True) for each in made])
    assert [each.overrun for each in told] == [0.0, 0.0]
    assert sum(each["failures"] for each in engine.describe(campaign)["arms"]) == 2
    assert verify(store, campaign) == []


@pytest.mark.parametrize("policy", ["bts", "kube"])
def test_an_arm_that_neither_brings_nor_costs_anything_is_asked_ever_more_rarely(engine, store, clock, policy):
    """Told as reward 0 and cost 0, a dead arm would get a third of the requests of bts for ever, and all of kube's."""
    campaign = engine.create("ads", policy, budget=1e6, arms=ARMS)
    dead = 0
    for number in range(1500):
        answer = engine.decide(campaign, str(number))
        good = answer.arm == "b"
        engine.feedback(answer.decision, reward=0.5 * good, cost=0.5 * good)
        dead += not good
        clock.now += 1.0
    # 50 pulls, and then the n-th is followed by n seconds of rest: n²/2 = 1500 + 50²/2 at most
    assert 50 <= dead <= 75
    assert verify(store, campaign) == []


def test_a_clock_that_was_ahead_does_not_keep_an_arm_at_rest(engine, store, clock):
    campaign = engine.create("ads", "bts", budget=10.0, arms=ARMS, hold_seconds=1e9)
    answer = engine.decide(campaign, "one", arms=["a"])
    clock.now += 400 * DAY
    engine.feedback(answer.decision, failed=True)
    clock.now -= 400 * DAY
    assert arm(engine, campaign, "a")["rests_until"] > clock.now + 300 * DAY
    engine.set_back(campaign)
    assert arm(engine, campaign, "a")["rests_until"] == clock.now + 1024
    with pytest.raises(Conflict, match="nothing to set back"):
        engine.set_back(campaign)
    assert verify(store, campaign) == []


def test_failures_under_a_lease(store, clock):
    """Told to another server than decided, they are heard when the lease is looked at next, and when it is merged."""
    engines = [Engine(store, clock), Engine(store, clock)]
    campaign = engines[0].create("ads", "bts", budget=100.0, arms=ARMS, lease=10.0, lease_seconds=10.0)
    made = engines[0].decide(campaign, "one", arms=["a"])
    assert store.leases
    engines[1].feedback(made.decision, failed=True, cost=0.5)
    assert {engines[0].decide(campaign, f"{each}").arm for each in range(12)} == {"b"}
    clock.now += 6.0  # half of its time is over: it is merged before the next decision
    engines[0].decide(campaign, "merges")
    assert arm(engines[1], campaign, "a")["failures"] == 1
    assert verify(store, campaign) == []
