"""The command ``webhook``: addresses that are notified when campaigns change."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated, Any

import typer
from rich.markup import escape

from budgetbandits.answers import WebhookAnswer
from budgetbandits.cli.remote import ServerAddress
from budgetbandits.cli.screen import AsJson, local_time, plain_table, print_json, terminal
from budgetbandits.cli.service import (
    DEFAULT_STORE,
    Address,
    All,
    check_one_or_all,
    opened_store,
    say,
    say_turned_on,
)

webhook_app = typer.Typer(
    no_args_is_help=True, help="Create, list, drop and test webhooks, and turn them on after a restore."
)

Id = Annotated[str, typer.Argument(help="The webhook as 'webhook list' shows it.")]


@webhook_app.command("create")
def create_webhook_command(
    address: Annotated[str, typer.Argument(help="Where notifications are sent: http:// or https://.")],
    campaign: Annotated[str | None, typer.Option(help="Notify of this campaign only.")] = None,
    store: Address = DEFAULT_STORE,
    as_json: AsJson = False,
) -> None:
    """Have changes of campaigns reported to an address; the secret that signs them is shown this one time."""
    if isinstance(store, ServerAddress):
        with store.client() as client:
            webhook: Any = client.create_webhook(address, campaign)
    else:
        from budgetbandits.service.webhooks import make_webhook

        with opened_store(store) as database:
            webhook = make_webhook(database, address, campaign)
    document = {"id": webhook.id, "url": webhook.url, "campaign": campaign, "secret": webhook.secret}
    say(document, f"webhook {webhook.id}\nsecret {webhook.secret}", as_json)


@webhook_app.command("list")
def list_webhooks_command(store: Address = DEFAULT_STORE, as_json: AsJson = False) -> None:
    """List all webhooks: why the latest notification was not accepted, and how many are waiting."""
    rows = _rows(store)
    if as_json:
        print_json([asdict(row) for row in rows])
        return
    table = plain_table("webhook", "address", "campaign", "created", "problem", numbers=("waiting", "tries"))
    table.columns[0].no_wrap = True
    for row in rows:
        counts = (f"{row.waiting:,}", f"{row.tries:,}")
        only, problem = escape(row.campaign or "all"), escape(row.problem or "")
        id = row.id + (" off" if row.off else "")
        table.add_row(id, escape(row.url), only, local_time(row.created_at), problem, *counts)
    terminal().print(table)


def _rows(store: str) -> list[WebhookAnswer]:
    if isinstance(store, ServerAddress):
        with store.client() as client:
            return client.webhooks()
    from budgetbandits.service.webhooks import listed

    with opened_store(store) as database:
        return database.read(listed)


@webhook_app.command("drop")
def drop_webhook_command(webhook: Id, store: Address = DEFAULT_STORE, as_json: AsJson = False) -> None:
    """Notify an address no more; what it has not accepted is dropped."""
    if isinstance(store, ServerAddress):
        with store.client() as client:
            client.drop_webhook(webhook)
    else:
        from budgetbandits.service.webhooks import drop_webhook

        with opened_store(store) as database:
            drop_webhook(database, webhook)
    say({"dropped": webhook}, f"{webhook} is dropped", as_json)


@webhook_app.command("test")
def send_test_command(webhook: Id, store: Address = DEFAULT_STORE, as_json: AsJson = False) -> None:
    """Send a test notification at once; exits with 1 if the address does not accept it."""
    if isinstance(store, ServerAddress):
        with store.client() as client:
            problem = client.test_webhook(webhook)
    else:
        from budgetbandits.service.deliveries import send_test

        with opened_store(store) as database:
            problem = send_test(database, webhook)
    text = f"{webhook} has accepted a test" if problem is None else f"{webhook} has not accepted a test: {problem}"
    say({"webhook": webhook, "accepted": problem is None, "problem": problem}, text, as_json)
    raise typer.Exit(0 if problem is None else 1)


@webhook_app.command("turn-on")
def turn_on_webhook_command(
    webhook: Annotated[str | None, typer.Argument(help="The webhook as 'webhook list' shows it.")] = None,
    every: All = False,
    store: Address = DEFAULT_STORE,
    as_json: AsJson = False,
) -> None:
    """Notify an address again: after a restore all are off, since some were perhaps dropped since the copy."""
    from budgetbandits.service.webhooks import listed, turn_on_webhooks

    check_one_or_all(webhook, every)
    with opened_store(store) as database:
        off = [hook.id for hook in database.read(listed) if hook.off]
        wanted = off if webhook is None else [webhook]
        turned = turn_on_webhooks(database, wanted)
    say_turned_on("webhook", wanted, {"on": turned}, as_json)
