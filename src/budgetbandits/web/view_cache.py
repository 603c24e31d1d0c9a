"""Values that are computed for many viewers at once, at a bounded share of the CPU.

`ViewCache` serves the dashboard: requests await a view that is rendered in a thread, at most as often as all views
together take a hundredth of a processor. `BackgroundValue` serves the viewer of studies: requests get the latest value
at once, while a thread computes the next one.
"""

from __future__ import annotations

import asyncio
import logging
import math
import threading
import time
from collections.abc import Callable, Hashable
from typing import Any, Generic, TypeVar

from budgetbandits.errors import BudgetBanditsError

T = TypeVar("T")
"""Type of a value."""

S = TypeVar("S")
"""Type of a rendering."""

ENTRIES_MAX = 200
"""Views and renderings that are kept; those that nobody has asked for the longest leave first. Each is about
a fifth of a megabyte."""

LIFETIME_FACTOR = 100.0
"""A view stays valid for this many times the CPU seconds of rendering all watched views once: together they use a
hundredth of a processor, unless that takes longer than `LIFETIME_MAX`."""
LIFETIME_MAX = 20.0
"""Seconds for which a view stays valid at most."""
WATCHED_SECONDS = 2.0 * LIFETIME_MAX
"""Seconds after which a view that nobody has asked for is dropped."""


class _Entry:
    """A value that a thread computes, or has computed.

    begun_at  when that began
    asked_at  when a viewer asked for it last
    cost      CPU seconds of computing it; 0 until the second time, since the first may include loading modules
    source    the entry that it was rendered from, if any
    """

    def __init__(self, now: float, compute: Callable[[], Any], source: _Entry | None, before: _Entry | None) -> None:
        self.begun_at, self.asked_at, self.source = now, now, source
        self.cost: float = 0.0 if before is None else before.cost
        self.task = asyncio.ensure_future(asyncio.to_thread(self._run, compute, before is not None))
        """It is shielded wherever it is awaited: a client that leaves must not cancel it for the others."""

    def _run(self, compute: Callable[[], T], again: bool) -> T:
        begun = time.thread_time()
        try:
            return compute()
        finally:
            if again:
                self.cost = time.thread_time() - begun

    @property
    def failed(self) -> bool:
        return self.task.done() and (self.task.cancelled() or self.task.exception() is not None)


class ViewCache:
    """Values by key, each computed in a thread for the first who asks and then the same for all while it is valid."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._entries: dict[Hashable, _Entry] = {}
        """Entries in the order in which they were last requested."""

    async def get(self, key: Hashable, compute: Callable[[], T], seconds: float) -> T:
        """The value of a key, which is valid for these seconds, or longer if it is costly."""
        value: T = await asyncio.shield(self._entry(key, compute, seconds).task)
        return value

    async def rendered(
        self, key: Hashable, compute: Callable[[], T], variant: Hashable, render: Callable[[T], S], seconds: float
    ) -> tuple[T, S]:
        """A value, computed once for all viewers, and its rendering, made once for all viewers of the same variant."""
        source = self._entry(key, compute, seconds)
        value: T = await asyncio.shield(source.task)
        part: S = await asyncio.shield(self._entry((key, variant), lambda: render(value), math.inf, source).task)
        return value, part

    def _entry(self, key: Hashable, compute: Callable[[], Any], seconds: float, source: _Entry | None = None) -> _Entry:
        now, entry = self._clock(), self._entries.get(key)
        if (
            entry is None or entry.failed or entry.source is not source
            or now >= entry.begun_at + self.lifetime(seconds)
        ):  # fmt: skip
            entry = _Entry(now, compute, source, entry)
        entry.asked_at = now
        self._entries.pop(key, None)
        self._entries[key] = entry  # the last one in the order
        if len(self._entries) > ENTRIES_MAX:
            del self._entries[next(iter(self._entries))]
        return entry

    def lifetime(self, seconds: float) -> float:
        """The seconds for which a view is valid, at least these: asking more often returns the same."""
        watched_since = self._clock() - WATCHED_SECONDS
        while self._entries and (oldest := next(iter(self._entries.items())))[1].asked_at < watched_since:
            del self._entries[oldest[0]]
        return max(seconds, min(LIFETIME_FACTOR * sum(entry.cost for entry in self._entries.values()), LIFETIME_MAX))

    def time_left(self, key: Hashable, seconds: float) -> float:
        """Seconds until this value is computed again."""
        entry = self._entries.get(key)
        return 0.0 if entry is None else max(0.0, entry.begun_at + self.lifetime(seconds) - self._clock())

    def clear(self) -> None:
        """Let no value be valid any more, after a change."""
        for entry in self._entries.values():
            entry.begun_at = -math.inf


EXPECTED_ERRORS = (BudgetBanditsError, OSError)
"""Errors of an attempt that are expected; any other error is logged with its traceback."""

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
