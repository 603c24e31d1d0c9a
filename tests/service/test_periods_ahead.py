"""Each period is granted once: whatever clocks and time zones say, and whoever asks."""

from dataclasses import replace
from datetime import datetime
from zoneinfo import ZoneInfo

import pytest

from budgetbandits.errors import Conflict, HoldRefused, WrongClock
from budgetbandits.service import ledger
from budgetbandits.service.audit.audit import verify
from budgetbandits.service.grants import grant_of
from budgetbandits.service.leases.leases import Leases
from budgetbandits.service.ledger import Account
from budgetbandits.service.periods import Grant
from budgetbandits.service.retention import Retention
from budgetbandits.service.service import DecisionService
from budgetbandits.service.session_cache import SessionCache
from budgetbandits.service.shared_budgets.audit import verify_shared_budget
from clock import Clock

ARMS = {"large": 0.5, "small": 0.25}
MEMBERS = ("spring", "summer")
ZONES = ("Pacific/Kiritimati", "Asia/Tokyo", "Europe/Berlin", "UTC", "America/New_York", "Pacific/Honolulu")
"""From where a day begins first to where it begins last, 24 hours later."""
AHEAD = [("lapse", 1), ("carry", 1), ("carry", 5)]


def at(*moment, zone="UTC"):
    return datetime(*moment, tzinfo=ZoneInfo(zone)).timestamp()


@pytest.fixture
def clock():
    return Clock(at(2026, 1, 15))


@pytest.fixture
def store(memory_store):
    return memory_store


def spend(engine, name, key):
    """Decide until that is refused, and settle each decision for its hold; what was spent."""
    spent = 0.0
    for number in range(1000):
        try:
            made = engine.decide(name, f"{key} {number}")
        except HoldRefused:
            return spent
        engine.feedback(made.decision, cost=made.hold, reward=1.0)
        spent += made.hold
    raise AssertionError("the money has no end")


def shared(engine, unspent):
    """Ten a month over two campaigns, of which one has spent January's."""
    engine.shared_budgets.create("marketing", 10.0, period="month", unspent=unspent)
    for name in MEMBERS:
        engine.create(name, "bts", 1000.0, ARMS, shared_budget="marketing")
    assert spend(engine, "summer", "january") == 10.0


def agrees(store):
    return not [*verify(store, "spring"), *verify(store, "summer"), *verify_shared_budget(store, "marketing")]


# --- clocks that are ahead ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(("unspent", "months"), AHEAD)
def test_others_spend_nothing_of_a_period_that_one_has_begun_by_a_clock_ahead(real_store, clock, unspent, months):
    engine = DecisionService(real_store, clock)
    shared(engine, unspent)
    clock.now = at(2026, 1 + months, 15)
    engine.feedback(engine.decide("spring", "ahead").decision, cost=0.0, reward=0.0)
    clock.now = at(2026, 1, 16)
    for name in MEMBERS:
        with pytest.raises(WrongClock, match=rf"2026-0{1 + months}-.*it is 2026-01-16 .*reset-clock '{name}'"):
            engine.decide(name, "right again")
    for changes in ({"budget": 100.0}, {"time_zone": "Europe/Berlin"}):
        with pytest.raises(WrongClock, match="reset-clock"):
            engine.shared_budgets.change("marketing", changes)
    engine.reset_clock("summer")  # which has decided nothing ahead
    assert engine.shared_budgets.account("marketing") == Account(10_000_000, 10_000_000, period=int(at(2026, 1, 1)))
    assert spend(engine, "summer", "january again") == 0.0
    with pytest.raises(WrongClock):
        engine.decide("spring", "is ahead itself")
    engine.reset_clock("spring")
    with pytest.raises(Conflict, match="nothing to reset"):
        engine.reset_clock("spring")
    for month in (2, 3):
        clock.now = at(2026, month, 1)
        assert spend(engine, MEMBERS[month % 2], f"{month}") == 10.0
    assert agrees(real_store)


