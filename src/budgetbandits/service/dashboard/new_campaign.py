"""The form of a new campaign: the fields, what the campaign will do, and what would be refused."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import MISSING, fields, replace
from functools import partial
from typing import Any

from budgetbandits.errors import BadParameter, BudgetBanditsError, Conflict
from budgetbandits.formatting.datetimes import DAY
from budgetbandits.formatting.money import MoneyFormat, exact_money
from budgetbandits.policies import POLICY_REGISTRY, Policy
from budgetbandits.service.campaign_checks import check_new_campaign
from budgetbandits.service.dashboard.actions.fields import Change, Field, Fields, number, term
from budgetbandits.service.dashboard.actions.flow import Preview
from budgetbandits.service.ledger import to_micros, to_units
from budgetbandits.service.names import checked_name
from budgetbandits.service.shared_budgets.members import check_join
from budgetbandits.service.stores.contract import Transaction
from budgetbandits.terms import TERMS

BUTTON = "Create the campaign"
"""Text of the button."""

FORM_TERMS = tuple(term for term in TERMS.values() if term.in_forms)
"""The terms that the form asks for."""
TERM_FIELDS = tuple(replace(Field.of_term(term), optional=True) for term in FORM_TERMS)
"""Fields of the terms in the form."""

FIRST_FIELDS = (
    Field("name", "Name", "How programs ask for it.", optional=True),
    Field("budget", "Budget", "The most that may be spent. It can be topped up, or set to another.", "decimal", True),
)
"""Fields before the terms."""

FIELDS = ("name", "budget", "arms", "policy", *(term.name for term in FORM_TERMS))
"""Names of all fields of the form."""

ARMS_SHOWN_MAX = 8
"""Arms that a confirmation names."""


def page_values(fields: Fields) -> dict[str, Any]:
    """The values of the page, apart from the form."""
    has_terms = any(fields.get(term.name, "").strip() not in ("", term.default) for term in FORM_TERMS)
    return {
        "policies": policies(), "first_fields": FIRST_FIELDS, "term_fields": TERM_FIELDS, "has_terms": has_terms,
    }  # fmt: skip


def _read(fields: Fields) -> tuple[dict[str, Any], dict[str, BudgetBanditsError]]:
    """The readable fields as arguments of `Campaigns.create`, and the errors of the others by field."""
    readers: dict[str, Callable[[], Any]] = {
        "name": lambda: checked_name("name", fields.get("name", "").strip()),
        "budget": lambda: number(fields, "budget", "budget"),
        "arms": lambda: _arms(fields.get("arms", "")),
        "policy": lambda: fields.get("policy", "bts"),
    }
    for form_term in FORM_TERMS:
        if text := fields.get(form_term.name, "").strip():
            if form_term.kind == "names":
                readers[form_term.name] = partial(_names, text)
            else:
                is_text = form_term.kind in ("choice", "text")
                readers[form_term.name] = partial(str, text) if is_text else partial(term, fields, form_term.name)
    given: dict[str, Any] = {}
    wrong: dict[str, BudgetBanditsError] = {}
    for name, read in readers.items():
        try:
            given[name] = read()
        except BudgetBanditsError as error:
            wrong[name] = error
    return given, wrong


def _names(text: str) -> tuple[str, ...]:
    return tuple(name.strip() for name in text.split(","))


def _arms(text: str) -> dict[str, float]:
    arms: dict[str, float] = {}
    for line in text.splitlines():
        if line.strip():
            name, equals, cap = line.rpartition("=")
            if not equals or not name.strip():
                raise BadParameter(f"arms: {line.strip()!r:.60} is no arm; write NAME = CAP on a line of its own")
            if name.strip() in arms:
                raise BadParameter(f"arms: {name.strip()!r:.60} is there twice; give every arm a name of its own")
            arms[name.strip()] = number({"cap": cap}, "cap", f"the cap of {name.strip()!r:.40}")
    return arms


def plan(fields: Fields) -> tuple[Preview, dict[str, Any]]:
    """A preview of the campaign and the arguments of `Campaigns.create`; the name may be in use."""
    given, wrong = _read(fields)
    for error in wrong.values():
        raise error
    check_new_campaign(**given)
    budget = to_units(to_micros(given["budget"], "budget"))
    button = f"{BUTTON} with {MoneyFormat.for_budget(budget, given.get('currency'), budget).money(budget)}"
    return Preview(button, consequences(given), relies_on=[given, [*given["arms"].items()]]), given


def checked(tx: Transaction, fields: Fields, in_full: bool = True) -> Preview:
    """A preview of the campaign, or what is wrong; an empty form is wrong only if it must be filled in."""
    if not in_full and not any(fields.get(name, "").strip() for name in ("name", "budget", "arms")):
        return Preview(BUTTON, [])
    try:
        preview, given = plan(fields)
        if tx.campaign(given["name"]) is not None:
            raise Conflict(f"there is a campaign {given['name']!r:.60} already; give this one another name")
        if "shared_budget" in given:
            planned = check_new_campaign(**given)
            check_join(tx, planned.settings.terms.shared_budget or "", planned, tx.now())
    except BudgetBanditsError as error:
        return Preview(BUTTON, [], error, fixable=True, fields=FIELDS, wrong=_read(fields)[1])
    return preview


def consequences(given: Mapping[str, Any]) -> list[Change]:
    """The terms and consequences of a new campaign, in numbers."""
    caps = [to_micros(cap, "cap") for cap in given["arms"].values()]
    micros = to_micros(given["budget"], "budget")
    budget, least, most = to_units(micros), to_units(min(caps)), to_units(max(caps))
    currency = given.get("currency")
    unit = MoneyFormat.for_budget(budget, currency, budget, least, most)
    changes: list[Change] = [
        ("Name", given["name"], ""),
        ("Policy", given["policy"], ""),
        ("Arms and caps", _some_arms(given["arms"]), ""),
        ("Budget", f"{unit.money(budget)} for {len(caps):,} arms; it can be topped up or set to another", ""),
        ("Decisions", f"{micros // max(caps):,} at least, if every pull cost the largest cap", ""),
        ("Each decision", f"holds {unit.money(least)} to {unit.money(most)} until its cost is reported", ""),
    ]
    notes = {}
    if "pace_seconds" in given:
        a_day = unit.money(budget * min(DAY / given["pace_seconds"], 1.0))
        notes["pace_seconds"] = f", about {a_day} a day; decisions that are ahead of it wait"
    if "horizon" in given:
        average = MoneyFormat(6, unit.currency).money(budget / given["horizon"])
        notes["horizon"] = f", {average} for each on average"
    for asked in FORM_TERMS:
        value = given.get(asked.name, asked.default)
        if value is not None:
            booked = to_units(to_micros(value, asked.name)) if asked.kind == "money" else value
            text = asked.text(booked, lambda amount: MoneyFormat.for_budget(budget, currency, amount).money(amount))
            changes.append((asked.label, text + notes.get(asked.name, ""), ""))
    return changes


def _some_arms(arms: Mapping[str, float]) -> str:
    """The first arms with their caps, and how many more there are.

    >>> _some_arms({"search": 2.0, "mail": 0.0025})
    'search 2.00, mail 0.0025'
    """
    parts = [f"{name} {exact_money(to_units(to_micros(cap, 'cap')))}" for name, cap in [*arms.items()][:ARMS_SHOWN_MAX]]
    more = [f"{len(arms) - ARMS_SHOWN_MAX:,} more"] if len(arms) > ARMS_SHOWN_MAX else []
    return ", ".join([*parts, *more])


def policies() -> list[tuple[str, str]]:
    """The policies that need nothing beyond the form, each with a line about it; the package's own come first."""
    kinds = {
        name: kind for name, kind in POLICY_REGISTRY.items()
        if kind.totals is not Policy.totals and all(field.default is not MISSING for field in fields(kind))
    }  # fmt: skip
    return [
        (name, (kind.__doc__ or "").strip().splitlines()[0])
        for name, kind in kinds.items()
        if not {"costs", "cost_floor"} & kind().needs
    ]
