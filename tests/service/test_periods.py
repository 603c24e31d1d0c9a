"""Budgets that are renewed: months and weeks of a simulated year, by a clock that is set."""

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest

from budgetbandits.errors import BadParameter, HoldRefused
from budgetbandits.service import ledger
from budgetbandits.service.audit.audit import verify
from budgetbandits.service.service import DecisionService
from clock import Clock

ARMS = {"large": 1.0, "small": 0.5}
BERLIN = "Europe/Berlin"


def at(zone, *moment):
    return datetime(*moment, tzinfo=ZoneInfo(zone)).timestamp()


@pytest.fixture
def clock():
    return Clock(at(BERLIN, 2026, 1, 1))


@pytest.fixture
def store(memory_store):
    return memory_store


def spend(engine, day, cost=None):
    """Decide until the period refuses, and settle each decision; what was spent, and the refusal."""
    spent, number = 0.0, 0
    while True:
        try:
            made = engine.decide("support", f"{day} {number}")
        except HoldRefused as refused:
            return spent, refused
        number += 1
        engine.feedback(made.decision, cost=made.hold if cost is None else cost, reward=1.0)
        spent += made.hold if cost is None else cost


@pytest.mark.parametrize("unspent", ["lapse", "carry"])
def test_a_year_of_months(real_store, clock, unspent):
    """Each month of 2026 in Berlin gets 10, those of 28, 30 and 31 days and those with a day of 23 or 25 hours alike.
    Its first decision is made at midnight of the first. The last day spends all there is, half an hour before the next
    month, or, where money carries over, every third does."""
    engine = DecisionService(real_store, clock)
    engine.create("support", "bts", 10.0, ARMS, period="month", unspent=unspent, time_zone=BERLIN)
    day, months = datetime(2026, 1, 1, tzinfo=ZoneInfo(BERLIN)), dict.fromkeys(range(1, 13), 0.0)
    while day.year == 2026:
        next_day = day + timedelta(days=1)
        if day.day == 1 or next_day.month != day.month:
            clock.now = day.timestamp()
            spends_all = next_day.month != day.month and (unspent == "lapse" or day.month % 3 == 0)
            if spends_all:
                clock.now = next_day.timestamp() - 1800.0
                spent, refused = spend(engine, day.isoformat())
                assert (refused.reason, refused.retry_after) == ("period_spent", 1800.0)
                months[day.month] += spent
            else:
                made = engine.decide("support", day.isoformat(), arms=["small"])
                engine.feedback(made.decision, cost=0.5, reward=0.0)
                months[day.month] += 0.5
            account = engine.account("support")
            assert account.spent + account.held <= account.budget <= 10_000_000 * day.month
            assert account.period == at(BERLIN, 2026, day.month, 1)
        day = next_day
    if unspent == "lapse":
        assert set(months.values()) == {10.0}
    else:
        assert [months[month] for month in (1, 2, 3)] == [1.0, 1.0, 28.0]
        assert sum(months.values()) == 120.0
    renewals = [event for event in all_events(real_store) if event.kind == "renewed"]
    assert [datetime.fromtimestamp(event.at, ZoneInfo(BERLIN)).month for event in renewals] == list(range(2, 13))
    assert verify(real_store, "support") == []


def all_events(store):
    return store.read(lambda tx: tx.events(tx.campaign("support").id, 0, 10**6))


