"""The fields of forms, and what was typed into them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from budgetbandits.errors import BadParameter
from budgetbandits.service.ledger import to_micros, to_units

Change = tuple[str, str, str]
"""What it is, how it is, and how it will be; or a sentence, and nothing."""
Fields = Mapping[str, str]
NUMBER = re.compile(r"-?(\d+|\d{1,3}(,\d{3})+)(\.\d*)?", re.ASCII)


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
    """What was typed, as a number; commas between groups of three digits are taken, a decimal comma is not."""
    text = fields.get(name, "").strip()
    if not NUMBER.fullmatch(text):
        raise BadParameter(f"{label} is {text!r:.40}; type a number such as 1500 or 1,500.25")
    value = float(text.replace(",", ""))
    to_micros(value, label)
    return value


def booked(fields: Fields, name: str, label: str) -> float:
    """What was typed, as the books will have it: in whole micros."""
    return to_units(to_micros(number(fields, name, label), label))


LABELS = {
    "daily_cap": "daily cap", "pace_seconds": "spread over", "hold_seconds": "wait for feedback",
    "on_expire": "without feedback", "horizon": "requests expected", "propensity_draws": "draws for propensities",
    "reward_max": "largest reward",
}  # fmt: skip
"""What forms call the terms."""
_NAMES = re.compile(rf"\b({'|'.join(LABELS)})\b")


def in_labels(message: str) -> str:
    """A message for whoever has the form in front of them: terms by their labels.

    >>> in_labels("daily_cap is 0.10, and the dearest arm may cost 1.00; raise it")
    'daily cap is 0.10, and the dearest arm may cost 1.00; raise it'
    """
    return _NAMES.sub(lambda found: LABELS[found[1]], message)
