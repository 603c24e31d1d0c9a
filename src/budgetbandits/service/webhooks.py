"""Webhooks: campaigns that change their standing, or overrun, are reported to addresses that operators name.

A server looks at all campaigns every few seconds (`look`) and compares with what was last notified, which the store
keeps. What is new goes to the store's outbox in the same transaction, and from there to its address (`deliver`), until
that accepts it with a status of 200 to 299. So a notification may come twice, after a crash or a lost answer, and is
never lost: its ``id`` tells doubles apart. An overrun is compared by its sum, so one that freezes a campaign is
notified even if the campaign is resumed before anybody has looked.

The header ``Budgetbandits-Signature: t=SECONDS,v1=HEX`` has an HMAC-SHA256 of ``SECONDS.BODY`` under the secret that
was shown when the webhook was made.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
import time
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import Any
from urllib.parse import urlsplit

import httpx
import structlog
from pydantic_core import to_json

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
"""What each ``type`` of notification is about."""
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
CAMPAIGNS_AT_ONCE = 100
"""Campaigns that are looked at in one transaction."""
URL_LENGTH_MAX = 2000
PROBLEM_LENGTH_MAX = 200
TRY_SECONDS = 10.0
"""How long an address may take to answer."""
CLAIM_SECONDS = 60.0
"""How long a delivery is a server's own: if that dies, another one tries after this time."""
DELIVERIES_AT_ONCE = 5
"""Fewer than a server can try in `CLAIM_SECONDS` if none is answered."""
FIRST_PAUSE_SECONDS, LAST_PAUSE_SECONDS = 5.0, 3600.0
"""After a failure it is tried again in the first; after each further one, in twice that time, up to the last."""
GIVE_UP_SECONDS = 7 * 86_400.0
"""A notification that was not accepted in this time is dropped, which is logged."""

log = structlog.get_logger("budgetbandits")


# --- made and dropped ------------------------------------------------------------------------------------------------


def check_url(url: str) -> None:
    """Refuse what is no address of a web server."""
    check_text("url", url)
    try:
        parts = urlsplit(url)
        good = parts.scheme in ("http", "https") and bool(parts.hostname) and url.isprintable() and " " not in url
    except ValueError:
        good = False
    if not good or len(url) > URL_LENGTH_MAX:
        raise BadParameter(f"url is {url!r:.60}; give an address that begins with http:// or https://")


