"""When the money runs out if it goes on being spent as it was.

What is spent in one slot of time after another is taken to have one mean and one variance, both estimated from the
latest slots. After T more slots the sum has mean μT and variance s²T + s²T²/m: the noise to come, and that of the mean
of m slots. The interval is where the sum's 97.5 % and 2.5 % points cross what is left; they are Student's, with m − 1
degrees of freedom, since the variance is estimated as well.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

FEWEST = 5
"""Slots with which anything is said."""
LONGEST = 10 * 365 * 86_400.0
"""Seconds; what lies beyond is not said."""


@dataclass(frozen=True)
class RunsOut:
    """Seconds since 1970; ``high`` is None if the interval has no end."""

    median: float
    low: float
    high: float | None


def runs_out(
    slots: Sequence[float], seconds: float, left: float, now: float, not_before: float = 0.0
) -> RunsOut | None:
    """``slots``: what was spent in each, of so many seconds; None if nothing can be said.

    ``not_before``: a campaign that is paced cannot run out earlier.

    >>> out = runs_out([2.0, 2.0, 2.0, 2.0, 2.0, 2.0], 3600.0, left=10.0, now=0.0)
    >>> out.low == out.median == 5 * 3600.0
    True
    """
    m = len(slots)
    if m < FEWEST or sum(slots) <= 0 or left <= 0:
        return None
    mean = sum(slots) / m
    variance = sum((each - mean) ** 2 for each in slots) / (m - 1)

    def crossing(z: float) -> float | None:
        """The first T with μT + z·√(s²T + s²T²/m) = left."""

        def reached(t: float) -> float:
            return mean * t + z * math.sqrt(variance * t + variance * t * t / m)

        high = 1.0
        while reached(high) < left:
            high *= 2
            if high * seconds > LONGEST:
                return None
        low = 0.0
        for _ in range(60):
            middle = (low + high) / 2
            low, high = (middle, high) if reached(middle) < left else (low, middle)
        return high

    from scipy.special import stdtrit  # a server that shows no page need not wait for it

    point = float(stdtrit(m - 1, 0.975))
    median, soon, late = crossing(0.0), crossing(point), crossing(-point)
    if median is None or soon is None:
        return None
    when = [max(now + t * seconds, not_before) for t in (median, soon)]
    return RunsOut(when[0], when[1], None if late is None else max(now + late * seconds, not_before))
