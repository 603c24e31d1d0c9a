"""LiteLLM on a budget: a callback of its router and proxy by which a campaign chooses the deployment of each call.

In the proxy, by one line of its configuration and three environment variables (`__getattr__` below):

    litellm_settings: {callbacks: budgetbandits.adapters.litellm.callback}

In a program, for `litellm.Router`:

    litellm.callbacks = [BudgetCallback(url, key, ["models"])]

A campaign is for the model group of the same name. Its arms are called like the models of the group's deployments, such
as ``openai/gpt-4o-mini``; deployments of one model are one arm, and LiteLLM chooses among them. Prices are those of the
deployments' configuration (``input_cost_per_token``, ``output_cost_per_token``), else LiteLLM's own. A call that is
repeated, or falls back to another group, is a decision of its own. Other groups are left alone.

LiteLLM asks callbacks on an event loop only: ``Router.acompletion`` and the proxy, not ``Router.completion``.
"""

from __future__ import annotations

import asyncio
import logging
import os
import time
from collections.abc import Iterable, Mapping
from typing import Any

from budgetbandits.adapters.calls import CAPS_SECONDS, AnswerIds, TokenPrice, failure_of, request_fields
from budgetbandits.client import AsyncClient, CampaignInfo
from budgetbandits.errors import BadParameter, BudgetBanditsError, HoldRefused, MissingExtra, install

try:
    import litellm
    from litellm.integrations.custom_logger import CustomLogger
except ModuleNotFoundError:
    litellm, CustomLogger = None, object  # a callback cannot be made then

DECISION = "budgetbandits_decision"
"""The name of a call's decision among its metadata."""

HEADER = "x-budgetbandits-decision"
"""The header by which the proxy tells its callers the decision, for rewards."""

log = logging.getLogger("budgetbandits")


class BudgetCallback(CustomLogger):  # type: ignore[misc]
    """Chooses a deployment by a campaign, holds the most that the call can cost, and settles with its price.

    campaigns  names of campaigns, each for the model group of that name
    wait       seconds to wait for money that is held or not yet due
    """

    def __init__(self, url: str, key: str, campaigns: Iterable[str], *, wait: float = 0.0) -> None:
        if litellm is None:
            raise MissingExtra(f"this needs litellm; {install('litellm')}", name="litellm")
        super().__init__()
        self._address, self._wait = (url, key), wait
        self._campaigns = frozenset(campaigns)
        self._clients: dict[asyncio.AbstractEventLoop, AsyncClient] = {}
        self._known: dict[str, tuple[float, CampaignInfo]] = {}
        self._answers = AnswerIds()

    async def reward(self, answer: str, reward: float) -> None:
        """Report the reward of an answer, by the answer's id."""
        campaign, decision = self._answers.decision(answer).rsplit(" ", 1)
        await self._client().feedback(campaign, decision, reward=reward)

    async def close(self) -> None:
        """Close the connections of this event loop."""
        client = self._clients.pop(asyncio.get_running_loop(), None)
        if client is not None:
            await client.close()

    # --- what LiteLLM calls --------------------------------------------------------------------------------------

    async def async_filter_deployments(
        self, model: str, healthy_deployments: Any, messages: Any, request_kwargs: Any = None,
        parent_otel_span: Any = None,
    ) -> Any:  # fmt: skip
        """The deployments of the arm that the campaign chooses; `HoldRefused` if there is no money."""
        if model not in self._campaigns or not isinstance(healthy_deployments, list) or request_kwargs is None:
            return healthy_deployments
        by_arm: dict[str, list[Any]] = {}
        for each in healthy_deployments:
            by_arm.setdefault(each["litellm_params"]["model"], []).append(each)
        prices = {arm: price for arm, some in by_arm.items() if (price := _price(some[0])) is not None}
        body = {**request_kwargs, "messages": messages}
        if messages is None:  # no text whose bytes could be counted
            body["max_tokens"] = None
        fields = request_fields(await self._campaign(model), prices, body, by_arm)
        try:
            decision = await self._client().decide(model, wait=self._wait, **fields)
        except HoldRefused as refused:  # the proxy answers 500 otherwise, which clients repeat
            refused.status_code = 402 if refused.retry_after is None else 429  # type: ignore[attr-defined]
            raise
        price = prices[decision.arm]
        # what it is charged where its price is not known; that of a model on one's own machine is
        noted = f"{model} {decision.id} {decision.hold if price.input or price.output else 0.0}"
        name = "litellm_metadata" if "litellm_metadata" in request_kwargs else "metadata"
        shared = request_kwargs.get(name) or {}
        shared[DECISION] = noted  # of the latest attempt, for the header ...
        request_kwargs[name] = dict(shared)  # ... and of this one, for its end
        if request_kwargs.get("stream"):  # else LiteLLM counts tokens by itself, which is not what is charged
            request_kwargs["stream_options"] = {**(request_kwargs.get("stream_options") or {}), "include_usage": True}
        return by_arm[decision.arm]

    async def async_log_success_event(self, kwargs: Any, response_obj: Any, start_time: Any, end_time: Any) -> None:
        """Settle a call that was answered, or streamed to its end."""
        if (noted := _noted(kwargs)) is None:
            return
        campaign, decision, hold = noted
        cost = kwargs.get("response_cost")
        if kwargs.get("cache_hit"):  # LiteLLM has answered by itself, and nobody was paid
            hold, cost = 0.0, None
        self._answers.keep(response_obj, f"{campaign} {decision}")
        await self._report(campaign, decision, cost=hold if not cost else float(cost))

    async def async_log_failure_event(self, kwargs: Any, response_obj: Any, start_time: Any, end_time: Any) -> None:
        """Fail or void a call that was not answered, by its error."""
        if (noted := _noted(kwargs)) is None:
            return
        campaign, decision, hold = noted
        error = kwargs.get("exception")
        failure = failure_of(error) if isinstance(error, BaseException) else None
        if kwargs.get("stream") and (failure is None or failure.report == "leave"):  # cut off in the middle
            await self._report(campaign, decision, cost=hold, failed=True)
        elif failure is not None and failure.report == "fail":
            await self._report(campaign, decision, cost=hold if failure.charged else 0.0, failed=True)
        elif failure is not None and failure.report == "void":
            await self._report(campaign, decision)

    async def async_post_call_response_headers_hook(self, data: Any, *_: Any, **__: Any) -> dict[str, str] | None:
        """Tell the caller of the proxy which decision its answer came from."""
        noted = _noted({"litellm_params": data})
        return None if noted is None else {HEADER: noted[1]}

    # --- the service ---------------------------------------------------------------------------------------------

    async def _report(self, campaign: str, decision: str, cost: float | None = None, failed: bool = False) -> None:
        """Report the cost of a decision, or void it without one. Nothing is raised: LiteLLM would drop it silently."""
        try:
            if cost is None:
                await self._client().void(campaign, decision)
            else:
                await self._client().feedback(campaign, decision, cost=cost, failed=failed)
        except BudgetBanditsError as error:
            log.warning("decision %s was not settled, so its hold is charged when it expires: %s", decision, error)

    def _client(self) -> AsyncClient:
        """The client of this event loop."""
        loop = asyncio.get_running_loop()
        if loop not in self._clients:
            self._clients = {each: client for each, client in self._clients.items() if not each.is_closed()}
            self._clients[loop] = AsyncClient(*self._address)
        return self._clients[loop]

    async def _campaign(self, name: str) -> CampaignInfo:
        """The campaign with the caps of its arms, as of a minute ago."""
        until, info = self._known.get(name, (0.0, None))
        if info is None or time.monotonic() > until:
            info = await self._client().campaign(name)
            self._known[name] = time.monotonic() + CAPS_SECONDS, info
        return info


