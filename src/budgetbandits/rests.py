"""Arms that rest: after failures, and those that neither bring nor cost anything.

A provider that is down brings nothing and costs nothing. Told as reward 0 and cost 0, it would not be given up by a
policy that looks at ratios: 0/0 says nothing. But each ask of it uses a request, so it is asked ever more rarely:

- After its k-th failure in a row an arm rests for 2^k asks, up to 1,024. A success ends the row. Of the failures of
  asks that were under way together the first counts for the row: a failure of an ask that was made before the arm's
  rest began says nothing that was not known.
- An arm that has neither brought nor cost anything in all its n ≥ 50 pulls rests for n asks after each further one:
  its share of t asks falls like √(2/t).

An arm at rest is not asked, unless every arm that may be asked is. In the decision service, where many programs ask,
rests are in seconds in place of asks.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from budgetbandits.errors import BadState

LONGEST = 1024
"""Asks that an arm rests after failures, at most."""

IDLE_PULLS = 50
"""From so many pulls without reward and cost on, an arm rests."""

FIELDS = ("row", "until", "idle", "failures", "since")


class Rests:
    """For each arm: failures in a row, the ask until which it rests, idle pulls (−1: it has brought or cost something),
    all its failures, and the ask since which it has rested for the last of the row (0: there is no row)."""

    def __init__(self, arms: int) -> None:
        self.row, self.until, self.idle, self.failures, self.since = np.zeros((5, arms), dtype=np.int64)
        self.latest = 0
        """From this ask on nobody rests."""

    def add(self) -> None:
        """One more arm."""
        for name in FIELDS:
            setattr(self, name, np.append(getattr(self, name), 0))

    def failed(self, arm: int, now: int, asked: int | None) -> None:
        """A failure was told when this many asks had been made, of the ask before which ``asked`` had been; None: it
        counts for the row whenever that was."""
        self.failures[arm] += 1
        if asked is not None:
            if asked < self.since[arm]:
                return
            self.since[arm] = now
        self.row[arm] += 1
        self._rest(arm, now + min(2 ** int(self.row[arm]), LONGEST))

    def told(self, arm: int, something: bool, now: int) -> None:
        """An outcome was told, which brought or cost something, or neither."""
        self.row[arm] = self.since[arm] = 0
        if something or self.idle[arm] < 0:
            self.idle[arm] = -1
            self.until[arm] = 0
            return
        self.idle[arm] += 1
        self._rest(arm, now + int(self.idle[arm]) if self.idle[arm] >= IDLE_PULLS else 0)

    def _rest(self, arm: int, until: int) -> None:
        self.until[arm] = until
        self.latest = max(self.latest, until)

    def awake(self, now: int) -> NDArray[np.bool_] | None:
        """The arms that do not rest; None if none does."""
        if now >= self.latest:
            return None
        resting = self.until > now
        return ~resting if resting.any() else None

    def of_arm(self, arm: int) -> dict[str, int]:
        """What is known of one arm, as plain numbers."""
        known = {name: int(getattr(self, name)[arm]) for name in FIELDS}
        if not known["since"]:  # as it was written before there was such a number
            del known["since"]
        return known

    def take(self, arm: int, saved: Mapping[str, int]) -> None:
        """What `of_arm` said of this arm."""
        for name in FIELDS:
            getattr(self, name)[arm] = saved.get(name, 0) if name == "since" else saved[name]
        self.latest = max(self.latest, int(self.until[arm]))

    def beyond(self, latest: int) -> list[int]:
        """The arms that rest beyond this ask, or moment."""
        return [] if self.latest <= latest else np.flatnonzero(self.until > latest).tolist()

    def wake(self, latest: int) -> None:
        """No arm rests beyond this ask, or moment."""
        np.minimum(self.until, latest, out=self.until)
        np.minimum(self.since, latest, out=self.since)
        self.latest = min(self.latest, latest)

    def to_dict(self) -> dict[str, Any]:
        return {name: getattr(self, name).tolist() for name in FIELDS}

    @classmethod
    def from_dict(cls, saved: Mapping[str, Any], arms: int) -> Self:
        self = cls(arms)
        saved = {"since": [0] * arms, **saved}  # which earlier versions did not write
        for name in FIELDS:
            values = np.array(saved[name], dtype=np.int64)
            if values.shape != (arms,) or (values < -1).any():
                raise BadState(f"{name!r} of the rests is not one count for each arm; restore an undamaged copy")
            setattr(self, name, values)
        self.latest = int(self.until.max(initial=0))
        return self
