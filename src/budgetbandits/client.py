"""Talk to a decision service from Python. Needs httpx alone (extra ``client``).

    with Client("http://localhost:8000", key) as client:
        with client.decide("ads") as d:
            outcome = spend_money_on(d.arm)
            d.settle(reward=outcome.value, cost=outcome.price)

An answer that is lost on the way is asked for again under the same idempotency key, so nothing is decided or booked
twice. A block that is left by an exception does not void its decision, since the money may be spent: the hold stays
and expires, charged, unless the program calls ``d.void()``.
"""

from __future__ import annotations

import asyncio
import math
import random
import time
import uuid
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from types import TracebackType
from typing import Any, Generic, Self, TypeVar
from urllib.parse import quote

import httpx

from budgetbandits import errors
from budgetbandits.errors import (
    BadParameter,
    BudgetBanditsError,
    HoldRefused,
    NotAllowed,
    NotFound,
    ServiceError,
    Unreachable,
)
from budgetbandits.terms import Terms

TRIES = 6
FIRST_PAUSE, LONGEST_PAUSE = 0.1, 5.0
"""Seconds between tries, doubled each time and then shortened at random, so that many clients do not come together."""

AGAIN = {502, 503, 504}
T = TypeVar("T")


@dataclass(frozen=True)
class ArmInfo:
    name: str
    cost_cap: float
    active: bool
    pulls: int


@dataclass(frozen=True, kw_only=True)
class CampaignInfo(Terms):
    """A campaign's money, in the user's unit, and its terms."""

    id: str
    name: str
    policy: str
    status: str
    budget: float
    spent: float
    held: float
    left: float
    overrun: float
    created_at: float
    arms: tuple[ArmInfo, ...] = ()

    @classmethod
    def read(cls, values: Mapping[str, Any]) -> CampaignInfo:
        """From an answer; what a newer service says beyond this is left out."""
        arms = tuple(ArmInfo(**_known(ArmInfo, arm)) for arm in values.get("arms", ()))
        return cls(**_known(cls, {**values, "arms": arms}))


@dataclass(frozen=True)
class Told:
    """What became of one outcome in a batch: ``problem`` is None if it was taken."""

    decision: str
    overrun: float
    problem: BudgetBanditsError | None = None


@dataclass(frozen=True)
class _Call(Generic[T]):
    """A request, whether it may be sent twice, and how its answer is read."""

    method: str
    path: str
    read: Callable[[Any], T]
    body: Mapping[str, Any] | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    repeatable: bool = True


@dataclass
class _Made:
    """A decision: which arm, and until when its money is held."""

    id: str
    campaign: str
    arm: str
    hold: float
    expires_at: float
    resolved: bool = field(default=False, init=False)
    """Whether its cost has been told, or it was voided; until then its money is held."""

    def _leave(self, error: type[BaseException] | None) -> None:
        if error is None and not self.resolved:
            warnings.warn(
                f"decision {self.id} was left without settle(cost=…) or void(); its hold stays until it expires",
                RuntimeWarning, stacklevel=3,
            )  # fmt: skip


@dataclass
class Decision(_Made):
    """A decision of a `Client`; used in a ``with`` block it reminds you to settle."""

    _client: Client = field(repr=False, compare=False, kw_only=True)

    def settle(self, *, reward: float | None = None, cost: float | None = None) -> float:
        """What it brought, what it cost, or both; one now and the other later. Gives the overrun, 0 if all is well."""
        overrun = self._client.feedback(self.campaign, self.id, reward=reward, cost=cost)
        self.resolved = self.resolved or cost is not None
        return overrun

    def void(self) -> None:
        """The call was never made: the money is free again."""
        self._client.void(self.campaign, self.id)
        self.resolved = True

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        self._leave(kind)


@dataclass
class AsyncDecision(_Made):
    """A decision of an `AsyncClient`."""

    _client: AsyncClient = field(repr=False, compare=False, kw_only=True)

    async def settle(self, *, reward: float | None = None, cost: float | None = None) -> float:
        """What it brought, what it cost, or both; one now and the other later. Gives the overrun, 0 if all is well."""
        overrun = await self._client.feedback(self.campaign, self.id, reward=reward, cost=cost)
        self.resolved = self.resolved or cost is not None
        return overrun

    async def void(self) -> None:
        """The call was never made: the money is free again."""
        await self._client.void(self.campaign, self.id)
        self.resolved = True

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None
    ) -> None:
        self._leave(kind)


