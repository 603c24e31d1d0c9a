"""The routes of actions: a form that says what will happen, and the doing of it, once, by a form of the session."""

from __future__ import annotations

import asyncio
from urllib.parse import quote

import structlog
from starlette.requests import Request
from starlette.responses import JSONResponse, RedirectResponse, Response
from starlette.routing import Route

from budgetbandits.errors import BudgetBanditsError, NotFound
from budgetbandits.service.dashboard.actions import ACTIONS, Action, Preview, new_key, preview
from budgetbandits.service.dashboard.fields import in_labels
from budgetbandits.service.dashboard.forms import sent
from budgetbandits.service.dashboard.new_form import checked, planned, policies
from budgetbandits.service.dashboard.pages import render
from budgetbandits.service.dashboard.routes import Dashboard, wants_json
from budgetbandits.service.dashboard.sessions import Session
from budgetbandits.service.http.problem_json import describe
from budgetbandits.service.stores.records import ArmRow, Campaign

log = structlog.get_logger("budgetbandits")


class Actions:
    """What can be done to campaigns on the pages of one server."""

    def __init__(self, dashboard: Dashboard) -> None:
        self._dashboard = dashboard
        self._service = dashboard.service

    def routes(self) -> list[Route]:
        both = ["GET", "POST"]
        page = self._dashboard.page
        return [
            Route("/new", page(self._create), methods=both),
            Route("/campaigns/{campaign}/{action}", page(self._act), methods=both),
        ]

    # --- one campaign --------------------------------------------------------------------------------------------

    async def _act(self, request: Request, session: Session) -> Response:
        name = request.path_params["action"]
        if name not in ACTIONS:
            raise NotFound(f"there is nothing called {name!r:.40} to do; use the links of the page")
        form, row = await sent(request, session), await self._dashboard.campaign(request, session)
        action, problem, status = ACTIONS[name], "", 200
        if request.method == "POST":
            try:
                await asyncio.to_thread(self._run, action, row, form, session)
                return RedirectResponse(f"/campaigns/{quote(row.name, safe='')}", 303)
            except BudgetBanditsError as error:
                problem, status = in_labels(str(error)), describe(error)["status"]
        arms: list[ArmRow] = await self._dashboard.read(lambda tx: tx.arms(row.id))
        form = {**action.filled(row), **form}
        shown = preview(action, row, arms, form)
        part = answer_in_part(request, session, shown)
        if part is not None:
            return part
        return self._dashboard.filled(
            "act.html", request, session, status, action=action, preview=shown, form=form, row=row, problem=problem,
            once=form.get("once") or new_key(),
        )  # fmt: skip

    def _run(self, action: Action, row: Campaign, form: dict[str, str], session: Session) -> None:
        action.run(self._service.campaigns, row.id, form, form.get("once") or new_key(), session.name)
        self._dashboard.forget()
        log.info("done on a page", what=action.title, campaign=row.name, by=session.name)

    # --- a new one -----------------------------------------------------------------------------------------------

    async def _create(self, request: Request, session: Session) -> Response:
        form = await sent(request, session)
        session.check("a new campaign", "")
        problem, status, once = "", 200, form.get("once") or new_key()
        if request.method == "POST":
            try:
                given = planned(form)
                await asyncio.to_thread(self._service.campaigns.create, **given, key=once, by=session.name)
                self._dashboard.forget()
                log.info("done on a page", what="create", campaign=given["name"], by=session.name)
                return RedirectResponse(f"/campaigns/{quote(given['name'], safe='')}", 303)
            except BudgetBanditsError as error:
                problem, status = in_labels(str(error)), describe(error)["status"]
        shown = await self._dashboard.read(lambda tx: checked(tx, form))
        part = answer_in_part(request, session, shown)
        if part is not None:
            return part
        return self._dashboard.filled(
            "new.html", request, session, status, preview=shown, form=form, problem=problem, once=once,
            policies=policies(),
        )  # fmt: skip


def answer_in_part(request: Request, session: Session, shown: Preview) -> Response | None:
    """What would happen, as JSON or for a page that has the form already; None if the whole page is asked for."""
    if wants_json(request):
        return JSONResponse(shown.as_json())
    if "x-part" in request.headers:
        return Response(render("_act.html", preview=shown, session=session), media_type="text/html")
    return None
