"""Routes of operators: campaigns, their records, keys and webhooks. Most may take long, and run in threads."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import structlog
from starlette.concurrency import run_in_threadpool
from starlette.responses import Response

from budgetbandits.answers import (
    ArmTotalAnswer,
    AuditAnswer,
    CampaignAnswer,
    CampaignDetailAnswer,
    DecisionDetailAnswer,
    DecisionPageAnswer,
    DroppedKeyAnswer,
    DroppedWebhookAnswer,
    EventPageAnswer,
    KeyAnswer,
    NewKeyAnswer,
    NewWebhookAnswer,
    StandingAnswer,
    Status,
    WebhookAnswer,
    WebhookTestAnswer,
)
from budgetbandits.errors import Conflict, NotAllowed
from budgetbandits.service import deliveries
from budgetbandits.service import webhooks as addresses
from budgetbandits.service.audit.export import archived_rows
from budgetbandits.service.audit.reader import Job
from budgetbandits.service.http import auth
from budgetbandits.service.http.auth import actor_of, make_key, prefix_of
from budgetbandits.service.http.route import CheckedRequest, File, Route
from budgetbandits.service.http.schemas import (
    CampaignClone,
    CampaignPageQuery,
    DecisionPageQuery,
    EventPageQuery,
    ExportQuery,
    NewArm,
    NewCampaign,
    NewKey,
    NewWebhook,
    Resumption,
    TermChanges,
    TopUp,
)
from budgetbandits.service.http.subprocess_reads import Reading, StreamedRead
from budgetbandits.service.reading import read_decision, read_decisions, read_events
from budgetbandits.service.stores.contract import isolated
from budgetbandits.terms import CHANGEABLE_FACTS

log = structlog.get_logger("budgetbandits")


def metrics(call: CheckedRequest[None]) -> Response:
    """Metrics for Prometheus; money is read from the store."""
    return Response(call.server.metrics.page(), media_type="text/plain; version=0.0.4; charset=utf-8")


# --- campaigns -------------------------------------------------------------------------------------------------------


def campaigns(call: CheckedRequest[CampaignPageQuery]) -> list[CampaignAnswer]:
    """List campaigns, the oldest first: all of them, or a page."""
    return call.server.campaigns.overview(call.content.limit, call.content.after)


def campaign(call: CheckedRequest[None]) -> CampaignDetailAnswer:
    """Show a campaign with its arms."""
    return call.server.campaigns.describe(call.campaign)


def totals(call: CheckedRequest[None]) -> list[ArmTotalAnswer]:
    """List what each arm that was ever chosen has cost and earned; as of a few seconds before."""
    return list(call.server.campaigns.totals(call.campaign).values())


def standing(call: CheckedRequest[None]) -> StandingAnswer:
    """Show how a campaign does: its standing and the cause, its pace, its projected end and what it earned."""
    return call.server.campaigns.standing(call.campaign)


def standings(call: CheckedRequest[CampaignPageQuery]) -> list[StandingAnswer]:
    """List how all campaigns do, the oldest first: all of them, or a page."""
    return call.server.campaigns.standings(call.content.limit, call.content.after)


def create(call: CheckedRequest[NewCampaign]) -> bytes:
    """Create a campaign."""
    body = call.content
    given = body.model_dump(exclude={"cost_floor", "costs"})
    knowledge = body.model_dump(include={"cost_floor", "costs"}, exclude_none=True)
    call.server.campaigns.create(**given, known=knowledge, key=call.key, actor=call.actor)
    return _changed(call, "campaign created", body.name, budget=body.budget, policy=body.policy)


def clone(call: CheckedRequest[CampaignClone]) -> bytes:
    """Create a campaign like this one, with or without what it has learned; the key must be for all campaigns."""
    body, source = call.content, call.path["source"]
    call.server.campaigns.clone(source, body.name, body.budget, body.learned, key=call.key, actor=call.actor)
    return _changed(call, "campaign cloned", body.name, source=source, learned=body.learned)


def pause(call: CheckedRequest[None]) -> bytes:
    """Make no decisions until it is resumed; feedback is still accepted."""
    return _set_status(call, "paused")


def resume(call: CheckedRequest[Resumption]) -> bytes:
    """Make decisions again, after a pause, a freeze or a restore."""
    return _set_status(call, "active", **call.content.model_dump(exclude_unset=True))


def close_campaign(call: CheckedRequest[None]) -> bytes:
    """Close for good; feedback for open decisions is still accepted."""
    return _set_status(call, "closed")


def _set_status(call: CheckedRequest[Any], status: Status, **spent: Any) -> bytes:
    call.server.campaigns.set_status(call.campaign, status, key=call.key, actor=call.actor, **spent)
    return _changed(call, "status set", status=status, **spent)


def reset_clock(call: CheckedRequest[None]) -> bytes:
    """Continue with today's date, after decisions that a wrong clock dated in the future."""
    call.server.campaigns.reset_clock(call.campaign, key=call.key, actor=call.actor)
    return _changed(call, "clock reset")


