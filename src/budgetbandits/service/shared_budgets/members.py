"""Members of shared budgets, in transactions: what they may take, how they join and leave.

A transaction that reads a campaign to change it locks its shared budget as well (`stores.contract`): the campaign
first, then the shared budget, and never two campaigns. So nobody waits in a circle, and the events of all members that
move money are numbered in the order of their commits.

A shared budget has events of its own, next to those of campaigns, by `SharedBudget.event_key`: created, terms
changed, renewed, lapsed and clock reset, with by how much its budget changed; joined and left, which name the campaign,
with what it had spent.
"""

from __future__ import annotations

from dataclasses import replace

from pydantic_core import from_json, to_json

from budgetbandits.answers import SharedEventKind
from budgetbandits.errors import BadParameter, Conflict, NotFound
from budgetbandits.service import ledger
from budgetbandits.service.grants import read_grants
from budgetbandits.service.ledger import Account
from budgetbandits.service.shared_budgets.rules import SharedBudget, capped
from budgetbandits.service.stores.contract import Transaction
from budgetbandits.service.stores.records import Campaign, Event


def shared_left(tx: Transaction, row: Campaign) -> int | None:
    """The money that the shared budget has left, if that is less than the campaign's own; None for most campaigns."""
    shared = tx.shared_of(row)
    return None if shared is None or shared.account.left >= row.account.left else shared.account.left


def spendable(tx: Transaction, row: Campaign) -> Account:
    """A campaign's account with no more left than its shared budget has."""
    return capped(row.account, shared_left(tx, row))


def shared_for_deciding(tx: Transaction, row: Campaign, now: float) -> SharedBudget | None:
    """The shared budget of a campaign that is to decide: open, and renewed if a new period has begun."""
    shared = tx.shared_of(row)
    if shared is None:
        return None
    shared.check_open()
    return in_period(tx, shared, now)


def in_period(tx: Transaction, shared: SharedBudget, now: float) -> SharedBudget:
    """A shared budget that is to be changed, in the period that has begun, if one has since its latest."""
    name = repr(shared.name)
    reset = f"shared-budget reset-clock {name}"
    ledger.check_clock(shared.account.period, now, f"the latest period of the shared budget {name}", reset)
    renewed = shared.renewed(now)
    if renewed is None:
        return shared
    tx.save_shared_budget(renewed)
    grant = shared.settings.grant(shared.account, renewed.account)
    tx.add_event(Event(shared.event_key, "renewed", now, amount=grant.amount, request=grant.to_json()))
    return renewed


def lapse(tx: Transaction, before: Campaign, account: Account, now: float, created_at: float) -> None:
    """Take back from the shared budget what a decision of that time has just given back, if it is of an earlier period
    and lapses with it, or was granted too early; ``account`` is the campaign's money after that."""
    freed = before.account.taken - account.taken
    shared = tx.shared_of(before) if freed > 0 else None
    if shared is None:
        return
    reduced = shared.settings.given_back(shared.account, freed, created_at, now)
    if reduced is shared.account:
        return
    tx.save_shared_budget(shared.with_money(reduced))
    facts, lapsed = to_json({"advance": reduced.advance}).decode(), reduced.budget - shared.account.budget
    tx.add_event(Event(shared.event_key, "lapsed", now, amount=lapsed, request=facts))


def join(tx: Transaction, name: str, row: Campaign, now: float, actor: str | None) -> None:
    """Let a campaign take its money from this shared budget as well, from now on; its settings say so already."""
    shared = in_period(tx, _to_join(tx, name, row), now)
    tx.save_shared_budget(_joined(tx, shared, row))
    _note(tx, shared, "joined", row, now, actor)


def check_join(tx: Transaction, name: str, row: Campaign, now: float) -> None:
    """Refuse what `join` would refuse."""
    shared = _to_join(tx, name, row)
    _joined(tx, shared.renewed(now) or shared, row)


def _to_join(tx: Transaction, name: str, row: Campaign) -> SharedBudget:
    shared = tx.shared_budget(name)
    if shared is None:
        raise NotFound(f"no shared budget {name!r:.60}; create it first: budgetbandits shared-budget create")
    ours, theirs = row.settings.terms.currency, shared.settings.terms.currency
    if ours != theirs:
        raise BadParameter(
            f"the campaign is in {ours or 'no currency'}, the shared budget {name!r:.60} in {theirs or 'none'}; "
            "nothing is converted, so create a campaign in the same"
        )
    return shared


