"""Where the money of a decision is and what learns from it: the campaign itself, or a lease of it.

Both do the same two things. `choose` names an arm and holds its cap; `book` writes down what became of a decision. What
differs is which rows are written: the campaign's and its arms', or the lease's alone.
"""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass

from budgetbandits.allocation.learner import ArmMask
from budgetbandits.policies.base import NO_REQUEST_INFO
from budgetbandits.service import ledger
from budgetbandits.service.campaign_learner import CampaignLearner
from budgetbandits.service.clocks import time_of_decision
from budgetbandits.service.learners import Learners
from budgetbandits.service.leases import ledger as lease_ledger
from budgetbandits.service.ledger import Account, Hold
from budgetbandits.service.request import Amounts, RequestOptions, ResolvedRequest, offered, written
from budgetbandits.service.settings import limits_of
from budgetbandits.service.stores.contract import DecisionTransaction, full
from budgetbandits.service.stores.records import Campaign, DecisionRow, Event, Lease


@dataclass
class Choice:
    """A new decision's id, its arm, its hold and its time; what was said of its request, and how likely it was."""

    id: str
    arm: int
    hold: Hold
    at: float
    request: str | None = None
    propensity: float | None = None


class Purse(ABC):
    """Money, and who learns what it brings. Of ``row`` only what never changes is sure to be true."""

    row: Campaign
    account: Account
    learner: CampaignLearner | None
    lease_id: str | None = None

    @abstractmethod
    def choose(self, now: float, said: RequestOptions | None = None) -> Choice:
        """Choose an arm and hold its cap, or refuse; ``said`` is what is known of the request, if anything."""

    @abstractmethod
    def cap(self, made: DecisionRow) -> int:
        """The most that a decision's arm may cost; what it holds, if more is not known here."""

    def pays(self, made: DecisionRow, cost: int) -> bool:
        """Whether this cost of a decision whose hold is pending here can be booked here, and is no overrun."""
        above = cost - made.hold.amount
        return above <= 0 or (above <= self.account.left and cost <= self.cap(made))

    @abstractmethod
    def add_event(self, event: Event) -> None:
        """Write down what happened to this purse."""

    @abstractmethod
    def book(self, account: Account, event: Event, told: DecisionRow | None = None) -> None:
        """Write the money and the event; learn from the decision that is told in full now, if any."""

    @abstractmethod
    def fail(self, account: Account, events: Sequence[Event], failed: Event, made_at: float) -> None:
        """Write the money and all these events, the last of which says that there was no answer to the decision that
        was made then."""


def affordable_arms(
    learner: CampaignLearner, account: Account, now: float, wanted: ResolvedRequest | None = None
) -> tuple[Amounts, ArmMask, ArmMask | None]:
    """What a decision for each arm holds, the arms that this money can be spent on now, and those of them that are down
    and rest, if any; or the refusal."""
    holds, allowed = learner.caps if wanted is None else wanted.amounts(learner.caps), learner.allowed(wanted)
    payable = learner.payable(account.left, allowed, holds)
    if payable is None:
        ledger.place(account, int(holds[allowed].min()))  # always refuses, with the reason
    assert payable is not None
    return holds, *learner.rests.offered(payable, now)


def dearest(holds: Amounts, fitting: ArmMask, resting: ArmMask | None) -> int:
    """What must be free by the limits in time before any of these arms is chosen: to choose from what fits the moment
    would choose the cheap. An arm at rest is not waited for."""
    return int(holds[fitting if resting is None else fitting & ~resting].max())


class CampaignPurse(Purse):
    """The campaign's own, which has been read and so is locked."""

    def __init__(self, tx: DecisionTransaction, learners: Learners, row: Campaign) -> None:
        self._tx, self._learners = tx, learners
        self.row = row
        self.learner = None

    @property
    def account(self) -> Account:  # type: ignore[override]
        return self.row.account

    def choose(self, now: float, said: RequestOptions | None = None) -> Choice:
        row, change = self.row, self._learners.choosing(self._tx, self.row)
        learner, limits = change.learner, limits_of(row)
        ledger.check_open(row.account)
        now = time_of_decision(row, now)
        wanted = None if said is None else learner.wanted(said)
        holds, fitting, resting = affordable_arms(learner, row.account, now, wanted)
        if limits is not ledger.NO_LIMITS:
            ledger.check_time(row.account, dearest(holds, fitting, resting), now, limits)
        with change:
            learner.set_remaining(row.account, row.settings)
            request = learner.request(wanted, row.settings) if learner.looks else NO_REQUEST_INFO
            id, arm = learner.next_choice(fitting, request, resting)
            if arm is None:
                ledger.stop(row.policy)
            account, hold = ledger.place(row.account, int(holds[arm]), now, limits)
            propensity = None
            if "propensity_draws" in row.settings:
                propensity = learner.propensity(id, arm, fitting, request, row.settings, resting)
            text = written(wanted, learner.state.active, offered(fitting, resting, arm))
            change.row = row.with_money(account)
            if learner.rests.decided(arm, now):
                change.arms = [arm]
        self.row, self.learner = change.row, learner
        return Choice(id, arm, hold, now, text, propensity)

    def cap(self, made: DecisionRow) -> int:
        return int(self._learners.of(self._tx, self.row).caps[made.arm])

    def add_event(self, event: Event) -> None:
        self._tx.add_event(event)

    def book(self, account: Account, event: Event, told: DecisionRow | None = None) -> None:
        self.row = self.row.with_money(account)
        if told is None:
            self.add_event(event)
            self._tx.save_money(self.row)
            return
        change = self._learners.changing(self._tx, self.row)  # reads whatever it needs before anything is written
        self.add_event(event)
        with change:
            change.arms = change.learner.learn(told, event.at, self.row.settings)
        self.row, self.learner = change.row, change.learner

    def fail(self, account: Account, events: Sequence[Event], failed: Event, made_at: float) -> None:
        change = self._learners.changing(self._tx, self.row.with_money(account))
        for event in (*events, failed):
            self.add_event(event)
        with change:
            assert failed.arm is not None
            change.learner.failed(failed.arm, failed.at, made_at)
            change.arms = [failed.arm]
        self.row, self.learner = change.row, change.learner


