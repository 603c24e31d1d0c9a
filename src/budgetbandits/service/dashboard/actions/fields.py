"""The fields of forms, and the values that were typed into them."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal

from budgetbandits.errors import BadParameter, BudgetBanditsError
from budgetbandits.service.ledger import to_micros
from budgetbandits.terms import TERMS, Term

Change = tuple[str, str, str]
"""A label, the value now, and the value afterwards; or a label, a sentence and nothing."""
Fields = Mapping[str, str]
NUMBER = re.compile(r"-?(\d+|\d{1,3}(,\d{3})+)(\.\d*)?", re.ASCII)
"""Pattern of a number, with thousands separators or without."""


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
    placeholder: str = ""

    @classmethod
    def of_term(cls, term: Term) -> Field:
        """The field of a campaign's term."""
        unit = term.form_unit[0]
        label = f"{term.label}, {unit}" if unit else term.label
        empty = f" Empty: {term.absent}." if term.absent else ""
        kind = {"choice": "choice", "text": "text", "names": "text"}.get(term.kind, "decimal")
        empty = f" Separate them by commas.{empty}" if term.kind == "names" else empty
        placeholder = "" if kind != "decimal" or term.optional else typed(term.default / term.form_unit[1])
        choices = (("", "none"), *term.choices) if term.optional and term.choices else term.choices
        return cls(term.name, label, term.help + empty, kind, term.optional, choices, placeholder)


def number(fields: Fields, name: str, label: str) -> float:
    """The number that was typed; commas between groups of three digits are accepted, a decimal comma is not."""
    text = fields.get(name, "").strip()
    if not text:
        raise BadParameter(f"{label} is empty; type a number such as 1500 or 1,500.25")
    if not NUMBER.fullmatch(text):
        raise BadParameter(f"{label} is {text!r:.40}; type a number such as 1500 or 1,500.25")
    value = float(text.replace(",", ""))
    to_micros(value, label)
    return value


def term(fields: Fields, name: str) -> float:
    """The number that was typed for a term, in the term's unit."""
    return TERMS[name].from_form(number(fields, name, LABELS[name]))


def typed(value: float) -> str:
    """A number as a person would type it.

    >>> typed(1e12), typed(100 / 60), typed(1e-7)
    ('1000000000000', '1.666666667', '0.0000001')
    """
    return f"{Decimal(f'{value:.10g}'):f}"


LABELS = {name: term.label.lower() for name, term in TERMS.items()}
"""The names of terms in sentences."""
_NAMES = re.compile(rf"""'[^']*(?:'|$)|"[^"]*(?:"|$)|\b({"|".join(LABELS)})\b""")


def in_labels(error: BudgetBanditsError) -> str:
    """The message of an error for the reader of a form: terms by their labels.

    Only messages about terms and amounts name terms, and quoted texts in them are names that users chose.

    >>> in_labels(BadParameter("daily_cap is 0.10, and the arm 'daily_cap' may cost 1.00; raise it"))
    "daily cap is 0.10, and the arm 'daily_cap' may cost 1.00; raise it"
    """
    if type(error) is not BadParameter:
        return str(error)
    return _NAMES.sub(lambda match: LABELS[match[1]] if match[1] else match[0], str(error))


_QUOTED = re.compile(r"""'[^']*(?:'|$)|"[^"]*(?:"|$)""")
_FIELD_WORDS = {"arms": "arms?|arm's|cap of", "cap": "cap|may cost"}
"""Words that show that a message is about a field, apart from its name and its label."""


def field_of(error: BudgetBanditsError, names: Sequence[str]) -> str:
    """The field that a message is about: the only one, or the first that it names; empty if it names none.

    >>> fields = ["name", "arms", "budget"]
    >>> field_of(BadParameter("budget is 1.00, and the cheapest arm may cost 2.00; raise it"), fields)
    'budget'
    >>> field_of(BadParameter("an arm's name is 'budget'; use another"), fields), field_of(BadParameter("?"), fields)
    ('arms', '')
    """
    text, places = _QUOTED.sub(lambda quoted: " " * len(quoted[0]), str(error)), []
    for name in names:
        words = "|".join(filter(None, (re.escape(name), LABELS.get(name), _FIELD_WORDS.get(name))))
        if match := re.search(rf"\b(?:{words})\b", text):
            places.append((match.start(), name))
    return min(places)[1] if places else names[0] if len(names) == 1 else ""
