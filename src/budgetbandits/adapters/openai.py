"""The OpenAI SDK on a budget: ``chat.completions.create`` decides which model answers, calls it and settles its cost.

    models = BudgetedOpenAI(OpenAI(), Client(url, key), "models", {"gpt-4o-mini": (0.15, 0.60), "gpt-4o": (2.5, 10.0)})
    answer = models.chat.completions.create(messages=messages, max_tokens=300)  # the campaign chooses the model
    models.reward(answer, 1.0)  # whenever it is known; or by answer.decision, from any process

The decision holds the most that the call can cost, by its bytes, ``max_tokens`` and the prices, and is settled with the
price of its usage. Without ``max_tokens``, or with pictures, it holds the arm's cap. `calls.failure_of` says what an
error means, and `calls.Attempts` who is asked next, up to ``attempts`` times; the SDK's own retries are off, since
nobody would pay for them. A stream pays its usage if it was read to its end, and else its hold; one that the program
drops is charged as soon as it is collected.

Any client with OpenAI's interface and errors will do. The key needs the scopes decide, feedback and read.
"""

from __future__ import annotations

import asyncio
import logging
import queue
import threading
import time
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from types import SimpleNamespace
from typing import Any, Self

from budgetbandits.adapters.calls import (
    CAPS_SECONDS,
    Attempts,
    Failure,
    PriceTable,
    StreamUsage,
    decision_of,
    failure_of,
    price_table,
    request_fields,
)
from budgetbandits.client import AsyncClient, AsyncDecision, CampaignDetailAnswer, Client, Decision
from budgetbandits.errors import BadParameter, BudgetBanditsError, UnknownArm
from budgetbandits.validation import DecisionFields, integer

log = logging.getLogger("budgetbandits")


class _Calls:
    """The common part of both clients: prices, caps, and the bodies that are sent."""

    def __init__(self, openai: Any, campaign: str, prices: PriceTable, attempts: int, wait: float) -> None:
        self._openai = openai.with_options(max_retries=0) if hasattr(openai, "with_options") else openai
        self._campaign = campaign
        self._prices = price_table(prices)
        self._most_attempts = integer("attempts", attempts, 1)
        self._wait = wait
        self._resting: dict[str, float] = {}
        self._is_watched = _watch(self._openai)
        self._info: CampaignDetailAnswer | None = None
        self._info_until = 0.0

    def _attempts(self) -> Attempts:
        return Attempts(self._most_attempts, self._resting)

    def _known(self, info: CampaignDetailAnswer) -> CampaignDetailAnswer:
        self._info, self._info_until = info, time.monotonic() + CAPS_SECONDS
        return info

    @property
    def _fresh(self) -> CampaignDetailAnswer | None:
        return self._info if time.monotonic() < self._info_until else None

    def _find_able(
        self, info: CampaignDetailAnswer, body: Mapping[str, Any], request: DecisionFields | None, attempts: Attempts
    ) -> None:
        """Set the arms that can answer, for the attempts at a call."""
        if (body.get("extra_body") or {}).get("model") is not None:
            raise BadParameter("extra_body has a model, which the campaign chooses; name the only arm by model=")
        if body.get("model") and body["model"] not in self._prices:
            raise BadParameter(f"model {body['model']!r:.60} has no price; prices has {', '.join(self._prices)!r:.200}")
        arms = [body["model"]] if body.get("model") else list(self._prices)
        attempts.able = request_fields(info, self._prices, body, arms, request)["arms"]  # type: ignore[assignment]

    def _fields(
        self, info: CampaignDetailAnswer, body: Mapping[str, Any], request: DecisionFields | None, attempts: Attempts
    ) -> DecisionFields:
        """The request of the next decision."""
        return request_fields(info, self._prices, body, attempts.turn(), request)

    def _body(self, arm: str, body: Mapping[str, Any]) -> dict[str, Any]:
        sent = {**body, "model": self._prices[arm].model or arm}
        if body.get("stream"):
            sent["stream_options"] = {**(body.get("stream_options") or {}), "include_usage": True}
        return sent

    def _cost(self, arm: str, usage: Any, hold: float) -> float:
        """The price of an answer with this usage; the hold if the usage has no tokens."""
        cost = self._prices[arm].cost(usage)
        return hold if cost is None else cost

    @contextmanager
    def _noted(self) -> Iterator[list[bool]]:
        """A list that is empty as long as nothing was certainly sent."""
        sent = [] if self._is_watched else [True]
        token = _SENT.set(sent)
        try:
            yield sent
        finally:
            _SENT.reset(token)


