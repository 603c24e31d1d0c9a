"""What the pictures of a campaign's page show: the plan by the terms of each time, and an end where there is one."""

import time

import pytest

from budgetbandits.service.dashboard.campaign_view import Wanted, campaign_view
from budgetbandits.service.dashboard.charts import _plan, money_chart, share_chart
from budgetbandits.service.engine import Engine
from budgetbandits.service.rollups import roll_up
from budgetbandits.service.stores.sqlite import SQLiteStore
from budgetbandits.times import HOUR, Times
from clock import Clock


@pytest.fixture
def store(tmp_path):
    with SQLiteStore(tmp_path / "money.db") as store:
        yield store


def seen(store, wanted=None):
    return store.read(lambda tx: campaign_view(tx, tx.campaign_named("ads"), wanted or Wanted()))


def test_the_plan_is_that_of_the_terms_of_each_time(store):
    """Of 100 over 20 hours, 25 after 5; spread over 40 it is 12.5 from then on. A top-up of 60 after 8 hours raises
    32·100/160 to 32. From 9 hours on there is no plan, and from 9½ on it is over since long: all may be spent."""
    now = time.time()
    begun = now - 10 * HOUR
    clock = Clock(begun)
    engine = Engine(store, clock)
    engine.create("ads", "bts", 100.0, {"a": 1.0, "b": 1.0}, pace_seconds=20 * HOUR)
    clock.now = begun + 5 * HOUR
    engine.change_terms("ads", {"pace_seconds": 40 * HOUR})
    engine.change_terms("ads", {"hold_seconds": 60.0})
    clock.now = begun + 8 * HOUR
    engine.top_up("ads", 60.0)
    clock.now = begun + 9 * HOUR
    engine.change_terms("ads", {"pace_seconds": None})
    clock.now = begun + 9.5 * HOUR
    engine.change_terms("ads", {"pace_seconds": 2 * HOUR})
    view = seen(store)
    first, second = [
        [(round((at - begun) / HOUR, 3), round(value, 3)) for at, value in line] for line in _plan(view, view.now)
    ]
    assert [pair for n, pair in enumerate(first) if pair not in first[:n]] == [
        (0.0, 0.0), (5.0, 25.0), (5.0, 12.5), (8.0, 20.0), (8.0, 32.0), (9.0, 36.0)
    ]  # fmt: skip
    assert {value for _, value in second} == {160.0}
    assert (second[0][0], round(second[-1][0], 2)) == (9.5, 10.0)
    day = _plan(seen(store, Wanted("day")), view.now)
    assert [len(line) for line in day] == [len(first), len(second)]


def test_pictures_of_an_exhausted_campaign_end_with_it(store):
    now = time.time()
    clock = Clock(now - 5 * 24 * HOUR)
    engine = Engine(store, clock)
    engine.create("ads", "bts", 6.0, {"a": 1.0, "b": 1.0})
    for number in range(8):
        clock.now += 600.0
        made = engine.decide("ads", str(number))
        decided = clock.now
        clock.now += 60.0
        engine.feedback(made.decision, cost=0.7, reward=1.0)
    roll_up(store)
    view = seen(store)
    assert view.standing.word == "Exhausted"
    assert (view.decided_until, view.ends) == (decided, decided + 60.0)
    assert view.over
    assert (view.shares.at[0], view.shares.at[-1]) == (view.begins, decided)
    assert sum(sum(slot.decided.values()) for slot in view.slots) == 8
    times = Times.of("UTC", view.now)
    assert 'class="spent-dot" cx="704.0"' in money_chart(view, times, 720, 280)  # at the right edge
    assert "L402.0 " in share_chart(view, times, "decisions", 550, 220)
    # of the last day there is nothing to see, and now is its end
    day = seen(store, Wanted("day"))
    assert (day.ends, day.slots, day.over) == (day.now, [], False)
    money_chart(day, times, 720, 280)
    engine.top_up("ads", 5.0)
    assert seen(store).ends == pytest.approx(time.time(), abs=60.0)