@pytest.mark.parametrize(("unspent", "months"), AHEAD)
def test_a_change_by_a_clock_ahead_grants_nothing_that_is_spent_by_the_right_one(engine, clock, unspent, months):
    engine.create("support", "bts", 10.0, ARMS, period="month", unspent=unspent)
    assert spend(engine, "support", "january") == 10.0
    clock.now = at(2026, 1 + months, 15)
    engine.top_up("support", 0.25)
    clock.now = at(2026, 1, 16)
    with pytest.raises(WrongClock, match="latest period of 'support' is of 2026-0"):
        engine.decide("support", "right again")
    for change in (lambda: engine.top_up("support", 1.0), lambda: engine.change_terms("support", {"period": None})):
        with pytest.raises(WrongClock, match="reset-clock"):
            change()
    engine.set_status("support", "paused")  # whatever the clock says
    engine.set_status("support", "active")
    engine.reset_clock("support")
    assert spend(engine, "support", "the top-up") == 0.25
    clock.now = at(2026, 2, 1)
    assert spend(engine, "support", "february") == 10.0


def test_what_was_spent_of_a_period_to_come_is_taken_off_the_next_ones(store, engine, clock):
    """Ten a month that carry over: 25 are spent in January by a clock five months ahead, and 60 by June, not 85."""
    shared(engine, "carry")
    engine.create("support", "bts", 10.0, ARMS, period="month")
    clock.now = at(2026, 6, 15)
    for number in range(30):
        engine.feedback(engine.decide("spring", f"ahead {number}", arms=["large"]).decision, cost=0.5, reward=0.0)
    assert spend(engine, "support", "ahead") == 10.0
    clock.now = at(2026, 1, 16)
    engine.reset_clock("spring")
    engine.reset_clock("support")
    account = engine.shared_budgets.account("marketing")
    assert (account.left, account.advance, engine.account("support").advance) == (0, 15_000_000, 0)
    spent = {"spring": [], "support": []}
    for month in range(1, 7):
        clock.now = at(2026, month, 20)
        for name, months in spent.items():
            months.append(spend(engine, name, f"{month}"))
    assert spent == {"spring": [0.0, 0.0, 5.0, 10.0, 10.0, 10.0], "support": [0.0] + 5 * [10.0]}
    assert agrees(store)


@pytest.mark.parametrize(("unspent", "months"), AHEAD)
def test_what_is_held_of_a_period_to_come_and_given_back_is_not_spent_before(store, engine, clock, unspent, months):
    """Voided, settled for half, and failed, in a campaign and in a shared budget."""
    shared(engine, unspent)
    engine.create("support", "bts", 10.0, ARMS, period="month", unspent=unspent, hold_seconds=1e8)
    assert spend(engine, "support", "january") == 10.0
    clock.now = at(2026, 1 + months, 15)
    held = {
        name: [engine.decide(name, f"ahead {number}", arms=["large"]).decision for number in range(20)]
        for name in ("spring", "support")
    }
    clock.now = at(2026, 1, 16)
    for name, decisions in held.items():
        engine.reset_clock(name)
        for decision in decisions[:10]:
            engine.void(decision)
        for decision in decisions[10:18]:
            engine.feedback(decision, cost=0.25, reward=1.0)
        for decision in decisions[18:]:
            engine.feedback(decision, failed=True)
    for name in ("spring", "summer", "support"):
        assert spend(engine, name, "january again") == 0.0
    assert (engine.account("support").advance, engine.shared_budgets.account("marketing").advance) == 2 * (2_000_000,)
    clock.now = at(2026, 2, 1)
    assert spend(engine, "summer", "february") == spend(engine, "support", "february") == 8.0
    assert agrees(store)


@pytest.mark.parametrize(("unspent", "months"), AHEAD)
@pytest.mark.parametrize("ender", ["decision", "operator"])
def test_what_is_leased_of_a_period_to_come_is_not_spent_before(store, engine, clock, unspent, months, ender):
    shared(engine, unspent)
    engine.create("autumn", "bts", 1000.0, ARMS, shared_budget="marketing", lease=1000.0)
    clock.now = at(2026, 1 + months, 15)
    engine.void(engine.decide("autumn", "ahead").decision)
    assert engine.account("autumn").leased == (12_500_000 if months > 1 else 2_500_000)
    clock.now = at(2026, 1, 16)
    engine.reset_clock("summer")
    if ender == "operator":
        engine.set_status("autumn", "paused")
        engine.set_status("autumn", "active")
    assert spend(engine, "autumn", "january") == spend(engine, "summer", "january again") == 0.0
    clock.now = at(2026, 2, 1)
    assert spend(engine, "autumn", "february") + spend(engine, "summer", "february") == 10.0
    assert verify(store, "autumn") == []
    assert agrees(store)


