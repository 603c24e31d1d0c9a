"""What somebody wants to see of a campaign, as the address of its page says."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, get_args
from urllib.parse import urlencode

from budgetbandits.errors import BadParameter
from budgetbandits.formatting.datetimes import DAY
from budgetbandits.service.dashboard.fields import whole_number
from budgetbandits.service.stores.sql.dashboard import DECISION_KINDS, DecisionKind

Range = Literal["day", "week", "all"]
SECONDS: dict[Range, float] = {"day": DAY, "week": 7 * DAY, "all": float("inf")}


@dataclass(frozen=True)
class PageQuery:
    """The time that pictures are of, and which decisions: of a kind, an arm, a segment, from an event backwards."""

    range: Range = "all"
    show: DecisionKind = "all"
    arm: str = ""
    segment: str = ""
    before: int | None = None

    @classmethod
    def of(cls, query: Mapping[str, str]) -> PageQuery:
        """By the address's query; whatever else it has is not looked at."""
        range, show = query.get("range", "all"), query.get("show", "all")
        if range not in get_args(Range) or show not in DECISION_KINDS:
            ranges, kinds = " or ".join(get_args(Range)), ", ".join(DECISION_KINDS)
            raise BadParameter(f"range is {range!r:.20} and show {show!r:.20}; use {ranges}, and one of {kinds}")
        return cls(range, show, query.get("arm", "")[:400], query.get("segment", "")[:400], event_of(query))  # type: ignore[arg-type]

    @property
    def filtered(self) -> bool:
        """Whether not all decisions are wanted."""
        return self.show != "all" or bool(self.arm or self.segment)

    def query(self, **others: Any) -> str:
        """The query of an address for this, with these others; a list of decisions begins anew unless they say where.

        >>> PageQuery(range="day", arm="a & b", before=7).query(show="held"), Wanted(arm="all").query()
        ('?range=day&show=held&arm=a+%26+b', '?arm=all')
        """
        wanted, first = {**vars(self), "before": None, **others}, vars(PageQuery())
        given = {name: value for name, value in wanted.items() if value != first.get(name)}
        return f"?{urlencode(given)}" if given else "?"


def event_of(query: Mapping[str, str]) -> int | None:
    """The number of the event before which a page begins, if the address names one."""
    text = query.get("before", "")
    number = whole_number(text)
    if text and number is None:
        raise BadParameter(f"before is {text!r:.20}; use the links of the page")
    return number
