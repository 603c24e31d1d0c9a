"""What the pictures of a campaign's page show: the plan by the terms of each time, and an end where there is one."""

import re
import time
from importlib.resources import files
from itertools import pairwise

import pytest

from budgetbandits.formatting.datetimes import HOUR, Times
from budgetbandits.numerics.fluid import best_mix
from budgetbandits.service.audit.audit import verify
from budgetbandits.service.dashboard import campaign as campaign_module
from budgetbandits.service.dashboard.campaign import campaign_json, campaign_view
from budgetbandits.service.dashboard.charts.cell_charts import (
    ARM_COLOURS,
    axis_end,
    colour_class,
    density,
    shared_axis,
)
from budgetbandits.service.dashboard.charts.pointer import money_values, request_values, share_values
from budgetbandits.service.dashboard.charts.time_charts import (
    Frame,
    MoneyAxes,
    cumulated_spend,
    money_chart,
    plan_lines,
    price_chart,
    requests_chart,
    share_chart,
    time_axis,
    whole_shares,
)
from budgetbandits.service.dashboard.query import PageQuery
from budgetbandits.service.dashboard.rendering import render
from budgetbandits.service.rollups import roll_up
from budgetbandits.service.service import DecisionService
from clock import Clock
from served import pull

SMALL_LARGE = {"small": 0.1, "large": 2.0}


def begun(store, seconds, *campaign, **terms):
    """The service and its clock, of which a campaign was created so long ago."""
    store.clock.now -= seconds
    store.engine.create("ads", *campaign, **terms)
    return store.engine, store.clock


def page_of(view, admin=True):
    values = {"view": view, "times": Times.of("UTC", view.now), "admin": admin, "creates": False, "inline": False}
    return render("_campaign.html", **values)


def seen(store, wanted=None):
    return store.read(lambda tx: campaign_view(tx, tx.campaign("ads"), wanted or PageQuery()))


def test_the_plan_is_that_of_the_terms_of_each_time(store):
    """Of 100 over 20 hours, 25 after 5; spread over 40 it is 12.5 from then on. A top-up of 60 after 8 hours raises
    32·100/160 to 32. From 9 hours on there is no plan, and from 9½ on it is over since long: all may be spent."""
    engine, clock = begun(store, 10 * HOUR, "bts", 100.0, {"a": 1.0, "b": 1.0}, pace_seconds=20 * HOUR)
    created = clock.now
    clock.now = created + 5 * HOUR
    engine.change_terms("ads", {"pace_seconds": 40 * HOUR})
    engine.change_terms("ads", {"hold_seconds": 60.0})
    clock.now = created + 8 * HOUR
    engine.top_up("ads", 60.0)
    clock.now = created + 9 * HOUR
    engine.change_terms("ads", {"pace_seconds": None})
    clock.now = created + 9.5 * HOUR
    engine.change_terms("ads", {"pace_seconds": 2 * HOUR})
    view = seen(store)
    first, second = [
        [(round((at - created) / HOUR, 3), round(value, 3)) for at, value in line]
        for line in plan_lines(view, view.now)
    ]
    assert [pair for n, pair in enumerate(first) if pair not in first[:n]] == [
        (0.0, 0.0), (5.0, 25.0), (5.0, 12.5), (8.0, 20.0), (8.0, 32.0), (9.0, 36.0)
    ]  # fmt: skip
    assert {value for _, value in second} == {160.0}
    assert (second[0][0], round(second[-1][0], 2)) == (9.5, 10.0)
    day = plan_lines(seen(store, PageQuery("day")), view.now)
    assert [len(line) for line in day] == [len(first), len(second)]


