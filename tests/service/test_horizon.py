"""A horizon, and segments: a budget that lasts for so many requests of several kinds, in the service."""

import os
import random

import pytest

from budgetbandits.errors import BadParameter, HoldRefused
from budgetbandits.service import campaign_session
from budgetbandits.service.audit.audit import verify
from budgetbandits.service.service import DecisionService

ARMS = {"small": 0.1, "large": 1.0}


@pytest.fixture
def store(memory_store):
    return memory_store


@pytest.fixture
def engine(store, clock, monkeypatch):
    monkeypatch.setattr(os, "urandom", random.Random(20).randbytes)  # ids seed the draws
    return DecisionService(store, clock)


def play(engine, campaign, requests, reward, key="", **request):
    """Requests of which each is answered; the cost is a half of the cap."""
    for number in range(requests):
        answer = engine.decide(campaign, f"{key}{number}", **request)
        engine.feedback(answer.decision, reward=reward[answer.arm], cost=answer.hold / 2)


def left(engine, campaign):
    """What the policy believes is left, in units of the largest cap."""
    return engine._sessions.kept[campaign].state.left


def test_the_money_lasts_for_the_horizon(engine):
    """Always large would cost 200 × 0.5, and the money is for a mix: all is answered and nearly all is spent."""
    campaign = engine.create("ads", "bts-paced", budget=50.0, arms=ARMS, horizon=200)
    play(engine, campaign, 200, {"small": 0.3, "large": 0.9})
    told = engine.describe(campaign)
    assert (told.requests_answered, told.horizon) == (200, 200.0)
    assert 48.0 < told.spent <= 50.0


def test_money_that_taught_nothing_is_gone_for_the_plan_too(engine, clock):
    campaign = engine.create("ads", "bts-paced", budget=50.0, arms=ARMS, horizon=200, hold_seconds=10.0)
    play(engine, campaign, 20, {"small": 0.3, "large": 0.9})
    engine.feedback(engine.decide(campaign, "fails", arms=["large"]).decision, failed=True, cost=0.75)
    engine.decide(campaign, "nobody tells", arms=["large"])
    clock.now += 10.0
    engine.expire_due()
    engine.decide(campaign, "next")
    account = engine.account(campaign)
    assert left(engine, campaign) == pytest.approx((account.budget - account.spent) / 1e6, rel=1e-12)


