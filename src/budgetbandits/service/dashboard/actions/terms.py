"""The form that changes a campaign's terms: what its fields hold, what they change, and what that means.

Each field has a hidden one beside it with what it held at first. What is the same in both was not touched, and stays
to the last digit; so the form alone says what to change, also when it is sent twice.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from decimal import Decimal
from typing import Any

from budgetbandits.formatting.datetimes import exact_duration
from budgetbandits.formatting.money import MoneyFormat
from budgetbandits.formatting.numbers import in_full, thousands
from budgetbandits.service import ledger
from budgetbandits.service.dashboard.actions.consequences import CampaignSnapshot
from budgetbandits.service.dashboard.actions.fields import UNITS, Change, Field, Fields, term
from budgetbandits.service.dashboard.requests import stops_at_horizon
from budgetbandits.service.ledger import to_units
from budgetbandits.service.settings import changed_settings, limits_of, terms_of
from budgetbandits.service.stores.records import Campaign

WAS = "was_"
NUMBERS = (
    Field("daily_cap", "Daily cap", "What one day, by UTC, may cost at most. Empty: no cap.", "decimal", True),
    Field("pace_seconds", "Spread over, days", "From the campaign's beginning. Empty: no plan.", "decimal", True),
    Field("hold_seconds", "Wait for feedback, minutes", "For decisions to come; open ones keep theirs.", "decimal"),
    Field("horizon", "Requests expected", "In all, those answered or failed included; for bts-paced. Empty: as many as "
          "can be paid.", "decimal", True),
    Field("propensity_draws", "Draws for propensities", "Record how likely each choice was, such as 100, to evaluate "
          "other policies later. Empty: no.", "decimal", True),
)  # fmt: skip
ON_EXPIRE = Field(
    "on_expire", "Without feedback, a hold is", "For open holds too, when their time is over.", "choice",
    choices=(("charge", "charged: the call may have been made"), ("release", "released: its money is free again")),
)  # fmt: skip
FIELDS = (*NUMBERS, ON_EXPIRE)


def terms_now(row: Campaign) -> Fields:
    """The fields as they are at first."""
    terms = terms_of(row)
    texts: dict[str, str] = {}
    for field in NUMBERS:
        value = getattr(terms, field.name)
        texts[field.name] = "" if value is None else _text(value / UNITS.get(field.name, 1.0))
    texts[ON_EXPIRE.name] = terms.on_expire
    return texts | {WAS + name: text for name, text in texts.items()}


def terms_shown(row: Campaign, fields: Fields) -> Fields:
    """The fields as a form shows them: those that were touched as they were typed, the others as the terms are, though
    somebody has changed these since the form was opened."""
    now = terms_now(row)
    typed = {field.name: fields[field.name] for field in FIELDS if _touched(fields, field.name)}
    return {**fields, **now, **typed}


def _touched(fields: Fields, name: str) -> bool:
    return fields.get(name, "").strip() != fields.get(WAS + name, "")


def terms_wanted(fields: Fields) -> dict[str, Any]:
    """The terms that the form changes."""
    changes: dict[str, Any] = {}
    for field in FIELDS:
        text = fields.get(field.name, "").strip()
        if not _touched(fields, field.name):
            continue
        if field.choices:
            changes[field.name] = text
        else:
            changes[field.name] = term(fields, field.name) if text else None
    return changes


def terms_changed(subject: CampaignSnapshot, changes: dict[str, Any]) -> list[Change]:
    """What will be different."""
    row = subject.row
    after = replace(row, settings=changed_settings(row, changes))
    made = differences(row, after)
    if "pace_seconds" in changes:
        budget = row.account.budget
        old, new = subject.money(*(ledger.spendable(budget, subject.now, limits_of(each)) for each in (row, after)))
        made.append(("Spendable by now", old, new))
    gone = subject.recalled.gone
    if (changes.get("horizon") or math.inf) <= gone:
        stops, next_one = stops_at_horizon(row.policy), "all that is left may go to the next one"
        next_one = f"{row.policy} makes no decision any more" if stops else next_one
        than = "as many as" if changes["horizon"] == gone else "more than"
        said = f"{thousands(gone)} already, {than} are expected then: {next_one}"
        made.append(("Requests whose money is gone", said, ""))
    held = subject.recalled.held
    if "on_expire" in changes and held:
        word = "released" if changes["on_expire"] == "release" else "charged"
        made.append(("Open holds", f"{subject.money(held)[0]} is held; what nobody tells of in time is {word} too", ""))
    return made


def differences(before: Campaign, after: Campaign) -> list[Change]:
    """The terms in which two states of a campaign differ."""
    caps = [each for row in (before, after) if (each := terms_of(row).daily_cap) is not None]
    unit = MoneyFormat.for_budget(to_units(before.account.budget), before.settings, *caps)
    words: dict[str, tuple[str, Callable[[Any], str]]] = {
        "daily_cap": ("Daily cap", unit.money), "pace_seconds": ("Spread over", exact_duration),
        "hold_seconds": ("Wait for feedback", exact_duration),
        "horizon": ("Requests expected", in_full), "propensity_draws": ("Draws for propensities", in_full),
        "on_expire": ("Without feedback", {"charge": "charged", "release": "released"}.__getitem__),
    }  # fmt: skip
    made = []
    for name, (label, said) in words.items():
        old, new = (getattr(terms_of(row), name) for row in (before, after))
        if old != new:
            made.append((label, "none" if old is None else said(old), "none" if new is None else said(new)))
    return made


def _text(value: float) -> str:
    """A number as somebody would type it.

    >>> _text(1e12), _text(100 / 60), _text(1e-7)
    ('1000000000000', '1.666666667', '0.0000001')
    """
    return f"{Decimal(f'{value:.10g}'):f}"