class Client:
    """A connection to the service; keep one and share it between threads."""

    def __init__(
        self, url: str, key: str, *, timeout: float = 10.0, transport: httpx.BaseTransport | None = None
    ) -> None:
        self._http = httpx.Client(base_url=_address(url), headers=_headers(key), timeout=timeout, transport=transport)

    # --- for workers ---------------------------------------------------------------------------------------------

    def decide(
        self, campaign: str, *, key: str | None = None, context: Mapping[str, Any] | None = None, wait: float = 0.0
    ) -> Decision:
        """Ask which arm to pull; its cost cap is held. The same ``key`` is the same decision.

        `HoldRefused` says why there is none; where asking again will help, ``wait`` seconds are spent on that first.
        """
        call = _decide(campaign, key, context)
        return Decision(*self._patiently(call, wait), _client=self)

    def decide_many(
        self,
        campaign: str,
        count: int,
        *,
        key: str | None = None,
        context: Mapping[str, Any] | None = None,
        wait: float = 0.0,
    ) -> list[Decision]:
        """So many decisions at once, all of them or none."""
        call = _decide_many(campaign, count, key, context)
        return [Decision(*each, _client=self) for each in self._patiently(call, wait)]

    def feedback(
        self, campaign: str, decision: str, *, reward: float | None = None, cost: float | None = None
    ) -> float:
        """What a decision brought, what it cost, or both. Gives the overrun: 0 if all is well."""
        return self._do(_feedback(campaign, decision, reward, cost))

    def feedback_many(self, campaign: str, outcomes: Sequence[Mapping[str, Any]]) -> list[Told]:
        """Many at once, each with decision, reward and cost; one that is not taken does not stop the others."""
        return self._do(_feedback_many(campaign, outcomes))

    def void(self, campaign: str, decision: str) -> None:
        """The call was never made: the money is free again."""
        self._do(_void(campaign, decision))

    # --- for operators -------------------------------------------------------------------------------------------

    def create(self, name: str, budget: float, arms: Mapping[str, float], **settings: Any) -> CampaignInfo:
        """A new campaign; ``arms`` maps each arm to the most that a pull of it can cost.

        ``settings`` are the fields of `Terms`, ``policy``, and ``cost_floor`` or ``costs`` for policies that need them.
        """
        body = {"name": name, "budget": budget, "arms": dict(arms), **settings}
        return self._do(_Call("POST", "/v1/campaigns", CampaignInfo.read, body, repeatable=False))

    def campaign(self, campaign: str) -> CampaignInfo:
        """One campaign with its arms."""
        return self._do(_Call("GET", _path(campaign), CampaignInfo.read))

    def campaigns(self) -> list[CampaignInfo]:
        """All of them, without their arms."""
        return self._do(_Call("GET", "/v1/campaigns", lambda rows: [CampaignInfo.read(row) for row in rows]))

    def top_up(self, campaign: str, amount: float) -> CampaignInfo:
        """Raise the budget. Not sent twice: if the answer is lost, look before you ask again."""
        return self._change(campaign, "top-up", {"amount": amount})

    def pause(self, campaign: str) -> CampaignInfo:
        """No decisions until it is resumed; feedback goes on."""
        return self._change(campaign, "pause")

    def resume(self, campaign: str) -> CampaignInfo:
        """After a pause, or after a freeze that somebody has looked into."""
        return self._change(campaign, "resume")

    def close_campaign(self, campaign: str) -> CampaignInfo:
        """For good; what is open can still be told."""
        return self._change(campaign, "close")

    def add_arm(self, campaign: str, name: str, cost_cap: float) -> CampaignInfo:
        """A new arm, from the next decision on."""
        return self._change(campaign, "arms", {"name": name, "cost_cap": cost_cap})

    def retire_arm(self, campaign: str, name: str) -> CampaignInfo:
        """Never choose this arm again."""
        return self._change(campaign, f"arms/{quote(name, safe='')}/retire")

    def verify(self, campaign: str) -> list[str]:
        """Replay the campaign's events; what does not agree, in words."""
        return self._do(_Call("GET", _path(campaign, "verify"), lambda verdict: list(verdict["differences"])))

    def export(self, campaign: str, path: str | Path, table: str = "decisions") -> None:
        """All decisions or events as a file; the format is that of the name's ending: .csv or .parquet."""
        path = Path(path)
        partial = path.with_name(f".{path.name}.partial")
        query = {"table": table, "format": path.suffix.removeprefix(".")}
        _check_open(self._http)
        try:
            with self._http.stream("GET", _path(campaign, "export"), params=query) as answer:
                if not answer.is_success:
                    answer.read()
                    raise _error(answer)
                with partial.open("wb") as file:
                    file.writelines(answer.iter_bytes())
            partial.replace(path)
        except httpx.TransportError as error:
            raise Unreachable(f"the export broke off: {error or type(error).__name__}; ask again") from error
        finally:
            partial.unlink(missing_ok=True)

    def close(self) -> None:
        """Let go of the connection."""
        self._http.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _change(self, campaign: str, what: str, body: Mapping[str, Any] | None = None) -> CampaignInfo:
        return self._do(_Call("POST", _path(campaign, what), CampaignInfo.read, body, repeatable=False))

    def _patiently(self, call: _Call[T], wait: float) -> T:
        end = time.monotonic() + wait
        while True:
            try:
                return self._do(call)
            except HoldRefused as refused:
                time.sleep(_worth_waiting(refused, end))

    def _do(self, call: _Call[T]) -> T:
        _check_open(self._http)
        for pause in _pauses(call):
            try:
                answer = self._http.request(call.method, call.path, json=call.body, headers=call.headers)
            except httpx.TransportError as error:
                _give_up(call, pause, error)
            else:
                if answer.status_code not in AGAIN or pause is None:
                    return _result(call, answer)
            time.sleep(pause or 0.0)
        raise AssertionError


