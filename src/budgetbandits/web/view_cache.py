"""Caches of rendered views, shared by all viewers and refreshed at a bounded share of the CPU.

`ViewCache` serves the dashboard: requests await a view that is rendered in a thread, at most as often as all views
together take a hundredth of a processor. `BackgroundValue` serves the viewer of studies: requests get the latest value
at once, while a thread computes the next one.
"""

from __future__ import annotations

import asyncio
import gc
import logging
import sys
import threading
import time
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from functools import partial
from types import BuiltinFunctionType, FunctionType, MethodType, ModuleType
from typing import Any, Generic, TypeVar

from budgetbandits.errors import BudgetBanditsError

T = TypeVar("T")
S = TypeVar("S")
Key = tuple[Hashable, Hashable]

VIEWS_MAX = 200
"""Views that are kept ..."""
BYTES_MAX = 32_000_000
"""... and the memory that they may use together, with everything rendered from them. The views that nobody has asked
for the longest are dropped first."""
COSTS_MAX = 1000
"""Views whose cost is known."""

LIFETIME_FACTOR = 100.0
"""A view stays valid for this many times the CPU seconds of rendering all watched views once: together they use a
hundredth of a processor ..."""
LIFETIME_MAX = 20.0
"""... but for no more seconds than this."""
FIRST_COST_MAX = 0.05
"""Seconds that count at most when a view is rendered for the first time, which may include loading modules."""


@dataclass
class _Cost:
    """CPU seconds of rendering a view: the last time, and so far this time; and when it was last asked for."""

    asked: float
    before: float | None
    so_far: float = 0.0

    @property
    def again(self) -> float:
        """The cost of each rendering; 0 until the second one."""
        return 0.0 if self.before is None else max(self.so_far, self.before)


