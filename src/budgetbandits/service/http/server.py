"""Serve campaigns over HTTP: open the store, make the first key, resolve overdue holds, until told to stop."""

from __future__ import annotations

import gc
import signal
import socket
import threading
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from types import FrameType
from typing import Any

import structlog
import uvicorn
from starlette.types import ASGIApp

from budgetbandits.errors import BudgetBanditsError
from budgetbandits.service.http.app import Later, create_app
from budgetbandits.service.http.connections import BoundedConnection, Connections, room
from budgetbandits.service.http.first_key import hand_over_first_key
from budgetbandits.service.http.logs import write_logs
from budgetbandits.service.http.metrics import Metrics
from budgetbandits.service.http.subprocess_reads import LongReads
from budgetbandits.service.rollups import roll_up
from budgetbandits.service.service import DecisionService
from budgetbandits.service.stores import open_store
from budgetbandits.service.stores.contract import Store

EXPIRE_EVERY = 1.0
ROLL_UP_EVERY = 5.0
SETTLE = 0.2
"""Seconds that a new server gives to those who have waited for it before it imports operators' routes."""
FINISH_WITHIN = 10
"""Seconds that requests have to end when the server is told to stop."""

log = structlog.get_logger("budgetbandits")


def serve(
    listener: socket.socket, address: str, name: str, key_file: Path | None = None, per_address: int | None = None
) -> None:
    """Serve until SIGINT or SIGTERM; requests that have begun are finished. ``name`` is what the store is called."""
    host, port = listener.getsockname()[:2]
    write_logs()
    signal.signal(signal.SIGTERM, _leave)  # uvicorn ends its requests and then hands the signal on to us
    with open_store(address) as store:
        hand_over_first_key(store, key_file)
        print(f"Serving {name} on http://{host}:{port}", flush=True)
        engine, stop = DecisionService(store), threading.Event()
        metrics, reads = Metrics(engine.campaigns), LongReads(store)
        sweepers = [
            threading.Thread(target=_every, args=(EXPIRE_EVERY, partial(_expire, engine, metrics), stop), daemon=True),
            threading.Thread(
                target=_every, args=(ROLL_UP_EVERY, partial(_roll_up, store, metrics, stop), stop), daemon=True
            ),
        ]
        for each in sweepers:
            each.start()
        app = create_app(engine, store, metrics, reads)
        gc.collect()
        gc.freeze()  # all this stays until the end: the collector need not look through it again
        log.info("serving", host=host, port=port)
        try:
            _Server(_config(app, per_address), reads, app.operators).run(sockets=[listener])
        finally:
            stop.set()
            for each in sweepers:
                each.join()
            _once(partial(_count_refusals, store, metrics))
            log.info("stopped")


def _config(app: ASGIApp, per_address: int | None) -> uvicorn.Config:
    most = room()
    connections = Connections(most, per_address or most // 2)
    return uvicorn.Config(
        app, log_config=None, access_log=False, proxy_headers=False, timeout_graceful_shutdown=FINISH_WITHIN,
        http=partial(BoundedConnection, among=connections),  # type: ignore[arg-type] # whatever makes one will do
        callback_notify=connections.sweep, timeout_notify=0,  # as often as uvicorn looks, which is once a second
        ws="none",  # a WebSocket left open would keep the server from ending as it should
    )  # fmt: skip


class _Server(uvicorn.Server):
    """A server that puts operators' routes together once workers are served, and tells long reads to end in time."""

    def __init__(self, config: uvicorn.Config, reads: LongReads, operators: Later) -> None:
        super().__init__(config)
        self._reads = reads
        self._operators = operators

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        threading.Thread(target=_make_ready, args=(self._operators,), daemon=True).start()

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        self._reads.stopping = True
        super().handle_exit(sig, frame)


def _make_ready(operators: Later) -> None:
    time.sleep(SETTLE)
    operators.get()
    gc.freeze()


def _leave(_signal: int, _frame: object) -> None:
    raise SystemExit(0)


def _every(seconds: float, work: Callable[[], None], stop: threading.Event) -> None:
    while not stop.wait(seconds):
        _once(work)


def _once(work: Callable[[], None]) -> None:
    try:
        work()
    except BudgetBanditsError as error:  # the store may be back in a second
        log.warning("not done", what=_name(work), error=str(error))
    except Exception:  # a damaged campaign must not keep the others' money
        log.exception("not done", what=_name(work))


def _name(work: Any) -> str:
    return str(work.func.__name__).strip("_").replace("_", " ")


def _expire(engine: DecisionService, metrics: Metrics) -> None:
    while expired := engine.expire_due():
        for campaign, count in expired.items():
            metrics.expired += count
            log.warning("holds expired", campaign=campaign, count=count)


def _count_refusals(store: Store, metrics: Metrics) -> None:
    metrics.refused.flush(store)


def _roll_up(store: Store, metrics: Metrics, stop: threading.Event) -> None:
    _count_refusals(store, metrics)
    roll_up(store, stop.is_set)
