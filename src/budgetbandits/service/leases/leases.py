"""Leases: a server takes a slice of a campaign's budget and decides with it under a row of its own.

Without leases every decision locks its campaign's row, so servers on one campaign take turns. A server with a lease
locks the lease alone. What it knows under the lease is what the campaign knew when the lease was merged last, and what
has been told under the lease since, in the order of its events.

Merging brings both together: the campaign learns what was told under the lease, in the order of its events, and the
lease goes on from what the campaign knows then. A server merges its lease when half of its time is over or its money
runs low, before its next decision. Anybody may end a lease: when its time is over; when an operator changes anything or
a cost may become an overrun, which ends all of them; when the campaign's own money does not suffice. So under a lease
none of these need be thought of: whoever finds that it has ended goes the ordinary way.

Locks are taken in one order, the campaign and then leases by their ids. A transaction that has a lease alone never asks
for the campaign: it gives up (`NeedsFullTransaction`) and is run again in one that has the campaign first.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import replace

from budgetbandits.service.campaign_learner import CampaignLearner, Pull
from budgetbandits.service.clocks import Clock, moment
from budgetbandits.service.funds import CampaignPurse, LeasePurse, OwnLease, Purse, add_lease_event, digest
from budgetbandits.service.learners import Learners
from budgetbandits.service.leases import ledger
from budgetbandits.service.request import ResolvedRequest
from budgetbandits.service.stores.contract import DecisionTransaction, NeedsFullTransaction, Scope, find_campaign, full
from budgetbandits.service.stores.records import Campaign, DecisionRow, Event, Lease, LeaseEvent

TELLING = ("settled", "rewarded")
OF_OTHERS = (*TELLING, "failed", "voided", "expired")
"""What servers do to each other's leases without ending them."""

TOLERANCE = 1.0
"""Seconds that a clock may have gone back since a lease was merged, before the lease is merged anew."""


