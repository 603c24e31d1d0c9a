"""LiteLLM on a budget: a callback for its router and proxy through which a campaign chooses the deployment of a call.

In the proxy, by one line of its configuration and three environment variables (`__getattr__` below):

    litellm_settings: {callbacks: budgetbandits.adapters.litellm.callback}

In a program, for `litellm.Router`:

    litellm.callbacks = [BudgetCallback(url, key, ["models"])]

A campaign is for the model group of the same name. Its arms are called like the models of the group's deployments, such
as ``openai/gpt-4o-mini``; deployments of one model are one arm, and LiteLLM chooses among them. Prices are those of the
deployments' configuration (``input_cost_per_token``, ``output_cost_per_token``), else LiteLLM's own. A call that is
repeated, or falls back to another group, is a decision of its own. Other groups are left alone. What else a request
says (segment, features, prices) is in its metadata, under the name ``budgetbandits``.

LiteLLM asks callbacks on an event loop only, so ``Router.acompletion`` and the proxy work, and ``Router.completion`` is
refused. A call that LiteLLM forgets without a report, such as a stream that nobody reads, ends when it is collected.
"""

from __future__ import annotations

import asyncio
import logging
import os
import time
import weakref
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import wraps
from typing import Any, Self

from budgetbandits.adapters.calls import CAPS_SECONDS, TokenPrice, failure_of, request_fields
from budgetbandits.client import AsyncClient, AsyncDecision, CampaignDetailAnswer
from budgetbandits.errors import BadParameter, BudgetBanditsError, HoldRefused, MissingExtra, install

try:
    import litellm
    from litellm.integrations.custom_logger import CustomLogger
    from litellm.types.utils import all_litellm_params
except ModuleNotFoundError:
    litellm, CustomLogger = None, object  # a callback cannot be made then

REQUEST = "budgetbandits"
"""The name of what a request says among its metadata: segment, features, prices, exclude and metadata."""

DECISION = "budgetbandits_decision"
"""The name of a call's decision among its metadata."""

ENDED = "budgetbandits_ended"
"""The name, among the details of a stream, of whether its provider has said why it ended and what it took."""

NOTES_ENDS = "budgetbandits_notes_ends"
"""The attribute of LiteLLM's builder of streamed answers that it has once it notes how they have ended."""

NOT_SENT = {
    "model", "messages", "specific_deployment", "original_function", "context_window_fallbacks",
    "content_policy_fallbacks", "organization",
}  # fmt: skip
"""Arguments of LiteLLM's own that its list leaves out, and the messages, which come apart."""

HEADER = "x-budgetbandits-decision"
"""The header by which the proxy tells its callers the decision, for rewards."""

log = logging.getLogger("budgetbandits")


class _Note(str):
    """The campaign, the decision and the hold of a call. LiteLLM keeps it as long as it knows of the call."""

    def __deepcopy__(self, _memo: object) -> Self:
        return self


@dataclass(frozen=True)
class _DeployedPrice(TokenPrice):
    """The price of a deployment, and what its configuration adds to each request."""

    defaults: Mapping[str, Any] = field(default_factory=dict)

    def most(self, body: Mapping[str, Any]) -> float | None:
        """The most that a call with this body can cost; see `TokenPrice.most`."""
        return super().most({**self.defaults, **body})


