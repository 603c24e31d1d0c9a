"""The routes that workers call all the time.

They read the request and write the answer themselves, and the door knows the way to them: what FastAPI does for the
other routes costs as much as a decision. FastAPI has them too, for its document.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

import structlog
from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from pydantic import BaseModel, ValidationError
from pydantic_core import to_json

from budgetbandits.errors import BadParameter, BudgetBanditsError, HoldRefused
from budgetbandits.service.engine import Answer, Booked, Engine, Outcome, Work
from budgetbandits.service.http.auth import KeyRing, check_header
from budgetbandits.service.http.door import Asked, Json, ShortCut, headers_of
from budgetbandits.service.http.metrics import Metrics
from budgetbandits.service.http.problem_json import describe
from budgetbandits.service.http.schemas import (
    PRINTABLE,
    AskDecision,
    AskDecisions,
    Decided,
    DecidedMany,
    Feedback,
    FeedbackBatch,
    Told,
    ToldMany,
)
from budgetbandits.service.stores.base import Store

DECISIONS = "/v1/campaigns/{campaign}/decisions"

B = TypeVar("B", bound=BaseModel)
Answering = Callable[[Asked], Awaitable[Response]]

log = structlog.get_logger("budgetbandits")


def workers_routes(app: FastAPI, engine: Engine, store: Store, metrics: Metrics, keys: KeyRing) -> list[ShortCut]:
    short_cuts: list[ShortCut] = []

    def route(
        path: str, answers: type[BaseModel], body: type[BaseModel] | None = None, keyed: bool = False, status: int = 200
    ) -> Callable[[Answering], Answering]:
        def add(answer: Answering) -> Answering:
            async def endpoint(request: Request) -> Response:
                return await answer(Asked(headers_of(request.scope), request.path_params, request.receive))

            app.add_api_route(
                path, endpoint, methods=["POST"], name=answer.__name__, description=answer.__doc__, status_code=status,
                response_model=answers, openapi_extra=_described(path, body, keyed),
            )  # fmt: skip
            short_cuts.append(ShortCut(path, answer))
            return answer

        return add

    async def allowed(asked: Asked, scope: str) -> str:
        """The campaign, if the request may do this to it."""
        for name, value in asked.path.items():
            if len(value) > 200 or not value.isprintable():
                raise BadParameter(f"{name} is {value!r:.60}; use its name or id as the service gave it")
        campaign = asked.path["campaign"]
        await check_header(keys, asked.header(b"authorization"), scope, campaign)
        return campaign

    async def decided(work: Work[list[Answer]], campaign: str) -> list[dict[str, Any]]:
        try:
            answers = await store.perform(work, campaign)
        except HoldRefused as error:
            metrics.refusals[error.reason] += 1
            raise
        metrics.decisions += len(answers)
        return [vars(answer) for answer in answers]

    def count(campaign: str, booked: Booked) -> None:
        metrics.feedback += 1
        if booked.overrun and booked.cost_is_new:
            metrics.overruns += 1
            told = {"decision": booked.decision, "overrun": booked.overrun}
            log.warning("overrun: the campaign is frozen", campaign=campaign, **told)

    @route(DECISIONS, Decided, AskDecision, keyed=True, status=201)
    async def decide(asked: Asked) -> Response:
        """Choose an arm and hold what it may cost."""
        campaign, key = await allowed(asked, "decide"), _idempotency_key(asked)
        body = await _body(asked, AskDecision)
        return _json((await decided(engine.deciding(campaign, key, body.context), campaign))[0], 201)

    @route(f"{DECISIONS}/{{decision}}/feedback", Told, Feedback)
    async def feedback(asked: Asked) -> Response:
        """What a decision brought, what it cost, or both; in any order, any number of times."""
        campaign, decision = await allowed(asked, "feedback"), asked.path["decision"]
        body = await _body(asked, Feedback)
        booked = await store.perform(engine.telling(Outcome(decision, body.reward, body.cost), campaign), campaign)
        count(campaign, booked)
        return _json({"decision": decision, "overrun": booked.overrun})

    @route(f"{DECISIONS}/batch", DecidedMany, AskDecisions, keyed=True, status=201)
    async def decide_many(asked: Asked) -> Response:
        """Many decisions under one key, all of them or none."""
        campaign, key = await allowed(asked, "decide"), _idempotency_key(asked)
        body = await _body(asked, AskDecisions)
        made = await decided(engine.deciding(campaign, key, body.context, body.count), campaign)
        return _json({"decisions": made}, 201)

    @route("/v1/campaigns/{campaign}/feedback", ToldMany, FeedbackBatch)
    async def feedback_many(asked: Asked) -> Response:
        """The outcomes of many decisions; one that is not taken says why and does not stop the others."""
        campaign, body = await allowed(asked, "feedback"), await _body(asked, FeedbackBatch)
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

    @route(f"{DECISIONS}/{{decision}}/void", Told)
    async def void(asked: Asked) -> Response:
        """The call was never made: its money is free again."""
        campaign, decision = await allowed(asked, "feedback"), asked.path["decision"]
        await store.perform(engine.voiding(decision, campaign), campaign)
        return _json({"decision": decision, "overrun": 0.0})

    return short_cuts


def _described(path: str, body: type[BaseModel] | None, keyed: bool) -> dict[str, Any]:
    """What the OpenAPI document cannot know of a route that reads its request itself."""
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
    return extra


def _inlined(schema: Any, definitions: dict[str, Any]) -> Any:
    """A schema that refers to nothing outside itself."""
    if isinstance(schema, list):
        return [_inlined(each, definitions) for each in schema]
    if not isinstance(schema, dict):
        return schema
    if "$ref" in schema:
        return _inlined(definitions[schema["$ref"].rsplit("/", 1)[1]], definitions)
    return {name: _inlined(each, definitions) for name, each in schema.items()}


async def _body(asked: Asked, kind: type[B]) -> B:
    """What was sent, checked; errors look as FastAPI's do."""
    try:
        # what model_validate_json calls, in half the time
        checked: B = kind.__pydantic_validator__.validate_json(await asked.body() or b"{}")
    except ValidationError as error:
        raise RequestValidationError([{**each, "loc": ("body", *each["loc"])} for each in error.errors()]) from None
    return checked


def _idempotency_key(asked: Asked) -> str:
    key = asked.header(b"idempotency-key")
    if not (0 < len(key) <= 200 and key.isprintable()):
        raise BadParameter(
            "Idempotency-Key is missing or odd; send 1 to 200 printable characters, new for each decision"
        )
    return key


def _json(content: dict[str, Any], status: int = 200) -> Response:
    return Json(to_json(content), status)
