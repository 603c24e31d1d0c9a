"""The client for an event loop: the methods of `client.Client`, awaited."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import wraps
from pathlib import Path
from types import TracebackType
from typing import Any, Concatenate, Self, Unpack

import httpx

from budgetbandits.answers import (
    ArmTotalAnswer,
    CampaignAnswer,
    CampaignDetailAnswer,
    DecisionDetailAnswer,
    DecisionPageAnswer,
    EventPageAnswer,
    KeyAnswer,
    NewWebhookAnswer,
    SharedBudgetAnswer,
    SharedBudgetDetailAnswer,
    StandingAnswer,
    WebhookAnswer,
)
from budgetbandits.client import calls, protocol
from budgetbandits.client.protocol import (
    BaseDecision,
    Call,
    Context,
    FeedbackResult,
    Listed,
    OnError,
    P,
    R,
    T,
    on_error_of,
)
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
    """A connection for an event loop, with the methods of `client.Client`; keep one and share it between tasks."""

    def __init__(
        self, url: str, key: str, *, timeout: float = 10.0, deadline: float = DEADLINE,
        transport: httpx.AsyncBaseTransport | None = None,
    ) -> None:  # fmt: skip
        self._deadline, self._timeout = deadline, timeout
        self._http = httpx.AsyncClient(
            base_url=protocol.address(url), headers=protocol.headers(key), timeout=timeout, transport=transport
        )

    async def decide(
        self, campaign: str, *, key: str | None = None, context: Context = None, wait: float = 0.0,
        on_error: OnError = "leave", **options: Unpack[DecisionFields],
    ) -> AsyncDecision:  # fmt: skip
        """Ask which arm to pull; see `client.Client.decide`."""
        how = on_error_of(on_error)
        row = await self._do(calls.decide(campaign, key, context, options), wait)
        return AsyncDecision(*row, on_error=how, _client=self)

    async def decide_many(
        self, campaign: str, count: int, *, key: str | None = None, context: Context = None, wait: float = 0.0,
        on_error: OnError = "leave", **options: Unpack[DecisionFields],
    ) -> list[AsyncDecision]:  # fmt: skip
        """Make ``count`` decisions, all of them or none; see `client.Client.decide`."""
        how = on_error_of(on_error)
        rows = await self._do(calls.decide_many(campaign, count, key, context, options), wait)
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
        self, campaign: str, decision: str, *, reward: float | None = None, cost: float | None = None,
        failed: bool = False,
    ) -> float:  # fmt: skip
        """Report the reward of a decision, its cost, or both. Returns the overrun, normally 0.

        ``failed`` means that there was no answer: the cost, if any, is booked, and the arm is not asked for a while.
        """
        return await self._do(calls.feedback(campaign, decision, reward, cost, failed))

    async def feedback_many(self, campaign: str, outcomes: Sequence[Mapping[str, Any]]) -> list[FeedbackResult]:
        """Report many outcomes, each with decision, reward and cost; a refused one does not stop the others."""
        return await self._do(calls.feedback_many(campaign, outcomes))

    async def void(self, campaign: str, decision: str) -> None:
        """Report that the call was never made: the money is free again."""
        await self._do(calls.void(campaign, decision))

    # --- for operators -------------------------------------------------------------------------------------------

    # Every change takes an idempotency ``key``, a new one if none is given: the same key is the same change, made once.

    async def create(
        self, name: str, budget: float, arms: Mapping[str, float], *, key: str | None = None, **settings: Any
    ) -> CampaignDetailAnswer:
        """Create a campaign; ``arms`` maps each arm to the most that one pull of it can cost.

        ``settings`` are the fields of `Terms`, ``policy``, ``cost_floor`` or ``costs`` for policies that need them, and
        ``history``: (pulls, total reward, total cost) of arms, to learn from.
        """
        return await self._do(calls.create(name, budget, arms, key, settings))

    async def clone(
        self, campaign: str, name: str, *, budget: float | None = None, learned: bool = True, key: str | None = None
    ) -> CampaignDetailAnswer:
        """Create a campaign like this one; with ``learned``, it begins with what that has learned of each arm."""
        return await self._do(calls.clone(campaign, name, budget, learned, key))

    async def campaign(self, campaign: str) -> CampaignDetailAnswer:
        """One campaign with its arms."""
        return await self._do(calls.campaign(campaign))

    async def campaigns(self) -> list[CampaignAnswer]:
        """All campaigns, without their arms."""
        return await self._pages(calls.campaigns)

    async def totals(self, campaign: str) -> dict[str, ArmTotalAnswer]:
        """The total cost and reward of each arm that was ever chosen, by name."""
        return await self._do(calls.totals(campaign))

    async def standing(self, campaign: str) -> StandingAnswer:
        """How a campaign does: its standing and the cause, its pace, its projected end and what it earned."""
        return await self._do(calls.standing(campaign))

    async def standings(self) -> list[StandingAnswer]:
        """How all campaigns do, the oldest first."""
        return await self._pages(calls.standings)

    async def decision(self, campaign: str, decision: str) -> DecisionDetailAnswer:
        """A decision as it is now: its arm, state, hold, cost and reward."""
        return await self._do(calls.decision(campaign, decision))

    async def decisions(
        self, campaign: str, *, limit: int = 100, before: int | None = None, until: float | None = None,
        kind: str = "all", arm: str | None = None,
    ) -> DecisionPageAnswer:  # fmt: skip
        """A page of ``decisions``, the newest first, and the cursor ``before`` of the next; None after the last.

        The first page may begin with those of a time, in seconds since 1970: ``until``. ``kind`` (held, settled,
        failed, expired, voided, overrun) and ``arm`` leave out others.
        """
        return await self._do(calls.decisions(campaign, limit=limit, before=before, until=until, kind=kind, arm=arm))

    async def events(
        self, campaign: str, *, limit: int = 100, after: int = 0, since: float | None = None
    ) -> EventPageAnswer:
        """A page of ``events``, the oldest first, and the cursor ``after`` of the next, to be kept if it is empty.

        The first page may begin with those of a time, in seconds since 1970: ``since``.
        """
        return await self._do(calls.events(campaign, limit=limit, after=after, since=since))

    async def top_up(self, campaign: str, amount: float, *, key: str | None = None) -> CampaignDetailAnswer:
        """Raise the budget."""
        return await self._do(calls.change(campaign, "top-up", key, {"amount": amount}))

    async def pause(self, campaign: str, *, key: str | None = None) -> CampaignDetailAnswer:
        """Make no decisions until it is resumed; feedback is still accepted."""
        return await self._do(calls.change(campaign, "pause", key))

    async def resume(
        self, campaign: str, *, spent_since: float | None = None, key: str | None = None
    ) -> CampaignDetailAnswer:
        """Make decisions again, after a pause or a freeze; after a restore, with what was ``spent_since`` the copy."""
        return await self._do(calls.resume(campaign, spent_since, key))

    async def reset_clock(self, campaign: str, *, key: str | None = None) -> CampaignDetailAnswer:
        """Continue with today's date, after decisions that a wrong clock dated in the future."""
        return await self._do(calls.change(campaign, "reset-clock", key))

    async def close_campaign(self, campaign: str, *, key: str | None = None) -> CampaignDetailAnswer:
        """Close for good; feedback for open decisions is still accepted."""
        return await self._do(calls.change(campaign, "close", key))

    async def add_arm(
        self, campaign: str, name: str, cost_cap: float, *, key: str | None = None
    ) -> CampaignDetailAnswer:
        """Add an arm, from the next decision on."""
        return await self._do(calls.change(campaign, "arms", key, {"name": name, "cost_cap": cost_cap}))

    async def retire_arm(self, campaign: str, name: str, *, key: str | None = None) -> CampaignDetailAnswer:
        """Choose this arm no more, until it is brought back."""
        return await self._do(calls.change_arm(campaign, name, "retire", key))

    async def bring_back_arm(self, campaign: str, name: str, *, key: str | None = None) -> CampaignDetailAnswer:
        """Choose a retired arm again, with all that is known of it."""
        return await self._do(calls.change_arm(campaign, name, "bring-back", key))

    async def change_terms(self, campaign: str, *, key: str | None = None, **changes: Any) -> CampaignDetailAnswer:
        """Change terms from now on, such as ``daily_cap`` or ``horizon``; None removes a limit. Also ``budget``,
        ``caps`` by arm, ``policy`` and ``name``."""
        return await self._do(calls.change_terms(campaign, key, changes))

    async def verify(self, campaign: str) -> list[str]:
        """Replay the campaign's events, however long it takes, and list the differences from the store in words."""
        return await self._do(calls.verify(campaign))

    async def export(self, campaign: str, path: str | Path, table: str = "decisions") -> int:
        """Write all decisions or events to a file; its name ends in .csv or .parquet. Returns how many earlier ones are
        in the archive."""
        file = Path(path)
        address, patient = calls.export(campaign, file, table), httpx.Timeout(self._timeout, read=None)
        protocol.check_open(self._http)
        with protocol.export_file(file) as partial:
            async with self._http.stream("GET", address, timeout=patient) as answer:
                if not answer.is_success:
                    await answer.aread()
                    raise protocol.error_of(answer)
                async for block in answer.aiter_bytes():
                    partial.write(block)
        return protocol.archived(answer)

    async def create_key(self, *scopes: str, key: str | None = None, **terms: Any) -> str:
        """Make an API key of these scopes; it is shown this one time.

        ``terms`` are ``campaign``, ``name``, ``owner``, ``expires_at`` (seconds since 1970) and
        ``requests_per_second``. If the answer was lost, a repeated call is a `Conflict`: drop that key, make another.
        """
        return await self._do(calls.create_key(scopes, key, terms))

    async def keys(self) -> list[KeyAnswer]:
        """All API keys, by their public part."""
        return await self._do(calls.keys())

    async def drop_key(self, prefix: str) -> None:
        """Drop an API key by its public part; servers refuse it within five seconds."""
        await self._do(calls.drop_key(prefix))

    async def create_webhook(self, url: str, campaign: str | None = None) -> NewWebhookAnswer:
        """Have changes of campaigns, or of one, reported to an address; keep the ``secret``, it is shown once.

        If the answer is lost and the call repeated, there may be two: `webhooks` lists them.
        """
        return await self._do(calls.create_webhook(url, campaign))

    async def webhooks(self) -> list[WebhookAnswer]:
        """All addresses that are notified, without their secrets."""
        return await self._do(calls.webhooks())

    async def drop_webhook(self, id: str) -> None:
        """Notify an address no more."""
        await self._do(calls.drop_webhook(id))

    async def test_webhook(self, id: str) -> str | None:
        """Send a test notification to an address; why it was not accepted, or None if it was."""
        return await self._do(calls.test_webhook(id))

    async def create_shared_budget(self, name: str, budget: float, **terms: Any) -> SharedBudgetDetailAnswer:
        """Create a budget over campaigns, which join it by their term ``shared_budget``. Repeated, it changes nothing.

        ``terms`` are ``currency``, ``period``, ``period_budget``, ``unspent`` and ``time_zone``, as of campaigns.
        """
        return await self._do(calls.create_shared_budget(name, budget, terms))

    async def change_shared_budget(self, name: str, **changes: Any) -> SharedBudgetDetailAnswer:
        """Set another ``budget``, or other terms than ``currency``; None removes one."""
        return await self._do(calls.change_shared_budget(name, changes))

    async def reset_shared_clock(self, name: str) -> SharedBudgetDetailAnswer:
        """Continue in the present period after a wrong clock began a later one, whose grant is taken back."""
        return await self._do(calls.reset_shared_clock(name))

    async def shared_budget(self, name: str) -> SharedBudgetDetailAnswer:
        """One shared budget with its campaigns."""
        return await self._do(calls.shared_budget(name))

    async def shared_budgets(self) -> list[SharedBudgetAnswer]:
        """All shared budgets, without their campaigns."""
        return await self._do(calls.shared_budgets())

    async def verify_shared_budget(self, name: str) -> list[str]:
        """Replay the events of all its campaigns, and list the differences from the store in words."""
        return await self._do(calls.verify_shared_budget(name))

    async def close(self) -> None:
        """Close the connection."""
        await self._http.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def _pages(self, call: Callable[[str | None], Call[list[Listed]]]) -> list[Listed]:
        """All of a list that is sent page by page, each after the last campaign of the one before."""
        rows = page = await self._do(call(None))
        while len(page) == calls.PAGE:
            page = await self._do(call(page[-1].id))
            rows = rows + page
        return rows

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
