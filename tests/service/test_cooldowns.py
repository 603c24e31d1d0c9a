"""Failures: settled with what they cost, learned nothing from; after several in a row the arm cools down by the store's
time, and others take its place as far as the plan has money for that."""

import numpy as np
import pytest

from budgetbandits.errors import AlreadyResolved, BadParameter, Conflict, HoldRefused
from budgetbandits.service.audit.audit import verify
from budgetbandits.service.feedback import FeedbackReport
from budgetbandits.service.ledger import DAY
from budgetbandits.service.service import DecisionService
from budgetbandits.service.stores.sqlite import SQLiteStore
from deep import deep

ARMS = {"a": 1.0, "b": 1.0}


@pytest.fixture
def store(memory_store):
    return memory_store


def arm(engine, campaign, name):
    return next(each for each in engine.describe(campaign).arms if each.name == name)


def fail(engine, campaign, key, name, **cost):
    answer = engine.decide(campaign, key, arms=[name])
    engine.feedback(answer.decision, failed=True, **cost)
    return answer


def go_down(engine, campaign, clock, name, seconds=1.0):
    """Four failures, the first of which was decided so many seconds before it is told: a cooldown of half of that."""
    first = engine.decide(campaign, f"{name} goes down", arms=[name])
    for number in range(3):
        fail(engine, campaign, f"{name} goes down {number}", name)
    clock.now += seconds
    engine.feedback(first.decision, failed=True)


def test_an_arm_rests_for_half_as_long_as_it_has_been_failing_until_it_answers(engine, clock):
    campaign = engine.create("ads", "bts", budget=1000.0, arms=ARMS)
    began = clock.now
    for number in range(1, 4):
        fail(engine, campaign, f"fail {number}", "a")
        assert (arm(engine, campaign, "a").failures, arm(engine, campaign, "a").cooldown_until) == (number, None)
        clock.now += 1.0
    for number in range(4, 24):
        fail(engine, campaign, f"fail {number}", "a")
        rest = min(0.5 * (clock.now - began), 1024.0)
        assert (arm(engine, campaign, "a").failures, arm(engine, campaign, "a").cooldown_until) == (
            number,
            pytest.approx(clock.now + rest, abs=0.002),
        )
        clock.now += rest - 0.01
        assert {engine.decide(campaign, f"{number} {each}").arm for each in range(12)} == {"b"}
        clock.now += 0.02
        assert arm(engine, campaign, "a").cooldown_until is None
    answer = engine.decide(campaign, "works", arms=["a"])
    assert {engine.decide(campaign, f"one at a time {each}").arm for each in range(20)} == {"b"}
    engine.feedback(answer.decision, reward=1.0, cost=0.5)
    fail(engine, campaign, "again", "a")
    assert arm(engine, campaign, "a").cooldown_until is None  # the first of a new row
    assert engine.account(campaign).spent == 500_000


def test_an_answer_counts_for_the_usual_rate_of_failures_from_its_cost_on(engine):
    """Of an arm with 60 answers the third failure in a row makes an outage; with fewer than 27, the fourth."""
    campaign = engine.create("ads", "bts", budget=1000.0, arms=ARMS)
    for number in range(60):
        engine.feedback(engine.decide(campaign, f"{number}", arms=["a"]).decision, cost=0.5)
    for number in range(3):
        assert engine.describe(campaign).arms_down == 0
        fail(engine, campaign, f"fail {number}", "a")
    assert engine.describe(campaign).arms_down == 1


COSTS = {"small": 0.0008, "medium": 0.006, "large": 0.04}
REWARDS = {"small": 0.45, "medium": 0.65, "large": 0.8}
PRICED = {name: 2.0 * cost for name, cost in COSTS.items()}


def answer(engine, campaign, key, **said):
    made = engine.decide(campaign, key, **said)
    engine.feedback(made.decision, reward=REWARDS[made.arm], cost=COSTS[made.arm])
    return made.arm


@pytest.mark.parametrize("policy", ["bts-paced", "bts"])
def test_one_failure_of_each_cheap_arm_sends_no_traffic_to_the_most_expensive(engine, clock, policy):
    """It took 57 of the next 100 requests, and nearly all the money."""
    terms = {"horizon": 600} if policy == "bts-paced" else {}
    campaign = engine.create("ads", policy, budget=3.0, arms=PRICED, **terms)
    for number in range(60):
        answer(engine, campaign, f"learns {number}")
    for name in ("small", "medium"):
        fail(engine, campaign, f"{name} fails", name)
    before, arms = engine.account(campaign).spent, []
    for number in range(100):
        clock.now += 0.01
        arms.append(answer(engine, campaign, f"next {number}"))
    assert arms.count("large") <= 10
    assert engine.account(campaign).spent - before < 750_000


