"""Cooldowns: arms that cool down after an outage, and arms that neither earn nor cost anything.

A provider that is down earns nothing and costs nothing. Reported as reward 0 and cost 0, it would not be given up by a
policy that looks at ratios: 0/0 says nothing. But each ask of it uses a request, so it is asked ever more rarely.

One failure among many answers is a failure, not an outage. With p the arm's usual rate of failures, k failures in a row
come by chance with probability p^k. Where that is at most 1 in 100,000 and k is at least 3, the arm is taken to be
down. With

    p = (1 + failures) / (20 + failures + answers),   at most ½,

that is the third in a row for an arm that fails in fewer than 2 % of its asks, the fourth at 5 %, the fifth at 10 %,
the seventeenth at ½. Failures of outages are no part of the usual rate, nor are those of the current row.

- An arm that is down cools down for half as long as it has been failing: from when the first ask of the row was made
  until now. So the first cooldown is short where asks are frequent, and each further one is half as long again as all
  before it: an outage of n asks costs about log n of them. No cooldown is longer than 1,024 asks.
- When a cooldown is over the arm is asked once, and cools down again while the outcome of that ask is not known, for
  half as long as it has been failing; then it is asked once more. An answer ends the outage, a failure makes the next
  cooldown longer.
- Failures of asks that were made before the arm began to cool down say nothing new. The failure of an ask from before
  the latest one that was answered is no part of a row. Any answer ends a row, also a late one to an ask from before it:
  else scattered failures would pass for an outage wherever answers become known late.
- An ask is answered when its cost is reported; a reward that comes later ends no row of failures.
- An arm that has neither earned nor cost anything in all its n ≥ 50 pulls cools down for n asks after each further one:
  its share of t asks falls like √(2/t).

A clock may be set back. Whatever lies more than one ask in the future is taken for such a case and does not count.

Which arm answers in place of one that cools down is in `substitutes`. An allocation counts time in asks. The decision
service, where many programs ask, counts it in seconds: one second stands for one ask in the numbers above.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, Self

import numpy as np

from budgetbandits.errors import BadState
from budgetbandits.numerics.arrays import ArmMask

OUTAGE_FAILURES_MIN = 3
"""Failures in a row that make an outage, at least: one cause may make two calls fail."""

OUTAGE_CHANCE_MAX = 1e-5
"""How likely the failures in a row of an outage are by chance, at most."""

PRIOR_FAILURES, PRIOR_ASKS, FAILURE_RATE_MAX = 1, 20, 0.5
"""An arm's usual rate of failures begins at one in twenty, and is never taken to be above one half."""

COOLDOWN_ASKS_MAX = 1024
"""Asks that an arm cools down after failures, at most."""

IDLE_PULLS_MIN = 50
"""Pulls without reward and cost from which on an arm cools down."""


@dataclass(slots=True)
class ArmFailures:
    """The failures and the cooldown of one arm. Times are whole ticks; 0 stands for none.

    row        failures in a row
    began      when the first ask of that row was made
    since      since when the arm has been down; 0 if it is not
    until      until when the arm cools down
    idle       pulls that have neither earned nor cost anything; −1 if another one has
    failures   all failures
    scattered  the failures that were part of no outage
    answers    the asks that were answered
    answered   when the latest of them was made
    """

    row: int = 0
    began: int = 0
    since: int = 0
    until: int = 0
    idle: int = 0
    failures: int = 0
    scattered: int = 0
    answers: int = 0
    answered: int = 0

    @property
    def outage_failures(self) -> int:
        """How many failures in a row make an outage of this arm."""
        scattered = PRIOR_FAILURES + self.scattered
        rate = min(scattered / (PRIOR_ASKS + self.scattered + self.answers), FAILURE_RATE_MAX)
        count, chance = OUTAGE_FAILURES_MIN, rate**OUTAGE_FAILURES_MIN
        while chance > OUTAGE_CHANCE_MAX:
            count, chance = count + 1, chance * rate
        return count

    def end_row(self) -> None:
        """Forget the row of failures, and be down no longer."""
        self.row = self.began = self.since = self.until = 0


