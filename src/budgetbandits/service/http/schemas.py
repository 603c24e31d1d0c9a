"""What is sent and answered over HTTP. Money is in the user's unit; unknown fields are mistakes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import fields
from typing import Annotated, Any, ClassVar, get_args, get_type_hints

from pydantic import BaseModel, ConfigDict, Field, FiniteFloat, create_model

from budgetbandits.service.request import BATCH_MAX, RequestOptions
from budgetbandits.terms import CHANGEABLE, LARGEST_AMOUNT, LONGEST_TEXT, Terms

Money = Annotated[FiniteFloat, Field(ge=0.0, le=LARGEST_AMOUNT)]
Name = Annotated[str, Field(min_length=1, max_length=200)]
"""Which characters it may have is said by `names`, in words."""


class Body(BaseModel):
    """What is sent, and how many bytes it may have."""

    model_config = ConfigDict(extra="forbid", strict=True)
    most_bytes: ClassVar[int] = 8_000

    @classmethod
    def mistake(cls, sent: dict[str, Any]) -> str | None:
        """The first mistake of a kind of which there may be very many; all others are found by validation."""
        unknown = next((name for name in sent if name not in cls.model_fields), None)
        return None if unknown is None else f"there is no field {unknown!r:.60}; use {', '.join(cls.model_fields)}"


def _wrong_amount(sent: dict[str, Any], *fields: str) -> str | None:
    """The first mistake in what should map names to amounts."""
    for field in fields:
        amounts = sent.get(field)
        for name, amount in amounts.items() if isinstance(amounts, dict) else ():
            if type(amount) not in (int, float) or not 0 < len(name) <= 200:
                return f"{field}: {name!r:.60} is {amount!r:.60}; give a name of 1 to 200 characters and a number"
    return None


def _sent(term: Any) -> tuple[Any, Any]:
    """A term as it may be sent: its type with its bounds, and its default."""
    kind, notes = get_type_hints(Terms)[term.name], term.metadata
    if str in (kind, *get_args(kind)):
        text = Annotated[str, Field(min_length=1, max_length=LONGEST_TEXT)]
        return (text | None if term.default is None else text), term.default
    if float not in (kind, *get_args(kind)):
        return kind, term.default
    least = {"ge": 0.0} if notes["money"] else {"gt": 0.0}
    number = Annotated[FiniteFloat, Field(**least, le=notes["largest"])]
    return (number | None if term.default is None else number), term.default


def _shown(term: Any) -> tuple[Any, Any]:
    """A term as it is answered: always there, and without the bounds, which are for HTTP alone."""
    return (str if isinstance(term.default, str) else get_type_hints(Terms)[term.name]), ...


def _with_terms(
    name: str, base: type[BaseModel], kind: Callable[[Any], tuple[Any, Any]], only: Sequence[str] | None = None
) -> Any:
    """The model ``base`` with the terms of a campaign besides, or only some of them."""
    terms: dict[str, Any] = {each.name: kind(each) for each in fields(Terms) if only is None or each.name in only}
    return create_model(name, __base__=base, **terms)


SentTerms = _with_terms("SentTerms", Body, _sent)


class NewCampaign(SentTerms):  # type: ignore[misc, valid-type]
    name: Name
    policy: Annotated[str, Field(max_length=200)] = "bts"
    budget: Money
    arms: Annotated[dict[Name, Money], Field(min_length=2, max_length=100_000)]
    cost_floor: Money | None = None
    costs: dict[Name, Money] | None = None
    most_bytes: ClassVar[int] = 1_000_000

    @classmethod
    def mistake(cls, sent: dict[str, Any]) -> str | None:
        unknown: str | None = super().mistake(sent)
        return _wrong_amount(sent, "arms", "costs") or unknown


ChangedTerms = _with_terms("ChangedTerms", Body, _sent, CHANGEABLE)


_NOT_SAID = {"context", "count"}


class AskDecision(Body):
    context: dict[str, Any] | None = None
    segment: Name | None = None
    arms: list[Name] | None = None
    exclude: list[Name] | None = None
    prices: dict[Name, Money] | None = None
    holds: dict[Name, Money] | None = None
    most_bytes: ClassVar[int] = 64_000

    @classmethod
    def mistake(cls, sent: dict[str, Any]) -> str | None:
        for field in ("arms", "exclude"):
            names = sent.get(field)
            for name in names if isinstance(names, list) else ():
                if not isinstance(name, str) or not 0 < len(name) <= 200:
                    return f"{field} has {name!r:.60}; give names of 1 to 200 characters"
        return _wrong_amount(sent, "prices", "holds") or super().mistake(sent)

    def said(self) -> RequestOptions | None:
        """What is said of the request; nearly always nothing."""
        if self.model_fields_set <= _NOT_SAID:
            return None
        return RequestOptions.checked(self.segment, self.arms, self.exclude, self.prices, self.holds)


class AskDecisions(AskDecision):
    count: Annotated[int, Field(ge=1, le=BATCH_MAX)]


class Feedback(Body):
    reward: float | None = None  # any number: one out of range must not keep the cost from being booked
    cost: Money | None = None
    failed: bool | None = None


class FeedbackItem(Feedback):
    decision: Name


class FeedbackBatch(Body):
    outcomes: Annotated[list[FeedbackItem], Field(min_length=1, max_length=BATCH_MAX)]
    most_bytes: ClassVar[int] = 300_000

    @classmethod
    def mistake(cls, sent: dict[str, Any]) -> str | None:
        outcomes = sent.get("outcomes")
        if isinstance(outcomes, list) and len(outcomes) > BATCH_MAX:
            return f"outcomes: {len(outcomes):,} at once; send 1 to {BATCH_MAX:,}"
        items = [each for each in outcomes if isinstance(each, dict)] if isinstance(outcomes, list) else []
        return next((found for found in map(FeedbackItem.mistake, items) if found), None) or super().mistake(sent)


class Amount(Body):
    amount: Money


class NewArm(Body):
    name: Name
    cost_cap: Money


class Decided(BaseModel):
    decision: str
    campaign: str
    arm: str
    hold: float
    expires_at: float


class DecidedMany(BaseModel):
    decisions: list[Decided]


class FeedbackResult(BaseModel):
    decision: str
    overrun: float = 0.0
    """What it cost beyond its arm's cap, or beyond the money there was; if anything, the campaign is frozen now."""


class ToldItem(FeedbackResult):
    problem: dict[str, Any] | None = None


class ToldMany(BaseModel):
    results: list[ToldItem]


class CampaignMoney(BaseModel):
    id: str
    name: str
    policy: str
    status: str
    budget: float
    spent: float
    held: float
    leased: float
    left: float
    overrun: float


ShownTerms = _with_terms("ShownTerms", CampaignMoney, _shown)


class CampaignView(ShownTerms):  # type: ignore[misc, valid-type]
    created_at: float
    arms_down: int


class ArmView(BaseModel):
    name: str
    cost_cap: float
    active: bool
    pulls: int
    failures: int
    rests_until: float | None
    down_since: float | None


class CampaignDetail(CampaignView):
    answered: int
    gone: int
    segments: list[str]
    arms: list[ArmView]


class Verdict(BaseModel):
    agrees: bool
    differences: list[str]


class Status(BaseModel):
    status: str
