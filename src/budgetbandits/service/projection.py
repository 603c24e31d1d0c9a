"""When a campaign's money runs out, projected from what it has spent, and for how many requests it lasts.

The projection takes what is spent in one slot of time after another as gamma-distributed: amounts that are never
negative, even or in bursts. The sums of m past slots and of T future ones are then gamma-distributed with mk and Tk
degrees of freedom, so that the share of the latter in both follows Beta(Tk, mk). The money is spent after T slots if
that share is at least what is left, divided by that plus what was spent in the m slots; the median and the ends of the
interval are the T for which this has the probabilities 50, 2.5 and 97.5 %.

What keeps money from being spent makes it last for longer: a daily cap, the pace, and that a member of a shared budget
stops when its own money is spent. What ends a campaign is the first of two: its own budget, or the shared one, which
all of its members spend. A budget that is renewed before it is spent does not end.

k is the square of the mean over the variance of a slot. The variance is enlarged for slots that resemble the one
before: (1 + r) / (1 − r) times, with r their correlation, less its bias for few slots. And k is smaller by as much as
Student's law is wider than the normal law, since the variance is estimated as well.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise, zip_longest
from typing import TYPE_CHECKING, Literal

from budgetbandits.formatting.datetimes import DAY
from budgetbandits.service import ledger
from budgetbandits.service.ledger import Account, to_units
from budgetbandits.service.periods import Renewal
from budgetbandits.service.stores.records import CampaignSummary
from budgetbandits.service.stores.sql import rollups
from budgetbandits.service.stores.sql.dashboard import Pages

if TYPE_CHECKING:  # the contract of the stores imports it, too
    from budgetbandits.service.shared_budgets.rules import SharedBudget

SLOTS_MIN, SLOTS_MAX = 5, 24
"""The fewest slots for a projection, and the most that are kept apart; more are put together."""
WHOLE_HOURS_MIN = 6
"""Fewest whole hours with which spending is counted by the hour; with fewer it is counted by the minute."""
MINUTES_MAX = 120
"""Most minutes that are read: a page of the list may have a hundred campaigns, each with as many rows for every arm."""
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
    """When money runs out, in seconds since 1970; ``high`` is None if it is later than anything that is said.

    limit  which budget ends first: the campaign's own, or the one that it shares
    """

    median: float
    low: float
    high: float | None
    limit: Literal["budget", "shared_budget"] = "budget"


@dataclass(frozen=True)
class DayLimit:
    """The limit of a daily cap, in the user's unit.

    cap    the most of a day
    today  the most of the rest of today
    ends   seconds until the next day begins
    """

    cap: float = math.inf
    today: float = math.inf
    ends: float = math.inf

    @classmethod
    def of(cls, glance: CampaignSummary, now: float) -> DayLimit:
        """The campaign's; none if an arm answers beyond its daily cap. What is held now is spent today."""
        limits = glance.settings.limits(glance.created_at)
        left = ledger.today_left(glance.account, now, limits)
        if left is None or limits.daily_cap is None or glance.settings.terms.on_limit != "refuse":
            return cls()
        today = max(left, 0) + glance.held
        return cls(to_units(limits.daily_cap), to_units(today), ledger.next_day(now, limits.zone) - now)

    def seconds(self, free: float, amount: float) -> float:
        """How long an amount lasts that would be spent in ``free`` seconds if there were no cap.

        >>> DayLimit(cap=25.0, today=10.0, ends=3600.0).seconds(free=7200.0, amount=75.0) / 3600
        49.4
        """
        if not 0.0 < free < math.inf or math.isinf(self.cap):
            return free
        rate = amount / free
        first = min(rate * self.ends, self.today)
        if amount <= first:
            return free
        a_day, rest = min(rate * DAY, self.cap), amount - first
        days = math.ceil(rest / a_day) - 1
        return self.ends + days * DAY + (rest - days * a_day) / rate

    def spent(self, rate: float, seconds: float) -> float:
        """The spending in ``seconds`` from now on, at a rate while the cap allows it."""
        days, part = divmod(max(seconds - self.ends, 0.0), DAY)
        first = min(rate * min(seconds, self.ends), self.today)
        return first + days * min(rate * DAY, self.cap) + min(rate * part, self.cap)


