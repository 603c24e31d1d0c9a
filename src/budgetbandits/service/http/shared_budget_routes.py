"""The routes of shared budgets, and their bodies. Every change says what is to be, so it may be sent again."""

from __future__ import annotations

from typing import Any, Literal

import structlog
from pydantic import Field

from budgetbandits.service.audit.reader import Job
from budgetbandits.service.http.operator_routes import audited
from budgetbandits.service.http.route import CheckedRequest, Route
from budgetbandits.service.http.schemas import AuditAnswer, Model, Money, Name, RequestBody
from budgetbandits.service.shared_budgets.operations import SharedBudgets
from budgetbandits.terms import TERMS, Period, Unspent

log = structlog.get_logger("budgetbandits")


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


class SharedMoney(Model):
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


def create_shared_budget(call: CheckedRequest[NewSharedBudget]) -> SharedBudgetDetailAnswer:
    """Create a budget for campaigns to share; sent again, it changes nothing."""
    body = call.content
    SharedBudgets(call.server.store).create(actor=call.actor, **body.model_dump())
    log.info("shared budget created", shared_budget=body.name, budget=body.budget)
    return _detail(call, body.name)


def shared_budgets(call: CheckedRequest[None]) -> list[SharedBudgetAnswer]:
    """List shared budgets by name."""
    return [SharedBudgetAnswer(**row) for row in SharedBudgets(call.server.store).overview()]


def shared_budget(call: CheckedRequest[None]) -> SharedBudgetDetailAnswer:
    """Show a shared budget with its campaigns."""
    return _detail(call, call.path["name"])


def change_shared_budget(call: CheckedRequest[SharedBudgetChanges]) -> SharedBudgetDetailAnswer:
    """Change the budget, or the terms that are sent, from now on; null removes one."""
    name, changes = call.path["name"], call.content.model_dump(exclude_unset=True)
    SharedBudgets(call.server.store).change(name, changes, call.actor)
    log.info("shared budget changed", shared_budget=name, **changes)
    return _detail(call, name)


def reset_shared_clock(call: CheckedRequest[None]) -> SharedBudgetDetailAnswer:
    """Continue in the present period, after a wrong clock began one to come; what that was granted is taken back."""
    name = call.path["name"]
    SharedBudgets(call.server.store).reset_clock(name, call.actor)
    log.info("shared budget clock reset", shared_budget=name)
    return _detail(call, name)


async def verify_shared_budget(call: CheckedRequest[None]) -> AuditAnswer:
    """Replay the events of all its campaigns and compare the sum with the store."""
    job = Job("verify shared budget", call.path["name"])
    return await audited(call, job, SharedBudgets(call.server.store).account)


def _detail(call: CheckedRequest[Any], name: str) -> SharedBudgetDetailAnswer:
    return SharedBudgetDetailAnswer(**SharedBudgets(call.server.store).describe(name))


BUDGETS = "/v1/shared-budgets"
BUDGET = f"{BUDGETS}/{{name}}"
ROUTES: tuple[Route[Any], ...] = (
    Route("POST", BUDGETS, "admin", create_shared_budget, SharedBudgetDetailAnswer, NewSharedBudget, status=201),
    Route("GET", BUDGETS, "read", shared_budgets, list[SharedBudgetAnswer]),
    Route("GET", BUDGET, "read", shared_budget, SharedBudgetDetailAnswer),
    Route("POST", f"{BUDGET}/terms", "admin", change_shared_budget, SharedBudgetDetailAnswer, SharedBudgetChanges),
    Route("POST", f"{BUDGET}/reset-clock", "admin", reset_shared_clock, SharedBudgetDetailAnswer),
    Route("GET", f"{BUDGET}/verify", "admin", verify_shared_budget, AuditAnswer, long=True),
)
