"""The service over HTTP: FastAPI, problem+json for every error, bearer keys with scopes.

Money is in the user's unit. A decision needs an ``Idempotency-Key``: send the same one again when an answer was lost.

The routes that workers call all the time are coroutines that hand their work to the store and wait; the others may
take long and run in threads.
"""

from __future__ import annotations

import re
import tempfile
import time
from importlib.metadata import version
from pathlib import Path
from typing import Any, TypeVar

import structlog
from fastapi import Depends, FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import FileResponse
from pydantic import BaseModel, ValidationError
from pydantic_core import to_json
from starlette.background import BackgroundTask
from starlette.concurrency import run_in_threadpool

from budgetbandits.errors import BadParameter, BudgetBanditsError, HoldRefused, StoreError
from budgetbandits.service.audit import verify
from budgetbandits.service.auth import KeyRing
from budgetbandits.service.door import Door, ShortCut
from budgetbandits.service.engine import Answer, Booked, Engine, Outcome, Work
from budgetbandits.service.export import Format, Table, export
from budgetbandits.service.ledger import Status as CampaignStatus
from budgetbandits.service.metrics import Metrics
from budgetbandits.service.problems import PROBLEMS, describe, handle_errors
from budgetbandits.service.schemas import (
    PRINTABLE,
    Amount,
    AskDecision,
    AskDecisions,
    CampaignDetail,
    CampaignPath,
    CampaignView,
    Decided,
    DecidedMany,
    Feedback,
    FeedbackBatch,
    NewArm,
    NewCampaign,
    Status,
    Told,
    ToldMany,
    Verdict,
)
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
    short_cuts = _deciding(app, engine, store, metrics, keys)
    _operating(app, engine, store, keys)
    return Door(app, metrics, short_cuts)


def _allowed(keys: KeyRing, scope: str) -> Any:
    """The route may be called with a key of this scope."""

    async def check(request: Request) -> None:
        await _check(keys, request, scope)

    return Depends(check)


async def _check(keys: KeyRing, request: Request, scope: str) -> None:
    kind, _, text = request.headers.get("authorization", "").partition(" ")
    key, campaign = text if kind.lower() == "bearer" else None, request.path_params.get("campaign")
    if keys.knows(key):
        keys.check(key, scope, campaign)
    else:
        await run_in_threadpool(keys.check, key, scope, campaign)


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


