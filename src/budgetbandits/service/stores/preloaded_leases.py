"""A transaction over leases that were read beforehand, without their campaign: see `foreseen`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NoReturn

from budgetbandits.service.stores.contract import About
from budgetbandits.service.stores.preloaded import PreloadedTransaction
from budgetbandits.service.stores.records import Campaign, Decision, Event, Lease, LeaseEvent


class EventsNeeded(Exception):
    """The events of a lease after this turn must be read."""

    def __init__(self, lease: str, after: int) -> None:
        super().__init__(lease, after)
        self.lease, self.after = lease, after


class ForeseenLeases(PreloadedTransaction):
    """What a group does under leases.

    events_read  for each lease and turn the events after it, as they were before the group
    """

    leases_alone = True

    def __init__(
        self,
        campaign: str,
        leases: Iterable[Lease],
        decisions: Iterable[Decision],
        abouts: Sequence[About],
        now: float | None,
    ) -> None:
        super().__init__(None, decisions, abouts, now, leases)
        self.id = campaign
        self._asked_leases = {about.lease for about in abouts} | {made.lease for made in self._by_id.values()}
        self.events_read: dict[tuple[str, int], list[LeaseEvent]] = {}

    def campaign(self, id: str) -> NoReturn:
        self._no()

    def campaign_named(self, name: str) -> NoReturn:
        self._no()

    def save_campaign(self, campaign: Campaign) -> NoReturn:
        self._no()

    def leases(self, campaign: str) -> NoReturn:
        self._no()

    def lease(self, id: str) -> Lease | None:
        if id not in self._asked_leases:
            self._no()
        return super().lease(id)

    def lease_events(self, lease: str, after: int) -> list[LeaseEvent]:
        if (lease, after) not in self.events_read:
            raise EventsNeeded(lease, after)
        new = [e for e in self.new_events if e.lease == lease and e.turn is not None and e.turn > after]
        return self.events_read[lease, after] + [self._known(event) for event in new]

    def _known(self, event: Event) -> LeaseEvent:
        made = None if event.decision is None else self._by_id.get(event.decision)
        if made is None:
            return LeaseEvent(event)
        return LeaseEvent(event, made.cost, made.reward, made.request, made.created_at)
