"""How a campaign does: its status in a word and a sentence, its pace, when its money runs out, and its latest overrun.

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
from typing import Literal

from budgetbandits.formatting.datetimes import DAY, HOUR, duration
from budgetbandits.formatting.money import budget_decimals, exact_money
from budgetbandits.service import ledger
from budgetbandits.service.dashboard.beliefs import MedianInterval
from budgetbandits.service.ledger import to_units
from budgetbandits.service.stores.contract import Transaction
from budgetbandits.service.stores.records import ArmRow, CampaignSummary, DecisionRow, Event
from budgetbandits.service.stores.sql import rollups
from budgetbandits.service.stores.sql.dashboard import AlarmTimes, Group, Pages, Rank

SILENCE_SECONDS = HOUR
"""Seconds that the first decision since the latest feedback may wait before it is an alarm, if anything is held or was
decided in as many seconds: short holds have expired before anybody misses the feedback."""
ALARM_SECONDS = DAY
"""Seconds for which it is an alarm that all money is spent, or that a campaign goes on after an overrun: from the
moment it was resumed, however long it had been frozen."""

Sign = Literal["dot", "bars", "diamond", "triangle", "ring"]


@dataclass(frozen=True)
class Standing:
    """The word, its sign, where it stands in the list, and the cause in numbers."""

    word: str
    sign: Sign
    rank: Rank
    cause: str = ""

    @property
    def group(self) -> Group:
        return self.rank.group

    @property
    def runs(self) -> bool:
        """Whether decisions are made, or will be when holds end."""
        return self.group != "stopped" and self.rank not in (Rank.FROZEN, Rank.EXHAUSTED)

    @property
    def quiet(self) -> bool:
        """Whether its budget is drawn as one that is not being spent."""
        return self.group == "stopped" or self.rank == Rank.EXHAUSTED


def since(now: float) -> AlarmTimes:
    return AlarmTimes(now - SILENCE_SECONDS, now - ALARM_SECONDS)


def standing(glance: CampaignSummary, now: float) -> Standing:
    """What a campaign is doing, or what keeps it from it."""
    account, digits = glance.account, budget_decimals(to_units(glance.account.budget))

    def words(micros: int) -> str:
        return exact_money(to_units(micros), digits)

    if account.status == "frozen":
        cause = f"{words(account.overrun)} booked apart as overrun"
        return Standing("Frozen", "diamond", Rank.FROZEN, cause)
    if account.status == "paused":
        return Standing("Paused", "bars", Rank.PAUSED, "until it is resumed")
    if account.status == "closed":
        return Standing("Closed", "ring", Rank.CLOSED, "for good")
    heard = max(glance.last_feedback_at or 0.0, glance.created_at)
    if account.left < glance.smallest_cap and not glance.decides_in_leases:
        least = words(glance.smallest_cap)
        if account.held or account.leased:
            cause = f"{words(account.left)} left next to holds, the smallest cap is {least}"
            return Standing("Blocked by holds", "triangle", Rank.BLOCKED, cause)
        cause = f"{words(account.left)} left, the smallest cap is {least}"
        new = max(heard, glance.last_decision_at or 0.0) > now - ALARM_SECONDS
        return Standing("Exhausted", "ring", Rank.EXHAUSTED if new else Rank.SPENT, cause)
    held, oldest_unanswered_at = (
        account.held + glance.held_in_leases,
        now if glance.oldest_unanswered_at is None else glance.oldest_unanswered_at,
    )
    waited = (glance.last_feedback_at or 0.0) <= oldest_unanswered_at < now - SILENCE_SECONDS
    if waited and (held or (glance.last_decision_at or 0.0) > now - SILENCE_SECONDS):
        cause = f"for {duration(now - oldest_unanswered_at)}, {words(held) if held else 'nothing is'} held"
        return Standing("No feedback", "triangle", Rank.SILENT, cause)
    if account.overrun and (glance.resumed_at or 0.0) > now - ALARM_SECONDS:
        ago = duration(now - (glance.last_overrun_at or 0.0))
        cause = f"{words(account.overrun)} booked apart as overrun, the latest {ago} ago"
        return Standing("Overran", "triangle", Rank.OVERRAN, cause)
    if glance.arms_down:
        return Standing("Arm down", "triangle", Rank.DOWN, _down(glance, now))
    if account.left < glance.largest_cap:
        cause = f"{words(account.left)} left, the largest cap is {words(glance.largest_cap)}"
        if account.left < glance.smallest_cap:
            cause = f"{words(account.left)} left next to leases, one of which has {words(glance.free_in_leases)}"
        return Standing("Nearly exhausted", "triangle", Rank.NEARLY_EXHAUSTED, cause)
    return Standing("Running", "dot", Rank.RUNNING)


def _down(glance: CampaignSummary, now: float) -> str:
    """Which arm is down, and who answers in its place at what price; of several, the one that has been for longest."""
    first = min(glance.arms_down, key=lambda each: float(each["since"]))
    said = (
        f"{first['arm']} has failed {first['failures']:,} times in a row, "
        f"the first {duration(max(now - first['since'], 0.0))} ago"
    )
    if len(glance.arms_down) > 1:
        said += f", and {len(glance.arms_down) - 1:,} more {'is' if len(glance.arms_down) == 2 else 'are'} down"
    if first["substitute"] is not None:
        said += f"; {first['substitute']} stands in at {first['times']:.3g} times the price"
    return said


PLAN_TOLERANCE = 0.02
"""A share of the budget: a campaign that is no further from its plan is on it. And of the time or the requests: before
that, it has just begun."""


@dataclass(frozen=True)
class Pace:
    """What the plan says by now, and how far the campaign is behind it, in micros; ahead of it, that is negative."""

    plan: float
    behind: float
    budget: float
    begun: bool
    """Whether enough of the time, or of the requests, is over to say anything."""
    largest_cap: float
    """How far ahead a campaign may be that keeps to its plan: the largest cap."""

    @property
    def share(self) -> float:
        """Of the budget."""
        return self.behind / self.budget

    @property
    def off(self) -> str:
        """Which way the campaign is off its plan; nothing if it is not."""
        if self.share > PLAN_TOLERANCE:
            return "behind" if self.begun else ""
        return "ahead" if -self.share > PLAN_TOLERANCE and -self.behind > self.largest_cap else ""

    @property
    def words(self) -> str:
        if not self.off:
            return "On plan" if self.begun else "Just begun"
        return f"{abs(100 * self.share):.1f} % {self.off}"


def pace(glance: CampaignSummary, now: float) -> Pace | None:
    """Against the time that the money is to last for, or else against the requests; None if there is neither plan.

    What leases have and have not merged yet counts by time; by requests it counts neither as spent nor as used.
    """
    account, seconds, horizon = glance.account, glance.settings.terms.pace_seconds, glance.settings.terms.horizon
    if seconds is not None:
        part, spent = (now - glance.created_at) / seconds, glance.spent
    elif horizon is not None:
        part, spent = account.requests_used / horizon, account.spent
    else:
        return None
    plan = account.budget * min(max(part, 0.0), 1.0)
    return Pace(plan, plan - spent, account.budget, part >= PLAN_TOLERANCE, glance.largest_cap)


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
        left, budget = to_units(each.account.budget - each.spent), each.account.budget
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


@dataclass(frozen=True)
class Overrun:
    """Amounts are in micros."""

    reported_at: float
    decision: DecisionRow
    arm: ArmRow

    @classmethod
    def of(cls, tx: Transaction, event: Event, arms: Sequence[ArmRow]) -> Overrun | None:
        made = None if event.decision is None else tx.decision(event.decision)
        if made is None:
            return None
        return cls(event.at, made, next(arm for arm in arms if arm.number == made.arm))

    @property
    def cost(self) -> int:
        return self.decision.cost or 0

    @property
    def above_hold(self) -> bool:
        """If not, the hold had been released and its money spent elsewhere before the cost was reported."""
        return self.cost > self.decision.hold.amount

    @property
    def above_cap(self) -> bool:
        """A request may hold less than the arm's cap."""
        return self.cost > self.arm.cost_cap
