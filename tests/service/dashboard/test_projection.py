"""When the money runs out: how often the interval holds, and that the list and the page say the same."""

import numpy as np
import pytest

from budgetbandits.errors import HoldRefused
from budgetbandits.service.dashboard.campaign import campaign_view
from budgetbandits.service.dashboard.overview import ListQuery, overview
from budgetbandits.service.dashboard.query import PageQuery
from budgetbandits.service.ledger import Account, Limits, earliest_end, place
from budgetbandits.service.projection import DayLimit, runs_out
from budgetbandits.service.rollups import roll_up
from budgetbandits.service.standing import outlooks
from served import pull, served

HOUR, DAY = 3600.0, 86_400.0


def gamma(shape):
    return lambda rng, count: rng.gamma(shape, 1.0 / shape, count)


def alike(rng, count):
    """Hours that resemble the one before: their logarithms have the correlation 0.5."""
    level, made = 0.7 * rng.standard_normal(), []
    for noise in rng.standard_normal(count):
        level = 0.5 * level + 0.7 * np.sqrt(0.75) * noise
        made.append(level)
    return np.exp(made) / np.exp(0.245) * rng.gamma(4.0, 0.25, count)


@pytest.mark.parametrize(
    ("spending", "past", "left", "early", "late"),
    [
        (gamma(4.0), 24, 24.0, 0.055, 0.055),
        (gamma(1.0), 24, 24.0, 0.055, 0.055),
        (gamma(1.0), 6, 10.0, 0.055, 0.055),
        (gamma(0.2), 24, 24.0, 0.08, 0.06),
        (gamma(0.02), 300, 300.0, 0.08, 0.06),  # minutes
        (alike, 24, 24.0, 0.125, 0.07),
    ],
    ids=["even", "exponential", "few hours", "bursts", "bursts of minutes", "hours that are alike"],
)
def test_money_seldom_runs_out_before_or_after_the_interval(spending, past, left, early, late):
    """Of 400 campaigns no more than these shares: 3 % run out before and 2 % after it for even spending; 4 and 3 % for
    bursts, 8 and 4 % for hours that are alike, as measured with 3,000 others. Each bound fails by chance with a
    probability below 0.005."""
    rng, before, after = np.random.default_rng(5), 0, 0
    for _ in range(400):
        spent = spending(rng, past + int(5 * left) + 60)
        out = runs_out(spent[:past].tolist(), 1.0, left=left, now=0.0)
        to_come = spent[past:].cumsum()
        slot = int(np.searchsorted(to_come, left))
        over = (to_come[slot] - left) / spent[past + slot] if slot < len(to_come) else 0.0
        before += slot + 1 - over < out.low
        after += slot + 1 - over > out.high
    assert before / 400 <= early
    assert after / 400 <= late


def test_the_interval_is_as_narrow_as_even_spending_allows():
    rng = np.random.default_rng(2)
    widths = []
    for _ in range(100):
        out = runs_out(rng.gamma(400.0, 1.0 / 400.0, 24).tolist(), 1.0, left=24.0, now=0.0)
        widths.append((out.high - out.low) / 2)
    # of the hours to come and of the mean, each with a variance of 24 times a 400th
    assert 1.96 * np.sqrt(48 / 400) < np.mean(widths) < 1.5 * 1.96 * np.sqrt(48 / 400)


def test_nothing_is_said_of_what_cannot_be_known():
    assert runs_out([1.0] * 4, 60.0, 5.0, 0.0) is None
    assert runs_out([0.0] * 9, 60.0, 5.0, 0.0) is None
    assert runs_out([1.0] * 9, 60.0, 0.0, 0.0) is None
    assert runs_out([1e-9] * 9, 60.0, 1e9, 0.0) is None
    assert runs_out([0.0] * 8 + [9.0], 86_400.0, 1500.0, 0.0).high is None
    assert runs_out([1.0] * 9, 60.0, 5.0, 100.0, not_before=1000.0).median == 1000.0


def test_a_paced_budget_may_be_gone_one_largest_cap_early_and_no_earlier():
    limits, account = Limits(pace_seconds=1000.0, begun=50.0, slack=10), Account(40)
    end = earliest_end(40, limits)
    assert end == 50.0 + 1000.0 * 30 / 40
    for _ in range(3):
        account, _ = place(account, 10, end, limits)
    with pytest.raises(HoldRefused, match="ahead of its pace"):
        place(account, 10, end - 0.001, limits)
    assert place(account, 10, end, limits)[0].left == 0
    assert earliest_end(40, Limits()) == 0.0


@pytest.fixture
def store(tmp_path):
    with served(tmp_path, 1_800_000_900.0) as store:
        store.begun = store.clock.now
        yield store


