"""The fields of forms, and what was typed into them."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from budgetbandits.errors import BadParameter, BudgetBanditsError
from budgetbandits.formatting.datetimes import DAY, MINUTE
from budgetbandits.service.ledger import to_micros
from budgetbandits.terms import checked_number

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
    if not text:
        raise BadParameter(f"{label} is empty; type a number such as 1500 or 1,500.25")
    if not NUMBER.fullmatch(text):
        raise BadParameter(f"{label} is {text!r:.40}; type a number such as 1500 or 1,500.25")
    value = float(text.replace(",", ""))
    to_micros(value, label)
    return value


def term(fields: Fields, name: str) -> float:
    """What was typed for a term, in the term's unit."""
    label, unit = LABELS[name], UNITS.get(name, 1.0)
    return checked_number(name, number(fields, name, label), unit)


UNITS = {"pace_seconds": DAY, "hold_seconds": MINUTE}
"""How many of a term's units one of its field's is, where that is not one."""
LABELS = {
    "daily_cap": "daily cap", "pace_seconds": "spread over", "hold_seconds": "wait for feedback",
    "on_expire": "without feedback", "horizon": "requests expected", "propensity_draws": "draws for propensities",
    "reward_max": "largest reward",
}  # fmt: skip
"""What forms call the terms."""
_NAMES = re.compile(rf"""'[^']*(?:'|$)|"[^"]*(?:"|$)|\b({"|".join(LABELS)})\b""")


def in_labels(error: BudgetBanditsError) -> str:
    """What is wrong, for whoever has the form in front of them: terms by their labels.

    Only messages about terms and amounts name terms, and what is quoted there is somebody's own name for something.

    >>> in_labels(BadParameter("daily_cap is 0.10, and the arm 'daily_cap' may cost 1.00; raise it"))
    "daily cap is 0.10, and the arm 'daily_cap' may cost 1.00; raise it"
    """
    if type(error) is not BadParameter:
        return str(error)
    return _NAMES.sub(lambda found: LABELS[found[1]] if found[1] else found[0], str(error))


_QUOTED = re.compile(r"""'[^']*(?:'|$)|"[^"]*(?:"|$)""")
_TELLS = {"arms": "arms?|arm's|cap of", "cap": "cap|may cost"}
"""The words by which a message is about a field, besides its name and its label."""


def field_of(error: BudgetBanditsError, names: Sequence[str]) -> str:
    """Which of these fields a message is about: the only one, or the first that it names; nothing if it names none.

    >>> fields = ["name", "arms", "budget"]
    >>> field_of(BadParameter("budget is 1.00, and the cheapest arm may cost 2.00; raise it"), fields)
    'budget'
    >>> field_of(BadParameter("an arm's name is 'budget'; use another"), fields), field_of(BadParameter("?"), fields)
    ('arms', '')
    """
    text, found = _QUOTED.sub(lambda quoted: " " * len(quoted[0]), str(error)), []
    for name in names:
        words = "|".join(filter(None, (re.escape(name), LABELS.get(name), _TELLS.get(name))))
        if said := re.search(rf"\b(?:{words})\b", text):
            found.append((said.start(), name))
    return min(found)[1] if found else names[0] if len(names) == 1 else ""