class AsyncClient:
    """The same for an event loop: what workers need."""

    def __init__(
        self, url: str, key: str, *, timeout: float = 10.0, transport: httpx.AsyncBaseTransport | None = None
    ) -> None:
        self._http = httpx.AsyncClient(
            base_url=_address(url), headers=_headers(key), timeout=timeout, transport=transport
        )

    async def decide(
        self, campaign: str, *, key: str | None = None, context: Mapping[str, Any] | None = None, wait: float = 0.0
    ) -> AsyncDecision:
        """Ask which arm to pull; see `Client.decide`."""
        call = _decide(campaign, key, context)
        return AsyncDecision(*await self._patiently(call, wait), _client=self)

    async def decide_many(
        self,
        campaign: str,
        count: int,
        *,
        key: str | None = None,
        context: Mapping[str, Any] | None = None,
        wait: float = 0.0,
    ) -> list[AsyncDecision]:
        """So many decisions at once, all of them or none."""
        call = _decide_many(campaign, count, key, context)
        return [AsyncDecision(*each, _client=self) for each in await self._patiently(call, wait)]

    async def feedback(
        self, campaign: str, decision: str, *, reward: float | None = None, cost: float | None = None
    ) -> float:
        """What a decision brought, what it cost, or both. Gives the overrun: 0 if all is well."""
        return await self._do(_feedback(campaign, decision, reward, cost))

    async def feedback_many(self, campaign: str, outcomes: Sequence[Mapping[str, Any]]) -> list[Told]:
        """Many at once, each with decision, reward and cost; one that is not taken does not stop the others."""
        return await self._do(_feedback_many(campaign, outcomes))

    async def void(self, campaign: str, decision: str) -> None:
        """The call was never made: the money is free again."""
        await self._do(_void(campaign, decision))

    async def campaign(self, campaign: str) -> CampaignInfo:
        """One campaign with its arms."""
        return await self._do(_Call("GET", _path(campaign), CampaignInfo.read))

    async def close(self) -> None:
        """Let go of the connection."""
        await self._http.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def _patiently(self, call: _Call[T], wait: float) -> T:
        end = time.monotonic() + wait
        while True:
            try:
                return await self._do(call)
            except HoldRefused as refused:
                await asyncio.sleep(_worth_waiting(refused, end))

    async def _do(self, call: _Call[T]) -> T:
        _check_open(self._http)
        for pause in _pauses(call):
            try:
                answer = await self._http.request(call.method, call.path, json=call.body, headers=call.headers)
            except httpx.TransportError as error:
                _give_up(call, pause, error)
            else:
                if answer.status_code not in AGAIN or pause is None:
                    return _result(call, answer)
            await asyncio.sleep(pause or 0.0)
        raise AssertionError


# --- the calls that both clients make --------------------------------------------------------------------------------


def _decide(campaign: str, key: str | None, context: Mapping[str, Any] | None) -> _Call[tuple[Any, ...]]:
    body = {"context": _context(context)}
    return _Call("POST", _path(campaign, "decisions"), _read_decision, body, _keyed(key))


def _decide_many(
    campaign: str, count: int, key: str | None, context: Mapping[str, Any] | None
) -> _Call[list[tuple[Any, ...]]]:
    body: dict[str, Any] = {"context": _context(context), "count": count}
    return _Call(
        "POST", _path(campaign, "decisions/batch"), lambda answer: [_read_decision(d) for d in answer["decisions"]],
        body, _keyed(key),
    )  # fmt: skip


def _feedback(campaign: str, decision: str, reward: float | None, cost: float | None) -> _Call[float]:
    path = _path(campaign, f"decisions/{quote(decision, safe='')}/feedback")
    body = _finite({"reward": reward, "cost": cost})
    return _Call("POST", path, lambda answer: float(answer["overrun"]), body)


