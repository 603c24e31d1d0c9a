"""The changes that each action will make, in words, from a snapshot of the campaign; or the error that refuses it.

The rules are the service's own (`campaign_checks`, `ledger`, `leases`), so the preview says what happens.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any

from budgetbandits.errors import Conflict, HoldRefused, WrongClock
from budgetbandits.formatting.datetimes import DAY, wait
from budgetbandits.formatting.money import MoneyFormat
from budgetbandits.formatting.numbers import listed
from budgetbandits.service import ledger
from budgetbandits.service.campaign_checks import (
    arm_to_bring_back,
    arm_to_retire,
    check_new_arm,
    checked_cap,
    spent_since_refused,
)
from budgetbandits.service.dashboard.actions.fields import Change
from budgetbandits.service.funds import affordable_arms, time_of_decision, within_limits
from budgetbandits.service.leases.lending import all_given_back
from budgetbandits.service.ledger import Account, Limits, to_micros, to_units
from budgetbandits.service.session_rows import read_session
from budgetbandits.service.shared_budgets.members import check_move
from budgetbandits.service.shared_budgets.rules import SharedBudget, charged
from budgetbandits.service.stores.contract import Transaction, find_campaign
from budgetbandits.service.stores.records import ArmRow, Campaign, Lease


@dataclass(frozen=True)
class CampaignSnapshot:
    """A campaign with its arms and leases, and its shared budget if it has one, read in one transaction."""

    row: Campaign
    arms: list[ArmRow]
    leases: list[Lease]
    now: float
    shared: SharedBudget | None
    check_move: Callable[[Campaign, Campaign], None]
    """Refuse to let it leave or join a shared budget as `members.move` would; in the same transaction."""

    @classmethod
    def of(cls, tx: Transaction, campaign: str) -> CampaignSnapshot:
        """The snapshot of a campaign."""
        row, now = find_campaign(tx, campaign), tx.now()
        leases = tx.leases(row.id) if row.settings.lease is not None else []
        return cls(row, tx.arms(row.id), leases, now, tx.shared_of(row), partial(check_move, tx, now=now))

    @property
    def account(self) -> Account:
        """The account of the campaign."""
        return self.row.account

    @cached_property
    def recalled(self) -> Account:
        """Its money when all leases have ended, in the period of now: every change by an operator begins with that."""
        return self.row.settings.renewed(self.given_back, self.now) or self.given_back

    @property
    def given_back(self) -> Account:
        """Its money when all leases have ended."""
        return all_given_back(self.account, [lease.account for lease in self.leases])

    @property
    def word(self) -> str:
        """The status in a word."""
        return "running" if self.account.status == "active" else self.account.status

    @property
    def state(self) -> list[Any]:
        """Everything that a confirmation relies on. Decisions and feedback do not change it, except by a freeze."""
        arms = [(arm.name, arm.cost_cap, arm.active) for arm in self.arms]
        account = self.account
        return [self.row.id, account.status, account.budget, account.overrun, self.row.settings.to_dict(), arms]

    @property
    def state_code(self) -> str:
        """A code for each part of the state. A form keeps it, to notice changes while it is open."""
        return "-".join(
            hashlib.sha256(json.dumps(part, sort_keys=True).encode()).hexdigest()[:12] for part in self._parts
        )

    @property
    def _parts(self) -> list[Any]:
        _, status, budget, overrun, settings, arms = self.state
        return [[status, overrun], budget, settings, arms]

    def changed_since(self, code: str) -> str:
        """A sentence about what has changed since a form got this code; empty if nothing has, or without a code."""
        names = ("the status", "the budget", "the terms", "the arms")
        pairs = zip(names, code.split("-"), self.state_code.split("-"), strict=False)
        changed = [name for name, then, now in pairs if then != now] if code else []
        if not changed:
            return ""
        what = f"{listed(changed)} of the campaign {'has' if changed in (['the status'], ['the budget']) else 'have'}"
        return f"{what} changed since this form was opened; open it again to see the campaign as it is"

    def unit(self, *amounts: float) -> MoneyFormat:
        """How amounts are written here, with the decimals that these need."""
        return MoneyFormat.for_budget(to_units(self.account.budget), self.row.settings.terms.currency, *amounts)

    def money(self, *micros: int) -> list[str]:
        """Amounts of the books, all with the decimals that any of them needs."""
        amounts = [to_units(amount) for amount in micros]
        unit = self.unit(*amounts)
        return [unit.money(amount) for amount in amounts]


def topped_up(subject: CampaignSnapshot, amount: float) -> list[Change]:
    """The changes of a top-up."""
    micros, before = to_micros(amount, "amount"), subject.account
    after, unit = ledger.top_up(subject.recalled, micros), subject.unit(to_units(micros))

    def moves(label: str, old: int, new: int) -> Change:
        return label, unit.money(to_units(old)), unit.money(to_units(new))

    changes = [moves("Budget", before.budget, after.budget), moves("Left", before.left, after.left)]
    seconds = subject.row.settings.terms.pace_seconds
    if seconds is not None:
        part = min(DAY / seconds, 1.0)
        a_day, more = (to_units(account_at.budget) * part for account_at in (before, after))
        if unit.money(a_day) == unit.money(more):
            unit = replace(unit, digits=6)
        changes.append(("Plan", f"{unit.money(a_day)} a day", f"{unit.money(more)} a day, at once"))
    if before.status != "active":
        changes.append(("Status", f"stays {before.status}: money alone does not start it again", ""))
    return changes


def paused(subject: CampaignSnapshot, _: Any) -> list[Change]:
    """The changes of a pause."""
    if subject.account.status == "paused":
        raise Conflict(f"campaign {subject.row.name!r} is paused already; there is nothing to do")
    return [
        ("Status", subject.word, "paused"),
        ("Decisions", "none until the campaign is resumed, on every server at once", ""),
        ("Open holds", f"{_held(subject)} stays held; feedback is taken, and holds expire", ""),
    ]


def resumed(subject: CampaignSnapshot, spent_since: float | None) -> list[Change]:
    """``spent_since`` the copy, of a campaign that was restored from one."""
    changes = list[Change]()
    if spent_since is not None:
        subject, changes = _booked(subject, to_micros(spent_since, "spent since the copy"))
    elif subject.account.status == "active":
        raise Conflict(f"campaign {subject.row.name!r} runs already; there is nothing to do")
    changes += [("Status", subject.word, "running"), ("Decisions", _decisions_then(subject), "")]
    if subject.account.overrun:
        [above] = subject.money(subject.account.overrun)
        word = "stays" if spent_since is None else "is"
        changes.append(("Overrun", f"{above} {word} booked apart; another overrun freezes again", ""))
    return changes


def _booked(subject: CampaignSnapshot, micros: int) -> tuple[CampaignSnapshot, list[Change]]:
    """A campaign with what it has spent since a copy on its books, and what that changes."""
    row, shared, before = subject.row, subject.shared, subject.recalled
    if row.settings.restored_from is None:
        raise spent_since_refused(row)
    left = None
    if shared is not None:
        shared = shared.moved(row.account, before)
        shared = shared.renewed(subject.now) or shared
        left = shared.account.left
    after = charged(before, micros, left)
    if shared is not None:
        others = tuple(member for member in shared.settings.unreported if member != row.id)
        shared = replace(shared.moved(before, after), settings=replace(shared.settings, unreported=others))
    spent, more, left_now, less = subject.money(before.spent, after.spent, before.left, after.left)
    changes = [("Spent", spent, more), ("Left", left_now, less)]
    return replace(subject, row=row.with_money(after), leases=[], shared=shared), changes


def _decisions_then(subject: CampaignSnapshot) -> str:
    """Whether the next request is decided once the campaign runs: a request for all arms that holds a cap."""
    row, account = subject.row, replace(subject.given_back, status="active")
    limits = row.settings.limits(row.created_at)
    session = read_session(row, subject.arms)  # one of its own, to ask and to forget
    try:
        now = time_of_decision(row, subject.shared, subject.now)
        account = row.settings.renewed(account, now) or account
        short = _short_of_shared(subject, account, session.smallest_cap, now)
        if short:
            return f"none for now: {short}"
        offer = affordable_arms(session, row.with_money(account), now)
    except WrongClock as wrong:
        return f"none for now: {wrong}"
    except HoldRefused:
        least = session.smallest_cap
        left, cap, held = subject.money(account.left, least, account.held)
        until = f"until there is money, or holds of {held} end" if account.held else "until there is money"
        text = f"none {until}: {left} is left, the smallest cap is {cap}"
        return text + _but_for("with smaller holds of their own", account, now, limits)
    try:
        offer, _ = within_limits(session, offer, row, account, now)
    except HoldRefused as refused:
        time, text = f"about {wait(refused.retry_after or 0.0)}", "the campaign is ahead of its plan"
        if refused.reason == "daily_cap":
            cap, needed = subject.money(limits.daily_cap or 0, offer.largest_hold)
            time, text = (
                f"{time}, until the next day by {limits.zone or 'UTC'}",
                f"what is left of the daily cap of {cap} is below {needed}",
            )
        others = _but_for("for cheaper arms or with smaller holds of their own", account, now, limits)
        return f"none for {time}: {text}{others}"
    if session.choose(offer, account) is None:
        return f"none: {row.policy} stops here, because it can afford no arm, or its horizon is over"
    return "are made again at once"


def _short_of_shared(subject: CampaignSnapshot, account: Account, least: int, now: float) -> str:
    """Why the shared budget would refuse a hold of the smallest cap; empty if it would not, or there is none."""
    if subject.shared is None:
        return ""
    shared = subject.shared.moved(subject.account, account)  # leases end first
    shared = shared.renewed(now) or shared
    try:
        shared.check_open()
        if shared.account.left < min(least, account.left):
            shared.refuse(least, now)
    except HoldRefused as refused:
        return str(refused)
    return ""


def _but_for(which: str, account: Account, now: float, limits: Limits) -> str:
    """A remark that some requests are still decided; empty if not even the smallest possible hold would be granted."""
    try:
        ledger.place(account, 1, now, limits)
    except HoldRefused:
        return ""
    return f"; only requests {which} may be decided before"


def closed(subject: CampaignSnapshot, _: Any) -> list[Change]:
    """The changes of closing."""
    if subject.shared is not None and subject.row.settings.restored_from is not None:
        raise spent_since_refused(subject.row)
    return [
        ("Status", subject.word, "closed for good"),
        ("Decisions", "none, ever; nobody can resume it", ""),
        ("Open holds", f"{_held(subject)} stays held until feedback comes or it expires", ""),
    ]


def _held(subject: CampaignSnapshot) -> str:
    return subject.money(subject.given_back.held)[0]


def added(subject: CampaignSnapshot, arm: tuple[str, float]) -> list[Change]:
    """The changes of adding an arm."""
    name, cap = arm
    micros = checked_cap(name, cap)
    check_new_arm(subject.row, [arm.name for arm in subject.arms], name, micros)
    [held] = subject.money(micros)
    return [
        ("Arms", *_counts(subject, 1)),
        ("Each decision for it", f"holds {held}, and a cost above that freezes the campaign", ""),
        ("From when", "the next decision on; nothing is known of it, so it will be tried", ""),
    ]


def retired(subject: CampaignSnapshot, name: str) -> list[Change]:
    """The changes of retiring an arm."""
    arm_to_retire(*_names(subject), name)
    return [
        ("Arms", *_counts(subject, -1)),
        ("Arm", f"{name} is not chosen any more, until it is brought back", ""),
        ("Open holds", "of it still take feedback", ""),
    ]


def brought_back(subject: CampaignSnapshot, name: str) -> list[Change]:
    """The changes of bringing back an arm."""
    arm_to_bring_back(*_names(subject), name)
    return [
        ("Arms", *_counts(subject, 1)),
        ("Arm", f"{name} can be chosen again from the next decision on, with all that is known of it", ""),
    ]


def leases_ended(subject: CampaignSnapshot) -> list[Change]:
    """The money of all leases comes back before anything else changes; no line if there are no leases."""
    leases = [lease.account for lease in subject.leases]
    if not leases:
        return []
    parts = (sum(getattr(lease, part) for lease in leases) for part in ("budget", "spent", "held", "left"))
    leased, spent, held, free = (subject.unit().money(to_units(part)) for part in parts)
    return [("Leases", f"all {leased} under leases comes back: {spent} spent, {held} held, {free} free", "")]


def _names(subject: CampaignSnapshot) -> tuple[list[str], list[bool]]:
    return [arm.name for arm in subject.arms], [arm.active for arm in subject.arms]


def _counts(subject: CampaignSnapshot, more: int) -> tuple[str, str]:
    active = sum(arm.active for arm in subject.arms)
    return f"{active:,}", f"{active + more:,}"
