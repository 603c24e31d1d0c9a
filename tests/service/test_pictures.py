"""What the pictures of a campaign's page show: the plan by the terms of each time, and an end where there is one."""

import time
from itertools import pairwise

import pytest

from budgetbandits.fluid import best_mix
from budgetbandits.service.dashboard.campaign_view import Wanted, campaign_view
from budgetbandits.service.dashboard.charts import _plan, money_chart, share_chart
from budgetbandits.service.dashboard.pages import render
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


@pytest.mark.parametrize("rolled", [False, True])
def test_the_price_on_money_is_that_of_the_program_at_each_time(store, rolled):
    """Small for ten minutes, then large for ten, 10.5 of 40 spent; from when on both are known it is that of a mix."""
    clock = Clock(time.time() - HOUR)
    engine = Engine(store, clock)
    engine.create("ads", "bts-paced", 40.0, {"small": 0.1, "large": 2.0}, horizon=100)
    for number in range(20):
        arm, reward, cost = ("small", 0.25, 0.05) if number < 10 else ("large", 0.75, 1.0)
        made = engine.decide("ads", str(number), arms=[arm])
        clock.now += 60.0
        engine.feedback(made.decision, reward=reward, cost=cost)
    if rolled:
        roll_up(store)
    view = seen(store)
    mix = best_mix([[0.25, 0.75]], [[0.05, 1.0]], [1.0], 29.5 / 80)
    assert view.prices[-1][1] == pytest.approx(mix.price) == pytest.approx(0.5 / 0.95)
    assert [price for _, price in view.prices[:9]] == [0.0] * 9  # one arm, with more money than it takes
    assert all(sooner < later for (sooner, _), (later, _) in pairwise(view.prices))
    assert view.as_json()["prices_on_money"][-1] == {"at": view.prices[-1][0], "price": view.prices[-1][1]}
    page = render("_campaign.html", view=view, times=Times.of("UTC", view.now), admin=True, inline=False)
    assert page.count('aria-label="The price on money over time, 0.526 now."') == 2  # wide and narrow
    assert "Not said of a budget that is for so many requests" in page
    engine.feedback(engine.decide("ads", "fails", arms=["large"]).decision, failed=True)
    page = render("_campaign.html", view=seen(store), times=Times.of("UTC", view.now), admin=True, inline=False)
    assert "Failed</span>" in page


def test_a_change_of_the_horizon_leaves_past_prices_as_they_were(store):
    clock = Clock(time.time() - HOUR)
    engine = Engine(store, clock)
    engine.create("ads", "bts-paced", 40.0, {"small": 0.1, "large": 2.0}, horizon=50)
    for number in range(30):
        arm, reward, cost = ("small", 0.25, 0.05) if number % 2 else ("large", 0.75, 1.0)
        made = engine.decide("ads", str(number), arms=[arm])
        clock.now += 60.0
        engine.feedback(made.decision, reward=reward, cost=cost)
    before = seen(store).prices[:-1]  # the minute that is not over may change
    assert before[-1][1] == 0.0  # more money than 50 requests can take
    engine.change_terms("ads", {"horizon": None})
    clock.now += 60.0
    engine.feedback(engine.decide("ads", "unplanned").decision, reward=0.5, cost=0.05)
    clock.now += 60.0
    engine.change_terms("ads", {"horizon": 5000})
    clock.now += 60.0
    engine.feedback(engine.decide("ads", "scarce").decision, reward=0.5, cost=0.05)
    after = seen(store).prices
    assert after[: len(before)] == before
    assert after[-1][1] > 1.0  # by the new plan: money for the small one alone


def test_requests_that_failed_are_not_to_come(store):
    engine = Engine(store, Clock(time.time() - HOUR))
    engine.create("ads", "bts-paced", 10.0, {"small": 0.1, "large": 2.0}, horizon=20)
    for number in range(6):
        made = engine.decide("ads", str(number), arms=["small"])
        told = {"failed": True} if number % 2 else {"reward": 0.5, "cost": 0.1}
        engine.feedback(made.decision, **told)
    view = seen(store)
    assert (view.requests.answered, view.requests.failed) == (3, 3)
    assert view.requests.to_come == pytest.approx(9.7 / 14)
    page = render("_campaign.html", view=view, times=Times.of("UTC", view.now), admin=True, inline=False)
    assert "3 answered and 3 failed of 20 expected" in page


def test_without_a_horizon_there_is_no_price(store):
    Engine(store).create("ads", "bts", 40.0, {"a": 1.0, "b": 1.0})
    assert seen(store).prices == []
