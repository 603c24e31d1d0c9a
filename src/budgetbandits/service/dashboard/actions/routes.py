"""The pages of actions: the form, its preview, and the action itself, once, after it is confirmed."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

import structlog
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from budgetbandits.errors import BudgetBanditsError, Conflict, NotFound
from budgetbandits.service.dashboard.actions.catalog import ACTIONS, action_on
from budgetbandits.service.dashboard.actions.consequences import CampaignSnapshot
from budgetbandits.service.dashboard.actions.flow import FormFlow, Preview, follow, operation
from budgetbandits.service.dashboard.new_campaign import checked, page_values, plan
from budgetbandits.service.dashboard.pages import Dashboard
from budgetbandits.service.dashboard.query import address, campaign_address
from budgetbandits.service.dashboard.sessions import Session, sent
from budgetbandits.service.stores.contract import Transaction, named_damage
from budgetbandits.service.stores.records import Campaign

log = structlog.get_logger("budgetbandits")
CAMPAIGN_FIELD = "campaign_id"
"""The field of every form with the id of its campaign. Whatever a browser or a proxy does to an address, a form or a
button never acts on another campaign than the one of its page."""

STATE_FIELD = "state_code"
"""The field with the campaign's state when the form was opened, as a code (`CampaignSnapshot.state_code`)."""


class ActionPages:
    """The pages of actions on campaigns."""

    def __init__(self, dashboard: Dashboard) -> None:
        self._dashboard = dashboard
        self._campaigns = dashboard.service.campaigns

    def routes(self) -> list[Route]:
        """The routes of these pages."""
        both = ["GET", "POST"]
        page = self._dashboard.page
        return [
            Route("/new", page(self._create), methods=both),
            Route("/campaigns/{campaign}/{action}", page(self._act), methods=both),
        ]

    async def _act(self, request: Request, session: Session) -> Response:
        name = request.path_params["action"]
        if name not in ACTIONS:
            raise NotFound(f"there is nothing called {name!r:.40} to do; use the links of the page")
        form, row = await sent(request, session), await self._dashboard.campaign(request, session)
        with named_damage(row.name):
            return await self._act_on(row, name, form, request, session)

    async def _act_on(
        self, row: Campaign, name: str, form: dict[str, str], request: Request, session: Session
    ) -> Response:
        action = action_on(row, name, form)
        form = {CAMPAIGN_FIELD: row.id, **action.filled(row), **form}
        if form[CAMPAIGN_FIELD] != row.id:
            raise Conflict(
                f"this form belongs to another campaign than {row.name!r}; open it from its campaign's page again"
            )

        def check(tx: Transaction) -> None:
            action.preview(CampaignSnapshot.of(tx, row.id), form).check(form)

        def read() -> Any:
            wanted = action.read(form)
            if isinstance(wanted, dict) and "shared_budget" in wanted:
                session.check("all campaigns, as a shared budget is theirs", "")
            return wanted

        def do() -> Response:
            wanted = read()
            action.run(self._campaigns.provided(check), row.id, wanted, operation(form), session.name)
            return self._done(action.title, row.name, session)

        def preview(tx: Transaction, in_full: bool) -> Preview:
            subject = CampaignSnapshot.of(tx, row.id)
            preview = action.preview(subject, form, in_full)
            if preview.possible:
                try:
                    read()
                except BudgetBanditsError as error:
                    preview = Preview(preview.button, [], error, fixable=True, fields=("shared_budget",))
            return replace(
                preview, state_code=subject.state_code, changed=subject.changed_since(form.get(STATE_FIELD, ""))
            )

        title, form_address = f"{action.title} {row.name}", campaign_address(row.name, name)
        crumbs = [(address(), "Campaigns"), (campaign_address(row.name), row.name)]
        shown, values = partial(action.shown, row), {"fields": action.fields, "back": "Back to the campaign"}
        step = FormFlow(title, form_address, crumbs, "action.html", values, preview, do, shown)
        return await follow(self._dashboard, request, session, form, step)

    async def _create(self, request: Request, session: Session) -> Response:
        form = await sent(request, session)
        session.check("a new campaign", "")

        def do() -> Response:
            shown, given = plan(form)
            shown.check(form)
            self._campaigns.create(**given, key=operation(form), actor=session.name)
            return self._done("create", given["name"], session)

        def preview(tx: Transaction, in_full: bool) -> Preview:
            return checked(tx, form, in_full)

        crumbs = [(address(), "Campaigns")]
        step = FormFlow("New campaign", address("new"), crumbs, "new_campaign.html", page_values(form), preview, do)
        return await follow(self._dashboard, request, session, form, step)

    def _done(self, action: str, campaign: str, session: Session) -> Response:
        self._dashboard.clear()
        log.info("changed on a page", action=action, campaign=campaign, actor=session.name)
        return RedirectResponse(campaign_address(campaign), 303)