def test_a_lapsing_budget_that_was_set_back_has_what_it_had_before(engine, clock):
    engine.create("support", "bts", 10.0, ARMS, period="month")
    engine.feedback(engine.decide("support", "1", arms=["large"]).decision, cost=0.5, reward=0.0)
    engine.top_up("support", 3.0)
    clock.now = at(2026, 2, 15)
    engine.decide("support", "ahead", arms=["small"])
    assert engine.account("support").budget == 10_500_000  # 12.5 have lapsed
    clock.now = at(2026, 1, 16)
    engine.reset_clock("support")
    account = engine.account("support")
    assert (account.budget, account.left, account.period) == (13_000_000, 12_250_000, at(2026, 1, 1))
    clock.now = at(2026, 2, 1)
    engine.decide("support", "february")
    assert engine.account("support").budget == 10_750_000


def test_periods_that_had_begun_by_the_right_clock_stay_granted(engine, clock):
    """Nobody has asked since January when a clock is ahead in March: April and May are taken back, March is not."""
    engine.create("support", "bts", 10.0, ARMS, period="month", unspent="carry")
    clock.now = at(2026, 5, 15)
    engine.decide("support", "ahead")
    clock.now = at(2026, 3, 10)
    engine.reset_clock("support")
    assert (engine.account("support").budget, engine.account("support").period) == (30_000_000, at(2026, 3, 1))
    clock.now = at(2026, 6, 10)
    engine.decide("support", "ahead again")
    clock.now = at(2026, 4, 10)
    engine.reset_clock("support")
    assert (engine.account("support").budget, engine.account("support").period) == (40_000_000, at(2026, 4, 1))


def test_a_budget_that_was_created_by_a_clock_ahead(engine, clock):
    clock.now = at(2026, 4, 1)
    engine.create("support", "bts", 10.0, ARMS, period="month", unspent="carry")
    clock.now = at(2026, 1, 16)
    with pytest.raises(WrongClock):
        engine.decide("support", "1")
    engine.reset_clock("support")
    assert spend(engine, "support", "january") == 10.0
    clock.now = at(2026, 2, 1)
    assert spend(engine, "support", "february") == 10.0


def test_a_shared_budget_without_campaigns_is_set_back_by_itself(store, engine, clock):
    """Created by a clock ahead, nobody could join it or change it; set back twice, nothing changes."""
    clock.now = at(2026, 4, 1)
    engine.shared_budgets.create("marketing", 10.0, period="month", unspent="carry")
    clock.now = at(2026, 6, 1)
    engine.shared_budgets.change("marketing", {"period_budget": 5.0})
    clock.now = at(2026, 1, 16)
    with pytest.raises(WrongClock, match=r"shared budget 'marketing' is of 2026-06.*shared-budget reset-clock 'market"):
        engine.create("spring", "bts", 1000.0, ARMS, shared_budget="marketing")
    for _ in range(2):
        engine.shared_budgets.reset_clock("marketing")
    engine.create("spring", "bts", 1000.0, ARMS, shared_budget="marketing")
    assert spend(engine, "spring", "january") == 10.0
    clock.now = at(2026, 2, 1)
    assert spend(engine, "spring", "february") == 5.0
    assert verify_shared_budget(store, "marketing") == []


def test_clocks_that_differ_a_little_are_of_the_same_period(store, engine, clock):
    """A month that has begun for one server has begun for another that is ten minutes behind, and what that one decides
    is of it."""
    shared(engine, "lapse")
    engine.create("support", "bts", 10.0, ARMS, period="month", time_zone="Europe/Berlin")
    clock.now = at(2026, 2, 1, 0, 5)
    engine.decide("spring", "february", arms=["large"])
    engine.decide("support", "february")
    clock.now -= 600.0
    made = engine.decide("summer", "a little behind")
    engine.shared_budgets.change("marketing", {"budget": 21.0})
    engine.change_terms("support", {"hold_seconds": 60.0})
    clock.now += 600.0
    engine.void(made.decision)
    assert engine.shared_budgets.account("marketing").left == 10_500_000
    assert spend(engine, "summer", "february") == 10.5
    assert agrees(store)


