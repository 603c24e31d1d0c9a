"""The routes of operators, and what they have in common: keys, bodies, pages. They may take long and run in threads."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Any, get_type_hints

import structlog
from fastapi import APIRouter, Depends, Path, Query, Request, Response
from fastapi.concurrency import run_in_threadpool
from fastapi.routing import APIRoute
from pydantic import Field
from starlette.types import Message

from budgetbandits.errors import Conflict, NotAllowed
from budgetbandits.service import deliveries, webhooks
from budgetbandits.service.audit.export import Format, Table, archived_rows
from budgetbandits.service.audit.reader import Job
from budgetbandits.service.campaigns import Campaigns
from budgetbandits.service.http.auth import actor_of, check_header, drop_key, make_key, prefix_of
from budgetbandits.service.http.openapi import (
    ArmPath,
    CampaignPath,
    DecisionPath,
    IdempotencyKey,
    requires,
)
from budgetbandits.service.http.request_checks import check_mistakes, check_no_nul, check_query, check_size
from budgetbandits.service.http.schemas import (
    ArmTotalAnswer,
    AuditAnswer,
    CampaignAnswer,
    CampaignClone,
    CampaignDetailAnswer,
    DecisionDetailAnswer,
    DecisionPageAnswer,
    DroppedKeyAnswer,
    DroppedWebhookAnswer,
    EventPageAnswer,
    KeyAnswer,
    NewArm,
    NewCampaign,
    NewKey,
    NewKeyAnswer,
    NewWebhook,
    NewWebhookAnswer,
    RequestBody,
    Resumption,
    StandingAnswer,
    TermChanges,
    TopUp,
    WebhookAnswer,
    WebhookTestAnswer,
)
from budgetbandits.service.http.subprocess_reads import Reading, StreamedRead
from budgetbandits.service.http.worker_routes import ServerState
from budgetbandits.service.reading import read_decision, read_decisions, read_events
from budgetbandits.service.stores.contract import Transaction, isolated, named_damage
from budgetbandits.service.stores.sql.dashboard import DecisionKind
from budgetbandits.terms import CHANGEABLE_FACTS

log = structlog.get_logger("budgetbandits")


# --- parameters of the routes ----------------------------------------------------------------------------------------

UNUSED_BODY_BYTES_MAX = 1_000
"""Bytes of a body that is sent to a route without one."""

WebhookPath = Annotated[str, Path(min_length=1, max_length=200, description="A webhook's id.")]

PageLimit = Annotated[int, Query(ge=1, le=1000, description="How many at most.")]

Time = Annotated[float, Field(ge=0, le=1e12, allow_inf_nan=False)]
"""Seconds since 1970."""
CURSOR = "The cursor that ended the previous page."
Cursor = Annotated[int, Query(ge=0, le=2**62, description=CURSOR)]


def service_of(request: Request) -> ServerState:
    """The service behind the application that got this request."""
    service: ServerState = request.scope["service"]
    return service


ThisService = Annotated[ServerState, Depends(service_of)]


def _actor_of(request: Request) -> str:
    name: str = request.state.actor
    return name


Actor = Annotated[str, Depends(_actor_of)]
"""The caller, as events name it."""


@dataclass(frozen=True)
class OperatorChange:
    """A change of a campaign that an operator asks for, once for each idempotency key."""

    service: ServerState
    campaign: str
    actor: str
    key: str | None

    def make(
        self, event: str, method: Callable[..., None], *args: Any, status_code: int = 200, **logged: Any
    ) -> Response:
        """Call this method of `Campaigns`, and answer."""
        method(self.service.campaigns, self.campaign, *args, key=self.key, actor=self.actor)
        return self.answer(event, status_code, **logged)

    def answer(self, event: str, status_code: int, **logged: Any) -> Response:
        """Log the change, and answer with the campaign as it was after the first request with this key."""
        log.info(event, campaign=self.campaign, **logged)
        return Response(
            self.service.campaigns.answer(self.campaign, self.key), status_code, media_type="application/json"
        )


def _change_of(
    campaign: CampaignPath, service: ThisService, actor: Actor, key: IdempotencyKey = None
) -> OperatorChange:
    return OperatorChange(service, campaign, actor, key)


ThisChange = Annotated[OperatorChange, Depends(_change_of)]


def _as_json(request: Request, content: bytes) -> Request:
    """The same request with this body, declared as JSON: callers may leave the Content-Type out."""
    headers = [each for each in request.scope["headers"] if each[0] != b"content-type"]

    async def receive() -> Message:
        return {"type": "http.request", "body": content, "more_body": False}

    scope = dict(request.scope)
    scope["headers"] = [*headers, (b"content-type", b"application/json")]
    return Request(scope, receive)


def scoped_route(scope: str) -> type[APIRoute]:
    """Routes that need a key of this scope, for the campaign in their path if there is one.

    FastAPI parses a body before it runs any dependency. Requests without a key, or with a body that would take long to
    refuse, are refused before that.
    """

    class ScopedRoute(APIRoute):
        def __init__(self, *args: Any, **options: Any) -> None:
            super().__init__(*args, **options | {"openapi_extra": requires(scope)})

        def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
            handle = super().get_route_handler()
            body: type[RequestBody] | None = get_type_hints(self.endpoint).get("body")
            known = [each.alias for each in self.dependant.query_params]

            async def check_first(request: Request) -> Response:
                header, campaign = request.headers.get("authorization", ""), request.path_params.get("campaign")
                client = request.scope.get("client")
                key = await check_header(service_of(request).keys, header, scope, campaign, client)
                request.state.actor, request.state.only = actor_of(key.prefix), key.campaign
                structlog.contextvars.bind_contextvars(actor=request.state.actor)
                check_query(request.scope["query_string"], known)
                content = await request.body() or (b"" if body is None else b"{}")
                check_size(len(content), UNUSED_BODY_BYTES_MAX if body is None else body.max_bytes)
                check_no_nul(content)
                if body is not None:
                    check_mistakes(content, body)
                    request = _as_json(request, content)
                return await handle(request)

            return check_first

    return ScopedRoute


# --- the routes ------------------------------------------------------------------------------------------------------

EXPORT_TYPES = {"csv": "text/csv", "parquet": "application/vnd.apache.parquet"}
TEXT = {"schema": {"type": "string"}}
EXPORT_RESPONSES: dict[int | str, dict[str, Any]] = {
    200: {
        "description": "The file.", "content": dict.fromkeys(EXPORT_TYPES.values(), TEXT),
        "headers": {"Budgetbandits-Archived": {"description": "How many earlier rows are in the archive.",
                                               "schema": {"type": "integer"}}},
    }
}  # fmt: skip
METRICS_RESPONSES: dict[int | str, dict[str, Any]] = {
    200: {"description": "Prometheus's text format.", "content": {"text/plain": TEXT}}
}

Limit = Annotated[int | None, Query(ge=1, le=1000, description="How many at most; all if not given.")]
After = Annotated[
    str | None, Query(min_length=1, max_length=200, description="The id of the last campaign of the previous page.")
]

read = APIRouter(route_class=scoped_route("read"))
admin = APIRouter(route_class=scoped_route("admin"))
ROUTERS = (read, admin)
change = partial(admin.post, response_model=CampaignDetailAnswer)

PLAIN_RESUMPTION = Resumption()


@read.get("/metrics", response_class=Response, responses=METRICS_RESPONSES)
def metrics(service: ThisService) -> Response:
    """Metrics for Prometheus; money is read from the store."""
    return Response(service.metrics.page(), media_type="text/plain; version=0.0.4; charset=utf-8")


@change("/v1/campaigns", status_code=201)
def create(body: NewCampaign, service: ThisService, actor: Actor, key: IdempotencyKey = None) -> Response:
    """Create a campaign."""
    given = body.model_dump(exclude={"cost_floor", "costs"})
    known = body.model_dump(include={"cost_floor", "costs"}, exclude_none=True)
    service.campaigns.create(**given, known=known, key=key, actor=actor)
    change = OperatorChange(service, body.name, actor, key)
    return change.answer("campaign created", 201, budget=body.budget, policy=body.policy)


@read.get("/v1/campaigns")
def campaigns(service: ThisService, limit: Limit = None, after: After = None) -> list[CampaignAnswer]:
    """List campaigns, the oldest first: all of them, or a page."""
    return [CampaignAnswer(**row) for row in service.campaigns.overview(limit, after)]


@read.get("/v1/campaigns/{campaign}")
def campaign(campaign: CampaignPath, service: ThisService) -> CampaignDetailAnswer:
    """Show a campaign with its arms."""
    found = service.campaigns.describe(campaign)
    with named_damage(campaign):
        return CampaignDetailAnswer(**found)


@read.get("/v1/campaigns/{campaign}/totals")
def totals(campaign: CampaignPath, service: ThisService) -> list[ArmTotalAnswer]:
    """List what each arm that was ever chosen has cost and earned; as of a few seconds before."""
    found = service.campaigns.totals(campaign)
    return [ArmTotalAnswer(arm=name, **vars(each)) for name, each in found.items()]


@read.get("/v1/campaigns/{campaign}/standing")
def standing(campaign: CampaignPath, service: ThisService) -> StandingAnswer:
    """Show how a campaign does: its standing and the cause, its pace, its projected end and what it earned."""
    return StandingAnswer(**service.campaigns.outlook(campaign).to_dict())


@read.get("/v1/standings")
def standings(service: ThisService, limit: Limit = None, after: After = None) -> list[StandingAnswer]:
    """List how all campaigns do, the oldest first: all of them, or a page."""
    return [StandingAnswer(**each.to_dict()) for each in service.campaigns.outlooks(limit, after)]


@change("/v1/campaigns/{source}/clone", status_code=201)
def clone(
    body: CampaignClone, source: CampaignPath, service: ThisService, actor: Actor, key: IdempotencyKey = None
) -> Response:
    """Create a campaign like this one, with or without what it has learned; the key must be for all campaigns."""
    service.campaigns.clone(source, body.name, body.budget, body.learned, key=key, actor=actor)
    change = OperatorChange(service, body.name, actor, key)
    return change.answer("campaign cloned", 201, source=source, learned=body.learned)


@change("/v1/campaigns/{campaign}/pause")
def pause(change: ThisChange) -> Response:
    """Make no decisions until it is resumed; feedback is still accepted."""
    return change.make("status set", Campaigns.set_status, "paused", status="paused")


@change("/v1/campaigns/{campaign}/resume")
def resume(change: ThisChange, body: Resumption = PLAIN_RESUMPTION) -> Response:
    """Make decisions again, after a pause, a freeze or a restore."""
    method, given = partial(Campaigns.set_status, spent_since=body.spent_since), body.model_dump(exclude_unset=True)
    return change.make("status set", method, "active", status="active", **given)


@change("/v1/campaigns/{campaign}/close")
def close_campaign(change: ThisChange) -> Response:
    """Close for good; feedback for open decisions is still accepted."""
    return change.make("status set", Campaigns.set_status, "closed", status="closed")


@change("/v1/campaigns/{campaign}/reset-clock")
def reset_clock(change: ThisChange) -> Response:
    """Continue with today's date, after decisions that a wrong clock dated in the future."""
    return change.make("clock reset", Campaigns.reset_clock)


