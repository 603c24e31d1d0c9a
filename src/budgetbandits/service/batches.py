"""Many decisions under one key, all of them or none, without keeping others waiting.

A policy that looks at very many arms takes seconds for a thousand decisions, and while a transaction lasts nobody else
can write. So a batch that takes longer than a moment is made in slices, a transaction each. If one of them is refused,
those before it are undone: their decisions are voided, and their keys are free again. A batch that a crash has
interrupted is finished when it is asked for again; if it never is, its holds expire, as those of any decision whose
answer was lost. A batch is paid from the campaign's own money, never from a lease.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from budgetbandits.service import ledger
from budgetbandits.service.clocks import Clock, moment
from budgetbandits.service.damage import isolated
from budgetbandits.service.decisions import Answer, CutShort, Decisions, of_batch
from budgetbandits.service.request import Keyed, RequestOptions, keyed, said
from budgetbandits.service.stores.contract import Scope, Store, Transaction, find_campaign, full
from budgetbandits.service.stores.records import Event
from budgetbandits.service.tasks import Task

SLICE = 0.02
"""Seconds after which a slice makes no further decision."""

Steps = Generator[Task[Any], Any, list[Answer]]
"""Yields what to do next, is sent what came of it, and returns the answers."""


class Batches:
    """Many decisions at once."""

    def __init__(self, store: Store, decisions: Decisions, clock: Clock | None = None) -> None:
        self._store = store
        self._decisions = decisions
        self._clock = clock

    def decide_many(
        self, campaign: str, key: str, count: int, context: Mapping[str, Any] | None = None, **request: Any
    ) -> list[Answer]:
        """As many decisions as ``count`` says, all of them or none; ``request`` is as for `decide`, for each."""
        steps = self._steps(campaign, key, count, context, said(**request))
        try:
            task = next(steps)
            while True:
                try:
                    result = self._store.write(*task)
                except Exception as error:
                    task = steps.throw(error)
                else:
                    task = steps.send(result)
        except StopIteration as end:
            return list(end.value)

    async def decide_many_in_loop(
        self,
        campaign: str,
        key: str,
        count: int,
        context: Mapping[str, Any] | None = None,
        request: RequestOptions | None = None,
    ) -> list[Answer]:
        """`decide_many` for an event loop."""
        steps = self._steps(campaign, key, count, context, request)
        try:
            task = next(steps)
            while True:
                try:
                    result = await self._decisions.perform(campaign, task, request)
                except Exception as error:
                    task = steps.throw(error)
                else:
                    task = steps.send(result)
        except StopIteration as end:
            return list(end.value)

    def _steps(
        self, campaign: str, key: str, count: int, context: Mapping[str, Any] | None, request: RequestOptions | None
    ) -> Steps:
        asked, done = keyed(key, context, count, request), 0
        while True:
            try:
                answers = yield self._slice(campaign, asked[done:], request)
            except CutShort as cut:
                taken = cut.taken
                if done or cut.earlier:
                    taken = yield Task(
                        isolated(campaign, lambda tx: self._undo(full(tx), campaign, asked)), Scope(campaign)
                    )
                raise of_batch(cut.refused, done + cut.fit, count, taken) from None
            if len(answers) == count:
                return list(answers)
            done += len(answers)
            if done == count:
                break
        # whether all are there still: another server may have been asked for the same batch, and have undone it
        answers = yield self._decisions.deciding(campaign, key, context, request, count)
        return list(answers)

    def _slice(self, campaign: str, asked: Sequence[Keyed], request: RequestOptions | None) -> Task[list[Answer]]:
        scope = Scope(campaign, keys=[key for key, _ in asked])
        return Task(isolated(campaign, lambda tx: self._decisions.make(tx, campaign, asked, request, SLICE)), scope)

    def _undo(self, tx: Transaction, campaign: str, asked: Sequence[Keyed]) -> int:
        """Void what of a batch has been made, and free its keys; what other decisions hold, and leases have."""
        row = find_campaign(tx, campaign)
        account = row.account
        for key, payload in asked:
            made = tx.decision_by_key(row.id, key)
            if (
                made is not None
                and made.request_digest == payload
                and made.hold.state == "pending"
                and made.reward is None
            ):
                account, hold = ledger.void(account, made.hold)
                tx.save_decision(replace(made, hold=hold))
                tx.forget_key(made)
                tx.add_event(Event(row.id, "voided", moment(tx, self._clock), made.id, made.arm))
        if account is not row.account:
            tx.save_money(row.with_money(account))
        return account.held + account.leased
