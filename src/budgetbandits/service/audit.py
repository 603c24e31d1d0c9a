"""Replay a campaign's events and compare: the money, every hold, every choice and everything that was learnt.

The events are written in the transaction of what they tell, and never changed. If the rows that decisions are made from
say anything else than their replay, something is wrong with the database or with us.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

from budgetbandits.errors import BudgetBanditsError
from budgetbandits.policies import parse_policy
from budgetbandits.service import ledger
from budgetbandits.service.campaign_learner import CampaignLearner
from budgetbandits.service.ledger import Account, Hold
from budgetbandits.service.settings import limits_of, terms_of
from budgetbandits.service.stores.base import ArmRow, Campaign, Event, Store, T, Transaction, all_events, found


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
    listed = tx.pending(row.id)
    for id, hold in replay.holds.items():
        made = tx.decision(id)
        if made is None or (made.hold, made.cost, made.reward) != (hold, replay.cost.get(id), replay.reward.get(id)):
            wrong.append(f"decision {id}: the row says {made}, the events {hold}")
        elif listed.pop(id, None) != (made.expires_at if hold.state == "pending" else None):
            wrong.append(f"decision {id} is {hold.state}, and the list of what may expire does not say so")
    wrong += [f"decision {id} may expire, and no event tells of it" for id in listed]
    learner = replay.learner
    for arm in arms:
        learned = learner.of_arm(arm.number)
        if arm.learned != learned or arm.active != learner.state.active[arm.number]:
            wrong.append(f"arm {arm.name!r}: the row says {arm.learned}, the events {learned}")
    if row.learned["single"] != learner.of_all():
        wrong.append(f"the campaign's row says {row.learned['single']}, its events {learner.of_all()}")
    return wrong


@dataclass
class _Replay:
    """The campaign as its events make it."""

    row: Campaign
    arms: list[ArmRow]
    events: list[Event]
    account: Account
    learner: CampaignLearner
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
            "set back": self._set_back,
        }
        wrong = []
        for event in self.events:
            try:
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

    def _decided(self, event: Event) -> None:
        id = _known(event.decision)
        fitting = self.learner.fitting(self.account.left)
        arm = None if fitting is None else self.learner.choose(id, fitting)
        assert arm == event.arm, f"the policy would have chosen arm {arm}, not {event.arm}"
        amount, limits = _known(event.amount), limits_of(self.row)
        self.account, self.holds[id] = ledger.place(self.account, amount, event.at, limits)

    def _settled(self, event: Event) -> None:
        id, cost = _known(event.decision), _known(event.amount)
        self.account, self.holds[id] = ledger.settle(self.account, self.holds[id], cost)
        self.cost[id] = cost
        if event.reward is not None:
            self.reward[id] = event.reward
        self._learn(id, _known(event.arm))

    def _rewarded(self, event: Event) -> None:
        id = _known(event.decision)
        self.reward[id] = _known(event.reward)
        self._learn(id, _known(event.arm))

    def _voided(self, event: Event) -> None:
        id = _known(event.decision)
        self.account, self.holds[id] = ledger.void(self.account, self.holds[id])

    def _expired(self, event: Event) -> None:
        id, charge = _known(event.decision), terms_of(self.row).on_expire == "charge"
        self.account, self.holds[id] = ledger.expire(self.account, self.holds[id], charge)

    def _set_back(self, event: Event) -> None:
        day = ledger.day_of(event.at)
        of_day = [hold for hold in self.holds.values() if hold.day == day]
        booked = sum(hold.amount if hold.state == "pending" else hold.charged for hold in of_day)
        self.account = ledger.set_back(self.account, day, booked)

    def _learn(self, id: str, arm: int) -> None:
        if id in self.cost and id in self.reward:
            self.learner.learn(id, arm, self.reward[id], self.cost[id], self.row.settings)


def _known(value: T | None) -> T:
    assert value is not None, "the event lacks a number"
    return value
