"""Decisions: a policy that chooses and a ledger that pays, changed together in one transaction or not at all.

Each operation comes twice: as a method that does it and waits, and as a `Task` for those who wait in another way
(`decision_task`; in `feedback`, `feedback_task` and `void_task`). What becomes of a decision afterwards is in
`feedback`.

For an event loop, which does nothing else while it decides, what takes long is done elsewhere (`scheduler`).

Many decisions may be made under one key, all of them or none. A batch is made in slices, a transaction each, that end
after a moment; found again under its key it is read in slices, too. If one of them is refused, or is an error, those
before it are undone: their decisions are voided, and their keys are free again. A batch that a crash has interrupted,
or a server that is busy, is finished when it is asked for again; if it never is, its holds expire, as those of any
decision whose answer was lost. A batch is paid from the campaign's own money, never from a lease.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple, Unpack

from pydantic_core import to_json

from budgetbandits.answers import DecisionAnswer
from budgetbandits.errors import BadParameter, BudgetBanditsError, Conflict, HoldRefused, ServerBusy, StoreError
from budgetbandits.service import ledger
from budgetbandits.service.choices_ahead import ChoiceNeeded, ChoicesAhead
from budgetbandits.service.funds import CampaignFunds, Funds
from budgetbandits.service.leases.leases import Leases
from budgetbandits.service.ledger import to_units
from budgetbandits.service.names import check_text
from budgetbandits.service.request import BATCH_MAX, checked_options
from budgetbandits.service.scheduler import Scheduler
from budgetbandits.service.stores.contract import (
    Clock,
    Scope,
    Store,
    T,
    Task,
    Transaction,
    find_campaign,
    isolated,
    moment,
)
from budgetbandits.service.stores.records import Campaign, DecisionRow, Event
from budgetbandits.service.work import check_batch
from budgetbandits.validation import DecisionFields, RequestOptions

NO_CONTEXT = ""
"""The digest where nothing but a key was given."""

DecisionKey = tuple[str, str]
"""The key of a decision, and a digest of what was asked under it."""

SLICE_SECONDS = 0.003
"""Time after which a slice of a batch makes no further decision."""

SLICE_MAX = 32
"""Most decisions of a slice."""


class BatchRefused(Exception):
    """A decision was refused after ``fit`` others of the same batch had been made, and ``earlier`` ones found.

    ``taken`` is what was held or leased before.
    """

    def __init__(self, refused: HoldRefused, fit: int, earlier: int, taken: int) -> None:
        super().__init__(refused, fit, earlier, taken)
        self.refused, self.fit, self.earlier, self.taken = refused, fit, earlier, taken


class Slice(NamedTuple):
    """The first decisions of those that were asked for, and how many of them had been made before."""

    answers: list[DecisionAnswer]
    earlier: int


class Decisions:
    """The decisions of a store's campaigns. Wherever a campaign is asked for, its name will do as well as its id."""

    def __init__(self, store: Store, leases: Leases, clock: Clock | None = None) -> None:
        self._store = store
        self._leases = leases
        self._sessions = leases.sessions
        self._clock = clock
        self.scheduler = Scheduler(store, self._sessions)

    def decide(
        self, campaign: str, key: str, context: Mapping[str, Any] | None = None, **request: Unpack[DecisionFields]
    ) -> DecisionAnswer:
        """Choose an arm and hold its cost cap, or what the request says.

        The same key gives the same answer; asked for anything else, a conflict. ``request`` are the fields
        of `RequestOptions`, with money in the user's unit.
        """
        options = checked_options(**request) if request else None
        return self._store.write(*self.decision_task(campaign, key, context, options))[0]

    def decision_task(
        self,
        campaign: str,
        key: str,
        context: Mapping[str, Any] | None = None,
        options: RequestOptions | None = None,
        ahead: ChoicesAhead | None = None,
    ) -> Task[list[DecisionAnswer]]:
        """One decision. With ``ahead`` a choice that takes long is taken from these, or is `ChoiceNeeded`."""
        asked = _decision_keys(key, context, None, options)

        def work(tx: Transaction) -> list[DecisionAnswer]:
            try:
                return self.make(tx, campaign, asked, options, ahead=ahead).answers
            except BatchRefused as cut:
                raise cut.refused from None

        scope = Scope(campaign, keys=[key])
        return Task(isolated(campaign, work), self._leases.scope(scope) if campaign in self._leases.leasing else scope)

    async def decide_in_loop(
        self,
        campaign: str,
        key: str,
        context: Mapping[str, Any] | None = None,
        options: RequestOptions | None = None,
    ) -> list[DecisionAnswer]:
        """`decide` for an event loop, with options that are checked."""
        task = partial(self.decision_task, campaign, key, context, options)
        await self.scheduler.wait_to_open(campaign, options)
        return await self.scheduler.choose(campaign, lambda ahead: task(ahead=ahead), options)

    def make(
        self,
        tx: Transaction,
        campaign: str,
        asked: Sequence[DecisionKey],
        options: RequestOptions | None = None,
        wanted: int | None = None,
        ahead: ChoicesAhead | None = None,
    ) -> Slice:
        """A decision for each key. For a batch of which this many are ``wanted`` still, a decision for the first keys:
        as many as a slice has time for, and as choices were made ahead for."""
        funds: Funds | None = None
        if tx.leases_alone:
            funds = self._leases.alone(tx, self._leases.campaign(campaign))
        row = find_campaign(tx, campaign) if funds is None else funds.row
        answers: list[DecisionAnswer] = []
        taken, earlier, end = 0, 0, time.perf_counter() + SLICE_SECONDS
        for key, digest in asked:
            if wanted is not None and answers and time.perf_counter() > end:
                break
            decision = _made(tx, row.id, key, digest)
            if decision is not None:
                earlier += 1
            else:
                if funds is None:
                    if wanted is not None:
                        session = self._sessions.of(tx, row)
                        check_batch(session.size(None if options is None else options.segment), wanted)
                    funds = self._funds(tx, row, None if wanted is None else wanted - earlier)
                    row, taken = funds.row, funds.row.account.open
                try:
                    decision = funds.decide(moment(tx, self._clock), key, digest, options, ahead)
                except HoldRefused as refused:
                    raise BatchRefused(refused, len(answers), earlier, taken) from None
                except ChoiceNeeded:
                    if not answers:
                        raise
                    break
                if funds.session is not None:
                    self._store.prefetch = partial(
                        funds.session.draws.prepare, decision.id, "learn"
                    )  # for its feedback
            answers.append(_answer(decision, self._names(tx, row, funds)))
        return Slice(answers, earlier)

    def _funds(self, tx: Transaction, row: Campaign, batch: int | None) -> Funds:
        """The funds for a decision, or for the decisions of a batch: what may be made in several transactions, and
        undone, is paid by the campaign itself."""
        if row.settings.lease is None:
            return CampaignFunds(tx, self._sessions, row)
        return self._leases.for_deciding(tx, row) if batch is None else self._leases.for_batch(tx, row, batch)

    def _names(self, tx: Transaction, row: Campaign, funds: Funds | None) -> Sequence[str]:
        """The names of the campaign's arms."""
        session = None if funds is None else funds.session
        return (self._sessions.of(tx, row) if session is None else session).names

    # --- batches --------------------------------------------------------------------------------------------------

    def decide_many(
        self,
        campaign: str,
        key: str,
        count: int,
        context: Mapping[str, Any] | None = None,
        **request: Unpack[DecisionFields],
    ) -> list[DecisionAnswer]:
        """Make ``count`` decisions, all of them or none; ``request`` is as for `decide`, for each."""

        async def write(task: Callable[[ChoicesAhead | None], Task[T]], _: int) -> T:
            return self._store.write(*task(None))

        batch = self._batch(write, campaign, key, count, context, checked_options(**request))
        while True:
            try:
                batch.send(None)  # to its end at once: what it awaits is done when `write` returns
            except StopIteration as end:
                return list(end.value)

    async def decide_many_in_loop(
        self,
        campaign: str,
        key: str,
        count: int,
        context: Mapping[str, Any] | None = None,
        options: RequestOptions | None = None,
    ) -> list[DecisionAnswer]:
        """`decide_many` for an event loop."""

        async def perform(task: Callable[[ChoicesAhead], Task[T]], wanted: int) -> T:
            return await self.scheduler.choose(campaign, task, options, wanted)

        await self.scheduler.wait_to_open(campaign, options)
        return await self._batch(perform, campaign, key, count, context, options)

    async def _batch(
        self,
        run: Callable[[Callable[..., Task[Any]], int], Awaitable[Any]],
        campaign: str,
        key: str,
        count: int,
        context: Mapping[str, Any] | None,
        options: RequestOptions | None,
    ) -> list[DecisionAnswer]:
        asked, answers, earlier = _decision_keys(key, context, count, options), list[DecisionAnswer](), 0

        async def undo() -> int:
            """The last first: who reads the batch again, in order, finds at its end whether it is undone."""
            taken = 0
            for place in range(len(asked), 0, -SLICE_MAX):
                part = asked[max(place - SLICE_MAX, 0) : place]
                taken = await run(partial(self._undo_task, campaign, part), 0)
            return taken

        while True:
            task = partial(self._slice_task, campaign, asked, len(answers), options)
            try:
                result, repeated = await run(task, min(count - len(answers), SLICE_MAX))
            except BatchRefused as cut:
                taken = await undo() if answers or cut.earlier else cut.taken
                raise of_batch(cut.refused, len(answers) + cut.fit, count, taken) from None
            except (ServerBusy, StoreError):  # asked for again, the batch is finished
                raise
            except BudgetBanditsError:  # its arm was retired meanwhile, say
                if answers:
                    await undo()
                raise
            slices_before, answers, earlier = len(answers) > 0, [*answers, *result], earlier + repeated
            if len(answers) == count:
                if earlier == count or not slices_before:
                    return answers
                # whether all are there still: another server may have been asked for the same batch, and have undone it
                answers, earlier = [], 0

    def _slice_task(
        self,
        campaign: str,
        asked: Sequence[DecisionKey],
        count: int,
        options: RequestOptions | None,
        ahead: ChoicesAhead | None,
    ) -> Task[Slice]:
        """The next decisions of a batch, after those that are done."""
        part, wanted = asked[count : count + SLICE_MAX], len(asked) - count
        make = partial(self.make, campaign=campaign, asked=part, options=options, wanted=wanted, ahead=ahead)
        return Task(isolated(campaign, make), Scope(campaign, keys=[key for key, _ in part]))

    def _undo_task(self, campaign: str, asked: Sequence[DecisionKey], _: ChoicesAhead | None) -> Task[int]:
        return Task(isolated(campaign, lambda tx: self._undo(tx, campaign, asked)), Scope(campaign))

    def _undo(self, tx: Transaction, campaign: str, asked: Sequence[DecisionKey]) -> int:
        """Void what of a batch has been made, and free its keys; what other decisions hold, and leases have."""
        funds = CampaignFunds(tx, self._sessions, find_campaign(tx, campaign))
        for key, digest in asked:
            decision = tx.decision_by_key(funds.row.id, key)
            if (
                decision is not None
                and decision.request_digest == digest
                and decision.hold.state == "pending"
                and decision.reward is None
            ):
                account, hold = ledger.void(funds.account, decision.hold)
                tx.save_decision(replace(decision, hold=hold))
                tx.forget_key(decision)
                now = moment(tx, self._clock)
                funds.book(
                    account, Event(decision.campaign, "voided", now, decision.id, decision.arm), decision.created_at
                )
        return funds.account.open


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