def test_one_failure_in_a_hundred_does_not_end_a_budget_early(engine, clock):
    """At 97 requests a second money for 1,200 requests ended at 842."""
    requests, rng, answered = 400, np.random.default_rng(1), 0
    campaign = engine.create("ads", "bts-paced", budget=0.005 * requests, arms=PRICED, horizon=requests)
    for number in range(requests):
        clock.now += 1 / 97
        if rng.random() < 0.01:
            engine.feedback(engine.decide(campaign, str(number)).decision, failed=True)
        else:
            answer(engine, campaign, str(number))
            answered += 1
    assert answered > 0.97 * requests
    assert 1.9 < engine.account(campaign).spent / 1e6 <= 2.0


@pytest.mark.parametrize(
    ("terms", "requests"),
    [({}, 150), ({"lease": 1.0, "lease_seconds": 1000.0}, 150), ({"propensity_draws": 5}, 15)],
)
def test_a_plan_keeps_its_pace_while_cheaper_arms_are_down(engine, clock, terms, requests):
    campaign = engine.create("ads", "bts-paced", budget=3.0, arms=PRICED, horizon=600, **terms)
    for number in range(60):
        answer(engine, campaign, f"learns {number}", arms=[list(COSTS)[number % 3]])
    for name in ("small", "medium"):
        go_down(engine, campaign, clock, name, 100.0)
    large = 0
    for number in range(requests):
        clock.now += 0.1
        made = engine.decide(campaign, f"down {number}")
        large += made.arm == "large"
        if made.arm == "large":
            engine.feedback(made.decision, reward=0.8, cost=0.04)
        else:
            engine.feedback(made.decision, failed=True)
    assert 0.04 * requests < large + 1 < 0.18 * requests + 3  # 0.004 for each of 530 requests: a tenth of them
    engine.set_status(campaign, "paused")  # which ends leases


@pytest.mark.parametrize("lease", [{}, {"lease": 20.0, "lease_seconds": 1000.0}])
def test_failures_of_decisions_that_were_under_way_together_make_no_cooldown_longer(clock, lease, engines):
    """Ten calls are under way when a provider goes down: the arm cools down as after the fourth of them."""
    campaign = engines[0].create("ads", "bts", budget=1000.0, arms=ARMS, **lease)
    made = [engines[0].decide(campaign, f"{number}", arms=["a"]) for number in range(10)]
    clock.now += 2.0
    for number, each in enumerate(made):
        engines[number % 2].feedback(each.decision, failed=True)
        clock.now += 0.01
    clock.now = 1002.03 + 1.01
    assert {engines[0].decide(campaign, f"rests {each}").arm for each in range(12)} == {"b"}
    clock.now += 0.02
    probe = next(each for each in (engines[0].decide(campaign, f"awake {n}") for n in range(60)) if each.arm == "a")
    assert {engines[0].decide(campaign, f"one at a time {each}").arm for each in range(12)} == {"b"}
    clock.now += 0.5
    engines[1].feedback(probe.decision, failed=True)
    clock.now += 1.7  # half of the 3.5 seconds since the first decision of the row
    assert {engines[0].decide(campaign, f"rests again {each}").arm for each in range(12)} == {"b"}
    clock.now += 0.1
    assert "a" in {engines[0].decide(campaign, f"awake again {each}").arm for each in range(60)}
    engines[1].set_status(campaign, "paused")  # which ends leases
    assert arm(engines[1], campaign, "a").failures == 11


def test_an_arm_cooling_down_answers_where_every_arm_rests(engine, clock):
    campaign = engine.create("ads", "bts", budget=100.0, arms=ARMS)
    go_down(engine, campaign, clock, "a")
    assert engine.decide(campaign, "two", arms=["a"]).arm == "a"
    go_down(engine, campaign, clock, "b")
    engine.decide(campaign, "four")


@pytest.mark.parametrize("open", [False, True], ids=["exhausted", "blocked"])
def test_the_failure_of_the_only_arm_that_can_be_paid_is_not_the_end_of_the_money(engine, clock, open):
    """3 of 4 are spent, or held: the dear arm is out of reach, and the other one answers though it cools down."""
    campaign = engine.create("ads", "bts", budget=4.0, arms={"cheap": 0.5, "dear": 3.0})
    dear = engine.decide(campaign, "dear", arms=["dear"])
    if not open:
        engine.feedback(dear.decision, reward=1.0, cost=3.0)
    go_down(engine, campaign, clock, "cheap")
    for number in range(3):
        fail(engine, campaign, f"fails {number}", "cheap")
        assert arm(engine, campaign, "cheap").cooldown_until > clock.now
        answer = engine.decide(campaign, f"answers {number}")
        assert answer.arm == "cheap"
        engine.void(answer.decision)
    with pytest.raises(HoldRefused) as refused:  # which has its own reason
        engine.decide(campaign, "cannot be paid", arms=["dear"])
    assert refused.value.reason == ("blocked_by_holds" if open else "exhausted")


