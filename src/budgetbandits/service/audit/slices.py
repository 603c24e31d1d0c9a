"""Long reads: which events of a campaign there were at one moment, and how to read them in slices afterwards.

Each slice is read in a transaction of its own. A view that is kept for minutes keeps SQLite from shortening its log,
and PostgreSQL from clearing away old rows. Events never change, so all that were there at that moment are found,
whenever they are read.

Events of the campaign's own are numbered in the order of their commits, and so are those of one lease. But a lease's
events and the campaign's, or those of two leases, are not: one may be numbered before another, and be committed later.
So one number does not say which events there were. For the campaign's own events the number of the latest one does.
For those of an open lease the row of the lease does, because it is written together with each of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from budgetbandits.service.stores.contract import Store, T, Transaction
from budgetbandits.service.stores.records import LEASE_MILESTONES, DecisionRow, Event, Lease

ROWS_READ = 1000
"""How many rows a long read takes in one transaction."""


@dataclass
class Cut:
    """The events of a campaign at one moment.

    last    the number of the latest
    own     that of the latest of the campaign's own
    first   all events up to this one were there: nothing is committed later with a number as low
    leases  the leases that were open, by id
    """

    last: int
    own: int
    first: int
    leases: dict[str, Lease]
    _later: set[str] = field(default_factory=set)
    """Leases that began later."""

    @classmethod
    def of(cls, tx: Transaction, campaign: str) -> Cut:
        """The cut at the present end of a campaign's events."""
        own, leases = tx.last_own_event(campaign), tx.leases(campaign)
        latest = [
            lease_event.event.seq for lease in leases for lease_event in tx.lease_events(lease.id, lease.lease_seq - 1)
        ]
        return cls(tx.last_event(campaign), own, min([own, *latest]), {lease.id: lease for lease in leases})

    def has(self, event: Event) -> bool:
        """Whether it was there. Ask in the order of numbers: a lease begins with its first event."""
        if event.lease is None or event.kind in LEASE_MILESTONES:
            if event.seq > self.own and event.kind == "leased":
                self._later.add(str(event.lease))
            return event.seq <= self.own
        if event.lease in self.leases:
            return event.lease_seq is None or event.lease_seq <= self.leases[event.lease].lease_seq
        return event.lease not in self._later  # or else it had ended by then


def event_slices(store: Store, campaign: str, after: int, last: int) -> Iterator[list[Event]]:
    """The campaign's events above number ``after`` up to ``last``, in order."""
    return _slices(store, lambda tx, since: [(e.seq, e) for e in tx.events(campaign, since, ROWS_READ)], after, last)


def decision_slices(store: Store, campaign: str, last: int) -> Iterator[list[tuple[int, DecisionRow]]]:
    """The campaign's decisions up to the event ``last``, in the order they were made.

    Each comes as it is when it is read, with the number of the event of its making.
    """

    def page(tx: Transaction, since: int) -> list[tuple[int, tuple[int, DecisionRow]]]:
        return [(number, (number, decision)) for number, decision in tx.decisions(campaign, since, ROWS_READ)]

    return _slices(store, page, 0, last)


def _slices(
    store: Store, page_after: Callable[[Transaction, int], list[tuple[int, T]]], after: int, last: int
) -> Iterator[list[T]]:
    def read(tx: Transaction) -> list[tuple[int, T]]:
        return page_after(tx, after)

    while after < last and (page := store.read(read)):
        yield [row for number, row in page if number <= last]
        after = page[-1][0]
