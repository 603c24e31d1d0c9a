"""Feedback on decisions: rewards, costs and failures are reported, and decisions are voided.

A policy learns from a decision once both its reward and its cost are known, in whichever order they come. A decision
that has failed is settled with what it cost, if anything, teaches nothing, and its arm cools down for a while
(`allocation.cooldowns`).

A decision that gets neither in time expires (`expiry`). Feedback that comes later corrects what was booked.
"""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial

from budgetbandits.errors import (
    BadParameter,
    BudgetBanditsError,
    Conflict,
    DecisionArchived,
    NotFound,
    RewardOutOfRange,
)
from budgetbandits.formatting.datetimes import utc_minute
from budgetbandits.service import ledger
from budgetbandits.service.funds import CampaignFunds, Funds
from budgetbandits.service.leases.leases import Leases
from budgetbandits.service.ledger import to_micros, to_units
from budgetbandits.service.request import BATCH_MAX
from budgetbandits.service.shared_budgets.rules import uncapped
from budgetbandits.service.stores.contract import (
    Clock,
    Scope,
    Store,
    Task,
    Transaction,
    find_campaign,
    isolated,
    moment,
)
from budgetbandits.service.stores.records import Campaign, DecisionRow, Event

SLICE_SECONDS = 0.003
"""Time after which a slice of many outcomes books no further one."""

SLICE_MAX = 32
"""Most outcomes of a slice."""

LAST_MOMENT = 253402300799.0
"""The end of the year 9999."""


@dataclass(slots=True)
class FeedbackReport:
    """A report on a decision: its reward, its cost, or both; or that it failed."""

    decision: str
    reward: float | None = None
    cost: float | None = None
    failed: bool = False
    """There was no answer."""
    actor: str | None = None
    """Who reports it, as events name them."""

    def checked(self) -> tuple[float | None, int | None]:
        """The reward, which is checked against its campaign later, and the cost in micros."""
        if self.reward is None and self.cost is None and not self.failed:
            raise BadParameter("neither reward nor cost is given; report at least one, or that it failed")
        if self.failed and self.reward:
            raise BadParameter(f"it has failed and earned {self.reward!r:.40}; report the reward, or the failure")
        return self.reward, None if self.cost is None else to_micros(self.cost, "cost")


@dataclass(slots=True)
class BookedFeedback:
    """The state of a decision's money after a report on it."""

    decision: str
    overrun: float
    """The part of its cost beyond its arm's cap, or beyond the money there was: 0 if all is well."""
    cost_is_new: bool
    refused: BudgetBanditsError | None = None
    """Why the reward was not taken, though the cost that came with it was."""
    failed: bool = False
    """Whether it is new that there was no answer."""


