"""Shared budgets as an operator sees them: created, changed, looked at.

Everything that changes one says what is to be, not by how much, so asked again it changes nothing: there are no
idempotency keys.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Any

from pydantic_core import to_json

from budgetbandits.answers import MemberAnswer, SharedBudgetAnswer, SharedBudgetDetailAnswer
from budgetbandits.errors import BadParameter, Conflict, NotFound, StoreError
from budgetbandits.service import ledger
from budgetbandits.service.expiry import shorten_late_holds
from budgetbandits.service.ledger import Account, to_micros, to_units
from budgetbandits.service.names import checked_campaign_name, normal
from budgetbandits.service.shared_budgets.members import in_period, set_back
from budgetbandits.service.shared_budgets.rules import TERM_NAMES, SharedBudget, SharedSettings
from budgetbandits.service.stores.contract import Clock, Scope, Store, Transaction, find_campaign, isolated, moment
from budgetbandits.service.stores.records import Campaign, Event
from budgetbandits.terms import MONEY, Terms

CHANGEABLE_TERMS = ("budget", *(name for name in TERM_NAMES if name != "currency"))
"""Terms that `SharedBudgets.change` accepts; the currency is fixed, since booked amounts are in it."""


class SharedBudgets:
    """The shared budgets of a store."""

    def __init__(self, store: Store, clock: Clock | None = None) -> None:
        self._store, self._clock = store, clock

    def create(self, name: str, budget: float, actor: str | None = None, **terms: Any) -> None:
        """A budget for campaigns to share; ``terms`` are those of `TERM_NAMES`, as campaigns have them."""
        name, micros = checked_campaign_name("name", name), to_micros(budget, "budget")
        settings = _checked(Terms(**_known(terms, TERM_NAMES)), budget)

        def before(tx: Transaction) -> bool:
            """Whether it was created just so."""
            other = tx.shared_budget(name)
            if other is None:
                return False
            if (other.account.budget, other.settings.terms) != (micros, settings.terms):
                raise Conflict(
                    f"there is a shared budget {name!r:.60} already; change it, or give this one another name"
                )
            return True

        def work(tx: Transaction) -> None:
            if before(tx):
                return
            now = moment(tx, self._clock)
            shared = SharedBudget(name, Account(micros, period=settings.period_of(now)), now, settings)
            tx.shared_budgets().add(shared)
            facts = to_json(settings.to_dict()["terms"]).decode()
            tx.add_event(Event(shared.event_key, "created", now, amount=micros, actor=actor, request=facts))

        try:
            self._store.write(work)
        except StoreError:
            if not self._store.read(before):  # another caller may have been quicker, or the answer was lost
                raise

    def change(self, name: str, changes: Mapping[str, Any], actor: str | None = None) -> None:
        """Another budget, at least what is spent and held, or other terms, of `CHANGEABLE_TERMS`; None takes one
        away."""
        changes = _known(changes, CHANGEABLE_TERMS)
        if not changes:
            raise BadParameter(f"nothing is to be changed; name one of {', '.join(CHANGEABLE_TERMS)}")

        def work(tx: Transaction) -> None:
            now = moment(tx, self._clock)
            shared = in_period(tx, find_shared_budget(tx, name), now)
            account, before = shared.account, shared.settings
            if "budget" in changes:
                account = ledger.set_budget(account, to_micros(changes["budget"], "budget"))
            new = {term: value for term, value in changes.items() if term != "budget"}
            after = replace(
                _checked(replace(before.terms, **new), to_units(account.budget)), unreported=before.unreported
            )
            account = replace(account, period=after.period_after(before, account, now))
            if (account, after) == (shared.account, before):
                return
            tx.save_shared_settings(replace(shared, account=account, settings=after))
            pairs = {term: [getattr(settings_at.terms, term) for settings_at in (before, after)] for term in TERM_NAMES}
            facts = {term: values for term, values in pairs.items() if values[0] != values[1]}
            event = Event(
                shared.event_key, "terms changed", now, amount=account.budget - shared.account.budget, actor=actor
            )
            event.request = to_json(facts).decode()
            tx.add_event(event)

        self._store.write(work)

    def reset_clock(self, name: str, actor: str | None = None) -> None:
        """Go on in the present period, after a clock that was ahead has begun one to come: what that was granted is
        taken back, and what members hold until then is held no longer than by a decision of now. Where nothing lies
        ahead, nothing changes."""

        def work(tx: Transaction) -> list[str]:
            shared = find_shared_budget(tx, name)
            set_back(tx, shared, moment(tx, self._clock), actor)
            return tx.shared_budgets().members(shared.name)

        def shorten(tx: Transaction, member: str) -> None:
            shorten_late_holds(tx, find_campaign(tx, member), moment(tx, self._clock))

        for member in self._store.write(work):  # one after the other: nobody locks two campaigns
            with suppress(NotFound):  # it was deleted meanwhile
                self._store.write(isolated(member, partial(shorten, member=member)), Scope(member))

    def overview(self) -> list[SharedBudgetAnswer]:
        """All of them, by name, without their members."""
        return self._store.read(lambda tx: [described(shared) for shared in tx.shared_budgets().all()])

    def describe(self, name: str) -> SharedBudgetDetailAnswer:
        """One of them with its members."""

        def work(tx: Transaction) -> SharedBudgetDetailAnswer:
            shared = find_shared_budget(tx, name)
            rows = [tx.campaign(id) for id in tx.shared_budgets().members(shared.name)]
            campaigns = tuple(_member(row) for row in rows if row is not None)
            return SharedBudgetDetailAnswer(**vars(described(shared)), campaigns=campaigns)

        return self._store.read(work)

    def account(self, name: str) -> Account:
        """The account of a shared budget."""
        return self._store.read(lambda tx: find_shared_budget(tx, name).account)


def find_shared_budget(tx: Transaction, name: str) -> SharedBudget:
    """A shared budget by its name, or the error that there is none."""
    shared = tx.shared_budget(normal(name)) if name.isprintable() else None
    if shared is None:
        raise NotFound(f"no shared budget {name!r:.60}; create it first")
    return shared


def described(shared: SharedBudget) -> SharedBudgetAnswer:
    """A shared budget's money, in the user's unit, and its terms."""
    amounts: dict[str, Any] = {name: to_units(getattr(shared.account, name)) for name in MONEY}
    terms = {name: getattr(shared.settings.terms, name) for name in TERM_NAMES}
    created_at, unreported = float(shared.created_at), len(shared.settings.unreported)
    return SharedBudgetAnswer(name=shared.name, **amounts, **terms, created_at=created_at, unreported=unreported)


def _member(row: Campaign) -> MemberAnswer:
    amounts = {name: to_units(getattr(row.account, name)) for name in MONEY}
    return MemberAnswer(id=row.id, name=row.name, status=row.account.status, **amounts)


def _known(terms: Mapping[str, Any], names: tuple[str, ...]) -> dict[str, Any]:
    wrong = next((name for name in terms if name not in names), None)
    if wrong is not None:
        raise BadParameter(f"{wrong!r:.40} is nothing that a shared budget has here; use {', '.join(names)}")
    return dict(terms)


def _checked(terms: Terms, budget: float) -> SharedSettings:
    """These terms, if a shared budget can have them; each period gets the budget if nothing else is said."""
    if terms.period is not None and terms.period_budget is None:
        terms = replace(terms, period_budget=budget)
    if terms.period is None and (terms.period_budget is not None or terms.unspent != "lapse" or terms.time_zone):
        raise BadParameter(
            "period_budget, unspent and time_zone are for a budget that is renewed; set a period, or take these away "
            "with it: none, lapse and none"
        )
    terms = terms.checked(TERM_NAMES)
    amount = terms.period_budget
    return SharedSettings(replace(terms, period_budget=None if amount is None else to_units(to_micros(amount))))
