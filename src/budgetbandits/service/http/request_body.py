"""Bodies that would take long to refuse are refused before they are checked field by field.

Whoever checks a body collects every mistake in it, and of a hundred thousand mistakes that takes as long as a thousand
decisions. So each kind of body has a size, and a large one is first searched for the kinds of mistake of which there
can be very many; the search ends at the first.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from urllib.parse import parse_qsl

from pydantic_core import from_json
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request

from budgetbandits.service.http.problem_json import Invalid
from budgetbandits.service.http.schemas import Body

SMALL = 2_000
"""Bytes of a body in which there cannot be many mistakes."""

_NUL = re.compile(rb"(?<!\\)(?:\\\\)*\\u0000")
"""The character as JSON writes it; after another backslash it is a backslash and five characters."""


async def read_body(request: Request, most: int) -> bytes:
    """The body, if it is not longer than this; `Request.body` takes four times as long."""
    pieces: list[bytes] = []
    size, more = 0, True
    while more:
        message = await request.receive()
        if message["type"] == "http.disconnect":
            raise ClientDisconnect
        pieces.append(message.get("body", b""))
        size, more = size + len(pieces[-1]), message.get("more_body", False)
        if size > most:
            check_size(size, most)
    return pieces[0] if len(pieces) == 1 else b"".join(pieces)


def check_size(size: int, most: int) -> None:
    if size > most:
        raise HTTPException(413, f"the body may have {most:,} bytes here; send less at a time")


def check_query(query: bytes, known: Sequence[str] = ()) -> None:
    """Refuse a parameter in an address that nobody looks at: whoever sent it expects something of it. And one that is
    given twice, of which one value would be ignored."""
    if not query:
        return
    seen: set[str] = set()
    for name, _ in parse_qsl(query.decode("latin-1"), True):
        if name not in known:
            there = f"use {', '.join(known)}" if known else "leave it out"
            raise Invalid(["query"], f"there is no parameter {name!r:.60}; {there}")
        if name in seen:
            raise Invalid(["query"], f"the parameter {name!r:.60} is given twice; give it once")
        seen.add(name)


def check_no_nul(content: bytes) -> None:
    """Refuse JSON with the character U+0000 in any text: not every database keeps it."""
    if b"\\u0000" in content and _NUL.search(content):
        raise Invalid(["body"], "a text has the character U+0000; leave it out")


def check_mistakes(content: bytes, kind: type[Body]) -> None:
    """Refuse a body with a mistake of which it may have very many."""
    try:
        sent = from_json(content)
    except ValueError as error:  # no JSON, or nested too deeply
        raise Invalid(["body"], f"{error}") from None
    mistake = kind.mistake(sent) if isinstance(sent, dict) else None
    if mistake is not None:
        raise Invalid(["body"], mistake)
