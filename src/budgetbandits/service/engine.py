"""Campaigns: a policy that decides and a ledger that pays, changed together in one transaction or not at all.

Every operation is one function over a transaction: read the campaign, apply the rules of `ledger` and the policy, write
the rows and one event for each thing that happened. The events are the truth that `audit.verify` replays.

A policy learns from a decision once both its reward and its cost are known, in whichever order they come.
"""

from __future__ import annotations

import hashlib
import json
import math
import time
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

from budgetbandits.errors import (
    BadParameter,
    Conflict,
    HoldRefused,
    NoArmLeft,
    NotFound,
    RewardOutOfRange,
    UnknownArm,
)
from budgetbandits.policies import parse_policy
from budgetbandits.service import ledger
from budgetbandits.service.ledger import Account, Status, to_micros, to_units
from budgetbandits.service.mind import Mind
from budgetbandits.service.stores.base import Campaign, Decision, Event, Store, Transaction

HOLD_SECONDS = 3600.0
EXPIRED_AT_ONCE = 500
"""Holds that one transaction expires."""


@dataclass(frozen=True)
class Answer:
    """What a caller is told: which arm, and until when its money is held."""

    decision: str
    campaign: str
    arm: str
    hold: float
    expires_at: float


class Engine:
    """The operations of the service on a store.

    >>> import tempfile
    >>> from budgetbandits.service.stores.sqlite import SQLiteStore
    >>> with tempfile.TemporaryDirectory() as folder, SQLiteStore(folder + "/money.db") as store:
    ...     engine = Engine(store)
    ...     campaign = engine.create("ads", "bts", budget=5.0, arms={"search": 1.0, "mail": 0.5})
    ...     answer = engine.decide(campaign, key="visitor 1")
    ...     engine.feedback(answer.decision, reward=1.0, cost=0.25)
    ...     engine.account(campaign).spent
    250000
    """

    def __init__(self, store: Store, clock: Callable[[], float] = time.time) -> None:
        self._store = store
        self._clock = clock
        self._minds: dict[str, Mind] = {}

    # --- campaigns -----------------------------------------------------------------------------------------------

    def create(
        self,
        name: str,
        policy: str,
        budget: float,
        arms: Mapping[str, float],
        *,
        reward_max: float = 1.0,
        hold_seconds: float = HOLD_SECONDS,
        on_expire: Literal["charge", "release"] = "charge",
        known: Mapping[str, Any] | None = None,
    ) -> str:
        """A new campaign; ``arms`` maps each arm's name to the most that one pull of it can cost.

        ``known`` is for policies that must know something: cost_floor, or costs by arm, in the user's unit.
        """
        if len(arms) < 2:
            raise BadParameter(f"{len(arms)} arms; there is nothing to choose with fewer than two")
        if not (isinstance(name, str) and name.strip()):
            raise BadParameter(f"name is {name!r:.40}; give the campaign one")
        caps = [_cap(arm, cap) for arm, cap in arms.items()]
        amount = to_micros(budget, "budget")
        if amount < min(caps):
            raise BadParameter(f"budget is {budget:g}, less than any single pull may cost; raise it")
        if on_expire not in ("charge", "release"):
            raise BadParameter(f"on_expire is {on_expire!r:.40}; use charge or release")
        rule = parse_policy(policy)
        settings: dict[str, Any] = {
            "reward_max": _positive("reward_max", reward_max),
            "hold_seconds": _positive("hold_seconds", hold_seconds),
            "on_expire": on_expire,
            "cost_max": max(caps),
            "known": _scaled(known or {}, list(arms), amount, max(caps)),
        }
        mind = Mind.new(rule, list(arms), caps, settings["known"])
        campaign = mind.of_campaign(
            Campaign(uuid.uuid4().hex, name, rule.spec, Account(amount), self._clock(), settings)
        )  # fmt: skip

        def work(tx: Transaction) -> None:
            if any(other.name == name for other in tx.campaigns()):
                raise Conflict(f"there is a campaign {name!r} already; give this one another name")
            tx.add_campaign(campaign)
            tx.save_arms([mind.row(campaign, arm) for arm in range(len(arms))])
            tx.add_event(Event(campaign.id, "created", campaign.created_at, amount=amount))

        self._store.write(work)
        return campaign.id

    def account(self, campaign: str) -> Account:
        return self._store.read(lambda tx: _found(tx, campaign).account)

    def campaigns(self) -> list[str]:
        """The ids of all campaigns, the oldest first."""
        return self._store.read(lambda tx: [row.id for row in tx.campaigns()])

    def describe(self, campaign: str) -> dict[str, Any]:
        """A campaign's money, in the user's unit, and its arms."""

        def work(tx: Transaction) -> dict[str, Any]:
            row = _found(tx, campaign)
            account, arms = row.account, tx.arms(campaign)
            amounts = {
                name: to_units(getattr(account, name)) for name in ("budget", "spent", "held", "left", "overrun")
            }
            return {
                "id": row.id, "name": row.name, "policy": row.policy, "status": account.status, **amounts,
                "created_at": row.created_at,
                "arms": [
                    {"name": arm.name, "cost_cap": to_units(arm.cost_cap), "active": arm.active,
                     "pulls": arm.learned["pulls"]}
                    for arm in arms
                ],
            }  # fmt: skip

        return self._store.read(work)

    def top_up(self, campaign: str, amount: float) -> None:
        micros = to_micros(amount, "amount")

        def work(tx: Transaction) -> None:
            row = _found(tx, campaign)
            mind = self._mind(tx, row)
            row = replace(row, account=ledger.top_up(row.account, micros))
            if mind.hear_budget(row.account.budget, row.settings):
                row = mind.of_campaign(row)
            tx.save_campaign(row)
            tx.add_event(Event(campaign, "topped up", self._clock(), amount=micros))

        self._store.write(work)

    def set_status(self, campaign: str, status: Status) -> None:
        """Pause, resume (also after a freeze), or close for good."""

        def work(tx: Transaction) -> None:
            row = _found(tx, campaign)
            if row.account.status == "closed":
                raise Conflict(f"campaign {row.name!r} is closed for good; create a new one")
            tx.save_campaign(replace(row, account=replace(row.account, status=status)))
            tx.add_event(Event(campaign, status, self._clock()))

        self._store.write(work)

    def add_arm(self, campaign: str, name: str, cost_cap: float) -> None:
        """A new arm, from the next decision on."""
        cap = _cap(name, cost_cap)

        def work(tx: Transaction) -> None:
            row = _found(tx, campaign)
            mind, most = self._mind(tx, row), row.settings["cost_max"]
            if name in mind.names:
                raise Conflict(f"there is an arm {name!r} already; give this one another name")
            if cap > most:
                raise BadParameter(
                    f"{name!r} may cost {cost_cap:g}, the campaign's most is {to_units(most):g}; lower it"
                )
            if "costs" in mind.state.known:
                raise BadParameter(f"{row.policy} knows all costs beforehand; create a new campaign with the new arm")
            arm = mind.add(name, cap)
            row = mind.of_campaign(row)
            tx.save_arms([mind.row(row, arm)])
            tx.save_campaign(row)
            tx.add_event(Event(campaign, "arm added", self._clock(), arm=arm, amount=cap))

        self._store.write(work)

    def retire_arm(self, campaign: str, name: str) -> None:
        """Never choose this arm again; its open decisions can still be told."""

        def work(tx: Transaction) -> None:
            row = _found(tx, campaign)
            mind = self._mind(tx, row)
            if name not in mind.names:
                raise UnknownArm(f"no arm {name!r:.60}; the arms are {', '.join(mind.names[:8])}")
            arm, active = mind.names.index(name), mind.state.active
            if active[arm] and active.sum() == 1:
                raise NoArmLeft(f"{name!r} is the last arm; add another before retiring it")
            active[arm] = False
            row = mind.of_campaign(row)
            tx.save_arms([mind.row(row, arm)])
            tx.save_campaign(row)
            tx.add_event(Event(campaign, "arm retired", self._clock(), arm=arm))

        self._store.write(work)

    # --- decisions -----------------------------------------------------------------------------------------------

    def decide(self, campaign: str, key: str, context: Mapping[str, Any] | None = None) -> Answer:
        """Choose an arm and hold its cost cap. The same key gives the same answer; with another context, a conflict."""
        if not (isinstance(key, str) and 0 < len(key) <= 200):
            raise BadParameter("key must be text of 1 to 200 characters: one for each decision, the same when retried")
        payload = hashlib.sha256(json.dumps(context or {}, sort_keys=True).encode()).hexdigest()
        return self._store.write(lambda tx: self._decide(tx, campaign, key, payload))

    def _decide(self, tx: Transaction, campaign: str, key: str, payload: str) -> Answer:
        row = _found(tx, campaign)
        mind = self._mind(tx, row)
        made = tx.decision_by_key(campaign, key)
        if made is not None:
            if made.payload != payload:
                raise Conflict(f"key {key!r:.60} was used with another context; use a new key for a new decision")
            return _answer(made, mind)
        ledger.check_open(row.account)
        now, id = self._clock(), uuid.uuid4().hex
        before = mind.copy()
        arm = mind.choose(id, row.account.left)
        if arm is None:
            self._minds.pop(campaign, None)  # a choice that is not made may have moved the policy on
            cheapest = int(mind.caps[mind.state.active].min())
            ledger.place(row.account, cheapest)
            raise HoldRefused(
                "policy_stopped", f"{row.policy} stops here: it can afford no arm, or its horizon is over"
            )
        account, hold = ledger.place(row.account, int(mind.caps[arm]))
        decision = Decision(id, campaign, arm, hold, key, payload, now, now + row.settings["hold_seconds"])
        self._remember(tx, replace(row, account=account), mind, before)
        tx.add_decision(decision)
        tx.add_event(Event(campaign, "decided", now, id, arm, hold.amount))
        return _answer(decision, mind)

    def feedback(
        self, decision: str, *, reward: float | None = None, cost: float | None = None, campaign: str | None = None
    ) -> None:
        """What a decision brought, what it cost, or both. Told again with the same numbers it changes nothing.

        With ``campaign`` a decision of another one is not found.
        """
        micros = None if cost is None else to_micros(cost, "cost")
        if reward is not None and (isinstance(reward, bool) or not math.isfinite(reward)):
            raise RewardOutOfRange(f"reward is {reward!r:.40}; pass a finite number")
        self._store.write(lambda tx: self._feedback(tx, decision, campaign, reward, micros))

    def _feedback(self, tx: Transaction, id: str, campaign: str | None, reward: float | None, cost: int | None) -> None:
        row, made = _locked(tx, id, campaign)
        if made.hold.state == "voided":
            raise Conflict(f"decision {id} was voided; nothing can be told about it")
        most = row.settings["reward_max"]
        if reward is not None and not 0.0 <= reward <= most:
            raise RewardOutOfRange(f"reward {reward:g} is not in [0, {most:g}]; pass a number in that range")
        new_cost, new_reward = _news("cost", made.cost, cost), _news("reward", made.reward, reward)
        now, account, told = self._clock(), row.account, made
        if new_cost:
            assert cost is not None
            account, hold = ledger.settle(account, made.hold, cost)
            told = replace(told, hold=hold, cost=cost)
            tx.add_event(Event(row.id, "settled", now, id, made.arm, cost))
        if new_reward:
            told = replace(told, reward=reward)
            tx.add_event(Event(row.id, "rewarded", now, id, made.arm, reward=reward))
        if not (new_cost or new_reward):
            return
        tx.save_decision(told)
        row = replace(row, account=account)
        if told.cost is None or told.reward is None:
            tx.save_campaign(row)
            return
        mind = self._mind(tx, row)
        before = mind.copy()
        mind.learn(id, told.arm, told.reward, told.cost, row.settings)
        self._remember(tx, row, mind, before)

    def void(self, decision: str, campaign: str | None = None) -> None:
        """The call was never made: the money is free again. Voiding twice changes nothing."""

        def work(tx: Transaction) -> None:
            row, made = _locked(tx, decision, campaign)
            if made.hold.state == "voided":
                return
            account, hold = ledger.void(row.account, made.hold)
            tx.save_decision(replace(made, hold=hold))
            tx.save_campaign(replace(row, account=account))
            tx.add_event(Event(row.id, "voided", self._clock(), decision, made.arm))

        self._store.write(work)

    def expire_due(self) -> int:
        """Resolve the holds whose time is over; how many there were."""

        def work(tx: Transaction) -> int:
            now = self._clock()
            due = sorted(tx.due(now, EXPIRED_AT_ONCE), key=lambda made: made.campaign)  # one order of locks for all
            for each in due:
                row, made = _locked(tx, each.id)
                if made.hold.state != "pending":
                    continue  # told while we waited for the lock
                account, hold = ledger.expire(row.account, made.hold, row.settings["on_expire"] == "charge")
                tx.save_decision(replace(made, hold=hold))
                tx.save_campaign(replace(row, account=account))
                tx.add_event(Event(row.id, "expired", now, made.id, made.arm, hold.charged))
            return len(due)

        return self._store.write(work)

    # --- what the policy knows -----------------------------------------------------------------------------------

    def _mind(self, tx: Transaction, row: Campaign) -> Mind:
        """The campaign's mind as of this transaction: the one at hand, or read anew if that is of another change."""
        mind = self._minds.get(row.id)
        if mind is None or mind.tag != row.learned["tag"]:
            mind = self._minds[row.id] = Mind.remembered(row, tx.arms(row.id))
        return mind

    def _remember(self, tx: Transaction, row: Campaign, mind: Mind, before: dict[str, Any]) -> None:
        """Write the campaign, and of what is learnt whatever is different from before."""
        changed = mind.changed(before)
        if changed or mind.single() != row.learned["single"]:
            row = mind.of_campaign(row)
            tx.save_arms([mind.row(row, arm) for arm in changed])
        tx.save_campaign(row)


