"""Real processes on one SQLite file: many at once to the end of the money, and `kill -9` under load, of workers and of
the server."""

import contextlib
import multiprocessing
import os
import random
import signal
import threading
import time
from pathlib import Path

import pytest

from budgetbandits.client import Client
from budgetbandits.errors import HoldRefused, ServiceUnreachable
from budgetbandits.service.audit.audit import verify
from budgetbandits.service.ledger import to_units
from budgetbandits.service.service import DecisionService
from budgetbandits.service.stores.sqlite import SQLiteStore
from servers import admin_key, free_port, serving
from stores import all_decisions

pytestmark = pytest.mark.crashes

# children of a fresh server process that has imported everything: quick to start, and without our threads
processes = multiprocessing.get_context("forkserver")
processes.set_forkserver_preload(["budgetbandits.service.service", "budgetbandits.service.stores.sqlite"])


def spend(path, campaign, worker, acknowledged):
    """Decide and settle until the money is gone; every answer is written down once it has been given."""
    with SQLiteStore(path) as store, Path(acknowledged).open("a", buffering=1) as notes:
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


def started(path, campaign, names, folder):
    workers = [
        processes.Process(target=spend, args=(str(path), campaign, name, str(folder / name)), daemon=True)
        for name in names
    ]
    for worker in workers:
        worker.start()
    return workers


def at_work(folder, names):
    """Wait until each has had something acknowledged."""
    while not all((folder / name).exists() and "told" in (folder / name).read_text() for name in names):
        time.sleep(0.005)


def checked(path, campaign, folder):
    """Nothing acknowledged is lost, and the books agree with the events; how many decisions were acknowledged."""
    notes = [line.split() for file in folder.iterdir() for line in file.read_text().splitlines()]
    decided = {id for kind, id in notes if kind == "decided"}
    told = {id for kind, id in notes if kind == "told"}
    with SQLiteStore(path) as store:
        rows = {id: store.read(lambda tx, id=id: tx.decision(id)) for id in decided}
        assert all(row is not None for row in rows.values())
        assert all(rows[id].hold.state == "settled" for id in told)
        assert verify(store, campaign) == []
        account = DecisionService(store).account(campaign)
        assert account.spent + account.held <= account.budget
    return len(decided)


def test_eight_processes_spend_one_budget_to_the_last_hold(tmp_path):
    path, folder = tmp_path / "money.db", tmp_path / "notes"
    folder.mkdir()
    with SQLiteStore(path) as store:
        campaign = DecisionService(store).create("ads", "bts", budget=400.0, arms={"a": 1.0, "b": 0.75, "c": 0.5})
    workers = started(path, campaign, [f"w{n}" for n in range(8)], folder)
    for worker in workers:
        worker.join(timeout=120)
        assert worker.exitcode == 0
    assert checked(path, campaign, folder) >= 400
    with SQLiteStore(path) as store:
        account = DecisionService(store).account(campaign)
    assert account.held == 0
    assert to_units(account.left) < 0.5  # less than the cheapest hold, and never below 0


def test_fifty_kills_under_load_lose_nothing_acknowledged(tmp_path):
    path, folder, chance = tmp_path / "money.db", tmp_path / "notes", random.Random(4)
    folder.mkdir()
    with SQLiteStore(path) as store:
        campaign = DecisionService(store).create("ads", "bts", budget=1e6, arms={"a": 1.0, "b": 0.75}, hold_seconds=1.0)
    kills = 0
    for batch in range(10):
        names = [f"w{batch}-{n}" for n in range(5)]
        workers = started(path, campaign, names, folder)
        at_work(folder, names)
        for worker in workers:
            time.sleep(chance.random() * 0.05)
            os.kill(worker.pid, signal.SIGKILL)
            worker.join()
            kills += 1
    assert kills == 50
    assert checked(path, campaign, folder) >= 50
    with SQLiteStore(path) as store:  # what the dead held is resolved like anything else
        engine = DecisionService(store, clock=lambda: time.time() + 10.0)
        while engine.expire_due():
            pass
        assert engine.account(campaign).held == 0
        assert verify(store, campaign) == []


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
