"""Copies of a store that is in use, and campaigns that go on from one."""

import sqlite3
import threading

import pytest

from budgetbandits.errors import Conflict, HoldRefused, NotFound, StoreError
from budgetbandits.service.audit.audit import verify
from budgetbandits.service.backup import back_up
from budgetbandits.service.ledger import to_units
from budgetbandits.service.service import DecisionService
from budgetbandits.service.stores.sqlite import SQLiteStore
from called import Service
from stores import all_events

ARMS = {"search": 1.0, "mail": 0.5}


def test_a_copy_of_a_store_in_use_is_of_one_moment(tmp_path, monkeypatch):
    monkeypatch.setattr("budgetbandits.service.backup.PAGES_AT_ONCE", 5)
    over, decided = threading.Event(), threading.Event()
    with SQLiteStore(tmp_path / "money.db") as store:
        engine = DecisionService(store)
        engine.create("ads", "bts", budget=1e6, arms=ARMS)

        def work():
            number = 0
            while not over.is_set():
                made = engine.decide("ads", f"{number}")
                engine.feedback(made.decision, reward=1.0, cost=0.1)
                number += 1
                decided.set()

        for number in range(100):
            engine.decide("ads", f"before {number}")
        worker = threading.Thread(target=work)
        worker.start()
        try:
            for number in range(3):
                decided.clear()
                assert decided.wait(30.0)
                back_up(tmp_path / "money.db", tmp_path / f"copy {number}.db")
        finally:
            over.set()
            worker.join()
        made = len(all_events(store, "ads"))
    counts = []
    for number in range(3):
        with SQLiteStore(tmp_path / f"copy {number}.db") as copy:
            assert verify(copy, "ads") == []
            counts.append(len(all_events(copy, "ads")))
    assert 100 < counts[0] < counts[1] < counts[2] <= made
    assert (tmp_path / "copy 0.db").stat().st_mode & 0o077 == 0
    assert not list(tmp_path.glob(".*"))


def test_what_cannot_be_copied(tmp_path):
    (tmp_path / "there.db").write_text("")
    with pytest.raises(StoreError, match="new file"):
        back_up(tmp_path / "money.db", tmp_path / "there.db")
    with pytest.raises(StoreError, match="cannot copy"):
        back_up(tmp_path / "money.db", tmp_path / "copy.db")
    (tmp_path / "text").write_text("no database, however long it is " * 100)
    with pytest.raises(StoreError, match="cannot copy"):
        back_up(tmp_path / "text", tmp_path / "copy.db")
    assert not (tmp_path / "copy.db").exists()
    with SQLiteStore(tmp_path / "money.db") as store:
        DecisionService(store).create("ads", "bts", budget=1.0, arms=ARMS)
    back_up(tmp_path / "money.db", tmp_path / "copy.db")
    with sqlite3.connect(tmp_path / "copy.db") as copy:
        assert copy.execute("SELECT name FROM campaign").fetchall() == [("ads",)]


@pytest.mark.parametrize("terms", [{}, {"lease": 5.0}])
def test_a_restored_campaign_waits_until_it_is_said_what_was_spent_since(store, engine, clock, terms):
    engine.create("ads", "bts", budget=100.0, arms=ARMS, **terms)
    for name in ("frozen", "closed"):
        engine.create(name, "bts", budget=10.0, arms=ARMS)
    engine.feedback(engine.decide("frozen", "one").decision, cost=5.0)
    engine.set_status("closed", "closed")
    made = engine.decide("ads", "one")
    clock.now += 100.0
    assert sorted(engine.mark_restored(actor="me")) == ["ads", "frozen"]
    assert engine.mark_restored() == []
    assert engine.describe("ads")["status"] == "paused"
    for campaign in ("ads", "frozen"):
        assert verify(store, campaign) == []
        with pytest.raises(Conflict, match="1970-01-01 00:16 UTC; say what it has spent since"):
            engine.set_status(campaign, "active")
    with pytest.raises(HoldRefused, match="restored from a copy"):
        engine.decide("ads", "two")
    engine.feedback(made.decision, reward=1.0, cost=0.25)  # what was there goes on
    with pytest.raises(NotFound):
        engine.feedback("0" * 32, cost=0.25, campaign="ads")  # made since the copy
    engine.set_status("ads", "active", "key", "me", 7.5)
    engine.set_status("ads", "active", "key", "me", 7.5)  # once
    account = engine.account("ads")
    assert (to_units(account.spent), account.status, account.overrun) == (7.75, "active", 0)
    with pytest.raises(Conflict, match="was not restored"):
        engine.set_status("ads", "active", spent_since=1.0)
    engine.decide("ads", "two")
    assert verify(store, "ads") == []
    kinds = [event.kind for event in all_events(store, "ads") if event.actor == "me"]
    assert kinds == ["restored", "spent elsewhere", "active"]


def test_more_than_is_left_was_spent_since(store, engine):
    engine.create("ads", "bts", budget=10.0, arms=ARMS)
    engine.decide("ads", "one")
    engine.mark_restored()
    engine.set_status("ads", "active", spent_since=12.0)
    account = engine.account("ads")
    assert account.spent + account.held == account.budget
    assert to_units(account.spent + account.overrun) == 12.0
    with pytest.raises(HoldRefused):
        engine.decide("ads", "two")
    assert verify(store, "ads") == []


def test_a_restored_campaign_is_resumed_over_http(store, engine):
    """Only with what was spent since; asked again under the same key, once."""
    service, path = Service(store), "/v1/campaigns/ads/resume"
    engine.create("ads", "bts", budget=10.0, arms=ARMS)
    engine.mark_restored()
    assert service("POST", path).status_code == 409
    for body in ({"spent_since": -1}, {"spent_since": "1"}, {"spent": 1}):
        assert service("POST", path, body).status_code == 422
    answers = [service("POST", path, {"spent_since": 7.5}, Idempotency_Key="one") for _ in range(2)]
    assert [each.json()["spent"] for each in answers] == [7.5, 7.5]
    assert service("POST", path, {"spent_since": 2.5}, Idempotency_Key="one").status_code == 409
    assert service("POST", path, {"spent_since": 2.5}).status_code == 409  # it is not restored any more
    assert service("POST", path).json()["status"] == "active"
    assert verify(store, "ads") == []