class Load:
    """The views that are being watched, and the cost of rendering each of them once."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._costs: dict[Key, _Cost] = {}

    def begin(self, key: Key, now: float) -> None:
        """Begin to render this view again."""
        with self._lock:
            last = self._costs.pop(key, None)
            self._costs[key] = _Cost(now, None if last is None else last.so_far)
            if len(self._costs) > COSTS_MAX:
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
        """The cost of all watched views together, or of this one if it is new and costs more. A view is no longer
        watched when nobody has asked for it in the time of two renderings."""
        with self._lock:
            twice = 2.0 * max(min(LIFETIME_FACTOR * self._again(), LIFETIME_MAX), LIFETIME_FACTOR * FIRST_COST_MAX)
            for each in [each for each, cost in self._costs.items() if now > cost.asked + twice]:
                del self._costs[each]
            own = None if key is None else self._costs.get(key)
            return self._again() if own is None else max(self._again(), min(own.so_far, FIRST_COST_MAX))

    def _again(self) -> float:
        return sum(cost.again for cost in self._costs.values())


@dataclass(frozen=True)
class _Weighed:
    value: Any
    bytes: int


@dataclass
class _View:
    begun_at: float
    answer: asyncio.Future[_Weighed] = field(init=False)
    parts: dict[Hashable, asyncio.Future[_Weighed]] = field(default_factory=dict)
    bytes: int = 0
    """Memory of the view with everything rendered from it."""


class ViewCache:
    """Views that stay valid for some seconds, each rendered in a thread for the first viewer who asks.

    A subject may have several views. Caches that share a ``load`` are bounded together.
    """

    def __init__(
        self, seconds: float, clock: Callable[[], float] = time.monotonic, load: Load | None = None,
        bytes_max: int = BYTES_MAX,
    ) -> None:  # fmt: skip
        self._seconds, self._clock, self._load, self._bytes_max = seconds, clock, load or Load(), bytes_max
        self._made: dict[Key, _View] = {}
        """In the order in which they were last asked for."""

    @property
    def bytes(self) -> int:
        """Memory of all views that are kept."""
        return sum(made.bytes for made in self._made.values())

    async def get(self, subject: Hashable, view: Hashable, make: Callable[[], T]) -> T:
        made: T = (await asyncio.shield(self._current((subject, view), make).answer)).value
        return made

    async def rendered(
        self, subject: Hashable, view: Hashable, make: Callable[[], T], variant: Hashable, draw: Callable[[T], S]
    ) -> tuple[T, S]:
        """A view, made once for all viewers, and its rendering, made once for all viewers of the same variant."""
        key = subject, view
        made = self._current(key, make)
        answer: T = (await asyncio.shield(made.answer)).value
        part = made.parts.get(variant)
        if part is None or _failed(part):
            part = made.parts[variant] = self._begun(key, made, lambda: draw(answer))
        rendered: S = (await asyncio.shield(part)).value
        return answer, rendered

    def lifetime(self, key: Key | None = None) -> float:
        """The seconds for which views are valid, or this one: asking more often returns the same."""
        return max(self._seconds, min(LIFETIME_FACTOR * self._load.seconds(key, self._clock()), LIFETIME_MAX))

    def time_left(self, subject: Hashable, view: Hashable) -> float:
        """Seconds until this view is rendered again."""
        key = subject, view
        made = self._made.get(key)
        return 0.0 if made is None else max(0.0, made.begun_at + self.lifetime(key) - self._clock())

    def clear(self) -> None:
        """Drop all views, after a change."""
        self._made.clear()

    def _current(self, key: Key, make: Callable[[], Any]) -> _View:
        made, now = self._made.pop(key, None), self._clock()
        self._load.asked(key, now)
        if made is None or now >= made.begun_at + self.lifetime(key) or _failed(made.answer):
            self._load.begin(key, now)
            made = _View(now)
            made.answer = self._begun(key, made, make)
        self._made[key] = made
        self._make_room()
        return made

    def _begun(self, key: Key, made: _View, make: Callable[[], Any]) -> asyncio.Future[_Weighed]:
        """Start to render something of a view. It is shielded wherever it is awaited: a client that leaves must not
        cancel it for the others."""
        begun = asyncio.ensure_future(asyncio.to_thread(self._timed, key, make))
        begun.add_done_callback(partial(self._weigh, made))
        return begun

    def _weigh(self, made: _View, done: asyncio.Future[_Weighed]) -> None:
        if not _failed(done):
            made.bytes += done.result().bytes
            self._make_room()

    def _make_room(self) -> None:
        taken = self.bytes
        while self._made and (taken > self._bytes_max or len(self._made) > VIEWS_MAX):
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


_CODE = (type, ModuleType, FunctionType, BuiltinFunctionType, MethodType)


def weight(value: object) -> int:
    """Bytes of memory of a value and everything that it refers to.

    >>> weight("a" * 1000) > 1000, weight([b"a" * 1000, {"b": b"b" * 1000}]) > 2000
    (True, True)
    """
    seen, waiting, taken = set[int](), [value], 0
    while waiting:
        each = waiting.pop()
        if id(each) not in seen and not isinstance(each, _CODE):
            seen.add(id(each))
            taken += sys.getsizeof(each)
            waiting += gc.get_referents(each)
    return taken


EXPECTED_ERRORS = (BudgetBanditsError, OSError)
"""What may go wrong without a mistake of ours; anything else is logged with its traceback."""

log = logging.getLogger(__name__)

CPU_SHARE = 0.05
"""The largest share of one processor's time that computing values may use."""
RETRY_SECONDS = 10.0
"""Seconds after which a value that failed is tried again, however rarely it is computed otherwise."""
THREAD_NAME = "draws for a page"
"""The name of every thread that is started here."""
_one_at_a_time = threading.Lock()  # Matplotlib's settings are the process's


class BackgroundValue(Generic[T]):
    """A value that a thread computes again, the less often the slower it is.

    ``number`` counts how often it was computed; ``failed`` says why the last attempt failed.
    """

    def __init__(
        self, make: Callable[[], T], seconds_min: float = 2.0, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._make, self._seconds_min, self._clock = make, seconds_min, clock
        self._lock = threading.Lock()
        self._due, self._making = 0.0, False
        self.value: T | None = None
        self.number = 0
        self.failed = ""

    def latest(self) -> T | None:
        """The latest value; if it is due, start to compute the next one."""
        with self._lock:
            start = not self._making and self._clock() >= self._due
            self._making = self._making or start
        if start:
            threading.Thread(target=self._run, name=THREAD_NAME, daemon=True).start()
        return self.value

    def _run(self) -> None:
        with _one_at_a_time:
            began, seconds_min = self._clock(), self._seconds_min
            try:
                self.value, self.failed = self._make(), ""
            except Exception as error:  # shown on the page: a part that another program has just removed, a full disk
                self.failed, seconds_min = str(error) or type(error).__name__, min(seconds_min, RETRY_SECONDS)
                log.warning(
                    "cannot draw %s", self.failed, exc_info=None if isinstance(error, EXPECTED_ERRORS) else error
                )
            took = self._clock() - began
        self.number += 1
        with self._lock:
            self._due = self._clock() + max(seconds_min, took / CPU_SHARE)
            self._making = False
