"""Calls of language models as decisions: the largest and the actual cost of a call, the meaning of errors, retries.

This module sends nothing. Answers and errors are read by their attributes, so that any SDK that speaks OpenAI's
protocol will do.
"""

from __future__ import annotations

import json
import random
import re
import time
import weakref
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from budgetbandits.adapters.request_features import REQUEST_FEATURES, request_features
from budgetbandits.client import CampaignDetailAnswer
from budgetbandits.client.protocol import OnError, retry_after
from budgetbandits.errors import BadParameter
from budgetbandits.validation import DecisionFields, within

TOKENS = 1_000_000
"""Number of tokens that a price is for."""

MESSAGE_TOKENS, REQUEST_TOKENS, TOOLS_TOKENS = 16, 64, 1_000
"""Most tokens that a provider adds to a message, to a request, and to a request that names tools."""

CAPS_SECONDS = 60.0
"""Seconds after which the caps of a campaign's arms are read again."""

LIMITS, COUNTS = ("max_tokens", "max_completion_tokens"), ("n", "best_of")
"""Fields for the most tokens of an answer, and for the number of answers."""

SDK_OPTIONS = {"extra_headers", "extra_query", "extra_body", "timeout"}
"""Arguments of the SDK that are not fields of the request."""

NOT_IN_PROMPT = {
    *LIMITS, *COUNTS, "messages", "model", "stream", "stream_options", "temperature", "top_p", "top_k", "seed", "user",
    "metadata", "store", "frequency_penalty", "presence_penalty", "logprobs", "top_logprobs", "logit_bias",
    "parallel_tool_calls", "prompt_cache_key", "safety_identifier", "reasoning_effort", "verbosity",
}  # fmt: skip
"""Fields that add no tokens to the prompt; those of messages are counted one by one."""

MESSAGE_FIELDS = {"role", "content", "name", "tool_calls", "tool_call_id"}
"""Fields of a message whose names count in `MESSAGE_TOKENS`."""

PRICED_APART = {"audio", "prediction", "service_tier", "web_search_options"}
"""Fields of a call that costs more than its tokens at the usual price."""


@dataclass(frozen=True)
class TokenPrice:
    """The prices of a model for a million tokens, in the campaign's unit.

    input, output  prices of the prompt and of the answer
    cached_input   price of the tokens of the prompt that the provider has cached; that of input if not given
    model          the model's name as it is sent; the arm's name if not given
    """

    input: float
    output: float
    cached_input: float | None = None
    model: str | None = None

    def __post_init__(self) -> None:
        for name in ("input", "output", "cached_input"):
            if getattr(self, name) is not None:
                within(f"price of {name}", getattr(self, name), 0.0, 1e9)

    def cost(self, usage: Any) -> float | None:
        """The cost of this usage; None if it has no tokens. Tokens in the total alone, such as thoughts, are output.

        >>> TokenPrice(0.15, 0.60).cost({"prompt_tokens": 1000, "completion_tokens": 500})
        0.00045
        """
        prompt, answer = _count(_of(usage, "prompt_tokens")), _count(_of(usage, "completion_tokens"))
        if prompt is None or answer is None:
            return None
        answer = max(answer, (_count(_of(usage, "total_tokens")) or 0) - prompt)
        cached = min(_count(_of(_of(usage, "prompt_tokens_details"), "cached_tokens")) or 0, prompt)
        cached_price = self.input if self.cached_input is None else self.cached_input
        return ((prompt - cached) * self.input + cached * cached_price + answer * self.output) / TOKENS

    def most(self, body: Mapping[str, Any]) -> float | None:
        """The largest cost of a call with this body; None if nothing bounds it.

        A token has one byte or more, so a prompt has at most as many tokens as bytes. What the answer may have must be
        said: ``max_tokens`` or ``max_completion_tokens``.
        """
        prompt, answer = prompt_tokens_max(body), _answer_tokens_max(body)
        if prompt is None or answer is None:
            return None
        highest = max(self.input, self.cached_input or 0.0)
        return (prompt * highest + answer * self.output) / TOKENS


PriceTable = Mapping[str, TokenPrice | tuple[float, float]]
"""Prices by arm; a pair is the price of input and of output, for a million tokens."""


