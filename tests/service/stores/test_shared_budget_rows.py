"""What every store must do with shared budgets: keep them, and move them with the money of their campaigns."""

import asyncio
from dataclasses import replace

import pytest

from budgetbandits.errors import StoreError
from budgetbandits.service.audit.audit import verify
from budgetbandits.service.feedback import FeedbackReport
from budgetbandits.service.ledger import Account
from budgetbandits.service.service import DecisionService
from budgetbandits.service.shared_budgets.audit import verify_shared_budget
from budgetbandits.service.shared_budgets.rules import SharedBudget, SharedSettings
from budgetbandits.service.stores.contract import Scope
from budgetbandits.service.stores.records import Campaign, CampaignSettings, Event
from budgetbandits.terms import Terms
from stores import STORES, in_threads

SHARED = SharedBudget(
    "all", Account(1000, 100, 50, 5, leased=90, period=7), 3.5,
    SharedSettings(Terms(currency="EUR", period="month", period_budget=2.0, time_zone="Europe/Berlin"), ("c9",)),
)  # fmt: skip
MEMBER = Campaign(
    "c1", "ads", "bts", Account(500, 10, 20), 7.5, CampaignSettings(Terms(shared_budget="all"), 9, "plain"), {}
)


@pytest.fixture
def filled(store):
    def work(tx):
        tx.shared_budgets().add(SHARED)
        tx.add_campaign(MEMBER)
        tx.add_campaign(replace(MEMBER, id="c2", name="other", settings=CampaignSettings(Terms(), 9, "plain")))

    store.write(work)
    return store


def read(store):
    return store.read(lambda tx: tx.shared_budget("all"))


def test_shared_budgets_come_back_as_they_went(filled):
    assert read(filled) == SHARED
    assert filled.read(lambda tx: (tx.shared_budget("none"), tx.shared_budgets().all())) == (None, [SHARED])
    assert filled.read(lambda tx: (tx.shared_budgets().members("all"), tx.shared_budgets().count())) == (["c1"], 1)
    assert filled.read(lambda tx: tx.shared_budgets().of_campaigns(["c1", "c2"])) == {"c1": SHARED}
    changed = replace(SHARED, account=Account(2000, 1), settings=SharedSettings())
    filled.write(lambda tx: tx.save_shared_settings(changed))
    assert read(filled) == changed
    with pytest.raises(StoreError):
        filled.write(lambda tx: tx.shared_budgets().add(SHARED))


def test_writing_a_member_moves_its_shared_budget(filled):
    def work(tx):
        row = tx.campaign("c1")
        tx.save_money(row.with_money(Account(500, 15, 40, leased=10)))
        tx.save_campaign(tx.campaign("c1").with_money(Account(500, 16, 0, 3, leased=10)))
        tx.save_settings(tx.campaign("ads").with_money(Account(500)))  # which writes no money
        other = tx.campaign("c2")
        tx.save_money(other.with_money(Account(500, 400)))

    filled.write(work, Scope("c1"))
    assert read(filled).account == Account(1000, 106, 30, 8, leased=100, period=7)
    assert filled.read(lambda tx: tx.campaign("c1")).account == Account(500, 16, 0, 3, leased=10)


def test_nothing_moves_where_anything_fails(filled):
    def too_much(tx):
        row = tx.campaign("c1")
        tx.save_money(row.with_money(Account(5000, 800)))

    with pytest.raises(ArithmeticError):
        filled.write(too_much, Scope("c1"))

    def fails(tx):
        row = tx.campaign("c1")
        tx.save_money(row.with_money(Account(500, 100)))
        raise KeyError

    with pytest.raises(KeyError):
        filled.write(fails, Scope("c1"))
    assert (read(filled), filled.read(lambda tx: tx.campaign("c1"))) == (SHARED, MEMBER)


def test_the_database_refuses_too_much(filled):
    """Written past the rules: the CHECK is the second lock on the door."""
    broken = object.__new__(Account)
    for name, value in vars_of(SHARED.account, spent=900).items():
        object.__setattr__(broken, name, value)

    def work(tx):
        tx.campaign("c1")
        tx.save_shared_budget(SHARED.with_money(broken))

    with pytest.raises(StoreError, match="refused"):
        filled.write(work, Scope("c1"))
    assert read(filled) == SHARED


