"""Leases on every store: two servers at once, from event loops and from threads, and what PostgreSQL locks."""

import asyncio
import random
import threading
import time
from dataclasses import replace

import pytest

from budgetbandits.errors import HoldRefused
from budgetbandits.service.audit.audit import verify
from budgetbandits.service.feedback import FeedbackReport
from budgetbandits.service.ledger import Account, to_units
from budgetbandits.service.service import DecisionService
from budgetbandits.service.stores.contract import Scope
from budgetbandits.service.stores.records import Lease
from stores import all_decisions, all_events, in_threads

ARMS = {"a": 1.0, "b": 0.5}


async def decided(store, engine, key, campaign="ads", **more):
    """The decision under this key, asked for until there is one; None when the money is gone."""
    while True:
        try:
            return (await store.perform(*engine.decision_task(campaign, key, **more)))[0]
        except HoldRefused as refused:
            if refused.reason == "exhausted":
                return None
            await asyncio.sleep(0.005)


def whole(store, budget):
    """Nothing is held or leased, less than the smallest cap is left, and the audit agrees."""
    account = DecisionService(store).account("ads")
    rows = all_decisions(store, "ads")
    assert (account.held, account.leased) == (0, 0)
    assert account.spent == sum(row.hold.charged for row in rows)
    assert budget - 0.5 < to_units(account.spent) <= budget
    assert verify(store, "ads") == []
    return [event.kind for event in all_events(store, "ads")]


@pytest.mark.parametrize("policy", ["bts", "epsilon-first:epsilon=0.2"])
def test_event_loops_of_two_servers_spend_one_budget_by_leases(opener, policy):
    """Feedback goes to either server, some keys are asked for at both at once, and money is changed in between."""
    with opener() as one, opener() as two:
        servers, chance = [(store, DecisionService(store)) for store in (one, two)], random.Random(2)
        servers[0][1].create("ads", policy, 60.0, ARMS, lease=10.0, lease_seconds=0.1)

        async def client(name):
            for number in range(10_000):
                key, turn = f"{name} {number}", chance.randrange(2)
                if number % 5:
                    made = await decided(*servers[turn], key)
                else:
                    made, again = await asyncio.gather(*(decided(*server, key) for server in servers))
                    assert made == again
                if made is None:
                    return
                store, engine = chance.choice(servers)
                for told in ({"cost": made.hold}, {"reward": 1.0}):
                    outcome = FeedbackReport(made.decision, **told)
                    booked, repeated = await asyncio.gather(
                        store.perform(*engine.feedback_task(outcome, "ads")),
                        store.perform(*engine.feedback_task(outcome, "ads")),
                    )
                    assert (booked.overrun, repeated.cost_is_new) == (0.0, False)

        async def clients():
            await asyncio.gather(*(client(name) for name in range(6)))

        asyncio.run(clients())
        assert {"leased", "merged", "returned"} < set(whole(one, 60.0))


@pytest.mark.parametrize("terms", [{}, {"lease": 5.0, "lease_seconds": 0.1}])
def test_threads_of_two_servers_spend_one_budget(opener, terms):
    """To the last hold, with leases and without."""
    with opener() as one, opener() as two:
        engines = [DecisionService(one), DecisionService(two)]
        engines[0].create("ads", "bts", 40.0, ARMS, **terms)

        def spend(name):
            number = 0
            while True:
                try:
                    answer = engines[name % 2].decide("ads", f"{name}-{number}")
                except HoldRefused as refused:
                    if refused.reason == "exhausted":
                        return
                    continue
                engines[number % 2].feedback(answer.decision, reward=1.0, cost=answer.hold)
                engines[number % 3 % 2].expire_due()
                number += 1

        in_threads(spend, range(8))
        assert ("leased" in whole(two, 40.0)) == bool(terms)


def test_under_a_lease_a_postgres_decision_takes_two_round_trips_and_no_lock_of_the_campaign(postgres, trips):
    with postgres() as one, postgres() as two:
        import psycopg

        engines = [DecisionService(one), DecisionService(two)]
        engines[0].create("ads", "bts", 1e6, ARMS, lease=1000.0, lease_seconds=600.0)

        async def play():
            for store, engine in zip((one, two), engines, strict=True):
                made = await decided(store, engine, f"takes a lease {id(store)}")
                await store.perform(*engine.feedback_task(FeedbackReport(made.decision, 1.0, 0.25), "ads"))
            with psycopg.connect(postgres.keywords["url"]) as keeper:
                keeper.execute("SELECT 1 FROM campaign FOR UPDATE")  # nobody else gets at it
                for count in (1, 20):
                    trips.clear()
                    made = await asyncio.gather(*(decided(one, engines[0], f"{count} {n}") for n in range(count)))
                    assert trips == [
                        ["BEGIN", "SELECT lease", "SELECT", "SELECT decision"],
                        ["UPDATE lease", "WITH decision", "INSERT event", "COMMIT"],
                    ]
                    trips.clear()
                    told = [engines[0].feedback_task(FeedbackReport(each.decision, 1.0, 0.25), "ads") for each in made]
                    await asyncio.gather(*(one.perform(*task) for task in told))
                    assert trips[0] == ["BEGIN", "SELECT lease", "SELECT", "SELECT decision"]
                    saved = ["UPDATE decision", "DELETE pending_decision"] * count
                    assert trips[1] == ["UPDATE lease", *saved, "INSERT event", "COMMIT"]
                    assert len(trips) == 2
                made = await decided(one, engines[0], "told elsewhere")
                await two.perform(*engines[1].feedback_task(FeedbackReport(made.decision, 1.0, 0.25), "ads"))
                trips.clear()
                await decided(one, engines[0], "hears of it")
                assert [trip[0] for trip in trips] == ["BEGIN", "SELECT event", "UPDATE lease"]

        asyncio.run(play())
        assert verify(one, "ads") == []


