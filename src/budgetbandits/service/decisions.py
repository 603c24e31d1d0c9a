"""Decisions: a policy that chooses and a ledger that pays, changed together in one transaction or not at all.

A policy learns from a decision once both its reward and its cost are known, in whichever order they come.

Each operation comes twice: as a method that does it and waits, and as a `Task` (`deciding`, `telling`, `voiding`) for
whoever waits in another way.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Generic, NamedTuple, TypeVar

from budgetbandits.errors import BadParameter, BudgetBanditsError, Conflict, HoldRefused, NotFound, RewardOutOfRange
from budgetbandits.service import ledger
from budgetbandits.service.campaign_learner import CampaignLearner
from budgetbandits.service.clocks import Clock, moment, time_of_decision
from budgetbandits.service.learners import Learners
from budgetbandits.service.ledger import Account, to_micros, to_units
from budgetbandits.service.settings import limits_of, terms_of
from budgetbandits.service.stores.base import About, Campaign, Decision, Event, Store, Transaction, found

EXPIRED_AT_ONCE = 500
"""Holds that one transaction expires."""

LARGEST_BATCH = 1000

NO_CONTEXT = hashlib.sha256(b"{}").hexdigest()

T = TypeVar("T")

Request = tuple[str, str]
"""The key of a decision, and a digest of what was asked."""


class CutShort(Exception):
    """A decision was refused after others of the same batch had been made, and ``earlier`` ones found."""

    def __init__(self, refused: HoldRefused, fit: int, earlier: int, before: Account) -> None:
        super().__init__(refused, fit, earlier, before)
        self.refused, self.fit, self.earlier, self.before = refused, fit, earlier, before


class Task(NamedTuple, Generic[T]):
    """What `Store.submit` and `Store.perform` are called with."""

    work: Callable[[Transaction], T]
    about: About


@dataclass
class Answer:
    """What a caller is told: which arm, and until when its money is held."""

    decision: str
    campaign: str
    arm: str
    hold: float
    expires_at: float


@dataclass(slots=True)
class Outcome:
    """What became of a decision: what it brought, what it cost, or both."""

    decision: str
    reward: float | None = None
    cost: float | None = None

    def checked(self) -> tuple[float | None, int | None]:
        """The reward, which is checked against its campaign later, and the cost in micros."""
        if self.reward is None and self.cost is None:
            raise BadParameter("neither reward nor cost is given; tell at least one")
        return self.reward, None if self.cost is None else to_micros(self.cost, "cost")


@dataclass(slots=True)
class Booked:
    """What the books say of a decision after feedback."""

    decision: str
    overrun: float
    """What it cost beyond its hold: 0 if all is well. If anything, the campaign was frozen."""
    cost_is_new: bool
    refused: BudgetBanditsError | None = None
    """Why the reward was not taken, though the cost that came with it was."""


class Decisions:
    """The decisions of a store's campaigns. Wherever a campaign is asked for, its name will do as well as its id."""

    def __init__(self, store: Store, learners: Learners, clock: Clock | None = None) -> None:
        self._store = store
        self._learners = learners
        self._clock = clock
        self._next: Callable[[], None] | None = None
        """Prepares what is likely to be needed next."""
        store.on_idle = self._prepare

    def _prepare(self) -> None:
        prepare, self._next = self._next, None
        if prepare is not None:
            prepare()

    # --- decide --------------------------------------------------------------------------------------------------

    def decide(self, campaign: str, key: str, context: Mapping[str, Any] | None = None) -> Answer:
        """Choose an arm and hold its cost cap. The same key gives the same answer; with another context, a conflict."""
        return self._store.write(*self.deciding(campaign, key, context))[0]

    def deciding(
        self, campaign: str, key: str, context: Mapping[str, Any] | None = None, count: int | None = None
    ) -> Task[list[Answer]]:
        """One decision; with a ``count``, that many under one key, in one transaction (see `batches` for slices)."""
        requests = requests_of(key, context, count)

        def work(tx: Transaction) -> list[Answer]:
            try:
                return self._decide(tx, campaign, requests)
            except CutShort as cut:
                raise of_batch(cut.refused, cut.fit, len(requests), cut.before.held) from None

        return Task(work, About(campaign, keys=[each for each, _ in requests]))

    def _decide(
        self, tx: Transaction, campaign: str, requests: Sequence[Request], seconds: float | None = None
    ) -> list[Answer]:
        """A decision for each request, or for the first of them when the seconds are over."""
        row = found(tx, campaign)
        learner = self._learners.of(tx, row)
        answers: list[Answer] = []
        before, earlier = row.account, 0
        end = None if seconds is None else time.perf_counter() + seconds
        for key, payload in requests:
            made = _made(tx, row.id, key, payload)
            if made is not None:
                earlier += 1
            elif end is not None and answers and time.perf_counter() > end:
                break
            else:
                try:
                    row, made = self._new(tx, row, learner, key, payload)
                except HoldRefused as refused:
                    raise CutShort(refused, len(answers), earlier, before) from None
            answers.append(_answer(made, learner))
        return answers

    def _new(
        self, tx: Transaction, row: Campaign, learner: CampaignLearner, key: str, payload: str
    ) -> tuple[Campaign, Decision]:
        """Choose, hold, and write it down."""
        ledger.check_open(row.account)
        now = time_of_decision(row, moment(tx, self._clock))
        limits = limits_of(row)
        fitting = learner.fitting(row.account.left)
        if fitting is None:
            ledger.place(row.account, int(learner.caps[learner.state.active].min()))  # always refuses, with the reason
        assert fitting is not None
        if limits is not ledger.NO_LIMITS:
            # wait until any arm could be paid: to choose from what fits the moment would choose the cheap
            ledger.check_time(row.account, int(learner.caps[fitting].max()), now, limits)
        with self._learners.choosing(tx, row) as change:
            id, arm = learner.next_choice(fitting)
            if arm is None:
                ledger.stop(row.policy)
            account, hold = ledger.place(row.account, int(learner.caps[arm]), now, limits)
            change.row = row.with_money(account)
        expires_at = now + self._learners.terms(row).hold_seconds
        decision = Decision(id, row.id, arm, hold, key, payload, now, expires_at)
        tx.add_decision(decision)
        tx.add_event(Event(row.id, "decided", now, id, arm, hold.amount))
        self._next = partial(learner.draws.prepare, id, "learn")  # when idle: for its feedback
        return change.row, decision

    # --- feedback ------------------------------------------------------------------------------------------------

    def feedback(
        self, decision: str, *, reward: float | None = None, cost: float | None = None, campaign: str | None = None
    ) -> None:
        """What a decision brought, what it cost, or both. Told again with the same numbers it changes nothing.

        With ``campaign`` a decision of another one is not found. A reward that cannot be taken is an error, but the
        cost that came with it is booked: that money is spent.
        """
        booked = self._store.write(*self.telling(Outcome(decision, reward, cost), campaign))
        if booked.refused is not None:
            raise booked.refused

    def feedback_many(self, campaign: str, outcomes: Sequence[Outcome]) -> list[Booked | BudgetBanditsError]:
        """Many at once; for each what was booked, or why nothing was, which does not stop the others."""
        return self._store.write(*self.telling_many(outcomes, campaign))

    def telling(self, outcome: Outcome, campaign: str | None = None) -> Task[Booked]:
        reward, cost = outcome.checked()

        def work(tx: Transaction) -> Booked:
            row, made = _locked(tx, outcome.decision, campaign)
            return self._tell(tx, row, made, reward, cost)

        return Task(work, _about(campaign, [outcome.decision]))

    def telling_many(self, outcomes: Sequence[Outcome], campaign: str) -> Task[list[Booked | BudgetBanditsError]]:
        if not 1 <= len(outcomes) <= LARGEST_BATCH:
            raise BadParameter(f"{len(outcomes)} outcomes at once; send 1 to {LARGEST_BATCH}")

        def work(tx: Transaction) -> list[Booked | BudgetBanditsError]:
            results: list[Booked | BudgetBanditsError] = []
            for outcome in outcomes:
                try:
                    # whatever is refused is refused before anything is written
                    row, made = _locked(tx, outcome.decision, campaign)
                    results.append(self._tell(tx, row, made, *outcome.checked()))
                except BudgetBanditsError as error:
                    results.append(error)
            return results

        return Task(work, _about(campaign, [outcome.decision for outcome in outcomes]))

    def _tell(self, tx: Transaction, row: Campaign, made: Decision, reward: float | None, cost: int | None) -> Booked:
        if made.hold.state == "voided":
            raise Conflict(f"decision {made.id} was voided; nothing can be told about it")
        new_cost, refused = _news("cost", made.cost, cost), None
        try:
            new_reward = self._new_reward(row, made, reward)
        except (RewardOutOfRange, Conflict) as error:
            if cost is None:
                raise
            refused = type(error)(f"{error}; the cost that came with it is booked")
            reward, new_reward = None, False
        if not (new_cost or new_reward):
            return Booked(made.id, to_units(made.hold.overrun), False, refused)
        now, account = moment(tx, self._clock), row.account
        if new_cost:
            assert cost is not None
            account, hold = ledger.settle(account, made.hold, cost)
            told = made.told(hold, cost, reward if new_reward else made.reward)
            event = Event(row.id, "settled", now, made.id, made.arm, cost, reward if new_reward else None)
        else:
            told = made.told(made.hold, made.cost, reward)
            event = Event(row.id, "rewarded", now, made.id, made.arm, reward=reward)
        learns = told.cost is not None and told.reward is not None
        if learns:
            self._learners.of(tx, row)  # whatever must be read for that is read before anything is written
        tx.add_event(event)
        tx.save_decision(told)
        row = row.with_money(account)
        if not learns:
            tx.save_money(row)
        else:
            assert told.reward is not None
            assert told.cost is not None
            with self._learners.changing(tx, row) as change:
                change.learner.learn(told.id, told.arm, told.reward, told.cost, row.settings)
                change.arms = [told.arm]
            self._next = change.learner.think_ahead  # prepared when idle: a worker usually asks again after feedback
        return Booked(made.id, to_units(told.hold.overrun), new_cost, refused)

    def _new_reward(self, row: Campaign, made: Decision, reward: float | None) -> bool:
        """Whether this reward is new, if it can be the decision's."""
        most = self._learners.terms(row).reward_max
        if reward is not None and (isinstance(reward, bool) or not 0.0 <= reward <= most):
            raise RewardOutOfRange(f"reward {reward!r:.40} is not in [0, {most:g}]; pass a number in that range")
        return _news("reward", made.reward, reward)

    # --- no feedback ---------------------------------------------------------------------------------------------

    def void(self, decision: str, campaign: str | None = None) -> None:
        """The call was never made: the money is free again. Voiding twice changes nothing."""
        self._store.write(*self.voiding(decision, campaign))

    def voiding(self, decision: str, campaign: str | None = None) -> Task[None]:
        def work(tx: Transaction) -> None:
            row, made = _locked(tx, decision, campaign)
            if made.hold.state == "voided":
                return
            if made.hold.state == "pending" and made.reward is not None:
                raise Conflict(f"the reward of decision {made.id} was told, so the call was made; tell its cost")
            account, hold = ledger.void(row.account, made.hold)
            tx.save_decision(replace(made, hold=hold))
            tx.save_money(row.with_money(account))
            tx.add_event(Event(row.id, "voided", moment(tx, self._clock), decision, made.arm))

        return Task(work, _about(campaign, [decision]))

    def expire_due(self) -> dict[str, int]:
        """Expire the holds that are due; how many, by campaign. An error in one campaign does not stop the others."""
        due: dict[str, list[str]] = {}
        for made in self._store.read(lambda tx: tx.due(moment(tx, self._clock), EXPIRED_AT_ONCE), urgent=True):
            due.setdefault(made.campaign, []).append(made.id)
        expired: dict[str, int] = {}
        failure = None
        for campaign, decisions in due.items():
            work = partial(_expire, campaign=campaign, decisions=decisions, clock=self._clock)
            try:
                name, expired_here = self._store.write(work, About(campaign, decisions=decisions))
                expired[name] = expired_here
            except Exception as error:
                failure = error
        if failure is not None:
            raise failure
        return expired


