"""What load balancers ask: whether the server is up, and whether it can decide."""

from __future__ import annotations

import asyncio
import time

import structlog
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from budgetbandits.errors import StoreError
from budgetbandits.service.http.parts import Service

READY_WITHIN = 2.0

log = structlog.get_logger("budgetbandits")


async def healthz(_service: Service, _request: Request) -> Response:
    """The server is up."""
    return JSONResponse({"status": "ok"})


async def readyz(service: Service, _request: Request) -> Response:
    """A row was written and committed just now, the way decisions are; 503 if that fails or takes more than two
    seconds."""
    beat = asyncio.ensure_future(service.store.perform(lambda tx: tx.write_heartbeat(time.time())))
    done, _ = await asyncio.wait([beat], timeout=READY_WITHIN)
    problem = beat.exception() if done else f"nothing could be written for {READY_WITHIN:g} seconds"
    if problem is not None:
        beat.add_done_callback(lambda late: late.exception())  # nobody will ask
        log.warning("not ready", error=str(problem))
        # whoever asks has no key: what is wrong is not for strangers
        raise StoreError("the store cannot write; the server's log says why")
    return JSONResponse({"status": "ready"})
