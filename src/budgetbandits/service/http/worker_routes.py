"""The routes of workers and load balancers, which are called all the time: decisions, feedback, health.

They are Starlette's, and read the request and write the answer themselves: FastAPI would take as long as a decision.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, TypeVar

import structlog
from pydantic import BaseModel, ValidationError
from pydantic_core import to_json
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from budgetbandits.errors import BadParameter, BadState, BudgetBanditsError, HoldRefused, StoreError
from budgetbandits.service.campaigns import Campaigns
from budgetbandits.service.decisions import DecisionResult, Decisions
from budgetbandits.service.feedback import BookedFeedback, Feedback, FeedbackReport
from budgetbandits.service.http.auth import KeyRing, actor_of, check_header
from budgetbandits.service.http.metrics import Metrics
from budgetbandits.service.http.problem_json import CALLER_ERRORS, InvalidRequest, answer, describe
from budgetbandits.service.http.request_checks import (
    SMALL_BODY_BYTES,
    check_mistakes,
    check_no_nul,
    check_query,
    log_failure,
    read_body,
)
from budgetbandits.service.http.schemas import (
    DecisionAnswer,
    DecisionBatchAnswer,
    DecisionBatchRequest,
    DecisionRequest,
    FeedbackAnswer,
    FeedbackBatchAnswer,
    FeedbackBatchRequest,
    FeedbackRequest,
    HealthAnswer,
    RequestBody,
)
from budgetbandits.service.http.subprocess_reads import LongReads
from budgetbandits.service.http.tracing import Tracing
from budgetbandits.service.stores.contract import Store

READY_SECONDS_MAX = 2.0

DECISIONS = "/v1/campaigns/{campaign}/decisions"

B = TypeVar("B", bound=RequestBody)

log = structlog.get_logger("budgetbandits")


@dataclass(frozen=True)
class ServerState:
    """The parts of a running server that all routes use, operators' too."""

    campaigns: Campaigns
    decisions: Decisions
    reports: Feedback
    store: Store
    metrics: Metrics
    keys: KeyRing
    reads: LongReads
    tracing: Tracing | None = None


async def decide(service: ServerState, request: Request) -> Response:
    """Choose an arm and hold its cost cap, or what the request says."""
    campaign = await _allowed(service, request)
    key, body = _idempotency_key(request), await _body(request, DecisionRequest)
    deciding = service.decisions.decide_in_loop(campaign, key, body.context, body.options())
    made = await _counted(service, campaign, deciding)
    return _Json(made[0], 201)


async def decide_many(service: ServerState, request: Request) -> Response:
    """Make many decisions under one key: all of them or none."""
    campaign = await _allowed(service, request)
    key, body = _idempotency_key(request), await _body(request, DecisionBatchRequest)
    many = service.decisions.decide_many_in_loop(campaign, key, body.count, body.context, body.options())
    made = await _counted(service, campaign, many)
    return _Json({"decisions": made}, 201)


async def feedback(service: ServerState, request: Request) -> Response:
    """Report the reward of a decision, its cost, or both; in any order, any number of times."""
    campaign = await _allowed(service, request)
    decision, body = request.path_params["decision"], await _body(request, FeedbackRequest)
    report = FeedbackReport(decision, body.reward, body.cost, bool(body.failed), request.scope["actor"])
    task = service.reports.feedback_task(report, campaign)
    booked = await service.decisions.perform(campaign, task)
    _count(service, campaign, booked, request.scope["actor"])
    if booked.refused is not None:
        raise booked.refused
    return _Json({"decision": decision, "overrun": booked.overrun})


async def feedback_many(service: ServerState, request: Request) -> Response:
    """Report the outcomes of many decisions; one that is refused says why and does not stop the others."""
    campaign = await _allowed(service, request)
    body = await _body(request, FeedbackBatchRequest)
    actor = request.scope["actor"]
    outcomes = [FeedbackReport(o.decision, o.reward, o.cost, bool(o.failed), actor) for o in body.outcomes]
    found: list[BookedFeedback | BudgetBanditsError] = []
    part: list[BookedFeedback | BudgetBanditsError]
    while len(found) < len(outcomes):  # each counts by itself: others may come between
        task = service.reports.feedback_slice_task(outcomes[len(found) :], campaign)
        part = await service.decisions.perform(campaign, task, sliced=True)
        found += part
    results = []
    for outcome, result in zip(outcomes, found, strict=True):
        refused, overrun = (result, 0.0) if isinstance(result, BudgetBanditsError) else (result.refused, result.overrun)
        if not isinstance(result, BudgetBanditsError):
            _count(service, campaign, result, actor)
        problem = None if refused is None else describe(refused)
        results.append({"decision": outcome.decision, "overrun": overrun, "problem": problem})
    return _Json({"results": results})


async def void(service: ServerState, request: Request) -> Response:
    """Report that the call was never made: its money is free again."""
    campaign = await _allowed(service, request)
    decision = request.path_params["decision"]
    await service.decisions.perform(campaign, service.reports.void_task(decision, campaign, request.scope["actor"]))
    return _Json({"decision": decision, "overrun": 0.0})


async def healthz(_service: ServerState, _request: Request) -> Response:
    """Whether the server is up."""
    return JSONResponse({"status": "ok"})


async def readyz(service: ServerState, _request: Request) -> Response:
    """Whether decisions can be made: a row was written and committed just now; 503 if not within two seconds."""
    beat = asyncio.ensure_future(service.store.perform(lambda tx: tx.write_heartbeat(time.time())))
    done, _ = await asyncio.wait([beat], timeout=READY_SECONDS_MAX)
    problem = beat.exception() if done else f"nothing could be written for {READY_SECONDS_MAX:g} seconds"
    if problem is not None:
        beat.add_done_callback(lambda late: late.exception())  # nobody awaits it any more
        log.warning("not ready", error=str(problem))
        # the caller has no key, so the reason stays in the log
        raise StoreError("the store cannot write; the server's log says why")
    return JSONResponse({"status": "ready"})


