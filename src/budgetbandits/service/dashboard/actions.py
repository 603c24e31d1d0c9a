"""What operators do from the pages. Each action is shown before it is done: what it changes, and who is recorded.

What would be refused is said there, too, by the same rules (`arm_changes`, `ledger`), and has no button.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from budgetbandits.errors import BudgetBanditsError, Conflict
from budgetbandits.service import ledger
from budgetbandits.service.arm_changes import arm_to_bring_back, arm_to_retire, check_new_arm, check_not_closed
from budgetbandits.service.campaigns import Campaigns
from budgetbandits.service.dashboard.fields import Change, Field, Fields, booked, in_labels, number
from budgetbandits.service.dashboard.numbers import Unit
from budgetbandits.service.dashboard.term_form import FIELDS, terms_changed, terms_now, terms_wanted
from budgetbandits.service.ledger import to_micros, to_units
from budgetbandits.service.names import checked_name, normal
from budgetbandits.service.new_campaign import checked_cap
from budgetbandits.service.stores.records import ArmRow, Campaign
from budgetbandits.times import DAY


@dataclass(frozen=True)
class Action:
    """``does`` is what the button says; ``changes`` what will be different, or the error that it would be refused with;
    ``run`` does it, under a key, for somebody."""

    title: str
    does: Callable[[Campaign, Fields], str]
    changes: Callable[[Campaign, list[ArmRow], Fields], list[Change]]
    run: Callable[[Campaigns, str, Fields, str, str], None]
    fields: tuple[Field, ...] = ()
    dangerous: bool = False
    final: bool = False
    """Whether it cannot be undone."""
    filled: Callable[[Campaign], Fields] = lambda row: {}
    """What the fields hold at first."""


def _unit(row: Campaign, *amounts: float) -> Unit:
    return Unit.of(to_units(row.account.budget), row.settings, *amounts)


def _does_top_up(row: Campaign, fields: Fields) -> str:
    try:
        amount = booked(fields, "amount", "amount")
    except BudgetBanditsError:
        return "Top up"
    return f"Top up {_unit(row, amount).money(amount)}"


def _topped_up(row: Campaign, arms: list[ArmRow], fields: Fields) -> list[Change]:
    amount, budget, left = booked(fields, "amount", "amount"), row.account.budget, row.account.left
    after = ledger.top_up(row.account, to_micros(amount, "amount"))
    unit = _unit(row, amount)

    def moves(what: str, before: int, then: int) -> Change:
        return what, unit.money(to_units(before)), unit.money(to_units(then))

    changes = [moves("Budget", budget, after.budget), moves("Left", left, after.left)]
    seconds = row.settings.get("pace_seconds")
    if seconds is not None:
        a_day, then = (to_units(each) * min(DAY / seconds, 1.0) for each in (budget, after.budget))
        changes.append(("Plan", f"{unit.money(a_day)} a day", f"{unit.money(then)} a day, at once"))
    if row.account.status != "active":
        changes.append(("Status", f"stays {row.account.status}: money alone does not start it again", ""))
    return changes


def _held(row: Campaign) -> str:
    return _unit(row).money(to_units(row.account.held + row.account.leased))


def _paused(row: Campaign, arms: list[ArmRow], fields: Fields) -> list[Change]:
    if row.account.status == "paused":
        raise Conflict(f"campaign {row.name!r} is paused already; there is nothing to do")
    return [
        ("Status", _word(row), "paused"),
        ("Decisions", "none until somebody resumes, on every server at once", ""),
        ("Open holds", f"{_held(row)} stays held; feedback is taken, and holds expire", ""),
    ]


def _resumed(row: Campaign, arms: list[ArmRow], fields: Fields) -> list[Change]:
    if row.account.status == "active":
        raise Conflict(f"campaign {row.name!r} runs already; there is nothing to do")
    least, unit = to_units(min(arm.cost_cap for arm in arms if arm.active)), _unit(row)
    left, said = to_units(row.account.left), "are made again at once"
    if left < least:
        said = f"none until there is money: {unit.money(left)} is left, the smallest cap is {unit.money(least)}"
    changes: list[Change] = [("Status", _word(row), "running"), ("Decisions", said, "")]
    if row.account.overrun:
        above = unit.money(to_units(row.account.overrun))
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
    name, cap = checked_name("name", fields.get("name", "").strip()), booked(fields, "cap", "cap")
    check_new_arm(row, [arm.name for arm in arms], name, checked_cap(name, cap))
    return [
        ("Arms", *_counts(arms, 1)),
        ("Each decision for it", f"holds {_unit(row, cap).money(cap)}, and a cost above that freezes the campaign", ""),
        ("From when", "the next decision on; nothing is known of it, so it will be tried", ""),
    ]


def _retired(row: Campaign, arms: list[ArmRow], fields: Fields) -> list[Change]:
    name = normal(fields.get("arm", ""))
    arm_to_retire([arm.name for arm in arms], [arm.active for arm in arms], name)
    return [
        ("Arms", *_counts(arms, -1)),
        ("Arm", f"{name} is not chosen any more, until somebody brings it back", ""),
        ("Open holds", "of it can still be told of", ""),
    ]


def _brought_back(row: Campaign, arms: list[ArmRow], fields: Fields) -> list[Change]:
    name = normal(fields.get("arm", ""))
    arm_to_bring_back([arm.name for arm in arms], [arm.active for arm in arms], name)
    return [
        ("Arms", *_counts(arms, 1)),
        ("Arm", f"{name} can be chosen again at once, with all that is known of it", ""),
    ]


def _counts(arms: list[ArmRow], more: int) -> tuple[str, str]:
    active = sum(arm.active for arm in arms)
    return f"{active:,}", f"{active + more:,}"


def _word(row: Campaign) -> str:
    return "running" if row.account.status == "active" else row.account.status


def _says(text: str, field: str = "") -> Callable[[Campaign, Fields], str]:
    """A button's words, with what a field holds after them."""
    return lambda row, fields: f"{text} {fields.get(field, '')}".rstrip()


