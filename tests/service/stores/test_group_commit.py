"""What waits for the end of a transaction is seen before, and is written once."""

import threading
from dataclasses import replace

import pytest

from budgetbandits.errors import StoreError
from budgetbandits.service.ledger import Account
from budgetbandits.service.stores.contract import Scope
from budgetbandits.service.stores.records import ArmRow, Campaign, CampaignSettings, Event
from budgetbandits.service.stores.sqlite import SQLiteStore
from budgetbandits.terms import Terms

ONE = Campaign("c1", "ads", "bts", Account(1000, 100, 50), 7.5, CampaignSettings(Terms(), 50, "plain"), {"tag": "x"})
ARMS = [ArmRow("c1", 0, "search", 40, {"pulls": 2}), ArmRow("c1", 1, "mail", 50, {"pulls": 1})]


def fill(store):
    store.write(lambda tx: (tx.add_campaign(ONE), tx.add_arms(ARMS)))


def test_a_transaction_sees_what_it_has_changed(store):
    fill(store)

    def work(tx):
        tx.save_campaign(replace(tx.campaign("c1").with_money(Account(1000, 101, 49)), learned={"tag": "y"}))
        tx.save_arms([replace(ARMS[0], learned={"pulls": 3})])
        tx.save_money(tx.campaign("ads").with_money(Account(1000, 102, 48)))
        tx.add_event(Event("c1", "one", 1.0))
        tx.add_event(Event("c1", "two", 2.0))
        seen = [tx.campaigns(), tx.arms("c1"), tx.campaign("c1")]
        tx.add_event(Event("c1", "three", 3.0))
        return seen, [each.kind for each in tx.events("c1")]

    seen, kinds = store.write(work, Scope("c1"))
    now = replace(ONE, account=Account(1000, 102, 48), learned={"tag": "y"})
    assert seen == [[now], [replace(ARMS[0], learned={"pulls": 3}), ARMS[1]], now]
    assert kinds == ["one", "two", "three"]
    assert store.read(lambda tx: [tx.campaigns(), tx.arms("c1"), tx.campaign("ads")]) == seen


def test_what_is_refused_in_the_end_is_refused_alone(store):
    """The rows wait, so the database sees them when the piece that changed them is over."""
    fill(store)
    gate = threading.Event()
    waiting = [store.submit(lambda tx: gate.wait(5), Scope("c1"))]  # the others go together
    waiting += [store.submit(lambda tx: tx.add_event(Event("c1", "good", 1.0)), Scope("c1"))]
    waiting += [store.submit(lambda tx: tx.save_arms([replace(ARMS[0], active=None)]), Scope("c1"))]
    waiting += [store.submit(lambda tx: tx.add_event(Event("c1", "good as well", 2.0)), Scope("c1"))]
    gate.set()
    with pytest.raises(StoreError, match="the store refused"):
        waiting.pop(2).result(5)
    for each in waiting:
        each.result(5)
    assert [each.kind for each in store.read(lambda tx: tx.events("c1"))] == ["good", "good as well"]
    assert store.read(lambda tx: tx.arms("c1")) == ARMS


def test_a_row_that_many_have_changed_is_written_once(tmp_path):
    with SQLiteStore(tmp_path / "money.db") as store:
        fill(store)
        statements, gate = [], threading.Event()
        first = store.submit(lambda tx: gate.wait(5))

        def spend(tx):
            row = tx.campaign("c1")
            account = replace(row.account, spent=row.account.spent + 1)
            tx.save_campaign(row.with_money(account))
            tx.save_arms([replace(ARMS[0], learned={"pulls": account.spent})])

        others = [store.submit(spend) for _ in range(20)]
        store._writer._connection.set_trace_callback(statements.append)
        gate.set()
        for each in (first, *others):
            each.result(5)
        assert [text.split()[:2] for text in statements if text.startswith("UPDATE")] == [
            ["UPDATE", "campaign"], ["UPDATE", "arm"],
        ]  # fmt: skip
        assert store.read(lambda tx: tx.campaign("c1")).account.spent == 120
        assert store.read(lambda tx: tx.arms("c1"))[0].learned == {"pulls": 120}
