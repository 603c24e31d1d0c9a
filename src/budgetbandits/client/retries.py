"""When a call is sent again, and when it is given up.

Every call is safe to retry: writes carry an idempotency key, or are idempotent by design.
"""

from __future__ import annotations

import random
import time
from collections.abc import Iterator
from typing import Any

import httpx

from budgetbandits.client.protocol import Call, error_of, retry_after
from budgetbandits.errors import HoldRefused, ServiceUnreachable

DEADLINE = 30.0
"""Seconds after which a call is given up: a server that is restarted may take ten to end its requests."""

PAUSE_MIN, PAUSE_MAX = 0.1, 2.0
"""Seconds between tries, doubled each time and shortened at random, so that clients do not return all at once."""

RETRY_STATUSES = {408, 429, 502, 503, 504}
"""Statuses of a proxy, of a server that is too busy, or of a store that cannot write now."""

clock = time.monotonic


class Retry:
    """The tries of one call; both clients ask after each try when to send the next.

    deadline  seconds after which it is given up; waiting for money does not count
    timeout   seconds that a single try may take
    wait      seconds to wait for money that is held or not yet due
    """

    def __init__(self, call: Call[Any], deadline: float, timeout: float, wait: float) -> None:
        self._call = call
        self._deadline = deadline
        self._longest = timeout
        self._until = clock() + wait
        self._begin()

    def _begin(self) -> None:
        self._end = clock() + self._deadline
        self._pauses = _pauses()

    def request(self) -> dict[str, Any]:
        """The arguments of httpx for the next try."""
        call, longest = self._call, max(min(self._longest, self._end - clock()), 0.001)
        timeout = httpx.Timeout(longest, read=None if call.takes_long else longest)
        return {
            "method": call.method, "url": call.path, "json": call.body, "headers": call.headers, "timeout": timeout
        }  # fmt: skip

    def after(self, answer: httpx.Response) -> float | None:
        """Seconds until the next try; None if this is the answer."""
        if answer.status_code in RETRY_STATUSES:
            return self._pause(retry_after(answer) or 0.0)
        refused = None if answer.is_success else error_of(answer)
        if not isinstance(refused, HoldRefused) or refused.retry_after is None:
            return None
        if clock() + refused.retry_after > self._until:
            return None
        self._begin()
        self._end += refused.retry_after
        return refused.retry_after

    def after_failure(self, error: httpx.TransportError) -> float:
        """Seconds until the next try; `ServiceUnreachable` if there is no time for one."""
        pause = self._pause()
        if pause is None:
            key = self._call.headers.get("Idempotency-Key")
            remedy = "see whether it runs, and whether the address is right"
            if key is not None:
                remedy += f"; repeat the call with key={key!r}, and nothing is done twice"
            reason = error or type(error).__name__
            raise ServiceUnreachable(
                f"no answer from the service in {self._deadline:g} seconds: {reason}; {remedy}"
            ) from error
        return pause

    def _pause(self, shortest: float = 0.0) -> float | None:
        """The next pause, if it ends before the deadline."""
        pause = max(next(self._pauses), shortest)
        return pause if clock() + pause < self._end else None


def _pauses() -> Iterator[float]:
    """The pauses between the tries of a call."""
    longest = PAUSE_MIN
    while True:
        yield longest * (0.5 + random.random() / 2)
        longest = min(longest * 2, PAUSE_MAX)