def test_verify_finds_what_was_taken_from_a_period_to_come(store, engine, clock, monkeypatch, tampered):
    shared(engine, "lapse")
    engine.create("support", "bts", 10.0, ARMS, period="month")
    clock.now = at(2026, 2, 15)
    engine.decide("spring", "ahead")
    engine.top_up("support", 1.0)
    clock.now = at(2026, 1, 16)
    with monkeypatch.context() as patched:
        patched.setattr(ledger, "check_clock", lambda *_: None)
        patched.setattr("budgetbandits.service.funds.time_of_decision", lambda row, shared, now: now)
        engine.decide("summer", "right again")
        engine.decide("support", "right again")
    [difference] = verify_shared_budget(store, "marketing")
    assert "(decided) cannot have happened: the latest period of the budget is of 2026-02-01" in difference
    assert "cannot have happened: the latest period of the budget is of 2026-02-01" in verify(store, "support")[0]


def test_verify_finds_a_clock_reset_that_took_back_another_amount(store, engine, clock, tampered):
    shared(engine, "carry")
    clock.now = at(2026, 6, 15)
    engine.decide("spring", "ahead")
    clock.now = at(2026, 1, 16)
    engine.reset_clock("spring")
    place, event = next((n, e) for n, e in enumerate(store.events) if e.kind == "clock reset")
    store.events[place] = replace(event, amount=event.amount + 1_000_000)
    assert any("(clock reset) says" in each for each in verify_shared_budget(store, "marketing"))


def test_a_renewal_without_a_period_that_has_begun_is_an_error():
    """Not money without an end."""
    with pytest.raises(ArithmeticError, match="none is granted"):
        ledger.renewed(Account(10, 10, period=100), 100, 10, 0, carry=False)
    after = ledger.renewed(Account(10, 10, period=100, advance=25), 400, 10, 3, carry=False)
    assert (after.left, after.advance) == (5, 0)
    after = ledger.renewed(Account(10, 10, period=100, advance=25), 300, 10, 2, carry=True)
    assert (after.left, after.advance) == (0, 5)
    assert ledger.set_back(Account(30, 12, 3, period=400), 100, 20) == Account(15, 12, 3, period=100, advance=5)


def test_a_grant_is_as_its_event_tells_it(store, engine, clock):
    engine.create("support", "bts", 10.0, ARMS, period="month")
    clock.now = at(2026, 2, 15)
    engine.decide("support", "february")
    [renewed] = [event for event in store.events if event.kind == "renewed"]
    assert grant_of(renewed) == Grant(0, "month", int(at(2026, 1, 1)), int(at(2026, 2, 1)))


# --- time zones ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("zones", [ZONES, ZONES[::-1]], ids=["westwards", "eastwards"])
@pytest.mark.parametrize("of", ["campaign", "shared budget"])
def test_a_month_is_granted_once_in_whatever_zones_it_begins(store, engine, clock, zones, of):
    clock.now = at(2026, 1, 31, 11)  # it is February on Kiritimati alone
    terms = {"period": "month", "time_zone": zones[0]}
    if of == "campaign":
        engine.create("spring", "bts", 10.0, ARMS, **terms)
        change = lambda zone: engine.change_terms("spring", {"time_zone": zone})  # noqa: E731
    else:
        engine.shared_budgets.create("marketing", 10.0, **terms)
        engine.create("spring", "bts", 1000.0, ARMS, shared_budget="marketing")
        change = lambda zone: engine.shared_budgets.change("marketing", {"time_zone": zone})  # noqa: E731
    spent = spend(engine, "spring", "first")
    for zone in zones[1:]:
        change(zone)
        spent += spend(engine, "spring", zone)
        clock.now = max(clock.now, at(2026, 2, 1, 0, 5, zone=zone))
        spent += spend(engine, "spring", f"{zone} later")
    assert spent == (10.0 if zones is ZONES else 20.0)  # eastwards the first was January's
    clock.now = at(2026, 3, 1, 12)
    assert spend(engine, "spring", "march") == 10.0
    assert verify(store, "spring") == []
    assert of == "campaign" or verify_shared_budget(store, "marketing") == []