_SENT: ContextVar[list[bool]] = ContextVar("sent")


def _note_sent(_request: Any) -> None:
    _SENT.get([]).append(True)


async def _note_sent_async(request: Any) -> None:
    _note_sent(request)


def _watch(openai: Any) -> bool:
    """Make the SDK's connection note what it sends; False if it cannot."""
    http = getattr(openai, "_client", None)
    hooks = getattr(http, "event_hooks", None)
    if not isinstance(hooks, dict) or not isinstance(hooks.get("request"), list):
        return False
    note = _note_sent_async if hasattr(http, "aclose") else _note_sent
    if note not in hooks["request"]:
        hooks["request"].append(note)
    return True


@contextmanager
def _logged_errors(decision: Decision | AsyncDecision) -> Iterator[None]:
    """Log errors of the service, so that a paid answer is not lost because the service cannot be reached."""
    try:
        yield
    except BudgetBanditsError as error:
        log.warning("decision %s was not settled, so its hold is charged when it expires: %s", decision.id, error)


def _with_decision(answer: Any, decision: Decision | AsyncDecision) -> Any:
    """The answer with its decision as an attribute; an answer without attributes, such as a text, is unchanged."""
    with suppress(AttributeError, TypeError, ValueError):
        answer.decision = decision.id
    return answer


class _Stream:
    """The common part of both streams: the usage in the last chunk, which the caller may not have requested."""

    def __init__(self, calls: _Calls, stream: Any, decision: Any, body: Mapping[str, Any]) -> None:
        self._calls, self._stream, self._decision = calls, stream, decision
        self._shows_usage = bool((body.get("stream_options") or {}).get("include_usage"))
        self._usage = StreamUsage((body.get("extra_body") or {}).get("n") or body.get("n") or 1)
        self.decision: str = decision.id

    def _is_shown(self, chunk: Any) -> bool:
        """Note a chunk; True if the caller is to see it."""
        self._usage.add(chunk)
        return self._shows_usage or getattr(chunk, "usage", None) is None or bool(chunk.choices)

    @property
    def _price(self) -> float:
        """The price of the whole answer; the hold if the stream has not ended, since providers charge its part."""
        return self._calls._cost(self._decision.arm, self._usage.final, self._decision.hold)


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

    def reward(self, answer: Any, reward: float) -> None:
        """Report the reward of an answer or a stream, or of a decision by its id."""
        self._client.feedback(self._campaign, decision_of(answer), reward=reward)

    def _create(self, *, request: DecisionFields | None = None, **body: Any) -> Any:
        """Replace ``chat.completions.create``: ``model`` names the only arm that may answer, ``request`` has further
        fields of the decision."""
        attempts = self._attempts()
        while True:
            decision = self._decide(body, request, attempts)
            with self._noted() as sent:
                try:
                    answer = self._openai.chat.completions.create(**self._body(decision.arm, body))
                except Exception as error:
                    failure = failure_of(error, bool(sent))
                    _report(decision, failure)
                    if not attempts.again(decision.arm, failure):
                        raise
                    continue
            if body.get("stream"):
                return BudgetedStream(self, answer, decision, body)
            with _logged_errors(decision):
                decision.settle(cost=self._cost(decision.arm, getattr(answer, "usage", None), decision.hold))
            return _with_decision(answer, decision)

    def _decide(self, body: Mapping[str, Any], request: DecisionFields | None, attempts: Attempts) -> Decision:
        with self._lock:  # one looks, and all know
            info = self._fresh or self._known(self._client.campaign(self._campaign))
        with suppress(BadParameter, UnknownArm):
            return self._ask(info, body, request, attempts)
        # arms and caps may have changed since
        return self._ask(self._known(self._client.campaign(self._campaign)), body, request, attempts)

    def _ask(
        self, info: CampaignDetailAnswer, body: Mapping[str, Any], request: DecisionFields | None, attempts: Attempts
    ) -> Decision:
        self._find_able(info, body, request, attempts)
        time.sleep(attempts.pause)
        fields = self._fields(info, body, request, attempts)
        return self._client.decide(self._campaign, wait=self._wait, **fields)


