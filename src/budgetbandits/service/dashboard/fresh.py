"""What is made once for all who look at the same time, and as seldom as it takes a small share of a processor."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from typing import Any, TypeVar

T = TypeVar("T")
S = TypeVar("S")
Key = tuple[Hashable, Hashable]

MOST = 200

SHARE = 100.0
"""A view is good for so many times as long as it takes to make all views that are looked at, so that they take a
hundredth of a processor together, however many they are ..."""
LONGEST = 20.0
"""... but for no more seconds than this."""
FIRST = 0.05
"""Seconds that count of what was made for the first time, which may have had to load what makes it."""


@dataclass
class _Cost:
    """Seconds that a view took: the last time it was made, and so far this time; and when it was last asked for."""

    asked: float
    before: float | None
    so_far: float = 0.0

    @property
    def again(self) -> float:
        """What it takes again and again; nothing as long as it was made once."""
        return 0.0 if self.before is None else max(self.so_far, self.before)


class Load:
    """What is being looked at, and what it costs to make all of it once."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._costs: dict[Key, _Cost] = {}

    def begin(self, key: Key, now: float) -> None:
        """This view is made anew."""
        with self._lock:
            last = self._costs.get(key)
            self._costs[key] = _Cost(now, None if last is None else last.so_far)

    def asked(self, key: Key, now: float) -> None:
        with self._lock:
            if key in self._costs:
                self._costs[key].asked = now

    def add(self, key: Key, seconds: float) -> None:
        with self._lock:
            if key in self._costs:
                self._costs[key].so_far += seconds

    def seconds(self, key: Key | None, now: float) -> float:
        """Of all views that are made again and again, or of this one if it was made for the first time and takes
        longer. One that nobody has asked for while it could have been made twice is not looked at any more."""
        with self._lock:
            twice = 2.0 * max(min(SHARE * self._again(), LONGEST), SHARE * FIRST)
            for each in [each for each, cost in self._costs.items() if now > cost.asked + twice]:
                del self._costs[each]
            own = None if key is None else self._costs.get(key)
            return self._again() if own is None else max(self._again(), min(own.so_far, FIRST))

    def _again(self) -> float:
        return sum(cost.again for cost in self._costs.values())


@dataclass
class _Made:
    at: float
    answer: asyncio.Future[Any]
    parts: dict[Hashable, asyncio.Future[Any]] = field(default_factory=dict)


class Fresh:
    """Answers that are good for some seconds, each made in a thread by the first who asks.

    Answers may be several views of one subject. A ``load`` that is shared bounds what all who share it take together.
    """

    def __init__(
        self, seconds: float, clock: Callable[[], float] = time.monotonic, load: Load | None = None
    ) -> None:  # fmt: skip
        self._seconds, self._clock, self._load = seconds, clock, load or Load()
        self._made: dict[Key, _Made] = {}

    async def get(self, subject: Hashable, view: Hashable, make: Callable[[], T]) -> T:
        made: T = await asyncio.shield(self._current((subject, view), make).answer)
        return made

    async def drawn(
        self, subject: Hashable, view: Hashable, make: Callable[[], T], seen_as: Hashable, draw: Callable[[T], S]
    ) -> tuple[T, S]:
        """The answer, made once for all, and what is drawn of it, once for all who see it as the same."""
        key = subject, view
        made = self._current(key, make)
        answer: T = await asyncio.shield(made.answer)
        part = made.parts.get(seen_as)
        if part is None or _failed(part):
            part = asyncio.ensure_future(asyncio.to_thread(self._timed, key, lambda: draw(answer)))
            made.parts[seen_as] = part
        drawn: S = await asyncio.shield(part)
        return answer, drawn

    def lasts(self, key: Key | None = None) -> float:
        """For how many seconds an answer is good, or this one: to ask more often brings nothing new."""
        return max(self._seconds, min(SHARE * self._load.seconds(key, self._clock()), LONGEST))

    def left(self, subject: Hashable, view: Hashable) -> float:
        """Seconds until this view is made anew for who asks."""
        key = subject, view
        made = self._made.get(key)
        return 0.0 if made is None else max(0.0, made.at + self.lasts(key) - self._clock())

    def forget(self) -> None:
        """Whatever was made is made anew: somebody has changed something."""
        self._made.clear()

    def _current(self, key: Key, make: Callable[[], Any]) -> _Made:
        made, now = self._made.get(key), self._clock()
        self._load.asked(key, now)
        if made is None or now >= made.at + self.lasts(key) or _failed(made.answer):
            if len(self._made) >= MOST:
                self._made.clear()
            self._load.begin(key, now)
            # shielded wherever it is awaited: whoever leaves must not end it for the others
            made = _Made(now, asyncio.ensure_future(asyncio.to_thread(self._timed, key, make)))
            self._made[key] = made
        return made

    def _timed(self, key: Key, make: Callable[[], T]) -> T:
        begun = time.thread_time()
        try:
            return make()
        finally:
            self._load.add(key, time.thread_time() - begun)


def _failed(answer: asyncio.Future[Any]) -> bool:
    return answer.done() and (answer.cancelled() or answer.exception() is not None)
