"""Replay a campaign's events and compare: the money, every hold, every choice and everything that was learned.

The events are written in the transaction of what they tell, and never changed. If the rows that decisions are made from
say anything else than their replay, something is wrong with the database or with us.

The campaign, its arms and its leases are read once, with which events there are by then, and these are replayed in
slices. A decision's row is compared once its feedback is complete, since nothing changes it from there on, so that only
open decisions must be remembered. The rows of these are compared at the end. One with new feedback is ahead of the
replay: the next audit compares it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from budgetbandits.errors import BadState, BudgetBanditsError, UnknownPolicy
from budgetbandits.policies import parse_policy
from budgetbandits.service.audit.open_decisions import OpenDecision, OpenDecisions
from budgetbandits.service.audit.replay import Replay, first_caps, first_policy
from budgetbandits.service.audit.slices import Cut, event_slices
from budgetbandits.service.campaign_learner import CampaignLearner
from budgetbandits.service.rollups import Recount
from budgetbandits.service.stores.contract import UNREADABLE, Store, Transaction, find_campaign
from budgetbandits.service.stores.records import ArmRow, Campaign

DIFFERENCES_LISTED_MAX = 1000
"""Differences that are put into words; the rest are counted."""

Progress = Callable[[int, int], None]
"""Gets the number of the event that was replayed, and that of the last one."""


def verify(store: Store, campaign: str, progress: Progress = lambda done, last: None) -> list[str]:
    """The differences between rows and events, in words; empty if all agree."""
    differences = _Differences()
    try:
        _replay(store, campaign, progress, differences)
    except UNREADABLE as error:
        if isinstance(error, BudgetBanditsError) and not isinstance(error, UnknownPolicy | BadState):
            raise
        differences.add(f"rows of campaign {campaign!r:.60} cannot be read: {error!r:.200}; restore an undamaged copy")
    return differences.listed()


def _replay(store: Store, campaign: str, progress: Progress, differences: _Differences) -> None:
    books = store.read(lambda tx: _Books.of(tx, campaign))
    cut = books.cut
    with OpenDecisions() as open:
        replay = Replay(books.row, books.arms, books.first_learner(), open)
        for events in event_slices(store, books.row.id, 0, cut.last):
            for event in events:
                if cut.has(event):
                    replay.changed = None
                    differences.add(replay.apply(event))
                    if replay.changed is not None:
                        books.recount.add(event, *replay.changed)
            for _, text in _wrong_rows(store, replay.finished):
                differences.add(text)
            replay.finished.clear()
            progress(events[-1].seq if events else cut.last, cut.last)
        _compare_books(books, replay, differences)
        _compare_open(store, books, open, differences)
    for text in books.recount.differences():
        differences.add(text)


@dataclass
class _Books:
    """A campaign at one moment: its rows, how many arms it began with, its leases and events, and its rollups."""

    row: Campaign
    arms: list[ArmRow]
    first: int
    cut: Cut
    recount: Recount

    @classmethod
    def of(cls, tx: Transaction, campaign: str) -> _Books:
        row = find_campaign(tx, campaign)
        arms = tx.arms(row.id)
        added = tx.events(row.id, limit=1, kind="arm added")
        first = added[0].arm if added else None
        return cls(row, arms, len(arms) if first is None else first, Cut.of(tx, row.id), Recount.of(tx, row.id))

    def first_learner(self) -> CampaignLearner:
        """The learner as it was in the beginning."""
        first = self.arms[: self.first]
        names, caps = [arm.name for arm in first], first_caps(self.row, first)
        return CampaignLearner.new(parse_policy(first_policy(self.row)), names, caps, self.row.settings.versions[0])


class _Differences:
    """However many there are, a number of them in words."""

    def __init__(self) -> None:
        self._texts: list[str] = []
        self._more = 0

    def add(self, text: str | None) -> None:
        if text is None:
            return
        if len(self._texts) < DIFFERENCES_LISTED_MAX:
            self._texts.append(text)
        else:
            self._more += 1

    def listed(self) -> list[str]:
        return self._texts + ([f"and {self._more:,} more"] if self._more else [])


def _compare_books(books: _Books, replay: Replay, differences: _Differences) -> None:
    """The campaign's row, its arms and its leases."""
    row, learner = books.row, replay.learner
    if replay.account != row.account:
        differences.add(f"the campaign's row says {row.account}, its events {replay.account}")
    if replay.changes_untold:
        differences.add(f"the campaign's row has {replay.changes_untold} more changes of terms than its events")
    there, made = books.cut.leases, {id: lent.lease for id, lent in replay.leases.items()}
    for id in sorted(there.keys() | made.keys()):
        if there.get(id) != made.get(id):
            differences.add(f"lease {id}: the row says {there.get(id)}, the events {made.get(id)}")
    for arm in books.arms:
        learned = learner.arm_state(arm.number)
        cap = int(learner.caps[arm.number])
        if arm.cost_cap != cap:
            differences.add(f"arm {arm.name!r}: the row says it may cost {arm.cost_cap}, the events {cap}")
        if arm.learned != learned or arm.active != learner.state.active[arm.number]:
            differences.add(f"arm {arm.name!r}: the row says {arm.learned}, the events {learned}")
    kept = row.learned["single"] | {"segments": row.learned.get("segments", [])}
    known = learner.learner.shared_state() | {"segments": list(learner.segments)}
    if kept != known:
        differences.add(f"the campaign's row says {kept}, its events {known}")


def _compare_open(store: Store, books: _Books, open: OpenDecisions, differences: _Differences) -> None:
    """The rows of decisions that wait for feedback."""
    campaign, cut = books.row.id, books.cut
    ahead: set[str] = set()
    """Decisions with feedback that has not been replayed ..."""
    after = cut.first
    """... as far as has been looked."""
    for chunk in open.chunks():
        wrong = _wrong_rows(store, chunk)
        if wrong:  # feedback before these rows were read has its event by now
            by_now = store.read(lambda tx: Cut.of(tx, campaign))
            for events in event_slices(store, campaign, after, by_now.last):
                later = [event.decision for event in events if not cut.has(event)]
                ahead.update(id for id in later if id is not None and id in open)
            after = max(after, by_now.first)
        for id, text in wrong:
            if id not in ahead:
                differences.add(text)


def _wrong_rows(store: Store, decisions: Mapping[str, OpenDecision]) -> list[tuple[str, str]]:
    """Those of these decisions whose rows say something else, each with words for it."""
    if not decisions:
        return []
    ids = list(decisions)
    rows, pending = store.read(lambda tx: ({made.id: made for made in tx.decisions_of(ids)}, tx.pending_of(ids)))
    wrong = []
    for id, known in decisions.items():
        made = rows.get(id)
        if made is None or any(getattr(made, name) != getattr(known, name) for name in OpenDecision.__slots__):
            wrong.append((id, f"decision {id}: the row says {made}, the events {known}"))
        elif pending.get(id) != (made.expires_at if made.hold.state == "pending" else None):
            wrong.append((id, f"decision {id} is {made.hold.state}, and the list of what may expire says otherwise"))
    return wrong
