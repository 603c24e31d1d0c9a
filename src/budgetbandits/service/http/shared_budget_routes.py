"""The routes of shared budgets, and their bodies. Every change says what is to be, so it may be sent again."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import structlog
from fastapi import APIRouter, Path, Request
from pydantic import BaseModel, Field

from budgetbandits.service.audit.reader import Job
from budgetbandits.service.http.operator_routes import Actor, ThisService, audited, scoped_route
from budgetbandits.service.http.schemas import AuditAnswer, Money, Name, RequestBody
from budgetbandits.service.http.worker_routes import ServerState
from budgetbandits.service.shared_budgets.operations import SharedBudgets
from budgetbandits.terms import TERMS, Period, Unspent

log = structlog.get_logger("budgetbandits")

SharedBudgetPath = Annotated[str, Path(min_length=1, max_length=200, description="A shared budget's name.")]


def _term(name: str) -> Any:
    """An optional term of a request, as campaigns have it."""
    return Field(None, description=TERMS[name].full_help)


class SharedBudgetChanges(RequestBody):
    budget: Money | None = Field(None, description="Another budget, at least what is spent, held and leased.")
    period: Period | None = _term("period")
    period_budget: Money | None = Field(None, description="What each period gets, from the next one on.")
    unspent: Unspent | None = Field(None, description=TERMS["unspent"].help)
    time_zone: Name | None = _term("time_zone")


class NewSharedBudget(SharedBudgetChanges):
    period_budget: Money | None = Field(None, description="What each period gets; without it, the budget.")
    unspent: Unspent = Field("lapse", description=TERMS["unspent"].help)
    name: Name = Field(description="A name that no other shared budget has; it never changes.")
    budget: Money = Field(description="The most that its campaigns may spend together.")
    currency: Name | None = Field(None, description="The unit of amounts; its campaigns have the same.")


class SharedMoney(BaseModel):
    name: str = Field(description="Its name.")
    budget: float = Field(description="The most that may be spent.")
    spent: float = Field(description="By its campaigns, and by former ones until they left.")
    held: float = Field(description="Held for decisions of its campaigns whose cost is not reported yet.")
    leased: float = Field(description="Reserved by servers that decide by themselves.")
    left: float = Field(description="Neither spent, held nor leased.")
    overrun: float = Field(description="Costs beyond caps or the money that was left, which are not part of spent.")


class MemberAnswer(SharedMoney):
    id: str = Field(description="The campaign's id.")
    status: Literal["active", "paused", "frozen", "closed"] = Field(description="Whether it decides.")
    spent: float = Field(description="What its decisions have cost, without overruns.")
    held: float = Field(description="Held for its decisions whose cost is not reported yet.")


class SharedBudgetAnswer(SharedMoney):
    currency: str | None = Field(description=TERMS["currency"].full_help)
    period: Period | None = Field(description=TERMS["period"].full_help)
    period_budget: float | None = Field(description=TERMS["period_budget"].full_help)
    unspent: Unspent = Field(description=TERMS["unspent"].full_help)
    time_zone: str | None = Field(description=TERMS["time_zone"].full_help)
    created_at: float = Field(description="Seconds since 1970.")
    unreported: int = Field(
        description="Campaigns that were restored from a copy, until it is said what they have spent since. "
        "While there are any, no campaign of this budget decides."
    )


class SharedBudgetDetailAnswer(SharedBudgetAnswer):
    campaigns: list[MemberAnswer] = Field(description="Its members, by name.")


read = APIRouter(route_class=scoped_route("read"))
admin = APIRouter(route_class=scoped_route("admin"))
ROUTERS = (read, admin)


def _detail(service: ServerState, name: str) -> SharedBudgetDetailAnswer:
    return SharedBudgetDetailAnswer(**SharedBudgets(service.store).describe(name))


@admin.post("/v1/shared-budgets", status_code=201)
def create_shared_budget(body: NewSharedBudget, service: ThisService, actor: Actor) -> SharedBudgetDetailAnswer:
    """Create a budget for campaigns to share; sent again, it changes nothing."""
    SharedBudgets(service.store).create(actor=actor, **body.model_dump())
    log.info("shared budget created", shared_budget=body.name, budget=body.budget)
    return _detail(service, body.name)


@read.get("/v1/shared-budgets")
def shared_budgets(service: ThisService) -> list[SharedBudgetAnswer]:
    """List shared budgets by name."""
    return [SharedBudgetAnswer(**each) for each in SharedBudgets(service.store).overview()]


@read.get("/v1/shared-budgets/{name}")
def shared_budget(name: SharedBudgetPath, service: ThisService) -> SharedBudgetDetailAnswer:
    """Show a shared budget with its campaigns."""
    return _detail(service, name)


@admin.post("/v1/shared-budgets/{name}/terms")
def change_shared_budget(
    body: SharedBudgetChanges, name: SharedBudgetPath, service: ThisService, actor: Actor
) -> SharedBudgetDetailAnswer:
    """Change the budget, or the terms that are sent, from now on; null removes one."""
    changes = body.model_dump(exclude_unset=True)
    SharedBudgets(service.store).change(name, changes, actor)
    log.info("shared budget changed", shared_budget=name, **changes)
    return _detail(service, name)


@admin.post("/v1/shared-budgets/{name}/reset-clock")
def reset_shared_clock(name: SharedBudgetPath, service: ThisService, actor: Actor) -> SharedBudgetDetailAnswer:
    """Continue in the present period, after a wrong clock began one to come; what that was granted is taken back."""
    SharedBudgets(service.store).reset_clock(name, actor)
    log.info("shared budget clock reset", shared_budget=name)
    return _detail(service, name)


@admin.get("/v1/shared-budgets/{name}/verify")
async def verify_shared_budget(request: Request, name: SharedBudgetPath, service: ThisService) -> AuditAnswer:
    """Replay the events of all its campaigns and compare the sum with the store."""
    return await audited(request, service, Job("verify shared budget", name), SharedBudgets(service.store).account)
