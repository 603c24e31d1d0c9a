"""The way of a form: filled in, previewed, confirmed, done.

A form does nothing by itself. It leads to a preview, whose button is a form of its own with the previewed values and a
code for them (`Preview.code`). The action is compared with the code: if the values differ, or something that the
preview relied on has changed, it is refused and previewed again. With scripts the preview appears below the form while
it is filled in; without them it is a page of its own.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from budgetbandits.errors import BudgetBanditsError, Conflict
from budgetbandits.service.dashboard.actions.fields import Change, Fields, field_of, in_labels
from budgetbandits.service.dashboard.pages import Dashboard, wants_json
from budgetbandits.service.dashboard.rendering import render
from budgetbandits.service.dashboard.sessions import Session
from budgetbandits.service.http.problem_json import describe
from budgetbandits.service.stores.contract import Transaction

CONTROL_FIELDS = ("code", "once", "confirmed", "edit", "format")
"""Fields that are no values: of the session, of the confirmation, and what to do with the form."""


@dataclass(frozen=True)
class Preview:
    """The effect of a form, or the error that refuses it; neither if the form is not filled in yet."""

    button: str
    """Text of the button."""
    changes: list[Change]
    error: BudgetBanditsError | None = None
    relies_on: Any = None
    """Action with its values and the state that it changes, as JSON can write them."""
    fixable: bool = False
    """Whether something else in the fields may help."""
    dangerous: bool = False
    final: bool = False
    """Whether it cannot be undone."""
    fields: tuple[str, ...] = ()
    """Fields of the form, to one of which the error may belong."""
    wrong: Mapping[str, BudgetBanditsError] = field(default_factory=dict)
    """Errors by field, where several are known."""
    state_code: str = ""
    """Code of the state, for a form to keep."""
    changed: str = ""
    """Changes since the form was opened that this is the preview of."""
    recorded: str = "as an event of"
    """Where it is recorded who has done it."""

    @property
    def problem(self) -> str:
        """The error as a sentence, or an empty text."""
        return "" if self.error is None else in_labels(self.error)

    @property
    def problems(self) -> dict[str, str]:
        """The errors by field, as sentences; an error of no field is under the empty name."""
        wrong = self.wrong or ({} if self.error is None else {field_of(self.error, self.fields): self.error})
        sentences = {name: in_labels(error) for name, error in wrong.items()}
        return {name: f"{text[0].upper()}{text[1:]}." for name, text in sentences.items()}

    @property
    def possible(self) -> bool:
        """Whether the action can be confirmed."""
        return self.error is None and bool(self.changes)

    def code(self, once: str) -> str:
        """A code for this, and for one time: sent twice, it is the same."""
        text = json.dumps([once, self.button, self.relies_on], sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()

    def hidden(self, form: Fields) -> dict[str, str]:
        """The hidden values that the button sends: those of the form, and the code of the preview."""
        once = uuid.uuid4().hex
        return values_of(form) | {"once": once, "confirmed": self.code(once)}

    def check(self, form: Fields) -> None:
        """Refuse to do this if it is not what was confirmed."""
        if self.error is not None:
            raise self.error
        if self.code(form.get("once", "")) != form["confirmed"]:
            raise Conflict("this is not what you have confirmed: something has changed since; see what it would do now")

    def as_json(self) -> dict[str, Any]:
        """The preview as JSON."""
        return {
            "button": self.button, "problem": self.problem or None, "problems": self.problems,
            "changed_since": self.changed or None,
            "changes": [{"what": what, "now": now, "then": then or None} for what, now, then in self.changes],
        }  # fmt: skip


def values_of(form: Fields) -> dict[str, str]:
    """The values that were typed and chosen."""
    return {name: value for name, value in form.items() if name not in CONTROL_FIELDS}


def operation(form: Fields) -> str:
    """The idempotency key of what was confirmed: a button that is pressed twice changes nothing twice."""
    return f"page {form['confirmed']:.64}"


@dataclass(frozen=True)
class FormFlow:
    """A form, what it would do, and how that is done."""

    title: str
    address: str
    """Where the form and the button are sent."""
    crumbs: list[tuple[str, str]]
    """(address, words) of the pages above; the last is where "Cancel" leads."""
    template: str
    """Template of the page with the form."""
    values: dict[str, Any]
    """Further values of the template."""
    preview: Callable[[Transaction, bool], Preview]
    """Preview of the action; the second argument says whether the form must be complete."""
    do: Callable[[], Response]
    """Do what was confirmed, or refuse."""
    shown: Callable[[Fields], Fields] = lambda fields: fields
    """The fields as the form shows them."""


async def follow(dashboard: Dashboard, request: Request, session: Session, form: Fields, step: FormFlow) -> Response:
    """Show a form, its preview, or its result."""
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
    status = 200 if wrong is None else describe(wrong).status
    problem = "" if refused is None or preview.error is not None else in_labels(refused)
    template, fields = "confirm.html", values_of(form)
    if not (in_full and preview.possible):
        template, fields = step.template, dict(step.shown(fields))
    return dashboard.filled(
        template, request, session, status, title=step.title, crumbs=step.crumbs, form=fields,
        problem=problem, part=False, **shown, **step.values,
    )  # fmt: skip