def host_of(url: str) -> str:
    """What logs may say of an address: the rest of it is often a secret of the one who gave it.

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
        known = {each.glance.id: _state(each) for each, _ in _compared(store)}
        store.write(lambda tx: _set_notified(tx, known))

    def work(tx: Transaction) -> Webhook:
        hooks = tx.webhooks()
        check_room(tx)
        only = None if campaign is None else find_campaign(tx, campaign).id
        made = Webhook(uuid.uuid4().hex, url, secrets.token_urlsafe(32), tx.now(), only)
        hooks.add(made)
        return made

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
        _found(tx, id)
        tx.webhooks().drop(id)

    store.write(work)


def turn_on_webhooks(store: Store, ids: Sequence[str]) -> list[str]:
    """Notify these addresses again, which were off since the store was restored; those that were off."""

    def work(tx: Transaction) -> list[str]:
        turned = [each.id for each in [_found(tx, id) for id in ids] if each.off]
        for id in turned:
            tx.webhooks().set_off(id, False)
        return turned

    return store.write(work)


def _found(tx: Transaction, id: str) -> Webhook:
    for each in tx.webhooks().all():
        if each.id == id:
            return each
    raise NotFound(f"no webhook {id!r:.60}; GET /v1/webhooks and 'budgetbandits webhook list' list all")


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
            return ids, [(each, tx.webhooks().notified(each.glance.id)) for each in outlooks(tx, ids)]

        ids, found = store.read(some)
        yield from found
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
    for each in hooks.all():
        if each.off or each.campaign not in (None, glance.id):
            continue
        # of a campaign from before the webhook, the state when it is first seen is no news
        known = before or (Notified("running", 0) if glance.created_at >= each.created_at else now)
        hooks.add_deliveries([_delivery(each, outlook, kind, known) for kind in _news(known, now)])


def _news(before: Notified, now: Notified) -> list[str]:
    news = ["overrun"] if now.overrun > before.overrun else []
    return [*news, "standing"] if now.standing != before.standing else news


def _delivery(webhook: Webhook, outlook: Outlook, kind: str, before: Notified) -> Delivery:
    id, account = uuid.uuid4().hex, outlook.glance.account
    body = outlook.to_dict() | {
        "id": id, "type": kind, "campaign_id": outlook.glance.id, "before": before.standing,
        "overrun": to_units(account.overrun), "overrun_before": to_units(before.overrun),
    }  # fmt: skip
    return Delivery(id, webhook.id, to_json(body).decode(), outlook.now, outlook.now)


# --- from the outbox to the addresses --------------------------------------------------------------------------------


def signature(secret: str, body: bytes, at: float) -> str:
    """The header that goes with a body.

    >>> signature("secret", b"{}", 1.0)[:17]
    't=1,v1=1122767b19'
    """
    signed = hmac.new(secret.encode(), f"{at:.0f}.".encode() + body, hashlib.sha256).hexdigest()
    return f"t={at:.0f},v1={signed}"


def deliver(store: Store, client: httpx.Client, stopping: Callable[[], bool] = lambda: False) -> tuple[int, int]:
    """Send what is due; how many were accepted, and how many were not."""
    accepted = refused = 0
    failed: set[str] = set()  # an address that has just failed is not tried again and again
    while not stopping():

        def take(tx: Transaction) -> tuple[list[Delivery], dict[str, Webhook]]:
            now, hooks = tx.now(), tx.webhooks()
            return hooks.take_due(now, now + CLAIM_SECONDS, DELIVERIES_AT_ONCE), {each.id: each for each in hooks.all()}

        due, hooks = store.write(take)
        for each in due:
            if stopping():  # the rest is sent when its claim is over
                break
            hook = hooks.get(each.webhook)
            problem = "it was dropped" if hook is None else "it has just failed" if hook.id in failed else None
            tried = hook is not None and problem is None
            if hook is not None and tried:
                problem = _send(client, hook, each)
                if problem is not None:
                    log.warning("notification not accepted", webhook=hook.id, delivery=each.id, tries=each.tries + 1,
                                error=problem)  # fmt: skip
            done = hook is None or problem is None
            accepted, refused = accepted + (problem is None), refused + (not done)
            if not done:
                failed.add(each.webhook)
            _settle(store, each, done, problem, tried)
        if not due:
            break
    return accepted, refused


def _settle(store: Store, delivery: Delivery, done: bool, problem: str | None, tried: bool) -> None:
    def work(tx: Transaction) -> None:
        now, hooks = tx.now(), tx.webhooks()
        if tried:
            hooks.note_try(delivery.webhook, now, None if problem is None else problem[:PROBLEM_LENGTH_MAX])
        over = now - delivery.made_at > GIVE_UP_SECONDS
        if done or over:
            hooks.remove(delivery)
        else:
            hooks.put_off(delivery, now + min(FIRST_PAUSE_SECONDS * 2.0**delivery.tries, LAST_PAUSE_SECONDS))
        if over and not done:
            log.error("notification given up", webhook=delivery.webhook, delivery=delivery.id, error=problem)

    store.write(work)


def _send(client: httpx.Client, hook: Webhook, delivery: Delivery) -> str | None:
    """Why it was not accepted; None if it was."""
    body = delivery.body.encode()
    headers = {
        "Content-Type": "application/json", "Budgetbandits-Delivery": delivery.id,
        "Budgetbandits-Signature": signature(hook.secret, body, time.time()),
    }  # fmt: skip
    try:
        with client.stream("POST", hook.url, content=body, headers=headers) as answer:  # its body is not read
            return None if answer.is_success else f"status {answer.status_code}"
    except (httpx.HTTPError, httpx.InvalidURL, ValueError) as error:
        return str(error) or type(error).__name__


def send_test(store: Store, id: str) -> str | None:
    """Send a signed body of the type ``test`` once, at once; why it was not accepted, or None if it was."""
    hook, now = store.read(lambda tx: (_found(tx, id), tx.now()))
    number = uuid.uuid4().hex
    delivery = Delivery(number, hook.id, to_json({"id": number, "type": "test", "at": now}).decode(), now, now)
    with sender() as client:
        return _send(client, hook, delivery)


def sender() -> httpx.Client:
    """A client for `deliver`; it follows no redirects, since a body is signed for one address."""
    return httpx.Client(timeout=TRY_SECONDS, follow_redirects=False)


def listed(tx: Transaction) -> list[dict[str, Any]]:
    """All webhooks without their secrets, how the latest notification went, and how many are not accepted."""
    hooks, waiting = tx.webhooks(), tx.webhooks().waiting()
    names = tx.pages().names([each.campaign for each in hooks.all() if each.campaign is not None])
    made: list[dict[str, Any]] = []
    for each in hooks.all():
        count, tries = waiting.get(each.id, (0, 0))
        only = None if each.campaign is None else names[each.campaign]
        shown = {name: value for name, value in asdict(each).items() if name != "secret"}
        made.append(shown | {"campaign": only, "waiting": count, "tries": tries})
    return made
