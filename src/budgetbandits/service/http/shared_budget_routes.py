"""The routes of shared budgets, and their bodies. Every change says what is to be, so it may be sent again."""

from __future__ import annotations

from typing import Any

import structlog
from pydantic import Field

from budgetbandits.answers import AuditAnswer, SharedBudgetAnswer, SharedBudgetDetailAnswer
from budgetbandits.service.audit.reader import Job
from budgetbandits.service.http.operator_routes import audited
from budgetbandits.service.http.route import CheckedRequest, Route
from budgetbandits.service.http.schemas import Money, Name, RequestBody
from budgetbandits.service.shared_budgets.operations import SharedBudgets
from budgetbandits.terms import TERMS, Period, Unspent

log = structlog.get_logger("budgetbandits")


def _term(name: str) -> Any:
    """An optional term of a request, as campaigns have it."""
    return Field(None, description=TERMS[name].full_help)


class SharedBudgetChanges(RequestBody):
    """Changes of a shared budget."""

    budget: Money | None = Field(None, description="Another budget, at least what is spent, held and leased.")
    period: Period | None = _term("period")
    period_budget: Money | None = Field(None, description="What each period gets, from the next one on.")
    unspent: Unspent | None = Field(None, description=TERMS["unspent"].help)
    time_zone: Name | None = _term("time_zone")


class NewSharedBudget(SharedBudgetChanges):
    """A new shared budget."""

    period_budget: Money | None = Field(None, description="What each period gets; without it, the budget.")
    unspent: Unspent = Field("lapse", description=TERMS["unspent"].help)
    name: Name = Field(description="A name that no other shared budget has; it never changes.")
    budget: Money = Field(description="The most that its campaigns may spend together.")
    currency: Name | None = Field(None, description="The unit of amounts; its campaigns have the same.")


def create_shared_budget(call: CheckedRequest[NewSharedBudget]) -> SharedBudgetDetailAnswer:
    """Create a budget for campaigns to share; sent again, it changes nothing."""
    body = call.content
    SharedBudgets(call.server.store).create(actor=call.actor, **body.model_dump())
    log.info("shared budget created", shared_budget=body.name, budget=body.budget)
    return _detail(call, body.name)


def shared_budgets(call: CheckedRequest[None]) -> list[SharedBudgetAnswer]:
    """List shared budgets by name."""
    return SharedBudgets(call.server.store).overview()


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
    return SharedBudgets(call.server.store).describe(name)


BUDGETS = "/v1/shared-budgets"
"""Path of all shared budgets."""

BUDGET = f"{BUDGETS}/{{name}}"
"""Path of a shared budget."""

ROUTES: tuple[Route[Any], ...] = (
    Route("POST", BUDGETS, "admin", create_shared_budget, SharedBudgetDetailAnswer, NewSharedBudget, status=201),
    Route("GET", BUDGETS, "read", shared_budgets, list[SharedBudgetAnswer]),
    Route("GET", BUDGET, "read", shared_budget, SharedBudgetDetailAnswer),
    Route("POST", f"{BUDGET}/terms", "admin", change_shared_budget, SharedBudgetDetailAnswer, SharedBudgetChanges),
    Route("POST", f"{BUDGET}/reset-clock", "admin", reset_shared_clock, SharedBudgetDetailAnswer),
    Route("GET", f"{BUDGET}/verify", "admin", verify_shared_budget, AuditAnswer, long=True),
)
"""Routes of shared budgets."""