def test_a_month_that_has_begun_in_another_zone_is_granted_there(engine, clock):
    """It is February in Tokyo and January in UTC: the change of zone does not swallow February."""
    clock.now = at(2026, 1, 31, 20)
    engine.create("support", "bts", 10.0, ARMS, period="month")
    assert spend(engine, "support", "january") == 10.0
    engine.change_terms("support", {"time_zone": "Asia/Tokyo"})
    assert spend(engine, "support", "february") == 10.0


def test_where_a_zone_is_behind_the_month_the_wait_is_for_the_next_one(engine, clock):
    clock.now = at(2026, 1, 31, 11)
    engine.create("support", "bts", 10.0, ARMS, period="month", time_zone=ZONES[0])
    spend(engine, "support", "february")
    engine.change_terms("support", {"time_zone": ZONES[-1]})
    with pytest.raises(HoldRefused) as refused:
        engine.decide("support", "more")
    assert refused.value.retry_after == at(2026, 3, 1, zone=ZONES[-1]) - clock.now


def test_a_day_of_25_hours_keeps_its_cap_when_that_is_taken_off_and_set_again(real_store, clock, tmp_path):
    """Its first hour is not archived while it lasts: what it was charged is counted again when the cap is back."""
    berlin = "Europe/Berlin"
    clock.now = at(2026, 10, 25, 0, 10, zone=berlin)
    engine = DecisionService(real_store, clock)
    engine.create("support", "bts", 100.0, ARMS, daily_cap=4.0, time_zone=berlin)
    for number in range(8):
        engine.feedback(engine.decide("support", f"{number}", arms=["large"]).decision, cost=0.5, reward=1.0)
    clock.now = at(2026, 10, 25, 23, 45, zone=berlin)
    Retention(real_store, Leases(SessionCache(), clock), clock, rest=0.0).prune("support", tmp_path, 1.0)
    engine.change_terms("support", {"daily_cap": None, "time_zone": None})
    engine.change_terms("support", {"daily_cap": 4.0, "time_zone": berlin})
    with pytest.raises(HoldRefused) as refused:
        engine.decide("support", "more")
    assert refused.value.reason == "daily_cap"
    assert verify(real_store, "support") == []


# --- what is held when a period ends ------------------------------------------------------------------------------


@pytest.mark.parametrize(("unspent", "february"), [("lapse", 10.0), ("carry", 18.0)])
@pytest.mark.parametrize("policy", ["bts", "pd-bwk"])
def test_what_holds_of_january_give_back_lapses_with_january(engine, clock, unspent, february, policy):
    """Charged and then reported as free, voided, settled for nothing, failed, and released; two cost their holds."""
    engine.create("support", policy, 10.0, {"a": 1.0, "b": 1.0}, period="month", unspent=unspent, hold_seconds=1e6)
    charged = [engine.decide("support", f"charged {number}").decision for number in range(4)]
    engine.change_terms("support", {"hold_seconds": 2.5e6})
    held = [engine.decide("support", f"held {number}").decision for number in range(6)]
    clock.now = at(2026, 1, 31)
    assert engine.expire_due() == {"support": 4}
    clock.now = at(2026, 2, 3)
    made = engine.decide("support", "of february")
    for decision in charged[:3]:
        engine.feedback(decision, cost=0.0)
    engine.void(held[0])
    engine.feedback(held[1], cost=0.0, reward=0.0)
    engine.feedback(held[2], failed=True)
    engine.feedback(held[3], cost=1.0, reward=1.0)
    engine.change_terms("support", {"on_expire": "release"})
    clock.now = at(2026, 2, 14)
    assert engine.expire_due() == {"support": 2}
    engine.void(made.decision)
    assert spend(engine, "support", "february") == february
    clock.now = at(2026, 3, 1)
    assert spend(engine, "support", "march") == 10.0