def _expire(tx: Transaction, campaign: str, decisions: Sequence[str], clock: Clock | None) -> tuple[str, int]:
    """The campaign's name, and how many holds have expired."""
    name, count, now = found(tx, campaign).name, 0, moment(tx, clock)
    for decision in decisions:
        row, made = _locked(tx, decision, campaign)
        # or it was told, or given more time, while we waited for the lock
        if made.hold.state == "pending" and made.expires_at <= now:
            account, hold = ledger.expire(row.account, made.hold, terms_of(row).on_expire == "charge")
            tx.save_decision(replace(made, hold=hold))
            tx.save_money(row.with_money(account))
            tx.add_event(Event(row.id, "expired", now, made.id, made.arm, hold.charged))
            count += 1
    return name, count


def _news(what: str, known: float | None, told: float | None) -> bool:
    """Whether this is new; another number for what is known is a conflict."""
    if told is None or told == known:
        return False
    if known is not None:
        raise Conflict(f"the {what} of this decision was told before, and was another; it counts once")
    return True


def requests_of(key: str, context: Mapping[str, Any] | None, count: int | None) -> list[Request]:
    """What is asked under one key: one decision, or with a ``count`` as many."""
    if not (isinstance(key, str) and 0 < len(key) <= 200):
        raise BadParameter("key must be text of 1 to 200 characters: one for each decision, the same when retried")
    if count is not None and not 1 <= count <= LARGEST_BATCH:
        raise BadParameter(f"count is {count}; use 1 to {LARGEST_BATCH}")
    asked = json.dumps(context, sort_keys=True) if context else "{}"
    if count is None:
        return [(key, _digest(asked) if context else NO_CONTEXT)]
    # the first goes by the key itself, so that the key cannot be used for anything else
    keys = [key, *(f"{key} [{number}]" for number in range(1, count))]
    return [(each, _digest(f"{number} of {count} {asked}")) for number, each in enumerate(keys)]


