"""What operators do from the pages. Each action is shown before it is done: what it changes, and who is recorded."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from budgetbandits.errors import BadParameter, BudgetBanditsError
from budgetbandits.service.campaigns import Campaigns
from budgetbandits.service.dashboard.fields import Change, Field, Fields, number
from budgetbandits.service.dashboard.numbers import digits_for, money
from budgetbandits.service.dashboard.term_form import FIELDS, terms_changed, terms_now, terms_wanted
from budgetbandits.service.ledger import to_units
from budgetbandits.service.stores.records import ArmRow, Campaign
from budgetbandits.times import DAY


@dataclass(frozen=True)
class Action:
    """``does`` is what the button says and may be filled in; ``run`` does it, under a key, for somebody."""

    title: str
    does: Callable[[Fields], str]
    changes: Callable[[Campaign, list[ArmRow], Fields], list[Change]]
    run: Callable[[Campaigns, str, Fields, str, str], None]
    fields: tuple[Field, ...] = ()
    dangerous: bool = False
    filled: Callable[[Campaign], Fields] = lambda row: {}
    """What the fields hold at first."""


def _amount(fields: Fields) -> str:
    try:
        return f" {money(number(fields, 'amount', 'amount'))}"
    except BudgetBanditsError:
        return ""


def _topped_up(row: Campaign, arms: list[ArmRow], fields: Fields) -> list[Change]:
    amount, budget = number(fields, "amount", "amount"), to_units(row.account.budget)
    if amount <= 0:
        raise BadParameter("amount is 0; type what the budget is raised by")
    digits, left = digits_for(budget), to_units(row.account.left)
    changes = [
        ("Budget", money(budget, digits), money(budget + amount, digits)),
        ("Left", money(left, digits), money(left + amount, digits)),
    ]
    seconds = row.settings.get("pace_seconds")
    if seconds is not None:
        a_day, then = (each * min(DAY / seconds, 1.0) for each in (budget, budget + amount))
        changes.append(("Plan", f"{money(a_day, digits)} a day", f"{money(then, digits)} a day, at once"))
    if row.account.status != "active":
        changes.append(("Status", f"stays {row.account.status}: money alone does not start it again", ""))
    return changes


def _held(row: Campaign) -> str:
    return money(to_units(row.account.held + row.account.leased), digits_for(to_units(row.account.budget)))


def _paused(row: Campaign, arms: list[ArmRow], fields: Fields) -> list[Change]:
    return [
        ("Status", _word(row), "paused"),
        ("Decisions", "none until somebody resumes, on every server at once", ""),
        ("Open holds", f"{_held(row)} stays held; feedback is taken, and holds expire", ""),
    ]


def _resumed(row: Campaign, arms: list[ArmRow], fields: Fields) -> list[Change]:
    changes: list[Change] = [("Status", _word(row), "running"), ("Decisions", "are made again at once", "")]
    if row.account.overrun:
        above = money(to_units(row.account.overrun), digits_for(to_units(row.account.budget)))
        changes.append(
            ("Overrun", f"{above} above caps stays booked apart; another cost above a cap freezes again", "")
        )
    return changes


def _closed(row: Campaign, arms: list[ArmRow], fields: Fields) -> list[Change]:
    return [
        ("Status", _word(row), "closed for good"),
        ("Decisions", "none, ever; nobody can resume it", ""),
        ("Open holds", f"{_held(row)} stays held until it is told of or expires", ""),
    ]


def _added(row: Campaign, arms: list[ArmRow], fields: Fields) -> list[Change]:
    name, cap = fields.get("name", "").strip(), number(fields, "cap", "cap")
    most = to_units(row.settings["cost_max"])
    if not name or cap <= 0:
        raise BadParameter("an arm needs a name and a cap above 0; the cap is the most that one pull can cost")
    if cap > most:
        raise BadParameter(f"cap is {cap:g}, and no arm of this campaign may cost more than {most:g}; lower it")
    active = sum(arm.active for arm in arms)
    return [
        ("Arms", f"{active:,}", f"{active + 1:,}"),
        ("Each decision for it", f"holds {money(cap, 4)}, and a cost above that freezes the campaign", ""),
        ("From when", "the next decision on; nothing is known of it, so it will be tried", ""),
    ]


def _retired(row: Campaign, arms: list[ArmRow], fields: Fields) -> list[Change]:
    active = sum(arm.active for arm in arms)
    return [
        ("Arms", f"{active:,}", f"{active - 1:,}"),
        ("Arm", f"{fields.get('arm', '')} is not chosen any more, until somebody brings it back", ""),
        ("Open holds", "of it can still be told of", ""),
    ]


def _brought_back(row: Campaign, arms: list[ArmRow], fields: Fields) -> list[Change]:
    active = sum(arm.active for arm in arms)
    return [
        ("Arms", f"{active:,}", f"{active + 1:,}"),
        ("Arm", f"{fields.get('arm', '')} can be chosen again at once, with all that is known of it", ""),
    ]


def _word(row: Campaign) -> str:
    return "running" if row.account.status == "active" else row.account.status


def _says(text: str) -> Callable[[Fields], str]:
    return lambda fields: text


ACTIONS: dict[str, Action] = {
    "top-up": Action(
        "Top up", lambda fields: f"Top up{_amount(fields)}", _topped_up,
        lambda campaigns, id, fields, key, by: campaigns.top_up(id, number(fields, "amount", "amount"), key, by),
        (Field("amount", "Amount", "What the budget is raised by.", "decimal"),),
    ),
    "pause": Action(
        "Pause", _says("Pause"), _paused,
        lambda campaigns, id, fields, key, by: campaigns.set_status(id, "paused", key, by),
    ),
    "resume": Action(
        "Resume", _says("Resume"), _resumed,
        lambda campaigns, id, fields, key, by: campaigns.set_status(id, "active", key, by),
    ),
    "close": Action(
        "Close", _says("Close for good"), _closed,
        lambda campaigns, id, fields, key, by: campaigns.set_status(id, "closed", key, by), dangerous=True,
    ),
    "add-arm": Action(
        "Add an arm to", _says("Add the arm"), _added,
        lambda campaigns, id, fields, key, by: campaigns.add_arm(
            id, fields.get("name", "").strip(), number(fields, "cap", "cap"), key, by
        ),
        (Field("name", "Name"), Field("cap", "Cap", "The most that one pull of it can cost.", "decimal")),
    ),
    "retire-arm": Action(
        "Retire an arm of", lambda fields: f"Retire {fields.get('arm', '')}", _retired,
        lambda campaigns, id, fields, key, by: campaigns.retire_arm(id, fields.get("arm", ""), key, by),
    ),
    "bring-back-arm": Action(
        "Bring back an arm of", lambda fields: f"Bring back {fields.get('arm', '')}", _brought_back,
        lambda campaigns, id, fields, key, by: campaigns.bring_back_arm(id, fields.get("arm", ""), key, by),
    ),
    "change-terms": Action(
        "Change the terms of", _says("Change the terms"), terms_changed,
        lambda campaigns, id, fields, key, by: campaigns.change_terms(id, terms_wanted(fields), key, by),
        FIELDS, filled=terms_now,
    ),
}  # fmt: skip


@dataclass(frozen=True)
class Preview:
    """What would happen, or why it cannot."""

    does: str
    changes: list[Change]
    problem: str = ""


def preview(action: Action, row: Campaign, arms: list[ArmRow], fields: Fields) -> Preview:
    empty = any(not fields.get(field.name, "").strip() for field in action.fields if not field.optional)
    if empty:
        return Preview(action.does(fields), [])
    try:
        return Preview(action.does(fields), action.changes(row, arms, fields))
    except BudgetBanditsError as error:
        return Preview(action.does(fields), [], str(error))


def new_key() -> str:
    """An idempotency key: a form that is sent twice changes nothing twice."""
    return f"page {uuid.uuid4().hex}"


def planned(fields: Fields) -> dict[str, Any]:
    """The form of a new campaign as what `Campaigns.create` takes."""
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
    for name, label, unit in (
        ("daily_cap", "daily cap", 1.0), ("pace_seconds", "days", DAY), ("hold_seconds", "minutes", 60.0),
        ("reward_max", "largest reward", 1.0), ("horizon", "requests expected", 1.0),
        ("propensity_draws", "draws for propensities", 1.0),
    ):  # fmt: skip
        if fields.get(name, "").strip():
            given[name] = number(fields, name, label) * unit
    if fields.get("currency", "").strip():
        given["currency"] = fields["currency"].strip()
    return given


def consequences(given: Mapping[str, Any]) -> list[Change]:
    """What a new campaign will do, in numbers."""
    budget, caps = given["budget"], given["arms"].values()
    digits = digits_for(budget)
    changes: list[Change] = [
        ("Decisions", f"{budget / max(caps):,.0f} at least, if every pull cost the largest cap", ""),
        ("Each decision", f"holds {money(min(caps), digits)} to {money(max(caps), digits)} until its cost is told", ""),
    ]
    if "pace_seconds" in given:
        a_day = money(budget * min(DAY / given["pace_seconds"], 1.0), digits)
        changes.append(("Plan", f"{a_day} a day; decisions that are ahead of it wait", ""))
    if "daily_cap" in given:
        changes.append(("A day", f"{money(given['daily_cap'], digits)} at most, by UTC", ""))
    if "horizon" in given:
        changes.append(
            ("A request", f"{money(budget / given['horizon'], 6)} on average, if all that are expected come", "")
        )
    seconds = given.get("hold_seconds", 3600.0)
    what = "free again" if given["on_expire"] == "release" else "charged, until feedback corrects it"
    changes.append(("Without feedback", f"for {seconds / 60:,.3g} minutes, a hold is {what}", ""))
    return changes
