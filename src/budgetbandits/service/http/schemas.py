"""Request bodies and query parameters of the HTTP API. Money is in the user's unit; unknown fields are errors.

The OpenAPI document is made of these models: class names, fields and descriptions are what a caller reads.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, ClassVar, Literal

from pydantic import BaseModel, ConfigDict, Field, FiniteFloat, create_model

from budgetbandits.allocation.session import FEATURES_MAX
from budgetbandits.answers import KeyScope
from budgetbandits.service.audit.export import Format, Table
from budgetbandits.service.request import BATCH_MAX, checked_options
from budgetbandits.service.stores.sql.dashboard import DecisionKind
from budgetbandits.terms import AMOUNT_MAX, CHANGEABLE, TERMS, TEXT_LENGTH_MAX, Term
from budgetbandits.validation import METADATA_MAX, METADATA_NAME_MAX, RequestOptions

NAME_LENGTH_MAX = 200
"""Most characters of a name."""

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


def _with_terms(name: str, names: Sequence[str] = tuple(TERMS)) -> Any:
    """A body with a field for each term of a campaign, or only for some of them."""
    return create_model(name, __base__=RequestBody, **{term: _sent(TERMS[term]) for term in names})  # type: ignore[call-overload]


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


class NewCampaign(_with_terms("CampaignTerms")):  # type: ignore[misc]
    """A new campaign."""

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
        """The mistake in a body as a sentence, if it is a common one."""
        unknown: str | None = super().mistake(sent)
        return _wrong_amount(sent, "arms", "costs") or _wrong_history(sent.get("history")) or unknown


def _wrong_history(history: Any) -> str | None:
    """The first mistake in a field that should map names to three numbers."""
    for name, past in history.items() if isinstance(history, dict) else ():
        numbers = isinstance(past, list) and len(past) == 3 and all(type(number) in (int, float) for number in past)
        if not numbers or not 0 < len(name) <= NAME_LENGTH_MAX:
            return (
                f"history: {name!r:.60} is {past!r:.60}; give [pulls, total reward, total cost] for the name of an arm"
            )
    return None


class CampaignClone(RequestBody):
    """A new campaign like another one."""

    name: Name = _about("A name that no other campaign has.")
    budget: Money | None = _about("The most that may be spent; without it, as much as the other campaign's.", None)
    learned: bool = _about("Whether it begins with what the other has learned of each arm.", True)


class TermChanges(_with_terms("ChangeableTerms", CHANGEABLE)):  # type: ignore[misc]
    """Changes of a campaign's terms."""

    name: Name | None = _about("Another name; the old one goes on meaning this campaign.", None)
    policy: Name | None = _about("Another policy, which begins with what was learned of each arm.", None)
    budget: Money | None = _about("Another budget, at least what is spent and held.", None)
    caps: Annotated[dict[Name, Money], Field(max_length=100_000)] | None = _about(
        "Other caps: the most that one pull of these arms can cost.", None
    )
    max_bytes: ClassVar[int] = 1_000_000

    @classmethod
    def mistake(cls, sent: dict[str, Any]) -> str | None:
        """The mistake in a body as a sentence, if it is a common one."""
        unknown: str | None = super().mistake(sent)
        return _wrong_amount(sent, "caps") or unknown


class DecisionRequest(RequestBody):
    """A request for a decision."""

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
    """A request for several decisions."""

    count: Annotated[int, Field(ge=1, le=BATCH_MAX)] = _about("How many decisions.")


class FeedbackRequest(RequestBody):
    """Feedback on a decision."""

    reward: float | None = _about("From 0 to reward_max.", None)  # any number: one out of range must not lose the cost
    cost: Money | None = _about("What the pull cost.", None)
    failed: bool | None = _about("Whether there was no answer.", None)


class FeedbackBatchItem(FeedbackRequest):
    """Feedback on one decision among many."""

    decision: Name = _about("The decision's id.")


class FeedbackBatchRequest(RequestBody):
    """Feedback on many decisions."""

    outcomes: Annotated[list[FeedbackBatchItem], Field(min_length=1, max_length=BATCH_MAX)] = _about(
        "One outcome for each decision."
    )
    max_bytes: ClassVar[int] = 300_000

    @classmethod
    def mistake(cls, sent: dict[str, Any]) -> str | None:
        outcomes = sent.get("outcomes")
        if isinstance(outcomes, list) and len(outcomes) > BATCH_MAX:
            return f"outcomes: {len(outcomes):,} at once; send 1 to {BATCH_MAX:,}"
        items = [outcome for outcome in outcomes if isinstance(outcome, dict)] if isinstance(outcomes, list) else []
        return next((result for result in map(FeedbackBatchItem.mistake, items) if result), None) or super().mistake(
            sent
        )


class TopUp(RequestBody):
    """An amount to add to a budget."""

    amount: Money = _about("What the budget is raised by.")


class Resumption(RequestBody):
    """Options of resuming a campaign."""

    optional: ClassVar[bool] = True
    spent_since: Money | None = _about("After a restore: what was spent since the copy was made.", None)


class NewArm(RequestBody):
    """A new arm of a campaign."""

    name: Name = _about("A name that no other arm of the campaign has.")
    cost_cap: Money = _about("The most that one pull of it can cost.")


class NewKey(RequestBody):
    """A new key."""

    scopes: Annotated[list[KeyScope], Field(min_length=1, max_length=4)] = _about("What the key may do.")
    campaign: Name | None = _about("Its name or id, for a key that is for this campaign only.", None)
    name: Name | None = _about("What the key is for.", None)
    owner: Name | None = _about("Who has it.", None)
    expires_at: FiniteFloat | None = _about("From when on it is refused, in seconds since 1970.", None)
    requests_per_second: FiniteFloat | None = _about("How many requests each server takes from it.", None)


class NewWebhook(RequestBody):
    """A new webhook."""

    url: Annotated[str, Field(min_length=1, max_length=2000)] = _about("Where notifications are sent: http or https.")
    campaign: Name | None = _about("Its name or id, to be notified of this campaign only.", None)


# --- parameters of the query -----------------------------------------------------------------------------------------

Cursor = Annotated[int, Field(ge=0, le=2**62)]
Time = Annotated[float, Field(ge=0, le=1e12, allow_inf_nan=False)]
"""Seconds since 1970."""
PageLimit = Annotated[int, Field(ge=1, le=1000)]
CURSOR_ABOUT = "The cursor that ended the previous page."
"""Description of a cursor."""


class CampaignPageQuery(Model):
    """A page of the list of campaigns."""

    limit: PageLimit | None = _about("How many at most; all if not given.", None)
    after: Name | None = _about("The id of the last campaign of the previous page.", None)


class DecisionPageQuery(Model):
    """A page of a campaign's decisions."""

    limit: PageLimit = _about("How many at most.", 100)
    before: Cursor | None = _about(CURSOR_ABOUT, None)
    until: Time | None = _about("Begin with the decisions of this time, or of a few seconds after it.", None)
    kind: DecisionKind = _about("Only decisions of this kind.", "all")
    arm: Name | None = _about("Only those of this arm.", None)


class EventPageQuery(Model):
    """A page of a campaign's events."""

    limit: PageLimit = _about("How many at most.", 100)
    after: Cursor = _about(CURSOR_ABOUT, 0)
    since: Time | None = _about("Begin with the events of this time, or of a few seconds before it.", None)


class ExportQuery(Model):
    """An export of a campaign."""

    table: Table = _about("Which table.", "decisions")
    format: Format = _about("Parquet needs the extra archive on the server.", "csv")
