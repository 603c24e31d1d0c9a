"""What an action is about: a campaign as it is at one moment, and as every change of it finds it."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from budgetbandits.formatting.numbers import listed
from budgetbandits.service.dashboard.numbers import Unit
from budgetbandits.service.leases import ledger
from budgetbandits.service.ledger import Account, to_units
from budgetbandits.service.stores.contract import Transaction, find_campaign
from budgetbandits.service.stores.records import ArmRow, Campaign, Lease


@dataclass(frozen=True)
class Subject:
    """A campaign with its arms and leases, read in one transaction."""

    row: Campaign
    arms: list[ArmRow]
    leases: list[Lease]
    now: float

    @classmethod
    def of(cls, tx: Transaction, campaign: str) -> Subject:
        row = find_campaign(tx, campaign)
        leases = tx.leases(row.id) if "lease" in row.settings else []
        return cls(row, tx.arms(row.id), leases, tx.now())

    @property
    def account(self) -> Account:
        return self.row.account

    @cached_property
    def recalled(self) -> Account:
        """Its money when all leases have ended: so every change of an operator begins."""
        return ledger.all_given_back(self.account, [lease.account for lease in self.leases])

    @property
    def word(self) -> str:
        return "running" if self.account.status == "active" else self.account.status

    @property
    def state(self) -> list[Any]:
        """What a confirmation relies on, and no decision or feedback changes, but for a freeze."""
        arms = [(arm.name, arm.cost_cap, arm.active) for arm in self.arms]
        account = self.account
        return [self.row.id, account.status, account.budget, account.overrun, self.row.settings, arms]

    @property
    def opened(self) -> str:
        """A code for each part of the state, for a form to keep: what changes while it is open is told by it."""
        return "-".join(
            hashlib.sha256(json.dumps(part, sort_keys=True).encode()).hexdigest()[:12] for part in self._parts
        )

    @property
    def _parts(self) -> list[Any]:
        _, status, budget, overrun, settings, arms = self.state
        return [[status, overrun], budget, settings, arms]

    def changed_since(self, opened: str) -> str:
        """What is other than it was when a form got this code; nothing if all is the same, or there was no code."""
        names = ("the status", "the budget", "the terms", "the arms")
        pairs = zip(names, opened.split("-"), self.opened.split("-"), strict=False)
        changed = [name for name, then, now in pairs if then != now] if opened else []
        if not changed:
            return ""
        what = f"{listed(changed)} of the campaign {'has' if changed in (['the status'], ['the budget']) else 'have'}"
        return f"{what} changed since this form was opened; open it again to see the campaign as it is"

    def unit(self, *amounts: float) -> Unit:
        """How amounts are written here, with the decimals that these need."""
        return Unit.of(to_units(self.account.budget), self.row.settings, *amounts)

    def money(self, *micros: int) -> list[str]:
        """Amounts of the books, all with the decimals that any of them needs."""
        amounts = [to_units(each) for each in micros]
        unit = self.unit(*amounts)
        return [unit.money(each) for each in amounts]
