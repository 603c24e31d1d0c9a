"""Replay a campaign's events and compare: the money, every hold, every choice and everything that was learnt.

The events are written in the transaction of what they tell, and never changed. If the rows that decisions are made from
say anything else than their replay, something is wrong with the database or with us.

The campaign and its arms are read once, with the number of the latest event, and the events up to that one are replayed
in slices. A decision's row is compared once it was told in full, since nothing changes it from there on, so that only
open decisions must be remembered. The rows of these are compared at the end. One that has been told of meanwhile is
ahead of the replay: the next audit compares it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from budgetbandits.errors import BudgetBanditsError
from budgetbandits.policies import parse_policy
from budgetbandits.service import ledger
from budgetbandits.service.campaign_learner import CampaignLearner
from budgetbandits.service.ledger import Account
from budgetbandits.service.open_decisions import Known, OpenDecisions
from budgetbandits.service.settings import limits_of, terms_of
from budgetbandits.service.stores.base import ArmRow, Campaign, Event, Store, T, Transaction, found
from budgetbandits.service.stores.slices import event_slices

MOST_LISTED = 1000
"""Differences that are put into words; the rest are counted."""

Progress = Callable[[int, int], None]
"""Is told the number of the event that was replayed, and that of the last one."""


def verify(store: Store, campaign: str, progress: Progress = lambda done, last: None) -> list[str]:
    """What does not agree, in words; empty if everything does."""
    books = store.read(lambda tx: _Books.of(tx, campaign))
    differences = _Differences()
    with OpenDecisions() as open:
        replay = _Replay(books.row, books.arms, books.first_learner(), open)
        for events in event_slices(store, books.row.id, 0, books.last):
            for event in events:
                differences.add(replay.apply(event))
            for _, text in _wrong_rows(store, replay.finished):
                differences.add(text)
            replay.finished.clear()
            progress(events[-1].seq if events else books.last, books.last)
        _compare_books(books, replay, differences)
        _compare_open(store, books, open, differences)
    return differences.listed()


@dataclass
class _Books:
    """A campaign at one moment: its rows, how many arms it began with, and its latest event."""

    row: Campaign
    arms: list[ArmRow]
    first: int
    last: int

    @classmethod
    def of(cls, tx: Transaction, campaign: str) -> _Books:
        row = found(tx, campaign)
        arms = tx.arms(row.id)
        added = tx.events(row.id, limit=1, kind="arm added")
        first = added[0].arm if added else None
        return cls(row, arms, len(arms) if first is None else first, tx.last_event(row.id))

    def first_learner(self) -> CampaignLearner:
        """The learner as it was in the beginning."""
        first = self.arms[: self.first]
        names, caps = [arm.name for arm in first], [arm.cost_cap for arm in first]
        return CampaignLearner.new(parse_policy(self.row.policy), names, caps, self.row.settings)


class _Differences:
    """However many there are, a number of them in words."""

    def __init__(self) -> None:
        self._texts: list[str] = []
        self._more = 0

    def add(self, text: str | None) -> None:
        if text is None:
            return
        if len(self._texts) < MOST_LISTED:
            self._texts.append(text)
        else:
            self._more += 1

    def listed(self) -> list[str]:
        return self._texts + ([f"and {self._more:,} more"] if self._more else [])


def _compare_books(books: _Books, replay: _Replay, differences: _Differences) -> None:
    """The campaign's row and its arms."""
    row, learner = books.row, replay.learner
    if replay.account != row.account:
        differences.add(f"the campaign's row says {row.account}, its events {replay.account}")
    for arm in books.arms:
        learned = learner.of_arm(arm.number)
        if arm.learned != learned or arm.active != learner.state.active[arm.number]:
            differences.add(f"arm {arm.name!r}: the row says {arm.learned}, the events {learned}")
    if row.learned["single"] != learner.of_all():
        differences.add(f"the campaign's row says {row.learned['single']}, its events {learner.of_all()}")


def _compare_open(store: Store, books: _Books, open: OpenDecisions, differences: _Differences) -> None:
    """The rows of decisions that were not told in full."""
    told: set[str] = set()
    """Decisions of which something was told since the replay's end ..."""
    after = books.last
    """... as far as has been looked."""
    for chunk in open.chunks():
        wrong = _wrong_rows(store, chunk)
        if wrong:  # what was told before these rows were read has its event by now
            last = store.read(lambda tx: tx.last_event(books.row.id))
            for events in event_slices(store, books.row.id, after, last):
                told.update(e.decision for e in events if e.decision is not None and e.decision in open)
            after = max(after, last)
        for id, text in wrong:
            if id not in told:
                differences.add(text)


