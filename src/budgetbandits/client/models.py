"""A campaign as the service describes it to a client: its money, its terms and its arms, as text or as a table."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, fields
from typing import Any, Self

from budgetbandits.formatting.money import same_decimals as amounts
from budgetbandits.formatting.tables import MOST_ROWS, Table, left_out
from budgetbandits.terms import Terms


@dataclass(frozen=True)
class Info:
    """What the service describes."""

    @classmethod
    def read(cls, values: Mapping[str, Any]) -> Self:
        """From an answer; fields that only a newer service knows are left out."""
        return cls(**{each.name: values[each.name] for each in fields(cls) if each.name in values})

    @classmethod
    def read_all(cls, rows: Iterable[Mapping[str, Any]]) -> list[Self]:
        """From an answer that is a list."""
        return [cls.read(row) for row in rows]


@dataclass(frozen=True)
class ArmInfo(Info):
    """An arm of a campaign: the most that a pull can cost, and how often it was pulled."""

    name: str
    cost_cap: float
    active: bool
    pulls: int
    failures: int = 0
    cooldown_until: float | None = None
    """When it is asked again after failures, in seconds since 1970; None if it is asked now."""
    down_since: float | None = None
    """When its present row of failures began, in seconds since 1970; None if it is not down."""


@dataclass(frozen=True)
class ArmTotal(Info):
    """Totals of an arm's decisions: how many are open, their cost with overruns, and their reward."""

    open: int
    cost: float
    reward: float


@dataclass(frozen=True, kw_only=True, repr=False)
class CampaignInfo(Terms, Info):
    """A campaign's money, in the user's unit, and its terms."""

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
    created_at: float
    arms_down: int = 0
    """Arms that are not asked because they failed too often in a row."""
    requests_answered: int = 0
    """Requests with both reward and cost reported."""
    requests_used: int = 0
    """Requests whose money is spent, whatever else was reported: failed ones too."""
    segments: tuple[str, ...] = ()
    arms: tuple[ArmInfo, ...] = ()

    def __repr__(self) -> str:
        return f"CampaignInfo({self._headline})"

    def _repr_html_(self) -> str:
        if not self.arms:  # as a list of campaigns has them
            return Table((), (), title=f"Campaign {self._headline}").to_html()
        caps = amounts([arm.cost_cap for arm in self.arms[:MOST_ROWS]])
        rows = [(arm.name + _state(arm), f"{arm.pulls:,}", cap) for arm, cap in zip(self.arms, caps, strict=False)]
        title, note = f"Campaign {self._headline}", left_out(len(self.arms))
        return Table(("arm", "pulls", "cost cap"), rows, title=title, note=note).to_html()

    @property
    def _headline(self) -> str:
        """Name, status, policy and money in one line."""
        parts = {"held": self.held, "leased": self.leased, "left": self.left, "overrun": self.overrun}
        spent, budget, *others = amounts([self.spent, self.budget, *parts.values()])
        said = [f"{name} {text}" for name, text in zip(parts, others, strict=True) if parts[name] or name == "left"]
        return f"{self.name!r}, {self.status}, {self.policy}: spent {spent} of {budget}, {', '.join(said)}"

    @classmethod
    def read(cls, values: Mapping[str, Any]) -> Self:
        arms, segments = ArmInfo.read_all(values.get("arms", ())), values.get("segments", ())
        return super().read({**values, "arms": tuple(arms), "segments": tuple(segments)})


@dataclass(frozen=True)
class StandingInfo(Info):
    """How a campaign does: its standing in a word and the cause, and what is to be expected of it."""

    id: str
    campaign: str
    at: float
    """When it was read, in seconds since 1970."""
    standing: str
    cause: str
    needs_attention: bool
    spent: float
    left: float
    spent_24_hours: float
    rewards_24_hours: int
    reward_24_hours: float
    runs_out: Mapping[str, float | str | None] | None = None
    """When the money is likely to end: ``median``, ``low`` and ``high``, in seconds since 1970."""
    pace: Mapping[str, Any] | None = None
    """Against the plan: ``plan``, ``behind``, ``behind_share`` and ``verdict``; None without one."""
    last_decision_at: float | None = None
    last_feedback_at: float | None = None

    def to_dict(self) -> dict[str, Any]:
        """As the service has sent it."""
        return asdict(self)


@dataclass(frozen=True)
class KeyInfo(Info):
    """An API key without its secret; times are seconds since 1970."""

    prefix: str
    scopes: tuple[str, ...]
    created_at: float
    campaign: str | None = None
    """The name of the only campaign it is for; None for all."""
    name: str | None = None
    owner: str | None = None
    expires_at: float | None = None
    requests_per_second: float | None = None
    last_used_at: float | None = None
    """As of about a minute ago; None if never."""
    off: bool = False
    """Whether it is refused: it came back with a restored copy, and nobody has turned it on."""

    @classmethod
    def read(cls, values: Mapping[str, Any]) -> Self:
        return super().read({**values, "scopes": tuple(values["scopes"])})


@dataclass(frozen=True)
class WebhookInfo(Info):
    """An address that is notified of campaigns."""

    id: str
    url: str
    campaign: str | None
    """The name of the only campaign it is for; None for all."""
    created_at: float
    waiting: int = 0
    """Notifications that it has not accepted yet ..."""
    tries: int = 0
    """... and how often one of them was tried."""
    tried_at: float | None = None
    """When a notification was last sent to it, in seconds since 1970 ..."""
    problem: str | None = None
    """... and why it was not accepted, if it was not."""
    off: bool = False
    """Whether nothing is sent: it came back with a restored copy, and nobody has turned it on."""
    secret: str = field(default="", repr=False)
    """What notifications are signed with; only the answer that makes a webhook has it."""


@dataclass(frozen=True)
class AccountInfo(Info):
    """The money of a shared budget, or of a campaign of it, in the user's unit."""

    name: str
    budget: float
    spent: float
    held: float
    leased: float
    left: float
    overrun: float


@dataclass(frozen=True)
class MemberInfo(AccountInfo):
    """A campaign of a shared budget, and its own money."""

    id: str
    status: str


@dataclass(frozen=True)
class SharedBudgetInfo(AccountInfo):
    """A budget over several campaigns; its money is that of all of them together."""

    created_at: float
    currency: str | None = None
    period: str | None = None
    period_budget: float | None = None
    unspent: str = "lapse"
    time_zone: str | None = None
    unreported: int = 0
    """Campaigns that were restored from a copy and have not said what they have spent since."""
    campaigns: tuple[MemberInfo, ...] = ()
    """Empty in a list of shared budgets."""

    @classmethod
    def read(cls, values: Mapping[str, Any]) -> Self:
        members = MemberInfo.read_all(values.get("campaigns", ()))
        return super().read({**values, "campaigns": tuple(members)})


def _state(arm: ArmInfo) -> str:
    """Notes on an arm: retired, failed, down, cooling down."""
    said = [] if arm.active else ["retired"]
    said += [f"{arm.failures:,} failed"] if arm.failures else []
    said += ["down"] if arm.down_since is not None else ["cooling down"] if arm.cooldown_until is not None else []
    return f" ({', '.join(said)})" if said else ""
