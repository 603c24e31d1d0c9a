"""Real processes on one store: many at once to the end of the money, and `kill -9` under load, of workers, also
under leases, and of the server."""

import asyncio
import contextlib
import multiprocessing
import os
import random
import signal
import threading
import time
from pathlib import Path

import polars
import pytest

from budgetbandits.client import Client
from budgetbandits.errors import HoldRefused, ServiceUnreachable, StoreError
from budgetbandits.service.audit.audit import verify
from budgetbandits.service.feedback import FeedbackReport
from budgetbandits.service.leases.leases import Leases
from budgetbandits.service.ledger import to_units
from budgetbandits.service.request import checked_options
from budgetbandits.service.retention import Retention
from budgetbandits.service.service import DecisionService
from budgetbandits.service.session_cache import SessionCache
from budgetbandits.service.shared_budgets.audit import verify_shared_budget
from budgetbandits.service.stores import open_store
from budgetbandits.service.stores.sqlite import SQLiteStore
from servers import admin_key, free_port, serving
from stores import STORES, all_decisions, all_events

pytestmark = pytest.mark.crashes

# children of a fresh server process that has imported everything: quick to start, and without our threads
processes = multiprocessing.get_context("forkserver")
processes.set_forkserver_preload(["budgetbandits.service.service", "budgetbandits.service.stores.sqlite"])


def spend(address, campaign, worker, acknowledged, pause=0.0):
    """Decide and settle until the money is gone; every answer is written down once it has been given."""
    with open_store(address) as store, Path(acknowledged).open("a", buffering=1) as notes:
        engine, number = DecisionService(store), 0
        while True:
            try:
                answer = engine.decide(campaign, f"{worker}-{number}")
            except HoldRefused as refused:
                if refused.reason == "exhausted":
                    return
                time.sleep(0.002)
                continue
            notes.write(f"decided {answer.decision}\n")
            engine.feedback(answer.decision, reward=float(number % 2), cost=answer.hold)
            notes.write(f"told {answer.decision}\n")
            number += 1
            time.sleep(pause)


def spend_in_a_loop(address, campaign, worker, acknowledged):
    """Four at once decide and tell in an event loop, until they are killed, and write down every answer. Requests have
    features if the campaign has."""
    with open_store(address) as store, Path(acknowledged).open("a", buffering=1) as notes:
        engine = DecisionService(store)
        features = engine.describe(campaign).features

        async def client(name):
            for number in range(10**9):
                given = None if features is None else {each: float(number % 7) for each in features}
                options = checked_options(features=given)
                task = engine.decision_task(campaign, f"{worker}-{name}-{number}", None, options)
                [made] = await store.perform(*task)
                notes.write(f"decided {made.decision}\n")
                outcome = FeedbackReport(made.decision, float(number % 2), made.hold)
                await store.perform(*engine.feedback_task(outcome, campaign))
                notes.write(f"told {made.decision}\n")

        async def clients():
            await asyncio.gather(*(client(name) for name in range(4)))

        asyncio.run(clients())


def started(work, address, campaign, names, folder):
    arguments = [(address, campaign, name, str(folder / name)) for name in names]
    workers = [processes.Process(target=work, args=each, daemon=True) for each in arguments]
    for worker in workers:
        worker.start()
    return workers


def killed(work, address, campaign, names, folder, pauses):
    """Start the workers, wait until each has had something acknowledged, and kill one after the other."""
    kill_all(started(work, address, campaign, names, folder), names, folder, pauses)


def kill_all(workers, names, folder, pauses):
    while not all((folder / name).exists() and "told" in (folder / name).read_text() for name in names):
        time.sleep(0.005)
    for worker, pause in zip(workers, pauses, strict=True):
        time.sleep(pause)
        os.kill(worker.pid, signal.SIGKILL)
        worker.join()


def checked(store, campaign, folder):
    """Nothing acknowledged is lost, and the books agree with the events; how many decisions were acknowledged."""
    notes = [line.split() for file in folder.iterdir() for line in file.read_text().splitlines()]
    rows = {id: store.read(lambda tx, id=id: tx.decision(id)) for _, id in notes}
    assert all(row is not None for row in rows.values())
    assert all(rows[id].hold.state == "settled" for kind, id in notes if kind == "told")
    assert verify(store, campaign) == []
    account = DecisionService(store).account(campaign)
    assert account.spent + account.held <= account.budget
    return len(rows)


def expired(store):
    """What the dead held is resolved like anything else."""
    engine = DecisionService(store, clock=lambda: time.time() + 10.0)
    while engine.expire_due():
        pass
    assert verify(store, "ads") == []
    return engine.account("ads")


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "notes").mkdir()
    return tmp_path / "notes"


