"""Where the money of a decision and the session that chooses come from: the campaign, or a lease (`leases`).

`Funds.decide` names an arm and holds its cost cap, or what the request says; `book` and `fail` write down what became
of a decision. Which rows are written depends on whose money it is.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import replace

from budgetbandits.errors import HoldRefused
from budgetbandits.service import ledger
from budgetbandits.service.campaign_session import CampaignSession, Choice, Offer
from budgetbandits.service.choices_ahead import ChoicesAhead, inputs_of, is_long
from budgetbandits.service.ledger import Account, Hold, Limits
from budgetbandits.service.request import ResolvedRequest
from budgetbandits.service.session_cache import SessionCache
from budgetbandits.service.shared_budgets.members import in_period, lapse, shared_left
from budgetbandits.service.shared_budgets.rules import SharedBudget, capped
from budgetbandits.service.stores.contract import Transaction
from budgetbandits.service.stores.records import Campaign, DecisionRow, Event
from budgetbandits.validation import RequestOptions


class Funds(ABC):
    """Money, and the session that learns from what it is spent on.

    row       the campaign; only what never changes is sure to be true
    account   the money
    session   None until it is needed
    lease_id  the lease that lends the money, if any
    """

    row: Campaign
    account: Account
    session: CampaignSession | None
    lease_id: str | None = None
    _shared_left: int | None = None
    """Money that the shared budget had left for the latest decision, if that was less than the campaign's own."""

    def __init__(self, tx: Transaction, row: Campaign) -> None:
        self._tx, self.row, self.session = tx, row, None

    def decide(
        self,
        now: float,
        key: str,
        request_digest: str,
        options: RequestOptions | None = None,
        ahead: ChoicesAhead | None = None,
    ) -> DecisionRow:
        """Choose an arm, hold its cost cap or what the request says, and write both down; or refuse. Where a choice
        takes long it is taken from those ``ahead``, unless there is None."""
        choice, hold, now = self._choose(now, options, ahead)
        id, arm, row = choice.id, choice.arm, self.row
        expires_at = now + row.settings.terms.hold_seconds
        decision = DecisionRow(
            id, row.id, arm, hold, key, request_digest, now, expires_at, None, None, self.lease_id, choice.request,
            choice.propensity,
        )  # fmt: skip
        self._tx.add_decision(decision)
        event = Event(row.id, "decided", now, id, arm, hold.amount)
        event.request, event.propensity, event.shared_left = choice.request, choice.propensity, self._shared_left
        self.add_event(event)
        return decision

    @abstractmethod
    def _choose(
        self, now: float, options: RequestOptions | None, ahead: ChoicesAhead | None
    ) -> tuple[Choice, Hold, float]:
        """The choice, its hold and its time, or the refusal."""

    @abstractmethod
    def cap(self, decision: DecisionRow) -> int:
        """The most that a decision's arm may cost; what it holds, if more is not known here."""

    def pays(self, decision: DecisionRow, cost: int) -> bool:
        """Whether this cost of a decision whose hold is pending here can be booked here, and is no overrun."""
        above = cost - decision.hold.amount
        return above <= 0 or (above <= self.spendable.left and cost <= self.cap(decision))

    def shared_left(self) -> int | None:
        """The money that the shared budget has left, if that is less than what the campaign has left."""
        return None

    @property
    def spendable(self) -> Account:
        """The account with no more left than the shared budget has."""
        left = self.shared_left()
        return self.account if left is None else capped(self.account, left)

    @abstractmethod
    def add_event(self, event: Event) -> None:
        """Write down an event of this money."""

    @abstractmethod
    def book(self, account: Account, event: Event, created_at: float, decision: DecisionRow | None = None) -> None:
        """Write the money and the event, which is about a decision that was made at ``created_at``. With the decision,
        its cost is new or its reward and cost are both known now."""

    @abstractmethod
    def fail(self, account: Account, failure: Event, cost: Event | None, created_at: float) -> None:
        """Write the money, the failure of a decision that was made at ``created_at``, and then its cost if that is new:
        a decision that is settled after it failed has not answered."""


def affordable_arms(
    session: CampaignSession,
    campaign: Campaign,
    now: float,
    request: ResolvedRequest | None = None,
    shared: SharedBudget | None = None,
) -> Offer:
    """The arms that a campaign's money can be spent on now, and that of its shared budget; or the refusal."""
    account, terms = campaign.account, campaign.settings.terms
    left = account.left if shared is None else min(account.left, shared.account.left)
    offer = session.offer(request, now, left)
    if offer is None:
        holds, allowed = session.holds(request)
        if shared is not None and left < account.left:
            shared.refuse(int(holds[allowed].min()), now)
        try:
            ledger.place(account, int(holds[allowed].min()))  # always refuses, with the reason
        except HoldRefused as refused:
            if refused.reason != "exhausted" or terms.period is None:
                raise
            text = f"the budget of this {terms.period} is spent: {refused}, or wait for the next {terms.period}"
            wait = campaign.settings.next_period(account, now) - now
            raise HoldRefused("period_spent", text, wait) from None
    assert offer is not None
    return offer


def within_limits(
    session: CampaignSession, offer: Offer, campaign: Campaign, account: Account, now: float
) -> tuple[Offer, Limits]:
    """The arms that the limits of time leave, and the limits for a hold: where they would refuse, those of the arm that
    answers beyond them, if the campaign's terms name one."""
    limits = campaign.settings.limits(campaign.created_at)
    if limits is ledger.NO_LIMITS:
        return offer, limits
    try:
        ledger.check_time(account, offer.largest_hold, now, limits)
    except HoldRefused:
        other = session.fallback(offer, campaign.settings.terms.on_limit)
        if other is None:
            raise
        return other, replace(limits, daily_cap=None, pace_seconds=None)
    return offer, limits