def test_of_the_arms_that_can_be_paid_those_awake_are_chosen(engine, clock):
    arms = {"cheap": 0.5, "other": 0.5, "dear": 3.0}
    campaign = engine.create("ads", "bts", budget=4.0, arms=arms)
    engine.feedback(engine.decide(campaign, "dear", arms=["dear"]).decision, reward=1.0, cost=3.0)
    go_down(engine, campaign, clock, "cheap")
    for number in range(12):
        answer = engine.decide(campaign, str(number))
        assert answer.arm == "other"
        engine.void(answer.decision)


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
    with pytest.raises(BadParameter, match="report the reward, or the failure"):
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
    assert sum(each.pulls for each in engine.describe(campaign).arms) == 0
    assert [event.kind for event in store.events].count("failed") == 3


def test_many_failures_at_once(engine):
    campaign = engine.create("ads", "kube", budget=10.0, arms=ARMS)
    made = engine.decide_many(campaign, "many", 2)
    told = engine.feedback_many(campaign, [FeedbackReport(each.decision, failed=True) for each in made])
    assert [each.overrun for each in told] == [0.0, 0.0]
    assert sum(each.failures for each in engine.describe(campaign).arms) == 2


@pytest.mark.parametrize("policy", ["bts", *deep("kube")])
def test_an_arm_that_neither_brings_nor_costs_anything_is_asked_ever_more_rarely(engine, clock, policy):
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


def test_a_clock_that_was_ahead_does_not_keep_an_arm_cooling_down(engine, clock):
    campaign = engine.create("ads", "bts", budget=10.0, arms=ARMS, hold_seconds=1e9)
    go_down(engine, campaign, clock, "a", 400 * DAY)
    clock.now -= 400 * DAY
    assert arm(engine, campaign, "a").cooldown_until is None
    engine.reset_clock(campaign)
    assert arm(engine, campaign, "a").cooldown_until == clock.now + 1024
    with pytest.raises(Conflict, match="nothing to reset"):
        engine.reset_clock(campaign)


def test_failures_under_a_lease(store, clock, engines):
    """Told to another server than decided, they are heard when the lease is looked at next, and when it is merged."""
    campaign = engines[0].create("ads", "bts", budget=100.0, arms=ARMS, lease=10.0, lease_seconds=10.0)
    made = [engines[0].decide(campaign, f"fails {each}", arms=["a"]) for each in range(4)]
    assert store.leases
    clock.now += 2.0
    for each in made:
        engines[1].feedback(each.decision, failed=True, cost=0.5)
    assert {engines[0].decide(campaign, f"{each}").arm for each in range(4)} == {"b"}
    clock.now += 6.0  # half of its time is over: it is merged before the next decision
    engines[0].decide(campaign, "merges")
    assert arm(engines[1], campaign, "a").failures == 4


def test_a_reported_cost_ends_a_row_of_failures_and_a_late_reward_does_not(tmp_path, clock):
    """The same for the campaign's own money, for a lease that another server reports to, and for the audit's replay."""
    rows = []
    for lease in ({}, {"lease": 20.0, "lease_seconds": 1000.0}):
        clock.now = 1000.0
        with SQLiteStore(tmp_path / f"{len(lease)}.db") as store:
            one, other = DecisionService(store, clock), DecisionService(store, clock)
            campaign = one.create("ads", "bts", budget=100.0, arms=ARMS, **lease)
            made = [one.decide(campaign, str(number), arms=["a"]).decision for number in range(13)]
            seen = []
            for failures, feedback in ((3, {"cost": 0.5}), (6, {"reward": 1.0}), (1, {})):
                for decision in [made.pop() for _ in range(failures)]:
                    clock.now += 1.0
                    other.feedback(decision, failed=True, cost=0.25)
                if feedback:
                    one.feedback(made[0], **feedback)
                one.top_up(campaign, 1.0)  # which ends the lease, and the campaign learns what was reported under it
                seen.append(store.read(lambda tx, id=campaign: tx.arms(id)[0].learned["cooldown"]))
                assert verify(store, campaign) == []
            rows.append(seen)
            assert [each.get("row", 0) for each in seen] == [0, 6, 7]
            assert [arm.down_since for arm in one.describe(campaign).arms] == [1000.0, None]
    assert rows[0] == rows[1]
