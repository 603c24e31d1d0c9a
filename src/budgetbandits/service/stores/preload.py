"""Transactions over rows that were read beforehand: the work is done in memory, and every changed row is written once.

The rows of the `Scope` have been read and locked. Arms and the events of leases are read when they are asked for,
because only the learner knows which: `ArmsNeeded` or `EventsNeeded` stops the work, which is run again when they are
there. Anything else is `NeedsFullTransaction`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, NoReturn

from budgetbandits.service.names import normal
from budgetbandits.service.shared_budgets.rules import SharedBudget
from budgetbandits.service.stores.contract import DecisionTransaction, NeedsFullTransaction, Scope, Transaction
from budgetbandits.service.stores.records import ArmRow, Campaign, DecisionRow, Event, Lease, LeaseEvent


class ArmsNeeded(Exception):
    """The arms of a campaign with these numbers must be read, or all if it is None."""

    def __init__(self, campaign: str, numbers: tuple[int, ...] | None) -> None:
        super().__init__(campaign, numbers)
        self.campaign, self.numbers = campaign, numbers


class EventsNeeded(Exception):
    """The events of a lease after this number must be read."""

    def __init__(self, lease: str, after: int) -> None:
        super().__init__(lease, after)
        self.lease, self.after = lease, after


class PreloadedTransaction(DecisionTransaction):
    """The rows that the work of a group reads and changes, one after the other."""

    def __init__(
        self,
        campaign: Campaign | None,
        decisions: Iterable[DecisionRow],
        scopes: Sequence[Scope],
        now: float | None,
        leases: Iterable[Lease] | None = None,
        shared: SharedBudget | None = None,
    ) -> None:
        self.campaign_row = campaign
        """The campaign as it is now; None if there is none ..."""
        self.shared_row = shared
        """... and its shared budget."""
        self._now = now
        self._leases = None if leases is None else {lease.id: lease for lease in leases}
        self.id = None if campaign is None else campaign.id
        self._asked = {scope.campaign for scope in scopes}
        self._by_id: dict[str, DecisionRow] = {}
        self._by_key: dict[tuple[str, str], DecisionRow] = {}
        for made in decisions:
            self._by_key[made.campaign, made.key] = made
            self._by_id[made.id] = made
        self._keys = {key for scope in scopes for key in scope.keys}
        self._ids = {id for scope in scopes for id in scope.decisions}
        self.arms_read: dict[tuple[int, ...] | None, list[ArmRow]] = {}
        """The arms with these numbers, or all, as they were before the group."""
        self.new_decisions: dict[str, DecisionRow] = {}
        self.changed_decisions: dict[str, DecisionRow] = {}
        self.changed_arms: dict[int, ArmRow] = {}
        self.changed_leases: dict[str, Lease] = {}
        self.new_events: list[Event] = []
        self.heartbeats: list[float] = []
        self.money_changed = self.learned_changed = self.shared_changed = False
        self.wrote = 0
        """How often something was written."""

    if not TYPE_CHECKING:  # mypy is to find calls that the small contract does not have

        def __getattr__(self, name: str) -> NoReturn:
            """All else that a transaction does needs a full one."""
            if hasattr(Transaction, name):
                raise NeedsFullTransaction
            raise AttributeError(name)

    def now(self) -> float:
        if self._now is None:
            raise NeedsFullTransaction
        return self._now

    def campaign(self, id_or_name: str) -> Campaign | None:
        row = self.campaign_row
        if normal(id_or_name) in (self._asked if row is None else (row.id, row.name)):
            return row
        raise NeedsFullTransaction

    def save_campaign(self, campaign: Campaign) -> None:
        self._check(campaign.id)
        self.move_shared(self.campaign_row, campaign)
        self.campaign_row, self.money_changed, self.learned_changed = campaign, True, True

    def save_money(self, campaign: Campaign) -> None:
        row = self.campaign_row
        if row is None:
            raise NeedsFullTransaction
        self._check(campaign.id)
        self.move_shared(row, campaign)
        self.campaign_row, self.money_changed = row.with_money(campaign.account), True

    def shared_budget(self, name: str) -> SharedBudget | None:
        if self.shared_row is None or self.shared_row.name != name:
            raise NeedsFullTransaction
        return self.shared_row

    def save_shared_budget(self, shared: SharedBudget) -> None:
        self.wrote += 1
        self.shared_row, self.shared_changed = shared, True

    def _check(self, campaign: str | None) -> None:
        """Begin to write, if this is the campaign of the group."""
        if self.id != campaign:
            raise NeedsFullTransaction
        self.wrote += 1

    def arms(self, campaign: str, numbers: Sequence[int] | None = None) -> list[ArmRow]:
        if self.campaign_row is None or self.campaign_row.id != campaign:
            raise NeedsFullTransaction
        asked = None if numbers is None else tuple(numbers)
        if asked not in self.arms_read:
            raise ArmsNeeded(campaign, asked)
        rows = {arm.number: arm for arm in self.arms_read[asked]} | self.changed_arms
        return [rows[number] for number in (sorted(rows) if asked is None else asked)]

    def save_arms(self, arms: Sequence[ArmRow]) -> None:
        for arm in arms:
            self._check(arm.campaign)
            self.changed_arms[arm.number] = arm

    def decision(self, id: str) -> DecisionRow | None:
        if id not in self._by_id and id not in self._ids:
            raise NeedsFullTransaction
        return self._by_id.get(id)

    def decision_by_key(self, campaign: str, key: str) -> DecisionRow | None:
        if self.id != campaign or key not in self._keys:
            raise NeedsFullTransaction
        return self._by_key.get((campaign, key))

    def add_decision(self, decision: DecisionRow) -> None:
        self._check(decision.campaign)
        self.new_decisions[decision.id] = self._by_id[decision.id] = decision
        self._by_key[decision.campaign, decision.key] = decision

    def save_decision(self, decision: DecisionRow) -> None:
        self._check(decision.campaign)
        changed = self.new_decisions if decision.id in self.new_decisions else self.changed_decisions
        changed[decision.id] = decision
        self._by_id[decision.id] = self._by_key[decision.campaign, decision.key] = decision

    def add_event(self, event: Event) -> None:
        of_shared = self.shared_row is not None and event.campaign == self.shared_row.event_key
        self._check(self.id if of_shared else event.campaign)
        self.new_events.append(event)

    def lease(self, id: str) -> Lease | None:
        if self._leases is None:
            raise NeedsFullTransaction
        return self._leases.get(id)

    def leases(self, campaign: str) -> list[Lease]:
        if self._leases is None or self.id != campaign:
            raise NeedsFullTransaction
        return [self._leases[id] for id in sorted(self._leases)]

    def save_lease(self, lease: Lease) -> None:
        if self._leases is None:
            raise NeedsFullTransaction
        self._check(lease.campaign)
        self._leases[lease.id] = self.changed_leases[lease.id] = lease

    def lease_events(self, lease: str, after: int) -> list[LeaseEvent]:
        raise NeedsFullTransaction

    def write_heartbeat(self, now: float) -> None:
        self.wrote += 1
        self.heartbeats.append(now)


class PreloadedLeases(PreloadedTransaction):
    """The rows of a group that works under leases, without their campaign."""

    leases_alone = True

    def __init__(
        self,
        campaign: str,
        leases: Iterable[Lease],
        decisions: Iterable[DecisionRow],
        scopes: Sequence[Scope],
        now: float | None,
    ) -> None:
        super().__init__(None, decisions, scopes, now, leases)
        self.id = campaign
        self._asked_leases = {scope.lease for scope in scopes} | {made.lease for made in self._by_id.values()}
        self.events_read: dict[tuple[str, int], list[LeaseEvent]] = {}
        """For each lease and number the events after it, as they were before the group."""

    def campaign(self, id_or_name: str) -> NoReturn:
        raise NeedsFullTransaction

    def save_campaign(self, campaign: Campaign) -> NoReturn:
        raise NeedsFullTransaction

    def leases(self, campaign: str) -> NoReturn:
        raise NeedsFullTransaction

    def lease(self, id: str) -> Lease | None:
        if id not in self._asked_leases:
            raise NeedsFullTransaction
        return super().lease(id)

    def lease_events(self, lease: str, after: int) -> list[LeaseEvent]:
        if (lease, after) not in self.events_read:
            raise EventsNeeded(lease, after)
        new = [e for e in self.new_events if e.lease == lease and e.lease_seq is not None and e.lease_seq > after]
        return self.events_read[lease, after] + [self._known(event) for event in new]

    def _known(self, event: Event) -> LeaseEvent:
        made = None if event.decision is None else self._by_id.get(event.decision)
        if made is None:
            return LeaseEvent(event)
        return LeaseEvent(event, made.cost, made.reward, made.request, made.created_at)
