"""One decision among very many, in SQL: by the beginning of its id, and with all its events.

Every query is bounded. Ids, and the key of a decision in its campaign, have an index; so has the moment at which a
decision expired. The other events of a decision are looked for among those of its campaign since it was made, a window
at a time: an index of events by decision would make each decision half as large again in the store.
"""

from __future__ import annotations

from dataclasses import dataclass

from budgetbandits.service.stores.records import DecisionRow, Event
from budgetbandits.service.stores.sql.rows import DECISION, NUMBERED_EVENT, decision_of, listed
from budgetbandits.service.stores.sql.statements import BETWEEN, IN_ORDER, Statements, between

EVENTS_SEARCHED_MAX = 20_000
"""Events of a campaign among which those of one decision are looked for at a time."""
CLOCK_TOLERANCE_SECONDS = 5.0
"""How much earlier than the events before it an event may be dated: a transaction may wait for its campaign's row."""


@dataclass(frozen=True)
class DecisionEvents:
    """Events of one decision, the oldest first."""

    events: list[Event]
    upto: int | None
    """The number of the event after which to look further; None if all were looked at."""


class DecisionSearch:
    """Queries for single decisions, in a transaction."""

    def __init__(self, tx: Statements) -> None:
        self._tx = tx

    def with_prefix(self, digits: str, limit: int, campaign: str | None = None) -> list[DecisionRow]:
        """Decisions whose ids begin with these hexadecimal digits, of one campaign or of all.

        At most ``limit`` of all campaigns are looked at: with few digits some may not be found.
        """
        among = f"SELECT {listed(DECISION)} FROM decision WHERE id >= ? AND id < ? ORDER BY id LIMIT {limit:d}"
        of_one, value = ("", ()) if campaign is None else (" WHERE campaign = ?", (campaign,))
        ends = digits, f"{digits}g"  # no digit comes after f, in whatever order a database keeps texts
        rows = self._tx.ask(f"SELECT {listed(DECISION)} FROM ({among}) AS d{of_one} ORDER BY id", (*ends, *value))
        return [decision_of(row) for row in rows]

    def events(self, decision: DecisionRow, after: int | None = None) -> DecisionEvents:
        """Events of a decision among the `EVENTS_SEARCHED_MAX` of its campaign after this number, or since it was
        made; and when it expired."""
        campaign, columns = decision.campaign, f"SELECT {listed(NUMBERED_EVENT)} FROM event WHERE"
        last = self._tx.last_event(campaign)
        if after is None:
            after = self.last_event_before(campaign, decision.created_at - CLOCK_TOLERANCE_SECONDS)
        window = f"SELECT seq FROM event WHERE {BETWEEN} ORDER BY {IN_ORDER} LIMIT 1 OFFSET {EVENTS_SEARCHED_MAX}"
        beyond = self._tx.ask(window, between(campaign, after, last)).fetchone()
        upto = last if beyond is None else beyond[0] - 1
        values = (*between(campaign, after, upto), decision.id)
        rows = self._tx.ask(f"{columns} {BETWEEN} AND decision = ?", values).fetchall()
        rows += self._tx.ask(f"{columns} decision = ? AND kind = 'expired'", (decision.id,)).fetchall()
        events = {event.seq: event for event in (Event(*row) for row in rows)}
        return DecisionEvents([events[seq] for seq in sorted(events)], None if beyond is None else upto)

    def last_event_before(self, campaign: str, timestamp: float) -> int:
        """The number of a campaign's last event before a time, by bisection: one event is read at each step."""
        low, high = 0, self._tx.last_event(campaign)  # events up to low are earlier, the first after high is not
        query = f"SELECT seq, at FROM event WHERE {BETWEEN} ORDER BY {IN_ORDER} LIMIT 1"
        while low < high:
            middle = (low + high) // 2
            row = self._tx.ask(query, between(campaign, middle, high)).fetchone()
            if row is not None and row[1] < timestamp:
                low = row[0]
            else:
                high = middle
        return low