def test_pictures_of_an_exhausted_campaign_end_with_it(store):
    engine, clock = begun(store, 5 * 24 * HOUR, "bts", 6.0, {"a": 1.0, "b": 1.0})
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
    assert view.shares.stretches["decisions"][-1].timestamps[-1] == decided
    assert sum(sum(slot.decided.values()) for slot in view.slots) == 8
    times = Times.of("UTC", view.now)
    assert 'class="spent-dot" cx="704.0"' in money_chart(view, times, 720, 280)  # at the right edge
    assert "L402.0 " in share_chart(view, times, "decisions", 550, 220)
    # of the last day there is nothing to see, and now is its end
    day = seen(store, PageQuery("day"))
    assert (day.ends, day.slots, day.over) == (day.now, [], False)
    money_chart(day, times, 720, 280)
    engine.top_up("ads", 5.0)
    assert seen(store).ends == pytest.approx(time.time(), abs=60.0)


@pytest.mark.parametrize("rolled", [False, True])
def test_the_price_on_money_is_that_of_the_program_at_each_time(store, rolled):
    """Small for ten minutes, then large for ten, 10.5 of 40 spent; from when on both are known it is that of a mix."""
    engine, clock = begun(store, HOUR, "bts-paced", 40.0, SMALL_LARGE, horizon=100)
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
    assert campaign_json(view)["prices_on_money"][-1] == {"at": view.prices[-1][0], "price": view.prices[-1][1]}
    page = page_of(view)
    assert page.count('aria-label="The price on money over time, 0.526 now."') == 2  # wide and narrow
    assert "Money against requests" in page
    assert "What this saved" not in page
    engine.feedback(engine.decide("ads", "fails", arms=["large"]).decision, failed=True)
    page = page_of(seen(store))
    assert "Failed</span>" in page


def test_a_change_of_the_horizon_leaves_past_prices_as_they_were(store):
    engine, clock = begun(store, HOUR, "bts-paced", 40.0, SMALL_LARGE, horizon=50)
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
    engine, _ = begun(store, HOUR, "bts-paced", 10.0, SMALL_LARGE, horizon=20)
    for number in range(6):
        made = engine.decide("ads", str(number), arms=["small"])
        told = {"failed": True} if number % 2 else {"reward": 0.5, "cost": 0.1}
        engine.feedback(made.decision, **told)
    view = seen(store)
    assert (view.requests.answered, view.requests.failed) == (3, 3)
    assert view.requests.to_come == pytest.approx(9.7 / 14)
    assert "3 answered and 3 failed of 20 expected" in page_of(view)


def test_what_each_request_has_cost_counts_those_that_were_told_in_part(store):
    """Four at 0.1, of which one has its reward; one that has expired, charged with 2."""
    engine, clock = begun(store, HOUR, "bts-paced", 10.0, SMALL_LARGE, horizon=20, hold_seconds=60.0)
    engine.decide("ads", "expires", arms=["large"])
    for number in range(4):
        pull(engine, "ads", str(number), arms=["small"], cost=0.1, reward=None if number else 0.5)
    clock.now += 60.0
    engine.expire_due()
    requests = seen(store).requests
    assert (requests.answered, requests.failed, requests.used) == (1, 0, 5)
    assert requests.per_request == pytest.approx(2.4 / 5)
    assert requests.to_come == pytest.approx(7.6 / 15)
    assert "1 of 20 expected; 5 have used their money" in page_of(seen(store))


def test_failures_are_no_prices(store):
    """Ten answers at 1.0; then ten failures, some of them after their cost was told: each answer still costs 1."""
    engine, _ = begun(store, HOUR, "bts-paced", 60.0, SMALL_LARGE, horizon=100)
    for number in range(10):
        pull(engine, "ads", f"small {number}", arms=["small"], reward=0.25, cost=0.05)
        pull(engine, "ads", f"large {number}", arms=["large"], reward=0.75, cost=1.0)
    before = seen(store)
    for number in range(10):
        made = engine.decide("ads", f"fails {number}", arms=["large"])
        if number % 2:
            engine.feedback(made.decision, cost=0.5)
        engine.feedback(made.decision, failed=True)
    for rolled in (False, True):
        if rolled:
            roll_up(store)
        view = seen(store)
        large, then = (next(arm for arm in each.arms if arm.name == "large") for each in (view, before))
        assert large.belief.price == then.belief.price
        # the requests and the money of the failures are gone
        mix = best_mix([[0.25, 0.75]], [[0.05, 1.0]], [1.0], (60.0 - 10.5 - 2.5) / (100 - 30))
        assert view.prices[-1][1] == pytest.approx(mix.price)
        assert campaign_json(view)["requests"]["failed"] == 10


