"""The form that changes a campaign's terms: its fields, the changes, and their consequences.

Each field has a hidden one next to it with its first value. A field that equals its hidden one was not touched, and its
term stays to the last digit; so the form alone says what to change, even if it is sent twice.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from budgetbandits.formatting.money import MoneyFormat
from budgetbandits.formatting.numbers import thousands
from budgetbandits.service import ledger
from budgetbandits.service.campaign_checks import changed_campaign
from budgetbandits.service.dashboard.actions.consequences import CampaignSnapshot
from budgetbandits.service.dashboard.actions.fields import Change, Field, Fields, term, typed
from budgetbandits.service.dashboard.requests import stops_at_horizon
from budgetbandits.service.ledger import to_units
from budgetbandits.service.stores.records import Campaign
from budgetbandits.terms import CHANGEABLE, TERMS

ORIGINAL_PREFIX = "was_"
"""Prefix of hidden fields with the values that a form was opened with."""

_PERIOD_BUDGET = replace(
    Field.of_term(TERMS["period_budget"]), help="What each period gets, from the next one on. A period needs it."
)
FIELDS = tuple(_PERIOD_BUDGET if name == "period_budget" else Field.of_term(TERMS[name]) for name in CHANGEABLE)
"""Fields of the form that changes terms."""

SUPPORTS = {
    "time_zone": ("daily_cap", "period"), "on_limit": ("daily_cap", "pace_seconds"), "period_budget": ("period",),
    "unspent": ("period",),
}  # fmt: skip
"""The terms that others are for, one of which they need."""


def terms_now(row: Campaign) -> Fields:
    """The first values of the fields."""
    terms = row.settings.terms
    texts: dict[str, str] = {}
    for name in CHANGEABLE:
        value, unit = getattr(terms, name), TERMS[name].form_unit[1]
        if isinstance(value, tuple):
            value = ", ".join(value)
        texts[name] = "" if value is None else value if isinstance(value, str) else typed(value / unit)
    return texts | {ORIGINAL_PREFIX + name: text for name, text in texts.items()}


def terms_shown(row: Campaign, fields: Fields) -> Fields:
    """The fields as a form shows them: touched ones as they were typed, the others as the terms are now, which may have
    changed since the form was opened."""
    now = terms_now(row)
    typed = {field.name: fields[field.name] for field in FIELDS if _touched(fields, field.name)}
    return {**fields, **now, **typed}


def _touched(fields: Fields, name: str) -> bool:
    return fields.get(name, "").strip() != fields.get(ORIGINAL_PREFIX + name, "")


def terms_wanted(fields: Fields) -> dict[str, Any]:
    """The terms that the form changes."""
    changes: dict[str, Any] = {}
    for field in FIELDS:
        text = fields.get(field.name, "").strip()
        if not _touched(fields, field.name):
            continue
        if field.choices or TERMS[field.name].kind == "text":
            changes[field.name] = text or None
        elif TERMS[field.name].kind == "names":
            changes[field.name] = [part.strip() for part in text.split(",")] if text else None
        else:
            changes[field.name] = term(fields, field.name) if text else None
    for name, needed in SUPPORTS.items():  # what is emptied takes with it what was for it alone
        emptied = any(term_name in changes and changes[term_name] is None for term_name in needed)
        if emptied and name not in changes and not any(fields.get(term_name, "").strip() for term_name in needed):
            changes[name] = TERMS[name].default
    return changes


def _with(subject: CampaignSnapshot, changes: dict[str, Any]) -> tuple[Campaign, list[Change]]:
    """The campaign with these changes, and how it differs then."""
    names, caps = [arm.name for arm in subject.arms], [arm.cost_cap for arm in subject.arms]
    after = changed_campaign(subject.row, changes, names, caps)
    return after, differences(subject.row, after, names)


def cap_changed(subject: CampaignSnapshot, arm: tuple[str, float]) -> list[Change]:
    """The consequences of another cap of an arm."""
    name, cap = arm
    _, changes = _with(subject, {"caps": {name: cap}})
    changes.append(("Each decision for it", "holds the new cap from now on; open holds stay as they are", ""))
    if subject.account.status != "active":
        changes.append(("Status", f"stays {subject.account.status}: a cap alone does not start it again", ""))
    return changes


def terms_changed(subject: CampaignSnapshot, changes: dict[str, Any]) -> list[Change]:
    """The consequences of these changes."""
    row = subject.row
    after, rows = _with(subject, changes)
    subject.check_move(row.with_money(subject.recalled), after.with_money(subject.recalled))
    limits, limits_then = (row_at.settings.limits(row.created_at) for row_at in (row, after))
    if "pace_seconds" in changes:
        budget = row.account.budget
        old, new = subject.money(
            *(ledger.spendable(budget, subject.now, limits_at) for limits_at in (limits, limits_then))
        )
        rows.append(("Spendable by now", old, new))
    left = ledger.today_left(subject.recalled, subject.now, limits_then)
    if "daily_cap" in changes and left is not None and left < min(arm.cost_cap for arm in subject.arms if arm.active):
        [today] = subject.money((limits_then.daily_cap or 0) - left)
        rows.append(("Spent today", f"{today} already: decisions are refused until the next day begins", ""))
    used = subject.recalled.requests_used
    if (changes.get("horizon") or math.inf) <= used:
        stops, next_one = stops_at_horizon(row), "the next one may cost all that is left"
        next_one = f"{row.policy} makes no decision any more" if stops else next_one
        than = "as many as" if changes["horizon"] == used else "more than"
        text = f"{thousands(used)} already, {than} are expected then: {next_one}"
        rows.append(("Requests used", text, ""))
    held = subject.recalled.held
    if "on_expire" in changes and held:
        word = TERMS["on_expire"].text(changes["on_expire"])
        rows.append(
            ("Open holds", f"{subject.money(held)[0]} is held; holds without feedback in time are {word} too", "")
        )
    return rows


def differences(before: Campaign, after: Campaign, names: Sequence[str] = ()) -> list[Change]:
    """The terms in which two states of a campaign differ, of which the second follows from a change of the first, and
    what else that change has changed; ``names`` are those of the arms."""
    caps = [cap for row in (before, after) if (cap := row.settings.terms.daily_cap) is not None]
    unit = MoneyFormat.for_budget(to_units(before.account.budget), before.settings.terms.currency, *caps)
    result = []
    for name in CHANGEABLE:
        old, new = (getattr(row.settings.terms, name) for row in (before, after))
        if old != new:
            term = TERMS[name]
            result.append((term.label, term.text(old, unit.money), term.text(new, unit.money)))
    change = after.settings.change
    result += [(label.capitalize(), *change[label]) for label in ("name", "policy") if label in change]
    money = {"Budget": change["budget"]} if "budget" in change else {}
    money |= {f"Cap of {names[arm]}": amounts for arm, amounts in after.settings.caps_changed.items() if names}
    for label, amounts in money.items():
        old, new = map(to_units, amounts)
        unit = MoneyFormat.for_budget(to_units(before.account.budget), before.settings.terms.currency, old, new)
        result.append((label, unit.money(old), unit.money(new)))
    return result
