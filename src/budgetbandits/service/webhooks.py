"""Webhooks: campaigns that change their standing, or overrun, are reported to addresses that operators name.

A server looks at all campaigns every few seconds (`look`) and compares with what was last notified, which the store
keeps. What is new goes to the store's outbox in the same transaction, and from there to its address (`deliveries`). An
overrun is compared by its sum, so one that freezes a campaign is notified even if the campaign is resumed before
anybody has looked.
"""

from __future__ import annotations

import secrets
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict
from urllib.parse import urlsplit

from pydantic_core import to_json

from budgetbandits.answers import WebhookAnswer
from budgetbandits.errors import BadParameter, NotFound
from budgetbandits.service.ledger import to_units
from budgetbandits.service.names import check_text
from budgetbandits.service.standing import Outlook, outlooks
from budgetbandits.service.stores.contract import Store, Transaction, find_campaign
from budgetbandits.service.stores.sql.webhooks import Delivery, Notified, Webhook

NOTIFICATIONS = {
    "standing": "A campaign changed its standing.",
    "overrun": "A cost overran.",
    "test": "An operator asked for a test; it has `id`, `type` and `at` alone.",
}
"""Descriptions of the types of notifications."""
NOTIFICATION_FIELDS = {
    "id": "The notification's id: a notification may come twice, with the same id.",
    "type": "What it is about.",
    "campaign_id": "The campaign's id.",
    "before": "The standing before.",
    "overrun": "All costs beyond caps or the money there was, by now.",
    "overrun_before": "The same at the notification before.",
}
"""The fields of a notification, next to those of a campaign's standing."""
WEBHOOKS_MAX = 20
"""Most webhooks of a server."""

CAMPAIGNS_AT_ONCE = 100
"""Campaigns that are looked at in one transaction."""
URL_LENGTH_MAX = 2000
"""Most characters of an address."""


# --- made and dropped ------------------------------------------------------------------------------------------------


def check_url(url: str) -> None:
    """Refuse what is no address of a web server."""
    check_text("url", url)
    try:
        parts = urlsplit(url)
        port = parts.port  # of no number, or too large a one, this is a ValueError
        good = parts.scheme in ("http", "https") and bool(parts.hostname) and url.isprintable() and " " not in url
        good = good and port != 0
    except ValueError:
        good = False
    if not good or len(url) > URL_LENGTH_MAX:
        raise BadParameter(f"url is {url!r:.60}; give an address that begins with http:// or https://")


def host_of(url: str) -> str:
    """The host of an address for logs: the rest of an address is often a secret.

    >>> host_of("https://me:s3cret@hooks.example.org/services/T0/s3cret")
    'hooks.example.org'
    """
    return urlsplit(url).hostname or ""


def check_room(tx: Transaction) -> None:
    """Refuse one webhook too many."""
    if len(tx.webhooks().all()) >= WEBHOOKS_MAX:
        raise BadParameter(f"there are {WEBHOOKS_MAX} webhooks already; drop one first")


def make_webhook(store: Store, url: str, campaign: str | None = None) -> Webhook:
    """A new address; its secret is shown this one time."""
    check_url(url)
    if store.write(_forget_notified):  # whatever changes from now on is news, also before a server has looked
        states = {outlook.glance.id: _state(outlook) for outlook, _ in _compared(store)}
        store.write(lambda tx: _set_notified(tx, states))

    def work(tx: Transaction) -> Webhook:
        hooks = tx.webhooks()
        check_room(tx)
        only = None if campaign is None else find_campaign(tx, campaign).id
        webhook = Webhook(uuid.uuid4().hex, url, secrets.token_urlsafe(32), tx.now(), only)
        hooks.add(webhook)
        return webhook

    return store.write(work)


def _forget_notified(tx: Transaction) -> bool:
    """Whether there is no webhook: then nobody has looked since the last one was dropped."""
    hooks = tx.webhooks()
    first = not hooks.all()
    if first:
        hooks.forget_notified()
    return first


def _set_notified(tx: Transaction, states: Mapping[str, Notified]) -> None:
    for campaign, state in states.items():
        tx.webhooks().set_notified(campaign, state)


def drop_webhook(store: Store, id: str) -> None:
    """Delete an address and all that it has not accepted."""

    def work(tx: Transaction) -> None:
        find_webhook(tx, id)
        tx.webhooks().drop(id)

    store.write(work)