def price_table(prices: PriceTable) -> dict[str, TokenPrice]:
    """The prices by arm.

    >>> price_table({"openai/gpt-4o-mini": (0.15, 0.60)})["openai/gpt-4o-mini"].output
    0.6
    """
    if not isinstance(prices, Mapping) or not prices:
        raise BadParameter(f"prices is {prices!r:.60}; map each arm to TokenPrice(input, output) for a million tokens")
    table = {}
    for arm, price in prices.items():
        pair = isinstance(price, Sequence) and not isinstance(price, str) and len(price) == 2
        if not isinstance(price, TokenPrice) and not pair:
            raise BadParameter(f"the price of {arm!r:.60} is {price!r:.60}; give TokenPrice(input, output)")
        table[arm] = price if isinstance(price, TokenPrice) else TokenPrice(*price)
    return table


# --- what is held ----------------------------------------------------------------------------------------------------


def prompt_tokens_max(body: Mapping[str, Any]) -> int | None:
    """The most tokens that the prompt of a request can have; None if it has parts other than text, such as pictures.

    Whatever is sent counts, ``extra_body`` too, except settings that are known to be no part of the prompt.

    >>> prompt_tokens_max({"messages": [{"role": "user", "content": "Grüße"}]})
    91
    """
    sent = _as_sent(body)
    if any(sent.get(name) is not None for name in PRICED_APART):
        return None
    bound, messages = REQUEST_TOKENS, sent.get("messages") or ()
    if not isinstance(messages, list | tuple):  # nor these
        return None
    for message in messages:
        fields = message if isinstance(message, Mapping) else _plain(message)
        content = fields.get("content")
        if content is not None and not isinstance(content, str | list | tuple):  # an iterator would be used up here
            return None
        parts = () if content is None or isinstance(content, str) else content
        if any(_of(part, "type") not in ("text", "refusal") for part in parts) or fields.get("audio") is not None:
            return None
        bound += MESSAGE_TOKENS + sum(map(_bytes, fields.values())) + sum(map(len, fields.keys() - MESSAGE_FIELDS))
    if sent.get("tools") or sent.get("functions"):
        bound += TOOLS_TOKENS
    return bound + sum(_bytes(value) for name, value in sent.items() if name not in NOT_IN_PROMPT)


def _answer_tokens_max(body: Mapping[str, Any]) -> int | None:
    """The most tokens of all answers to a request; None unless it is given as a positive number."""
    sent = _as_sent(body)
    limits, counts = ([sent[name] for name in names if sent.get(name) is not None] for names in (LIMITS, COUNTS))
    if not limits or any(not isinstance(limit, int) or limit < 1 for limit in (*limits, *counts)):
        return None
    return int(max(limits) * max(counts, default=1))


def _as_sent(body: Mapping[str, Any]) -> dict[str, Any]:
    """The body as it is sent: fields of ``extra_body`` replace arguments of the same name."""
    return {name: value for name, value in body.items() if name not in SDK_OPTIONS} | dict(body.get("extra_body") or {})


def request_fields(
    campaign: CampaignDetailAnswer, prices: Mapping[str, TokenPrice], body: Mapping[str, Any], arms: Iterable[str],
    request: Mapping[str, Any] | None = None,
) -> DecisionFields:  # fmt: skip
    """The fields of the decision for a call: the arms that may answer, the hold of each (the largest cost of the call),
    and the fields of ``request``.

    An arm is left out if it has no price, or if the call could cost more than its cap. Where nothing bounds the cost of
    a call its arm holds the cap. Of the campaign's features those of `request_features` are filled in if the request
    does not say them.
    """
    given = dict(request or {})
    if unknown := given.keys() - {"segment", "features", "prices", "exclude", "metadata"}:
        raise BadParameter(
            f"request has {', '.join(sorted(unknown))!s:.60}; it may have segment, features, prices, exclude and "
            "metadata; name one arm by model="
        )
    wanted = set(arms) - set(given.pop("exclude", None) or ())
    holds, too_much, allowed = {}, {}, {}
    for arm in campaign.arms:
        if not arm.active or arm.name not in prices or arm.name not in wanted:
            continue
        most = prices[arm.name].most(body)
        if most is not None and most > arm.cost_cap:
            too_much[arm.name] = most
            continue
        allowed[arm.name] = arm.cost_cap
        if most:
            holds[arm.name] = most
    if not allowed and too_much:
        name, most = min(too_much.items(), key=lambda entry: entry[1])
        raise BadParameter(
            f"this call can cost {most:g} with {name!r:.60}, above its cap, and more with the others; ask for fewer "
            "tokens, or raise the cap"
        )
    if not allowed:
        raise BadParameter(f"no arm of {campaign.name!r:.60} has a price; prices has {', '.join(prices)!r:.200}")
    if measured := set(REQUEST_FEATURES).intersection(campaign.features or ()):
        values = request_features(_as_sent(body))
        given["features"] = {name: values[name] for name in measured} | dict(given.get("features") or {})
    if given.get("prices") is not None:  # estimates, which would be held instead of the cap
        given["prices"] = {arm: price for arm, price in given["prices"].items() if arm in allowed}
        holds = {**allowed, **holds}
    fields: DecisionFields = {**given, "arms": list(allowed)}  # type: ignore[typeddict-item]
    return {**fields, "holds": holds} if holds else fields