@change("/v1/campaigns/{campaign}/top-up")
def top_up(body: TopUp, change: ThisChange) -> Response:
    """Raise the budget."""
    return change.make("topped up", Campaigns.top_up, body.amount, amount=body.amount)


@change("/v1/campaigns/{campaign}/arms", status_code=201)
def add_arm(body: NewArm, change: ThisChange) -> Response:
    """Add an arm, from the next decision on."""
    return change.make("arm added", Campaigns.add_arm, body.name, body.cost_cap, status_code=201, arm=body.name)


@change("/v1/campaigns/{campaign}/arms/{arm:path}/retire")
def retire_arm(arm: ArmPath, change: ThisChange) -> Response:
    """Choose this arm no more, until it is brought back."""
    return change.make("arm retired", Campaigns.retire_arm, arm, arm=arm)


@change("/v1/campaigns/{campaign}/arms/{arm:path}/bring-back")
def bring_back_arm(arm: ArmPath, change: ThisChange) -> Response:
    """Choose a retired arm again, with all that is known of it."""
    return change.make("arm brought back", Campaigns.bring_back_arm, arm, arm=arm)


@change("/v1/campaigns/{campaign}/terms")
def change_terms(body: TermChanges, change: ThisChange, request: Request) -> Response:
    """Change the terms that are sent, from now on; null removes a limit. For shared_budget the key must be for all
    campaigns."""
    sent = body.model_dump(exclude_unset=True)
    if "shared_budget" in sent and request.state.only is not None:
        raise NotAllowed("a shared budget is of several campaigns, and this key for one; use one for all", known=True)
    changes = {name: value for name, value in sent.items() if value is not None or name not in CHANGEABLE_FACTS}
    return change.make("terms changed", Campaigns.change_terms, changes, **changes)