class Leases:
    """The leases that one server has, and what it does with those of others."""

    def __init__(self, learners: Learners, clock: Clock | None) -> None:
        self.learners = learners
        self._clock = clock
        self._held: dict[str, OwnLease] = {}
        """By campaign. Each is looked at and changed only while its lease is locked."""
        self._leasing: dict[str, Campaign] = {}
        """Campaigns that lease, by id and by name; only what never changes of them is used."""

    def scope(self, scope: Scope) -> Scope:
        """With what is known of leases: then a store may do without the campaign."""
        row = self._leasing.get(scope.campaign)
        if row is None:
            return scope
        held = self._held.get(row.id)
        return scope._replace(campaign=row.id, lease="" if held is None else held.lease)

    def campaign(self, campaign: str) -> Campaign:
        """What never changes of a campaign, for a transaction that has leases alone."""
        row = self._leasing.get(campaign)
        if row is None:
            raise NeedsFullTransaction
        return row

    # --- which purse ---------------------------------------------------------------------------------------------

    def of_decision(self, tx: DecisionTransaction, row: Campaign, made: DecisionRow) -> Purse:
        """The purse that a decision's hold is in."""
        if "lease" in row.settings:
            self._leasing[row.id] = self._leasing[row.name] = row
        lease = None
        if made.lease is not None and tx.leases_alone:
            lease = tx.lease(made.lease)
        elif made.lease is not None:  # all at once, and so in order: the next decision may be of another lease
            lease = next((lease for lease in tx.leases(row.id) if lease.id == made.lease), None)
        if lease is not None:
            return LeasePurse(tx, row, lease, self._own(lease))
        if tx.leases_alone:
            raise NeedsFullTransaction
        return CampaignPurse(tx, self.learners, row)

    def for_cost(self, tx: DecisionTransaction, purse: Purse, made: DecisionRow, cost: int) -> Purse:
        """The purse that a cost is booked in: one that may be an overrun, and freeze the campaign, ends all leases."""
        if made.hold.state == "pending" and purse.pays(made, cost):
            return purse
        if tx.leases_alone:
            raise NeedsFullTransaction
        if "lease" not in purse.row.settings:
            return purse
        return CampaignPurse(tx, self.learners, self.recalled(tx, find_campaign(tx, made.campaign)))

    def alone(self, tx: DecisionTransaction, row: Campaign) -> LeasePurse:
        """The lease of this server, if a decision can be made under it as it is."""
        held = self._held.get(row.id)
        lease = None if held is None else tx.lease(held.lease)
        purse = self._ready(tx, row, lease)
        if purse is None:
            if lease is None and self._held.get(row.id) is held:
                self._held.pop(row.id, None)  # it has ended: from now on the campaign is asked at once
            raise NeedsFullTransaction
        return purse

    def for_deciding(self, tx: DecisionTransaction, row: Campaign) -> Purse:
        """The purse that a new decision is paid from: a lease if there can be one, or else the campaign."""
        if "lease" not in row.settings or row.account.status != "active":
            return CampaignPurse(tx, self.learners, row)
        self._leasing[row.id] = self._leasing[row.name] = row
        needed = self.learners.of(tx, row).most
        # all may have to be ended: then all are read before one of them is
        others = self._in_the_way(tx, row, needed)
        held = self._held.get(row.id)
        lease = None if held is None else tx.lease(held.lease)
        purse = self._ready(tx, row, lease)
        if purse is not None:
            return purse
        free = row.account.left + (0 if lease is None else lease.account.left)
        amount = ledger.size(free, row.settings["lease"])
        if amount >= needed:
            row, lease = self._renewed(tx, row, lease, amount)
            return LeasePurse(tx, row, lease, self._own(lease))
        return self._own_money(tx, row, others)

    def for_batch(self, tx: DecisionTransaction, row: Campaign, count: int) -> Purse:
        """The campaign's own purse, for so many new decisions."""
        if "lease" not in row.settings or row.account.status != "active":
            return CampaignPurse(tx, self.learners, row)
        return self._own_money(tx, row, self._in_the_way(tx, row, count * self.learners.of(tx, row).most))

    def _in_the_way(self, tx: DecisionTransaction, row: Campaign, needed: int) -> list[Lease]:
        """All leases, if the campaign itself has less than what is needed."""
        return tx.leases(row.id) if row.account.leased and row.account.left < needed else []

    def _own_money(self, tx: DecisionTransaction, row: Campaign, others: Sequence[Lease]) -> CampaignPurse:
        """The campaign's own purse when these leases have ended."""
        # to choose from what fits the campaign's own money would choose the cheap arms for being cheap; but if no arm
        # could be paid even so, this is refused, and then nothing should have been written
        if row.account.left + sum(each.account.left for each in others) >= self.learners.of(tx, row).least:
            row = self._end_all(tx, row, others)
        return CampaignPurse(tx, self.learners, row)

    def _own(self, lease: Lease) -> OwnLease | None:
        held = self._held.get(lease.campaign)
        return held if held is not None and held.lease == lease.id else None

    def _ready(self, tx: DecisionTransaction, row: Campaign, lease: Lease | None) -> LeasePurse | None:
        """Of a lease of this server's: None if it has ended or must be merged first."""
        held = None if lease is None else self._own(lease)
        if lease is None or held is None or lease.account.left < held.learner.most:
            return None
        seconds, left = row.settings["lease_seconds"], lease.expires_at - moment(tx, self._clock)
        if not seconds / 2 < left <= seconds + TOLERANCE:  # more is left if the clock was wrong when it was merged
            return None
        if held.learner.tag != lease.digest and not _catch_up(tx, held, lease, row):
            return None
        return LeasePurse(tx, row, lease, held)

    # --- taken, merged, ended: the campaign is locked ------------------------------------------------------------

    def _renewed(
        self, tx: DecisionTransaction, row: Campaign, lease: Lease | None, free: int
    ) -> tuple[Campaign, Lease]:
        """The lease merged, or a new one, with so much to decide with; knowing what the campaign knows."""
        now = moment(tx, self._clock)
        if lease is None:
            account, lent = ledger.lend(row.account, free)
            row = row.with_money(account)
            lease, kind, new = Lease(os.urandom(16).hex(), row.id, lent, 0.0), "leased", True
        else:
            account, lent = ledger.merge(row.account, lease.account)
            account, lent = ledger.resize(account, lent, lent.held + free)
            row = self._learn(tx, row.with_money(account), lease)
            lease, kind, new = replace(lease, account=lent), "merged", False
        lease = replace(lease, expires_at=now + row.settings["lease_seconds"], merged_seq=lease.lease_seq + 1)
        lease = add_lease_event(tx, lease, Event(row.id, kind, now, amount=lease.account.budget), new)
        if new:
            tx.save_money(row)
        learner = self.learners.of(tx, row).copy(lease.digest)
        learner.set_remaining(row.account, row.settings)
        self._held[row.id] = OwnLease(lease.id, learner, lease.lease_seq, row.account)
        return row, lease

    def recalled(self, tx: DecisionTransaction, row: Campaign) -> Campaign:
        """The campaign when all its leases have ended."""
        return self._end_all(tx, row, tx.leases(row.id)) if "lease" in row.settings else row

    def end_due(self, tx: DecisionTransaction, campaign: str, now: float) -> None:
        """End the leases of a campaign whose time is over."""
        row = find_campaign(tx, campaign)
        if "lease" in row.settings:
            self._end_all(tx, row, [lease for lease in tx.leases(row.id) if lease.expires_at <= now])

    def _end_all(self, tx: DecisionTransaction, row: Campaign, leases: Iterable[Lease]) -> Campaign:
        for lease in leases:
            row = self._end(tx, row, lease)
        return row

    def _end(self, tx: DecisionTransaction, row: Campaign, lease: Lease) -> Campaign:
        account = ledger.give_back(row.account, lease.account)
        row = self._learn(tx, row.with_money(account), lease)
        add_lease_event(tx, lease, Event(row.id, "returned", moment(tx, self._clock), amount=0))
        full(tx).drop_lease(lease.id)
        return row

    def _learn(self, tx: DecisionTransaction, row: Campaign, lease: Lease) -> Campaign:
        """The campaign when it has learnt what was told under the lease since it was merged, and is written."""
        events = tx.lease_events(lease.id, lease.merged_seq)
        with self.learners.changing(tx, row) as change:
            change.arms = learn_all(change.learner, events, row)
        return change.row