def of_batch(refused: HoldRefused, fit: int, asked: int, held: int) -> HoldRefused:
    """The refusal of a batch: that its own first decisions, which are undone, hold money is no reason to wait.

    ``held`` is what other decisions hold.
    """
    if fit == 0:
        return refused
    what = f"{fit} of {asked} fit, and a batch is decided whole or not at all"
    if refused.reason == "blocked_by_holds" and not held:
        return HoldRefused("exhausted", f"{what}; ask for fewer, or top up the budget")
    return HoldRefused(refused.reason, f"{what}: {refused}", refused.retry_after)


def _made(tx: Transaction, campaign: str, key: str, payload: str) -> Decision | None:
    """The decision that was made under this key before, if any."""
    made = tx.decision_by_key(campaign, key)
    if made is not None and made.payload != payload:
        raise Conflict(f"key {key!r:.60} was used with another context or count; use a new key for a new decision")
    return made


def _answer(decision: Decision, learner: CampaignLearner) -> Answer:
    hold = to_units(decision.hold.amount)
    return Answer(decision.id, decision.campaign, learner.names[decision.arm], hold, decision.expires_at)


def _about(campaign: str | None, decisions: Sequence[str]) -> About:
    return About() if campaign is None else About(campaign, decisions=decisions)


def _locked(tx: Transaction, decision: str, campaign: str | None) -> tuple[Campaign, Decision]:
    """A decision and its campaign, read so that neither can change before the transaction ends."""
    if campaign is None:
        made = tx.decision(decision)
        campaign = None if made is None else made.campaign
    # the campaign first, which locks it: from there on its decisions are ours as well
    row = None if campaign is None else found(tx, campaign)
    made = None if row is None else tx.decision(decision)
    if row is None or made is None or made.campaign != row.id:
        raise NotFound(f"no decision {decision!r:.60}; pass the id that decide() answered with")
    return row, made


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