def top_up(call: CheckedRequest[TopUp]) -> bytes:
    """Raise the budget."""
    call.server.campaigns.top_up(call.campaign, call.content.amount, key=call.key, actor=call.actor)
    return _changed(call, "topped up", amount=call.content.amount)


def add_arm(call: CheckedRequest[NewArm]) -> bytes:
    """Add an arm, from the next decision on."""
    arm = call.content
    call.server.campaigns.add_arm(call.campaign, arm.name, arm.cost_cap, key=call.key, actor=call.actor)
    return _changed(call, "arm added", arm=arm.name)


def retire_arm(call: CheckedRequest[None]) -> bytes:
    """Choose this arm no more, until it is brought back."""
    call.server.campaigns.retire_arm(call.campaign, call.path["arm"], key=call.key, actor=call.actor)
    return _changed(call, "arm retired", arm=call.path["arm"])


def bring_back_arm(call: CheckedRequest[None]) -> bytes:
    """Choose a retired arm again, with all that is known of it."""
    call.server.campaigns.bring_back_arm(call.campaign, call.path["arm"], key=call.key, actor=call.actor)
    return _changed(call, "arm brought back", arm=call.path["arm"])


def change_terms(call: CheckedRequest[TermChanges]) -> bytes:
    """Change the terms that are sent, from now on; null removes a limit. For shared_budget the key must be for all
    campaigns."""
    sent = call.content.model_dump(exclude_unset=True)
    if "shared_budget" in sent and call.only is not None:
        raise NotAllowed(
            "a shared budget is of several campaigns, and this key for one; use one for all", key_valid=True
        )
    changes = {name: value for name, value in sent.items() if value is not None or name not in CHANGEABLE_FACTS}
    call.server.campaigns.change_terms(call.campaign, changes, key=call.key, actor=call.actor)
    return _changed(call, "terms changed", **changes)


def _changed(call: CheckedRequest[Any], event: str, campaign: str | None = None, **logged: Any) -> bytes:
    """Log a change, and answer with the campaign as it was after the first request with this key, as JSON."""
    campaign = campaign or call.campaign
    log.info(event, campaign=campaign, **logged)
    return call.server.campaigns.answer(campaign, call.key).encode()


# --- records ---------------------------------------------------------------------------------------------------------

EXPORT_TYPES = {"csv": "text/csv", "parquet": "application/vnd.apache.parquet"}
"""Media types of an export, by format."""


async def export(call: CheckedRequest[ExportQuery]) -> StreamedRead:
    """Export all decisions or all events as a file."""
    table, format = call.content.table, call.content.format
    archived = await run_in_threadpool(archived_rows, call.server.store, call.campaign, table)
    job = Job("export", call.campaign, table, format)
    reading = await _long_read(call, job, call.server.campaigns.account)
    return StreamedRead(reading, EXPORT_TYPES[format], f"{table}.{format}", {"Budgetbandits-Archived": f"{archived}"})


