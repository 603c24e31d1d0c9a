"""The form that changes a campaign's terms: what its fields hold, what they change, and what that means.

Each field has a hidden one beside it with what it held at first. What is the same in both was not touched, and stays
to the last digit; so the form alone says what to change, also when it is sent twice.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from budgetbandits.service.campaigns import answered_of
from budgetbandits.service.dashboard.fields import Change, Field, Fields, number
from budgetbandits.service.dashboard.numbers import Unit, count
from budgetbandits.service.ledger import to_units
from budgetbandits.service.settings import changed_settings, terms_of
from budgetbandits.service.stores.records import ArmRow, Campaign
from budgetbandits.times import DAY, duration

WAS = "was_"
NUMBERS: dict[str, tuple[Field, float]] = {
    "daily_cap": (
        Field("daily_cap", "Daily cap", "What one day, by UTC, may cost at most. Empty: no cap.", "decimal", True), 1.0,
    ),
    "pace_seconds": (
        Field("pace_seconds", "Spread over, days", "From the campaign's beginning. Empty: no plan.", "decimal", True),
        DAY,
    ),
    "hold_seconds": (
        Field("hold_seconds", "Wait for feedback, minutes", "For decisions to come; open ones keep theirs.", "decimal"),
        60.0,
    ),
    "horizon": (
        Field("horizon", "Requests expected", "In all, those answered or failed included; for bts-paced. Empty: as "
              "many as can be paid.", "decimal", True), 1.0,
    ),
    "propensity_draws": (
        Field("propensity_draws", "Draws for propensities", "Record how likely each choice was, such as 100, to "
              "evaluate other policies later. Empty: no.", "decimal", True), 1.0,
    ),
}  # fmt: skip
"""The terms that are numbers, each with its field and how many of the term's units one of the field's is."""
ON_EXPIRE = Field(
    "on_expire", "Without feedback, a hold is", "For open holds too, when their time is over.", "choice",
    choices=(("charge", "charged: the call may have been made"), ("release", "released: its money is free again")),
)  # fmt: skip
FIELDS = (*(field for field, _ in NUMBERS.values()), ON_EXPIRE)


def terms_now(row: Campaign) -> Fields:
    """The fields as they are at first."""
    terms = terms_of(row)
    texts: dict[str, str] = {}
    for name, (_, unit) in NUMBERS.items():
        value = getattr(terms, name)
        texts[name] = "" if value is None else f"{value / unit:.10g}"
    texts[ON_EXPIRE.name] = terms.on_expire
    return texts | {WAS + name: text for name, text in texts.items()}


def terms_wanted(fields: Fields) -> dict[str, Any]:
    """The terms that the form changes."""
    changes: dict[str, Any] = {}
    for field in FIELDS:
        text = fields.get(field.name, "").strip()
        if text == fields.get(WAS + field.name, ""):
            continue
        if field.choices:
            changes[field.name] = text
        else:
            changes[field.name] = number(fields, field.name, field.label) * NUMBERS[field.name][1] if text else None
    return changes


def terms_changed(row: Campaign, arms: list[ArmRow], fields: Fields) -> list[Change]:
    """What will be different."""
    changes = terms_wanted(fields)
    if not changes:
        return []
    after = replace(row, settings=changed_settings(row, changes))
    made = differences(row, after)
    if "pace_seconds" in changes:
        made.append(("Spendable by now", _plan_now(row), _plan_now(after)))
    answered = answered_of(arms)
    if (changes.get("horizon") or math.inf) <= answered:
        said = f"{count(answered)} already, as many as are expected then: all that is left may go to the next one"
        made.append(("Requests answered", said, ""))
    if "on_expire" in changes and row.account.held:
        held = Unit.of(to_units(row.account.budget), row.settings).money(to_units(row.account.held))
        word = "released" if changes["on_expire"] == "release" else "charged"
        made.append(("Open holds", f"{held} is held; what nobody tells of in time is {word} too", ""))
    return made


def differences(before: Campaign, after: Campaign) -> list[Change]:
    """The terms in which two states of a campaign differ."""
    caps = [each for row in (before, after) if (each := terms_of(row).daily_cap) is not None]
    unit = Unit.of(to_units(before.account.budget), before.settings, *caps)
    words: dict[str, tuple[str, Callable[[Any], str]]] = {
        "daily_cap": ("Daily cap", unit.money), "pace_seconds": ("Spread over", duration),
        "hold_seconds": ("Wait for feedback", duration),
        "horizon": ("Requests expected", count), "propensity_draws": ("Draws for propensities", count),
        "on_expire": ("Without feedback", {"charge": "charged", "release": "released"}.__getitem__),
    }  # fmt: skip
    made = []
    for name, (label, said) in words.items():
        old, new = (getattr(terms_of(row), name) for row in (before, after))
        if old != new:
            made.append((label, "none" if old is None else said(old), "none" if new is None else said(new)))
    return made


def _plan_now(row: Campaign) -> str:
    seconds, budget = row.settings.get("pace_seconds"), to_units(row.account.budget)
    due = budget if seconds is None else budget * min((time.time() - row.created_at) / seconds, 1.0)
    return Unit.of(budget, row.settings).money(due)