_ARM = (Field("arm", "Arm", "Its name."),)
ACTIONS: dict[str, Action] = {
    "top-up": Action(
        "Top up", _does_top_up, _topped_up,
        lambda campaigns, id, fields, key, by: campaigns.top_up(id, number(fields, "amount", "amount"), key, by),
        (Field("amount", "Amount", "What the budget is raised by.", "decimal"),), final=True,
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
        lambda campaigns, id, fields, key, by: campaigns.set_status(id, "closed", key, by), dangerous=True, final=True,
    ),
    "add-arm": Action(
        "Add an arm to", _says("Add the arm", "name"), _added,
        lambda campaigns, id, fields, key, by: campaigns.add_arm(
            id, fields.get("name", "").strip(), number(fields, "cap", "cap"), key, by
        ),
        (Field("name", "Name"), Field("cap", "Cap", "The most that one pull of it can cost.", "decimal")),
    ),
    "retire-arm": Action(
        "Retire an arm of", _says("Retire", "arm"), _retired,
        lambda campaigns, id, fields, key, by: campaigns.retire_arm(id, fields.get("arm", ""), key, by), _ARM,
    ),
    "bring-back-arm": Action(
        "Bring back an arm of", _says("Bring back", "arm"), _brought_back,
        lambda campaigns, id, fields, key, by: campaigns.bring_back_arm(id, fields.get("arm", ""), key, by), _ARM,
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
    fixable: bool = False
    """Whether something else in the fields may help."""
    dangerous: bool = False
    final: bool = False

    def as_json(self) -> dict[str, Any]:
        return {
            "does": self.does, "problem": self.problem or None,
            "changes": [{"what": what, "now": now, "then": then or None} for what, now, then in self.changes],
        }  # fmt: skip


def preview(action: Action, row: Campaign, arms: list[ArmRow], fields: Fields) -> Preview:
    does = action.does(row, fields)
    try:
        check_not_closed(row)
    except BudgetBanditsError as error:
        return Preview(does, [], str(error))
    if any(not fields.get(field.name, "").strip() for field in action.fields if not field.optional):
        return Preview(does, [], dangerous=action.dangerous)
    try:
        changes = action.changes(row, arms, fields)
        return Preview(does, changes, dangerous=action.dangerous, final=action.final)
    except BudgetBanditsError as error:
        return Preview(does, [], in_labels(str(error)), fixable=bool(action.fields))


def new_key() -> str:
    """An idempotency key: a form that is sent twice changes nothing twice."""
    return f"page {uuid.uuid4().hex}"
