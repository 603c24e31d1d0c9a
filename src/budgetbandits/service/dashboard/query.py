"""Addresses of pages: the query that an address carries, and the addresses that pages link to.

A name may have any printable character; a campaign's name has no slash. Quoted segment by segment, every name leads to
itself: the address of the campaign `summer%20sale` differs from that of `summer sale`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, get_args
from urllib.parse import quote, urlencode

from starlette.requests import Request

from budgetbandits.errors import BadParameter
from budgetbandits.formatting.datetimes import DAY
from budgetbandits.service.names import normal
from budgetbandits.service.stores.records import Group
from budgetbandits.service.stores.sql.dashboard import DECISION_KINDS, DecisionKind, Order
from budgetbandits.web.servers import root_path

ARM_ORDERS = ("chance", "name", "share", "pulls", "reward", "price", "ratio")
"""Orders in which the arms of a page can be sorted."""
Range = Literal["day", "week", "all"]
RANGE_SECONDS: dict[Range, float] = {"day": DAY, "week": 7 * DAY, "all": float("inf")}
"""Lengths of the ranges of time."""


@dataclass(frozen=True)
class PageQuery:
    """The time that pictures are of, and which decisions: of a kind, an arm, a segment, with an entry of metadata
    (``name=value``), from an event backwards; and what arms are sorted by."""

    range: Range = "all"
    show: DecisionKind = "all"
    arm: str = ""
    segment: str = ""
    metadata: str = ""
    before: int | None = None
    sort: str = "chance"

    @classmethod
    def of(cls, query: Mapping[str, str]) -> PageQuery:
        """The query of an address; unknown entries are ignored."""
        range, show = query.get("range", "all"), query.get("show", "all")
        if range not in get_args(Range) or show not in DECISION_KINDS:
            ranges, kinds = " or ".join(get_args(Range)), ", ".join(DECISION_KINDS)
            raise BadParameter(f"range is {range!r:.20} and show {show!r:.20}; use {ranges}, and one of {kinds}")
        metadata = query.get("metadata", "").strip()[:2_000]
        if metadata and "=" not in metadata:
            raise BadParameter(f"metadata is {metadata!r:.60}; write NAME=VALUE, such as user=u-17")
        arm, segment = query.get("arm", "")[:400], query.get("segment", "")[:400]
        sort = query.get("sort", "chance")
        if sort.removeprefix("-") not in ARM_ORDERS:
            raise BadParameter(f"sort is {sort!r:.20}; use one of {', '.join(ARM_ORDERS)}, perhaps with - before it")
        return cls(range, show, arm, segment, metadata, event_of(query), sort)  # type: ignore[arg-type]

    @property
    def filtered(self) -> bool:
        """Whether not all decisions are wanted."""
        return self.show != "all" or bool(self.arm or self.segment or self.metadata)

    def query(self, **others: Any) -> str:
        """The query of an address for this, with these changes; a list of decisions starts at the latest.

        >>> PageQuery(range="day", arm="a & b", before=7).query(show="held"), PageQuery(arm="all").query()
        ('?range=day&show=held&arm=a+%26+b', '?arm=all')
        """
        return _query({**vars(self), "before": None, **others}, vars(PageQuery()))


@dataclass(frozen=True)
class ListQuery:
    """Which campaigns the overview lists, and in which order."""

    text: str = ""
    group: Group | Literal["all"] = "all"
    order: Order = "alarm"
    page: int = 1
    tag: str = ""

    @classmethod
    def of(cls, query: Mapping[str, str]) -> ListQuery:
        """Read from the query of an address."""
        text, page = query.get("q", ""), query.get("page", "1")
        group, order = query.get("group", "all"), query.get("order", "alarm")
        number = whole_number(page[:9])
        if group not in ("all", *get_args(Group)) or order not in get_args(Order) or number is None:
            raise BadParameter("there is no such list; use the links of the page")
        tag = normal(query.get("tag", "")[:200])
        return cls(normal(text[:200]), group, order, min(max(number, 1), 10**6), tag)  # type: ignore[arg-type]

    def query(self, **others: Any) -> str:
        """The query of an address for this, with these others.

        >>> ListQuery("a b", page=3).query(group="stopped")
        '?q=a+b&group=stopped'
        """
        values = {"q": self.text, "tag": self.tag, "group": self.group, "order": self.order, "page": 1, **others}
        return _query(values, {"q": "", "tag": "", "group": "all", "order": "alarm", "page": 1})


def _query(values: Mapping[str, Any], defaults: Mapping[str, Any]) -> str:
    """The query of an address, without default values."""
    return f"?{urlencode({name: value for name, value in values.items() if value != defaults.get(name)})}"


def event_of(query: Mapping[str, str]) -> int | None:
    """The number of the event before which a page begins, if the address names one."""
    text = query.get("before", "")
    number = whole_number(text)
    if text and number is None:
        raise BadParameter(f"before is {text!r:.20}; use the links of the page")
    return number


def address(*segments: str, **query: Any) -> str:
    """The address of a page of this server, by the segments of its path as they are called, below its root path.

    >>> address(), address("campaigns", "50% off?", "retire-arm", arm="a & b")
    ('/', '/campaigns/50%25%20off%3F/retire-arm?arm=a%20%26%20b')
    """
    path = f"{root_path.get()}/" + "/".join(quote(segment, safe="") for segment in segments)
    return f"{path}?{urlencode(query, quote_via=quote)}" if query else path


def campaign_address(name: str, *segments: str, **query: Any) -> str:
    """The address of a campaign's page, or of one below it."""
    return address("campaigns", name, *segments, **query)


def campaign_path(name: str) -> str:
    """The path of a campaign in the API, below the address of a server.

    >>> campaign_path("50% off?")
    '/v1/campaigns/50%25%20off%3F'
    """
    return f"/v1/campaigns/{quote(name, safe='')}"


def server_address(request: Request) -> str:
    """The address of this server as the request came, with the prefix that a proxy serves it under."""
    text = request.headers.get("x-forwarded-proto", "")
    scheme = text if text in ("http", "https") else request.url.scheme
    return str(request.base_url.replace(scheme=scheme)).rstrip("/")


def path_of(request: Request) -> str:
    """The path that was asked for, as an address: servers hand it over unquoted."""
    return address(*request.scope["path"].removeprefix(root_path.get()).split("/")[1:])


def cookie_path() -> str:
    """The path of the pages, for cookies: those of two servers behind one host do not meet."""
    return root_path.get() or "/"


def address_of(request: Request) -> str:
    """All of the address that was asked for."""
    query = request.scope["query_string"].decode("latin-1")
    return path_of(request) + (f"?{query}" if query else "")


def whole_number(text: str, max_digits: int = 18) -> int | None:
    """The whole number in an address or a cookie; None if there is none."""
    return int(text) if text.isascii() and text.isdigit() and len(text) <= max_digits else None
