"""The service over HTTP: FastAPI, problem+json for every error, bearer keys with scopes.

Money is in the user's unit. A decision needs an ``Idempotency-Key``: send the same one again when an answer was lost.

The routes that workers call all the time are in `workers`; those here may take long and run in threads.
"""

from __future__ import annotations

import tempfile
import time
from importlib.metadata import version
from pathlib import Path
from typing import Any, TypeVar

import structlog
from fastapi import Depends, FastAPI, Request, Response
from fastapi.responses import FileResponse
from pydantic import BaseModel
from starlette.background import BackgroundTask

from budgetbandits.errors import StoreError
from budgetbandits.service.audit import verify
from budgetbandits.service.engine import Engine
from budgetbandits.service.export import Format, Table, export
from budgetbandits.service.http.auth import KeyRing, check_header
from budgetbandits.service.http.door import Door
from budgetbandits.service.http.metrics import Metrics
from budgetbandits.service.http.problem_json import PROBLEMS, handle_errors
from budgetbandits.service.http.schemas import (
    Amount,
    CampaignDetail,
    CampaignPath,
    CampaignView,
    NewArm,
    NewCampaign,
    Status,
    Verdict,
)
from budgetbandits.service.http.worker_routes import workers_routes
from budgetbandits.service.ledger import Status as CampaignStatus
from budgetbandits.service.stores.base import Store

READY_WITHIN = 2.0
TYPES = {"csv": "text/csv", "parquet": "application/vnd.apache.parquet"}

B = TypeVar("B", bound=BaseModel)

log = structlog.get_logger("budgetbandits")


def create_app(engine: Engine, store: Store, metrics: Metrics | None = None) -> Door:
    """The application; whoever serves it sees to `Engine.expire_due`."""
    app = FastAPI(
        title="budgetbandits", version=version("budgetbandits"), docs_url=None, redoc_url=None, responses=PROBLEMS
    )  # fmt: skip
    metrics, keys = metrics or Metrics(engine), KeyRing(store)
    handle_errors(app)
    _watching(app, store, metrics, keys)
    short_cuts = workers_routes(app, engine, store, metrics, keys)
    _operating(app, engine, store, keys)
    return Door(app, metrics, short_cuts)


def _allowed(keys: KeyRing, scope: str) -> Any:
    """The route may be called with a key of this scope."""

    async def check(request: Request) -> None:
        await check_header(keys, request.headers.get("authorization", ""), scope, request.path_params.get("campaign"))

    return Depends(check)


def _watching(app: FastAPI, store: Store, metrics: Metrics, keys: KeyRing) -> None:
    """Routes for whoever keeps the service running."""

    @app.get("/healthz")
    async def healthz() -> Status:
        """The server is up."""
        return Status(status="ok")

    @app.get("/readyz")
    def readyz() -> Status:
        """A row was written and committed just now; 503 if that fails or takes more than two seconds."""
        try:
            store.submit(lambda tx: tx.beat(time.time())).result(READY_WITHIN)
        except TimeoutError:
            raise StoreError(f"nothing could be written for {READY_WITHIN:g} seconds") from None
        return Status(status="ready")

    @app.get("/metrics", dependencies=[_allowed(keys, "read")], response_class=Response)
    def read_metrics() -> Response:
        """For Prometheus; money is read from the store."""
        return Response(metrics.page(), media_type="text/plain; version=0.0.4; charset=utf-8")


def _operating(app: FastAPI, engine: Engine, store: Store, keys: KeyRing) -> None:
    """Routes for operators."""
    admin, read = [_allowed(keys, "admin")], [_allowed(keys, "read")]

    def changed(what: str, campaign: str, **values: Any) -> CampaignDetail:
        log.info(what, campaign=campaign, **values)
        return CampaignDetail(**engine.describe(campaign))

    def status(campaign: str, status: CampaignStatus) -> CampaignDetail:
        engine.set_status(campaign, status)
        return changed("status set", campaign, status=status)

    @app.post("/v1/campaigns", status_code=201, dependencies=admin)
    def create(body: NewCampaign) -> CampaignDetail:
        given = body.model_dump(exclude={"cost_floor", "costs"})
        known = body.model_dump(include={"cost_floor", "costs"}, exclude_none=True)
        engine.create(**given, known=known)
        return changed("campaign created", body.name, budget=body.budget, policy=body.policy)

    @app.get("/v1/campaigns", dependencies=read)
    def campaigns() -> list[CampaignView]:
        return [CampaignView(**row) for row in engine.overview()]

    @app.get("/v1/campaigns/{campaign}", dependencies=read)
    def show(campaign: CampaignPath) -> CampaignDetail:
        return CampaignDetail(**engine.describe(campaign))

    @app.post("/v1/campaigns/{campaign}/pause", dependencies=admin)
    def pause(campaign: CampaignPath) -> CampaignDetail:
        return status(campaign, "paused")

    @app.post("/v1/campaigns/{campaign}/resume", dependencies=admin)
    def resume(campaign: CampaignPath) -> CampaignDetail:
        """After a pause, or after a freeze that somebody has looked into."""
        return status(campaign, "active")

    @app.post("/v1/campaigns/{campaign}/close", dependencies=admin)
    def close(campaign: CampaignPath) -> CampaignDetail:
        """For good; what is open can still be told."""
        return status(campaign, "closed")

    @app.post("/v1/campaigns/{campaign}/top-up", dependencies=admin)
    def top_up(campaign: CampaignPath, body: Amount) -> CampaignDetail:
        engine.top_up(campaign, body.amount)
        return changed("topped up", campaign, amount=body.amount)

    @app.post("/v1/campaigns/{campaign}/arms", status_code=201, dependencies=admin)
    def add_arm(campaign: CampaignPath, body: NewArm) -> CampaignDetail:
        engine.add_arm(campaign, body.name, body.cost_cap)
        return changed("arm added", campaign, arm=body.name)

    @app.post("/v1/campaigns/{campaign}/arms/{arm}/retire", dependencies=admin)
    def retire_arm(campaign: CampaignPath, arm: CampaignPath) -> CampaignDetail:
        engine.retire_arm(campaign, arm)
        return changed("arm retired", campaign, arm=arm)

    @app.get("/v1/campaigns/{campaign}/export", dependencies=read, response_class=FileResponse)
    def read_export(campaign: CampaignPath, table: Table = "decisions", format: Format = "csv") -> FileResponse:
        """All decisions or all events as a file."""
        folder = tempfile.TemporaryDirectory()
        path = Path(folder.name) / f"{table}.{format}"
        try:
            export(store, campaign, path, table)
        except BaseException:
            folder.cleanup()
            raise
        return FileResponse(
            path, media_type=TYPES[format], filename=path.name, background=BackgroundTask(folder.cleanup)
        )

    @app.get("/v1/campaigns/{campaign}/verify", dependencies=admin)
    def read_verify(campaign: CampaignPath) -> Verdict:
        """Replay the campaign's events and compare."""
        differences = verify(store, campaign)
        return Verdict(agrees=not differences, differences=differences)
