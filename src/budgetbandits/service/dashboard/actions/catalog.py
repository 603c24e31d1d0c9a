"""The actions of an operator on a campaign. Each is previewed before it is done.

An action that would be refused says so in its preview, by the same rules, and has no button.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from budgetbandits.errors import BudgetBanditsError
from budgetbandits.formatting.datetimes import utc_minute
from budgetbandits.service.campaign_checks import check_not_closed
from budgetbandits.service.campaigns import Campaigns
from budgetbandits.service.dashboard.actions import consequences
from budgetbandits.service.dashboard.actions.consequences import CampaignSnapshot
from budgetbandits.service.dashboard.actions.fields import Change, Field, Fields, number
from budgetbandits.service.dashboard.actions.flow import Preview
from budgetbandits.service.dashboard.actions.terms import (
    FIELDS,
    cap_changed,
    terms_changed,
    terms_now,
    terms_shown,
    terms_wanted,
)
from budgetbandits.service.ledger import to_micros
from budgetbandits.service.names import checked_name, normal
from budgetbandits.service.stores.records import Campaign

SPENT_SINCE = "spent_since"
"""The field of what a campaign has spent since the copy that it was restored from."""


@dataclass(frozen=True)
class Action:
    """Something that is done with what the fields of a form hold: read once, then said, confirmed and done."""

    title: str
    read: Callable[[Fields], Any]
    """Reader of the form's values, as JSON can write them."""
    button: str
    """Its text, with the value that was read."""
    changes: Callable[[CampaignSnapshot, Any], list[Change]]
    """Changes that the action will make, or the error that it would be refused with."""
    run: Callable[[Campaigns, str, Any, str, str], None]
    """Do it: the campaign's id, the value that was read, an idempotency key, and who does it."""
    fields: tuple[Field, ...] = ()
    dangerous: bool = False
    final: bool = False
    """Whether it cannot be undone."""
    filled: Callable[[Campaign], Fields] = lambda row: {}
    """Initial values of the fields."""
    shown: Callable[[Campaign, Fields], Fields] = lambda row, fields: fields
    """Values of the fields whenever the form is shown again, with those that were typed."""

    def preview(self, subject: CampaignSnapshot, fields: Fields, in_full: bool = True) -> Preview:
        """A preview of the action. Without ``in_full`` it stays empty until every needed field is filled."""
        try:
            check_not_closed(subject.row)
        except BudgetBanditsError as error:
            return Preview(self.title, [], error)
        needed = [field for field in self.fields if not field.optional]
        if not in_full and any(not fields.get(field.name, "").strip() for field in needed):
            return Preview(self.title, [])
        try:
            wanted = self.read(fields)
            if not in_full and wanted == {}:
                return Preview(self.title, [])
            changes = self.changes(subject, wanted) + consequences.leases_ended(subject)
        except BudgetBanditsError as error:
            names = tuple(field.name for field in self.fields)
            return Preview(self.title, [], error, fixable=bool(self.fields), fields=names)
        value = subject.money(to_micros(wanted, "amount"))[0] if isinstance(wanted, float) else wanted
        return Preview(
            self.button.format(value), changes, relies_on=[self.title, wanted, subject.state],
            dangerous=self.dangerous, final=self.final,
        )  # fmt: skip


def _new_arm(fields: Fields) -> tuple[str, float]:
    return checked_name("name", fields.get("name", "").strip()), number(fields, "cap", "cap")


def _arm(fields: Fields) -> str:
    return normal(fields.get("arm", "").strip())


def _cap(fields: Fields) -> tuple[str, float]:
    return _arm(fields), number(fields, "cap", "cap")


def _nothing(fields: Fields) -> None:
    """These fields hold nothing."""


def _resume_after_restore(row: Campaign) -> Action:
    """Resume a campaign with what was spent since the copy that it was restored from."""
    copied_at = row.settings.restored_from
    copy = "the copy" if copied_at is None else f"the copy of {utc_minute(copied_at)}"
    help = (
        f"What it has spent since {copy} was made, by providers' bills or workers' logs; 0 if nothing. Leave out "
        "decisions that are still open: they take feedback, or expire."
    )
    return Action(
        "Resume", lambda fields: number(fields, SPENT_SINCE, "spent since the copy"), "Book {} as spent and resume",
        consequences.resumed,
        lambda campaigns, id, amount, key, actor: campaigns.set_status(id, "active", key, actor, amount),
        (Field(SPENT_SINCE, "Spent since the copy", help, "decimal"),), final=True,
    )  # fmt: skip


def action_on(row: Campaign, name: str, form: Fields) -> Action:
    """One of `ACTIONS`, with the fields that it needs for this campaign. A button that is pressed twice sends the
    amount of a campaign that does not wait for it any more."""
    if name == "resume" and (row.settings.restored_from is not None or SPENT_SINCE in form):
        return _resume_after_restore(row)
    return ACTIONS[name]


_ARM = (Field("arm", "Arm", "Its name."),)
_MOST = Field("cap", "Cap", "The most that one pull of it can cost.", "decimal")
ACTIONS: dict[str, Action] = {
    "top-up": Action(
        "Top up", lambda fields: number(fields, "amount", "amount"), "Top up {}", consequences.topped_up,
        lambda campaigns, id, amount, key, actor: campaigns.top_up(id, amount, key, actor),
        (Field("amount", "Amount", "What the budget is raised by.", "decimal"),), final=True,
    ),
    "pause": Action(
        "Pause", _nothing, "Pause", consequences.paused,
        lambda campaigns, id, _, key, actor: campaigns.set_status(id, "paused", key, actor),
    ),
    "resume": Action(
        "Resume", _nothing, "Resume", consequences.resumed,
        lambda campaigns, id, _, key, actor: campaigns.set_status(id, "active", key, actor),
    ),
    "close": Action(
        "Close", _nothing, "Close for good", consequences.closed,
        lambda campaigns, id, _, key, actor: campaigns.set_status(id, "closed", key, actor), dangerous=True, final=True,
    ),
    "add-arm": Action(
        "Add an arm to", _new_arm, "Add the arm {0[0]}", consequences.added,
        lambda campaigns, id, arm, key, actor: campaigns.add_arm(id, arm[0], arm[1], key, actor),
        (Field("name", "Name"), _MOST),
    ),
    "change-cap": Action(
        "Change a cap of", _cap, "Change the cap of {0[0]}", cap_changed,
        lambda campaigns, id, arm, key, actor: campaigns.change_terms(id, {"caps": dict([arm])}, key, actor),
        (*_ARM, _MOST),
    ),
    "retire-arm": Action(
        "Retire an arm of", _arm, "Retire {}", consequences.retired,
        lambda campaigns, id, arm, key, actor: campaigns.retire_arm(id, arm, key, actor), _ARM,
    ),
    "bring-back-arm": Action(
        "Bring back an arm of", _arm, "Bring back {}", consequences.brought_back,
        lambda campaigns, id, arm, key, actor: campaigns.bring_back_arm(id, arm, key, actor), _ARM,
    ),
    "change-terms": Action(
        "Change the terms of", terms_wanted, "Change the terms", terms_changed,
        lambda campaigns, id, terms, key, actor: campaigns.change_terms(id, terms, key, actor), FIELDS,
        filled=terms_now, shown=terms_shown,
    ),
}  # fmt: skip
