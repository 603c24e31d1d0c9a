"""When a campaign's money runs out, projected from what it has spent, and for how many requests it lasts.

The projection takes what is spent in one slot of time after another as gamma-distributed: amounts that are never
negative, even or in bursts. The sums of m past slots and of T future ones are then gamma-distributed with mk and Tk
degrees of freedom, so that the share of the latter in both follows Beta(Tk, mk). The money is spent after T slots if
that share is at least what is left, divided by that plus what was spent in the m slots; the median and the ends of the
interval are the T for which this has the probabilities 50, 2.5 and 97.5 %.

k is the square of the mean over the variance of a slot. The variance is enlarged for slots that resemble the one
before: (1 + r) / (1 − r) times, with r their correlation, less its bias for few slots. And k is smaller by as much as
Student's law is wider than the normal law, since the variance is estimated as well.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from budgetbandits.service import ledger
from budgetbandits.service.ledger import to_units
from budgetbandits.service.stores.records import CampaignSummary
from budgetbandits.service.stores.sql import rollups
from budgetbandits.service.stores.sql.dashboard import Pages

SLOTS_MIN, SLOTS_MAX = 5, 24
"""The fewest slots for a projection, and the most that are kept apart; more are put together."""
WHOLE_HOURS_MIN = 6
"""Whole hours from which on hours are counted; before it is minutes ..."""
MINUTES_MAX = 120
"""... and this many of them: a page of the list may have a hundred campaigns, each with as many rows for every arm."""
PROJECTION_SECONDS_MAX = 10 * 365 * 86_400.0
"""Seconds; what lies beyond is not said."""
CORRELATION_MAX = 0.8
"""The largest correlation of neighbouring slots that so few can show."""
EVENNESS_MAX = 1e7
"""The largest k: spending that is even to a three-thousandth."""


@dataclass(frozen=True)
class MedianInterval:
    """A median and the middle 95 %."""

    median: float
    low: float
    high: float


@dataclass(frozen=True)
class RunsOut:
    """Seconds since 1970; ``high`` is None if it is later than anything that is said."""

    median: float
    low: float
    high: float | None


def projections(
    pages: Pages, glances: Sequence[CampaignSummary], by_hour: dict[str, dict[int, int]], now: float
) -> dict[str, RunsOut | None]:
    """For campaigns that run, by id, from what they have spent by the hour in the last day; by the minute, of the
    last two hours, if that is fewer than six whole hours. The list and the page ask here, and read the same rollups."""
    hours = {each.id: _whole_slots(each, rollups.HOUR, 24, by_hour[each.id], now) for each in glances}
    young = [each.id for each in glances if len(hours[each.id]) < WHOLE_HOURS_MIN]
    by_minute = pages.spent_by(rollups.MINUTE, young, now - (MINUTES_MAX + 1) * rollups.MINUTE)
    made: dict[str, RunsOut | None] = {}
    for each in glances:
        slots, seconds = hours[each.id], rollups.HOUR
        if each.id in by_minute:
            slots, seconds = _whole_slots(each, rollups.MINUTE, MINUTES_MAX, by_minute[each.id], now), rollups.MINUTE
        left, budget = to_units(each.left + each.held), each.account.budget
        earliest = ledger.earliest_end(budget, each.settings.limits(each.created_at))
        made[each.id] = runs_out(slots, seconds, left, now, earliest)
    return made


def _whole_slots(
    glance: CampaignSummary, seconds: int, slots_max: int, spent: dict[int, int], now: float
) -> list[float]:
    """What was spent in the latest slots that were all after the campaign's beginning and are all in the rollups."""
    end = int(now if glance.rolled_up_until is None else min(now, glance.rolled_up_until)) // seconds
    first = max(-int(-glance.created_at // seconds), int(now) // seconds - slots_max)
    return [to_units(spent.get(number * seconds, 0)) for number in range(first, end)]


def runs_out(
    slots: Sequence[float], seconds: float, left: float, now: float, not_before: float = 0.0
) -> RunsOut | None:
    """``slots``: the money spent in each, ``seconds`` long; None if they allow no projection.

    ``not_before``: its limits keep a campaign from running out earlier.

    >>> out = runs_out([2.0, 2.0, 2.0, 2.0, 2.0, 2.0], 3600.0, left=10.0, now=0.0)
    >>> out.low == out.median == 5 * 3600.0
    True
    """
    if len(slots) > SLOTS_MAX:
        size = -(-len(slots) // SLOTS_MAX)
        first = len(slots) % size
        slots = [sum(slots[place : place + size]) for place in range(first, len(slots), size)]
        seconds *= size
    m, spent = len(slots), sum(slots)
    if m < SLOTS_MIN or spent <= 0 or left <= 0:
        return None
    median, low, high = _to_come(m, _evenness(slots), spent, left)
    if median * seconds > PROJECTION_SECONDS_MAX:
        return None
    when = [max(now + slot * seconds, not_before) for slot in (median, low, high)]
    return RunsOut(when[0], when[1], None if high * seconds > PROJECTION_SECONDS_MAX else when[2])


def lasts_for(used: int, spent: float, squares: float, left: float) -> MedianInterval | None:
    """For how many requests the money lasts, used ones included, if they go on costing what they have cost:
    so much together, with this sum of squares. None if that is too few to say anything."""
    if used < SLOTS_MIN or spent <= 0:
        return None
    mean = spent / used
    variance = max(squares / used - mean * mean, 0.0)
    median, low, high = _to_come(used, mean * mean / variance if variance else math.inf, spent, max(left, 0.0))
    return MedianInterval(used + median, used + low, used + high)


def _to_come(m: float, k: float, spent: float, left: float) -> tuple[float, float, float]:
    """How many more slots the money lasts for, if m have taken so much: the median and the ends of the interval."""
    median = low = high = left * m / spent
    if k < EVENNESS_MAX and left > 0:
        from scipy.special import btdtria  # a server that shows no page need not wait for it

        median, low, high = (btdtria([0.5, 0.975, 0.025], m * k, left / (left + spent)) / k).tolist()
    return median, low, high


def _evenness(slots: Sequence[float]) -> float:
    """k: how even the spending is, as far as so few slots tell."""
    from scipy.special import stdtrit

    m, mean = len(slots), sum(slots) / len(slots)
    off = [each - mean for each in slots]
    squares = sum(each * each for each in off)
    if squares <= m * (mean * 1e-9) ** 2:
        return math.inf
    alike = sum(one * other for one, other in pairwise(off)) / squares
    r = min(max(alike + (1.0 + 3.0 * alike) / m, 0.0), CORRELATION_MAX)
    wider = float(stdtrit(m - 1, 0.975)) / float(stdtrit(math.inf, 0.975))
    return mean * mean * (m - 1) / squares * (1.0 - r) / (1.0 + r) / wider**2