def _feedback_many(campaign: str, outcomes: Sequence[Mapping[str, Any]]) -> _Call[list[Told]]:
    body = {"outcomes": [_finite(outcome) for outcome in outcomes]}
    return _Call("POST", _path(campaign, "feedback"), lambda answer: [_read_told(t) for t in answer["results"]], body)


def _void(campaign: str, decision: str) -> _Call[None]:
    return _Call("POST", _path(campaign, f"decisions/{quote(decision, safe='')}/void"), lambda _: None)


def _path(campaign: str, *rest: str) -> str:
    return "/".join(["/v1/campaigns", quote(campaign, safe=""), *rest])


def _context(context: Mapping[str, Any] | None) -> dict[str, Any]:
    if context is not None and not isinstance(context, Mapping):
        raise BadParameter(f"context is {context!r:.60}; pass a dictionary")
    return dict(context or {})


def _address(url: str) -> str:
    if not url.startswith(("http://", "https://")):
        raise BadParameter(f"the service's address is {url!r:.60}; it begins with http:// or https://")
    return url


def _keyed(key: str | None) -> dict[str, str]:
    """A header with this key, or with one of our own."""
    key = uuid.uuid4().hex if key is None else key
    if not (0 < len(key) <= 200 and key.isascii() and key.isprintable() and key == key.strip()):
        raise BadParameter(f"key is {key!r:.60}; use 1 to 200 printable ASCII characters, no space at either end")
    return {"Idempotency-Key": key}


def _finite(values: Mapping[str, Any]) -> dict[str, Any]:
    for name, value in values.items():
        if isinstance(value, float) and not math.isfinite(value):
            raise BadParameter(f"{name} is {value}; pass a finite number")
    return dict(values)


def _known(kind: type, values: Mapping[str, Any]) -> dict[str, Any]:
    return {each.name: values[each.name] for each in fields(kind) if each.name in values}


def _headers(key: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {key}"}


def _read_decision(answer: Mapping[str, Any]) -> tuple[Any, ...]:
    return tuple(answer[name] for name in ("decision", "campaign", "arm", "hold", "expires_at"))


def _read_told(answer: Mapping[str, Any]) -> Told:
    problem = answer["problem"]
    return Told(answer["decision"], answer["overrun"], None if problem is None else _named(problem))


# --- retries and errors ----------------------------------------------------------------------------------------------


def _pauses(call: _Call[Any]) -> Iterator[float | None]:
    """How long to wait after each try; None after the last."""
    if call.repeatable:
        for number in range(TRIES - 1):
            yield min(FIRST_PAUSE * 2**number, LONGEST_PAUSE) * (0.5 + random.random() / 2)
    yield None


def _check_open(http: httpx.Client | httpx.AsyncClient) -> None:
    if http.is_closed:
        raise Unreachable("this client is closed; make a new one, or ask inside its 'with' block")


def _give_up(call: _Call[Any], pause: float | None, error: httpx.TransportError) -> None:
    """If that was the last try, or the request may have arrived and must not be sent twice."""
    if pause is not None:
        return
    sent = "" if call.repeatable else "; it may have arrived, so look before you send it again"
    raise Unreachable(f"no answer from the service: {error or type(error).__name__}{sent}") from error


def _worth_waiting(refused: HoldRefused, end: float) -> float:
    """For how long, before asking again; raises the refusal if there is no time for that, or no use."""
    if refused.retry_after is None or time.monotonic() + refused.retry_after > end:
        raise refused
    return refused.retry_after


def _result(call: _Call[T], answer: httpx.Response) -> T:
    if not answer.is_success:
        raise _error(answer)
    try:
        return call.read(answer.json())
    except (ValueError, KeyError, TypeError, AttributeError):
        raise _stranger(answer) from None


def _error(answer: httpx.Response) -> BudgetBanditsError:
    try:
        after = answer.headers.get("retry-after")
        return _named(answer.json(), None if after is None else float(after))
    except (ValueError, KeyError, TypeError, AttributeError):
        return _stranger(answer)


def _stranger(answer: httpx.Response) -> ServiceError:
    return ServiceError(f"status {answer.status_code}: {answer.text[:200]!r}; is this the address of a service?")


def _named(problem: Mapping[str, Any], retry_after: float | None = None) -> BudgetBanditsError:
    """The error that the service raised, by its name."""
    title, detail, status = problem["title"], problem["detail"], problem["status"]
    kind = getattr(errors, title, None)
    if isinstance(kind, type) and issubclass(kind, BudgetBanditsError) and kind not in (HoldRefused, NotAllowed):
        return kind(detail)
    if status in (401, 403):
        return NotAllowed(detail, known=status == 403)
    if status == 404:
        return NotFound(detail)
    if status == 422:
        return BadParameter(detail)
    if status in (402, 409):
        return HoldRefused(title, detail, retry_after)
    return ServiceError(f"{title}: {detail}")
