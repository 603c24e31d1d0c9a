"""Decisions: a policy that chooses and a ledger that pays, changed together in one transaction or not at all.

Each operation comes twice: as a method that does it and waits, and as a `Task` for whoever waits in another way
(`deciding`; in `feedback`, `telling` and `voiding`). What becomes of a decision afterwards is in `feedback`.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any

from budgetbandits.errors import BudgetBanditsError, Conflict, HoldRefused
from budgetbandits.service.clocks import Clock, moment
from budgetbandits.service.damage import UNREADABLE, isolated
from budgetbandits.service.funds import Purse
from budgetbandits.service.leases.leases import Leases
from budgetbandits.service.ledger import to_units
from budgetbandits.service.request import Keyed, RequestOptions, keyed, said
from budgetbandits.service.stores.contract import DecisionTransaction, Scope, Store, T, find_campaign
from budgetbandits.service.stores.records import Campaign, DecisionRow, Event
from budgetbandits.service.tasks import Prefetch, Task


class CutShort(Exception):
    """A decision was refused after others of the same batch had been made, and ``earlier`` ones found.

    ``taken`` is what was held or leased before.
    """

    def __init__(self, refused: HoldRefused, fit: int, earlier: int, taken: int) -> None:
        super().__init__(refused, fit, earlier, taken)
        self.refused, self.fit, self.earlier, self.taken = refused, fit, earlier, taken


@dataclass
class Answer:
    """What a caller is told: which arm, and until when its money is held."""

    decision: str
    campaign: str
    arm: str
    hold: float
    expires_at: float


class Decisions:
    """The decisions of a store's campaigns. Wherever a campaign is asked for, its name will do as well as its id."""

    def __init__(self, store: Store, leases: Leases, ahead: Prefetch, clock: Clock | None = None) -> None:
        self._store = store
        self._leases = leases
        self._learners = leases.learners
        self._ahead = ahead
        self._clock = clock

    def decide(
        self,
        campaign: str,
        key: str,
        context: Mapping[str, Any] | None = None,
        *,
        segment: str | None = None,
        arms: Iterable[str] | None = None,
        exclude: Iterable[str] | None = None,
        prices: Mapping[str, float] | None = None,
        holds: Mapping[str, float] | None = None,
    ) -> Answer:
        """Choose an arm and hold its cost cap. The same key gives the same answer; asked for anything else, a conflict.

        ``arms`` and ``exclude`` say which arms may answer this request, ``segment`` names its kind, ``prices`` says
        what each of those arms is estimated to cost this time, and ``holds`` what to hold in place of the cap.
        """
        request = said(segment, arms, exclude, prices, holds)
        return self._store.write(*self.deciding(campaign, key, context, request))[0]

    def deciding(
        self,
        campaign: str,
        key: str,
        context: Mapping[str, Any] | None = None,
        request: RequestOptions | None = None,
        count: int | None = None,
    ) -> Task[list[Answer]]:
        """One decision; with a ``count``, that many under one key, in one transaction (see `batches` for slices)."""
        asked = keyed(key, context, count, request)
        scope = Scope(campaign, keys=[each for each, _ in asked])

        def work(tx: DecisionTransaction) -> list[Answer]:
            try:
                return self.make(tx, campaign, asked, request)
            except CutShort as cut:
                raise of_batch(cut.refused, cut.fit, len(asked), cut.taken) from None

        return Task(isolated(campaign, work), self._leases.scope(scope) if count is None else scope)

    async def perform(self, campaign: str, task: Task[T], request: RequestOptions | None = None) -> T:
        """`Store.perform` for a task about decisions of this campaign. What takes long because there are very many arms
        is done beside the event loop: reading them all, and opening a segment, which writes them all."""
        if not self._learners.was_read(campaign):
            with suppress(BudgetBanditsError, *UNREADABLE):  # whoever asks is told by the task itself
                await asyncio.to_thread(self._learners.read_ahead, self._store, campaign)
        segment = None if request is None else request.segment
        if segment is not None and self._learners.opens_segment(campaign, segment):
            return await asyncio.wrap_future(self._store.submit(*task))
        return await self._store.perform(*task)

    def make(
        self,
        tx: DecisionTransaction,
        campaign: str,
        asked: Sequence[Keyed],
        request: RequestOptions | None = None,
        seconds: float | None = None,
    ) -> list[Answer]:
        """A decision for each key, or for the first of them when the seconds are over."""
        purse: Purse | None = None
        if tx.leases_alone:
            purse = self._leases.alone(tx, self._leases.campaign(campaign))
        row = find_campaign(tx, campaign) if purse is None else purse.row
        answers: list[Answer] = []
        taken, earlier = 0, 0
        end = None if seconds is None else time.perf_counter() + seconds
        for key, payload in asked:
            made = _made(tx, row.id, key, payload)
            if made is not None:
                earlier += 1
            elif end is not None and answers and time.perf_counter() > end:
                break
            else:
                if purse is None:
                    # what may be made in several transactions, and undone, is paid by the campaign itself
                    if len(asked) == 1 and seconds is None:
                        purse = self._leases.for_deciding(tx, row)
                    else:
                        purse = self._leases.for_batch(tx, row, len(asked) - earlier)
                    row, taken = purse.row, purse.row.account.held + purse.row.account.leased
                try:
                    made = self._new(tx, purse, key, payload, request)
                except HoldRefused as refused:
                    raise CutShort(refused, len(answers), earlier, taken) from None
            answers.append(_answer(made, self._names(tx, row, purse)))
        return answers

    def _names(self, tx: DecisionTransaction, row: Campaign, purse: Purse | None) -> Sequence[str]:
        """The names of the campaign's arms."""
        learner = None if purse is None else purse.learner
        return (self._learners.of(tx, row) if learner is None else learner).names

    def _new(
        self, tx: DecisionTransaction, purse: Purse, key: str, payload: str, request: RequestOptions | None
    ) -> DecisionRow:
        """Choose, hold, and write it down."""
        chosen, row = purse.choose(moment(tx, self._clock), request), purse.row
        expires_at = chosen.at + self._learners.terms(row).hold_seconds
        decision = DecisionRow(
            chosen.id, row.id, chosen.arm, chosen.hold, key, payload, chosen.at, expires_at, None, None,
            purse.lease_id, chosen.request, chosen.propensity,
        )  # fmt: skip
        tx.add_decision(decision)
        event = Event(row.id, "decided", chosen.at, chosen.id, chosen.arm, chosen.hold.amount)
        if chosen.request is not None or chosen.propensity is not None:
            event.request, event.propensity = chosen.request, chosen.propensity
        purse.add_event(event)
        if purse.learner is not None:
            self._ahead.next = partial(purse.learner.draws.prepare, chosen.id, "learn")  # when idle: for its feedback
        return decision


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


def _made(tx: DecisionTransaction, campaign: str, key: str, payload: str) -> DecisionRow | None:
    """The decision that was made under this key before, if any."""
    made = tx.decision_by_key(campaign, key)
    if made is not None and made.request_digest != payload:
        raise Conflict(
            f"key {key!r:.60} was used with another context, request or count; use a new key for a new decision"
        )
    return made


def _answer(decision: DecisionRow, names: Sequence[str]) -> Answer:
    hold = to_units(decision.hold.amount)
    return Answer(decision.id, decision.campaign, names[decision.arm], hold, decision.expires_at)