@read.get("/v1/campaigns/{campaign}/export", response_class=Response, responses=EXPORT_RESPONSES)
async def export(
    request: Request, campaign: CampaignPath, service: ThisService,
    table: Annotated[Table, Query(description="Which table.")] = "decisions",
    format: Annotated[Format, Query(description="Parquet needs the extra archive on the server.")] = "csv",
) -> StreamedRead:  # fmt: skip
    """Export all decisions or all events as a file."""
    archived = await run_in_threadpool(archived_rows, service.store, campaign, table)
    reading = await _long_read(request, service, Job("export", campaign, table, format), service.campaigns.account)
    return StreamedRead(reading, EXPORT_TYPES[format], f"{table}.{format}", {"Budgetbandits-Archived": f"{archived}"})


@admin.get("/v1/campaigns/{campaign}/verify")
async def verify(request: Request, campaign: CampaignPath, service: ThisService) -> AuditAnswer:
    """Replay the campaign's events and compare the result with the store."""
    return await audited(request, service, Job("verify", campaign), service.campaigns.account)


@read.get("/v1/campaigns/{campaign}/decisions")
def decisions(
    campaign: CampaignPath, service: ThisService, limit: PageLimit = 100,
    before: Annotated[int | None, Query(ge=0, le=2**62, description=CURSOR)] = None,
    until: Annotated[
        Time | None, Query(description="Begin with the decisions of this time, or of a few seconds after it.")
    ] = None,
    kind: Annotated[DecisionKind, Query(description="Only decisions of this kind.")] = "all",
    arm: Annotated[str | None, Query(min_length=1, max_length=200, description="Only those of this arm.")] = None,
) -> DecisionPageAnswer:  # fmt: skip
    """List decisions, the newest first, page by page."""
    work = partial(read_decisions, campaign=campaign, limit=limit, before=before, until=until, kind=kind, arm=arm)
    return DecisionPageAnswer(**service.store.read(isolated(campaign, work)))