async def verify(call: CheckedRequest[None]) -> AuditAnswer:
    """Replay the campaign's events and compare the result with the store."""
    return await audited(call, Job("verify", call.campaign), call.server.campaigns.account)


async def audited(call: CheckedRequest[None], job: Job, account: Callable[[str], object]) -> AuditAnswer:
    """The answer of a job that lists differences; ``account`` finds what is audited."""
    reading = await _long_read(call, job, account)
    try:
        differences = json.loads(b"".join([piece async for piece in reading]))
    finally:
        await reading.close()
    return AuditAnswer(agrees=not differences, differences=tuple(differences))


async def _long_read(call: CheckedRequest[Any], job: Job, account: Callable[[str], object]) -> Reading:
    call.server.reads.check_free(job)
    await run_in_threadpool(account, job.campaign)  # NotFound, before a process is started
    return await call.server.reads.open(call.request, job)


def decisions(call: CheckedRequest[DecisionPageQuery]) -> DecisionPageAnswer:
    """List decisions, the newest first, page by page."""
    work = partial(read_decisions, campaign=call.campaign, **vars(call.content))
    return call.server.store.read(isolated(call.campaign, work))


def decision(call: CheckedRequest[None]) -> DecisionDetailAnswer:
    """Show a decision."""
    work = partial(read_decision, campaign=call.campaign, id=call.path["decision"])
    return call.server.store.read(isolated(call.campaign, work))


def events(call: CheckedRequest[EventPageQuery]) -> EventPageAnswer:
    """List events, the oldest first, page by page; a program that keeps the cursor hears of each once."""
    work = partial(read_events, campaign=call.campaign, **vars(call.content))
    return call.server.store.read(isolated(call.campaign, work))


# --- keys and webhooks -----------------------------------------------------------------------------------------------


def keys(call: CheckedRequest[None]) -> list[KeyAnswer]:
    """List all keys by their public part."""
    return call.server.store.read(auth.listed_keys)


def create_key(call: CheckedRequest[NewKey]) -> NewKeyAnswer:
    """Make a key; asked again under the same Idempotency-Key, a conflict, since a key is shown once."""
    asked = call.content.model_dump()
    text = make_key(call.server.store, now=time.time(), actor=call.actor, operation=call.key, **asked)
    log.info("key made", key=prefix_of(text), scopes=call.content.scopes)
    return NewKeyAnswer(prefix=prefix_of(text), key=text)


def drop_key(call: CheckedRequest[None]) -> DroppedKeyAnswer:
    """Drop a key: servers refuse it within five seconds."""
    prefix = call.path["prefix"]
    if actor_of(prefix) == call.actor:
        raise Conflict("this is the key that you are using; drop it with another one")
    auth.drop_key(call.server.store, prefix, call.actor)
    log.info("key dropped", key=prefix)
    return DroppedKeyAnswer(prefix=prefix)


def create_webhook(call: CheckedRequest[NewWebhook]) -> NewWebhookAnswer:
    """Have changes of campaigns reported to an address."""
    webhook = addresses.make_webhook(call.server.store, call.content.url, call.content.campaign)
    log.info("webhook made", webhook=webhook.id, host=addresses.host_of(webhook.url), actor=call.actor)
    return NewWebhookAnswer(
        id=webhook.id, url=webhook.url, campaign=call.content.campaign, created_at=webhook.created_at,
        secret=webhook.secret,
    )  # fmt: skip


def webhooks(call: CheckedRequest[None]) -> list[WebhookAnswer]:
    """List webhooks, and how many notifications each has not accepted."""
    return call.server.store.read(addresses.listed)


def drop_webhook(call: CheckedRequest[None]) -> DroppedWebhookAnswer:
    """Notify an address no more; what it has not accepted is dropped."""
    webhook = call.path["webhook"]
    addresses.drop_webhook(call.server.store, webhook)
    log.info("webhook dropped", webhook=webhook, actor=call.actor)
    return DroppedWebhookAnswer(id=webhook)