def test_what_holds_of_january_give_back_lapses_in_a_shared_budget_too(real_store, clock):
    engine = DecisionService(real_store, clock)
    engine.shared_budgets.create("marketing", 10.0, period="month")
    for name in MEMBERS:
        engine.create(name, "bts", 1000.0, ARMS, shared_budget="marketing", hold_seconds=1e7)
    held = [engine.decide("spring", f"{number}", arms=["large"]).decision for number in range(20)]
    clock.now = at(2026, 2, 3)
    made = engine.decide("summer", "of february")
    for number, decision in enumerate(held):
        if number % 2:
            engine.void(decision)
        else:
            engine.feedback(decision, failed=True, cost=0.25)
    engine.void(made.decision)
    assert spend(engine, "summer", "february") == 10.0
    lapsed = real_store.read(lambda tx: tx.events("shared budget marketing", kind="lapsed"))
    assert (len(lapsed), sum(event.amount for event in lapsed)) == (20, -7_500_000)
    assert agrees(real_store)


def test_what_a_member_holds_of_a_day_to_come_is_free_in_time_once_the_shared_clock_is_reset(real_store, clock):
    engine = DecisionService(real_store, clock)
    engine.shared_budgets.create("marketing", 10.0, period="month")
    for name in MEMBERS:
        engine.create(name, "bts", 1000.0, ARMS, shared_budget="marketing", hold_seconds=60.0, on_expire="release")
    clock.now = at(2026, 6, 15)
    engine.decide("spring", "ahead", arms=["large"])
    clock.now = at(2026, 1, 16)
    engine.shared_budgets.reset_clock("marketing")
    engine.decide("summer", "now", arms=["small"])
    clock.now += 61.0
    assert engine.expire_due() == {"spring": 1, "summer": 1}
    assert engine.shared_budgets.account("marketing").held == 0
    assert agrees(real_store)


def test_what_lapsed_by_the_last_event_of_a_checkpoint_agrees(real_store, clock, tmp_path):
    engine = DecisionService(real_store, clock)
    shared(engine, "lapse")
    engine.shared_budgets.change("marketing", {"budget": 11.0})
    held = [engine.decide("spring", f"held {number}", arms=["large"]).decision for number in range(2)]
    clock.now = at(2026, 2, 3)
    engine.decide("summer", "february")
    engine.void(held[0])
    clock.now = at(2026, 2, 20)
    retention = Retention(real_store, Leases(SessionCache(), clock), clock, rest=0.0)
    assert retention.prune("spring", tmp_path, 1.0).decisions == 1
    assert agrees(real_store)
    engine.void(held[1])
    assert agrees(real_store)


def test_verify_finds_what_should_have_lapsed(store, engine, clock, tampered):
    shared(engine, "lapse")
    engine.shared_budgets.change("marketing", {"budget": 11.0})
    held = engine.decide("spring", "held", arms=["large"]).decision
    clock.now = at(2026, 2, 3)
    engine.decide("summer", "february")
    engine.void(held)
    place = next(place for place, event in enumerate(store.events) if event.kind == "lapsed")
    lapsed = store.events.pop(place)
    assert any("gave back 500000 that has not lapsed" in each for each in verify_shared_budget(store, "marketing"))
    store.events.insert(place, replace(lapsed, amount=-400_000))
    assert any("gave back 100000 that has not lapsed" in each for each in verify_shared_budget(store, "marketing"))


def test_what_was_granted_before_a_checkpoint_is_taken_back_after_it(real_store, clock, tmp_path):
    engine = DecisionService(real_store, clock)
    engine.create("support", "bts", 10.0, ARMS, period="month", unspent="carry")
    engine.feedback(engine.decide("support", "january", arms=["large"]).decision, cost=0.5, reward=1.0)
    for day in (15, 20):
        clock.now = at(2026, 6, day)
        engine.top_up("support", 1.0)
    assert engine.account("support").left == 61_500_000
    retention = Retention(real_store, Leases(SessionCache(), clock), clock, rest=0.0)
    assert retention.prune("support", tmp_path, 1.0).events >= 4
    clock.now = at(2026, 1, 16)
    engine.reset_clock("support")
    assert engine.account("support").left == 11_500_000
    assert verify(real_store, "support") == verify(real_store, "support", archive=tmp_path) == []
