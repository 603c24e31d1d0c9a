"""The fields of forms, and what was typed into them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from budgetbandits.errors import BadParameter
from budgetbandits.service.ledger import to_micros

Change = tuple[str, str, str]
"""What it is, how it is, and how it will be; or a sentence, and nothing."""
Fields = Mapping[str, str]


@dataclass(frozen=True)
class Field:
    """A field of an action's form."""

    name: str
    label: str
    help: str = ""
    kind: str = "text"
    optional: bool = False
    choices: tuple[tuple[str, str], ...] = ()
    """(what is sent, what it says), if it is one of a few."""


def number(fields: Fields, name: str, label: str) -> float:
    """What was typed, as a number."""
    text = fields.get(name, "").replace(",", "").strip()
    try:
        value = float(text)
    except ValueError:
        raise BadParameter(f"{label} is {text!r:.40}; type a number") from None
    to_micros(value, label)
    return value