def said(store, name):
    """By the list and by the page, at one moment."""

    def read(tx):
        tx.now = lambda: store.clock.now
        [line] = overview(tx, ListQuery(name), None).lines
        return line.runs_out, campaign_view(tx, tx.campaign(name), PageQuery()).runs_out

    return store.read(read)


def spend(store, name, cost):
    pull(store.engine, name, f"{store.clock.now}", cost=cost, reward=1.0)


def test_the_list_and_the_page_say_the_same_at_every_age(store):
    """From half an hour to eight hours on, before and after the events are added up, and never nothing in between."""
    store.engine.create("ads", "bts", 1000.0, {"a": 3.0, "b": 3.0})
    for quarter in range(1, 33):
        store.clock.now = store.begun + 900.0 * quarter
        spend(store, "ads", 0.5 + quarter % 3)
        if quarter % 4 == 2:
            listed, shown = said(store, "ads")
            assert listed == shown
            roll_up(store)
            listed, shown = said(store, "ads")
            assert listed == shown
            assert listed is not None, quarter
    # 1.5 in a quarter of an hour
    assert listed.low < store.clock.now + (1000.0 - 48.0) / 6.0 * HOUR < listed.high


@pytest.mark.parametrize("hours", [8, 30])
def test_all_whole_hours_of_the_last_day_count_and_no_other(store, hours):
    """A campaign of 15 minutes past the hour spends 1 in its first hour that is whole, and then 2 in each."""
    store.engine.create("ads", "bts", 1000.0, {"a": 9.0, "b": 9.0})
    spend(store, "ads", 9.0)  # in the hour that was not whole
    for number in range(1, hours):
        store.clock.now = store.begun + HOUR * number
        spend(store, "ads", 1.0 if number == 1 else 2.0)
    roll_up(store)
    store.clock.now += 0.8 * HOUR
    slots = ([1.0] + [2.0] * (hours - 2))[-24:]
    left = 1000.0 - 9.0 - 1.0 - 2.0 * (hours - 2)
    assert said(store, "ads") == (runs_out(slots, HOUR, left, store.clock.now),) * 2


def test_until_there_are_six_hours_the_minutes_of_the_last_two_count(store):
    store.engine.create("ads", "bts", 1000.0, {"a": 9.0, "b": 9.0})
    for minute in range(5, 150, 5):
        store.clock.now = store.begun + 60.0 * minute
        spend(store, "ads", 9.0 if minute < 30 else 1.0)
    roll_up(store)
    store.clock.now = store.begun + 60.0 * 150.5
    slots = [1.0 if minute % 5 == 0 else 0.0 for minute in range(30, 150)]
    assert said(store, "ads") == (runs_out(slots, 60.0, 1000.0 - 45.0 - 24.0, store.clock.now),) * 2


def test_a_paced_campaign_is_said_to_last_until_one_cap_before_its_plan_ends(store):
    store.engine.create("ads", "bts", 40.0, {"a": 10.0, "b": 10.0}, pace_seconds=100 * HOUR)
    for number in range(20):
        store.clock.now = store.begun + HOUR * number
        spend(store, "ads", 0.375)
    store.engine.change_terms("ads", {"pace_seconds": 240 * HOUR})
    roll_up(store)
    listed, shown = said(store, "ads")
    assert listed == shown
    assert shown.low == store.begun + 180 * HOUR


def capped(store, cap, **terms):
    """A campaign of seven hours that has spent 5 in each, the last of them today, and has 75 left."""
    store.clock.now = store.begun = 1_800_000_000.0 - 1_800_000_000.0 % DAY - 7 * HOUR + 60.0
    store.engine.create("ads", "bts", 110.0, {"a": 5.0, "b": 5.0}, daily_cap=cap, **terms)
    for number in range(7):
        store.clock.now = store.begun + HOUR * number
        spend(store, "ads", 5.0)
    roll_up(store)
    store.clock.now = store.begun + 7 * HOUR
    return store.clock.now


def test_money_lasts_as_long_as_the_daily_cap_keeps_it(store):
    """75 left at 5 an hour: without a cap 15 hours, at 25 a day three days with five hours of each."""
    now = capped(store, 1000.0)
    listed, shown = said(store, "ads")
    assert listed == shown
    assert shown.median == pytest.approx(now + 15 * HOUR, abs=1.0)
    store.engine.change_terms("ads", {"daily_cap": 25.0})
    listed, shown = said(store, "ads")
    assert listed == shown
    midnight = now - 60.0
    assert shown.median == pytest.approx(midnight + 2 * DAY + 5 * HOUR, abs=300.0)
    assert store.read(lambda tx: outlooks_at(tx, store.clock.now)) == {"ads": "running"}


