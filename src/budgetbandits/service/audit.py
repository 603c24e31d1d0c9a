"""Replay a campaign's events and compare: the money, every hold, every choice and everything that was learnt.

The events are written in the transaction of what they tell, and never changed. If the rows that decisions are made from
say anything else than their replay, something is wrong with the database or with us.

Events that have a lease are replayed in that lease: its own money and what is known under it. Where it is merged or
ended the campaign learns from them too. Events of one lease, and those of the campaign's own, are numbered in the order
of their commits, and what is about both in that of both; so one pass in the order of numbers is right, however the
events of different leases are mixed.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

from budgetbandits.errors import BudgetBanditsError
from budgetbandits.policies import parse_policy
from budgetbandits.service import lease_ledger, ledger
from budgetbandits.service.campaign_learner import CampaignLearner
from budgetbandits.service.leases import learn_all
from budgetbandits.service.ledger import Account, Hold
from budgetbandits.service.purses import digest
from budgetbandits.service.settings import limits_of, terms_of
from budgetbandits.service.stores.base import (
    ArmRow,
    Campaign,
    Event,
    Lease,
    LeaseEvent,
    Store,
    T,
    Transaction,
    all_events,
    found,
)


def verify(store: Store, campaign: str) -> list[str]:
    """What does not agree, in words; empty if everything does."""
    return store.read(lambda tx: _verify(tx, campaign))


def _verify(tx: Transaction, campaign: str) -> list[str]:
    row = found(tx, campaign)
    arms = tx.arms(row.id)
    replay = _Replay.of(row, arms, list(all_events(tx, row.id)))
    wrong = replay.run()
    if replay.account != row.account:
        wrong.append(f"the campaign's row says {row.account}, its events {replay.account}")
    for id, hold in replay.holds.items():
        made = tx.decision(id)
        if made is None or (made.hold, made.cost, made.reward) != (hold, replay.cost.get(id), replay.reward.get(id)):
            wrong.append(f"decision {id}: the row says {made}, the events {hold}")
    wrong += replay.compare_leases(tx.leases(row.id))
    learner = replay.learner
    for arm in arms:
        learned = learner.of_arm(arm.number)
        if arm.learned != learned or arm.active != learner.state.active[arm.number]:
            wrong.append(f"arm {arm.name!r}: the row says {arm.learned}, the events {learned}")
    if row.learned["single"] != learner.of_all():
        wrong.append(f"the campaign's row says {row.learned['single']}, its events {learner.of_all()}")
    return wrong


@dataclass
class _Lent:
    """A lease as its events make it."""

    lease: Lease
    learner: CampaignLearner
    events: list[LeaseEvent] = field(default_factory=list)
    """What the campaign has not learnt from."""


@dataclass
class _Replay:
    """The campaign as its events make it."""

    row: Campaign
    arms: list[ArmRow]
    events: list[Event]
    account: Account
    learner: CampaignLearner
    lent: dict[str, _Lent] = field(default_factory=dict)
    holds: dict[str, Hold] = field(default_factory=dict)
    cost: dict[str, int] = field(default_factory=dict)
    reward: dict[str, float] = field(default_factory=dict)

    @classmethod
    def of(cls, row: Campaign, arms: list[ArmRow], events: list[Event]) -> _Replay:
        added = {event.arm for event in events if event.kind == "arm added"}
        first = [arm for arm in arms if arm.number not in added]
        policy = parse_policy(row.policy)
        learner = CampaignLearner.new(
            policy, [arm.name for arm in first], [arm.cost_cap for arm in first], row.settings
        )
        return cls(row, arms, events, Account(0), learner)

    def run(self) -> list[str]:
        handlers: dict[str, Callable[[Event], None]] = {
            "created": self._created,
            "topped up": self._topped_up,
            "arm added": self._arm_added,
            "arm retired": self._arm_retired,
            "decided": self._decided,
            "settled": self._settled,
            "rewarded": self._rewarded,
            "voided": self._voided,
            "expired": self._expired,
            "leased": self._leased,
            "merged": self._merged,
            "returned": self._returned,
        }
        wrong = []
        for event in self.events:
            try:
                if event.lease is not None and event.kind != "leased":
                    self._turn(event)
                handlers.get(event.kind, self._status)(event)
            except (BudgetBanditsError, ArithmeticError, KeyError, AssertionError) as error:
                wrong.append(f"event {event.seq} ({event.kind}) cannot have happened: {error}")
        return wrong

    def _created(self, event: Event) -> None:
        self.account = Account(_known(event.amount))

    def _topped_up(self, event: Event) -> None:
        self.account = ledger.top_up(self.account, _known(event.amount))
        self.learner.hear_budget(self.account.budget, self.row.settings)

    def _arm_added(self, event: Event) -> None:
        self.learner.add(self.arms[_known(event.arm)].name, _known(event.amount))

    def _arm_retired(self, event: Event) -> None:
        self.learner.retire(_known(event.arm))

    def _status(self, event: Event) -> None:
        self.account = replace(self.account, status=event.kind)  # type: ignore[arg-type]

    # --- decisions, of the campaign's own or under a lease -------------------------------------------------------

    def _decided(self, event: Event) -> None:
        id, amount, lent = _known(event.decision), _known(event.amount), self._lent(event)
        if lent is None:
            fitting = self.learner.fitting(self.account.left)
            arm = None if fitting is None else self.learner.choose(id, fitting)
            self.account, self.holds[id] = ledger.place(self.account, amount, event.at, limits_of(self.row))
        else:
            assert lent.lease.account.left >= lent.learner.most, "a lease decides only if it can pay every arm"
            arm = lent.learner.choose(id, lent.learner.state.active)
            account, self.holds[id] = lease_ledger.place(lent.lease.account, amount)
            self._book(event, account)
        assert arm == event.arm, f"the policy would have chosen arm {arm}, not {event.arm}"

    def _settled(self, event: Event) -> None:
        id, cost = _known(event.decision), _known(event.amount)
        account, self.holds[id] = ledger.settle(self._account(event), self.holds[id], cost)
        self.cost[id] = cost
        if event.reward is not None:
            self.reward[id] = event.reward
        self._book(event, account)
        self._learn(event)

    def _rewarded(self, event: Event) -> None:
        self.reward[_known(event.decision)] = _known(event.reward)
        self._learn(event)

    def _voided(self, event: Event) -> None:
        id = _known(event.decision)
        account, self.holds[id] = ledger.void(self._account(event), self.holds[id])
        self._book(event, account)

    def _expired(self, event: Event) -> None:
        id, charge = _known(event.decision), terms_of(self.row).on_expire == "charge"
        account, self.holds[id] = ledger.expire(self._account(event), self.holds[id], charge)
        self._book(event, account)

    def _learn(self, event: Event) -> None:
        id, lent = _known(event.decision), self._lent(event)
        cost, reward = self.cost.get(id), self.reward.get(id)
        if lent is not None:
            lent.events.append(LeaseEvent(event, cost, reward))
        if cost is not None and reward is not None:
            learner = self.learner if lent is None else lent.learner
            learner.learn(id, _known(event.arm), reward, cost, self.row.settings)

    def _lent(self, event: Event) -> _Lent | None:
        return None if event.lease is None else self.lent[event.lease]

    def _account(self, event: Event) -> Account:
        lent = self._lent(event)
        return self.account if lent is None else lent.lease.account

    def _book(self, event: Event, account: Account) -> None:
        lent = self._lent(event)
        if lent is None:
            self.account = account
        else:
            assert account.overrun == 0, "an overrun under a lease"
            lent.lease = replace(lent.lease, account=account)
            if event.kind == "decided":
                lent.events.append(LeaseEvent(event, None, None))

    # --- leases --------------------------------------------------------------------------------------------------

    def _turn(self, event: Event) -> None:
        lease = self.lent[_known(event.lease)].lease
        assert event.turn == lease.turn + 1, f"turn {event.turn} of the lease after turn {lease.turn}"
        self.lent[lease.id].lease = replace(lease, turn=event.turn, tag=digest(lease.tag, event))

    def _leased(self, event: Event) -> None:
        id = _known(event.lease)
        assert id not in self.lent, "the lease is there already"
        self.account, lent = lease_ledger.lend(self.account, _known(event.amount))
        lease = Lease(id, self.row.id, lent, event.at, 0)
        self.lent[id] = _Lent(lease, self.learner)
        self._turn(event)
        self._renewed(event, lent)

    def _merged(self, event: Event) -> None:
        lent = self.lent[_known(event.lease)]
        self.account, account = lease_ledger.merge(self.account, lent.lease.account)
        self.account, account = lease_ledger.resize(self.account, account, _known(event.amount))
        learn_all(self.learner, lent.events, self.row)
        self._renewed(event, account)

    def _renewed(self, event: Event, account: Account) -> None:
        """The lease of this account, knowing what the campaign knows."""
        lent = self.lent[_known(event.lease)]
        ends = event.at + terms_of(self.row).lease_seconds
        lease = replace(lent.lease, account=account, expires_at=ends, merged=_known(event.turn))
        self.lent[lease.id] = _Lent(lease, self.learner.copy(lease.tag))

    def _returned(self, event: Event) -> None:
        lent = self.lent.pop(_known(event.lease))
        self.account = lease_ledger.give_back(self.account, lent.lease.account)
        learn_all(self.learner, lent.events, self.row)

    def compare_leases(self, rows: list[Lease]) -> list[str]:
        """What the rows of leases and the events do not agree about."""
        there = {row.id: row for row in rows}
        made = {id: lent.lease for id, lent in self.lent.items()}
        return [
            f"lease {id}: the row says {there.get(id)}, the events {made.get(id)}"
            for id in sorted(there.keys() | made.keys())
            if there.get(id) != made.get(id)
        ]


def _known(value: T | None) -> T:
    assert value is not None, "the event lacks a number"
    return value
