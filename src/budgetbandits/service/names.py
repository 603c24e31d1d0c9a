"""Rules for the names of campaigns and arms: names are normalised, and those that look like another are refused."""

from __future__ import annotations

import os
import re
import unicodedata
from typing import Any

from budgetbandits.errors import BadParameter

LOOKALIKES = str.maketrans(
    "АВЕЅІЈКМНОРСТУХаеѕіјорсухһԁԛԝҮԚԜӀΑΒΕΖΗΙΚΜΝΟΡΤΥΧονօ", "ABESIJKMHOPCTYXaesijopcyxhdqwYQWIABEZHIKMNOPTYXovo"
)
"""Cyrillic, Greek and Armenian letters that nobody can tell from Latin ones."""

INVISIBLE_CHARACTERS = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u2800\u3164\uffa0")
"""Characters that show nothing although Unicode calls them printable; the selectors of variants are in `_hidden`."""


NAME_RULE = "1 to 200 printable characters with no space at either end"
"""Rule for names, in words."""

_ID = re.compile(r"c[0-9a-f]{11}")


def new_campaign_id() -> str:
    """Short, as every decision is stored with it six times; a store refuses one that it has."""
    return "c" + os.urandom(6).hex()[:11]


def is_id(text: str) -> bool:
    """Whether this can be a campaign's id; no campaign has such a name.

    >>> is_id("c0123456789a"), is_id("c0123456789A"), is_id("c0123456789")
    (True, False, False)
    """
    return _ID.fullmatch(text) is not None


def normal(name: str) -> str:
    """The one way to write a name: é may be one character or two."""
    return name if name.isascii() else unicodedata.normalize("NFC", name)


def check_text(field: str, text: str) -> None:
    """Refuse what is no text for every store: PostgreSQL keeps none with U+0000, and none keeps half a character."""
    wrong = "\0" if "\0" in text else None
    if not text.isascii():
        wrong = next((letter for letter in text if "\ud800" <= letter <= "\udfff"), wrong)
    if wrong is not None:
        raise BadParameter(f"{field} has the character U+{ord(wrong):04X}; leave it out")


def checked_campaign_name(field: str, name: Any) -> str:
    """The name of a new campaign, as it is kept: it is one part of addresses, so it has no slash."""
    if isinstance(name, str) and "/" in name:
        raise BadParameter(f"{field} is {name!r:.60}; use {NAME_RULE}, without a slash")
    return checked_name(field, name)


def checked_name(field: str, name: Any) -> str:
    """The name of a new arm or segment, as it is kept: openai/gpt-4o-mini, for example.

    Nothing that cannot be printed, no space at either end. No . or .. as one of its parts, which are left out
    of addresses that are sent. And names are read by people: nothing invisible, and no letters that pass for those of
    another alphabet.
    """
    good = isinstance(name, str) and 0 < len(name) <= 200 and name.isprintable()
    if not good or name != name.strip():
        raise BadParameter(f"{field} is {name!r:.60}; use {NAME_RULE}")
    if not {".", ".."}.isdisjoint(name.split("/")):
        raise BadParameter(f"{field} is {name!r:.60}; use a name without . or .. alone, also between slashes")
    name = normal(name)
    if not name.isascii():
        _check_readable(field, name)
    return str(name)


def _check_readable(field: str, name: str) -> None:
    hidden = [letter for letter in name if _hidden(letter)]
    if hidden:
        raise BadParameter(f"{field} has the invisible character U+{ord(hidden[0]):04X}; leave it out")
    plain = unicodedata.normalize("NFKC", name)
    if plain != name:
        raise BadParameter(f"{field} is {name!r:.60}, which can be taken for {plain!r:.60}; write it like that")
    letters = [letter for letter in name if letter.isalpha()]
    strange = [letter for letter in letters if ord(letter) in LOOKALIKES]
    latin = any("LATIN" in unicodedata.name(letter, "") for letter in letters)
    if strange and (latin or len(strange) == len(letters)):
        kind = unicodedata.name(strange[0]).split()[0].capitalize()
        raise BadParameter(
            f"{field} is {name!r:.60}, which can be taken for {name.translate(LOOKALIKES)!r:.60}: its {strange[0]!r} "
            f"is {kind}; use Latin letters, or a name that nobody takes for a Latin one"
        )


def _hidden(character: str) -> bool:
    selects_a_variant = "VARIATION SELECTOR" in unicodedata.name(character, "")
    return character in INVISIBLE_CHARACTERS or selects_a_variant
