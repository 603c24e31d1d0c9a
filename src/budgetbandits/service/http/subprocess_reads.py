"""Audits and exports over HTTP: a few at once, each in a process of its own (`service.audit.reader`).

A process ends when it is done, when its client disconnects or stops reading, or when the server stops.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import sys
from asyncio.subprocess import PIPE, Process
from collections import Counter
from collections.abc import AsyncIterator, Coroutine, Mapping
from typing import Any

import structlog
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from budgetbandits import errors
from budgetbandits.errors import BudgetBanditsError, ServerBusy, ServiceError
from budgetbandits.service.audit.reader import Job, JobKind
from budgetbandits.service.stores.contract import Store, T

CONCURRENT_MAX: dict[JobKind, int] = {"verify": 1, "verify shared budget": 1, "export": 2}
"""How many of each may be asked for on one server: each takes an idle processor and about 100 MB."""

PROGRAM = (sys.executable, "-P", "-m", "budgetbandits.service.audit.reader")
"""Command of a process, without the working folder in the path, which may hold other people's modules."""

PIECE_BYTES = 1 << 18
"""Bytes of a piece of the answer."""

POLL_SECONDS = 0.25
"""Time between two checks that the client is still connected."""

STALL_SECONDS_MAX = 30.0
"""Time after which a client that reads nothing is given up."""

log = structlog.get_logger("budgetbandits")


class LongReads:
    """The long reads of one server."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self.running: Counter[JobKind] = Counter()
        self.stopping = False
        """Set when the server stops: all reads end soon."""

    async def open(self, request: Request, job: Job) -> Reading:
        """Begin a read, and return it when its first bytes are there. The caller closes it."""
        self.check_free(job)
        reading = Reading(self, request, job)
        try:
            await reading.begin()
        except BaseException:
            await reading.close()
            raise
        return reading

    def check_free(self, job: Job) -> None:
        """Refuse if the limit is reached."""
        limit = CONCURRENT_MAX[job.kind]
        if self.running[job.kind] >= limit:
            raise ServerBusy(f"this server runs {limit} {job.kind} at once; ask again when one has ended")


class Reading:
    """A process that reads, and the request that waits for it: bytes that arrive in pieces. Close it at the end."""

    def __init__(self, reads: LongReads, request: Request, job: Job) -> None:
        self._reads, self._request, self._job = reads, request, job
        self._process: Process | None = None
        reads.running[job.kind] += 1

    async def begin(self) -> None:
        """Start the process."""
        try:
            process = await asyncio.create_subprocess_exec(*PROGRAM, stdin=PIPE, stdout=PIPE, limit=PIECE_BYTES)
        except OSError as error:
            raise ServerBusy(
                f"no process for this could be started: {error.strerror}; raise the server's limits (ulimit -n, -u)"
            ) from None
        self._process = process
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(self._job.line(self._reads.store.address))
        line = await self._unless_abandoned(process.stdout.readline())
        if not line.endswith(b"\n"):
            raise self._failed()
        problem = json.loads(line)
        if problem:
            kind: type[BudgetBanditsError] = getattr(errors, problem["title"])
            raise kind(problem["detail"])

    def _failed(self) -> ServiceError:
        return ServiceError(f"the process for {self._job.kind} has failed; the server's log says why")

    async def __aiter__(self) -> AsyncIterator[bytes]:
        assert self._process is not None
        assert self._process.stdout is not None
        while piece := await self._unless_abandoned(self._process.stdout.read(PIECE_BYTES)):
            yield piece
        if await self._process.wait() != 0:
            raise self._failed()

    async def _unless_abandoned(self, coming: Coroutine[Any, Any, T]) -> T:
        task = asyncio.ensure_future(coming)
        try:
            while not (await asyncio.wait([task], timeout=POLL_SECONDS))[0]:
                if self._reads.stopping:
                    raise ServerBusy("the server is stopping; ask again")
                if await self._request.is_disconnected():
                    raise ClientDisconnect
            return task.result()
        finally:
            task.cancel()

    async def close(self) -> None:
        """End the process."""
        self._reads.running[self._job.kind] -= 1
        if self._process is not None:
            with contextlib.suppress(ProcessLookupError):
                self._process.kill()
            await self._process.wait()


class StreamedRead(Response):
    """A response that passes on the pieces of a read as they come."""

    def __init__(self, reading: Reading, media_type: str, name: str, headers: Mapping[str, str]) -> None:
        disposition = {"Content-Disposition": f'attachment; filename="{name}"'}
        super().__init__(media_type=media_type, headers=disposition | dict(headers))
        del self.headers["content-length"]  # not known yet
        self._reading = reading

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
            async for piece in self._reading:
                message = {"type": "http.response.body", "body": piece, "more_body": True}
                await asyncio.wait_for(send(message), STALL_SECONDS_MAX)
            await send({"type": "http.response.body", "body": b"", "more_body": False})
        except (ClientDisconnect, TimeoutError, OSError, BudgetBanditsError) as error:
            # the answer has begun: the connection closes without its end, so that it is not taken for complete
            log.warning("export aborted", error=str(error) or type(error).__name__)
        finally:
            await self._reading.close()