@read.get("/v1/campaigns/{campaign}/decisions/{decision}")
def decision(campaign: CampaignPath, decision: DecisionPath, service: ThisService) -> DecisionDetailAnswer:
    """Show a decision."""
    work = partial(read_decision, campaign=campaign, id=decision)
    return DecisionDetailAnswer(**service.store.read(isolated(campaign, work)))


@read.get("/v1/campaigns/{campaign}/events")
def events(
    campaign: CampaignPath, service: ThisService, limit: PageLimit = 100, after: Cursor = 0,
    since: Annotated[
        Time | None, Query(description="Begin with the events of this time, or of a few seconds before it.")
    ] = None,
) -> EventPageAnswer:  # fmt: skip
    """List events, the oldest first, page by page; a program that keeps the cursor hears of each once."""
    work = partial(read_events, campaign=campaign, limit=limit, after=after, since=since)
    return EventPageAnswer(**service.store.read(isolated(campaign, work)))


@admin.get("/v1/keys")
def keys(service: ThisService) -> list[KeyAnswer]:
    """List all keys by their public part."""

    def work(tx: Transaction) -> list[KeyAnswer]:
        keys = tx.keys()
        names = tx.pages().names(sorted({key.campaign for key in keys if key.campaign is not None}))
        return [KeyAnswer(**vars(key) | {"campaign": names.get(key.campaign or "")}) for key in keys]

    return service.store.read(work)


