"""Arms that rest: after an outage, and those that neither bring nor cost anything.

A provider that is down brings nothing and costs nothing. Told as reward 0 and cost 0, it would not be given up by a
policy that looks at ratios: 0/0 says nothing. But each ask of it uses a request, so it is asked ever more rarely.

One failure among many answers is a failure, not an outage. With p the arm's usual rate of failures, k failures in a row
come by chance with probability p^k; where that is at most 1 in 100,000 and k is at least 3, the arm is taken to be
down. With

    p = (1 + failures) / (20 + failures + answers),   at most ½,

that is the third in a row for an arm that fails in fewer than 2 % of its asks, the fourth at 5 %, the fifth at 10 %,
the seventeenth at ½. Failures of outages are no part of the usual rate, and neither are those of the row at hand.

- An arm that is down rests for half as long as it has been failing: from when the first ask of the row was made until
  now. So the first rest is short where asks are frequent, and each further one is half as long again as all before it:
  an outage of n asks costs about log n of them. No rest is longer than 1,024.
- When a rest is over the arm is asked once, and rests again while the outcome of that ask is not known, for half as
  long as it has been failing; then it is asked once more. An answer ends the outage, a failure makes the next rest
  longer.
- Failures of asks that were made before the arm began to rest say nothing new. The failure of an ask from before the
  latest one that was answered is no part of a row. Any answer ends a row, also a late one to an ask from before it:
  else scattered failures would pass for an outage wherever answers become known late. So where rewards come late, an
  outage is noticed only once the answers from before it have come in.
- An arm that has neither brought nor cost anything in all its n ≥ 50 pulls rests for n asks after each further one: its
  share of t asks falls like √(2/t).

A clock may be set back. Whatever lies more than one ask in the future is taken for such a case and does not count.

Who answers in the place of an arm at rest is in `stand_in`. Time is counted in asks; in the decision service, where
many programs ask, in milliseconds, and ``unit`` of them stand for an ask in what is said above of numbers of asks.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from budgetbandits.errors import BadState

ArmMask = NDArray[np.bool_]
"""Which arms, one entry for each."""

FEWEST = 3
"""Failures in a row that make an outage, at least: one cause may make two calls fail."""

UNUSUAL = 1e-5
"""How likely the failures in a row of an outage are by chance, at most."""

FIRST_FAILURES, FIRST_ASKS, LARGEST_RATE = 1, 20, 0.5
"""An arm's usual rate of failures begins at one in twenty, and is never taken to be above one half."""

LONGEST = 1024
"""Asks that an arm rests after failures, at most."""

IDLE_PULLS = 50
"""From so many pulls without reward and cost on, an arm rests."""

FIELDS = ("row", "began", "since", "until", "idle", "failures", "scattered", "answered")


