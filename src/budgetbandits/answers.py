"""The answers of the service: one class for each shape, built by the service and read by everybody else.

The service writes them as JSON, the client reads them from JSON, and the pages, the command line and the OpenAPI
document have their fields and descriptions from here. Money is in the user's unit, times are seconds since 1970. The
module stands outside the service because the client needs it too.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import MISSING, Field, dataclass, field, fields
from typing import Any, Literal, Self

from budgetbandits.formatting.money import same_decimals
from budgetbandits.formatting.tables import MOST_ROWS, Table, left_out
from budgetbandits.terms import TERMS, Period, Terms, Unspent

Status = Literal["active", "paused", "frozen", "closed"]
HoldState = Literal["pending", "settled", "voided", "expired"]
KeyScope = Literal["decide", "feedback", "read", "admin"]
StandingName = Literal[
    "frozen", "restored", "exhausted", "blocked_by_holds", "no_feedback", "overran", "arm_down", "nearly_exhausted",
    "running_out", "running", "paused", "closed",
]  # fmt: skip
"""How a campaign does, in a word; the most urgent first."""

EventKind = Literal[
    "created", "topped up", "renewed", "arm added", "arm retired", "arm brought back", "terms changed", "decided",
    "settled", "rewarded", "failed", "voided", "expired", "active", "paused", "frozen", "closed", "clock reset",
    "leased", "merged", "returned", "archived", "pruned", "restored", "spent elsewhere",
]  # fmt: skip
SharedEventKind = Literal["joined", "left", "lapsed"]
"""Events of shared budgets alone."""


def _about(text: str, default: Any = MISSING, *, kind: type[Answer] | None = None, shown: bool = True) -> Any:
    """A field with its description; ``kind`` is the class of the answers in it, if there are any."""
    return field(default=default, repr=shown, metadata={"description": text, "kind": kind})


@dataclass(frozen=True)
class Answer:
    """An answer of the service."""

    @classmethod
    def read(cls, values: Mapping[str, Any]) -> Self:
        """The answer in this JSON; fields that only a newer service has are left out."""
        return cls(**{item.name: _read(item, values[item.name]) for item in fields(cls) if item.name in values})

    @classmethod
    def read_all(cls, rows: Iterable[Mapping[str, Any]]) -> list[Self]:
        """The answers in a list of JSON."""
        return [cls.read(row) for row in rows]


def _read(about: Field[Any], value: Any) -> Any:
    kind: type[Answer] | None = about.metadata.get("kind")
    if isinstance(value, list):
        return tuple(value if kind is None else kind.read_all(value))
    return value if kind is None or value is None else kind.read(value)


# --- problems and workers' answers -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class ProblemDetails(Answer):
    """The description of an error, as in RFC 9457."""

    type: str = _about("urn:budgetbandits: and the title.")
    title: str = _about("The kind of problem, by which programs tell them apart.")
    status: int = _about("The status of the answer.")
    detail: str = _about("What is wrong with this request, and the remedy.")


@dataclass(frozen=True)
class DecisionAnswer(Answer):
    """Which arm to pull, and until when its money is held."""

    decision: str = _about("The decision's id, for its feedback.")
    campaign: str = _about("The campaign's id.")
    arm: str = _about("The arm to pull.")
    hold: float = _about("The money that is held for it.")
    expires_at: float = _about("When the hold expires without feedback, in seconds since 1970.")


@dataclass(frozen=True)
class DecisionBatchAnswer(Answer):
    """Many decisions."""

    decisions: tuple[DecisionAnswer, ...] = _about("As many as were asked for.", kind=DecisionAnswer)


@dataclass(frozen=True)
class FeedbackAnswer(Answer):
    """The result of feedback on a decision."""

    decision: str = _about("The decision's id.")
    overrun: float = _about(
        "The cost beyond the arm's cap or the money that was left; if there is any, the campaign is frozen now.", 0.0
    )


@dataclass(frozen=True)
class FeedbackBatchResult(FeedbackAnswer):
    """The result of one outcome among many."""

    problem: ProblemDetails | None = _about(
        "Why this outcome was refused; null if it was accepted.", None, kind=ProblemDetails
    )


@dataclass(frozen=True)
class FeedbackBatchAnswer(Answer):
    """The results of many outcomes."""

    results: tuple[FeedbackBatchResult, ...] = _about("One for each outcome, in order.", kind=FeedbackBatchResult)


@dataclass(frozen=True)
class HealthAnswer(Answer):
    """How a server is."""

    status: Literal["ok", "ready"] = _about("ok if the server runs, ready if it can decide.")


# --- campaigns -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, repr=False)
class CampaignMoney(Answer):
    """A campaign without its terms."""

    id: str = _about("Its id, which never changes.")
    name: str = _about("Its name, which may change.")
    policy: str = _about("How arms are chosen.")
    status: Status = _about("Whether it decides: only while it is active.")
    budget: float = _about("The most that may be spent.")
    spent: float = _about("What its decisions have cost, without overruns.")
    held: float = _about("Held for decisions whose cost is not reported yet.")
    leased: float = _about("Reserved by servers that decide by themselves.")
    left: float = _about("Neither spent, held nor leased.")
    overrun: float = _about("Costs beyond caps or the money that was left, which are not part of spent.")


@dataclass(frozen=True, repr=False, kw_only=True)
class CampaignAnswer(Terms, CampaignMoney):
    """A campaign's money and its terms."""

    created_at: float = _about("Seconds since 1970.")
    arms_down: int = _about("Arms that are not asked now, because they failed too often in a row.", 0)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._headline})"

    def _repr_html_(self) -> str:
        return Table((), (), title=f"Campaign {self._headline}").to_html()

    @property
    def _headline(self) -> str:
        """Name, status, policy and money in one line."""
        parts = {"held": self.held, "leased": self.leased, "left": self.left, "overrun": self.overrun}
        spent, budget, *others = same_decimals([self.spent, self.budget, *parts.values()])
        facts = [f"{name} {text}" for name, text in zip(parts, others, strict=True) if parts[name] or name == "left"]
        return f"{self.name!r}, {self.status}, {self.policy}: spent {spent} of {budget}, {', '.join(facts)}"