def _joined(tx: Transaction, shared: SharedBudget, row: Campaign) -> SharedBudget:
    return shared.joined(row.account, former_members(tx, shared).get(row.id, Account(0)))


def former_members(tx: Transaction, shared: SharedBudget) -> dict[str, Account]:
    """The spending of former members as members, by their ids."""
    former: dict[str, Account] = {}
    for event in member_events(tx, shared):
        facts, spent = from_json(event.request or "{}"), event.amount or 0
        former.pop(facts["campaign"], None)
        if event.kind == "left":
            former[facts["campaign"]] = Account(spent, spent, overrun=facts["overrun"])
    return former


def leave(tx: Transaction, row: Campaign, now: float, actor: str | None) -> None:
    """Let a campaign go that holds nothing; what it has spent stays spent here."""
    shared = tx.shared_of(row)
    if shared is None:
        return
    shared.check_leaves(row.account)
    set_unreported(tx, row, False)
    _note(tx, shared, "left", row, now, actor)


def move(tx: Transaction, before: Campaign, after: Campaign, now: float, actor: str | None) -> None:
    """Let a campaign leave and join as a change of its terms says, before that is written."""
    if _moves(before, after):
        leave(tx, before, now, actor)
        if after.settings.terms.shared_budget is not None:
            join(tx, after.settings.terms.shared_budget, after, now, actor)


def check_move(tx: Transaction, before: Campaign, after: Campaign, now: float) -> None:
    """Refuse what `move` would refuse."""
    if _moves(before, after):
        shared, name = tx.shared_of(before), after.settings.terms.shared_budget
        if shared is not None:
            shared.check_leaves(before.account)
        if name is not None:
            check_join(tx, name, after, now)


def _moves(before: Campaign, after: Campaign) -> bool:
    """Whether a change of terms lets a campaign leave or join; refused if it may do neither."""
    old, new = before.settings.terms.shared_budget, after.settings.terms.shared_budget
    if old == new:
        return False
    if old is not None and new is not None:  # both would be locked, in an order that others may reverse
        raise Conflict(
            f"{before.name!r:.60} takes its money from {old!r:.60}; let it leave that first, then join {new!r:.60}"
        )
    if before.settings.restored_from is not None:
        raise Conflict(f"{before.name!r:.60} was restored from a copy; resume it first, with what it has spent since")
    return True


def reset_clock(tx: Transaction, row: Campaign, now: float, actor: str | None) -> bool:
    """Bring the shared budget of a campaign back from periods to come, which a wrong clock has begun; whether there
    were any."""
    shared = tx.shared_of(row)
    return shared is not None and set_back(tx, shared, now, actor)


def set_back(tx: Transaction, shared: SharedBudget, now: float, actor: str | None) -> bool:
    """The same of a shared budget itself."""
    account = shared.settings.set_back(shared.account, now, read_grants(tx, shared.event_key))
    if account is shared.account:
        return False
    tx.save_shared_budget(shared.with_money(account))
    facts = to_json({"begun": account.period, "advance": account.advance}).decode()
    taken_back = account.budget - shared.account.budget
    tx.add_event(Event(shared.event_key, "clock reset", now, amount=taken_back, actor=actor, request=facts))
    in_period(tx, shared.with_money(account), now)
    return True


def set_unreported(tx: Transaction, row: Campaign, unreported: bool) -> None:
    """Whether it is unknown what this member has spent since its store was copied. While it is, no member decides."""
    shared = tx.shared_of(row)
    if shared is None or (row.id in shared.settings.unreported) == unreported:
        return
    others = tuple(member for member in shared.settings.unreported if member != row.id)
    ids = (*others, row.id) if unreported else others
    tx.save_shared_settings(replace(shared, settings=replace(shared.settings, unreported=ids)))


def member_events(tx: Transaction, shared: SharedBudget) -> list[Event]:
    """When campaigns joined and left, in order."""
    return [event for event in own_events(tx, shared) if event.kind in ("joined", "left")]


def own_events(tx: Transaction, shared: SharedBudget) -> list[Event]:
    """All events of the shared budget itself, in order: few."""
    rows: list[Event] = []
    while page := tx.events(shared.event_key, rows[-1].seq if rows else 0):
        rows += page
    return rows


def _note(
    tx: Transaction, shared: SharedBudget, kind: SharedEventKind, row: Campaign, now: float, actor: str | None
) -> None:
    account = row.account
    facts = {"campaign": row.id, "name": row.name, "overrun": account.overrun}
    event = Event(shared.event_key, kind, now, amount=account.spent, actor=actor, request=to_json(facts).decode())
    tx.add_event(event)