FIELDS = tuple(field.name for field in fields(ArmFailures))
"""The names of the counts and times of an arm."""


class Cooldowns:
    """The failures and cooldowns of all arms.

    arms  what was seen of each arm, by number
    down  the numbers of the arms that are down
    """

    def __init__(self, arms: int, ticks: int = 1) -> None:
        """``ticks`` is how many ticks one ask, or one second in the service, has."""
        self.arms = [ArmFailures() for _ in range(arms)]
        self.ticks = ticks
        self._latest = 0
        """The tick from which on no arm cools down."""
        self.down: set[int] = set()

    def __deepcopy__(self, _memo: object) -> Self:
        other = copy.copy(self)
        other.arms, other.down = [copy.copy(arm) for arm in self.arms], set(self.down)
        return other

    @property
    def failures(self) -> list[int]:
        """All failures of each arm."""
        return [arm.failures for arm in self.arms]

    def add_arm(self) -> None:
        """Make room for one more arm, of which nothing was seen."""
        self.arms.append(ArmFailures())

    # --- what happens to an arm ----------------------------------------------------------------------------------

    def record_ask(self, arm: int, now: float) -> bool:
        """Note an ask of this arm. True if that began a further cooldown: the arm is down, and its cooldown was
        over."""
        if arm not in self.down:
            return False
        seen, tick = self.arms[arm], math.ceil(now * self.ticks)
        if seen.until > tick:
            return False
        self._cool(seen, tick + self._length(seen, tick))
        return True

    def record_failure(self, arm: int, now: float, asked_at: float) -> None:
        """Note that an ask made at ``asked_at`` got no answer."""
        seen, tick = self.arms[arm], math.ceil(now * self.ticks)
        asked = self._by_this_clock(arm, tick, asked_at)
        seen.failures += 1
        if asked < seen.since:
            return
        if asked < seen.answered:
            seen.scattered += 1
            return
        seen.began = min(asked, seen.began) if seen.row else asked
        seen.row += 1
        if arm in self.down or seen.row >= seen.outage_failures:
            seen.since = tick
            self.down.add(arm)
            self._cool(seen, tick + self._length(seen, tick))

    def record_answer(self, arm: int, now: float, asked_at: float) -> None:
        """Note the answer to an ask made at ``asked_at``: it ends a row of failures."""
        seen, tick = self.arms[arm], math.ceil(now * self.ticks)
        asked = self._by_this_clock(arm, tick, asked_at)
        seen.answers += 1
        seen.answered = max(seen.answered, asked)
        if arm not in self.down:
            seen.scattered += seen.row
            seen.row = seen.began = 0
        else:
            self._end_row(arm)

    def record_outcome(self, arm: int, idle: bool, now: float) -> None:
        """Note that reward and cost of an ask are both known now; ``idle`` if both are 0."""
        seen = self.arms[arm]
        seen.idle = seen.idle + 1 if idle and seen.idle >= 0 else -1
        if arm not in self.down:
            until = math.ceil(now * self.ticks) + seen.idle * self.ticks if seen.idle >= IDLE_PULLS_MIN else 0
            self._cool(seen, until)

    def _length(self, seen: ArmFailures, tick: int) -> int:
        return min(max(-(-(tick - seen.began) // 2), 1), COOLDOWN_ASKS_MAX * self.ticks)

    def _end_row(self, arm: int) -> None:
        self.arms[arm].end_row()
        self.down.discard(arm)

    def _by_this_clock(self, arm: int, tick: int, asked_at: float) -> int:
        """When an ask was made, which is not after now. If the clock was set back, later moments do not count."""
        seen, latest = self.arms[arm], tick + self.ticks
        if seen.began > latest or seen.since > latest:
            self._end_row(arm)
        if seen.answered > latest:
            seen.answered = 0
        return min(math.ceil(asked_at * self.ticks), tick)

    def _cool(self, seen: ArmFailures, until: int) -> None:
        seen.until = until
        self._latest = max(self._latest, until)

    # --- who may answer ------------------------------------------------------------------------------------------

    def cooling(self, now: float) -> ArmMask | None:
        """The arms that cool down; None if none does."""
        if now * self.ticks >= self._latest:
            return None
        tick = int(now * self.ticks)
        since, until, idle = np.array([(arm.since, arm.until, arm.idle) for arm in self.arms]).T
        longest = np.where(since > 0, COOLDOWN_ASKS_MAX, idle)
        # or else the clock was set back
        possible = (since <= tick + self.ticks) & (until <= tick + (longest + 1) * self.ticks)
        cooling = (until > tick) & possible
        return cooling if cooling.any() else None

    def available(self, arms: ArmMask, now: float) -> tuple[ArmMask, ArmMask | None]:
        """The arms of these that may be named now, and those of them that are down and cool down, if any.

        An idle arm may not be named while it cools down. Where all arms cool down, all may be named.
        """
        if now * self.ticks >= self._latest:  # nearly always
            return arms, None
        cooling = self.cooling(now)
        if cooling is None or not (ready := arms & ~cooling).any():
            return arms, None
        down = arms & cooling & np.array([arm.since > 0 for arm in self.arms])
        return (ready | down, down) if down.any() else (ready, None)

    def reset_clock(self, now: float) -> list[int]:
        """Correct what a clock that was ahead has left behind: failures in the future, and cooldowns that are too long.
        Returns the arms that had any."""
        tick = math.ceil(now * self.ticks)
        latest = tick + COOLDOWN_ASKS_MAX * self.ticks
        limits = {"until": latest, "since": tick, "began": tick, "answered": tick}
        wrong = []
        for number, seen in enumerate(self.arms):
            ahead = {name: limit for name, limit in limits.items() if getattr(seen, name) > limit}
            for name, limit in ahead.items():
                setattr(seen, name, limit)
            if ahead:
                wrong.append(number)
        self._latest = min(self._latest, latest)
        return wrong

    # --- saving --------------------------------------------------------------------------------------------------

    def arm_state(self, arm: int) -> dict[str, int]:
        """The numbers of one arm that are not 0."""
        seen = self.arms[arm]
        return {name: value for name in FIELDS if (value := getattr(seen, name))}

    def load_arm(self, arm: int, saved: Mapping[str, int]) -> None:
        """Restore the numbers of one arm from its `arm_state`; those left out are 0."""
        self.arms[arm] = seen = ArmFailures(*(int(saved.get(name, 0)) for name in FIELDS))
        self._latest = max(self._latest, seen.until)
        (self.down.add if seen.since else self.down.discard)(arm)

    def to_dict(self) -> dict[str, Any]:
        """The numbers of all arms by name, for JSON."""
        return {name: [getattr(arm, name) for arm in self.arms] for name in FIELDS}

    @classmethod
    def from_dict(cls, saved: Mapping[str, Any], arms: int) -> Self:
        """The cooldowns that `to_dict` has written; BadState if it cannot have written them."""
        self, columns = cls(arms), []
        for name in FIELDS:
            values = np.array(saved[name], dtype=np.int64)
            if values.shape != (arms,) or (values < -1).any():
                raise BadState(f"{name!r} of the cooldowns is not one count for each arm; restore an undamaged copy")
            columns.append(values.tolist())
        self.arms = [ArmFailures(*numbers) for numbers in zip(*columns, strict=True)]
        self._latest = max((arm.until for arm in self.arms), default=0)
        self.down = {number for number, arm in enumerate(self.arms) if arm.since}
        return self