def test_a_year_of_weeks(engine, clock):
    """53 weeks begin on a Monday, of 167, 168 and 169 hours; of each 2 is spent, and 1 lapses."""
    engine.create("support", "kube", 3.0, ARMS, period="week", time_zone=BERLIN)
    day, weeks = datetime(2026, 1, 1, tzinfo=ZoneInfo(BERLIN)), set()
    while day.year == 2026:
        clock.now = day.timestamp()
        weeks.add(ledger.period_of(clock.now, "week", BERLIN))
        if day.weekday() in (0, 6):
            made = engine.decide("support", day.isoformat(), arms=["large"])
            engine.feedback(made.decision, cost=1.0, reward=1.0)
            assert engine.account("support").left == (2_000_000 if day.weekday() == 0 else 1_000_000) or day.month == 1
        day += timedelta(days=1)
    assert len(weeks) == 53
    lengths = {later - earlier for earlier, later in zip(sorted(weeks), sorted(weeks)[1:], strict=False)}
    assert lengths == {167 * 3600, 168 * 3600, 169 * 3600}
    assert all(datetime.fromtimestamp(week, ZoneInfo(BERLIN)).weekday() == 0 for week in weeks)


def test_months_that_nobody_asks_in_carry_over_as_well(engine, clock):
    engine.create("support", "bts", 10.0, ARMS, period="month", unspent="carry", time_zone=BERLIN)
    clock.now = at(BERLIN, 2027, 3, 15)
    engine.decide("support", "after fourteen months")
    assert engine.account("support").budget == 150_000_000


def test_what_is_held_when_a_period_ends(engine, clock):
    """It stays held; what it does not cost lapses with its period, and what a decision of the new one does not cost is
    free again: the total is never above what was granted."""
    engine.create("support", "bts", 3.0, ARMS, period="month", hold_seconds=1e6)
    held = [engine.decide("support", f"held {number}", arms=["large"]) for number in range(3)]
    clock.now = at("UTC", 2026, 2, 1)
    made = engine.decide("support", "february", arms=["large"])
    account = engine.account("support")
    assert (account.held, account.left, account.budget) == (4_000_000, 2_000_000, 6_000_000)
    for each in (*held, made):
        engine.feedback(each.decision, cost=0.25, reward=1.0)
    assert (engine.account("support").spent, engine.account("support").left) == (1_000_000, 2_750_000)
    clock.now = at("UTC", 2026, 3, 1)
    engine.decide("support", "march")
    assert engine.account("support").budget == 4_000_000


def test_terms_of_periods_change(engine, clock):
    engine.create("support", "bts-paced", 10.0, ARMS, horizon=20.0)
    clock.now = at("UTC", 2026, 1, 20)
    with pytest.raises(BadParameter, match="period_budget is missing"):
        engine.change_terms("support", {"period": "month"})
    engine.change_terms("support", {"period": "month", "period_budget": 4.0})
    spend(engine, "january")
    assert engine.describe("support").requests_used >= 10
    clock.now = at("UTC", 2026, 2, 1)
    engine.decide("support", "february")
    assert (engine.describe("support").requests_used, engine.account("support").budget) == (0, 14_000_000)
    engine.change_terms("support", {"period_budget": 7.0, "unspent": "carry"})
    engine.top_up("support", 1.0)
    clock.now = at("UTC", 2026, 3, 1)
    engine.decide("support", "march")
    assert engine.account("support").budget == 22_000_000
    engine.change_terms("support", {"period": "week", "time_zone": BERLIN})  # since Monday, 23 February
    assert engine.account("support").period == at(BERLIN, 2026, 2, 23)
    clock.now = at(BERLIN, 2026, 3, 2)
    engine.decide("support", "monday")
    assert engine.account("support").budget == 29_000_000
    engine.change_terms("support", {"period": None, "period_budget": None, "unspent": "lapse", "time_zone": None})
    clock.now = at(BERLIN, 2026, 7, 1)
    engine.decide("support", "july")
    assert (engine.account("support").budget, engine.account("support").period) == (29_000_000, 0)