# --- what an error means ---------------------------------------------------------------------------------------------

NEVER_SENT = {
    "ConnectError", "ConnectTimeout", "PoolTimeout", "ProxyError", "UnsupportedProtocol", "LocalProtocolError",
}  # fmt: skip
"""Names of httpx's errors that are raised before a request is sent."""

MAYBE_SENT = {"APIConnectionError", "APITimeoutError", "Timeout", "TransportError"}
"""Names of errors after which the provider may have answered, and charged: of the OpenAI SDK, LiteLLM and httpx."""

UNREADABLE = {"JSONDecodeError", "UnicodeDecodeError", "DecodingError", "APIResponseValidationError"}
"""Names of errors of an answer that came, and was charged, but cannot be read."""

REQUEST_IS_WRONG = {400, 409, 413, 422}
"""HTTP statuses of a provider that has understood the request and refuses it."""

UNSUITED = re.compile(
    r"context.?(length|window)|too (long|large)|token count|maximum.{0,30}tokens"
    r"|(not|n't|un).?support|tool.{0,30}requires",
    re.IGNORECASE,
)
"""Messages of a provider whose model cannot answer the request because of its length or its tools."""


@dataclass(frozen=True)
class Failure:
    """The consequence of a failed call for its decision and for the next attempt.

    report     how the decision ends
    charged    whether its hold is booked, because the provider may have charged for the call
    again      whether the call may be repeated, by this arm too
    elsewhere  whether the call may be repeated, by other arms only
    after      seconds before the arm is asked again, if the provider has named them
    """

    report: OnError
    charged: bool = False
    again: bool = False
    elsewhere: bool = False
    after: float | None = None


def failure_of(error: BaseException, sent: bool = True) -> Failure:
    """The consequence of this error; ``sent`` is false if the request was certainly not sent.

    A call that was not sent costs nothing. A refused request costs nothing and says nothing of the arm. A provider that
    is busy, broken, or does not know the key or the model has failed at no cost. If the answer was lost or cannot be
    read, it may have been charged: the hold is. Anything else is no error of a call, and the hold stays until it
    expires.
    """
    if not sent:
        return Failure("void")
    causes = _causes(error)
    names = {kind.__name__ for cause in causes for kind in type(cause).__mro__}
    if names & NEVER_SENT or any("not JSON serializable" in str(cause) for cause in causes):
        return Failure("fail", again=True)
    if names & (MAYBE_SENT | UNREADABLE):
        return Failure("fail", charged=True, again=True)
    refusal = next((cause for cause in causes if _is_by_provider(cause, causes[-1])), None)
    if refusal is None:
        made_up = isinstance(getattr(error, "status_code", None), int)
        return Failure("fail", charged=True, again=True) if made_up else Failure("leave")
    status = refusal.status_code  # type: ignore[attr-defined]
    if status in REQUEST_IS_WRONG:
        return Failure("void", elsewhere=status == 413 or UNSUITED.search(str(error)) is not None)
    response = getattr(refusal, "response", None)
    return Failure("fail", again=True, after=None if response is None else retry_after(response))


_JUDGED: weakref.WeakSet[BaseException] = weakref.WeakSet()
"""Errors that were judged before; as the cause of another error, such an error is that of an earlier attempt."""


def _causes(error: BaseException) -> list[BaseException]:
    """An error and its causes. The context of an error of the SDK itself may be an earlier attempt."""
    causes, cause = [error], _cause(error)
    while cause is not None and cause not in causes and cause not in _JUDGED:
        causes.append(cause)
        cause = _cause(cause)
    with suppress(TypeError):  # one of Python's own
        _JUDGED.add(error)
    return causes


def _cause(error: BaseException) -> BaseException | None:
    is_last = type(error).__module__.partition(".")[0] in ("openai", "httpx", "json")
    return error.__cause__ or (None if is_last else error.__context__)


def _is_by_provider(error: BaseException, last: BaseException) -> bool:
    """Whether the provider has sent the status of this error. LiteLLM gives every error a status, such as 500."""
    if not isinstance(getattr(error, "status_code", None), int):
        return False
    package, _, module = type(error).__module__.partition(".")
    return package != "litellm" or (error is last and module != "exceptions")