def learn_all(learner: CampaignLearner, events: Iterable[LeaseEvent], row: Campaign) -> list[int]:
    """Let a learner go through what happened under a lease; the arms that have changed.

    Choices that leave a trace (how many there were, whose turn it is) are made again for its sake alone.
    """
    before, events = dict(vars(learner.state)), list(events)
    last = {each.event.decision: each.event.lease_seq for each in events if each.event.kind in TELLING}
    arms: set[int] = set()
    for event, cost, reward, request, made_at in events:
        if event.kind == "decided":
            assert event.arm is not None
            if learner.leaves_traces:
                fitting, resting = learner.rests.offered(learner.allowed(ResolvedRequest.read(event.request)), event.at)
                learner.choose(str(event.decision), fitting, resting=resting)
            if learner.rests.decided(event.arm, event.at):
                arms.add(event.arm)
        elif event.kind == "failed":
            assert event.arm is not None
            assert made_at is not None
            learner.failed(event.arm, event.at, made_at)
            arms.add(event.arm)
        # told in two parts, a decision is learnt from when the second is there
        elif (
            event.kind in TELLING
            and last[event.decision] == event.lease_seq
            and cost is not None
            and reward is not None
        ):
            assert event.arm is not None
            assert made_at is not None
            pull = Pull(str(event.decision), event.arm, reward, cost, request, made_at)
            arms.update(learner.learn(pull, event.at, row.settings))
    return sorted(arms.union(learner.changed_since(before)))


def _catch_up(tx: DecisionTransaction, held: OwnLease, lease: Lease, row: Campaign) -> bool:
    """Learn what other servers were told of this lease; False if what is known here is nothing that was committed."""
    events, tag = tx.lease_events(lease.id, held.lease_seq), held.learner.tag
    for each in events:
        tag = digest(tag, each.event)
    if not held.learner.tag or tag != lease.digest or any(each.event.kind not in OF_OTHERS for each in events):
        return False
    held.learner.tag = ""
    learn_all(held.learner, events, row)
    held.learner.tag, held.lease_seq = lease.digest, lease.lease_seq
    return True
