"""Calls of language models as decisions: what a call can cost, what it did cost, and what an error means.

Nothing here sends anything. Answers and errors are read by their attributes, so that any SDK that speaks OpenAI's
protocol will do.
"""

from __future__ import annotations

import json
import threading
from collections import OrderedDict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from budgetbandits.client import CampaignInfo
from budgetbandits.client.protocol import OnError
from budgetbandits.errors import BadParameter, NotFound
from budgetbandits.validation import DecisionFields, within

TOKENS = 1_000_000
"""Prices are for this many tokens."""

MESSAGE_TOKENS, REQUEST_TOKENS, TOOLS_TOKENS = 16, 64, 1_000
"""The most tokens that a provider adds to a message, to a request, and to one that names tools."""

ANSWERS_KEPT = 100_000
"""Answers whose decision a process remembers."""

CAPS_SECONDS = 60.0
"""Seconds after which the caps of a campaign's arms are read again."""


@dataclass(frozen=True)
class TokenPrice:
    """What a model costs for a million tokens, in the campaign's unit.

    input, output  of the prompt and of the answer
    cached_input   of those tokens of the prompt that the provider has cached; the price of input if not given
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
        """What this usage costs; None if it does not say.

        >>> TokenPrice(0.15, 0.60).cost({"prompt_tokens": 1000, "completion_tokens": 500})
        0.00045
        """
        prompt, answer = _of(usage, "prompt_tokens"), _of(usage, "completion_tokens")
        if not isinstance(prompt, int) or not isinstance(answer, int):
            return None
        cached = _of(_of(usage, "prompt_tokens_details"), "cached_tokens") or 0
        cached_price = self.input if self.cached_input is None else self.cached_input
        return ((prompt - cached) * self.input + cached * cached_price + answer * self.output) / TOKENS

    def most(self, body: Mapping[str, Any]) -> float | None:
        """The most that a call with this body can cost; None if nothing bounds it.

        A token has one byte or more, so a prompt has at most as many tokens as bytes. What the answer may have must be
        said: ``max_tokens`` or ``max_completion_tokens``.
        """
        prompt, answer = prompt_tokens_max(body), body.get("max_completion_tokens") or body.get("max_tokens")
        if prompt is None or not isinstance(answer, int):
            return None
        highest = max(self.input, self.cached_input or 0.0)
        return (prompt * highest + answer * (body.get("n") or 1) * self.output) / TOKENS


PriceTable = Mapping[str, TokenPrice | tuple[float, float]]
"""By the names of arms; a pair is the price of input and of output, for a million tokens."""


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


def prompt_tokens_max(body: Mapping[str, Any]) -> int | None:
    """The most tokens that the prompt of a request can have; None if it has parts that are no text, such as pictures.

    >>> prompt_tokens_max({"messages": [{"role": "user", "content": "Grüße"}]})
    91
    """
    bound = REQUEST_TOKENS
    for message in body.get("messages") or ():
        content = _of(message, "content")
        parts = content if isinstance(content, list) else ()
        if any(_of(part, "type") not in ("text", "refusal") for part in parts):
            return None
        bound += MESSAGE_TOKENS + _bytes(content if isinstance(content, str) else list(parts))
        bound += sum(_bytes(_of(message, name)) for name in ("role", "name", "tool_calls", "tool_call_id"))
    if body.get("tools") or body.get("functions"):
        bound += TOOLS_TOKENS
    return bound + sum(_bytes(body.get(name)) for name in ("tools", "functions", "response_format"))


def request_fields(
    campaign: CampaignInfo, prices: Mapping[str, TokenPrice], body: Mapping[str, Any], arms: Iterable[str]
) -> DecisionFields:
    """The arms that may answer this call, and what each holds: the most that it can cost.

    An arm is left out if it has no price, or if the call could cost more than its cap. Where nothing bounds the cost of
    a call its arm holds the cap.
    """
    wanted, holds, too_much = set(arms), {}, {}
    allowed = []
    for arm in campaign.arms:
        if not arm.active or arm.name not in prices or arm.name not in wanted:
            continue
        most = prices[arm.name].most(body)
        if most is not None and most > arm.cost_cap:
            too_much[arm.name] = most
            continue
        allowed.append(arm.name)
        if most:
            holds[arm.name] = most
    if not allowed and too_much:
        name, most = min(too_much.items(), key=lambda each: each[1])
        raise BadParameter(
            f"this call can cost {most:g} with {name!r:.60}, above its cap, and more with the others; ask for fewer "
            "tokens, or raise the cap"
        )
    if not allowed:
        raise BadParameter(f"no arm of {campaign.name!r:.60} has a price; prices has {', '.join(prices)!r:.200}")
    return {"arms": allowed, "holds": holds} if holds else {"arms": allowed}


# --- errors ----------------------------------------------------------------------------------------------------------

NEVER_SENT = {"ConnectError", "ConnectTimeout", "PoolTimeout"}
"""Errors of httpx before a request is sent."""

MAYBE_SENT = {"APIConnectionError", "APITimeoutError", "Timeout", "TransportError"}
"""Errors after which nobody knows whether the provider has answered, and charged: of the OpenAI SDK, LiteLLM, httpx."""

REQUEST_IS_WRONG = {400, 409, 413, 422}
"""Statuses of a provider that has understood the request and does not take it: any other arm would not either."""


@dataclass(frozen=True)
class Failure:
    """What an error of a call means: how its decision ends, whether its hold is charged, and whether to try again."""

    report: OnError
    charged: bool = False
    again: bool = False


def failure_of(error: BaseException) -> Failure:
    """What this error means for the decision.

    A refused request costs nothing and says nothing of the arm. A provider that is busy, broken, or does not know the
    key or the model has failed at no cost. If the answer was lost, it may have been charged: the hold is. Anything else
    is no error of a call, and the hold stays until it expires.
    """
    causes, cause = [error], _cause(error)
    while cause is not None and cause not in causes:
        causes.append(cause)
        cause = _cause(cause)
    names = {kind.__name__ for each in causes for kind in type(each).__mro__}
    if names & NEVER_SENT:
        return Failure("fail", again=True)
    if names & MAYBE_SENT:
        return Failure("fail", charged=True, again=True)
    status = getattr(error, "status_code", None)
    if not isinstance(status, int):
        return Failure("leave")
    return Failure("void") if status in REQUEST_IS_WRONG else Failure("fail", again=True)


def _cause(error: BaseException) -> BaseException | None:
    """What led to an error. A context of the SDK's own error is not looked at: it may be that of an earlier attempt."""
    is_last = type(error).__module__.partition(".")[0] in ("openai", "httpx")
    return error.__cause__ or (None if is_last else error.__context__)


# --- answers ---------------------------------------------------------------------------------------------------------


class AnswerIds:
    """Which decision each answer came from: the latest `ANSWERS_KEPT` of this process."""

    def __init__(self) -> None:
        self._decisions: OrderedDict[str, str] = OrderedDict()
        self._lock = threading.Lock()

    def keep(self, answer: Any, decision: str) -> None:
        id = _of(answer, "id")
        if not isinstance(id, str):
            return
        with self._lock:
            self._decisions[id] = decision
            if len(self._decisions) > ANSWERS_KEPT:
                self._decisions.popitem(last=False)

    def decision(self, answer: str) -> str:
        """The decision of an answer."""
        found = self._decisions.get(answer)
        if found is None:
            raise NotFound(
                f"no answer {answer!r:.60} among the latest {ANSWERS_KEPT:,} of this process; keep the decision's id "
                "with the answer, and report its reward by that"
            )
        return found


def _of(value: Any, name: str) -> Any:
    """An entry of a dictionary, or an attribute."""
    return value.get(name) if isinstance(value, Mapping) else getattr(value, name, None)


def _bytes(value: Any) -> int:
    if value is None:
        return 0
    return len((value if isinstance(value, str) else json.dumps(value, default=repr, ensure_ascii=False)).encode())
