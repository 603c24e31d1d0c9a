"""Terms that change while a campaign runs: the new ones hold from then on, and the replay knows which held when."""

from dataclasses import replace

import pytest

from budgetbandits.errors import BadParameter, Conflict, HoldRefused, UnknownArm
from budgetbandits.service.audit.audit import verify
from budgetbandits.service.rollups import History, roll_up
from budgetbandits.service.service import DecisionService
from budgetbandits.service.stores.sqlite import SQLiteStore
from clock import Clock
from memory_store import MemoryStore

ARMS = {"search": 1.0, "mail": 1.0}


@pytest.fixture
def clock():
    return Clock(86_400.0 * 10)


@pytest.fixture
def store():
    return MemoryStore()


@pytest.fixture
def engine(store, clock):
    engine = DecisionService(store, clock)
    engine.create("ads", "bts", 100.0, ARMS, hold_seconds=60.0, daily_cap=2.0)
    return engine


def refused(engine, key):
    with pytest.raises(HoldRefused) as error:
        engine.decide("ads", key)
    return error.value.reason


def test_a_daily_cap_is_raised_and_taken_away(engine, store):
    engine.decide("ads", "1")
    engine.decide("ads", "2")
    assert refused(engine, "3") == "daily_cap"
    engine.change_terms("ads", {"daily_cap": 3.0})
    engine.decide("ads", "4")
    assert refused(engine, "5") == "daily_cap"
    engine.change_terms("ads", {"daily_cap": None})
    for number in range(6, 12):
        engine.decide("ads", str(number))
    assert engine.describe("ads")["daily_cap"] is None
    assert verify(store, "ads") == []


def test_a_lower_cap_holds_at_once(engine, store):
    engine.change_terms("ads", {"daily_cap": 9.0})
    for number in range(5):
        engine.decide("ads", str(number))
    engine.change_terms("ads", {"daily_cap": 4.0})
    assert refused(engine, "more") == "daily_cap"
    assert verify(store, "ads") == []


def test_another_horizon_changes_what_may_be_spent_by_now(engine, store, clock):
    """Of 100 in 100 hours, 10 after 10 hours and the largest cap; spread over 1000 hours it would have been 1."""
    engine.change_terms("ads", {"daily_cap": None, "pace_seconds": 360_000.0})
    clock.now += 36_000.0
    for number in range(11):
        engine.decide("ads", str(number))
    assert refused(engine, "more") == "paced"
    engine.change_terms("ads", {"pace_seconds": 3_600_000.0})
    clock.now += 36_000.0
    assert refused(engine, "still") == "paced"
    engine.change_terms("ads", {"pace_seconds": 36_000.0})
    engine.decide("ads", "at last")
    assert verify(store, "ads") == []


def test_open_holds_keep_their_time(engine, store, clock):
    first = engine.decide("ads", "1")
    engine.change_terms("ads", {"hold_seconds": 600.0})
    second = engine.decide("ads", "2")
    assert (first.expires_at - clock.now, second.expires_at - clock.now) == (60.0, 600.0)
    clock.now += 61.0
    engine.expire_due()
    assert (engine.account("ads").spent, engine.account("ads").held) == (1_000_000, 1_000_000)
    assert verify(store, "ads") == []


def test_two_servers_have_the_new_terms_at_once(engine, store, clock):
    other = DecisionService(store, clock)
    other.decide("ads", "1")
    engine.change_terms("ads", {"hold_seconds": 600.0})
    assert other.decide("ads", "2").expires_at == clock.now + 600.0


