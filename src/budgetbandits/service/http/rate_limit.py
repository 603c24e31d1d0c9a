"""Whoever guesses keys is slowed down, by address; whoever has a good key is not, whatever its neighbours do.

Only failures are counted. An address with many of them has its keys looked up one at a time, so that guessing takes at
most one of the server's threads, and further failures are answered with when to try again. A good key passes still:
many people share an address, and all do behind a proxy.
"""

from __future__ import annotations

import asyncio
import ipaddress
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from budgetbandits.errors import TooManyWrongKeys

FAILURES = 20
WITHIN = 60.0
"""So many wrong keys an address may send in so many seconds."""

MOST_ADDRESSES = 10_000


@dataclass
class Failures:
    """The wrong keys of one address."""

    until: float
    count: int = 0
    turn: asyncio.Lock = field(default_factory=asyncio.Lock)
    """Held by the request whose key is being looked up."""


class Guesses:
    """Wrong keys by address."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._of: dict[str, Failures] = {}

    def many(self, address: str) -> Failures | None:
        """The failures of an address that has many."""
        failures = self._of.get(address)
        if failures is None or failures.count < FAILURES or self._clock() >= failures.until:
            return None
        return failures

    def count(self, address: str) -> None:
        """One more wrong key; an error if there were many before."""
        now = self._clock()
        failures = self._of.get(address)
        if failures is None or now >= failures.until:
            self._make_room(now)
            failures = self._of[address] = Failures(now + WITHIN)
        if failures.count >= FAILURES:
            wait = failures.until - now
            raise TooManyWrongKeys(
                f"{FAILURES} wrong keys in {WITHIN:g} seconds; try again in {wait:.0f} seconds", wait
            )
        failures.count += 1

    def _make_room(self, now: float) -> None:
        if len(self._of) >= MOST_ADDRESSES:
            self._of = {address: each for address, each in self._of.items() if now < each.until}
        if len(self._of) >= MOST_ADDRESSES:
            del self._of[next(iter(self._of))]  # the oldest


def network(address: str) -> str:
    """What one client may change at will is left out of its address: half of an IPv6 address.

    >>> network("192.0.2.7"), network("2001:db8::7:1"), network("::ffff:192.0.2.7")
    ('192.0.2.7', '2001:db8::', '192.0.2.7')
    """
    try:
        known = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:  # a socket that is a file
        return address
    if isinstance(known, ipaddress.IPv4Address):
        return str(known)
    return str(known.ipv4_mapped or ipaddress.IPv6Address(int(known) >> 64 << 64))
