"""What the row of a campaign keeps of its terms: money in micros, and what follows from its arms and its policy."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, replace
from typing import Any

from budgetbandits.amounts import shown
from budgetbandits.choosing import Kind
from budgetbandits.errors import BadParameter
from budgetbandits.service import ledger
from budgetbandits.service.ledger import Limits, to_micros, to_units
from budgetbandits.service.stores.base import Campaign
from budgetbandits.terms import CHANGEABLE, Terms


def settings_of(terms: Terms, cost_max: int, known: Mapping[str, Any], chooser: Kind) -> dict[str, Any]:
    """The settings of a new campaign: its terms, and what follows; a limit that there is not has no entry."""
    always: dict[str, Any] = {}
    limits: dict[str, Any] = {}
    for term in fields(Terms):
        value = getattr(terms, term.name)
        if term.metadata["money"] and value is not None:
            value = to_micros(value, term.name)
        elif isinstance(value, int):
            value = float(value)
        if term.default is not None:
            always[term.name] = value
        elif value is not None:
            limits[term.name] = value
    if limits.get("daily_cap", cost_max) < cost_max:
        cap, most = shown([to_units(limits["daily_cap"]), to_units(cost_max)])
        raise BadParameter(f"daily_cap is {cap}, and the dearest arm may cost {most}; raise it")
    if limits.get("lease", cost_max) < cost_max:
        lease, most = shown([to_units(limits["lease"]), to_units(cost_max)])
        raise BadParameter(f"lease is {lease}, and the dearest arm may cost {most}; raise it, or leave it out")
    if "lease" in limits and limits.keys() & {"daily_cap", "pace_seconds"}:
        raise BadParameter("a lease cannot keep a daily_cap or pace_seconds; leave it out, or leave these out")
    return always | {"cost_max": cost_max, "known": known, "chooser": chooser} | limits


EARLIER = "earlier"
"""The entry of a campaign's settings that has the settings before each change of its terms, the first ones first."""


def changed_settings(row: Campaign, changes: Mapping[str, Any]) -> dict[str, Any]:
    """The settings with other terms, of those that can be changed; None takes a limit away."""
    fixed = [name for name in changes if name not in CHANGEABLE]
    if fixed:
        raise BadParameter(
            f"{fixed[0]!r:.40} cannot be changed, only {', '.join(CHANGEABLE)}; create a new campaign with it"
        )
    before = terms_of(row)
    terms = replace(before, **changes).checked()
    if terms == before:
        raise BadParameter("these are the terms already; name one to change, with another value")
    made = settings_of(terms, row.settings["cost_max"], row.settings["known"], row.settings["chooser"])
    return made | {EARLIER: versions(row)}


def versions(row: Campaign) -> list[dict[str, Any]]:
    """The settings as they were from the beginning and after each change of terms, the present ones last."""
    present = {name: value for name, value in row.settings.items() if name != EARLIER}
    return [*row.settings.get(EARLIER, ()), present]


def terms_of(row: Campaign) -> Terms:
    """The terms of a campaign."""
    given: dict[str, Any] = {}
    for term in fields(Terms):
        if term.name in row.settings:
            value = row.settings[term.name]
            given[term.name] = to_units(value) if term.metadata["money"] else value
    return Terms(**given)


def limits_of(row: Campaign) -> Limits:
    """How fast a campaign may spend."""
    daily_cap, pace_seconds = row.settings.get("daily_cap"), row.settings.get("pace_seconds")
    if daily_cap is None and pace_seconds is None:
        return ledger.NO_LIMITS
    return Limits(daily_cap, pace_seconds, row.created_at, row.settings["cost_max"])
