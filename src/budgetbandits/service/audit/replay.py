"""The campaign as its events make it, one after the other.

Events that have a lease are replayed in that lease: its own money and what is known under it. Where it is merged or
ended the campaign learns from them too. Events of one lease, and those of the campaign's own, are numbered in the order
of their commits, and what is about both in that of both; so one pass in the order of numbers is right, however the
events of different leases are mixed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

from pydantic_core import from_json

from budgetbandits.errors import BudgetBanditsError, Disagreement
from budgetbandits.service import ledger
from budgetbandits.service.audit.open_decisions import OpenDecision, OpenDecisions
from budgetbandits.service.campaign_session import CampaignSession, Pull
from budgetbandits.service.funds import within_limits
from budgetbandits.service.grants import grant_of
from budgetbandits.service.leases import lending
from budgetbandits.service.leases.leases import digest, learn_all
from budgetbandits.service.ledger import NO_LIMITS, Account, Hold, Limits
from budgetbandits.service.periods import Grant
from budgetbandits.service.request import ResolvedRequest
from budgetbandits.service.shared_budgets.rules import capped, charged, uncapped
from budgetbandits.service.stores.contract import UNREADABLE, T
from budgetbandits.service.stores.records import ArmRow, Campaign, Event, Lease, LeaseEvent


@dataclass
class _ReplayedLease:
    """A lease as its events make it."""

    lease: Lease
    session: CampaignSession
    campaign: Account
    """The campaign's money when it was merged, with no more left than its shared budget had."""
    events: list[LeaseEvent] = field(default_factory=list)
    """The events that the campaign learns from when it is merged: choices that leave traces, failures, feedback."""


