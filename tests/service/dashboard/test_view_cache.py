"""Pages that are drawn for many: read once, drawn once for each zone, within a share of a processor."""

import asyncio
import threading
import time

import pytest

from budgetbandits.errors import StoreError
from budgetbandits.service.dashboard.beliefs import ArmFeedback, ValueSums, belief
from budgetbandits.service.dashboard.charts.cell_charts import density
from budgetbandits.web.view_cache import ENTRIES_MAX, LIFETIME_MAX, WATCHED_SECONDS, ViewCache
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
        fresh = ViewCache(clock)
        assert await asyncio.gather(*(fresh.get("a", slow, 1.0) for _ in range(5))) == [1] * 5
        assert fresh.time_left("a", 1.0) == 1.0  # the first time, which may include loading modules, does not count
        clock.now += 1.0
        assert await fresh.get("a", slow, 1.0) == 2
        assert fresh.time_left("a", 1.0) == pytest.approx(5.0)  # a hundredth of a processor
        clock.now += 4.9
        assert await fresh.get("a", slow, 1.0) == 2
        assert fresh.time_left("a", 1.0) == pytest.approx(0.1)
        assert await fresh.get("other", slow, 1.0) == 3
        clock.now += 0.1
        assert await fresh.get("a", slow, 1.0) == 4
        fresh.clear()
        assert fresh.time_left("a", 1.0) == 0.0
        assert await fresh.get("a", slow, 1.0) == 5
        with pytest.raises(StoreError):
            await fresh.get("b", broken, 1.0)
        assert await fresh.get("b", slow, 1.0) == 6  # what failed is tried again at once

    def broken():
        raise StoreError("gone")

    asyncio.run(run())


def test_views_that_differ_by_the_zone_are_read_once():
    read, rendered, clock = [], [], Clock(100.0)

    def make():
        read.append(1)
        return len(read)

    def draw(zone):
        return lambda data: rendered.append((zone, data)) or f"{zone} {data}"

    async def run():
        fresh = ViewCache(clock)
        for clock.now, number in ((100.0, 1), (100.9, 1), (101.0, 2)):
            answers = await asyncio.gather(*(fresh.rendered("a", make, zone, draw(zone), 1.0) for zone in "xyz"))
            assert answers == [(number, f"{zone} {number}") for zone in "xyz"]
        fresh.clear()
        assert await fresh.rendered("a", make, "x", draw("x"), 1.0) == (3, "x 3")

    asyncio.run(run())
    assert read == [1, 1, 1]
    assert sorted(rendered) == [("x", 1), ("x", 2), ("x", 3), ("y", 1), ("y", 2), ("z", 1), ("z", 2)]


def test_what_is_known_of_an_arm_is_drawn_once_for_all_zones():
    known = belief(ArmFeedback(cost=ValueSums(10, 4.0, 2.5)), 1.0, 1.0)
    rendered = [density("price", known, None, (0.0, 1.0), (104, 30), "arm1") for _ in range(2)]
    assert rendered[0] is rendered[1]
    known = belief(ArmFeedback(cost=ValueSums(11, 4.0, 2.5)), 1.0, 1.0)
    assert density("price", known, None, (0.0, 1.0), (104, 30), "arm1") != rendered[0]


def test_a_client_that_leaves_takes_nothing_from_the_others():
    gate = threading.Event()

    async def run():
        fresh = ViewCache(Clock(100.0))
        first, second = (asyncio.ensure_future(fresh.get("a", lambda: gate.wait() and 1, 1.0)) for _ in range(2))
        await asyncio.sleep(0)
        first.cancel()
        gate.set()
        assert await second == 1

    asyncio.run(run())


def test_views_of_two_kinds_share_what_they_may_take():
    clock = Clock(100.0)

    async def run():
        fresh = ViewCache(clock)
        for _ in range(3):  # the first time counts for nothing
            clock.now += 9.0
            await fresh.get("a", lambda: busy(0.02), 1.0)
            await fresh.rendered("b", lambda: busy(0.02), "zone", lambda _: busy(0.03), 3.0)
        assert fresh.lifetime(1.0) == fresh.lifetime(3.0) == pytest.approx(7.0)
        assert fresh.lifetime(9.0) == 9.0

    asyncio.run(run())


def test_nothing_is_good_for_longer_than_a_page_may_be_old():
    clock = Clock(100.0)

    async def run():
        fresh = ViewCache(clock)
        for _ in range(5):
            for view in range(6):
                await fresh.get(view, lambda: busy(0.04), 1.0)
            clock.now += 9.0
        assert fresh.lifetime(1.0) == LIFETIME_MAX

    asyncio.run(run())


def test_pages_that_were_left_make_no_other_older():
    """Ten that were opened for a moment, and one that was looked at for long, and then left."""
    clock = Clock(100.0)

    async def run():
        fresh = ViewCache(clock)
        for view in range(10):
            await fresh.get(view, lambda: busy(0.03), 1.0)
        assert fresh.lifetime(1.0) == 1.0
        for _ in range(3):
            clock.now += 5.0
            await fresh.get("b", lambda: busy(0.04), 1.0)
        assert fresh.lifetime(1.0) == pytest.approx(4.0)
        clock.now += WATCHED_SECONDS + 1.0
        assert fresh.lifetime(1.0) == 1.0
        assert not fresh._entries  # nor do they keep any memory

    asyncio.run(run())


def test_what_could_not_be_drawn_is_drawn_again():
    def broken(_):
        raise StoreError("odd")

    async def run():
        fresh = ViewCache(Clock(100.0))
        with pytest.raises(StoreError):
            await fresh.rendered("a", lambda: 1, "zone", broken, 1.0)
        assert await fresh.rendered("a", lambda: 2, "zone", str, 1.0) == (1, "1")

    asyncio.run(run())


def test_a_number_of_views_is_kept_and_what_was_asked_for_longest_ago_leaves_first():
    """Of one view drawn for very many, and of very many views; whoever asks is answered all the same."""
    made = []

    async def run():
        fresh = ViewCache(Clock(100.0))
        for number in range(ENTRIES_MAX + 30):
            for key in ("often", number):
                await fresh.get(key, lambda key=key: made.append(key), 1.0)
        await fresh.get(ENTRIES_MAX + 29, lambda: made.append("again"), 1.0)
        for zone in range(ENTRIES_MAX + 30):
            assert await fresh.rendered("often", lambda: 1, zone, lambda _, zone=zone: zone, 1.0) == (None, zone)
        assert len(fresh._entries) == ENTRIES_MAX

    asyncio.run(run())
    assert made.count("often") == 1
    assert "again" not in made
