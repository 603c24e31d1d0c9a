"""A clock that was wrong for a moment must not spoil a campaign for long."""

import subprocess
import sys
import time

import pytest

from budgetbandits.errors import Conflict, HoldRefused, WrongClock
from budgetbandits.service import rollups
from budgetbandits.service.audit.audit import verify
from budgetbandits.service.ledger import DAY
from budgetbandits.service.service import DecisionService
from stores import STORES

NOON = 20_000.5 * DAY
ARMS = {"a": 1.0, "b": 1.0}


@pytest.fixture
def jumped(store):
    """An engine and its clock: two decisions at noon, one by a clock that was 400 days ahead, and it is noon again."""
    now = [NOON]
    engine = DecisionService(store, lambda: now[0])
    engine.create("daily", "bts", budget=20.0, arms=ARMS, hold_seconds=60.0, daily_cap=4.0)
    told = engine.decide("daily", "told")
    engine.decide("daily", "open")
    now[0] += 400 * DAY
    engine.decide("daily", "far ahead")
    engine.feedback(told.decision, cost=0.5, reward=1.0)
    now[0] = NOON + 10.0
    return engine, now


def test_nothing_is_decided_while_the_books_are_ahead_of_the_clock(store, jumped):
    engine, now = jumped
    with pytest.raises(WrongClock, match=r"2025-11-08.*it is 2024-10-04 12:00 UTC now.*campaign reset-clock 'daily'"):
        engine.decide("daily", "one more")
    assert engine.decide("daily", "open").expires_at == NOON + 60.0  # an old answer is given again
    now[0] = NOON + 399.5 * DAY - 1000.0
    assert engine.decide("daily", "one more").expires_at == NOON + 399.5 * DAY + 60.0  # a clock that is a little slow
    assert verify(store, "daily") == []


def test_a_campaign_whose_clock_is_reset_goes_on_today(store, jumped):
    engine, now = jumped
    engine.reset_clock("daily")
    assert engine.account("daily").today == 1_500_000  # what was charged and what is held of this day
    assert verify(store, "daily") == []
    assert engine.decide("daily", "three").expires_at == NOON + 70.0
    engine.decide("daily", "four")
    with pytest.raises(HoldRefused) as refused:
        engine.decide("daily", "five")
    assert refused.value.reason == "daily_cap"
    now[0] = NOON + 71.0
    assert engine.expire_due() == {"daily": 4}  # also that of the day to come
    now[0] = NOON + DAY
    for number in range(4):
        engine.decide("daily", f"tomorrow {number}")
    assert verify(store, "daily") == []
    with pytest.raises(Conflict, match="nothing to reset"):
        engine.reset_clock("daily")


def test_decisions_of_a_day_that_comes_twice_are_told_the_second_time(store):
    """A clock that was two hours ahead has made decisions of tomorrow, which are told when it is tomorrow."""
    now = [20_001 * DAY + 3600.0]
    engine = DecisionService(store, lambda: now[0])
    engine.create("daily", "bts", budget=20.0, arms=ARMS, hold_seconds=7200.0, daily_cap=3.0)
    ahead = [engine.decide("daily", f"ahead {number}").decision for number in range(3)]
    now[0] -= 7200.0
    engine.reset_clock("daily")
    now[0] += 3660.0
    for made in [engine.decide("daily", f"then {number}").decision for number in range(3)]:
        engine.feedback(made, cost=0.0, reward=0.0)
    engine.feedback(ahead[0], cost=0.25, reward=1.0)
    engine.void(ahead[1])
    now[0] += 7200.0
    assert engine.expire_due() == {"daily": 1}
    account = engine.account("daily")
    assert (account.spent, account.held) == (1_250_000, 0)
    assert verify(store, "daily") == []
    engine.decide("daily", "on")


def test_rollups_that_were_made_while_the_clock_was_ahead_twice_agree(store, monkeypatch):
    """Each jump forgets the minutes before it, those of the other jump too, and their hours stay."""
    now, minutes = [NOON], rollups.MINUTES_KEPT_SECONDS
    engine = DecisionService(store, lambda: now[0])
    engine.create("ads", "bts", budget=100.0, arms=ARMS)
    for number, ahead in enumerate((0.0, 3.0, 0.1, 33.0, 0.2, 0.3, 2.9, 3.1)):
        now[0], back = NOON + ahead * DAY, NOON + ahead * DAY < now[0]
        if back:
            engine.reset_clock("ads")
        engine.feedback(engine.decide("ads", f"{number}").decision, cost=0.5, reward=1.0)
        # as if the time of the store were that of the engine
        monkeypatch.setattr(rollups, "MINUTES_KEPT_SECONDS", store.read(lambda tx: tx.now()) - now[0] + minutes)
        rollups.roll_up(store)
        assert verify(store, "ads") == []
    now[0] += 60 * DAY
    for number in range(3):  # what is kept again is compared again
        now[0] += 5000.0
        engine.decide("ads", f"later {number}")
    rollups.roll_up(store)
    assert verify(store, "ads") == []
    store.write(lambda tx: tx.change("DELETE FROM rollup WHERE span = 60 AND begins >= ?", (int(now[0]) - 5000,)))
    assert any("minutes" in text for text in verify(store, "ads"))


AHEAD = """
import asyncio, sys, time
true = time.time
time.time = lambda: true() + 400 * 86_400.0  # before anybody has imported it
from budgetbandits.service.feedback import FeedbackReport
from budgetbandits.service.service import DecisionService
from budgetbandits.service.stores.postgres import PostgresStore
with PostgresStore(sys.argv[1]) as store:
    engine = DecisionService(store)
    engine.create("ads", "bts", budget=20.0, arms={"a": 1.0, "b": 1.0}, hold_seconds=1000.0)
    by_thread = engine.decide("ads", "thread")
    [by_loop] = asyncio.run(store.perform(*engine.decision_task("ads", "loop")))
    engine.create("leases", "bts", budget=20.0, arms={"a": 1.0, "b": 1.0}, hold_seconds=1000.0, lease=4.0)
    taken = engine.decide("leases", "thread")
    [under] = asyncio.run(store.perform(*engine.decision_task("leases", "loop")))
    assert [lease.lease_seq for lease in store.read(lambda tx: tx.leases(taken.campaign))] == [3]
    assert engine.expire_due() == {}
    asyncio.run(store.perform(*engine.feedback_task(FeedbackReport(under.decision, 1.0, 0.25), "leases")))
    told = store.read(lambda tx: tx.events(taken.campaign)[-1]).at + 1000.0
    answers = (by_thread, by_loop, taken, under)
    print(*(answer.expires_at for answer in answers), told, engine.describe("ads").created_at)
"""


def test_a_postgres_has_one_clock_for_all_servers(tmp_path):
    """Whatever that of a server says, in its event loop and in its threads."""
    with STORES["postgres"](tmp_path) as opener:
        before = time.time()
        server = [sys.executable, "-c", AHEAD, opener.keywords["url"]]
        said = subprocess.run(server, capture_output=True, text=True, timeout=60, check=True).stdout
        *expire, created = map(float, said.split())
        assert before - 10.0 < created < time.time() + 10.0
        assert all(before + 990.0 < each < time.time() + 1010.0 for each in expire)
