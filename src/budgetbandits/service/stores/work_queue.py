"""Work that waits for a writer, by campaign, and the answers that are handed back."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Callable, Hashable, Sequence
from concurrent.futures import Future, InvalidStateError
from typing import Any, NamedTuple

from budgetbandits.errors import StoreError
from budgetbandits.service.stores.contract import NO_SCOPE, Scope, Transaction

GROUP_MAX = 64
"""Items of work that may share a commit."""

Answerable = Future[Any] | asyncio.Future[Any]


class WorkItem(NamedTuple):
    """Work in a transaction, the future of its answer, and what it is about."""

    work: Callable[[Transaction], Any]
    future: Answerable
    scope: Scope = NO_SCOPE


Answers = list[tuple[Answerable, Any, BaseException | None]]


class WorkQueue:
    """Items of work that wait, by campaign. Writers share one queue.

    A group is about one campaign, and one writer at a time has it: items that come meanwhile wait to go together.
    """

    def __init__(self) -> None:
        self._items: dict[Hashable, list[WorkItem]] = {}
        """The longest wait comes first."""
        self._taken: set[Hashable] = set()
        self._changed = threading.Condition()
        self._over = False

    def put(self, items: Sequence[WorkItem], scope: Hashable) -> None:
        """Let items about a campaign wait for a writer."""
        with self._changed:
            if self._over:
                raise StoreError("the store is closed; open it again")
            self._items.setdefault(scope, []).extend(items)
            if scope not in self._taken:
                self._changed.notify()

    def take(self) -> tuple[Hashable, list[WorkItem]] | None:
        """The next group and its campaign, which are the caller's until `done`; None after `stop`."""
        with self._changed:
            while True:
                for scope, items in self._items.items():
                    if scope not in self._taken:
                        del self._items[scope]
                        if len(items) > GROUP_MAX:
                            self._items[scope] = items[GROUP_MAX:]
                        self._taken.add(scope)
                        return scope, items[:GROUP_MAX]
                if self._over:  # the rest is taken by the writer of its campaign
                    return None
                self._changed.wait()

    def done(self, scope: Hashable) -> None:
        """Note that work of this scope has ended."""
        with self._changed:
            self._taken.discard(scope)
            if scope in self._items:
                self._changed.notify()

    def load(self) -> tuple[int, int]:
        """How many writers are busy, and how many items wait."""
        with self._changed:
            return len(self._taken), sum(map(len, self._items.values()))

    def stop(self) -> None:
        """Nothing more will be put in."""
        with self._changed:
            self._over = True
            self._changed.notify_all()


def resolve_futures(answers: Answers) -> None:
    """Hand each answer to the one who waits for it."""
    for future, answer, problem in answers:
        # the caller may have given up, even just now
        with contextlib.suppress(InvalidStateError, asyncio.InvalidStateError):
            if future.done():
                continue
            if problem is None:
                future.set_result(answer)
            else:
                future.set_exception(problem)


def deliver(answers: Answers) -> None:
    """Hand answers of a writer's thread to those who wait in threads and in event loops."""
    in_loops: dict[asyncio.AbstractEventLoop, Answers] = {}
    in_threads: Answers = []
    for answer in answers:
        future = answer[0]
        mates = in_loops.setdefault(future.get_loop(), []) if isinstance(future, asyncio.Future) else in_threads
        mates.append(answer)
    resolve_futures(in_threads)
    for loop, its_answers in in_loops.items():
        with contextlib.suppress(RuntimeError):  # the loop is closed, and nobody waits any more
            loop.call_soon_threadsafe(resolve_futures, its_answers)
