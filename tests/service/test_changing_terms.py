"""Terms that change while a campaign runs: the new ones hold from then on, and the replay knows which held when."""

import os
import random
from dataclasses import replace
from datetime import datetime
from zoneinfo import ZoneInfo

import pytest

from budgetbandits.errors import (
    BadParameter,
    BudgetBanditsError,
    Conflict,
    HoldRefused,
    MissingKnowledge,
    RewardOutOfRange,
    UnknownArm,
)
from budgetbandits.policies.transfer import totals
from budgetbandits.service import ledger
from budgetbandits.service.audit.audit import verify
from budgetbandits.service.rollups import History, roll_up
from budgetbandits.service.service import DecisionService
from budgetbandits.service.session_rows import read_session
from budgetbandits.service.stores.sqlite import SQLiteStore
from clock import Clock

ARMS = {"search": 1.0, "mail": 1.0}


@pytest.fixture
def clock():
    return Clock(86_400.0 * 10)


@pytest.fixture
def store(memory_store):
    return memory_store


@pytest.fixture
def daily(engine):
    """A campaign that may spend 2 a day."""
    engine.create("ads", "bts", 100.0, ARMS, hold_seconds=60.0, daily_cap=2.0)
    return engine


def refused(engine, key):
    with pytest.raises(HoldRefused) as error:
        engine.decide("ads", key)
    return error.value.reason


def test_a_daily_cap_is_raised_and_taken_away(daily):
    daily.decide("ads", "1")
    daily.decide("ads", "2")
    assert refused(daily, "3") == "daily_cap"
    daily.change_terms("ads", {"daily_cap": 3.0})
    daily.decide("ads", "4")
    assert refused(daily, "5") == "daily_cap"
    daily.change_terms("ads", {"daily_cap": None})
    for number in range(6, 12):
        daily.decide("ads", str(number))
    assert daily.describe("ads").daily_cap is None


def test_a_lower_cap_holds_at_once(daily):
    daily.change_terms("ads", {"daily_cap": 9.0})
    for number in range(5):
        daily.decide("ads", str(number))
    daily.change_terms("ads", {"daily_cap": 4.0})
    assert refused(daily, "more") == "daily_cap"


def test_another_horizon_changes_what_may_be_spent_by_now(daily, clock):
    """Of 100 in 100 hours, 10 after 10 hours and the largest cap; spread over 1000 hours it would have been 1."""
    daily.change_terms("ads", {"daily_cap": None, "pace_seconds": 360_000.0})
    clock.now += 36_000.0
    for number in range(11):
        daily.decide("ads", str(number))
    assert refused(daily, "more") == "paced"
    daily.change_terms("ads", {"pace_seconds": 3_600_000.0})
    clock.now += 36_000.0
    assert refused(daily, "still") == "paced"
    daily.change_terms("ads", {"pace_seconds": 36_000.0})
    daily.decide("ads", "at last")


def test_open_holds_keep_their_time(daily, clock):
    first = daily.decide("ads", "1")
    daily.change_terms("ads", {"hold_seconds": 600.0})
    second = daily.decide("ads", "2")
    assert (first.expires_at - clock.now, second.expires_at - clock.now) == (60.0, 600.0)
    clock.now += 61.0
    daily.expire_due()
    assert (daily.account("ads").spent, daily.account("ads").held) == (1_000_000, 1_000_000)


def test_two_servers_have_the_new_terms_at_once(daily, store, clock):
    other = DecisionService(store, clock)
    other.decide("ads", "1")
    daily.change_terms("ads", {"hold_seconds": 600.0})
    assert other.decide("ads", "2").expires_at == clock.now + 600.0


