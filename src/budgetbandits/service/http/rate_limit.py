"""Slow down clients that guess keys, by address, and keys that have a limit (`KeyRates`).

Of wrong keys: a good key always passes.

Only failures count. The keys of an address with many failures are looked up one at a time, so that guessing occupies
at most one thread, and further failures are answered with a time to try again. A good key still passes, because many
people share an address, and behind a proxy all do.
"""

from __future__ import annotations

import asyncio
import ipaddress
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from budgetbandits.errors import TooManyRequests, TooManyWrongKeys

WRONG_KEYS_MAX = 20
"""Most wrong keys of one address in the window."""

WINDOW_SECONDS = 60.0
"""An address may send this many wrong keys in this time."""

ADDRESSES_MAX = 10_000
"""Most addresses that are remembered."""


@dataclass
class WrongKeys:
    """The wrong keys of one address."""

    until: float
    count: int = 0
    turn: asyncio.Lock = field(default_factory=asyncio.Lock)
    """Held while a key of this address is looked up."""


class KeyFailures:
    """Wrong keys by address."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._by_address: dict[str, WrongKeys] = {}

    def many(self, address: str) -> WrongKeys | None:
        """The failures of an address, if there are many."""
        failures = self._by_address.get(address)
        if failures is None or failures.count < WRONG_KEYS_MAX or self._clock() >= failures.until:
            return None
        return failures

    def count(self, address: str) -> None:
        """Count a wrong key; an error if there were many before."""
        now = self._clock()
        failures = self._by_address.get(address)
        if failures is None or now >= failures.until:
            self._make_room(now)
            failures = self._by_address[address] = WrongKeys(now + WINDOW_SECONDS)
        if failures.count >= WRONG_KEYS_MAX:
            wait = failures.until - now
            raise TooManyWrongKeys(
                f"{WRONG_KEYS_MAX} wrong keys in {WINDOW_SECONDS:g} seconds; try again in {wait:.0f} seconds", wait
            )
        failures.count += 1

    def _make_room(self, now: float) -> None:
        if len(self._by_address) >= ADDRESSES_MAX:
            self._by_address = {address: limit for address, limit in self._by_address.items() if now < limit.until}
        if len(self._by_address) >= ADDRESSES_MAX:
            del self._by_address[next(iter(self._by_address))]  # the oldest


class KeyRates:
    """Requests of keys that have a limit: a second's worth at once, and then as many a second as the key may make."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._left: dict[str, tuple[float, float]] = {}
        """How many requests a key may make at once, and when that was so."""

    def take(self, prefix: str, rate: float) -> None:
        """Count a request of a key; an error if it has made too many."""
        now, most = self._clock(), max(rate, 1.0)
        left, at = self._left.get(prefix, (most, now))
        left = min(most, left + rate * (now - at))
        if left < 1.0:
            raise TooManyRequests(
                f"this key may make {rate:g} requests a second to a server; wait, or ask for a key that may make more",
                (1.0 - left) / rate,
            )
        self._left[prefix] = left - 1.0, now


def network(address: str) -> str:
    """The part of an address that a client cannot change at will: half of an IPv6 address.

    >>> network("192.0.2.7"), network("2001:db8::7:1"), network("::ffff:192.0.2.7")
    ('192.0.2.7', '2001:db8::', '192.0.2.7')
    """
    try:
        parsed = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:  # a Unix socket
        return address
    if isinstance(parsed, ipaddress.IPv4Address):
        return str(parsed)
    return str(parsed.ipv4_mapped or ipaddress.IPv6Address(int(parsed) >> 64 << 64))
