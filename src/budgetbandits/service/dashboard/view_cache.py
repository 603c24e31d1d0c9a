"""What is made once for all who look at the same time, and as seldom as it takes a small share of a processor."""

from __future__ import annotations

import asyncio
import gc
import sys
import threading
import time
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from functools import partial
from types import BuiltinFunctionType, FunctionType, MethodType, ModuleType
from typing import Any, TypeVar

T = TypeVar("T")
S = TypeVar("S")
Key = tuple[Hashable, Hashable]

MOST = 200
"""Subjects and views of them that are kept ..."""
MOST_BYTES = 32_000_000
"""... and what they may take together, with all that is drawn of them. What was asked for longest ago leaves first."""
MOST_COSTS = 1000
"""Views of which it is known what they cost."""

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
            last = self._costs.pop(key, None)
            self._costs[key] = _Cost(now, None if last is None else last.so_far)
            if len(self._costs) > MOST_COSTS:
                del self._costs[next(iter(self._costs))]  # nobody has asked for it for longest

    def asked(self, key: Key, now: float) -> None:
        with self._lock:
            cost = self._costs.pop(key, None)
            if cost is not None:
                cost.asked = now
                self._costs[key] = cost

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


@dataclass(frozen=True)
class _Weighed:
    value: Any
    bytes: int


@dataclass
class _Made:
    at: float
    answer: asyncio.Future[_Weighed] = field(init=False)
    parts: dict[Hashable, asyncio.Future[_Weighed]] = field(default_factory=dict)
    bytes: int = 0
    """What there is of it takes."""


class Fresh:
    """Answers that are good for some seconds, each made in a thread by the first who asks.

    Answers may be several views of one subject. A ``load`` that is shared bounds what all who share it take together.
    """

    def __init__(
        self, seconds: float, clock: Callable[[], float] = time.monotonic, load: Load | None = None,
        most_bytes: int = MOST_BYTES,
    ) -> None:  # fmt: skip
        self._seconds, self._clock, self._load, self._most_bytes = seconds, clock, load or Load(), most_bytes
        self._made: dict[Key, _Made] = {}
        """What was asked for last comes last."""

    @property
    def bytes(self) -> int:
        """What is kept takes."""
        return sum(made.bytes for made in self._made.values())

    async def get(self, subject: Hashable, view: Hashable, make: Callable[[], T]) -> T:
        made: T = (await asyncio.shield(self._current((subject, view), make).answer)).value
        return made

    async def drawn(
        self, subject: Hashable, view: Hashable, make: Callable[[], T], seen_as: Hashable, draw: Callable[[T], S]
    ) -> tuple[T, S]:
        """The answer, made once for all, and what is drawn of it, once for all who see it as the same."""
        key = subject, view
        made = self._current(key, make)
        answer: T = (await asyncio.shield(made.answer)).value
        part = made.parts.get(seen_as)
        if part is None or _failed(part):
            part = made.parts[seen_as] = self._begun(key, made, lambda: draw(answer))
        drawn: S = (await asyncio.shield(part)).value
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
        made, now = self._made.pop(key, None), self._clock()
        self._load.asked(key, now)
        if made is None or now >= made.at + self.lasts(key) or _failed(made.answer):
            self._load.begin(key, now)
            made = _Made(now)
            made.answer = self._begun(key, made, make)
        self._made[key] = made
        self._make_room()
        return made

    def _begun(self, key: Key, made: _Made, make: Callable[[], Any]) -> asyncio.Future[_Weighed]:
        """Something that is being made of a view. Shielded wherever it is awaited: whoever leaves must not end it for
        the others."""
        begun = asyncio.ensure_future(asyncio.to_thread(self._timed, key, make))
        begun.add_done_callback(partial(self._weigh, made))
        return begun

    def _weigh(self, made: _Made, done: asyncio.Future[_Weighed]) -> None:
        if not _failed(done):
            made.bytes += done.result().bytes
            self._make_room()

    def _make_room(self) -> None:
        taken = self.bytes
        while self._made and (taken > self._most_bytes or len(self._made) > MOST):
            taken -= self._made.pop(next(iter(self._made))).bytes

    def _timed(self, key: Key, make: Callable[[], Any]) -> _Weighed:
        begun = time.thread_time()
        try:
            value = make()
            return _Weighed(value, weight(value))
        finally:
            self._load.add(key, time.thread_time() - begun)


def _failed(answer: asyncio.Future[Any]) -> bool:
    return answer.done() and (answer.cancelled() or answer.exception() is not None)


_OF_THE_PROGRAM = (type, ModuleType, FunctionType, BuiltinFunctionType, MethodType)


def weight(value: object) -> int:
    """Bytes that a value takes with all that it is made of.

    >>> weight("a" * 1000) > 1000, weight([b"a" * 1000, {"b": b"b" * 1000}]) > 2000
    (True, True)
    """
    seen, waiting, taken = set[int](), [value], 0
    while waiting:
        each = waiting.pop()
        if id(each) not in seen and not isinstance(each, _OF_THE_PROGRAM):
            seen.add(id(each))
            taken += sys.getsizeof(each)
            waiting += gc.get_referents(each)
    return taken
