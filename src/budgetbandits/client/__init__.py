"""Talk to a decision service from Python. Needs httpx alone (extra ``client``).

    with Client("http://localhost:8000", key) as client:
        with client.decide("ads") as d:
            outcome = spend_money_on(d.arm)
            d.settle(reward=outcome.value, cost=outcome.price)

`client` and `async_client` send, `protocol` knows what is sent and what an answer means, `retries` when it is
sent again, `models` what a campaign looks like from outside.
"""

from budgetbandits.client.async_client import AsyncClient, AsyncDecision
from budgetbandits.client.client import Client, Decision
from budgetbandits.client.models import ArmInfo, CampaignInfo
from budgetbandits.client.protocol import FeedbackResult

__all__ = ["ArmInfo", "AsyncClient", "AsyncDecision", "CampaignInfo", "Client", "Decision", "FeedbackResult"]
