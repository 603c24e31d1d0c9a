"""The OpenAI SDK on a budget: ``chat.completions.create`` decides which model answers, calls it and settles.

    models = BudgetedOpenAI(OpenAI(), Client(url, key), "models", {"gpt-4o-mini": (0.15, 0.60), "gpt-4o": (2.5, 10.0)})
    answer = models.chat.completions.create(messages=messages, max_tokens=300)  # the campaign chooses the model
    models.reward(answer.id, 1.0)  # whenever it is known

The decision holds the most that the call can cost, by its bytes, ``max_tokens`` and the prices, and is settled with the
price of its usage. Without ``max_tokens``, or with pictures, it holds the arm's cap. `calls.failure_of` says what an
error means. A call that failed is decided again, up to ``attempts`` times, by another arm if there is one; the SDK's
own retries are off, since nobody would pay for them.

Any client with OpenAI's interface and errors will do. The key needs the scopes decide, feedback and read.
"""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import contextmanager, suppress
from types import SimpleNamespace
from typing import Any, Self

from budgetbandits.adapters.calls import (
    CAPS_SECONDS,
    AnswerIds,
    Failure,
    PriceTable,
    failure_of,
    price_table,
    request_fields,
)
from budgetbandits.client import AsyncClient, AsyncDecision, CampaignInfo, Client, Decision
from budgetbandits.errors import BadParameter, BudgetBanditsError, UnknownArm
from budgetbandits.validation import DecisionFields, integer

log = logging.getLogger("budgetbandits")


class _Calls:
    """What both clients share: prices, caps, the bodies that are sent and the answers that came."""

    def __init__(self, openai: Any, campaign: str, prices: PriceTable, attempts: int, wait: float) -> None:
        self._openai = openai.with_options(max_retries=0) if hasattr(openai, "with_options") else openai
        self._campaign = campaign
        self._prices = price_table(prices)
        self._attempts = integer("attempts", attempts, 1)
        self._wait = wait
        self._answers = AnswerIds()
        self._info: CampaignInfo | None = None
        self._info_until = 0.0

    def decision_of(self, answer: str) -> str:
        """The id of the decision that an answer came from, to report its reward by from another process."""
        return self._answers.decision(answer)

    def _known(self, info: CampaignInfo) -> CampaignInfo:
        self._info, self._info_until = info, time.monotonic() + CAPS_SECONDS
        return info

    @property
    def _fresh(self) -> CampaignInfo | None:
        return self._info if time.monotonic() < self._info_until else None

    def _fields(
        self, info: CampaignInfo, body: Mapping[str, Any], request: DecisionFields | None, failed: set[str]
    ) -> DecisionFields:
        """The request of the next decision; arms that have failed this call are left out if others can answer."""
        given: DecisionFields = {} if request is None else request
        if {"arms", "holds", "prices"} & given.keys():
            raise BadParameter("request may have segment, exclude, features and metadata; name one arm by model=")
        arms = {body["model"]} if body.get("model") else set(self._prices)
        if body.get("model") and body["model"] not in self._prices:
            raise BadParameter(f"model {body['model']!r:.60} has no price; prices has {', '.join(self._prices)!r:.200}")
        arms -= set(given.get("exclude") or ())
        return {**given, **request_fields(info, self._prices, body, arms - failed or arms), "exclude": None}

    def _body(self, arm: str, body: Mapping[str, Any]) -> dict[str, Any]:
        sent = {**body, "model": self._prices[arm].model or arm}
        if body.get("stream"):
            sent["stream_options"] = {**(body.get("stream_options") or {}), "include_usage": True}
        return sent

    def _cost(self, arm: str, answer: Any, hold: float) -> float:
        """The price of an answer; the hold if it does not say how many tokens it took."""
        cost = self._prices[arm].cost(getattr(answer, "usage", None))
        return hold if cost is None else cost


