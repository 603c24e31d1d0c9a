"""The routes that are called all the time: functions that read the request and write the answer themselves."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

import structlog
from pydantic import BaseModel, ValidationError
from pydantic_core import to_json
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from budgetbandits.errors import BadParameter, BadState, BudgetBanditsError, HoldRefused
from budgetbandits.service.decisions import DecisionResult
from budgetbandits.service.feedback import DecisionOutcome, FeedbackOutcome
from budgetbandits.service.http.auth import check_header
from budgetbandits.service.http.middleware import log_failure
from budgetbandits.service.http.openapi import description
from budgetbandits.service.http.parts import Service
from budgetbandits.service.http.probes import healthz, readyz
from budgetbandits.service.http.problem_json import EXPECTED, Invalid, answer, describe
from budgetbandits.service.http.request_body import SMALL, check_mistakes, check_no_nul, check_query, read_body
from budgetbandits.service.http.schemas import (
    AskDecision,
    AskDecisions,
    Body,
    Decided,
    DecidedMany,
    Feedback,
    FeedbackBatch,
    FeedbackResult,
    Status,
    ToldMany,
)

if TYPE_CHECKING:  # operators' routes are imported when the server is ready
    from fastapi import FastAPI

TOLD_AT_ONCE = 100
"""Outcomes that share a transaction."""

DECISIONS = "/v1/campaigns/{campaign}/decisions"

B = TypeVar("B", bound=Body)

log = structlog.get_logger("budgetbandits")


async def decide(service: Service, request: Request) -> Response:
    """Choose an arm and hold what it may cost."""
    campaign = await _allowed(service, request, "decide")
    key, body = _idempotency_key(request), await _body(request, AskDecision)
    said = body.said()
    task = service.decisions.decision_task(campaign, key, body.context, said)
    made = await _decided(service, campaign, service.decisions.perform(campaign, task, said))
    return _Json(made[0], 201)


async def decide_many(service: Service, request: Request) -> Response:
    """Many decisions under one key, all of them or none."""
    campaign = await _allowed(service, request, "decide")
    key, body = _idempotency_key(request), await _body(request, AskDecisions)
    many = service.decisions.decide_many_in_loop(campaign, key, body.count, body.context, body.said())
    made = await _decided(service, campaign, many)
    return _Json({"decisions": made}, 201)


async def feedback(service: Service, request: Request) -> Response:
    """What a decision brought, what it cost, or both; in any order, any number of times."""
    campaign = await _allowed(service, request, "feedback")
    decision, body = request.path_params["decision"], await _body(request, Feedback)
    task = service.outcomes.feedback_task(
        DecisionOutcome(decision, body.reward, body.cost, bool(body.failed)), campaign
    )
    booked = await service.decisions.perform(campaign, task)
    _count(service, campaign, booked)
    if booked.refused is not None:
        raise booked.refused
    return _Json({"decision": decision, "overrun": booked.overrun})


async def feedback_many(service: Service, request: Request) -> Response:
    """The outcomes of many decisions; one that is not taken says why and does not stop the others."""
    campaign = await _allowed(service, request, "feedback")
    body = await _body(request, FeedbackBatch)
    outcomes = [DecisionOutcome(item.decision, item.reward, item.cost, bool(item.failed)) for item in body.outcomes]
    found: list[FeedbackOutcome | BudgetBanditsError] = []
    for at in range(0, len(outcomes), TOLD_AT_ONCE):  # each counts by itself, so others may come in between
        some = outcomes[at : at + TOLD_AT_ONCE]
        told_here = await service.decisions.perform(campaign, service.outcomes.feedback_many_task(some, campaign))
        found += told_here
    results = []
    for outcome, result in zip(outcomes, found, strict=True):
        told: dict[str, Any] = {"decision": outcome.decision, "overrun": 0.0, "problem": None}
        if isinstance(result, BudgetBanditsError):
            told["problem"] = describe(result)
        else:
            _count(service, campaign, result)
            told["overrun"] = result.overrun
            if result.refused is not None:
                told["problem"] = describe(result.refused)
        results.append(told)
    return _Json({"results": results})


async def void(service: Service, request: Request) -> Response:
    """The call was never made: its money is free again."""
    campaign = await _allowed(service, request, "feedback")
    decision = request.path_params["decision"]
    await service.store.perform(*service.outcomes.void_task(decision, campaign))
    return _Json({"decision": decision, "overrun": 0.0})


Answering = Callable[[Service, Request], Awaitable[Response]]


@dataclass(frozen=True)
class WorkerRoute:
    """A route, and what the OpenAPI document says of it: the answer, the body, and whether it wants a key."""

    path: str
    function: Answering
    answer: type[BaseModel]
    body: type[BaseModel] | None = None
    keyed: bool = False
    status: int = 200
    method: str = "POST"


ROUTES = (
    WorkerRoute(DECISIONS, decide, Decided, AskDecision, keyed=True, status=201),
    WorkerRoute(f"{DECISIONS}/{{decision}}/feedback", feedback, FeedbackResult, Feedback),
    WorkerRoute(f"{DECISIONS}/batch", decide_many, DecidedMany, AskDecisions, keyed=True, status=201),
    WorkerRoute("/v1/campaigns/{campaign}/feedback", feedback_many, ToldMany, FeedbackBatch),
    WorkerRoute(f"{DECISIONS}/{{decision}}/void", void, FeedbackResult),
    WorkerRoute("/healthz", healthz, Status, method="GET"),
    WorkerRoute("/readyz", readyz, Status, method="GET"),
)


class Endpoint:
    """One of these functions as Starlette calls it; errors are answered here, without a layer for each kind."""

    def __init__(self, service: Service, route: WorkerRoute) -> None:
        self._service = service
        self._route = route

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        scope["route"] = self._route  # for the metrics; not every Starlette says which route it took
        try:
            response = await self._route.function(self._service, Request(scope, receive))
        except Exception as error:
            if not isinstance(error, EXPECTED) or isinstance(error, BadState):
                log_failure(scope, error)
            response = answer(error)
        await response(scope, receive, send)


def routes(service: Service) -> list[Route]:
    return [Route(each.path, Endpoint(service, each), methods=[each.method]) for each in ROUTES]


def document(app: FastAPI) -> None:
    """Have FastAPI write these routes into its document."""

    async def elsewhere() -> None:
        """Never called: what is sent there does not get as far as FastAPI."""

    for each in ROUTES:
        app.add_api_route(
            each.path, elsewhere, methods=[each.method], name=each.function.__name__, description=each.function.__doc__,
            status_code=each.status, response_model=each.answer,
            openapi_extra=description(each.path, each.body, each.keyed),
        )  # fmt: skip


# --- what they share -------------------------------------------------------------------------------------------------


async def _allowed(service: Service, request: Request, scope: str) -> str:
    """The campaign, if the request may do this to it."""
    for name, value in request.path_params.items():
        if len(value) > 200 or not value.isprintable():
            raise BadParameter(f"{name} is {value!r:.60}; use its name or id as the service gave it")
    check_query(request.scope["query_string"])
    campaign: str = request.path_params["campaign"]
    client = request.scope.get("client")
    await check_header(service.keys, _header(request, b"authorization"), scope, campaign, client)
    return campaign


async def _decided(service: Service, campaign: str, deciding: Awaitable[list[DecisionResult]]) -> list[dict[str, Any]]:
    try:
        answers = await deciding
    except HoldRefused as error:
        service.metrics.refusals[error.reason] += 1
        service.metrics.refused.count(campaign, error.reason, time.time())
        raise
    service.metrics.decisions += len(answers)
    return [vars(answer) for answer in answers]


def _count(service: Service, campaign: str, booked: FeedbackOutcome) -> None:
    service.metrics.feedback += 1
    service.metrics.failures += booked.failed
    if booked.overrun and booked.cost_is_new:
        service.metrics.overruns += 1
        told = {"decision": booked.decision, "overrun": booked.overrun}
        log.warning("overrun: the campaign is frozen", campaign=campaign, **told)


async def _body(request: Request, kind: type[B]) -> B:
    """What was sent, checked; errors look as FastAPI's do."""
    content = await read_body(request, kind.most_bytes) or b"{}"
    check_no_nul(content)
    if len(content) > SMALL:
        check_mistakes(content, kind)
    try:
        # what model_validate_json calls, in half the time
        checked: B = kind.__pydantic_validator__.validate_json(content)
    except ValidationError as error:
        first = error.errors()[0]
        raise Invalid(["body", *first["loc"]], first["msg"]) from None
    return checked


def _idempotency_key(request: Request) -> str:
    key = _header(request, b"idempotency-key")
    if not (0 < len(key) <= 200 and key.isprintable()):
        raise BadParameter(
            "Idempotency-Key is missing or invalid; send 1 to 200 printable characters, new for each decision"
        )
    return key


def _header(request: Request, wanted: bytes) -> str:
    """The first header of this name, or nothing; `Request.headers` takes several times as long."""
    for name, value in request.scope["headers"]:
        if name == wanted:
            return str(value, "latin-1")
    return ""


class _Json(Response):
    """JSON, without the work of putting its headers together."""

    def __init__(self, content: dict[str, Any], status: int = 200) -> None:
        self.body = to_json(content)
        self.status_code = status
        self.background = None
        self.raw_headers = [(b"content-length", b"%d" % len(self.body)), (b"content-type", b"application/json")]
