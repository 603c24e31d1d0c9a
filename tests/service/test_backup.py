"""Copies of a store that is in use, and campaigns that go on from one."""

import shutil
import sqlite3
import threading
from contextlib import suppress

import pytest

from budgetbandits.errors import BadState, Conflict, HoldRefused, NotAllowed, NotFound, StoreError
from budgetbandits.service import webhooks
from budgetbandits.service.audit.audit import verify
from budgetbandits.service.backup import back_up, restoring
from budgetbandits.service.deliveries import Deliveries
from budgetbandits.service.http.auth import KeyRing, drop_key, hand_over_first_key, make_key, prefix_of, turn_on_keys
from budgetbandits.service.ledger import to_units
from budgetbandits.service.service import DecisionService
from budgetbandits.service.stores.sqlite import SQLiteStore
from called import Service
from stores import all_events, tamper

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


def a_store(path, *names):
    """Of campaigns with these names, each with a decision."""
    with SQLiteStore(path) as store:
        engine = DecisionService(store)
        for name in names:
            engine.create(name, "bts", budget=100.0, arms=ARMS)
            engine.decide(name, "one")


def test_a_log_that_another_store_has_left_is_not_read_into_a_copy(tmp_path):
    """A killed server leaves a log next to its file; SQLite would take it for that of whatever has the file's name."""
    a_store(tmp_path / "copy.db", "ads")
    (tmp_path / "killed").mkdir()
    with SQLiteStore(tmp_path / "money.db") as store:
        DecisionService(store).create("other", "bts", budget=1.0, arms=ARMS)
        for file in tmp_path.glob("money.db*"):
            shutil.copy(file, tmp_path / "killed")
    target = tmp_path / "killed" / "money.db"
    target.unlink()
    with pytest.raises(StoreError, match=r"money.db-wal is of another database; move it"):
        back_up(tmp_path / "copy.db", target)
    target.with_name("money.db-wal").unlink()
    back_up(tmp_path / "copy.db", target)
    with SQLiteStore(target) as store:
        assert DecisionService(store).names() == ["ads"]


@pytest.mark.parametrize("content", [b"", "a database of another program"])
def test_what_is_no_store_is_not_restored(tmp_path, content):
    file = tmp_path / "copy.db"
    if content:
        with sqlite3.connect(file) as other:
            other.execute("CREATE TABLE campaign (name TEXT)")
    else:
        file.write_bytes(content)
    with pytest.raises(StoreError, match=r"copy.db is no store of budgetbandits"):
        back_up(file, tmp_path / "money.db")
    assert not list(tmp_path.glob("*money*"))


def test_a_store_has_its_name_when_all_its_campaigns_are_paused(tmp_path):
    """However restoring is interrupted, no server finds campaigns that go on as if nothing was spent since."""
    a_store(tmp_path / "copy.db", "ads", "mail")
    target = tmp_path / "money.db"
    with suppress(KeyboardInterrupt), restoring(tmp_path / "copy.db", target):
        raise KeyboardInterrupt
    assert not list(tmp_path.glob("*money*"))
    (tmp_path / ".money.db.restored").write_text("left by one that was killed")
    with restoring(tmp_path / "copy.db", target) as new, SQLiteStore(new) as store:
        assert not target.exists()
        assert DecisionService(store).mark_restored() == ["ads", "mail"]
    with SQLiteStore(target) as store:
        assert {row.status for row in DecisionService(store).overview()} == {"paused"}
    assert list(tmp_path.glob("*money*")) == [target]
    with pytest.raises(StoreError, match="new file"), restoring(tmp_path / "copy.db", target):
        pass


def test_a_damaged_campaign_does_not_keep_others_from_being_paused(tmp_path):
    with SQLiteStore(tmp_path / "money.db") as store:
        engine = DecisionService(store)
        id = engine.create("damaged", "bts", budget=100.0, arms=ARMS, lease=5.0)
        engine.decide("damaged", "one")
    a_store(tmp_path / "money.db", "ads")
    tamper(tmp_path / "money.db", f"UPDATE arm SET learned = '[]' WHERE campaign = '{id}'")
    with SQLiteStore(tmp_path / "money.db") as store:
        engine = DecisionService(store)
        with pytest.raises(BadState, match="restore an undamaged copy"):
            engine.mark_restored()
        assert engine.describe("ads").status == "paused"


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
    assert engine.describe("ads").status == "paused"
    for campaign in ("ads", "frozen"):
        assert verify(store, campaign) == []
        with pytest.raises(
            Conflict, match=r"1970-01-01 00:16 UTC; say what it has spent since .* same --store or --url"
        ):
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
    with pytest.raises(Conflict, match="booked already, as its events show, or it was never restored"):
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
    engine.create("ads", "bts", budget=10.0, arms=ARMS)
    engine.mark_restored()
    service, path = Service(store), "/v1/campaigns/ads/resume"
    assert service("POST", path).status_code == 409
    for body in ({"spent_since": -1}, {"spent_since": "1"}, {"spent": 1}):
        assert service("POST", path, body).status_code == 422
    answers = [service("POST", path, {"spent_since": 7.5}, Idempotency_Key="one") for _ in range(2)]
    assert [each.json()["spent"] for each in answers] == [7.5, 7.5]
    assert service("POST", path, {"spent_since": 2.5}, Idempotency_Key="one").status_code == 409
    assert service("POST", path, {"spent_since": 2.5}).status_code == 409  # it is not restored any more
    assert service("POST", path).json()["status"] == "active"
    assert verify(store, "ads") == []