@pytest.mark.parametrize("lease", [{}, {"lease": 20.0}])
def test_a_request_that_failed_is_one_gone(clock, lease, engines):
    """What is left is for the requests that are neither answered nor failed, on every server."""
    campaign = engines[0].create("ads", "bts-paced", budget=50.0, arms=ARMS, horizon=100, **lease)
    for number in range(30):
        answer = engines[number % 2].decide(campaign, str(number))
        told = {"failed": True} if number % 3 == 0 else {"reward": 0.5, "cost": answer.hold / 2}
        engines[number // 2 % 2].feedback(answer.decision, **told)
        clock.now += 5.0
    engines[0].change_terms(campaign, {"hold_seconds": 50.0})  # which ends leases
    for engine in engines:
        engine.decide(campaign, f"next {engine is engines[0]}")
        account, state = engine.account(campaign), state_of(engine, campaign)
        assert state.rate == pytest.approx((account.budget - account.spent) / 1e6 / 70, rel=1e-12)
        assert state.known.unlearned == 10


def state_of(engine, campaign):
    """What the policy knows that has chosen last, under a lease if there is one."""
    held = engine._leases._held.get(campaign)
    return (engine._sessions.kept[campaign] if held is None else held.session).state


@pytest.mark.parametrize("lease", [{}, {"lease": 20.0, "lease_seconds": 1000.0}], ids=["own", "leased"])
def test_a_request_is_gone_with_its_money_whatever_is_told_of_it_later(store, clock, lease, engines):
    """Of 20 requests 4 have a reward, 12 wait for it, 2 have expired and 2 are open: 18 are gone, on every server, also
    while the lease is not merged. When the rewards come, nothing is gone twice."""
    campaign = engines[0].create("ads", "bts-paced", budget=50.0, arms=ARMS, horizon=100, hold_seconds=10.0, **lease)
    made = [engines[0].decide(campaign, f"expires {number}") for number in range(2)]
    clock.now += 10.0
    assert engines[1].expire_due() == {"ads": 2}
    late = [engines[0].decide(campaign, str(number)) for number in range(18)]
    for number, each in enumerate(late[:16]):
        engines[number % 2].feedback(each.decision, cost=each.hold / 2, reward=0.5 if number < 4 else None)

    def rate(gone, key):
        engines[0].void(engines[0].decide(campaign, key).decision)
        spent = sum(row.hold.charged for row in store.decisions.values())
        assert state_of(engines[0], campaign).rate == pytest.approx((50e6 - spent) / 1e6 / (100 - gone), rel=1e-12)

    rate(18, "none told")
    for number, each in enumerate(late[4:16]):
        engines[number % 2].feedback(each.decision, reward=0.25)
    rate(18, "all told")
    for each in made:  # which were charged in full
        engines[1].feedback(each.decision, cost=0.01, reward=0.5)
    rate(18, "told late")
    assert verify(store, campaign) == []
    engines[1].set_status(campaign, "paused")  # which ends leases
    assert (engines[0].describe(campaign).requests_used, engines[0].describe(campaign).requests_answered) == (
        18,
        18,
    )


@pytest.mark.parametrize("lease", [{}, {"lease": 20.0, "lease_seconds": 1000.0}], ids=["own", "leased"])
def test_a_policy_that_watches_the_money_left_sees_what_was_charged(store, clock, lease):
    """Without a horizon, too: rewards are late, a hold has expired, and the money is not there any more."""
    engine = DecisionService(store, clock)
    campaign = engine.create("ads", "gittins-ratio", budget=50.0, arms=ARMS, hold_seconds=10.0, **lease)
    engine.decide(campaign, "expires")
    clock.now += 10.0
    engine.expire_due()
    late = [engine.decide(campaign, str(number)) for number in range(12)]
    for each in late:
        engine.feedback(each.decision, cost=each.hold / 2)
    for told in (0, 6, 12):
        for each in late[:told]:
            engine.feedback(each.decision, reward=0.5)
        engine.void(engine.decide(campaign, f"after {told}").decision)
        spent = sum(row.hold.charged for row in store.decisions.values())
        assert state_of(engine, campaign).left == pytest.approx((50e6 - spent) / 1e6 / max(ARMS.values()), rel=1e-9)


def test_hardly_any_reward_comes_in_time_and_the_money_is_spent_all_the_same(engine):
    """500 requests for 50: small for all would cost 25, large for all 250. Costs are told at once, one reward in
    fifty as well, the others when all is over. A policy that took the requests for unanswered would keep 20 back."""
    campaign = engine.create("ads", "bts-paced", budget=50.0, arms=ARMS, horizon=500)
    late = []
    for number in range(500):
        answer = engine.decide(campaign, str(number))
        told = {"reward": {"small": 0.3, "large": 0.9}[answer.arm]} if number % 50 == 0 else {}
        engine.feedback(answer.decision, cost=answer.hold / 2, **told)
        if not told:
            late.append(answer)
    assert 47.0 <= engine.describe(campaign).spent <= 50.0
    for answer in late:
        engine.feedback(answer.decision, reward={"small": 0.3, "large": 0.9}[answer.arm])
    assert (engine.describe(campaign).requests_answered, engine.account(campaign).requests_used) == (500, 500)


def test_tampering_with_the_number_of_requests_gone_is_found(engine, store, tampered):
    campaign = engine.create("ads", "bts-paced", budget=50.0, arms=ARMS, horizon=100)
    play(engine, campaign, 3, {"small": 0.3, "large": 0.9})
    store.campaigns[campaign].account.requests_used = 2
    assert any("the campaign's row says" in text for text in verify(store, campaign))


def test_another_horizon_is_heard_by_every_server_at_once(engines):
    campaign = engines[0].create("ads", "bts-paced", budget=50.0, arms=ARMS, horizon=200)
    play(engines[1], campaign, 3, {"small": 0.3, "large": 0.9})
    engines[0].change_terms(campaign, {"horizon": 60})
    play(engines[1], campaign, 3, {"small": 0.3, "large": 0.9}, "later ")
    engines[0].top_up(campaign, 5.0)
    play(engines[0], campaign, 3, {"small": 0.3, "large": 0.9}, "last ")
    assert [each._sessions.kept[campaign].state.known.horizon for each in engines] == [60.0, 60.0]
    engines[1].change_terms(campaign, {"horizon": None})  # as many as can be paid
    play(engines[0], campaign, 3, {"small": 0.3, "large": 0.9}, "free ")
    assert engines[0].describe(campaign).horizon is None


def test_a_horizon_is_for_policies_that_plan(engine):
    campaign = engine.create("ads", "bts", budget=50.0, arms=ARMS)
    with pytest.raises(BadParameter, match="leave horizon out"):
        engine.change_terms(campaign, {"horizon": 100})
    campaign = engine.create("other", "primal-dual-bwk", budget=50.0, arms=ARMS, horizon=10)
    play(engine, campaign, 10, {"small": 0.3, "large": 0.9})


def test_segments_learn_apart_under_one_price(engine):
    """Large is worth its price for code and not for mail, and there is money for half of the requests."""
    campaign = engine.create("ads", "bts-paced", budget=66.0, arms=ARMS, horizon=240)
    chosen = {"code": 0, "mail": 0}
    for number in range(240):
        segment = "code" if number % 2 else "mail"
        answer = engine.decide(campaign, str(number), segment=segment)
        brings = 0.9 if answer.arm == "large" and segment == "code" else 0.3
        engine.feedback(answer.decision, reward=brings, cost=answer.hold / 2)
        chosen[segment] += answer.arm == "large"
    assert engine.describe(campaign).segments == ("mail", "code")
    assert chosen["code"] > 100 > 20 > chosen["mail"]


def test_feedback_writes_one_row_and_a_new_segment_all(engine, store, monkeypatch):
    campaign = engine.create("ads", "bts-paced", budget=50.0, arms=ARMS | {"middle": 0.5}, horizon=100)
    written = []
    save = type(store.read(lambda tx: tx)).save_arms
    monkeypatch.setattr(
        type(store.read(lambda tx: tx)), "save_arms", lambda tx, arms: written.append(len(arms)) or save(tx, arms)
    )
    for segment, rows in (("code", [3, 1]), ("code", [1]), (None, [3, 1]), ("code", [1])):
        written.clear()
        answer = engine.decide(campaign, f"{segment} {len(store.events)}", segment=segment)
        engine.feedback(answer.decision, reward=0.5, cost=0.05)
        assert [each for each in written if each] == rows


def test_what_was_learned_before_any_segment_was_named_is_of_none(engine, store):
    campaign = engine.create("ads", "bts-paced:forget=0", budget=50.0, arms=ARMS, horizon=100)
    play(engine, campaign, 5, {"small": 0.3, "large": 0.9})
    open = engine.decide(campaign, "open")
    play(engine, campaign, 2, {"small": 0.3, "large": 0.9}, "code", segment="code")
    engine.feedback(open.decision, reward=0.5, cost=0.05)
    counts = [sum(arm.learned["sums"][1][segment] for arm in store.arms[campaign]) for segment in (0, 1)]
    assert (list(engine._sessions.kept[campaign].segments), counts) == ([None, "code"], [6.0, 2.0])
    assert engine.describe(campaign).segments == ("code",)


def test_two_servers_with_segments_catch_up_with_each_other(store, monkeypatch, engines):
    campaign = engines[0].create("ads", "bts-paced", budget=50.0, arms=ARMS, horizon=100)
    for number in range(30):
        segment = ("code", "mail", None, "chat")[number // 2 % 4]
        answer = engines[number % 2].decide(campaign, str(number), segment=segment)
        engines[number // 3 % 2].feedback(answer.decision, reward=0.5, cost=0.05)
    assert verify(store, campaign) == []
    monkeypatch.setattr(campaign_session, "SEGMENTS_MAX", 4)
    with pytest.raises(BadParameter, match="one of more than 4; name fewer"):
        engines[0].decide(campaign, "too many", segment="fifth")
    assert engines[1].decide(campaign, "known", segment="chat").arm in ARMS


def test_more_segments_than_may_be_named_are_learned_and_merged(monkeypatch, engines):
    """The limit is for who decides: feedback, merges and requests without a segment are never refused for it."""
    monkeypatch.setattr(campaign_session, "SEGMENTS_MAX", 4)
    campaign = engines[0].create("ads", "bts-paced", budget=80.0, arms=ARMS, horizon=300, lease=8.0)
    plain = engines[0].decide(campaign, "plain")
    for engine, segments in zip(engines, ("abcd", "wxyz"), strict=True):
        for segment in segments:
            engine.feedback(engine.decide(campaign, segment, segment=segment).decision, reward=0.5, cost=0.05)
    engines[0].feedback(plain.decision, reward=0.5, cost=0.05)
    engines[0].decide(campaign, "plain again")
    engines[1].set_status(campaign, "paused")
    assert engines[0].account(campaign).status == "paused"
    assert set(engines[0].describe(campaign).segments) == set("abcdwxyz")


def test_segments_and_a_horizon_under_leases(store, clock, engines):
    """Servers open the same segments in other orders; merged, each is one segment of the campaign."""
    campaign = engines[0].create(
        "ads", "bts-paced", budget=80.0, arms=ARMS, horizon=300, lease=8.0, lease_seconds=10.0, propensity_draws=2
    )
    made = []
    for number in range(120):
        server = number % 2
        segment = (("code", "mail", None), ("chat", None, "mail"))[server][number // 2 % 3]
        made.append(engines[server].decide(campaign, str(number), segment=segment))
        told = made.pop(0) if len(made) > 3 else None
        if told is not None:
            engines[number // 5 % 2].feedback(told.decision, reward=0.5, cost=0.05)
        clock.now += 0.7
    assert len(store.leases) == 2
    assert set(engines[0].describe(campaign).segments) == {"code", "mail", "chat"}
    assert verify(store, campaign) == []
    engines[0].set_status(campaign, "paused")


def test_tampering_with_segments_is_found(engine, store, tampered):
    campaign = engine.create("ads", "bts-paced", budget=50.0, arms=ARMS, horizon=100)
    play(engine, campaign, 3, {"small": 0.3, "large": 0.9}, segment="code")
    learned = store.campaigns[campaign].learned
    learned["segments"] = ["mail"]
    assert any("segments" in text for text in verify(store, campaign))
    learned["segments"] = ["code"]
    assert verify(store, campaign) == []


@pytest.mark.parametrize("lease", [{}, {"lease": 8.0, "lease_seconds": 10.0}])
def test_decisions_that_are_voided_use_up_no_requests(engine, lease):
    campaign = engine.create("ads", "primal-dual-bwk", budget=50.0, arms=ARMS, horizon=10, **lease)
    for number in range(25):
        engine.void(engine.decide(campaign, str(number)).decision)
    for number in range(10):
        engine.feedback(engine.decide(campaign, f"told {number}").decision, reward=0.5, cost=0.05)
    with pytest.raises(HoldRefused, match="stops here"):
        engine.decide(campaign, "one more")