def _wrong_rows(store: Store, decisions: Mapping[str, Known]) -> list[tuple[str, str]]:
    """Those of these decisions whose rows say something else, each with words for it."""
    if not decisions:
        return []
    ids = list(decisions)
    rows, pending = store.read(lambda tx: ({made.id: made for made in tx.decisions_of(ids)}, tx.pending_of(ids)))
    wrong = []
    for id, known in decisions.items():
        made = rows.get(id)
        if made is None or (made.hold, made.cost, made.reward) != (known.hold, known.cost, known.reward):
            wrong.append((id, f"decision {id}: the row says {made}, the events {known}"))
        elif pending.get(id) != (made.expires_at if made.hold.state == "pending" else None):
            wrong.append((id, f"decision {id} is {made.hold.state}, and the list of what may expire says otherwise"))
    return wrong


@dataclass
class _Replay:
    """The campaign as its events make it."""

    row: Campaign
    arms: list[ArmRow]
    learner: CampaignLearner
    open: OpenDecisions
    account: Account = field(default_factory=lambda: Account(0))
    finished: dict[str, Known] = field(default_factory=dict)
    """Decisions that have been told in full since somebody cleared this."""
    booked: Counter[int] = field(default_factory=Counter)
    """What the decisions of each day hold and were charged."""

    def __post_init__(self) -> None:
        self._handlers: dict[str, Callable[[Event], None]] = {
            "created": self._created,
            "topped up": self._topped_up,
            "arm added": self._arm_added,
            "arm retired": self._arm_retired,
            "decided": self._decided,
            "settled": self._settled,
            "rewarded": self._rewarded,
            "voided": self._voided,
            "expired": self._expired,
            "set back": self._set_back,
        }

    def apply(self, event: Event) -> str | None:
        """What happened; why it cannot have, if so."""
        try:
            self._handlers.get(event.kind, self._status)(event)
        except (BudgetBanditsError, ArithmeticError, LookupError, AssertionError) as error:
            return f"event {event.seq} ({event.kind}) cannot have happened: {error}"
        return None

    def _created(self, event: Event) -> None:
        self.account = Account(_known(event.amount))

    def _topped_up(self, event: Event) -> None:
        self.account = ledger.top_up(self.account, _known(event.amount))
        self.learner.hear_budget(self.account.budget, self.row.settings)

    def _arm_added(self, event: Event) -> None:
        self.learner.add(self.arms[_known(event.arm)].name, _known(event.amount))

    def _arm_retired(self, event: Event) -> None:
        self.learner.retire(_known(event.arm))

    def _status(self, event: Event) -> None:
        self.account = replace(self.account, status=event.kind)  # type: ignore[arg-type]

    def _decided(self, event: Event) -> None:
        id = _known(event.decision)
        fitting = self.learner.fitting(self.account.left)
        arm = None if fitting is None else self.learner.choose(id, fitting)
        assert arm == event.arm, f"the policy would have chosen arm {arm}, not {event.arm}"
        amount, limits = _known(event.amount), limits_of(self.row)
        self.account, hold = ledger.place(self.account, amount, event.at, limits)
        self.booked[hold.day] += hold.booked
        self.open.put(id, Known(hold))

    def _settled(self, event: Event) -> None:
        def settle(known: Known) -> Known:
            cost = _known(event.amount)
            self.account, hold = ledger.settle(self.account, known.hold, cost)
            return Known(hold, cost, known.reward if event.reward is None else event.reward)

        self._tell(event, settle)

    def _rewarded(self, event: Event) -> None:
        self._tell(event, lambda known: Known(known.hold, known.cost, _known(event.reward)))

    def _tell(self, event: Event, tell: Callable[[Known], Known]) -> None:
        known = self._change(event, tell)
        if known.cost is not None and known.reward is not None:
            id, arm = _known(event.decision), _known(event.arm)
            self.learner.learn(id, arm, known.reward, known.cost, self.row.settings)

    def _voided(self, event: Event) -> None:
        def void(known: Known) -> Known:
            self.account, hold = ledger.void(self.account, known.hold)
            return Known(hold, known.cost, known.reward)

        self._change(event, void)

    def _expired(self, event: Event) -> None:
        def expire(known: Known) -> Known:
            charge = terms_of(self.row).on_expire == "charge"
            self.account, hold = ledger.expire(self.account, known.hold, charge)
            return Known(hold, known.cost, known.reward)

        self._change(event, expire)

    def _set_back(self, event: Event) -> None:
        day = ledger.day_of(event.at)
        self.account = ledger.set_back(self.account, day, self.booked[day])

    def _change(self, event: Event, change: Callable[[Known], Known]) -> Known:
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
            self.booked[before.hold.day] += after.hold.booked - before.hold.booked
            if after.final:
                self.finished[id] = after
            else:
                self.open.put(id, after)
        return after


def _known(value: T | None) -> T:
    assert value is not None, "the event lacks a number"
    return value