def test_a_key_that_was_dropped_since_the_copy_is_refused_after_a_restore(tmp_path, capsys):
    """Who has it could make another with it."""
    with SQLiteStore(tmp_path / "money.db") as store:
        leaked, own = (make_key(store, ["admin"], 0.0) for _ in range(2))
        back_up(tmp_path / "money.db", tmp_path / "copy.db")
        drop_key(store, prefix_of(leaked))
    with restoring(tmp_path / "copy.db", tmp_path / "restored.db") as new, SQLiteStore(new) as store:
        DecisionService(store).mark_restored(actor="me")
    with SQLiteStore(tmp_path / "restored.db") as store:
        hand_over_first_key(store, tmp_path / "first.key")
        assert "All keys are off" in capsys.readouterr().out
        assert not (tmp_path / "first.key").exists()
        service = Service(store)  # which makes a key of its own
        for key in (leaked, own):
            answer = service("POST", "/v1/keys", {"scopes": ["admin"]}, key=key)
            assert answer.status_code == 401
            assert f"budgetbandits key turn-on bb_{prefix_of(key)}" in answer.json()["detail"]
        assert turn_on_keys(store, [prefix_of(own)], "me") == [prefix_of(own)]
        assert turn_on_keys(store, [prefix_of(own)], "me") == []
        assert service("GET", "/v1/campaigns", key=own).status_code == 200
        listed = {each["prefix"]: each["off"] for each in service("GET", "/v1/keys").json()}
        assert listed == {prefix_of(leaked): True, prefix_of(own): False, prefix_of(service.admin): False}


class Recorder:
    """A sender whose notifications are all accepted; the ids of their webhooks."""

    def __init__(self):
        self.sent = []

    def send(self, hook, delivery):
        self.sent.append(hook.id)

    def deliver(self, store):
        """How many of those that are due are accepted."""
        sending = Deliveries(store, self)
        sending.start()
        sending.wait()
        return sending.results()[0]


def test_all_keys_and_webhooks_are_off_after_a_restore_until_they_are_turned_on(store, engine):
    sender, keys = Recorder(), [make_key(store, ["read"], 0.0) for _ in range(2)]
    one, other = (webhooks.make_webhook(store, f"https://example.org/{path}").id for path in "ab")
    engine.create("ads", "bts", budget=10.0, arms=ARMS)
    webhooks.look(store)
    engine.set_status("ads", "paused")
    webhooks.look(store)  # what waits in the copy
    engine.mark_restored(actor="me")
    ring = KeyRing(store)
    for key in keys:
        with pytest.raises(NotAllowed, match="is off since the store was restored") as refused:
            ring.check(key, "read")
        assert not refused.value.key_valid
    assert {hook.off for hook in store.read(webhooks.listed)} == {True}
    webhooks.look(store)
    assert (sender.deliver(store), sender.sent) == (0, [])
    webhooks.turn_on_webhooks(store, [one])
    turn_on_keys(store, [prefix_of(keys[0])])
    ring.check(keys[0], "read")
    assert sender.deliver(store) == len(sender.sent) == 1  # of before the copy; not that it was restored
    engine.set_status("ads", "active", spent_since=0.0)
    webhooks.look(store)
    assert sender.deliver(store) == 1
    assert set(sender.sent) == {one}
    with pytest.raises(NotFound):
        turn_on_keys(store, ["nothing"])
    with pytest.raises(NotFound):
        webhooks.turn_on_webhooks(store, [other, "nothing"])
    assert [(hook.id, hook.off) for hook in store.read(webhooks.listed)] == [(one, False), (other, True)]
    kinds = [(event.kind, event.prefix, event.actor) for event in store.read(lambda tx: tx.key_events(10))]
    off = [("turned off", prefix_of(key), "me") for key in keys]
    assert set(kinds[:3]) == {("turned on", prefix_of(keys[0]), None), *off}