def test_the_price_on_money_is_that_of_arms_that_can_be_chosen(store):
    """Large is retired and comes back: while it is away, more money would bring nothing."""
    engine, clock = begun(store, HOUR, "bts-paced", 40.0, SMALL_LARGE, horizon=100)

    def minutes(key, arms):
        for number in range(4):
            arm = arms[number % len(arms)]
            made = engine.decide("ads", f"{key} {number}", arms=[arm])
            clock.now += 60.0
            engine.feedback(made.decision, reward={"small": 0.25, "large": 0.75}[arm], cost=made.hold / 2)

    minutes("both", ["small", "large"])
    engine.retire_arm("ads", "large")
    minutes("small", ["small"])
    while_away = seen(store).prices[-2]  # the minute that is not over may change
    engine.bring_back_arm("ads", "large")
    minutes("again", ["large", "small"])
    prices = dict(seen(store).prices)
    assert while_away[1] == prices[while_away[0]] == 0.0
    assert seen(store).prices[-1][1] == pytest.approx(0.5 / 0.95)
    assert [price > 0.0 for price in prices.values()].count(True) >= 4


@pytest.mark.parametrize("policy", ["bts-paced:forget=0.2", "bts-paced:trials=1", "bts-paced"])
def test_the_table_of_segments_counts_requests_whatever_a_policy_remembers(store, policy):
    """With forget=0.2 an arm remembers five outcomes; with trials=1 a reward of 0.25 is learned as 0 or 1."""
    engines = [DecisionService(store, Clock(time.time() - HOUR)) for _ in range(2)]
    engines[0].create("ads", policy, 40.0, SMALL_LARGE, horizon=100, reward_max=2.0)
    for number in range(30):
        segment = ("code", "mail", None)[number % 3]
        arm = "large" if segment == "code" and number % 2 else "small"
        made = engines[number % 2].decide("ads", str(number), arms=[arm], segment=segment)
        engines[number // 2 % 2].feedback(made.decision, reward=0.25 if number < 15 else 1.0, cost=made.hold / 4)
    lines = {line.name: line for line in seen(store).requests.segments}
    assert {name: line.answered for name, line in lines.items()} == {"code": 10, "mail": 10, "without a segment": 10}
    assert [line.reward for line in lines.values()] == [pytest.approx(0.625)] * 3
    assert lines["code"].cost == pytest.approx((5 * 0.5 + 5 * 0.025) / 10)
    assert lines["mail"].cost == pytest.approx(0.025)
    assert (lines["mail"].arm_share, lines["code"].arm_share) == (1.0, 0.5)
    assert verify(store, "ads") == []


def test_without_a_horizon_there_is_no_price(store):
    store.engine.create("ads", "bts", 40.0, {"a": 1.0, "b": 1.0})
    assert seen(store).prices == []


def test_the_style_sheet_has_a_class_for_every_colour_of_an_arm():
    sheet = files("budgetbandits.service.dashboard").joinpath("assets/style.css").read_text()
    classes = {colour_class(place) for place in range(ARM_COLOURS)}
    assert set(re.findall(r"rect\.(arm\d+)", sheet)) == set(re.findall(r"\.(arm\d+) {", sheet)) == classes


def test_shares_name_the_largest_arms_not_the_first(store):
    engine, _ = begun(store, 600.0, "bts", 40.0, {f"arm {number}": 1.0 for number in range(9)})
    chosen = [8] * 9 + [0, 1, 2, 3, 4, 4, 5, 5, 6, 6, 7, 7]
    for number, arm in enumerate(chosen):
        pull(engine, "ads", str(number), arms=[f"arm {arm}"], cost=0.1, reward=1.0)
    view = seen(store)
    for what in ("decisions", "spend"):
        shown = whole_shares(view, what)
        assert [name for _, name, _ in shown] == ["arm 0", "arm 4", "arm 5", "arm 6", "arm 7", "arm 8", "others"]
        assert sum(part for *_, part in shown) == pytest.approx(1.0)
        assert shown[-2][2] == pytest.approx(9 / 21)
        assert shown[-1][2] == pytest.approx(3 / 21)
    drawn = share_chart(view, Times.of("UTC", view.now), "spend", 550, 220)
    assert ">arm 8</text>" in drawn
    assert ">arm 1</text>" not in drawn
    assert [view.colour(arm) for arm in (0, 4, 5)] == ["arm1", "arm5", "arm6"]  # those of their places
    assert {view.colour(arm) for arm in (6, 7, 8)} == {"arm2", "arm3", "arm4"}
    assert view.colour(1) == "others"


def test_shares_have_a_gap_where_nothing_was_decided_and_their_numbers_are_those_of_the_table(store):
    """Ten hours of one arm, ten of nothing, and an hour of the other: of the spend, not of the last slot."""
    now = store.clock.now
    engine, clock = begun(store, 21 * HOUR, "bts", 400.0, {"a": 1.0, "b": 1.0})
    for number in range(220):
        clock.now = now - (21 - number / 20 - (10 if number >= 200 else 0)) * HOUR
        pull(engine, "ads", str(number), arms=["a" if number < 200 else "b"], cost=0.4, reward=1.0)
    clock.now = now
    view = seen(store)
    for what in ("decisions", "spend"):
        first, second = view.shares.stretches[what]
        assert second.timestamps[0] - first.timestamps[-1] > 8 * HOUR
        assert (first.layers, second.layers) == (
            [(0, [1.0] * len(first.timestamps))],
            [(1, [1.0] * len(second.timestamps))],
        )
        assert [(name, round(part, 6)) for _, name, part in whole_shares(view, what)] == [
            ("a", 0.909091), ("b", 0.090909)
        ]  # fmt: skip
        drawn = share_chart(view, Times.of("UTC", view.now), what, 550, 220)
        assert drawn.count('class="share arm1"') == drawn.count('class="share arm2"') == 1
        assert ">91 %</text>" in drawn
    page = page_of(view, admin=False)
    assert "the numbers are of all that is shown" in page
    assert page.count("90.9 %") == 7  # the table, and for both charts the legend and the words of two drawings


@pytest.mark.parametrize(
    ("budget", "cap", "labels"),
    [
        (1e12, 3e11, ["0", "500 bn", "1 tn"]),
        (4e7, 1.2e7, ["0", "20 M", "40 M"]),
        (200_000.0, 6e4, ["0", "100,000", "200,000"]),
        (30.0, 9.0, ["0", "10", "20", "30"]),
        (0.000004, 0.000002, ["0", "0.000002", "0.000004"]),
    ],
)
def test_labels_of_money_have_the_room_and_the_decimals_they_need(store, budget, cap, labels):
    engine, _ = begun(store, 600.0, "bts", budget, {"a": cap, "b": cap})
    engine.feedback(engine.decide("ads", "1").decision, cost=cap, reward=1.0)
    view = seen(store)
    for width in (720, 360):
        drawn = money_chart(view, Times.of("UTC", view.now), width, 220)
        texts = re.findall(r'<text x="([\d.]+)" y="[\d.]+" text-anchor="end">([^<:]+)</text>', drawn)  # no times
        assert [text for _, text in texts] == labels
        assert all(float(x) - 7.4 * len(text) >= 0 for x, text in texts)
        [(x, anchor, spent)] = re.findall(r'class="strong" x="([\d.]+)" [^>]*text-anchor="(\w+)">([^<]+)<', drawn)
        begins = float(x) - (7.4 * len(spent) if anchor == "end" else 0.0)
        assert begins >= 0
        assert begins + 7.4 * len(spent) <= width


def test_what_was_spent_since_a_copy_is_a_step_when_it_was_booked(store):
    """0.25 an hour for four hours; then 6 are booked, and 0.25 more is spent, all more than a day ago."""
    engine, clock = begun(store, 40 * HOUR, "bts", 20.0, {"a": 1.0, "b": 1.0})
    created = clock.now
    for number in range(4):
        clock.now += HOUR
        pull(engine, "ads", f"{number}", cost=0.25, reward=1.0)
    clock.now += HOUR
    engine.mark_restored()
    clock.now = booked_at = created + 6 * HOUR
    engine.set_status("ads", "active", spent_since=6.0)
    clock.now += HOUR
    pull(engine, "ads", "since", cost=0.25, reward=1.0)
    view = seen(store)
    points = cumulated_spend(view)
    assert points == sorted(points)
    assert (points[0], points[-1]) == ((created, 0.0), (view.now, 7.25))
    step = points.index((booked_at, 1.0))
    assert points[step + 1] == (booked_at, 7.0)
    assert "Step: spent since the copy that was restored" in page_of(view)
    # the shares of arms are of what arms have cost, in the table as in the chart
    table, chart = [arm.spent / view.spent_by_arms for arm in view.arms], whole_shares(view, "spend")
    assert sum(table) == pytest.approx(1.0)
    assert [table[number] for number, _, _ in chart] == pytest.approx([part for _, _, part in chart])
    day = seen(store, PageQuery("day"))
    assert {value for _, value in cumulated_spend(day)} == {7.25}
    assert "Step:" not in page_of(day)


def test_a_picture_does_not_end_before_what_was_booked_after_a_restore(store):
    """More was spent since than is left: the rest is an overrun, and no step."""
    engine, clock = begun(store, 10 * HOUR, "bts", 5.0, {"a": 1.0, "b": 1.0})
    clock.now += HOUR
    pull(engine, "ads", "1", cost=1.0, reward=1.0)
    engine.mark_restored()
    clock.now += HOUR
    engine.set_status("ads", "active", spent_since=9.0)
    booked_at = clock.now
    view = seen(store)
    assert (view.standing.word, view.ends) == ("Exhausted", booked_at)
    assert cumulated_spend(view)[-3:] == [(booked_at, 1.0), (booked_at, 5.0), (booked_at, 5.0)]
    assert "to the last booking, " in page_of(view)


def test_money_that_was_spent_since_a_copy_is_not_planned_with(store):
    """Large alone costs 1: with 30 of 40 left for 30 requests it is paid for; with 10, small answers most."""
    engine, clock = begun(store, HOUR, "bts-paced", 40.0, SMALL_LARGE, horizon=50)
    for number in range(20):
        arm, reward, cost = ("small", 0.25, 0.05) if number % 2 else ("large", 0.75, 0.95)
        clock.now += 60.0
        pull(engine, "ads", str(number), arms=[arm], reward=reward, cost=cost)
    assert seen(store).prices[-1][1] == 0.0
    before = seen(store).prices
    engine.mark_restored()
    clock.now += 120.0
    engine.set_status("ads", "active", spent_since=20.0)
    pull(engine, "ads", "since", arms=["small"], reward=0.25, cost=0.05)
    view = seen(store)
    assert view.prices[: len(before)] == before
    assert view.prices[-1][1] == pytest.approx(0.5 / 0.9, rel=0.05)
    small, large = (arm.planned for arm in view.arms)
    left = 40.0 - 10.05 - 20.0
    assert 0.05 * small + 0.95 * large == pytest.approx(left / 29)


def time_labels(frame, now):
    """The texts of an axis of time from left to right, each of which has its own room."""
    drawn = time_axis(frame, Times.of("UTC", now))
    made, found = [], re.findall(r'x="([\d.]+)" [^>]*text-anchor="(\w+)">([^<]+)<', drawn)
    for x, anchor, text in found:
        begins = float(x) - 7.4 * len(text) * {"start": 0.0, "middle": 0.5, "end": 1.0}[anchor]
        made.append((begins, begins + 7.4 * len(text), text))
    made.sort()
    assert all(before[1] < after[0] for before, after in pairwise(made))
    assert (made[0][0], made[-1][1]) == (pytest.approx(frame.left), pytest.approx(frame.right))
    return [text for _, _, text in made]


@pytest.mark.parametrize(
    ("begin", "seconds", "labels"),
    [
        (36_005.0, 1.0, ["10:00:05", "10:00:06"]),
        (36_005.0, 52.0, ["10:00:05", "10:00:20", "10:00:30", "10:00:40", "10:00:57"]),
        (36_005.0, 200.0, ["10:00:05", "10:01:00", "10:01:30", "10:02:00", "10:02:30", "10:03:25"]),
        (36_030.0, 600.0, ["10:00", "10:05", "10:10"]),
        (36_030.0, 86_400.0, ["1 Jan, 10:00", "15:00", "18:00", "21:00", "00:00", "03:00", "06:00", "10:00"]),
        (36_030.0, 4 * 86_400.0, ["1 Jan", "2 Jan", "3 Jan", "4 Jan", "5 Jan"]),
    ],
)
def test_an_axis_of_time_names_both_its_ends(begin, seconds, labels):
    end = begin + seconds
    wide, narrow = (time_labels(Frame(begin, end, 1.0, 52, right, 220), end) for right in (704, 344))
    assert wide == labels
    assert (narrow[0], narrow[-1]) == (labels[0], labels[-1])


def test_the_axis_of_money_fits_what_is_shown(store):
    """1 of 100 in ten hours: the budget would leave a flat line. And of a day in which 1 of 41 was spent, that."""
    engine, clock = begun(store, 58 * HOUR, "bts", 100.0, {"a": 1.0, "b": 1.0})
    end = clock.now + 58 * HOUR
    for number in range(4):
        pull(engine, "ads", f"{number}", cost=0.25, reward=1.0)
        clock.now += HOUR
    roll_up(store)
    axes = MoneyAxes.of(seen(store))
    assert (axes.low, axes.shows_budget) == (0.0, False)
    assert axes.high == pytest.approx(1.06)
    assert 'class="budget"' not in money_chart(seen(store), Times.of("UTC", clock.now), 720, 280)
    assert "The budget of 100.00 is above" in page_of(seen(store))
    for number in range(40):
        pull(engine, "ads", f"more {number}", cost=1.0, reward=1.0)
    assert MoneyAxes.of(seen(store)).shows_budget
    clock.now = end - HOUR
    pull(engine, "ads", "last", cost=1.0, reward=1.0)
    clock.now = end
    view = seen(store, PageQuery("day"))
    axes = MoneyAxes.of(view)
    assert (axes.low, axes.high) == (pytest.approx(40.94), pytest.approx(42.06))
    assert {value for _, value in cumulated_spend(view)} == {41.0, 42.0}
    drawn = money_chart(view, Times.of("UTC", view.now), 720, 280)
    assert 'text-anchor="end">41.5</text>' in drawn
    assert "from 40.94 up" in page_of(view)


def test_money_against_requests_has_its_plan_and_who_is_to_answer(store):
    """40 requests at 0.5 of 100, of a budget of 40: half of the plan for them, and the rest can pay the better arm."""
    engine, clock = begun(store, 10 * HOUR, "bts-paced", 40.0, {"cheap": 1.0, "good": 1.0}, horizon=100)
    for number in range(40):
        clock.now += 600.0
        good = number % 4 == 0
        pull(engine, "ads", f"{number}", arms=["good" if good else "cheap"], cost=0.8 if good else 0.4,
             reward=0.9 if good else 0.3)  # fmt: skip
    view = seen(store)
    assert view.points_by_requests[0] == (0, 0.0)
    assert view.points_by_requests[-1] == (40, pytest.approx(20.0))
    used = [at for at, _ in view.points_by_requests]
    assert used == sorted(used)
    mix = best_mix([[0.3, 0.9]], [[0.4, 0.8]], [1.0], 20.0 / 60)
    assert [arm.planned for arm in view.arms] == [0.0, 1.0]  # its ratio is the best, and both cost more than is left
    assert (mix.arms, mix.share) == ([1], 0.0)
    assert [arm.requests_used for arm in view.arms] == [30, 10]
    values = request_values(view)
    assert values[-1] == (pytest.approx(0.4), "40 requests: 20.00 spent, plan 16.00")
    assert "20.00 spent by 40 of 100 requests" in requests_chart(view, 550, 260)
    page = page_of(view)
    assert "Money against requests" in page
    assert '75.0 %<span class="caption">plan 0 %</span>' in page
    assert "What this saved" not in page
    assert campaign_json(view)["arms"][1]["planned_share"] == 1.0


def test_a_line_has_a_gap_where_nothing_happened(store):
    times = Times.of("UTC", 1e9)
    steady = [(1e9 + 60.0 * minute, 1.0) for minute in range(100)]
    assert price_chart(steady, times, 720, 190).count('class="spent-line"') == 1
    pause = [*steady[:40], *steady[60:]]
    drawn = price_chart(pause, times, 720, 190)
    assert drawn.count('class="spent-line"') == 2
    assert "lone-dot" not in drawn
    assert price_chart([*steady[:40], steady[70]], times, 720, 190).count('class="lone-dot"') == 1


def test_values_under_the_pointer_are_those_of_the_picture(store):
    engine, clock = begun(store, 8 * HOUR, "bts", 100.0, {"a": 1.0, "b": 1.0}, pace_seconds=16 * HOUR)
    for number in range(20):
        clock.now += 600.0 if number != 8 else 3 * HOUR  # no span has both, whatever the time of day
        pull(engine, "ads", f"{number}", arms=["a" if number < 8 else "b"], cost=0.5, reward=1.0)
    view = seen(store)
    times = Times.of("UTC", view.now)
    values = money_values(view, times)
    places = [place for place, _ in values]
    assert places == sorted(places)
    assert values[-1][1].endswith(": 10.00 spent, plan 50.00")
    shares = share_values(view, times, "decisions")
    assert shares[0][1].endswith(": a 100 %")
    assert shares[-1][1].endswith(": b 100 %")
    page = page_of(view)
    assert page.count("data-values=") == 3


def test_an_arm_has_a_dash_for_what_was_not_reported(store):
    engine, _ = begun(store, 600.0, "bts", 90.0, {"a": 1.0, "b": 1.0, "new": 1.0})
    pull(engine, "ads", "1", arms=["a"], cost=0.5)
    pull(engine, "ads", "2", arms=["b"], reward=1.0)
    arms = {arm["name"]: arm for arm in campaign_json(seen(store))["arms"]}
    known = {name: [arm[each] is not None for each in ("price", "mean_reward", "ratio")] for name, arm in arms.items()}
    assert known == {"a": [True, False, False], "b": [False, True, False], "new": [False] * 3}
    assert [arm["chance_of_best"] for arm in arms.values()] == [None] * 3
    page = page_of(seen(store))
    for words in ("no reward yet", "no price yet", "no feedback yet"):
        assert page.count(words) == 1


@pytest.mark.parametrize(
    ("order", "names"),
    [
        ("name", "a B c d old"), ("-name", "d c B a old"), ("price", "a c B d old"), ("-price", "B c a d old"),
        ("reward", "c a B d old"), ("ratio", "a c B d old"), ("pulls", "a B c d old"), ("share", "B c a d old"),
        ("chance", "a c B d old"), ("-chance", "B c a d old"),
    ],
)  # fmt: skip
def test_arms_are_sorted_with_the_unknown_and_the_retired_last(store, order, names):
    engine, _ = begun(store, 600.0, "bts", 90.0, dict.fromkeys(("old", "d", "c", "B", "a"), 1.0))
    outcomes = {"a": (5, 0.2, 0.6), "B": (4, 0.9, 0.3), "c": (3, 0.4, 0.8), "old": (9, 0.1, 1.0)}
    for arm, (count, cost, reward) in outcomes.items():
        for number in range(count):
            pull(engine, "ads", f"{arm} {number}", arms=[arm], cost=cost, reward=reward)
    engine.retire_arm("ads", "old")
    assert [arm.name for arm in seen(store, PageQuery(sort=order)).sorted_arms] == names.split()


def test_the_common_axis_has_every_arms_median(store):
    """An arm with one pull, better than any, beside two with twenty."""
    engine, _ = begun(store, 600.0, "bts", 90.0, {"a": 1.0, "b": 1.0, "new": 1.0})
    for number in range(41):
        arm, reward, cost = [("a", 0.2, 0.5), ("b", 0.25, 0.5)][number % 2] if number else ("new", 1.0, 0.01)
        pull(engine, "ads", str(number), arms=[arm], reward=reward, cost=cost)
    view = seen(store)
    pairs = [(arm.belief, arm.pulls) for arm in view.arms]
    [new] = [arm.belief for arm in view.arms if arm.pulls == 1]
    end = axis_end(pairs)
    assert new.ratio.median < end < new.ratio.high
    for what in ("reward", "price"):
        low, high = shared_axis(what, pairs)
        assert all(low < getattr(belief, what).median < high for belief, _ in pairs)
    assert density("ratio", new, None, (0, end), (260, 40), "arm1").count("beyond") == 1
    assert "beyond" not in density("ratio", view.arms[0].belief, None, (0, end), (260, 40), "arm1")


def test_every_arm_can_be_retired_from_the_page_however_many_there_are(store, monkeypatch):
    engine, _ = begun(store, 600.0, "bts", 90.0, {f"arm {number}": 1.0 for number in range(70)})
    for name in ("arm 3", "arm 69"):
        pull(engine, "ads", name, arms=[name], reward=1.0, cost=0.5)
    engine.retire_arm("ads", "arm 3")

    links = re.findall(r'retire-arm\?arm=arm%20(\d+)"', page_of(seen(store)))
    assert sorted(map(int, links)) == [number for number in range(70) if number != 3]
    assert page_of(seen(store)).count("bring-back-arm?arm=arm%203") == 1
    assert "retire-arm" not in page_of(seen(store), admin=False)
    monkeypatch.setattr(campaign_module, "ARMS_LISTED_MAX", 4)
    few = page_of(seen(store))
    assert "4 more arms, those with the most spend; 5 are not listed" in few
    assert 'href="/campaigns/ads/retire-arm"' in few


def test_the_history_of_the_budget_is_not_lost_among_other_events(store):
    """Topped up and given other terms, then paused and resumed sixty times: what was planned before is still known."""
    engine, clock = begun(store, HOUR, "bts", 10.0, {"a": 1.0, "b": 1.0}, pace_seconds=1000.0)
    created = clock.now
    clock.now += 10.0
    engine.top_up("ads", 90.0)
    engine.change_terms("ads", {"pace_seconds": 2000.0})
    for _ in range(60):
        engine.set_status("ads", "paused")
        engine.set_status("ads", "active")
    view = seen(store)
    assert view.budgets == [(created, 10.0), (created + 10.0, 100.0)]
    assert view.plans == [(created, 1000.0), (created + 10.0, 2000.0)]
    assert len(view.events) == 8
    assert view.more_events