@dataclass
class OwnLease:
    """A lease of this server's: its id, what is known under it, after how many of its events, and the campaign's money
    when it was merged.

    The learner's tag is the digest of those events. It is empty while the learner changes: if that fails halfway, or is
    undone, the learner passes for nothing that was committed.
    """

    lease: str
    learner: CampaignLearner
    lease_seq: int
    campaign: Account


class LeasePurse(Purse):
    """A lease, which has been read and so is locked. ``held`` is what this server knows under it, if it is its own."""

    def __init__(self, tx: DecisionTransaction, row: Campaign, lease: Lease, held: OwnLease | None) -> None:
        self._tx = tx
        self.row, self.lease = row, lease
        self.lease_id = lease.id
        # one that is behind stays so: it catches up when it decides
        self._held = held if held is not None and held.learner.tag == lease.digest else None
        self.learner = None if self._held is None else self._held.learner

    @property
    def account(self) -> Account:  # type: ignore[override]
        return self.lease.account

    def choose(self, now: float, said: RequestOptions | None = None) -> Choice:
        held, settings = self._held, self.row.settings
        assert held is not None
        learner = held.learner
        wanted = None if said is None else learner.wanted(said)
        holds = learner.caps if wanted is None else wanted.amounts(learner.caps)
        # whoever decides under a lease can pay every arm
        fitting, resting = learner.rests.offered(learner.allowed(wanted), now)
        try:
            learner.set_remaining(held.campaign, settings, self.account)
            request = learner.request(wanted, settings)
            id, arm = learner.next_choice(fitting, request, resting)
            if arm is None:
                ledger.stop(self.row.policy)
            propensity = learner.propensity(id, arm, fitting, request, settings, resting)
            text = written(wanted, learner.state.active, offered(fitting, resting, arm))
            learner.rests.decided(arm, now)
        finally:
            learner.tag = ""
        account, hold = lease_ledger.place(self.account, int(holds[arm]))
        self.lease = with_money(self.lease, account)
        return Choice(id, arm, hold, now, text, propensity)

    def cap(self, made: DecisionRow) -> int:
        return made.hold.amount if self.learner is None else int(self.learner.caps[made.arm])

    def add_event(self, event: Event) -> None:
        self.lease = add_lease_event(self._tx, self.lease, event)
        if self._held is not None:
            self._held.learner.tag, self._held.lease_seq = self.lease.digest, self.lease.lease_seq

    def book(self, account: Account, event: Event, told: DecisionRow | None = None) -> None:
        self.lease = with_money(self.lease, account)
        if self.learner is not None and told is not None:
            self.learner.tag = ""
            self.learner.learn(told, event.at, self.row.settings)
        self.add_event(event)

    def fail(self, account: Account, events: Sequence[Event], failed: Event, made_at: float) -> None:
        self.lease = with_money(self.lease, account)
        for event in events:
            self.add_event(event)
        if self.learner is not None:
            assert failed.arm is not None
            self.learner.tag = ""
            self.learner.failed(failed.arm, failed.at, made_at)
        self.add_event(failed)


def with_money(lease: Lease, account: Account) -> Lease:
    return Lease(lease.id, lease.campaign, account, lease.expires_at, lease.lease_seq, lease.merged_seq, lease.digest)


def add_lease_event(tx: DecisionTransaction, lease: Lease, event: Event, new: bool = False) -> Lease:
    """Write an event of a lease, and the lease as it is after it, which is given back."""
    turn, tag = lease.lease_seq + 1, digest(lease.digest, event)
    lease = Lease(lease.id, lease.campaign, lease.account, lease.expires_at, turn, lease.merged_seq, tag)
    event.lease, event.lease_seq = lease.id, turn
    (full(tx).add_lease if new else tx.save_lease)(lease)
    tx.add_event(event)
    return lease


def digest(before: str, event: Event) -> str:
    """Of all events of a lease, the last of them this one: it says what is known under the lease."""
    reward = None if event.reward is None else float(event.reward) + 0.0  # as a database gives it back
    text = f"{before} {event.kind} {event.decision} {event.arm} {event.amount} {reward}"
    if event.request is not None:
        text += f" {event.request}"
    return hashlib.blake2b(text.encode(), digest_size=12).hexdigest()
