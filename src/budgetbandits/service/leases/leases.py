"""Leases: a server takes a slice of a campaign's budget and decides with it under a row of its own.

Without leases every decision locks its campaign's row, so servers on one campaign take turns. A server with a lease
locks the lease alone. What it knows under the lease is what the campaign knew when the lease was merged last, and what
has been reported under the lease since, in the order of its events.

Merging joins both: the campaign learns what was reported under the lease, in the order of its events, and the
lease goes on from what the campaign knows then. A server merges its lease when half of its time is over or its money
runs low, before its next decision. Anybody may end a lease: when its time is over; when an operator changes anything or
a cost may become an overrun, which ends all of them; when the campaign's own money does not suffice. So under a lease
none of these matter: a server that finds that its lease has ended goes the ordinary way.

Locks are taken in one order, the campaign and then leases by their ids. A transaction that has a lease alone never asks
for the campaign: it gives up (`CampaignNeeded`) and is run again in one that has the campaign first.
"""

from __future__ import annotations

import hashlib
import math
import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from budgetbandits.service.campaign_session import CampaignSession, Choice, Pull
from budgetbandits.service.choices_ahead import ChoicesAhead
from budgetbandits.service.funds import CampaignFunds, Funds
from budgetbandits.service.leases import lending
from budgetbandits.service.ledger import Account, Hold, stop
from budgetbandits.service.request import ResolvedRequest
from budgetbandits.service.session_cache import SessionCache
from budgetbandits.service.shared_budgets.members import lapse, shared_for_deciding, shared_left, spendable
from budgetbandits.service.shared_budgets.rules import capped
from budgetbandits.service.stores.contract import CampaignNeeded, Clock, Scope, Transaction, find_campaign, moment
from budgetbandits.service.stores.records import Campaign, DecisionRow, Event, Lease, LeaseEvent, copied
from budgetbandits.validation import RequestOptions

FEEDBACK_EVENTS = ("settled", "rewarded")
"""Events of feedback."""

EVENTS_BY_OTHERS = (*FEEDBACK_EVENTS, "failed", "voided", "expired")
"""Events that servers write on each other's leases without ending them."""

CLOCK_STEP_SECONDS_MAX = 1.0
"""Seconds that a clock may have moved back since a lease was merged, before the lease is merged again."""


@dataclass
class OwnLease:
    """A lease of this server's, in memory.

    lease     its id
    session   what is known under it; its tag is the digest of the lease's events. The tag is empty while the session
              changes: if that fails halfway, or is undone, the session passes for nothing that was committed
    lease_seq after how many of the lease's events
    campaign  the campaign's money when the lease was merged, with no more left than its shared budget had
    """

    lease: str
    session: CampaignSession
    lease_seq: int
    campaign: Account


class LeaseFunds(Funds):
    """A lease's money; its row has been read and so is locked. ``own`` is what this server knows under it, if it is its
    own."""

    def __init__(self, tx: Transaction, row: Campaign, lease: Lease, own: OwnLease | None) -> None:
        super().__init__(tx, row)
        self.lease = lease
        self.lease_id = lease.id
        # one that is behind stays so: it catches up when it decides
        self._own = own if own is not None and own.session.tag == lease.digest else None
        self.session = None if self._own is None else self._own.session

    @property
    def account(self) -> Account:  # type: ignore[override]
        """The account of the lease."""
        return self.lease.account

    def _choose(
        self, now: float, options: RequestOptions | None, ahead: ChoicesAhead | None
    ) -> tuple[Choice, Hold, float]:
        own = self._own
        assert own is not None
        session = own.session
        # a lease decides only while it can pay every arm
        offer = session.offer(session.resolve(options), now)
        assert offer is not None
        try:
            choice = session.choose(offer, own.campaign, self.account)
            if choice is None:
                stop(self.row.policy)
            session.cooldowns.record_ask(choice.arm, now)
        finally:
            session.tag = ""
        account, hold = lending.place(self.account, choice.hold)
        self.lease = self.lease.with_money(account)
        return choice, hold, now

    def cap(self, decision: DecisionRow) -> int:
        return decision.hold.amount if self.session is None else int(self.session.caps[decision.arm])

    def add_event(self, event: Event) -> None:
        self.lease = add_lease_event(self._tx, self.lease, event)
        if self._own is not None:
            self._own.session.tag, self._own.lease_seq = self.lease.digest, self.lease.lease_seq

    def book(self, account: Account, event: Event, created_at: float, decision: DecisionRow | None = None) -> None:
        self.lease = self.lease.with_money(account)
        if self.session is not None and decision is not None:
            self.session.tag = ""
            self.session.record_feedback(decision, event)
        self.add_event(event)

    def fail(self, account: Account, failure: Event, cost: Event | None, created_at: float) -> None:
        self.lease = self.lease.with_money(account)
        if self.session is not None:
            assert failure.arm is not None
            self.session.tag = ""
            self.session.cooldowns.record_failure(failure.arm, failure.at, created_at)
        self.add_event(failure)
        if cost is not None:
            self.add_event(cost)