class BudgetCallback(CustomLogger):  # type: ignore[misc]
    """A callback that lets a campaign choose the deployment, holds the largest cost of a call, and settles its price.

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
        self._known: dict[str, tuple[float, CampaignDetailAnswer]] = {}
        self._open: dict[str, bool] = {}  # decisions that were not reported yet: whether their calls were sent
        self._tasks: set[asyncio.Task[None]] = set()
        self.name = f"budgetbandits {id(self)}"  # of callbacks whose numbers and texts are the same LiteLLM asks one
        _watch_streams()

    async def reward(self, answer: Any, reward: float) -> None:
        """Report the reward of an answer or a stream, as soon as it is known."""
        kept = getattr(answer, "_hidden_params", None) or {}
        details = getattr(getattr(answer, "logging_obj", None), "model_call_details", None) or {}
        noted = kept.get(DECISION) or _text(details)
        if noted is None:
            raise BadParameter(
                f"{answer!r:.60} has no decision; pass what acompletion returned, and not an answer from a cache"
            )
        campaign, decision, _ = _parts(noted)
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
        if not healthy_deployments:  # all cool down: LiteLLM has an error of its own for that, which may be retried
            return healthy_deployments
        deployments_by_arm: dict[str, list[Any]] = {}
        for deployment in healthy_deployments:
            deployments_by_arm.setdefault(deployment["litellm_params"]["model"], []).append(deployment)
        prices = {
            arm: price
            for arm, deployments in deployments_by_arm.items()
            if (price := _price(deployments[0])) is not None
        }
        name = "litellm_metadata" if "litellm_metadata" in request_kwargs else "metadata"
        shared = request_kwargs.get(name) or {}
        decision = await self._decide(model, prices, {**_sent(request_kwargs), "messages": messages}, shared)
        # what it is charged where its price is not known; that of a model on one's own machine is
        price = prices[decision.arm]
        noted = _Note(f"{model} {decision.id} {decision.hold if price.input or price.output else 0.0}")
        self._open[decision.id] = False
        weakref.finalize(noted, self._forgotten, asyncio.get_running_loop(), str(noted)).atexit = False
        shared[DECISION] = str(noted)  # of the latest attempt, for the header ...
        request_kwargs[name] = {**shared, DECISION: noted}  # ... and of this one, for its end
        if request_kwargs.get("stream"):  # else LiteLLM counts tokens by itself, which is not what is charged
            request_kwargs["stream_options"] = {**(request_kwargs.get("stream_options") or {}), "include_usage": True}
        return deployments_by_arm[decision.arm]

    def pre_call_check(self, deployment: Mapping[str, Any]) -> None:
        """Refuse a call that does not wait for callbacks: it would spend money that no campaign knows of."""
        if (group := deployment.get("model_name")) in self._campaigns:
            raise _with_status(
                BadParameter(
                    f"Router.completion asks no campaign before it spends on {group!r:.60}; use Router.acompletion"
                ),
                400,
            )

    def log_pre_api_call(self, model: Any, messages: Any, kwargs: Any) -> None:
        """Note that a call is sent."""
        noted = _text(kwargs)
        if noted is not None and _parts(noted)[1] in self._open:
            self._open[_parts(noted)[1]] = True

    async def async_post_call_success_deployment_hook(self, request_data: Any, response: Any, call_type: Any) -> Any:
        """Add its decision to an answer, so that the program can report its reward."""
        noted = _text({"litellm_params": request_data})
        if noted is not None and isinstance(getattr(response, "_hidden_params", None), dict):
            response._hidden_params[DECISION] = str(noted)
        return response

    async def async_log_success_event(self, kwargs: Any, response_obj: Any, start_time: Any, end_time: Any) -> None:
        """Settle a call whose answer is complete, streamed or not."""
        if (noted := _text(kwargs)) is None:
            return
        hold, cost = _parts(noted)[2], kwargs.get("response_cost")
        if kwargs.get("cache_hit"):  # LiteLLM has answered by itself, and nobody was paid
            hold, cost = 0.0, None
        elif kwargs.get("stream") and not kwargs.get(ENDED):
            cost = None  # LiteLLM has counted the tokens that came
        await self._report(noted, cost=hold if not cost else float(cost))

    async def async_log_failure_event(self, kwargs: Any, response_obj: Any, start_time: Any, end_time: Any) -> None:
        """Fail or void a call that was not answered, according to its error."""
        if (noted := _text(kwargs)) is None:
            return
        _, decision, hold = _parts(noted)
        error = kwargs.get("exception")
        failure = failure_of(error, self._open.get(decision, True)) if isinstance(error, BaseException) else None
        if kwargs.get("stream") and (failure is None or failure.report == "leave"):  # cut off in the middle
            await self._report(noted, cost=hold, failed=True)
        elif failure is not None and failure.report == "fail":
            await self._report(noted, cost=hold if failure.charged else 0.0, failed=True)
        elif failure is not None and failure.report == "void":
            await self._report(noted)

    async def async_post_call_response_headers_hook(self, data: Any, *_: Any, **__: Any) -> dict[str, str] | None:
        """Tell the caller of the proxy which decision its answer came from."""
        noted = _text({"litellm_params": data})
        return None if noted is None else {HEADER: _parts(noted)[1]}

    # --- the service ---------------------------------------------------------------------------------------------

    async def _decide(
        self, model: str, prices: Mapping[str, TokenPrice], body: Mapping[str, Any], metadata: Mapping[str, Any]
    ) -> AsyncDecision:
        if body["messages"] is None:  # no text whose bytes could be counted
            body = {**body, "max_tokens": -1}
        try:
            fields = request_fields(await self._campaign(model), prices, body, prices, metadata.get(REQUEST))
            return await self._client().decide(model, wait=self._wait, **fields)
        except HoldRefused as refused:  # the proxy answers 500 otherwise, which clients repeat
            raise _with_status(refused, 402 if refused.retry_after is None else 429) from None
        except BadParameter as wrong:
            raise _with_status(wrong, 400) from None

    async def _report(self, noted: str, cost: float | None = None, failed: bool = False) -> None:
        """Report the cost of a decision, or void it without one. Errors are logged: LiteLLM would drop them."""
        campaign, decision, _ = _parts(noted)
        if self._open.pop(decision, None) is None:
            return
        try:
            if cost is None:
                await self._client().void(campaign, decision)
            else:
                await self._client().feedback(campaign, decision, cost=cost, failed=failed)
        except BudgetBanditsError as error:
            log.warning("decision %s was not settled, so its hold is charged when it expires: %s", decision, error)

    def _forgotten(self, loop: asyncio.AbstractEventLoop, noted: str) -> None:
        """End a call that LiteLLM has dropped without a report: charge its hold, or void it if it was not sent."""
        if _parts(noted)[1] in self._open:
            with suppress(RuntimeError):  # the loop is closed: the hold expires
                loop.call_soon_threadsafe(self._end_forgotten, noted)

    def _end_forgotten(self, noted: str) -> None:
        _, decision, hold = _parts(noted)
        task = asyncio.ensure_future(self._report(noted, cost=hold if self._open.get(decision) else None))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def _client(self) -> AsyncClient:
        """The client of this event loop."""
        loop = asyncio.get_running_loop()
        if loop not in self._clients:
            self._clients = {key: client for key, client in self._clients.items() if not key.is_closed()}
            self._clients[loop] = AsyncClient(*self._address)
        return self._clients[loop]

    async def _campaign(self, name: str) -> CampaignDetailAnswer:
        """The campaign with the caps of its arms, as of a minute ago."""
        until, info = self._known.get(name, (0.0, None))
        if info is None or time.monotonic() > until:
            info = await self._client().campaign(name)
            self._known[name] = time.monotonic() + CAPS_SECONDS, info
        return info


def _price(deployment: Mapping[str, Any]) -> TokenPrice | None:
    """The price of a deployment, by its configuration or by LiteLLM's table; None if neither has one."""
    configured = deployment["litellm_params"]
    model = configured["model"]
    entry = litellm.model_cost.get(model, litellm.model_cost.get(model.partition("/")[2]))
    for given in (configured, deployment.get("model_info") or {}, entry or {}):
        if given.get("input_cost_per_token") is not None and given.get("output_cost_per_token") is not None:
            prices = (given["input_cost_per_token"] * 1e6, given["output_cost_per_token"] * 1e6)
            return _DeployedPrice(*prices, defaults=_sent(configured))
    return None


