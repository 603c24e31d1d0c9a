"""The webhooks page: all addresses with how their latest notification went, and forms for each."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import structlog
from starlette.requests import Request
from starlette.responses import JSONResponse, RedirectResponse, Response
from starlette.routing import Route

from budgetbandits.answers import WebhookAnswer
from budgetbandits.errors import BudgetBanditsError, Conflict, NotFound
from budgetbandits.service import deliveries, webhooks
from budgetbandits.service.dashboard.actions.fields import Field
from budgetbandits.service.dashboard.actions.flow import FormFlow, Preview, follow
from budgetbandits.service.dashboard.pages import Dashboard, wants_json
from budgetbandits.service.dashboard.query import address
from budgetbandits.service.dashboard.sessions import Session, sent_for_all
from budgetbandits.service.stores.contract import Transaction, find_campaign

log = structlog.get_logger("budgetbandits")
FIELDS = (
    Field("url", "Address", "Where notifications are sent: http:// or https://.", "url"),
    Field("campaign", "For one campaign only", "Its name. Empty: for all.", optional=True),
)
"""Fields of a new webhook."""

RECORDED = "in the log of the server, as done by"
"""Place where actions on webhooks are recorded."""


class WebhookPages:
    """The pages of webhooks of one server."""

    def __init__(self, dashboard: Dashboard) -> None:
        self._dashboard = dashboard
        self._store = dashboard.service.store

    def routes(self) -> list[Route]:
        """The routes of these pages."""
        both, page = ["GET", "POST"], self._dashboard.page
        return [
            Route("/webhooks", page(self._all)),
            Route("/webhooks/add", page(self._add), methods=both),
            Route("/webhooks/test", page(self._test), methods=both),
            Route("/webhooks/drop", page(self._drop), methods=both),
            Route("/webhooks/turn-on", page(self._turn_on), methods=both),
        ]

    async def _all(self, request: Request, session: Session) -> Response:
        await sent_for_all(request, session, "the webhooks")
        hooks = await self._dashboard.read(webhooks.listed)
        if wants_json(request):
            return JSONResponse({"webhooks": list(map(vars, hooks))})
        return self._dashboard.filled("webhooks.html", request, session, hooks=hooks)

    async def _add(self, request: Request, session: Session) -> Response:
        form = await sent_for_all(request, session, "the webhooks")
        wanted = _WantedWebhook(form.get("url", "").strip(), form.get("campaign", "").strip())

        def preview(tx: Transaction, in_full: bool = True) -> Preview:
            return wanted.preview(tx, in_full)

        def do() -> Response:
            self._store.read(preview).check(form)
            webhook = webhooks.make_webhook(self._store, wanted.url, wanted.campaign or None)
            log.info("webhook made", webhook=webhook.id, host=webhooks.host_of(webhook.url), actor=session.name)
            return self._dashboard.filled("webhook_made.html", request, session, webhook=webhook)

        step = FormFlow(
            "Add a webhook", address("webhooks", "add"), _crumbs(), "action.html", {"fields": FIELDS}, preview, do
        )
        return await follow(self._dashboard, request, session, form, step)

    async def _test(self, request: Request, session: Session) -> Response:
        def done(hook: WebhookAnswer) -> Response:
            problem = deliveries.send_test(self._store, hook.id)
            log.info("webhook tested", webhook=hook.id, problem=problem, actor=session.name)
            return self._dashboard.filled(
                "webhook_tested.html",
                request,
                session,
                url=hook.url,
                problem=problem,
                seconds=deliveries.TRY_SECONDS,
            )

        return await self._act_on_one(request, session, "test", _to_test, done)

    async def _drop(self, request: Request, session: Session) -> Response:
        def done(hook: WebhookAnswer) -> Response:
            webhooks.drop_webhook(self._store, hook.id)
            log.info("webhook dropped", webhook=hook.id, actor=session.name)
            return RedirectResponse(address("webhooks"), 303)

        return await self._act_on_one(request, session, "drop", _to_drop, done)

    async def _turn_on(self, request: Request, session: Session) -> Response:
        def done(hook: WebhookAnswer) -> Response:
            webhooks.turn_on_webhooks(self._store, [hook.id])
            log.info("webhook turned on", webhook=hook.id, actor=session.name)
            return RedirectResponse(address("webhooks"), 303)

        return await self._act_on_one(request, session, "turn-on", _to_turn_on, done)

    async def _act_on_one(
        self, request: Request, session: Session, action: str, to_do: Callable[[WebhookAnswer], Preview],
        execute: Callable[[WebhookAnswer], Response],
    ) -> Response:  # fmt: skip
        """Preview what is done to the webhook that the form names, and do it once that is confirmed."""
        form = await sent_for_all(request, session, "the webhooks")
        title = f"{action.replace('-', ' ').capitalize()} a webhook"

        def found(tx: Transaction) -> WebhookAnswer:
            for hook in webhooks.listed(tx):
                if hook.id == form.get("id", ""):
                    return hook
            raise NotFound("there is no such webhook; it may have been dropped already")

        def preview(tx: Transaction, in_full: bool = True) -> Preview:
            try:
                return to_do(found(tx))
            except NotFound as error:
                return Preview(title, [], error)

        def do() -> Response:
            hook = self._store.read(found)
            to_do(hook).check(form)
            return execute(hook)

        values = {"fields": (), "back": "All webhooks"}
        step = FormFlow(title, address("webhooks", action), _crumbs(), "action.html", values, preview, do)
        return await follow(self._dashboard, request, session, form, step)


def _crumbs() -> list[tuple[str, str]]:
    return [(address("webhooks"), "Webhooks")]


@dataclass(frozen=True)
class _WantedWebhook:
    """A webhook as the form describes it; without a campaign it is for all."""

    url: str
    campaign: str

    def preview(self, tx: Transaction, in_full: bool) -> Preview:
        button = "Add the webhook"
        if not in_full and not self.url:
            return Preview(button, [])
        try:
            webhooks.check_url(self.url)
            only = find_campaign(tx, self.campaign).name if self.campaign else None
            webhooks.check_room(tx)
        except BudgetBanditsError as error:
            return Preview(button, [], error, fixable=True, fields=tuple(field.name for field in FIELDS))
        changes = [
            ("Address", self.url, ""),
            ("Of", "all campaigns, those to come too" if only is None else f"{only} alone", ""),
            ("It hears", "of every change of standing and every overrun from now on, until it accepts them", ""),
            ("Secret", "shown once, on the next page; notifications are signed with it", ""),
        ]
        return Preview(button, changes, relies_on=[self.url, self.campaign], recorded=RECORDED)


def _to_test(hook: WebhookAnswer) -> Preview:
    changes = [("Address", hook.url, ""), ("It gets", "one signed notification of the type test, now and once", "")]
    return Preview("Send a test", changes, relies_on=[hook.id, hook.url], recorded=RECORDED)


def _to_drop(hook: WebhookAnswer) -> Preview:
    changes = [("Address", hook.url, ""), ("Of", hook.campaign or "all campaigns", "")]
    if hook.waiting:
        changes.append(("Not accepted yet", f"{hook.waiting:,} notifications, which are dropped with it", ""))
    return Preview("Drop the webhook", changes, relies_on=[hook.id], dangerous=True, final=True, recorded=RECORDED)


def _to_turn_on(hook: WebhookAnswer) -> Preview:
    button = "Turn on the webhook"
    if not hook.off:
        return Preview(button, [], Conflict("this webhook is on already"))
    changes = [("Address", hook.url, ""), ("Of", hook.campaign or "all campaigns", "")]
    waiting = f"{hook.waiting:,} notifications of before the copy, and " if hook.waiting else ""
    changes.append(("It hears", f"{waiting}of every change of standing and every overrun from now on", ""))
    return Preview(button, changes, relies_on=[hook.id, hook.url], recorded=RECORDED)
