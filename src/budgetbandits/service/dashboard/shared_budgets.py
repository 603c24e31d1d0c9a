"""The pages of shared budgets: all of them, one with its campaigns, and forms to create and change one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import structlog
from pydantic_core import from_json
from starlette.requests import Request
from starlette.responses import JSONResponse, RedirectResponse, Response
from starlette.routing import Route

from budgetbandits.errors import BadParameter, BudgetBanditsError
from budgetbandits.formatting.money import MoneyFormat
from budgetbandits.service import ledger
from budgetbandits.service.dashboard.actions.fields import Field, number, typed
from budgetbandits.service.dashboard.actions.flow import FormFlow, Preview, follow
from budgetbandits.service.dashboard.pages import Dashboard, wants_json
from budgetbandits.service.dashboard.query import address
from budgetbandits.service.dashboard.sessions import Session, sent_for_all
from budgetbandits.service.ledger import to_micros, to_units
from budgetbandits.service.names import checked_campaign_name
from budgetbandits.service.shared_budgets.operations import SharedBudgets, described, find_shared_budget
from budgetbandits.service.shared_budgets.rules import SharedBudget
from budgetbandits.service.standing import Standing, outlooks
from budgetbandits.service.stores.contract import Transaction
from budgetbandits.service.stores.records import CampaignSummary, Event

log = structlog.get_logger("budgetbandits")
EVENTS_SHOWN = 50
"""Most events of a shared budget on its page."""

BUDGET_FIELD = Field("budget", "Budget", "The most that its campaigns may spend together.", "decimal")
"""Field of the budget."""

NEW_FIELDS = (
    Field("name", "Name"),
    BUDGET_FIELD,
    Field("currency", "Currency", "Its campaigns have the same. May be empty.", optional=True),
)
"""Fields of a new shared budget."""


@dataclass(frozen=True)
class SharedBudgetView:
    """A shared budget, its campaigns with their standing, and what was done to it."""

    shared: SharedBudget
    members: list[tuple[CampaignSummary, Standing]]
    events: list[Event]

    def campaign(self, event: Event) -> str:
        """The name of the campaign that has joined or left."""
        return str(from_json(event.request or "{}").get("name", ""))

    def as_json(self) -> dict[str, Any]:
        """The view as JSON."""
        campaigns = [
            {"name": member.name, "standing": stands.name, "cause": stands.cause, "spent": to_units(member.spent),
             "held": to_units(member.held), "left": to_units(member.left), "budget": to_units(member.account.budget)}
            for member, stands in self.members
        ]  # fmt: skip
        return vars(described(self.shared)) | {"campaigns": campaigns}


def shared_budget_view(tx: Transaction, name: str) -> SharedBudgetView:
    """The page of a shared budget."""
    shared, rows = find_shared_budget(tx, name), tx.shared_budgets()
    members = [(outlook.glance, outlook.standing) for outlook in outlooks(tx, rows.members(shared.name))]
    return SharedBudgetView(shared, members, rows.latest_events(shared, EVENTS_SHOWN))


class SharedBudgetPages:
    """The pages of the shared budgets of one server; a key for one campaign does not see them."""

    def __init__(self, dashboard: Dashboard) -> None:
        self._dashboard = dashboard
        self._budgets = SharedBudgets(dashboard.service.store)

    def routes(self) -> list[Route]:
        """The routes of these pages."""
        both, page = ["GET", "POST"], self._dashboard.page
        return [
            Route("/shared-budgets", page(self._all)),
            Route("/new-shared-budget", page(self._create), methods=both),
            Route("/shared-budgets/{name}", page(self._one)),
            Route("/shared-budgets/{name}/change", page(self._change), methods=both),
        ]

    async def _all(self, request: Request, session: Session) -> Response:
        session.check("the shared budgets", "")
        rows = await self._dashboard.read(lambda tx: tx.shared_budgets().all())
        if wants_json(request):
            return JSONResponse([vars(described(row)) for row in rows])
        return self._dashboard.filled("shared_budgets.html", request, session, rows=rows)

    async def _one(self, request: Request, session: Session) -> Response:
        session.check("the shared budgets", "")
        view = await self._dashboard.read(lambda tx: shared_budget_view(tx, request.path_params["name"]))
        return self._dashboard.shown("shared_budget.html", request, session, view)

    async def _create(self, request: Request, session: Session) -> Response:
        form = await sent_for_all(request, session, "the shared budgets")

        def do() -> Response:
            _to_create(form).check(form)
            name, budget = form["name"].strip(), number(form, "budget", "budget")
            self._budgets.create(name, budget, session.name, currency=form.get("currency", "").strip() or None)
            return self._done("created", name, session)

        step = FormFlow(
            "New shared budget", address("new-shared-budget"), _crumbs(), "action.html", {"fields": NEW_FIELDS},
            lambda _, in_full: _to_create(form, in_full), do,
        )  # fmt: skip
        return await follow(self._dashboard, request, session, form, step)

    async def _change(self, request: Request, session: Session) -> Response:
        form, name = await sent_for_all(request, session, "the shared budgets"), request.path_params["name"]
        shared = await self._dashboard.read(lambda tx: find_shared_budget(tx, name))
        form = {"budget": typed(to_units(shared.account.budget)), **form}

        def preview(tx: Transaction, in_full: bool = True) -> Preview:
            shared = find_shared_budget(tx, name)
            return _to_change(shared.renewed(tx.now()) or shared, form)

        def do() -> Response:
            self._dashboard.service.store.read(preview).check(form)
            self._budgets.change(name, {"budget": number(form, "budget", "budget")}, session.name)
            return self._done("changed", name, session)

        step = FormFlow(
            f"Change the budget of {shared.name}", address("shared-budgets", name, "change"),
            [*_crumbs(), (address("shared-budgets", name), shared.name)], "action.html", {"fields": (BUDGET_FIELD,)},
            preview, do,
        )  # fmt: skip
        return await follow(self._dashboard, request, session, form, step)

    def _done(self, event: str, name: str, session: Session) -> Response:
        self._dashboard.clear()
        log.info(f"shared budget {event}", shared_budget=name, actor=session.name)
        return RedirectResponse(address("shared-budgets", name), 303)


def _to_create(form: Mapping[str, str], in_full: bool = True) -> Preview:
    button, fields = "Create the shared budget", tuple(field.name for field in NEW_FIELDS)
    if not in_full and not (form.get("name") and form.get("budget")):
        return Preview(button, [])
    currency = form.get("currency", "").strip() or None
    try:
        name = checked_campaign_name("name", form.get("name", "").strip())
        budget = number(form, "budget", "budget")
    except BudgetBanditsError as error:
        return Preview(button, [], error, fixable=True, fields=fields)
    amount = MoneyFormat.for_budget(budget, currency, budget).money(budget)
    changes = [
        ("Name", f"{name}; it never changes", ""), ("Budget", amount, ""),
        ("Campaigns", "join it by their term “Shared budget”, and take their money from both", ""),
    ]  # fmt: skip
    return Preview(button, changes, relies_on=[name, budget, currency], fields=fields)


def _to_change(shared: SharedBudget, form: Mapping[str, str]) -> Preview:
    account, button = shared.account, "Change the budget"
    try:
        after = ledger.set_budget(account, to_micros(number(form, "budget", "budget"), "budget"))
    except BadParameter as error:
        return Preview(button, [], error, fixable=True, fields=("budget",))
    if after == account:
        return Preview(button, [])
    budgets = [to_units(account_at.budget) for account_at in (account, after)]
    unit = MoneyFormat.for_budget(budgets[0], shared.settings.terms.currency, *budgets)
    lefts = [unit.money(to_units(account_at.left)) for account_at in (account, after)]
    changes = [("Budget", *map(unit.money, budgets)), ("Left", lefts[0], lefts[1])]
    return Preview(f"Set the budget to {unit.money(budgets[1])}", changes, relies_on=[shared.name, budgets])  # type: ignore[arg-type]


def _crumbs() -> list[tuple[str, str]]:
    return [(address("shared-budgets"), "Shared budgets")]