def test_eight_processes_spend_one_budget_to_the_last_hold(tmp_path, folder):
    path = str(tmp_path / "money.db")
    with SQLiteStore(path) as store:
        campaign = DecisionService(store).create("ads", "bts", budget=400.0, arms={"a": 1.0, "b": 0.75, "c": 0.5})
    for worker in started(spend, path, campaign, [f"w{n}" for n in range(8)], folder):
        worker.join(timeout=120)
        assert worker.exitcode == 0
    with SQLiteStore(path) as store:
        assert checked(store, campaign, folder) >= 400
        account = DecisionService(store).account(campaign)
    assert account.held == 0
    assert to_units(account.left) < 0.5  # less than the cheapest hold, and never below 0


def test_fifty_kills_under_load_lose_nothing_acknowledged(tmp_path, folder):
    path, chance = str(tmp_path / "money.db"), random.Random(4)
    with SQLiteStore(path) as store:
        campaign = DecisionService(store).create("ads", "bts", budget=1e6, arms={"a": 1.0, "b": 0.75}, hold_seconds=1.0)
    for batch in range(10):
        names = [f"w{batch}-{n}" for n in range(5)]
        killed(spend, path, campaign, names, folder, [chance.random() * 0.05 for _ in names])
    with SQLiteStore(path) as store:
        assert checked(store, campaign, folder) >= 50
        assert expired(store).held == 0


@pytest.mark.parametrize("features", [{}, {"features": ["length", "code"], "horizon": 1e6}], ids=["plain", "features"])
@pytest.mark.parametrize("name", STORES)
def test_kills_under_leases_lose_nothing_and_leave_nothing_leased(name, features, tmp_path, folder):
    chance = random.Random(6)
    with STORES[name](tmp_path) as opener:
        address, terms = str(next(iter(opener.keywords.values()))), {"lease": 30.0, "lease_seconds": 0.3, **features}
        with opener() as store:
            DecisionService(store).create("ads", None, 1e6, {"a": 1.0, "b": 0.75}, hold_seconds=1.0, **terms)
        for batch in range(5):
            names = [f"w{batch}-{number}" for number in range(3)]
            killed(spend_in_a_loop, address, "ads", names, folder, [chance.random() * 0.03 for _ in names])
        with opener() as store:
            checked(store, "ads", folder)
            account, made = expired(store), all_decisions(store, "ads")
            assert (account.held, account.leased, account.overrun) == (0, 0, 0)
            assert account.spent == sum(row.hold.charged for row in made)
            kinds = [event.kind for event in all_events(store, "ads")]
            assert kinds.count("leased") >= 15
            assert kinds.count("returned") == kinds.count("leased")


@pytest.mark.parametrize("terms", [{}, {"lease": 30.0, "lease_seconds": 0.3}], ids=["plain", "leases"])
@pytest.mark.parametrize("name", STORES)
def test_kills_of_workers_of_two_campaigns_that_share_a_budget(name, terms, tmp_path, folder):
    """The shared account is the sum of both after every kill, and in the end nothing is held or leased there."""
    chance, members = random.Random(7), ("spring", "summer")
    folders = {member: folder / member for member in members}
    for each in folders.values():
        each.mkdir()
    with STORES[name](tmp_path) as opener:
        address = str(next(iter(opener.keywords.values())))
        with opener() as store:
            engine = DecisionService(store)
            engine.shared_budgets.create("marketing", 1e6)
            for member in members:
                arms = {"a": 1.0, "b": 0.75}
                engine.create(member, "bts", 1e6, arms, hold_seconds=1.0, shared_budget="marketing", **terms)
        for batch in range(4):
            workers, names = [], []
            for member in members:
                names += (mine := [f"{member}/w{batch}-{number}" for number in range(2)])
                workers += started(spend_in_a_loop, address, member, mine, folder)
            kill_all(workers, names, folder, [chance.random() * 0.03 for _ in names])
            with opener() as store:
                assert verify_shared_budget(store, "marketing") == []
        with opener() as store:
            for member in members:
                checked(store, member, folders[member])
            engine = DecisionService(store, clock=lambda: time.time() + 10.0)
            while engine.expire_due():
                pass
            account, own = engine.shared_budgets.account("marketing"), [engine.account(each) for each in members]
            assert (account.held, account.leased, account.overrun) == (0, 0, 0)
            assert account.spent == own[0].spent + own[1].spent > 0
            assert verify_shared_budget(store, "marketing") == []


def test_processes_on_two_campaigns_spend_what_they_share_to_the_last_hold(tmp_path, folder):
    path = str(tmp_path / "money.db")
    with SQLiteStore(path) as store:
        engine = DecisionService(store)
        engine.shared_budgets.create("marketing", 200.0)
        for member in ("spring", "summer"):
            engine.create(member, "bts", 150.0, {"a": 1.0, "b": 1.0}, shared_budget="marketing")
    workers = [
        worker
        for member in ("spring", "summer")
        for worker in started(spend, path, member, [f"{member}{n}" for n in range(3)], folder)
    ]
    for worker in workers:
        worker.join(timeout=120)
        assert worker.exitcode == 0
    with SQLiteStore(path) as store:
        account = DecisionService(store).shared_budgets.account("marketing")
        assert (account.spent, account.held) == (200_000_000, 0)
        assert sum("decided" in line for file in folder.iterdir() for line in file.read_text().splitlines()) == 200
        assert verify_shared_budget(store, "marketing") == []


