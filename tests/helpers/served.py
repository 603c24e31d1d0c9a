"""A service in this process: a SQLite store with an engine by a clock of the test's own, and the application on it."""

import time
from contextlib import contextmanager

from budgetbandits.service.http.app import create_app
from budgetbandits.service.service import DecisionService
from budgetbandits.service.stores.sqlite import SQLiteStore
from clock import Clock
from reads_here import ReadsHere


@contextmanager
def served(folder, now=None):
    """The store, with ``clock``, ``engine`` and ``app``."""
    with SQLiteStore(folder / "money.db") as store:
        store.clock = Clock(time.time() if now is None else now)
        store.engine = DecisionService(store, store.clock)
        store.app = create_app(store.engine, store, reads=ReadsHere(store))
        yield store


def kinds_of_events(store, name):
    """What has happened to a campaign, in order."""
    return [event.kind for event in store.read(lambda tx: tx.events(tx.campaign(name).id))]


def pull(engine, campaign, key, cost=None, reward=None, failed=False, **request):
    """A decision and its feedback."""
    made = engine.decide(campaign, key, **request)
    engine.feedback(made.decision, cost=cost, reward=reward, failed=failed)
    return made


def steps(store, read):
    """What something that is read takes SQLite, in tens of its instructions."""
    count = 0

    def one():
        nonlocal count
        count += 1

    def work(tx):
        tx._connection.set_progress_handler(one, 10)
        try:
            read(tx)
        finally:
            tx._connection.set_progress_handler(None, 0)

    store.read(work)
    return count
