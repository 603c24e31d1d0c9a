"""Run a server: open the store, make the first key, resolve overdue holds and write logs, until a signal stops it."""

from __future__ import annotations

import gc
import io
import json
import logging
import os
import signal
import socket
import ssl
import subprocess
import sys
import threading
import time
from collections.abc import Callable, MutableMapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from types import FrameType
from typing import Any

import structlog
import uvicorn
from starlette.types import ASGIApp
from structlog.typing import ExcInfo

from budgetbandits.errors import BadParameter, BudgetBanditsError
from budgetbandits.policies.files import load_inherited
from budgetbandits.service import webhooks
from budgetbandits.service.audit.reader import Job
from budgetbandits.service.deliveries import Deliveries, Sender
from budgetbandits.service.http.app import create_app
from budgetbandits.service.http.auth import KeyRing, hand_over_first_key
from budgetbandits.service.http.campaign_metrics import CampaignSeries
from budgetbandits.service.http.connections import BoundedConnection, Connections, connection_limit
from budgetbandits.service.http.metrics import Metrics
from budgetbandits.service.http.subprocess_reads import PROGRAM, LongReads
from budgetbandits.service.http.workers import Worker, WorkerPool
from budgetbandits.service.rollups import roll_up
from budgetbandits.service.service import DecisionService
from budgetbandits.service.stores import open_store
from budgetbandits.service.stores.contract import Store

EXPIRE_SECONDS = 1.0
"""Time between two sweeps of overdue holds."""
ROLL_UP_SECONDS = 5.0
"""Time between two updates of the rollups."""
PRUNE_SECONDS = 600.0
"""Time to the first look for what is old enough for the archive, in which a wrong clock may be noticed, and between two
looks. It is archived by whole days."""
NOTIFY_SECONDS = 5.0
"""Time between two looks at campaigns for webhooks, if there are any."""
SHUTDOWN_SECONDS_MAX = 10
"""Time for requests to end when the server stops."""
JOIN_SECONDS_MAX = 5.0
"""Time for background work to end after that."""

log = structlog.get_logger("budgetbandits")


@dataclass(frozen=True)
class ServerOptions:
    """How a server is started; all its processes get the same.

    ``name`` is the store's, for display. ``retention`` is the job that archives what is old, if anything is to be.
    ``root_path`` is empty, or begins with a slash and ends without. ``tls`` are the files of a certificate and its key.
    """

    address: str = field(repr=False)  # it may hold a password
    name: str
    key_file: Path | None = None
    per_address: int | None = None
    series: CampaignSeries | None = None
    retention: Job | None = None
    root_path: str = ""
    tls: tuple[Path, Path] | None = None
    unix_socket: Path | None = None
    workers: int = 1

    def url(self, listener: socket.socket) -> str:
        """Where it serves."""
        if self.unix_socket is not None:
            return f"unix:{self.unix_socket}"
        host, port = listener.getsockname()[:2]
        return f"{'https' if self.tls else 'http'}://{f'[{host}]' if ':' in host else host}:{port}{self.root_path}"


def serve(listener: socket.socket, options: ServerOptions) -> None:
    """Serve until SIGINT or SIGTERM, and finish requests that have begun."""
    write_logs()
    signal.signal(signal.SIGTERM, _leave)  # uvicorn ends its requests and then passes the signal on to us
    with open_store(options.address) as store:
        hand_over_first_key(store, options.key_file)
        print(f"Serving {options.name} on {options.url(listener)}", flush=True)
        if options.workers == 1:
            if signal.getsignal(signal.SIGHUP) == signal.SIG_DFL:  # not under nohup
                signal.signal(signal.SIGHUP, lambda *_: signal.raise_signal(signal.SIGTERM))
            _serve(listener, options, store)
            return
    WorkerPool(options.workers, _work, listener, options).run()
    log.info("all workers stopped")


def _work(worker: Worker, listener: socket.socket, options: ServerOptions) -> None:
    """One of several processes."""
    write_logs(worker=worker.number)
    signal.signal(signal.SIGTERM, _leave)
    signal.signal(signal.SIGHUP, signal.SIG_IGN)  # the parent's
    threading.Thread(target=worker.stop_with_parent, daemon=True).start()
    try:
        load_inherited()
        with open_store(options.address) as store:
            _serve(listener, options, store, worker)
    except BudgetBanditsError as error:  # the parent tries again
        log.error("worker cannot serve", error=str(error))  # noqa: TRY400 - the message says all
        sys.exit(1)
    except KeyboardInterrupt:
        pass


