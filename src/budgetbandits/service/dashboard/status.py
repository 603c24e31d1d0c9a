"""How a campaign is, in a word and a sentence: what needs somebody comes first."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from budgetbandits.formatting.datetimes import DAY, HOUR, duration
from budgetbandits.service.dashboard.numbers import digits_for, exact
from budgetbandits.service.ledger import to_units
from budgetbandits.service.stores.records import CampaignSummary
from budgetbandits.service.stores.sql.dashboard import AlarmTimes, Group, Rank

SILENT = HOUR
"""Seconds that the first decision since the latest feedback may wait before it is an alarm, if anything is held or was
decided in as many seconds: holds that expire soon are gone before anybody misses the feedback."""
RECENT = DAY
"""Seconds for which it is an alarm that all money is spent, or that a campaign goes on after an overrun: from the
moment when somebody resumed it, however long it had been frozen."""

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
    return AlarmTimes(now - SILENT, now - RECENT)


def standing(glance: CampaignSummary, now: float) -> Standing:
    """What a campaign is doing, or what keeps it from it."""
    account, digits = glance.account, digits_for(to_units(glance.account.budget))

    def words(micros: int) -> str:
        return exact(to_units(micros), digits)

    if account.status == "frozen":
        cause = f"{words(account.overrun)} booked apart as overrun"
        return Standing("Frozen", "diamond", Rank.FROZEN, cause)
    if account.status == "paused":
        return Standing("Paused", "bars", Rank.PAUSED, "until somebody resumes it")
    if account.status == "closed":
        return Standing("Closed", "ring", Rank.CLOSED, "for good")
    heard = max(glance.last_feedback_at or 0.0, glance.created_at)
    if account.left < glance.smallest_cap and not glance.decides_in_leases:
        least = words(glance.smallest_cap)
        if account.held or account.leased:
            cause = f"{words(account.left)} left beside holds, the smallest cap is {least}"
            return Standing("Blocked by holds", "triangle", Rank.BLOCKED, cause)
        cause = f"{words(account.left)} left, the smallest cap is {least}"
        new = max(heard, glance.last_decision_at or 0.0) > now - RECENT
        return Standing("Exhausted", "ring", Rank.EXHAUSTED if new else Rank.SPENT, cause)
    held, oldest_unanswered_at = (
        account.held + glance.held_in_leases,
        now if glance.oldest_unanswered_at is None else glance.oldest_unanswered_at,
    )
    waited = (glance.last_feedback_at or 0.0) <= oldest_unanswered_at < now - SILENT
    if waited and (held or (glance.last_decision_at or 0.0) > now - SILENT):
        cause = f"for {duration(now - oldest_unanswered_at)}, {words(held) if held else 'nothing is'} held"
        return Standing("No feedback", "triangle", Rank.SILENT, cause)
    if account.overrun and (glance.resumed_at or 0.0) > now - RECENT:
        ago = duration(now - (glance.last_overrun_at or 0.0))
        cause = f"{words(account.overrun)} booked apart as overrun, the latest {ago} ago"
        return Standing("Overran", "triangle", Rank.OVERRAN, cause)
    if glance.arms_down:
        return Standing("Arm down", "triangle", Rank.DOWN, _down(glance, now))
    if account.left < glance.largest_cap:
        cause = f"{words(account.left)} left, the largest cap is {words(glance.largest_cap)}"
        if account.left < glance.smallest_cap:
            cause = f"{words(account.left)} left beside leases, one of which has {words(glance.free_in_leases)}"
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
    if first["stand_in"] is not None:
        said += f"; {first['stand_in']} stands in at {first['times']:.3g} times the price"
    return said


NEAR = 0.02
"""Of the budget: whoever is no further from the plan is on it. Of the time or the requests: nothing is said before."""


@dataclass(frozen=True)
class Pace:
    """What the plan says by now, and how far the campaign is behind it, in micros; ahead of it, that is negative."""

    plan: float
    behind: float
    budget: float
    begun: bool
    """Whether enough of the time, or of the requests, is over to say anything."""
    most: float
    """How far ahead a campaign may be that keeps to its plan: the largest cap."""

    @property
    def share(self) -> float:
        """Of the budget."""
        return self.behind / self.budget

    @property
    def off(self) -> str:
        """Which way the campaign is off its plan; nothing if it is not."""
        if self.share > NEAR:
            return "behind" if self.begun else ""
        return "ahead" if -self.share > NEAR and -self.behind > self.most else ""

    @property
    def words(self) -> str:
        if not self.off:
            return "On plan" if self.begun else "Just begun"
        return f"{abs(100 * self.share):.1f} % {self.off}"


def pace(glance: CampaignSummary, now: float) -> Pace | None:
    """Against the time that the money is to last for, or else against the requests; None if there is neither plan.

    What leases have and have not merged yet counts by time; by requests it counts neither as spent nor as gone.
    """
    account, seconds, horizon = glance.account, glance.settings.get("pace_seconds"), glance.settings.get("horizon")
    if seconds is not None:
        part, spent = (now - glance.created_at) / seconds, glance.spent
    elif horizon is not None:
        part, spent = account.requests_used / horizon, account.spent
    else:
        return None
    plan = account.budget * min(max(part, 0.0), 1.0)
    return Pace(plan, plan - spent, account.budget, part >= NEAR, glance.largest_cap)
