"""Tasks about decisions in an event loop, which serves nobody else while it runs one.

What takes long is done elsewhere, and for each campaign in turns (`lanes`): a choice is made by another process before
its transaction (`choices_ahead`), the arms of a campaign that is not in memory are read by a thread, and a segment,
which writes all arms, is opened by a thread and at a pace.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace

from budgetbandits.errors import BudgetBanditsError, ServerBusy
from budgetbandits.service.choice_processes import ChoiceProcesses
from budgetbandits.service.choices_ahead import ChoiceNeeded, ChoicesAhead
from budgetbandits.service.lanes import Lanes
from budgetbandits.service.session_cache import SessionCache
from budgetbandits.service.stores.contract import UNREADABLE, Store, T, Task
from budgetbandits.service.work import AT_ONCE_MAX
from budgetbandits.validation import RequestOptions

OPENING_SHARE = 0.005
"""The share of the time for which a campaign may open segments, where that takes long: it writes all its arms."""

AHEAD_SECONDS_MAX = 5.0
"""Time after which no further choice is made ahead for a decision: the campaign always changed before it was used."""


class Scheduler:
    """Runs tasks for one server's event loop."""

    def __init__(self, store: Store, sessions: SessionCache) -> None:
        self._store, self._sessions, self.lanes = store, sessions, Lanes()
        self._next_opening: dict[str, float] = {}
        """Times from which a segment may be opened again, by campaign."""
        self.processes: ChoiceProcesses | None = None
        """Made when the first choice takes long: a store in memory has no address."""

    def close(self) -> None:
        """End the processes that make long choices."""
        if self.processes is not None:
            self.processes.close()

    async def perform(self, campaign: str, task: Task[T], sliced: bool = False) -> T:
        """`Store.perform` for feedback on decisions of this campaign, or for a slice of much feedback."""
        id = self._sessions.id_of(campaign)
        if not sliced and id not in self.lanes:
            return await self._perform(campaign, task)
        async with self.lanes.turn(id):
            return await self._perform(campaign, task)

    async def choose(
        self,
        campaign: str,
        task: Callable[[ChoicesAhead], Task[T]],
        options: RequestOptions | None,
        count: int | None = None,
    ) -> T:
        """Perform a task that chooses, or a slice that chooses up to ``count`` times; choices that take long are made
        ahead of it."""
        id = self._sessions.id_of(campaign)
        if count is None and id not in self.lanes:
            try:
                return await self._perform(campaign, task(ChoicesAhead()), options)
            except ChoiceNeeded:
                pass
        async with self.lanes.turn(self._sessions.id_of(campaign)):
            ahead, end = ChoicesAhead(), time.monotonic() + AHEAD_SECONDS_MAX
            while True:
                try:
                    return await self._perform(campaign, task(ahead), options)
                except ChoiceNeeded as needed:
                    if time.monotonic() > end:
                        raise ServerBusy(
                            f"campaign {campaign!r:.60} changes more often than its choices can be made; ask again, "
                            "or have fewer arms, features, segments or propensity_draws"
                        ) from None
                    if self.processes is None:
                        self.processes = ChoiceProcesses(self._store.address)
                    ahead = await self.processes.choices(needed.inputs, count or 1)

    async def _perform(self, campaign: str, task: Task[T], options: RequestOptions | None = None) -> T:
        """`Store.perform`, but outside the event loop where very many arms are to be read or written."""
        if not self._sessions.was_read(campaign):
            with suppress(BudgetBanditsError, *UNREADABLE):  # the task itself answers the caller
                await asyncio.to_thread(self._sessions.read_ahead, self._store, campaign)
        if self._opens(campaign, options):
            return await asyncio.wrap_future(self._store.submit(*task))
        return await self._store.perform(*task)

    def _opens(self, campaign: str, options: RequestOptions | None) -> bool:
        """Whether a decision with these options may open a segment."""
        segment = None if options is None else options.segment
        return segment is not None and self._sessions.opens_segment(campaign, segment)

    async def wait_to_open(self, campaign: str, options: RequestOptions | None) -> None:
        """Wait until the campaign may open a segment, if these options may open one. Where that is much work, others
        have nearly all of the time."""
        if not self._opens(campaign, options):
            return
        id = self._sessions.id_of(campaign)
        session = self._sessions.kept.get(id)
        work = 0.0 if session is None else replace(session.size(None), draws=0).work
        if work <= AT_ONCE_MAX:
            return
        now = time.monotonic()
        begins = max(self._next_opening.get(id, now), now)
        if begins - now > AHEAD_SECONDS_MAX:
            raise ServerBusy(
                f"campaign {campaign!r:.60} opens segments faster than one in {1e-6 * work / OPENING_SHARE:.2g} s, and "
                "each writes all that was learned of its arms; ask again, or name fewer segments"
            )
        self._next_opening[id] = begins + 1e-6 * work / OPENING_SHARE
        await asyncio.sleep(begins - now)