def _serve(listener: socket.socket, options: ServerOptions, store: Store, worker: Worker | None = None) -> None:
    service, stop = DecisionService(store), threading.Event()
    metrics, reads, keys = Metrics(store, options.series, worker), LongReads(store), KeyRing(store)
    deliveries = Deliveries(store, Sender())
    tasks: list[tuple[float, partial[None]]] = []
    if worker is None or worker.number == 0:  # of several processes one is enough
        tasks = [
            (NOTIFY_SECONDS, partial(_notify, store, metrics, deliveries, stop)),
            (EXPIRE_SECONDS, partial(_expire, service, metrics)),
            (ROLL_UP_SECONDS, partial(_roll_up, store, metrics, keys, stop)),
        ]
        if options.retention is not None:
            tasks.append((PRUNE_SECONDS, partial(_prune, store, options.retention, stop)))
    else:
        tasks = [(ROLL_UP_SECONDS, partial(_note_use, store, metrics, keys))]
    threads = [
        threading.Thread(target=_every, args=(seconds, work, metrics, stop), name=_name(work), daemon=True)
        for seconds, work in tasks
    ]
    if worker is not None:
        threading.Thread(target=worker.peers.answer, args=(worker.number, metrics.own), daemon=True).start()
    for thread in threads:
        thread.start()
    app = create_app(service, store, metrics, reads, keys, options.root_path)
    gc.collect()
    gc.freeze()  # all this stays until the end: spare the collector from scanning it again
    log.info("serving", url=options.url(listener), pid=os.getpid())
    try:
        connections = _connections(options)
        _Server(_config(app, options, connections), connections, reads, worker).run(sockets=[listener])
    finally:
        stop.set()
        service.decisions.scheduler.close()
        _join([*threads, *deliveries.close()])
        _once(partial(_count_refusals, store, metrics), metrics)
        log.info("stopped")


def check_tls(certificate: Path, key: Path) -> None:
    """Refuse files that no TLS connection could be made with."""
    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(certificate, key, password="")  # asks nobody for one
    except ssl.SSLError as error:
        raise BadParameter(
            f"{certificate} and {key} are no certificate and its key: {error.reason or error}; give PEM files that "
            "belong together, the certificate first and then those that have signed it"
        ) from None
    except OSError as error:
        raise BadParameter(
            f"cannot read {certificate} or {key}: {error.strerror}; the server's user must be able to"
        ) from None