def find_webhook(tx: Transaction, id: str) -> Webhook:
    """The webhook with this id; `NotFound` if there is none."""
    result = tx.webhooks().get(id)
    if result is None:
        raise NotFound(f"no webhook {id!r:.60}; GET /v1/webhooks and 'budgetbandits webhook list' list all")
    return result


def turn_on_webhooks(store: Store, ids: Sequence[str]) -> list[str]:
    """Notify these addresses again, which were off since the store was restored; those that were off."""

    def work(tx: Transaction) -> list[str]:
        turned = [webhook.id for webhook in [find_webhook(tx, id) for id in ids] if webhook.off]
        for id in turned:
            tx.webhooks().set_off(id, False)
        return turned

    return store.write(work)


# --- from campaigns to the outbox ------------------------------------------------------------------------------------


def look(store: Store, stopping: Callable[[], bool] = lambda: False) -> int:
    """Compare all campaigns with what was last notified, if there are webhooks; the number of campaigns with news."""
    if not store.read(lambda tx: tx.webhooks().all()):
        return 0
    count = 0
    for outlook, before in _compared(store, stopping):
        if before != _state(outlook):
            store.write(lambda tx, outlook=outlook, before=before: _note(tx, outlook, before))  # type: ignore[misc]
            count += 1
    return count


def _compared(store: Store, stopping: Callable[[], bool] = lambda: False) -> Iterator[tuple[Outlook, Notified | None]]:
    """How every campaign does, and what was last notified of it."""
    last = ""
    while not stopping():

        def some(tx: Transaction, last: str = last) -> tuple[list[str], list[tuple[Outlook, Notified | None]]]:
            ids = tx.pages().campaign_list().ids(CAMPAIGNS_AT_ONCE, last)
            return ids, [(outlook, tx.webhooks().notified(outlook.glance.id)) for outlook in outlooks(tx, ids)]

        ids, result = store.read(some)
        yield from result
        if len(ids) < CAMPAIGNS_AT_ONCE:
            break
        last = ids[-1]


def _state(outlook: Outlook) -> Notified:
    return Notified(outlook.name, outlook.glance.account.overrun)


def _note(tx: Transaction, outlook: Outlook, before: Notified | None) -> None:
    """Write what is new to the outbox, unless another server was quicker."""
    hooks, glance, now = tx.webhooks(), outlook.glance, _state(outlook)
    if hooks.notified(glance.id) != before:
        return
    hooks.set_notified(glance.id, now)
    for hook in hooks.all():
        if hook.off or hook.campaign not in (None, glance.id):
            continue
        # of a campaign from before the webhook, the state when it is first seen is no news
        earlier = before or (Notified("running", 0) if glance.created_at >= hook.created_at else now)
        hooks.add_deliveries([_delivery(hook, outlook, kind, earlier) for kind in _news(earlier, now)])


def _news(before: Notified, now: Notified) -> list[str]:
    news = ["overrun"] if now.overrun > before.overrun else []
    return [*news, "standing"] if now.standing != before.standing else news


def _delivery(webhook: Webhook, outlook: Outlook, kind: str, before: Notified) -> Delivery:
    id, account = uuid.uuid4().hex, outlook.glance.account
    body = asdict(outlook.answer()) | {
        "id": id, "type": kind, "campaign_id": outlook.glance.id, "before": before.standing,
        "overrun": to_units(account.overrun), "overrun_before": to_units(before.overrun),
    }  # fmt: skip
    return Delivery(id, webhook.id, to_json(body).decode(), outlook.now, outlook.now)


# --- for operators --------------------------------------------------------------------------------------------------


def listed(tx: Transaction) -> list[WebhookAnswer]:
    """All webhooks without their secrets, how the latest notification went, and how many are not accepted."""
    hooks, waiting = tx.webhooks(), tx.webhooks().waiting()
    names = tx.pages().names([hook.campaign for hook in hooks.all() if hook.campaign is not None])
    answers = []
    for hook in hooks.all():
        only = None if hook.campaign is None else names[hook.campaign]
        count, tries = waiting.get(hook.id, (0, 0))
        answers.append(
            WebhookAnswer(
                hook.id, hook.url, only, hook.created_at, count, tries, hook.tried_at, hook.problem, hook.off
            )
        )  # fmt: skip
    return answers