def add_lease_event(tx: Transaction, lease: Lease, event: Event, new: bool = False) -> Lease:
    """Write an event of a lease, and the lease as it is after it, which is returned."""
    lease = copied(lease)
    lease.lease_seq, lease.digest = lease.lease_seq + 1, digest(lease.digest, event)
    event.lease, event.lease_seq = lease.id, lease.lease_seq
    (tx.add_lease if new else tx.save_lease)(lease)
    tx.add_event(event)
    return lease


def digest(before: str, event: Event) -> str:
    """A digest of all events of a lease, this one the last: it says what is known under the lease."""
    reward = None if event.reward is None else float(event.reward) + 0.0  # as a database returns it
    text = f"{before} {event.kind} {event.decision} {event.arm} {event.amount} {reward}"
    if event.request is not None:
        text += f" {event.request}"
    return hashlib.blake2b(text.encode(), digest_size=12).hexdigest()


class Leases:
    """The leases that one server has, and what it does with those of others."""

    def __init__(self, sessions: SessionCache, clock: Clock | None) -> None:
        self.sessions = sessions
        self._clock = clock
        self._held: dict[str, OwnLease] = {}
        """Leases by campaign; each is read and changed only while it is locked."""
        self.leasing: dict[str, Campaign] = {}
        """Campaigns that lease, by id and by name; only what never changes of them is used. No other campaign is asked
        for here, but by `recalled`."""

    def scope(self, scope: Scope) -> Scope:
        """The scope of work on a campaign that leases: a store may do without the campaign's row."""
        row = self.leasing[scope.campaign]
        held = self._held.get(row.id)
        return scope._replace(campaign=row.id, lease="" if held is None else held.lease)

    def campaign(self, campaign: str) -> Campaign:
        """A campaign's row, of which only what never changes is true, for a transaction that has leases alone."""
        row = self.leasing.get(campaign)
        if row is None:
            raise CampaignNeeded
        return row

    # --- which funds ---------------------------------------------------------------------------------------------

    def of_decision(self, tx: Transaction, row: Campaign, decision: DecisionRow) -> Funds:
        """The funds that a decision's hold is in."""
        self.leasing[row.id] = self.leasing[row.name] = row
        lease = None
        if decision.lease is not None and tx.leases_alone:
            lease = tx.lease(decision.lease)
        elif decision.lease is not None:  # all at once, and so in order: the next decision may be of another lease
            lease = next((lease for lease in tx.leases(row.id) if lease.id == decision.lease), None)
        if lease is not None:
            return LeaseFunds(tx, row, lease, self._own_lease(lease))
        if tx.leases_alone:
            raise CampaignNeeded
        return CampaignFunds(tx, self.sessions, row)

    def for_cost(self, tx: Transaction, funds: Funds, decision: DecisionRow, cost: int) -> Funds:
        """The funds that a cost is booked in: one that may be an overrun, and freeze the campaign, ends all leases."""
        if decision.hold.state == "pending" and funds.pays(decision, cost):
            return funds
        if tx.leases_alone:
            raise CampaignNeeded
        return CampaignFunds(tx, self.sessions, self.recalled(tx, find_campaign(tx, decision.campaign)))

    def alone(self, tx: Transaction, row: Campaign) -> LeaseFunds:
        """The lease of this server, if a decision can be made under it as it is."""
        held = self._held.get(row.id)
        lease = None if held is None else tx.lease(held.lease)
        funds = self._ready(tx, row, lease)
        if funds is None:
            if lease is None and self._held.get(row.id) is held:
                self._held.pop(row.id, None)  # it has ended: from now on the campaign is asked at once
            raise CampaignNeeded
        return funds

    def for_deciding(self, tx: Transaction, row: Campaign) -> Funds:
        """The funds that a new decision is paid from: a lease if there can be one, or else the campaign."""
        wanted = row.settings.lease
        if wanted is None or row.account.status != "active":
            return CampaignFunds(tx, self.sessions, row)
        self.leasing[row.id] = self.leasing[row.name] = row
        needed = self.sessions.of(tx, row).largest_cap
        shared_for_deciding(tx, row, moment(tx, self._clock))
        # all may have to be ended: then all are read before one of them is
        others = self._in_the_way(tx, row, needed)
        held = self._held.get(row.id)
        lease = None if held is None else tx.lease(held.lease)
        funds = self._ready(tx, row, lease)
        if funds is not None:
            return funds
        if lease is not None and _ahead(row, lease, moment(tx, self._clock)):
            others = [other for other in others if other.id != lease.id]
            row, lease = self._end(tx, row, lease), None
        free = spendable(tx, row).left + (0 if lease is None else lease.account.left)
        amount = lending.size(free, wanted)
        if amount >= needed:
            row, lease = self._renewed(tx, row, lease, amount)
            return LeaseFunds(tx, row, lease, self._own_lease(lease))
        return self._own_money(tx, row, others)

    def for_batch(self, tx: Transaction, row: Campaign, count: int) -> Funds:
        """The campaign's own funds, for ``count`` new decisions."""
        if row.account.status != "active":
            return CampaignFunds(tx, self.sessions, row)
        return self._own_money(tx, row, self._in_the_way(tx, row, count * self.sessions.of(tx, row).largest_cap))

    def _in_the_way(self, tx: Transaction, row: Campaign, needed: int) -> list[Lease]:
        """All leases, if the campaign itself has less than what is needed."""
        return tx.leases(row.id) if row.account.leased and spendable(tx, row).left < needed else []

    def _own_money(self, tx: Transaction, row: Campaign, others: Sequence[Lease]) -> CampaignFunds:
        """The campaign's own funds when these leases have ended."""
        # to choose from what fits the campaign's own money would choose the cheap arms for being cheap; but if no arm
        # could be paid even so, this is refused, and then nothing should have been written
        free = spendable(tx, row).left + sum(other.account.left for other in others)
        if free >= self.sessions.of(tx, row).smallest_cap:
            row = self._end_all(tx, row, others)
        return CampaignFunds(tx, self.sessions, row)

    def _own_lease(self, lease: Lease) -> OwnLease | None:
        held = self._held.get(lease.campaign)
        return held if held is not None and held.lease == lease.id else None

    def _ready(self, tx: Transaction, row: Campaign, lease: Lease | None) -> LeaseFunds | None:
        """The funds of a lease of this server's; None if it has ended or must be merged first."""
        held = None if lease is None else self._own_lease(lease)
        if lease is None or held is None or lease.account.left < held.session.largest_cap:
            return None
        seconds, left = row.settings.terms.lease_seconds, lease.expires_at - moment(tx, self._clock)
        # more is left if the clock was wrong when it was merged
        if not seconds / 2 < left <= seconds + CLOCK_STEP_SECONDS_MAX:
            return None
        if held.session.tag != lease.digest and not _catch_up(tx, held, lease):
            return None
        return LeaseFunds(tx, row, lease, held)

    # --- taken, merged, ended: the campaign is locked ------------------------------------------------------------

    def _renewed(self, tx: Transaction, row: Campaign, lease: Lease | None, free: int) -> tuple[Campaign, Lease]:
        """The lease merged, or a new one, with so much to decide with; knowing what the campaign knows."""
        now = moment(tx, self._clock)
        if lease is None:
            account, lent = lending.lend(row.account, free)
            row = row.with_money(account)
            tx.save_money(row)
            lease, new = Lease(os.urandom(16).hex(), row.id, lent, 0.0), True
        else:
            account, lent = lending.merge(row.account, lease.account)
            account, lent = lending.resize(account, lent, lent.held + free)
            row = self._learn(tx, row.with_money(account), lease)
            lease, new = replace(lease, account=lent), False
        lease = replace(lease, expires_at=now + row.settings.terms.lease_seconds, merged_seq=lease.lease_seq + 1)
        event = Event(
            row.id, "leased" if new else "merged", now, amount=lease.account.budget, shared_left=shared_left(tx, row)
        )
        lease = add_lease_event(tx, lease, event, new)
        session, account = self.sessions.of(tx, row).copy(lease.digest), capped(row.account, event.shared_left)
        session.set_remaining(account)
        self._held[row.id] = OwnLease(lease.id, session, lease.lease_seq, account)
        return row, lease

    def recalled(self, tx: Transaction, row: Campaign) -> Campaign:
        """The campaign when all its leases have ended."""
        return self._end_all(tx, row, tx.leases(row.id)) if row.settings.lease is not None else row

    def end_due(self, tx: Transaction, row: Campaign, now: float) -> None:
        """End the leases of a campaign whose time is over."""
        self._end_all(tx, row, [lease for lease in tx.leases(row.id) if lease.expires_at <= now])

    def _end_all(self, tx: Transaction, row: Campaign, leases: Iterable[Lease]) -> Campaign:
        for lease in leases:
            row = self._end(tx, row, lease)
        return row

    def _end(self, tx: Transaction, row: Campaign, lease: Lease) -> Campaign:
        before, now = row, moment(tx, self._clock)
        row = self._learn(tx, row.with_money(lending.give_back(row.account, lease.account)), lease)
        add_lease_event(tx, lease, Event(row.id, "returned", now, amount=0))
        if _ahead(row, lease, now):
            lapse(tx, before, row.account, now, math.inf)
        tx.drop_lease(lease.id)
        return row

    def _learn(self, tx: Transaction, row: Campaign, lease: Lease) -> Campaign:
        """The campaign when it has learned what was reported under the lease since it was merged, and is written."""
        events = tx.lease_events(lease.id, lease.merged_seq)
        with self.sessions.changing(tx, row) as change:
            change.arms = learn_all(change.session, events)
        return change.row