def test_campaigns_with_leases_change_what_they_can(engine, clock):
    engine.create("leased", "bts", 100.0, ARMS, lease=10.0)
    for number in range(3):
        engine.decide("leased", str(number))
    engine.change_terms("leased", {"hold_seconds": 5.0})
    assert engine.decide("leased", "4").expires_at == clock.now + 5.0
    with pytest.raises(BadParameter, match="a lease cannot keep a daily_cap"):
        engine.change_terms("leased", {"daily_cap": 20.0})


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"features": ["a"]}, "cannot be changed, only daily_cap, time_zone, pace_seconds"),
        ({"colour": "red"}, "cannot be changed"),
        ({}, "the terms already"),
        ({"daily_cap": 2}, "the terms already"),
        ({"daily_cap": 0.5}, "the most expensive arm may cost"),
        ({"hold_seconds": None}, "use a positive number"),
        ({"on_expire": "forget"}, "use charge or release"),
        ({"on_expire": None}, "use charge or release"),
    ],
)
def test_what_cannot_be_changed_is_not(daily, changes, words):
    before = daily.describe("ads")
    with pytest.raises(BadParameter, match=words):
        daily.change_terms("ads", changes)
    assert daily.describe("ads") == before


def test_an_audit_misses_a_change_that_no_event_tells(daily, store, tampered):
    daily.decide("ads", "1")
    daily.change_terms("ads", {"daily_cap": 5.0})
    row = store.read(lambda tx: tx.campaign("ads"))
    earlier = (*row.settings.earlier, replace(row.settings.earlier[0], change=row.settings.change))
    store.write(lambda tx: tx.save_settings(replace(row, settings=replace(row.settings, earlier=earlier))))
    assert verify(store, "ads")[-1] == "the campaign's row has 1 more changes of terms than its events"
    store.write(lambda tx: tx.save_settings(replace(row, settings=replace(row.settings, earlier=()))))
    said = verify(store, "ads")[0]
    assert "the row knows of no such change" in said


def test_an_audit_finds_a_decision_that_the_terms_of_then_forbade(daily, store, tampered):
    """The cap was 2 when three were decided; that it is 5 now does not excuse it."""
    daily.change_terms("ads", {"daily_cap": 5.0})
    for number in range(3):
        daily.decide("ads", str(number))
    assert verify(store, "ads") == []
    change = next(event for event in store.events if event.kind == "terms changed")
    others = [event for event in store.events if event is not change]
    store.events[:] = [replace(event, seq=place) for place, event in enumerate([*others, change], 1)]
    assert any("cannot have happened" in said for said in verify(store, "ads"))


def test_a_retired_arm_comes_back_with_what_is_known_of_it(daily, store, clock):
    other = DecisionService(store, clock)
    daily.change_terms("ads", {"daily_cap": None})
    for number in range(20):
        made = daily.decide("ads", str(number))
        daily.feedback(made.decision, reward=float(made.arm == "mail"), cost=0.5)
    pulls = {arm.name: arm.pulls for arm in daily.describe("ads").arms}
    daily.retire_arm("ads", "mail")
    assert {other.decide("ads", f"without {number}").arm for number in range(20)} == {"search"}
    daily.bring_back_arm("ads", "mail")
    assert "mail" in {other.decide("ads", f"with {number}").arm for number in range(20)}
    assert {arm.name: arm.pulls for arm in daily.describe("ads").arms} == pulls
    assert verify(store, "ads") == []
    with pytest.raises(Conflict, match="nothing to bring back"):
        daily.bring_back_arm("ads", "mail")
    with pytest.raises(UnknownArm):
        daily.bring_back_arm("ads", "radio")


