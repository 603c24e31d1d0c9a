"""How campaigns do: the standing of each in a word and its cause, its pace, its projected end, and what it has earned.

Pages, the API, the command line, the metrics and the webhooks all read it here (`outlooks`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from budgetbandits.formatting.datetimes import DAY, HOUR, duration, utc_minute
from budgetbandits.formatting.money import budget_decimals, exact_money
from budgetbandits.service.ledger import next_day, to_units, today_left
from budgetbandits.service.projection import RunsOut, projections
from budgetbandits.service.stores.contract import Transaction
from budgetbandits.service.stores.records import CampaignSummary
from budgetbandits.service.stores.sql.dashboard import AlarmTimes, Group, Rank

SILENCE_SECONDS = HOUR
"""Seconds that the first decision since the latest feedback may wait before it is an alarm, if anything is held or was
decided in as many seconds: short holds have expired before anybody misses the feedback."""
ALARM_SECONDS = DAY
"""Seconds for which it is an alarm that all money is spent, or that a campaign goes on after an overrun: from the
moment it was resumed, however long it had been frozen."""

RUNNING_OUT_SECONDS = DAY
"""A campaign that would else be running is running out if its money is likely to end within this time."""


@dataclass(frozen=True)
class Standing:
    """The word, where it stands in the list, and the cause in numbers."""

    word: str
    rank: Rank
    cause: str = ""

    @property
    def name(self) -> str:
        """The word as programs read it: ``blocked_by_holds``."""
        return self.word.lower().replace(" ", "_")

    @property
    def group(self) -> Group:
        return self.rank.group

    @property
    def runs(self) -> bool:
        """Whether decisions are made, or will be when holds end."""
        return self.group != "stopped" and self.rank not in (Rank.FROZEN, Rank.RESTORED, Rank.EXHAUSTED)

    @property
    def quiet(self) -> bool:
        """Whether its budget is not being spent."""
        return self.group == "stopped" or self.rank in (Rank.RESTORED, Rank.EXHAUSTED)


def since(now: float) -> AlarmTimes:
    return AlarmTimes(now - SILENCE_SECONDS, now - ALARM_SECONDS)


def standing(glance: CampaignSummary, now: float) -> Standing:
    """What a campaign is doing, or what keeps it from it, but for when its money runs out (`with_end`)."""
    account, digits = glance.account, budget_decimals(to_units(glance.account.budget))

    def words(micros: int) -> str:
        return exact_money(to_units(micros), digits)

    restored, copied_at = "", glance.settings.restored_from
    if copied_at is not None:
        restored = f"from a copy that ends at {utc_minute(copied_at)}; resume it with what was spent since"
    if account.status == "frozen":
        cause = f"{words(account.overrun)} booked apart as overrun"
        return Standing("Frozen", Rank.FROZEN, f"{cause}; restored {restored}" if restored else cause)
    if account.status == "paused" and restored:
        return Standing("Restored", Rank.RESTORED, restored)
    if account.status == "paused":
        return Standing("Paused", Rank.PAUSED, "until it is resumed")
    if account.status == "closed":
        return Standing("Closed", Rank.CLOSED, "for good")
    heard = max(glance.last_feedback_at or 0.0, glance.created_at)
    left, by, open = glance.left, "", account.open
    if glance.short_of_shared:
        by, open = f"by its shared budget {glance.settings.terms.shared_budget}: ", glance.shared_open
    if left < glance.smallest_cap and not glance.decides_in_leases:
        least = words(glance.smallest_cap)
        if open:
            cause = f"{by}{words(left)} left next to holds, the smallest cap is {least}"
            return Standing("Blocked by holds", Rank.BLOCKED, cause)
        cause = f"{by}{words(left)} left, the smallest cap is {least}"
        new = max(heard, glance.last_decision_at or 0.0) > now - ALARM_SECONDS
        return Standing("Exhausted", Rank.EXHAUSTED if new else Rank.SPENT, cause)
    held, oldest_unanswered_at = (
        account.held + glance.held_in_leases,
        now if glance.oldest_unanswered_at is None else glance.oldest_unanswered_at,
    )
    waited = (glance.last_feedback_at or 0.0) <= oldest_unanswered_at < now - SILENCE_SECONDS
    if waited and (held or (glance.last_decision_at or 0.0) > now - SILENCE_SECONDS):
        cause = f"for {duration(now - oldest_unanswered_at)}, {words(held) if held else 'nothing is'} held"
        return Standing("No feedback", Rank.SILENT, cause)
    if account.overrun and (glance.resumed_at or 0.0) > now - ALARM_SECONDS:
        ago = duration(now - (glance.last_overrun_at or 0.0))
        cause = f"{words(account.overrun)} booked apart as overrun, the latest {ago} ago"
        return Standing("Overran", Rank.OVERRAN, cause)
    if glance.arms_down:
        return Standing("Arm down", Rank.DOWN, _down(glance, now))
    if left < glance.largest_cap:
        cause = f"{by}{words(left)} left, the largest cap is {words(glance.largest_cap)}"
        if left < glance.smallest_cap:
            cause = f"{by}{words(left)} left next to leases, one of which has {words(glance.free_in_leases)}"
        return Standing("Nearly exhausted", Rank.NEARLY_EXHAUSTED, cause)
    limits = glance.settings.limits(glance.created_at)
    left_today = today_left(account, now, limits)
    if left_today is not None and left_today < glance.largest_cap and glance.settings.terms.on_limit == "refuse":
        wait = duration(next_day(now, limits.zone) - now)
        cause = f"{words(left_today)} of the day's {words(limits.daily_cap or 0)} left; the next day begins in {wait}"
        return Standing("Running", Rank.RUNNING, cause)
    return Standing("Running", Rank.RUNNING)


def with_end(standing: Standing, out: RunsOut | None, now: float) -> Standing:
    """The standing of a campaign whose money runs out then: running out, if that is soon and it would be running."""
    ends_soon = out is not None and out.median < now + RUNNING_OUT_SECONDS
    return replace(standing, word="Running out") if ends_soon and standing.rank == Rank.RUNNING else standing


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


# --- all of it, for programs -----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Outlook:
    """How a campaign does, and what is to be expected of it; as of a few seconds ago, except for its money."""

    now: float
    glance: CampaignSummary
    standing: Standing
    pace: Pace | None
    runs_out: RunsOut | None
    by_hour: dict[int, int]
    """What was spent in the hours of the last day, in micros, by when they began; hours without are left out."""
    rewards_reported: int
    """In these hours ..."""
    reward: float
    """... and their sum."""

    @property
    def name(self) -> str:
        """The standing as programs read it: ``running_out``."""
        return self.standing.name

    @property
    def spent_24_hours(self) -> int:
        """In micros."""
        return sum(self.by_hour.values())

    def to_dict(self) -> dict[str, Any]:
        """Money in the user's unit."""
        glance, pace = self.glance, self.pace
        return {
            "id": glance.id, "campaign": glance.name, "at": self.now, "standing": self.name,
            "cause": self.standing.cause, "needs_attention": self.standing.group == "attention",
            "runs_out": None if self.runs_out is None else asdict(self.runs_out),
            "pace": None if pace is None else {
                "plan": to_units(pace.plan), "behind": to_units(pace.behind), "behind_share": pace.share,
                "verdict": pace.words,
            },
            "spent": to_units(glance.spent), "left": to_units(glance.left),
            "spent_24_hours": to_units(self.spent_24_hours), "rewards_24_hours": self.rewards_reported,
            "reward_24_hours": self.reward, "last_decision_at": glance.last_decision_at,
            "last_feedback_at": glance.last_feedback_at,
        }  # fmt: skip


