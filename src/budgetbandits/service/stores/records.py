"""Rows of a store: campaigns, arms, decisions, leases, events, keys and rollups.

Rows are never changed, only replaced. ``frozen`` dataclasses would enforce that and take five times as long to make,
which is felt at every decision.

The fields of a row are columns of its table; `sql.rows` derives every list of columns from them. A new column is a
migration and a field with a default here.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from enum import IntEnum
from functools import cached_property
from operator import add, attrgetter
from typing import Any, Literal, NamedTuple, TypeVar

from budgetbandits.allocation.choosers import Kind
from budgetbandits.answers import EventKind, SharedEventKind
from budgetbandits.errors import BadParameter
from budgetbandits.service.ledger import NO_LIMITS, Account, Hold, Limits, to_micros
from budgetbandits.service.periods import Renewal
from budgetbandits.terms import Terms

END_OF_TIME = float(2**40)
"""Later than any decision, in seconds since 1970."""


@dataclass(frozen=True)
class CampaignSettings(Renewal):
    """The terms of a campaign, and what follows from its arms and its policy.

    cost_max        the largest cap, in micros
    chooser         the kind of chooser
    known           what the policy knows beforehand, the arguments of its `Knowledge`
    own_scales      whether an arm's costs are learned as shares of its own cap
    policy_version  the version of the package's policies that it plays
    policy_code     the fingerprint of its policy's code, if that is of a plugin (`own_policies`)
    earlier         the settings before each change of terms, the first ones first
    change          what the change that led to them has changed, each with the value before and after: terms, name,
                    policy, and in micros the budget and caps, by the numbers of the arms
    archived_before decisions made before this time, in seconds since 1970, take no more feedback once their holds are
                    resolved: they leave for the archive
    restored_from   the time of the copy that the store was restored from, until an operator has said what was spent
                    since; None for most
    """

    terms: Terms
    cost_max: int
    chooser: Kind
    known: Mapping[str, Any] = field(default_factory=dict)
    own_scales: bool = False
    policy_version: int = 1
    policy_code: str | None = None
    earlier: tuple[CampaignSettings, ...] = ()
    change: Mapping[str, Any] = field(default_factory=dict)
    archived_before: float = 0.0
    restored_from: float | None = None

    @property
    def being_deleted(self) -> bool:
        """Whether the deletion of the campaign has begun."""
        return self.archived_before == END_OF_TIME

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> CampaignSettings:
        """The settings that `to_dict` has written; ValueError for anything else."""
        try:
            terms = Terms(**values["terms"]).checked()
            earlier = tuple(cls.from_dict(version) for version in values.get("earlier", ()))
            return cls(**{**values, "terms": terms, "earlier": earlier})
        except (BadParameter, LookupError, TypeError, AttributeError) as error:
            raise ValueError(str(error) or type(error).__name__) from error

    def to_dict(self) -> dict[str, Any]:
        """The settings as JSON, without terms that have no value."""
        terms = {name: value for name, value in vars(self.terms).items() if value is not None}
        values = {attribute.name: getattr(self, attribute.name) for attribute in fields(self)}
        return {**values, "terms": terms, "earlier": [version.to_dict() for version in self.earlier]}

    @cached_property
    def lease(self) -> int | None:
        """The money of a lease, in micros; None if the campaign does not lease."""
        return None if self.terms.lease is None else to_micros(self.terms.lease, "lease")

    @cached_property
    def daily_cap(self) -> int | None:
        """The daily cap in micros; None without one."""
        return None if self.terms.daily_cap is None else to_micros(self.terms.daily_cap, "daily_cap")

    @property
    def versions(self) -> tuple[CampaignSettings, ...]:
        """The settings from the beginning and after each change of terms, the present ones last."""
        return (*self.earlier, replace(self, earlier=()))

    @property
    def day_zone(self) -> str | None:
        """The time zone of the days that are counted; None for UTC."""
        return None if self.terms.daily_cap is None else self.terms.time_zone

    def limits(self, created_at: float) -> Limits:
        """How fast the campaign may spend."""
        pace_seconds = self.terms.pace_seconds
        if self.daily_cap is None and pace_seconds is None:
            return NO_LIMITS
        return Limits(self.daily_cap, pace_seconds, created_at, self.cost_max, self.day_zone)

    @property
    def caps_changed(self) -> dict[int, tuple[int, int]]:
        """The caps that the change has changed, before and after, by the numbers of the arms."""
        return {int(arm): (before, after) for arm, (before, after) in self.change.get("caps", {}).items()}

    def cost_scale(self, cap: int) -> int:
        """The cost that is 1 to the policy, for an arm with this cap: the cap, or the largest of all arms."""
        return cap if self.own_scales else self.cost_max


@dataclass(slots=True)
class Campaign:
    """A budget, a policy, and what the policy has learned that does not belong to one arm."""

    id: str
    name: str
    policy: str
    account: Account
    created_at: float
    settings: CampaignSettings
    learned: dict[str, Any] = field(default_factory=dict)

    @property
    def tag(self) -> str:
        """The tag of its latest change (`service.session_rows`)."""
        return str(self.learned["changes"][0][0])

    def with_money(self, account: Account) -> Campaign:
        """This campaign with another account; `dataclasses.replace` takes seven times as long."""
        return Campaign(self.id, self.name, self.policy, account, self.created_at, self.settings, self.learned)

    def with_learned(self, learned: dict[str, Any]) -> Campaign:
        """The campaign with this state of the policy."""
        return Campaign(self.id, self.name, self.policy, self.account, self.created_at, self.settings, learned)


@dataclass(slots=True)
class ArmRow:
    """One arm: its number in the campaign, its cost cap, and what was learned about it."""

    campaign: str
    number: int
    name: str
    cost_cap: int
    learned: dict[str, Any] = field(default_factory=dict)
    active: bool = True


@dataclass(slots=True)
class DecisionRow:
    """One decision and the hold behind it."""

    id: str
    campaign: str
    arm: int
    hold: Hold
    key: str
    """Its idempotency key."""
    request_digest: str
    """Digest of the request: the same key with another digest is a conflict."""
    created_at: float
    expires_at: float
    cost: int | None = None
    reward: float | None = None
    lease: str | None = None
    """The lease it was made under, if any; the lease may have ended since."""
    request: str | None = None
    """The request as it was before its arm was chosen, as JSON (`request.ResolvedRequest`); None for most."""
    propensity: float | None = None
    """The probability of this choice, where that was recorded."""
    failed: bool = False
    """Whether a failure was reported: the call got no answer."""

    def with_feedback(self, hold: Hold, cost: int | None, reward: float | None) -> DecisionRow:
        """The decision with this feedback."""
        row = copied(self)
        row.hold, row.cost, row.reward = hold, cost, reward
        return row


@dataclass(slots=True)
class Lease:
    """Money that a server decides with by itself. A lease that has ended has no row, only events."""

    id: str
    campaign: str
    account: Account
    """Its budget is the amount of the lease."""
    expires_at: float
    """When any server may end it."""
    lease_seq: int = 0
    """Number of its latest event among its own."""
    merged_seq: int = 0
    """Number of the latest of these events that the campaign has learned from."""
    digest: str = ""
    """Digest of all its events: leases with equal digests have seen the same events."""

    def with_money(self, account: Account) -> Lease:
        """The lease with this account."""
        lease = copied(self)
        lease.account = account
        return lease


RowT = TypeVar("RowT", DecisionRow, Lease)
_values = {row: attrgetter(*(attribute.name for attribute in fields(row))) for row in (DecisionRow, Lease)}


def copied(row: RowT) -> RowT:
    """A copy for the caller to change before anybody else has it; `dataclasses.replace` takes three times as long."""
    kind = type(row)
    return kind(*_values[kind](row))


EVENTS: dict[EventKind | SharedEventKind, str] = {
    "created": "The campaign or the shared budget was created; `amount` is its budget.",
    "topped up": "Money was added: `amount`.",
    "renewed": "A new period began; `amount` is what the budget grew by.",
    "lapsed": "A decision of another period gave back money of the shared budget, which grew by `amount`, below 0.",
    "arm added": "An `arm` was added; `amount` is its cap.",
    "arm retired": "An `arm` was retired.",
    "arm brought back": "A retired `arm` was brought back.",
    "terms changed": "Terms, name, policy, budget or caps changed; a shared budget grew by `amount`.",
    "decided": "A `decision` for an `arm`; `amount` is held.",
    "settled": "The cost of a `decision` was reported: `amount`, perhaps with its `reward`.",
    "rewarded": "The `reward` of a `decision` was reported apart from its cost.",
    "failed": "A `decision` was reported as failed; its cost is an event of its own.",
    "voided": "A `decision` was taken back, and its hold freed.",
    "expired": "A hold came to its end without feedback; `amount` was charged.",
    "active": "The campaign was resumed.",
    "paused": "The campaign was paused.",
    "frozen": "A cost overran by `amount`, which froze the campaign.",
    "closed": "The campaign was closed.",
    "clock reset": "Days and periods were set back to the present after a clock was ahead.",
    "leased": "A server took a lease of `amount`.",
    "merged": "What a server decided with its lease was added to the campaign; `amount` is what the lease has then.",
    "returned": "A lease ended.",
    "archived": "What was before the time `amount`, in seconds since 1970, left for the archive.",
    "pruned": "That was archived; the event has digests of the archive's files and of the checkpoint.",
    "restored": "The store was restored from a copy; a campaign that ran was paused.",
    "spent elsewhere": "What was spent after the copy that was restored, as an operator said: `amount`.",
    "joined": "A campaign became a member of the shared budget; `amount` is what it had spent.",
    "left": "A campaign left the shared budget; `amount` is what it had spent.",
}
"""Descriptions of the kinds of events."""


@dataclass(slots=True)
class Event:
    """Something that happened to a campaign's money or knowledge; never changed, never deleted."""

    campaign: str
    kind: EventKind | SharedEventKind
    at: float
    decision: str | None = None
    arm: int | None = None
    amount: int | None = None
    reward: float | None = None
    lease: str | None = None
    """Lease of the event; a campaign's own events have none."""
    lease_seq: int | None = None
    """Number of the event among those of that lease."""
    actor: str | None = None
    """Who did it: an operator, or the worker who reported a cost, a reward or a failure; None if nobody is known."""
    request: str | None = None
    """Request of a decision, as in its row."""
    propensity: float | None = None
    """Propensity of a decision, as in its row."""
    shared_left: int | None = None
    """Money that the shared budget had left for this decision, cost or lease, if that was less than the campaign's
    own."""
    seq: int = 0
    """Given by the store; the campaign's own events, and those of one lease, are in the order of commits."""