@admin.post("/v1/keys", status_code=201)
def create_key(body: NewKey, service: ThisService, actor: Actor, key: IdempotencyKey = None) -> NewKeyAnswer:
    """Make a key; asked again under the same Idempotency-Key, a conflict, since a key is shown once."""
    text = make_key(service.store, now=time.time(), actor=actor, operation=key, **body.model_dump())
    log.info("key made", key=prefix_of(text), scopes=body.scopes)
    return NewKeyAnswer(prefix=prefix_of(text), key=text)


@admin.delete("/v1/keys/{prefix}", name="drop_key")
def delete_key(
    prefix: Annotated[str, Path(pattern="^[0-9a-zA-Z]{1,40}$", description="The public part of the key.")],
    service: ThisService,
    actor: Actor,
) -> DroppedKeyAnswer:
    """Drop a key: servers refuse it within five seconds."""
    if actor_of(prefix) == actor:
        raise Conflict("this is the key that you are using; drop it with another one")
    drop_key(service.store, prefix, actor)
    log.info("key dropped", key=prefix)
    return DroppedKeyAnswer(prefix=prefix)


@admin.post("/v1/webhooks", status_code=201)
def create_webhook(body: NewWebhook, service: ThisService, actor: Actor) -> NewWebhookAnswer:
    """Have changes of campaigns reported to an address."""
    made = webhooks.make_webhook(service.store, body.url, body.campaign)
    log.info("webhook made", webhook=made.id, host=webhooks.host_of(made.url), actor=actor)
    return NewWebhookAnswer(**vars(made) | {"campaign": body.campaign})


@admin.get("/v1/webhooks", name="webhooks")
def list_webhooks(service: ThisService) -> list[WebhookAnswer]:
    """List webhooks, and how many notifications each has not accepted."""
    return [WebhookAnswer(**each) for each in service.store.read(webhooks.listed)]


@admin.delete("/v1/webhooks/{webhook}")
def drop_webhook(webhook: WebhookPath, service: ThisService, actor: Actor) -> DroppedWebhookAnswer:
    """Notify an address no more; what it has not accepted is dropped."""
    webhooks.drop_webhook(service.store, webhook)
    log.info("webhook dropped", webhook=webhook, actor=actor)
    return DroppedWebhookAnswer(id=webhook)


@admin.post("/v1/webhooks/{webhook}/test")
def test_webhook(webhook: WebhookPath, service: ThisService) -> WebhookTestAnswer:
    """Send a test notification to an address at once, and say whether it was accepted."""
    problem = deliveries.send_test(service.store, webhook)
    return WebhookTestAnswer(id=webhook, accepted=problem is None, problem=problem)


async def audited(request: Request, service: ServerState, job: Job, account: Callable[[str], object]) -> AuditAnswer:
    """The answer of a job that lists differences; ``account`` finds what is audited."""
    reading = await _long_read(request, service, job, account)
    try:
        differences = json.loads(b"".join([piece async for piece in reading]))
    finally:
        await reading.close()
    return AuditAnswer(agrees=not differences, differences=differences)


async def _long_read(request: Request, service: ServerState, job: Job, account: Callable[[str], object]) -> Reading:
    service.reads.check_free(job)
    await run_in_threadpool(account, job.campaign)  # NotFound, before a process is started
    return await service.reads.open(request, job)
