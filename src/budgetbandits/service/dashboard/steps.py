"""Where a form leads: to a page that says what it would do, and from there, confirmed, to the doing of it.

With scripts the first step is taken while the form is filled in, and its answer stands below the form; without them it
is a page of its own. Either way nothing is done but by the button of a confirmation, and what is wrong stands next to
the field that it is about.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from budgetbandits.errors import BudgetBanditsError
from budgetbandits.service.dashboard.fields import Fields, in_labels
from budgetbandits.service.dashboard.pages import render
from budgetbandits.service.dashboard.preview import Preview, values_of
from budgetbandits.service.dashboard.routes import Dashboard, wants_json
from budgetbandits.service.dashboard.sessions import Session
from budgetbandits.service.http.problem_json import describe
from budgetbandits.service.stores.contract import Transaction


@dataclass(frozen=True)
class Step:
    """A form, what it would do, and how that is done."""

    title: str
    address: str
    """Where the form and the button are sent."""
    crumbs: list[tuple[str, str]]
    """(address, words) of the pages above; the last is where "Cancel" leads."""
    template: str
    """Of the page with the form ..."""
    values: dict[str, Any]
    """... and what it needs besides."""
    preview: Callable[[Transaction, bool], Preview]
    """What would happen; whether the form must be filled in full."""
    do: Callable[[], Response]
    """Do what was confirmed, or refuse."""
    shown: Callable[[Fields], Fields] = lambda fields: fields
    """The fields as the form shows them."""


async def follow(dashboard: Dashboard, request: Request, session: Session, form: Fields, step: Step) -> Response:
    """What a form shows, what it would do, or what has come of it."""
    sent, part = request.method == "POST", "x-part" in request.headers
    refused: BudgetBanditsError | None = None
    if sent and form.get("confirmed"):
        try:
            return await asyncio.to_thread(step.do)
        except BudgetBanditsError as error:
            if wants_json(request):
                raise
            refused = error
    in_full = sent and "edit" not in form and (not part or request.headers["x-part"] == "submit")
    preview = await dashboard.read(lambda tx: step.preview(tx, in_full))
    if wants_json(request):
        if sent and preview.error is not None:
            raise preview.error
        return JSONResponse(preview.as_json())
    hidden = preview.hidden(form) if preview.possible else {}
    shown = {"preview": preview, "hidden": hidden, "sends_to": step.address}
    if part:
        return Response(render("_confirm.html", session=session, part=True, **shown), media_type="text/html")
    wrong = refused or (preview.error if in_full else None)
    status = 200 if wrong is None else describe(wrong)["status"]
    problem = "" if refused is None or preview.error is not None else in_labels(refused)
    template, fields = "confirm.html", values_of(form)
    if not (in_full and preview.possible):
        template, fields = step.template, dict(step.shown(fields))
    return dashboard.filled(
        template, request, session, status, title=step.title, crumbs=step.crumbs, form=fields,
        problem=problem, part=False, **shown, **step.values,
    )  # fmt: skip
