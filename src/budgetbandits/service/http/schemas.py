"""Request bodies and answers of the HTTP API. Money is in the user's unit; unknown fields are errors.

The OpenAPI document is made of these models: class names, fields and descriptions are what a caller reads.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Annotated, Any, ClassVar, Literal

from pydantic import BaseModel, ConfigDict, Field, FiniteFloat, create_model

from budgetbandits.allocation.session import FEATURES_MAX
from budgetbandits.service.audit.export import Format, Table
from budgetbandits.service.http.auth import SCOPES
from budgetbandits.service.http.problem_json import PROBLEM_TITLES
from budgetbandits.service.ledger import Status
from budgetbandits.service.request import BATCH_MAX, checked_options
from budgetbandits.service.standing import STANDINGS
from budgetbandits.service.stores.records import EventKind
from budgetbandits.service.stores.sql.dashboard import DecisionKind
from budgetbandits.terms import AMOUNT_MAX, CHANGEABLE, TERMS, TEXT_LENGTH_MAX, Term
from budgetbandits.validation import METADATA_MAX, METADATA_NAME_MAX, RequestOptions

NAME_LENGTH_MAX = 200
Money = Annotated[FiniteFloat, Field(ge=0.0, le=AMOUNT_MAX)]
Name = Annotated[str, Field(min_length=1, max_length=NAME_LENGTH_MAX)]
"""Which characters it may have is checked by `service.names`, whose message says more than a pattern."""

MetadataName = Annotated[str, Field(min_length=1, max_length=METADATA_NAME_MAX)]


def _about(text: str, default: Any = ...) -> Any:
    return Field(default, description=text)


class Model(BaseModel):
    """A model that Pydantic builds when it is first used: a server starts sooner."""

    model_config = ConfigDict(defer_build=True)


# --- terms -----------------------------------------------------------------------------------------------------------


def _sent(term: Term) -> tuple[Any, Any]:
    """A term in a request body: its type with its bounds and its help, and its default."""
    if term.kind == "choice":
        kind: Any = Literal[tuple(value for value, _ in term.choices)]
    elif term.kind == "text":
        kind = Annotated[str, Field(min_length=1, max_length=TEXT_LENGTH_MAX)]
    elif term.kind == "names":
        kind = Annotated[list[Name], Field(max_length=FEATURES_MAX)]
    else:
        least: Any = {"ge": term.smallest} if term.smallest or term.kind == "money" else {"gt": 0.0}
        kind = Annotated[FiniteFloat, Field(**least, le=term.largest, multiple_of=1 if term.whole else None)]
    return (kind | None if term.optional else kind), _about(term.full_help, term.default)


def _answered(term: Term) -> tuple[Any, Any]:
    """A term in an answer: always there, and without bounds, which are for requests alone."""
    kind: Any = {"text": str, "names": list[str]}.get(term.kind, float)
    if term.kind == "choice":
        kind = Literal[tuple(value for value, _ in term.choices)]
    return (kind | None if term.optional else kind), _about(term.full_help)


def _with_terms(
    name: str, base: type[BaseModel], kind: Callable[[Term], tuple[Any, Any]], names: Sequence[str] = tuple(TERMS)
) -> Any:
    """The model ``base`` with a field for each term of a campaign, or only for some of them."""
    return create_model(name, __base__=base, **{each: kind(TERMS[each]) for each in names})  # type: ignore[call-overload]


# --- request bodies --------------------------------------------------------------------------------------------------


class RequestBody(Model):
    """A JSON object that is sent, with a limit of its size; ``optional`` if it may be left out."""

    model_config = ConfigDict(extra="forbid", strict=True, defer_build=True)
    max_bytes: ClassVar[int] = 8_000
    optional: ClassVar[bool] = False

    @classmethod
    def mistake(cls, sent: dict[str, Any]) -> str | None:
        """The first mistake of a kind that a body may have very often; validation finds all others."""
        unknown = next((name for name in sent if name not in cls.model_fields), None)
        return None if unknown is None else f"there is no field {unknown!r:.60}; use {', '.join(cls.model_fields)}"


def _wrong_amount(sent: dict[str, Any], *fields: str) -> str | None:
    """The first mistake in fields that should map names to amounts."""
    for field in fields:
        amounts = sent.get(field)
        for name, amount in amounts.items() if isinstance(amounts, dict) else ():
            numbers = (int, float, bool) if field == "features" else (int, float)
            if type(amount) not in numbers or not 0 < len(name) <= NAME_LENGTH_MAX:
                return f"{field}: {name!r:.60} is {amount!r:.60}; give a name of 1 to 200 characters and a number"
    return None


class NewCampaign(_with_terms("CampaignTerms", RequestBody, _sent)):  # type: ignore[misc]
    name: Name = _about("A name that no other campaign has.")
    policy: Annotated[str, Field(max_length=200)] | None = _about(
        "How arms are chosen. Without it, bts-linear if there are features, bts-paced if there is a horizon, else bts.",
        None,
    )
    budget: Money = _about("The most that may be spent. It can be topped up, or set to another.")
    arms: Annotated[dict[Name, Money], Field(min_length=2, max_length=100_000)] = _about(
        "The most that one pull of each arm can cost."
    )
    cost_floor: Money | None = _about("The least mean cost, for policies that must know it.", None)
    costs: dict[Name, Money] | None = _about("The mean cost of each arm, for policies that must know it.", None)
    history: dict[Name, Annotated[list[Money], Field(min_length=3, max_length=3)]] | None = _about(
        "Past outcomes of arms to learn from: how many, their total reward and their total cost.", None
    )
    max_bytes: ClassVar[int] = 1_000_000

    @classmethod
    def mistake(cls, sent: dict[str, Any]) -> str | None:
        unknown: str | None = super().mistake(sent)
        return _wrong_amount(sent, "arms", "costs") or _wrong_history(sent.get("history")) or unknown


def _wrong_history(history: Any) -> str | None:
    """The first mistake in a field that should map names to three numbers."""
    for name, past in history.items() if isinstance(history, dict) else ():
        numbers = isinstance(past, list) and len(past) == 3 and all(type(each) in (int, float) for each in past)
        if not numbers or not 0 < len(name) <= NAME_LENGTH_MAX:
            return (
                f"history: {name!r:.60} is {past!r:.60}; give [pulls, total reward, total cost] for the name of an arm"
            )
    return None


class CampaignClone(RequestBody):
    name: Name = _about("A name that no other campaign has.")
    budget: Money | None = _about("The most that may be spent; without it, as much as the other campaign's.", None)
    learned: bool = _about("Whether it begins with what the other has learned of each arm.", True)


class TermChanges(_with_terms("ChangeableTerms", RequestBody, _sent, CHANGEABLE)):  # type: ignore[misc]
    name: Name | None = _about("Another name; the old one goes on meaning this campaign.", None)
    policy: Name | None = _about("Another policy, which begins with what was learned of each arm.", None)
    budget: Money | None = _about("Another budget, at least what is spent and held.", None)
    caps: Annotated[dict[Name, Money], Field(max_length=100_000)] | None = _about(
        "Other caps: the most that one pull of these arms can cost.", None
    )
    max_bytes: ClassVar[int] = 1_000_000

    @classmethod
    def mistake(cls, sent: dict[str, Any]) -> str | None:
        unknown: str | None = super().mistake(sent)
        return _wrong_amount(sent, "caps") or unknown


class DecisionRequest(RequestBody):
    context: dict[str, Any] | None = _about(
        "Any JSON object; only its digest is kept, so that the same key with another context is a conflict.", None
    )
    segment: Name | None = _about("The kind of this request.", None)
    arms: list[Name] | None = _about("The arms that can answer this request; all if not given.", None)
    exclude: list[Name] | None = _about("Arms that cannot answer this request.", None)
    prices: dict[Name, Money] | None = _about("What each of these arms is estimated to cost this time.", None)
    holds: dict[Name, Money] | None = _about("What to hold for an arm instead of its cost cap.", None)
    features: dict[Name, float | bool] | None = _about(
        "The number of each feature that the campaign names; every request has them all.", None
    )
    metadata: Annotated[dict[MetadataName, str | int | float], Field(max_length=METADATA_MAX)] | None = _about(
        "Your own notes, texts and numbers by name, 2,000 bytes at most; kept, exported and searchable.", None
    )
    max_bytes: ClassVar[int] = 64_000

    @classmethod
    def mistake(cls, sent: dict[str, Any]) -> str | None:
        for field in ("arms", "exclude"):
            names = sent.get(field)
            for name in names if isinstance(names, list) else ():
                if not isinstance(name, str) or not 0 < len(name) <= NAME_LENGTH_MAX:
                    return f"{field} has {name!r:.60}; give names of 1 to 200 characters"
        notes = sent.get("metadata")
        if isinstance(notes, dict) and len(notes) > METADATA_MAX:
            return f"metadata has {len(notes):,} entries; give {METADATA_MAX} at most"
        return _wrong_amount(sent, "prices", "holds", "features") or super().mistake(sent)

    def options(self) -> RequestOptions | None:
        """The options of the request; nearly always there are none."""
        if self.model_fields_set <= {"context", "count"}:
            return None
        return checked_options(
            segment=self.segment, arms=self.arms, exclude=self.exclude, prices=self.prices, holds=self.holds,
            features=self.features, metadata=self.metadata,
        )  # fmt: skip


class DecisionBatchRequest(DecisionRequest):
    count: Annotated[int, Field(ge=1, le=BATCH_MAX)] = _about("How many decisions.")


class FeedbackRequest(RequestBody):
    reward: float | None = _about("From 0 to reward_max.", None)  # any number: one out of range must not lose the cost
    cost: Money | None = _about("What the pull cost.", None)
    failed: bool | None = _about("Whether there was no answer.", None)


class FeedbackBatchItem(FeedbackRequest):
    decision: Name = _about("The decision's id.")


class FeedbackBatchRequest(RequestBody):
    outcomes: Annotated[list[FeedbackBatchItem], Field(min_length=1, max_length=BATCH_MAX)] = _about(
        "One outcome for each decision."
    )
    max_bytes: ClassVar[int] = 300_000

    @classmethod
    def mistake(cls, sent: dict[str, Any]) -> str | None:
        outcomes = sent.get("outcomes")
        if isinstance(outcomes, list) and len(outcomes) > BATCH_MAX:
            return f"outcomes: {len(outcomes):,} at once; send 1 to {BATCH_MAX:,}"
        items = [each for each in outcomes if isinstance(each, dict)] if isinstance(outcomes, list) else []
        return next((found for found in map(FeedbackBatchItem.mistake, items) if found), None) or super().mistake(sent)


class TopUp(RequestBody):
    amount: Money = _about("What the budget is raised by.")


class Resumption(RequestBody):
    optional: ClassVar[bool] = True
    spent_since: Money | None = _about("After a restore: what was spent since the copy was made.", None)


class NewArm(RequestBody):
    name: Name = _about("A name that no other arm of the campaign has.")
    cost_cap: Money = _about("The most that one pull of it can cost.")


class NewKey(RequestBody):
    scopes: Annotated[list[Literal[SCOPES]], Field(min_length=1, max_length=4)] = _about(  # type: ignore[valid-type]
        "What the key may do."
    )
    campaign: Name | None = _about("Its name or id, for a key that is for this campaign only.", None)
    name: Name | None = _about("What the key is for.", None)
    owner: Name | None = _about("Who has it.", None)
    expires_at: FiniteFloat | None = _about("From when on it is refused, in seconds since 1970.", None)
    requests_per_second: FiniteFloat | None = _about("How many requests each server takes from it.", None)


class NewWebhook(RequestBody):
    url: Annotated[str, Field(min_length=1, max_length=2000)] = _about("Where notifications are sent: http or https.")
    campaign: Name | None = _about("Its name or id, to be notified of this campaign only.", None)


# --- parameters of the query -----------------------------------------------------------------------------------------

Cursor = Annotated[int, Field(ge=0, le=2**62)]
Time = Annotated[float, Field(ge=0, le=1e12, allow_inf_nan=False)]
"""Seconds since 1970."""
PageLimit = Annotated[int, Field(ge=1, le=1000)]
CURSOR_ABOUT = "The cursor that ended the previous page."


class CampaignPageQuery(Model):
    limit: PageLimit | None = _about("How many at most; all if not given.", None)
    after: Name | None = _about("The id of the last campaign of the previous page.", None)


class DecisionPageQuery(Model):
    limit: PageLimit = _about("How many at most.", 100)
    before: Cursor | None = _about(CURSOR_ABOUT, None)
    until: Time | None = _about("Begin with the decisions of this time, or of a few seconds after it.", None)
    kind: DecisionKind = _about("Only decisions of this kind.", "all")
    arm: Name | None = _about("Only those of this arm.", None)


class EventPageQuery(Model):
    limit: PageLimit = _about("How many at most.", 100)
    after: Cursor = _about(CURSOR_ABOUT, 0)
    since: Time | None = _about("Begin with the events of this time, or of a few seconds before it.", None)


class ExportQuery(Model):
    table: Table = _about("Which table.", "decisions")
    format: Format = _about("Parquet needs the extra archive on the server.", "csv")


# --- answers ---------------------------------------------------------------------------------------------------------


class ProblemDetails(Model):
    """What is wrong, as RFC 9457 has it."""

    type: str = _about("urn:budgetbandits: and the title.")
    title: Literal[PROBLEM_TITLES] = _about("The kind of problem, by which programs tell them apart.")  # type: ignore[valid-type]
    status: int = _about("The status of the answer.")
    detail: str = _about("What is wrong with this request, and the remedy.")


class DecisionAnswer(Model):
    decision: str = _about("The decision's id, for its feedback.")
    campaign: str = _about("The campaign's id.")
    arm: str = _about("The arm to pull.")
    hold: float = _about("The money that is held for it.")
    expires_at: float = _about("When the hold expires without feedback, in seconds since 1970.")


class DecisionBatchAnswer(Model):
    decisions: list[DecisionAnswer] = _about("As many as were asked for.")


class FeedbackAnswer(Model):
    decision: str = _about("The decision's id.")
    overrun: float = _about(
        "The cost beyond the arm's cap or the money that was left; if there is any, the campaign is frozen now.", 0.0
    )


class FeedbackBatchResult(FeedbackAnswer):
    problem: ProblemDetails | None = _about("Why this outcome was refused; null if it was accepted.", None)


class FeedbackBatchAnswer(Model):
    results: list[FeedbackBatchResult] = _about("One for each outcome, in order.")


class CampaignMoney(Model):
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


class CampaignAnswer(_with_terms("CampaignMoneyAndTerms", CampaignMoney, _answered)):  # type: ignore[misc]
    created_at: float = _about("Seconds since 1970.")
    arms_down: int = _about("Arms that are not asked now, because they failed too often in a row.")


class ArmAnswer(Model):
    name: str = _about("Its name.")
    cost_cap: float = _about("The most that one pull of it can cost.")
    active: bool = _about("False for a retired arm.")
    pulls: int = _about("Decisions whose reward and cost are reported.")
    failures: int = _about("Decisions that were reported as failed.")
    cooldown_until: float | None = _about("Until when it cools down, in seconds since 1970; null if it does not.")
    down_since: float | None = _about("When its present row of failures began, in seconds since 1970.")


class CampaignDetailAnswer(CampaignAnswer):
    requests_answered: int = _about("Requests whose reward and cost are reported.")
    requests_used: int = _about("Requests whose cost is reported, or that expired and were charged.")
    segments: list[str] = _about("The segments that requests named, in the order in which they first came.")
    arms: list[ArmAnswer] = _about("All arms, retired ones included.")


class ArmTotalAnswer(Model):
    arm: str = _about("The arm's name.")
    open: int = _about("Decisions whose cost is not reported yet.")
    cost: float = _about("What its decisions have cost, with overruns.")
    reward: float = _about("The sum of their rewards.")


class RunsOutAnswer(Model):
    median: float = _about("When the money is likely to end, in seconds since 1970.")
    low: float = _about("The beginning of the middle 95 % of that time.")
    high: float | None = _about("Its end; null if that is later than anything that is said.")
    limit: Literal["budget", "shared_budget"] = _about("Which budget ends first: the campaign's own, or a shared one.")


class PaceAnswer(Model):
    plan: float = _about("What was to be spent by now, by pace_seconds or else by the horizon.")
    behind: float = _about("How much less was spent; negative if more was.")
    behind_share: float = _about("The same as a share of the budget.")
    verdict: str = _about("Whether that is on plan, in words.")


class StandingAnswer(Model):
    id: str = _about("The campaign's id.")
    campaign: str = _about("The campaign's name.")
    at: float = _about("When this was read, in seconds since 1970. Times are as of a few seconds before.")
    standing: Literal[STANDINGS] = _about("How the campaign does, in a word.")  # type: ignore[valid-type]
    cause: str = _about("Why, in words; empty for a campaign that runs and is not at its daily cap.")
    needs_attention: bool = _about("Whether an operator should look at it.")
    runs_out: RunsOutAnswer | None = _about(
        "Null if it does not run, has spent too little to say anything, or its budget is renewed before."
    )
    pace: PaceAnswer | None = _about("Null if it has no plan.")
    spent: float = _about("What was spent, also by leases that are not merged yet.")
    left: float = _about("What new decisions can have: of its own budget, or of a shared one that has less.")
    spent_24_hours: float = _about("What was spent since the hour began that contains this time of yesterday.")
    rewards_24_hours: int = _about("The number of rewards reported in that time.")
    reward_24_hours: float = _about("The sum of the rewards reported in that time.")
    last_decision_at: float | None = _about("Seconds since 1970.")
    last_feedback_at: float | None = _about("Seconds since 1970; when a cost was last reported.")


class DecisionDetailAnswer(Model):
    decision: str = _about("The decision's id.")
    key: str = _about("The idempotency key that it was asked for with.")
    arm: str = _about("The arm that was chosen.")
    segment: str | None = _about("The kind of the request; null if it named none.")
    metadata: dict[str, str | int | float] | None = _about("The notes that came with the request; null if it had none.")
    state: Literal["pending", "settled", "voided", "expired"] = _about("What became of its hold.")
    failed: bool = _about("Whether it was reported as failed.")
    hold: float = _about("What was held for it.")
    cost: float | None = _about("What was reported; null if nothing was.")
    charged: float = _about("What was booked as spent.")
    overrun: float = _about("What it cost beyond that.")
    reward: float | None = _about("What was reported; null if nothing was.")
    created_at: float = _about("Seconds since 1970.")
    expires_at: float = _about("When its hold expires, or would have, in seconds since 1970.")
    propensity: float | None = _about("How likely the choice was, where that is recorded.")


class DecisionPageAnswer(Model):
    decisions: list[DecisionDetailAnswer] = _about("The newest first.")
    before: int | None = _about("The cursor of the next page; null if this is the last.")


class TermChangeAnswer(Model):
    term: str = _about("A term, or name, policy, budget or cap.")
    arm: str | None = _about("The arm whose cap it is; null for all else.")
    before: float | str | list[str] | None = _about("What it was; null if it was not set.")
    after: float | str | list[str] | None = _about("What it is since.")


class EventAnswer(Model):
    seq: int = _about("Its number; higher ones are later.")
    at: float = _about("Seconds since 1970.")
    kind: EventKind = _about("What happened.")
    decision: str | None = _about("The decision it happened to; null if it is not about one.")
    arm: str | None = _about("The arm; null if it is not about one.")
    amount: float | None = _about("Money, by the kind of event; null if there is none.")
    reward: float | None = _about("The reward that was reported, if one was.")
    actor: str | None = _about("Who did it, where that is known.")
    changes: list[TermChangeAnswer] | None = _about("What a change of terms has changed; null for other events.")


class EventPageAnswer(Model):
    events: list[EventAnswer] = _about("The oldest first.")
    after: int = _about("The cursor of the next page, also if there is nothing after this one yet.")


class KeyAnswer(Model):
    prefix: str = _about("The public part: the key begins with bb_ and this.")
    scopes: list[Literal[SCOPES]] = _about("What the key may do.")  # type: ignore[valid-type]
    campaign: str | None = _about("The name of the only campaign it is for; null for all.")
    name: str | None = _about("What the key is for; null if that was not said.")
    owner: str | None = _about("Who has it; null if that was not said.")
    created_at: float = _about("Seconds since 1970, as all times.")
    expires_at: float | None = _about("Null for never.")
    requests_per_second: float | None = _about("Null for any number.")
    last_used_at: float | None = _about("As of about a minute ago; null if never.")
    off: bool = _about("Whether it is refused: it came back with a restored copy, and nobody has turned it on.")


class NewKeyAnswer(Model):
    prefix: str = _about("The public part: the key begins with bb_ and this.")
    key: str = _about("The whole key, which is shown this one time.")


class WebhookAnswer(Model):
    id: str = _about("Its id.")
    url: str = _about("Where notifications are sent.")
    campaign: str | None = _about("The name of the only campaign it is for; null for all.")
    created_at: float = _about("Seconds since 1970.")
    waiting: int = _about("Notifications that it has not accepted yet.", 0)
    tries: int = _about("How often one of these was tried, at most.", 0)
    tried_at: float | None = _about("When a notification was last sent to it, in seconds since 1970.", None)
    problem: str | None = _about("Why that was not accepted; null if it was.", None)
    off: bool = _about("Whether nothing is sent: it came back with a restored copy, and nobody turned it on.", False)


class NewWebhookAnswer(WebhookAnswer):
    secret: str = _about("What notifications are signed with; it is shown this one time.")


class AuditAnswer(Model):
    agrees: bool = _about("Whether a replay of all events gives what the store has.")
    differences: list[str] = _about("What does not agree, in words.")


class DroppedKeyAnswer(Model):
    prefix: str = _about("The public part of the key that was dropped.")


class DroppedWebhookAnswer(Model):
    id: str = _about("The id of the webhook that was dropped.")


class WebhookTestAnswer(Model):
    id: str = _about("The id of the webhook.")
    accepted: bool = _about("Whether the address has answered with 200 to 299.")
    problem: str | None = _about("What it did instead; null if it has accepted.")


class HealthAnswer(Model):
    status: Literal["ok", "ready"] = _about("ok if the server runs, ready if it can decide.")