def outlooks_at(tx, now):
    tx.now = lambda: now
    return {each.glance.name: each.name for each in outlooks(tx, tx.pages().campaign_list().ids(9))}


def test_a_daily_cap_beyond_which_an_arm_answers_keeps_no_money(store):
    now = capped(store, 25.0, on_limit="cheapest")
    assert said(store, "ads")[1].median == pytest.approx(now + 15 * HOUR, abs=1.0)


def test_the_bound_by_days_agrees_with_spending_minute_by_minute():
    for day in (DayLimit(), DayLimit(25.0, 3.0, 5 * HOUR), DayLimit(10.0, 0.0, HOUR), DayLimit(500.0, 100.0, 2 * HOUR)):
        for rate, amount in ((5.0, 75.0), (0.3, 2.0), (40.0, 2.5)):
            seconds = day.seconds(amount / rate * HOUR, amount)
            assert day.spent(rate / HOUR, seconds) == pytest.approx(amount)
            left, today, at = amount, day.today, 0.0
            while left > 0:
                if at >= day.ends and (at - day.ends) % DAY < 60.0:
                    today = day.cap
                paid = min(rate / 60, today, left)
                left, today, at = left - paid, today - paid, at + 60.0
                left = left if left > 1e-9 else 0.0
            assert at == pytest.approx(seconds, abs=180.0), (day, rate)


def sharing(store, budget, own, **terms):
    """Two members of a shared budget that spend 2 and 1 an hour for seven hours."""
    store.engine.shared_budgets.create("all", budget, **terms)
    for name, left in own.items():
        store.engine.create(name, "bts", left, {"a": 3.0, "b": 3.0}, shared_budget="all")
    for number in range(8):
        store.clock.now = store.begun + HOUR * number
        spend(store, "large", 2.0)
        spend(store, "small", 1.0)
    roll_up(store)


def test_a_member_runs_out_with_its_shared_budget(store):
    """54 less 24 are left at 3 an hour: ten hours, where its own 84 would last for 42."""
    sharing(store, 54.0, {"large": 100.0, "small": 100.0})
    for name in ("large", "small"):
        listed, shown = said(store, name)
        assert listed == shown
        assert shown.limit == "shared_budget"
        assert shown.median == pytest.approx(store.clock.now + 10 * HOUR, abs=60.0)
    assert set(store.read(lambda tx: outlooks_at(tx, store.clock.now)).values()) == {"running_out"}


def test_a_member_whose_own_budget_ends_first_leaves_the_shared_one_to_others(store):
    """Its own 20 less 16 are gone in two hours; what is left then, 26 of 30, lasts the other one for 26 hours more."""
    sharing(store, 54.0, {"large": 20.0, "small": 100.0})
    large, small = (said(store, name)[1] for name in ("large", "small"))
    assert (large.limit, small.limit) == ("budget", "shared_budget")
    assert large.median == pytest.approx(store.clock.now + 2 * HOUR, abs=60.0)
    assert small.median == pytest.approx(store.clock.now + 26 * HOUR, abs=60.0)


def test_a_paused_member_spends_nothing_of_the_shared_budget(store):
    sharing(store, 54.0, {"large": 100.0, "small": 100.0})
    store.engine.set_status("large", "paused")
    assert said(store, "small")[1].median == pytest.approx(store.clock.now + 30 * HOUR, abs=60.0)


@pytest.mark.parametrize("shared", [False, True], ids=["its own", "shared"])
def test_a_budget_that_is_renewed_before_it_is_spent_does_not_run_out(store, shared):
    """19 hours of money in the last hours of a month, and in its first ones."""
    february = 1_801_440_000.0
    for name, begun, ends in (("late", february - 9 * HOUR, False), ("early", february + HOUR, True)):
        store.clock.now = store.begun = begun
        own = {} if shared else {"period": "month"}
        if shared:
            store.engine.shared_budgets.create(name, 54.0, period="month")
            own = {"shared_budget": name}
        store.engine.create(name, "bts", 500.0 if shared else 54.0, {"a": 3.0, "b": 3.0}, **own)
        for number in range(8):
            store.clock.now = store.begun + HOUR * number
            spend(store, name, 2.0)
        roll_up(store)
        listed, shown = said(store, name)
        assert listed == shown
        if ends:
            assert shown.median == pytest.approx(store.clock.now + 19 * HOUR, abs=60.0)
        elif shared:  # its own 484 would last for ten days
            assert shown.limit == "budget"
        else:
            assert shown is None