def test_webhook(call: CheckedRequest[None]) -> WebhookTestAnswer:
    """Send a test notification to an address at once, and say whether it was accepted."""
    problem = deliveries.send_test(call.server.store, call.path["webhook"])
    return WebhookTestAnswer(id=call.path["webhook"], accepted=problem is None, problem=problem)


CAMPAIGNS = "/v1/campaigns"
"""Path of all campaigns."""

CAMPAIGN = f"{CAMPAIGNS}/{{campaign}}"
"""Path of a campaign."""

ARM = f"{CAMPAIGN}/arms/{{arm:path}}"
"""Path of an arm."""

ARCHIVED = {"Budgetbandits-Archived": "How many earlier rows are in the archive."}
"""Header on archived rows."""

EXPORT = File("The file.", tuple(EXPORT_TYPES.values()), ARCHIVED)
"""Answer of an export."""

change = partial(Route[Any], "POST", scope="admin", answer=CampaignDetailAnswer, keyed="may")
"""A row that changes a campaign, once for each idempotency key."""

ROUTES: tuple[Route[Any], ...] = (
    Route("GET", "/metrics", "read", metrics, File("Prometheus's text format.", ("text/plain",))),
    Route("GET", CAMPAIGNS, "read", campaigns, list[CampaignAnswer], query=CampaignPageQuery),
    Route("GET", CAMPAIGN, "read", campaign, CampaignDetailAnswer),
    Route("GET", f"{CAMPAIGN}/totals", "read", totals, list[ArmTotalAnswer]),
    Route("GET", f"{CAMPAIGN}/standing", "read", standing, StandingAnswer),
    Route("GET", "/v1/standings", "read", standings, list[StandingAnswer], query=CampaignPageQuery),
    change(CAMPAIGNS, function=create, body=NewCampaign, status=201),
    change(f"{CAMPAIGNS}/{{source}}/clone", function=clone, body=CampaignClone, status=201),
    change(f"{CAMPAIGN}/pause", function=pause),
    change(f"{CAMPAIGN}/resume", function=resume, body=Resumption),
    change(f"{CAMPAIGN}/close", function=close_campaign),
    change(f"{CAMPAIGN}/reset-clock", function=reset_clock),
    change(f"{CAMPAIGN}/top-up", function=top_up, body=TopUp),
    change(f"{CAMPAIGN}/arms", function=add_arm, body=NewArm, status=201),
    change(f"{ARM}/retire", function=retire_arm),
    change(f"{ARM}/bring-back", function=bring_back_arm),
    change(f"{CAMPAIGN}/terms", function=change_terms, body=TermChanges),
    Route("GET", f"{CAMPAIGN}/export", "read", export, EXPORT, query=ExportQuery, long=True),
    Route("GET", f"{CAMPAIGN}/verify", "admin", verify, AuditAnswer, long=True),
    Route("GET", f"{CAMPAIGN}/decisions", "read", decisions, DecisionPageAnswer, query=DecisionPageQuery),
    Route("GET", f"{CAMPAIGN}/decisions/{{decision}}", "read", decision, DecisionDetailAnswer),
    Route("GET", f"{CAMPAIGN}/events", "read", events, EventPageAnswer, query=EventPageQuery),
    Route("GET", "/v1/keys", "admin", keys, list[KeyAnswer]),
    Route("POST", "/v1/keys", "admin", create_key, NewKeyAnswer, NewKey, keyed="may", status=201),
    Route("DELETE", "/v1/keys/{prefix}", "admin", drop_key, DroppedKeyAnswer),
    Route("POST", "/v1/webhooks", "admin", create_webhook, NewWebhookAnswer, NewWebhook, status=201),
    Route("GET", "/v1/webhooks", "admin", webhooks, list[WebhookAnswer]),
    Route("DELETE", "/v1/webhooks/{webhook}", "admin", drop_webhook, DroppedWebhookAnswer),
    Route("POST", "/v1/webhooks/{webhook}/test", "admin", test_webhook, WebhookTestAnswer),
)  # fmt: skip
