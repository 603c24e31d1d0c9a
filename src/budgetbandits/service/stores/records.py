"""What a store keeps: campaigns, their arms, decisions, leases, events and keys, as rows.

Rows are never changed, only replaced. Python could be told to see to that (``frozen``), and would take five times as
long to make one, which is felt at every decision.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple

from budgetbandits.service.ledger import Account, Hold


@dataclass(slots=True)
class Campaign:
    """A budget, a policy, and what the policy has learnt that is not one arm's."""

    id: str
    name: str
    policy: str
    account: Account
    created_at: float
    settings: dict[str, Any] = field(default_factory=dict)
    learned: dict[str, Any] = field(default_factory=dict)

    def with_money(self, account: Account) -> Campaign:
        """This campaign with another account; `dataclasses.replace` takes seven times as long."""
        return Campaign(self.id, self.name, self.policy, account, self.created_at, self.settings, self.learned)

    def with_learned(self, learned: dict[str, Any]) -> Campaign:
        return Campaign(self.id, self.name, self.policy, self.account, self.created_at, self.settings, learned)


@dataclass(slots=True)
class ArmRow:
    """One arm: its place in the campaign, what a pull may cost at most, and what is learnt of it."""

    campaign: str
    number: int
    name: str
    cost_cap: int
    learned: dict[str, Any] = field(default_factory=dict)
    active: bool = True


@dataclass(slots=True)
class Decision:
    """One decision and the hold behind it."""

    id: str
    campaign: str
    arm: int
    hold: Hold
    key: str
    payload: str
    """A digest of what was asked: the same key with another one is a conflict."""
    created_at: float
    expires_at: float
    cost: int | None = None
    reward: float | None = None
    lease: str | None = None
    """The lease it was made under, if any; it may have ended since."""
    request: str | None = None
    """What was said of the request before its arm was chosen, as JSON (`requests.Wanted`); most say nothing."""
    propensity: float | None = None
    """How likely this choice was, where that was recorded."""
    failed: bool = False
    """Whether it was told that there was no answer."""

    def told(self, hold: Hold, cost: int | None, reward: float | None) -> Decision:
        """This decision with what is known of it now."""
        return Decision(
            self.id, self.campaign, self.arm, hold, self.key, self.payload, self.created_at, self.expires_at,
            cost, reward, self.lease, self.request, self.propensity, self.failed,
        )  # fmt: skip


@dataclass(slots=True)
class Lease:
    """Money that a server decides with by itself. One that has ended has no row: the events tell of it."""

    id: str
    campaign: str
    account: Account
    """Its budget is the amount of the lease."""
    expires_at: float
    """When anybody may end it."""
    turn: int = 0
    """How many events it has had ..."""
    merged: int = 0
    """... how many of them the campaign has learnt from ..."""
    tag: str = ""
    """... and a digest of them all: who has the same digest knows the same."""


@dataclass(slots=True)
class Event:
    """Something that happened to a campaign's money or knowledge; never changed, never deleted."""

    campaign: str
    kind: str
    at: float
    decision: str | None = None
    arm: int | None = None
    amount: int | None = None
    reward: float | None = None
    lease: str | None = None
    """The lease that it happened to; a campaign's own events have none ..."""
    turn: int | None = None
    """... and its number among the events of that lease."""
    actor: str | None = None
    """Who did it, if an operator did."""
    request: str | None = None
    """Of a decision: as in its row ..."""
    propensity: float | None = None
    """... and so is this."""
    seq: int = 0
    """Given by the store; events of the campaign's own, and those of one lease, are in the order of commits."""


OWN = ("leased", "merged", "returned")
"""Events of a lease that are the campaign's own as well: it is locked for them."""


class LeaseEvent(NamedTuple):
    """An event of a lease, with what is known of its decision now."""

    event: Event
    cost: int | None = None
    reward: float | None = None
    request: str | None = None
    made_at: float | None = None


@dataclass(frozen=True)
class Key:
    """An API key as it is kept: its public prefix, a digest of its secret, and what it may do."""

    prefix: str
    digest: str
    scopes: tuple[str, ...]
    created_at: float
    campaign: str | None = None
    """The only campaign it is for; None for all."""
