"""Pages that are drawn for many: read once, drawn once for each zone, within a share of a processor."""

import asyncio
import threading
import time

import pytest

from budgetbandits.errors import StoreError
from budgetbandits.service.dashboard.beliefs import ArmFeedback, ValueSums, belief
from budgetbandits.service.dashboard.charts.cell_charts import density
from budgetbandits.web.view_cache import COSTS_MAX, LIFETIME_MAX, VIEWS_MAX, Load, ViewCache
from clock import Clock

taken = threading.local()


def busy(seconds):
    """Take a processor's time, as the thread's clock tells it."""
    taken.seconds = thread_seconds() + seconds


def thread_seconds():
    return getattr(taken, "seconds", 0.0)


@pytest.fixture(autouse=True)
def thread_clock(monkeypatch):
    monkeypatch.setattr(time, "thread_time", thread_seconds)


def test_what_many_ask_for_is_made_once_and_what_takes_long_is_good_for_long():
    made, clock = [], Clock(100.0)

    def slow():
        busy(0.05)
        made.append(clock.now)
        return len(made)

    async def run():
        fresh = ViewCache(1.0, clock)
        assert fresh.lifetime() == 1.0
        assert await asyncio.gather(*(fresh.get("a", "view", slow) for _ in range(5))) == [1] * 5
        # a hundredth of a processor; the first time, no longer than that
        assert fresh.time_left("a", "view") == pytest.approx(5.0)
        clock.now += 4.9
        assert await fresh.get("a", "view", slow) == 1
        assert fresh.time_left("a", "view") == pytest.approx(0.1)
        assert await fresh.get("a", "other view", slow) == 2
        clock.now += 5.1
        assert await fresh.get("a", "view", slow) == 3
        fresh.clear()
        assert await fresh.get("a", "view", slow) == 4
        with pytest.raises(StoreError):
            await fresh.get("b", "view", broken)
        assert await fresh.get("b", "view", slow) == 5  # what failed is tried again at once

    def broken():
        raise StoreError("gone")

    asyncio.run(run())


def test_views_that_differ_by_the_zone_are_read_once():
    read, rendered = [], []

    def make():
        read.append(1)
        return len(read)

    def draw(zone):
        return lambda data: rendered.append((zone, data)) or f"{zone} {data}"

    async def run():
        fresh = ViewCache(1.0, Clock(100.0))
        for _ in range(2):
            found = await asyncio.gather(*(fresh.rendered("a", "view", make, zone, draw(zone)) for zone in "xyz"))
            assert found == [(1, "x 1"), (1, "y 1"), (1, "z 1")]

    asyncio.run(run())
    assert read == [1]
    assert sorted(rendered) == [("x", 1), ("y", 1), ("z", 1)]


def test_what_is_known_of_an_arm_is_drawn_once_for_all_zones():
    known = belief(ArmFeedback(cost=ValueSums(10, 4.0, 2.5)), 1.0, 1.0)
    rendered = [density("price", known, None, (0.0, 1.0), (104, 30), "arm1") for _ in range(2)]
    assert rendered[0] is rendered[1]
    known = belief(ArmFeedback(cost=ValueSums(11, 4.0, 2.5)), 1.0, 1.0)
    assert density("price", known, None, (0.0, 1.0), (104, 30), "arm1") != rendered[0]


def test_views_of_two_kinds_share_what_they_may_take():
    clock, load = Clock(100.0), Load()

    async def run():
        one, other = ViewCache(1.0, clock, load), ViewCache(3.0, clock, load)
        for _ in range(3):  # the first time counts for nothing
            clock.now += 9.0
            await one.get("a", None, lambda: busy(0.02))
            await other.rendered("b", None, lambda: busy(0.02), "zone", lambda _: busy(0.03))
        assert one.lifetime() == other.lifetime() == pytest.approx(7.0)

    asyncio.run(run())


def test_nothing_is_good_for_longer_than_a_page_may_be_old():
    clock = Clock(100.0)

    async def run():
        fresh = ViewCache(1.0, clock)
        for _ in range(5):
            for view in range(6):
                await fresh.get("a", view, lambda: busy(0.04))
            clock.now += 9.0
        assert fresh.lifetime() == LIFETIME_MAX

    asyncio.run(run())


def test_pages_that_were_left_make_no_other_older():
    """Ten that were opened for a moment, and one that was looked at for long, and then left."""
    clock = Clock(100.0)

    async def run():
        fresh = ViewCache(1.0, clock)
        for view in range(10):
            await fresh.get("a", view, lambda: busy(0.03))
        assert fresh.lifetime() == 1.0
        for _ in range(3):
            clock.now += 5.0
            await fresh.get("b", None, lambda: busy(0.04))
        assert fresh.lifetime() == pytest.approx(4.0)
        clock.now += 2.0 * 5.0 + 1.0
        assert fresh.lifetime() == 1.0

    asyncio.run(run())


def test_what_could_not_be_drawn_is_drawn_again():
    def broken(_):
        raise StoreError("odd")

    async def run():
        fresh = ViewCache(1.0, Clock(100.0))
        with pytest.raises(StoreError):
            await fresh.rendered("a", "view", lambda: 1, "zone", broken)
        assert await fresh.rendered("a", "view", lambda: 2, "zone", str) == (1, "1")

    asyncio.run(run())


def test_what_is_kept_takes_a_number_of_bytes_at_most():
    """Of one view drawn for very many, and of very many views; whoever asks is answered all the same."""

    async def run():
        fresh = ViewCache(1.0, Clock(100.0), bytes_max=1_000_000)
        for zone in range(50):
            assert (await fresh.rendered("a", "view", lambda: 1, zone, lambda _: "x" * 90_000))[1] == "x" * 90_000
            assert fresh.bytes <= 1_000_000
        for view in range(50):
            await fresh.get("b", view, lambda: {"lines": ["y" * 9_000 for _ in range(10)]})  # all that it is made of
            assert fresh.bytes <= 1_000_000
        assert fresh.bytes > 500_000
        assert await fresh.get("c", None, lambda: "z" * 2_000_000) == "z" * 2_000_000
        assert fresh.bytes <= 1_000_000

    asyncio.run(run())


def test_what_was_asked_for_longest_ago_leaves_first():
    made = []

    async def run():
        fresh = ViewCache(1.0, Clock(100.0), bytes_max=1_000_000)
        for view in range(30):
            for each in ("often", view):
                await fresh.get("a", each, lambda each=each: made.append(each) or "x" * 90_000)
        many = ViewCache(1.0, Clock(100.0))
        for view in range(VIEWS_MAX + 30):
            for each in ("often too", view):
                await many.get("a", each, lambda each=each: made.append(each))
        await many.get("a", VIEWS_MAX + 29, lambda: made.append("again"))

    asyncio.run(run())
    assert made.count("often") == made.count("often too") == 1
    assert "again" not in made


def test_costs_are_known_of_a_number_of_views_at_most():
    load = Load()
    for number in range(2 * COSTS_MAX):
        load.begin(("a", number), 100.0)
        load.asked(("a", 0), 100.0)
        load.add(("a", number), 0.5)
    load.begin(("a", 0), 100.0)
    assert len(load._costs) == COSTS_MAX
    assert load.seconds(("a", 0), 100.0) == 0.5  # what is asked for again and again is known still