def test_holds_expire_by_the_terms_of_that_moment(tmp_path, clock):
    """What was charged then is what feedback corrects, whatever the terms say by now; rollups know it too."""
    with SQLiteStore(tmp_path / "money.db") as store:
        engine = DecisionService(store, clock)
        engine.create("ads", "bts", 100.0, ARMS, hold_seconds=60.0)
        made = []
        for number, rule in enumerate(["charge", "release", "charge"]):
            made.append(engine.decide("ads", str(number)))
            if engine.describe("ads").on_expire != rule:
                engine.change_terms("ads", {"on_expire": rule})
            clock.now += 61.0
            engine.expire_due()
        assert engine.account("ads").spent == 2_000_000
        engine.change_terms("ads", {"on_expire": "release"})
        for number, each in enumerate(made):
            engine.feedback(each.decision, cost=0.25, reward=1.0)
            if number == 1:
                roll_up(store)
        assert engine.account("ads").spent == 750_000
        totals = store.read(lambda tx: History.of(tx, tx.campaign("ads")).totals())
        assert sum(each.spent for each in totals.values()) == 750_000
        roll_up(store)
        assert verify(store, "ads") == []


# --- money, caps, rewards, name and policy ----------------------------------------------------------------------------


def pull(engine, key, reward, cost, campaign="ads", **request):
    answer = engine.decide(campaign, key, **request)
    engine.feedback(answer.decision, reward=reward, cost=cost)
    return answer


def learned(store, campaign="ads"):
    """The mean reward and cost of each arm in the user's unit, as the campaign has learned them."""
    row = store.read(lambda tx: tx.campaign(campaign))
    session = read_session(row, store.read(lambda tx: tx.arms(row.id)))
    found = {}
    for arm, (name, cap) in enumerate(zip(session.names, session.caps.tolist(), strict=True)):
        pulls, reward, cost = totals(session.policy, session.state, arm)
        scale = row.settings.cost_scale(cap) / 1e6
        found[name] = (pulls, reward * row.settings.terms.reward_max, cost * scale)
    return found


def told(store):
    """Who changed what, by the events."""
    return [(event.actor, event.request) for event in store.events if event.kind == "terms changed"]


def test_a_budget_goes_down_to_what_is_spent_and_held(engine, store):
    engine.create("ads", "bts", 100.0, ARMS)
    pull(engine, "1", 1.0, 0.25)
    engine.decide("ads", "2")
    with pytest.raises(BadParameter, match=r"budget is 1.00; use 1.25, which is spent and held, to"):
        engine.change_terms("ads", {"budget": 1.0})
    engine.change_terms("ads", {"budget": 1.25}, actor="mia")
    assert engine.account("ads").left == 0
    assert refused(engine, "3") == "blocked_by_holds"
    engine.change_terms("ads", {"budget": 50.0})
    engine.decide("ads", "3")
    assert told(store)[0] == ("mia", '{"budget":[100000000,1250000]}')


@pytest.mark.parametrize("policy", ["bts", "kube", "bts-paced", "bts-gaussian", "ucb-b2", "thompson", "pd-bwk"])
def test_caps_go_up_and_down_and_means_stay(engine, store, clock, policy, monkeypatch):
    # ids seed the coins of costs: with too many heads a mean is above the lowest cap, and becomes that cap
    monkeypatch.setattr(os, "urandom", random.Random(20).randbytes)
    engine.create("ads", policy, 100.0, {"search": 2.0, "mail": 1.0}, known={"costs": {"search": 0.5, "mail": 0.25}})
    for number in range(20):
        pull(engine, str(number), float(number % 2), 0.5, arms=[("search", "mail")[number % 2]])
    before = learned(store)
    other = DecisionService(store, clock)
    other.decide("ads", "of another server")
    for caps in ({"search": 8.0}, {"mail": 4.0, "search": 2.5}, {"search": 4.0}, {"mail": 0.9}):
        engine.change_terms("ads", {"caps": caps})
        assert {arm: found[0] for arm, found in learned(store).items()} == dict.fromkeys(before, 10)
        for arm, (_, reward, cost) in learned(store).items():
            assert (reward, cost) == (pytest.approx(before[arm][1]), pytest.approx(before[arm][2]))
        answer = other.decide("ads", f"after {caps}")
        assert answer.hold == {arm.name: arm.cost_cap for arm in engine.describe("ads").arms}[answer.arm]
        engine.feedback(answer.decision, failed=True)