class BudgetedStream(_Stream):
    """The chunks of an answer, whose decision is settled when they end, or when the stream is closed or dropped."""

    def __init__(self, calls: _Calls, stream: Any, decision: Any, body: Mapping[str, Any]) -> None:
        super().__init__(calls, stream, decision, body)
        _collector.start()

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

    def __del__(self) -> None:
        if not self._decision.resolved:
            _collector.streams.put((self._stream, self._decision, self._price))


class _Collector:
    """A thread that settles streams that programs have dropped: a destructor must not wait for an answer."""

    def __init__(self) -> None:
        self.streams: queue.SimpleQueue[tuple[Any, Decision, float]] = queue.SimpleQueue()
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        """Run, in this process too if it was forked."""
        with self._lock:
            if self._thread is None or not self._thread.is_alive():
                self._thread = threading.Thread(target=self._run, name="dropped-streams", daemon=True)
                self._thread.start()

    def _run(self) -> None:
        while True:
            stream, decision, price = self.streams.get()
            with suppress(Exception):
                stream.close()
            with _logged_errors(decision):
                decision.settle(cost=price)
            del stream, decision


_collector = _Collector()


def _report(decision: Decision, failure: Failure, cost: float | None = None) -> None:
    """Report a call without an answer; ``cost`` is its price if it is charged, by default the hold."""
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

    async def reward(self, answer: Any, reward: float) -> None:
        """Report the reward of an answer or a stream, or of a decision by its id."""
        await self._client.feedback(self._campaign, decision_of(answer), reward=reward)

    async def _create(self, *, request: DecisionFields | None = None, **body: Any) -> Any:
        attempts = self._attempts()
        while True:
            decision = await self._decide(body, request, attempts)
            with self._noted() as sent:
                try:
                    answer = await self._openai.chat.completions.create(**self._body(decision.arm, body))
                except Exception as error:
                    failure = failure_of(error, bool(sent))
                    await _report_async(decision, failure)
                    if not attempts.again(decision.arm, failure):
                        raise
                    continue
            if body.get("stream"):
                return AsyncBudgetedStream(self, answer, decision, body)
            with _logged_errors(decision):
                await decision.settle(cost=self._cost(decision.arm, getattr(answer, "usage", None), decision.hold))
            return _with_decision(answer, decision)

    async def _decide(
        self, body: Mapping[str, Any], request: DecisionFields | None, attempts: Attempts
    ) -> AsyncDecision:
        async with self._lock:  # one looks, and all know
            info = self._fresh or self._known(await self._client.campaign(self._campaign))
        with suppress(BadParameter, UnknownArm):
            return await self._ask(info, body, request, attempts)
        # arms and caps may have changed since
        return await self._ask(self._known(await self._client.campaign(self._campaign)), body, request, attempts)

    async def _ask(
        self, info: CampaignDetailAnswer, body: Mapping[str, Any], request: DecisionFields | None, attempts: Attempts
    ) -> AsyncDecision:
        self._find_able(info, body, request, attempts)
        await asyncio.sleep(attempts.pause)
        fields = self._fields(info, body, request, attempts)
        return await self._client.decide(self._campaign, wait=self._wait, **fields)


class AsyncBudgetedStream(_Stream):
    """`BudgetedStream` for an event loop."""

    def __init__(self, calls: _Calls, stream: Any, decision: Any, body: Mapping[str, Any]) -> None:
        super().__init__(calls, stream, decision, body)
        self._loop = asyncio.get_running_loop()

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

    def __del__(self) -> None:
        if not self._decision.resolved:
            with suppress(RuntimeError):  # the loop is closed: the hold expires
                self._loop.call_soon_threadsafe(_collect, self._stream, self._decision, self._price)


_TASKS: set[asyncio.Task[None]] = set()


def _collect(stream: Any, decision: AsyncDecision, price: float) -> None:
    """Settle a stream that the program has dropped, on its event loop."""

    async def settle() -> None:
        with suppress(Exception):
            await stream.close()
        with _logged_errors(decision):
            await decision.settle(cost=price)

    task = asyncio.ensure_future(settle())
    _TASKS.add(task)
    task.add_done_callback(_TASKS.discard)


async def _report_async(decision: AsyncDecision, failure: Failure, cost: float | None = None) -> None:
    charge = decision.hold if cost is None else cost
    with _logged_errors(decision):
        if failure.report == "fail":
            await decision.fail(cost=charge if failure.charged else 0.0)
        elif failure.report == "void":
            await decision.void()