@dataclass(frozen=True)
class ArmAnswer(Answer):
    """An arm of a campaign: the most that a pull can cost, and how often it was pulled."""

    name: str = _about("Its name.")
    cost_cap: float = _about("The most that one pull of it can cost.")
    active: bool = _about("False for a retired arm.")
    pulls: int = _about("Decisions whose reward and cost are reported.")
    failures: int = _about("Decisions that were reported as failed.", 0)
    cooldown_until: float | None = _about("Until when it cools down, in seconds since 1970; null if it does not.", None)
    down_since: float | None = _about("When its present row of failures began, in seconds since 1970.", None)

    @property
    def notes(self) -> str:
        """Whether it is retired, has failed, is down or cools down."""
        notes = [] if self.active else ["retired"]
        notes += [f"{self.failures:,} failed"] if self.failures else []
        cooling = ["cooling down"] if self.cooldown_until is not None else []
        return ", ".join(notes + (["down"] if self.down_since is not None else cooling))


@dataclass(frozen=True, repr=False, kw_only=True)
class CampaignDetailAnswer(CampaignAnswer):
    """A campaign with its arms."""

    requests_answered: int = _about("Requests whose reward and cost are reported.", 0)
    requests_used: int = _about("Requests whose cost is reported, or that expired and were charged.", 0)
    segments: tuple[str, ...] = _about("The segments that requests named, in the order in which they first came.", ())
    arms: tuple[ArmAnswer, ...] = _about("All arms, retired ones included.", (), kind=ArmAnswer)

    def _repr_html_(self) -> str:
        caps = same_decimals([arm.cost_cap for arm in self.arms[:MOST_ROWS]])
        rows = [
            (arm.name + (f" ({arm.notes})" if arm.notes else ""), f"{arm.pulls:,}", cap)
            for arm, cap in zip(self.arms, caps, strict=False)
        ]
        title, note = f"Campaign {self._headline}", left_out(len(self.arms))
        return Table(("arm", "pulls", "cost cap"), rows, title=title, note=note).to_html()


@dataclass(frozen=True)
class ArmTotalAnswer(Answer):
    """Totals of an arm's decisions."""

    arm: str = _about("The arm's name.")
    open: int = _about("Decisions whose cost is not reported yet.")
    cost: float = _about("What its decisions have cost, with overruns.")
    reward: float = _about("The sum of their rewards.")


@dataclass(frozen=True)
class RunsOutAnswer(Answer):
    """When the money is likely to end."""

    median: float = _about("When the money is likely to end, in seconds since 1970.")
    low: float = _about("The beginning of the middle 95 % of that time.")
    high: float | None = _about("Its end; null if that is later than anything that is said.")
    limit: Literal["budget", "shared_budget"] = _about("Which budget ends first: the campaign's own, or a shared one.")


