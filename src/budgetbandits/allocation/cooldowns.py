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

import math
from collections.abc import Mapping
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

FIELDS = ("row", "began", "since", "until", "idle", "failures", "scattered", "answers", "answered")


class Cooldowns:
    """The failures and cooldowns of each arm. Times are kept as whole ticks; 0 stands for none.

    These are lists: nearly always the numbers of one arm are read and written, which takes an array four times as long.

    row        failures in a row
    began      when the first ask of that row was made
    since      since when the arm has been down; 0 if it is not
    until      until when the arm cools down
    idle       pulls that have neither earned nor cost anything; −1 if another one has
    failures   all failures
    scattered  the failures that were part of no outage
    answers    the asks that were answered
    answered   when the latest of them was made
    down       the numbers of the arms that are down
    """

    row: list[int]
    began: list[int]
    since: list[int]
    until: list[int]
    idle: list[int]
    failures: list[int]
    scattered: list[int]
    answers: list[int]
    answered: list[int]

    def __init__(self, arms: int, ticks: int = 1) -> None:
        """``ticks`` is how many ticks one ask, or one second in the service, has."""
        for name in FIELDS:
            setattr(self, name, [0] * arms)
        self.ticks = ticks
        self._latest = 0
        """From this tick on no arm cools down."""
        self.down: set[int] = set()

    def add_arm(self) -> None:
        for name in FIELDS:
            getattr(self, name).append(0)

    # --- what happens to an arm ----------------------------------------------------------------------------------

    def record_ask(self, arm: int, now: float) -> bool:
        """An ask of this arm was made. True if that began a further cooldown: the arm is down, and its cooldown was
        over."""
        if arm not in self.down:
            return False
        tick = math.ceil(now * self.ticks)
        if self.until[arm] > tick:
            return False
        self._cool(arm, tick + self._length(arm, tick))
        return True

    def record_failure(self, arm: int, now: float, asked_at: float) -> None:
        """There was no answer to an ask made at ``asked_at``."""
        tick = math.ceil(now * self.ticks)
        asked = self._by_this_clock(arm, tick, asked_at)
        self.failures[arm] += 1
        if asked < self.since[arm]:
            return
        if asked < self.answered[arm]:
            self.scattered[arm] += 1
            return
        self.began[arm] = min(asked, self.began[arm]) if self.row[arm] else asked
        self.row[arm] += 1
        if arm in self.down or self.row[arm] >= self.outage_failures(arm):
            self.since[arm] = tick
            self.down.add(arm)
            self._cool(arm, tick + self._length(arm, tick))

    def outage_failures(self, arm: int) -> int:
        """How many failures in a row make an outage of this arm."""
        scattered = PRIOR_FAILURES + self.scattered[arm]
        rate = min(scattered / (PRIOR_ASKS + self.scattered[arm] + self.answers[arm]), FAILURE_RATE_MAX)
        count, chance = OUTAGE_FAILURES_MIN, rate**OUTAGE_FAILURES_MIN
        while chance > OUTAGE_CHANCE_MAX:
            count, chance = count + 1, chance * rate
        return count

    def record_answer(self, arm: int, now: float, asked_at: float) -> None:
        """There is an answer now to an ask made at ``asked_at``: that ends a row of failures."""
        tick = math.ceil(now * self.ticks)
        asked = self._by_this_clock(arm, tick, asked_at)
        self.answers[arm] += 1
        if asked > self.answered[arm]:
            self.answered[arm] = asked
        if arm not in self.down:
            self.scattered[arm] += self.row[arm]
            self.row[arm] = self.began[arm] = 0
        else:
            self._end_row(arm)

    def record_outcome(self, arm: int, idle: bool, now: float) -> None:
        """Reward and cost of an ask are both known now; ``idle`` if both are 0."""
        if idle and self.idle[arm] >= 0:
            self.idle[arm] += 1
        else:
            self.idle[arm] = -1
        if arm not in self.down:
            idle_pulls = self.idle[arm]
            until = math.ceil(now * self.ticks) + idle_pulls * self.ticks if idle_pulls >= IDLE_PULLS_MIN else 0
            self._cool(arm, until)

    def _length(self, arm: int, tick: int) -> int:
        return min(max(-(-(tick - self.began[arm]) // 2), 1), COOLDOWN_ASKS_MAX * self.ticks)

    def _end_row(self, arm: int) -> None:
        self.row[arm] = self.began[arm] = self.since[arm] = self.until[arm] = 0
        self.down.discard(arm)

    def _by_this_clock(self, arm: int, tick: int, asked_at: float) -> int:
        """When an ask was made, which is not after now. If the clock was set back, later moments do not count."""
        latest = tick + self.ticks
        if self.began[arm] > latest or self.since[arm] > latest:
            self._end_row(arm)
        if self.answered[arm] > latest:
            self.answered[arm] = 0
        return min(math.ceil(asked_at * self.ticks), tick)

    def _cool(self, arm: int, until: int) -> None:
        self.until[arm] = until
        self._latest = max(self._latest, until)

    # --- who may answer ------------------------------------------------------------------------------------------

    def cooling(self, now: float) -> ArmMask | None:
        """The arms that cool down; None if none does."""
        if now * self.ticks >= self._latest:
            return None
        tick, since, until = int(now * self.ticks), np.array(self.since), np.array(self.until)
        longest = np.where(since > 0, COOLDOWN_ASKS_MAX, self.idle)
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
        down = arms & cooling & (np.array(self.since) > 0)
        return (ready | down, down) if down.any() else (ready, None)

    def reset_clock(self, now: float) -> list[int]:
        """Correct what a clock that was ahead has left behind: failures in the future, and cooldowns that are too long.
        Returns the arms that had any."""
        tick = math.ceil(now * self.ticks)
        latest = tick + COOLDOWN_ASKS_MAX * self.ticks
        limits = {"until": latest, "since": tick, "began": tick, "answered": tick}
        wrong = set[int]()
        for name, limit in limits.items():
            values = getattr(self, name)
            wrong.update(arm for arm, value in enumerate(values) if value > limit)
            values[:] = [min(value, limit) for value in values]
        self._latest = min(self._latest, latest)
        return sorted(wrong)

    # --- saving --------------------------------------------------------------------------------------------------

    def arm_state(self, arm: int) -> dict[str, int]:
        """The numbers of one arm that are not 0."""
        return {name: value for name in FIELDS if (value := getattr(self, name)[arm])}

    def load_arm(self, arm: int, saved: Mapping[str, int]) -> None:
        """Restore the numbers of one arm from its `arm_state`; those left out are 0."""
        for name in FIELDS:
            getattr(self, name)[arm] = int(saved.get(name, 0))
        self._latest = max(self._latest, self.until[arm])
        (self.down.add if self.since[arm] else self.down.discard)(arm)

    def to_dict(self) -> dict[str, Any]:
        return {name: [*getattr(self, name)] for name in FIELDS}

    @classmethod
    def from_dict(cls, saved: Mapping[str, Any], arms: int) -> Self:
        self = cls(arms)
        for name in FIELDS:
            values = np.array(saved[name], dtype=np.int64)
            if values.shape != (arms,) or (values < -1).any():
                raise BadState(f"{name!r} of the cooldowns is not one count for each arm; restore an undamaged copy")
            setattr(self, name, values.tolist())
        self._latest = max(self.until, default=0)
        self.down = {arm for arm, since in enumerate(self.since) if since}
        return self