Answering = Callable[[ServerState, Request], Awaitable[Response]]


@dataclass(frozen=True)
class WorkerRoute:
    """A route: the scope of the key that it needs, and its entry in the OpenAPI document.

    ``name`` is its operation id; ``keyed`` if it needs an Idempotency-Key.
    """

    name: str
    path: str
    function: Answering
    answer: type[BaseModel]
    scope: str | None = None
    body: type[BaseModel] | None = None
    keyed: bool = False
    status: int = 200
    method: str = "POST"


ROUTES = (
    WorkerRoute("decide", DECISIONS, decide, DecisionAnswer, "decide", DecisionRequest, keyed=True, status=201),
    WorkerRoute(
        "tell", f"{DECISIONS}/{{decision}}/feedback", feedback, FeedbackAnswer, "feedback", FeedbackRequest
    ),
    WorkerRoute(
        "decide_many", f"{DECISIONS}/batch", decide_many, DecisionBatchAnswer, "decide", DecisionBatchRequest,
        keyed=True, status=201,
    ),
    WorkerRoute(
        "tell_many", "/v1/campaigns/{campaign}/feedback", feedback_many, FeedbackBatchAnswer, "feedback",
        FeedbackBatchRequest,
    ),
    WorkerRoute("void", f"{DECISIONS}/{{decision}}/void", void, FeedbackAnswer, "feedback"),
    WorkerRoute("health", "/healthz", healthz, HealthAnswer, method="GET"),
    WorkerRoute("ready", "/readyz", readyz, HealthAnswer, method="GET"),
)  # fmt: skip


class Endpoint:
    """A worker's route as Starlette calls it; it answers errors itself, without a layer for each kind."""

    def __init__(self, service: ServerState, route: WorkerRoute) -> None:
        self._service = service
        self._route = route

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        scope["route"] = self._route  # for the metrics; not every Starlette says which route it took
        try:
            response = await self._route.function(self._service, Request(scope, receive))
        except Exception as error:
            if not isinstance(error, CALLER_ERRORS) or isinstance(error, BadState):
                log_failure(scope, error)
            response = answer(error)
        await response(scope, receive, send)


def routes(service: ServerState) -> list[Route]:
    return [Route(each.path, Endpoint(service, each), methods=[each.method]) for each in ROUTES]


# --- shared parts --------------------------------------------------------------------------------------------------


async def _allowed(service: ServerState, request: Request) -> str:
    """The campaign of a request whose key has the route's scope for it; its holder is the ``actor`` of ASGI's scope."""
    for name, value in request.path_params.items():
        if len(value) > 200 or not value.isprintable():
            raise BadParameter(f"{name} is {value!r:.60}; use its name or id as the service gave it")
    check_query(request.scope["query_string"])
    campaign: str = request.path_params["campaign"]
    client = request.scope.get("client")
    key = await check_header(
        service.keys, _header(request, b"authorization"), request.scope["route"].scope, campaign, client
    )
    request.scope["actor"] = actor_of(key.prefix)
    return campaign


async def _counted(
    service: ServerState, campaign: str, deciding: Awaitable[list[DecisionResult]]
) -> list[dict[str, Any]]:
    try:
        answers = await (deciding if service.tracing is None else service.tracing.decided(campaign, deciding))
    except HoldRefused as error:
        service.metrics.refusals[error.reason] += 1
        service.metrics.refused.count(campaign, error.reason, time.time())
        raise
    service.metrics.decisions += len(answers)
    return [vars(answer) for answer in answers]


def _count(service: ServerState, campaign: str, booked: BookedFeedback, actor: str) -> None:
    service.metrics.feedback += 1
    service.metrics.failures += booked.failed
    if booked.overrun and booked.cost_is_new:
        service.metrics.overruns += 1
        log.warning(
            "campaign frozen by overrun", campaign=campaign, decision=booked.decision, overrun=booked.overrun,
            actor=actor,
        )  # fmt: skip


async def _body(request: Request, kind: type[B]) -> B:
    """The checked body; errors look like FastAPI's."""
    content = await read_body(request, kind.max_bytes) or b"{}"
    check_no_nul(content)
    if len(content) > SMALL_BODY_BYTES:
        check_mistakes(content, kind)
    try:
        # what model_validate_json calls, in half the time
        checked: B = kind.__pydantic_validator__.validate_json(content)
    except ValidationError as error:
        raise InvalidRequest.of(error.errors()[0], "body") from None
    return checked


def _idempotency_key(request: Request) -> str:
    key = _header(request, b"idempotency-key")
    if not (0 < len(key) <= 200 and key.isprintable()):
        raise BadParameter(
            "Idempotency-Key is missing or invalid; send 1 to 200 printable characters, new for each decision"
        )
    return key


def _header(request: Request, header: bytes) -> str:
    """The first header of this name, or an empty text; `Request.headers` takes several times as long."""
    for name, value in request.scope["headers"]:
        if name == header:
            return str(value, "latin-1")
    return ""


class _Json(Response):
    """A JSON response that skips Starlette's work on headers."""

    def __init__(self, content: dict[str, Any], status: int = 200) -> None:
        self.body = to_json(content)
        self.status_code = status
        self.background = None
        self.raw_headers = [(b"content-length", b"%d" % len(self.body)), (b"content-type", b"application/json")]
