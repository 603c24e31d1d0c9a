"""The routes of operators; they may take long and run in threads."""

from __future__ import annotations

import json
from functools import partial
from typing import Annotated, Any

import structlog
from fastapi import APIRouter, Query, Request, Response
from fastapi.concurrency import run_in_threadpool

from budgetbandits.service.audit.export import Format, Table
from budgetbandits.service.audit.reader import Job
from budgetbandits.service.http.dependencies import Actor, ArmPath, CampaignPath, IdempotencyKey, ThisService, guarded
from budgetbandits.service.http.parts import Service
from budgetbandits.service.http.schemas import (
    Amount,
    CampaignDetail,
    CampaignView,
    ChangedTerms,
    NewArm,
    NewCampaign,
    Verdict,
)
from budgetbandits.service.http.subprocess_reads import Passing, Reading
from budgetbandits.service.ledger import Status as CampaignStatus
from budgetbandits.service.tasks import named_damage

TYPES = {"csv": "text/csv", "parquet": "application/vnd.apache.parquet"}
EXPORTED: dict[int | str, dict[str, Any]] = {200: {"content": {kind: {} for kind in TYPES.values()}}}

Limit = Annotated[int | None, Query(ge=1, le=1000, description="How many at most; all if not said.")]
After = Annotated[
    str | None, Query(min_length=1, max_length=200, description="The id of the last one of the page before.")
]

read = APIRouter(route_class=guarded("read"))
admin = APIRouter(route_class=guarded("admin"))
change = partial(admin.post, response_model=CampaignDetail)
log = structlog.get_logger("budgetbandits")


@read.get("/metrics", response_class=Response)
def read_metrics(service: ThisService) -> Response:
    """For Prometheus; money is read from the store."""
    return Response(service.metrics.page(), media_type="text/plain; version=0.0.4; charset=utf-8")


@change("/v1/campaigns", status_code=201)
def create(body: NewCampaign, service: ThisService, by: Actor, key: IdempotencyKey = None) -> Response:
    given = body.model_dump(exclude={"cost_floor", "costs"})
    known = body.model_dump(include={"cost_floor", "costs"}, exclude_none=True)
    service.campaigns.create(**given, known=known, key=key, by=by)
    return _changed(service, "campaign created", body.name, key, 201, budget=body.budget, policy=body.policy)


@read.get("/v1/campaigns")
def campaigns(service: ThisService, limit: Limit = None, after: After = None) -> list[CampaignView]:
    """The oldest first: all of them, or so many that come after one."""
    return [CampaignView(**row) for row in service.campaigns.overview(limit, after)]


@read.get("/v1/campaigns/{campaign}")
def show(campaign: CampaignPath, service: ThisService) -> CampaignDetail:
    found = service.campaigns.describe(campaign)
    with named_damage(campaign):
        return CampaignDetail(**found)


@change("/v1/campaigns/{campaign}/pause")
def pause(campaign: CampaignPath, service: ThisService, by: Actor, key: IdempotencyKey = None) -> Response:
    return _set_status(service, campaign, "paused", key, by)


@change("/v1/campaigns/{campaign}/resume")
def resume(campaign: CampaignPath, service: ThisService, by: Actor, key: IdempotencyKey = None) -> Response:
    """Decide again, after a pause or a freeze."""
    return _set_status(service, campaign, "active", key, by)


@change("/v1/campaigns/{campaign}/close")
def close(campaign: CampaignPath, service: ThisService, by: Actor, key: IdempotencyKey = None) -> Response:
    """For good; what is open can still be told."""
    return _set_status(service, campaign, "closed", key, by)


@change("/v1/campaigns/{campaign}/set-back")
def set_back(campaign: CampaignPath, service: ThisService, by: Actor, key: IdempotencyKey = None) -> Response:
    """Go on today, after a clock that was far ahead has made decisions of a day to come."""
    service.campaigns.set_back(campaign, key, by)
    return _changed(service, "set back", campaign, key)


@change("/v1/campaigns/{campaign}/top-up")
def top_up(
    campaign: CampaignPath, body: Amount, service: ThisService, by: Actor, key: IdempotencyKey = None
) -> Response:
    service.campaigns.top_up(campaign, body.amount, key, by)
    return _changed(service, "topped up", campaign, key, amount=body.amount)


@change("/v1/campaigns/{campaign}/arms", status_code=201)
def add_arm(
    campaign: CampaignPath, body: NewArm, service: ThisService, by: Actor, key: IdempotencyKey = None
) -> Response:
    service.campaigns.add_arm(campaign, body.name, body.cost_cap, key, by)
    return _changed(service, "arm added", campaign, key, 201, arm=body.name)


@change("/v1/campaigns/{campaign}/arms/{arm:path}/retire")
def retire_arm(
    campaign: CampaignPath, arm: ArmPath, service: ThisService, by: Actor, key: IdempotencyKey = None
) -> Response:
    service.campaigns.retire_arm(campaign, arm, key, by)
    return _changed(service, "arm retired", campaign, key, arm=arm)


@change("/v1/campaigns/{campaign}/arms/{arm:path}/bring-back")
def bring_back_arm(
    campaign: CampaignPath, arm: ArmPath, service: ThisService, by: Actor, key: IdempotencyKey = None
) -> Response:
    """Choose an arm again that was retired."""
    service.campaigns.bring_back_arm(campaign, arm, key, by)
    return _changed(service, "arm brought back", campaign, key, arm=arm)


@change("/v1/campaigns/{campaign}/terms")
def change_terms(
    campaign: CampaignPath, body: ChangedTerms, service: ThisService, by: Actor, key: IdempotencyKey = None
) -> Response:
    """Other terms from now on: those that are sent; null takes a limit away."""
    changes = body.model_dump(exclude_unset=True)
    service.campaigns.change_terms(campaign, changes, key, by)
    return _changed(service, "terms changed", campaign, key, **changes)


@read.get("/v1/campaigns/{campaign}/export", response_class=Response, responses=EXPORTED)
async def read_export(
    request: Request, campaign: CampaignPath, service: ThisService, table: Table = "decisions", format: Format = "csv"
) -> Passing:
    """All decisions or all events as a file."""
    reading = await _long_read(request, service, Job("export", campaign, table, format))
    return Passing(reading, TYPES[format], f"{table}.{format}")


@admin.get("/v1/campaigns/{campaign}/verify")
async def read_verify(request: Request, campaign: CampaignPath, service: ThisService) -> Verdict:
    """Replay the campaign's events and compare."""
    reading = await _long_read(request, service, Job("verify", campaign))
    try:
        differences = json.loads(b"".join([piece async for piece in reading]))
    finally:
        await reading.close()
    return Verdict(agrees=not differences, differences=differences)


async def _long_read(request: Request, service: Service, job: Job) -> Reading:
    service.reads.check_free(job.what)
    await run_in_threadpool(service.campaigns.account, job.campaign)  # not found: no process need start for that
    return await service.reads.open(request, job)


def _set_status(service: Service, campaign: str, status: CampaignStatus, key: str | None, by: str) -> Response:
    service.campaigns.set_status(campaign, status, key, by)
    return _changed(service, "status set", campaign, key, status=status)


def _changed(service: Service, what: str, campaign: str, key: str | None, code: int = 200, **values: Any) -> Response:
    """Log what was done, and answer with the campaign as it was then, whenever that was asked for under this key."""
    log.info(what, campaign=campaign, **values)
    return Response(service.campaigns.answer(campaign, key), code, media_type="application/json")