def _decision_keys(
    key: str, context: Mapping[str, Any] | None, count: int | None, options: RequestOptions | None = None
) -> list[DecisionKey]:
    """The keys of what is asked under one key: one decision, or ``count`` of them."""
    if not (isinstance(key, str) and 0 < len(key) <= 200):
        raise BadParameter("key must be text of 1 to 200 characters: one for each decision, the same when retried")
    if not key.isprintable():
        check_text("key", key)
    if count is not None and not 1 <= count <= BATCH_MAX:
        raise BadParameter(f"count is {count}; use 1 to {BATCH_MAX}")
    asked = json.dumps(context, sort_keys=True) if context else "{}"
    if options is not None:  # the same for the same request, however it was written
        arms = None if options.arms is None else sorted(options.arms)
        text = [options.segment, arms, sorted(options.exclude), options.prices, options.holds]
        asked = f"{asked} {json.dumps(text, sort_keys=True)}"
        if options.features is not None:
            asked += to_json(sorted(options.features.items())).decode()  # a tenth of the time for many numbers
        if options.metadata is not None:
            asked += f" metadata {to_json(options.metadata).decode()}"
    if count is None:
        return [(key, _digest(asked) if context or options is not None else NO_CONTEXT)]
    # the first goes by the key itself, so that the key cannot be used for anything else
    keys = [key, *(f"{key} [{number}]" for number in range(1, count))]
    return [(key, _digest(f"{number} of {count} {asked}")) for number, key in enumerate(keys)]


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _made(tx: Transaction, campaign: str, key: str, digest: str) -> DecisionRow | None:
    """The decision that was made under this key before, if any."""
    decision = tx.decision_by_key(campaign, key)
    if decision is not None and decision.request_digest != digest:
        raise Conflict(
            f"key {key!r:.60} was used with another context, request or count; use a new key for a new decision"
        )
    return decision


def _answer(decision: DecisionRow, names: Sequence[str]) -> DecisionAnswer:
    hold = to_units(decision.hold.amount)
    return DecisionAnswer(decision.id, decision.campaign, names[decision.arm], hold, decision.expires_at)