def vars_of(account, **others):
    return {name: getattr(account, name) for name in Account.__slots__} | others


def test_an_event_keeps_what_was_left(filled):
    event = Event("c1", "decided", 1.0, "d1", 0, 5, shared_left=7)
    filled.write(lambda tx: tx.add_event(event), Scope("c1"))
    assert filled.read(lambda tx: tx.events("c1")) == [replace(event, seq=1)]


def test_a_members_decision_takes_two_round_trips_in_postgres(postgres, trips):
    with postgres() as store:
        engine = DecisionService(store)
        engine.shared_budgets.create("all", 1e6)
        campaign = engine.create("ads", "bts", 1e6, {"a": 1.0, "b": 0.5}, shared_budget="all")

        async def decide(count, name):
            tasks = [engine.decision_task(campaign, f"{name} {number}") for number in range(count)]
            return [made for [made] in await asyncio.gather(*(store.perform(*task) for task in tasks))]

        async def play():
            [first] = await decide(1, "first")  # reads the arms as well, and learns which shared budget it is
            for count in (1, 20):
                trips.clear()
                made = await decide(count, count)
                assert len(trips) == 2
                assert trips[0].count("SELECT shared_budget") == trips[1].count("UPDATE shared_budget") == 1
                told = [engine.feedback_task(FeedbackReport(each.decision, 1.0, 0.25), campaign) for each in made]
                await asyncio.gather(*(store.perform(*task) for task in told))
                assert len(trips) == 4
            await store.perform(*engine.void_task(first.decision, campaign))
            await asyncio.to_thread(engine.change_terms, "ads", {"shared_budget": None})
            await decide(1, "has left")
            trips.clear()
            await decide(1, "knows it")
            assert [call for trip in trips for call in trip if "shared" in call] == []

        asyncio.run(play())
        assert verify_shared_budget(store, "all") == []


def test_members_never_deadlock_in_postgres(tmp_path, monkeypatch):
    """Two servers, eight campaigns under two shared budgets, some of which lease; operators change both meanwhile."""
    again = []
    with STORES["postgres"](tmp_path) as opener, opener() as one, opener() as two:
        writer = type(one._writers[0])
        monkeypatch.setattr(writer, "is_retryable", lambda self, error: again.append(error) or True)
        engines = [DecisionService(one), DecisionService(two)]
        for name in ("all", "rest"):
            engines[0].shared_budgets.create(name, 1e5)
        lease, arms = {"lease": 20.0, "lease_seconds": 0.2}, {"a": 1.0, "b": 0.5}
        campaigns = [
            engines[0].create(f"campaign {n}", "bts", 1e6, arms, shared_budget=("all", "rest")[n % 2],
                              **(lease if n > 5 else {}))
            for n in range(8)
        ]  # fmt: skip

        async def client(engine, store, name):
            for number in range(15):
                campaign = campaigns[(name * 5 + number * 3) % 8]
                [answer] = await store.perform(*engine.decision_task(campaign, f"{name}-{number}"))
                await store.perform(*engine.feedback_task(FeedbackReport(answer.decision, 1.0, 0.25), campaign))

        async def clients(engine, store, first):
            await asyncio.gather(*(client(engine, store, first + n) for n in range(8)))

        def run(number):
            if number < 2:
                asyncio.run(clients(engines[number], (one, two)[number], 8 * number))
                return
            for step in range(10):
                engines[number % 2].shared_budgets.change(("all", "rest")[step % 2], {"budget": 1e5 + step})
                engines[number % 2].top_up(campaigns[(step * 3 + number) % 8], 1.0)
                engines[number % 2].expire_due()

        in_threads(run, range(4))
        assert [error for error in again if "deadlock" in str(error)] == []
        for name in ("all", "rest"):
            assert verify_shared_budget(one, name) == []
        assert all(verify(one, campaign) == [] for campaign in campaigns)