STANDINGS = (
    "frozen", "restored", "exhausted", "blocked_by_holds", "no_feedback", "overran", "arm_down", "nearly_exhausted",
    "running_out", "running", "paused", "closed",
)  # fmt: skip
"""Every `Outlook.name`, the most urgent first."""


def outlooks(
    tx: Transaction, campaigns: Sequence[str], projected: Mapping[str, RunsOut | None] | None = None
) -> list[Outlook]:
    """How the campaigns with these ids do, in this order; those whose accounts are damaged are left out.

    Campaigns that are ``projected`` already are not projected again, which is most of the work.
    """
    now, pages = tx.now(), tx.pages()
    since_hour = now - now % HOUR - DAY
    glances, by_hour = pages.summaries(campaigns), pages.spent_by(int(HOUR), campaigns, since_hour)
    standings = {glance.id: standing(glance, now) for glance in glances}
    out = dict(projected or {})
    new = [each for each in glances if standings[each.id].runs and each.id not in out]
    out |= projections(pages, new, by_hour, now)
    rewards = tx.rollups().rewards(campaigns, since_hour)
    made = []
    for each in glances:
        word = standings[each.id]
        ends = out.get(each.id) if word.runs else None
        word, rewarded = with_end(word, ends, now), rewards.get(each.id, (0, 0.0))
        made.append(Outlook(now, each, word, pace(each, now), ends, by_hour[each.id], *rewarded))
    return made
