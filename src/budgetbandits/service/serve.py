"""Serve campaigns over HTTP: open the store, make the first key, resolve overdue holds, until told to stop."""

from __future__ import annotations

import logging
import threading
import time

import uvicorn

from budgetbandits.errors import BudgetBanditsError
from budgetbandits.service.api import create_app
from budgetbandits.service.auth import make_key
from budgetbandits.service.engine import Engine
from budgetbandits.service.stores.base import Store
from budgetbandits.service.stores.sqlite import SQLiteStore

EXPIRE_EVERY = 1.0
log = logging.getLogger("budgetbandits")


def open_store(address: str) -> Store:
    """A PostgreSQL by its address, or a SQLite file by its path."""
    if address.startswith(("postgresql://", "postgres://")):
        from budgetbandits.service.stores.postgres import PostgresStore

        return PostgresStore(address)
    return SQLiteStore(address)


def first_key(store: Store) -> str | None:
    """A key with scope admin if the store has no keys at all, else None."""
    if store.read(lambda tx: tx.keys()):
        return None
    return make_key(store, ["admin"], time.time())


def serve(address: str, host: str, port: int) -> None:
    """Serve until SIGINT or SIGTERM; requests that have begun are finished."""
    with open_store(address) as store:
        key = first_key(store)
        if key is not None:
            print(f"The admin key, shown this once: {key}", flush=True)
        engine, stop = Engine(store), threading.Event()
        sweeper = threading.Thread(target=_sweep, args=(engine, stop), name="expire", daemon=True)
        sweeper.start()
        try:
            uvicorn.run(create_app(engine, store), host=host, port=port, log_level="warning", access_log=False)
        finally:
            stop.set()
            sweeper.join()


def _sweep(engine: Engine, stop: threading.Event) -> None:
    while not stop.wait(EXPIRE_EVERY):
        try:
            while engine.expire_due():
                pass
        except BudgetBanditsError as error:  # the store may be back in a second
            log.warning("overdue holds not resolved: %s", error)