def _deciding(app: FastAPI, engine: Engine, store: Store, metrics: Metrics, keys: KeyRing) -> list[ShortCut]:
    """Routes for workers. They are called all the time, so they read the request and write the answer themselves, and
    the door knows the way to them: what FastAPI does for the other routes costs as much as a decision."""
    decisions = "/v1/campaigns/{campaign}/decisions"

    async def allowed(request: Request, scope: str) -> str:
        """The campaign, if the request may do this to it."""
        for name, value in request.path_params.items():
            if len(value) > 200 or not value.isprintable():
                raise BadParameter(f"{name} is {value!r:.60}; use its name or id as the service gave it")
        await _check(keys, request, scope)
        return str(request.path_params["campaign"])

    async def decided(work: Work[list[Answer]], campaign: str) -> list[dict[str, Any]]:
        try:
            answers = await store.perform(work, campaign)
        except HoldRefused as error:
            metrics.refusals.labels(error.reason).inc()
            raise
        metrics.decisions.inc(len(answers))
        return [vars(answer) for answer in answers]

    def count(campaign: str, booked: Booked) -> None:
        metrics.feedback.inc()
        if booked.overrun and booked.cost_is_new:
            metrics.overruns.inc()
            told = {"decision": booked.decision, "overrun": booked.overrun}
            log.warning("overrun: the campaign is frozen", campaign=campaign, **told)

    @app.post(**_hot(decisions, Decided, AskDecision, keyed=True), status_code=201)
    async def decide(request: Request) -> Response:
        """Choose an arm and hold what it may cost."""
        campaign, key = await allowed(request, "decide"), _idempotency_key(request)
        body = await _body(request, AskDecision)
        return _json((await decided(engine.deciding(campaign, key, body.context), campaign))[0], 201)

    @app.post(**_hot(f"{decisions}/batch", DecidedMany, AskDecisions, keyed=True), status_code=201)
    async def decide_many(request: Request) -> Response:
        """Many decisions under one key, all of them or none."""
        campaign, key = await allowed(request, "decide"), _idempotency_key(request)
        body = await _body(request, AskDecisions)
        return _json(
            {"decisions": await decided(engine.deciding(campaign, key, body.context, body.count), campaign)}, 201
        )

    @app.post(**_hot(f"{decisions}/{{decision}}/feedback", Told, Feedback))
    async def feedback(request: Request) -> Response:
        """What a decision brought, what it cost, or both; in any order, any number of times."""
        campaign, decision = await allowed(request, "feedback"), request.path_params["decision"]
        body = await _body(request, Feedback)
        booked = await store.perform(engine.telling(Outcome(decision, body.reward, body.cost), campaign), campaign)
        count(campaign, booked)
        return _json({"decision": decision, "overrun": booked.overrun})

    @app.post(**_hot("/v1/campaigns/{campaign}/feedback", ToldMany, FeedbackBatch))
    async def feedback_many(request: Request) -> Response:
        """The outcomes of many decisions; one that is not taken says why and does not stop the others."""
        campaign, body = await allowed(request, "feedback"), await _body(request, FeedbackBatch)
        outcomes = [Outcome(item.decision, item.reward, item.cost) for item in body.outcomes]
        found = await store.perform(engine.telling_many(outcomes, campaign), campaign)
        results = []
        for outcome, result in zip(outcomes, found, strict=True):
            told: dict[str, Any] = {"decision": outcome.decision, "overrun": 0.0, "problem": None}
            if isinstance(result, BudgetBanditsError):
                told["problem"] = describe(result)
            else:
                count(campaign, result)
                told["overrun"] = result.overrun
            results.append(told)
        return _json({"results": results})

    @app.post(**_hot(f"{decisions}/{{decision}}/void", Told))
    async def void(request: Request) -> Response:
        """The call was never made: its money is free again."""
        campaign, decision = await allowed(request, "feedback"), request.path_params["decision"]
        await store.perform(engine.voiding(decision, campaign), campaign)
        return _json({"decision": decision, "overrun": 0.0})

    return [
        ShortCut(decisions, decide),
        ShortCut(f"{decisions}/{{decision}}/feedback", feedback),
    ]


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


def _hot(
    path: str, answer: type[BaseModel], body: type[BaseModel] | None = None, keyed: bool = False
) -> dict[str, Any]:
    """The settings of a route that reads its request itself, among them what the OpenAPI document says of it."""
    text = {"type": "string", "minLength": 1, "maxLength": 200}
    names = re.findall(r"{(\w+)}", path)
    parameters = [{"name": n, "in": "path", "required": True, "schema": text | {"pattern": PRINTABLE}} for n in names]
    if keyed:
        parameters.append({"name": "Idempotency-Key", "in": "header", "required": True, "schema": text})
    extra: dict[str, Any] = {"parameters": parameters}
    if body is not None:
        schema = body.model_json_schema()
        content = {"application/json": {"schema": _inlined(schema, schema.pop("$defs", {}))}}
        extra["requestBody"] = {"required": True, "content": content}
    return {"path": path, "response_model": answer, "openapi_extra": extra}


def _inlined(schema: Any, definitions: dict[str, Any]) -> Any:
    """A schema that refers to nothing outside itself."""
    if isinstance(schema, list):
        return [_inlined(each, definitions) for each in schema]
    if not isinstance(schema, dict):
        return schema
    if "$ref" in schema:
        return _inlined(definitions[schema["$ref"].rsplit("/", 1)[1]], definitions)
    return {name: _inlined(each, definitions) for name, each in schema.items()}


async def _body(request: Request, kind: type[B]) -> B:
    """What was sent, checked; errors look as FastAPI's do."""
    try:
        return kind.model_validate_json(await request.body() or b"{}")
    except ValidationError as error:
        raise RequestValidationError([{**each, "loc": ("body", *each["loc"])} for each in error.errors()]) from None


def _idempotency_key(request: Request) -> str:
    key = request.headers.get("idempotency-key", "")
    if not (0 < len(key) <= 200 and key.isprintable()):
        raise BadParameter(
            "Idempotency-Key is missing or odd; send 1 to 200 printable characters, new for each decision"
        )
    return key


def _json(content: dict[str, Any], status: int = 200) -> Response:
    return Response(to_json(content), status, media_type="application/json")
