"""Features of a call of a language model, from its body alone: no model, no network, a fraction of a millisecond.

A campaign that names some of `REQUEST_FEATURES` as its features learns for which requests a costlier model is worth its
price. The SDK wrapper and the LiteLLM adapter fill in those that it names. Words are counted in English; what is
written in another language has its lengths, numbers and signs.

The features of texts were chosen by cross-validated ridge regressions of rewards and costs on public tables, of which
the shipped test table is none; docs/measurements/features.md has the figures.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

TEXT_MAX = 2_000
"""Characters of the last message that are looked at, half of them from each end; lengths count all of them."""

MATHEMATICS = re.compile(
    r"\b(how many|how much|percent|total|sum|average|equation|solve|calculate|probability|integral|derivative|prove"
    r"|times|twice|half)\b",
    re.IGNORECASE,
)
"""Words of arithmetic and proofs."""

WRITING = re.compile(r"\b(write|generate|create|compose|draft|translate|summari[sz]e|rewrite|list)\b", re.IGNORECASE)
"""Words that ask for a text."""

REASONING = re.compile(r"\b(why|explain|reason|because|compare|analy[sz]e)\b", re.IGNORECASE)
"""Words that ask for reasons."""

WORD, NUMBER, SENTENCE_END = re.compile(r"[^\W\d_]+"), re.compile(r"\d+"), re.compile(r"[.!?]")
CODE_SIGNS, PUNCTUATION = "{}[]();_`\\", ".,;:"


def _share(kind: Callable[[str], bool]) -> Callable[[str], float]:
    return lambda text: sum(map(kind, text)) / max(len(text), 1)


def _share_of(signs: str) -> Callable[[str], float]:
    return lambda text: sum(map(text.count, signs)) / max(len(text), 1)


def _count(pattern: re.Pattern[str]) -> Callable[[str], float]:
    return lambda text: math.log1p(len(pattern.findall(text)))


def _word_length(text: str) -> float:
    words = WORD.findall(text)
    return sum(map(len, words)) / max(len(words), 1)


TEXT_FEATURES: Mapping[str, Callable[[str], float]] = {
    "text_lines": lambda text: math.log1p(text.count("\n")),
    "text_sentences": _count(SENTENCE_END),
    "text_numbers": _count(NUMBER),
    "text_mathematics": _count(MATHEMATICS),
    "text_writing": _count(WRITING),
    "text_reasoning": _count(REASONING),
    "text_word_length": _word_length,
    "text_digits": _share(str.isdigit),
    "text_capitals": _share(str.isupper),
    "text_punctuation": _share_of(PUNCTUATION),
    "text_code": _share_of(CODE_SIGNS),
    "text_foreign": lambda text: 0.0 if text.isascii() else _share("\x7f".__lt__)(text),
}
"""Numbers from the text of the last message: logarithms of counts, shares of its characters, the mean length of a
word."""

REQUEST_FEATURES: tuple[str, ...] = (
    "text_length", *TEXT_FEATURES, "context_length", "turns", "answer_length", "has_tools", "has_pictures",
    "wants_json",
)  # fmt: skip
"""The names of all features of a request: lengths are logarithms of characters, and of tokens for what an answer may
have; turns are messages."""


def request_features(body: Mapping[str, Any]) -> dict[str, float]:
    """The features of a request to a chat model, or to one that completes a text.

    >>> features = request_features({"messages": [{"role": "user", "content": "How many primes are below 100?"}]})
    >>> {name: round(value, 2) for name, value in features.items() if value}["text_mathematics"]
    0.69
    """
    messages = body.get("messages") or body.get("input") or body.get("prompt") or ()
    turns = [messages] if isinstance(messages, str) or not isinstance(messages, Sequence) else messages
    texts = [_text_of(turn) for turn in turns]
    last = texts[-1] if texts else ""
    seen = last if len(last) <= TEXT_MAX else last[: TEXT_MAX // 2] + last[-TEXT_MAX // 2 :]
    limits = [body.get(name) for name in ("max_tokens", "max_completion_tokens", "max_output_tokens")]
    kind = body.get("response_format") or {}
    return {
        "text_length": math.log1p(len(last)),
        **{name: measure(seen) for name, measure in TEXT_FEATURES.items()},
        "context_length": math.log1p(sum(map(len, texts))),
        "turns": math.log1p(len(texts)),
        "answer_length": math.log1p(
            max((limit for limit in limits if isinstance(limit, int) and limit > 0), default=0)
        ),
        "has_tools": float(bool(body.get("tools") or body.get("functions"))),
        "has_pictures": float(any(_has_picture(turn) for turn in turns)),
        "wants_json": float(isinstance(kind, Mapping) and kind.get("type") not in (None, "text")),
    }


def _parts(turn: Any) -> Sequence[Any]:
    content = turn.get("content") if isinstance(turn, Mapping) else getattr(turn, "content", turn)
    return content if isinstance(content, list | tuple) else (content,)


def _text_of(turn: Any) -> str:
    """The text of a message, of its parts if it has several."""
    texts = (part.get("text") if isinstance(part, Mapping) else part for part in _parts(turn))
    return "\n".join(text for text in texts if isinstance(text, str))


def _has_picture(turn: Any) -> bool:
    return any(isinstance(part, Mapping) and "image" in str(part.get("type")) for part in _parts(turn))