LEASE_MILESTONES = ("leased", "merged", "returned")
"""Events of a lease that are the campaign's own as well: the campaign is locked for them."""


class LeaseEvent(NamedTuple):
    """An event of a lease, with what is known about its decision now."""

    event: Event
    cost: int | None = None
    reward: float | None = None
    request: str | None = None
    made_at: float | None = None


@dataclass(frozen=True)
class Key:
    """An API key as it is kept: its public prefix, a digest of its secret, and its scopes."""

    prefix: str
    digest: str
    scopes: tuple[str, ...]
    created_at: float
    campaign: str | None = None
    """The only campaign it is for; None for all."""
    name: str | None = None
    """Purpose of the key, in the words of its author."""
    owner: str | None = None
    """Owner of the key."""
    expires_at: float | None = None
    """Time from which the key is refused; None for never."""
    requests_per_second: float | None = None
    """How many requests a server takes from it; None for any number."""
    last_used_at: float | None = None
    """Time of the last use, as of a minute ago; None if never."""
    off: bool = False
    """Whether it is refused: it came back with a restored copy, and no operator has turned it on."""

    def expired(self, now: float) -> bool:
        """Whether the key has expired."""
        return self.expires_at is not None and now >= self.expires_at


@dataclass(frozen=True)
class KeyEvent:
    """A key was made or dropped, or turned off by a restore, or on again."""

    kind: Literal["made", "dropped", "turned off", "turned on"]
    prefix: str
    scopes: tuple[str, ...]
    campaign: str | None
    """The id of the only campaign it is for; None for all."""
    at: float
    actor: str | None
    """Who did it; None where that is not known."""
    operation: str | None = None
    """The idempotency key of the form that asked for it."""
    seq: int = 0
    """Given by the store."""