class Feedback:
    """Feedback on a store's decisions. Wherever a campaign is asked for, its name will do as well as its id."""

    def __init__(self, store: Store, leases: Leases, clock: Clock | None = None) -> None:
        self._store = store
        self._leases = leases
        self._sessions = leases.sessions
        self._clock = clock

    def feedback(
        self,
        decision: str,
        *,
        reward: float | None = None,
        cost: float | None = None,
        failed: bool = False,
        campaign: str | None = None,
    ) -> None:
        """Report the reward of a decision, its cost, or both. Repeated with the same numbers it changes nothing.

        With ``failed`` there was no answer: what it cost, if anything, is booked, nothing is learned, and the arm
        cools down. With ``campaign`` a decision of another one is not found. A reward that cannot be taken is an error,
        but the cost that came with it is booked: that money is spent.
        """
        booked = self._store.write(*self.feedback_task(FeedbackReport(decision, reward, cost, failed), campaign))
        if booked.refused is not None:
            raise booked.refused

    def feedback_many(
        self, campaign: str, reports: Sequence[FeedbackReport]
    ) -> list[BookedFeedback | BudgetBanditsError]:
        """Many at once; for each what was booked, or why nothing was, which does not stop the others."""
        return self._store.write(*self.feedback_many_task(reports, campaign))

    def feedback_task(self, report: FeedbackReport, campaign: str | None = None) -> Task[BookedFeedback]:
        """The task that books feedback on one decision."""
        report.checked()  # before a transaction is made for it
        work = partial(self._book, report=report, campaign=campaign)
        return Task(isolated(campaign, work), self._scope(campaign, [report.decision]))

    def feedback_many_task(
        self, reports: Sequence[FeedbackReport], campaign: str
    ) -> Task[list[BookedFeedback | BudgetBanditsError]]:
        """The task that books many outcomes."""
        if not 1 <= len(reports) <= BATCH_MAX:
            raise BadParameter(f"{len(reports)} outcomes at once; send 1 to {BATCH_MAX}")
        work = partial(self._book_many, reports=reports, campaign=campaign)
        return Task(isolated(campaign, work), self._scope(campaign, [report.decision for report in reports]))

    def feedback_slice_task(
        self, reports: Sequence[FeedbackReport], campaign: str
    ) -> Task[list[BookedFeedback | BudgetBanditsError]]:
        """`feedback_many_task` for the first of these: as many as there is time for in a moment."""
        part = reports[:SLICE_MAX]
        work = partial(self._book_many, reports=part, campaign=campaign, seconds=SLICE_SECONDS)
        return Task(isolated(campaign, work), self._scope(campaign, [report.decision for report in part]))

    def _book_many(
        self, tx: Transaction, reports: Sequence[FeedbackReport], campaign: str, seconds: float = math.inf
    ) -> list[BookedFeedback | BudgetBanditsError]:
        """Book reports, one after the other; none after the first when the seconds are over."""
        results, end = list[BookedFeedback | BudgetBanditsError](), time.perf_counter() + seconds
        for report in reports:
            if results and time.perf_counter() > end:
                break
            try:
                results.append(self._book(tx, report, campaign))
            except BudgetBanditsError as error:
                results.append(error)
        return results

    def _book(self, tx: Transaction, report: FeedbackReport, campaign: str | None) -> BookedFeedback:
        """Book a report; one that is refused is refused before anything is written."""
        funds, row = locked(tx, self._leases, report.decision, campaign)
        _check_not_archived(funds.row, row)
        reward, cost = report.checked()
        if row.hold.state == "voided":
            raise Conflict(f"decision {row.id} was voided; it takes no feedback")
        if report.failed:
            return self._fail(tx, funds, row, cost, report.actor)
        return self._tell(tx, funds, row, reward, cost, report.actor)

    def _tell(
        self,
        tx: Transaction,
        funds: Funds,
        decision: DecisionRow,
        reward: float | None,
        cost: int | None,
        actor: str | None,
    ) -> BookedFeedback:
        if decision.failed and reward is not None:
            raise Conflict(f"decision {decision.id} was reported as failed; it takes no other feedback")
        new_cost, refused = _is_new("cost", decision.cost, cost), None
        try:
            new_reward = self._new_reward(funds.row, decision, reward)
        except (RewardOutOfRange, Conflict) as error:
            if cost is None:
                raise
            refused = type(error)(f"{error}; the cost that came with it is booked")
            reward, new_reward = None, False
        if not (new_cost or new_reward):
            return BookedFeedback(decision.id, to_units(decision.hold.overrun), False, refused)
        now, account = moment(tx, self._clock), funds.account
        if new_cost:
            assert cost is not None
            funds, account, hold = self._settled(tx, funds, decision, cost)
            updated = decision.with_feedback(hold, cost, reward if new_reward else decision.reward)
            news = reward if new_reward else None
            event = Event(decision.campaign, "settled", now, decision.id, decision.arm, cost, news, actor=actor)
            event.shared_left = funds.shared_left()
        else:
            updated = decision.with_feedback(decision.hold, decision.cost, reward)
            event = Event(decision.campaign, "rewarded", now, decision.id, decision.arm, reward=reward, actor=actor)
        in_full = updated.cost is not None and updated.reward is not None
        froze = account.status != funds.account.status
        funds.book(account, event, decision.created_at, updated if new_cost or in_full else None)
        if froze:
            _note_freeze(funds, updated, now)
        tx.save_decision(updated)
        if in_full and funds.session is not None:
            self._store.prefetch = funds.session.prefetch_choice  # a worker usually asks again after feedback
        return BookedFeedback(decision.id, to_units(updated.hold.overrun), new_cost, refused)

    def _fail(
        self, tx: Transaction, funds: Funds, decision: DecisionRow, cost: int | None, actor: str | None
    ) -> BookedFeedback:
        """There was no answer: settled with what it cost, and the arm cools down."""
        if decision.reward is not None:
            raise Conflict(f"the reward of decision {decision.id} was reported, so it has not failed")
        new_cost = _is_new("cost", decision.cost, cost) or decision.cost is None
        if decision.failed:
            return BookedFeedback(decision.id, to_units(decision.hold.overrun), False)
        now, account, hold, settled = moment(tx, self._clock), funds.account, decision.hold, None
        if new_cost:
            cost = cost or 0
            funds, account, hold = self._settled(tx, funds, decision, cost)
            settled = Event(decision.campaign, "settled", now, decision.id, decision.arm, cost, actor=actor)
            settled.shared_left = funds.shared_left()
        updated = replace(decision.with_feedback(hold, decision.cost if cost is None else cost, None), failed=True)
        froze = account.status != funds.account.status
        failure = Event(decision.campaign, "failed", now, decision.id, decision.arm, actor=actor)
        funds.fail(account, failure, settled, decision.created_at)
        if froze:
            _note_freeze(funds, updated, now)
        tx.save_decision(updated)
        return BookedFeedback(decision.id, to_units(hold.overrun), new_cost, failed=True)

    def _settled(
        self, tx: Transaction, funds: Funds, decision: DecisionRow, cost: int
    ) -> tuple[Funds, ledger.Account, ledger.Hold]:
        """The funds that pay what the decision cost, with the money and the hold after that."""
        if funds.row.settings.lease is not None:
            funds = self._leases.for_cost(tx, funds, decision, cost)
        cap = funds.cap(decision) if cost > decision.hold.amount else 0  # rarely: it may have to be read
        spendable = funds.spendable
        account, hold = ledger.settle(spendable, decision.hold, cost, cap)
        return funds, account if spendable is funds.account else uncapped(account, funds.account), hold

    def _new_reward(self, row: Campaign, decision: DecisionRow, reward: float | None) -> bool:
        """Whether this reward is new, if it can be the decision's."""
        most = row.settings.terms.reward_max
        if reward is not None and (isinstance(reward, bool) or not 0.0 <= reward <= most):
            raise RewardOutOfRange(f"reward {reward!r:.40} is not in [0, {most:g}]; pass a number in that range")
        return _is_new("reward", decision.reward, reward)

    # --- no feedback ---------------------------------------------------------------------------------------------

    def void(self, decision: str, campaign: str | None = None) -> None:
        """The call was never made: the money is free again. Voiding twice changes nothing."""
        self._store.write(*self.void_task(decision, campaign))

    def void_task(self, decision: str, campaign: str | None = None, actor: str | None = None) -> Task[None]:
        """The task that voids a decision."""

        def work(tx: Transaction) -> None:
            funds, row = locked(tx, self._leases, decision, campaign)
            _check_not_archived(funds.row, row)
            if row.hold.state == "voided":
                return
            if row.hold.state == "pending" and row.reward is not None:
                raise Conflict(f"the reward of decision {row.id} was reported, so the call was made; report its cost")
            account, hold = ledger.void(funds.account, row.hold)
            tx.save_decision(replace(row, hold=hold))
            now = moment(tx, self._clock)
            event = Event(row.campaign, "voided", now, decision, row.arm, actor=actor)
            funds.book(account, event, row.created_at)

        return Task(isolated(campaign, work), self._scope(campaign, [decision]))

    # --- what they share -----------------------------------------------------------------------------------------

    def _scope(self, campaign: str | None, decisions: Sequence[str]) -> Scope:
        if campaign is None:
            return Scope()
        scope = Scope(campaign, decisions=[id for id in decisions if id.isprintable()])
        return self._leases.scope(scope) if campaign in self._leases.leasing else scope


