"""What is made once for all who look at the same time."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Hashable
from typing import Any, TypeVar

T = TypeVar("T")

MOST = 200


SHARE = 100.0
"""What took long to make is good for so many times as long, so that it takes a hundredth of a processor ..."""
LONGEST = 5.0
"""... but for no more seconds than this, or twice what is asked for."""


class Fresh:
    """Answers that are good for some seconds, each made in a thread by the first who asks.

    Answers may be several views of one subject; `lasts` says how long those of a subject are good.
    """

    def __init__(self, seconds: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._seconds, self._clock = seconds, clock
        self._made: dict[Hashable, tuple[float, asyncio.Future[Any]]] = {}
        self._lasts: dict[Hashable, float] = {}

    async def get(self, subject: Hashable, view: Hashable, make: Callable[[], T]) -> T:
        key = subject, view
        until, answer = self._made.get(key, (0.0, None))
        if answer is None or self._clock() >= until or (answer.done() and answer.exception() is not None):
            if len(self._made) >= MOST:
                self._made.clear()
                self._lasts.clear()
            answer = asyncio.ensure_future(asyncio.to_thread(self._timed, key, make))
            self._made[key] = self._clock() + self._seconds, answer
        made: T = await asyncio.shield(answer)  # whoever leaves must not end it for the others
        return made

    def lasts(self, subject: Hashable) -> float:
        """For how many seconds the latest answer about a subject is good: to ask more often brings nothing new."""
        return self._lasts.get(subject, self._seconds)

    def _timed(self, key: tuple[Hashable, Hashable], make: Callable[[], T]) -> T:
        begun, at = time.thread_time(), self._clock()
        made = make()
        took = SHARE * (time.thread_time() - begun)
        lasts = max(self._seconds, min(took, max(LONGEST, 2 * self._seconds)))
        there = self._made.get(key)
        if there is not None:
            self._made[key], self._lasts[key[0]] = (at + lasts, there[1]), lasts
        return made

    def forget(self) -> None:
        """Whatever was made is made anew: somebody has changed something."""
        self._made.clear()