NO_DAY_LIMIT = DayLimit()
"""Limit of a campaign without a daily cap."""


@dataclass(frozen=True)
class Spending:
    """The spending of a campaign in slots of time, and its continuation.

    left  what it may still spend of its own budget, what it holds included
    """

    slots: list[float]
    seconds: int
    left: float
    day: DayLimit = NO_DAY_LIMIT

    @property
    def rate(self) -> float:
        """The spending per second."""
        return sum(self.slots) / (len(self.slots) * self.seconds) if self.slots else 0.0

    def spent(self, seconds: float, faster: float) -> float:
        """The spending in ``seconds`` from now on, at ``faster`` times the rate."""
        return min(self.day.spent(faster * self.rate, seconds), self.left)


def projections(
    pages: Pages, glances: Sequence[CampaignSummary], spent_by_hour: dict[str, dict[int, int]], now: float
) -> dict[str, RunsOut | None]:
    """The ends of the money of running campaigns, by id. They follow from the spending by the hour in the last day
    or, with fewer than six whole hours, by the minute in the last two hours. The list and the page ask here, and
    read the same rollups."""
    spending, result = _spending(pages, glances, spent_by_hour, now), dict[str, RunsOut | None]()
    names = sorted({name for glance in glances if (name := glance.settings.terms.shared_budget) is not None})
    shared = {budget.name: _shared_end(pages, budget, now) for budget in pages.shared_budgets(names)}
    for glance in glances:
        one, limits, terms = spending[glance.id], glance.settings.limits(glance.created_at), glance.settings.terms
        budget = _present(glance.account, glance.settings, now).budget
        earliest = ledger.earliest_end(budget, limits) if terms.on_limit == "refuse" else 0.0
        own = _before_renewal(runs_out(one.slots, one.seconds, one.left, now, earliest, one.day), glance.settings, now)
        ends = [end for end in (own, shared.get(terms.shared_budget or "")) if end is not None]
        result[glance.id] = min(ends, key=lambda end: end.median, default=None)
    return result


def _spending(
    pages: Pages, glances: Sequence[CampaignSummary], spent_by_hour: dict[str, dict[int, int]], now: float
) -> dict[str, Spending]:
    hours = {glance.id: _whole_slots(glance, rollups.HOUR, 24, spent_by_hour[glance.id], now) for glance in glances}
    young = [glance.id for glance in glances if len(hours[glance.id]) < WHOLE_HOURS_MIN]
    spent_by_minute = pages.spent_by(rollups.MINUTE, young, now - (MINUTES_MAX + 1) * rollups.MINUTE)
    result = {}
    for glance in glances:
        slots, seconds = hours[glance.id], rollups.HOUR
        if glance.id in spent_by_minute:
            slots, seconds = (
                _whole_slots(glance, rollups.MINUTE, MINUTES_MAX, spent_by_minute[glance.id], now),
                rollups.MINUTE,
            )
        left = to_units(_present(glance.account, glance.settings, now).left + glance.held)
        result[glance.id] = Spending(slots, seconds, left, DayLimit.of(glance, now))
    return result


def _present(account: Account, terms: Renewal, now: float) -> Account:
    """The account in the period that has begun, as its first decision will write it down."""
    return account if account.period > now else terms.renewed(account, now) or account


def _before_renewal(out: RunsOut | None, terms: Renewal, now: float) -> RunsOut | None:
    """None if the budget is renewed before that."""
    period, zone = terms.terms.period, terms.terms.time_zone
    if out is None or period is None:
        return out
    renewed_at = ledger.next_period(now, period, zone)
    if out.median >= renewed_at:
        return None
    return replace(out, high=None) if out.high is not None and out.high >= renewed_at else out