def test_a_decision_of_before_keeps_its_hold(engine):
    engine.create("ads", "bts", 100.0, ARMS)
    first, second = engine.decide("ads", "1", arms=["mail"]), engine.decide("ads", "2", arms=["mail"])
    engine.change_terms("ads", {"caps": {"mail": 0.5}})
    engine.feedback(first.decision, cost=0.9, reward=1.0)  # within what it holds
    assert engine.account("ads").overrun == 0
    engine.change_terms("ads", {"caps": {"mail": 3.0}})
    engine.feedback(second.decision, cost=2.5, reward=1.0)  # within the cap of now
    assert (engine.account("ads").overrun, engine.account("ads").spent) == (0, 3_400_000)
    third = engine.decide("ads", "3", arms=["mail"])
    engine.change_terms("ads", {"caps": {"mail": 1.0}})
    engine.feedback(third.decision, cost=3.25, reward=1.0)
    assert engine.account("ads").overrun == 250_000


def test_an_arm_above_the_largest_cap_is_added(engine, store):
    engine.create("ads", "bts", 100.0, ARMS)
    pull(engine, "1", 1.0, 1.0, arms=["mail"])
    engine.add_arm("ads", "television", 20.0, actor="mia")
    assert engine.decide("ads", "2", arms=["television"]).hold == 20.0
    assert learned(store)["mail"] == (1, 1.0, 1.0)
    assert told(store) == [("mia", '{"cost_max":[1000000,20000000]}')]


def test_the_largest_reward_changes(engine, store):
    engine.create("ads", "bts-paced", 100.0, ARMS)
    pull(engine, "1", 0.5, 0.25, arms=["mail"])
    late = engine.decide("ads", "2", arms=["mail"])
    engine.change_terms("ads", {"reward_max": 10.0})
    pull(engine, "3", 8.0, 0.25, arms=["mail"])
    engine.feedback(late.decision, reward=9.0)
    assert learned(store)["mail"] == (2, pytest.approx(8.5), pytest.approx(0.5))
    engine.change_terms("ads", {"reward_max": 5.0})
    with pytest.raises(RewardOutOfRange):
        pull(engine, "4", 6.0, 0.25)
    engine.feedback(late.decision, cost=0.25)  # its reward was reported while it could be so large
    assert learned(store)["mail"] == (3, pytest.approx(13.5), pytest.approx(0.75))


def test_a_campaign_is_renamed_and_its_old_name_goes_on_meaning_it(real_store, clock):
    store, engine = real_store, DecisionService(real_store, clock)
    engine.create("ads", "bts", 100.0, ARMS)
    clock.now += 1.0
    engine.create("other", "bts", 100.0, ARMS)
    engine.change_terms("ads", {"name": "Ads 2027"}, key="once")
    engine.change_terms("ads", {"name": "Ads 2027"}, key="once")
    one, again = engine.decide("ads", "1"), engine.decide("Ads 2027", "1")
    assert one == again
    assert engine.names() == ["Ads 2027", "other"]
    for change in (
        lambda: engine.change_terms("other", {"name": "Ads 2027"}),
        lambda: engine.change_terms("other", {"name": "ads"}),
        lambda: engine.create("ads", "bts", 100.0, ARMS),
    ):
        with pytest.raises(Conflict, match="there is a campaign 'Ads 2027' already"):
            change()
    with pytest.raises(BadParameter, match="looks like an id"):
        engine.change_terms("other", {"name": "c" + "0" * 11})
    engine.change_terms("ads", {"name": "ads"})
    assert engine.decide("Ads 2027", "1") == one
    assert [row.name for row in engine.overview()] == ["ads", "other"]
    assert verify(store, "Ads 2027") == []