@dataclass(frozen=True)
class PaceAnswer(Answer):
    """The planned spending by now, and the actual one."""

    plan: float = _about("What was to be spent by now, by pace_seconds or else by the horizon.")
    behind: float = _about("How much less was spent; negative if more was.")
    behind_share: float = _about("The same as a share of the budget.")
    verdict: str = _about("Whether that is on plan, in words.")


@dataclass(frozen=True)
class StandingAnswer(Answer):
    """How a campaign does: its standing in a word and the cause, and what is to be expected of it."""

    id: str = _about("The campaign's id.")
    campaign: str = _about("The campaign's name.")
    at: float = _about("When this was read, in seconds since 1970. Times are as of a few seconds before.")
    standing: StandingName = _about("How the campaign does, in a word.")
    cause: str = _about("Why, in words; empty for a campaign that runs and is not at its daily cap.")
    needs_attention: bool = _about("Whether an operator should look at it.")
    runs_out: RunsOutAnswer | None = _about(
        "Null if it does not run, has spent too little to say anything, or its budget is renewed before.",
        kind=RunsOutAnswer,
    )
    pace: PaceAnswer | None = _about("Null if it has no plan.", kind=PaceAnswer)
    spent: float = _about("What was spent, also by leases that are not merged yet.")
    left: float = _about("What new decisions can have: of its own budget, or of a shared one that has less.")
    spent_24_hours: float = _about("What was spent since the hour began that contains this time of yesterday.")
    rewards_24_hours: int = _about("The number of rewards reported in that time.")
    reward_24_hours: float = _about("The sum of the rewards reported in that time.")
    last_decision_at: float | None = _about("Seconds since 1970.")
    last_feedback_at: float | None = _about("Seconds since 1970; when a cost was last reported.")


# --- records ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class DecisionDetailAnswer(Answer):
    """A decision and what became of it."""

    decision: str = _about("The decision's id.")
    key: str = _about("The idempotency key that it was asked for with.")
    arm: str = _about("The arm that was chosen.")
    segment: str | None = _about("The kind of the request; null if it named none.")
    metadata: Mapping[str, str | int | float] | None = _about(
        "The notes that came with the request; null if it had none."
    )
    state: HoldState = _about("What became of its hold.")
    failed: bool = _about("Whether it was reported as failed.")
    hold: float = _about("What was held for it.")
    cost: float | None = _about("What was reported; null if nothing was.")
    charged: float = _about("What was booked as spent.")
    overrun: float = _about("What it cost beyond that.")
    reward: float | None = _about("What was reported; null if nothing was.")
    created_at: float = _about("Seconds since 1970.")
    expires_at: float = _about("When its hold expires, or would have, in seconds since 1970.")
    propensity: float | None = _about("How likely the choice was, where that is recorded.")


@dataclass(frozen=True)
class DecisionPageAnswer(Answer):
    """A page of decisions."""

    decisions: tuple[DecisionDetailAnswer, ...] = _about("The newest first.", kind=DecisionDetailAnswer)
    before: int | None = _about("The cursor of the next page; null if this is the last.")


@dataclass(frozen=True)
class TermChangeAnswer(Answer):
    """A term that has changed."""

    term: str = _about("A term, or name, policy, budget or cap.")
    arm: str | None = _about("The arm whose cap it is; null for all else.")
    before: float | str | tuple[str, ...] | None = _about("What it was; null if it was not set.")
    after: float | str | tuple[str, ...] | None = _about("What it is since.")


@dataclass(frozen=True)
class EventAnswer(Answer):
    """Something that happened to a campaign."""

    seq: int = _about("Its number; higher ones are later.")
    at: float = _about("Seconds since 1970.")
    kind: EventKind = _about("What happened.")
    decision: str | None = _about("The decision it happened to; null if it is not about one.")
    arm: str | None = _about("The arm; null if it is not about one.")
    amount: float | None = _about("Money, by the kind of event; null if there is none.")
    reward: float | None = _about("The reward that was reported, if one was.")
    actor: str | None = _about("Who did it, where that is known.")
    changes: tuple[TermChangeAnswer, ...] | None = _about(
        "What a change of terms has changed; null for other events.", kind=TermChangeAnswer
    )


@dataclass(frozen=True)
class EventPageAnswer(Answer):
    """A page of events."""

    events: tuple[EventAnswer, ...] = _about("The oldest first.", kind=EventAnswer)
    after: int = _about("The cursor of the next page, also if there is nothing after this one yet.")


@dataclass(frozen=True)
class AuditAnswer(Answer):
    """The findings of an audit."""

    agrees: bool = _about("Whether a replay of all events gives what the store has.")
    differences: tuple[str, ...] = _about("What does not agree, in words.")


