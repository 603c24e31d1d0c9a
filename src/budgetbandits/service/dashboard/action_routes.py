"""The routes of actions: a form that says what will happen, and the doing of it, once, by a form of the session."""

from __future__ import annotations

import asyncio
import time
from functools import cache
from typing import Any
from urllib.parse import quote

import structlog
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from budgetbandits.errors import BudgetBanditsError, NotFound
from budgetbandits.policies import POLICIES
from budgetbandits.service.dashboard.actions import ACTIONS, Action, consequences, new_key, planned, preview
from budgetbandits.service.dashboard.fields import Change
from budgetbandits.service.dashboard.forms import check_origin, read_form
from budgetbandits.service.dashboard.pages import render
from budgetbandits.service.dashboard.routes import Dashboard
from budgetbandits.service.dashboard.sessions import Session
from budgetbandits.service.http.auth import SCOPES, drop_key, make_key
from budgetbandits.service.http.problem_json import describe
from budgetbandits.service.new_campaign import check
from budgetbandits.service.stores.records import ArmRow, Campaign, Key

log = structlog.get_logger("budgetbandits")


class Actions:
    """What can be done on the pages of one server."""

    def __init__(self, dashboard: Dashboard) -> None:
        self._dashboard = dashboard
        self._service = dashboard.service

    def routes(self) -> list[Route]:
        both = ["GET", "POST"]
        page = self._dashboard.page
        return [
            Route("/new", page(self._create), methods=both),
            Route("/keys", page(self._keys), methods=both),
            Route("/campaigns/{campaign}/{action}", page(self._act), methods=both),
        ]

    async def _form(self, request: Request, session: Session) -> dict[str, str]:
        """The fields that were sent, if the session may change things and its own form has sent them."""
        session.check_admin()
        if request.method == "GET":
            return dict(request.query_params)
        check_origin(request)
        form = await read_form(request)
        session.check_form(form.get("code", ""))
        return form

    def _page(self, template: str, request: Request, session: Session, status: int = 200, **values: Any) -> Response:
        shared = self._dashboard.shared(request, session)
        return Response(render(template, **shared, **values), status, media_type="text/html")

    # --- one campaign --------------------------------------------------------------------------------------------

    async def _act(self, request: Request, session: Session) -> Response:
        name = request.path_params["action"]
        if name not in ACTIONS:
            raise NotFound(f"there is nothing called {name!r:.40} to do; use the links of the page")
        form, row = await self._form(request, session), await self._dashboard.campaign(request, session)
        action, problem, status = ACTIONS[name], "", 200
        if request.method == "POST":
            try:
                await asyncio.to_thread(self._run, action, row, form, session)
                return RedirectResponse(f"/campaigns/{quote(row.name, safe='')}", 303)
            except BudgetBanditsError as error:
                problem, status = str(error), describe(error)["status"]
        arms: list[ArmRow] = await self._dashboard.read(lambda tx: tx.arms(row.id))
        form = {**action.filled(row), **form}
        shown = preview(action, row, arms, form)
        values = {"action": action, "preview": shown, "session": session}
        if "x-part" in request.headers:
            return Response(render("_act.html", **values), media_type="text/html")
        values.pop("session")
        return self._page(
            "act.html", request, session, status, **values, form=form, row=row, problem=problem,
            once=form.get("once") or new_key(),
        )  # fmt: skip

    def _run(self, action: Action, row: Campaign, form: dict[str, str], session: Session) -> None:
        action.run(self._service.campaigns, row.id, form, form.get("once") or new_key(), session.name)
        self._dashboard.forget()
        log.info("done on a page", what=action.title, campaign=row.name, by=session.name)

    # --- a new one -----------------------------------------------------------------------------------------------

    async def _create(self, request: Request, session: Session) -> Response:
        form = await self._form(request, session)
        session.check("a new campaign", "")
        problem, status = "", 200
        if request.method == "POST":
            try:
                given = planned(form)
                key = form.get("once") or new_key()
                await asyncio.to_thread(self._service.campaigns.create, **given, key=key, by=session.name)
                self._dashboard.forget()
                log.info("done on a page", what="create", campaign=given["name"], by=session.name)
                return RedirectResponse(f"/campaigns/{quote(given['name'], safe='')}", 303)
            except BudgetBanditsError as error:
                problem, status = str(error), describe(error)["status"]
        if "x-part" in request.headers:
            changes, wrong = _checked(form)
            return Response(render("_checked.html", changes=changes, wrong=wrong), media_type="text/html")
        once = form.get("once") or new_key()
        return self._page(
            "new.html", request, session, status, form=form, problem=problem, once=once, policies=_policies()
        )  # fmt: skip

    # --- keys ----------------------------------------------------------------------------------------------------

    async def _keys(self, request: Request, session: Session) -> Response:
        form = await self._form(request, session)
        session.check("the keys", "")
        problem, made, status = "", "", 200
        if request.method == "POST":
            try:
                made = await asyncio.to_thread(self._change_keys, form, session)
            except BudgetBanditsError as error:
                problem, status = str(error), describe(error)["status"]
        keys: list[Key] = await self._dashboard.read(lambda tx: tx.keys())
        limited = [key.campaign for key in keys if key.campaign is not None]
        names = await self._dashboard.read(lambda tx: tx.pages().names(limited))
        return self._page(
            "keys.html", request, session, status, keys=keys, names=names, scopes=SCOPES, made=made, problem=problem
        )  # fmt: skip

    def _change_keys(self, form: dict[str, str], session: Session) -> str:
        """A new key's text, or nothing if one was dropped."""
        if "drop" in form:
            drop_key(self._service.store, form["drop"])
            log.info("key dropped", key=form["drop"], by=session.name)
            return ""
        scopes = [scope for scope in SCOPES if form.get(scope)]
        text = make_key(self._service.store, scopes, time.time(), form.get("campaign", "").strip() or None)
        log.info("key made", key=text.split("_")[1], scopes=scopes, by=session.name)
        return text


@cache
def _policies() -> list[tuple[str, str]]:
    """The policies that must know nothing which the form does not ask for, each with a line about it."""
    made = [(name, kind, kind()) for name, kind in POLICIES.items()]
    return [
        (name, (kind.__doc__ or "").strip().splitlines()[0])
        for name, kind, policy in made
        if not {"costs", "cost_floor"} & policy.needs
    ]


def _checked(form: dict[str, str]) -> tuple[list[Change], str]:
    """What the new campaign would do, and the first thing that is wrong; nothing is said of an empty form."""
    if not any(form.get(name, "").strip() for name in ("name", "budget", "arms")):
        return [], ""
    try:
        given = planned(form)
        check(**given)
    except BudgetBanditsError as error:
        return [], str(error)
    return consequences(given), ""
