"""The processes that make a server's long choices (`choice_process`).

A process is started when a choice needs one and none is free. They read the store, as another server would, so what
they know of a campaign is what is committed.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import select
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import structlog

from budgetbandits.errors import ServerBusy
from budgetbandits.service.campaign_session import AheadChoice
from budgetbandits.service.choices_ahead import ChoiceInputs, ChoicesAhead

PROGRAM = (sys.executable, "-P", "-m", "budgetbandits.service.choice_process")
"""Command of a process, without the working folder in the path, which may hold other people's modules."""

PROCESSES_MAX = 4
"""Processes of one server: campaigns beyond take turns."""

ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
"""Environment of a process: more threads would take the cores from the server."""

SLICE_SECONDS = 0.05
"""Seconds after which a process makes no further choice of a batch, so that another campaign has its turn."""

ANSWER_SECONDS_MAX = 30.0
"""Time for an answer, after which a process is ended."""

log = structlog.get_logger("budgetbandits")


class ChoiceProcess:
    """One process, asked by one thread at a time."""

    def __init__(self, address: str) -> None:
        environment = ONE_THREAD | dict(os.environ)
        self._process = subprocess.Popen(
            PROGRAM, stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0, env=environment
        )
        self._write(address)

    def ask(self, inputs: ChoiceInputs, count: int) -> ChoicesAhead:
        """Choices from these inputs; none if the campaign has changed since. OSError if there is no answer."""
        self._write([list(inputs), count, SLICE_SECONDS])
        answer = json.loads(self._line())
        if isinstance(answer, dict):
            log.error("choice failed", campaign=inputs.campaign, error=answer["error"])
            raise ServerBusy("the process that makes this campaign's choices has failed; the server's log says why")
        return ChoicesAhead(inputs, [AheadChoice(*values) for values in answer or ()])

    def _write(self, value: object) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(value).encode() + b"\n")

    def _line(self) -> bytes:
        assert self._process.stdout is not None
        pieces, end = list[bytes](), time.monotonic() + ANSWER_SECONDS_MAX
        poll = select.poll()  # `select` takes no file numbers beyond a thousand
        poll.register(self._process.stdout, select.POLLIN)
        while not pieces or not pieces[-1].endswith(b"\n"):
            ready = poll.poll(1e3 * max(end - time.monotonic(), 0.0))
            piece = self._process.stdout.read(1 << 16) if ready else b""
            if not piece:
                raise OSError("it has ended" if ready else f"no answer for {ANSWER_SECONDS_MAX:g} seconds")
            pieces.append(piece)
        return b"".join(pieces)

    def close(self) -> None:
        """End the process."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.kill()  # it writes nothing
        self._process.wait()
        with contextlib.suppress(OSError):
            self._process.stdin.close()
        self._process.stdout.close()


class ChoiceProcesses:
    """The processes of one server."""

    def __init__(self, address: str) -> None:
        self._address = address
        self._threads = ThreadPoolExecutor(PROCESSES_MAX, "long-choices")
        """Threads that wait for a process each; the event loop's own are for others."""
        self._free: list[ChoiceProcess] = []
        self._all: set[ChoiceProcess] = set()
        self._gate = threading.Lock()
        self._closed = False

    async def choices(self, inputs: ChoiceInputs, count: int) -> ChoicesAhead:
        """Make up to ``count`` choices from these inputs; none if the campaign has changed since."""
        return await asyncio.get_running_loop().run_in_executor(self._threads, self._ask, inputs, count)

    def _ask(self, inputs: ChoiceInputs, count: int) -> ChoicesAhead:
        with self._gate:
            if self._closed:
                raise ServerBusy("the server is stopping; ask again")
            try:
                process = self._free.pop() if self._free else ChoiceProcess(self._address)
            except OSError:  # no memory, say
                log.exception("choice failed", campaign=inputs.campaign)
                raise ServerBusy("no process can be started to make this campaign's choices; ask again") from None
            self._all.add(process)
        try:
            choices = process.ask(inputs, count)
        except BaseException as error:
            with self._gate:
                self._all.discard(process)
            process.close()
            if not isinstance(error, OSError | ValueError):
                raise
            log.exception("choice failed", campaign=inputs.campaign)
            raise ServerBusy("the process that makes this campaign's choices has ended; ask again") from None
        with self._gate:
            self._free.append(process)
        return choices

    def close(self) -> None:
        """End the processes; those who wait for one get an error."""
        with self._gate:
            self._closed, processes, self._all = True, self._all, set()
        for process in processes:
            process.close()
        self._threads.shutdown()