def _sent(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments of a call, or of a deployment's configuration, that LiteLLM sends."""
    own = {*NOT_SENT, *all_litellm_params}
    return {
        name: value
        for name, value in arguments.items()
        if name not in own and not name.startswith("_") and value is not None
    }


def _text(kwargs: Mapping[str, Any]) -> str | None:
    """The note on a call: its campaign, its decision and its hold (0 if it costs nothing); None without one."""
    given = kwargs.get("litellm_params") or {}
    for name in ("litellm_metadata", "metadata"):
        noted = (given.get(name) or {}).get(DECISION)
        if isinstance(noted, str):
            return noted
    return None


def _parts(noted: str) -> tuple[str, str, float]:
    campaign, decision, hold = noted.rsplit(" ", 2)
    return campaign, decision, float(hold)


def _with_status(error: BudgetBanditsError, status: int) -> BudgetBanditsError:
    """An error that LiteLLM's proxy answers with this status."""
    error.status_code = status  # type: ignore[attr-defined]
    return error


def _watch_streams() -> None:
    """Patch LiteLLM so that it notes for each stream whether its provider has sent a finish reason and a usage.

    Without them LiteLLM counts the tokens that came, and reports them as if they were billed.
    """
    build = litellm.stream_chunk_builder
    if hasattr(build, NOTES_ENDS):  # of a wrapper by another library, too: it takes on what it wraps
        return

    @wraps(build)
    def noting(chunks: Any, *args: Any, **kwargs: Any) -> Any:
        details = getattr(kwargs.get("logging_obj"), "model_call_details", None)
        if isinstance(details, dict):
            choices = [choice for chunk in chunks or () for choice in getattr(chunk, "choices", None) or ()]
            is_finished = any(getattr(choice, "finish_reason", None) is not None for choice in choices)
            details[ENDED] = is_finished and any(getattr(chunk, "usage", None) is not None for chunk in chunks)
        return build(chunks, *args, **kwargs)

    setattr(noting, NOTES_ENDS, True)
    litellm.stream_chunk_builder = noting


def __getattr__(name: str) -> Any:
    """Make ``callback`` from BUDGETBANDITS_URL, BUDGETBANDITS_KEY and BUDGETBANDITS_CAMPAIGNS (separated by commas)."""
    if name != "callback":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    names = ("BUDGETBANDITS_URL", "BUDGETBANDITS_KEY", "BUDGETBANDITS_CAMPAIGNS")
    if absent := [name for name in names if not os.environ.get(name)]:
        raise BadParameter(f"{', '.join(absent)} not set; the callback needs {', '.join(names)}")
    url, key, campaigns = (os.environ[name] for name in names)
    globals()[name] = callback = BudgetCallback(url, key, [campaign.strip() for campaign in campaigns.split(",")])
    return callback
