"""When the money runs out if it goes on being spent as it was.

What is spent in one slot of time after another is taken to be gamma-distributed: amounts that are never negative, even
or in bursts. The sums of m slots that have been and of T to come are then gamma-distributed with mk and Tk degrees of
freedom, so that the share of the latter in both has the law Beta(Tk, mk). Money is gone after T slots if that share is
at least what is left, by that and what was spent in the m slots; the median and the ends of the interval are the T for
which this has the probabilities 50, 2.5 and 97.5 %.

k is the square of the mean over the variance of a slot. The variance is taken as large as that of slots which resemble
the one before: (1 + r) / (1 − r) times as large, with r their correlation, less its bias for so few slots. And k is as
much less as Student's law is wider than the normal law, since the variance is estimated as well.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from budgetbandits.service import ledger
from budgetbandits.service.dashboard.beliefs import Estimate
from budgetbandits.service.ledger import to_units
from budgetbandits.service.settings import limits_of
from budgetbandits.service.stores.records import CampaignSummary
from budgetbandits.service.stores.sql.dashboard import Pages
from budgetbandits.service.stores.sql.rollups import HOUR, MINUTE

FEWEST, MOST = 5, 24
"""Slots with which anything is said, and that are told from each other; more are put together."""
ENOUGH = 6
"""Whole hours from which on hours are counted; before it is minutes ..."""
MINUTES = 120
"""... and so many of them: a page of the list may have a hundred campaigns, each with as many rows for every arm."""
LONGEST = 10 * 365 * 86_400.0
"""Seconds; what lies beyond is not said."""
ALIKE = 0.8
"""The largest correlation of neighbouring slots that so few can show."""
EVEN = 1e7
"""The largest k: spending that is even to a three-thousandth."""


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
    hours = {each.id: _whole_slots(each, HOUR, 24, by_hour[each.id], now) for each in glances}
    young = [each.id for each in glances if len(hours[each.id]) < ENOUGH]
    by_minute = pages.spent_by(MINUTE, young, now - (MINUTES + 1) * MINUTE)
    made: dict[str, RunsOut | None] = {}
    for each in glances:
        slots, seconds = hours[each.id], HOUR
        if each.id in by_minute:
            slots, seconds = _whole_slots(each, MINUTE, MINUTES, by_minute[each.id], now), MINUTE
        left, budget = to_units(each.account.budget - each.spent), each.account.budget
        made[each.id] = runs_out(slots, seconds, left, now, ledger.earliest_end(budget, limits_of(each)))
    return made


def _whole_slots(glance: CampaignSummary, seconds: int, most: int, spent: dict[int, int], now: float) -> list[float]:
    """What was spent in the latest slots that were all after the campaign's beginning and are all in the rollups."""
    end = int(now if glance.rolled_up_until is None else min(now, glance.rolled_up_until)) // seconds
    first = max(-int(-glance.created_at // seconds), int(now) // seconds - most)
    return [to_units(spent.get(number * seconds, 0)) for number in range(first, end)]


def runs_out(
    slots: Sequence[float], seconds: float, left: float, now: float, not_before: float = 0.0
) -> RunsOut | None:
    """``slots``: what was spent in each, of so many seconds; None if nothing can be said.

    ``not_before``: its limits keep a campaign from running out earlier.

    >>> out = runs_out([2.0, 2.0, 2.0, 2.0, 2.0, 2.0], 3600.0, left=10.0, now=0.0)
    >>> out.low == out.median == 5 * 3600.0
    True
    """
    if len(slots) > MOST:
        size = -(-len(slots) // MOST)
        first = len(slots) % size
        slots = [sum(slots[place : place + size]) for place in range(first, len(slots), size)]
        seconds *= size
    m, spent = len(slots), sum(slots)
    if m < FEWEST or spent <= 0 or left <= 0:
        return None
    median, low, high = _to_come(m, _evenness(slots), spent, left)
    if median * seconds > LONGEST:
        return None
    when = [max(now + slot * seconds, not_before) for slot in (median, low, high)]
    return RunsOut(when[0], when[1], None if high * seconds > LONGEST else when[2])


def lasts_for(gone: int, spent: float, squares: float, left: float) -> Estimate | None:
    """For how many requests the money lasts, those that are gone included, if they go on costing what they have cost:
    so much together, with this sum of squares. None if that is too few to say anything."""
    if gone < FEWEST or spent <= 0:
        return None
    mean = spent / gone
    variance = max(squares / gone - mean * mean, 0.0)
    median, low, high = _to_come(gone, mean * mean / variance if variance else math.inf, spent, max(left, 0.0))
    return Estimate(gone + median, gone + low, gone + high)


def _to_come(m: float, k: float, spent: float, left: float) -> tuple[float, float, float]:
    """How many more slots the money lasts for, if m have taken so much: the median and the ends of the interval."""
    median = low = high = left * m / spent
    if k < EVEN and left > 0:
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
    r = min(max(alike + (1.0 + 3.0 * alike) / m, 0.0), ALIKE)
    wider = float(stdtrit(m - 1, 0.975)) / float(stdtrit(math.inf, 0.975))
    return mean * mean * (m - 1) / squares * (1.0 - r) / (1.0 + r) / wider**2
