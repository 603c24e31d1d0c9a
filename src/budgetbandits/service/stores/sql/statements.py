"""How a transaction of a SQL database runs a statement, and how it asks for the events of one campaign.

A PostgreSQL that was analysed while there was one campaign would take every event for one of any campaign, and walk the
index of the numbers, which has the events of all campaigns: for a campaign that is one of thousands, all of it. So it
keeps no statistics of that column (`schema`), and rows are ordered by both columns, which one index alone serves.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar

EVENT_NUMBER_MAX = 2**62
"""A number above that of any event."""

IN_ORDER = "campaign, seq"
"""Order of events by campaign."""

LATEST_FIRST = "campaign DESC, seq DESC"
"""Reverse order of events by campaign."""


BETWEEN = "campaign = ? AND seq > ? AND seq <= ?"
"""A condition for events, whose values are `between`."""


def between(campaign: str, after: int = 0, upto: int = EVENT_NUMBER_MAX) -> tuple[str, int, int]:
    """The values of `BETWEEN`: the events of a campaign after a number and up to one."""
    return campaign, after, upto


def first_after(column: str, campaign: str, seq: str, condition: str = "1 = 1") -> str:
    """An expression for a column of the first event of a campaign after a number; NULL without one.

    ``campaign`` and ``seq`` are expressions; ``condition`` is one on an event e.
    """
    return (
        f"(SELECT e.{column} FROM event e WHERE e.campaign = {campaign} AND e.seq > {seq} AND {condition} "
        "ORDER BY e.campaign, e.seq LIMIT 1)"
    )


class Statements(ABC):
    """Plain SQL with ``?`` for values."""

    LOCK: ClassVar[str] = ""
    """Ends a SELECT so that others cannot change its rows, where a transaction does not see to that anyway."""

    @abstractmethod
    def ask(self, statement: str, values: Sequence[Any] = ()) -> Any:
        """Run a statement that changes nothing; the result can be iterated and has fetchone()."""

    @abstractmethod
    def change(self, statement: str, values: Sequence[Any] = ()) -> None:
        """Run a statement that writes."""

    @abstractmethod
    def change_many(self, statement: str, rows: Sequence[Sequence[Any]]) -> None:
        """Run a statement that writes for each of these rows."""

    def whole(self, number: str) -> str:
        """An expression for the whole part of a number that is not negative."""
        return f"CAST({number} AS BIGINT)"

    def contains(self, text: str) -> str:
        """An expression for whether a text contains another one, which is its value."""
        return f"instr({text}, ?) > 0"

    def last_event(self, campaign: str, condition: str = "") -> int:
        """The number of the campaign's latest event, or of those with a further condition; 0 if there is none."""
        query = f"SELECT seq FROM event WHERE {BETWEEN}{condition} ORDER BY {LATEST_FIRST} LIMIT 1"
        row = self.ask(query, between(campaign)).fetchone()
        return 0 if row is None else int(row[0])
