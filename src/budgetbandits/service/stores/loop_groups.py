"""Groups of an event loop: requests about one campaign that come in while it is busy go to a writer together."""

from __future__ import annotations

import asyncio
from collections.abc import Hashable
from functools import partial
from typing import Any

from budgetbandits.errors import StoreError
from budgetbandits.service.stores.work_queue import GROUP_MAX, WorkItem, WorkQueue, resolve_futures

LOOP_ROUNDS = 6
"""Rounds of the event loop before groups are started, unless a single client is asking. In these rounds answers are
sent and what is on the wire is read, so that clients that ask again at once go together with those that have waited: a
group costs as much as several requests, be it large or small."""


class LoopGroups:
    """Work of one event loop that waits for its group. A campaign has one group under way at a time."""

    def __init__(self, loop: asyncio.AbstractEventLoop, queue: WorkQueue) -> None:
        self.loop = loop
        self._queue = queue
        self._waiting: dict[Hashable, list[WorkItem]] = {}
        """Waiting work by campaign."""
        self._busy: set[Hashable] = set()
        """Campaigns with a group under way."""
        self._starting = False
        """Whether groups will be started in some rounds."""
        self._alone = True
        """Whether the last group was a single item and nobody waited meanwhile."""

    def put(self, item: WorkItem) -> None:
        """Run an item, whose future is of this loop, in the next group of its campaign."""
        group = item.scope.campaign or object()  # work without a campaign is alone
        if group in self._waiting:
            self._waiting[group].append(item)
        else:
            self._waiting[group] = [item]
            self._start_soon()

    def waiting(self) -> int:
        """The number of items that wait for their group."""
        return sum(map(len, list(self._waiting.values())))  # called by other threads

    def _start_soon(self) -> None:
        if not self._starting:
            self._starting = True
            self.loop.call_soon(self._start, 0 if self._alone else LOOP_ROUNDS - 1)

    def _start(self, rounds: int) -> None:
        """Start the groups that wait, after this many further rounds of the loop."""
        if rounds:
            self.loop.call_soon(self._start, rounds - 1)
            return
        self._starting = False
        for group in [group for group in self._waiting if group not in self._busy]:
            items = self._waiting.pop(group)
            if len(items) > GROUP_MAX:
                self._waiting[group] = items[GROUP_MAX:]
            self._busy.add(group)
            last = items[:GROUP_MAX][-1].future
            assert isinstance(last, asyncio.Future)
            last.add_done_callback(partial(self._done, group, len(items) == 1))
            try:
                self._queue.put(items[:GROUP_MAX], group)
            except StoreError as error:  # it was closed meanwhile
                resolve_futures([(item.future, None, error) for item in items[:GROUP_MAX]])

    def _done(self, group: Hashable, alone: bool, _: asyncio.Future[Any]) -> None:
        self._busy.discard(group)
        self._alone = alone and not self._waiting and not self._busy
        if self._waiting:
            self._start_soon()
