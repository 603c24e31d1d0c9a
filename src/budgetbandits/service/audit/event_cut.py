"""Which events of a campaign there were at one moment, to read them in slices afterwards.

Events of the campaign's own are numbered in the order of their commits, and so are those of one lease. But a lease's
events and the campaign's, or those of two leases, are not: one may be numbered before another, and be committed later.
So one number does not say which events there were. For the campaign's own events the number of the latest one does.
For those of an open lease the row of the lease does, because it is written together with each of them.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from budgetbandits.service.stores.contract import Transaction
from budgetbandits.service.stores.records import OWN, Event, Lease


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
        own, leases = tx.last_own_event(campaign), tx.leases(campaign)
        latest = [each.event.seq for lease in leases for each in tx.lease_events(lease.id, lease.lease_seq - 1)]
        return cls(tx.last_event(campaign), own, min([own, *latest]), {lease.id: lease for lease in leases})

    def has(self, event: Event) -> bool:
        """Whether it was there. Ask in the order of numbers: a lease begins with its first event."""
        if event.lease is None or event.kind in OWN:
            if event.seq > self.own and event.kind == "leased":
                self._later.add(str(event.lease))
            return event.seq <= self.own
        if event.lease in self.leases:
            return event.lease_seq is None or event.lease_seq <= self.leases[event.lease].lease_seq
        return event.lease not in self._later  # or else it had ended by then