def test_a_postgres_campaign_without_a_lease_is_locked_at_once(postgres, trips):
    """Paused, or near the end of its money: only the first request after the lease has ended is run twice."""
    with postgres() as store:
        engine = DecisionService(store)
        engine.create("ads", "bts", 100.0, ARMS, lease=5.0, lease_seconds=600.0)

        async def play():
            made = [await decided(store, engine, f"{number}") for number in range(2)]
            await asyncio.to_thread(engine.set_status, "ads", "paused")
            for number in range(4):
                if number == 1:
                    trips.clear()
                with pytest.raises(HoldRefused, match="paused"):
                    await store.perform(*engine.decision_task("ads", f"refused {number}"))
            assert trips[0] == ["BEGIN", "SELECT campaign", "SELECT lease", "SELECT", "SELECT decision"]
            await asyncio.gather(
                store.perform(*engine.feedback_task(FeedbackReport(made[0].decision, 1.0, 0.25), "ads")),
                *(store.perform(*engine.decision_task("ads", f"{number}")) for number in range(2)),
            )
            assert [trip[1] for trip in trips if trip[0] == "BEGIN"] == ["SELECT campaign"] * 4

        asyncio.run(play())
        assert engine.account("ads").spent == 250_000
        assert verify(store, "ads") == []


def test_servers_with_leases_on_one_postgres_never_wait_in_a_circle(postgres, monkeypatch):
    """Leases are merged and ended all the time, by both."""
    from psycopg.errors import DeadlockDetected

    seen = []
    with postgres() as one, postgres() as two:
        writer = type(one._writers[0])
        again = writer.is_retryable
        monkeypatch.setattr(writer, "is_retryable", lambda self, error: seen.append(error) or again(self, error))
        servers, chance = [(store, DecisionService(store)) for store in (one, two)], random.Random(5)
        servers[0][1].create("ads", "bts", 1e6, ARMS, lease=6.0, lease_seconds=0.02)

        async def client(name):
            for number in range(20):
                made = await decided(*chance.choice(servers), f"{name} {number}")
                store, engine = chance.choice(servers)
                await store.perform(*engine.feedback_task(FeedbackReport(made.decision, 1.0, 0.25), "ads"))

        async def steer():
            for number in range(10):
                engine = servers[number % 2][1]
                await asyncio.to_thread(engine.top_up, "ads", 1.0)
                await asyncio.to_thread(engine.expire_due)

        async def all_of_it():
            await asyncio.gather(steer(), *(client(name) for name in range(8)))

        asyncio.run(all_of_it())
        assert not [error for error in seen if isinstance(error, DeadlockDetected)]
        assert verify(one, "ads") == []


def test_a_group_on_postgres_does_not_wait_for_a_lease_with_another_one_locked(postgres):
    """Whoever has the first and wants the second would wait for the group, and the group for it."""
    with postgres() as store:
        import psycopg

        campaign = DecisionService(store).create("ads", "bts", 100.0, ARMS, lease=5.0)
        rows = [Lease(id, campaign, Account(10), 1e12) for id in ("l1", "l2")]
        store.write(lambda tx: [tx.add_lease(row) for row in rows])
        gate, begun = threading.Event(), threading.Event()
        first = store.submit(lambda _: begun.set() or gate.wait(30.0), Scope(campaign))
        begun.wait(30.0)
        one = store.submit(lambda tx: tx.save_lease(replace(tx.lease("l2"), lease_seq=7)), Scope(campaign))
        both = store.submit(lambda tx: [lease.lease_seq for lease in tx.leases(campaign)], Scope(campaign))
        with psycopg.connect(postgres.keywords["url"]) as keeper:
            keeper.execute("SELECT 1 FROM lease WHERE id = 'l1' FOR UPDATE")
            gate.set()
            first.result(30.0)
            while store.read(lambda tx: tx.lease("l2")).lease_seq != 7:  # written, though the group waits for the first
                assert not one.done()
                time.sleep(0.01)
            keeper.execute("UPDATE lease SET lease_seq = lease_seq + 1")
        assert both.result(30.0) == [1, 8]
