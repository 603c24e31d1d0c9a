"""`kill -9` of processes that decide under leases: nothing acknowledged is lost, and nothing is spent twice."""

import asyncio
import multiprocessing
import os
import random
import signal
import time
from pathlib import Path

import pytest

from budgetbandits.service.audit.audit import verify
from budgetbandits.service.feedback import FeedbackReport
from budgetbandits.service.service import DecisionService
from budgetbandits.service.stores import open_store
from stores import STORES, all_decisions, all_events

pytestmark = pytest.mark.crashes

processes = multiprocessing.get_context("forkserver")
processes.set_forkserver_preload(["budgetbandits.service.service", "budgetbandits.service.stores.sqlite"])


def spend(address, worker, acknowledged):
    """Four at once decide and tell in an event loop, until they are killed, and write down every answer."""
    with open_store(address) as store, Path(acknowledged).open("a", buffering=1) as notes:
        engine = DecisionService(store)

        async def client(name):
            for number in range(10**9):
                [made] = await store.perform(*engine.decision_task("ads", f"{worker}-{name}-{number}"))
                notes.write(f"decided {made.decision}\n")
                await store.perform(
                    *engine.feedback_task(FeedbackReport(made.decision, float(number % 2), made.hold), "ads")
                )
                notes.write(f"told {made.decision}\n")

        async def clients():
            await asyncio.gather(*(client(name) for name in range(4)))

        asyncio.run(clients())


def started(address, names, folder):
    workers = [
        processes.Process(target=spend, args=(address, name, str(folder / name)), daemon=True) for name in names
    ]  # fmt: skip
    for worker in workers:
        worker.start()
    return workers


@pytest.mark.parametrize("name", STORES)
def test_kills_under_leases_lose_nothing_and_leave_nothing_leased(name, tmp_path):
    chance, folder = random.Random(6), tmp_path / "notes"
    folder.mkdir()
    with STORES[name](tmp_path) as opener:
        address = str(next(iter(opener.keywords.values())))
        with opener() as store:
            DecisionService(store).create(
                "ads", "bts", 1e6, {"a": 1.0, "b": 0.75}, lease=30.0, lease_seconds=0.3, hold_seconds=1.0
            )  # fmt: skip
        for batch in range(5):
            names = [f"w{batch}-{number}" for number in range(3)]
            workers = started(address, names, folder)
            while not all((folder / each).exists() and "told" in (folder / each).read_text() for each in names):
                time.sleep(0.005)
            for worker in workers:
                time.sleep(chance.random() * 0.03)
                os.kill(worker.pid, signal.SIGKILL)
                worker.join()
        notes = [line.split() for file in folder.iterdir() for line in file.read_text().splitlines()]
        with opener() as store:
            rows = {id: store.read(lambda tx, id=id: tx.decision(id)) for _, id in notes}
            assert all(row is not None for row in rows.values())
            assert all(rows[id].hold.state == "settled" for kind, id in notes if kind == "told")
            engine = DecisionService(store, clock=lambda: time.time() + 10.0)
            while engine.expire_due():
                pass
            account = engine.account("ads")
            made = all_decisions(store, "ads")
            assert (account.held, account.leased, account.overrun) == (0, 0, 0)
            assert account.spent == sum(row.hold.charged for row in made)
            kinds = [event.kind for event in all_events(store, "ads")]
            assert kinds.count("leased") >= 15
            assert kinds.count("returned") == kinds.count("leased")
            assert verify(store, "ads") == []