def _connections(options: ServerOptions) -> Connections:
    limit = connection_limit()
    # all who connect to a file have the same address
    return Connections(limit, options.per_address or (limit // 2 if options.unix_socket is None else limit))


def _config(app: ASGIApp, options: ServerOptions, connections: Connections) -> uvicorn.Config:
    certificate, key = options.tls or (None, None)
    return uvicorn.Config(
        app, log_config=None, access_log=False, proxy_headers=False, timeout_graceful_shutdown=SHUTDOWN_SECONDS_MAX,
        http=partial(BoundedConnection, connections=connections),  # type: ignore[arg-type] # any factory will do
        callback_notify=connections.sweep, timeout_notify=0,  # as often as uvicorn looks, which is once a second
        ws="none",  # a WebSocket left open would keep the server from ending as it should
        ssl_certfile=certificate, ssl_keyfile=key,
    )  # fmt: skip


class _Server(uvicorn.Server):
    """A server that ends long reads when it stops."""

    def __init__(
        self, config: uvicorn.Config, connections: Connections, reads: LongReads, worker: Worker | None
    ) -> None:
        super().__init__(config)
        self._connections = connections
        self._reads = reads
        self._worker = worker

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        if self._worker is not None:
            self._worker.serving()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self._connections.stopping = True
        await super().shutdown(sockets)

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        self._reads.stopping = True
        super().handle_exit(sig, frame)


def _leave(_signal: int, _frame: object) -> None:
    raise SystemExit(0)


def _every(seconds: float, work: Callable[[], None], metrics: Metrics, stop: threading.Event) -> None:
    while not stop.wait(seconds):
        _once(work, metrics)


def _once(work: Callable[[], None], metrics: Metrics) -> None:
    try:
        work()
    except BudgetBanditsError as error:  # the store may be back in a second
        log.warning("background task failed", task=_name(work), error=str(error))
    except Exception:  # a damaged campaign must not stop the others
        log.exception("background task failed", task=_name(work))
    else:
        metrics.task_ends[_name(work)] = time.time()
        return
    metrics.task_failures[_name(work)] += 1


def _join(threads: Sequence[threading.Thread]) -> None:
    """Wait until background work has ended, but not for ever: whatever has a limit of its own may still break it."""
    end = time.monotonic() + JOIN_SECONDS_MAX
    for thread in threads:
        thread.join(max(0.0, end - time.monotonic()))
    if left := [thread.name for thread in threads if thread.is_alive()]:
        log.warning("background work has not ended", threads=left)


def _name(work: Any) -> str:
    return str(work.func.__name__).strip("_").replace("_", " ")


def _expire(service: DecisionService, metrics: Metrics) -> None:
    while expired := service.expire_due():
        for campaign, count in expired.items():
            metrics.expired += count
            log.warning("holds expired", campaign=campaign, count=count)


def _notify(store: Store, metrics: Metrics, deliveries: Deliveries, stop: threading.Event) -> None:
    webhooks.look(store, stop.is_set)
    deliveries.start()
    metrics.notifications["accepted"], metrics.notifications["refused"] = deliveries.results()
    deliveries.raise_error()


def _count_refusals(store: Store, metrics: Metrics) -> None:
    metrics.refused.flush(store)


def _note_use(store: Store, metrics: Metrics, keys: KeyRing) -> None:
    _count_refusals(store, metrics)
    keys.note_used()


def _roll_up(store: Store, metrics: Metrics, keys: KeyRing, stop: threading.Event) -> None:
    _note_use(store, metrics, keys)
    roll_up(store, stop.is_set)


def _prune(store: Store, job: Job, stop: threading.Event) -> None:
    """Archive what is old, in a process of its own; one that is ended halfway goes on the next time."""
    with subprocess.Popen(PROGRAM, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        asked, process.stdin = process.stdin, None  # it stays open: closed, it says that nobody waits for the answer
        assert asked is not None
        with asked:
            asked.write(job.line(store.address))
            asked.flush()
            problem, _, answer = _said(process, stop).partition(b"\n")
    if stop.is_set():
        return
    if process.returncode or json.loads(problem):
        log.error("retention failed", error=problem.decode()[:500])
        return
    for report in json.loads(answer):
        (log.error if "error" in report else log.info)("archived", **report)


def _said(process: subprocess.Popen[bytes], stop: threading.Event) -> bytes:
    """All that a process prints, which may be more than a pipe holds, until it ends; killed when the server stops."""
    while True:
        try:
            return process.communicate(timeout=1.0)[0]
        except subprocess.TimeoutExpired:
            if stop.is_set():
                process.kill()


# --- logs on stderr: JSON, or plain text on a terminal, which must not act on text from outside ---


def write_logs(**always: Any) -> None:
    """Write one line per log entry to stderr: JSON, or plain text on a terminal. ``always`` is part of every entry."""
    person = sys.stderr.isatty()
    shared: list[Any] = [
        lambda _logger, _name, entry: {**entry, **always}, structlog.contextvars.merge_contextvars,
        structlog.stdlib.add_log_level,
        structlog.processors.TimeStamper(fmt="iso"), structlog.processors.StackInfoRenderer(),
    ]  # fmt: skip
    if person:
        words = structlog.dev.ConsoleRenderer(exception_formatter=_traceback)
        last: list[Any] = [structlog.stdlib.ProcessorFormatter.remove_processors_meta, _visible, words]
    else:
        shared.append(structlog.processors.format_exc_info)
        renderer = structlog.processors.JSONRenderer()  # escapes what is not ASCII
        last = [structlog.stdlib.ProcessorFormatter.remove_processors_meta, renderer]
    structlog.configure(
        processors=[*shared, structlog.stdlib.ProcessorFormatter.wrap_for_formatter],
        logger_factory=structlog.stdlib.LoggerFactory(),
    )
    # the libraries' own log entries go the same way
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(structlog.stdlib.ProcessorFormatter(processors=last, foreign_pre_chain=shared))
    root = logging.getLogger()
    root.handlers = [handler]
    root.setLevel(logging.INFO)
    for name in ("uvicorn", "httpx"):  # httpx would write down the paths of webhooks, which may be secrets
        logging.getLogger(name).setLevel(logging.WARNING)


def visible(text: str, keep: str = "") -> str:
    """The text with all unprintable characters escaped: a terminal would act on them.

    >>> visible("ads\\x1b[2J\\n")
    'ads\\\\x1b[2J\\\\n'
    """
    if text.isprintable():
        return text
    return "".join(letter if letter.isprintable() or letter in keep else repr(letter)[1:-1] for letter in text)


def _visible(_logger: Any, _name: str, entry: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    """The entry with its texts made visible; other values are shown by their ``repr``, which escapes too."""
    return {visible(key): visible(value) if isinstance(value, str) else value for key, value in entry.items()}


def _traceback(file: Any, error: ExcInfo) -> None:
    """A traceback made visible: its last line holds the error's message."""
    lines = io.StringIO()
    structlog.dev.plain_traceback(lines, error)
    file.write(visible(lines.getvalue(), keep="\n"))
