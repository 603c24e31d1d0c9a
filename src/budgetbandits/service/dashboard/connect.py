"""The page that connects a program: lines to copy, with this server's address and the campaign as it is.

A server knows the address that a request came to, less what a proxy in between has changed of it. The browser knows the
address that it has asked: with scripts the page writes that one (`dashboard.js`).
"""

from __future__ import annotations

import json
import shlex
from dataclasses import dataclass

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from budgetbandits.service.dashboard.pages import Dashboard
from budgetbandits.service.dashboard.query import campaign_path, server_address
from budgetbandits.service.dashboard.sessions import Session
from budgetbandits.service.ledger import to_units
from budgetbandits.service.stores.contract import Transaction
from budgetbandits.service.stores.records import Campaign

ARMS_SHOWN_MAX = 4
"""Arms that the lines name."""

PYTHON = """\
import os
from budgetbandits.client import Client

with Client({address}, os.environ["BUDGETBANDITS_KEY"]) as client:
    with client.decide({campaign}{features}) as d:
        outcome = call(d.arm)  # yours
        d.settle(reward=outcome.value, cost=outcome.price)
"""
CURL = """\
curl -s {url}/decisions -H "Authorization: Bearer $BUDGETBANDITS_KEY" \\
     -H 'Idempotency-Key: request 17' -d {body}
curl -s {url}/decisions/$DECISION/feedback -H "Authorization: Bearer $BUDGETBANDITS_KEY" \\
     -d '{{"reward": 1, "cost": {cost}}}'
"""
"""Example of a call with curl."""

OPENAI = """\
import os
from openai import OpenAI
from budgetbandits.adapters.openai import BudgetedOpenAI
from budgetbandits.client import Client

client = Client({address}, os.environ["BUDGETBANDITS_KEY"])
prices = {{  # yours: what a million tokens of each cost, input and output
{prices}
}}
models = BudgetedOpenAI(OpenAI(), client, {campaign}, prices)
answer = models.chat.completions.create(messages=messages, max_tokens=300{request})
models.reward(answer.id, 1.0)  # whenever it is known
"""


@dataclass(frozen=True)
class ConnectView:
    """Lines for the programs of one campaign."""

    row: Campaign
    arms: list[str]
    cap: float
    """The smallest, in the user's unit."""
    address: str
    """Address of this server, as the request names it."""

    @property
    def snippets(self) -> list[tuple[str, str, str, str]]:
        """(kind, title, what it takes, lines)."""
        name, names = _python(self.row.name), self.row.settings.terms.features or ()
        features = "{" + ", ".join(f"{_python(name)}: 0.0" for name in names) + "}"
        given = f", features={features}" if names else ""
        body = json.dumps({"features": dict.fromkeys(names, 0.0)} if names else {}, ensure_ascii=False)
        prices = "\n".join(f"    {_python(arm)}: (INPUT, OUTPUT)," for arm in self.arms[:ARMS_SHOWN_MAX])
        prices += "\n    # and all other arms" if len(self.arms) > ARMS_SHOWN_MAX else ""
        request = f', request={{"features": {features}}}' if names else ""
        url = shlex.quote(f"{self.address}{campaign_path(self.row.name)}")
        address = _python(self.address)
        return [
            ("python", "Python",
             "The extra client of budgetbandits. The distribution budgetbandits-client needs httpx alone; there the "
             "package is called budgetbandits_client.",
             PYTHON.format(address=address, campaign=name, features=given)),
            ("curl", "Any language, over HTTP",
             "The key of a request is new for each: sent again, it gets the same decision. The answer names the "
             "decision and its arm.",
             CURL.format(url=url, body=shlex.quote(body), cost=json.dumps(self.cap))),
            ("openai", "The OpenAI SDK", "Arms are called like models. The key needs the scope read, too.",
             OPENAI.format(address=address, campaign=name, prices=prices, request=request)),
        ]  # fmt: skip

    def as_json(self) -> dict[str, str]:
        """The view as JSON."""
        return {"address": self.address, **{kind: lines for kind, _, _, lines in self.snippets}}


def _python(text: str) -> str:
    """A text as Python writes it, in double quotes."""
    return json.dumps(text, ensure_ascii=False)


def connect_view(tx: Transaction, row: Campaign, address: str) -> ConnectView:
    """The page on connecting a program to a campaign."""
    arms = [arm for arm in tx.arms(row.id) if arm.active]
    cap = to_units(min((arm.cost_cap for arm in arms), default=0))
    return ConnectView(row, [arm.name for arm in arms], cap, address)


class ConnectPages:
    """The pages that connect programs, of one server."""

    def __init__(self, dashboard: Dashboard) -> None:
        self._dashboard = dashboard

    def routes(self) -> list[Route]:
        """The routes of these pages."""
        return [Route("/campaigns/{campaign}/connect", self._dashboard.page(self._connect))]

    async def _connect(self, request: Request, session: Session) -> Response:
        row, at = await self._dashboard.campaign(request, session), server_address(request)
        view = await self._dashboard.read_of(row, lambda tx, row: connect_view(tx, row, at))
        return self._dashboard.shown("connect.html", request, session, view)