@contextmanager
def _logged_errors(decision: Decision | AsyncDecision) -> Iterator[None]:
    """An answer that was paid for is not thrown away because the service cannot be reached."""
    try:
        yield
    except BudgetBanditsError as error:
        log.warning("decision %s was not settled, so its hold is charged when it expires: %s", decision.id, error)


class _Stream:
    """What both streams share: the usage that the last chunk has, which the caller may not have asked for."""

    def __init__(self, calls: _Calls, stream: Any, decision: Any, body: Mapping[str, Any]) -> None:
        self._calls, self._stream, self._decision = calls, stream, decision
        self._shows_usage = bool((body.get("stream_options") or {}).get("include_usage"))
        self._last: Any = None
        self.decision: str = decision.id

    def _is_shown(self, chunk: Any) -> bool:
        """Note a chunk; whether the caller is to see it."""
        self._calls._answers.keep(chunk, self._decision.id)
        if getattr(chunk, "usage", None) is not None:
            self._last = chunk
            return self._shows_usage or bool(chunk.choices)
        return True

    @property
    def _price(self) -> float:
        """Of what was streamed; the hold as long as the usage is not known: a stream that was cut off is charged."""
        return self._calls._cost(self._decision.arm, self._last, self._decision.hold)


# --- for threads -----------------------------------------------------------------------------------------------------


class BudgetedOpenAI(_Calls):
    """An OpenAI client whose calls are decisions of a campaign.

    prices    of each arm: a `TokenPrice`, or a pair of prices of input and output, for a million tokens
    attempts  decisions for one call, the first included, as long as providers fail
    wait      seconds to wait for money that is held or not yet due
    """

    def __init__(
        self, openai: Any, client: Client, campaign: str, prices: PriceTable, *, attempts: int = 3, wait: float = 0.0
    ) -> None:
        super().__init__(openai, campaign, prices, attempts, wait)
        self._client = client
        self._lock = threading.Lock()
        self.chat = SimpleNamespace(completions=SimpleNamespace(create=self._create))

    def reward(self, answer: str, reward: float) -> None:
        """Report the reward of an answer, by the answer's id."""
        self._client.feedback(self._campaign, self.decision_of(answer), reward=reward)

    def _create(self, *, request: DecisionFields | None = None, **body: Any) -> Any:
        """``chat.completions.create``; ``model`` names the only arm that may answer, ``request`` says more of it."""
        failed: set[str] = set()
        for attempt in range(1, self._attempts + 1):
            decision = self._decide(body, request, failed)
            try:
                answer = self._openai.chat.completions.create(**self._body(decision.arm, body))
            except Exception as error:
                failure = failure_of(error)
                _report(decision, failure)
                if attempt == self._attempts or not failure.again:
                    raise
                failed.add(decision.arm)
                continue
            if body.get("stream"):
                return BudgetedStream(self, answer, decision, body)
            self._answers.keep(answer, decision.id)
            with _logged_errors(decision):
                decision.settle(cost=self._cost(decision.arm, answer, decision.hold))
            return answer
        raise AssertionError  # the last attempt returns or raises

    def _decide(self, body: Mapping[str, Any], request: DecisionFields | None, failed: set[str]) -> Decision:
        with self._lock:  # one looks, and all know
            info = self._fresh or self._known(self._client.campaign(self._campaign))
        with suppress(BadParameter, UnknownArm):
            fields = self._fields(info, body, request, failed)
            return self._client.decide(self._campaign, wait=self._wait, **fields)
        # arms and caps may have changed since
        fields = self._fields(self._known(self._client.campaign(self._campaign)), body, request, failed)
        return self._client.decide(self._campaign, wait=self._wait, **fields)