def test_another_policy_goes_on_with_what_was_learned(engine, store, clock):
    engine.create("ads", "bts-paced", 100.0, {"search": 2.0, "mail": 1.0}, horizon=200.0)
    for number in range(30):
        pull(engine, str(number), float(number % 2), 0.5, arms=[("search", "mail")[number % 2]], segment="code")
    before = learned(store)
    open_one = engine.decide("ads", "open", segment="mail")
    with pytest.raises(BadParameter, match="bts does not plan for a number of requests; leave horizon out"):
        engine.change_terms("ads", {"policy": "bts"})
    other = DecisionService(store, clock)
    assert other.describe("ads").policy == "bts-paced"
    engine.change_terms("ads", {"policy": "bts", "horizon": None}, actor="mia")
    assert (engine.describe("ads").policy, other.describe("ads").horizon) == ("bts", None)
    assert learned(store) == {arm: (n, pytest.approx(r), pytest.approx(c)) for arm, (n, r, c) in before.items()}
    engine.feedback(open_one.decision, reward=1.0, cost=0.25)
    pull(other, "after", 1.0, 0.25)
    with pytest.raises(BadParameter, match="looks at neither segments nor prices"):
        other.decide("ads", "with a segment", segment="code")
    for policy in ("kube", "bts-paced:forget=0.01", "epsilon-first", "bts-joint"):
        engine.change_terms("ads", {"policy": policy})
        pull(other, f"under {policy}", 0.0, 0.25)
        pull(engine, f"again under {policy}", 1.0, 0.75)


def test_a_policy_that_must_know_more_is_refused(daily):
    with pytest.raises(MissingKnowledge):
        daily.change_terms("ads", {"policy": "ucb-bv1"})
    with pytest.raises(BudgetBanditsError, match="nothing"):
        daily.change_terms("ads", {"policy": "nothing"})


def test_an_audit_finds_a_cap_that_no_change_made(daily, store, tampered):
    daily.change_terms("ads", {"caps": {"mail": 2.0}, "daily_cap": 5.0})
    store.write(lambda tx: tx.save_caps(tx.campaign("ads").id, {1: 3_000_000}))
    assert "the row says it may cost 3000000, the events 2000000" in verify(store, "ads")[0]


# --- days in a time zone ---------------------------------------------------------------------------------------------


def at(zone, *moment):
    return datetime(*moment, tzinfo=ZoneInfo(zone)).timestamp()


@pytest.mark.parametrize(
    ("zone", "day", "hours"),
    [
        ("Europe/Berlin", (2026, 3, 29), 23),
        ("Europe/Berlin", (2026, 10, 25), 25),
        ("America/New_York", (2026, 3, 8), 23),
        ("America/Havana", (2026, 3, 8), 23),  # midnight itself does not exist
        ("Asia/Kolkata", (2026, 3, 29), 24),
        ("Australia/Lord_Howe", (2026, 4, 5), 24.5),
    ],
)
def test_a_day_lasts_from_midnight_to_midnight(zone, day, hours):
    noon = at(zone, *day, 12)
    begin, end = ledger.day_of(noon, zone), ledger.next_day(noon, zone)
    assert end - begin == hours * 3600
    assert ledger.day_of(begin, zone) == ledger.day_of(end - 1.0, zone) == begin
    assert ledger.day_of(begin - 1.0, zone) < begin


def test_the_cap_is_of_the_days_in_its_zone(store, clock):
    """Of two decisions a day, whichever day of the year it is; the next is made at midnight there."""
    engine, zone = DecisionService(store, clock), "Europe/Berlin"
    clock.now = at(zone, 2026, 3, 28, 10)
    engine.create("ads", "bts", 100.0, ARMS, daily_cap=2.0, time_zone=zone)
    for day in (28, 29, 30):
        clock.now = at(zone, 2026, 3, day, 0)
        engine.decide("ads", f"{day} first")
        clock.now = at(zone, 2026, 3, day, 23, 30)
        engine.decide("ads", f"{day} last")
        with pytest.raises(HoldRefused, match=r"next day \(Europe/Berlin\)") as error:
            engine.decide("ads", f"{day} one more")
        assert error.value.retry_after == 1800.0


