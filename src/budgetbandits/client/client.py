"""The client that waits for each answer.

An answer that is lost on the way is asked for again under the same idempotency key, so nothing is decided, booked or
changed twice. A block that is left by an exception does not void its decision, since the money may be spent: the hold
stays and expires, charged, unless the program calls ``d.void()``.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any, Self
from urllib.parse import quote

from budgetbandits.client import protocol
from budgetbandits.client.http_library import httpx
from budgetbandits.client.models import CampaignInfo
from budgetbandits.client.protocol import BaseDecision, Call, Context, FeedbackResult, T
from budgetbandits.client.retries import DEADLINE, Retry
from budgetbandits.errors import ServiceUnreachable


@dataclass
class Decision(BaseDecision):
    """A decision of a `Client`; used in a ``with`` block it reminds you to settle."""

    _client: Client = field(repr=False, compare=False, kw_only=True)

    def settle(self, *, reward: float | None = None, cost: float | None = None) -> float:
        """What it brought, what it cost, or both; one now and the other later. Gives the overrun, 0 if all is well."""
        overrun = self._client.feedback(self.campaign, self.id, reward=reward, cost=cost)
        self.resolved = self.resolved or cost is not None
        return overrun

    def fail(self, *, cost: float | None = None) -> float:
        """There was no answer; ``cost`` is what it cost all the same. Gives the overrun, 0 if all is well."""
        overrun = self._client.feedback(self.campaign, self.id, cost=cost, failed=True)
        self.resolved = True
        return overrun

    def void(self) -> None:
        """The call was never made: the money is free again."""
        self._client.void(self.campaign, self.id)
        self.resolved = True

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        self.leave(kind)


class Client:
    """A connection to the service; keep one and share it between threads.

    A call is sent again until ``deadline`` seconds are over; a single try may take ``timeout``.
    """

    def __init__(
        self, url: str, key: str, *, timeout: float = 10.0, deadline: float = DEADLINE,
        transport: httpx.BaseTransport | None = None,
    ) -> None:  # fmt: skip
        self._deadline, self._timeout = deadline, timeout
        self._http = httpx.Client(
            base_url=protocol.address(url), headers=protocol.headers(key), timeout=timeout, transport=transport
        )

    # --- for workers ---------------------------------------------------------------------------------------------

    def decide(
        self,
        campaign: str,
        *,
        key: str | None = None,
        context: Context = None,
        wait: float = 0.0,
        segment: str | None = None,
        arms: Iterable[str] | None = None,
        exclude: Iterable[str] | None = None,
        prices: Mapping[str, float] | None = None,
        holds: Mapping[str, float] | None = None,
    ) -> Decision:
        """Ask which arm to pull; its cost cap is held. The same ``key`` is the same decision.

        `HoldRefused` says why there is none; where asking again will help, ``wait`` seconds are spent on that first.

        ``arms`` and ``exclude`` say which arms may answer this request, ``segment`` names its kind, ``prices`` says
        what each of those arms is estimated to cost this time, and ``holds`` what to hold in place of the cap.
        """
        request = protocol.request(segment, arms, exclude, prices, holds)
        return Decision(*self._do(protocol.decide(campaign, key, context, request), wait), _client=self)

    def decide_many(
        self,
        campaign: str,
        count: int,
        *,
        key: str | None = None,
        context: Context = None,
        wait: float = 0.0,
        segment: str | None = None,
        arms: Iterable[str] | None = None,
        exclude: Iterable[str] | None = None,
        prices: Mapping[str, float] | None = None,
        holds: Mapping[str, float] | None = None,
    ) -> list[Decision]:
        """As many decisions as ``count`` says, all of them or none; see `decide`."""
        request = protocol.request(segment, arms, exclude, prices, holds)
        made = self._do(protocol.decide_many(campaign, count, key, context, request), wait)
        return [Decision(*each, _client=self) for each in made]

    def feedback(
        self,
        campaign: str,
        decision: str,
        *,
        reward: float | None = None,
        cost: float | None = None,
        failed: bool = False,
    ) -> float:
        """What a decision brought, what it cost, or both. Gives the overrun: 0 if all is well.

        With ``failed`` there was no answer: what it cost, if anything, is booked, and the arm rests for a while.
        """
        return self._do(protocol.feedback(campaign, decision, reward, cost, failed))

    def feedback_many(self, campaign: str, outcomes: Sequence[Mapping[str, Any]]) -> list[FeedbackResult]:
        """Many at once, each with decision, reward and cost; one that is not taken does not stop the others."""
        return self._do(protocol.feedback_many(campaign, outcomes))

    def void(self, campaign: str, decision: str) -> None:
        """The call was never made: the money is free again."""
        self._do(protocol.void(campaign, decision))

    # --- for operators -------------------------------------------------------------------------------------------

    # What changes something takes a ``key``, of its own if you give none: the same key is the same change, made once.

    def create(
        self, name: str, budget: float, arms: Mapping[str, float], *, key: str | None = None, **settings: Any
    ) -> CampaignInfo:
        """A new campaign; ``arms`` maps each arm to the most that a pull of it can cost.

        ``settings`` are the fields of `Terms`, ``policy``, and ``cost_floor`` or ``costs`` for policies that need them.
        """
        return self._do(protocol.create(name, budget, arms, key, settings))

    def campaign(self, campaign: str) -> CampaignInfo:
        """One campaign with its arms."""
        return self._do(protocol.show(campaign))

    def campaigns(self) -> list[CampaignInfo]:
        """All of them, without their arms; asked for in pages."""
        found: list[CampaignInfo] = []
        while True:
            page = self._do(protocol.campaigns(found[-1].id if found else None))
            found += page
            if len(page) < protocol.PAGE:
                return found

    def top_up(self, campaign: str, amount: float, *, key: str | None = None) -> CampaignInfo:
        """Raise the budget."""
        return self._do(protocol.change(campaign, "top-up", key, {"amount": amount}))

    def pause(self, campaign: str, *, key: str | None = None) -> CampaignInfo:
        """No decisions until it is resumed; feedback goes on."""
        return self._do(protocol.change(campaign, "pause", key))

    def resume(self, campaign: str, *, key: str | None = None) -> CampaignInfo:
        """Decide again, after a pause or a freeze."""
        return self._do(protocol.change(campaign, "resume", key))

    def set_back(self, campaign: str, *, key: str | None = None) -> CampaignInfo:
        """Go on today, after a clock that was far ahead has made decisions of a day to come."""
        return self._do(protocol.change(campaign, "set-back", key))

    def close_campaign(self, campaign: str, *, key: str | None = None) -> CampaignInfo:
        """For good; what is open can still be told."""
        return self._do(protocol.change(campaign, "close", key))

    def add_arm(self, campaign: str, name: str, cost_cap: float, *, key: str | None = None) -> CampaignInfo:
        """A new arm, from the next decision on."""
        return self._do(protocol.change(campaign, "arms", key, {"name": name, "cost_cap": cost_cap}))

    def retire_arm(self, campaign: str, name: str, *, key: str | None = None) -> CampaignInfo:
        """Choose this arm no more, until it is brought back."""
        return self._do(protocol.change(campaign, f"arms/{quote(name, safe='')}/retire", key))

    def bring_back_arm(self, campaign: str, name: str, *, key: str | None = None) -> CampaignInfo:
        """Choose an arm again that was retired, with all that is known of it."""
        return self._do(protocol.change(campaign, f"arms/{quote(name, safe='')}/bring-back", key))

    def change_terms(self, campaign: str, *, key: str | None = None, **changes: Any) -> CampaignInfo:
        """Other terms from now on, such as ``daily_cap`` or ``horizon``. None takes a limit away."""
        return self._do(protocol.change(campaign, "terms", key, changes))

    def verify(self, campaign: str) -> list[str]:
        """Replay the campaign's events, however long it takes; what does not agree, in words."""
        return self._do(protocol.verify(campaign))

    def export(self, campaign: str, path: str | Path, table: str = "decisions") -> None:
        """All decisions or events as a file; the format is that of the name's ending: .csv or .parquet."""
        path = Path(path)
        partial = path.with_name(f".{path.name}.partial")
        query = {"table": table, "format": path.suffix.removeprefix(".")}
        protocol.check_open(self._http)
        try:
            patient = httpx.Timeout(self._timeout, read=None)
            path = protocol.path_of(campaign, "export")
            with self._http.stream("GET", path, params=query, timeout=patient) as answer:
                if not answer.is_success:
                    answer.read()
                    raise protocol.error_of(answer)
                with partial.open("wb") as file:
                    file.writelines(answer.iter_bytes())
            partial.replace(path)
        except httpx.TransportError as error:
            raise ServiceUnreachable(f"the export broke off: {error or type(error).__name__}; ask again") from error
        finally:
            partial.unlink(missing_ok=True)

    def close(self) -> None:
        """Close the connection."""
        self._http.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _do(self, call: Call[T], wait: float = 0.0) -> T:
        protocol.check_open(self._http)
        tries = Retry(call, self._deadline, self._timeout, wait)
        while True:
            try:
                answer = self._http.request(**tries.request())
            except httpx.TransportError as error:
                time.sleep(tries.after_failure(error))
                continue
            pause = tries.after(answer)
            if pause is None:
                return protocol.result(call, answer)
            time.sleep(pause)
