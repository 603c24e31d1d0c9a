"""A transaction over rows that were read beforehand: its work is done in memory, and every changed row is written once.

What it is `About` has been read and locked. Arms are read when they are asked for, because only the learner knows
which: `ArmsNeeded` stops the piece, which is run again when they are there. Anything else is `NeedsFullTransaction`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NoReturn

from budgetbandits.service.stores.contract import About, NeedsFullTransaction, Transaction
from budgetbandits.service.stores.records import ArmRow, Campaign, Decision, Event, Key, Lease, LeaseEvent


class ArmsNeeded(Exception):
    """The arms of a campaign with these numbers must be read, or all if it is None."""

    def __init__(self, campaign: str, numbers: tuple[int, ...] | None) -> None:
        super().__init__(campaign, numbers)
        self.campaign, self.numbers = campaign, numbers


class PreloadedTransaction(Transaction):
    """What the pieces of a group read and change, one after the other.

    campaign_row   the campaign as it is now; None if there is none
    now            when it, or a lease, was read, by the database's clock
    arms_read      the arms that were asked for by these numbers, or all, as they were before the group
    made, told     decisions to add; decisions to change
    changed_arms   by number
    changed_leases by id
    money, learned whether the campaign's money, or what it has learnt, has changed
    """

    def __init__(
        self,
        campaign: Campaign | None,
        decisions: Iterable[Decision],
        abouts: Sequence[About],
        now: float | None,
        leases: Iterable[Lease] | None = None,
    ) -> None:
        self.campaign_row = campaign
        self._now = now
        self._leases = None if leases is None else {lease.id: lease for lease in leases}
        self.changed_leases: dict[str, Lease] = {}
        self.id = None if campaign is None else campaign.id
        self._asked = {about.campaign for about in abouts}
        self._by_id: dict[str, Decision] = {}
        self._by_key: dict[tuple[str, str], Decision] = {}
        for made in decisions:
            self._by_key[made.campaign, made.key] = made
            self._by_id[made.id] = made
        self._keys = {key for about in abouts for key in about.keys}
        self._ids = {id for about in abouts for id in about.decisions}
        self.arms_read: dict[tuple[int, ...] | None, list[ArmRow]] = {}
        self.made: dict[str, Decision] = {}
        self.told: dict[str, Decision] = {}
        self.changed_arms: dict[int, ArmRow] = {}
        self.new_events: list[Event] = []
        self.beats: list[float] = []
        self.money = self.learned = False
        self.wrote = 0
        """How often anything was."""

    def now(self) -> float:
        if self._now is None:
            raise NeedsFullTransaction
        return self._now

    def campaign(self, id: str) -> Campaign | None:
        return self._this(id, self.campaign_row is not None and self.campaign_row.id == id)

    def campaign_named(self, name: str) -> Campaign | None:
        return self._this(name, self.campaign_row is not None and self.campaign_row.name == name)

    def _this(self, asked: str, it_is: bool) -> Campaign | None:
        if it_is:
            return self.campaign_row
        if asked in self._asked and self.campaign_row is None:
            return None
        raise NeedsFullTransaction

    def save_campaign(self, campaign: Campaign) -> None:
        self._check(campaign.id)
        self.campaign_row, self.money, self.learned = campaign, True, True

    def save_money(self, campaign: Campaign) -> None:
        row = self.campaign_row
        if row is None:
            raise NeedsFullTransaction
        self._check(campaign.id)
        self.campaign_row, self.money = row.with_money(campaign.account), True

    def _check(self, campaign: str) -> None:
        """That this is the campaign it is about; writing begins."""
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

    def decision(self, id: str) -> Decision | None:
        if id not in self._by_id and id not in self._ids:
            raise NeedsFullTransaction
        return self._by_id.get(id)

    def decision_by_key(self, campaign: str, key: str) -> Decision | None:
        if self.id != campaign or key not in self._keys:
            raise NeedsFullTransaction
        return self._by_key.get((campaign, key))

    def add_decision(self, decision: Decision) -> None:
        self._check(decision.campaign)
        self.made[decision.id] = self._by_id[decision.id] = self._by_key[decision.campaign, decision.key] = decision

    def save_decision(self, decision: Decision) -> None:
        self._check(decision.campaign)
        (self.made if decision.id in self.made else self.told)[decision.id] = decision
        self._by_id[decision.id] = self._by_key[decision.campaign, decision.key] = decision

    def add_event(self, event: Event) -> None:
        self._check(event.campaign)
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

    def beat(self, now: float) -> None:
        self.wrote += 1
        self.beats.append(now)

    def _no(self) -> NoReturn:
        raise NeedsFullTransaction

    def campaigns(self, limit: int | None = None, after: str = "") -> list[Campaign]:
        self._no()

    def add_campaign(self, campaign: Campaign) -> None:
        self._no()

    def add_arms(self, arms: Sequence[ArmRow]) -> None:
        self._no()

    def forget_key(self, decision: Decision) -> None:
        self._no()

    def due(self, now: float, limit: int) -> list[tuple[str, str]]:
        self._no()

    def pending(self, campaign: str) -> dict[str, float]:
        self._no()

    def pending_of(self, ids: Sequence[str]) -> dict[str, float]:
        self._no()

    def set_expiry(self, decision: str, expires_at: float) -> None:
        self._no()

    def booked(self, campaign: str, begin: float, end: float) -> int:
        self._no()

    def decisions_of(self, ids: Sequence[str]) -> list[Decision]:
        self._no()

    def decisions(self, campaign: str, after: int = 0, limit: int = 1000) -> list[tuple[int, Decision]]:
        self._no()

    def totals(self, campaign: str) -> list[tuple[int, int, int, float]]:
        self._no()

    def add_lease(self, lease: Lease) -> None:
        self._no()

    def drop_lease(self, id: str) -> None:
        self._no()

    def due_leases(self, now: float) -> list[tuple[str, str]]:
        self._no()

    def lease_events(self, lease: str, after: int) -> list[LeaseEvent]:
        self._no()

    def operation(self, campaign: str, key: str) -> str | None:
        self._no()

    def answer(self, campaign: str, key: str) -> str | None:
        self._no()

    def add_operation(self, campaign: str, key: str, payload: str, at: float, answer: str | None = None) -> None:
        self._no()

    def add_key(self, key: Key) -> None:
        self._no()

    def key(self, prefix: str) -> Key | None:
        self._no()

    def keys(self) -> list[Key]:
        self._no()

    def drop_key(self, prefix: str) -> None:
        self._no()

    def events(self, campaign: str, after: int = 0, limit: int = 1000, kind: str | None = None) -> list[Event]:
        self._no()

    def last_event(self, campaign: str) -> int:
        self._no()

    def last_own_event(self, campaign: str) -> int:
        self._no()