@dataclass(slots=True)
class Counts:
    """Events of an arm in the minute, hour or day that begins then; the counts are named after kinds of events.

    A failure is an event of its own, next to that of its cost, so failures are counted apart: the prices of an arm are
    those of the decisions that it has answered.
    """

    begins: int
    arm: int
    decided: int = 0
    costs_reported: int = 0
    rewards_reported: int = 0
    voided: int = 0
    expired: int = 0
    overruns: int = 0
    cost: int = 0
    spent: int = 0
    overrun: int = 0
    failed: int = 0
    failed_cost: int = 0
    requests_used: int = 0
    delay_10: int = 0
    delay_60: int = 0
    delay_300: int = 0
    reward: float = 0.0
    reward_squared: float = 0.0
    cost_squared: float = 0.0
    failed_cost_squared: float = 0.0

    @property
    def prices(self) -> tuple[int, int, float]:
        """The costs of answered decisions that are known: their number, their sum, and the sum of their squares."""
        return (
            self.costs_reported - self.failed, self.cost - self.failed_cost,
            self.cost_squared - self.failed_cost_squared,
        )  # fmt: skip

    def plus(self, other: Counts) -> Counts:
        """The sum of both, for the arm and the time of the first."""
        return Counts(self.begins, self.arm, *map(add, self.values(), other.values()))

    def values(self) -> tuple[Any, ...]:
        """The counts in order."""
        return _count_values(self)


