"""Rollups: a campaign's events summed by minute, hour and day, so that a page need not read them.

They are not written with each decision. A row for an arm's minute would be one more row to lock and write at every
decision and every feedback, and servers with leases of their own would wait for each other at it. Instead a server sums
new events every few seconds (`roll_up`), some at a time, and moves the campaign's watermark in the same transaction. A
reader (`History`) adds the events after the watermark in the transaction of its reading. So the result is exact at
every moment, and decisions pay nothing.

Under leases an event may be committed after others with higher numbers. The watermark stops before the first number
where that can still happen (`Cut.first`). Its times, which tell the list of campaigns that one is silent, are kept up
to date beyond it, so that the list reads at most one event of each campaign.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial

from budgetbandits.errors import BadState
from budgetbandits.service.audit.open_decisions import OpenDecision
from budgetbandits.service.audit.slices import Cut
from budgetbandits.service.ledger import Hold
from budgetbandits.service.names import normal
from budgetbandits.service.stores.contract import UNREADABLE, Store, Transaction, find_campaign, isolated
from budgetbandits.service.stores.records import COUNTS, Campaign, Counts, Event, Watermark
from budgetbandits.service.stores.sql.rollups import DAY, HOUR, MINUTE, SPANS, SUMS, by_span

EVENTS_AT_ONCE = 1000
"""Events that are summed in one transaction, which others wait for."""

EVENTS_READ_MAX = 2000
"""Events that a page may read one by one."""

MINUTES_KEPT_SECONDS = 2 * DAY
"""How long rows of minutes are kept."""

EARLIER = -DAY
"""The day of what happened before `Recount.since`."""

AUDITED_COUNTS = tuple(name for name in COUNTS if name not in SUMS and not name.startswith("delay"))
"""The counts that an audit makes again, besides the sums."""


def roll_up(store: Store, stopping: Callable[[], bool] = lambda: False) -> int:
    """Sum the events since the last time; the number of campaigns that had any.

    ``stopping`` is asked after each slice: a store that was closed for a long time may have very many.
    """
    campaigns = store.read(lambda tx: tx.rollups().behind())
    damage: BadState | None = None
    for campaign in campaigns:
        try:
            roll_up_campaign(store, campaign, stopping)
        except BadState as error:  # the others go on before it is raised
            damage = error
        if stopping():
            break
    if damage is not None:
        raise damage
    return len(campaigns)


def roll_up_campaign(store: Store, campaign: str, stopping: Callable[[], bool] = lambda: False) -> None:
    """Sum the events of one campaign since the last time."""

    def begin(tx: Transaction) -> tuple[Campaign, Cut, float]:
        return find_campaign(tx, campaign), Cut.of(tx, campaign), tx.now()

    def look_ahead(tx: Transaction) -> bool:
        """Whether there is more."""
        return tx.rollups().look_ahead(campaign, EVENTS_AT_ONCE)

    row, cut, now = store.read(isolated(campaign, begin))
    while store.write(isolated(campaign, partial(_add_slice, row=row, upto=cut.first, now=now))) and not stopping():
        pass
    while cut.first < cut.last and not stopping() and store.write(look_ahead):
        pass


def _add_slice(tx: Transaction, row: Campaign, upto: int, now: float) -> bool:
    """Whether there is more."""
    rollups = tx.rollups()
    mark = rollups.watermark(row.id)
    if mark.seq >= upto:
        return False
    end = rollups.slice_end(row.id, mark.seq, upto, EVENTS_AT_ONCE)
    tail = rollups.tail(row.id, mark, end)
    tail.mark.seq = end
    rollups.add(row.id, tail.counts, tail.mark, now - MINUTES_KEPT_SECONDS)
    return end < upto


@dataclass
class History:
    """The history of a campaign up to this moment: its rollups, and the events after them."""

    row: Campaign
    tail: list[Counts]
    mark: Watermark
    """The watermark after the tail."""
    _tx: Transaction

    @classmethod
    def of(cls, tx: Transaction, row: Campaign) -> History:
        """The history of a campaign."""
        rollups = tx.rollups()
        tail = rollups.tail(row.id, rollups.watermark(row.id), tx.last_event(row.id))
        return cls(row, tail.counts, tail.mark, tx)

    def by(self, span: int, since: float = 0.0) -> list[Counts]:
        """Counts by arm and minute, hour or day, beginning with the one that contains ``since``."""
        first = int(since) - int(since) % span
        rows = self._tx.rollups().rows(self.row.id, span, first)
        tail = [count for count in self.tail if count.begins >= first]
        return by_span([*rows, *tail], span) if tail else rows

    def slots(self, slot: int, since: float) -> list[tuple[int, int, int, int]]:
        """(begins, arm, decided, spent), some pairs twice; ``slot`` is a multiple of a minute, an hour or a day."""
        first = int(since) - int(since) % slot
        span = max(span for span in SPANS if slot % span == 0)
        rows = self._tx.rollups().slots(self.row.id, span, slot, first)
        tail = [count for count in self.tail if count.begins >= first]
        return rows + [(count.begins - count.begins % slot, count.arm, count.decided, count.spent) for count in tail]

    def fine_slots(self, slot: int) -> list[tuple[int, int, int, int]] | None:
        """(begins, arm, decided, spent) in slots shorter than a minute, from the campaign's first event on.

        None if it has more than `EVENTS_READ_MAX` events, or the first of them are in the archive.
        """
        if self.row.settings.archived_before:
            return None
        rollups, last = self._tx.rollups(), self._tx.last_event(self.row.id)
        if rollups.slice_end(self.row.id, 0, last, EVENTS_READ_MAX) < last:
            return None
        counts = rollups.tail(self.row.id, Watermark(), last, slot).counts
        return [(count.begins, count.arm, count.decided, count.spent) for count in counts]

    def totals(self) -> dict[int, Counts]:
        """Counts of each arm over all time."""
        return by_arm([*self._tx.rollups().totals(self.row.id), *self.tail])


def by_arm(counts: Iterable[Counts]) -> dict[int, Counts]:
    """Summed over time."""
    result: dict[int, Counts] = {}
    for count in counts:
        result[count.arm] = result.get(count.arm, Counts(0, count.arm)).plus(count)
    return result


class Refusals:
    """Refusals as a server counts them, by campaign (its name or its id), hour and reason, until they are written.

    Counted by the event loop, taken by the thread that writes them: each dictionary belongs to one of them at a time.
    """

    def __init__(self) -> None:
        self._counts: Counter[tuple[str, int, str]] = Counter()

    def __len__(self) -> int:
        return len(self._counts)

    def count(self, campaign: str, reason: str, now: float) -> None:
        """Count a refusal."""
        self._counts[normal(campaign), int(now) - int(now) % HOUR, reason] += 1

    def flush(self, store: Store) -> None:
        """Write the counts; if that fails, they are kept."""
        counts, self._counts = self._counts, Counter()
        if not counts:
            return

        def ids(tx: Transaction) -> dict[str, str]:
            """The ids of campaigns, without deleted or damaged ones: these must not keep back all others."""
            result = dict[str, str]()
            for campaign in {campaign for campaign, _, _ in counts}:
                with suppress(*UNREADABLE):
                    result[campaign] = find_campaign(tx, campaign).id
            return result

        try:
            # read apart: a transaction that writes would lock the campaigns, in whatever order they have refused
            id_of, rows = store.read(ids), Counter[tuple[str, int, str]]()
            for (campaign, begins, reason), count in counts.items():
                if campaign in id_of:
                    rows[id_of[campaign], begins, reason] += count
            # in order: of servers that write at once, none waits for one that waits for it
            values = [(*key, count) for key, count in sorted(rows.items())]
            store.write(lambda tx: tx.rollups().add_refusals(values))
        except BaseException:
            self._counts.update(counts)
            raise


@dataclass
class Recount:
    """An audit's own rollups by day, from a replay, to compare with the store's."""

    seq: int
    """The number of the last event in the store's rollups."""
    days: list[Counts]
    """The store's rollups by day, with all events up to the watermark."""
    mismatches: list[str] = field(default_factory=list)
    since: int = 0
    """Days before this are counted together, by arm: a checkpoint need not list them all."""
    _made: dict[tuple[int, int], Counts] = field(default_factory=dict)

    @classmethod
    def of(cls, tx: Transaction, campaign: str) -> Recount:
        """The recount of a campaign's events."""
        rollups, mismatches = tx.rollups(), []
        for span, name in ((MINUTE, "minutes"), (HOUR, "hours")):
            wrong = rollups.mismatch(campaign, span)
            if wrong is not None:
                mismatches.append(f"rollups: the {name} from {wrong[0]} of arm {wrong[1]} do not make the longer row")
        return cls(rollups.watermark(campaign).seq, rollups.rows(campaign, DAY), mismatches)

    def add(self, event: Event, before: OpenDecision | None, after: OpenDecision) -> None:
        """An event of a decision, and the decision before and after it."""
        if event.seq > self.seq or event.arm is None:
            return
        begins = self._day(int(event.at) - int(event.at) % DAY)
        counts = self._made.setdefault((begins, event.arm), Counts(begins, event.arm))
        hold = Hold(0) if before is None else before.hold
        counts.spent += after.hold.charged - hold.charged
        counts.overrun += after.hold.overrun - hold.overrun
        counts.overruns += after.hold.overrun > hold.overrun
        counts.requests_used += after.hold.request_used - hold.request_used
        if event.reward is not None:
            counts.rewards_reported += 1
            counts.reward += event.reward
            counts.reward_squared += event.reward**2
        if event.kind == "settled":
            counts.costs_reported += 1
            counts.cost += event.amount or 0
            counts.cost_squared += float(event.amount or 0) ** 2
        elif event.kind in ("decided", "voided", "expired", "failed"):
            setattr(counts, event.kind, getattr(counts, event.kind) + 1)
        if after.failed and after.final:
            counts.failed_cost += after.cost or 0
            counts.failed_cost_squared += float(after.cost or 0) ** 2

    @property
    def made(self) -> list[Counts]:
        """All counts so far."""
        return [self._made[key] for key in sorted(self._made)]

    @property
    def latest_day(self) -> int:
        """The beginning of the latest day with counts; 0 without any."""
        return max((begins for begins, _ in self._made), default=0)

    def begin_with(self, counts: Counts) -> None:
        """Go on from counts that were made before."""
        self._made[counts.begins, counts.arm] = counts

    def sum_before(self, day: int) -> None:
        """Count the days before this one together."""
        self.since = max(self.since, day)
        self._made = self._by_day(self.made)

    def _day(self, begins: int) -> int:
        return begins if begins >= self.since else EARLIER

    def _by_day(self, counts: Iterable[Counts]) -> dict[tuple[int, int], Counts]:
        summed: dict[tuple[int, int], Counts] = {}
        for count in counts:
            key = self._day(count.begins), count.arm
            summed[key] = summed.get(key, Counts(*key)).plus(count)
        return summed

    def differences(self) -> Iterable[str]:
        """Where the store's rollups and the events disagree."""
        yield from self.mismatches
        stored = self._by_day(self.days)
        for key in sorted(stored.keys() | self._made.keys()):
            kept, recounted = (counts_by_key.get(key, Counts(*key)) for counts_by_key in (stored, self._made))
            if not _same(kept, recounted):
                day = f"the day from {key[0]}" if key[0] != EARLIER else f"all days before {self.since}"
                yield f"rollups of {day}: arm {key[1]} has {kept}, its events {recounted}"


def _same(one: Counts, other: Counts) -> bool:
    whole = all(getattr(one, name) == getattr(other, name) for name in AUDITED_COUNTS)
    pairs = [(getattr(one, name), getattr(other, name)) for name in SUMS]
    # summed in another order
    return whole and all(abs(a - b) <= 1e-9 * max(abs(a), abs(b), 1.0) for a, b in pairs)
