"""The form of a new campaign: what was typed, what the campaign will do, and what would be refused."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache, partial
from typing import Any

from budgetbandits.errors import BadParameter, BudgetBanditsError, Conflict
from budgetbandits.formatting.datetimes import DAY, exact_duration
from budgetbandits.formatting.numbers import in_full
from budgetbandits.policies import POLICIES
from budgetbandits.service.campaign_checks import check_new_campaign
from budgetbandits.service.dashboard.fields import Change, Fields, number, term
from budgetbandits.service.dashboard.numbers import Unit, exact
from budgetbandits.service.dashboard.preview import Preview
from budgetbandits.service.ledger import to_micros, to_units
from budgetbandits.service.names import checked_name, normal
from budgetbandits.service.stores.contract import Transaction
from budgetbandits.terms import Terms

DOES = "Create the campaign"
NUMBERS = ("daily_cap", "pace_seconds", "hold_seconds", "reward_max", "horizon", "propensity_draws")
"""The terms of the form that are numbers."""
FIELDS = ("name", "budget", "arms", "policy", "on_expire", *NUMBERS, "currency")
SHOWN = 8
"""Arms that a confirmation names."""


def planned(fields: Fields) -> dict[str, Any]:
    """The form as what `Campaigns.create` takes."""
    given, wrong = _read(fields)
    for error in wrong.values():
        raise error
    return given


def _read(fields: Fields) -> tuple[dict[str, Any], dict[str, BudgetBanditsError]]:
    """The fields that can be read, as what `Campaigns.create` takes, and by field what is wrong with the others."""
    readers: dict[str, Callable[[], Any]] = {
        "name": lambda: checked_name("name", fields.get("name", "").strip()),
        "budget": lambda: number(fields, "budget", "budget"),
        "arms": lambda: _arms(fields.get("arms", "")),
        "policy": lambda: fields.get("policy", "bts"),
        "on_expire": lambda: fields.get("on_expire", "charge"),
    }
    readers |= {name: partial(term, fields, name) for name in NUMBERS if fields.get(name, "").strip()}
    if fields.get("currency", "").strip():
        readers["currency"] = fields["currency"].strip
    given: dict[str, Any] = {}
    wrong: dict[str, BudgetBanditsError] = {}
    for name, read in readers.items():
        try:
            given[name] = read()
        except BudgetBanditsError as error:
            wrong[name] = error
    return given, wrong


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
    """What the campaign would do, if it can be, and what `Campaigns.create` takes; its name may be taken."""
    given = planned(fields)
    check_new_campaign(**given)
    budget = to_units(to_micros(given["budget"], "budget"))
    does = f"{DOES} with {Unit.of(budget, given, budget).money(budget)}"
    return Preview(does, consequences(given), relies_on=[given, [*given["arms"].items()]]), given


def checked(tx: Transaction, fields: Fields, in_full: bool = True) -> Preview:
    """What the campaign would do, or the first thing that is wrong; of an empty form only if it must be filled in."""
    if not in_full and not any(fields.get(name, "").strip() for name in ("name", "budget", "arms")):
        return Preview(DOES, [])
    try:
        preview, given = plan(fields)
        if tx.campaign_named(normal(given["name"])) is not None:
            raise Conflict(f"there is a campaign {given['name']!r:.60} already; give this one another name")
    except BudgetBanditsError as error:
        return Preview(DOES, [], error, fixable=True, fields=FIELDS, wrong=_read(fields)[1])
    return preview


def consequences(given: Mapping[str, Any]) -> list[Change]:
    """What a new campaign will do, in numbers."""
    caps = [to_micros(cap, "cap") for cap in given["arms"].values()]
    micros = to_micros(given["budget"], "budget")
    budget, least, most = to_units(micros), to_units(min(caps)), to_units(max(caps))
    unit = Unit.of(budget, given, budget, least, most)
    changes: list[Change] = [
        ("Name", given["name"], ""),
        ("Policy", given["policy"], ""),
        ("Arms and caps", _some_arms(given["arms"]), ""),
        ("Budget", f"{unit.money(budget)} for {len(caps):,} arms; it can be topped up, never lowered", ""),
        ("Decisions", f"{micros // max(caps):,} at least, if every pull cost the largest cap", ""),
        ("Each decision", f"holds {unit.money(least)} to {unit.money(most)} until its cost is told", ""),
    ]
    if "pace_seconds" in given:
        a_day = unit.money(budget * min(DAY / given["pace_seconds"], 1.0))
        over = exact_duration(given["pace_seconds"])
        changes.append(("Plan", f"spread over {over}, about {a_day} a day; decisions that are ahead of it wait", ""))
    if "daily_cap" in given:
        cap = to_units(to_micros(given["daily_cap"], "daily_cap"))
        changes.append(("A day", f"{Unit.of(budget, given, cap).money(cap)} at most, by UTC", ""))
    if "horizon" in given:
        each = Unit(6, unit.currency).money(budget / given["horizon"])
        changes.append(
            ("A request", f"{each} on average, if all {in_full(given['horizon'])} that are expected come", "")
        )
    if "reward_max" in given:
        changes.append(("Rewards", f"up to {in_full(given['reward_max'])} for a pull", ""))
    if "propensity_draws" in given:
        changes.append(("Propensities", f"from {in_full(given['propensity_draws'])} draws for each decision", ""))
    what = "free again" if given["on_expire"] == "release" else "charged, until feedback corrects it"
    waits = exact_duration(given.get("hold_seconds", Terms.hold_seconds))
    changes.append(("Without feedback", f"for {waits}, a hold is {what}", ""))
    return changes


def _some_arms(arms: Mapping[str, float]) -> str:
    """The first arms with their caps, and how many more there are.

    >>> _some_arms({"search": 2.0, "mail": 0.0025})
    'search 2.00, mail 0.0025'
    """
    some = [f"{name} {exact(to_units(to_micros(cap, 'cap')))}" for name, cap in [*arms.items()][:SHOWN]]
    more = [f"{len(arms) - SHOWN:,} more"] if len(arms) > SHOWN else []
    return ", ".join([*some, *more])


@cache
def policies() -> list[tuple[str, str]]:
    """The policies that must know nothing which the form does not ask for, each with a line about it."""
    made = [(name, kind, kind()) for name, kind in POLICIES.items()]
    return [
        (name, (kind.__doc__ or "").strip().splitlines()[0])
        for name, kind, policy in made
        if not {"costs", "cost_floor"} & policy.needs
    ]
