"""The table of routes, both clients and the command line: each has what the others have, or a reason why not."""

import asyncio
import inspect

import httpx
import pytest
import typer
from starlette.routing import Match, Route

from budgetbandits.cli import app
from budgetbandits.client import AsyncClient, Client
from budgetbandits.errors import NotFound
from budgetbandits.service.http.serve import ROUTES

PROBES = {"health", "ready", "metrics"}
"""Routes for monitors, without a method in the clients."""

KEY = {"key": "one"}
CALLS = {
    "decide": (("ads",), {"exclude": ["mail"], **KEY}),
    "decide_many": (("ads", 2), KEY),
    "tell": (("ads", "7"), {"reward": 1.0, "cost": 0.5, "failed": True}),
    "tell_many": (("ads", [{"decision": "7", "cost": 0.5}]), {}),
    "void": (("ads", "7"), {}),
    "campaigns": ((), {}),
    "campaign": (("ads & co",), {}),
    "totals": (("ads",), {}),
    "standing": (("ads",), {}),
    "standings": ((), {}),
    "create": (("ads", 9.0, {"mail": 1.0}), {"tags": ["new"], "history": {"mail": (1, 0.5, 0.5)}, **KEY}),
    "clone": (("ads", "other"), {"budget": 3.0, "learned": False, **KEY}),
    "pause": (("ads",), KEY),
    "resume": (("ads",), {"spent_since": 1.0, **KEY}),
    "close_campaign": (("ads",), KEY),
    "reset_clock": (("ads",), KEY),
    "top_up": (("ads", 5.0), KEY),
    "add_arm": (("ads", "search", 2.0), KEY),
    "retire_arm": (("ads", "a/b"), KEY),
    "bring_back_arm": (("ads", "a/b"), KEY),
    "change_terms": (("ads",), {"caps": {"mail": 2.0}, "daily_cap": None, **KEY}),
    "export": (("ads", "made.csv"), {"table": "events"}),
    "verify": (("ads",), {}),
    "decisions": (("ads",), {"limit": 5, "before": 9, "until": 1.0, "kind": "held", "arm": "mail"}),
    "decision": (("ads", "7"), {}),
    "events": (("ads",), {"limit": 5, "after": 9, "since": 1.0}),
    "keys": ((), {}),
    "create_key": (("read", "decide"), {"campaign": "ads", **KEY}),
    "drop_key": (("bb_0123_secret",), {}),
    "create_webhook": (("https://example.org", "ads"), {}),
    "webhooks": ((), {}),
    "drop_webhook": (("7",), {}),
    "test_webhook": (("7",), {}),
    "create_shared_budget": (("all", 9.0), {"currency": "EUR"}),
    "shared_budgets": ((), {}),
    "shared_budget": (("all",), {}),
    "change_shared_budget": (("all",), {"budget": 5.0}),
    "reset_shared_clock": (("all",), {}),
    "verify_shared_budget": (("all",), {}),
}
"""An example of each operation of the table."""

METHODS = {"tell": "feedback", "tell_many": "feedback_many"}
"""Methods of the clients that are not named as their operations."""

COMMANDS = {
    "campaigns": "campaign list", "campaign": "campaign show", "totals": "campaign show", "standing": "campaign show",
    "standings": "campaign list", "create": "campaign create", "clone": "campaign clone", "pause": "campaign pause",
    "resume": "campaign resume", "close_campaign": "campaign close", "reset_clock": "campaign reset-clock",
    "top_up": "campaign top-up", "add_arm": "campaign add-arm", "retire_arm": "campaign retire-arm",
    "bring_back_arm": "campaign bring-back-arm", "change_terms": "campaign change", "export": "campaign export",
    "verify": "campaign verify", "keys": "key list", "create_key": "key create", "drop_key": "key drop",
    "create_webhook": "webhook create", "webhooks": "webhook list", "drop_webhook": "webhook drop",
    "test_webhook": "webhook test", "create_shared_budget": "shared-budget create",
    "shared_budgets": "shared-budget list", "shared_budget": "shared-budget show",
    "change_shared_budget": "shared-budget change", "reset_shared_clock": "shared-budget reset-clock",
    "verify_shared_budget": "shared-budget verify",
}  # fmt: skip
"""The command for each of the operators' operations."""

NO_COMMAND = {
    "metrics": "for Prometheus",
    "decision": "the dashboard shows it",
    "decisions": "pages of a table, which `campaign export` writes whole",
    "events": "pages of a table, which `campaign export` writes whole",
}
STORE_COMMANDS = {
    "campaign delete": "needs the archive's folder",
    "campaign prune": "needs the archive's folder",
    "key turn-on": "after a restore, where the store is",
    "webhook turn-on": "after a restore, where the store is",
}
"""Commands without an operation: they run where the store is."""


class Recorder(httpx.MockTransport):
    """A service that finds nothing, and keeps what was asked of it."""

    def __init__(self):
        super().__init__(self.answer)
        self.requests = []

    def answer(self, request):
        sent_key = request.headers.get("Idempotency-Key")
        self.requests.append((request.method, request.url, request.content, sent_key, request.extensions["timeout"]))
        return httpx.Response(404, json={"title": "NotFound", "detail": "nothing", "status": 404})


def requests_of(operation):
    """What both clients send for an operation."""
    method, (arguments, options) = METHODS.get(operation, operation), CALLS[operation]
    recorder, other = Recorder(), Recorder()
    with Client("http://service", "key", transport=recorder) as client, pytest.raises(NotFound):
        getattr(client, method)(*arguments, **options)

    async def run():
        async with AsyncClient("http://service", "key", transport=other) as client:
            with pytest.raises(NotFound):
                await getattr(client, method)(*arguments, **options)

    asyncio.run(run())
    return recorder.requests, other.requests


def operation_of(request):
    """The row of the table that takes a request, as the server looks for it."""
    method, url, _, _, _ = request
    scope = {"type": "http", "method": method, "path": url.path, "root_path": "", "path_params": {}}
    return next(
        row for row in ROUTES if Route(row.path, requests_of, methods=[row.method]).matches(scope)[0] is Match.FULL
    )


def test_each_operation_has_a_call():
    assert set(CALLS) == {row.name for row in ROUTES} - PROBES


@pytest.mark.parametrize("operation", CALLS)
def test_both_clients_make_the_same_call(operation, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    [request], others = requests_of(operation)
    assert others == [request]
    row = operation_of(request)
    assert row.name == operation
    assert request[3] == (KEY["key"] if row.keyed else None)
    assert list(tmp_path.iterdir()) == []  # no export


def test_both_clients_have_the_same_methods():
    def methods(kind):
        return {
            name: list(inspect.signature(value).parameters.values())
            for name, value in vars(kind).items()
            if not name.startswith("_")
        }

    assert methods(AsyncClient) == methods(Client)


def test_operators_have_a_command_for_each_of_their_operations():
    operators = {row.name for row in ROUTES if row.scope in ("read", "admin")}
    assert not set(COMMANDS) & set(NO_COMMAND)
    assert {*COMMANDS, *NO_COMMAND} == operators
    groups = typer.main.get_command(app).commands
    words = {f"{group} {name}" for group in ("campaign", "key", "webhook", "shared-budget")
             for name in groups[group].commands}  # fmt: skip
    assert {*COMMANDS.values(), *STORE_COMMANDS} == words