def _news(what: str, known: float | None, told: float | None) -> bool:
    """Whether something is told that was not known; a different number for what is known is a conflict."""
    if told is None or told == known:
        return False
    if known is not None:
        raise Conflict(f"the {what} of this decision was told before, and was another; it counts once")
    return True


def _answer(decision: Decision, mind: Mind) -> Answer:
    hold = to_units(decision.hold.amount)
    return Answer(decision.id, decision.campaign, mind.names[decision.arm], hold, decision.expires_at)


def _found(tx: Transaction, campaign: str) -> Campaign:
    row = tx.campaign(campaign)
    if row is None:
        raise NotFound(f"no campaign {campaign!r:.60}; create it first")
    return row


def _locked(tx: Transaction, decision: str, campaign: str | None = None) -> tuple[Campaign, Decision]:
    """A decision and its campaign, read so that neither can change before the transaction ends."""
    before = tx.decision(decision)
    if before is None or campaign not in (None, before.campaign):
        raise NotFound(f"no decision {decision!r:.60}; pass the id that decide() answered with")
    row = _found(tx, before.campaign)  # from here on the campaign is ours
    made = tx.decision(decision)
    assert made is not None
    return row, made


def _cap(arm: str, cap: float) -> int:
    if not (isinstance(arm, str) and arm.strip()):
        raise BadParameter(f"arm name {arm!r:.40} is not text; give every arm a name such as 'search'")
    micros = to_micros(cap, f"the cost cap of {arm!r:.40}")
    if micros == 0:
        raise BadParameter(f"the cost cap of {arm!r:.40} is 0; give the most that a pull of it can cost")
    return micros


def _positive(what: str, value: float) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0.0 < value < 1e15:
        raise BadParameter(f"{what} is {value!r:.40}; use a positive number")
    return float(value)


def _scaled(known: Mapping[str, Any], arms: list[str], budget: int, cost_max: int) -> dict[str, Any]:
    """What a policy may know, in units of the largest cost."""
    unknown = set(known) - {"cost_floor", "costs"}
    if unknown:
        raise BadParameter(f"known has {sorted(unknown)[0]!r}; it may have cost_floor and costs")
    scaled: dict[str, Any] = {"budget": budget / cost_max}
    if "cost_floor" in known:
        scaled["cost_floor"] = to_micros(known["cost_floor"], "cost_floor") / cost_max
    if "costs" in known:
        missing = [arm for arm in arms if arm not in known["costs"]]
        if missing:
            raise BadParameter(f"costs has no entry for arm {missing[0]!r}; give every arm one")
        scaled["costs"] = [to_micros(known["costs"][arm], f"the cost of {arm!r:.40}") / cost_max for arm in arms]
    return scaled