def time_of_decision(campaign: Campaign, shared: SharedBudget | None, now: float) -> float:
    """When a decision that is made now is made: a day or a period that has begun for one has begun for all. Refused if
    one has begun that is far ahead (`ledger.check_clock`)."""
    name, account = repr(campaign.name), campaign.account
    reset = f"campaign reset-clock {name}"
    ledger.check_clock(account.day, now, f"the latest decision of {name}", reset)
    ledger.check_clock(account.period, now, f"the latest period of {name}", reset)
    if shared is None:
        return max(now, float(account.day), float(account.period))
    ledger.check_clock(shared.account.period, now, f"the latest period of the shared budget {shared.name!r:.60}", reset)
    return max(now, float(account.day), float(account.period), float(shared.account.period))


class CampaignFunds(Funds):
    """The campaign's own money; its row has been read and so is locked."""

    def __init__(self, tx: Transaction, sessions: SessionCache, row: Campaign) -> None:
        super().__init__(tx, row)
        self._sessions = sessions

    @property
    def account(self) -> Account:  # type: ignore[override]
        """The account of the campaign."""
        return self.row.account

    def _choose(
        self, now: float, options: RequestOptions | None, ahead: ChoicesAhead | None
    ) -> tuple[Choice, Hold, float]:
        if self.row.account.status == "paused" and self.row.settings.restored_from is not None:
            raise HoldRefused("paused", "restored from a copy; no decisions until it is said what was spent since")
        ledger.check_open(self.row.account)
        row, settings, self._shared_left = self.row, self.row.settings, None
        shared = None if settings.terms.shared_budget is None else self._tx.shared_of(row)
        now = time_of_decision(row, shared, now)
        renewed = None if settings.terms.period is None else settings.renewed(row.account, now)
        change = (self._sessions.choosing if renewed is None else self._sessions.changing)(self._tx, row)
        session, change.whole = change.session, renewed is not None
        row = row if renewed is None else row.with_money(renewed)
        if shared is not None:
            shared.check_open()
            shared = in_period(self._tx, shared, now)
            if shared.account.left < row.account.left:
                self._shared_left = shared.account.left
        offer = affordable_arms(session, row, now, session.resolve(options), shared)
        offer, limits = within_limits(session, offer, row, row.account, now)
        account, chosen = row.account, None
        if self._shared_left is not None:
            account = capped(account, self._shared_left)
        if ahead is not None and is_long(session, offer):
            chosen = ahead.take(inputs_of(session, row, offer, account))
        with change:
            if renewed is not None:
                session.set_budget(renewed.budget)
                self.add_event(renewal_event(self.row, renewed, now))
            choice = session.choose(offer, account, ahead=chosen)
            if choice is None:
                ledger.stop(row.policy)
            account, hold = ledger.place(row.account, choice.hold, now, limits)
            change.row = row.with_money(account)
            if session.cooldowns.record_ask(choice.arm, now):
                change.arms = [choice.arm]
        self.row, self.session = change.row, session
        return choice, hold, now

    def shared_left(self) -> int | None:
        return None if self.row.settings.terms.shared_budget is None else shared_left(self._tx, self.row)

    def cap(self, decision: DecisionRow) -> int:
        return int(self._sessions.of(self._tx, self.row).caps[decision.arm])

    def add_event(self, event: Event) -> None:
        self._tx.add_event(event)

    def book(self, account: Account, event: Event, created_at: float, decision: DecisionRow | None = None) -> None:
        before = self.row
        self.row = self._with_given_back(account, created_at, event.at)
        lapsed = self.row.account.budget != before.account.budget
        if decision is None and not lapsed:
            self.add_event(event)
            self._tx.save_money(self.row)
        else:
            change = self._sessions.changing(self._tx, self.row)  # reads all it needs before anything is written
            self.add_event(event)
            with change:
                change.whole = lapsed
                if lapsed:
                    change.session.set_budget(self.row.account.budget)
                if decision is not None:
                    change.arms = change.session.record_feedback(decision, event)
            self.row, self.session = change.row, change.session
        self._lapse_shared(before, event.at, created_at)

    def fail(self, account: Account, failure: Event, cost: Event | None, created_at: float) -> None:
        before = self.row
        self.row = self._with_given_back(account, created_at, failure.at)
        change = self._sessions.changing(self._tx, self.row)
        self.add_event(failure)
        if cost is not None:
            self.add_event(cost)
        with change:
            assert failure.arm is not None
            if self.row.account.budget != before.account.budget:
                change.whole = True
                change.session.set_budget(self.row.account.budget)
            change.session.cooldowns.record_failure(failure.arm, failure.at, created_at)
            change.arms = [failure.arm]
        self.row, self.session = change.row, change.session
        self._lapse_shared(before, failure.at, created_at)

    def _with_given_back(self, account: Account, created_at: float, now: float) -> Campaign:
        """The campaign with this account, less what may not be spent of what a decision of that time gives back."""
        if account.period or account.advance:
            freed = self.row.account.taken - account.taken
            account = self.row.settings.given_back(account, freed, created_at, now)
        return self.row.with_money(account)

    def _lapse_shared(self, before: Campaign, now: float, created_at: float) -> None:
        """Take back from the campaign's shared budget, if it has one, what lapses with a period."""
        if before.settings.terms.shared_budget is not None:
            lapse(self._tx, before, self.row.account, now, created_at)


def renewal_event(before: Campaign, renewed: Account, now: float) -> Event:
    """The event of a campaign's renewal."""
    grant = before.settings.grant(before.account, renewed)
    return Event(before.id, "renewed", now, amount=grant.amount, request=grant.to_json())
