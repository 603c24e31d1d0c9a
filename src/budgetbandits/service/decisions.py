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
from budgetbandits.service.clocks import Clock, moment
from budgetbandits.service.leases import Leases
from budgetbandits.service.ledger import to_micros, to_units
from budgetbandits.service.purses import Purse
from budgetbandits.service.stores.base import About, Campaign, Decision, Event, Store, Transaction, found

EXPIRED_AT_ONCE = 500
"""Holds that one transaction expires."""

LARGEST_BATCH = 1000

NO_CONTEXT = hashlib.sha256(b"{}").hexdigest()

T = TypeVar("T")

Request = tuple[str, str]
"""The key of a decision, and a digest of what was asked."""


class CutShort(Exception):
    """A decision was refused after others of the same batch had been made, and ``earlier`` ones found.

    ``taken`` is what was held or leased before.
    """

    def __init__(self, refused: HoldRefused, fit: int, earlier: int, taken: int) -> None:
        super().__init__(refused, fit, earlier, taken)
        self.refused, self.fit, self.earlier, self.taken = refused, fit, earlier, taken


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

    def __init__(self, store: Store, leases: Leases, clock: Clock | None = None) -> None:
        self._store = store
        self._leases = leases
        self._learners = leases.learners
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
        about = About(campaign, keys=[each for each, _ in requests])

        def work(tx: Transaction) -> list[Answer]:
            try:
                return self._decide(tx, campaign, requests)
            except CutShort as cut:
                raise of_batch(cut.refused, cut.fit, len(requests), cut.taken) from None

        return Task(work, self._leases.about(about) if count is None else about)

    def _decide(
        self, tx: Transaction, campaign: str, requests: Sequence[Request], seconds: float | None = None
    ) -> list[Answer]:
        """A decision for each request, or for the first of them when the seconds are over."""
        purse: Purse | None = None
        if tx.leases_alone:
            purse = self._leases.alone(tx, self._leases.campaign(campaign))
        row = found(tx, campaign) if purse is None else purse.row
        answers: list[Answer] = []
        taken, earlier = 0, 0
        end = None if seconds is None else time.perf_counter() + seconds
        for key, payload in requests:
            made = _made(tx, row.id, key, payload)
            if made is not None:
                earlier += 1
            elif end is not None and answers and time.perf_counter() > end:
                break
            else:
                if purse is None:
                    # what may be made in several transactions, and undone, is paid by the campaign itself
                    if len(requests) == 1 and seconds is None:
                        purse = self._leases.for_deciding(tx, row)
                    else:
                        purse = self._leases.for_batch(tx, row, len(requests) - earlier)
                    row, taken = purse.row, purse.row.account.held + purse.row.account.leased
                try:
                    made = self._new(tx, purse, key, payload)
                except HoldRefused as refused:
                    raise CutShort(refused, len(answers), earlier, taken) from None
            answers.append(_answer(made, self._names(tx, row, purse)))
        return answers

    def _names(self, tx: Transaction, row: Campaign, purse: Purse | None) -> Sequence[str]:
        """The names of the campaign's arms."""
        learner = None if purse is None else purse.learner
        return (self._learners.of(tx, row) if learner is None else learner).names

    def _new(self, tx: Transaction, purse: Purse, key: str, payload: str) -> Decision:
        """Choose, hold, and write it down."""
        chosen, row = purse.choose(moment(tx, self._clock)), purse.row
        expires_at = chosen.at + self._learners.terms(row).hold_seconds
        decision = Decision(
            chosen.id, row.id, chosen.arm, chosen.hold, key, payload, chosen.at, expires_at, lease=purse.lease_id
        )  # fmt: skip
        tx.add_decision(decision)
        purse.add_event(Event(row.id, "decided", chosen.at, chosen.id, chosen.arm, chosen.hold.amount))
        if purse.learner is not None:
            self._next = partial(purse.learner.draws.prepare, chosen.id, "learn")  # when idle: for its feedback
        return decision

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
            return self._tell(tx, *self._locked(tx, outcome.decision, campaign), reward, cost)

        return Task(work, self._about(campaign, [outcome.decision]))

    def telling_many(self, outcomes: Sequence[Outcome], campaign: str) -> Task[list[Booked | BudgetBanditsError]]:
        if not 1 <= len(outcomes) <= LARGEST_BATCH:
            raise BadParameter(f"{len(outcomes)} outcomes at once; send 1 to {LARGEST_BATCH}")

        def work(tx: Transaction) -> list[Booked | BudgetBanditsError]:
            results: list[Booked | BudgetBanditsError] = []
            for outcome in outcomes:
                try:
                    # whatever is refused is refused before anything is written
                    purse, made = self._locked(tx, outcome.decision, campaign)
                    results.append(self._tell(tx, purse, made, *outcome.checked()))
                except BudgetBanditsError as error:
                    results.append(error)
            return results

        return Task(work, self._about(campaign, [outcome.decision for outcome in outcomes]))

    def _tell(self, tx: Transaction, purse: Purse, made: Decision, reward: float | None, cost: int | None) -> Booked:
        if made.hold.state == "voided":
            raise Conflict(f"decision {made.id} was voided; nothing can be told about it")
        new_cost, refused = _news("cost", made.cost, cost), None
        try:
            new_reward = self._new_reward(purse.row, made, reward)
        except (RewardOutOfRange, Conflict) as error:
            if cost is None:
                raise
            refused = type(error)(f"{error}; the cost that came with it is booked")
            reward, new_reward = None, False
        if not (new_cost or new_reward):
            return Booked(made.id, to_units(made.hold.overrun), False, refused)
        now, account = moment(tx, self._clock), purse.account
        if new_cost:
            assert cost is not None
            purse = self._leases.for_cost(tx, purse, made, cost)
            account, hold = ledger.settle(purse.account, made.hold, cost)
            told = made.told(hold, cost, reward if new_reward else made.reward)
            event = Event(made.campaign, "settled", now, made.id, made.arm, cost, reward if new_reward else None)
        else:
            told = made.told(made.hold, made.cost, reward)
            event = Event(made.campaign, "rewarded", now, made.id, made.arm, reward=reward)
        in_full = told.cost is not None and told.reward is not None
        purse.book(account, event, told if in_full else None)
        tx.save_decision(told)
        if in_full and purse.learner is not None:
            self._next = purse.learner.think_ahead  # prepared when idle: a worker usually asks again after feedback
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
            purse, made = self._locked(tx, decision, campaign)
            if made.hold.state == "voided":
                return
            if made.hold.state == "pending" and made.reward is not None:
                raise Conflict(f"the reward of decision {made.id} was told, so the call was made; tell its cost")
            account, hold = ledger.void(purse.account, made.hold)
            tx.save_decision(replace(made, hold=hold))
            purse.book(account, Event(made.campaign, "voided", moment(tx, self._clock), decision, made.arm))

        return Task(work, self._about(campaign, [decision]))

    def expire_due(self) -> dict[str, int]:
        """Expire the holds that are due; how many, by campaign. An error in one campaign does not stop the others."""

        def read(tx: Transaction) -> tuple[list[Decision], set[str]]:
            now = moment(tx, self._clock)
            return tx.due(now, EXPIRED_AT_ONCE), {campaign for campaign, _ in tx.due_leases(now)}

        pending, over = self._store.read(read, urgent=True)
        due: dict[str, list[str]] = {}
        for made in pending:
            due.setdefault(made.campaign, []).append(made.id)
        expired: dict[str, int] = {}
        failure = None
        for campaign in sorted(over.union(due)):
            decisions = due.get(campaign, [])
            work = partial(self._expire, campaign=campaign, decisions=decisions)
            try:
                name, expired_here = self._store.write(work, About(campaign, decisions=decisions))
                if expired_here:
                    expired[name] = expired_here
            except Exception as error:
                failure = error
        if failure is not None:
            raise failure
        return expired

    def _expire(self, tx: Transaction, campaign: str, decisions: Sequence[str]) -> tuple[str, int]:
        """The campaign's name, and how many holds have expired."""
        name, count, now = found(tx, campaign).name, 0, moment(tx, self._clock)
        self._leases.end_due(tx, campaign, now)
        for decision in decisions:
            purse, made = self._locked(tx, decision, campaign)
            # or it was told, or given more time, while we waited for the lock
            if made.hold.state == "pending" and made.expires_at <= now:
                charge = self._learners.terms(purse.row).on_expire == "charge"
                account, hold = ledger.expire(purse.account, made.hold, charge)
                tx.save_decision(replace(made, hold=hold))
                purse.book(account, Event(made.campaign, "expired", now, made.id, made.arm, hold.charged))
                count += 1
        return name, count

    # --- what they share -----------------------------------------------------------------------------------------

    def _about(self, campaign: str | None, decisions: Sequence[str]) -> About:
        return About() if campaign is None else self._leases.about(About(campaign, decisions=decisions))

    def _locked(self, tx: Transaction, decision: str, campaign: str | None) -> tuple[Purse, Decision]:
        """A decision and the purse its money is in, read so that neither can change before the transaction ends."""
        if campaign is None:
            made = tx.decision(decision)
            campaign = None if made is None else made.campaign
        if campaign is not None:
            # the campaign or the lease first, which locks it: from there on its decisions are ours as well
            row = self._leases.campaign(campaign) if tx.leases_alone else found(tx, campaign)
            made = tx.decision(decision)
            if made is not None and made.campaign == row.id:
                purse = self._leases.of_decision(tx, row, made)
                if purse.lease_id is not None:  # until now another server may have changed it under the lease
                    made = tx.decision(decision)
                    assert made is not None
                return purse, made
        raise NotFound(f"no decision {decision!r:.60}; pass the id that decide() answered with")


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


def of_batch(refused: HoldRefused, fit: int, asked: int, taken: int) -> HoldRefused:
    """The refusal of a batch: that its own first decisions, which are undone, hold money is no reason to wait.

    ``taken`` is what other decisions hold, and leases have.
    """
    if fit == 0:
        return refused
    what = f"{fit} of {asked} fit, and a batch is decided whole or not at all"
    if refused.reason == "blocked_by_holds" and not taken:
        return HoldRefused("exhausted", f"{what}; ask for fewer, or top up the budget")
    return HoldRefused(refused.reason, f"{what}: {refused}", refused.retry_after)


def _made(tx: Transaction, campaign: str, key: str, payload: str) -> Decision | None:
    """The decision that was made under this key before, if any."""
    made = tx.decision_by_key(campaign, key)
    if made is not None and made.payload != payload:
        raise Conflict(f"key {key!r:.60} was used with another context or count; use a new key for a new decision")
    return made


def _answer(decision: Decision, names: Sequence[str]) -> Answer:
    hold = to_units(decision.hold.amount)
    return Answer(decision.id, decision.campaign, names[decision.arm], hold, decision.expires_at)


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