class BudgetedStream(_Stream):
    """The chunks of an answer. Its decision is settled when they end, or when the stream is closed."""

    def __iter__(self) -> Iterator[Any]:
        return self

    def __next__(self) -> Any:
        while True:
            try:
                chunk = next(self._stream)
            except StopIteration:
                self._end()
                raise
            except Exception:
                _report(self._decision, Failure("fail", charged=True), self._price)
                raise
            if self._is_shown(chunk):
                return chunk

    def close(self) -> None:
        """Read no more of it."""
        self._stream.close()
        self._end()

    def _end(self) -> None:
        if not self._decision.resolved:
            with _logged_errors(self._decision):
                self._decision.settle(cost=self._price)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _report(decision: Decision, failure: Failure, cost: float | None = None) -> None:
    """Report a call that got no answer; ``cost`` is its price if it is charged, the hold if not given."""
    charge = decision.hold if cost is None else cost
    with _logged_errors(decision):
        if failure.report == "fail":
            decision.fail(cost=charge if failure.charged else 0.0)
        elif failure.report == "void":
            decision.void()


# --- for an event loop -----------------------------------------------------------------------------------------------


class AsyncBudgetedOpenAI(_Calls):
    """`BudgetedOpenAI` for an event loop, with an ``AsyncOpenAI`` and an `AsyncClient`."""

    def __init__(
        self, openai: Any, client: AsyncClient, campaign: str, prices: PriceTable, *, attempts: int = 3,
        wait: float = 0.0,
    ) -> None:  # fmt: skip
        super().__init__(openai, campaign, prices, attempts, wait)
        self._client = client
        self._lock = asyncio.Lock()
        self.chat = SimpleNamespace(completions=SimpleNamespace(create=self._create))

    async def reward(self, answer: str, reward: float) -> None:
        """Report the reward of an answer, by the answer's id."""
        await self._client.feedback(self._campaign, self.decision_of(answer), reward=reward)

    async def _create(self, *, request: DecisionFields | None = None, **body: Any) -> Any:
        failed: set[str] = set()
        for attempt in range(1, self._attempts + 1):
            decision = await self._decide(body, request, failed)
            try:
                answer = await self._openai.chat.completions.create(**self._body(decision.arm, body))
            except Exception as error:
                failure = failure_of(error)
                await _report_async(decision, failure)
                if attempt == self._attempts or not failure.again:
                    raise
                failed.add(decision.arm)
                continue
            if body.get("stream"):
                return AsyncBudgetedStream(self, answer, decision, body)
            self._answers.keep(answer, decision.id)
            with _logged_errors(decision):
                await decision.settle(cost=self._cost(decision.arm, answer, decision.hold))
            return answer
        raise AssertionError  # the last attempt returns or raises

    async def _decide(self, body: Mapping[str, Any], request: DecisionFields | None, failed: set[str]) -> AsyncDecision:
        async with self._lock:  # one looks, and all know
            info = self._fresh or self._known(await self._client.campaign(self._campaign))
        with suppress(BadParameter, UnknownArm):
            fields = self._fields(info, body, request, failed)
            return await self._client.decide(self._campaign, wait=self._wait, **fields)
        # arms and caps may have changed since
        fields = self._fields(self._known(await self._client.campaign(self._campaign)), body, request, failed)
        return await self._client.decide(self._campaign, wait=self._wait, **fields)


class AsyncBudgetedStream(_Stream):
    """`BudgetedStream`, awaited."""

    def __aiter__(self) -> AsyncIterator[Any]:
        return self

    async def __anext__(self) -> Any:
        while True:
            try:
                chunk = await anext(self._stream)
            except StopAsyncIteration:
                await self._end()
                raise
            except Exception:
                await _report_async(self._decision, Failure("fail", charged=True), self._price)
                raise
            if self._is_shown(chunk):
                return chunk

    async def close(self) -> None:
        """Read no more of it."""
        await self._stream.close()
        await self._end()

    async def _end(self) -> None:
        if not self._decision.resolved:
            with _logged_errors(self._decision):
                await self._decision.settle(cost=self._price)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()


async def _report_async(decision: AsyncDecision, failure: Failure, cost: float | None = None) -> None:
    charge = decision.hold if cost is None else cost
    with _logged_errors(decision):
        if failure.report == "fail":
            await decision.fail(cost=charge if failure.charged else 0.0)
        elif failure.report == "void":
            await decision.void()
