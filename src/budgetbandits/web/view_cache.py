"""Looking at a study without slowing it: what is expensive is done seldom, beside the requests, one at a time."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from typing import Generic, TypeVar

from budgetbandits.errors import BudgetBanditsError

T = TypeVar("T")
EXPECTED = (BudgetBanditsError, OSError)
"""What may go wrong without a mistake of ours; anything else is logged with its traceback."""

log = logging.getLogger(__name__)

SHARE = 0.05
"""Of one processor's time, at most, for everything that is done here."""
RETRY = 10.0
"""Seconds after which what could not be made is tried again, however seldom it is made otherwise."""
DRAWS = "draws for a page"
"""The name of every thread that is started here."""
_one_at_a_time = threading.Lock()  # Matplotlib's settings are the process's


class BackgroundValue(Generic[T]):
    """A value that is made again beside the requests, as seldom as its making is slow.

    ``number`` counts how often it was made; ``failed`` is why the last time it was not.
    """

    def __init__(self, make: Callable[[], T], least: float = 2.0, clock: Callable[[], float] = time.monotonic) -> None:
        self._make, self._least, self._clock = make, least, clock
        self._lock = threading.Lock()
        self._due, self._making = 0.0, False
        self.value: T | None = None
        self.number = 0
        self.failed = ""

    def latest(self) -> T | None:
        """What was made last, and if it is time, have it made again."""
        with self._lock:
            start = not self._making and self._clock() >= self._due
            self._making = self._making or start
        if start:
            threading.Thread(target=self._run, name=DRAWS, daemon=True).start()
        return self.value

    def _run(self) -> None:
        with _one_at_a_time:
            began, least = self._clock(), self._least
            try:
                self.value, self.failed = self._make(), ""
            except Exception as error:  # shown on the page: a part that another program has just removed, a full disk
                self.failed, least = str(error) or type(error).__name__, min(least, RETRY)
                log.warning("cannot draw %s", self.failed, exc_info=None if isinstance(error, EXPECTED) else error)
            took = self._clock() - began
        self.number += 1
        with self._lock:
            self._due = self._clock() + max(least, took / SHARE)
            self._making = False