# --- when it is asked again ------------------------------------------------------------------------------------------

PAUSE_MIN, PAUSE_MAX = 0.5, 8.0
"""Shortest and longest pause before an arm that failed is asked again. It doubles each time and is shortened at
random."""

PATIENCE = 60.0
"""Longest pause for a busy provider; a call that would wait longer ends with its error."""


class Attempts:
    """The attempts at one call: the arms that may answer next, and the pause before.

    Another arm answers at once if there is one. An arm that has failed is asked again only if no other can answer, and
    not before the time that its provider has named (Retry-After), to whichever call. One that has refused the call is
    not asked again. A new call waits for no arm beyond `PATIENCE`: its provider answers that it is busy.

    most     attempts in all
    resting  when arms may be asked again that have named a time; all calls of a process share it
    able     the arms that can answer as far as money and caps go, set before each attempt
    """

    def __init__(self, most: int, resting: dict[str, float], *, clock: Callable[[], float] = time.monotonic) -> None:
        self._left, self._resting, self._clock = most, resting, clock
        self._refused: set[str] = set()
        self._ready: dict[str, float] = {}
        self._failures = 0
        self.able: Sequence[str] = ()

    def again(self, arm: str, failure: Failure) -> bool:
        """Note a failed attempt; True if there is to be another."""
        self._left -= 1
        self._failures += 1
        pause = min(PAUSE_MIN * 2.0 ** (self._failures - 1), PAUSE_MAX) * (0.5 + random.random() / 2)
        self._ready[arm] = self._clock() + (pause if failure.after is None else failure.after)
        if failure.after is not None:
            self._resting[arm] = self._ready[arm]
        if failure.elsewhere:
            self._refused.add(arm)
        is_repeated = (failure.again or failure.elsewhere) and self._left > 0 and bool(self._open)
        return is_repeated and min(self._ready_times.values()) - self._clock() <= PATIENCE

    def turn(self) -> list[str]:
        """The arms that may answer the next attempt, after `pause`."""
        times = self._ready_times
        soonest = min(times.values(), default=0.0)
        return [arm for arm, ready in times.items() if ready <= soonest]

    @property
    def pause(self) -> float:
        """Seconds to wait before the next attempt."""
        pause = min(self._ready_times.values(), default=0.0) - self._clock()
        return max(pause, 0.0) if pause <= PATIENCE else 0.0

    @property
    def _ready_times(self) -> dict[str, float]:
        """The time from which each arm may be asked."""
        now = self._clock()
        return {arm: max(self._ready.get(arm, now), self._resting.get(arm, now), now) for arm in self._open}

    @property
    def _open(self) -> list[str]:
        return [arm for arm in self.able if arm not in self._refused]


# --- answers ---------------------------------------------------------------------------------------------------------


class StreamUsage:
    """The usage of a streamed answer: ``final`` once all of its ``answers`` have ended, None before.

    Some providers send a usage with each chunk, of what has come until then. And a stream that breaks off looks like
    one that ends, but for the reason why it finished.
    """

    def __init__(self, answers: Any = 1) -> None:
        self._answers = answers if isinstance(answers, int) else 1
        self._finished: set[Any] = set()
        self.final: Any = None

    def add(self, chunk: Any) -> None:
        """Note a chunk."""
        choices = _of(chunk, "choices") or ()
        self._finished |= {_of(choice, "index") for choice in choices if _of(choice, "finish_reason") is not None}
        usage = _of(chunk, "usage")
        if usage is not None and len(self._finished) >= self._answers:
            self.final = usage


def decision_of(answer: Any) -> str:
    """The id of the decision that an answer or a stream came from, or an id itself.

    Answers are known by their decisions: the ids of providers are not always different.
    """
    decision = answer if isinstance(answer, str) else _of(answer, "decision")
    if not isinstance(decision, str):
        raise BadParameter(f"{answer!r:.60} has no decision; pass what create returned, or a decision's id")
    return decision


def _of(value: Any, name: str) -> Any:
    """An entry of a dictionary, or an attribute."""
    return value.get(name) if isinstance(value, Mapping) else getattr(value, name, None)


def _plain(value: Any) -> Any:
    """An object of the SDK as a dictionary; any other object by its ``repr``."""
    return value.model_dump() if hasattr(value, "model_dump") else {"": repr(value)}


def _bytes(value: Any) -> int:
    if value is None:
        return 0
    return len((value if isinstance(value, str) else json.dumps(value, default=_plain, ensure_ascii=False)).encode())


def _count(value: Any) -> int | None:
    return value if isinstance(value, int) and value >= 0 else None