def test_another_zone_counts_the_day_again(real_store, clock):
    engine = DecisionService(real_store, clock)
    clock.now = at("UTC", 2026, 6, 1, 20)
    engine.create("ads", "bts", 100.0, ARMS, daily_cap=2.0)
    engine.decide("ads", "1")
    clock.now = at("UTC", 2026, 6, 1, 23)  # 2 June in Berlin since 22:00
    second = engine.decide("ads", "2")
    assert refused(engine, "3") == "daily_cap"
    engine.change_terms("ads", {"time_zone": "Europe/Berlin"}, actor="mia")
    assert engine.account("ads").today == 1_000_000
    engine.decide("ads", "3")
    assert refused(engine, "4") == "daily_cap"
    engine.feedback(second.decision, cost=0.0, reward=0.0)  # of this day there
    engine.decide("ads", "4")
    engine.change_terms("ads", {"time_zone": "America/New_York"})  # 1 June there since 4:00
    assert refused(engine, "5") == "daily_cap"
    engine.change_terms("ads", {"time_zone": None})
    assert engine.account("ads").today == 3_000_000
    engine.change_terms("ads", {"daily_cap": None})
    assert verify(real_store, "ads") == []


# --- at a limit of time ----------------------------------------------------------------------------------------------

MODELS = {"large": 1.0, "small": 0.25, "medium": 0.5}


def test_the_cheapest_answers_when_the_day_is_spent(real_store, clock):
    engine = DecisionService(real_store, clock)
    engine.create("ads", "bts", 3.0, MODELS, daily_cap=1.0, on_limit="cheapest", propensity_draws=5)
    engine.decide("ads", "1", arms=["large"])
    row = engine.decide("ads", "2")
    assert (row.arm, row.hold) == ("small", 0.25)
    assert engine.decide("ads", "3", exclude=["small"]).arm == "medium"
    assert engine.account("ads").today == 1_750_000  # beyond the cap, and counted
    made = real_store.read(lambda tx: tx.decision(row.decision))
    assert (made.propensity, made.request) == (1.0, '{"unavailable":[0,2]}')
    for number in range(5):
        engine.decide("ads", f"more {number}")
    assert refused(engine, "the budget holds") == "blocked_by_holds"
    engine.change_terms("ads", {"budget": 9.0})
    clock.now += 86_400.0
    engine.decide("ads", "the next day", arms=["large"])
    assert verify(real_store, "ads") == []


def test_an_arm_answers_when_the_campaign_is_ahead_of_its_pace(engine):
    engine.create("ads", "kube", 100.0, MODELS, pace_seconds=1e6, on_limit="medium")
    engine.decide("ads", "1", arms=["large"])
    assert [engine.decide("ads", f"ahead {number}").arm for number in range(3)] == ["medium"] * 3
    with pytest.raises(HoldRefused) as error:
        engine.decide("ads", "not allowed", exclude=["medium"])
    assert error.value.reason == "paced"
    engine.retire_arm("ads", "medium")
    assert refused(engine, "retired") == "paced"
    engine.change_terms("ads", {"on_limit": "small"})
    assert engine.decide("ads", "small").arm == "small"
    engine.change_terms("ads", {"on_limit": "refuse"})
    assert refused(engine, "refuse") == "paced"


def test_an_audit_finds_an_answer_beyond_a_limit_that_no_term_allows(engine, store, tampered):
    engine.create("ads", "bts", 100.0, MODELS, daily_cap=1.0, on_limit="small")
    engine.decide("ads", "1", arms=["large"])
    engine.decide("ads", "2")
    row = store.read(lambda tx: tx.campaign("ads"))
    refusing = replace(row.settings, terms=replace(row.settings.terms, on_limit="refuse"))
    store.write(lambda tx: tx.save_settings(replace(row, settings=refusing)))
    assert "cannot have happened: 0.00 of the day's 1.00 left" in verify(store, "ads")[0]