def test_a_server_that_is_killed_under_load_loses_nothing_acknowledged(tmp_path):
    """Four clients go on through five `kill -9`; each asks again under its key until it has an answer."""
    port = free_port()
    server, notes, over = serving(tmp_path, port), [], threading.Event()
    address, key = f"http://127.0.0.1:{port}", admin_key(tmp_path)

    def until_answered(ask):
        while True:
            with contextlib.suppress(ServiceUnreachable):
                return ask()

    def work(name):
        with Client(address, key) as client:
            number = 0
            while not over.is_set():
                d = until_answered(lambda: client.decide("ads", key=f"{name} {number}"))  # noqa: B023
                notes.append(("decided", d.id))
                until_answered(lambda: d.settle(reward=float(number % 2), cost=d.hold / 2))  # noqa: B023
                notes.append(("told", d.id))
                number += 1

    with Client(address, key) as client:
        client.create("ads", 1e6, {"a": 1.0, "b": 0.75})
    workers = [threading.Thread(target=work, args=(f"w{n}",)) for n in range(4)]
    for worker in workers:
        worker.start()
    for _ in range(5):
        seen = len(notes)
        while len(notes) < seen + 40:
            time.sleep(0.005)
        server.kill()
        server.wait()
        server = serving(tmp_path, port)
    over.set()
    for worker in workers:
        worker.join()
    server.terminate()
    assert server.wait() == 0
    decided, told = ([id for what, id in notes if what == kind] for kind in ("decided", "told"))
    assert len(decided) == len(set(decided)) == len(told) >= 100
    with SQLiteStore(tmp_path / "budgetbandits.db") as store:
        rows = all_decisions(store, store.read(lambda tx: tx.campaign("ads").id))
        assert {row.id for row in rows} == set(decided)  # nothing lost, and nothing decided twice
        assert all(row.hold.state == "settled" for row in rows)
        assert verify(store, "ads") == []


def spend_slowly(address, campaign, worker, acknowledged):
    spend(address, campaign, worker, acknowledged, 0.02)


def prune_until_killed(address, folder, steps):
    """Prune, and end by `kill -9` after this many steps."""
    left = steps

    def reached(_step):
        nonlocal left
        left -= 1
        if left < 0:
            os.kill(os.getpid(), signal.SIGKILL)

    # on a busy machine another process may keep the file for too long
    with open_store(address) as store, contextlib.suppress(StoreError):
        Retention(store, Leases(SessionCache(), None), reached=reached, rest=0.5).prune("ads", folder, 0.0)


@pytest.mark.parametrize("terms", [{}, {"lease": 30.0, "lease_seconds": 0.3}], ids=["plain", "leases"])
@pytest.mark.parametrize("name", STORES)
def test_prunings_that_are_killed_at_ten_points_under_load_lose_and_double_nothing(name, terms, tmp_path, folder):
    archive = tmp_path / "archive"
    with STORES[name](tmp_path) as opener:
        address = str(next(iter(opener.keywords.values())))
        with opener() as store:
            campaign = DecisionService(store).create("ads", "bts", 1e6, {"a": 1.0, "b": 0.75}, **terms)
        workers = started(spend_slowly, address, "ads", ["w0", "w1"], folder)
        for steps in (0, 1, 2, 3, 4, 5, 6, 8, 10, 13):
            time.sleep(0.5)
            pruning = processes.Process(target=prune_until_killed, args=(address, archive, steps), daemon=True)
            pruning.start()
            pruning.join()
            assert pruning.exitcode in (-signal.SIGKILL, 0)
        for worker in workers:
            os.kill(worker.pid, signal.SIGKILL)
            worker.join()
        time.sleep(1.1)  # what happened in this second stays
        with opener() as store:
            DecisionService(store).retention.prune("ads", archive, 0.0)
            assert verify(store, "ads") == []
            assert verify(store, "ads", archive=archive) == []
            there = {row.id: row.hold for row in all_decisions(store, "ads")}
            account = DecisionService(store).account("ads")
            pending = sum(hold.amount for hold in there.values() if hold.state == "pending")
            assert account.held + account.leased == pending
        rows = polars.concat(polars.read_parquet(each) for each in (archive / campaign).glob("*/decisions-*.parquet"))
        assert rows["id"].n_unique() == len(rows)
        assert there.keys().isdisjoint(rows["id"])
        # what ended under a lease that was open at the last checkpoint stays for the next one
        assert account.spent == rows["charged"].sum() + sum(hold.charged for hold in there.values())
        notes = [line.split() for file in folder.iterdir() for line in file.read_text().splitlines()]
        told, settled = {id for kind, id in notes if kind == "told"}, rows.filter(polars.col("state") == "settled")
        assert len(told) > 100
        assert told <= set(settled["id"]) | {id for id, hold in there.items() if hold.state == "settled"}
        assert {id for _, id in notes} <= set(rows["id"]) | there.keys()