def _shared_end(pages: Pages, shared: SharedBudget, now: float) -> RunsOut | None:
    """When a shared budget runs out, from what its members that are active spend together."""
    members = pages.members(shared.name, now)
    active = [member for member in members if member.account.status == "active"]
    hour = int(now) // rollups.HOUR * rollups.HOUR
    spent_by_hour = pages.spent_by(rollups.HOUR, [member.id for member in active], hour - DAY)
    spending = [*_spending(pages, active, spent_by_hour, now).values()]
    left = to_units(_present(shared.account, shared.settings, now).left + sum(member.held for member in members))
    # in slots of one length: of the members that are counted by the hour, if any is
    seconds = max((entry.seconds for entry in spending), default=rollups.MINUTE)
    alike = [entry.slots[::-1] for entry in spending if entry.seconds == seconds]
    slots = [sum(amounts) for amounts in zip_longest(*alike, fillvalue=0.0)][::-1]
    if len(slots) < SLOTS_MIN or sum(slots) <= 0 or left <= 0:
        return None
    m, spent, ends = len(slots), sum(slots), list[float]()
    for seconds_left in _to_come(m, _evenness(slots), spent, left):
        ends.append(_shared_seconds(spending, left, left * m / (spent * seconds_left)) if seconds_left else 0.0)
    median, low, high = ends
    if median > PROJECTION_SECONDS_MAX:
        return None
    late = None if high > PROJECTION_SECONDS_MAX else now + high
    return _before_renewal(RunsOut(now + median, now + low, late, "shared_budget"), shared.settings, now)


def _shared_seconds(spending: Sequence[Spending], left: float, faster: float) -> float:
    """How long a shared budget lasts, with this left and all members ``faster`` times as fast; infinite if their own
    budgets end before."""

    def spent(seconds: float) -> float:
        return sum(entry.spent(seconds, faster) for entry in spending)

    low, high = 0.0, 2.0 * PROJECTION_SECONDS_MAX
    if spent(high) < left:
        return math.inf
    while high - low > 1.0:
        middle = (low + high) / 2
        low, high = (middle, high) if spent(middle) < left else (low, middle)
    return high


def _whole_slots(
    glance: CampaignSummary, seconds: int, slots_max: int, spent: dict[int, int], now: float
) -> list[float]:
    """The spending in the latest slots that lie after the campaign's beginning and are all in the rollups."""
    end = int(now if glance.rolled_up_until is None else min(now, glance.rolled_up_until)) // seconds
    first = max(-int(-glance.created_at // seconds), int(now) // seconds - slots_max)
    return [to_units(spent.get(number * seconds, 0)) for number in range(first, end)]


def runs_out(
    slots: Sequence[float],
    seconds: float,
    left: float,
    now: float,
    not_before: float = 0.0,
    day: DayLimit = NO_DAY_LIMIT,
) -> RunsOut | None:
    """When a campaign's own money runs out; None if the slots allow no projection.

    slots       the money spent in each, ``seconds`` long
    not_before  its pace keeps the campaign from running out earlier
    day         what its daily cap leaves

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
    lasts = [day.seconds(slot * seconds, left) for slot in _to_come(m, _evenness(slots), spent, left)]
    if lasts[0] > PROJECTION_SECONDS_MAX:
        return None
    median, low, high = (max(now + seconds, not_before) for seconds in lasts)
    return RunsOut(median, low, None if lasts[2] > PROJECTION_SECONDS_MAX else high)


def lasts_for(used: int, spent: float, squares: float, left: float) -> MedianInterval | None:
    """The number of requests for which the money lasts, used ones included, if they go on costing what they have
    cost: so much together, with this sum of squares. None if that is too few to say anything."""
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
    off = [slot - mean for slot in slots]
    squares = sum(difference * difference for difference in off)
    if squares <= m * (mean * 1e-9) ** 2:
        return math.inf
    alike = sum(one * other for one, other in pairwise(off)) / squares
    r = min(max(alike + (1.0 + 3.0 * alike) / m, 0.0), CORRELATION_MAX)
    wider = float(stdtrit(m - 1, 0.975)) / float(stdtrit(math.inf, 0.975))
    return mean * mean * (m - 1) / squares * (1.0 - r) / (1.0 + r) / wider**2