class Rests:
    """For each arm, in numbers of asks or moments:

    row       failures in a row ...
    began     ... and when the first ask of them was made
    since     since when it has been down; 0 if it is not
    until     until when it rests
    idle      pulls that have neither brought nor cost anything; −1 if another has
    failures  all of them ...
    scattered ... and those that were of no outage
    answered  when the latest ask that was answered was made
    """

    row: NDArray[np.int64]
    began: NDArray[np.int64]
    since: NDArray[np.int64]
    until: NDArray[np.int64]
    idle: NDArray[np.int64]
    failures: NDArray[np.int64]
    scattered: NDArray[np.int64]
    answered: NDArray[np.int64]

    def __init__(self, arms: int, unit: int = 1) -> None:
        for name in FIELDS:
            setattr(self, name, np.zeros(arms, dtype=np.int64))
        self._unit = unit
        self.latest = 0
        """From this moment on nobody rests."""

    def add(self) -> None:
        """One more arm."""
        for name in FIELDS:
            setattr(self, name, np.append(getattr(self, name), 0))

    def failed(self, arm: int, now: int, asked: int, answers: int) -> None:
        """A failure was told now, of an ask that was made then; so many asks of the arm were answered so far."""
        asked = self._by_this_clock(arm, now, asked)
        self.failures[arm] += 1
        if asked < self.since[arm]:
            return
        if asked < self.answered[arm]:
            self.scattered[arm] += 1
            return
        self.began[arm] = min(asked, int(self.began[arm])) if self.row[arm] else asked
        self.row[arm] += 1
        if self.since[arm] or self.row[arm] >= self.enough(arm, answers):
            self.since[arm] = now
            self._rest(arm, now + self._length(arm, now))

    def enough(self, arm: int, answers: int) -> int:
        """How many failures in a row make an outage of this arm."""
        scattered = FIRST_FAILURES + int(self.scattered[arm])
        rate = min(scattered / (FIRST_ASKS + int(self.scattered[arm]) + answers), LARGEST_RATE)
        count, chance = FEWEST, rate**FEWEST
        while chance > UNUSUAL:
            count, chance = count + 1, chance * rate
        return count

    def _length(self, arm: int, now: int) -> int:
        return int(min(max(-(-(now - int(self.began[arm])) // 2), 1), LONGEST * self._unit))

    def asked(self, arm: int, now: int) -> bool:
        """An ask was made of this arm. Whether it rests once more: it is down, and its rest was over."""
        if not self.since[arm] or self.until[arm] > now:
            return False
        self._rest(arm, now + self._length(arm, now))
        return True

    def told(self, arm: int, something: bool, now: int, asked: int) -> None:
        """There is an outcome now of an ask that was made then, which brought or cost something, or neither."""
        asked = self._by_this_clock(arm, now, asked)
        self.answered[arm] = max(asked, int(self.answered[arm]))
        if not self.since[arm]:
            self.scattered[arm] += self.row[arm]
        self._end_row(arm)
        if something or self.idle[arm] < 0:
            self.idle[arm] = -1
        else:
            self.idle[arm] += 1
        self._rest(arm, now + int(self.idle[arm]) * self._unit if self.idle[arm] >= IDLE_PULLS else 0)

    def _end_row(self, arm: int) -> None:
        self.row[arm] = self.began[arm] = self.since[arm] = self.until[arm] = 0

    def _by_this_clock(self, arm: int, now: int, asked: int) -> int:
        """When an ask was made, which is not after now. If the clock was set back, what was to come later is gone."""
        latest = now + self._unit
        if self.began[arm] > latest or self.since[arm] > latest:
            self._end_row(arm)
        if self.answered[arm] > latest:
            self.answered[arm] = 0
        return min(asked, now)

    def _rest(self, arm: int, until: int) -> None:
        self.until[arm] = until
        self.latest = max(self.latest, until)

    def resting(self, now: int) -> ArmMask | None:
        """The arms that rest; None if none does."""
        if now >= self.latest:
            return None
        longest = np.where(self.since > 0, LONGEST, self.idle)
        # or else the clock was set back
        possible = (self.since <= now + self._unit) & (self.until <= now + (longest + 1) * self._unit)
        resting = (self.until > now) & possible
        return resting if resting.any() else None

    def offered(self, among: ArmMask, now: int) -> tuple[ArmMask, ArmMask | None]:
        """The arms among these that may be named now, and those of them that are down and rest, if any.

        Arms that neither bring nor cost anything may not while they rest. Where all of them rest, all may be named.
        """
        resting = self.resting(now)
        if resting is None or not (awake := among & ~resting).any():
            return among, None
        down = among & resting & (self.since > 0)
        return (awake | down, down) if down.any() else (awake, None)

    def arm_state(self, arm: int) -> dict[str, int]:
        """What is known of one arm, as plain numbers."""
        return {name: int(getattr(self, name)[arm]) for name in FIELDS}

    def take(self, arm: int, saved: Mapping[str, int]) -> None:
        """What `arm_state` said of this arm; what is left out is 0."""
        for name in FIELDS:
            getattr(self, name)[arm] = saved.get(name, 0)
        self.latest = max(self.latest, int(self.until[arm]))

    def set_back(self, now: int) -> list[int]:
        """After a clock that was ahead: no arm has failed in a time to come, or rests longer than one that fails again
        and again. The arms that did."""
        latest = now + LONGEST * self._unit
        wrong = (self.until > latest) | (self.since > now) | (self.began > now) | (self.answered > now)
        np.minimum(self.until, latest, out=self.until)
        np.minimum(self.since, now, out=self.since)
        np.minimum(self.began, now, out=self.began)
        np.minimum(self.answered, now, out=self.answered)
        self.latest = min(self.latest, latest)
        return [int(arm) for arm in np.flatnonzero(wrong)]

    def to_dict(self) -> dict[str, Any]:
        return {name: getattr(self, name).tolist() for name in FIELDS}

    @classmethod
    def from_dict(cls, saved: Mapping[str, Any], arms: int) -> Self:
        self = cls(arms)
        for name in FIELDS:
            values = np.array(saved[name], dtype=np.int64)
            if values.shape != (arms,) or (values < -1).any():
                raise BadState(f"{name!r} of the rests is not one count for each arm; restore an undamaged copy")
            setattr(self, name, values)
        self.latest = int(self.until.max(initial=0))
        return self
