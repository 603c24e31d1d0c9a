"""How campaigns do: the standing of each in a word and its cause, its pace, its projected end, and what it has earned.

Pages, the API, the command line, the metrics and the webhooks all read it here (`outlooks`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import cast

from budgetbandits.answers import PaceAnswer, RunsOutAnswer, StandingAnswer, StandingName
from budgetbandits.formatting.datetimes import DAY, HOUR, duration, utc_minute
from budgetbandits.formatting.money import budget_decimals, exact_money
from budgetbandits.service.ledger import next_day, to_units, today_left
from budgetbandits.service.projection import RunsOut, projections
from budgetbandits.service.stores.contract import Transaction
from budgetbandits.service.stores.records import CampaignSummary, Group, Rank

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
        """The group of the standing on the page."""
        return self.rank.group

    @property
    def runs(self) -> bool:
        """Whether decisions are made, or will be when holds end."""
        return self.group != "stopped" and self.rank not in (Rank.FROZEN, Rank.RESTORED, Rank.EXHAUSTED)

    @property
    def quiet(self) -> bool:
        """Whether its budget is not being spent."""
        return self.group == "stopped" or self.rank in (Rank.RESTORED, Rank.EXHAUSTED)


WORDS = {
    Rank.FROZEN: "Frozen", Rank.RESTORED: "Restored", Rank.EXHAUSTED: "Exhausted", Rank.BLOCKED: "Blocked by holds",
    Rank.SILENT: "No feedback", Rank.OVERRAN: "Overran", Rank.DOWN: "Arm down",
    Rank.NEARLY_EXHAUSTED: "Nearly exhausted", Rank.RUNNING: "Running", Rank.PAUSED: "Paused", Rank.SPENT: "Exhausted",
    Rank.CLOSED: "Closed",
}  # fmt: skip
"""The word for a campaign of each rank."""


def standing(summary: CampaignSummary, now: float) -> Standing:
    """The standing of a campaign, without the time when its money runs out (`with_end`)."""
    return Standing(WORDS[summary.rank], summary.rank, _cause(summary, now))


def _cause(summary: CampaignSummary, now: float) -> str:
    """Why a campaign has its rank, in numbers."""
    account, digits = summary.account, budget_decimals(to_units(summary.account.budget))

    def words(micros: int) -> str:
        return exact_money(to_units(micros), digits)

    by = f"by its shared budget {summary.settings.terms.shared_budget}: " if summary.short_of_shared else ""
    left = f"{by}{words(summary.left)} left"
    match summary.rank:
        case Rank.FROZEN:
            cause, restored = f"{words(account.overrun)} booked apart as overrun", _restored(summary)
            return f"{cause}; restored {restored}" if restored else cause
        case Rank.RESTORED:
            return _restored(summary)
        case Rank.PAUSED:
            return "until it is resumed"
        case Rank.CLOSED:
            return "for good"
        case Rank.BLOCKED:
            return f"{left} next to holds, the smallest cap is {words(summary.smallest_cap)}"
        case Rank.EXHAUSTED | Rank.SPENT:
            return f"{left}, the smallest cap is {words(summary.smallest_cap)}"
        case Rank.SILENT:
            held, waited = account.held + summary.held_in_leases, now - (summary.oldest_unanswered_at or now)
            return f"for {duration(waited)}, {words(held) if held else 'nothing is'} held"
        case Rank.OVERRAN:
            ago = duration(now - (summary.last_overrun_at or 0.0))
            return f"{words(account.overrun)} booked apart as overrun, the latest {ago} ago"
        case Rank.DOWN:
            return _down(summary, now)
        case Rank.NEARLY_EXHAUSTED if summary.left < summary.smallest_cap:
            return f"{left} next to leases, one of which has {words(summary.free_in_leases)}"
        case Rank.NEARLY_EXHAUSTED:
            return f"{left}, the largest cap is {words(summary.largest_cap)}"
    limits = summary.settings.limits(summary.created_at)
    left_today = today_left(account, now, limits)
    if left_today is None or left_today >= summary.largest_cap or summary.settings.terms.on_limit != "refuse":
        return ""
    wait = duration(next_day(now, limits.zone) - now)
    return f"{words(left_today)} of the day's {words(limits.daily_cap or 0)} left; the next day begins in {wait}"


def _restored(summary: CampaignSummary) -> str:
    """The copy that the store was restored from, if it is not said yet what was spent since."""
    copied_at = summary.settings.restored_from
    if copied_at is None:
        return ""
    return f"from a copy that ends at {utc_minute(copied_at)}; resume it with what was spent since"


def with_end(standing: Standing, out: RunsOut | None, now: float) -> Standing:
    """The standing of a campaign whose money runs out then: running out, if that is soon and it would be running."""
    ends_soon = out is not None and out.median < now + RUNNING_OUT_SECONDS
    return replace(standing, word="Running out") if ends_soon and standing.rank == Rank.RUNNING else standing


def _down(glance: CampaignSummary, now: float) -> str:
    """Which arm is down, and who answers in its place at what price; of several, the one that has been for longest."""
    first = min(glance.arms_down, key=lambda arm: float(arm["since"]))
    text = (
        f"{first['arm']} has failed {first['failures']:,} times in a row, "
        f"the first {duration(max(now - first['since'], 0.0))} ago"
    )
    if len(glance.arms_down) > 1:
        text += f", and {len(glance.arms_down) - 1:,} more {'is' if len(glance.arms_down) == 2 else 'are'} down"
    if first["substitute"] is not None:
        text += f"; {first['substitute']} stands in at {first['times']:.3g} times the price"
    return text


PLAN_TOLERANCE = 0.02
"""A share of the budget: a campaign that is no further from its plan is on it. And of the time or the requests: before
that, it has just begun."""


@dataclass(frozen=True)
class Pace:
    """The planned spending by now, and the delay behind it, in micros; negative if the campaign is ahead."""

    plan: float
    behind: float
    budget: float
    begun: bool
    """Whether enough of the time, or of the requests, is over to say anything."""
    largest_cap: float
    """How far ahead a campaign may be that keeps to its plan: the largest cap."""

    @property
    def share(self) -> float:
        """The delay as a share of the budget."""
        return self.behind / self.budget

    @property
    def off(self) -> str:
        """Which way the campaign is off its plan; nothing if it is not."""
        if self.share > PLAN_TOLERANCE:
            return "behind" if self.begun else ""
        return "ahead" if -self.share > PLAN_TOLERANCE and -self.behind > self.largest_cap else ""

    @property
    def words(self) -> str:
        """The delay in words."""
        if not self.off:
            return "On plan" if self.begun else "Just begun"
        return f"{abs(100 * self.share):.1f} % {self.off}"


def pace(glance: CampaignSummary, now: float) -> Pace | None:
    """The pace of a campaign against the time that its money is to last, or else against its requests; None without a
    plan.

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
    spent_by_hour: dict[int, int]
    """Spending in the hours of the last day by the beginning of the hour, in micros; empty hours are left out."""
    rewards_reported: int
    """Rewards reported in these hours."""
    reward: float
    """Sum of these rewards."""

    @property
    def name(self) -> str:
        """The standing as programs read it: ``running_out``."""
        return self.standing.name

    @property
    def spent_24_hours(self) -> int:
        """The spending of 24 hours, in micros."""
        return sum(self.spent_by_hour.values())

    def answer(self) -> StandingAnswer:
        """All of it as programs read it, money in the user's unit."""
        glance, pace, out = self.glance, self.pace, self.runs_out
        return StandingAnswer(
            id=glance.id, campaign=glance.name, at=self.now, standing=cast(StandingName, self.name),
            cause=self.standing.cause, needs_attention=self.standing.group == "attention",
            runs_out=None if out is None else RunsOutAnswer(out.median, out.low, out.high, out.limit),
            pace=None if pace is None else PaceAnswer(
                to_units(pace.plan), to_units(pace.behind), pace.share, pace.words
            ),
            spent=to_units(glance.spent), left=to_units(glance.left), spent_24_hours=to_units(self.spent_24_hours),
            rewards_24_hours=self.rewards_reported, reward_24_hours=self.reward,
            last_decision_at=glance.last_decision_at, last_feedback_at=glance.last_feedback_at,
        )  # fmt: skip


def outlooks(
    tx: Transaction, campaigns: Sequence[str], projected: Mapping[str, RunsOut | None] | None = None
) -> list[Outlook]:
    """How the campaigns with these ids do, in this order; those whose accounts are damaged are left out.

    Campaigns that are ``projected`` already are not projected again, which is most of the work.
    """
    now, pages = tx.now(), tx.pages()
    since_hour = now - now % HOUR - DAY
    glances, spent_by_hour = pages.summaries(campaigns, now), pages.spent_by(int(HOUR), campaigns, since_hour)
    standings = {glance.id: standing(glance, now) for glance in glances}
    out = dict(projected or {})
    new = [glance for glance in glances if standings[glance.id].runs and glance.id not in out]
    out |= projections(pages, new, spent_by_hour, now)
    rewards = tx.rollups().rewards(campaigns, since_hour)
    result = []
    for summary in glances:
        word = standings[summary.id]
        ends = out.get(summary.id) if word.runs else None
        word, rewarded = with_end(word, ends, now), rewards.get(summary.id, (0, 0.0))
        result.append(Outlook(now, summary, word, pace(summary, now), ends, spent_by_hour[summary.id], *rewarded))
    return result