@dataclass
class Replay:
    """A campaign's money and session, its open leases and decisions."""

    row: Campaign
    arms: list[ArmRow]
    session: CampaignSession
    open: OpenDecisions
    account: Account = field(default_factory=lambda: Account(0))
    finished: dict[str, OpenDecision] = field(default_factory=dict)
    """Decisions that are final, since this was cleared last."""
    booked: Counter[int] = field(default_factory=Counter)
    """Micros that the decisions of each quarter of an hour hold and were charged: days begin with one, in any zone."""
    leases: dict[str, _ReplayedLease] = field(default_factory=dict)
    """Replayed leases by id."""
    changed: tuple[OpenDecision | None, OpenDecision] | None = None
    """The decision that an event was about, before it and after it, since this was cleared last."""
    version: int = 0
    """How many changes of terms there have been."""
    closed_before: float = 0.0
    """Decisions made before this time take no more feedback once their holds are resolved."""
    archived_up_to: float = 0.0
    """The latest such time there was: decisions made before it may have left."""
    restored: bool | None = False
    """Whether it waits to hear what was spent since a copy; None while that is not known."""
    grants: list[Grant] = field(default_factory=list)
    """Grants of periods that were not taken back."""

    def __post_init__(self) -> None:
        self._versions = self.row.settings.versions
        settings, policy = self._versions[self.version], policy_at(self.row, self.version)
        self.row = replace(self.row, settings=settings, policy=policy)
        self._handlers: dict[str, Callable[[Event], None]] = {
            "created": self._created,
            "topped up": self._topped_up,
            "renewed": self._renewed_budget,
            "arm added": self._arm_added,
            "arm retired": self._arm_retired,
            "arm brought back": self._arm_brought_back,
            "terms changed": self._terms_changed,
            "decided": self._decided,
            "settled": self._settled,
            "rewarded": self._rewarded,
            "failed": self._failed,
            "voided": self._voided,
            "expired": self._expired,
            "clock reset": self._reset_clock,
            "leased": self._leased,
            "merged": self._merged,
            "returned": self._returned,
            "archived": self._archived,
            "pruned": self._pruned,
            "restored": self._restored,
            "spent elsewhere": self._spent_elsewhere,
        }

    def apply(self, event: Event) -> str | None:
        """Repeat an event; the reason if it cannot have happened."""
        try:
            if event.lease is not None and event.kind != "leased":
                self._turn(event)
            self._handlers.get(event.kind, self._status)(event)
        except (BudgetBanditsError, *UNREADABLE) as error:
            return f"event {event.seq} ({event.kind}) cannot have happened: {error}"
        return None

    def _created(self, event: Event) -> None:
        self.account = Account(_known(event.amount), period=self.row.settings.period_of(event.at))
        facts = from_json(event.request or "{}")
        if "history" in facts:
            self.session.add_history(facts["history"])

    def _topped_up(self, event: Event) -> None:
        self.account = ledger.top_up(self.account, _known(event.amount))
        self.session.set_budget(self.account.budget)

    def _renewed_budget(self, event: Event) -> None:
        account = self.row.settings.renewed(self.account, event.at)
        _expect(account is not None, "no period had begun")
        assert account is not None
        granted, expected = self.row.settings.grant(self.account, account), grant_of(event)
        _expect(granted == expected, f"it would have been {granted}, not {expected}")
        self.grants.append(granted)
        self.account = account
        self.session.set_budget(account.budget)

    def _arm_added(self, event: Event) -> None:
        self.session.add(self.arms[_known(event.arm)].name, _known(event.amount))

    def _arm_retired(self, event: Event) -> None:
        self.session.retire(_known(event.arm))

    def _arm_brought_back(self, event: Event) -> None:
        self.session.bring_back(_known(event.arm))

    def _terms_changed(self, event: Event) -> None:
        _expect(self.changes_untold > 0, "the row knows of no such change")
        self.version += 1
        before, settings = self.row.settings, self._versions[self.version]
        change = settings.change
        _expect(from_json(_known(event.request)) == change, f"the row knows of another change, {change}")
        if "budget" in change:
            self.account = ledger.set_budget(self.account, change["budget"][1])
        if settings.day_zone != before.day_zone and self.account.day <= ledger.day_of(event.at, before.day_zone):
            self._set_day(event.at, settings.day_zone)
        self.account = replace(self.account, period=settings.period_after(before, self.account, event.at))
        _, policy = change.get("policy", (None, self.row.policy))
        self.row = replace(self.row, settings=settings, policy=policy, account=self.account)
        self.session = self.session.changed(self.row)

    def _set_day(self, now: float, zone: str | None) -> None:
        """Count what the decisions of this day hold and were charged."""
        day = ledger.day_of(now, zone)
        if day < self.archived_up_to:  # some of that day may have been archived
            booked = ledger.booked_at_most(self.account)
        else:
            begin, end = (int(at // ledger.QUARTER) for at in (day, ledger.next_day(now, zone)))
            booked = sum(self.booked[quarter] for quarter in range(begin, end))
        self.account = ledger.set_day(self.account, day, booked)

    def _status(self, event: Event) -> None:
        self.account = replace(self.account, status=event.kind)  # type: ignore[arg-type]

    def _reset_clock(self, event: Event) -> None:
        zone = self.row.settings.day_zone
        if self.account.day > ledger.day_of(event.at, zone):  # or only pending decisions were given less time
            self._set_day(event.at, zone)
        self.account = self.row.settings.set_back(self.account, event.at, self.grants)
        self.grants = [grant for grant in self.grants if grant.begun <= event.at]
        self.session.set_budget(self.account.budget)
        self.session.cooldowns.reset_clock(event.at)

    def _restored(self, event: Event) -> None:
        self.restored = True
        if self.account.status == "active":
            self.account = replace(self.account, status="paused")

    def _spent_elsewhere(self, event: Event) -> None:
        self.restored = False
        self.account = charged(self.account, _known(event.amount), event.shared_left)

    def _archived(self, event: Event) -> None:
        """The amount is the time from which on decisions still take feedback."""
        self.closed_before = ledger.to_units(_known(event.amount))
        self.archived_up_to = max(self.archived_up_to, self.closed_before)
        for id in [
            id for chunk in self.open.chunks() for id, open_decision in chunk.items() if self._final(open_decision)
        ]:
            self.finished[id] = self.open.take(id)

    def _pruned(self, event: Event) -> None:
        """Nothing changes: its digests are compared with the checkpoint's (`checkpoint.unconfirmed`)."""

    def _final(self, known: OpenDecision) -> bool:
        """Whether no more feedback can come."""
        return known.final or (known.created_at < self.closed_before and known.hold.state != "pending")

    # --- decisions, of the campaign's own or under a lease -------------------------------------------------------

    def _decided(self, event: Event) -> None:
        id, amount, lent = _known(event.decision), _known(event.amount), self._lease(event)
        if lent is not None:
            _expect(lent.lease.account.left >= lent.session.largest_cap, "a lease decides only if it can pay every arm")
            lent.events.append(LeaseEvent(event))
        limits = self._choose_again(event, lent)
        self._session(event).cooldowns.record_ask(_known(event.arm), event.at)
        if lent is None:
            _expect(self.row.settings.renewed(self.account, event.at) is None, "a new period had begun")
            account, hold = ledger.place(self.account, amount, event.at, limits)
        else:
            account, hold = lending.place(lent.lease.account, amount)
        self._book(event, account, event.at)
        self.booked[int(hold.placed_at // ledger.QUARTER)] += hold.booked
        open_decision = OpenDecision(
            hold, _known(event.arm), request=event.request, propensity=event.propensity, created_at=event.at
        )
        self.open.put(id, open_decision)
        self.changed = None, open_decision

    def _choose_again(self, event: Event, lent: _ReplayedLease | None) -> Limits:
        """The choice that the event tells of, made again: the same arm, the same hold, as likely. Returns the limits of
        its hold."""
        session, request = self._session(event), ResolvedRequest.from_json(event.request)
        account, leased = capped(self.account, event.shared_left), None
        left = account.left
        if lent is not None:
            account, leased, left = lent.campaign, lent.lease.account, lent.lease.account.left
        offer = session.offer(request, event.at, left)
        if offer is None:
            raise Disagreement("no arm could be paid")
        limits = NO_LIMITS
        if lent is None:
            offer, limits = within_limits(session, offer, self.row, self.account, event.at)
        choice = _known(session.choose(offer, account, leased, _known(event.decision)))
        _expect(choice.arm == event.arm, f"the policy would have chosen arm {choice.arm}, not {event.arm}")
        _expect(choice.hold == event.amount, f"the decision would have held {choice.hold}, not {event.amount}")
        likely, written = choice.propensity, [] if request is None else request.unavailable or []
        _expect(likely == event.propensity, f"the propensity would have been {likely}, not {event.propensity}")
        unavailable = choice.unavailable
        _expect(unavailable == written, f"the arms {unavailable} could not have been chosen, not {written}")
        return limits

    def _settled(self, event: Event) -> None:
        def settle(known: OpenDecision) -> OpenDecision:
            cost, cap = _known(event.amount), int(self.session.caps[_known(event.arm)])
            before = self._account(event)
            account, hold = ledger.settle(capped(before, event.shared_left), known.hold, cost, cap)
            self._book(event, uncapped(account, before), known.created_at)
            return replace(known, hold=hold, cost=cost, reward=known.reward if event.reward is None else event.reward)

        self._tell(event, settle)

    def _rewarded(self, event: Event) -> None:
        self._tell(event, lambda known: replace(known, reward=_known(event.reward)))

    def _failed(self, event: Event) -> None:
        open_decision = self._change(event, lambda open_decision: replace(open_decision, failed=True))
        _expect(open_decision.reward is None, "what failed has no reward")
        lent = self._lease(event)
        self._session(event).cooldowns.record_failure(_known(event.arm), event.at, open_decision.created_at)
        if lent is not None:
            lent.events.append(LeaseEvent(event, made_at=open_decision.created_at))

    def _tell(self, event: Event, tell: Callable[[OpenDecision], OpenDecision]) -> None:
        open_decision = self._change(event, tell)
        _expect(open_decision.reward is None or not open_decision.failed, "what failed has no reward")
        if open_decision.cost is None or open_decision.failed:
            return
        lent = self._lease(event)
        id, arm, made_at = _known(event.decision), _known(event.arm), open_decision.created_at
        pull = Pull(id, arm, open_decision.reward, open_decision.cost, open_decision.request, made_at)
        self._session(event).record_feedback(pull, event)
        if lent is not None:
            lent.events.append(
                LeaseEvent(event, open_decision.cost, open_decision.reward, open_decision.request, made_at)
            )

    def _voided(self, event: Event) -> None:
        self._resolve(event, ledger.void)

    def _expired(self, event: Event) -> None:
        self._resolve(event, partial(ledger.expire, charge=self.row.settings.terms.on_expire == "charge"))

    def _resolve(self, event: Event, resolve: Callable[[Account, Hold], tuple[Account, Hold]]) -> None:
        """End the hold of the event's decision without feedback."""

        def change(known: OpenDecision) -> OpenDecision:
            account, hold = resolve(self._account(event), known.hold)
            self._book(event, account, known.created_at)
            return replace(known, hold=hold)

        self._change(event, change)

    def _change(self, event: Event, change: Callable[[OpenDecision], OpenDecision]) -> OpenDecision:
        """Change what is known of the event's decision, which must be open."""
        id = _known(event.decision)
        try:
            before = self.open.take(id)
        except KeyError:
            raise KeyError(f"decision {id} is not open") from None
        after = before
        try:
            after = change(before)
        finally:
            self.changed = before, after
            self.booked[int(before.hold.placed_at // ledger.QUARTER)] += after.hold.booked - before.hold.booked
            if self._final(after):
                self.finished[id] = after
            else:
                self.open.put(id, after)
        return after

    def _lease(self, event: Event) -> _ReplayedLease | None:
        return None if event.lease is None else self.leases[event.lease]

    def _session(self, event: Event) -> CampaignSession:
        lent = self._lease(event)
        return self.session if lent is None else lent.session

    def _account(self, event: Event) -> Account:
        lent = self._lease(event)
        return self.account if lent is None else lent.lease.account

    def _book(self, event: Event, account: Account, created_at: float) -> None:
        lent = self._lease(event)
        if lent is None:
            before, freed = self.account, self.account.taken - account.taken
            self.account = self.row.settings.given_back(account, freed, created_at, event.at)
            if self.account.budget != before.budget:
                self.session.set_budget(self.account.budget)
        else:
            _expect(account.overrun == 0, "an overrun under a lease")
            lent.lease = replace(lent.lease, account=account)

    # --- leases --------------------------------------------------------------------------------------------------

    def _turn(self, event: Event) -> None:
        lent = self.leases.get(_known(event.lease))
        if lent is None:
            raise KeyError(f"there is no lease {event.lease}")
        turn, before = _known(event.lease_seq), lent.lease.lease_seq
        _expect(turn == before + 1, f"turn {turn} of the lease after turn {before}")
        lent.lease = replace(lent.lease, lease_seq=turn, digest=digest(lent.lease.digest, event))

    def _leased(self, event: Event) -> None:
        id = _known(event.lease)
        _expect(id not in self.leases, "the lease is there already")
        self.account, lent = lending.lend(self.account, _known(event.amount))
        self.leases[id] = _ReplayedLease(Lease(id, self.row.id, lent, event.at, 0), self.session, self.account)
        self._turn(event)
        self._renewed(event, lent)

    def _merged(self, event: Event) -> None:
        lent = self.leases[_known(event.lease)]
        self.account, account = lending.merge(self.account, lent.lease.account)
        self.account, account = lending.resize(self.account, account, _known(event.amount))
        learn_all(self.session, lent.events)
        self._renewed(event, account)

    def _renewed(self, event: Event, account: Account) -> None:
        """The lease of this account, knowing what the campaign knows."""
        lent = self.leases[_known(event.lease)]
        ends = event.at + self.row.settings.terms.lease_seconds
        lease = replace(lent.lease, account=account, expires_at=ends, merged_seq=_known(event.lease_seq))
        session, seen = self.session.copy(lease.digest), capped(self.account, event.shared_left)
        session.set_remaining(seen)
        self.leases[lease.id] = _ReplayedLease(lease, session, seen)

    def _returned(self, event: Event) -> None:
        lent = self.leases.pop(_known(event.lease))
        self.account = lending.give_back(self.account, lent.lease.account)
        learn_all(self.session, lent.events)

    @property
    def changes_untold(self) -> int:
        """Changes of terms that the row knows of and no event records."""
        return len(self._versions) - 1 - self.version


def policy_at(row: Campaign, version: int) -> str:
    """The policy of a campaign after this many changes of terms."""
    changes = [
        settings.change["policy"] for settings in row.settings.versions[version + 1 :] if "policy" in settings.change
    ]
    return str(changes[0][0]) if changes else row.policy


def first_caps(row: Campaign, arms: Sequence[ArmRow]) -> list[int]:
    """The caps that these arms began with."""
    caps = [arm.cost_cap for arm in arms]
    for settings in reversed(row.settings.versions):
        for arm, (before, _) in settings.caps_changed.items():
            if arm < len(caps):
                caps[arm] = before
    return caps


def _expect(agrees: bool, otherwise: str) -> None:
    if not agrees:
        raise Disagreement(otherwise)


def _known(value: T | None) -> T:
    if value is None:
        raise Disagreement("the event lacks a number")
    return value