# --- keys and webhooks -----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class KeyAnswer(Answer):
    """An API key without its secret."""

    prefix: str = _about("The public part: the key begins with bb_ and this.")
    scopes: tuple[KeyScope, ...] = _about("What the key may do.")
    campaign: str | None = _about("The name of the only campaign it is for; null for all.")
    name: str | None = _about("What the key is for; null if that was not said.")
    owner: str | None = _about("Who has it; null if that was not said.")
    created_at: float = _about("Seconds since 1970, as all times.")
    expires_at: float | None = _about("Null for never.")
    requests_per_second: float | None = _about("Null for any number.")
    last_used_at: float | None = _about("As of about a minute ago; null if never.")
    off: bool = _about("Whether it is refused: it came back with a restored copy, and nobody has turned it on.")


@dataclass(frozen=True)
class NewKeyAnswer(Answer):
    """A key that was made."""

    prefix: str = _about("The public part: the key begins with bb_ and this.")
    key: str = _about("The whole key, which is shown this one time.", shown=False)


@dataclass(frozen=True)
class DroppedKeyAnswer(Answer):
    """A key that was dropped."""

    prefix: str = _about("The public part of the key that was dropped.")


@dataclass(frozen=True)
class WebhookAnswer(Answer):
    """An address that is notified of campaigns."""

    id: str = _about("Its id.")
    url: str = _about("Where notifications are sent.")
    campaign: str | None = _about("The name of the only campaign it is for; null for all.")
    created_at: float = _about("Seconds since 1970.")
    waiting: int = _about("Notifications that it has not accepted yet.", 0)
    tries: int = _about("How often one of these was tried, at most.", 0)
    tried_at: float | None = _about("When a notification was last sent to it, in seconds since 1970.", None)
    problem: str | None = _about("Why that was not accepted; null if it was.", None)
    off: bool = _about("Whether nothing is sent: it came back with a restored copy, and nobody turned it on.", False)


@dataclass(frozen=True, kw_only=True)
class NewWebhookAnswer(WebhookAnswer):
    """A webhook that was made."""

    secret: str = _about("What notifications are signed with; it is shown this one time.", shown=False)


@dataclass(frozen=True)
class DroppedWebhookAnswer(Answer):
    """A webhook that was dropped."""

    id: str = _about("The id of the webhook that was dropped.")


@dataclass(frozen=True)
class WebhookTestAnswer(Answer):
    """The response of an address to a test."""

    id: str = _about("The id of the webhook.")
    accepted: bool = _about("Whether the address has answered with 200 to 299.")
    problem: str | None = _about("What it did instead; null if it has accepted.")


# --- shared budgets --------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class SharedMoney(Answer):
    """The money of a shared budget, or of a campaign of it."""

    name: str = _about("Its name.")
    budget: float = _about("The most that may be spent.")
    spent: float = _about("By its campaigns, and by former ones until they left.")
    held: float = _about("Held for decisions of its campaigns whose cost is not reported yet.")
    leased: float = _about("Reserved by servers that decide by themselves.")
    left: float = _about("Neither spent, held nor leased.")
    overrun: float = _about("Costs beyond caps or the money that was left, which are not part of spent.")


@dataclass(frozen=True)
class MemberAnswer(SharedMoney):
    """A campaign of a shared budget, and its own money."""

    spent: float = _about("What its decisions have cost, without overruns.")
    held: float = _about("Held for its decisions whose cost is not reported yet.")
    id: str = _about("The campaign's id.")
    status: Status = _about("Whether it decides.")


@dataclass(frozen=True)
class SharedBudgetAnswer(SharedMoney):
    """A budget over several campaigns; its money is that of all of them together."""

    currency: str | None = _about(TERMS["currency"].full_help)
    period: Period | None = _about(TERMS["period"].full_help)
    period_budget: float | None = _about(TERMS["period_budget"].full_help)
    unspent: Unspent = _about(TERMS["unspent"].full_help)
    time_zone: str | None = _about(TERMS["time_zone"].full_help)
    created_at: float = _about("Seconds since 1970.")
    unreported: int = _about(
        "Campaigns that were restored from a copy, until it is said what they have spent since. "
        "While there are any, no campaign of this budget decides."
    )


@dataclass(frozen=True)
class SharedBudgetDetailAnswer(SharedBudgetAnswer):
    """A shared budget with its campaigns."""

    campaigns: tuple[MemberAnswer, ...] = _about("Its members, by name.", kind=MemberAnswer)