def test_a_clock_that_was_ahead_has_granted_nothing(engine, clock):
    engine.create("support", "bts", 10.0, ARMS, period="month", unspent="carry")
    clock.now = at("UTC", 2026, 9, 1)
    engine.decide("support", "far ahead")
    assert engine.account("support").budget == 100_000_000  # from December in UTC
    clock.now = at("UTC", 2026, 2, 3)
    engine.reset_clock("support")
    assert (engine.account("support").budget, engine.account("support").period) == (30_000_000, at("UTC", 2026, 2, 1))
    clock.now = at("UTC", 2026, 3, 1)
    engine.decide("support", "march")
    assert engine.account("support").budget == 40_000_000


def test_what_operators_change_before_the_first_decision_of_a_period_is_of_that_period(real_store, clock):
    """A top-up, another budget or another time zone on the first of a month, when nobody has decided in it yet."""
    engine = DecisionService(real_store, clock)
    engine.create("support", "bts", 10.0, ARMS, period="month", time_zone=BERLIN)
    clock.now = at(BERLIN, 2026, 2, 1, 12)
    engine.top_up("support", 5.0)
    engine.decide("support", "february", arms=["small"])
    assert engine.account("support").budget == 15_000_000
    clock.now = at(BERLIN, 2026, 3, 1, 12)
    engine.change_terms("support", {"budget": 20.0})
    engine.decide("support", "march", arms=["small"])
    assert engine.account("support").budget == 20_000_000
    clock.now = at(BERLIN, 2026, 4, 1, 12)
    engine.change_terms("support", {"time_zone": "America/New_York", "period_budget": 7.0})
    engine.decide("support", "april", arms=["small"])
    account = engine.account("support")
    assert (account.budget, account.period) == (11_000_000, at("America/New_York", 2026, 4, 1))  # 1 was held
    clock.now = at(BERLIN, 2026, 5, 1, 12)
    engine.decide("support", "may", arms=["small"])
    assert engine.account("support").left == 6_500_000
    assert verify(real_store, "support") == []


def test_what_was_spent_since_a_copy_is_of_the_period_that_has_begun_since(real_store, clock):
    """The copy is of January, and 4 of the 10 of February are spent when it is restored: 6 are left."""
    engine = DecisionService(real_store, clock)
    engine.create("support", "bts", 10.0, ARMS, period="month", time_zone=BERLIN)
    spend(engine, "january")
    clock.now = at(BERLIN, 2026, 2, 10)
    engine.mark_restored()
    engine.set_status("support", "active", spent_since=4.0)
    account = engine.account("support")
    assert (account.spent, account.left, account.overrun) == (14_000_000, 6_000_000, 0)
    assert spend(engine, "february")[0] == 6.0
    assert verify(real_store, "support") == []


def test_two_servers_renew_once(clock, engines):
    one, two = engines
    one.create("support", "kube", 3.0, ARMS, period="month", unspent="carry")
    two.decide("support", "1")
    clock.now = at("UTC", 2026, 1, 1)
    for number in range(3):
        (one, two)[number % 2].decide("support", f"january {number}", arms=["small"])
    assert one.account("support").budget == 6_000_000


def test_an_audit_finds_a_renewal_that_was_not_due_or_is_missing(engine, store, clock, tampered):
    engine.create("support", "bts", 3.0, ARMS, period="month")
    clock.now = at("UTC", 2026, 2, 1)
    engine.decide("support", "february")
    renewal = next(place for place, event in enumerate(store.events) if event.kind == "renewed")
    event = store.events.pop(renewal)
    assert "a new period had begun" in verify(store, "support")[0]
    store.events.insert(renewal, event)
    store.events.insert(renewal, event)
    assert "no period had begun" in verify(store, "support")[0]


def test_months_in_utc_are_those_of_the_calendar():
    for month in range(1, 25):
        year, number = 2026 + (month - 1) // 12, (month - 1) % 12 + 1
        begun = datetime(year, number, 1, tzinfo=UTC).timestamp()
        later = ledger.next_period(begun, "month")
        assert ledger.period_of(begun, "month") == ledger.period_of(later - 1.0, "month") == begun
        assert ledger.periods_between(int(begun), later, "month") == 1