def test_campaigns_with_leases_change_what_they_can(store, clock):
    engine = DecisionService(store, clock)
    engine.create("leased", "bts", 100.0, ARMS, lease=10.0)
    for number in range(3):
        engine.decide("leased", str(number))
    engine.change_terms("leased", {"hold_seconds": 5.0})
    assert engine.decide("leased", "4").expires_at == clock.now + 5.0
    with pytest.raises(BadParameter, match="a lease cannot keep a daily_cap"):
        engine.change_terms("leased", {"daily_cap": 20.0})
    assert verify(store, "leased") == []


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"reward_max": 2.0}, "cannot be changed, only daily_cap, pace_seconds, hold_seconds"),
        ({"colour": "red"}, "cannot be changed"),
        ({}, "the terms already"),
        ({"daily_cap": 2}, "the terms already"),
        ({"daily_cap": 0.5}, "the most expensive arm may cost"),
        ({"hold_seconds": None}, "use a positive number"),
        ({"on_expire": "forget"}, "use charge or release"),
        ({"on_expire": None}, "use charge or release"),
    ],
)
def test_what_cannot_be_changed_is_not(engine, store, changes, words):
    before = engine.describe("ads")
    with pytest.raises(BadParameter, match=words):
        engine.change_terms("ads", changes)
    assert engine.describe("ads") == before
    assert verify(store, "ads") == []


def test_an_audit_misses_a_change_that_no_event_tells(engine, store):
    engine.decide("ads", "1")
    engine.change_terms("ads", {"daily_cap": 5.0})
    row = store.read(lambda tx: tx.campaign("ads"))
    earlier = (*row.settings.earlier, row.settings.earlier[0])
    store.write(lambda tx: tx.save_settings(replace(row, settings=replace(row.settings, earlier=earlier))))
    assert verify(store, "ads") == ["the campaign's row has 1 more changes of terms than its events"]
    store.write(lambda tx: tx.save_settings(replace(row, settings=replace(row.settings, earlier=()))))
    [said] = verify(store, "ads")
    assert "the row knows of no such change" in said


def test_an_audit_finds_a_decision_that_the_terms_of_then_forbade(engine, store):
    """The cap was 2 when three were decided; that it is 5 now does not excuse it."""
    engine.change_terms("ads", {"daily_cap": 5.0})
    for number in range(3):
        engine.decide("ads", str(number))
    assert verify(store, "ads") == []
    change = next(event for event in store.events if event.kind == "terms changed")
    others = [event for event in store.events if event is not change]
    store.events[:] = [replace(event, seq=place) for place, event in enumerate([*others, change], 1)]
    assert any("cannot have happened" in said for said in verify(store, "ads"))


def test_a_retired_arm_comes_back_with_what_is_known_of_it(engine, store, clock):
    other = DecisionService(store, clock)
    engine.change_terms("ads", {"daily_cap": None})
    for number in range(20):
        made = engine.decide("ads", str(number))
        engine.feedback(made.decision, reward=float(made.arm == "mail"), cost=0.5)
    pulls = {arm["name"]: arm["pulls"] for arm in engine.describe("ads")["arms"]}
    engine.retire_arm("ads", "mail")
    assert {other.decide("ads", f"without {number}").arm for number in range(20)} == {"search"}
    engine.bring_back_arm("ads", "mail")
    assert "mail" in {other.decide("ads", f"with {number}").arm for number in range(20)}
    assert {arm["name"]: arm["pulls"] for arm in engine.describe("ads")["arms"]} == pulls
    assert verify(store, "ads") == []
    with pytest.raises(Conflict, match="nothing to bring back"):
        engine.bring_back_arm("ads", "mail")
    with pytest.raises(UnknownArm):
        engine.bring_back_arm("ads", "radio")


def test_holds_expire_by_the_terms_of_that_moment(tmp_path, clock):
    """What was charged then is what feedback corrects, whatever the terms say by now; rollups know it too."""
    with SQLiteStore(tmp_path / "money.db") as store:
        engine = DecisionService(store, clock)
        engine.create("ads", "bts", 100.0, ARMS, hold_seconds=60.0)
        made = []
        for number, rule in enumerate(["charge", "release", "charge"]):
            made.append(engine.decide("ads", str(number)))
            if engine.describe("ads")["on_expire"] != rule:
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
