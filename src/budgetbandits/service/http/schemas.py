"""What is sent and answered over HTTP. Money is in the user's unit; unknown fields are mistakes."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from fastapi import Path
from pydantic import BaseModel, ConfigDict, Field, FiniteFloat

from budgetbandits.service.campaigns import HOLD_SECONDS
from budgetbandits.service.engine import LARGEST_BATCH

PRINTABLE = r"^[^/\x00-\x1f\x7f]+$"
Money = Annotated[FiniteFloat, Field(ge=0.0, le=1e12)]
Seconds = Annotated[FiniteFloat, Field(gt=0.0, le=1e9)]
Name = Annotated[str, Field(min_length=1, max_length=200, pattern=PRINTABLE)]
CampaignPath = Annotated[
    str, Path(min_length=1, max_length=200, pattern=PRINTABLE, description="A campaign's name or id.")
]


class Body(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)


class NewCampaign(Body):
    name: Name
    policy: Annotated[str, Field(max_length=200)] = "bts"
    budget: Money
    arms: Annotated[dict[Name, Money], Field(min_length=2, max_length=100_000)]
    reward_max: Annotated[FiniteFloat, Field(gt=0.0, le=1e12)] = 1.0
    hold_seconds: Seconds = HOLD_SECONDS
    on_expire: Literal["charge", "release"] = "charge"
    daily_cap: Money | None = None
    pace_seconds: Seconds | None = None
    cost_floor: Money | None = None
    costs: dict[Name, Money] | None = None


class AskDecision(Body):
    context: dict[str, Any] = Field(default_factory=dict)


class AskDecisions(AskDecision):
    count: Annotated[int, Field(ge=1, le=LARGEST_BATCH)]


class Feedback(Body):
    reward: FiniteFloat | None = None
    cost: Money | None = None


class FeedbackItem(Feedback):
    decision: Name


class FeedbackBatch(Body):
    outcomes: Annotated[list[FeedbackItem], Field(min_length=1, max_length=LARGEST_BATCH)]


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


class Told(BaseModel):
    decision: str
    overrun: float = 0.0
    """What it cost beyond its hold; if anything, the campaign is frozen now."""


class ToldItem(Told):
    problem: dict[str, Any] | None = None


class ToldMany(BaseModel):
    results: list[ToldItem]


class CampaignView(BaseModel):
    id: str
    name: str
    policy: str
    status: str
    budget: float
    spent: float
    held: float
    left: float
    overrun: float
    reward_max: float
    hold_seconds: float
    on_expire: str
    daily_cap: float | None
    pace_seconds: float | None
    created_at: float


class ArmView(BaseModel):
    name: str
    cost_cap: float
    active: bool
    pulls: int


class CampaignDetail(CampaignView):
    arms: list[ArmView]


class Verdict(BaseModel):
    agrees: bool
    differences: list[str]


class Status(BaseModel):
    status: str
