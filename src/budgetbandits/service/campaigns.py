"""Campaigns as an operator sees them: opened, looked at, topped up, paused and closed; their arms come and go.

Every operation is one function over a transaction: read the campaign, apply the rules of `ledger` and the policy, write
the rows and one event for each thing that happened. The events are the truth that `audit.verify` replays.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from copy import copy
from dataclasses import dataclass, replace
from typing import Any

from pydantic_core import to_json

from budgetbandits.answers import (
    ArmAnswer,
    ArmTotalAnswer,
    CampaignAnswer,
    CampaignDetailAnswer,
    EventKind,
    StandingAnswer,
    Status,
)
from budgetbandits.errors import BadParameter, BadState, Conflict, StoreError
from budgetbandits.service import ledger
from budgetbandits.service.campaign_checks import (
    ArmHistory,
    PlannedCampaign,
    arm_to_bring_back,
    arm_to_retire,
    changed_campaign,
    check_new_arm,
    check_not_closed,
    checked_cap,
    planned_campaign,
    planned_clone,
    spent_since_refused,
    with_larger_cap,
)
from budgetbandits.service.campaign_session import CampaignSession
from budgetbandits.service.expiry import shorten_late_holds
from budgetbandits.service.funds import renewal_event
from budgetbandits.service.grants import read_grants
from budgetbandits.service.leases.leases import Leases
from budgetbandits.service.ledger import Account, to_micros, to_units
from budgetbandits.service.names import check_text, checked_name, is_id, normal
from budgetbandits.service.rollups import History
from budgetbandits.service.session_rows import ArmStatus, arm_row, read_session
from budgetbandits.service.shared_budgets import members
from budgetbandits.service.shared_budgets.rules import charged
from budgetbandits.service.standing import outlooks
from budgetbandits.service.stores.contract import (
    UNREADABLE,
    Clock,
    Scope,
    Store,
    Transaction,
    find_campaign,
    isolated,
    moment,
    named_damage,
)
from budgetbandits.service.stores.records import ArmRow, Campaign, Event
from budgetbandits.terms import MONEY, Terms

OUTLOOKS_AT_ONCE = 200
"""Campaigns that are looked at in one transaction: each of them is a value in a statement."""


@dataclass(frozen=True)
class Operation:
    """A change that an operator asked for, and the key it was asked for under, if any.

    Under a key a change is made once, however often it is asked for. The key is kept in the transaction of the change,
    so that both are there or neither, and with it the answer: asked again, it is the same.
    """

    key: str | None
    asked: tuple[Any, ...]
    """The change and its arguments: the same key with anything else is a conflict."""

    def __post_init__(self) -> None:
        if self.key is not None and not (isinstance(self.key, str) and 0 < len(self.key) <= 200):
            raise BadParameter("key must be text of 1 to 200 characters: one for each change, the same when retried")
        check_text("key", self.key or "")

    def done(self, tx: Transaction, campaign: str) -> bool:
        """Whether it was done to this campaign before."""
        digest = None if self.key is None else tx.operation(campaign, self.key)
        if digest is not None and digest != self._digest():
            raise Conflict(f"key {self.key!r:.60} was used for another change; use a new key for a new change")
        return digest is not None

    def note(self, tx: Transaction, campaign: str, now: float, answer: Callable[[], str]) -> None:
        """It is done now, and this is what to answer."""
        if self.key is not None:
            tx.add_operation(campaign, self.key, self._digest(), now, answer())

    def _digest(self) -> str:
        return hashlib.sha256(json.dumps(self.asked, sort_keys=True).encode()).hexdigest()


class Campaigns:
    """The campaigns of a store. Wherever one is asked for, its name will do as well as its id."""

    def __init__(self, store: Store, leases: Leases, clock: Clock | None = None) -> None:
        self._store = store
        self._leases = leases
        self._sessions = leases.sessions
        self._clock = clock
        self._check: Callable[[Transaction], None] | None = None

    def provided(self, check: Callable[[Transaction], None]) -> Campaigns:
        """The same campaigns, of which none is changed unless this check passes: it is made in the transaction of the
        change, so nothing comes between the two, and not if the change was made before under the same key."""
        clone = copy(self)
        clone._check = check
        return clone

    def create(
        self,
        name: str,
        policy: str | None,
        budget: float,
        arms: Mapping[str, float],
        *,
        known: Mapping[str, Any] | None = None,
        history: Mapping[str, ArmHistory] | None = None,
        key: str | None = None,
        actor: str | None = None,
        **terms: Any,
    ) -> str:
        """A new campaign; ``arms`` maps each arm's name to the most that one pull of it can cost. Gives its id.

        Without a ``policy`` it is bts-linear if requests have features, bts-paced if it has a horizon, and else bts.
        ``terms`` are the fields of `Terms`. ``known`` is for policies that must know something: cost_floor, or costs by
        arm, in the user's unit. ``history`` are past outcomes by arm, which are learned from and were not paid out of
        this budget: how many, their total reward and their total cost. Asked again under the same ``key`` it gives the
        same campaign. ``actor`` is who the event says has done it.
        """
        planned = planned_campaign(name, policy, budget, arms, known or {}, Terms(**terms).checked(), history or {})
        session, campaign, past = planned
        caps = list(zip(session.names, map(int, session.caps), strict=True))
        asked = ("create", campaign.name, campaign.policy, campaign.account.budget, caps, campaign.settings.to_dict())
        return self._add(planned, Operation(key, (*asked, past) if past else asked), actor)

    def clone(
        self,
        campaign: str,
        name: str,
        budget: float | None = None,
        learned: bool = True,
        key: str | None = None,
        actor: str | None = None,
    ) -> str:
        """A new campaign with the policy, the terms and the active arms of another, and its budget if none is given.
        With ``learned`` it begins with the pulls, the total reward and the total cost of each arm. Gives its id."""

        def read(tx: Transaction) -> tuple[Campaign, CampaignSession]:
            row = find_campaign(tx, campaign)
            return row, read_session(row, tx.arms(row.id))

        row, session = self._store.read(isolated(campaign, read))
        planned = planned_clone(row, session, name, budget, learned)
        return self._add(planned, Operation(key, ("clone", row.id, planned.campaign.name, budget, learned)), actor)

    def _add(self, planned: PlannedCampaign, operation: Operation, actor: str | None) -> str:
        """Write a new campaign; its id, or that of the one that this operation made before."""
        session, campaign, past = planned

        def before(tx: Transaction) -> str | None:
            """The campaign that was made by this, or under this key; a conflict if another one has the name."""
            other = tx.campaign(campaign.name)
            if other is not None and other.id != campaign.id and not operation.done(tx, other.id):
                raise Conflict(f"there is a campaign {other.name!r} already; give this one another name")
            return None if other is None else other.id

        def work(tx: Transaction) -> str:
            earlier = before(tx)
            if earlier is not None:
                return earlier
            now = moment(tx, self._clock)
            account = replace(campaign.account, period=campaign.settings.period_of(now))
            if campaign.settings.terms.shared_budget is not None:
                members.join(tx, campaign.settings.terms.shared_budget, campaign, now, actor)
            tx.add_campaign(replace(campaign, created_at=now, account=account))
            tx.add_arms([arm_row(session, campaign, arm) for arm in range(len(session.names))])
            event = Event(campaign.id, "created", now, amount=campaign.account.budget, actor=actor)
            facts = {"terms": campaign.settings.to_dict()["terms"]} | ({"history": past} if past else {})
            event.request = to_json(facts).decode()
            tx.add_event(event)
            operation.note(tx, campaign.id, now, lambda: self._answer(tx, campaign.id))
            return campaign.id

        try:
            return self._store.write(work, Scope(campaign.name))
        except StoreError:
            earlier = self._store.read(
                before
            )  # another caller may have been quicker, or it was done and the answer lost
            if earlier is None:
                raise
            return earlier

    def account(self, campaign: str) -> Account:
        """The account of a campaign."""
        return self._store.read(isolated(campaign, lambda tx: find_campaign(tx, campaign).account))

    def names(self) -> list[str]:
        """The names of all campaigns, the oldest first."""
        return self._store.read(lambda tx: [row.name for row in tx.campaigns()])

    def describe(self, campaign: str) -> CampaignDetailAnswer:
        """A campaign's money, in the user's unit, and its arms."""
        return self._store.read(isolated(campaign, lambda tx: self._described(tx, campaign)))

    def answer(self, campaign: str, key: str | None) -> str:
        """The answer to the operator who has changed a campaign under this key, as JSON: the campaign as it was then.

        The campaign as it is now, if there was no key or the answer is not kept any more.
        """

        def work(tx: Transaction) -> str:
            kept = None if key is None else tx.answer(find_campaign(tx, campaign).id, key)
            return self._answer(tx, campaign) if kept is None else kept

        return self._store.read(isolated(campaign, work))

    def _answer(self, tx: Transaction, campaign: str) -> str:
        return to_json(self._described(tx, campaign)).decode()

    def _described(self, tx: Transaction, campaign: str) -> CampaignDetailAnswer:
        row = find_campaign(tx, campaign)
        now, arms = moment(tx, self._clock), tx.arms(row.id)
        return CampaignDetailAnswer(
            **_facts(row), requests_answered=answered_of(arms), requests_used=row.account.requests_used,
            segments=tuple(named_segments(row)), arms=tuple(_arm(arm, now) for arm in arms),
        )  # fmt: skip

    def overview(self, limit: int | None = None, after: str | None = None) -> list[CampaignAnswer]:
        """Every campaign that can be read, as `describe` has it without the arms, the oldest first; or ``limit`` of
        them after this one, which may itself be unreadable."""

        def work(tx: Transaction) -> list[CampaignAnswer]:
            last, good = "" if after is None else _id_of(tx, after), list[CampaignAnswer]()
            while True:
                rows = tx.campaigns(limit, last)
                good += _summaries(rows)
                if limit is None or len(rows) < limit or len(good) >= limit:
                    return good[:limit]
                last = rows[-1].id

        return self._store.read(work)

    def standing(self, campaign: str) -> StandingAnswer:
        """How a campaign does."""

        def work(tx: Transaction) -> StandingAnswer:
            result = outlooks(tx, [find_campaign(tx, campaign).id])
            if not result:
                raise ValueError("its account cannot be read")
            return result[0].answer()

        return self._store.read(isolated(campaign, work))

    def standings(self, limit: int | None = None, after: str | None = None) -> list[StandingAnswer]:
        """How every campaign that can be read does, the oldest first; or ``limit`` of them after this one."""
        most = OUTLOOKS_AT_ONCE if limit is None else min(limit, OUTLOOKS_AT_ONCE)
        last, good = "" if after is None else self._store.read(lambda tx: _id_of(tx, after)), list[StandingAnswer]()
        while True:

            def work(tx: Transaction, last: str = last) -> tuple[list[str], list[StandingAnswer]]:
                ids = tx.pages().campaign_list().ids(most, last)
                return ids, [outlook.answer() for outlook in outlooks(tx, ids)]

            ids, part = self._store.read(work)
            good += part
            if len(ids) < most or (limit is not None and len(good) >= limit):
                return good[:limit]
            last = ids[-1]

    def totals(self, campaign: str) -> dict[str, ArmTotalAnswer]:
        """Cost and reward of each arm that was ever chosen, by name."""

        def work(tx: Transaction) -> dict[str, ArmTotalAnswer]:
            row = find_campaign(tx, campaign)
            names, open = [arm.name for arm in tx.arms(row.id)], tx.pending_by_arm(row.id)
            return {
                names[arm]: ArmTotalAnswer(
                    names[arm], open.get(arm, 0), to_units(sums.spent + sums.overrun), sums.reward
                )
                for arm, sums in sorted(History.of(tx, row).totals().items())
            }

        return self._store.read(isolated(campaign, work))

    # What follows takes a ``key``: asked again under the same one, nothing is changed again, and `answer` is the same.
    # ``actor`` is who does it.

    def top_up(self, campaign: str, amount: float, key: str | None = None, actor: str | None = None) -> None:
        """Raise the budget."""
        micros = to_micros(amount, "amount")

        def work(tx: Transaction, row: Campaign) -> None:
            row = self._in_period(tx, row)
            row = row.with_money(ledger.top_up(row.account, micros))
            with self._sessions.changing(tx, row) as change:
                change.session.set_budget(row.account.budget)
            tx.add_event(Event(row.id, "topped up", moment(tx, self._clock), amount=micros, actor=actor))

        self._change(campaign, Operation(key, ("top up", micros)), work)

    def set_status(
        self,
        campaign: str,
        status: Status,
        key: str | None = None,
        actor: str | None = None,
        spent_since: float | None = None,
    ) -> None:
        """Pause, resume (also after a freeze), or close for good.

        A campaign that was restored from a copy is resumed with what it has ``spent_since`` that copy was made.
        """
        micros = None if spent_since is None else to_micros(spent_since, "spent_since")

        def work(tx: Transaction, row: Campaign) -> None:
            # what a member has spent since the copy counts for others, also if it is closed
            needed = status == "active" or (status == "closed" and row.settings.terms.shared_budget is not None)
            if micros is not None or (needed and row.settings.restored_from is not None):
                row = _booked_since(tx, self._in_period(tx, row), micros, moment(tx, self._clock), actor)
            if row.account.status == status:
                return  # it is so already, which is no event
            tx.save_campaign(replace(row, account=replace(row.account, status=status)))
            tx.add_event(Event(row.id, status, moment(tx, self._clock), actor=actor))

        asked = ("status", status) if micros is None else ("status", status, micros)
        self._change(campaign, Operation(key, asked), work)

    def reset_clock(self, campaign: str, key: str | None = None, actor: str | None = None) -> None:
        """Go on today, after a clock that was far ahead has made decisions of a day to come, or begun a period that is:
        what periods to come were granted is taken back, also that of its shared budget."""

        def work(tx: Transaction, row: Campaign) -> None:
            now, change = moment(tx, self._clock), self._sessions.changing(tx, row)
            with change:
                change.arms = change.session.cooldowns.reset_clock(now)
                change.row = _reset_clock(tx, row, now, actor, failed_ahead=len(change.arms) > 0)
                change.session.set_budget(change.row.account.budget)
            self._in_period(tx, change.row)

        self._change(campaign, Operation(key, ("clock reset",)), work)

    def add_arm(
        self, campaign: str, name: str, cost_cap: float, key: str | None = None, actor: str | None = None
    ) -> None:
        """A new arm, from the next decision on."""
        name = checked_name("an arm's name", name)
        cap = checked_cap(name, cost_cap)

        def work(tx: Transaction, row: Campaign) -> None:
            session = self._sessions.of(tx, row)
            check_new_arm(row, session.names, name, cap)
            if cap > row.settings.cost_max:
                row = self._changed(tx, row, with_larger_cap(row, cap, session.caps.tolist()), actor)
            with self._sessions.changing(tx, row) as change:
                arm = change.session.add(name, cap)
                change.added = [arm]
            tx.add_event(Event(row.id, "arm added", moment(tx, self._clock), arm=arm, amount=cap, actor=actor))

        self._change(campaign, Operation(key, ("add arm", name, cap)), work)

    def retire_arm(self, campaign: str, name: str, key: str | None = None, actor: str | None = None) -> None:
        """Choose this arm no more, until it is brought back; its open decisions can still be reported on."""
        self._switch_arm(campaign, normal(name), False, Operation(key, ("retire arm", normal(name))), actor)

    def bring_back_arm(self, campaign: str, name: str, key: str | None = None, actor: str | None = None) -> None:
        """Choose an arm again that was retired, with all that is known of it."""
        self._switch_arm(campaign, normal(name), True, Operation(key, ("bring back arm", normal(name))), actor)

    def _switch_arm(self, campaign: str, name: str, active: bool, operation: Operation, actor: str | None) -> None:
        def work(tx: Transaction, row: Campaign) -> None:
            change = self._sessions.changing(tx, row)
            session, find = change.session, arm_to_bring_back if active else arm_to_retire
            arm = find(session.names, session.state.active.tolist(), name)
            with change:
                (session.bring_back if active else session.retire)(arm)
                change.arms = [arm]
            kind: EventKind = "arm brought back" if active else "arm retired"
            tx.add_event(Event(row.id, kind, moment(tx, self._clock), arm=arm, actor=actor))

        self._change(campaign, operation, work)

    def change_terms(
        self, campaign: str, changes: Mapping[str, Any], key: str | None = None, actor: str | None = None
    ) -> None:
        """Other terms from now on, of those in `CHANGEABLE`, or another name, policy or budget, or other ``caps`` by
        arm; None takes a limit away. Open holds keep their time, and expire by the terms of that moment."""

        def work(tx: Transaction, row: Campaign) -> None:
            row = self._in_period(tx, row)
            session = self._sessions.of(tx, row)
            after = changed_campaign(row, changes, session.names, session.caps.tolist())
            other = tx.campaign(after.name)
            if other is not None and other.id != row.id:
                raise Conflict(f"there is a campaign {other.name!r} already; give this one another name")
            self._changed(tx, row, after, actor)

        self._change(campaign, Operation(key, ("change terms", dict(changes))), work)

    def _in_period(self, tx: Transaction, row: Campaign) -> Campaign:
        """A campaign whose money or terms are to be changed, in the period that has begun, if one has since its latest
        decision: what is changed now is changed in that one, and not taken back when the next decision begins it."""
        now = moment(tx, self._clock)
        account = row.settings.renewed(row.account, now)
        if account is None:
            return row
        tx.add_event(renewal_event(row, account, now))
        with self._sessions.changing(tx, row.with_money(account)) as change:
            change.session.set_budget(account.budget)
            change.whole = True
        return change.row

    def _changed(self, tx: Transaction, row: Campaign, after: Campaign, actor: str | None) -> Campaign:
        """Write a campaign whose terms have changed; the row as it is then."""
        now, settings, zone = moment(tx, self._clock), after.settings, row.settings.day_zone
        if settings.day_zone != zone and after.account.day <= ledger.day_of(now, zone):
            booked = _booked_of_day(tx, after, now, settings.day_zone)
            after = after.with_money(ledger.set_day(after.account, ledger.day_of(now, settings.day_zone), booked))
        after = after.with_money(replace(after.account, period=settings.period_after(row.settings, after.account, now)))
        change = self._sessions.changing(tx, row)
        members.move(tx, row, after, now, actor)
        tx.save_settings(after)
        with change:
            change.row, session = after, change.session
            change.session = session.changed(after)
            change.whole = change.session is not session
        if settings.caps_changed:
            tx.save_caps(after.id, {arm: cap for arm, (_, cap) in settings.caps_changed.items()})
        tx.add_event(Event(after.id, "terms changed", now, actor=actor, request=to_json(settings.change).decode()))
        return change.row

    def _change(self, campaign: str, operation: Operation, work: Callable[[Transaction, Campaign], None]) -> None:
        """Change a campaign that has not been closed, unless this was done before: all its leases end first."""

        def once(tx: Transaction) -> None:
            row = find_campaign(tx, campaign)
            if operation.done(tx, row.id):
                return
            if self._check is not None:
                self._check(tx)
            check_not_closed(row)
            work(tx, self._leases.recalled(tx, row))
            operation.note(tx, row.id, moment(tx, self._clock), lambda: self._answer(tx, row.id))

        self._store.write(isolated(campaign, once), Scope(campaign))


def _booked_since(tx: Transaction, row: Campaign, micros: int | None, now: float, actor: str | None) -> Campaign:
    """A campaign that was restored from a copy, with what was spent since on its books."""
    if micros is None or row.settings.restored_from is None:
        raise spent_since_refused(row)
    shared = tx.shared_of(row)
    if shared is not None:
        members.in_period(tx, shared, now)
    left = members.shared_left(tx, row)
    account = charged(row.account, micros, left)
    row = replace(row, settings=replace(row.settings, restored_from=None)).with_money(account)
    tx.save_settings(row)
    tx.save_money(row)
    members.set_unreported(tx, row, False)
    tx.add_event(Event(row.id, "spent elsewhere", now, amount=micros, actor=actor, shared_left=left))
    return row


def _reset_clock(tx: Transaction, campaign: Campaign, now: float, actor: str | None, failed_ahead: bool) -> Campaign:
    """Today is the campaign's day again, with what today's decisions hold and were charged, in the present period.

    Pending decisions whose time is not over when it should be get as much time as one that is made now. Those that were
    made under a lease have no day, so there may be such decisions though the campaign's day is not to come. And
    ``failed_ahead`` if arms have failed in that future.
    """
    zone = campaign.settings.day_zone
    day, late = ledger.day_of(now, zone), shorten_late_holds(tx, campaign, now)
    ahead = campaign.account.day > day
    reopened = _reopened(tx, campaign, now)
    set_back = campaign.settings.set_back(campaign.account, now, read_grants(tx, campaign.id))
    shared_ahead = members.reset_clock(tx, campaign, now, actor)
    changed = set_back is not campaign.account or reopened.settings is not campaign.settings
    if not (ahead or late or failed_ahead or shared_ahead or changed):
        raise Conflict(f"no decision or period of {campaign.name!r} is of a day to come; there is nothing to reset")
    if ahead:
        set_back = ledger.set_day(set_back, day, _booked_of_day(tx, campaign, now, zone))
    campaign = campaign.with_money(set_back)
    tx.save_money(campaign)
    tx.add_event(Event(campaign.id, "clock reset", now, actor=actor))
    if reopened.settings is not campaign.settings:
        campaign = replace(campaign, settings=reopened.settings)
        tx.save_settings(campaign)
        before = int(campaign.settings.archived_before) * ledger.MICROS
        tx.add_event(Event(campaign.id, "archived", now, amount=before, actor=actor))
    return campaign


def _reopened(tx: Transaction, campaign: Campaign, now: float) -> Campaign:
    """The campaign with decisions open again that a clock ahead has closed, from now on. Itself if there are none.

    Not those that are resolved already: a pruning that was interrupted may have archived them as they are.
    """
    closed = campaign.settings.archived_before
    if closed <= now or campaign.settings.being_deleted:
        return campaign
    latest = tx.pruning().latest_resolved(campaign.id, int(now), closed)
    begins = float(int(now if latest is None else latest + 1.0))
    if begins >= closed:
        return campaign
    return replace(campaign, settings=replace(campaign.settings, archived_before=begins))


def _booked_of_day(tx: Transaction, campaign: Campaign, now: float, zone: str | None) -> int:
    """The amount that decisions of a day hold and were charged; an upper bound if some of them may be archived."""
    day, account = ledger.day_of(now, zone), campaign.account
    if campaign.settings.archived_before and day < tx.pruning().archived_up_to(campaign.id):
        return ledger.booked_at_most(account)
    return tx.booked_between(campaign.id, day, ledger.next_day(now, zone))


def summary(row: Campaign) -> CampaignAnswer:
    """A campaign's money, in the user's unit, and its terms."""
    return CampaignAnswer(**_facts(row))


def _facts(row: Campaign) -> dict[str, Any]:
    """The fields of a summary."""
    amounts = {name: to_units(getattr(row.account, name)) for name in MONEY}
    return {
        "id": row.id, "name": row.name, "policy": row.policy, "status": row.account.status, **amounts,
        **vars(row.settings.terms), "created_at": float(row.created_at), "arms_down": len(row.learned.get("down", ())),
    }  # fmt: skip


def damaged_campaigns(store: Store) -> list[str]:
    """The names of campaigns that `Campaigns.overview` leaves out because they cannot be read."""

    def work(tx: Transaction) -> list[str]:
        rows = tx.campaigns()
        good = {summary.id for summary in _summaries(rows)}
        return [*tx.damaged_campaigns(), *(row.name for row in rows if row.id not in good)]

    return store.read(work)


def _id_of(tx: Transaction, campaign: str) -> str:
    """The id of a campaign, whose row may be damaged if it is asked for by its id."""
    try:
        with named_damage(campaign):
            return find_campaign(tx, campaign).id
    except BadState:
        if not is_id(campaign):
            raise
        return campaign


def _summaries(rows: Iterable[Campaign]) -> Iterator[CampaignAnswer]:
    """Summaries of the campaigns whose terms can be read."""
    for row in rows:
        with suppress(*UNREADABLE):
            yield summary(row)


def answered_of(arms: Iterable[ArmRow]) -> int:
    """How many requests have both their cost and their reward."""
    return sum(int(arm.learned["pulls"]) for arm in arms)


def named_segments(row: Campaign) -> list[str]:
    """The segments that requests have named, in the order in which they first came."""
    return [name for name in row.learned.get("segments", ()) if name is not None]


def _arm(arm: ArmRow, now: float) -> ArmAnswer:
    """An arm as the API shows it: its pulls and failures, until when it cools down and since when it is down."""
    status = ArmStatus.from_row(arm.learned, now)
    return ArmAnswer(
        arm.name, to_units(arm.cost_cap), arm.active, arm.learned["pulls"], status.failures, status.until,
        status.down_since,
    )  # fmt: skip