COUNTS = tuple(attribute.name for attribute in fields(Counts))[2:]
"""The names of what is counted."""
_count_values = attrgetter(*COUNTS)


@dataclass(slots=True)
class Watermark:
    """How far a campaign's events have been rolled up, and when the latest of them happened."""

    seq: int = 0
    """All events up to this number are in the rollups."""
    last_decision_at: float | None = None
    last_feedback_at: float | None = None
    last_overrun_event: int | None = None
    """The number of the latest event that reported an overrun."""
    activity_seq: int = 0
    """The number of the latest event that the three times know of; it may be above ``seq`` while that waits for a
    lease."""
    oldest_unanswered_at: float | None = None
    """When the first decision was made since the latest feedback or voided decision; None without one."""
    minutes_from: int = 0
    """The latest time up to which rows of minutes have ever been forgotten: from here on all of them are kept."""

    def moved(
        self, seq: int, decision_at: float | None, feedback_at: float | None, overrun_event: int | None
    ) -> Watermark:
        """The watermark at a later event."""
        return replace(
            self, seq=seq, last_decision_at=_later(self.last_decision_at, decision_at),
            last_feedback_at=_later(self.last_feedback_at, feedback_at),
            last_overrun_event=_later(self.last_overrun_event, overrun_event),
        )  # fmt: skip


def _later(one: Any, other: Any) -> Any:
    return other if one is None or (other is not None and other > one) else one


Group = Literal["attention", "running", "stopped"]


class Rank(IntEnum):
    """The state of a campaign; the most urgent have the lowest number."""

    FROZEN = 0
    RESTORED = 1
    """Paused until it is said what was spent since the copy that the store was restored from."""
    EXHAUSTED = 2
    """The money is exhausted, for a day or less."""
    BLOCKED = 3
    SILENT = 4
    OVERRAN = 5
    """It was resumed a day ago or less, after an overrun."""
    DOWN = 6
    """An arm cools down because it failed many times in a row."""
    NEARLY_EXHAUSTED = 7
    RUNNING = 8
    PAUSED = 9
    SPENT = 10
    """Exhausted for longer."""
    CLOSED = 11

    @property
    def group(self) -> Group:
        """The group of the rank on the page."""
        return "attention" if self < Rank.RUNNING else "running" if self == Rank.RUNNING else "stopped"


@dataclass(slots=True)
class CampaignSummary:
    """A campaign as a list shows it; its times are as of a few seconds ago."""

    id: str
    name: str
    policy: str
    account: Account
    created_at: float
    settings: CampaignSettings
    last_decision_at: float | None
    last_feedback_at: float | None
    oldest_unanswered_at: float | None
    """When the first decision was made since the latest feedback."""
    last_overrun_at: float | None
    spent_in_leases: int
    """Leased money that is spent and not merged yet."""
    held_in_leases: int
    """Leased money that open decisions hold."""
    free_in_leases: int
    """Most money that one lease has for a new decision."""
    rolled_up_until: float | None
    """When the first event happened that is in no rollup yet; None if all are."""
    rank: Rank
    arms_down: list[dict[str, Any]]
    """The arms that cool down because they failed many times in a row (`allocation.cooldowns`)."""
    arms: int = 0
    """Number of active arms."""
    smallest_cap: int = 0
    """Smallest cap of these arms; 0 if there are none."""
    largest_cap: int = 0
    shared_left: int | None = None
    """Money that its shared budget has left, if it has one."""

    @property
    def spent(self) -> int:
        """The spending, with that of leases that are not merged yet."""
        return self.account.spent + self.spent_in_leases

    @property
    def held(self) -> int:
        """Neither spent nor left for new decisions outside leases: open decisions and leases have it."""
        return self.account.open - self.spent_in_leases

    @property
    def left(self) -> int:
        """The money for new decisions outside leases: the smaller of its own and of what its shared budget has left."""
        return self.account.left if self.shared_left is None else min(self.account.left, self.shared_left)

    @property
    def short_of_shared(self) -> bool:
        """Whether its shared budget has less left than the campaign itself."""
        return self.left < self.account.left

    @property
    def decides_in_leases(self) -> bool:
        """Whether some lease has enough left for an arm."""
        return 0 < self.smallest_cap <= self.free_in_leases
