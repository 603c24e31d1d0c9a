"""The client for an event loop: the worker's part of `client.Client`, awaited."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import wraps
from types import TracebackType
from typing import Any, Concatenate, Self, Unpack

import httpx

from budgetbandits.answers import CampaignDetailAnswer, StandingAnswer
from budgetbandits.client import protocol
from budgetbandits.client.protocol import BaseDecision, Call, Context, FeedbackResult, OnError, P, R, T, on_error_of
from budgetbandits.client.retries import DEADLINE, Retry
from budgetbandits.errors import BadParameter, BudgetBanditsError
from budgetbandits.validation import DecisionFields


@dataclass
class AsyncDecision(BaseDecision):
    """A decision of an `AsyncClient`."""

    _client: AsyncClient = field(repr=False, compare=False, kw_only=True)

    async def settle(self, *, reward: float | None = None, cost: float | None = None) -> float:
        """Report the reward, the cost, or both; one now and the other later. Returns the overrun, normally 0."""
        overrun = await self._client.feedback(self.campaign, self.id, reward=reward, cost=cost)
        self.resolved = self.resolved or cost is not None
        return overrun

    async def fail(self, *, cost: float | None = None) -> float:
        """Report that there was no answer, and what it cost nevertheless. Returns the overrun, normally 0."""
        overrun = await self._client.feedback(self.campaign, self.id, cost=cost, failed=True)
        self.resolved = True
        return overrun

    async def void(self) -> None:
        """Report that the call was never made: the money is free again."""
        await self._client.void(self.campaign, self.id)
        self.resolved = True

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None
    ) -> None:
        report = self.reported_after(error)
        try:
            if report == "fail":
                await self.fail()
            elif report == "void":
                await self.void()
        except BudgetBanditsError as unreported:
            self.note(error, unreported)


class AsyncClient:
    """A connection for an event loop, with what workers need of `client.Client`."""

    def __init__(
        self, url: str, key: str, *, timeout: float = 10.0, deadline: float = DEADLINE,
        transport: httpx.AsyncBaseTransport | None = None,
    ) -> None:  # fmt: skip
        self._deadline, self._timeout = deadline, timeout
        self._http = httpx.AsyncClient(
            base_url=protocol.address(url), headers=protocol.headers(key), timeout=timeout, transport=transport
        )

    async def decide(
        self,
        campaign: str,
        *,
        key: str | None = None,
        context: Context = None,
        wait: float = 0.0,
        on_error: OnError = "leave",
        **options: Unpack[DecisionFields],
    ) -> AsyncDecision:
        """Ask which arm to pull; see `client.Client.decide`."""
        how = on_error_of(on_error)
        row = await self._do(protocol.decide(campaign, key, context, options), wait)
        return AsyncDecision(*row, on_error=how, _client=self)

    async def decide_many(
        self,
        campaign: str,
        count: int,
        *,
        key: str | None = None,
        context: Context = None,
        wait: float = 0.0,
        on_error: OnError = "leave",
        **options: Unpack[DecisionFields],
    ) -> list[AsyncDecision]:
        """Make ``count`` decisions, all of them or none; see `client.Client.decide`."""
        how = on_error_of(on_error)
        rows = await self._do(protocol.decide_many(campaign, count, key, context, options), wait)
        return [AsyncDecision(*row, on_error=how, _client=self) for row in rows]

    def decides(
        self, campaign: str, *, wait: float = 0.0, on_error: OnError = "leave", **options: Unpack[DecisionFields]
    ) -> Callable[[Callable[Concatenate[AsyncDecision, P], Awaitable[R]]], Callable[P, Awaitable[R]]]:
        """Decorate an async function whose first parameter is a decision; see `client.Client.decides`."""

        def decorate(function: Callable[Concatenate[AsyncDecision, P], Awaitable[R]]) -> Callable[P, Awaitable[R]]:
            if not inspect.iscoroutinefunction(function):
                raise BadParameter(f"{getattr(function, '__name__', function)} is not async; decorate it by a Client")

            @wraps(function)
            async def call(*args: P.args, **kwargs: P.kwargs) -> R:
                async with await self.decide(campaign, wait=wait, on_error=on_error, **options) as decision:
                    return await function(decision, *args, **kwargs)

            return call

        on_error_of(on_error)
        return decorate

    async def feedback(
        self,
        campaign: str,
        decision: str,
        *,
        reward: float | None = None,
        cost: float | None = None,
        failed: bool = False,
    ) -> float:
        """Report the reward of a decision, its cost, or both; see `client.Client.feedback`."""
        return await self._do(protocol.feedback(campaign, decision, reward, cost, failed))

    async def feedback_many(self, campaign: str, outcomes: Sequence[Mapping[str, Any]]) -> list[FeedbackResult]:
        """Report many outcomes, each with decision, reward and cost; a refused one does not stop the others."""
        return await self._do(protocol.feedback_many(campaign, outcomes))

    async def void(self, campaign: str, decision: str) -> None:
        """Report that the call was never made: the money is free again."""
        await self._do(protocol.void(campaign, decision))

    async def campaign(self, campaign: str) -> CampaignDetailAnswer:
        """One campaign with its arms."""
        return await self._do(protocol.show(campaign))

    async def standing(self, campaign: str) -> StandingAnswer:
        """How a campaign does; see `client.Client.standing`."""
        return await self._do(protocol.standing(campaign))

    async def close(self) -> None:
        """Close the connection."""
        await self._http.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def _do(self, call: Call[T], wait: float = 0.0) -> T:
        protocol.check_open(self._http)
        retry = Retry(call, self._deadline, self._timeout, wait)
        while True:
            try:
                answer = await self._http.request(**retry.request())
            except httpx.TransportError as error:
                await asyncio.sleep(retry.after_failure(error))
                continue
            pause = retry.after(answer)
            if pause is None:
                return protocol.result(call, answer)
            await asyncio.sleep(pause)
