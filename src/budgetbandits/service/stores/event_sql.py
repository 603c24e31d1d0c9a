"""Which events of a campaign a statement reads, so that every plan for it reads them by the campaign's own index.

A PostgreSQL that was analysed while there was one campaign takes every event for one of any campaign. Asked for
``campaign = ? ORDER BY seq``, it then walks the index of the numbers, which has the events of all campaigns: for a
campaign that is one of thousands, all of it. So rows are compared there, and ordered by both columns, which one index
alone serves, whatever the statistics say. SQLite takes the plain words that way; rows it would compare one by one.
"""

from __future__ import annotations

from dataclasses import dataclass

LARGEST_NUMBER = 2**62
"""Above that of any event."""

IN_ORDER = "campaign, seq"
LATEST_FIRST = "campaign DESC, seq DESC"


@dataclass(frozen=True)
class EventWords:
    """How a database is asked for the events of a campaign after a number and up to one."""

    after: str
    upto: str

    @property
    def between(self) -> str:
        """A condition; its values are `between`."""
        return " AND ".join(each.format(e="", campaign="?", seq="?") for each in (self.after, self.upto))

    def first_after(self, wanted: str, campaign: str, seq: str, which: str = "1 = 1") -> str:
        """An expression for this of the first event of a campaign after a number, both expressions; NULL without one.
        ``which`` may be a condition on an event e."""
        after = self.after.format(e="e.", campaign=campaign, seq=seq)
        upto = self.upto.format(e="e.", campaign=campaign, seq=LARGEST_NUMBER)
        return (
            f"(SELECT e.{wanted} FROM event e WHERE {after} AND {upto} AND {which} "
            "ORDER BY e.campaign, e.seq LIMIT 1)"
        )  # fmt: skip


PLAIN = EventWords("{e}campaign = {campaign} AND {e}seq > {seq}", "{e}campaign = {campaign} AND {e}seq <= {seq}")
BY_ROWS = EventWords("({e}campaign, {e}seq) > ({campaign}, {seq})", "({e}campaign, {e}seq) <= ({campaign}, {seq})")


def between(campaign: str, after: int = 0, upto: int = LARGEST_NUMBER) -> tuple[str, int, str, int]:
    """The values of `EventWords.between`."""
    return campaign, after, campaign, upto
