"""The form of a new campaign: what was typed, what the campaign will do, and what would be refused."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

from budgetbandits.errors import BadParameter, BudgetBanditsError, Conflict
from budgetbandits.policies import POLICIES
from budgetbandits.service.dashboard.actions import Preview
from budgetbandits.service.dashboard.fields import LABELS, Change, Fields, booked, in_labels, number
from budgetbandits.service.dashboard.numbers import Unit
from budgetbandits.service.ledger import to_micros
from budgetbandits.service.names import normal
from budgetbandits.service.new_campaign import check
from budgetbandits.service.stores.base import Transaction
from budgetbandits.times import DAY, duration

UNITS = {"pace_seconds": DAY, "hold_seconds": 60.0}
"""How many of a term's units one of its field's is, where that is not one."""


def planned(fields: Fields) -> dict[str, Any]:
    """The form as what `Campaigns.create` takes."""
    arms: dict[str, float] = {}
    for line in fields.get("arms", "").splitlines():
        if line.strip():
            name, equals, cap = line.rpartition("=")
            if not equals or not name.strip():
                raise BadParameter(f"arms: {line.strip()!r:.60} is no arm; write NAME = CAP on a line of its own")
            if name.strip() in arms:
                raise BadParameter(f"arms: {name.strip()!r:.60} is there twice; give every arm a name of its own")
            arms[name.strip()] = number({"cap": cap}, "cap", f"the cap of {name.strip()!r:.40}")
    given: dict[str, Any] = {
        "name": fields.get("name", "").strip(), "policy": fields.get("policy", "bts"), "arms": arms,
        "budget": number(fields, "budget", "budget"), "on_expire": fields.get("on_expire", "charge"),
    }  # fmt: skip
    for name in ("daily_cap", "pace_seconds", "hold_seconds", "reward_max", "horizon", "propensity_draws"):
        if fields.get(name, "").strip():
            given[name] = number(fields, name, LABELS[name]) * UNITS.get(name, 1.0)
    if fields.get("currency", "").strip():
        given["currency"] = fields["currency"].strip()
    return given


def checked(tx: Transaction, fields: Fields) -> Preview:
    """What the campaign would do, or the first thing that is wrong; nothing is said of an empty form."""
    does = "Create the campaign"
    if not any(fields.get(name, "").strip() for name in ("name", "budget", "arms")):
        return Preview(does, [])
    try:
        given = planned(fields)
        check(**given)
        if tx.campaign_named(normal(given["name"])) is not None:
            raise Conflict(f"there is a campaign {given['name']!r:.60} already; give this one another name")
    except BudgetBanditsError as error:
        return Preview(does, [], in_labels(str(error)), fixable=True)
    budget = booked(fields, "budget", "budget")
    return Preview(f"{does} with {Unit.of(budget, given, budget).money(budget)}", consequences(given))


def consequences(given: Mapping[str, Any]) -> list[Change]:
    """What a new campaign will do, in numbers."""
    budget, caps = given["budget"], given["arms"].values()
    unit, fewest = Unit.of(budget, given, budget, *caps), to_micros(budget, "budget") // to_micros(max(caps), "cap")
    changes: list[Change] = [
        ("Budget", f"{unit.money(budget)} for {len(caps):,} arms; it can be topped up, never lowered", ""),
        ("Decisions", f"{fewest:,} at least, if every pull cost the largest cap", ""),
        ("Each decision", f"holds {unit.money(min(caps))} to {unit.money(max(caps))} until its cost is told", ""),
    ]
    if "pace_seconds" in given:
        a_day = unit.money(budget * min(DAY / given["pace_seconds"], 1.0))
        changes.append(("Plan", f"{a_day} a day; decisions that are ahead of it wait", ""))
    if "daily_cap" in given:
        cap = Unit.of(budget, given, given["daily_cap"]).money(given["daily_cap"])
        changes.append(("A day", f"{cap} at most, by UTC", ""))
    if "horizon" in given:
        each = Unit(6, unit.currency).money(budget / given["horizon"])
        changes.append(("A request", f"{each} on average, if all that are expected come", ""))
    what = "free again" if given["on_expire"] == "release" else "charged, until feedback corrects it"
    changes.append(("Without feedback", f"for {duration(given.get('hold_seconds', 3600.0))}, a hold is {what}", ""))
    return changes


@cache
def policies() -> list[tuple[str, str]]:
    """The policies that must know nothing which the form does not ask for, each with a line about it."""
    made = [(name, kind, kind()) for name, kind in POLICIES.items()]
    return [
        (name, (kind.__doc__ or "").strip().splitlines()[0])
        for name, kind, policy in made
        if not {"costs", "cost_floor"} & policy.needs
    ]