def _ahead(row: Campaign, lease: Lease, now: float) -> bool:
    """Whether a lease was merged by a clock that was ahead."""
    return lease.expires_at > now + row.settings.terms.lease_seconds + CLOCK_STEP_SECONDS_MAX


def learn_all(session: CampaignSession, events: Iterable[LeaseEvent]) -> list[int]:
    """Let a session go through what happened under a lease; the arms that have changed.

    Choices that leave a trace (how many there were, whose turn it is) are made again for its sake alone.
    """
    before, events = dict(vars(session.state)), list(events)
    last = {own.event.decision: own.event.lease_seq for own in events if own.event.kind in FEEDBACK_EVENTS}
    arms, failed = set[int](), set[str | None]()
    for event, cost, reward, request, made_at in events:
        if event.kind == "decided":
            assert event.arm is not None
            if session.leaves_traces:
                offer = session.offer(ResolvedRequest.from_json(event.request), event.at)
                assert offer is not None
                session.choose_arm(str(event.decision), offer.available, cooling=offer.cooling)
            if session.cooldowns.record_ask(event.arm, event.at):
                arms.add(event.arm)
        elif event.kind == "failed":
            assert event.arm is not None
            assert made_at is not None
            session.cooldowns.record_failure(event.arm, event.at, made_at)
            arms.add(event.arm)
            failed.add(event.decision)
        elif event.kind in FEEDBACK_EVENTS and event.decision not in failed:
            assert event.arm is not None
            assert made_at is not None
            if last[event.decision] != event.lease_seq:
                reward = None  # reported in two parts, a decision is learned from when the second is there
            pull = Pull(str(event.decision), event.arm, reward, cost, request, made_at)
            arms.update(session.record_feedback(pull, event))
    return sorted(arms.union(session.learner.changed_since(before)))


def _catch_up(tx: Transaction, held: OwnLease, lease: Lease) -> bool:
    """Learn what was reported to other servers under this lease; False if what is known here is nothing that was
    committed."""
    events, tag = tx.lease_events(lease.id, held.lease_seq), held.session.tag
    for own in events:
        tag = digest(tag, own.event)
    if not held.session.tag or tag != lease.digest or any(own.event.kind not in EVENTS_BY_OTHERS for own in events):
        return False
    held.session.tag = ""
    learn_all(held.session, events)
    held.session.tag, held.lease_seq = lease.digest, lease.lease_seq
    return True
