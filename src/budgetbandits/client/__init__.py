"""Talk to a decision service from Python. Needs only httpx (extra ``client``).

    with Client("http://localhost:8000", key) as client:
        with client.decide("ads") as d:
            outcome = spend_money_on(d.arm)
            d.settle(reward=outcome.value, cost=outcome.price)

`client` and `async_client` send and wait. `calls` has what is sent, `protocol` what an answer means, `retries` when a
call is sent again; `budgetbandits.answers` has what comes back. Import from here.
"""

from budgetbandits.answers import (
    ArmAnswer,
    ArmTotalAnswer,
    CampaignAnswer,
    CampaignDetailAnswer,
    DecisionDetailAnswer,
    DecisionPageAnswer,
    EventAnswer,
    EventPageAnswer,
    KeyAnswer,
    MemberAnswer,
    NewWebhookAnswer,
    PaceAnswer,
    RunsOutAnswer,
    SharedBudgetAnswer,
    SharedBudgetDetailAnswer,
    StandingAnswer,
    TermChangeAnswer,
    WebhookAnswer,
)
from budgetbandits.errors import MissingExtra, install

try:
    import httpx  # noqa: F401 - all modules of the package need it
except ModuleNotFoundError as missing:
    if missing.name != "httpx":
        raise
    raise MissingExtra(f"the client needs httpx; {install('client')}", name="httpx") from None

from budgetbandits.client.async_client import AsyncClient, AsyncDecision
from budgetbandits.client.client import Client, Decision
from budgetbandits.client.protocol import FeedbackResult, check_signature

__all__ = [
    "ArmAnswer", "ArmTotalAnswer", "AsyncClient", "AsyncDecision", "CampaignAnswer", "CampaignDetailAnswer", "Client",
    "Decision", "DecisionDetailAnswer", "DecisionPageAnswer", "EventAnswer", "EventPageAnswer", "FeedbackResult",
    "KeyAnswer", "MemberAnswer", "NewWebhookAnswer", "PaceAnswer", "RunsOutAnswer", "SharedBudgetAnswer",
    "SharedBudgetDetailAnswer", "StandingAnswer", "TermChangeAnswer", "WebhookAnswer", "check_signature",
]  # fmt: skip
