"""Several processes that serve one listening socket (`serve --workers`).

Each is a server of its own on the same PostgreSQL, as on several hosts. Their parent serves nothing. It starts each
process again that has ended, replaces all on SIGHUP, one after another and without a pause, and stops them on SIGTERM.
If the parent itself is killed, they stop too: nobody would start them again.

A scrape of the metrics reaches any one of the processes, which asks the others for theirs (`Peers`).
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import signal
import socket
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from typing import Any

import structlog

TICK_SECONDS = 0.5
"""Time between two looks at signals."""
RESTART_SECONDS = 1.0
"""The least time between two starts of the same process: a store that is away is not asked without a pause."""
READY_SECONDS_MAX = 60.0
"""Time for a new process to serve before it replaces another."""
STOP_SECONDS_MAX = 20.0
"""Time for a process to stop before it is killed: longer than requests may take to end."""
ASK_SECONDS_MAX = 1.0
"""Time for a process to answer another."""

log = structlog.get_logger("budgetbandits")


class Peers:
    """The processes of one server, as each of them sees the others.

    To ask is to send one end of a new connection to the process, which writes its answer to it. A process that was
    started again takes over the questions to the one before.
    """

    def __init__(self, count: int) -> None:
        self._pairs = [socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM) for _ in range(count)]

    def answers(self, number: int, own: Callable[[], bytes]) -> dict[int, bytes]:
        """The answers of all processes, with this one's ``own``; processes that give none in time are left out."""
        result = {number: own()}
        for other in range(len(self._pairs)):
            if other != number:
                with contextlib.suppress(OSError):
                    result[other] = self._ask(other)
        return dict(sorted(result.items()))

    def _ask(self, number: int) -> bytes:
        mine, its = socket.socketpair()
        with mine:
            with its:
                socket.send_fds(self._pairs[number][0], [b"?"], [its.fileno()], socket.MSG_DONTWAIT)
            end, pieces = time.monotonic() + ASK_SECONDS_MAX, list[bytes]()
            while True:
                mine.settimeout(max(end - time.monotonic(), 0.001))
                piece = mine.recv(1 << 16)
                if not piece:
                    return b"".join(pieces)
                pieces.append(piece)

    def answer(self, number: int, own: Callable[[], bytes]) -> None:
        """Answer the others, for ever; for a thread."""
        while True:
            _, given, _, _ = socket.recv_fds(self._pairs[number][1], 1, 1)
            for value in given:
                with contextlib.suppress(OSError), socket.socket(fileno=value) as reply:  # who asked may have left
                    reply.settimeout(ASK_SECONDS_MAX)
                    reply.sendall(own())


@dataclass(frozen=True)
class Worker:
    """One of the processes: its number, the others, and how it says that it serves."""

    number: int
    peers: Peers
    parent: Connection = field(repr=False)

    def serving(self) -> None:
        """Tell the first process that this one serves."""
        with contextlib.suppress(OSError):
            self.parent.send(self.number)

    def stop_with_parent(self) -> None:
        """End as on SIGTERM when the parent has ended; for a thread."""
        parent = multiprocessing.parent_process()
        if parent is not None:
            wait([parent.sentinel])
            os.kill(os.getpid(), signal.SIGTERM)


class WorkerPool:
    """The processes, as their parent sees them; each calls ``work`` with its `Worker` and these arguments."""

    def __init__(self, count: int, work: Callable[..., None], *arguments: Any) -> None:
        self._work, self._arguments = work, arguments
        self._peers = Peers(count)
        self._context = multiprocessing.get_context("spawn")  # forks would share the threads' locks, held or not
        self._processes: list[BaseProcess] = []
        self._started_at = [0.0] * count
        self._stopping = self._replacing = False
        """Set by signals; events would not do, since a handler may run while the same thread has their lock."""

    def run(self) -> None:
        """Run until SIGTERM or SIGINT."""
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, self._note)
        self._processes = [self._start(number)[0] for number in range(len(self._started_at))]
        try:
            while not self._stopping:
                wait([process.sentinel for process in self._processes], TICK_SECONDS)
                self._restart_ended()
                if self._replacing:
                    self._replacing = False
                    self._replace_all()
        finally:
            _end(self._processes, STOP_SECONDS_MAX)

    def _note(self, number: int, _frame: object) -> None:
        if number == signal.SIGHUP:
            self._replacing = True
        else:
            self._stopping = True

    def _start(self, number: int) -> tuple[BaseProcess, Connection]:
        ready, parent = self._context.Pipe(duplex=False)
        arguments = (Worker(number, self._peers, parent), *self._arguments)
        process = self._context.Process(target=self._work, args=arguments, name=f"worker {number}")
        process.start()
        parent.close()
        self._started_at[number] = time.monotonic()
        return process, ready

    def _restart_ended(self) -> None:
        for number, process in enumerate(self._processes):
            if process.exitcode is not None and not self._stopping:
                log.error("worker ended", worker=number, pid=process.pid, exitcode=process.exitcode)
                time.sleep(max(0.0, self._started_at[number] + RESTART_SECONDS - time.monotonic()))
                if not self._stopping:
                    self._processes[number] = self._start(number)[0]

    def _replace_all(self) -> None:
        """New processes, of the program as it is installed now; if one does not serve, the old ones go on."""
        for number, old in enumerate(self._processes):
            new, ready = self._start(number)
            if not self._serves(ready):
                _end([new], STOP_SECONDS_MAX if self._stopping else 0.0)
                log.error("new worker does not serve; the old one goes on", worker=number, exitcode=new.exitcode)
                return
            self._processes[number] = new
            _end([old], STOP_SECONDS_MAX)
            log.info("worker replaced", worker=number, pid=new.pid)

    def _serves(self, ready: Connection) -> bool:
        """Whether a new process says so in time."""
        end = time.monotonic() + READY_SECONDS_MAX
        while not self._stopping and time.monotonic() < end:
            if ready.poll(TICK_SECONDS):
                with contextlib.suppress(EOFError):  # it has ended
                    return ready.recv() is not None
                return False
        return False


def _end(processes: list[BaseProcess], seconds: float) -> None:
    """Ask processes to stop, and kill those that have not after this time."""
    for process in processes:
        process.terminate()
    end = time.monotonic() + seconds
    for process in processes:
        process.join(max(0.0, end - time.monotonic()))
        if process.exitcode is None:
            process.kill()
            process.join()