def locked(tx: Transaction, leases: Leases, decision: str, campaign: str | None) -> tuple[Funds, DecisionRow]:
    """A decision and the funds its money is in, read so that neither can change before the transaction ends."""
    if not decision.isprintable():  # no id is so, and a database might not take it
        raise _no_decision(decision)
    if campaign is None:
        decision_row = tx.decision(decision)
        campaign = None if decision_row is None else decision_row.campaign
    if campaign is not None:
        # the campaign or the lease first, which locks it: from there on its decisions are ours as well
        row = leases.campaign(campaign) if tx.leases_alone else find_campaign(tx, campaign)
        decision_row = tx.decision(decision)
        if decision_row is not None and decision_row.campaign == row.id:
            if row.settings.lease is None:
                return CampaignFunds(tx, leases.sessions, row), decision_row
            funds = leases.of_decision(tx, row, decision_row)
            if funds.lease_id is not None:  # until now another server may have changed it under the lease
                decision_row = tx.decision(decision)
                assert decision_row is not None
            return funds, decision_row
        if decision_row is None and row.settings.archived_before:
            raise _archived(decision, row)
    raise _no_decision(decision)


def _no_decision(decision: str) -> NotFound:
    return NotFound(f"no decision {decision!r:.60}; pass the id that decide() answered with")


def _check_not_archived(row: Campaign, decision: DecisionRow) -> None:
    """Refuse feedback for a decision that is too old: its row may have been archived as it is."""
    if decision.created_at < row.settings.archived_before and decision.hold.state != "pending":
        raise _archived(decision.id, row)


def _archived(decision: str, row: Campaign) -> DecisionArchived:
    begun = utc_minute(min(row.settings.archived_before, LAST_MOMENT))
    return DecisionArchived(
        f"no decision {decision!r:.60} takes feedback: those of {row.name!r:.60} before {begun} "
        "are archived, and their money stays as it was booked; report sooner, or keep them longer (retention)"
    )


def _note_freeze(funds: Funds, updated: DecisionRow, now: float) -> None:
    """An event of the campaign's own, like what operators do: the overrun reported now has frozen it."""
    funds.add_event(Event(updated.campaign, "frozen", now, arm=updated.arm, amount=updated.hold.overrun))


def _is_new(field: str, known: float | None, reported: float | None) -> bool:
    """Whether this is new; another number for what is known is a conflict."""
    if reported is None or reported == known:
        return False
    if known is not None:
        raise Conflict(f"a different {field} was already reported for this decision; each value can be reported once")
    return True