def _price(deployment: Mapping[str, Any]) -> TokenPrice | None:
    """The price of a deployment, by its configuration or by LiteLLM's table; None if neither has one."""
    model = deployment["litellm_params"]["model"]
    known = litellm.model_cost.get(model, litellm.model_cost.get(model.partition("/")[2]))
    for given in (deployment["litellm_params"], deployment.get("model_info") or {}, known or {}):
        if given.get("input_cost_per_token") is not None and given.get("output_cost_per_token") is not None:
            return TokenPrice(given["input_cost_per_token"] * 1e6, given["output_cost_per_token"] * 1e6)
    return None


def _noted(kwargs: Mapping[str, Any]) -> tuple[str, str, float] | None:
    """The campaign, the decision and the hold of a call, or 0 if it costs nothing; None if it has no decision."""
    given = kwargs.get("litellm_params") or {}
    for name in ("litellm_metadata", "metadata"):
        noted = (given.get(name) or {}).get(DECISION)
        if noted is not None:
            campaign, decision, hold = noted.rsplit(" ", 2)
            return campaign, decision, float(hold)
    return None


def __getattr__(name: str) -> Any:
    """``callback``, made of BUDGETBANDITS_URL, BUDGETBANDITS_KEY and BUDGETBANDITS_CAMPAIGNS (separated by commas)."""
    if name != "callback":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    names = ("BUDGETBANDITS_URL", "BUDGETBANDITS_KEY", "BUDGETBANDITS_CAMPAIGNS")
    if absent := [each for each in names if not os.environ.get(each)]:
        raise BadParameter(f"{', '.join(absent)} not set; the callback needs {', '.join(names)}")
    url, key, campaigns = (os.environ[each] for each in names)
    globals()[name] = made = BudgetCallback(url, key, [each.strip() for each in campaigns.split(",")])
    return made
