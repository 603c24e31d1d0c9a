"""The service over HTTP: FastAPI, problem+json for every error, bearer keys with scopes.

Money is in the user's unit. A decision needs an ``Idempotency-Key``: send the same one again when an answer was lost.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from importlib.metadata import version
from typing import Annotated, Any, Literal

from fastapi import Depends, FastAPI, Header, Path, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from pydantic import BaseModel, ConfigDict, Field, FiniteFloat
from starlette.exceptions import HTTPException

from budgetbandits.errors import (
    AlreadyResolved,
    BadParameter,
    BudgetBanditsError,
    Conflict,
    HoldRefused,
    NoArmLeft,
    NotAllowed,
    NotFound,
    StoreError,
    UnknownArm,
)
from budgetbandits.service.auth import check_key
from budgetbandits.service.engine import Engine
from budgetbandits.service.stores.base import Store

LARGEST_BODY = 1_000_000
RETRY_SECONDS = 1

STATUS: dict[type[BudgetBanditsError], int] = {
    NotFound: 404,
    UnknownArm: 404,
    Conflict: 409,
    AlreadyResolved: 409,
    NoArmLeft: 409,
    StoreError: 503,
}
"""Everything else that is ours is malformed: 422."""


PROBLEM = {
    "type": "object",
    "properties": {name: {"type": "string"} for name in ("type", "title", "detail")} | {"status": {"type": "integer"}},
    "required": ["type", "title", "status", "detail"],
}
PROBLEMS: dict[int | str, dict[str, Any]] = {
    code: {"description": text, "content": {"application/problem+json": {"schema": PROBLEM}}}
    for code, text in {
        400: "no JSON",
        401: "no such key",
        402: "the budget is gone",
        403: "the key may not do this",
        404: "not found",
        405: "not allowed here",
        409: "a conflict, or no decision now",
        411: "Content-Length is missing",
        413: "the body is too large",
        422: "malformed",
        503: "the store cannot write; nothing was decided",
    }.items()
}


class Body(BaseModel):
    """Unknown fields are mistakes."""

    model_config = ConfigDict(extra="forbid", strict=True)


Money = Annotated[FiniteFloat, Field(ge=0.0, le=1e12)]
Name = Annotated[str, Field(min_length=1, max_length=200, pattern=r"^[^\x00-\x1f\x7f]+$")]
Id = Annotated[str, Path(pattern=r"^[0-9a-f]{32}$")]


class NewCampaign(Body):
    name: Name
    policy: Annotated[str, Field(max_length=200)] = "bts"
    budget: Money
    arms: Annotated[dict[Name, Money], Field(min_length=2, max_length=100_000)]
    reward_max: Annotated[FiniteFloat, Field(gt=0.0, le=1e12)] = 1.0
    hold_seconds: Annotated[FiniteFloat, Field(gt=0.0, le=1e9)] = 3600.0
    on_expire: Literal["charge", "release"] = "charge"
    cost_floor: Money | None = None
    costs: dict[Name, Money] | None = None


class AskDecision(Body):
    context: dict[str, Any] = Field(default_factory=dict)


class Feedback(Body):
    reward: FiniteFloat | None = None
    cost: Money | None = None


class Amount(Body):
    amount: Money


class NewArm(Body):
    name: Name
    cost_cap: Money


class Decided(BaseModel):
    decision: str
    campaign: str
    arm: str
    hold: float
    expires_at: float


class ArmView(BaseModel):
    name: str
    cost_cap: float
    active: bool
    pulls: int


class CampaignView(BaseModel):
    id: str
    name: str
    policy: str
    status: str
    budget: float
    spent: float
    held: float
    left: float
    overrun: float
    created_at: float
    arms: list[ArmView]


def create_app(engine: Engine, store: Store) -> FastAPI:
    """The application; whoever serves it sees to `Engine.expire_due`."""
    app = FastAPI(
        title="budgetbandits", version=version("budgetbandits"), docs_url=None, redoc_url=None, responses=PROBLEMS
    )  # fmt: skip
    _errors(app)

    def allowed(scope: str) -> Any:
        def check(request: Request, authorization: Annotated[str | None, Header()] = None) -> None:
            kind, _, text = (authorization or "").partition(" ")
            key = text if kind.lower() == "bearer" else None
            check_key(store, key, scope, request.path_params.get("campaign"))

        return Depends(check)

    def view(campaign: str) -> CampaignView:
        return CampaignView(**engine.describe(campaign))

    @app.get("/healthz")
    def healthz() -> dict[str, str]:
        return {"status": "ok"}

    @app.get("/readyz")
    def readyz() -> dict[str, str]:
        """Whether a transaction that writes can be begun and committed; 503 if not."""
        store.write(lambda tx: tx.keys())
        return {"status": "ready"}

    @app.post("/v1/campaigns", status_code=201, dependencies=[allowed("admin")])
    def create(body: NewCampaign) -> CampaignView:
        given = {"cost_floor": body.cost_floor, "costs": body.costs}
        campaign = engine.create(
            body.name, body.policy, body.budget, body.arms, reward_max=body.reward_max, hold_seconds=body.hold_seconds,
            on_expire=body.on_expire, known={name: value for name, value in given.items() if value is not None},
        )  # fmt: skip
        return view(campaign)

    @app.get("/v1/campaigns", dependencies=[allowed("read")])
    def campaigns() -> list[CampaignView]:
        return [view(campaign) for campaign in engine.campaigns()]

    @app.get("/v1/campaigns/{campaign}", dependencies=[allowed("read")])
    def show(campaign: Id) -> CampaignView:
        return view(campaign)

    @app.post("/v1/campaigns/{campaign}/decisions", status_code=201, dependencies=[allowed("decide")])
    def decide(campaign: Id, body: AskDecision, idempotency_key: Annotated[Name, Header()]) -> Decided:
        return Decided(**vars(engine.decide(campaign, idempotency_key, body.context)))

    @app.post("/v1/campaigns/{campaign}/decisions/{decision}/feedback", dependencies=[allowed("feedback")])
    def feedback(campaign: Id, decision: Id, body: Feedback) -> dict[str, str]:
        if body.reward is None and body.cost is None:
            raise BadParameter("neither reward nor cost is given; tell at least one")
        engine.feedback(decision, campaign=campaign, reward=body.reward, cost=body.cost)
        return {"decision": decision}

    @app.post("/v1/campaigns/{campaign}/decisions/{decision}/void", dependencies=[allowed("feedback")])
    def void(campaign: Id, decision: Id) -> dict[str, str]:
        engine.void(decision, campaign=campaign)
        return {"decision": decision}

    @app.post("/v1/campaigns/{campaign}/pause", dependencies=[allowed("admin")])
    def pause(campaign: Id) -> CampaignView:
        engine.set_status(campaign, "paused")
        return view(campaign)

    @app.post("/v1/campaigns/{campaign}/resume", dependencies=[allowed("admin")])
    def resume(campaign: Id) -> CampaignView:
        engine.set_status(campaign, "active")
        return view(campaign)

    @app.post("/v1/campaigns/{campaign}/close", dependencies=[allowed("admin")])
    def close(campaign: Id) -> CampaignView:
        engine.set_status(campaign, "closed")
        return view(campaign)

    @app.post("/v1/campaigns/{campaign}/top-up", dependencies=[allowed("admin")])
    def top_up(campaign: Id, body: Amount) -> CampaignView:
        engine.top_up(campaign, body.amount)
        return view(campaign)

    @app.post("/v1/campaigns/{campaign}/arms", status_code=201, dependencies=[allowed("admin")])
    def add_arm(campaign: Id, body: NewArm) -> CampaignView:
        engine.add_arm(campaign, body.name, body.cost_cap)
        return view(campaign)

    @app.post("/v1/campaigns/{campaign}/arms/{arm}/retire", dependencies=[allowed("admin")])
    def retire_arm(campaign: Id, arm: Name) -> CampaignView:
        engine.retire_arm(campaign, arm)
        return view(campaign)

    return app


def _errors(app: FastAPI) -> None:
    """Every error as application/problem+json: what it is, and what to do."""

    @app.exception_handler(HoldRefused)
    def refused(_: Request, error: HoldRefused) -> Response:
        waits = {"Retry-After": str(RETRY_SECONDS)} if error.reason == "blocked_by_holds" else {}
        return _problem(402 if error.reason == "exhausted" else 409, error.reason, str(error), waits)

    @app.exception_handler(NotAllowed)
    def not_allowed(_: Request, error: NotAllowed) -> Response:
        if error.known:
            return _problem(403, "forbidden", str(error))
        return _problem(401, "unauthorized", str(error), {"WWW-Authenticate": "Bearer"})

    @app.exception_handler(BudgetBanditsError)
    def ours(_: Request, error: BudgetBanditsError) -> Response:
        status = next((code for kind, code in STATUS.items() if isinstance(error, kind)), 422)
        return _problem(status, type(error).__name__, str(error))

    @app.exception_handler(RequestValidationError)
    def invalid(_: Request, error: RequestValidationError) -> Response:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"])
        return _problem(422, "invalid", f"{where}: {first['msg']}"[:500])

    @app.exception_handler(HTTPException)
    def http(_: Request, error: HTTPException) -> Response:
        return _problem(error.status_code, "http", str(error.detail), dict(error.headers or {}))

    @app.middleware("http")
    async def small_bodies(request: Request, call: Callable[[Request], Awaitable[Response]]) -> Response:
        length = request.headers.get("content-length")
        if length is None and "transfer-encoding" in request.headers:
            return _problem(411, "length required", "send Content-Length with the body")
        if length is not None and (not length.isdigit() or int(length) > LARGEST_BODY):
            return _problem(413, "too large", f"the body may have {LARGEST_BODY:,} bytes; send less at a time")
        return await call(request)


def _problem(status: int, kind: str, detail: str, headers: dict[str, str] | None = None) -> Response:
    content = {"type": f"about:blank#{kind}", "title": kind, "status": status, "detail": detail}
    return JSONResponse(content, status, headers, media_type="application/problem+json")
